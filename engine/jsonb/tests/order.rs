//! The total order, its keys and its hash: against MongoDB's documented order, against decimal text, against each other.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::cmp::Ordering;

use common::{Random, any_value, decimal, decimal_text, double_text, number, object, value};
use quarrydb_jsonb::{
    Builder, JsonbBuf, NUMBERS_ABOVE_NAN, compare, compare_numbers, equal, id_hash, sort_key, sort_key_descending,
};

fn key(v: &JsonbBuf) -> Vec<u8> {
    let mut out = Vec::new();
    sort_key(v.view(), &mut out);
    out
}

/// Every pair of `groups` must have the order of its groups; members of one group are equal.
fn check_ascending(groups: &[Vec<JsonbBuf>]) {
    for (i, left) in groups.iter().enumerate() {
        for (j, right) in groups.iter().enumerate() {
            for a in left {
                for b in right {
                    assert_eq!(compare(a.view(), b.view()), i.cmp(&j), "{a:?} against {b:?}");
                    assert_eq!(key(a).cmp(&key(b)), i.cmp(&j), "keys of {a:?} and {b:?}");
                    assert_eq!(equal(a.view(), b.view()), i == j, "{a:?} equal {b:?}");
                    if i == j {
                        assert_eq!(id_hash(a.view()), id_hash(b.view()), "hashes of {a:?} and {b:?}");
                    }
                }
            }
        }
    }
}

/// "Comparison/Sort Order" in MongoDB's manual: MinKey, null, numbers, string, object, array, BinData, ObjectId, boolean,
/// date, timestamp, regular expression, MaxKey.
#[test]
fn the_brackets_have_the_documented_order() {
    check_ascending(&[
        vec![value(|b| b.min_key())],
        vec![value(|b| b.null())],
        vec![value(|b| b.double(f64::NAN)), value(|b| b.double(-f64::NAN)), decimal(0x1f << 122), decimal(0x3f << 122)],
        vec![value(|b| b.double(f64::NEG_INFINITY)), decimal(0x3e << 122)],
        vec![value(|b| b.int32(-1)), value(|b| b.int64(-1)), value(|b| b.double(-1.0)), number("-1", 0)],
        vec![
            value(|b| b.int32(0)),
            value(|b| b.int64(0)),
            value(|b| b.double(0.0)),
            value(|b| b.double(-0.0)),
            number("0", 0),
            number("-0", 6111),
            number("0", -6176),
        ],
        vec![value(|b| b.int32(1)), value(|b| b.double(1.0)), number("1", 0), number("100", -2)],
        vec![value(|b| b.double(f64::INFINITY)), decimal(0x1e << 122)],
        vec![value(|b| b.string(""))],
        vec![value(|b| b.string("\0"))],
        vec![value(|b| b.string("\0\0"))],
        vec![value(|b| b.string("\u{1}"))],
        vec![value(|b| b.string("\u{2}"))],
        vec![value(|b| b.string("A"))],
        vec![value(|b| b.string("a"))],
        vec![value(|b| b.string("a\0"))],
        vec![value(|b| b.string("a\0b"))],
        vec![value(|b| b.string("a\u{1}"))],
        vec![value(|b| b.string("aa"))],
        vec![value(|b| b.string("\u{e9}"))],
        vec![value(|b| b.string("\u{ffff}"))],
        vec![value(|b| b.string("\u{1f600}"))],
        vec![object(&[])],
        vec![array(&[])],
        vec![value(|b| b.binary(0, b""))],
        vec![value(|b| b.binary(0, b"z"))],
        vec![value(|b| b.binary(5, b"a"))],
        vec![value(|b| b.binary(0, b"aa"))],
        vec![value(|b| b.object_id([0; 12]))],
        vec![value(|b| b.object_id([255; 12]))],
        vec![value(|b| b.bool(false))],
        vec![value(|b| b.bool(true))],
        vec![value(|b| b.date(-1))],
        vec![value(|b| b.date(0))],
        vec![value(|b| b.timestamp(0, 1))],
        vec![value(|b| b.timestamp(1, 0))],
        vec![value(|b| b.timestamp(u32::MAX, 0))],
        vec![value(|b| b.regex("a", ""))],
        vec![value(|b| b.regex("a", "i"))],
        vec![value(|b| b.regex("ab", ""))],
        vec![value(|b| b.max_key())],
    ]);
}

