//! Sums of the numbers at a path, by group: exact, so that neither the order nor the number of threads shows.
//!
//! Doubles are added as whole multiples of 2^-64 in 128 bits. Those beyond that, and what is no finite number, are handed to
//! the accumulator itself.

use quarrydb_index::column::{Lane, Window};
use quarrydb_query::pipeline::accumulate::{Accumulator, State, Widest};

use super::codes::each_key;
use super::extremes::Places;
use crate::columns::value::Tag;
use crate::exec::plain::Plain;

/// Doubles are multiples of 2 to this, negated.
const SCALE: i32 = 64;
/// Doubles below 2 to this are added as multiples: 2^21 rows of them stay within 127 bits.
const EXPONENT_MAX: i32 = 127 - SCALE - 22;
/// Bits of a double's whole mantissa, but one.
const MANTISSA_BITS: i32 = 52;

/// What one group's numbers come to.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    /// The sum of the whole numbers.
    whole: i128,
    /// The sum of the doubles, in multiples of 2^-64.
    scaled: i128,
    /// How many whole numbers there were, and doubles in `scaled`.
    wholes: u64,
    doubles: u64,
    /// Whether some were int64.
    long: bool,
    /// Doubles that are no multiple of 2^-64, or too large.
    rest: Vec<f64>,
    /// Further sums like `scaled`, with their numbers, that did not fit into it.
    more: Vec<(i128, u64)>,
}

impl Total {
    /// Adds a double, where it is a small multiple of 2^-64; else keeps it as it is.
    #[inline]
    fn add_f64(&mut self, n: f64) {
        match scaled(n) {
            Some(multiple) => {
                self.scaled += multiple;
                self.doubles += 1;
            }
            None => self.rest.push(n),
        }
    }

    /// Adds the numbers of later rows.
    pub(super) fn merge(&mut self, later: Self) {
        // Of 2^63 rows of an int64 each the sum would still fit.
        self.whole = self.whole.saturating_add(later.whole);
        self.wholes += later.wholes;
        self.long |= later.long;
        match self.scaled.checked_add(later.scaled) {
            Some(sum) => {
                self.scaled = sum;
                self.doubles += later.doubles;
            }
            None => self.more.push((later.scaled, later.doubles)),
        }
        self.rest.extend(later.rest);
        self.more.extend(later.more);
    }

    /// The accumulator's own state of them.
    pub(super) fn state(&self, accumulator: &Accumulator) -> State {
        let mut state = State::new(accumulator);
        state.add_integers(self.whole, if self.long { Widest::Int64 } else { Widest::Int32 }, self.wholes);
        state.add_scaled(self.scaled, self.doubles);
        self.more.iter().for_each(|(scaled, doubles)| state.add_scaled(*scaled, *doubles));
        self.rest.iter().for_each(|n| state.add_f64(*n));
        state
    }

    /// The bytes that it holds beside itself.
    pub(super) fn bytes(&self) -> usize {
        self.rest.capacity() * size_of::<f64>() + self.more.capacity() * size_of::<(i128, u64)>()
    }
}

/// A double in multiples of 2^-64; none where it is not one, or not small.
#[inline]
fn scaled(n: f64) -> Option<i128> {
    let bits = n.to_bits();
    let exponent = ((bits >> MANTISSA_BITS) & 0x7ff) as i32 - 1023;
    let shift = exponent - MANTISSA_BITS + SCALE;
    if !(0..=EXPONENT_MAX + SCALE - MANTISSA_BITS).contains(&shift) {
        return if n == 0.0 { Some(0) } else { small(n) };
    }
    let mantissa = i128::from(bits & ((1 << MANTISSA_BITS) - 1) | 1 << MANTISSA_BITS) << shift;
    Some(if bits >> 63 == 1 { -mantissa } else { mantissa })
}

/// The same of one whose last bits lie below 2^-64: they may all be zeros.
#[cold]
fn small(n: f64) -> Option<i128> {
    let scaled = n * 2_f64.powi(SCALE);
    (n.abs() < 1.0 && scaled.fract() == 0.0 && scaled * 2_f64.powi(-SCALE) == n).then_some(scaled as i128)
}

/// Adds the numbers at a path, row by row.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    lanes: Vec<(Lane<'a>, Tag, Window)>,
    totals: Vec<Total>,
}

impl<'a> Numbers<'a> {
    /// For a path; none where columns do not have its numbers.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn new(plain: &Plain<'a>) -> quarrydb_index::Result<Option<Self>> {
        let mut lanes = Vec::new();
        if let Plain::Column(data) = plain {
            for lane in data.column()?.lanes()? {
                match Tag::of(lane.tag()) {
                    Some(tag @ (Tag::Int32 | Tag::Int64 | Tag::Double)) if lane.has_windows() => {
                        lanes.push((lane, tag, Window::default()));
                    }
                    Some(tag) if !tag.is_number() => {}
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(Self { lanes, totals: Vec::new() }))
    }

    /// Takes the picked rows of a window, of the groups `groups`; there are `count` groups so far.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn window(
        &mut self,
        index: usize,
        picks: &[u16],
        groups: &[u32],
        count: usize,
    ) -> quarrydb_index::Result<()> {
        self.totals.resize_with(count, Total::default);
        let totals = &mut self.totals;
        for (lane, tag, window) in &mut self.lanes {
            let (tag, of) = (*tag, *lane);
            let mut places = Places::new(picks, groups);
            each_key(lane, index, picks, window, |row, key| {
                let Some(total) = places.group_of(row).and_then(|group| totals.get_mut(group as usize)) else { return };
                if tag == Tag::Double {
                    total.add_f64(of.float_of_key(key));
                } else {
                    total.whole += i128::from(of.int_of_key(key));
                    total.wholes += 1;
                    total.long |= tag == Tag::Int64;
                }
            })?;
        }
        Ok(())
    }

    /// What the numbers of each of `count` groups come to.
    pub(super) fn finish(mut self, count: usize) -> Vec<Total> {
        self.totals.resize_with(count, Total::default);
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_multiples_or_nothing() {
        let unit = 2_f64.powi(-64);
        for (n, expected) in [
            (0.0, Some(0)),
            (-0.0, Some(0)),
            (1.0, Some(1 << 64)),
            (-1.5, Some(-(3 << 63))),
            (unit, Some(1)),
            (-3.0 * unit, Some(-3)),
            (0.1, Some(0.1_f64.mul_add(2_f64.powi(64), 0.0) as i128)),
            (unit / 2.0, None),
            (1.0 + unit * 2.0, Some(1 << 64)),
            (2_f64.powi(-13), Some(1 << 51)),
            (2_f64.powi(-14) * 1.1, None),
            (2_f64.powi(41), Some(1 << 105)),
            (2_f64.powi(42), None),
            (f64::INFINITY, None),
            (f64::NAN, None),
            (f64::MIN_POSITIVE, None),
            (5e-324, None),
        ] {
            assert_eq!(scaled(n), expected, "{n}");
        }
    }
}
