//! Rust values to documents and back, by serde.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use common::{Random, any_value, decimal, decimal_bits, object, value};
use quarrydb_jsonb::{
    Binary, Builder, DateTime, Decimal128, ErrorKind, JsonbBuf, JsonbRef, Kind, MaxKey, MinKey, ObjectId, Regex,
    Timestamp, equal, from_jsonb, to_builder, to_jsonb, validate,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(v: &T) -> JsonbBuf {
    let doc = to_jsonb(v).unwrap();
    assert_eq!(validate(doc.as_bytes()), Ok(doc.view()));
    assert_eq!(&from_jsonb::<T>(doc.view()).unwrap(), v);
    doc
}

fn kind_of<T: Serialize + DeserializeOwned + PartialEq + Debug>(v: T) -> Kind {
    round_trip(&v).view().kind()
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    #[serde(rename = "_id")]
    id: ObjectId,
    at: DateTime,
    stamp: Timestamp,
    price: Decimal128,
    pattern: Regex,
    data: Binary,
    low: MinKey,
    high: MaxKey,
    any: JsonbBuf,
    none: Option<i32>,
    some: Option<ObjectId>,
    nested: Vec<BTreeMap<String, (i8, f32, char)>>,
    unit: (),
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

fn everything() -> Everything {
    Everything {
        id: ObjectId(*b"abcdefghijkl"),
        at: DateTime(-5),
        stamp: Timestamp { seconds: 7, increment: u32::MAX },
        price: Decimal128::from_bits(decimal_bits(true, 1990, -2)),
        pattern: Regex { pattern: "^a\"".into(), options: "im".into() },
        data: Binary { subtype: 4, bytes: vec![0, 255, 1] },
        low: MinKey,
        high: MaxKey,
        any: object(&[("x", value(|b| b.object_id([9; 12])))]),
        none: None,
        some: Some(ObjectId([1; 12])),
        nested: vec![BTreeMap::new(), BTreeMap::from([("k".into(), (-1, 0.5, '\u{e9}'))])],
        unit: (),
        bytes: vec![1, 2, 3],
    }
}

#[test]
fn types_that_serde_does_not_know_keep_their_kind() {
    let doc = round_trip(&everything());
    let kinds: Vec<_> = doc.view().as_object().unwrap().iter().map(|e| e.value.kind()).collect();
    use Kind::*;
    assert_eq!(
        kinds,
        [
            ObjectId, Date, Timestamp, Decimal128, Regex, Binary, MinKey, MaxKey, Object, Null, ObjectId, Array, Null,
            Binary
        ]
    );
    assert_eq!(doc.view().get("price"), Some(decimal(decimal_bits(true, 1990, -2)).view()));
    assert_eq!(doc.view().get("any").unwrap().get("x").unwrap().kind(), ObjectId);
}

#[test]
fn another_format_gets_extended_json() {
    let doc = to_jsonb(&everything()).unwrap();
    let json: serde_json::Value = from_jsonb(doc.view()).unwrap();
    let expected = serde_json::json!({
        "_id": {"$oid": "6162636465666768696a6b6c"},
        "at": {"$date": {"$numberLong": "-5"}},
        "stamp": {"$timestamp": {"t": 7, "i": u32::MAX}},
        "price": {"$numberDecimal": "-19.90"},
        "pattern": {"$regularExpression": {"pattern": "^a\"", "options": "im"}},
        "data": {"$binary": {"base64": "AP8B", "subType": "04"}},
        "low": {"$minKey": 1},
        "high": {"$maxKey": 1},
        "any": {"x": {"$oid": "090909090909090909090909"}},
        "none": null,
        "some": {"$oid": "010101010101010101010101"},
        "nested": [{}, {"k": [-1, 0.5, "\u{e9}"]}],
        "unit": null,
        "bytes": {"$binary": {"base64": "AQID", "subType": "00"}},
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::to_value(doc.view()).unwrap()["pattern"], expected["pattern"]);
    assert_eq!(serde_json::to_value(everything().id).unwrap(), expected["_id"]);
    assert_eq!(serde_json::to_value(JsonbBuf::from_valid(vec![Kind::Null.tag(0)])).unwrap(), serde_json::Value::Null);
}

#[test]
fn extended_json_of_another_format_is_read() {
    fn through_json<T: Serialize + DeserializeOwned + PartialEq + Debug>(v: &T) {
        let json = serde_json::to_value(v).unwrap();
        assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), v, "{json}");
    }
    let all = everything();
    through_json(&all.id);
    through_json(&all.at);
    through_json(&all.stamp);
    through_json(&all.price);
    through_json(&all.pattern);
    through_json(&all.data);
    through_json(&(all.low, all.high));
    through_json(&all.any);
    through_json(&Tagged::A { id: all.id, n: 1 });
    round_trip(&Tagged::A { id: all.id, n: 1 });
    let iso: DateTime = serde_json::from_str(r#"{"$date": "1970-01-01T00:00:01.5Z"}"#).unwrap();
    assert_eq!(iso, DateTime(1500));
    for bad in [r#"{"$oid": 5}"#, r#"{"$oid": "00"}"#, r#"{"a": 1}"#, "5"] {
        assert!(serde_json::from_str::<ObjectId>(bad).is_err(), "{bad}");
    }
    assert_eq!("6162636465666768696a6b6c".parse::<ObjectId>().unwrap(), all.id);
    assert!("6162636465666768696a6b6".parse::<ObjectId>().is_err());
}

#[test]
fn a_regex_is_stored_as_the_format_has_it() {
    let regex = |pattern: &str, options: &str| Regex { pattern: pattern.into(), options: options.into() };
    let doc = to_jsonb(&regex("a", "xmix")).unwrap();
    assert_eq!(from_jsonb::<Regex>(doc.view()).unwrap(), regex("a", "imx"));
    assert!(validate(doc.as_bytes()).is_ok());
    for bad in [regex("\0", ""), regex("a", "\0"), regex("a", "\u{e9}")] {
        assert_eq!(to_jsonb(&bad).unwrap_err().kind(), ErrorKind::Serde);
    }
}

#[test]
fn json_values_go_in_and_out() {
    let json = serde_json::json!({
        "a": [1, -1, 2.5, "x", null, true, {"b": {}}, [], u64::MAX, i64::MIN, 3.0], "\u{e9}": "\0\u{1f600}",
    });
    let doc = round_trip(&json);
    assert_eq!(doc.view().get("a").unwrap().as_array().unwrap().get(10).unwrap().kind(), Kind::Double);
    let whole: JsonbBuf = serde_json::from_value(json.clone()).unwrap();
    assert!(equal(whole.view(), doc.view()));
    assert_eq!(whole, quarrydb_jsonb::parse(json.to_string().as_bytes()).unwrap());
    assert_eq!(serde_json::to_value(&whole).unwrap()["a"][3], "x");
    let deep = "[".repeat(100) + &"]".repeat(100);
    assert!(serde_json::from_str::<JsonbBuf>(&deep).is_ok());
    assert!(serde_json::from_str::<JsonbBuf>(r#"{"a":1,"a":2}"#).is_err());
    assert!(serde_json::from_str::<JsonbBuf>("{\"a\\u0000\":1}").is_err());
}

#[test]
fn integers_have_the_width_of_their_type() {
    assert_eq!(kind_of(i8::MIN), Kind::Int32);
    assert_eq!(kind_of(u16::MAX), Kind::Int32);
    assert_eq!(kind_of(i32::MIN), Kind::Int32);
    assert_eq!(kind_of(u32::MAX), Kind::Int64);
    assert_eq!(kind_of(1i64), Kind::Int64);
    assert_eq!(kind_of(i64::MIN), Kind::Int64);
    assert_eq!(kind_of(i64::MAX as u64), Kind::Int64);
    assert_eq!(kind_of(u64::MAX), Kind::Decimal128);
    assert_eq!(to_jsonb(&u64::MAX).unwrap(), decimal(decimal_bits(false, u64::MAX.into(), 0)));
    assert_eq!(kind_of(-5i128), Kind::Int64);
    assert_eq!(kind_of(-(10i128.pow(34)) + 1), Kind::Decimal128);
    assert_eq!(kind_of(10u128.pow(34) - 1), Kind::Decimal128);
    assert_eq!(to_jsonb(&10i128.pow(34)).unwrap_err().kind(), ErrorKind::NumberOutOfRange);
    assert_eq!(to_jsonb(&u128::MAX).unwrap_err().kind(), ErrorKind::NumberOutOfRange);
    assert_eq!(kind_of(1.5f32), Kind::Double);
}

#[test]
fn a_number_of_another_type_is_taken_where_its_value_fits() {
    let three = [
        value(|b| b.int32(3)),
        value(|b| b.int64(3)),
        value(|b| b.double(3.0)),
        decimal(decimal_bits(false, 3, 0)),
        decimal(decimal_bits(false, 300, -2)),
    ];
    for v in &three {
        assert_eq!(from_jsonb::<u8>(v.view()).unwrap(), 3);
        assert_eq!(from_jsonb::<i128>(v.view()).unwrap(), 3);
        assert_eq!(from_jsonb::<f64>(v.view()).unwrap().to_bits(), 3.0f64.to_bits());
    }
    for v in [value(|b| b.double(3.5)), value(|b| b.int32(-1)), value(|b| b.int64(256)), decimal(0x1f << 122)] {
        assert_eq!(from_jsonb::<u8>(v.view()).unwrap_err().kind(), ErrorKind::Serde, "{v:?}");
    }
    assert!(from_jsonb::<i64>(decimal(decimal_bits(false, 1, 6111)).view()).is_err());
    assert!(from_jsonb::<i64>(decimal(decimal_bits(false, 1, -6176)).view()).is_err());
    assert_eq!(from_jsonb::<f64>(decimal(decimal_bits(true, 1, -1)).view()).unwrap().to_bits(), (-0.1f64).to_bits());
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    Newtype(i32),
    Tuple(i32, String),
    Struct { a: i32, b: Option<String> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Tagged {
    A { id: ObjectId, n: i64 },
    B,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    a: i32,
    #[serde(flatten)]
    rest: HashMap<String, i64>,
}

#[test]
fn enums_are_externally_tagged() {
    assert_eq!(to_jsonb(&Shape::Unit).unwrap(), value(|b| b.string("Unit")));
    assert_eq!(round_trip(&Shape::Newtype(4)), object(&[("Newtype", value(|b| b.int32(4)))]));
    let tuple = value(|b| {
        b.begin_array();
        b.int32(1);
        b.string("x");
        b.end_array().unwrap();
    });
    assert_eq!(round_trip(&Shape::Tuple(1, "x".into())), object(&[("Tuple", tuple)]));
    let content = object(&[("a", value(|b| b.int32(1))), ("b", value(|b| b.null()))]);
    assert_eq!(round_trip(&Shape::Struct { a: 1, b: None }), object(&[("Struct", content)]));
    round_trip(&vec![Shape::Unit, Shape::Struct { a: 0, b: Some("y".into()) }]);
    for bad in [object(&[]), value(|b| b.string("None")), value(|b| b.string("Newtype")), value(|b| b.int32(0))] {
        assert_eq!(from_jsonb::<Shape>(bad.view()).unwrap_err().kind(), ErrorKind::Serde);
    }
}

#[test]
fn the_other_ways_of_serde_work_too() {
    round_trip(&vec![Untagged::Number(5), Untagged::Text("x".into())]);
    round_trip(&Tagged::B);
    round_trip(&Flat { a: 1, rest: HashMap::from([("b".into(), 2)]) });
}

#[test]
fn keys_may_be_numbers() {
    let doc = round_trip(&BTreeMap::from([(-1i64, "a".to_owned()), (20, "b".to_owned())]));
    assert_eq!(doc.view().get("20").unwrap().as_str(), Some("b"));
    round_trip(&BTreeMap::from([(true, 1), (false, 0)]));
    round_trip(&BTreeMap::from([('x', 1)]));
    assert_eq!(to_jsonb(&BTreeMap::from([((1, 2), 1)])).unwrap_err().kind(), ErrorKind::Serde);
    assert_eq!(to_jsonb(&BTreeMap::from([("a\0", 1)])).unwrap_err().kind(), ErrorKind::NulInName);
    assert!(from_jsonb::<BTreeMap<u8, i32>>(object(&[("256", value(|b| b.int32(0)))]).view()).is_err());
}

#[test]
fn text_and_bytes_are_borrowed_from_the_document() {
    #[derive(Deserialize)]
    struct Borrowed<'a> {
        text: &'a str,
        #[serde(borrow)]
        bytes: &'a serde_bytes::Bytes,
    }
    let doc = object(&[("text", value(|b| b.string("abc"))), ("bytes", value(|b| b.binary(0, b"xyz")))]);
    let borrowed: Borrowed<'_> = from_jsonb(doc.view()).unwrap();
    let range = doc.as_bytes().as_ptr_range();
    assert_eq!((borrowed.text, &borrowed.bytes[..]), ("abc", &b"xyz"[..]));
    assert!(range.contains(&borrowed.text.as_ptr()) && range.contains(&borrowed.bytes.as_ptr()));
}

#[test]
fn an_error_says_where() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only its errors are looked at")]
    struct Outer {
        list: Vec<Inner>,
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only its errors are looked at")]
    struct Inner {
        n: u8,
    }
    let doc = to_jsonb(&serde_json::json!({"list": [{"n": 1}, {"n": "x"}]})).unwrap();
    let error = from_jsonb::<Outer>(doc.view()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Serde, "list.1.n"));
    let error = from_jsonb::<ObjectId>(doc.view()).unwrap_err();
    assert_eq!(error.message(), "expected an objectId, found object");
    let missing = to_jsonb(&serde_json::json!({"list": [{}]})).unwrap();
    assert!(from_jsonb::<Outer>(missing.view()).unwrap_err().message().contains("`n`"));
    assert!(from_jsonb::<(i32, i32)>(to_jsonb(&[1, 2, 3]).unwrap().view()).is_err());
    assert!(from_jsonb::<(i32, i32)>(to_jsonb(&[1]).unwrap().view()).is_err());
}

#[test]
fn depth_is_bounded_and_the_builder_can_go_on() {
    #[derive(Serialize)]
    struct Chain(Option<Box<Chain>>, u8);
    let chain = |n| (0..n).fold(Chain(None, 0), |inner, _| Chain(Some(Box::new(inner)), 0));
    assert!(to_jsonb(&chain(199)).is_ok());
    let mut b = Builder::new();
    to_builder(&1, &mut b).unwrap();
    let len = b.len();
    assert_eq!(to_builder(&chain(200), &mut b).unwrap_err().kind(), ErrorKind::TooDeep);
    b.rewind(len);
    to_builder("x", &mut b).unwrap();
    assert_eq!(JsonbRef::from_valid(&b.bytes()[len..]).as_str(), Some("x"));
}

#[test]
fn any_value_survives_as_a_whole() {
    let mut random = Random::new(21);
    for _ in 0..5000 {
        let v = any_value(&mut random, 3);
        assert_eq!(to_jsonb(&v).unwrap(), v);
        assert_eq!(to_jsonb(&v.view()).unwrap(), v);
        assert_eq!(from_jsonb::<JsonbBuf>(v.view()).unwrap(), v);
        // Through JSON by value: JSON does not tell the widths of integers apart.
        let json = serde_json::to_string(&v).unwrap();
        let back: JsonbBuf = serde_json::from_str(&json).unwrap();
        assert!(equal(back.view(), v.view()), "{v:?} as {json} became {back:?}");
        // No type asks for it, and nothing panics.
        let _ = (from_jsonb::<serde_json::Value>(v.view()), serde_json::to_string(&v), from_jsonb::<Shape>(v.view()));
    }
}