fn array(elements: &[JsonbBuf]) -> JsonbBuf {
    value(|b| {
        b.begin_array();
        elements.iter().for_each(|e| b.copy(e.view()));
        b.end_array().unwrap();
    })
}

fn int(v: i32) -> JsonbBuf {
    value(|b| b.int32(v))
}

fn text(v: &str) -> JsonbBuf {
    value(|b| b.string(v))
}

/// "Objects" in the same chapter: recursively by pairs in order; first the field types, then the names, then the values;
/// an object without further pairs is less.
#[test]
fn objects_compare_by_type_then_name_then_value() {
    check_ascending(&[
        vec![object(&[])],
        vec![object(&[("z", value(|b| b.null()))])],
        vec![object(&[("a", int(1))]), object(&[("a", value(|b| b.double(1.0)))])],
        vec![object(&[("a", int(1)), ("b", int(0))])],
        vec![object(&[("a", int(1)), ("b", int(0)), ("c", int(0))])],
        vec![object(&[("a", int(2))])],
        vec![object(&[("aa", int(0))])],
        vec![object(&[("b", int(0))])],
        vec![object(&[("b", int(0)), ("a", int(0))])],
        vec![object(&[("a", text(""))])],
        vec![object(&[("a", object(&[]))])],
        vec![object(&[("a", object(&[("x", int(1))]))])],
        vec![object(&[("a", array(&[]))])],
    ]);
}

/// Arrays compare as objects do, element by element.
#[test]
fn arrays_compare_element_by_element() {
    check_ascending(&[
        vec![array(&[])],
        vec![array(&[value(|b| b.null())])],
        vec![array(&[int(1)]), array(&[number("1", 0)])],
        vec![array(&[int(1), value(|b| b.null())])],
        vec![array(&[int(1), int(1)])],
        vec![array(&[int(2)])],
        vec![array(&[text("")])],
        vec![array(&[array(&[])])],
        vec![array(&[array(&[]), int(0)])],
        vec![array(&[array(&[int(0)])])],
    ]);
}

/// Values that a comparison by way of doubles gets wrong.
#[test]
fn numbers_between_doubles_have_their_place() {
    const TWO_53: i64 = 1 << 53;
    check_ascending(&[
        vec![number("-1", 400)],
        vec![value(|b| b.double(f64::MIN))],
        vec![value(|b| b.int64(i64::MIN)), value(|b| b.double(-9_223_372_036_854_775_808.0))],
        vec![value(|b| b.int64(i64::MIN + 1)), number("-9223372036854775807", 0)],
        vec![value(|b| b.int64(-TWO_53 - 2)), value(|b| b.double(-9_007_199_254_740_994.0))],
        vec![value(|b| b.int64(-TWO_53 - 1)), number("-9007199254740993", 0), number("-90071992547409930", -1)],
        vec![value(|b| b.int64(-TWO_53)), value(|b| b.double(-9_007_199_254_740_992.0))],
        // The double nearest to a tenth is 0.1000000000000000055511151231257827...
        vec![value(|b| b.double(-0.1))],
        vec![number("-1", -1)],
        vec![value(|b| b.double(-5e-324))],
        vec![number("-1", -6176)],
        vec![value(|b| b.int32(0))],
        vec![number("1", -6176)],
        vec![number("1", -400)],
        vec![value(|b| b.double(5e-324))],
        vec![number("1", -1), number("10", -2)],
        vec![number("1000000000000000055511151231257827", -34)],
        vec![value(|b| b.double(0.1))],
        vec![number("1000000000000000055511151231257828", -34)],
        vec![value(|b| b.double(0.5)), number("5", -1)],
        vec![value(|b| b.int64(TWO_53)), value(|b| b.double(9_007_199_254_740_992.0))],
        vec![number("90071992547409921", -1)],
        vec![value(|b| b.int64(TWO_53 + 1)), number("9007199254740993", 0)],
        vec![number("90071992547409931", -1)],
        vec![value(|b| b.int64(TWO_53 + 2)), value(|b| b.double(9_007_199_254_740_994.0))],
        vec![value(|b| b.int64(i64::MAX)), number("9223372036854775807", 0)],
        vec![value(|b| b.double(9_223_372_036_854_775_808.0)), number("9223372036854775808", 0)],
        vec![number("18446744073709551615", 0)],
        vec![value(|b| b.double(f64::MAX))],
        vec![number("1", 6111)],
        vec![value(|b| b.double(f64::INFINITY))],
    ]);
}

