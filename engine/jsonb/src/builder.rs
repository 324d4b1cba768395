//! Writes values front to back into one buffer: documents follow each other with nothing between.
//!
//! Takes scalars, names and the begin and end of containers; gives bytes as FORMAT.md states them, the shortest form of
//! each. Keeps: what is written is what `validate` passes, if the caller nests properly and gives each field one value.
//! A container's width is guessed from the last one at its depth and its body moved where the guess was wrong, so
//! documents of one shape are written without moving anything.

use crate::directory::{self, ID_PREFIX, NameKey, RESERVED_ID_BYTES, prefix};
use crate::error::{Error, ErrorKind};
use crate::known_order::KnownOrders;
use crate::number::Decimal128;
use crate::parse::Shapes;
use crate::tag::{INT64_WIDTHS, Kind, NAME_LEN_LONG, Width};
use crate::view::JsonbRef;

/// Writes values into a buffer that it owns.
#[derive(Debug, Default)]
pub struct Builder {
    pub(crate) out: Vec<u8>,
    frames: Vec<Frame>,
    /// The names of all open objects, the innermost's last.
    pub(crate) names: Vec<NameKey>,
    /// The width of the last finished container by depth.
    pub(crate) guesses: Vec<Width>,
    known_orders: KnownOrders,
    /// What the parser knows of the documents before this one.
    pub(crate) shapes: Shapes,
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

    /// The number of bytes that it has room for.
    #[must_use]
    pub(crate) fn capacity(&self) -> usize {
        self.out.capacity()
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
    pub(crate) fn value(&mut self) {
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
        directory::open(&mut self.out, kind, width);
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
        push_name(&mut self.out, name, plain);
    }

    /// Ends the innermost array.
    ///
    /// # Errors
    /// `TooLarge` where it takes 4 GiB or more.
    #[inline]
    pub fn end_array(&mut self) -> Result<(), Error> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        debug_assert!(frame.kind == Kind::Array, "an object is open");
        self.close(&frame, frame.count)
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
        let depth = self.frames.len();
        self.known_orders.sort(depth, &mut self.names[frame.first_name..], &self.out[header..])?;
        let count = self.names.len() - frame.first_name;
        self.close(&frame, count)
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
                directory::id_to_front(&mut self.out, header, &mut self.names[first..], own - first);
            } else {
                let id = make_id();
                let at = header + RESERVED_ID_BYTES - 12;
                self.out[at..at + 12].copy_from_slice(&id);
                self.names.push(NameKey { prefix: ID_PREFIX, at: 0 });
            }
        }
        self.end_object()
    }

    /// Writes header and directory of a finished container.
    #[inline]
    fn close(&mut self, frame: &Frame, count: usize) -> Result<(), Error> {
        let ats = self.names[frame.first_name..].iter().map(|name| name.at);
        let width = directory::close(&mut self.out, (frame.start, frame.kind, frame.width), count, ats);
        self.names.truncate(frame.first_name);
        let Some(width) = width else {
            return Err(Error::new(ErrorKind::TooLarge, "a value takes 4 GiB or more"));
        };
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
        push_int32(&mut self.out, v);
    }

    /// Writes a 64-bit integer.
    #[inline]
    pub fn int64(&mut self, v: i64) {
        self.value();
        push_int64(&mut self.out, v);
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

    /// Writes a regular expression. `options` are put in order, each once; what is not ASCII is left out.
    pub fn regex(&mut self, pattern: &str, options: &str) {
        self.value();
        self.sized(Kind::Regex, 0, pattern.len());
        self.out.extend_from_slice(pattern.as_bytes());
        let mut options: Vec<u8> = options.bytes().filter(u8::is_ascii).collect();
        options.sort_unstable();
        options.dedup();
        self.out.push(options.len() as u8);
        self.out.extend_from_slice(&options);
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
        push_eight(&mut self.out, kind, bits);
    }

    #[inline]
    fn sized(&mut self, kind: Kind, flag: u8, len: usize) {
        push_sized(&mut self.out, kind, flag, len);
    }
}

/// Appends an int32. More bytes than wanted are written and cut, here and below: that is cheaper than a copy of a
/// length that the compiler does not know.
#[inline(always)]
pub(crate) fn push_int32(out: &mut Vec<u8>, v: i32) {
    let start = out.len();
    let n = bytes_needed(i64::from(v));
    let [a, b, c, d] = v.to_le_bytes();
    out.extend_from_slice(&[Kind::Int32.tag(n as u8), a, b, c, d]);
    out.truncate(start + 1 + n);
}

/// Appends an int64.
#[inline(always)]
pub(crate) fn push_int64(out: &mut Vec<u8>, v: i64) {
    let start = out.len();
    // Seven bytes have no code: they are written as eight.
    let code = bytes_needed(v).min(INT64_WIDTHS.len() - 1);
    push_eight(out, Kind::Int64, v as u64);
    out[start] = Kind::Int64.tag(code as u8);
    out.truncate(start + 1 + INT64_WIDTHS[code]);
}

/// Appends a tag and eight bytes.
#[inline(always)]
pub(crate) fn push_eight(out: &mut Vec<u8>, kind: Kind, bits: u64) {
    let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
    out.extend_from_slice(&[kind.tag(0), a, b, c, d, e, f, g, h]);
}

/// Appends a tag with the flag and the length of what follows.
#[inline]
pub(crate) fn push_sized(out: &mut Vec<u8>, kind: Kind, flag: u8, len: usize) {
    let width = Width::for_len(len);
    out.push(kind.tag(flag | (width as u8) << 1));
    width.push(out, len);
}

/// Appends a name's header and the name.
#[inline]
pub(crate) fn push_name(out: &mut Vec<u8>, name: &[u8], plain: bool) {
    let plain = u8::from(plain);
    if name.len() < NAME_LEN_LONG {
        out.push((name.len() as u8) << 1 | plain);
    } else {
        out.push((NAME_LEN_LONG as u8) << 1 | plain);
        Width::W4.push(out, name.len());
    }
    out.extend_from_slice(name);
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

/// The fewest bytes whose sign extension gives `v`; 0 for 0.
#[inline(always)]
pub(crate) fn bytes_needed(v: i64) -> usize {
    if v == 0 {
        return 0;
    }
    let magnitude_bits = 64 - (v ^ (v >> 63)).leading_zeros() as usize;
    magnitude_bits / 8 + 1
}
