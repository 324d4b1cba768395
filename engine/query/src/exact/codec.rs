//! Numbers and byte strings to bytes and back, for states that wait in temporary files.
//!
//! The files are this process's own and short-lived, so the form may change at any time. What is read is bounded all the
//! same: damaged bytes give an error.

use crate::QueryError;

pub(crate) fn put_u64(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&n.to_le_bytes());
}

pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_u64(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// What is still to be read.
#[derive(Debug)]
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn u64(&mut self) -> Result<u64, QueryError> {
        let (first, rest) = self.0.split_first_chunk::<8>().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*first))
    }

    pub(crate) fn f64(&mut self) -> Result<f64, QueryError> {
        self.u64().map(f64::from_bits)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'b [u8], QueryError> {
        let len = usize::try_from(self.u64()?).map_err(|_| damaged())?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(bytes)
    }
}

pub(crate) fn damaged() -> QueryError {
    QueryError::new("InternalError", 1, "what a stage wrote to a temporary file was not read back whole")
}
