//! Numbers: decimal128 as bits, and the exact comparison of all four types.

/// An IEEE 754-2008 decimal128 in the binary integer encoding, as BSON has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal128(u128);

impl Decimal128 {
    /// From its bits.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        self.0
    }
}
