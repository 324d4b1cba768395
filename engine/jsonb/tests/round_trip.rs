//! What is parsed prints, and what is printed parses to the same.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{
    Builder, ErrorKind, JsonbBuf, JsonbRef, Style, parse, parse_body, parse_document, print, validate,
};

fn text(v: JsonbRef<'_>, style: Style) -> String {
    let mut out = Vec::new();
    print(v, style, &mut out);
    String::from_utf8(out).unwrap()
}

/// Parses `from` and compares its relaxed, canonical and plain text; both Extended JSON texts must parse back.
fn check(from: &str, relaxed: &str, canonical: &str, plain: &str) {
    let v = parse(from.as_bytes()).unwrap_or_else(|e| panic!("{from}: {e}"));
    validate(v.as_bytes()).unwrap();
    assert_eq!(text(v.view(), Style::Relaxed), relaxed, "{from} relaxed");
    assert_eq!(text(v.view(), Style::Canonical), canonical, "{from} canonical");
    assert_eq!(text(v.view(), Style::Plain), plain, "{from} plain");
    assert_eq!(parse(canonical.as_bytes()).unwrap(), v, "{from}: canonical parses back to the same bytes");
    let again = parse(relaxed.as_bytes()).unwrap();
    assert_eq!(text(again.view(), Style::Relaxed), relaxed, "{from}: relaxed parses back");
    assert!(quarrydb_jsonb::equal(again.view(), v.view()), "{from}: relaxed parses back to an equal value");
}

/// The same for a text that prints as it stands in relaxed and plain style.
fn same(from: &str, canonical: &str) {
    check(from, from, canonical, from);
}

