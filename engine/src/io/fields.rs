//! Little-endian fields one behind the other: reading untrusted bytes without a panic, and writing them.
//!
//! Takes bytes that passed their checksum and still may be hostile; every read is held against what is left, and the
//! error names file and offset. Knows no format.

use crate::{Error, Result};

/// Fields yet to be read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    file: &'a str,
    /// Where `rest` begins in the file.
    at: u64,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// `bytes` stand at `offset` of `file`.
    pub(crate) fn new(file: &'a str, offset: u64, bytes: &'a [u8]) -> Self {
        Self { file, at: offset, rest: bytes }
    }

    /// What is wrong at the place now reached.
    pub(crate) fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::corrupt(self.file, self.at, what)
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.corrupt(format_args!("{len} bytes are announced and {} are left", self.rest.len())));
        };
        self.rest = rest;
        self.at += len as u64;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Bytes behind their length in four bytes.
    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).unwrap_or(usize::MAX))
    }

    pub(crate) fn string(&mut self) -> Result<&'a str> {
        let wrong = self.corrupt("a name is not UTF-8");
        std::str::from_utf8(self.short_bytes()?).map_err(|_| wrong)
    }

    /// A count of things that take at least `each` bytes, held against what is left before anything is allocated.
    pub(crate) fn count(&mut self, each: usize) -> Result<usize> {
        let count = self.u32()? as usize;
        if count.checked_mul(each).is_none_or(|bytes| bytes > self.left()) {
            return Err(self.corrupt(format_args!("{count} entries are announced and {} bytes are left", self.left())));
        }
        Ok(count)
    }

    /// Bytes that must be zero in this version.
    pub(crate) fn zeros(&mut self, len: usize) -> Result<()> {
        let at = self.at;
        if self.bytes(len)?.iter().all(|b| *b == 0) {
            return Ok(());
        }
        Err(Error::corrupt(self.file, at, "bytes that must be zero are not"))
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.corrupt(format_args!("{} bytes are left behind the last field", self.rest.len())))
    }
}

/// Appending fields to bytes.
pub(crate) trait PutFields {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// Bytes behind their length in four bytes; they must be shorter than 4 GiB.
    fn put_short_bytes(&mut self, bytes: &[u8]);
    fn put_zeros(&mut self, len: usize);
}

impl PutFields for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_short_bytes(&mut self, bytes: &[u8]) {
        self.put_u32(
            u32::try_from(bytes.len()).expect("what is put behind a length of four bytes is shorter than 4 GiB"),
        );
        self.extend_from_slice(bytes);
    }

    fn put_zeros(&mut self, len: usize) {
        self.resize(self.len() + len, 0);
    }
}
