//! The order-preserving byte key of a value, and the hash of it.
//!
//! Takes any value; appends bytes whose order (as unsigned bytes) is [`crate::compare`]'s: equal values have equal keys,
//! a smaller value a smaller key. No key is the beginning of another, so keys of several values can follow each other.
//! The bytes stand on disk: FORMAT.md states them ("Sort keys"), and golden tests keep them. Must never know of indexes.

use xxhash_rust::xxh3::xxh3_64;

use crate::number::{Number, OrderedNumber, REST_DIGIT_BITS};
use crate::order::{COMPARE_DEPTH_MAX, type_rank};
use crate::tag::Kind;
use crate::view::{JsonbRef, Value};

/// Ends texts and containers; below every bracket and every byte of an escaped text.
const END: u8 = 0;
/// In texts stands before a byte of 0 or 1, which is written one higher.
const ESCAPE: u8 = 1;
/// After the floor of a number: the double is the number.
const EXACT: u8 = 0;
/// After the floor of a number: its decimal form follows.
const ABOVE: u8 = 1;

/// Bracket, ordered double, marker.
const EXACT_NUMBER_BYTES: usize = 1 + 8 + 1;
const REST_DIGIT_BYTES: usize = REST_DIGIT_BITS as usize / 8;

/// A key that no number has: above NaN's and below every other number's. Ranges of numbers begin here.
pub const NUMBERS_ABOVE_NAN: [u8; EXACT_NUMBER_BYTES] = {
    let mut key = [0; EXACT_NUMBER_BYTES];
    key[0] = type_rank(Kind::Double);
    key[EXACT_NUMBER_BYTES - 1] = ABOVE;
    key
};

/// Appends the key of `v`.
pub fn sort_key(v: JsonbRef<'_>, out: &mut Vec<u8>) {
    out.push(type_rank(v.kind()));
    write_rest(v, out, 0);
}

/// Appends the key of a value that lies in no document.
pub fn sort_key_of(value: &Value<'_>, out: &mut Vec<u8>) {
    let (kind, number) = match *value {
        Value::Array(array) => return sort_key(array.as_value(), out),
        Value::Object(object) => return sort_key(object.as_value(), out),
        Value::Int32(v) => (Kind::Int32, Some(Number::Int(v.into()))),
        Value::Int64(v) => (Kind::Int64, Some(Number::Int(v))),
        Value::Double(v) => (Kind::Double, Some(Number::Double(v))),
        Value::Decimal128(v) => (Kind::Decimal128, Some(Number::Decimal(v))),
        Value::Null => (Kind::Null, None),
        Value::Bool(_) => (Kind::Bool, None),
        Value::String(_) => (Kind::String, None),
        Value::Binary { .. } => (Kind::Binary, None),
        Value::ObjectId(_) => (Kind::ObjectId, None),
        Value::Date(_) => (Kind::Date, None),
        Value::Regex { .. } => (Kind::Regex, None),
        Value::Timestamp { .. } => (Kind::Timestamp, None),
        Value::MinKey => (Kind::MinKey, None),
        Value::MaxKey => (Kind::MaxKey, None),
    };
    out.push(type_rank(kind));
    match number {
        Some(number) => write_number(number.ordered(), out),
        None => write_plain(value, out, 0),
    }
}

/// Appends the key of `v` for a descending order: every byte of the ascending one inverted.
pub fn sort_key_descending(v: JsonbRef<'_>, out: &mut Vec<u8>) {
    let from = out.len();
    sort_key(v, out);
    out[from..].iter_mut().for_each(|b| *b = !*b);
}

/// Everything of the key after the bracket.
fn write_rest(v: JsonbRef<'_>, out: &mut Vec<u8>, depth: usize) {
    if let Some(text) = v.as_str_bytes() {
        return write_text(text, out);
    }
    if let Some(number) = Number::of(v) {
        return write_number(number.ordered(), out);
    }
    match v.value() {
        Value::Object(_) | Value::Array(_) if depth >= COMPARE_DEPTH_MAX => write_text(v.as_bytes(), out),
        value => write_plain(&value, out, depth),
    }
}

