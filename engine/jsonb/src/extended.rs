//! Extended JSON v2: objects in text that stand for the types that JSON lacks.
//!
//! Takes an object whose first name may be a wrapper's; appends the value it stands for, or notes as the document's fault
//! what is wrong with it. A look ahead never stops the parser: what is no well-formed wrapper is then read as an
//! ordinary object, which finds the errors of syntax. `$regex`, `$options` and `$type` are operators of queries and no
//! wrappers.

use std::borrow::Cow;

use crate::builder::{push_eight, push_int32, push_int64, push_sized};
use crate::date::read_iso;
use crate::decimal::shortened;
use crate::error::ErrorKind;
use crate::number::Decimal128;
use crate::parse::{Parser, STRING_CHUNK, first_special};
use crate::tag::Kind;

/// Why a wrapper is refused, in words.
type Refused = String;

/// The letters of a regular expression's options, in BSON's order.
const REGEX_OPTIONS: &[u8] = b"ilmsux";

/// The fields that a wrapper's inner object has: the first's and the second's name.
const BINARY_FIELDS: [&str; 2] = ["base64", "subType"];
const REGEX_FIELDS: [&str; 2] = ["pattern", "options"];
const TIMESTAMP_FIELDS: [&str; 2] = ["t", "i"];

/// A token inside a wrapper.
#[derive(Debug)]
enum Token<'t> {
    Text(Cow<'t, str>),
    /// A non-negative or negative integer literal that fits.
    Integer(i64),
}

impl<'t> Parser<'t> {
    /// The value that the object at `at` stands for, whose first name begins at `name`: appended, and the place after
    /// the object. None where it is an ordinary object, or a wrapper that is refused.
    #[inline(never)]
    pub(crate) fn wrapper(&mut self, at: usize, name: usize) -> Option<usize> {
        let (key, after) = self.look_at_string(name)?;
        if !is_wrapper(&key) {
            return None;
        }
        let (colon, after) = self.next(after);
        if colon != b':' {
            return None;
        }
        let start = self.out.len();
        let (_, value) = self.next(after + 1);
        let done = self.wrapped(&key, value).and_then(|end| {
            let (close, end) = self.next(end);
            match close {
                b'}' => Ok(end + 1),
                b',' => Err(format!("a {key:?} wrapper has no further fields")),
                _ => Err(format!("found {} where the {key:?} wrapper must end", self.found(end))),
            }
        });
        match done {
            Ok(end) => Some(end),
            Err(message) => {
                self.out.truncate(start);
                self.fault(ErrorKind::BadWrapper, at, message);
                None
            }
        }
    }

    /// Appends what stands at `at` under a wrapper's name; gives the place after it.
    fn wrapped(&mut self, key: &str, at: usize) -> Result<usize, Refused> {
        match key {
            "$oid" => {
                let (text, end) = self.wanted_string(key, at, "a string of 24 hexadecimal digits")?;
                let id = hex::<12>(&text).ok_or_else(|| wrong(key, "24 hexadecimal digits", &text))?;
                self.out.push(Kind::ObjectId.tag(0));
                self.out.extend_from_slice(&id);
                Ok(end)
            }
            "$date" => self.date(at),
            "$numberInt" => {
                let (text, end) = self.wanted_string(key, at, "an integer in a string")?;
                let v = integer(&text).and_then(|v| i32::try_from(v).ok());
                push_int32(&mut self.out, v.ok_or_else(|| wrong(key, "a 32-bit integer", &text))?);
                Ok(end)
            }
            "$numberLong" => {
                let (text, end) = self.wanted_string(key, at, "an integer in a string")?;
                push_int64(&mut self.out, integer(&text).ok_or_else(|| wrong(key, "a 64-bit integer", &text))?);
                Ok(end)
            }
            "$numberDouble" => {
                let (text, end) = self.wanted_string(key, at, "a number in a string")?;
                let v = double(&text).ok_or_else(|| wrong(key, "a double", &text))?;
                push_eight(&mut self.out, Kind::Double, v.to_bits());
                Ok(end)
            }
            "$numberDecimal" => {
                let (text, end) = self.wanted_string(key, at, "a number in a string")?;
                let v = Decimal128::parse(&text).map_err(|e| format!("{key:?}: {}", e.message()))?;
                self.out.push(Kind::Decimal128.tag(0));
                self.out.extend_from_slice(&v.to_bits().to_le_bytes());
                Ok(end)
            }
            "$uuid" => {
                let (text, end) = self.wanted_string(key, at, "a UUID in a string")?;
                let v = uuid(&text).ok_or_else(|| wrong(key, "8-4-4-4-12 hexadecimal digits", &text))?;
                self.push_binary(UUID_SUBTYPE, &v);
                Ok(end)
            }
            "$binary" => self.binary(at),
            "$regularExpression" => self.regular_expression(at),
            "$timestamp" => self.timestamp(at),
            "$minKey" | "$maxKey" => match self.look_at_token(at) {
                Some((Token::Integer(1), end)) => {
                    let kind = if key == "$minKey" { Kind::MinKey } else { Kind::MaxKey };
                    self.out.push(kind.tag(0));
                    Ok(end)
                }
                _ => Err(format!("{key:?} wants 1: found {}", self.found_value(at))),
            },
            _ => Err(format!("{key:?} is not supported: this BSON type is deprecated and not stored")),
        }
    }

