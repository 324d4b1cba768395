//! Row numbers of one segment. It knows nothing of segments: a row number means nothing without the one it came from.

use std::fmt;

/// Rows of one segment at most; row numbers are below it.
pub const ROWS_MAX: u32 = 1 << 20;

/// A position in one segment. It dies with it: a merge gives other numbers (`remap`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RowId(u32);

impl RowId {
    /// The row of this number.
    #[must_use]
    pub const fn at(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The row after it; `None` after the last that a segment may have.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        if self.0 + 1 < ROWS_MAX { Some(Self(self.0 + 1)) } else { None }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}