/// An encoding whose coefficient has more than 34 digits means 0, in either form of the encoding.
#[test]
fn decimals_that_are_not_canonical_are_zero() {
    let above = 10u128.pow(34) | 6176 << 113;
    let large_form = 3u128 << 125 | 6176 << 111 | 5;
    check_ascending(&[vec![int(0), decimal(above), decimal(large_form), decimal(1 << 127 | large_form)], vec![int(1)]]);
}

#[test]
fn numbers_agree_with_their_decimal_text() {
    let mut random = Random::new(1);
    let numbers: Vec<_> = (0..700).map(|_| random.number_with_text()).collect();
    for (a, text_a) in &numbers {
        for (b, text_b) in &numbers {
            let expected = text_a.cmp(text_b);
            assert_eq!(compare_numbers(a.view(), b.view()), expected, "{a:?} against {b:?}");
            assert_eq!(key(a).cmp(&key(b)), expected, "keys of {a:?} and {b:?}");
        }
    }
}

#[test]
fn the_text_model_knows_that_a_tenth_is_no_double() {
    assert_eq!(decimal_text(false, 1, -1).cmp(&double_text(0.1)), Ordering::Less);
    assert_eq!(decimal_text(false, 5, -1).cmp(&double_text(0.5)), Ordering::Equal);
    assert_eq!(decimal_text(true, 1, 0).cmp(&double_text(-2.0)), Ordering::Greater);
}

#[test]
fn the_order_is_total_and_keys_agree() {
    let mut random = Random::new(2);
    let mut values: Vec<_> = (0..600).map(|_| any_value(&mut random, 3)).collect();
    for a in &values {
        for b in &values {
            let order = compare(a.view(), b.view());
            assert_eq!(order, compare(b.view(), a.view()).reverse(), "{a:?} against {b:?}");
            assert_eq!(key(a).cmp(&key(b)), order, "keys of {a:?} and {b:?}");
            assert!(a == b || !key(b).starts_with(&key(a)) || order == Ordering::Equal, "{a:?} begins {b:?}");
        }
    }
    // Transitive: after sorting by neighbours every pair is in order.
    values.sort_by(|a, b| compare(a.view(), b.view()));
    for (i, a) in values.iter().enumerate() {
        for b in &values[i..] {
            assert_ne!(compare(a.view(), b.view()), Ordering::Greater, "{a:?} against {b:?}");
        }
    }
}

#[test]
fn keys_follow_each_other() {
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let [a, b, c, d] = std::array::from_fn(|_| any_value(&mut random, 1));
        let mut left = key(&a);
        sort_key_descending(b.view(), &mut left);
        let mut right = key(&c);
        sort_key_descending(d.view(), &mut right);
        let expected = compare(a.view(), c.view()).then(compare(d.view(), b.view()));
        assert_eq!(left.cmp(&right), expected, "({a:?}, {b:?}) against ({c:?}, {d:?})");
    }
}

#[test]
fn the_hash_is_that_of_the_key() {
    let mut random = Random::new(4);
    for _ in 0..5000 {
        let v = any_value(&mut random, 2);
        assert_eq!(id_hash(v.view()), xxhash_rust::xxh3::xxh3_64(&key(&v)), "{v:?}");
    }
    for len in 0..70 {
        let v = text(&"x".repeat(len));
        assert_eq!(id_hash(v.view()), xxhash_rust::xxh3::xxh3_64(&key(&v)), "{v:?}");
    }
}

