//! Writes values front to back into one buffer: documents follow each other with nothing between.
//!
//! Takes scalars, names and the begin and end of containers; gives bytes as FORMAT.md states them, the shortest form of
//! each. Keeps: what is written is what `validate` passes, if the caller nests properly and gives each field one value.
//! A container's width is guessed from the last one at its depth and its body moved where the guess was wrong, so
//! documents of one shape are written without moving anything.

use crate::error::{Error, ErrorKind};
use crate::number::Decimal128;
use crate::tag::{INT64_WIDTHS, Kind, NAME_LEN_LONG, Width};
use crate::view::JsonbRef;

/// Writes values into a buffer that it owns.
#[derive(Debug, Default)]
pub struct Builder {
    out: Vec<u8>,
    frames: Vec<Frame>,
    /// The names of all open objects, the innermost's last.
    names: Vec<NameKey>,
    /// The width of the last finished container by depth.
    guesses: Vec<Width>,
}

#[derive(Debug)]
struct Frame {
    start: usize,
    width: Width,
    kind: Kind,
    /// Elements of an array so far.
    count: usize,
    /// Where this object's names begin in `names`.
    first_name: usize,
    reserved_id: bool,
}

/// A name for sorting: its length and first seven bytes as one number, which orders most names alone.
#[derive(Clone, Copy, Debug)]
struct NameKey {
    prefix: u64,
    /// The entry, from the end of the object's header.
    at: usize,
}

const PREFIX_BYTES: usize = 7;
/// Entries above this are sorted by the library's sort instead of insertion.
const INSERTION_SORT_MAX: usize = 20;
/// `_id`'s entry when the builder makes room for an ObjectId: header, name, tag, twelve bytes.
const RESERVED_ID_BYTES: usize = 1 + 3 + 1 + 12;

impl Builder {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that appends to `out`.
    #[must_use]
    pub fn onto(out: Vec<u8>) -> Self {
        Self { out, ..Self::default() }
    }

