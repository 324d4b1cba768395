//! `$mod`: the whole part of a number, divided, leaves a remainder.

use crate::number::truncated_i64;
use crate::path_walk::Candidate;
use crate::{Place, QueryError};
use quarrydb_jsonb::JsonbRef;

/// `[divisor, remainder]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulo {
    divisor: i64,
    remainder: i64,
}

impl Modulo {
    /// Parses `[divisor, remainder]`; both lose their fractions.
    pub(crate) fn parse(value: JsonbRef<'_>, place: &Place<'_>) -> Result<Self, QueryError> {
        let bad = |message: &str| QueryError::bad_value(message).at(place);
        let array = value.as_array().ok_or_else(|| bad("malformed mod, needs to be an array"))?;
        let mut elements = array.iter();
        let (Some(divisor), Some(remainder)) = (elements.next(), elements.next()) else {
            return Err(bad("malformed mod, not enough elements"));
        };
        if elements.next().is_some() {
            return Err(bad("malformed mod, too many elements"));
        }
        if !divisor.kind().is_number() {
            return Err(bad("malformed mod, divisor not a number"));
        }
        if !remainder.kind().is_number() {
            return Err(bad("malformed mod, remainder not a number"));
        }
        let divisor =
            truncated_i64(divisor).ok_or_else(|| bad("malformed mod, divisor is not finite or beyond 64 bits"))?;
        let remainder =
            truncated_i64(remainder).ok_or_else(|| bad("malformed mod, remainder is not finite or beyond 64 bits"))?;
        if divisor == 0 {
            return Err(bad("divisor cannot be 0"));
        }
        Ok(Self { divisor, remainder })
    }

    /// Whether a candidate passes.
    #[must_use]
    pub fn test(&self, candidate: Candidate<'_>) -> bool {
        candidate.and_then(truncated_i64).is_some_and(|n| n.wrapping_rem(self.divisor) == self.remainder)
    }
}
