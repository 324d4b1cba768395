//! Strings in text: plain ones are copied as they are found, others are decoded.
//!
//! Takes a position after an opening quote; appends the string's bytes to the output and gives the position after the
//! closing quote. The text is known to be UTF-8.

use super::scan::{STRING_CHUNK, first_special};
use super::{Parser, Stop};
use crate::builder::is_plain;
use crate::tag::{Kind, Width};

impl Parser<'_> {
    /// A string value; `at` is after its opening quote.
    #[inline(always)]
    pub(super) fn string(&mut self, at: usize) -> Result<usize, Stop> {
        if let Some(chunk) = self.text.get(at..).and_then(|t| t.first_chunk::<STRING_CHUNK>()) {
            let len = first_special(chunk);
            if len < STRING_CHUNK && chunk[len] == b'"' {
                let start = self.out.len();
                self.out.extend_from_slice(&[Kind::String.tag(1), len as u8]);
                self.out.extend_from_slice(chunk);
                self.out.truncate(start + 2 + len);
                return Ok(at + len + 1);
            }
        }
        self.long_string(at)
    }

    /// The same for a string that is long, has escapes, or stands near the end of the text.
    #[inline(never)]
    fn long_string(&mut self, at: usize) -> Result<usize, Stop> {
        let start = self.out.len();
        self.out.extend_from_slice(&[0, 0]);
        let (end, plain) = self.decode_string(at)?;
        let len = self.out.len() - start - 2;
        let width = Width::for_len(len);
        if width != Width::W1 {
            self.out.extend_from_slice(&[0; 4][..width.bytes() - 1]);
            self.out.copy_within(start + 2..start + 2 + len, start + 1 + width.bytes());
        }
        self.out[start] = Kind::String.tag(u8::from(plain) | (width as u8) << 1);
        self.out[start + 1..start + 1 + width.bytes()].copy_from_slice(&(len as u32).to_le_bytes()[..width.bytes()]);
        Ok(end)
    }

    /// Appends what stands between `at` and the closing quote, decoded, and nothing else. Gives the position after the
    /// quote and whether what was appended needs no escaping.
    pub(super) fn decode_string(&mut self, at: usize) -> Result<(usize, bool), Stop> {
        let start = self.out.len();
        let mut at = at;
        let mut escaped = false;
        loop {
            at = self.copy_plain(at);
            match self.text.get(at) {
                Some(b'"') => {
                    let plain = !escaped || is_plain(&self.out[start..]);
                    return Ok((at + 1, plain));
                }
                Some(b'\\') => {
                    escaped = true;
                    at = self.escape(at)?;
                }
                Some(&control) => {
                    let message = format!("a control character (0x{control:02x}) in a string: it is to be escaped");
                    return Err(self.syntax(at, message));
                }
                None => return Err(self.syntax(at, "the text ends inside a string".to_owned())),
            }
        }
    }

    /// The same for a look ahead: an error does not stop the parser.
    pub(crate) fn try_string(&mut self, at: usize) -> Option<usize> {
        let decoded = self.decode_string(at);
        if decoded.is_err() {
            self.forget_stop();
        }
        decoded.ok().map(|(end, _)| end)
    }

    /// Appends the text up to the next quote, backslash or control character; gives the place of that.
    #[inline]
    fn copy_plain(&mut self, mut at: usize) -> usize {
        while let Some(chunk) = self.text.get(at..).and_then(|t| t.first_chunk::<STRING_CHUNK>()) {
            let len = first_special(chunk);
            let end = self.out.len() + len;
            self.out.extend_from_slice(chunk);
            self.out.truncate(end);
            at += len;
            if len < STRING_CHUNK {
                return at;
            }
        }
        let rest = self.text.get(at..).unwrap_or_default();
        let len = rest.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(rest.len());
        self.out.extend_from_slice(&rest[..len]);
        at + len
    }

    /// Decodes the escape whose backslash is at `at`.
    fn escape(&mut self, at: usize) -> Result<usize, Stop> {
        let plain = match self.text.get(at + 1) {
            Some(&b @ (b'"' | b'\\' | b'/')) => b,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escape(at),
            Some(_) => {
                let message = format!("{} is no escape in a string", self.found(at));
                return Err(self.syntax(at, message));
            }
            None => return Err(self.syntax(at + 1, "the text ends inside a string".to_owned())),
        };
        self.out.push(plain);
        Ok(at + 2)
    }

    fn unicode_escape(&mut self, at: usize) -> Result<usize, Stop> {
        let unit = self.hex4(at)?;
        let (code, end) = match unit {
            0xd800..=0xdbff => {
                let low = if self.text.get(at + 6..at + 8) == Some(b"\\u") { self.hex4(at + 6)? } else { 0 };
                if !(0xdc00..=0xdfff).contains(&low) {
                    let message = format!("a lone surrogate (\\u{unit:04x}): a low one must follow a high one");
                    return Err(self.syntax(at, message));
                }
                (0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00), at + 12)
            }
            _ => (unit, at + 6),
        };
        let Some(c) = char::from_u32(code) else {
            let message = format!("a lone surrogate (\\u{unit:04x}): a high one must come before a low one");
            return Err(self.syntax(at, message));
        };
        self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(end)
    }

    /// The four hexadecimal digits of the `\u` escape at `at`.
    fn hex4(&mut self, at: usize) -> Result<u32, Stop> {
        let mut unit = 0;
        for i in at + 2..at + 6 {
            let digit = self.text.get(i).and_then(|&b| char::from(b).to_digit(16));
            let Some(digit) = digit else {
                let message = format!("found {} where \\u wants four hexadecimal digits", self.found(i));
                return Err(self.syntax(i, message));
            };
            unit = unit << 4 | digit;
        }
        Ok(unit)
    }
}
