//! Where a stream stands, as a text.
//!
//! ```text
//! version u8 | flags u8 (1: the invalidation was told) | database u32 | scope u32 | seq u64 | index u32 | crc u32
//! ```
//!
//! in big-endian, as hex digits. `database` and `scope` are digests: a token of another database, or of a stream on other
//! names, is refused. The checksum tells a token that was cut or mistyped. Takes any text; it must never panic.

use crate::error::{Error, ErrorKind, Result};
use crate::ids::Seq;

const VERSION: u8 = 0;
const BYTES: usize = 26;
const INVALIDATED: u8 = 1;
/// The index of a place behind all changes of a commit.
pub(crate) const WHOLE: u32 = u32::MAX;

/// A place between two changes: everything before it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The commit.
    pub seq: Seq,
    /// The last change in it that was told; `WHOLE` for all of it.
    pub index: u32,
    /// Whether the end of the stream that this change means was told too.
    pub invalidated: bool,
}

impl Position {
    /// Behind a whole commit.
    pub(crate) fn behind(seq: Seq) -> Self {
        Self { seq, index: WHOLE, invalidated: false }
    }

    /// Whether nothing more is to be told of its commit.
    pub(crate) fn is_whole(self) -> bool {
        self.index == WHOLE
    }
}

/// What a stream's tokens have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Of the database.
    pub database: u32,
    /// Of the names that are watched.
    pub scope: u32,
}

impl Mark {
    /// Of a database by its number, which tokens do not give away, and of a scope.
    pub(crate) fn new(database: u64, scope: (&str, &str)) -> Self {
        // No name holds a slash.
        let text = format!("{}/{}", scope.0, scope.1);
        Self { database: crc32c::crc32c(&database.to_le_bytes()), scope: crc32c::crc32c(text.as_bytes()) }
    }

    /// The token of a place.
    pub(crate) fn token(self, at: Position) -> String {
        let mut bytes = [0; BYTES];
        bytes[0] = VERSION;
        bytes[1] = if at.invalidated { INVALIDATED } else { 0 };
        bytes[2..6].copy_from_slice(&self.database.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.scope.to_be_bytes());
        bytes[10..18].copy_from_slice(&at.seq.get().to_be_bytes());
        bytes[18..22].copy_from_slice(&at.index.to_be_bytes());
        let crc = crc32c::crc32c(&bytes[..22]);
        bytes[22..].copy_from_slice(&crc.to_be_bytes());
        let digit = |n: u8| char::from(b"0123456789ABCDEF"[usize::from(n & 15)]);
        let mut text = String::with_capacity(2 * BYTES);
        for byte in bytes {
            text.push(digit(byte >> 4));
            text.push(digit(byte));
        }
        text
    }

    /// The place that a token of this database and scope means.
    ///
    /// # Errors
    /// `InvalidInput` (260), which says what is wrong with it.
    pub(crate) fn position(self, token: &str) -> Result<Position> {
        let bytes = unhex(token).ok_or_else(|| invalid("it is not one that this server gave, or was cut"))?;
        let u32_at = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes);
        if u32_at(22) != crc32c::crc32c(&bytes[..22]) {
            return Err(invalid("it was cut or changed on its way"));
        }
        if bytes[0] != VERSION || bytes[1] > INVALIDATED {
            return Err(invalid("it was given by a newer version of QuarryDB"));
        }
        if u32_at(2) != self.database {
            return Err(invalid("it is of another database"));
        }
        if u32_at(6) != self.scope {
            return Err(invalid("it is of a stream on another collection or database: a stream goes on where it was"));
        }
        let seq = u64::from(u32_at(10)) << 32 | u64::from(u32_at(14));
        Ok(Position { seq: Seq::from_raw(seq), index: u32_at(18), invalidated: bytes[1] == INVALIDATED })
    }
}

/// The error of a token that does not serve.
pub(crate) fn invalid(why: &str) -> Error {
    let message = format!("the resume token cannot be used: {why}; without one a stream begins now");
    Error::new(ErrorKind::InvalidInput, message).with_code("InvalidResumeToken", 260)
}

fn unhex(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    if text.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        let [high, low] = pair else { return None };
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(bytes)
}

/// Any text as a token: read or refused, and what is read is written again.
pub(crate) fn fuzz_token(text: &str) {
    let mark = Mark::new(7, ("db", "coll"));
    if let Ok(position) = mark.position(text) {
        assert!(mark.token(position).eq_ignore_ascii_case(text), "a token is written as it was read");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;

    #[test]
    fn a_token_is_read_back_and_no_other_text_is() {
        let mark = Mark::new(0x1234_5678_9abc_def0, ("shop", "orders"));
        let at = Position { seq: Seq::from_raw(0x0102_0304_0506_0708), index: 9, invalidated: true };
        let token = mark.token(at);
        assert_eq!(token.len(), 52);
        assert!(token.contains("0102030405060708") && !token.contains("9ABCDEF0"), "{token}");
        assert_eq!(mark.position(&token).unwrap(), at);
        assert_eq!(mark.position(&token.to_ascii_lowercase()).unwrap(), at);
        for (at, _) in token.char_indices() {
            for c in ["0", "F", "g", "\u{e9}", ""] {
                let mut other = token.clone();
                other.replace_range(at..=at, c);
                if other != token {
                    let error = mark.position(&other).unwrap_err();
                    assert_eq!((error.name(), error.code()), ("InvalidResumeToken", Some(260)), "{other}");
                }
                fuzz_token(&other);
            }
        }
        assert!(mark.position("").is_err() && mark.position(&"0".repeat(52)).is_err());
    }

    #[test]
    fn a_token_of_another_database_or_of_other_names_is_told_so() {
        let mark = Mark::new(1, ("shop", "orders"));
        let token = mark.token(Position::behind(Seq::from_raw(5)));
        let told = |other: Mark| other.position(&token).unwrap_err().message().to_owned();
        assert!(told(Mark::new(2, ("shop", "orders"))).contains("another database"));
        for scope in [("shop", "order"), ("shop", ""), ("", ""), ("s", "hop/orders")] {
            assert!(told(Mark::new(1, scope)).contains("another collection"), "{scope:?}");
        }
    }
}
