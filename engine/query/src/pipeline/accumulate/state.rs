//! What an accumulator has made of the values so far.
//!
//! Takes values of rows in their order, from documents or from columns, and the state of later rows; gives the result.
//! Next: `values.rs`, `ranked.rs`, `objects.rs`, `deviation.rs`.

use super::deviation::Deviation;
use super::objects::Objects;
use super::parse::check_wanted;
use super::ranked::Ranked;
use super::values::{LastValues, Set, Values, write_array};
use super::{Accumulator, AccumulatorKind, Wanted};
use crate::QueryError;
use crate::exact::{Sum, Widest};
use crate::expr::{Budget, Datum, Scope};
use crate::number::Number;
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, NULL, ObjectRef, sort_key, sort_key_descending};
use std::cmp::Ordering;

/// Bytes that one state may take: MongoDB's bound for the accumulators that keep values.
pub const STATE_BYTES_MAX: usize = 100 << 20;

/// The state of one accumulator in one group.
///
/// It must go with the [`Accumulator`] that it was made for.
#[derive(Clone, Debug)]
pub struct State(pub(super) Form);

/// A million groups with a sum each take so many megabytes.
const _: () = assert!(size_of::<State>() <= 40);

#[derive(Clone, Debug)]
pub(super) enum Form {
    Sum(Sum),
    Average(Sum, u64),
    Count(u64),
    /// The least or the greatest, the first or the last.
    One(Option<JsonbBuf>),
    Values(Values),
    Set(Box<Set>),
    Deviation(Deviation),
    Objects(Box<Objects>),
    Ranked(Box<Ranked>),
    FirstN(Box<(u64, Values)>),
    LastN(Box<LastValues>),
    Numbers(Vec<f64>),
}

impl State {
    /// Of no rows, where the number of values wanted is the same for every group.
    #[must_use]
    pub fn new(accumulator: &Accumulator) -> Self {
        let wanted = match accumulator.wanted {
            Wanted::Count(wanted) => wanted,
            Wanted::OfGroup(_) => 1,
        };
        Self(form(accumulator.kind, wanted))
    }

    /// Of no rows, for the group of an `_id`.
    ///
    /// # Errors
    /// 5787902, 5787903 and 5787908 where the number of values wanted is none.
    pub fn of_group(accumulator: &Accumulator, id: JsonbRef<'_>, budget: Budget<'_>) -> Result<Self, QueryError> {
        let Wanted::OfGroup(expression) = &accumulator.wanted else { return Ok(Self::new(accumulator)) };
        // As in MongoDB an `_id` that is no object has no fields.
        let nothing = JsonbBuf::from_valid(empty_object());
        let root = if id.as_object().is_some() { id } else { nothing.view() };
        let n = expression.value(root, budget)?;
        Ok(Self(form(accumulator.kind, check_wanted(n.as_ref().map_or(NULL, JsonbBuf::view))?)))
    }

