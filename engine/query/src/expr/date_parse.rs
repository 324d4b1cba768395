//! Text as dates: `$dateFromString` and the conversion of strings.
//!
//! Without a format the forms of ISO 8601 are read: `2026-01-02`, `2026-01-02T03:04:05.678Z`, a space for the `T`, seconds
//! and fraction left out, a zone as `Z`, offset or name; and what `date_words.rs` reads. What cannot be read is
//! `ConversionFailure`, 241.

use super::ast::DateFromStringCall;
use super::calendar::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Zone, days_in_month, days_of, days_of_iso, is_leap};
use super::calendar_ops::zone_of;
use super::date_format::MONTHS;
use super::date_words;
use super::datum::Datum;
use super::evaluate::evaluate;
use super::scope::Scope;
use crate::QueryError;

pub(super) fn evaluate_call<'a>(call: &'a DateFromStringCall, scope: &mut Scope<'a>) -> Result<Datum<'a>, QueryError> {
    let text = evaluate(&call.text, scope)?;
    let zone = match &call.zone {
        Some(zone) => zone_of(&evaluate(zone, scope)?)?.map(Some),
        None => Some(None),
    };
    let format = match &call.format {
        Some(format) => Some(evaluate(format, scope)?),
        None => None,
    };
    if text.is_nullish() {
        return match &call.on_null {
            Some(on_null) => evaluate(on_null, scope),
            None => Ok(Datum::Null),
        };
    }
    let parsed = match (text.as_str(), &format) {
        (None, _) => {
            let message =
                format!("$dateFromString requires that 'dateString' be a string, found: {}", text.type_name());
            Err(failure(message))
        }
        (_, Some(format)) if format.is_nullish() => return Ok(Datum::Null),
        (Some(text), Some(format)) => {
            let Some(format) = format.as_str() else {
                let message =
                    format!("$dateFromString requires that 'format' be a string, found: {}", format.type_name());
                return Err(QueryError::location(40684, message));
            };
            let Some(zone) = &zone else { return Ok(Datum::Null) };
            by_format(text, format, zone.as_ref())
        }
        (Some(text), None) => {
            let Some(zone) = &zone else { return Ok(Datum::Null) };
            parse_iso(text, zone.as_ref())
        }
    };
    match (parsed, &call.on_error) {
        (Ok(ms), _) => Ok(Datum::Date(ms)),
        (Err(e), Some(on_error)) if e.code() == 241 => evaluate(on_error, scope),
        (Err(e), _) => Err(e),
    }
}

fn failure(message: impl Into<String>) -> QueryError {
    QueryError::new("ConversionFailure", 241, message)
}

fn unreadable(text: &str, why: &str) -> QueryError {
    failure(format!("error parsing date string '{text}': {why}"))
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
    zone: Option<Zone>,
}

impl Reading {
    fn finish(self, text: &str, zone: Option<&Zone>) -> Result<i64, QueryError> {
        let incomplete = || unreadable(text, "an incomplete date/time string has been found, with elements missing");
        let invalid = || unreadable(text, "the parsed date was invalid");
        let days = if let (Some(year), Some(day)) = (self.year, self.day_of_year) {
            if !(1..=if is_leap(year) { 366 } else { 365 }).contains(&day) {
                return Err(invalid());
            }
            days_of(year, 1, day)
        } else if let Some(year) = self.iso_year {
            let (week, day) = (self.iso_week.unwrap_or(1), self.iso_day.unwrap_or(1));
            if !(1..=53).contains(&week) || !(1..=7).contains(&day) {
                return Err(invalid());
            }
            days_of_iso(year, week, day)
        } else {
            let year = self.year.ok_or_else(incomplete)?;
            let month = self.month.ok_or_else(incomplete)?;
            let day = self.day.ok_or_else(incomplete)?;
            if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
                return Err(invalid());
            }
            days_of(year, month, day)
        };
        let time_is_valid = self.hour < 24 || (self.hour == 24 && self.minute == 0 && self.second == 0);
        if !time_is_valid || self.minute > 59 || self.second > 60 {
            return Err(invalid());
        }
        let zone = match (&self.zone, zone) {
            (Some(_), Some(_)) => {
                let message = "a time zone stands in the string and beside it: only one of both is allowed";
                return Err(unreadable(text, message));
            }
            (Some(zone), None) => zone,
            (None, Some(zone)) => zone,
            (None, None) => &Zone::UTC,
        };
        let time = self.hour * HOUR_MS + self.minute * MINUTE_MS + self.second * SECOND_MS + self.millisecond;
        Ok(zone.to_utc(days * DAY_MS + time))
    }
}

/// A position in the text.
struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    /// A number of at least one and at most `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let n = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if n < least {
            return None;
        }
        let (digits, rest) = self.rest.split_at(n);
        self.rest = rest;
        digits.parse().ok()
    }

    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A fraction's digits as milliseconds: three count, the others are cut.
    fn milliseconds(&mut self) -> Option<i64> {
        let n = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(n);
        self.rest = rest;
        let three: String = digits.chars().chain("00".chars()).take(3).collect();
        if n == 0 { None } else { three.parse().ok() }
    }

    fn zone(&mut self) -> Option<Zone> {
        let end =
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-:/_".contains(c))).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        let zone = Zone::parse(if name == "z" { "Z" } else { name })?;
        self.rest = rest;
        Some(zone)
    }

    fn name(&mut self, names: &[&str], short: usize) -> Option<i64> {
        for (i, name) in names.iter().enumerate() {
            for len in [name.len(), short] {
                let Some(head) = self.rest.get(..len) else { continue };
                if head.eq_ignore_ascii_case(&name[..len]) {
                    self.rest = &self.rest[len..];
                    return Some(i as i64 + 1);
                }
            }
        }
        None
    }
}