    /// What is written so far.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// The number of bytes written so far.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing is written.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes what is written and leaves the builder empty, its scratch space kept.
    ///
    /// # Panics
    /// When a container is open: a fault of the caller's code, never of data.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        assert!(self.frames.is_empty(), "a container is open");
        core::mem::take(&mut self.out)
    }

    /// Puts the buffer to write to, for its capacity; what it holds is kept in front.
    pub fn put(&mut self, out: Vec<u8>) {
        assert!(self.frames.is_empty(), "a container is open");
        self.out = out;
    }

    /// Forgets everything from `len` on, open containers too: the way out after an error inside a document that began
    /// there.
    pub fn rewind(&mut self, len: usize) {
        self.out.truncate(len);
        self.frames.clear();
        self.names.clear();
    }

    /// The number of open containers.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Counts a value into an open array. Every writer of a value calls it first.
    #[inline]
    fn value(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.count += 1;
        }
    }

    /// Begins an object.
    #[inline]
    pub fn begin_object(&mut self) {
        self.begin(Kind::Object);
    }

    /// Begins an array.
    #[inline]
    pub fn begin_array(&mut self) {
        self.begin(Kind::Array);
    }

    /// Begins a document whose `_id` comes first whatever the order of its fields; see [`Builder::end_document`].
    pub fn begin_document(&mut self) {
        self.begin(Kind::Object);
        self.field_unescaped(b"_id", true);
        self.out.push(Kind::ObjectId.tag(0));
        self.out.extend_from_slice(&[0; 12]);
        // Held aside: `end_document` takes it back where the document brings its own.
        self.names.pop();
        if let Some(frame) = self.frames.last_mut() {
            frame.reserved_id = true;
        }
    }

    fn begin(&mut self, kind: Kind) {
        self.value();
        let width = self.guesses.get(self.frames.len()).copied().unwrap_or(Width::W1);
        let start = self.out.len();
        self.out.push(kind.tag(width as u8));
        self.out.extend_from_slice(&[0; 8][..2 * width.bytes()]);
        let first_name = self.names.len();
        self.frames.push(Frame { start, width, kind, count: 0, first_name, reserved_id: false });
    }

    /// Names the value that comes next. NUL in it is the caller's to refuse.
    #[inline]
    pub fn field(&mut self, name: &str) {
        let plain = is_plain(name.as_bytes());
        self.field_unescaped(name.as_bytes(), plain);
    }

    /// The same where the caller knows whether the name (UTF-8) is plain: no quote, backslash or control character.
    #[inline]
    pub fn field_unescaped(&mut self, name: &[u8], plain: bool) {
        let Some(frame) = self.frames.last() else { return };
        let at = self.out.len() - (frame.start + 1 + 2 * frame.width.bytes());
        self.names.push(NameKey { prefix: prefix(name), at });
        let plain = u8::from(plain);
        if name.len() < NAME_LEN_LONG {
            self.out.push((name.len() as u8) << 1 | plain);
        } else {
            self.out.push((NAME_LEN_LONG as u8) << 1 | plain);
            Width::W4.push(&mut self.out, name.len());
        }
        self.out.extend_from_slice(name);
    }

    /// Ends the innermost array.
    ///
    /// # Errors
    /// `TooLarge` where it takes 4 GiB or more.
    #[inline]
    pub fn end_array(&mut self) -> Result<(), Error> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        debug_assert!(frame.kind == Kind::Array, "an object is open");
        self.close(&frame, frame.count, 0)
    }

    /// Ends the innermost object.
    ///
    /// # Errors
    /// `RepeatedKey` with the name; the builder is then to be rewound.
    #[inline]
    pub fn end_object(&mut self) -> Result<(), Error> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        debug_assert!(frame.kind == Kind::Object, "an array is open");
        let header = frame.start + 1 + 2 * frame.width.bytes();
        sort_names(&mut self.names[frame.first_name..], &self.out[header..])?;
        let count = self.names.len() - frame.first_name;
        self.close(&frame, count, count)
    }

    /// Ends a document: its own `_id` moves to the front, or where it has none `make_id` gives an ObjectId.
    ///
    /// # Errors
    /// As [`Builder::end_object`].
    pub fn end_document(&mut self, make_id: impl FnOnce() -> [u8; 12]) -> Result<(), Error> {
        let Some(frame) = self.frames.last() else { return Ok(()) };
        if frame.reserved_id {
            let header = frame.start + 1 + 2 * frame.width.bytes();
            let first = frame.first_name;
            let own = (first..self.names.len()).find(|&i| self.names[i].prefix == ID_PREFIX);
            if let Some(own) = own {
                let from = self.names[own].at;
                let to = self.names.get(own + 1).map_or(self.out.len() - header, |next| next.at);
                self.move_to_front(header, from, to, first, own);
            } else {
                let id = make_id();
                let at = header + RESERVED_ID_BYTES - 12;
                self.out[at..at + 12].copy_from_slice(&id);
                self.names.push(NameKey { prefix: ID_PREFIX, at: 0 });
            }
        }
        self.end_object()
    }

    /// Drops the reserved entry and brings the document's own `_id` (at `from..to` after the header) into its place.
    fn move_to_front(&mut self, header: usize, from: usize, to: usize, first: usize, own: usize) {
        let len = to - from;
        self.out[header + RESERVED_ID_BYTES..header + to].rotate_right(len);
        self.out.drain(header..header + RESERVED_ID_BYTES);
        for (i, name) in self.names[first..].iter_mut().enumerate() {
            if first + i < own {
                name.at = name.at - RESERVED_ID_BYTES + len;
            } else if first + i == own {
                name.at = 0;
            } else {
                name.at -= RESERVED_ID_BYTES;
            }
        }
    }

    /// Writes header and directory of a finished container; its body moves where the width was guessed wrong.
    #[inline]
    fn close(&mut self, frame: &Frame, count: usize, directory: usize) -> Result<(), Error> {
        let body = self.out.len() - (frame.start + 1 + 2 * frame.width.bytes());
        let size_at = |width: Width| 1 + 2 * width.bytes() + body + directory * width.bytes();
        let width = [Width::W1, Width::W2, Width::W4].into_iter().find(|&w| size_at(w) <= w.max());
        let Some(width) = width else {
            return Err(Error::new(ErrorKind::TooLarge, "a value takes 4 GiB or more"));
        };
        if width != frame.width {
            let old = frame.start + 1 + 2 * frame.width.bytes();
            let new = frame.start + 1 + 2 * width.bytes();
            if new > old {
                self.out.extend_from_slice(&[0; 8][..new - old]);
            }
            self.out.copy_within(old..old + body, new);
            self.out.truncate(new + body);
            self.out[frame.start] = frame.kind.tag(width as u8);
        }
        let size = size_at(width);
        let header = 1 + 2 * width.bytes();
        if directory > 0 {
            let names = &self.names[frame.first_name..];
            match width {
                Width::W1 => self.out.extend(names.iter().map(|n| (n.at + header) as u8)),
                Width::W2 => {
                    self.out.reserve(2 * directory);
                    names.iter().for_each(|n| self.out.extend_from_slice(&((n.at + header) as u16).to_le_bytes()));
                }
                Width::W4 => {
                    names.iter().for_each(|n| self.out.extend_from_slice(&((n.at + header) as u32).to_le_bytes()));
                }
            }
        }
        self.names.truncate(frame.first_name);
        let at = frame.start + 1;
        let bytes = width.bytes();
        self.out[at..at + bytes].copy_from_slice(&(size as u32).to_le_bytes()[..bytes]);
        self.out[at + bytes..at + 2 * bytes].copy_from_slice(&(count as u32).to_le_bytes()[..bytes]);
        let depth = self.frames.len();
        match self.guesses.get_mut(depth) {
            Some(guess) => *guess = width,
            None => self.guesses.push(width),
        }
        Ok(())
    }

    /// Writes null.
    #[inline]
    pub fn null(&mut self) {
        self.value();
        self.out.push(Kind::Null.tag(0));
    }

    /// Writes a boolean.
    #[inline]
    pub fn bool(&mut self, v: bool) {
        self.value();
        self.out.push(Kind::Bool.tag(u8::from(v)));
    }

    /// Writes a 32-bit integer.
    #[inline]
    pub fn int32(&mut self, v: i32) {
        self.value();
        let n = bytes_needed(i64::from(v));
        self.out.push(Kind::Int32.tag(n as u8));
        self.out.extend_from_slice(&v.to_le_bytes()[..n]);
    }

    /// Writes a 64-bit integer.
    #[inline]
    pub fn int64(&mut self, v: i64) {
        self.value();
        // Seven bytes have no code: they are written as eight.
        let code = bytes_needed(v).min(INT64_WIDTHS.len() - 1);
        self.out.push(Kind::Int64.tag(code as u8));
        self.out.extend_from_slice(&v.to_le_bytes()[..INT64_WIDTHS[code]]);
    }

    /// Writes a double. Every bit pattern is kept, NaN's too.
    #[inline]
    pub fn double(&mut self, v: f64) {
        self.eight(Kind::Double, v.to_bits());
    }

    /// Writes a decimal128.
    #[inline]
    pub fn decimal128(&mut self, v: Decimal128) {
        self.value();
        self.out.push(Kind::Decimal128.tag(0));
        self.out.extend_from_slice(&v.to_bits().to_le_bytes());
    }

    /// Writes a string.
    #[inline]
    pub fn string(&mut self, v: &str) {
        let plain = is_plain(v.as_bytes());
        self.string_unescaped(v.as_bytes(), plain);
    }

    /// The same where the caller knows whether the string (UTF-8) is plain: no quote, backslash or control character.
    #[inline]
    pub fn string_unescaped(&mut self, v: &[u8], plain: bool) {
        self.value();
        self.sized(Kind::String, u8::from(plain), v.len());
        self.out.extend_from_slice(v);
    }

    /// Writes bytes with BSON's subtype.
    pub fn binary(&mut self, subtype: u8, v: &[u8]) {
        self.value();
        self.sized(Kind::Binary, 0, v.len());
        self.out.push(subtype);
        self.out.extend_from_slice(v);
    }

    /// Writes an ObjectId.
    #[inline]
    pub fn object_id(&mut self, v: [u8; 12]) {
        self.value();
        self.out.push(Kind::ObjectId.tag(0));
        self.out.extend_from_slice(&v);
    }

    /// Writes a date, in milliseconds since 1970-01-01 UTC.
    #[inline]
    pub fn date(&mut self, millis: i64) {
        self.eight(Kind::Date, millis as u64);
    }

    /// Writes a regular expression. `options` beyond 255 bytes are cut; callers allow a few letters.
    pub fn regex(&mut self, pattern: &str, options: &str) {
        self.value();
        self.sized(Kind::Regex, 0, pattern.len());
        self.out.extend_from_slice(pattern.as_bytes());
        let options = options.get(..options.len().min(255)).unwrap_or_default();
        self.out.push(options.len() as u8);
        self.out.extend_from_slice(options.as_bytes());
    }

    /// Writes a timestamp.
    pub fn timestamp(&mut self, seconds: u32, increment: u32) {
        self.eight(Kind::Timestamp, u64::from(seconds) << 32 | u64::from(increment));
    }

    /// Writes the value below all others.
    pub fn min_key(&mut self) {
        self.value();
        self.out.push(Kind::MinKey.tag(0));
    }

    /// Writes the value above all others.
    pub fn max_key(&mut self) {
        self.value();
        self.out.push(Kind::MaxKey.tag(0));
    }

    /// Writes a copy of a whole value.
    #[inline]
    pub fn copy(&mut self, v: JsonbRef<'_>) {
        self.value();
        self.out.extend_from_slice(v.as_bytes());
    }

    #[inline]
    fn eight(&mut self, kind: Kind, bits: u64) {
        self.value();
        self.out.push(kind.tag(0));
        self.out.extend_from_slice(&bits.to_le_bytes());
    }

    #[inline]
    fn sized(&mut self, kind: Kind, flag: u8, len: usize) {
        let width = Width::for_len(len);
        self.out.push(kind.tag(flag | (width as u8) << 1));
        width.push(&mut self.out, len);
    }
}

