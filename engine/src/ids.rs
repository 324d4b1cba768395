//! The numbers that name things: each its own type, so that two ideas never share a word.
//!
//! Takes and gives plain integers; knows nothing of files or documents. `Seq` orders commits, `RowId` is a
//! position inside one segment or tail and dies with it, the others count up and are never reused.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $short:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name($inner);

        impl $name {
            /// Above all that are given.
            pub const MAX: Self = Self(<$inner>::MAX);

            /// The number as it stands in files.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }

            /// From the number as it stands in files.
            #[must_use]
            pub const fn from_raw(raw: $inner) -> Self {
                Self(raw)
            }

            /// The one after this. Saturates: 2^32 collections or 2^64 commits are out of reach.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($short, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

number!(
    /// The place of a commit in the one committing order. 0 is before the first commit.
    Seq(u64), "seq"
);
number!(
    /// A collection, for as long as the database lives; a dropped one's number is not given again.
    CollectionId(u32), "coll"
);
number!(
    /// An immutable segment file.
    SegmentId(u64), "seg"
);
number!(
    /// A declared index of one collection; a dropped one's number is not given again there.
    IndexId(u32), "index"
);
number!(
    /// A log file, counted up from 1 in the order of their commits.
    LogFileId(u64), "log"
);
number!(
    /// A row's position inside one segment or tail. Means nothing outside it and dies at compaction.
    RowId(u32), "row"
);
