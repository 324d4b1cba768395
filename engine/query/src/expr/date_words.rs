//! Dates with the name of a month, as people write them: `oct 20 2020`, `20 October 2020 12:05`,
//! `Wed, 31 Jan 1996 12:05:28 +03:30`.
//!
//! Takes a text apart at spaces and commas; what each word is follows from its form, whatever the order. Gives the parts of
//! the date, or nothing where a word is none of that, stands twice, or month, day or year is not there.

use super::calendar::Zone;
use super::date_format::MONTHS;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Letters of a short name.
const SHORT: usize = 3;

/// The parts of a date.
#[derive(Default)]
pub(super) struct Words {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    /// Hour, minute, second, millisecond.
    pub(super) time: Option<[i64; 4]>,
    pub(super) zone: Option<Zone>,
    weekday: Option<i64>,
}

pub(super) fn parse(text: &str) -> Option<Words> {
    let mut words = Words::default();
    for word in text.split([' ', ',']).filter(|w| !w.is_empty()) {
        words.take(word)?;
    }
    let whole = words.year.is_some() && words.month.is_some() && words.day.is_some();
    whole.then_some(words)
}

impl Words {
    fn take(&mut self, word: &str) -> Option<()> {
        if let Some(month) = named(word, &MONTHS) {
            return put(&mut self.month, month);
        }
        if let Some(day) = named(word, &WEEKDAYS) {
            return put(&mut self.weekday, day);
        }
        if word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit()) {
            return put(&mut self.time, time(word)?);
        }
        let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        let day = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        if is_number(day) && day.len() <= 2 {
            return put(&mut self.day, day.parse().ok()?);
        }
        if is_number(word) && word.len() == 4 {
            return put(&mut self.year, word.parse().ok()?);
        }
        put(&mut self.zone, Zone::parse(word)?)
    }
}

/// Fills a part; none where it is there already.
fn put<T>(part: &mut Option<T>, value: T) -> Option<()> {
    part.is_none().then(|| *part = Some(value))
}

/// The position of a name, whole or by its first letters, from 1.
fn named(word: &str, names: &[&str]) -> Option<i64> {
    let is = |name: &&str| name.eq_ignore_ascii_case(word) || name[..SHORT].eq_ignore_ascii_case(word);
    names.iter().position(is).and_then(|i| i64::try_from(i + 1).ok())
}

/// `12:05`, `12:05:28`, `12:05:28.5`.
fn time(word: &str) -> Option<[i64; 4]> {
    let (clock, fraction) = word.split_once('.').unwrap_or((word, ""));
    let mut parts = clock.split(':').map(|p| if p.len() <= 2 { p.parse::<i64>().ok() } else { None });
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        Some(second) => second?,
        None => 0,
    };
    if parts.next().is_some() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let three: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some([hour, minute, second, three.parse().ok()?])
}
