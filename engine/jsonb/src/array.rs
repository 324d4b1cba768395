//! An array, borrowed: its elements in order.
//!
//! Bytes: `tag, size, count` (of the tag's width; size is that of the whole value), then the values. Total like
//! `view.rs`: wrong bytes give wrong answers and no panic.

use crate::tag::{Width, aux};
use crate::view::JsonbRef;

/// A borrowed array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ArrayRef<'a> {
    bytes: &'a [u8],
}

impl<'a> ArrayRef<'a> {
    pub(crate) const fn from_valid(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The array as a value.
    #[inline]
    #[must_use]
    pub const fn as_value(self) -> JsonbRef<'a> {
        JsonbRef::from_valid(self.bytes)
    }

    #[inline]
    fn width(self) -> Width {
        self.bytes.first().and_then(|&tag| Width::of_code(aux(tag))).unwrap_or(Width::W1)
    }

    /// The number of elements.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        let width = self.width();
        width.read(self.bytes, 1 + width.bytes())
    }

    /// Whether it has no element.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The elements in order.
    #[inline]
    #[must_use]
    pub fn iter(self) -> ArrayIter<'a> {
        ArrayIter { rest: self.bytes.get(1 + 2 * self.width().bytes()..).unwrap_or_default(), left: self.len() }
    }

    /// The element at `index`, from 0: steps over those before it.
    #[must_use]
    pub fn get(self, index: usize) -> Option<JsonbRef<'a>> {
        self.iter().nth(index)
    }
}

impl core::fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for ArrayRef<'a> {
    type Item = JsonbRef<'a>;
    type IntoIter = ArrayIter<'a>;
    fn into_iter(self) -> ArrayIter<'a> {
        self.iter()
    }
}

/// The elements of an array in order.
#[derive(Clone, Debug)]
pub struct ArrayIter<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = JsonbRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<JsonbRef<'a>> {
        if self.rest.is_empty() || self.left == 0 {
            return None;
        }
        let value = JsonbRef::first_of(self.rest);
        self.rest = self.rest.get(value.as_bytes().len().max(1)..).unwrap_or_default();
        self.left -= 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}
