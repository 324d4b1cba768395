//! The texts of `testdata/json`: what must be accepted, what must be refused, and what may be either.
//!
//! Each file is one text. Numbers that are accepted are compared with what the standard library reads.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "the texts are files of the repository")]

use std::path::PathBuf;

use quarrydb_jsonb::{
    Builder, ErrorKind, JsonbRef, Style, Value, equal, parse, parse_body, parse_document, print, validate,
};

fn texts(kind: &str) -> Vec<(String, Vec<u8>)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/json").join(kind);
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut texts: Vec<_> = files
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    texts.sort();
    assert!(texts.len() > 10, "{kind} has its texts");
    texts
}

fn printed(v: JsonbRef<'_>, style: Style) -> Vec<u8> {
    let mut out = Vec::new();
    print(v, style, &mut out);
    out
}

/// What holds for everything that is accepted.
fn check_accepted(name: &str, text: &[u8]) {
    let v = parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    validate(v.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let canonical = printed(v.view(), Style::Canonical);
    assert_eq!(parse(&canonical).unwrap(), v, "{name}: canonical text gives the same bytes");
    let relaxed = printed(v.view(), Style::Relaxed);
    assert!(equal(parse(&relaxed).unwrap().view(), v.view()), "{name}: relaxed text gives an equal value");
}

#[test]
fn what_is_json_is_accepted() {
    for (name, text) in texts("accept") {
        check_accepted(&name, &text);
    }
}

#[test]
fn what_is_not_is_refused_with_its_place() {
    for (name, text) in texts("reject") {
        let e = parse(&text).expect_err(&name);
        let value_fault = name.starts_with("value-");
        assert_eq!(e.is_syntax(), !value_fault, "{name}: {e}");
        let place = e.place().unwrap_or_else(|| panic!("{name}: {e} has no place"));
        assert!(place.offset <= text.len() && place.line >= 1 && place.column >= 1, "{name}: {place:?}");
    }
}

#[test]
fn what_may_be_either_holds_together() {
    for (name, text) in texts("either") {
        if parse(&text).is_ok() {
            check_accepted(&name, &text);
        }
    }
}

#[test]
fn every_text_cut_short_or_changed_is_answered() {
    for (name, text) in texts("accept").into_iter().chain(texts("reject")).filter(|(_, text)| text.len() < 400) {
        for end in 0..text.len() {
            if parse(&text[..end]).is_ok() {
                check_accepted(&name, &text[..end]);
            }
            for byte in [b'"', b'{', b'}', b'\\', b',', 0, 0xff, b'0'] {
                let mut changed = text.clone();
                changed[end] = byte;
                if parse(&changed).is_ok() {
                    check_accepted(&name, &changed);
                }
            }
        }
    }
}

#[test]
fn doubles_are_those_of_the_standard_library() {
    let mut seed = 7_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..20_000 {
        let (a, b, c) = (next(), next(), next());
        let literals = [
            format!("{:?}", f64::from_bits(a)),
            format!("{:e}", f64::from_bits(b)),
            format!("{}.{:04}", a % 1_000_000, b % 10_000),
            format!("{}.{}e{}", a % 100_000, b >> (c % 64), (c % 60) as i64 - 30),
            format!("-{}.{}", a >> (c % 64), b),
            format!("{}e{}", a >> (c % 64), (b % 50) as i64 - 25),
        ];
        for literal in literals.iter().filter(|l| l.contains(['.', 'e']) && !l.contains("inf") && !l.contains("NaN")) {
            let wanted: f64 = literal.parse().unwrap();
            let Ok(v) = parse(literal.as_bytes()) else {
                assert!(wanted.is_infinite(), "{literal}");
                continue;
            };
            assert_eq!(v.view().as_f64().map(f64::to_bits), Some(wanted.to_bits()), "{literal}");
            let text = String::from_utf8(printed(v.view(), Style::Relaxed)).unwrap();
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), wanted.to_bits(), "{literal} as {text}");
            assert!(text.contains(['.', 'e']), "{literal} as {text} is a double again");
            let shortest = format!("{wanted:e}");
            let digits = |s: &str| {
                let mantissa = s.split('e').next().unwrap().replace(['.', '-'], "");
                mantissa.trim_matches('0').len()
            };
            assert_eq!(digits(&text), digits(&shortest), "{literal} as {text} is the shortest");
        }
    }
}