    /// Adds a row: the document of the scope.
    ///
    /// # Errors
    /// Those of the argument's expression and of the sort; 40400 where `$mergeObjects` meets another value; 146 where the
    /// state takes more than [`STATE_BYTES_MAX`].
    pub fn add<'a>(&mut self, accumulator: &'a Accumulator, scope: &mut Scope<'a>) -> Result<(), QueryError> {
        if !self.needs_input(accumulator.kind) {
            return Ok(());
        }
        let mut key = Vec::new();
        if let Some(sort) = &accumulator.sort {
            sort.key(scope.root().encoded()?.view(), &mut key)?;
            if !self.takes(accumulator, &key) {
                self.pass();
                return Ok(());
            }
        }
        let value = match &accumulator.argument {
            Some(argument) => argument.evaluate(scope)?,
            None => Datum::Missing,
        };
        self.add_keyed(accumulator, &value, &key)
    }

    /// Adds a row whose argument has this value; none where it is missing. Not for accumulators with a sort.
    ///
    /// # Errors
    /// As [`State::add`].
    pub fn add_value(&mut self, accumulator: &Accumulator, value: Option<JsonbRef<'_>>) -> Result<(), QueryError> {
        self.add_keyed(accumulator, &Datum::from(value), &[])
    }

    /// The same for an accumulator that may have a sort: `key` is the row's in it.
    ///
    /// # Errors
    /// As [`State::add`].
    pub fn add_keyed(&mut self, accumulator: &Accumulator, value: &Datum<'_>, key: &[u8]) -> Result<(), QueryError> {
        let kind = accumulator.kind;
        match &mut self.0 {
            Form::Sum(sum) => {
                if let Some(n) = value.as_number() {
                    sum.add(n);
                }
                return Ok(());
            }
            Form::Average(sum, count) => {
                if let Some(n) = value.as_number() {
                    sum.add(n);
                    *count += 1;
                }
                return Ok(());
            }
            Form::Count(count) => {
                *count += 1;
                return Ok(());
            }
            Form::One(kept) => return keep_one(kept, kind, value),
            Form::Values(values) => {
                if !matches!(value, Datum::Missing) {
                    values.push(value.encoded()?.view());
                }
            }
            Form::Set(set) => {
                if !matches!(value, Datum::Missing) {
                    set.add(value.encoded()?.view());
                }
            }
            Form::Deviation(deviation) => {
                if let Some(n) = value.as_number() {
                    deviation.add(n.to_f64());
                }
                return Ok(());
            }
            Form::Objects(objects) => add_object(objects, value)?,
            Form::Ranked(ranked) => add_ranked(ranked, kind, value, key)?,
            Form::FirstN(first) => {
                if first.1.count < first.0 {
                    first.1.push(value.encoded()?.view());
                }
            }
            Form::LastN(last) => last.push(value.to_buf()?),
            Form::Numbers(numbers) => {
                // NaN has no rank.
                if let Some(n) = value.as_number().map(Number::to_f64).filter(|n| !n.is_nan()) {
                    numbers.push(n);
                }
            }
        }
        self.check_size(kind)
    }

    /// Adds many integers by their sum and their number, for `$sum` and `$avg`; `widest` is the widest type among them.
    pub fn add_integers(&mut self, total: i128, widest: Widest, numbers: u64) {
        match &mut self.0 {
            Form::Sum(sum) if numbers > 0 => sum.add_integers(total, widest),
            Form::Average(sum, count) if numbers > 0 => {
                sum.add_integers(total, widest);
                *count += numbers;
            }
            _ => {}
        }
    }

    /// Adds a double, for `$sum`, `$avg` and the deviations.
    #[inline]
    pub fn add_f64(&mut self, n: f64) {
        match &mut self.0 {
            Form::Sum(sum) => sum.add_f64(n),
            Form::Average(sum, count) => {
                sum.add_f64(n);
                *count += 1;
            }
            Form::Deviation(deviation) => deviation.add(n),
            _ => {}
        }
    }

    /// Adds many doubles, for `$sum` and `$avg`, by their number and their sum in whole multiples of 2^-64.
    pub fn add_scaled(&mut self, multiples: i128, numbers: u64) {
        match &mut self.0 {
            Form::Sum(sum) if numbers > 0 => sum.add_scaled(multiples),
            Form::Average(sum, count) if numbers > 0 => {
                sum.add_scaled(multiples);
                *count += numbers;
            }
            _ => {}
        }
    }

    /// Counts rows, for `$count`.
    pub fn add_count(&mut self, rows: u64) {
        if let Form::Count(count) = &mut self.0 {
            *count += rows;
        }
    }

    /// Whether a further row could change the result: `$first` has enough after one.
    #[must_use]
    pub fn needs_input(&self, kind: AccumulatorKind) -> bool {
        match &self.0 {
            Form::One(kept) => kind != AccumulatorKind::First || kept.is_none(),
            Form::FirstN(first) => first.1.count < first.0,
            _ => true,
        }
    }

    /// Whether a row that comes next with this key in the accumulator's sort would be kept.
    #[must_use]
    pub fn takes(&self, accumulator: &Accumulator, key: &[u8]) -> bool {
        match &self.0 {
            Form::Ranked(ranked) if is_from_below(accumulator.kind) => {
                let turned: Vec<u8> = key.iter().map(|byte| !byte).collect();
                ranked.takes(&turned)
            }
            Form::Ranked(ranked) => ranked.takes(key),
            _ => true,
        }
    }

    fn pass(&mut self) {
        if let Form::Ranked(ranked) = &mut self.0 {
            ranked.pass();
        }
    }

    /// Adds the state of rows that all come later, of the same accumulator and group.
    ///
    /// # Errors
    /// 146 where the state takes more than [`STATE_BYTES_MAX`].
    pub fn merge(&mut self, accumulator: &Accumulator, later: Self) -> Result<(), QueryError> {
        match (&mut self.0, later.0) {
            (Form::Sum(a), Form::Sum(b)) => a.merge(&b),
            (Form::Average(a, count), Form::Average(b, more)) => {
                a.merge(&b);
                *count += more;
            }
            (Form::Count(count), Form::Count(more)) => *count += more,
            (Form::One(kept), Form::One(Some(value))) => {
                keep_one(kept, accumulator.kind, &Datum::from(value.view()))?;
            }
            (Form::Values(a), Form::Values(b)) => a.append(&b),
            (Form::Set(a), Form::Set(b)) => b.values.iter().for_each(|v| a.add(v)),
            (Form::Deviation(a), Form::Deviation(b)) => a.merge(&b),
            (Form::Objects(a), Form::Objects(b)) => a.merge(&b),
            (Form::Ranked(a), Form::Ranked(b)) => a.merge(*b),
            (Form::FirstN(a), Form::FirstN(b)) => {
                let room = usize::try_from(a.0 - a.1.count).unwrap_or(usize::MAX);
                b.1.iter().take(room).for_each(|v| a.1.push(v));
            }
            (Form::LastN(a), Form::LastN(b)) => b.values.into_iter().for_each(|v| a.push(v)),
            (Form::Numbers(a), Form::Numbers(b)) => a.extend_from_slice(&b),
            // The other has nothing, or is of another accumulator, which a caller must not do.
            _ => {}
        }
        self.check_size(accumulator.kind)
    }

    /// Heap bytes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Form::Sum(sum) | Form::Average(sum, _) => sum.bytes(),
            Form::Count(_) | Form::Deviation(_) => 0,
            Form::One(kept) => kept.as_ref().map_or(0, |v| v.as_bytes().len()),
            Form::Values(values) => values.bytes(),
            Form::Set(set) => size_of::<Set>() + set.bytes(),
            Form::Objects(objects) => size_of::<Objects>() + objects.bytes(),
            Form::Ranked(ranked) => size_of::<Ranked>() + ranked.bytes(),
            Form::FirstN(first) => size_of::<Values>() + first.1.bytes(),
            Form::LastN(last) => size_of::<LastValues>() + last.bytes(),
            Form::Numbers(numbers) => numbers.len() * size_of::<f64>(),
        }
    }

    fn check_size(&self, kind: AccumulatorKind) -> Result<(), QueryError> {
        let bytes = self.bytes();
        if bytes <= STATE_BYTES_MAX {
            return Ok(());
        }
        let message = format!("{} used too much memory: {bytes} bytes, of {STATE_BYTES_MAX} at most", kind.name());
        Err(QueryError::new("ExceededMemoryLimit", 146, message))
    }

    /// Writes the result.
    ///
    /// # Errors
    /// Where it takes more than a value can.
    pub fn finish(&self, accumulator: &Accumulator, out: &mut Builder) -> Result<(), QueryError> {
        let kind = accumulator.kind;
        match &self.0 {
            Form::Sum(sum) => sum.finish().write(out),
            Form::Average(sum, count) => match sum.mean(*count) {
                Some(mean) => mean.write(out),
                None => out.null(),
            },
            Form::Count(count) => match i32::try_from(*count) {
                Ok(n) => out.int32(n),
                Err(_) => out.int64(i64::try_from(*count).unwrap_or(i64::MAX)),
            },
            Form::One(kept) => out.copy(kept.as_ref().map_or(NULL, JsonbBuf::view)),
            Form::Values(values) => return write_array(values.iter(), out),
            Form::Set(set) => return write_array(set.values.iter(), out),
            Form::Deviation(deviation) => match deviation.finish(kind == AccumulatorKind::DeviationSample) {
                Some(n) => out.double(n),
                None => out.null(),
            },
            Form::Objects(objects) => return objects.write(out),
            Form::Ranked(ranked) => {
                // `$maxN` gives the greatest first; `$bottom` keeps the order that was asked for.
                let entries = ranked.sorted(is_from_below(kind));
                if matches!(kind, AccumulatorKind::Top | AccumulatorKind::Bottom) {
                    out.copy(entries.first().map_or(NULL, |e| e.value.view()));
                } else {
                    return write_array(entries.into_iter().map(|e| e.value.view()), out);
                }
            }
            Form::FirstN(first) => return write_array(first.1.iter(), out),
            Form::LastN(last) => return write_array(last.values.iter().map(JsonbBuf::view), out),
            Form::Numbers(numbers) => return write_quantiles(numbers, accumulator, out),
        }
        Ok(())
    }

    /// The result as a value of its own.
    ///
    /// # Errors
    /// As [`State::finish`].
    pub fn value(&self, accumulator: &Accumulator) -> Result<JsonbBuf, QueryError> {
        crate::scratch::build(16, |out| self.finish(accumulator, out))
    }
}

