//! Spans between dates: `$dateAdd`, `$dateSubtract`, `$dateDiff`, `$dateTrunc`.
//!
//! Years to days are counted in local time, so that a day is a day where the clock changes; hours and below are elapsed
//! time.

use super::calendar::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Zone, civil, days_in_month, days_of};
use super::calendar_ops::{date_argument, zone_argument};
use super::datum::Datum;
use super::registry::{Arguments, Operator, Shape};
use crate::QueryError;
use crate::number::Number;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

const SHIFT: Shape = Shape::Named(&["startDate", "unit", "amount"], &["timezone"]);

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$dateAdd", shape: SHIFT, run: |args| shift(args, 1) },
    Operator { name: "$dateSubtract", shape: SHIFT, run: |args| shift(args, -1) },
    Operator {
        name: "$dateDiff",
        shape: Shape::Named(&["startDate", "endDate", "unit"], &["timezone", "startOfWeek"]),
        run: difference,
    },
    Operator {
        name: "$dateTrunc",
        shape: Shape::Named(&["date", "unit"], &["binSize", "timezone", "startOfWeek"]),
        run: truncate,
    },
];

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    /// So many milliseconds.
    Elapsed(i64),
}

impl Unit {
    /// The unit of that name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "year" => Self::Year,
            "quarter" => Self::Quarter,
            "month" => Self::Month,
            "week" => Self::Week,
            "day" => Self::Day,
            "hour" => Self::Elapsed(HOUR_MS),
            "minute" => Self::Elapsed(MINUTE_MS),
            "second" => Self::Elapsed(SECOND_MS),
            "millisecond" => Self::Elapsed(1),
            _ => return None,
        })
    }

    /// Its milliseconds in UTC, where they are always the same.
    pub(crate) fn milliseconds(self) -> Option<i64> {
        match self {
            Self::Week => Some(7 * DAY_MS),
            Self::Day => Some(DAY_MS),
            Self::Elapsed(ms) => Some(ms),
            Self::Year | Self::Quarter | Self::Month => None,
        }
    }

    /// A date so many units later, in UTC.
    ///
    /// # Errors
    /// 5166406 where that is no date.
    pub(crate) fn after(self, date: i64, amount: i64) -> Result<i64, QueryError> {
        shifted(date, self, amount, &Zone::UTC)
    }
}

/// The unit in an argument; none where it is null.
fn unit(args: &Arguments<'_, '_>, i: usize, code: i32) -> Result<Option<Unit>, QueryError> {
    let argument = args.get(i);
    if argument.is_nullish() {
        return Ok(None);
    }
    let Some(name) = argument.as_str() else {
        let message = format!("{} requires 'unit' to be a string, but got {}", args.name, argument.type_name());
        return Err(QueryError::location(code, message));
    };
    match Unit::by_name(name) {
        Some(unit) => Ok(Some(unit)),
        None => Err(QueryError::failed_to_parse(format!("{}: unknown time unit value: {name}", args.name))),
    }
}

/// The day that weeks begin with: 0 (Sunday) to 6; none where the argument is null.
fn start_of_week(args: &Arguments<'_, '_>, i: usize, code: i32) -> Result<Option<i64>, QueryError> {
    if !args.has(i) {
        return Ok(Some(0));
    }
    let argument = args.get(i);
    if argument.is_nullish() {
        return Ok(None);
    }
    let Some(name) = argument.as_str() else {
        let message = format!("{} requires 'startOfWeek' to be a string, but got {}", args.name, argument.type_name());
        return Err(QueryError::location(code, message));
    };
    let name = name.to_ascii_lowercase();
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    match days.iter().position(|day| *day == name || day[..3] == *name) {
        Some(day) => Ok(Some(day as i64)),
        None => {
            let message = format!("{}: unknown day of week value: {name}", args.name);
            Err(QueryError::location(5_439_016, message))
        }
    }
}

fn out_of_range() -> QueryError {
    QueryError::location(5_166_406, "the resulting date is out of range")
}

/// Instants beyond these have no civil time in 64 bits.
const LOCAL_MAX: u64 = (i64::MAX - 2 * DAY_MS) as u64;

fn shift<'a>(args: &mut Arguments<'_, 'a>, sign: i64) -> Outcome<'a> {
    let date = date_argument(args, 0, 5_166_403)?;
    let unit = unit(args, 1, 5_166_404)?;
    let amount = args.get(2);
    let amount = if amount.is_nullish() {
        None
    } else {
        match amount.as_number().and_then(Number::as_whole) {
            Some(n) => Some(n),
            None => {
                let message = format!("{} expects integer amount of time units", args.name);
                return Err(QueryError::location(5_166_405, message));
            }
        }
    };
    let zone = zone_argument(args, 3)?;
    let (Some(date), Some(unit), Some(amount), Some(zone)) = (date, unit, amount, zone) else { return Ok(Datum::Null) };
    let amount = amount.checked_mul(sign).ok_or_else(out_of_range)?;
    shifted(date, unit, amount, &zone).map(Datum::Date)
}

