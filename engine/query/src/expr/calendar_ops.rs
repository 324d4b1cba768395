//! Parts of dates: `$year` and its like, `$dateToParts`, `$dateFromParts`.

use super::calendar::{Civil, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Zone, civil, days_of, days_of_iso};
use super::convert::date_of;
use super::datum::Datum;
use super::registry::{Arguments, Operator, Shape};
use crate::QueryError;
use crate::number::Number;
use std::borrow::Cow;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

const DATE: Shape = Shape::NamedOrFirst(&["date"], &["timezone"]);

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$year", shape: DATE, run: |args| part(args, |c| c.year) },
    Operator { name: "$month", shape: DATE, run: |args| part(args, |c| c.month) },
    Operator { name: "$dayOfMonth", shape: DATE, run: |args| part(args, |c| c.day) },
    Operator { name: "$dayOfWeek", shape: DATE, run: |args| part(args, Civil::day_of_week) },
    Operator { name: "$dayOfYear", shape: DATE, run: |args| part(args, Civil::day_of_year) },
    Operator { name: "$hour", shape: DATE, run: |args| part(args, Civil::hour) },
    Operator { name: "$minute", shape: DATE, run: |args| part(args, Civil::minute) },
    Operator { name: "$second", shape: DATE, run: |args| part(args, Civil::second) },
    Operator { name: "$millisecond", shape: DATE, run: |args| part(args, Civil::millisecond) },
    Operator { name: "$week", shape: DATE, run: |args| part(args, Civil::week) },
    Operator { name: "$isoWeek", shape: DATE, run: |args| part(args, |c| c.iso_week().1) },
    Operator { name: "$isoDayOfWeek", shape: DATE, run: |args| part(args, Civil::iso_day_of_week) },
    Operator { name: "$isoWeekYear", shape: DATE, run: iso_week_year },
    Operator { name: "$dateToParts", shape: Shape::Named(&["date"], &["timezone", "iso8601"]), run: to_parts },
    Operator { name: "$dateFromParts", shape: Shape::Named(&[], &PARTS), run: from_parts },
];

const PARTS: [&str; 11] = [
    "year",
    "month",
    "day",
    "isoWeekYear",
    "isoWeek",
    "isoDayOfWeek",
    "hour",
    "minute",
    "second",
    "millisecond",
    "timezone",
];

/// The zone in an argument; UTC where it was not given, none where it is null.
pub(super) fn zone_argument(args: &Arguments<'_, '_>, i: usize) -> Result<Option<Zone>, QueryError> {
    if !args.has(i) {
        return Ok(Some(Zone::UTC));
    }
    zone_of(args.get(i))
}

/// The zone that a value names; none where it is null.
pub(super) fn zone_of(d: &Datum<'_>) -> Result<Option<Zone>, QueryError> {
    if d.is_nullish() {
        return Ok(None);
    }
    let Some(name) = d.as_str() else {
        let message = format!("timezone must evaluate to a string, found {}", d.type_name());
        return Err(QueryError::location(40517, message));
    };
    match Zone::parse(name) {
        Some(zone) => Ok(Some(zone)),
        None => Err(QueryError::location(40485, format!("unrecognized time zone identifier: \"{name}\""))),
    }
}

/// The date in an argument; none where it is null.
pub(super) fn date_argument(args: &Arguments<'_, '_>, i: usize, code: i32) -> Result<Option<i64>, QueryError> {
    let argument = args.get(i);
    if argument.is_nullish() {
        return Ok(None);
    }
    match date_of(argument) {
        Some(ms) => Ok(Some(ms)),
        None => {
            let message = format!("{}: can't convert from BSON type {} to Date", args.name, argument.type_name());
            Err(QueryError::location(code, message))
        }
    }
}

fn local(args: &Arguments<'_, '_>) -> Result<Option<Civil>, QueryError> {
    let (Some(date), Some(zone)) = (date_argument(args, 0, 16006)?, zone_argument(args, 1)?) else { return Ok(None) };
    Ok(Some(civil(zone.to_local(date))))
}

fn small<'a>(n: i64) -> Datum<'a> {
    i32::try_from(n).map_or(Datum::long(n), Datum::int)
}