/// The state of no rows.
pub(super) fn form(kind: AccumulatorKind, wanted: u64) -> Form {
    use AccumulatorKind as K;
    match kind {
        K::Sum => Form::Sum(Sum::default()),
        K::Average => Form::Average(Sum::default(), 0),
        K::Count => Form::Count(0),
        K::Min | K::Max | K::First | K::Last => Form::One(None),
        K::Push => Form::Values(Values::default()),
        K::AddToSet => Form::Set(Box::default()),
        K::DeviationPopulation | K::DeviationSample => Form::Deviation(Deviation::default()),
        K::MergeObjects => Form::Objects(Box::default()),
        K::Top | K::TopN | K::Bottom | K::BottomN | K::MinN | K::MaxN => Form::Ranked(Box::new(Ranked::new(wanted))),
        K::FirstN => Form::FirstN(Box::new((wanted, Values::default()))),
        K::LastN => Form::LastN(Box::new(LastValues::new(wanted))),
        K::Median | K::Percentile => Form::Numbers(Vec::new()),
    }
}

/// Whether it keeps the end of its order.
fn is_from_below(kind: AccumulatorKind) -> bool {
    matches!(kind, AccumulatorKind::Bottom | AccumulatorKind::BottomN)
}

fn keep_one(kept: &mut Option<JsonbBuf>, kind: AccumulatorKind, value: &Datum<'_>) -> Result<(), QueryError> {
    let wanted = match kind {
        AccumulatorKind::Min => Ordering::Less,
        AccumulatorKind::Max => Ordering::Greater,
        AccumulatorKind::First if kept.is_some() => return Ok(()),
        _ => {
            *kept = Some(value.to_buf()?);
            return Ok(());
        }
    };
    if value.is_nullish() {
        return Ok(());
    }
    let better = match &kept {
        None => true,
        Some(old) => value.compare(&Datum::from(old.view()))? == wanted,
    };
    if better {
        *kept = Some(value.to_buf()?);
    }
    Ok(())
}