/// A date in one of the ISO forms, or with the name of a month.
pub(super) fn parse_iso(text: &str, zone: Option<&Zone>) -> Result<i64, QueryError> {
    if let Some(words) = date_words::parse(text) {
        let [hour, minute, second, millisecond] = words.time.unwrap_or_default();
        let (year, month, day) = (words.year, words.month, words.day);
        let reading =
            Reading { year, month, day, hour, minute, second, millisecond, zone: words.zone, ..Reading::default() };
        return reading.finish(text, zone);
    }
    let wrong = || unreadable(text, "it is no date of the ISO 8601 forms that are known");
    let mut at = Cursor { rest: text.trim_matches(' ') };
    let mut reading = Reading::default();
    let negative = at.eat('-');
    if !negative {
        at.eat('+');
    }
    let year = at.digits(4, 6).ok_or_else(wrong)?;
    reading.year = Some(if negative { -year } else { year });
    let separator = if at.eat('-') {
        '-'
    } else if at.eat('/') {
        '/'
    } else {
        return Err(unreadable(text, "an incomplete date/time string has been found"));
    };
    reading.month = Some(at.digits(1, 2).ok_or_else(wrong)?);
    if !at.eat(separator) {
        return Err(unreadable(text, "an incomplete date/time string has been found"));
    }
    reading.day = Some(at.digits(1, 2).ok_or_else(wrong)?);
    if at.eat('T')
        || at.eat('t')
        || (at.rest.starts_with(' ') && at.rest[1..].starts_with(|c: char| c.is_ascii_digit()) && at.eat(' '))
    {
        reading.hour = at.digits(1, 2).ok_or_else(wrong)?;
        if !at.eat(':') {
            return Err(wrong());
        }
        reading.minute = at.digits(2, 2).ok_or_else(wrong)?;
        if at.eat(':') {
            reading.second = at.digits(2, 2).ok_or_else(wrong)?;
            if at.eat('.') || at.eat(',') {
                reading.millisecond = at.milliseconds().ok_or_else(wrong)?;
            }
        }
    }
    at.eat(' ');
    if !at.rest.is_empty() {
        reading.zone = Some(at.zone().ok_or_else(wrong)?);
    }
    if !at.rest.is_empty() {
        return Err(wrong());
    }
    reading.finish(text, zone)
}

fn by_format(text: &str, format: &str, zone: Option<&Zone>) -> Result<i64, QueryError> {
    let wrong = |what: &str| unreadable(text, what);
    let mut at = Cursor { rest: text };
    let mut reading = Reading::default();
    let mut format_characters = format.chars();
    while let Some(c) = format_characters.next() {
        if c != '%' {
            if !at.eat(c) {
                return Err(wrong(&format!("format literal '{c}' not found")));
            }
            continue;
        }
        let Some(specifier) = format_characters.next() else {
            return Err(QueryError::location(18535, "unmatched '%' at end of format string"));
        };
        let mut number =
            |least, most| at.digits(least, most).ok_or_else(|| wrong(&format!("no number for '%{specifier}'")));
        match specifier {
            'Y' => reading.year = Some(number(4, 4)?),
            'm' => reading.month = Some(number(1, 2)?),
            'd' => reading.day = Some(number(1, 2)?),
            'j' => reading.day_of_year = Some(number(1, 3)?),
            'G' => reading.iso_year = Some(number(4, 4)?),
            'V' => reading.iso_week = Some(number(1, 2)?),
            'u' => reading.iso_day = Some(number(1, 1)?),
            'H' => reading.hour = number(1, 2)?,
            'M' => reading.minute = number(1, 2)?,
            'S' => reading.second = number(1, 2)?,
            'L' => reading.millisecond = at.milliseconds().ok_or_else(|| wrong("no number for '%L'"))?,
            'B' | 'b' => reading.month = Some(at.name(&MONTHS, 3).ok_or_else(|| wrong("no name of a month"))?),
            'z' => reading.zone = Some(at.zone().ok_or_else(|| wrong("no time zone"))?),
            'Z' => {
                let sign = if at.eat('-') { -1 } else { 1 };
                at.eat('+');
                let minutes = at.digits(1, 4).ok_or_else(|| wrong("no minutes of an offset"))?;
                reading.zone = Some(Zone::Fixed(sign * minutes * MINUTE_MS));
            }
            '%' if at.eat('%') => {}
            '%' => return Err(wrong("format literal '%' not found")),
            other => {
                let message = format!("invalid format character '%{other}' in format string");
                return Err(QueryError::location(18536, message));
            }
        }
    }
    if !at.rest.is_empty() {
        return Err(wrong("trailing data"));
    }
    reading.finish(text, zone)
}
