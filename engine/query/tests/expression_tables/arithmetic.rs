//! Arithmetic, bitwise operators, trigonometry.

use crate::check;

#[test]
fn sums_take_the_widest_type_and_one_date() {
    check(&[
        (r#"{"$add": [1, 2]}"#, "{}", "3"),
        (r#"{"$add": []}"#, "{}", "0"),
        (r#"{"$add": ["$a", 2.5]}"#, r#"{"a": 1}"#, "3.5"),
        (r#"{"$add": ["$a", 1]}"#, r#"{"a": 2147483647}"#, r#"{"$numberLong": "2147483648"}"#),
        (r#"{"$add": ["$a", 1]}"#, r#"{"a": {"$numberLong": "9223372036854775807"}}"#, "9223372036854775808.0"),
        (r#"{"$add": ["$a", 1]}"#, r#"{"a": {"$numberDecimal": "0.1"}}"#, r#"{"$numberDecimal": "1.1"}"#),
        (r#"{"$add": ["$a", 1]}"#, r#"{"a": null}"#, "null"),
        (r#"{"$add": ["$missing", 1]}"#, "{}", "null"),
        (r#"{"$add": ["$a", 1]}"#, r#"{"a": "x"}"#, "error 14"),
        (r#"{"$add": ["$a", 1]}"#, r#"{"a": [1]}"#, "error 14"),
        (
            r#"{"$add": ["$a", 1000]}"#,
            r#"{"a": {"$date": "2026-01-01T00:00:00Z"}}"#,
            r#"{"$date": "2026-01-01T00:00:01Z"}"#,
        ),
        (r#"{"$add": ["$a", "$a"]}"#, r#"{"a": {"$date": "2026-01-01T00:00:00Z"}}"#, "error 16612"),
        (r#"{"$subtract": [5, 3]}"#, "{}", "2"),
        (
            r#"{"$subtract": ["$a", "$b"]}"#,
            r#"{"a": {"$date": "2026-01-02T00:00:00Z"}, "b": {"$date": "2026-01-01T00:00:00Z"}}"#,
            r#"{"$numberLong": "86400000"}"#,
        ),
        (
            r#"{"$subtract": ["$a", 1000]}"#,
            r#"{"a": {"$date": "2026-01-01T00:00:01Z"}}"#,
            r#"{"$date": "2026-01-01T00:00:00Z"}"#,
        ),
        (r#"{"$subtract": [1, "$a"]}"#, r#"{"a": {"$date": "2026-01-01T00:00:01Z"}}"#, "error 14"),
        (r#"{"$subtract": [1]}"#, "{}", "error 16020"),
        (r#"{"$multiply": [3, 4]}"#, "{}", "12"),
        (r#"{"$multiply": ["$a", 2]}"#, r#"{"a": 2000000000}"#, r#"{"$numberLong": "4000000000"}"#),
        (r#"{"$multiply": ["$a", 2]}"#, r#"{"a": "x"}"#, "error 14"),
        (r#"{"$multiply": ["$a", null]}"#, r#"{"a": 3}"#, "null"),
    ]);
}

#[test]
fn division_gives_doubles_and_refuses_zero() {
    check(&[
        (r#"{"$divide": [80, 8]}"#, "{}", "10.0"),
        (r#"{"$divide": ["$a", 4]}"#, r#"{"a": {"$numberDecimal": "1"}}"#, r#"{"$numberDecimal": "0.25"}"#),
        (r#"{"$divide": [1, "$a"]}"#, r#"{"a": 0}"#, "error 2"),
        (r#"{"$divide": [1, "$a"]}"#, r#"{"a": "x"}"#, "error 14"),
        (r#"{"$divide": [1, "$a"]}"#, "{}", "null"),
        (r#"{"$mod": [80, 7]}"#, "{}", "3"),
        (r#"{"$mod": [-7, 3]}"#, "{}", "-1"),
        (r#"{"$mod": [5.5, 2]}"#, "{}", "1.5"),
        (r#"{"$mod": [5, 2.0]}"#, "{}", "1"),
        (r#"{"$mod": [1, "$a"]}"#, r#"{"a": 0}"#, "error 16610"),
        (r#"{"$mod": [1, "$a"]}"#, r#"{"a": "x"}"#, "error 16611"),
        (r#"{"$mod": [{"$numberDecimal": "1E+6000"}, 7]}"#, "{}", r#"{"$numberDecimal": "1"}"#),
    ]);
}

#[test]
fn rounding_follows_the_even_digit() {
    check(&[
        (r#"{"$round": [2.5]}"#, "{}", "2.0"),
        (r#"{"$round": [3.5, 0]}"#, "{}", "4.0"),
        (r#"{"$round": [19.25, 1]}"#, "{}", "19.2"),
        (r#"{"$round": [28.73, 1]}"#, "{}", "28.7"),
        (r#"{"$round": [1234, -2]}"#, "{}", "1200"),
        (r#"{"$round": [1250, -2]}"#, "{}", "1200"),
        (r#"{"$round": [-1350, -2]}"#, "{}", "-1400"),
        (r#"{"$round": ["$a", 101]}"#, r#"{"a": 1}"#, "error 51083"),
        (r#"{"$round": ["$a", 1.5]}"#, r#"{"a": 1}"#, "error 51082"),
        (r#"{"$round": ["$a"]}"#, r#"{"a": "x"}"#, "error 51081"),
        (r#"{"$round": ["$a", 1]}"#, r#"{"a": {"$numberDecimal": "2.25"}}"#, r#"{"$numberDecimal": "2.2"}"#),
        (r#"{"$trunc": [7.85, 1]}"#, "{}", "7.8"),
        (r#"{"$trunc": [-7.85]}"#, "{}", "-7.0"),
        (r#"{"$trunc": [45, -1]}"#, "{}", "40"),
        (r#"{"$ceil": 7.8}"#, "{}", "8.0"),
        (r#"{"$ceil": -2.8}"#, "{}", "-2.0"),
        (r#"{"$floor": -2.8}"#, "{}", "-3.0"),
        (r#"{"$floor": 5}"#, "{}", "5"),
        (r#"{"$floor": "$a"}"#, r#"{"a": "x"}"#, "error 28765"),
        (r#"{"$abs": -5}"#, "{}", "5"),
        (r#"{"$abs": "$a"}"#, r#"{"a": -2147483648}"#, r#"{"$numberLong": "2147483648"}"#),
        (r#"{"$abs": "$a"}"#, r#"{"a": {"$numberLong": "-9223372036854775808"}}"#, "error 28680"),
        (r#"{"$abs": null}"#, "{}", "null"),
    ]);
}

#[test]
fn powers_and_logarithms_know_their_domain() {
    check(&[
        (r#"{"$pow": [5, 2]}"#, "{}", "25"),
        (r#"{"$pow": [5, 0]}"#, "{}", "1"),
        (r#"{"$pow": [5, -2]}"#, "{}", "0.04"),
        (r#"{"$pow": [-5, 0.5]}"#, "{}", r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$pow": [2, 31]}"#, "{}", r#"{"$numberLong": "2147483648"}"#),
        (r#"{"$pow": [2, 63]}"#, "{}", "9223372036854775808.0"),
        (r#"{"$pow": [0, "$a"]}"#, r#"{"a": -1}"#, "error 28764"),
        (r#"{"$pow": ["$a", 1]}"#, r#"{"a": "x"}"#, "error 28762"),
        (r#"{"$pow": [1, "$a"]}"#, r#"{"a": "x"}"#, "error 28763"),
        (r#"{"$sqrt": 25}"#, "{}", "5.0"),
        (r#"{"$sqrt": "$a"}"#, r#"{"a": -1}"#, "error 28714"),
        (r#"{"$sqrt": {"$numberDecimal": "2"}}"#, "{}", r#"{"$numberDecimal": "1.414213562373095048801688724209698"}"#),
        (r#"{"$exp": 0}"#, "{}", "1.0"),
        (r#"{"$ln": 1}"#, "{}", "0.0"),
        (r#"{"$ln": "$a"}"#, r#"{"a": 0}"#, "error 28766"),
        (r#"{"$log10": 100}"#, "{}", "2.0"),
        (r#"{"$log10": "$a"}"#, r#"{"a": -1}"#, "error 28761"),
        (r#"{"$log": [100, 10]}"#, "{}", "2.0"),
        (r#"{"$log": ["$a", 10]}"#, r#"{"a": 0}"#, "error 28758"),
        (r#"{"$log": [10, "$a"]}"#, r#"{"a": 1}"#, "error 28759"),
        (r#"{"$log": ["$a", 10]}"#, r#"{"a": "x"}"#, "error 28756"),
        (r#"{"$log": [1, "$a"]}"#, r#"{"a": "x"}"#, "error 28757"),
    ]);
}

#[test]
fn accumulators_work_on_one_array_or_on_arguments() {
    check(&[
        (r#"{"$sum": "$a"}"#, r#"{"a": [1, 2, "x", 3.5]}"#, "6.5"),
        (r#"{"$sum": ["$a", "$b"]}"#, r#"{"a": [1, 2], "b": 4}"#, "4"),
        // Exact, whatever the order; a double beside a decimal is what it is, not what it prints as.
        (r#"{"$sum": "$a"}"#, r#"{"a": [1e308, 1e308, -1e308, 1]}"#, "1e308"),
        (r#"{"$avg": "$a"}"#, r#"{"a": [1e16, 1, -1e16, 3]}"#, "1.0"),
        (
            r#"{"$sum": "$a"}"#,
            r#"{"a": [0.1, {"$numberDecimal": "1"}]}"#,
            r#"{"$numberDecimal": "1.100000000000000005551115123125783"}"#,
        ),
        (r#"{"$avg": "$a"}"#, r#"{"a": [1, 2, 4, 5]}"#, "3.0"),
        (r#"{"$avg": "$a"}"#, r#"{"a": ["x"]}"#, "null"),
        (r#"{"$max": "$a"}"#, r#"{"a": [1, null, 7, 3]}"#, "7"),
        (r#"{"$min": ["$a", 2]}"#, r#"{"a": 5}"#, "2"),
        (r#"{"$min": "$missing"}"#, "{}", "null"),
        (r#"{"$stdDevPop": "$a"}"#, r#"{"a": [2, 4, 4, 4, 5, 5, 7, 9]}"#, "2.0"),
        (r#"{"$stdDevSamp": "$a"}"#, r#"{"a": [1]}"#, "null"),
    ]);
}

#[test]
fn bits_are_those_of_ints_and_longs() {
    check(&[
        (r#"{"$bitAnd": [3, 5]}"#, "{}", "1"),
        (r#"{"$bitOr": [3, 5]}"#, "{}", "7"),
        (r#"{"$bitXor": [3, 5]}"#, "{}", "6"),
        (r#"{"$bitNot": 5}"#, "{}", "-6"),
        (r#"{"$bitAnd": []}"#, "{}", "-1"),
        (r#"{"$bitOr": [1, {"$numberLong": "4294967296"}]}"#, "{}", r#"{"$numberLong": "4294967297"}"#),
        (r#"{"$bitOr": [1, null]}"#, "{}", "null"),
        (r#"{"$bitOr": [1, "$a"]}"#, r#"{"a": 1.5}"#, "error 14"),
    ]);
}

#[test]
fn angles_are_radians() {
    check(&[
        (r#"{"$sin": 0}"#, "{}", "0.0"),
        (r#"{"$cos": 0}"#, "{}", "1.0"),
        (r#"{"$degreesToRadians": 180}"#, "{}", "3.141592653589793"),
        (r#"{"$acos": "$a"}"#, r#"{"a": 3}"#, "error 50989"),
        (r#"{"$sin": {"$numberDouble": "Infinity"}}"#, "{}", "error 50989"),
        (r#"{"$sin": "$a"}"#, r#"{"a": "x"}"#, "error 28765"),
        (r#"{"$atan2": [1, "$a"]}"#, r#"{"a": null}"#, "null"),
        (r#"{"$atan2": [0, 1]}"#, "{}", "0.0"),
        (r#"{"$tanh": null}"#, "{}", "null"),
    ]);
}

/// From another implementation of the same standard: Python's `decimal` with 34 digits.
#[test]
fn powers_and_logarithms_of_decimals() {
    check(&[
        (r#"{"$exp": {"$numberDecimal": "0"}}"#, "{}", r#"{"$numberDecimal": "1"}"#),
        (r#"{"$exp": {"$numberDecimal": "-0"}}"#, "{}", r#"{"$numberDecimal": "1"}"#),
        (r#"{"$exp": {"$numberDecimal": "1"}}"#, "{}", r#"{"$numberDecimal": "2.718281828459045235360287471352662"}"#),
        (
            r#"{"$exp": {"$numberDecimal": "-1"}}"#,
            "{}",
            r#"{"$numberDecimal": "0.3678794411714423215955237701614609"}"#,
        ),
        (
            r#"{"$exp": {"$numberDecimal": "0.5"}}"#,
            "{}",
            r#"{"$numberDecimal": "1.648721270700128146848650787814164"}"#,
        ),
        (
            r#"{"$exp": {"$numberDecimal": "2.5"}}"#,
            "{}",
            r#"{"$numberDecimal": "12.18249396070347343807017595116797"}"#,
        ),
        (r#"{"$exp": {"$numberDecimal": "10"}}"#, "{}", r#"{"$numberDecimal": "22026.46579480671651695790064528424"}"#),
        (
            r#"{"$exp": {"$numberDecimal": "-100"}}"#,
            "{}",
            r#"{"$numberDecimal": "3.720075976020835962959695803863118E-44"}"#,
        ),
        (
            r#"{"$exp": {"$numberDecimal": "1E-30"}}"#,
            "{}",
            r#"{"$numberDecimal": "1.000000000000000000000000000001000"}"#,
        ),
        (r#"{"$ln": {"$numberDecimal": "1"}}"#, "{}", r#"{"$numberDecimal": "0"}"#),
        (r#"{"$ln": {"$numberDecimal": "2"}}"#, "{}", r#"{"$numberDecimal": "0.6931471805599453094172321214581766"}"#),
        (r#"{"$ln": {"$numberDecimal": "10"}}"#, "{}", r#"{"$numberDecimal": "2.302585092994045684017991454684364"}"#),
        (
            r#"{"$ln": {"$numberDecimal": "0.5"}}"#,
            "{}",
            r#"{"$numberDecimal": "-0.6931471805599453094172321214581766"}"#,
        ),
        (
            r#"{"$ln": {"$numberDecimal": "1E+40"}}"#,
            "{}",
            r#"{"$numberDecimal": "92.10340371976182736071965818737457"}"#,
        ),
        (
            r#"{"$ln": {"$numberDecimal": "123456789"}}"#,
            "{}",
            r#"{"$numberDecimal": "18.63140176616801803319393334796320"}"#,
        ),
        (r#"{"$log10": {"$numberDecimal": "1"}}"#, "{}", r#"{"$numberDecimal": "0"}"#),
        (
            r#"{"$log10": {"$numberDecimal": "2"}}"#,
            "{}",
            r#"{"$numberDecimal": "0.3010299956639811952137388947244930"}"#,
        ),
        (r#"{"$log10": {"$numberDecimal": "1000"}}"#, "{}", r#"{"$numberDecimal": "3"}"#),
        (r#"{"$log10": {"$numberDecimal": "0.001"}}"#, "{}", r#"{"$numberDecimal": "-3"}"#),
        (r#"{"$log10": {"$numberDecimal": "1E+40"}}"#, "{}", r#"{"$numberDecimal": "40"}"#),
        (r#"{"$pow": [{"$numberDecimal": "2"}, {"$numberDecimal": "10"}]}"#, "{}", r#"{"$numberDecimal": "1024"}"#),
        (
            r#"{"$pow": [{"$numberDecimal": "2"}, {"$numberDecimal": "0.5"}]}"#,
            "{}",
            r#"{"$numberDecimal": "1.414213562373095048801688724209698"}"#,
        ),
        (r#"{"$pow": [{"$numberDecimal": "10"}, {"$numberDecimal": "-3"}]}"#, "{}", r#"{"$numberDecimal": "0.001"}"#),
        (
            r#"{"$pow": [{"$numberDecimal": "1.1"}, {"$numberDecimal": "2.2"}]}"#,
            "{}",
            r#"{"$numberDecimal": "1.233286300554662510989000587952065"}"#,
        ),
        (r#"{"$sqrt": {"$numberDecimal": "2"}}"#, "{}", r#"{"$numberDecimal": "1.414213562373095048801688724209698"}"#),
        (r#"{"$sqrt": {"$numberDecimal": "144"}}"#, "{}", r#"{"$numberDecimal": "12"}"#),
        (r#"{"$sqrt": {"$numberDecimal": "0.25"}}"#, "{}", r#"{"$numberDecimal": "0.5"}"#),
    ]);
}

#[test]
fn rounding_at_the_ends_of_the_types() {
    let decimal = |n: &str| format!(r#"{{"$numberDecimal": "{n}"}}"#);
    let rows = [
        (format!(r#"{{"$round": [{}, 2]}}"#, decimal("1.005")), decimal("1.00")),
        (r#"{"$round": [2.015, 2]}"#.to_owned(), "2.02".to_owned()),
        (format!(r#"{{"$round": [{}, 2]}}"#, decimal("2.015")), decimal("2.02")),
        (r#"{"$round": 2147483647}"#.to_owned(), "2147483647".to_owned()),
        (
            r#"{"$round": {"$numberLong": "-9223372036854775808"}}"#.to_owned(),
            r#"{"$numberLong": "-9223372036854775808"}"#.to_owned(),
        ),
        (r#"{"$round": 5e-324}"#.to_owned(), "0.0".to_owned()),
        (r#"{"$round": 1e308}"#.to_owned(), "1e308".to_owned()),
        (r#"{"$round": 9007199254740991.0}"#.to_owned(), "9007199254740991.0".to_owned()),
        (
            format!(r#"{{"$round": {}}}"#, decimal("9.999999999999999999999999999999999E+6144")),
            decimal("9.999999999999999999999999999999999E+6144"),
        ),
        (format!(r#"{{"$round": {}}}"#, decimal("1E-6143")), decimal("0")),
        (format!(r#"{{"$round": {}}}"#, decimal("1E+6144")), decimal("1E+6144")),
        (format!(r#"{{"$round": {}}}"#, decimal("1.0")), decimal("1")),
        (format!(r#"{{"$round": {}}}"#, decimal("1.00000000000000000000000000000000")), decimal("1")),
    ];
    check(&rows.iter().map(|(e, v)| (&**e, "{}", &**v)).collect::<Vec<_>>());
}