/// The same of a value that is no number.
fn write_plain(value: &Value<'_>, out: &mut Vec<u8>, depth: usize) {
    match *value {
        Value::String(text) => write_text(text.as_bytes(), out),
        Value::Object(object) => {
            for field in object {
                out.push(type_rank(field.value.kind()));
                write_text(field.name_bytes(), out);
                write_rest(field.value, out, depth + 1);
            }
            out.push(END);
        }
        Value::Array(array) => {
            for element in array {
                out.push(type_rank(element.kind()));
                write_rest(element, out, depth + 1);
            }
            out.push(END);
        }
        Value::Binary { subtype, bytes } => {
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.push(subtype);
            out.extend_from_slice(bytes);
        }
        Value::ObjectId(id) => out.extend_from_slice(&id),
        Value::Bool(b) => out.push(u8::from(b)),
        Value::Date(millis) => out.extend_from_slice(&(millis as u64 ^ 1 << 63).to_be_bytes()),
        Value::Timestamp { seconds, increment } => {
            out.extend_from_slice(&seconds.to_be_bytes());
            out.extend_from_slice(&increment.to_be_bytes());
        }
        Value::Regex { pattern, options } => {
            write_text(pattern.as_bytes(), out);
            write_text(options.as_bytes(), out);
        }
        _ => {}
    }
}

fn write_number(number: OrderedNumber, out: &mut Vec<u8>) {
    let mut bytes = [0; 9];
    bytes[..8].copy_from_slice(&number.floor.to_be_bytes());
    bytes[8] = if number.is_exact() { EXACT } else { ABOVE };
    out.extend_from_slice(&bytes);
    if !number.is_exact() {
        out.extend_from_slice(&number.exponent.to_be_bytes());
        out.extend_from_slice(&number.digits.to_be_bytes()[16 - REST_DIGIT_BYTES..]);
    }
}

fn write_text(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = text.iter().position(|&b| b <= ESCAPE) {
        out.extend_from_slice(&text[..at]);
        out.extend_from_slice(&[ESCAPE, text[at] + 1]);
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
    out.push(END);
}

/// How many bytes the first of some keys that follow each other has; `inverted` where it is of a descending order. None where
/// there is no whole key of [`sort_key`].
#[must_use]
pub fn sort_key_len(key: &[u8], inverted: bool) -> Option<usize> {
    let mut reader = KeyReader { key, at: 0, mask: if inverted { 0xff } else { 0 } };
    let rank = reader.byte()?;
    reader.skip_rest(rank, 0)?;
    Some(reader.at)
}

struct KeyReader<'k> {
    key: &'k [u8],
    at: usize,
    /// What every byte is inverted by.
    mask: u8,
}

impl KeyReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.key.get(self.at)? ^ self.mask;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes).filter(|&at| at <= self.key.len())?;
        Some(())
    }

    fn skip_text(&mut self) -> Option<()> {
        while self.byte()? != END {}
        Some(())
    }

    /// What stands behind a bracket.
    fn skip_rest(&mut self, rank: u8, depth: usize) -> Option<()> {
        const NUMBER: u8 = type_rank(Kind::Double);
        const STRING: u8 = type_rank(Kind::String);
        const OBJECT: u8 = type_rank(Kind::Object);
        const ARRAY: u8 = type_rank(Kind::Array);
        const BINARY: u8 = type_rank(Kind::Binary);
        const OBJECT_ID: u8 = type_rank(Kind::ObjectId);
        const BOOL: u8 = type_rank(Kind::Bool);
        const DATE: u8 = type_rank(Kind::Date);
        const TIMESTAMP: u8 = type_rank(Kind::Timestamp);
        const REGEX: u8 = type_rank(Kind::Regex);
        match rank {
            NUMBER => {
                self.skip(size_of::<u64>())?;
                if self.byte()? == ABOVE { self.skip(size_of::<u16>() + REST_DIGIT_BYTES) } else { Some(()) }
            }
            STRING => self.skip_text(),
            OBJECT | ARRAY if depth >= COMPARE_DEPTH_MAX => self.skip_text(),
            OBJECT | ARRAY => loop {
                match self.byte()? {
                    END => return Some(()),
                    inner => {
                        if rank == OBJECT {
                            self.skip_text()?;
                        }
                        self.skip_rest(inner, depth + 1)?;
                    }
                }
            },
            BINARY => {
                let mut len = 0;
                for _ in 0..size_of::<u32>() {
                    len = len << 8 | usize::from(self.byte()?);
                }
                self.skip(1 + len)
            }
            OBJECT_ID => self.skip(12),
            BOOL => self.skip(1),
            DATE | TIMESTAMP => self.skip(8),
            REGEX => {
                self.skip_text()?;
                self.skip_text()
            }
            _ => Some(()),
        }
    }
}