#[test]
fn integers_are_exact_in_the_narrowest_type() {
    for (literal, alias) in [
        ("2147483647", "int"),
        ("-2147483648", "int"),
        ("2147483648", "long"),
        ("-2147483649", "long"),
        ("999999999999999999", "long"),
        ("1000000000000000000", "long"),
        ("9223372036854775807", "long"),
        ("-9223372036854775808", "long"),
        ("9223372036854775808", "decimal"),
        ("-9223372036854775809", "decimal"),
        ("9999999999999999999999999999999999", "decimal"),
    ] {
        let v = parse(literal.as_bytes()).unwrap();
        assert_eq!(v.view().kind().alias(), alias, "{literal}");
        let wanted: i128 = literal.parse().unwrap();
        match v.view().value() {
            Value::Int32(n) => assert_eq!(i128::from(n), wanted),
            Value::Int64(n) => assert_eq!(i128::from(n), wanted),
            Value::Decimal128(d) => assert_eq!(d.to_string(), literal),
            other => panic!("{literal}: {other:?}"),
        }
    }
    assert_eq!(parse(&[b'9'; 35]).unwrap_err().kind(), ErrorKind::NumberOutOfRange);
}

fn document_error(text: &str) -> quarrydb_jsonb::Error {
    let mut out = Builder::new();
    let e = parse_document(text.as_bytes(), &mut out, &mut || [1; 12]).expect_err(text);
    assert!(out.is_empty(), "nothing is left of {text}");
    e
}

