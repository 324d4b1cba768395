//! Dates as text: `$dateToString` and the ISO form.

use super::calendar::{Civil, HOUR_MS, MINUTE_MS, Zone, civil};
use super::calendar_ops::{date_argument, zone_argument};
use super::datum::Datum;
use super::registry::{Arguments, Operator, Shape};
use crate::QueryError;
use std::fmt::Write;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[Operator {
    name: "$dateToString",
    shape: Shape::Named(&["date"], &["format", "timezone", "onNull"]),
    run: to_string,
}];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const ISO_UTC: &str = "%Y-%m-%dT%H:%M:%S.%LZ";
const ISO_LOCAL: &str = "%Y-%m-%dT%H:%M:%S.%L";

/// A date as `2026-01-02T03:04:05.678Z`; years outside 0 to 9999 have a sign and six digits or more.
pub(super) fn iso(ms: i64) -> String {
    let c = civil(ms);
    let year = if (0..=9999).contains(&c.year) { format!("{:04}", c.year) } else { format!("{:+07}", c.year) };
    let (month, day) = (c.month, c.day);
    let (hour, minute, second, ms) = (c.hour(), c.minute(), c.second(), c.millisecond());
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

fn to_string<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let date = date_argument(args, 0, 16006)?;
    let format = if !args.has(1) {
        Some(None)
    } else if args.get(1).is_nullish() {
        None
    } else if let Some(format) = args.get(1).as_str() {
        check(format)?;
        Some(Some(format.to_owned()))
    } else {
        let message = format!("$dateToString requires that 'format' be a string, found: {}", args.get(1).type_name());
        return Err(QueryError::location(18533, message));
    };
    let zone = zone_argument(args, 2)?;
    let Some(date) = date else {
        return Ok(if args.has(3) { args.take(3) } else { Datum::Null });
    };
    let (Some(format), Some(zone)) = (format, zone) else { return Ok(Datum::Null) };
    let default = if zone.is_utc() { ISO_UTC } else { ISO_LOCAL };
    let text = write(date, format.as_deref().unwrap_or(default), &zone)?;
    args.text(text)
}

fn check(format: &str) -> Result<(), QueryError> {
    let mut characters = format.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            continue;
        }
        match characters.next() {
            Some(
                'd' | 'G' | 'H' | 'j' | 'L' | 'm' | 'M' | 'S' | 'u' | 'U' | 'V' | 'Y' | 'z' | 'Z' | 'w' | 'B' | 'b'
                | '%',
            ) => {}
            Some(other) => {
                return Err(QueryError::location(
                    18536,
                    format!("invalid format character '%{other}' in format string"),
                ));
            }
            None => return Err(QueryError::location(18535, "unmatched '%' at end of format string")),
        }
    }
    Ok(())
}

fn year(n: i64) -> Result<i64, QueryError> {
    if (0..=9999).contains(&n) {
        return Ok(n);
    }
    Err(QueryError::location(18537, format!("$dateToString is only defined on years 0-9999, tried to use year {n}")))
}

fn write(ms: i64, format: &str, zone: &Zone) -> Result<String, QueryError> {
    let c: Civil = civil(zone.to_local(ms));
    let mut out = String::with_capacity(format.len() + 16);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let month = MONTHS[(c.month as usize + 11) % 12];
        let offset = zone.offset_at(ms);
        // Writing to a String does not fail.
        let _ = match characters.next().unwrap_or('%') {
            'Y' => write!(out, "{:04}", year(c.year)?),
            'G' => write!(out, "{:04}", year(c.iso_week().0)?),
            'm' => write!(out, "{:02}", c.month),
            'd' => write!(out, "{:02}", c.day),
            'H' => write!(out, "{:02}", c.hour()),
            'M' => write!(out, "{:02}", c.minute()),
            'S' => write!(out, "{:02}", c.second()),
            'L' => write!(out, "{:03}", c.millisecond()),
            'j' => write!(out, "{:03}", c.day_of_year()),
            'w' => write!(out, "{}", c.day_of_week()),
            'u' => write!(out, "{}", c.iso_day_of_week()),
            'U' => write!(out, "{:02}", c.week()),
            'V' => write!(out, "{:02}", c.iso_week().1),
            'B' => write!(out, "{month}"),
            'b' => write!(out, "{}", &month[..3]),
            'z' => {
                let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.abs());
                write!(out, "{sign}{:02}{:02}", offset / HOUR_MS, offset / MINUTE_MS % 60)
            }
            'Z' => write!(out, "{}", offset / MINUTE_MS),
            other => write!(out, "{other}"),
        };
    }
    Ok(out)
}
