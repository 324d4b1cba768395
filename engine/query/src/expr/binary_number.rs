//! Numbers as binary data and back, as `$convert` has them: two's complement and IEEE 754, little or big end first.

use crate::QueryError;
use std::borrow::Cow;

/// Which byte comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// The least significant one.
    #[default]
    Little,
    /// The most significant one.
    Big,
}

impl ByteOrder {
    /// By its name.
    ///
    /// # Errors
    /// 9130002 for another name.
    pub(super) fn parse(name: &str) -> Result<Self, QueryError> {
        match name {
            "little" => Ok(Self::Little),
            "big" => Ok(Self::Big),
            _ => {
                let message = format!("$convert's 'byteOrder' must be \"little\" or \"big\", not '{name}'");
                Err(QueryError::location(9_130_002, message))
            }
        }
    }

    /// Bytes that stand with the least significant first, in this order.
    pub(super) fn arrange(self, mut little: Vec<u8>) -> Vec<u8> {
        if self == Self::Big {
            little.reverse();
        }
        little
    }
}

/// Binary data as BSON has it: the old subtype's own length stands before its bytes.
pub(super) fn in_bson(subtype: u8, bytes: &[u8]) -> Cow<'_, [u8]> {
    const OLD: u8 = 2;
    if subtype != OLD {
        return Cow::Borrowed(bytes);
    }
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    Cow::Owned([&len.to_le_bytes(), bytes].concat())
}

/// The integer of 1, 2, 4 or 8 bytes, of at most `widest`; none for other lengths.
pub(super) fn integer(bytes: &[u8], order: ByteOrder, widest: usize) -> Option<i64> {
    if bytes.len() > widest {
        return None;
    }
    let little = order.arrange(bytes.to_vec());
    match *little.as_slice() {
        [a] => Some(i8::from_le_bytes([a]).into()),
        [a, b] => Some(i16::from_le_bytes([a, b]).into()),
        [a, b, c, d] => Some(i32::from_le_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Some(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

/// The double of 4 or 8 bytes; none for other lengths.
pub(super) fn double(bytes: &[u8], order: ByteOrder) -> Option<f64> {
    if !matches!(bytes.len(), 4 | 8) {
        return None;
    }
    let little = order.arrange(bytes.to_vec());
    match *little.as_slice() {
        [a, b, c, d] => Some(f32::from_le_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Some(f64::from_le_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}
