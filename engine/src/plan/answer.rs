//! Sets of rows that know when they are none or all, and answers between yes and no.
//!
//! An answer has the rows that are *sure* and the rows that are *possible*; every sure row is possible. And, or and not
//! keep both right, so that whatever is unknown of one condition makes no row surer than it is.

use quarrydb_index::RowSet;

/// Rows of a run of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rows {
    /// No row.
    None,
    /// Every row.
    All,
    /// These rows.
    Some(RowSet),
}

impl Rows {
    /// A set of `rows` rows at most.
    pub(crate) fn of(set: RowSet, rows: u32) -> Self {
        match set.len() {
            0 => Self::None,
            len if len == u64::from(rows) => Self::All,
            _ => Self::Some(set),
        }
    }

    /// Rows in both.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, other) | (other, Self::All) => other,
            (Self::Some(mut a), Self::Some(b)) => {
                a.keep(&b);
                if a.is_empty() { Self::None } else { Self::Some(a) }
            }
        }
    }

    /// Rows in either.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::None, other) | (other, Self::None) => other,
            (Self::Some(mut a), Self::Some(b)) => {
                a.add(&b);
                Self::Some(a)
            }
        }
    }

    /// Rows of `rows` that are not in it.
    pub(crate) fn not(self, rows: u32) -> Self {
        match self {
            Self::None => Self::All,
            Self::All => Self::None,
            Self::Some(set) => Self::of(set.complement(rows), rows),
        }
    }

    /// Rows that are not in the other.
    pub(crate) fn without(self, other: &Self, rows: u32) -> Self {
        match (self, other) {
            (own, Self::None) => own,
            (_, Self::All) | (Self::None, _) => Self::None,
            (Self::All, Self::Some(_)) => other.clone().not(rows),
            (Self::Some(mut own), Self::Some(other)) => {
                own.take_out(other);
                if own.is_empty() { Self::None } else { Self::Some(own) }
            }
        }
    }

    /// Whether there are none.
    pub(crate) fn is_none(&self) -> bool {
        match self {
            Self::None => true,
            Self::All => false,
            Self::Some(set) => set.is_empty(),
        }
    }
}

/// Rows that match for sure, and rows that may.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// They match.
    pub sure: Rows,
    /// No other row matches; the sure ones are among them.
    pub possible: Rows,
}

impl Answer {
    /// Known of every row.
    pub(crate) fn exact(rows: Rows) -> Self {
        Self { sure: rows.clone(), possible: rows }
    }

    /// Nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { sure: Rows::None, possible: Rows::All }
    }

    /// Only these may.
    pub(crate) fn at_most(possible: Rows) -> Self {
        Self { sure: Rows::None, possible }
    }

    /// Nothing is known of these rows.
    pub(crate) fn unsure_of(self, unknown: &Rows, rows: u32) -> Self {
        Self { sure: self.sure.without(unknown, rows), possible: self.possible.or(unknown.clone()) }
    }

    /// Both hold.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { sure: self.sure.and(other.sure), possible: self.possible.and(other.possible) }
    }

    /// The same question answered in two ways: what one rules out, and what one is sure of.
    pub(crate) fn and_at_most(self, other: Self) -> Self {
        Self { sure: self.sure.or(other.sure), possible: self.possible.and(other.possible) }
    }

    /// One holds, or both.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { sure: self.sure.or(other.sure), possible: self.possible.or(other.possible) }
    }

    /// It does not hold.
    pub(crate) fn not(self, rows: u32) -> Self {
        Self { sure: self.possible.not(rows), possible: self.sure.not(rows) }
    }

    /// Whether no document needs to be looked at.
    pub(crate) fn is_exact(&self) -> bool {
        match (&self.sure, &self.possible) {
            (Rows::Some(a), Rows::Some(b)) => a.len() == b.len(),
            (a, b) => a.is_none() && b.is_none() || matches!((a, b), (Rows::All, Rows::All)),
        }
    }
}
