//! Field paths: parsed once, looked up often.
//!
//! Takes text such as `address.zip` or `tags.0.name`; gives its parts, and the value at it. A part is a name; whether it
//! is also an index is for the one who steps: [`Path::get`] goes through objects only, [`Path::get_indexed`] through
//! arrays by index too. What a path means when it meets an array in a filter is not known here. Next: `edit.rs`.

use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::view::JsonbRef;

/// The most parts a path may have: no document nests deeper, and no text of a request may.
pub const PATH_PARTS_MAX: usize = 200;

/// A dotted path of one or more parts, none of them empty.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    text: Box<str>,
    /// Where each part ends in `text`.
    ends: Box<[u32]>,
}

impl Path {
    /// From its text.
    ///
    /// # Errors
    /// `BadPath` where it is empty, has an empty part, more than [`PATH_PARTS_MAX`] parts or a NUL.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = |what: &str| Err(Error::new(ErrorKind::BadPath, format!("the path {text:?} {what}")));
        if text.is_empty() {
            return bad("is empty");
        }
        if text.contains('\0') {
            return bad("holds a NUL");
        }
        if u32::try_from(text.len()).is_err() {
            return Err(Error::new(ErrorKind::BadPath, "a path of 4 GiB"));
        }
        let mut ends = Vec::new();
        let mut at = 0;
        for part in text.split('.') {
            if part.is_empty() {
                return bad("has an empty part");
            }
            if ends.len() == PATH_PARTS_MAX {
                return Err(Error::new(ErrorKind::BadPath, format!("a path of more than {PATH_PARTS_MAX} parts")));
            }
            at += part.len();
            ends.push(at as u32);
            at += 1;
        }
        Ok(Self { text: text.into(), ends: ends.into() })
    }

    /// Its text.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of parts, at least 1.
    #[inline]
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a path is never empty")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The parts in order.
    #[inline]
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator + Clone {
        (0..self.ends.len()).map(|i| self.part(i).unwrap_or_default())
    }

    /// The part at `i`, from 0.
    #[inline]
    #[must_use]
    pub fn part(&self, i: usize) -> Option<&str> {
        let start = match i.checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize + 1,
            None => 0,
        };
        self.text.get(start..*self.ends.get(i)? as usize)
    }

    /// The path of the first `n` parts; none where `n` is 0 or above [`Path::len`].
    #[must_use]
    pub fn prefix(&self, n: usize) -> Option<Self> {
        let end = *self.ends.get(n.checked_sub(1)?)? as usize;
        Some(Self { text: self.text.get(..end)?.into(), ends: self.ends.get(..n)?.into() })
    }

    /// This path with `part` after it.
    ///
    /// # Errors
    /// As [`Path::parse`].
    pub fn join(&self, part: &str) -> Result<Self, Error> {
        Self::parse(&format!("{}.{part}", self.text))
    }

    /// Whether one of the two is the other or leads to it.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.parts().zip(other.parts()).all(|(a, b)| a == b)
    }

    /// The value at the path, through objects only: O(log fields) a part.
    #[inline]
    #[must_use]
    pub fn get<'a>(&self, doc: JsonbRef<'a>) -> Option<JsonbRef<'a>> {
        let (mut value, mut start) = (doc, 0);
        for &end in &self.ends {
            let part = self.text.as_bytes().get(start..end as usize)?;
            value = value.as_object()?.get_bytes(part)?;
            start = end as usize + 1;
        }
        Some(value)
    }

    /// The value at the path, where a part that is an index ([`array_index`]) steps into an array too.
    #[must_use]
    pub fn get_indexed<'a>(&self, doc: JsonbRef<'a>) -> Option<JsonbRef<'a>> {
        self.parts().try_fold(doc, step)
    }
}

/// One step: the field `part` of an object, the element `part` of an array where it is an index.
#[inline]
#[must_use]
pub fn step<'a>(value: JsonbRef<'a>, part: &str) -> Option<JsonbRef<'a>> {
    if let Some(object) = value.as_object() {
        return object.get(part);
    }
    value.as_array()?.get(array_index(part)?)
}

/// The index that a part is: decimal digits without a leading zero, below 2^31.
#[must_use]
pub fn array_index(part: &str) -> Option<usize> {
    const DIGITS_MAX: usize = 10;
    let bytes = part.as_bytes();
    let digits = !bytes.is_empty() && bytes.len() <= DIGITS_MAX && bytes.iter().all(u8::is_ascii_digit);
    if !digits || (bytes[0] == b'0' && bytes.len() > 1) {
        return None;
    }
    part.parse().ok().filter(|&index| index <= i32::MAX as usize)
}

impl core::str::FromStr for Path {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