#[test]
fn faults_of_a_document_have_path_and_place() {
    let cases = [
        (r#"{"a":{"b":[0,{"c":1,"d":2,"c":3}]}}"#, ErrorKind::RepeatedKey, "a.b.1.c", 26),
        (r#"{"a":[1,{"x\u0000":1}]}"#, ErrorKind::NulInName, "a.1", 9),
        (r#"{"a":1,"b":{"c":{"$oid":5}}}"#, ErrorKind::BadWrapper, "b.c", 16),
        (r#"{"a,b":"}{","c\"":[[],[{"$date":[]}]]}"#, ErrorKind::BadWrapper, "c\".1.0", 23),
        (r#"{"n":[1,12345678901234567890123456789012345]}"#, ErrorKind::NumberOutOfRange, "n.1", 8),
        (r#"{"_id":[1],"a":1}"#, ErrorKind::BadId, "_id", 0),
        (r#"{"a":1,"_id":{"$regularExpression":{"pattern":"","options":""}}}"#, ErrorKind::BadId, "_id", 0),
        (r#"{"_id":1,"a":2,"_id":3}"#, ErrorKind::RepeatedKey, "_id", 15),
        (r#"{"b":1,"_id":1,"a":2,"_id":3}"#, ErrorKind::RepeatedKey, "_id", 21),
        (r#"[1]"#, ErrorKind::NotADocument, "", 0),
        (r#"{"$oid":"0123456789abcdef01234567"}"#, ErrorKind::NotADocument, "", 0),
    ];
    for (text, kind, path, offset) in cases {
        let e = document_error(text);
        assert_eq!((e.kind(), e.path(), e.place().map(|p| p.offset)), (kind, path, Some(offset)), "{text}: {e}");
    }
    let e = document_error(r#"{"a":{"$oid":5}}"#);
    assert!(e.message().contains("$oid") && e.message().contains("the number 5"), "{e}");
    let e = document_error(r#"{"a":{"$symbol":"x"}}"#);
    assert!(e.message().contains("not supported"), "{e}");
}

#[test]
fn syntax_errors_say_what_was_found_and_wanted() {
    for (text, line, column, offset, words) in [
        ("{\"a\": 1,\n  \"b\" 2}", 2, 7, 15, "found '2' where a colon must stand"),
        ("[1, 2", 1, 6, 5, "found the end of the text where a comma or the end of the array must stand"),
        ("\u{feff}{x", 1, 2, 4, "found 'x' where a field name in quotes must stand"),
        ("{\r\n\r\n\"a\": nope}", 3, 6, 10, "found 'n' where a value must stand"),
        ("\"\\ud800\"", 1, 2, 1, "a lone surrogate"),
        ("1e400", 1, 1, 0, "a number beyond the range of doubles"),
    ] {
        let e = parse(text.as_bytes()).expect_err(text);
        let place = e.place().unwrap();
        assert_eq!((place.line, place.column, place.offset), (line, column, offset), "{text}: {e}");
        assert!(e.message().contains(words), "{text}: {e}");
    }
}

#[test]
fn levels_are_limited_for_documents_and_bodies() {
    let nested = |levels: usize| format!("{}{{}}{}", "{\"a\":".repeat(levels - 1), "}".repeat(levels - 1));
    let mut out = Builder::new();
    parse_document(nested(100).as_bytes(), &mut out, &mut || [1; 12]).unwrap();
    let e = document_error(&nested(101));
    assert_eq!((e.kind(), e.path().split('.').count()), (ErrorKind::TooDeep, 100));
    assert_eq!(document_error(&nested(200)).kind(), ErrorKind::TooDeep);
    let e = document_error(&nested(201));
    assert_eq!((e.kind(), e.place().map(|p| p.offset)), (ErrorKind::BodyTooDeep, Some(200 * 5)));
    // A wrapper is a value and no level.
    let leaf = format!("{}{{\"$minKey\":1}}{}", "{\"a\":".repeat(100), "}".repeat(100));
    parse_document(leaf.as_bytes(), &mut out, &mut || [1; 12]).unwrap();
    // Documents in a body count from themselves.
    let body = format!("{{\"documents\":[{},{}]}}", nested(100), nested(101));
    let mut given = Vec::new();
    parse_body(body.as_bytes(), "documents", &mut out, &mut || [1; 12], &mut |d| given.push(d.map(drop))).unwrap();
    assert_eq!(given[0], Ok(()));
    assert_eq!(given[1].as_ref().map_err(quarrydb_jsonb::Error::kind), Err(ErrorKind::TooDeep));
    assert_eq!(parse(&vec![b'['; 5_000_000]).unwrap_err().kind(), ErrorKind::BodyTooDeep);
    assert_eq!(parse("{\"a\":".repeat(1_000_000).as_bytes()).unwrap_err().kind(), ErrorKind::BodyTooDeep);
}

#[test]
fn documents_are_limited_as_bson_measures_them() {
    // {_id: ObjectId, a: string}: 4 + (1 + 4 + 12) + (1 + 2 + 4 + n + 1) + 1 bytes.
    let with_string = |n: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(n));
    let limit = 16 * 1024 * 1024;
    let mut out = Builder::new();
    parse_document(with_string(limit - 30).as_bytes(), &mut out, &mut || [1; 12]).unwrap();
    assert_eq!(document_error(&with_string(limit - 29)).kind(), ErrorKind::TooLarge);
    // Small as text, large as BSON: {_id, a: [1, 1, ...]} with a type byte, an index and a NUL for each element.
    let ones = |n: usize| format!("{{\"a\":[{}1]}}", "1,".repeat(n - 1));
    parse_document(ones(1_300_000).as_bytes(), &mut out, &mut || [1; 12]).unwrap();
    assert_eq!(document_error(&ones(1_600_000)).kind(), ErrorKind::TooLarge);
}

#[test]
fn large_texts_take_linear_time() {
    // Each of these takes minutes where something is quadratic.
    let keys: Vec<String> = (0..500_000).map(|i| format!("\"key{i}\":{i}")).collect();
    let flat = format!("{{{}}}", keys.join(","));
    let v = parse(flat.as_bytes()).unwrap();
    assert_eq!(v.view().get("key499999").and_then(JsonbRef::as_i64), Some(499_999));
    validate(v.as_bytes()).unwrap();
    let string = format!("\"{}\\n{}\"", "a".repeat(16_000_000), "\\\"".repeat(500_000));
    let v = parse(string.as_bytes()).unwrap();
    assert_eq!(v.view().as_str().map(str::len), Some(16_500_001));
    assert_eq!(printed(v.view(), Style::Relaxed).len(), string.len());
    // Many documents with a fault each, on many lines.
    let body = format!("{{\"documents\":[\n{}\n{{}}]}}", "{\"a\":1,\n\"a\":2},\n".repeat(50_000));
    let mut out = Builder::new();
    let (mut faults, mut last) = (0, 0);
    parse_body(body.as_bytes(), "documents", &mut out, &mut || [1; 12], &mut |d| {
        if let Err(e) = d {
            (faults, last) = (faults + 1, e.place().unwrap().line);
        }
    })
    .unwrap();
    assert_eq!((faults, last), (50_000, 100_001));
    // Many wrong wrappers in one document.
    let wrong = format!("{{\"a\":[{}0]}}", "{\"$oid\":5},".repeat(50_000));
    assert_eq!(document_error(&wrong).path(), "a.0");
    let deep = format!("{{\"a\":{}1{}}}", "[{\"$date\":".repeat(90), "}]".repeat(90));
    assert_eq!(document_error(&deep).kind(), ErrorKind::BadWrapper);
}

#[test]
fn the_deepest_values_fit_a_small_stack() {
    // Worker threads have 2 MiB: what is nested as deep as allowed must leave them half of it even unoptimised (128 KiB do otherwise).
    let deep = format!("{}1{}", "{\"a\":[".repeat(100), "]}".repeat(100));
    let work = move || {
        let v = parse(deep.as_bytes()).unwrap();
        validate(v.as_bytes()).unwrap();
        assert_eq!(printed(v.view(), Style::Relaxed), deep.as_bytes());
        // 200 containers of five bytes each, a type byte, a name of one letter and a NUL in each, and an int32.
        assert_eq!(quarrydb_jsonb::bson_size(v.view()), 200 * 5 + 200 * 3 + 4);
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(work).unwrap().join().unwrap();
}
