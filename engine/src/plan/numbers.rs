//! A comparison with a number, as a range of each type of number: exactly, whatever the types.
//!
//! The ends are found by search with the one comparison of numbers there is (`quarrydb_jsonb::compare_numbers`), never by
//! a cast. NaN is in no range but that of itself.

use std::cmp::Ordering;
use std::ops::Bound;

use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, Value, compare_numbers, sort_key};
use quarrydb_query::filter::CompareOp;

/// The values of each type that pass a comparison with a number.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// First and last whole number.
    pub ints: Option<(i64, i64)>,
    /// First and last double; both NaN for NaN itself.
    pub doubles: Option<(f64, f64)>,
    /// Ends of the `sort_key`s of decimals.
    pub decimals: Option<KeyRange>,
}

/// From one key to another.
type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn built(make: impl FnOnce(&mut Builder)) -> JsonbBuf {
    let mut builder = Builder::new();
    make(&mut builder);
    JsonbBuf::from_valid(builder.take())
}

fn key_of(value: JsonbRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    sort_key(value, &mut key);
    key
}

fn is_nan(value: JsonbRef<'_>) -> bool {
    match value.value() {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

const SIGN: u64 = 1 << 63;

/// Doubles without NaN as numbers of the same order: from minus infinity to infinity.
fn place_of(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN != 0 { !bits } else { bits | SIGN }
}

fn double_at(place: u64) -> f64 {
    f64::from_bits(if place & SIGN != 0 { place ^ SIGN } else { !place })
}

/// The first of `from..=to` of which `holds`, which holds of all after it; none where there is none.
fn first(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(to) {
        return None;
    }
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// The places from `from` to `to` that an operator takes, given where values reach and pass the operand.
fn taken(op: CompareOp, from: u64, to: u64, reaches: Option<u64>, passes: Option<u64>) -> Option<(u64, u64)> {
    let before = |place: Option<u64>| place.map_or(Some(to), |place| place.checked_sub(1));
    let (low, high) = match op {
        CompareOp::Eq => (reaches, before(passes)),
        CompareOp::Lt => (Some(from), before(reaches)),
        CompareOp::Lte => (Some(from), before(passes)),
        CompareOp::Gt => (passes, Some(to)),
        CompareOp::Gte => (reaches, Some(to)),
    };
    low.zip(high).filter(|(low, high)| low <= high && *low >= from && *high <= to)
}

impl Numbers {
    /// What a comparison with `operand`, a number, takes.
    pub(super) fn of(op: CompareOp, operand: JsonbRef<'_>) -> Self {
        let key = key_of(operand);
        if is_nan(operand) {
            let equal = op.takes_equal();
            let decimals = equal.then(|| (Bound::Included(key.clone()), Bound::Included(key)));
            return Self { ints: None, doubles: equal.then_some((f64::NAN, f64::NAN)), decimals };
        }
        let nan = || Bound::Excluded(key_of(built(|b| b.double(f64::NAN)).view()));
        let decimals = Some(match op {
            CompareOp::Eq => (Bound::Included(key.clone()), Bound::Included(key)),
            CompareOp::Lt => (nan(), Bound::Excluded(key)),
            CompareOp::Lte => (nan(), Bound::Included(key)),
            CompareOp::Gt => (Bound::Excluded(key), Bound::Unbounded),
            CompareOp::Gte => (Bound::Included(key), Bound::Unbounded),
        });
        Self { ints: ints(op, operand), doubles: doubles(op, operand), decimals }
    }
}

impl Numbers {
    /// What passes this comparison and another one; none where NaN is asked for.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let is_nan = |numbers: &Self| numbers.doubles.is_some_and(|(low, _)| low.is_nan());
        if is_nan(self) || is_nan(other) {
            return None;
        }
        let ints = self.ints.zip(other.ints).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
        let doubles = self.doubles.zip(other.doubles).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
        let decimals = self
            .decimals
            .as_ref()
            .zip(other.decimals.as_ref())
            .map(|(a, b)| (tighter(&a.0, &b.0, Ordering::Greater), tighter(&a.1, &b.1, Ordering::Less)));
        Some(Self {
            ints: ints.filter(|(low, high)| low <= high),
            doubles: doubles.filter(|(low, high)| low <= high),
            decimals,
        })
    }
}

/// The bound that leaves less: the one whose key is `more` than the other's; of equal ones the one that excludes it.
fn tighter(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>, more: Ordering) -> Bound<Vec<u8>> {
    let key = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Included(key) => Some((key.clone(), false)),
        Bound::Excluded(key) => Some((key.clone(), true)),
        Bound::Unbounded => None,
    };
    match (key(a), key(b)) {
        (None, _) => b.clone(),
        (_, None) => a.clone(),
        (Some((key_a, excludes)), Some((key_b, _))) => match key_a.cmp(&key_b) {
            Ordering::Equal => {
                if excludes {
                    a.clone()
                } else {
                    b.clone()
                }
            }
            order if order == more => a.clone(),
            _ => b.clone(),
        },
    }
}

fn ints(op: CompareOp, operand: JsonbRef<'_>) -> Option<(i64, i64)> {
    let of = |place: u64| (place ^ SIGN).cast_signed();
    let at = |number: i64| number.cast_unsigned() ^ SIGN;
    let (reaches, passes) =
        match operand.as_i64().filter(|_| matches!(operand.value(), Value::Int32(_) | Value::Int64(_))) {
            Some(number) => (Some(at(number)), at(number).checked_add(1)),
            None => {
                let order = |place| compare_numbers(built(|b| b.int64(of(place))).view(), operand);
                let reaches = first(0, u64::MAX, |place| order(place) != Ordering::Less);
                (reaches, first(0, u64::MAX, |place| order(place) == Ordering::Greater))
            }
        };
    taken(op, 0, u64::MAX, reaches, passes).map(|(low, high)| (of(low), of(high)))
}

fn doubles(op: CompareOp, operand: JsonbRef<'_>) -> Option<(f64, f64)> {
    let (from, to) = (place_of(f64::NEG_INFINITY), place_of(f64::INFINITY));
    let order = |place| compare_numbers(built(|b| b.double(double_at(place))).view(), operand);
    let near = match operand.value() {
        Value::Double(number) => Some(number),
        Value::Int32(number) => Some(f64::from(number)),
        _ => None,
    };
    let (reaches, passes) = match near {
        // The two zeros are one number.
        Some(0.0) => (Some(place_of(-0.0)), Some(place_of(0.0) + 1)),
        Some(number) => (Some(place_of(number)), Some(place_of(number) + 1).filter(|&place| place <= to)),
        None => (
            first(from, to, |place| order(place) != Ordering::Less),
            first(from, to, |place| order(place) == Ordering::Greater),
        ),
    };
    taken(op, from, to, reaches, passes).map(|(low, high)| (double_at(low), double_at(high)))
}
