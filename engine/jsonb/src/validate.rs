//! The gate for untrusted bytes: only what `builder.rs` could have written passes.
//!
//! Takes bytes from a disk, a network or a program; gives a `JsonbRef` or what is wrong and where. Takes linear time, and
//! stack for `BODY_LEVELS_MAX` levels at most. What passes has one form for one value: widths are the narrowest, flags
//! say what is so, the directory is in order and complete. The rules are FORMAT.md's.

use crate::builder::{bytes_needed, escape_mask};
use crate::error::{Error, ErrorKind, Place};
use crate::object::{HEAD_BYTES, probe};
use crate::parse::BODY_LEVELS_MAX;
use crate::tag::{INT64_WIDTHS, Kind, NAME_LEN_LONG, Width, aux};
use crate::view::JsonbRef;

/// Checks that `bytes` are exactly one value of this format.
///
/// # Errors
/// `Malformed` with the offset of what is wrong.
pub fn validate(bytes: &[u8]) -> Result<JsonbRef<'_>, Error> {
    let words = bytes.len() / 64 + 1;
    let (mut few, mut many) = ([0; SMALL_WORDS], Vec::new());
    let marks = if words <= SMALL_WORDS {
        &mut few[..words]
    } else {
        many.resize(words, 0);
        &mut many[..]
    };
    let mut check = Check { bytes, marks };
    let checked =
        check.value(0, bytes.len(), 0).and_then(|end| wrong_unless(end == bytes.len(), end, "bytes follow the value"));
    match checked {
        Ok(()) => Ok(JsonbRef::from_valid(bytes)),
        Err(wrong) => Err(Error::new(ErrorKind::Malformed, wrong.what).at(Place::in_bytes(wrong.at))),
    }
}

/// What is wrong, and at which byte. Boxed, so that results travel in registers.
#[derive(Debug)]
struct Finding {
    at: usize,
    what: &'static str,
}

type Wrong = Box<Finding>;

#[cold]
fn wrong(at: usize, what: &'static str) -> Wrong {
    Box::new(Finding { at, what })
}

#[inline(always)]
fn wrong_unless(holds: bool, at: usize, what: &'static str) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(wrong(at, what)) }
}

/// Words of marks that need no allocation: documents up to 2 KiB.
const SMALL_WORDS: usize = 32;

struct Check<'a, 'm> {
    bytes: &'a [u8],
    /// A bit for each byte: an entry of an object that is still open begins there.
    marks: &'m mut [u64],
}

