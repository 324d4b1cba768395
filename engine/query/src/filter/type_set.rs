//! `$type`: a set of types, by MongoDB's names and numbers.

use crate::error::shown;
use crate::{Place, QueryError};
use quarrydb_jsonb::{JsonbRef, Kind};

use crate::number::whole_i64;

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TypeSet(u32);

/// Every kind with its name and number.
const TYPES: [(Kind, i64); 16] = [
    (Kind::Double, 1),
    (Kind::String, 2),
    (Kind::Object, 3),
    (Kind::Array, 4),
    (Kind::Binary, 5),
    (Kind::ObjectId, 7),
    (Kind::Bool, 8),
    (Kind::Date, 9),
    (Kind::Null, 10),
    (Kind::Regex, 11),
    (Kind::Int32, 16),
    (Kind::Timestamp, 17),
    (Kind::Int64, 18),
    (Kind::Decimal128, 19),
    (Kind::MinKey, -1),
    (Kind::MaxKey, 127),
];

/// Types of BSON that no value here has: asking for one is right and finds nothing.
const ABSENT_TYPES: [(&str, i64); 5] =
    [("undefined", 6), ("dbPointer", 12), ("javascript", 13), ("symbol", 14), ("javascriptWithScope", 15)];

const NUMBERS: [Kind; 4] = [Kind::Int32, Kind::Int64, Kind::Double, Kind::Decimal128];

impl TypeSet {
    /// The set of these kinds.
    #[must_use]
    pub fn of(kinds: &[Kind]) -> Self {
        Self(kinds.iter().fold(0, |set, &kind| set | 1 << kind as u32))
    }

    /// Both sets in one.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it holds a kind.
    #[inline]
    #[must_use]
    pub fn contains(self, kind: Kind) -> bool {
        self.0 >> kind as u32 & 1 != 0
    }

    /// Parses one name or number, or an array of them.
    pub(crate) fn parse(value: JsonbRef<'_>, place: &Place<'_>) -> Result<Self, QueryError> {
        let Some(array) = value.as_array() else { return Self::parse_one(value, place) };
        if array.is_empty() {
            return Err(QueryError::failed_to_parse("$type must match at least one type").at(place));
        }
        let mut set = Self::default();
        for (i, element) in array.iter().enumerate() {
            set = set.union(Self::parse_one(element, &place.index(i))?);
        }
        Ok(set)
    }

    fn parse_one(value: JsonbRef<'_>, place: &Place<'_>) -> Result<Self, QueryError> {
        if let Some(name) = value.as_str() {
            return Self::named(name)
                .ok_or_else(|| QueryError::bad_value(format!("Unknown type name alias: {name}")).at(place));
        }
        if !value.kind().is_number() {
            let found = value.kind().alias();
            return Err(QueryError::type_mismatch(format!(
                "type must be represented as a number or a string, not {found}"
            ))
            .at(place));
        }
        let code = whole_i64(value);
        if let Some((kind, _)) = TYPES.iter().find(|(_, n)| Some(*n) == code) {
            return Ok(Self::of(&[*kind]));
        }
        if ABSENT_TYPES.iter().any(|(_, n)| Some(*n) == code) {
            return Ok(Self::default());
        }
        Err(QueryError::bad_value(format!("Invalid numerical type code: {}", shown(value))).at(place))
    }

    /// The types of a name; `number` is all four.
    pub(crate) fn named(name: &str) -> Option<Self> {
        if name == "number" {
            return Some(Self::of(&NUMBERS));
        }
        if let Some((kind, _)) = TYPES.iter().find(|(kind, _)| kind.alias() == name) {
            return Some(Self::of(&[*kind]));
        }
        ABSENT_TYPES.iter().any(|(absent, _)| *absent == name).then(Self::default)
    }
}