    fn date(&mut self, at: usize) -> Result<usize, Refused> {
        let wanted = "an ISO 8601 string, an integer or {\"$numberLong\": ...}";
        let (millis, end) = match self.look_at_token(at) {
            Some((Token::Text(text), end)) => {
                let millis = read_iso(text.as_bytes());
                (millis.ok_or_else(|| wrong("$date", "a date such as \"2026-01-02T03:04:05.678Z\"", &text))?, end)
            }
            Some((Token::Integer(millis), end)) => (millis, end),
            None => self.number_long(at).ok_or_else(|| {
                let found = self.found_value(at);
                format!("\"$date\" wants {wanted}: found {found}")
            })?,
        };
        push_eight(&mut self.out, Kind::Date, millis as u64);
        Ok(end)
    }

    /// `{"$numberLong": "..."}` at `at`.
    fn number_long(&mut self, at: usize) -> Option<(i64, usize)> {
        let (name, value) = self.inner_field(self.inner_object(at)?)?;
        let (Token::Text(text), end) = self.look_at_token(value)? else { return None };
        let (close, end) = self.next(end);
        (name == "$numberLong" && close == b'}').then_some((integer(&text)?, end + 1))
    }

    fn binary(&mut self, at: usize) -> Result<usize, Refused> {
        let ([base64, subtype], end) = self.two_fields("$binary", at, BINARY_FIELDS)?;
        let (Token::Text(base64), Token::Text(subtype)) = (base64, subtype) else {
            return Err("\"$binary\" wants strings: base64 and subType".to_owned());
        };
        let bytes = decode_base64(base64.as_bytes()).ok_or_else(|| wrong("$binary", "padded base64", &base64))?;
        let number = (1..=2).contains(&subtype.len()).then(|| hex_number(&subtype)).flatten();
        let number = number.ok_or_else(|| wrong("$binary", "a subType of one or two hexadecimal digits", &subtype))?;
        self.push_binary(number, &bytes);
        Ok(end)
    }

    fn push_binary(&mut self, subtype: u8, bytes: &[u8]) {
        push_sized(&mut self.out, Kind::Binary, 0, bytes.len());
        self.out.push(subtype);
        self.out.extend_from_slice(bytes);
    }