/// Whether UTF-8 text can stand between quotes in JSON as it is.
#[inline]
#[must_use]
pub fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    words.iter().all(|word| !needs_escape(u64::from_le_bytes(*word)))
        && rest.iter().all(|&b| b >= 0x20 && b != b'"' && b != b'\\')
}

/// Whether one of eight bytes is a quote, a backslash or below 0x20 ("determine if a word has a byte less than n",
/// Bit Twiddling Hacks, S. E. Anderson).
#[inline(always)]
pub(crate) fn needs_escape(word: u64) -> bool {
    escape_mask(word) != 0
}

/// The same as a mask: the top bit of the lowest byte that needs escaping is set, none below it.
#[inline(always)]
pub(crate) fn escape_mask(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let zero_byte = |w: u64| w.wrapping_sub(ONES) & !w;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | zero_byte(word ^ (ONES * b'"' as u64)) | zero_byte(word ^ (ONES * b'\\' as u64))) & TOPS
}

const ID_PREFIX: u64 = prefix(b"_id");

#[inline]
const fn prefix(name: &[u8]) -> u64 {
    let len = if name.len() < 0xff { name.len() as u64 } else { 0xff };
    let mut key = len << 56;
    let n = if name.len() < PREFIX_BYTES { name.len() } else { PREFIX_BYTES };
    let mut i = 0;
    while i < n {
        key |= (name[i] as u64) << (48 - 8 * i);
        i += 1;
    }
    key
}

