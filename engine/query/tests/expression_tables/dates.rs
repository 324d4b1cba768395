//! Dates: parts, spans, text, zones.

use crate::check;

const DAY: &str = r#"{"d": {"$date": "2017-06-19T15:13:25.713Z"}}"#;
const SUNDAY: &str = r#"{"d": {"$date": "2016-01-01T00:00:00Z"}}"#;

#[test]
fn a_date_comes_apart_in_any_zone() {
    check(&[
        (r#"{"$year": "$d"}"#, DAY, "2017"),
        (r#"{"$month": "$d"}"#, DAY, "6"),
        (r#"{"$dayOfMonth": "$d"}"#, DAY, "19"),
        (r#"{"$hour": "$d"}"#, DAY, "15"),
        (r#"{"$minute": "$d"}"#, DAY, "13"),
        (r#"{"$second": "$d"}"#, DAY, "25"),
        (r#"{"$millisecond": "$d"}"#, DAY, "713"),
        (r#"{"$dayOfWeek": "$d"}"#, DAY, "2"),
        (r#"{"$dayOfYear": "$d"}"#, DAY, "170"),
        (r#"{"$week": "$d"}"#, DAY, "25"),
        (r#"{"$isoWeek": "$d"}"#, SUNDAY, "53"),
        (r#"{"$isoWeekYear": "$d"}"#, SUNDAY, r#"{"$numberLong": "2015"}"#),
        (r#"{"$isoDayOfWeek": "$d"}"#, SUNDAY, "5"),
        (r#"{"$hour": {"date": "$d", "timezone": "America/New_York"}}"#, DAY, "11"),
        (r#"{"$hour": {"date": "$d", "timezone": "-0500"}}"#, DAY, "10"),
        (r#"{"$hour": {"date": "$d", "timezone": "+05:30"}}"#, DAY, "20"),
        (r#"{"$hour": {"date": "$d", "timezone": null}}"#, DAY, "null"),
        (r#"{"$hour": {"date": "$d", "timezone": "Nowhere/At_All"}}"#, DAY, "error 40485"),
        (r#"{"$hour": {"date": "$d", "timezone": 5}}"#, DAY, "error 40517"),
        (r#"{"$year": "$missing"}"#, "{}", "null"),
        (r#"{"$year": "$a"}"#, r#"{"a": "x"}"#, "error 16006"),
        (r#"{"$year": {"$oid": "5ab9c3da31c2ab715d421285"}}"#, "{}", "2018"),
        (r#"{"$year": {"$date": {"$numberLong": "-62198755200000"}}}"#, "{}", "-1"),
        (
            r#"{"$dateToParts": {"date": "$d"}}"#,
            DAY,
            r#"{"year": 2017, "month": 6, "day": 19, "hour": 15, "minute": 13, "second": 25, "millisecond": 713}"#,
        ),
        (
            r#"{"$dateToParts": {"date": "$d", "iso8601": true}}"#,
            SUNDAY,
            r#"{"isoWeekYear": 2015, "isoWeek": 53, "isoDayOfWeek": 5, "hour": 0, "minute": 0, "second": 0, "millisecond": 0}"#,
        ),
        (
            r#"{"$dateFromParts": {"year": 2017, "month": 2, "day": 8, "hour": 12}}"#,
            "{}",
            r#"{"$date": "2017-02-08T12:00:00Z"}"#,
        ),
        (
            r#"{"$dateFromParts": {"year": 2016, "month": 12, "day": 31, "hour": 23, "minute": 46, "second": 12, "timezone": "America/New_York"}}"#,
            "{}",
            r#"{"$date": "2017-01-01T04:46:12Z"}"#,
        ),
        (r#"{"$dateFromParts": {"year": 2017, "month": 14, "day": 0}}"#, "{}", r#"{"$date": "2018-01-31T00:00:00Z"}"#),
        (
            r#"{"$dateFromParts": {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12}}"#,
            "{}",
            r#"{"$date": "2017-02-08T12:00:00Z"}"#,
        ),
        (r#"{"$dateFromParts": {"year": 2017, "isoWeek": 6}}"#, "{}", "error 40489"),
        (r#"{"$dateFromParts": {"month": 1}}"#, "{}", "error 40516"),
        (r#"{"$dateFromParts": {"year": 10000}}"#, "{}", "error 40523"),
        (r#"{"$dateFromParts": {"year": 2017, "month": 40000}}"#, "{}", "error 31034"),
        (r#"{"$dateFromParts": {"year": "x"}}"#, "{}", "error 40515"),
        (r#"{"$dateFromParts": {"year": null}}"#, "{}", "null"),
    ]);
}

#[test]
fn spans_follow_the_calendar_and_the_clock() {
    check(&[
        (
            r#"{"$dateAdd": {"startDate": "$d", "unit": "month", "amount": 1}}"#,
            r#"{"d": {"$date": "2020-12-31T12:10:05Z"}}"#,
            r#"{"$date": "2021-01-31T12:10:05Z"}"#,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$d", "unit": "month", "amount": 2}}"#,
            r#"{"d": {"$date": "2020-12-31T12:10:05Z"}}"#,
            r#"{"$date": "2021-02-28T12:10:05Z"}"#,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$d", "unit": "day", "amount": 1, "timezone": "America/New_York"}}"#,
            r#"{"d": {"$date": "2021-03-13T12:00:00Z"}}"#,
            r#"{"$date": "2021-03-14T11:00:00Z"}"#,
        ),
        (
            r#"{"$dateAdd": {"startDate": "$d", "unit": "hour", "amount": 24, "timezone": "America/New_York"}}"#,
            r#"{"d": {"$date": "2021-03-13T12:00:00Z"}}"#,
            r#"{"$date": "2021-03-14T12:00:00Z"}"#,
        ),
        (
            r#"{"$dateSubtract": {"startDate": "$d", "unit": "year", "amount": 1}}"#,
            r#"{"d": {"$date": "2020-02-29T00:00:00Z"}}"#,
            r#"{"$date": "2019-02-28T00:00:00Z"}"#,
        ),
        (r#"{"$dateAdd": {"startDate": "$d", "unit": "eon", "amount": 1}}"#, DAY, "error 9"),
        (r#"{"$dateAdd": {"startDate": "$d", "unit": "day", "amount": 1.5}}"#, DAY, "error 5166405"),
        (r#"{"$dateAdd": {"startDate": "x", "unit": "day", "amount": 1}}"#, DAY, "error 5166403"),
        (
            r#"{"$dateAdd": {"startDate": "$d", "unit": "year", "amount": {"$numberLong": "9223372036854775807"}}}"#,
            DAY,
            "error 5166406",
        ),
        (r#"{"$dateAdd": {"startDate": "$d", "unit": "day"}}"#, DAY, "error 5166402"),
        (r#"{"$dateAdd": {"startDate": "$d", "unit": "day", "amount": null}}"#, DAY, "null"),
        (
            r#"{"$dateDiff": {"startDate": {"$date": "2020-12-31T23:00:00Z"}, "endDate": {"$date": "2021-01-01T00:00:00Z"}, "unit": "year"}}"#,
            "{}",
            r#"{"$numberLong": "1"}"#,
        ),
        (
            r#"{"$dateDiff": {"startDate": {"$date": "2021-01-01T00:00:00Z"}, "endDate": {"$date": "2021-01-10T00:00:00Z"}, "unit": "week"}}"#,
            "{}",
            r#"{"$numberLong": "2"}"#,
        ),
        (
            r#"{"$dateDiff": {"startDate": {"$date": "2021-01-01T00:00:00Z"}, "endDate": {"$date": "2021-01-10T00:00:00Z"}, "unit": "week", "startOfWeek": "monday"}}"#,
            "{}",
            r#"{"$numberLong": "1"}"#,
        ),
        (
            r#"{"$dateDiff": {"startDate": {"$date": "2021-03-14T05:00:00Z"}, "endDate": {"$date": "2021-03-15T04:00:00Z"}, "unit": "day", "timezone": "America/New_York"}}"#,
            "{}",
            r#"{"$numberLong": "1"}"#,
        ),
        (
            r#"{"$dateDiff": {"startDate": {"$date": "2021-03-14T05:59:59Z"}, "endDate": {"$date": "2021-03-14T06:00:00Z"}, "unit": "hour"}}"#,
            "{}",
            r#"{"$numberLong": "1"}"#,
        ),
        (
            r#"{"$dateDiff": {"startDate": null, "endDate": {"$date": "2021-01-10T00:00:00Z"}, "unit": "week"}}"#,
            "{}",
            "null",
        ),
        (
            r#"{"$dateDiff": {"startDate": 5, "endDate": {"$date": "2021-01-10T00:00:00Z"}, "unit": "week"}}"#,
            "{}",
            "error 5166307",
        ),
        (
            r#"{"$dateTrunc": {"date": {"$date": "2021-03-20T11:30:05Z"}, "unit": "hour"}}"#,
            "{}",
            r#"{"$date": "2021-03-20T11:00:00Z"}"#,
        ),
        (
            r#"{"$dateTrunc": {"date": {"$date": "2021-03-20T11:30:05Z"}, "unit": "hour", "binSize": 2}}"#,
            "{}",
            r#"{"$date": "2021-03-20T10:00:00Z"}"#,
        ),
        (
            r#"{"$dateTrunc": {"date": {"$date": "2021-03-20T11:30:05Z"}, "unit": "week", "binSize": 2, "timezone": "America/Los_Angeles", "startOfWeek": "Monday"}}"#,
            "{}",
            r#"{"$date": "2021-03-15T07:00:00Z"}"#,
        ),
        (
            r#"{"$dateTrunc": {"date": {"$date": "2021-03-20T11:30:05Z"}, "unit": "quarter", "binSize": 2}}"#,
            "{}",
            r#"{"$date": "2021-01-01T00:00:00Z"}"#,
        ),
        (
            r#"{"$dateTrunc": {"date": {"$date": "2021-03-20T11:30:05Z"}, "unit": "day", "binSize": 0}}"#,
            "{}",
            "error 5439018",
        ),
        (r#"{"$dateTrunc": {"date": 5, "unit": "day"}}"#, "{}", "error 5439012"),
    ]);
}

#[test]
fn dates_are_written_and_read() {
    check(&[
        (r#"{"$dateToString": {"format": "%Y-%m-%d", "date": "$d"}}"#, DAY, r#""2017-06-19""#),
        (r#"{"$dateToString": {"date": "$d"}}"#, DAY, r#""2017-06-19T15:13:25.713Z""#),
        (
            r#"{"$dateToString": {"date": "$d", "format": "%H:%M:%S:%L%z", "timezone": "America/New_York"}}"#,
            DAY,
            r#""11:13:25:713-0400""#,
        ),
        (
            r#"{"$dateToString": {"date": "$d", "format": "%j %w %u %U %V %G %B %b %Z %%"}}"#,
            DAY,
            r#""170 2 1 25 25 2017 June Jun 0 %""#,
        ),
        (r#"{"$dateToString": {"date": null, "onNull": "none"}}"#, "{}", r#""none""#),
        (r#"{"$dateToString": {"date": "$d", "format": "%q"}}"#, DAY, "error 18536"),
        (r#"{"$dateToString": {"date": "$d", "format": "%"}}"#, DAY, "error 18535"),
        (r#"{"$dateToString": {"date": "$d", "format": 5}}"#, DAY, "error 18533"),
        (r#"{"$dateToString": {"format": "%Y"}}"#, DAY, "error 18628"),
        (
            r#"{"$dateFromString": {"dateString": "2017-02-08T12:10:40.787"}}"#,
            "{}",
            r#"{"$date": "2017-02-08T12:10:40.787Z"}"#,
        ),
        (
            r#"{"$dateFromString": {"dateString": "2017-02-08T12:10:40.787", "timezone": "America/New_York"}}"#,
            "{}",
            r#"{"$date": "2017-02-08T17:10:40.787Z"}"#,
        ),
        (
            r#"{"$dateFromString": {"dateString": "2017-02-08T12:10:40.787Z", "timezone": "America/New_York"}}"#,
            "{}",
            "error 241",
        ),
        (
            r#"{"$dateFromString": {"dateString": "2017-02-08T12:10:40+02:00"}}"#,
            "{}",
            r#"{"$date": "2017-02-08T10:10:40Z"}"#,
        ),
        (
            r#"{"$dateFromString": {"dateString": "06-15-2018", "format": "%m-%d-%Y"}}"#,
            "{}",
            r#"{"$date": "2018-06-15T00:00:00Z"}"#,
        ),
        (
            r#"{"$dateFromString": {"dateString": "15-Jun-2018", "format": "%d-%b-%Y"}}"#,
            "{}",
            r#"{"$date": "2018-06-15T00:00:00Z"}"#,
        ),
        (r#"{"$dateFromString": {"dateString": "2018-02-30"}}"#, "{}", "error 241"),
        (r#"{"$dateFromString": {"dateString": "2018-02"}}"#, "{}", "error 241"),
        (r#"{"$dateFromString": {"dateString": "nonsense", "onError": "bad"}}"#, "{}", r#""bad""#),
        (r#"{"$dateFromString": {"dateString": null, "onNull": "none"}}"#, "{}", r#""none""#),
        (r#"{"$dateFromString": {"dateString": 5}}"#, "{}", "error 241"),
    ]);
}

#[test]
fn texts_are_read_by_every_specifier() {
    let read = |text: &str, format: &str| {
        format!(r#"{{"$dateFromString": {{"dateString": "{text}", "format": "{format}"}}}}"#)
    };
    let date = |iso: &str| format!(r#"{{"$date": "{iso}"}}"#);
    let rows = [
        (read("06-15-2018", "%m-%d-%Y"), date("2018-06-15T00:00:00Z")),
        (read("2018-06-15T10:30:45.123", "%Y-%m-%dT%H:%M:%S.%L"), date("2018-06-15T10:30:45.123Z")),
        (read("jan 15 2020", "%b %d %Y"), date("2020-01-15T00:00:00Z")),
        (read("january 15 2020", "%B %d %Y"), date("2020-01-15T00:00:00Z")),
        (read("20170208", "%Y%m%d"), date("2017-02-08T00:00:00Z")),
        (read("2024", "%G"), date("2024-01-01T00:00:00Z")),
        (read("2024-W24", "%G-W%V"), date("2024-06-10T00:00:00Z")),
        (read("2024-W24-6", "%G-W%V-%u"), date("2024-06-15T00:00:00Z")),
        (read("2024-06-15 +0530", "%Y-%m-%d %z"), date("2024-06-14T18:30:00Z")),
        (read("2024-06-15 +330", "%Y-%m-%d %Z"), date("2024-06-14T18:30:00Z")),
        (read("2023 167", "%Y %j"), date("2023-06-16T00:00:00Z")),
        (read("2024 167", "%Y %j"), date("2024-06-15T00:00:00Z")),
        (read("100% 2024-06-15", "100%% %Y-%m-%d"), date("2024-06-15T00:00:00Z")),
        (read("2017-02-08", "%Q"), "error 18536".to_owned()),
        (read("2024 23 6", "%Y %U %w"), "error 18536".to_owned()),
        (read("2017-02-08", "%m-%d-%Y"), "error 241".to_owned()),
        (
            r#"{"$dateFromString": {"dateString": "2017-02-08T12:10:40.787", "timezone": "America/New_York"}}"#
                .to_owned(),
            date("2017-02-08T17:10:40.787Z"),
        ),
        (r#"{"$dateFromString": {"dateString": null, "onError": 1, "onNull": 2}}"#.to_owned(), "2".to_owned()),
    ];
    check(&rows.iter().map(|(e, v)| (&**e, "{}", &**v)).collect::<Vec<_>>());
}

#[test]
fn every_specifier_writes_its_part() {
    let document = r#"{"d": {"$date": "2024-06-15T10:30:45.123Z"}, "e": {"$date": "2024-01-05T08:05:03.001Z"}}"#;
    let write = |field: &str, more: &str| format!(r#"{{"$dateToString": {{"date": "${field}"{more}}}}}"#);
    let format = |format: &str| format!(r#", "format": "{format}""#);
    let mut rows = Vec::new();
    for (specifier, text) in [
        ("%Y", "2024"),
        ("%m", "06"),
        ("%d", "15"),
        ("%H", "10"),
        ("%M", "30"),
        ("%S", "45"),
        ("%L", "123"),
        ("%j", "167"),
        ("%u", "6"),
        ("%w", "7"),
        ("%%", "%"),
        ("%G", "2024"),
        ("%V", "24"),
        ("%U", "23"),
        ("%b", "Jun"),
        ("%B", "June"),
        ("%z", "+0000"),
        ("%Z", "0"),
        ("", ""),
        ("hello", "hello"),
        ("100%%", "100%"),
    ] {
        rows.push((write("d", &format(specifier)), format!("{text:?}")));
    }
    for (specifier, text) in
        [("%d", "05"), ("%m", "01"), ("%H", "08"), ("%M", "05"), ("%S", "03"), ("%L", "001"), ("%j", "005")]
    {
        rows.push((write("e", &format(specifier)), format!("{text:?}")));
    }
    rows.push((write("d", ""), r#""2024-06-15T10:30:45.123Z""#.to_owned()));
    rows.push((write("d", r#", "timezone": "UTC""#), r#""2024-06-15T10:30:45.123Z""#.to_owned()));
    // Elsewhere than in UTC there is no Z.
    rows.push((write("d", r#", "timezone": "America/New_York""#), r#""2024-06-15T06:30:45.123""#.to_owned()));
    rows.push((write("d", &format("%x")), "error 18536".to_owned()));
    rows.push((write("d", r#", "format": true"#), "error 18533".to_owned()));
    check(&rows.iter().map(|(e, v)| (&**e, document, &**v)).collect::<Vec<_>>());
}

#[test]
fn dates_are_read_as_people_write_them() {
    let read = |text: &str| format!(r#"{{"$dateFromString": {{"dateString": "{text}"}}}}"#);
    let date = |iso: &str| format!(r#"{{"$date": "{iso}"}}"#);
    let rows = [
        (read("oct 20 2020"), date("2020-10-20T00:00:00Z")),
        (read("20 October 2020"), date("2020-10-20T00:00:00Z")),
        (read("October 20th, 2020 12:05"), date("2020-10-20T12:05:00Z")),
        (read("WED jan 31 12:05:28 +03:30 1996"), date("1996-01-31T08:35:28Z")),
        (read("Wed, 31 Jan 1996 12:05:28.25 GMT"), date("1996-01-31T12:05:28.250Z")),
        (read("feb 30 2020"), "error 241".to_owned()),
        (read("oct 2020"), "error 241".to_owned()),
        (read("oct oct 20 2020"), "error 241".to_owned()),
        (read("oct 20 2020 25:00"), "error 241".to_owned()),
        (read("oct 20 2020 soon"), "error 241".to_owned()),
        (read(""), "error 241".to_owned()),
        (read("2017-13-01"), "error 241".to_owned()),
        (read("1900-02-29"), "error 241".to_owned()),
        (read("9999-12-31T23:59:59.999Z"), date("9999-12-31T23:59:59.999Z")),
    ];
    check(&rows.iter().map(|(e, v)| (&**e, "{}", &**v)).collect::<Vec<_>>());
}