fn shifted(date: i64, unit: Unit, amount: i64, zone: &Zone) -> Result<i64, QueryError> {
    let months = match unit {
        Unit::Year => amount.checked_mul(12),
        Unit::Quarter => amount.checked_mul(3),
        _ => Some(amount),
    }
    .ok_or_else(out_of_range)?;
    match unit {
        Unit::Elapsed(ms) => amount.checked_mul(ms).and_then(|by| date.checked_add(by)).ok_or_else(out_of_range),
        Unit::Week | Unit::Day => {
            let days = amount.checked_mul(if unit == Unit::Week { 7 } else { 1 });
            let by = days.and_then(|d| d.checked_mul(DAY_MS)).ok_or_else(out_of_range)?;
            let local = zone
                .to_local(date)
                .checked_add(by)
                .filter(|l| l.unsigned_abs() < LOCAL_MAX)
                .ok_or_else(out_of_range)?;
            Ok(zone.to_utc(local))
        }
        Unit::Year | Unit::Quarter | Unit::Month => {
            let c = civil(zone.to_local(date));
            let month = (c.year * 12 + c.month - 1).checked_add(months).ok_or_else(out_of_range)?;
            let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
            if year.abs() > 290_000_000 {
                return Err(out_of_range());
            }
            let day = c.day.min(days_in_month(year, month));
            Ok(zone.to_utc(days_of(year, month, day) * DAY_MS + c.ms_of_day))
        }
    }
}

fn difference<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let start = date_argument(args, 0, 5_166_307)?;
    let end = date_argument(args, 1, 5_166_307)?;
    let unit = unit(args, 2, 5_439_013)?;
    let zone = zone_argument(args, 3)?;
    let week = if unit == Some(Unit::Week) { start_of_week(args, 4, 5_439_015)? } else { Some(0) };
    let (Some(start), Some(end), Some(unit), Some(zone), Some(week)) = (start, end, unit, zone, week) else {
        return Ok(Datum::Null);
    };
    let (a, b) = (civil(zone.to_local(start)), civil(zone.to_local(end)));
    let months = (b.year - a.year) * 12 + b.month - a.month;
    Ok(Datum::long(match unit {
        Unit::Year => b.year - a.year,
        Unit::Quarter => (b.year * 4 + (b.month - 1) / 3) - (a.year * 4 + (a.month - 1) / 3),
        Unit::Month => months,
        Unit::Week => week_number(b.days, week) - week_number(a.days, week),
        Unit::Day => b.days - a.days,
        Unit::Elapsed(ms) => {
            // Boundaries are those of local time, distances are elapsed time: only the odd part of an offset counts.
            let boundary = |at: i64| (at.saturating_add(zone.offset_at(at).rem_euclid(ms))).div_euclid(ms);
            boundary(end).checked_sub(boundary(start)).ok_or_else(|| {
                QueryError::location(5_166_308, "the difference of the dates does not fit into a long")
            })?
        }
    }))
}

/// The number of a day's week, counted from some week on; 1970-01-01 was a Thursday.
fn week_number(days: i64, start: i64) -> i64 {
    (days + 4 - start).div_euclid(7)
}

fn truncate<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let date = date_argument(args, 0, 5_439_012)?;
    let unit = unit(args, 1, 5_439_013)?;
    let bin = if !args.has(2) {
        Some(1)
    } else if args.get(2).is_nullish() {
        None
    } else {
        match args.get(2).as_number().and_then(Number::as_whole) {
            None => {
                let message = "$dateTrunc requires 'binSize' to be a 64-bit integer";
                return Err(QueryError::location(5_439_017, message));
            }
            Some(n) if n <= 0 => {
                let message = format!("$dateTrunc requires 'binSize' to be greater than 0, but got {n}");
                return Err(QueryError::location(5_439_018, message));
            }
            some => some,
        }
    };
    let zone = zone_argument(args, 3)?;
    let week = if unit == Some(Unit::Week) { start_of_week(args, 4, 5_439_015)? } else { Some(0) };
    let (Some(date), Some(unit), Some(bin), Some(zone), Some(week)) = (date, unit, bin, zone, week) else {
        return Ok(Datum::Null);
    };
    truncated(date, unit, bin, &zone, week).map(Datum::Date)
}

/// Bins are counted from the first of January 2000, local time; weeks from the first such day on or after it.
fn truncated(date: i64, unit: Unit, bin: i64, zone: &Zone, week: i64) -> Result<i64, QueryError> {
    let overflow = || QueryError::location(5_439_005, "$dateTrunc: the result is out of range");
    let reference = days_of(2000, 1, 1);
    let c = civil(zone.to_local(date));
    let at_day = |days: i64| days.checked_mul(DAY_MS).map(|local| zone.to_utc(local)).ok_or_else(overflow);
    let in_days = |from: i64, size: i64| {
        let size = size.checked_mul(bin).ok_or_else(overflow)?;
        let bins = (c.days - from).div_euclid(size);
        at_day(bins.checked_mul(size).and_then(|d| d.checked_add(from)).ok_or_else(overflow)?)
    };
    match unit {
        Unit::Day => in_days(reference, 1),
        Unit::Week => {
            let weekday = (reference + 4).rem_euclid(7);
            in_days(reference + (week - weekday).rem_euclid(7), 7)
        }
        Unit::Year | Unit::Quarter | Unit::Month => {
            let size = match unit {
                Unit::Year => 12,
                Unit::Quarter => 3,
                _ => 1,
            };
            let size = bin.checked_mul(size).ok_or_else(overflow)?;
            let months = (c.year - 2000) * 12 + c.month - 1;
            let months = months.div_euclid(size).checked_mul(size).ok_or_else(overflow)?;
            let year = 2000 + months.div_euclid(12);
            if year.abs() > 290_000_000 {
                return Err(overflow());
            }
            at_day(days_of(year, months.rem_euclid(12) + 1, 1))
        }
        Unit::Elapsed(ms) => {
            let size = bin.checked_mul(ms).ok_or_else(overflow)?;
            let from = zone.to_utc(reference * DAY_MS);
            let bins = date.checked_sub(from).ok_or_else(overflow)?.div_euclid(size);
            bins.checked_mul(size).and_then(|d| d.checked_add(from)).ok_or_else(overflow)
        }
    }
}
