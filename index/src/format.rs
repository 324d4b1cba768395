//! The header common to all parts, and the bounded reads with which every part is opened.
//!
//! A part is 16 bytes of header and a payload; all integers are little-endian. Opening checks magic, kind, version and length,
//! never the checksum: a segment has checked its sections before they come here. `checksum_holds` is for those who have not.

use crate::error::{Error, Result, corrupt};

/// The version that is written, and the only one that is read.
pub const FORMAT_VERSION: u8 = 0;
/// Bytes of the header of a part.
pub const HEADER_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"QIDX";
const LENGTH_AT: usize = 8;
const CHECKSUM_AT: usize = 12;

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PartKind {
    /// One column (`column`).
    Column = 1,
    /// Rows of each of few values (`postings`).
    Postings = 2,
    /// Sorted keys with their rows (`sorted`).
    Sorted = 3,
}

/// Room for the header; the payload is appended to what this gives.
pub(crate) fn begin() -> Vec<u8> {
    vec![0; HEADER_BYTES]
}

/// Fills in the header of a part that `begin` began.
pub(crate) fn finish(kind: PartKind, mut part: Vec<u8>) -> Result<Vec<u8>> {
    let payload =
        part.len().checked_sub(HEADER_BYTES).ok_or(Error::Misuse { what: "a part begins with its header" })?;
    let payload = u32::try_from(payload).map_err(|_| Error::TooLarge { what: "4 GiB in one part" })?;
    part[..4].copy_from_slice(&MAGIC);
    part[4] = kind as u8;
    part[5] = FORMAT_VERSION;
    part[LENGTH_AT..CHECKSUM_AT].copy_from_slice(&payload.to_le_bytes());
    let sum = checksum(&part);
    part[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    Ok(part)
}

fn checksum(part: &[u8]) -> u32 {
    let sum = crc32c::crc32c(part.get(..CHECKSUM_AT).unwrap_or_default());
    crc32c::crc32c_append(sum, part.get(HEADER_BYTES..).unwrap_or_default())
}

/// The payload of a part of this kind.
pub(crate) fn open(kind: PartKind, part: &[u8]) -> Result<&[u8]> {
    if part.get(..4) != Some(&MAGIC) {
        return Err(corrupt("the magic of a part", 0));
    }
    if part.get(4) != Some(&(kind as u8)) {
        return Err(corrupt("another kind of part", 4));
    }
    match part.get(5) {
        Some(&FORMAT_VERSION) => {}
        Some(&version) => return Err(Error::Unsupported { what: "version of an index part", version }),
        None => return Err(corrupt("a version", 5)),
    }
    if part.get(6..8) != Some(&[0, 0]) {
        return Err(corrupt("zeros", 6));
    }
    let length = read_u32(part, LENGTH_AT)? as usize;
    if part.len().checked_sub(HEADER_BYTES) != Some(length) {
        return Err(corrupt("as many bytes as the header says", LENGTH_AT));
    }
    Ok(&part[HEADER_BYTES..])
}

/// Whether the checksum of a part is that of its bytes. Costs a pass over them.
#[must_use]
pub fn checksum_holds(part: &[u8]) -> bool {
    part.len() >= HEADER_BYTES && read_u32(part, CHECKSUM_AT) == Ok(checksum(part))
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Result<u32> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(four) => Ok(u32::from_le_bytes(*four)),
        None => Err(corrupt("four more bytes", at)),
    }
}

pub(crate) fn read_u64(bytes: &[u8], at: usize) -> Result<u64> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(eight) => Ok(u64::from_le_bytes(*eight)),
        None => Err(corrupt("eight more bytes", at)),
    }
}

/// `length` bytes from `at` on, without a copy.
pub(crate) fn slice(bytes: &[u8], at: usize, length: usize) -> Result<&[u8]> {
    at.checked_add(length).and_then(|end| bytes.get(at..end)).ok_or(corrupt("as many bytes as said", at))
}

/// The piece whose offset and length stand at `at` (two u32).
pub(crate) fn piece(bytes: &[u8], at: usize) -> Result<&[u8]> {
    let offset = read_u32(bytes, at)? as usize;
    let length = read_u32(bytes, at + 4)? as usize;
    slice(bytes, offset, length)
}

/// A length, an index or an offset as it is written.
pub(crate) fn to_u32(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::TooLarge { what: "a piece of 4 GiB" })
}

/// Appends a varint (LEB128).
pub(crate) fn put_varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a varint of at most five bytes off the front.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return u32::try_from(number).ok();
        }
    }
    None
}

/// Takes `length` bytes off the front.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(front)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    #[test]
    fn a_header_says_what_follows_and_every_flipped_bit_is_seen() {
        let mut part = begin();
        part.extend(b"payload");
        let part = finish(PartKind::Sorted, part).unwrap();
        assert_eq!(open(PartKind::Sorted, &part).unwrap(), b"payload");
        assert!(checksum_holds(&part));
        assert!(open(PartKind::Column, &part).is_err());
        assert!(open(PartKind::Sorted, &part[..part.len() - 1]).is_err());
        for bit in 0..part.len() * 8 {
            let mut twin = part.clone();
            twin[bit / 8] ^= 1 << (bit % 8);
            assert!(!checksum_holds(&twin), "bit {bit}");
        }
        let mut later = part.clone();
        later[5] = 1;
        let unsupported = Error::Unsupported { what: "version of an index part", version: 1 };
        assert_eq!(open(PartKind::Sorted, &later), Err(unsupported));
    }

    #[test]
    fn varints_come_back_and_are_bounded() {
        for number in [0, 1, 127, 128, 16383, 16384, u32::MAX] {
            let mut bytes = Vec::new();
            put_varint(number, &mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(take_varint(&mut rest), Some(number));
            assert!(rest.is_empty());
        }
        assert_eq!(take_varint(&mut &[0x80; 9][..]), None);
        assert_eq!(take_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0x7f][..]), None);
        assert_eq!(take_varint(&mut &[0x80][..]), None);
    }
}
