//! One value of a lane, owned: what the least, the greatest, the first and the last are kept as.

use std::cmp::Ordering;

use quarrydb_index::column::Value;
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef};

use crate::columns::value::{Tag, scalar_of};

/// A value, or the lack of one.
#[derive(Clone, Debug, Default)]
pub(super) enum Scalar {
    /// There is none.
    #[default]
    Missing,
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// Milliseconds.
    Date(i64),
    /// A double.
    Double(f64),
    /// Any other, as a document has it.
    Other(Box<JsonbBuf>),
}

impl Scalar {
    /// The value of a lane; [`Scalar::Missing`] where the lane does not keep it.
    pub(super) fn of(tag: Tag, value: Value<'_>, builder: &mut Builder) -> Self {
        match (tag, value) {
            (Tag::Int32, Value::Int(number)) => i32::try_from(number).map_or(Self::Missing, Self::Int32),
            (Tag::Int64, Value::Int(number)) => Self::Int64(number),
            (Tag::Date, Value::Int(millis)) => Self::Date(millis),
            (Tag::Double, Value::Float(number)) => Self::Double(number),
            _ => {
                builder.rewind(0);
                if scalar_of(tag, value, builder) {
                    Self::Other(Box::new(JsonbBuf::from_valid(builder.bytes().to_vec())))
                } else {
                    Self::Missing
                }
            }
        }
    }

    /// Null.
    pub(super) fn null() -> Self {
        Self::Other(Box::new(quarrydb_jsonb::NULL.to_buf()))
    }

    /// Whether there is none.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Appends it; false, with nothing appended, where there is none.
    pub(super) fn write(&self, out: &mut Builder) -> bool {
        match self {
            Self::Missing => return false,
            Self::Int32(number) => out.int32(*number),
            Self::Int64(number) => out.int64(*number),
            Self::Date(millis) => out.date(*millis),
            Self::Double(number) => out.double(*number),
            Self::Other(value) => out.copy(value.view()),
        }
        true
    }

    /// The order of two values; what is missing is below all.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int64(a), Self::Int64(b)) | (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::Int32(a), Self::Int32(b)) => a.cmp(b),
            (Self::Other(a), Self::Other(b)) => quarrydb_jsonb::compare(a.view(), b.view()),
            (Self::Missing, Self::Missing) => Ordering::Equal,
            (Self::Missing, _) => Ordering::Less,
            (_, Self::Missing) => Ordering::Greater,
            _ => {
                let (mut a, mut b) = (Builder::new(), Builder::new());
                self.write(&mut a);
                other.write(&mut b);
                quarrydb_jsonb::compare(JsonbRef::from_valid(a.bytes()), JsonbRef::from_valid(b.bytes()))
            }
        }
    }

    /// The bytes that it holds beside itself.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Other(value) => value.as_bytes().len() + size_of::<JsonbBuf>(),
            _ => 0,
        }
    }
}