fn part<'a>(args: &Arguments<'_, '_>, get: impl FnOnce(&Civil) -> i64) -> Outcome<'a> {
    Ok(local(args)?.map_or(Datum::Null, |c| small(get(&c))))
}

fn iso_week_year<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    Ok(local(args)?.map_or(Datum::Null, |c| Datum::long(c.iso_week().0)))
}

fn to_parts<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let iso = match args.get(2) {
        Datum::Missing if !args.has(2) => false,
        Datum::Missing | Datum::Null => return Ok(Datum::Null),
        Datum::Bool(b) => *b,
        other => {
            let message = format!("iso8601 must evaluate to a bool, found {}", other.type_name());
            return Err(QueryError::location(40521, message));
        }
    };
    let Some(c) = local(args)? else { return Ok(Datum::Null) };
    let day: [(&str, i64); 3] = if iso {
        let (year, week) = c.iso_week();
        [("isoWeekYear", year), ("isoWeek", week), ("isoDayOfWeek", c.iso_day_of_week())]
    } else {
        [("year", c.year), ("month", c.month), ("day", c.day)]
    };
    let time = [("hour", c.hour()), ("minute", c.minute()), ("second", c.second()), ("millisecond", c.millisecond())];
    let fields = day.into_iter().chain(time).map(|(name, n)| (Cow::Borrowed(name), small(n))).collect();
    Datum::object(fields, args.scope)
}

/// A part by its place in [`PARTS`]; none where it is null.
fn number(args: &Arguments<'_, '_>, i: usize, default: i64) -> Result<Option<i64>, QueryError> {
    if !args.has(i) {
        return Ok(Some(default));
    }
    let argument = args.get(i);
    if argument.is_nullish() {
        return Ok(None);
    }
    match argument.as_number().and_then(Number::as_whole) {
        Some(n) => Ok(Some(n)),
        None => {
            let message = format!("'{}' must evaluate to an integer, found {}", PARTS[i], argument.type_name());
            Err(QueryError::location(40515, message))
        }
    }
}

const PART_MAX: i64 = 32_767;

fn from_parts<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let iso = args.has(3);
    let mixed = if iso { [0, 1, 2] } else { [3, 4, 5] };
    if !iso && !args.has(0) {
        let message = "$dateFromParts requires either 'year' or 'isoWeekYear' to be present";
        return Err(QueryError::location(40516, message));
    }
    if mixed.iter().any(|&i| args.has(i)) {
        let message = "$dateFromParts does not allow mixing natural dates with ISO dates";
        return Err(QueryError::location(if iso { 40525 } else { 40489 }, message));
    }
    let mut values = [0; 7];
    let first = if iso { 3 } else { 0 };
    let places = [first, first + 1, first + 2, 6, 7, 8, 9];
    for (n, (value, &i)) in values.iter_mut().zip(&places).enumerate() {
        let default = i64::from((1..3).contains(&n));
        match number(args, i, default)? {
            None => return Ok(Datum::Null),
            Some(part) => *value = part,
        }
        if n == 0 && !(1..=9999).contains(value) {
            let code = if iso { 31095 } else { 40523 };
            let message = format!("'{}' must evaluate to an integer in the range 1 to 9999, found {value}", PARTS[i]);
            return Err(QueryError::location(code, message));
        }
        // Seconds and milliseconds may be as large as a date holds; the rest is bounded.
        if (1..5).contains(&n) && !(-PART_MAX - 1..=PART_MAX).contains(value) {
            let message =
                format!("'{}' must evaluate to a value in the range [-32768, 32767], found {value}", PARTS[i]);
            return Err(QueryError::location(31034, message));
        }
    }
    let Some(zone) = zone_argument(args, 10)? else { return Ok(Datum::Null) };
    let [year, month, day, hour, minute, second, ms] = values;
    let days = if iso { days_of_iso(year, month, day) } else { days_of(year, month, day) };
    let overflow = || QueryError::new("DurationOverflow", 159, "the date of $dateFromParts is out of range");
    let seconds = second.checked_mul(SECOND_MS).and_then(|s| s.checked_add(ms)).ok_or_else(overflow)?;
    let local = days * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS;
    let local = local.checked_add(seconds).ok_or_else(overflow)?;
    Ok(Datum::Date(zone.to_utc(local)))
}
