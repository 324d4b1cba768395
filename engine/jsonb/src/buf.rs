//! A value that owns its bytes.
//!
//! Takes bytes known to be valid, gives [`JsonbRef`]s of them. Equality and hash are those of the bytes; by value compare
//! with [`crate::equal`]. Must never read the bytes itself: that is `view.rs`.

use crate::view::JsonbRef;

/// One owned value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonbBuf(Vec<u8>);

impl JsonbBuf {
    /// Takes bytes known to be valid: see [`JsonbRef::from_valid`].
    #[inline]
    #[must_use]
    pub const fn from_valid(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The value, borrowed.
    #[inline]
    #[must_use]
    pub fn view(&self) -> JsonbRef<'_> {
        JsonbRef::from_valid(&self.0)
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Gives its bytes away.
    #[inline]
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl JsonbRef<'_> {
    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_buf(self) -> JsonbBuf {
        JsonbBuf(self.as_bytes().to_vec())
    }
}

impl From<JsonbRef<'_>> for JsonbBuf {
    fn from(v: JsonbRef<'_>) -> Self {
        v.to_buf()
    }
}

impl core::fmt::Debug for JsonbBuf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(&self.view(), f)
    }
}