    fn regular_expression(&mut self, at: usize) -> Result<usize, Refused> {
        let key = "$regularExpression";
        let ([pattern, options], end) = self.two_fields(key, at, REGEX_FIELDS)?;
        let (Token::Text(pattern), Token::Text(options)) = (pattern, options) else {
            return Err(format!("{key:?} wants strings: pattern and options"));
        };
        if pattern.contains('\0') {
            return Err(format!("{key:?}: a pattern holds no NUL"));
        }
        if let Some(unknown) = options.chars().find(|c| !c.is_ascii() || !REGEX_OPTIONS.contains(&(*c as u8))) {
            return Err(format!("{key:?}: {unknown:?} is no option; there are i, l, m, s, u and x"));
        }
        let sorted: Vec<u8> = REGEX_OPTIONS.iter().copied().filter(|o| options.as_bytes().contains(o)).collect();
        push_sized(&mut self.out, Kind::Regex, 0, pattern.len());
        self.out.extend_from_slice(pattern.as_bytes());
        self.out.push(sorted.len() as u8);
        self.out.extend_from_slice(&sorted);
        Ok(end)
    }

    fn timestamp(&mut self, at: usize) -> Result<usize, Refused> {
        let (tokens, end) = self.two_fields("$timestamp", at, TIMESTAMP_FIELDS)?;
        let numbers = tokens.map(|token| match token {
            Token::Integer(n) => u32::try_from(n).ok(),
            Token::Text(_) => None,
        });
        let [Some(seconds), Some(increment)] = numbers else {
            return Err("\"$timestamp\" wants t and i as integers from 0 to 4294967295".to_owned());
        };
        push_eight(&mut self.out, Kind::Timestamp, u64::from(seconds) << 32 | u64::from(increment));
        Ok(end)
    }

