//! Packing blocks: LZ4 where it must be quick, LZ4 with effort and a dictionary where it may take its time.
//!
//! A dictionary holds what a segment's rows have in common, so that a block need not say it again and may be small:
//! reading one row unpacks little. Takes and gives bytes; knows no rows and no files. Bytes to be unpacked were
//! checked by their checksum, and are not trusted even so: the length is announced, and bounded before.

use super::format::Codec;
use super::lz4_hc::{self, Compressor};
use super::{BLOCK_BYTES_TARGET, DENSE_BLOCK_BYTES_TARGET};
use std::fmt;

/// How hard LZ4 tries: 9 makes a block a twentieth shorter and takes more than twice the time.
const LEVEL: i32 = 4;
/// The longest dictionary: what more would hold is rare.
const DICTIONARY_BYTES_MAX: usize = 64 << 10;
/// A dictionary takes no more than this part of the rows that it is for.
const DICTIONARY_PART: usize = 100;
/// So much is looked at for a dictionary, in dictionaries.
const SAMPLE_PARTS: usize = 64;
/// Below this many bytes of rows a dictionary is not worth it.
pub const DENSE_BYTES_MIN: u64 = 1 << 20;

/// Packs one block after another.
pub(crate) enum Packer {
    /// With the compressor's working memory.
    Lz4(Box<lz4_flex::block::CompressTable>),
    Dense(Compressor),
}

impl Packer {
    pub(crate) fn quick() -> Self {
        Self::Lz4(Box::new(lz4_flex::block::CompressTable::small()))
    }

    /// With a dictionary as `train` made it; without one, as `quick`.
    pub(crate) fn dense(dictionary: &[u8]) -> Self {
        if dictionary.is_empty() {
            return Self::quick();
        }
        Compressor::new(dictionary, LEVEL).map_or_else(Self::quick, Self::Dense)
    }

    /// A block is closed when its rows reach this.
    pub(crate) fn block_bytes(&self) -> usize {
        match self {
            Self::Lz4(_) => BLOCK_BYTES_TARGET,
            Self::Dense(_) => DENSE_BLOCK_BYTES_TARGET,
        }
    }

    /// Appends `raw` to `out`, packed where that makes it shorter.
    pub(crate) fn pack(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Codec {
        let start = out.len();
        let (codec, packed) = match self {
            Self::Lz4(table) => {
                out.resize(start + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                (Codec::Lz4, lz4(raw, &mut out[start..], table))
            }
            Self::Dense(compressor) => (Codec::Lz4Dictionary, compressor.pack(raw, out)),
        };
        match packed {
            Some(len) if len < raw.len() => {
                out.truncate(start + len);
                codec
            }
            _ => {
                out.truncate(start);
                out.extend_from_slice(raw);
                Codec::None
            }
        }
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Lz4(_)) { "Lz4" } else { "Dense" })
    }
}

/// `None` when the compressor refuses, which it does not with room enough.
fn lz4(raw: &[u8], out: &mut [u8], table: &mut lz4_flex::block::CompressTable) -> Option<usize> {
    if raw.len() < usize::from(u16::MAX) {
        return lz4_flex::block::compress_into_with_table(raw, out, table).ok();
    }
    lz4_flex::block::compress_into(raw, out).ok()
}

/// Unpacks into `raw`, of exactly the announced length. What is wrong, if something is.
pub(crate) fn unpack(
    codec: Codec,
    packed: &[u8],
    raw: &mut [u8],
    dictionary: Option<&[u8]>,
) -> Result<(), &'static str> {
    let unpacked = match codec {
        Codec::None if packed.len() == raw.len() => {
            raw.copy_from_slice(packed);
            Some(raw.len())
        }
        Codec::None => None,
        Codec::Lz4 => lz4_hc::unpack(packed, raw, &[]),
        Codec::Lz4Dictionary => {
            let dictionary = dictionary.ok_or("a block needs a dictionary that is not there")?;
            lz4_hc::unpack(packed, raw, dictionary)
        }
    };
    match unpacked {
        Some(len) if len == raw.len() => Ok(()),
        Some(_) => Err("a block unpacks to another length than announced"),
        None => Err("a block cannot be unpacked"),
    }
}