impl<'a> Check<'a, '_> {
    /// The value at `at`, which may not go beyond `end`, inside of `level` containers. Gives its end.
    fn value(&mut self, at: usize, end: usize, level: u32) -> Result<usize, Wrong> {
        let Some(&tag) = self.bytes.get(..end).and_then(|b| b.get(at)) else {
            return Err(wrong(at, "the bytes end where a value must begin"));
        };
        let Some(kind) = Kind::of(tag) else {
            return Err(wrong(at, "no value of this format begins so"));
        };
        let aux = aux(tag);
        let fixed = |len: usize, aux_max: u8| {
            wrong_unless(aux <= aux_max, at, "the tag has bits set that its kind does not use")?;
            wrong_unless(end - at > len, at, "the bytes end inside a value")?;
            Ok(at + 1 + len)
        };
        match kind {
            Kind::Null | Kind::MinKey | Kind::MaxKey => fixed(0, 0),
            Kind::Bool => fixed(0, 1),
            Kind::Double | Kind::Date | Kind::Timestamp => fixed(8, 0),
            Kind::Decimal128 => fixed(16, 0),
            Kind::ObjectId => fixed(12, 0),
            Kind::Int32 => {
                let value_end = fixed(aux as usize, 4)?;
                let v = JsonbRef::from_valid(&self.bytes[at..value_end]).as_i64().unwrap_or(0);
                wrong_unless(bytes_needed(v) == aux as usize, at, "an integer in more bytes than it needs")?;
                Ok(value_end)
            }
            Kind::Int64 => {
                let value_end = fixed(INT64_WIDTHS[aux as usize & 7], 7)?;
                let v = JsonbRef::from_valid(&self.bytes[at..value_end]).as_i64().unwrap_or(0);
                let needed = bytes_needed(v).min(INT64_WIDTHS.len() - 1);
                wrong_unless(needed == aux as usize, at, "an integer in more bytes than it needs")?;
                Ok(value_end)
            }
            Kind::String => {
                let (text, value_end) = self.sized(at, end, aux, 0)?;
                let (ascii, plain) = look_at(text);
                wrong_unless(ascii || simdutf8::basic::from_utf8(text).is_ok(), at, "a string that is not UTF-8")?;
                wrong_unless(plain == (aux & 1 != 0), at, "a string whose plain flag is wrong")?;
                Ok(value_end)
            }
            Kind::Binary => {
                wrong_unless(aux & 1 == 0, at, "the tag has bits set that its kind does not use")?;
                Ok(self.sized(at, end, aux, 1)?.1)
            }
            Kind::Regex => self.regex(at, end, aux),
            Kind::Array | Kind::Object => self.container(at, end, kind, aux, level + 1),
        }
    }

    /// The bytes that the length after a tag covers, `gap` bytes after it, and their end.
    #[inline]
    fn sized(&self, at: usize, end: usize, aux: u8, gap: usize) -> Result<(&'a [u8], usize), Wrong> {
        let Some(width) = Width::of_code(aux >> 1) else {
            return Err(wrong(at, "a tag with no width"));
        };
        let start = at + 1 + width.bytes() + gap;
        wrong_unless(start <= end, at, "the bytes end inside a value")?;
        let len = width.read(self.bytes, at + 1);
        wrong_unless(len <= end - start, at, "the bytes end inside a value")?;
        wrong_unless(Width::for_len(len) == width, at, "a length in more bytes than it needs")?;
        Ok((&self.bytes[start..start + len], start + len))
    }

    fn regex(&self, at: usize, end: usize, aux: u8) -> Result<usize, Wrong> {
        wrong_unless(aux & 1 == 0, at, "the tag has bits set that its kind does not use")?;
        let (pattern, options_at) = self.sized(at, end, aux, 0)?;
        wrong_unless(options_at < end, at, "the bytes end inside a value")?;
        let options_end = options_at + 1 + self.bytes[options_at] as usize;
        wrong_unless(options_end <= end, at, "the bytes end inside a value")?;
        let options = &self.bytes[options_at + 1..options_end];
        wrong_unless(simdutf8::basic::from_utf8(pattern).is_ok(), at, "a pattern that is not UTF-8")?;
        let ordered = options.is_ascii() && options.windows(2).all(|pair| pair[0] < pair[1]);
        wrong_unless(ordered, options_at, "options that are not letters in order")?;
        Ok(options_end)
    }

    fn container(&mut self, at: usize, end: usize, kind: Kind, aux: u8, level: u32) -> Result<usize, Wrong> {
        wrong_unless(level <= BODY_LEVELS_MAX, at, "more levels of objects and arrays than any value may have")?;
        let width = if aux < 4 { Width::of_code(aux) } else { None };
        let Some(width) = width else {
            return Err(wrong(at, "a tag with no width"));
        };
        let header = 1 + 2 * width.bytes();
        wrong_unless(header <= end - at, at, "the bytes end inside a value")?;
        let (size, count) = (width.read(self.bytes, at + 1), width.read(self.bytes, at + 1 + width.bytes()));
        wrong_unless((header..=end - at).contains(&size), at, "a size beyond the bytes that are there")?;
        let directory_len = if kind == Kind::Object { count } else { 0 };
        let Some(body) = (size - header).checked_sub(directory_len.saturating_mul(width.bytes())) else {
            return Err(wrong(at, "a directory larger than its object"));
        };
        let fits = |w: Width| 1 + 2 * w.bytes() + body + directory_len * w.bytes() <= w.max();
        let narrower = [Width::W1, Width::W2].into_iter().find(|&w| w < width && fits(w));
        wrong_unless(narrower.is_none(), at, "a size in more bytes than it needs")?;
        let (mut place, body_end) = (at + header, at + header + body);
        let mut found = 0;
        while place < body_end {
            if kind == Kind::Object {
                self.marks[place / 64] |= 1 << (place % 64);
                place = self.name(place, body_end)?.1;
            }
            place = self.value(place, body_end, level)?;
            found += 1;
        }
        wrong_unless(found == count, at, "a count that is not that of the values")?;
        if kind == Kind::Object {
            self.directory(at, body_end, width, count)?;
            self.clear_marks(at, body_end);
        }
        Ok(at + size)
    }

    /// The name at `at` and where its value begins.
    #[inline]
    fn name(&self, at: usize, end: usize) -> Result<(&'a [u8], usize), Wrong> {
        let (mut start, header) = (at + 1, self.bytes[at]);
        let mut len = (header >> 1) as usize;
        if len == NAME_LEN_LONG {
            wrong_unless(4 <= end - start, at, "the bytes end inside a name")?;
            len = Width::W4.read(self.bytes, start);
            start += 4;
            wrong_unless(len >= NAME_LEN_LONG, at, "a length in more bytes than it needs")?;
        }
        wrong_unless(len <= end - start, at, "the bytes end inside a name")?;
        let name = &self.bytes[start..start + len];
        let (ascii, plain) = look_at(name);
        wrong_unless(plain == (header & 1 != 0), at, "a name whose plain flag is wrong")?;
        wrong_unless(ascii || simdutf8::basic::from_utf8(name).is_ok(), at, "a name that is not UTF-8")?;
        wrong_unless(plain || !name.contains(&0), at, "a name with a NUL in it")?;
        Ok((name, start + len))
    }

    /// The directory at `directory` of the object at `at`: each of its offsets is that of an entry, and the names are
    /// strictly in order; being as many as the entries they are then all of them.
    fn directory(&self, at: usize, directory: usize, width: Width, count: usize) -> Result<(), Wrong> {
        let mut before = None;
        for i in 0..count {
            let place = directory + i * width.bytes();
            let offset = width.read(self.bytes, place);
            let entry = at + offset;
            let marked = entry < directory && self.marks[entry / 64] >> (entry % 64) & 1 != 0;
            wrong_unless(marked, place, "a directory that points where no field begins")?;
            let name = probe(self.bytes, entry).unwrap_or_default();
            let in_order = before.is_none_or(|before| self.is_less(before, name));
            wrong_unless(in_order, place, "a directory that is not in order")?;
            before = Some(name);
        }
        Ok(())
    }

    /// Takes back the marks of an object that is done, so that no directory around it can point into it.
    #[inline]
    fn clear_marks(&mut self, from: usize, to: usize) {
        let (first, last) = (from / 64, to / 64);
        let (before, after) = ((1 << (from % 64)) - 1, u64::MAX << (to % 64));
        if first == last {
            self.marks[first] &= before | after;
        } else {
            self.marks[first] &= before;
            self.marks[first + 1..last].fill(0);
            self.marks[last] &= after;
        }
    }

    /// Whether one probed name is before another: by length, then by bytes.
    #[inline(always)]
    fn is_less(&self, a: (usize, u64, usize), b: (usize, u64, usize)) -> bool {
        let rest = |(len, _, start): (usize, u64, usize)| self.bytes.get(start..start + len).unwrap_or_default();
        (a.0, a.1) < (b.0, b.1) || ((a.0, a.1) == (b.0, b.1) && a.0 > HEAD_BYTES && rest(a) < rest(b))
    }
}

/// Whether a text is ASCII, and whether it is plain.
#[inline(always)]
fn look_at(text: &[u8]) -> (bool, bool) {
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = text.as_chunks::<8>();
    let (mut high, mut special) = (0, 0);
    let mut look = |word: u64| {
        high |= word & TOPS;
        special |= escape_mask(word);
    };
    words.iter().for_each(|word| look(u64::from_le_bytes(*word)));
    match text.last_chunk::<8>() {
        // The last eight bytes, some of them for the second time.
        Some(word) => look(u64::from_le_bytes(*word)),
        None => {
            let mut word = [b' '; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            look(u64::from_le_bytes(word));
        }
    }
    (high == 0, special == 0)
}