/// Orders the names of one object by (length, name). `entries` begins where their `at` counts from.
#[inline]
fn sort_names(names: &mut [NameKey], entries: &[u8]) -> Result<(), Error> {
    let full = |key: NameKey| name_at(entries, key.at);
    let less = |a: NameKey, b: NameKey| {
        a.prefix < b.prefix
            || (a.prefix == b.prefix && a.prefix >> 56 > PREFIX_BYTES as u64 && {
                let (a, b) = (full(a), full(b));
                (a.len(), a) < (b.len(), b)
            })
    };
    if names.len() <= INSERTION_SORT_MAX {
        for i in 1..names.len() {
            let key = names[i];
            let mut j = i;
            while j > 0 && less(key, names[j - 1]) {
                names[j] = names[j - 1];
                j -= 1;
            }
            names[j] = key;
        }
    } else {
        names.sort_unstable_by(|&a, &b| {
            a.prefix.cmp(&b.prefix).then_with(|| {
                let (a, b) = (full(a), full(b));
                (a.len(), a).cmp(&(b.len(), b))
            })
        });
    }
    for pair in names.windows(2) {
        if !less(pair[0], pair[1]) {
            let name = String::from_utf8_lossy(full(pair[0])).into_owned();
            return Err(Error::new(ErrorKind::RepeatedKey, format!("the field {name:?} stands twice in one object")));
        }
    }
    Ok(())
}

#[inline]
fn name_at(entries: &[u8], at: usize) -> &[u8] {
    let Some(&header) = entries.get(at) else { return &[] };
    let (mut start, mut len) = (at + 1, (header >> 1) as usize);
    if len == NAME_LEN_LONG {
        len = Width::W4.read(entries, start);
        start += 4;
    }
    entries.get(start..start + len).unwrap_or_default()
}

/// The fewest bytes whose sign extension gives `v`; 0 for 0.
#[inline(always)]
fn bytes_needed(v: i64) -> usize {
    if v == 0 {
        return 0;
    }
    let magnitude_bits = 64 - (v ^ (v >> 63)).leading_zeros() as usize;
    magnitude_bits / 8 + 1
}