/// Strings up to this many bytes are hashed without an allocation.
const SHORT_STRING_MAX: usize = 62;

/// xxh3-64 of the sort key: equal values have equal hashes. Stands on disk, so it never changes.
#[must_use]
pub fn id_hash(v: JsonbRef<'_>) -> u64 {
    match v.kind() {
        Kind::ObjectId => {
            let mut key = [type_rank(Kind::ObjectId); 13];
            if let Value::ObjectId(id) = v.value() {
                key[1..].copy_from_slice(&id);
            }
            xxh3_64(&key)
        }
        Kind::Int32 | Kind::Int64 | Kind::Double => {
            let number = Number::of(v).map_or(OrderedNumber::of_double(f64::NAN), Number::ordered);
            if !number.is_exact() {
                return hash_of_whole_key(v);
            }
            let mut key = [EXACT; EXACT_NUMBER_BYTES];
            key[0] = type_rank(Kind::Double);
            key[1..9].copy_from_slice(&number.floor.to_be_bytes());
            xxh3_64(&key)
        }
        Kind::String => {
            let text = v.as_str_bytes().unwrap_or_default();
            if text.len() > SHORT_STRING_MAX || text.iter().any(|&b| b <= ESCAPE) {
                return hash_of_whole_key(v);
            }
            let mut key = [END; SHORT_STRING_MAX + 2];
            key[0] = type_rank(Kind::String);
            key[1..=text.len()].copy_from_slice(text);
            xxh3_64(&key[..text.len() + 2])
        }
        _ => hash_of_whole_key(v),
    }
}

fn hash_of_whole_key(v: JsonbRef<'_>) -> u64 {
    let mut key = Vec::new();
    sort_key(v, &mut key);
    xxh3_64(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_behind_each_other_are_told_apart() {
        let values = [
            "1",
            "2.5",
            "-7",
            r#"{"$numberDecimal": "0.1"}"#,
            r#"{"$numberDecimal": "-1E-30"}"#,
            r#"{"$numberDouble": "NaN"}"#,
            "9007199254740993",
            r#""""#,
            r#""text""#,
            r#""\u0000\u0001a""#,
            "null",
            "true",
            "false",
            "[]",
            "{}",
            r#"[1, [], "x", [[2]]]"#,
            r#"{"a": 1, "": {"b": [null, {"c": "d"}]}}"#,
            r#"{"$date": {"$numberLong": "-5"}}"#,
            r#"{"$oid": "65a1b2c3d4e5f60718293a4b"}"#,
            r#"{"$binary": {"base64": "AAEC", "subType": "05"}}"#,
            r#"{"$binary": {"base64": "", "subType": "00"}}"#,
            r#"{"$timestamp": {"t": 1, "i": 0}}"#,
            r#"{"$regularExpression": {"pattern": "a", "options": "i"}}"#,
            r#"{"$minKey": 1}"#,
            r#"{"$maxKey": 1}"#,
        ];
        let values = values.map(|text| crate::parse(text.as_bytes()).expect("JSON"));
        for first in &values {
            for second in &values {
                for inverted in [false, true] {
                    let mut key = Vec::new();
                    let write = if inverted { sort_key_descending } else { sort_key };
                    write(first.view(), &mut key);
                    let len = key.len();
                    write(second.view(), &mut key);
                    assert_eq!(sort_key_len(&key, inverted), Some(len), "{:?}", first.view());
                    let whole = sort_key_len(&key[len..], inverted);
                    assert_eq!(whole, Some(key.len() - len));
                    // Cut off it is none, but for those of one byte.
                    assert!((0..len).all(|cut| sort_key_len(&key[..cut], inverted).is_none()), "{:?}", first.view());
                }
            }
        }
    }
}