/// How many bytes of rows a dictionary for `bytes` of them wants to see.
#[must_use]
pub fn sample_bytes(bytes: u64) -> usize {
    dictionary_bytes(bytes) * SAMPLE_PARTS
}

fn dictionary_bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(DICTIONARY_BYTES_MAX * DICTIONARY_PART) / DICTIONARY_PART
}

/// A dictionary for `bytes` of rows from samples of them, one behind the other; empty where none is worth it.
#[must_use]
pub fn train(samples: &[u8], bytes: u64) -> Vec<u8> {
    if bytes < DENSE_BYTES_MIN {
        return Vec::new();
    }
    let pieces: Vec<&[u8]> = samples.chunks(DENSE_BLOCK_BYTES_TARGET).collect();
    zstd::dict::from_samples(&pieces, dictionary_bytes(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;

    /// Rows of words out of some hundreds: a block says few of them twice, a dictionary knows them all.
    fn rows() -> Vec<u8> {
        let word = |n: u64| format!("word{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
        let row = |n: u64| format!("{{\"a\":\"{}\",\"b\":\"{}\"}}", word(n * n % 401), word(n * n * n % 397));
        (0..40_000_u64).flat_map(|n| row(n).into_bytes()).collect()
    }

    #[test]
    fn a_dictionary_makes_small_blocks_smaller_and_they_come_back() {
        let rows = rows();
        let dictionary = train(&rows[..sample_bytes(1 << 20)], 1 << 20);
        assert!(!dictionary.is_empty() && dictionary.len() <= (1 << 20) / DICTIONARY_PART);
        let known = &dictionary[..];
        let block = &rows[rows.len() - 2000..];
        let (mut dense, mut quick) = (Vec::new(), Vec::new());
        assert_eq!(Packer::dense(&dictionary).pack(block, &mut dense), Codec::Lz4Dictionary);
        assert_eq!(Packer::quick().pack(block, &mut quick), Codec::Lz4);
        assert!(dense.len() * 3 < quick.len() * 2, "{} and {}", dense.len(), quick.len());
        let mut back = vec![0; block.len()];
        unpack(Codec::Lz4Dictionary, &dense, &mut back, Some(known)).unwrap();
        assert_eq!(back, block);
        unpack(Codec::Lz4Dictionary, &dense, &mut back, None).unwrap_err();
        unpack(Codec::Lz4Dictionary, &dense, &mut back[1..], Some(known)).unwrap_err();
        unpack(Codec::Lz4Dictionary, &dense, &mut vec![0; block.len() + 1], Some(known)).unwrap_err();
    }

    #[test]
    fn hostile_blocks_and_dictionaries_do_not_panic() {
        let rows = rows();
        let dictionary = train(&rows[..sample_bytes(1 << 20)], 1 << 20);
        let known = &dictionary[..];
        let mut packed = Vec::new();
        Packer::dense(&dictionary).pack(&rows[..2000], &mut packed);
        let mut back = vec![0; 2000];
        for at in 0..packed.len() {
            for value in [0, 0x55, 0xff] {
                let mut damaged = packed.clone();
                damaged[at] = value;
                let _ = unpack(Codec::Lz4Dictionary, &damaged, &mut back, Some(known));
            }
            unpack(Codec::Lz4Dictionary, &packed[..at], &mut back, Some(known)).unwrap_err();
        }
        for at in (0..dictionary.len()).step_by(61) {
            let mut damaged = dictionary.clone();
            damaged[at] ^= 0x55;
            let _ = unpack(Codec::Lz4Dictionary, &packed, &mut back, Some(&damaged));
        }
    }

    #[test]
    fn what_has_nothing_in_common_gets_no_dictionary_or_a_harmless_one() {
        assert!(train(&[], 1 << 30).is_empty());
        assert!(train(b"short", 1 << 30).is_empty());
        assert!(train(&rows(), DENSE_BYTES_MIN - 1).is_empty());
        let mut out = Vec::new();
        assert_eq!(Packer::dense(&[]).pack(&[7; 1000], &mut out), Codec::Lz4);
    }
}
