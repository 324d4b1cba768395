//! Row sets as bytes: the portable roaring format, as other libraries read it. It has no header of its own.

use roaring::RoaringBitmap;

use super::RowSet;
use crate::error::{Result, corrupt};
use crate::row::ROWS_MAX;

impl RowSet {
    /// Appends the set in the portable roaring format, runs where they are smaller.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bitmap = self.bitmap.clone();
        bitmap.optimize();
        bitmap.serialize_into(out).expect("a vector takes all bytes");
    }

    /// Reads a whole slice that `write` wrote.
    ///
    /// # Errors
    /// `Corrupt` if it is not a portable roaring bitmap of rows below `ROWS_MAX`, or bytes are left over.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        let bitmap = RoaringBitmap::deserialize_from(&mut rest).map_err(|_| corrupt("a portable roaring bitmap", 0))?;
        if !rest.is_empty() {
            return Err(corrupt("the end of a row set", bytes.len() - rest.len()));
        }
        if bitmap.max().is_some_and(|last| last >= ROWS_MAX) {
            return Err(corrupt("rows that a segment can have", 0));
        }
        Ok(Self { bitmap })
    }
}
