//! Strings and regular expressions.

use crate::check;

#[test]
fn strings_join_split_and_change_case() {
    check(&[
        (r#"{"$concat": ["a", "$b", "c"]}"#, r#"{"b": "-"}"#, r#""a-c""#),
        (r#"{"$concat": ["a", "$b"]}"#, "{}", "null"),
        (r#"{"$concat": ["a", "$b"]}"#, r#"{"b": 5}"#, "error 16702"),
        (r#"{"$concat": []}"#, "{}", r#""""#),
        (r#"{"$toUpper": "abc\u00e9"}"#, "{}", "\"ABC\\u00e9\""),
        (r#"{"$toLower": null}"#, "{}", r#""""#),
        (r#"{"$toLower": 5}"#, "{}", r#""5""#),
        (r#"{"$toLower": true}"#, "{}", "error 16007"),
        (r#"{"$strcasecmp": ["13Q1", "13q4"]}"#, "{}", "-1"),
        (r#"{"$strcasecmp": ["ABC", "abc"]}"#, "{}", "0"),
        (r#"{"$split": ["June-15-2013", "-"]}"#, "{}", r#"["June", "15", "2013"]"#),
        (r#"{"$split": ["abc", "x"]}"#, "{}", r#"["abc"]"#),
        (r#"{"$split": ["abc", ""]}"#, "{}", "error 40087"),
        (r#"{"$split": ["$a", "-"]}"#, r#"{"a": 5}"#, "error 40085"),
        (r#"{"$split": ["a", 5]}"#, "{}", "error 10503900"),
        (r#"{"$split": [null, "-"]}"#, "{}", "null"),
    ]);
}

#[test]
fn lengths_and_parts_count_code_points_or_bytes() {
    check(&[
        (r#"{"$strLenCP": "caf\u00e9"}"#, "{}", "4"),
        (r#"{"$strLenBytes": "caf\u00e9"}"#, "{}", "5"),
        (r#"{"$strLenCP": "$a"}"#, "{}", "error 34471"),
        (r#"{"$strLenBytes": null}"#, "{}", "error 34473"),
        (r#"{"$substrCP": ["caf\u00e9teria", 3, 2]}"#, "{}", "\"\\u00e9t\""),
        (r#"{"$substrCP": ["abc", 5, 2]}"#, "{}", r#""""#),
        (r#"{"$substrCP": ["abc", -1, 2]}"#, "{}", "error 34455"),
        (r#"{"$substrCP": ["abc", 1, -2]}"#, "{}", "error 34454"),
        (r#"{"$substrCP": ["abc", "x", 1]}"#, "{}", "error 34450"),
        (r#"{"$substrBytes": ["caf\u00e9", 3, 2]}"#, "{}", "\"\\u00e9\""),
        (r#"{"$substrBytes": ["caf\u00e9", 4, 1]}"#, "{}", "error 28656"),
        (r#"{"$substrBytes": ["caf\u00e9", 3, 1]}"#, "{}", "error 28657"),
        (r#"{"$substrBytes": ["abc", 1, -1]}"#, "{}", r#""bc""#),
        (r#"{"$substrBytes": ["abc", -1, 1]}"#, "{}", "error 50752"),
        (r#"{"$substr": [null, 0, 1]}"#, "{}", r#""""#),
        (r#"{"$substr": [12345, 1, 2]}"#, "{}", r#""23""#),
        (r#"{"$indexOfCP": ["caf\u00e9teria", "t"]}"#, "{}", "4"),
        (r#"{"$indexOfBytes": ["caf\u00e9teria", "t"]}"#, "{}", "5"),
        (r#"{"$indexOfCP": ["foo.bar.fi", ".", 5]}"#, "{}", "7"),
        (r#"{"$indexOfCP": ["vanilla", "ll", 0, 5]}"#, "{}", "-1"),
        (r#"{"$indexOfCP": ["vanilla", "ll", 12]}"#, "{}", "-1"),
        (r#"{"$indexOfCP": ["vanilla", "ll", -1]}"#, "{}", "error 40097"),
        (r#"{"$indexOfCP": [null, "x"]}"#, "{}", "null"),
        (r#"{"$indexOfCP": [5, "x"]}"#, "{}", "error 40093"),
        (r#"{"$indexOfBytes": ["x", 5]}"#, "{}", "error 40092"),
        // Positions are bytes, inside a character too ("the UTF-8 byte index"): nothing is found right where it starts.
        (r#"{"$indexOfBytes": ["\u00e9a", "", 1]}"#, "{}", "1"),
        (r#"{"$indexOfBytes": ["\u00e9a", "a", 1]}"#, "{}", "2"),
        (r#"{"$indexOfBytes": ["\u00e9a", "\u00e9", 1]}"#, "{}", "-1"),
        (r#"{"$indexOfBytes": ["\u00e9\u00e9", "\u00e9", 0, 3]}"#, "{}", "0"),
        (r#"{"$indexOfBytes": ["a\u00e9", "\u00e9", 0, 2]}"#, "{}", "-1"),
        (r#"{"$indexOfBytes": ["\u00e9a", "", 3]}"#, "{}", "3"),
        (r#"{"$indexOfBytes": ["\u00e9a", "", 4]}"#, "{}", "-1"),
    ]);
}

#[test]
fn trimming_and_replacing() {
    check(&[
        (r#"{"$trim": {"input": " \n good  bye \t  "}}"#, "{}", r#""good  bye""#),
        (r#"{"$trim": {"input": "ggggoodbyeeeee", "chars": "ge"}}"#, "{}", r#""oodby""#),
        (r#"{"$ltrim": {"input": "  x "}}"#, "{}", r#""x ""#),
        (r#"{"$rtrim": {"input": " x  "}}"#, "{}", r#"" x""#),
        (r#"{"$trim": {"input": "x", "chars": null}}"#, "{}", "null"),
        (r#"{"$trim": {"input": "$a"}}"#, r#"{"a": 5}"#, "error 50699"),
        (r#"{"$trim": {"input": "x", "chars": 5}}"#, "{}", "error 50700"),
        (r#"{"$trim": {"chars": "x"}}"#, "{}", "error 50695"),
        (
            r#"{"$replaceOne": {"input": "blue paint blue", "find": "blue", "replacement": "red"}}"#,
            "{}",
            r#""red paint blue""#,
        ),
        (
            r#"{"$replaceAll": {"input": "blue paint blue", "find": "blue", "replacement": "red"}}"#,
            "{}",
            r#""red paint red""#,
        ),
        (r#"{"$replaceAll": {"input": "$a", "find": "x", "replacement": "y"}}"#, "{}", "null"),
        (r#"{"$replaceAll": {"input": 5, "find": "x", "replacement": "y"}}"#, "{}", "error 10503904"),
        (r#"{"$replaceAll": {"input": "x", "find": 5, "replacement": "y"}}"#, "{}", "error 10503901"),
        (r#"{"$replaceAll": {"input": "x", "find": "x", "replacement": 5}}"#, "{}", "error 10503902"),
    ]);
}

#[test]
fn patterns_match_find_and_find_all() {
    check(&[
        (r#"{"$regexMatch": {"input": "First line", "regex": "^f", "options": "i"}}"#, "{}", "true"),
        (r#"{"$regexMatch": {"input": "$a", "regex": "x"}}"#, "{}", "false"),
        (r#"{"$regexMatch": {"input": 5, "regex": "x"}}"#, "{}", "error 51104"),
        (r#"{"$regexMatch": {"input": "x", "regex": 5}}"#, "{}", "error 51105"),
        (r#"{"$regexMatch": {"input": "x", "regex": "x", "options": "q"}}"#, "{}", "error 51108"),
        (r#"{"$regexMatch": {"input": "x", "regex": null}}"#, "{}", "false"),
        (
            r#"{"$regexFind": {"input": "caf\u00e9teria", "regex": "t(.)"}}"#,
            "{}",
            r#"{"match": "te", "idx": 4, "captures": ["e"]}"#,
        ),
        (r#"{"$regexFind": {"input": "abc", "regex": "x"}}"#, "{}", "null"),
        (
            r#"{"$regexFind": {"input": "ab", "regex": "(a)|(b)"}}"#,
            "{}",
            r#"{"match": "a", "idx": 0, "captures": ["a", null]}"#,
        ),
        (
            r#"{"$regexFindAll": {"input": "First line", "regex": "[a-z]i"}}"#,
            "{}",
            r#"[{"match": "li", "idx": 6, "captures": []}]"#,
        ),
        (
            r#"{"$regexFindAll": {"input": "aba", "regex": "a"}}"#,
            "{}",
            r#"[{"match": "a", "idx": 0, "captures": []}, {"match": "a", "idx": 2, "captures": []}]"#,
        ),
        (r#"{"$regexFindAll": {"input": null, "regex": "a"}}"#, "{}", "[]"),
        (r#"{"$regexMatch": {"input": "abc", "regex": "$p"}}"#, r#"{"p": "B"}"#, "false"),
        (
            r#"{"$regexMatch": {"input": "abc", "regex": {"$regularExpression": {"pattern": "B", "options": "i"}}}}"#,
            "{}",
            "true",
        ),
        (
            r#"{"$regexMatch": {"input": "abc", "regex": {"$regularExpression": {"pattern": "B", "options": "i"}}, "options": "i"}}"#,
            "{}",
            "error 51107",
        ),
        (r#"{"$regexMatch": {"input": "abc"}}"#, "{}", "error 31023"),
    ]);
}