/// The hash stands on disk. That of no bytes is published with xxHash; the others keep ours as they are.
#[test]
fn hashes_stay_as_they_are() {
    assert_eq!(xxhash_rust::xxh3::xxh3_64(b""), 0x2d06_8005_38d3_94c2);
    assert_eq!(id_hash(int(1).view()), 0x6057_0312_bdbf_1257);
    assert_eq!(id_hash(text("abc").view()), 0xc35d_0d74_ce31_9b00);
    assert_eq!(id_hash(value(|b| b.object_id([7; 12])).view()), 0x5ec3_8190_6b35_b6c5);
}

/// The bytes stand on disk. Written out by hand from FORMAT.md, "Sort keys".
#[test]
fn keys_have_the_bytes_of_the_format() {
    let hex = |v: &JsonbBuf| key(v).iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(&value(|b| b.null())), "05");
    assert_eq!(hex(&int(1)), "0abff000000000000000");
    assert_eq!(hex(&int(-1)), "0a400fffffffffffff00");
    assert_eq!(hex(&int(0)), "0a800000000000000000");
    assert_eq!(hex(&value(|b| b.double(f64::NAN))), "0a000000000000000000");
    // 2^53 as floor, 10^15 as first digit (8192 + 15), 34 digits 9007199254740993000...0.
    let digits = 9_007_199_254_740_993u128 * 10u128.pow(18);
    assert_eq!(hex(&value(|b| b.int64((1 << 53) + 1))), format!("0ac340000000000000{}{digits:030x}", "01200f"));
    assert_eq!(hex(&text("a\0\u{1}b")), "0f6101010102".to_owned() + "6200");
    assert_eq!(hex(&object(&[("a", value(|b| b.bool(true)))])), "14286100".to_owned() + "0100");
    assert_eq!(hex(&array(&[value(|b| b.null()), int(1)])), "19050abff00000000000000000");
    assert_eq!(hex(&value(|b| b.binary(4, b"xy"))), "1e00000002047879");
    assert_eq!(hex(&value(|b| b.object_id(*b"abcdefghijkl"))), "236162636465666768696a6b6c");
    assert_eq!(hex(&value(|b| b.date(1))), "2d8000000000000001");
    assert_eq!(hex(&value(|b| b.timestamp(1, 2))), "2f0000000100000002");
    assert_eq!(hex(&value(|b| b.regex("a", "i"))), "3261006900");
    assert_eq!(hex(&value(|b| b.min_key())), "01");
    assert_eq!(hex(&value(|b| b.max_key())), "7f");
}

#[test]
fn ranges_of_numbers_begin_above_nan() {
    assert!(key(&value(|b| b.double(f64::NAN))).as_slice() < &NUMBERS_ABOVE_NAN[..]);
    assert!(key(&value(|b| b.double(f64::NEG_INFINITY))).as_slice() > &NUMBERS_ABOVE_NAN[..]);
}

/// A value nested thousands deep has an order and a key and leaves the stack alone.
#[test]
fn hostile_depth_is_survived() {
    let nested = |depth: usize, last: i32| {
        let mut b = Builder::new();
        (0..depth).for_each(|_| b.begin_array());
        b.int32(last);
        (0..depth).for_each(|_| b.end_array().unwrap());
        JsonbBuf::from_valid(b.take())
    };
    let (a, b) = (nested(5000, 1), nested(5000, 2));
    assert_eq!(compare(a.view(), b.view()), Ordering::Less);
    assert_eq!(key(&a).cmp(&key(&b)), Ordering::Less);
    let (a, b) = (nested(200, 1), nested(200, 2));
    assert_eq!(key(&a).cmp(&key(&b)), Ordering::Less);
}

#[test]
fn wrong_bytes_do_no_harm() {
    let mut random = Random::new(5);
    for _ in 0..20_000 {
        let v = any_value(&mut random, 2);
        let mut bytes = v.clone().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        let wrong = JsonbBuf::from_valid(bytes);
        let _ = (compare(wrong.view(), v.view()), key(&wrong), id_hash(wrong.view()));
    }
}