    /// The two fields of the object at `at`, in the order of `names` whatever theirs is.
    fn two_fields(&mut self, key: &str, at: usize, names: [&str; 2]) -> Result<([Token<'t>; 2], usize), Refused> {
        let refused = || format!("{key:?} wants an object with exactly {:?} and {:?}", names[0], names[1]);
        self.look_at_two_fields(at, names).ok_or_else(|| {
            let found = self.found_value(at);
            format!("{}: found {found}", refused())
        })
    }

    fn look_at_two_fields(&mut self, at: usize, names: [&str; 2]) -> Option<([Token<'t>; 2], usize)> {
        let (first, value) = self.inner_field(self.inner_object(at)?)?;
        let (one, end) = self.look_at_token(value)?;
        let (comma, end) = self.next(end);
        let (quote, name) = self.next(end + 1);
        if comma != b',' || quote != b'"' {
            return None;
        }
        let (second, value) = self.inner_field(name)?;
        let (two, end) = self.look_at_token(value)?;
        let (close, end) = self.next(end);
        if close != b'}' {
            return None;
        }
        if [&*first, &*second] == names {
            Some(([one, two], end + 1))
        } else if [&*second, &*first] == names {
            Some(([two, one], end + 1))
        } else {
            None
        }
    }

    /// The place of the first name of an object at `at`.
    fn inner_object(&self, at: usize) -> Option<usize> {
        let (quote, name) = self.next(at + 1);
        (self.byte(at) == b'{' && quote == b'"').then_some(name)
    }

    /// The name whose quote is at `at`, and the place of its value.
    fn inner_field(&mut self, at: usize) -> Option<(Cow<'t, str>, usize)> {
        let (name, end) = self.look_at_string(at)?;
        let (colon, end) = self.next(end);
        (colon == b':').then(|| (name, self.next(end + 1).1))
    }

    fn wanted_string(&mut self, key: &str, at: usize, wanted: &str) -> Result<(Cow<'t, str>, usize), Refused> {
        match self.look_at_string(at) {
            Some(found) => Ok(found),
            None => Err(format!("{key:?} wants {wanted}: found {}", self.found_value(at))),
        }
    }

    fn look_at_token(&mut self, at: usize) -> Option<(Token<'t>, usize)> {
        if self.byte(at) == b'"' {
            return self.look_at_string(at).map(|(text, end)| (Token::Text(text), end));
        }
        let rest = self.text.get(at..)?;
        let minus = usize::from(rest.first() == Some(&b'-'));
        let digits = rest.get(minus..)?.iter().take_while(|b| b.is_ascii_digit()).count();
        let end = minus + digits;
        let leading_zero = digits > 1 && rest.get(minus) == Some(&b'0');
        if digits == 0 || leading_zero || matches!(rest.get(end), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        let value = core::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()?;
        Some((Token::Integer(value), at + end))
    }

    /// The decoded string whose opening quote is at `at`, and the place after it.
    fn look_at_string(&mut self, at: usize) -> Option<(Cow<'t, str>, usize)> {
        if self.byte(at) != b'"' {
            return None;
        }
        let text: &'t [u8] = self.text.get(at + 1..)?;
        if let Some(chunk) = text.first_chunk::<STRING_CHUNK>() {
            let len = first_special(chunk);
            if len < STRING_CHUNK && chunk[len] == b'"' {
                let short = core::str::from_utf8(&text[..len]).ok()?;
                return Some((Cow::Borrowed(short), at + len + 2));
            }
        }
        let start = self.out.len();
        let decoded = self.try_string(at + 1);
        let text = self.out.split_off(start);
        Some((Cow::Owned(String::from_utf8(text).ok()?), decoded?))
    }

    /// What kind of value begins at `at`, for a message.
    fn found_value(&self, at: usize) -> String {
        match self.byte(at) {
            b'{' => "an object".to_owned(),
            b'[' => "an array".to_owned(),
            b'"' => "a string".to_owned(),
            b'-' | b'0'..=b'9' => {
                let rest = self.text.get(at..).unwrap_or_default();
                let literal = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).take(40);
                format!("the number {}", literal.map(|&b| char::from(b)).collect::<String>())
            }
            b't' | b'f' => "a boolean".to_owned(),
            b'n' => "null".to_owned(),
            _ => self.found(at),
        }
    }
}

/// BSON's subtype of a UUID.
const UUID_SUBTYPE: u8 = 4;

fn is_wrapper(key: &str) -> bool {
    matches!(
        key,
        "$oid"
            | "$date"
            | "$numberInt"
            | "$numberLong"
            | "$numberDouble"
            | "$numberDecimal"
            | "$binary"
            | "$uuid"
            | "$regularExpression"
            | "$timestamp"
            | "$minKey"
            | "$maxKey"
            | "$undefined"
            | "$symbol"
            | "$code"
            | "$dbPointer"
    )
}

fn wrong(key: &str, wanted: &str, found: &str) -> Refused {
    format!("{key:?} wants {wanted}: found {:?}", shortened(found))
}

/// An integer as JSON would have it, but with leading zeros allowed.
fn integer(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ if text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) => {
            text.parse().ok().filter(|v: &f64| v.is_finite())
        }
        _ => None,
    }
}

fn hex_number(text: &str) -> Option<u8> {
    text.bytes().try_fold(0, |n, b| Some(n << 4 | char::from(b).to_digit(16)? as u8))
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = hex_number(&text[2 * i..2 * i + 2])?;
    }
    Some(bytes)
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let dashes = [8, 13, 18, 23];
    if text.len() != 36 || !text.is_ascii() || !dashes.iter().all(|&at| text.as_bytes()[at] == b'-') {
        return None;
    }
    hex(&text.replace('-', ""))
}

/// Base64 of RFC 4648, section 4, with its padding and no bits lost.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| {
        Some(match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        })
    };
    let (groups, []) = text.as_chunks::<4>() else { return None };
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (i, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|&&b| b == b'=').count();
        if padding > 2 || (padding > 0 && i + 1 != groups.len()) {
            return None;
        }
        let digits = &group[..4 - padding];
        let bits = digits.iter().try_fold(0_u32, |bits, &b| Some(bits << 6 | u32::from(digit(b)?)))?;
        let bits = bits << (6 * padding);
        let [_, one, two, three] = bits.to_be_bytes();
        let kept = 3 - padding;
        if [one, two, three][kept..].iter().any(|&b| b != 0) {
            return None;
        }
        bytes.extend_from_slice(&[one, two, three][..kept]);
    }
    Some(bytes)
}