#[test]
fn each_type_prints_in_each_style() {
    same("null", "null");
    same("true", "true");
    same("false", "false");
    same("0", r#"{"$numberInt":"0"}"#);
    same("-2147483648", r#"{"$numberInt":"-2147483648"}"#);
    same("2147483648", r#"{"$numberLong":"2147483648"}"#);
    same("9223372036854775807", r#"{"$numberLong":"9223372036854775807"}"#);
    same("-9223372036854775808", r#"{"$numberLong":"-9223372036854775808"}"#);
    check(
        "9223372036854775808",
        r#"{"$numberDecimal":"9223372036854775808"}"#,
        r#"{"$numberDecimal":"9223372036854775808"}"#,
        r#"{"$numberDecimal":"9223372036854775808"}"#,
    );
    same("1.5", r#"{"$numberDouble":"1.5"}"#);
    same("3.0", r#"{"$numberDouble":"3.0"}"#);
    same("-0.0", r#"{"$numberDouble":"-0.0"}"#);
    same(r#""a\"b\\c\u0001\n""#, r#""a\"b\\c\u0001\n""#);
    same(r#"{"a":[1,{"b":2}],"":""}"#, r#"{"a":[{"$numberInt":"1"},{"b":{"$numberInt":"2"}}],"":""}"#);
    for wrapped in [
        r#"{"$numberDouble":"NaN"}"#,
        r#"{"$numberDouble":"Infinity"}"#,
        r#"{"$numberDouble":"-Infinity"}"#,
        r#"{"$numberDecimal":"1.10"}"#,
        r#"{"$binary":{"base64":"AAEC/w==","subType":"80"}}"#,
        r#"{"$regularExpression":{"pattern":"^a\"","options":"im"}}"#,
        r#"{"$timestamp":{"t":4294967295,"i":7}}"#,
        r#"{"$minKey":1}"#,
        r#"{"$maxKey":1}"#,
    ] {
        same(wrapped, wrapped);
    }
    let oid = r#"{"$oid":"0123456789abcdef01234567"}"#;
    check(oid, oid, oid, r#""0123456789abcdef01234567""#);
    check(r#"{"$numberLong":"5"}"#, "5", r#"{"$numberLong":"5"}"#, "5");
    check(
        r#"{"$uuid":"00112233-4455-6677-8899-AABBCCDDEEFF"}"#,
        r#"{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}"#,
        r#"{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}"#,
        r#"{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}"#,
    );
}

#[test]
fn dates_print_as_the_specification_says() {
    // Values from the BSON corpus, datetime.json.
    check(
        r#"{"$date":{"$numberLong":"0"}}"#,
        r#"{"$date":"1970-01-01T00:00:00Z"}"#,
        r#"{"$date":{"$numberLong":"0"}}"#,
        r#""1970-01-01T00:00:00Z""#,
    );
    check(
        r#"{"$date":"2012-12-24T12:15:30.501Z"}"#,
        r#"{"$date":"2012-12-24T12:15:30.501Z"}"#,
        r#"{"$date":{"$numberLong":"1356351330501"}}"#,
        r#""2012-12-24T12:15:30.501Z""#,
    );
    check(
        r#"{"$date":-284643869501}"#,
        r#"{"$date":{"$numberLong":"-284643869501"}}"#,
        r#"{"$date":{"$numberLong":"-284643869501"}}"#,
        r#""1960-12-24T12:15:30.499Z""#,
    );
    check(
        r#"{"$date":{"$numberLong":"253402300800000"}}"#,
        r#"{"$date":{"$numberLong":"253402300800000"}}"#,
        r#"{"$date":{"$numberLong":"253402300800000"}}"#,
        r#"{"$date":{"$numberLong":"253402300800000"}}"#,
    );
    for (iso, millis) in [
        ("2026-01-02T03:04:05+01:30", 1767317645000_i64),
        ("2026-01-02T03:04:05.1Z", 1767323045100),
        ("2026-01-02T03:04:05.123456789-0100", 1767326645123),
        ("2024-02-29T23:59:59.999Z", 1709251199999),
        ("9999-12-31T23:59:59.999Z", 253402300799999),
        ("0000-01-01T00:00:00Z", -62167219200000),
    ] {
        let v = parse(format!(r#"{{"$date":"{iso}"}}"#).as_bytes()).unwrap();
        assert_eq!(text(v.view(), Style::Canonical), format!(r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#), "{iso}");
    }
    for millis in [i64::MIN, i64::MAX] {
        let mut b = Builder::new();
        b.date(millis);
        for style in [Style::Relaxed, Style::Canonical, Style::Plain] {
            assert!(text(JsonbRef::from_valid(b.bytes()), style).contains(&millis.to_string()));
        }
    }
    for bad in [
        "2023-02-29T00:00:00Z",
        "2023-01-01T24:00:00Z",
        "2023-01-01T00:00:00",
        "2023-01-01",
        "",
        "\u{e9}",
        "2023-13-01T00:00:00Z",
    ] {
        let e = parse(format!(r#"{{"a":{{"$date":"{bad}"}}}}"#).as_bytes()).unwrap_err();
        assert_eq!((e.kind(), e.path()), (ErrorKind::BadWrapper, "a"), "{bad}");
    }
}

fn document(text: &str) -> Result<JsonbBuf, quarrydb_jsonb::Error> {
    let mut out = Builder::new();
    parse_document(text.as_bytes(), &mut out, &mut || [7; 12])?;
    Ok(JsonbBuf::from_valid(out.take()))
}

#[test]
fn a_document_has_its_id_first() {
    let id = r#"{"$oid":"070707070707070707070707"}"#;
    for (from, to) in [
        (r#"{}"#, format!(r#"{{"_id":{id}}}"#)),
        (r#"{"a":1}"#, format!(r#"{{"_id":{id},"a":1}}"#)),
        (r#"{"_id":5,"a":1}"#, r#"{"_id":5,"a":1}"#.to_owned()),
        (r#"{"a":1,"_id":"x","b":[2]}"#, r#"{"_id":"x","a":1,"b":[2]}"#.to_owned()),
        (r#"{"a":1,"b":[2],"_id":{"c":null}}"#, r#"{"_id":{"c":null},"a":1,"b":[2]}"#.to_owned()),
        (r#"{"a":1,"\u005fid":"x"}"#, r#"{"_id":"x","a":1}"#.to_owned()),
    ] {
        let doc = document(from).unwrap();
        validate(doc.as_bytes()).unwrap();
        assert_eq!(text(doc.view(), Style::Relaxed), to);
        for name in ["_id", "a"] {
            let wanted = doc.view().as_object().unwrap().iter().find(|e| e.name() == name).map(|e| e.value);
            assert_eq!(doc.view().get(name), wanted, "{from} {name}");
        }
    }
}

#[test]
fn documents_of_changing_shapes_are_read_as_if_each_were_alone() {
    let shapes = [
        r#"{"a":1,"b":{"x":1,"y":2},"c":[{"p":1},{"p":2,"q":3}]}"#,
        r#"{"a":1,"c":[{"p":1},{"p":2,"q":3}],"b":{"y":1,"x":2}}"#,
        r#"{"b":{"x":1,"y":2},"c":[{"q":1}]}"#,
        r#"{"a":1,"b":{"y":2,"z":3},"d":1,"e":2,"f":3,"c":[]}"#,
        r#"{"a":1,"_id":3,"b":{"x":1,"y":2}}"#,
        r#"{"_id":3,"a":1,"b":{"x":1,"y":2}}"#,
        r#"{"a name of more than thirty two bytes, not remembered":1,"b":{"x":1,"y":2}}"#,
        r#"{"a":1,"b\n":{"x":1,"y":2},"z":0}"#,
        r#"{ "a" : 1 , "b" : { "x" : 1 , "y" : 2 } }"#,
        r#"{}"#,
    ];
    let alone: Vec<_> = shapes.iter().map(|s| document(s).unwrap()).collect();
    let mut seed = 1_u64;
    let mut out = Builder::new();
    for _ in 0..2000 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let i = (seed >> 33) as usize % shapes.len();
        let from = out.len();
        parse_document(shapes[i].as_bytes(), &mut out, &mut || [7; 12]).unwrap();
        assert_eq!(&out.bytes()[from..], alone[i].as_bytes(), "{}", shapes[i]);
        validate(alone[i].as_bytes()).unwrap();
        // The same inside a body, far from the end of the text.
        let body = format!(r#"{{"documents":[{}],"pad":"{}"}}"#, shapes[i], "x".repeat(64));
        let mut ranges = Vec::new();
        parse_body(body.as_bytes(), "documents", &mut out, &mut || [7; 12], &mut |d| ranges.push(d.unwrap())).unwrap();
        assert_eq!(&out.bytes()[ranges[0].clone()], alone[i].as_bytes(), "{}", shapes[i]);
    }
}

#[test]
fn a_body_gives_documents_and_the_rest() {
    let body = r#"{"ordered":false,"documents":[{"a":1},{"a":1,"a":2},5,{"b":{"c":[0,{"$oid":1}]}},{"_id":[1]}],"x":{"y":[1]}}"#;
    let mut out = Builder::new();
    let mut given = Vec::new();
    let rest = parse_body(body.as_bytes(), "documents", &mut out, &mut || [7; 12], &mut |d| given.push(d)).unwrap();
    assert_eq!(text(rest.view(), Style::Relaxed), r#"{"ordered":false,"x":{"y":[1]}}"#);
    assert_eq!(given.len(), 5);
    let first = &out.bytes()[given[0].clone().unwrap()];
    assert_eq!(JsonbRef::from_valid(first).get("a").and_then(JsonbRef::as_i64), Some(1));
    assert_eq!(out.len(), first.len());
    let errors: Vec<_> = given[1..].iter().map(|d| d.clone().unwrap_err()).collect();
    let places: Vec<_> = errors.iter().map(|e| (e.kind(), e.path(), e.place().unwrap().offset)).collect();
    assert_eq!(
        places,
        [
            (ErrorKind::RepeatedKey, "a", body.find("\"a\":2").unwrap()),
            (ErrorKind::NotADocument, "", body.find("5,").unwrap()),
            (ErrorKind::BadWrapper, "b.c.1", body.find("{\"$oid").unwrap()),
            (ErrorKind::BadId, "_id", body.find("{\"_id\"").unwrap()),
        ]
    );
    for (one, documents) in
        [(r#"{"document":{"a":1}}"#, 1), (r#"{"document":[]}"#, 0), (r#"{}"#, 0), (r#"{"document":5}"#, 0)]
    {
        let mut count = 0;
        parse_body(one.as_bytes(), "document", &mut out, &mut || [7; 12], &mut |d| count += d.map(|_| 1).unwrap())
            .unwrap();
        assert_eq!(count, documents, "{one}");
    }
}

#[test]
fn a_document_error_does_not_hide_an_error_of_syntax() {
    let e = document("{\"a\": 1, \"a\": 2,\n \"b\": tru}").unwrap_err();
    assert_eq!((e.kind(), e.place().map(|p| (p.line, p.column, p.offset))), (ErrorKind::Syntax, Some((2, 7, 23))));
    let e = document(r#"{"a": {"$oid": 5}, "b": [}"#).unwrap_err();
    assert!(e.is_syntax(), "{e}");
}
