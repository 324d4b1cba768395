//! One record: its bytes and their checks.
//!
//! ```text
//!  0 magic u32 | 4 header crc u32 | 8 seq u64 | 16 durable u64 | 24 wall ms u64
//! 32 payload length u32 | 36 payload crc u32 | 40 epoch, low half u32 | 44 kind u8 | 45 zeros | 48 payload, zeros to 8
//! ```
//!
//! The header's checksum also covers the file's epoch and the record's offset, which are not in it: a stale record of
//! a recycled file, or a copy of a log inside a document, is no record here. Takes and gives plain numbers; knows
//! nothing of files. Next to read: `file.rs`.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 48;
/// "QREC", read as little endian.
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"QREC");
/// Records begin at multiples of this.
pub(crate) const ALIGN: u64 = 8;
/// The largest payload of one record. One commit is one record, so this bounds a transaction too.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// The kind of record that carries no commit, only how far the log was durable. Its `seq` is the last commit's.
pub const KIND_WATERMARK: u8 = 0;

const FIELD_SEQ: Range<usize> = 8..16;
const FIELD_DURABLE: Range<usize> = 16..24;
const FIELD_WALL: Range<usize> = 24..32;
const FIELD_PAYLOAD_LEN: Range<usize> = 32..36;
const FIELD_PAYLOAD_CRC: Range<usize> = 36..40;
const FIELD_EPOCH: Range<usize> = 40..44;
const FIELD_KIND: usize = 44;
const FIELD_ZEROS: Range<usize> = 45..HEADER_BYTES;

const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGN as usize));
const _: () = assert!(PAYLOAD_BYTES_MAX <= u32::MAX as usize);

/// What a record carries, shared and with its checksum computed: make it before any lock is taken.
#[derive(Clone, Debug)]
pub struct Payload {
    bytes: Arc<Vec<u8>>,
    crc: u32,
}

impl Payload {
    /// Takes the bytes as they are, without copying, and computes their checksum.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let crc = crc32c::crc32c(&bytes);
        Self { bytes: Arc::new(bytes), crc }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn crc(&self) -> u32 {
        self.crc
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A header, of a record about to be written or of one that passed its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) seq: u64,
    pub(crate) durable: u64,
    pub(crate) wall_ms: u64,
    pub(crate) payload_len: u32,
    pub(crate) payload_crc: u32,
    pub(crate) kind: u8,
}

/// What a record takes in the file with its header and padding.
pub(crate) const fn record_bytes(payload_len: usize) -> u64 {
    (HEADER_BYTES as u64 + payload_len as u64).next_multiple_of(ALIGN)
}

impl Header {
    pub(crate) fn encode(&self, epoch: u64, offset: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[FIELD_SEQ].copy_from_slice(&self.seq.to_le_bytes());
        bytes[FIELD_DURABLE].copy_from_slice(&self.durable.to_le_bytes());
        bytes[FIELD_WALL].copy_from_slice(&self.wall_ms.to_le_bytes());
        bytes[FIELD_PAYLOAD_LEN].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[FIELD_PAYLOAD_CRC].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[FIELD_EPOCH].copy_from_slice(&epoch_low(epoch));
        bytes[FIELD_KIND] = self.kind;
        let crc = header_crc(&bytes, epoch, offset);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header that stands at `offset` of a file of `epoch`, if one does.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES], epoch: u64, offset: u64) -> Option<Self> {
        // The cheap test first: this is asked at every eighth byte of a torn tail.
        if !bears_mark(bytes, epoch) {
            return None;
        }
        let stored = u32::from_le_bytes(field(bytes, 4..8));
        let zeros = bytes[FIELD_ZEROS].iter().all(|b| *b == 0);
        if stored != header_crc(bytes, epoch, offset) || !zeros {
            return None;
        }
        Some(Self {
            seq: u64::from_le_bytes(field(bytes, FIELD_SEQ)),
            durable: u64::from_le_bytes(field(bytes, FIELD_DURABLE)),
            wall_ms: u64::from_le_bytes(field(bytes, FIELD_WALL)),
            payload_len: u32::from_le_bytes(field(bytes, FIELD_PAYLOAD_LEN)),
            payload_crc: u32::from_le_bytes(field(bytes, FIELD_PAYLOAD_CRC)),
            kind: bytes[FIELD_KIND],
        })
    }
}

