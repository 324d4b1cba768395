//! Dates as ISO 8601 text.
//!
//! Takes and gives milliseconds since 1970-01-01 UTC. The calendar is the proleptic Gregorian one; days are counted as in
//! H. Hinnant, chrono-Compatible Low-Level Date Algorithms. Reads no clock.

const DAY_MS: i64 = 86_400_000;
/// 1970-01-01.
pub(crate) const FIRST_PLAIN_MS: i64 = 0;
/// 0000-01-01.
pub(crate) const YEAR_0_MS: i64 = days_of(0, 1, 1) * DAY_MS;
/// The last millisecond of 9999.
pub(crate) const LAST_PLAIN_MS: i64 = days_of(10_000, 1, 1) * DAY_MS - 1;
/// The longest text that [`write_iso`] makes.
pub(crate) const ISO_BYTES_MAX: usize = 24;

/// Days from 1970-01-01 to a date of the years 0 to 10000.
const fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
const fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Writes a time of the years 0 to 9999 as `2026-01-02T03:04:05.678Z`, the milliseconds only where they are not zero;
/// gives the number of bytes. Callers check the years.
pub(crate) fn write_iso(millis: i64, out: &mut [u8; ISO_BYTES_MAX]) -> usize {
    let (year, month, day) = date_of(millis.div_euclid(DAY_MS));
    let in_day = millis.rem_euclid(DAY_MS);
    let (seconds, fraction) = (in_day / 1000, in_day % 1000);
    out.copy_from_slice(b"0000-00-00T00:00:00.000Z");
    let mut two = |at: usize, n: i64| {
        out[at] += (n / 10 % 10) as u8;
        out[at + 1] += (n % 10) as u8;
    };
    two(0, year / 100);
    two(2, year % 100);
    two(5, month);
    two(8, day);
    two(11, seconds / 3600);
    two(14, seconds / 60 % 60);
    two(17, seconds % 60);
    if fraction == 0 {
        out[19] = b'Z';
        return 20;
    }
    two(20, fraction / 10);
    out[22] += (fraction % 10) as u8;
    ISO_BYTES_MAX
}

/// Reads `2026-01-02T03:04:05.678+01:00`: seconds with one to nine digits of fraction (cut to milliseconds) or none,
/// and `Z` or an offset (`+01:00`, `+0100`, `+01`). None where it is anything else.
pub(crate) fn read_iso(text: &[u8]) -> Option<i64> {
    let number = |at: usize, len: usize| {
        let digits = text.get(at..at + len)?;
        digits.iter().try_fold(0_i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    };
    let is = |at: usize, byte: u8| text.get(at) == Some(&byte);
    if !(is(4, b'-') && is(7, b'-') && matches!(text.get(10), Some(b'T' | b't')) && is(13, b':') && is(16, b':')) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (mut at, mut millis) = (19, 0);
    if is(at, b'.') {
        let digits = text[20..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return None;
        }
        millis = number(20, digits.min(3))? * [1, 100, 10, 1][digits.min(3)];
        at = 20 + digits;
    }
    let offset = match text.get(at..)? {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let minutes_at = match rest {
                [_, _] => None,
                [_, _, _, _] => Some(at + 3),
                [_, _, b':', _, _] => Some(at + 4),
                _ => return None,
            };
            let (hours, minutes) = (number(at + 1, 2)?, minutes_at.map_or(Some(0), |m| number(m, 2))?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = hours * 60 + minutes;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let seconds = (hour * 60 + minute - offset) * 60 + second;
    Some(days_of(year, month, day) * DAY_MS + seconds * 1000 + millis)
}
