//! `$bitsAllSet $bitsAllClear $bitsAnySet $bitsAnyClear`: bits of a whole number, in two's complement without an end, or
//! of binary data, whose first byte holds bits 0 to 7.

use crate::error::shown;
use crate::number::whole_i64;
use crate::path_walk::Candidate;
use crate::{Place, QueryError};
use quarrydb_jsonb::{JsonbRef, Value};

/// What has to be true of the named bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitsOp {
    /// All are 1.
    AllSet,
    /// All are 0.
    AllClear,
    /// At least one is 1.
    AnySet,
    /// At least one is 0.
    AnyClear,
}

/// A test of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    op: BitsOp,
    /// The positions, ordered, each once.
    positions: Vec<u32>,
}

impl Bits {
    /// Parses a mask (a whole number from 0), binary data, or an array of positions.
    pub(crate) fn parse(op: BitsOp, name: &str, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Self, QueryError> {
        let mut positions: Vec<u32> = match value.value() {
            Value::Binary { bytes, .. } => set_bits(bytes),
            Value::Array(array) => {
                let mut positions = Vec::with_capacity(array.len());
                for (i, element) in array.iter().enumerate() {
                    positions.push(position(element, &place.index(i))?);
                }
                positions
            }
            _ if value.kind().is_number() => set_bits(&mask(name, value, place)?.to_le_bytes()),
            _ => {
                let found = value.kind().alias();
                let message = format!("{name} takes an Array, a number, or a BinData but received: {found}");
                return Err(QueryError::bad_value(message).at(place));
            }
        };
        positions.sort_unstable();
        positions.dedup();
        Ok(Self { op, positions })
    }

    /// Whether a candidate passes: a number that is not whole or beyond int64 never does.
    #[must_use]
    pub fn test(&self, candidate: Candidate<'_>) -> bool {
        let Some(value) = candidate else { return false };
        if let Value::Binary { bytes, .. } = value.value() {
            return self.holds(|at| bytes.get(at as usize / 8).is_some_and(|b| b >> (at % 8) & 1 != 0));
        }
        // Beyond bit 63 a number goes on with its sign.
        whole_i64(value).is_some_and(|n| self.holds(|at| n >> at.min(63) & 1 != 0))
    }

    fn holds(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter().copied();
        match self.op {
            BitsOp::AllSet => positions.all(is_set),
            BitsOp::AllClear => !positions.any(is_set),
            BitsOp::AnySet => positions.any(is_set),
            BitsOp::AnyClear => !positions.all(is_set),
        }
    }
}

fn set_bits(bytes: &[u8]) -> Vec<u32> {
    (0u32..)
        .zip(bytes)
        .flat_map(|(i, b)| (0..8).filter(move |bit| b >> bit & 1 != 0).map(move |bit| i * 8 + bit))
        .collect()
}

fn mask(name: &str, value: JsonbRef<'_>, place: &Place<'_>) -> Result<i64, QueryError> {
    let wrong =
        |wanted: &str| QueryError::failed_to_parse(format!("Expected {wanted} in: {name}: {}", shown(value))).at(place);
    let mask = whole_i64(value).ok_or_else(|| wrong("an integer of at most 64 bits"))?;
    if mask < 0 { Err(wrong("a non-negative number")) } else { Ok(mask) }
}

fn position(value: JsonbRef<'_>, place: &Place<'_>) -> Result<u32, QueryError> {
    let wrong = |wanted: &str| {
        let message = format!("Failed to parse bit position. Expected {wanted} in: {}", shown(value));
        QueryError::bad_value(message).at(place)
    };
    if !value.kind().is_number() {
        return Err(wrong("a number"));
    }
    let position = whole_i64(value).ok_or_else(|| wrong("an integer"))?;
    if position < 0 {
        return Err(wrong("a non-negative number"));
    }
    // MongoDB takes positions that an int32 holds.
    i32::try_from(position).map(i32::cast_unsigned).map_err(|_| wrong("a position below 2^31"))
}
