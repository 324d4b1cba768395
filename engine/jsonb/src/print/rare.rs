//! The types that JSON lacks, as Extended JSON v2 writes them.
//!
//! Takes such values; appends their text.

use std::io::Write as _;

use super::{CANONICAL, PLAIN, Printer};
use crate::date::{FIRST_PLAIN_MS, ISO_BYTES_MAX, LAST_PLAIN_MS, YEAR_0_MS, write_iso};
use crate::view::{JsonbRef, Value};

/// The two hexadecimal digits of each byte.
pub(super) const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

impl<const STYLE: u8> Printer<'_, '_, STYLE> {
    /// `{"$wrapper":"text"}`; `text` needs no escaping.
    pub(super) fn wrapped_text(&mut self, wrapper: &str, text: &str) {
        for part in ["{\"", wrapper, "\":\"", text, "\"}"] {
            self.text(part);
        }
    }

    #[inline(never)]
    pub(super) fn rare(&mut self, v: JsonbRef<'_>) {
        match v.value() {
            Value::Decimal128(d) => self.formatted(format_args!("{{\"$numberDecimal\":\"{d}\"}}")),
            Value::Binary { subtype, bytes } => self.binary(subtype, bytes),
            Value::ObjectId(id) => self.object_id(id),
            Value::Date(millis) => self.date(millis),
            Value::Regex { pattern, options } => {
                self.text("{\"$regularExpression\":{\"pattern\":");
                self.string(pattern.as_bytes(), false);
                self.text(",\"options\":");
                self.string(options.as_bytes(), false);
                self.text("}}");
            }
            Value::Timestamp { seconds, increment } => {
                self.formatted(format_args!("{{\"$timestamp\":{{\"t\":{seconds},\"i\":{increment}}}}}"));
            }
            Value::MinKey => self.text("{\"$minKey\":1}"),
            Value::MaxKey => self.text("{\"$maxKey\":1}"),
            Value::Null
            | Value::Bool(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.text("null"),
        }
    }

    fn formatted(&mut self, text: core::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a Vec takes everything");
    }

    fn object_id(&mut self, id: [u8; 12]) {
        let digits = id.map(|byte| HEX[byte as usize]);
        let (before, after) = if STYLE == PLAIN { ("\"", "\"") } else { ("{\"$oid\":\"", "\"}") };
        self.text(before);
        self.out.extend_from_slice(digits.as_flattened());
        self.text(after);
    }

    fn date(&mut self, millis: i64) {
        let first = if STYLE == PLAIN { YEAR_0_MS } else { FIRST_PLAIN_MS };
        if STYLE == CANONICAL || !(first..=LAST_PLAIN_MS).contains(&millis) {
            self.text("{\"$date\":");
            self.wrapped_text("$numberLong", itoa::Buffer::new().format(millis));
            self.out.push(b'}');
            return;
        }
        let mut iso = [0; ISO_BYTES_MAX];
        let len = write_iso(millis, &mut iso);
        let (before, after) = if STYLE == PLAIN { ("\"", "\"") } else { ("{\"$date\":\"", "\"}") };
        self.text(before);
        self.out.extend_from_slice(iso.get(..len).unwrap_or_default());
        self.text(after);
    }

    fn binary(&mut self, subtype: u8, bytes: &[u8]) {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        self.text("{\"$binary\":{\"base64\":\"");
        for group in bytes.chunks(3) {
            let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let digit = |i: usize| DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            let padded = |i: usize| if i <= group.len() { digit(i) } else { b'=' };
            self.out.extend_from_slice(&[digit(0), digit(1), padded(2), padded(3)]);
        }
        self.formatted(format_args!("\",\"subType\":\"{subtype:02x}\"}}}}"));
    }
}
