//! The first byte of a value: its kind and what little fits beside it.
//!
//! `tag = kind | aux << 5`. Takes and gives bytes and numbers; knows nothing of objects' insides. The layout is stated
//! in FORMAT.md; golden files tie both. Next: `view.rs` reads by it, `builder.rs` writes by it.

/// The kind of a value: BSON's types, with numbers of our own. 0 is never a kind, so zero-filled bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `null`.
    Null = 1,
    /// `aux` is the value.
    Bool = 2,
    /// `aux` is the number of little-endian bytes that follow (0 to 4), the fewest that hold the value.
    Int32 = 3,
    /// `aux` selects the number of bytes from [`INT64_WIDTHS`].
    Int64 = 4,
    /// Eight bytes, IEEE 754 binary64.
    Double = 5,
    /// Sixteen bytes, IEEE 754-2008 decimal128 in the binary integer encoding, as in BSON.
    Decimal128 = 6,
    /// Length and UTF-8; `aux` bit 0: needs no escaping in JSON; bits 1-2: width of the length.
    String = 7,
    /// Length, subtype byte, bytes.
    Binary = 8,
    /// Twelve bytes.
    ObjectId = 9,
    /// Eight bytes: signed milliseconds since 1970-01-01 UTC.
    Date = 10,
    /// Length, pattern; one byte length, options.
    Regex = 11,
    /// Eight bytes: seconds in the upper, increment in the lower half.
    Timestamp = 12,
    /// Below every other value.
    MinKey = 13,
    /// Above every other value.
    MaxKey = 14,
    /// Size, count, values.
    Array = 15,
    /// Size, count, entries in field order, directory by (length, name).
    Object = 16,
}

/// Kinds of BSON that have a number here and no reader yet: undefined, symbol, JavaScript, DBPointer, JavaScript with scope.
pub(crate) const RESERVED_KINDS: core::ops::RangeInclusive<u8> = 17..=21;

/// The bytes that an int64 takes, by `aux`.
pub(crate) const INT64_WIDTHS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 8];

const KIND_MASK: u8 = 0x1f;
const AUX_SHIFT: u32 = 5;
const _: () = assert!((Kind::Object as u8) < *RESERVED_KINDS.start() && *RESERVED_KINDS.end() <= KIND_MASK);

impl Kind {
    /// The kind of a tag byte; none for 0, reserved and unknown kinds.
    #[inline]
    #[must_use]
    pub const fn of(tag: u8) -> Option<Self> {
        Some(match tag & KIND_MASK {
            1 => Self::Null,
            2 => Self::Bool,
            3 => Self::Int32,
            4 => Self::Int64,
            5 => Self::Double,
            6 => Self::Decimal128,
            7 => Self::String,
            8 => Self::Binary,
            9 => Self::ObjectId,
            10 => Self::Date,
            11 => Self::Regex,
            12 => Self::Timestamp,
            13 => Self::MinKey,
            14 => Self::MaxKey,
            15 => Self::Array,
            16 => Self::Object,
            _ => return None,
        })
    }

    /// The tag byte of this kind with `aux` (0 to 7) beside it.
    #[inline]
    #[must_use]
    pub const fn tag(self, aux: u8) -> u8 {
        debug_assert!(aux < 8);
        self as u8 | aux << AUX_SHIFT
    }

    /// The name that MongoDB's `$type` gives this kind.
    #[must_use]
    pub const fn alias(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int32 => "int",
            Self::Int64 => "long",
            Self::Double => "double",
            Self::Decimal128 => "decimal",
            Self::String => "string",
            Self::Binary => "binData",
            Self::ObjectId => "objectId",
            Self::Date => "date",
            Self::Regex => "regex",
            Self::Timestamp => "timestamp",
            Self::MinKey => "minKey",
            Self::MaxKey => "maxKey",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Whether it is one of the four number types.
    #[inline]
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64 | Self::Double | Self::Decimal128)
    }
}

/// The upper three bits of a tag.
#[inline]
#[must_use]
pub(crate) const fn aux(tag: u8) -> u8 {
    tag >> AUX_SHIFT
}

/// How wide the lengths and offsets of one value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Width {
    /// One byte.
    W1 = 0,
    /// Two bytes.
    W2 = 1,
    /// Four bytes.
    W4 = 2,
}

impl Width {
    /// From the two bits of a tag; the fourth pattern is no width.
    #[inline]
    #[must_use]
    pub const fn of_code(code: u8) -> Option<Self> {
        Some(match code & 3 {
            0 => Self::W1,
            1 => Self::W2,
            2 => Self::W4,
            _ => return None,
        })
    }

    /// The narrowest that holds `n`.
    #[inline]
    #[must_use]
    pub const fn for_len(n: usize) -> Self {
        if n <= 0xff {
            Self::W1
        } else if n <= 0xffff {
            Self::W2
        } else {
            Self::W4
        }
    }

    /// The number of bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        1 << self as u8
    }

    /// The largest number it holds.
    #[inline]
    #[must_use]
    pub const fn max(self) -> usize {
        match self {
            Self::W1 => 0xff,
            Self::W2 => 0xffff,
            Self::W4 => 0xffff_ffff,
        }
    }

    /// Reads one number at `at`; 0 beyond the end.
    #[inline]
    #[must_use]
    pub fn read(self, bytes: &[u8], at: usize) -> usize {
        match self {
            Self::W1 => bytes.get(at).map_or(0, |&b| b as usize),
            Self::W2 => bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_le_bytes(*b) as usize),
            Self::W4 => bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b) as usize),
        }
    }

    /// Appends one number. What does not fit is cut: callers choose the width by [`Width::for_len`].
    #[inline]
    pub fn push(self, out: &mut Vec<u8>, n: usize) {
        debug_assert!(n <= self.max());
        let b = (n as u32).to_le_bytes();
        out.extend_from_slice(&b[..self.bytes()]);
    }
}

/// Of a field name's header byte: bit 0 says that the name needs no escaping, the rest is its length up to here; the
/// all-ones length says that four bytes of length follow.
pub(crate) const NAME_LEN_LONG: usize = 127;
