//! The proleptic Gregorian calendar and time zones: dates taken apart and put together.
//!
//! Takes milliseconds since 1970-01-01 UTC and a zone; gives civil time, and back. Days are counted by H. Hinnant's
//! algorithms ("chrono-compatible low-level date algorithms"). Zones come from the tz database that is built in. Knows no
//! values and no operators.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

pub(super) const SECOND_MS: i64 = 1000;
pub(super) const MINUTE_MS: i64 = 60 * SECOND_MS;
pub(super) const HOUR_MS: i64 = 60 * MINUTE_MS;
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;

/// The offset of local time from UTC.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// Always so many milliseconds.
    Fixed(i64),
    /// By the tz database.
    Named(TimeZone),
}

/// Civil time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: i64,
    /// 1 to 31.
    pub(super) day: i64,
    /// Since midnight.
    pub(super) ms_of_day: i64,
    /// Days since 1970-01-01.
    pub(super) days: i64,
}

impl Zone {
    pub(super) const UTC: Self = Self::Fixed(0);

    /// By name (`Europe/Berlin`, `UTC`) or offset (`+01:00`, `-0330`, `+02`).
    pub(super) fn parse(name: &str) -> Option<Self> {
        if matches!(name, "UTC" | "GMT" | "Z") {
            return Some(Self::UTC);
        }
        if name.starts_with(['+', '-']) {
            return offset(name).map(Self::Fixed);
        }
        TimeZone::get(name).ok().map(Self::Named)
    }

    pub(super) fn is_utc(&self) -> bool {
        matches!(self, Self::Fixed(0))
    }

    /// Local time minus UTC at an instant, in milliseconds.
    pub(super) fn offset_at(&self, ms: i64) -> i64 {
        match self {
            Self::Fixed(offset) => *offset,
            Self::Named(zone) => {
                let instant = ms.clamp(Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
                let instant = Timestamp::from_millisecond(instant).unwrap_or(Timestamp::UNIX_EPOCH);
                i64::from(zone.to_offset(instant).seconds()) * SECOND_MS
            }
        }
    }

    /// The local time, as if it were UTC.
    pub(super) fn to_local(&self, ms: i64) -> i64 {
        ms.saturating_add(self.offset_at(ms))
    }

    /// The instant of a local time. One that is skipped moves forward, one that comes twice is the earlier.
    pub(super) fn to_utc(&self, local: i64) -> i64 {
        match self {
            Self::Fixed(offset) => local.saturating_sub(*offset),
            Self::Named(zone) => {
                let c = civil(local);
                let exact = i16::try_from(c.year).ok().and_then(|year| {
                    let second = c.ms_of_day / SECOND_MS;
                    let nanoseconds = (c.ms_of_day % SECOND_MS) * 1_000_000;
                    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
                    let time = DateTime::new(
                        year,
                        c.month as i8,
                        c.day as i8,
                        hour as i8,
                        minute as i8,
                        second as i8,
                        nanoseconds as i32,
                    );
                    zone.to_ambiguous_timestamp(time.ok()?).compatible().ok()
                });
                match exact {
                    Some(instant) => instant.as_millisecond(),
                    None => local.saturating_sub(self.offset_at(local)),
                }
            }
        }
    }
}

/// `+hh`, `+hhmm` or `+hh:mm`, in milliseconds.
fn offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.get(1..)?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => (digits.get(..2)?, digits.get(2..)?),
        5 if digits.as_bytes().get(2) == Some(&b':') => (digits.get(..2)?, digits.get(3..)?),
        _ => return None,
    };
    if !hours.bytes().chain(minutes.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(sign * (hours * HOUR_MS + minutes * MINUTE_MS))
}

/// Days since 1970-01-01 of a date; months outside 1 to 12 and days outside the month carry over.
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let month = month - 1;
    let year = year + month.div_euclid(12);
    let month = month.rem_euclid(12) + 1;
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468 + day - 1
}

/// Civil time of milliseconds since 1970-01-01.
pub(super) fn civil(ms: i64) -> Civil {
    civil_of(ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS))
}

fn civil_of(days: i64, ms_of_day: i64) -> Civil {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    Civil { year, month, day, ms_of_day, days }
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Civil {
    /// 1 to 366.
    pub(super) fn day_of_year(&self) -> i64 {
        self.days - days_of(self.year, 1, 1) + 1
    }

    /// 1 (Sunday) to 7.
    pub(super) fn day_of_week(&self) -> i64 {
        (self.days + 4).rem_euclid(7) + 1
    }

    /// 1 (Monday) to 7.
    pub(super) fn iso_day_of_week(&self) -> i64 {
        (self.days + 3).rem_euclid(7) + 1
    }

    /// 0 to 53: weeks begin on Sunday, days before the first are in week 0.
    pub(super) fn week(&self) -> i64 {
        (self.day_of_year() - 1 + 7 - (self.day_of_week() - 1)) / 7
    }

    /// ISO 8601: the year that most days of the week are in, and the week in it.
    pub(super) fn iso_week(&self) -> (i64, i64) {
        let thursday = self.days - self.iso_day_of_week() + 4;
        let year = civil_of(thursday, 0).year;
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }

    pub(super) fn hour(&self) -> i64 {
        self.ms_of_day / HOUR_MS
    }

    pub(super) fn minute(&self) -> i64 {
        self.ms_of_day / MINUTE_MS % 60
    }

    pub(super) fn second(&self) -> i64 {
        self.ms_of_day / SECOND_MS % 60
    }

    pub(super) fn millisecond(&self) -> i64 {
        self.ms_of_day % SECOND_MS
    }
}

/// Days since 1970-01-01 of an ISO week date.
pub(super) fn days_of_iso(year: i64, week: i64, day: i64) -> i64 {
    let fourth = days_of(year, 1, 4);
    let monday = fourth - (fourth + 3).rem_euclid(7);
    monday + (week - 1) * 7 + day - 1
}