fn add_object(objects: &mut Objects, value: &Datum<'_>) -> Result<(), QueryError> {
    if value.is_nullish() {
        return Ok(());
    }
    let encoded = value.encoded()?;
    let object: Option<ObjectRef<'_>> = encoded.view().as_object();
    let Some(object) = object else {
        let shown = crate::error::shown(encoded.view());
        let message =
            format!("$mergeObjects requires object inputs, but input {shown} is of type {}", value.type_name());
        return Err(QueryError::location(40400, message));
    };
    objects.add(object);
    Ok(())
}

fn add_ranked(ranked: &mut Ranked, kind: AccumulatorKind, value: &Datum<'_>, key: &[u8]) -> Result<(), QueryError> {
    let mut own = Vec::new();
    match kind {
        AccumulatorKind::MinN | AccumulatorKind::MaxN if value.is_nullish() => return Ok(()),
        AccumulatorKind::MinN => sort_key(value.encoded()?.view(), &mut own),
        AccumulatorKind::MaxN => sort_key_descending(value.encoded()?.view(), &mut own),
        kind if is_from_below(kind) => own.extend(key.iter().map(|byte| !byte)),
        _ => own.extend_from_slice(key),
    }
    if ranked.takes(&own) {
        ranked.add(own.into(), value.to_buf()?);
    } else {
        ranked.pass();
    }
    Ok(())
}

fn write_quantiles(numbers: &[f64], accumulator: &Accumulator, out: &mut Builder) -> Result<(), QueryError> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let values = accumulator.shares.iter().map(|share| {
        // The least number that a share of all is not above.
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    });
    let write = |value: Option<f64>, out: &mut Builder| match value {
        Some(n) => out.double(n),
        None => out.null(),
    };
    if accumulator.kind == AccumulatorKind::Median {
        values.for_each(|v| write(v, out));
        return Ok(());
    }
    out.begin_array();
    values.for_each(|v| write(v, out));
    out.end_array().map_err(|e| QueryError::bad_value(e.to_string()))
}

fn empty_object() -> Vec<u8> {
    let mut out = Builder::new();
    out.begin_object();
    // No name can be repeated.
    let _ = out.end_object();
    out.take()
}
