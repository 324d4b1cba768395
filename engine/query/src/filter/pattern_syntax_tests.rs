//! Patterns of Perl's against what they mean, and those that are refused.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
use super::*;
use regex::bytes::Regex;

/// Patterns of Perl's, a text, and whether it matches there.
const CASES: &[(&str, &str, bool)] = &[
    ("^wal", "walnut", true),
    ("abc$", "abc\n", true),
    ("abc$", "abc\n\n", false),
    (r"abc\z", "abc\n", false),
    (r"^\d+$", "\u{663}", false),
    (r"^\w+$", "\u{e9}", false),
    (r"\bcat\b", "a cat!", true),
    ("[[]", "[", true),
    ("[a&&b]", "&", true),
    ("[a--b]", "-", false),
    ("[]a]", "]", true),
    ("[^]a]", "]", false),
    (r"[\w-]", "-", true),
    (r"[\w-.]", "-", true),
    ("[a-]", "-", true),
    ("x{,5}", "x{,5}", true),
    ("x{2}", "xx", true),
    ("{a}", "{a}", true),
    (r"\Qa.b\E.", "a.bc", true),
    (r"\Qa.b\E", "axb", false),
    (r"\x41\x{42}\103", "ABC", false),
    (r"\x41\x{42}", "AB", true),
    (r"[\101]", "A", true),
    (r"\e\t\a", "\u{1b}\t\u{7}", true),
    (r"\h", "\u{a0}", true),
    (r"a\/b", "a/b", true),
    (r"\<a\>", "<a>", true),
    (r"(?<year>\d{4})-(?P<m>\d\d)", "2024-05", true),
    ("(?i)ABC", "abc", true),
    ("a(?i:B)c", "abc", true),
    ("(?x) a b # comment (\n c", "abc", true),
    ("[ #]", "#", true),
    ("(?#a comment)b", "b", true),
    (r"[[:alpha:]]+", "abc", true),
    (r"\p{Lu}", "\u{c9}", true),
    (r"\p{^Lu}", "\u{c9}", false),
    (r"a.c", "a\nc", false),
    (r"(?s)a.c", "a\nc", true),
    ("(?m)^b$", "a\nb\nc", true),
    ("a|b$", "b\n", true),
    (".*?x", "aax", true),
    ("~-&#", "~-&#", true),
];

#[test]
fn translated_patterns_match_as_in_perl() {
    for (pattern, text, expected) in CASES {
        let Ok((translated, _)) = translate(pattern, false, false) else {
            assert!(!expected, "{pattern} is refused");
            continue;
        };
        let regex = Regex::new(&translated).unwrap();
        assert_eq!(regex.is_match(text.as_bytes()), *expected, "{pattern} as {translated} on {text:?}");
    }
}

#[test]
fn what_cannot_run_in_linear_time_is_named() {
    for (pattern, word) in [
        (r"(a)\1", "back-reference"),
        (r"\k<n>", "back-reference"),
        ("(?P=n)", "back-reference"),
        ("a(?=b)", "look-ahead"),
        ("a(?!b)", "negative look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "negative look-behind"),
        ("(?>a)", "atomic"),
        ("a++", "possessive"),
        ("a*+", "possessive"),
        ("a{2}+", "possessive"),
        ("(?R)", "recursion"),
        ("(?1)", "recursion"),
        ("(?(1)a|b)", "conditional"),
        ("(*UTF8)a", "verb"),
        (r"\Ka", r"\K"),
    ] {
        let message = translate(pattern, false, false).unwrap_err();
        assert!(message.contains(word), "{pattern}: {message}");
    }
}