/// Whether magic and epoch stand there, whatever the rest is: a record of this file, or what is left of one.
pub(crate) fn bears_mark(bytes: &[u8; HEADER_BYTES], epoch: u64) -> bool {
    bytes[..4] == MAGIC.to_le_bytes() && bytes[FIELD_EPOCH] == epoch_low(epoch)
}

/// The same bytes with the mark of this file's records.
pub(crate) fn marked(mut bytes: [u8; HEADER_BYTES], epoch: u64) -> [u8; HEADER_BYTES] {
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[FIELD_EPOCH].copy_from_slice(&epoch_low(epoch));
    bytes
}

/// Makes the checksums of whatever stands as records from `at` on right, so that a fuzzer gets behind them.
pub(crate) fn fuzz_seal(file: &mut [u8], epoch: u64, mut at: usize) {
    while let Some((header, rest)) = file.get_mut(at..).and_then(|rest| rest.split_first_chunk_mut::<HEADER_BYTES>()) {
        let len = u32::from_le_bytes(field(header, FIELD_PAYLOAD_LEN)) as usize;
        let payload_crc = rest.get(..len).map_or(0, crc32c::crc32c);
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[FIELD_PAYLOAD_CRC].copy_from_slice(&payload_crc.to_le_bytes());
        header[FIELD_EPOCH].copy_from_slice(&epoch_low(epoch));
        let crc = header_crc(header, epoch, at as u64);
        header[4..8].copy_from_slice(&crc.to_le_bytes());
        at = usize::try_from(at as u64 + record_bytes(len)).unwrap_or(usize::MAX);
    }
}

fn epoch_low(epoch: u64) -> [u8; 4] {
    field(&epoch.to_le_bytes(), 0..4)
}

fn header_crc(bytes: &[u8; HEADER_BYTES], epoch: u64, offset: u64) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&epoch.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), &bytes[8..])
}

/// A fixed run of fixed bytes; the ranges are constants of this file and lie inside.
fn field<const N: usize, const M: usize>(bytes: &[u8; M], range: Range<usize>) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[range]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Header =
        Header { seq: 7, durable: 5, wall_ms: 1_700_000_000_123, payload_len: 11, payload_crc: 0xdead_beef, kind: 3 };

    #[test]
    fn a_header_is_one_only_at_its_place_and_in_its_epoch() {
        let bytes = SAMPLE.encode(99, 4096);
        assert_eq!(Header::decode(&bytes, 99, 4096), Some(SAMPLE));
        assert_eq!(Header::decode(&bytes, 99, 4104), None);
        assert_eq!(Header::decode(&bytes, 98, 4096), None);
        // Same low half, another epoch.
        assert_eq!(Header::decode(&bytes, 99 | 1 << 40, 4096), None);
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let bytes = SAMPLE.encode(99, 4096);
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&damaged, 99, 4096), None, "bit {bit}");
        }
    }

    /// The layout as FORMAT.md states it, written out by hand but for the checksum.
    #[test]
    fn the_bytes_stand_where_the_format_says() {
        let mut bytes = SAMPLE.encode(0x0102_0304_0506_0708, 4096);
        bytes[4..8].fill(0);
        let expected = b"QREC\0\0\0\0\
            \x07\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x7b\x68\xe5\xcf\x8b\x01\0\0\
            \x0b\0\0\0\xef\xbe\xad\xde\x08\x07\x06\x05\x03\0\0\0";
        assert_eq!(&bytes, expected);
        assert_eq!(record_bytes(0), 48);
        assert_eq!(record_bytes(11), 64);
    }
}
