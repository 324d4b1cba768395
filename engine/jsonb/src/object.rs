//! An object, borrowed: a field by its name in O(log n), all fields in their order.
//!
//! Bytes: `tag, size, count` (size and count of the tag's width; size is that of the whole value), then the entries in
//! field order, then the directory: `count` offsets from the value's start to entries, ordered by (name length, name).
//! An entry is a name header (`length << 1 | plain`, 127 as length: four bytes of length follow), name, value.
//! Total like `view.rs`: wrong bytes give wrong answers and no panic.

use crate::tag::{Kind, NAME_LEN_LONG, Width, aux};
use crate::view::{JsonbRef, text};

/// A borrowed object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ObjectRef<'a> {
    bytes: &'a [u8],
}

/// A field name and its value.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    name: &'a [u8],
    plain: bool,
    /// The value.
    pub value: JsonbRef<'a>,
}

impl<'a> Entry<'a> {
    /// The name.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &'a str {
        text(self.name)
    }

    /// The name's bytes, for comparing and copying.
    #[inline]
    #[must_use]
    pub fn name_bytes(&self) -> &'a [u8] {
        self.name
    }

    /// Whether the name can stand between quotes in JSON as it is.
    #[inline]
    #[must_use]
    pub fn name_is_plain(&self) -> bool {
        self.plain
    }
}

impl<'a> ObjectRef<'a> {
    pub(crate) const fn from_valid(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The object as a value.
    #[inline]
    #[must_use]
    pub const fn as_value(self) -> JsonbRef<'a> {
        JsonbRef::from_valid(self.bytes)
    }

    #[inline]
    fn width(self) -> Width {
        self.bytes.first().and_then(|&tag| Width::of_code(aux(tag))).unwrap_or(Width::W1)
    }

    /// The number of fields.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        let width = self.width();
        width.read(self.bytes, 1 + width.bytes())
    }

    /// Whether it has no field.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The field `name`: binary search in the directory.
    #[inline]
    #[must_use]
    pub fn get(self, name: &str) -> Option<JsonbRef<'a>> {
        self.get_bytes(name.as_bytes())
    }

    /// The same by the name's bytes.
    #[inline]
    #[must_use]
    pub fn get_bytes(self, name: &[u8]) -> Option<JsonbRef<'a>> {
        match self.width() {
            Width::W1 => self.search(Width::W1, name),
            Width::W2 => self.search(Width::W2, name),
            Width::W4 => self.search(Width::W4, name),
        }
    }

    #[inline(always)]
    fn search(self, width: Width, name: &[u8]) -> Option<JsonbRef<'a>> {
        let count = self.len();
        let directory = self.bytes.len().checked_sub(count.checked_mul(width.bytes())?)?;
        let (wanted_len, wanted_head) = (name.len(), head_of(name));
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            let entry = width.read(self.bytes, directory + middle * width.bytes());
            let (len, head, start) = probe(self.bytes, entry)?;
            let order = if len != wanted_len {
                len.cmp(&wanted_len)
            } else if head != wanted_head || len <= HEAD_BYTES {
                head.cmp(&wanted_head)
            } else {
                self.bytes.get(start..start + len)?.cmp(name)
            };
            match order {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Greater => high = middle,
                core::cmp::Ordering::Equal => return Some(JsonbRef::first_of(self.bytes.get(start + len..)?)),
            }
        }
        None
    }

    /// The fields in their order.
    #[inline]
    #[must_use]
    pub fn iter(self) -> ObjectIter<'a> {
        let width = self.width();
        let start = 1 + 2 * width.bytes();
        let end = self.bytes.len().saturating_sub(self.len().saturating_mul(width.bytes()));
        ObjectIter { rest: self.bytes.get(start..end).unwrap_or_default() }
    }

    /// The fields ordered by (name length, name), as the directory has them.
    pub fn iter_sorted(self) -> impl Iterator<Item = Entry<'a>> {
        let width = self.width();
        let directory = self.bytes.len().saturating_sub(self.len().saturating_mul(width.bytes()));
        (0..self.len()).map_while(move |i| {
            let at = width.read(self.bytes, directory + i * width.bytes());
            let (name, plain, end) = read_name(self.bytes, at)?;
            Some(Entry { name, plain, value: JsonbRef::first_of(self.bytes.get(end..)?) })
        })
    }
}

impl core::fmt::Debug for ObjectRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.iter().map(|e| (e.name(), e.value))).finish()
    }
}

impl<'a> IntoIterator for ObjectRef<'a> {
    type Item = Entry<'a>;
    type IntoIter = ObjectIter<'a>;
    fn into_iter(self) -> ObjectIter<'a> {
        self.iter()
    }
}

/// The fields of an object in their order.
#[derive(Clone, Debug)]
pub struct ObjectIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ObjectIter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        let (name, plain, end) = read_name(self.rest, 0)?;
        let rest = self.rest.get(end..)?;
        let value = JsonbRef::first_of(rest);
        // A value of no known size would not let the iterator move on: it ends there.
        self.rest = rest.get(value.as_bytes().len().max(1)..).unwrap_or_default();
        Some(Entry { name, plain, value })
    }
}

/// The name at `at`: its bytes, whether it is plain, and where its value begins.
#[inline(always)]
fn read_name(bytes: &[u8], at: usize) -> Option<(&[u8], bool, usize)> {
    let header = *bytes.get(at)?;
    let (mut start, mut len) = (at + 1, (header >> 1) as usize);
    if len == NAME_LEN_LONG {
        len = Width::W4.read(bytes, start);
        start += 4;
    }
    Some((bytes.get(start..start + len)?, header & 1 != 0, start + len))
}

/// The bytes of a name that are compared as one number.
pub(crate) const HEAD_BYTES: usize = 8;

/// The first bytes of a name as a number that orders as they do, zeros after a shorter name.
#[inline(always)]
pub(crate) fn head_of(name: &[u8]) -> u64 {
    if let Some(head) = name.first_chunk::<HEAD_BYTES>() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES];
    head.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(head)
}

/// The name at `at`: its length, its [`head_of`], and where it begins.
#[inline(always)]
pub(crate) fn probe(bytes: &[u8], at: usize) -> Option<(usize, u64, usize)> {
    let header = *bytes.get(at)?;
    let (mut start, mut len) = (at + 1, (header >> 1) as usize);
    if len == NAME_LEN_LONG {
        len = Width::W4.read(bytes, start);
        start += 4;
    }
    let head = match bytes.get(start..).and_then(|b| b.first_chunk::<HEAD_BYTES>()) {
        Some(chunk) if len < HEAD_BYTES => u64::from_be_bytes(*chunk) & !(u64::MAX >> (8 * len)),
        Some(chunk) => u64::from_be_bytes(*chunk),
        // So near the end only a short name can stand.
        None => head_of(bytes.get(start..start + len)?),
    };
    Some((len, head, start))
}

const _: () = assert!(Kind::Object as u8 == 16);
