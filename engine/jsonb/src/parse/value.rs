//! Values in text: which kind stands here, arrays, objects, documents.
//!
//! Takes the place of a value's first byte; appends the value and gives the place after it.

use core::ops::Range;

use super::shape::{NAME_CHUNK, NO_SHAPE, ShapeId};
use super::{BODY_LEVELS_MAX, DOCUMENT_BSON_BYTES_MAX, DOCUMENT_LEVELS_MAX, Parser, Stop, not_a_document};
use crate::builder::push_eight;
use crate::directory::{self, ID_PREFIX, NameKey, RESERVED_ID_BYTES, prefix, sort_names};
use crate::error::{Error, ErrorKind};
use crate::measure::bson_size;
use crate::tag::{Kind, NAME_LEN_LONG, Width};
use crate::view::JsonbRef;

/// The field that a value stands under, for what is remembered of objects there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) shape: ShapeId,
    pub(super) index: usize,
}

/// An object that is being written.
struct Open {
    start: usize,
    width: Width,
    shape: ShapeId,
    first_name: usize,
    /// The index in the shape that the next name should have.
    next: usize,
    /// Whether all names so far are those of the shape, none left out.
    exact: bool,
}

impl Open {
    fn header_end(&self) -> usize {
        self.start + 1 + 2 * self.width.bytes()
    }
}

/// An index that no shape has: what comes after an unknown name is not looked up.
const LOST: usize = usize::MAX / 2;
/// A text takes at most eight times its bytes as BSON (`[{},{},...]`: 14 for 3): below this none is too large.
const SURELY_SMALL_BYTES: usize = DOCUMENT_BSON_BYTES_MAX / 8;
/// `_id` as an entry, with room for an ObjectId.
const RESERVED_ID: [u8; RESERVED_ID_BYTES] =
    [3 << 1 | 1, b'_', b'i', b'd', Kind::ObjectId.tag(0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl Parser<'_> {
    /// The value at `at`, whose first byte is `first`, inside of `level` containers.
    #[inline]
    pub(super) fn value(&mut self, at: usize, first: u8, holder: Holder, level: u32) -> Result<usize, Stop> {
        match first {
            b'"' => self.string(at + 1),
            b'-' | b'0'..=b'9' => self.number(at),
            b'{' => self.object(at, holder, level + 1),
            b'[' => self.array(at, holder, level + 1),
            b't' if self.text.get(at..at + 4) == Some(b"true") => {
                self.out.push(Kind::Bool.tag(1));
                Ok(at + 4)
            }
            b'f' if self.text.get(at..at + 5) == Some(b"false") => {
                self.out.push(Kind::Bool.tag(0));
                Ok(at + 5)
            }
            b'n' if self.text.get(at..at + 4) == Some(b"null") => {
                self.out.push(Kind::Null.tag(0));
                Ok(at + 4)
            }
            _ => Err(self.unexpected(at, "a value")),
        }
    }

    fn array(&mut self, at: usize, holder: Holder, level: u32) -> Result<usize, Stop> {
        if level > self.levels_max {
            self.too_deep(at, level)?;
        }
        let start = self.out.len();
        let width = self.width_at(level);
        directory::open(&mut self.out, Kind::Array, width);
        let mut count = 0;
        let (mut first, mut at) = self.next(at + 1);
        if first != b']' {
            loop {
                at = self.value(at, first, holder, level)?;
                count += 1;
                (first, at) = self.next(at);
                if first != b',' {
                    break;
                }
                (first, at) = self.next(at + 1);
            }
            if first != b']' {
                return Err(self.unexpected(at, "a comma or the end of the array"));
            }
        }
        let closed = directory::close(&mut self.out, (start, Kind::Array, width), count, core::iter::empty());
        self.closed(start, level, width, closed);
        Ok(at + 1)
    }

    fn object(&mut self, at: usize, holder: Holder, level: u32) -> Result<usize, Stop> {
        let (first, name) = self.next(at + 1);
        if first == b'"'
            && matches!(self.byte(name + 1), b'$' | b'\\')
            && let Some(end) = self.wrapper(at, name)
        {
            return Ok(end);
        }
        if level > self.levels_max {
            self.too_deep(at, level)?;
        }
        let shape = if holder.shape == NO_SHAPE { NO_SHAPE } else { self.shapes.child(holder.shape, holder.index) };
        let mut open = self.open(shape, level);
        let end = self.fields(&mut open, first, name, level)?;
        self.close_object(at, &open, level);
        Ok(end)
    }

    /// A document at `at`, whose first byte is `first`, inside of `level` containers. Gives the place after it, and its
    /// bytes in the output or what is wrong with it.
    pub(super) fn document(
        &mut self,
        at: usize,
        first: u8,
        level: u32,
        make_id: &mut dyn FnMut() -> [u8; 12],
    ) -> Result<(usize, Result<Range<usize>, Error>), Stop> {
        let start = self.out.len();
        let outer = (self.from, self.levels_max);
        (self.from, self.levels_max) = (at, (level + DOCUMENT_LEVELS_MAX).min(BODY_LEVELS_MAX));
        let end = self.document_value(at, first, level + 1, make_id)?;
        let fault = self.fault.take();
        (self.from, self.levels_max) = outer;
        match fault {
            None => Ok((end, Ok(start..self.out.len()))),
            Some(fault) => {
                self.out.truncate(start);
                Ok((end, Err(fault)))
            }
        }
    }

    fn document_value(
        &mut self,
        at: usize,
        first: u8,
        level: u32,
        make_id: &mut dyn FnMut() -> [u8; 12],
    ) -> Result<usize, Stop> {
        let start = self.out.len();
        let (second, name) = self.next(at + 1);
        let is_wrapper = first == b'{' && second == b'"' && matches!(self.byte(name + 1), b'$' | b'\\');
        if first != b'{' || (is_wrapper && self.wrapper(at, name).is_some()) {
            self.out.truncate(start);
            let end = self.value(at, first, Holder { shape: NO_SHAPE, index: 0 }, level - 1)?;
            let kind = JsonbRef::from_valid(self.out.get(start..).unwrap_or_default()).kind();
            let place = self.lines.place(self.text, at);
            self.fault = Some(not_a_document(kind.alias()).at(place));
            return Ok(end);
        }
        if level > self.levels_max {
            self.too_deep(at, level)?;
        }
        let shape = self.shapes.root();
        let mut open = self.open(shape, level);
        if !self.text.get(name..).is_some_and(|text| text.starts_with(b"\"_id\"")) {
            self.out.extend_from_slice(&RESERVED_ID);
            self.names.push(NameKey { prefix: ID_PREFIX, at: 0 });
            open.exact = self.shapes.expect_first(shape, b"_id");
            open.next = 1;
        }
        let reserved = open.next == 1;
        let end = self.fields(&mut open, second, name, level)?;
        if reserved && self.fault.is_none() {
            self.settle_id(&mut open, make_id);
        }
        self.close_object(at, &open, level);
        if self.fault.is_none() {
            self.check_document(at, end, start);
        }
        Ok(end)
    }

    /// Fills the room for `_id`, or takes it back where the document has its own further back.
    #[inline]
    fn settle_id(&mut self, open: &mut Open, make_id: &mut dyn FnMut() -> [u8; 12]) {
        let header = open.header_end();
        let own = |names: &[NameKey]| names.iter().skip(1).position(|name| name.prefix == ID_PREFIX);
        let names = self.names.get(open.first_name..).unwrap_or_default();
        // A shape whose directory is known has the name once.
        let known = self.shapes.get(open.shape).is_some_and(|shape| shape.order.len() == names.len());
        let own = if open.exact && known { None } else { own(names) };
        match own {
            None => {
                let at = header + RESERVED_ID_BYTES - 12;
                self.out[at..at + 12].copy_from_slice(&make_id());
            }
            Some(own) => {
                self.names.remove(open.first_name);
                directory::id_to_front(&mut self.out, header, &mut self.names[open.first_name..], own);
                open.exact = false;
                open.next = LOST;
            }
        }
    }

    /// What is asked of a whole document.
    #[inline]
    fn check_document(&mut self, at: usize, end: usize, start: usize) {
        let document = JsonbRef::from_valid(self.out.get(start..).unwrap_or_default());
        let id = document.as_object().and_then(|object| object.iter().next());
        if let Some(kind @ (Kind::Array | Kind::Regex)) = id.map(|id| id.value.kind()) {
            let place = self.lines.place(self.text, at);
            let message = format!("_id is of type {}: arrays and regular expressions are refused", kind.alias());
            self.fault = Some(Error::new(ErrorKind::BadId, message).at_path("_id").at(place));
        }
        if end - at > SURELY_SMALL_BYTES {
            let size = bson_size(document);
            if size > DOCUMENT_BSON_BYTES_MAX {
                let message = format!("the document takes {size} bytes as BSON: at most {DOCUMENT_BSON_BYTES_MAX}");
                self.fault(ErrorKind::TooLarge, at, message);
            }
        }
    }

    pub(super) fn width_at(&self, level: u32) -> Width {
        self.widths.get(level as usize).copied().unwrap_or(Width::W1)
    }

    #[inline(always)]
    fn open(&mut self, shape: ShapeId, level: u32) -> Open {
        let known = self.shapes.get(shape).and_then(|shape| shape.width);
        let width = known.unwrap_or_else(|| self.width_at(level));
        let start = self.out.len();
        directory::open(&mut self.out, Kind::Object, width);
        Open { start, width, shape, first_name: self.names.len(), next: 0, exact: true }
    }

    /// The fields of an object, from its first name (or its end) at `at` on. Gives the place after its end.
    #[inline(always)]
    fn fields(&mut self, open: &mut Open, first: u8, at: usize, level: u32) -> Result<usize, Stop> {
        let (mut first, mut at) = (first, at);
        if first == b'}' {
            return Ok(at + 1);
        }
        loop {
            if first != b'"' {
                return Err(self.unexpected(at, "a field name in quotes"));
            }
            at = self.name(open, at)?;
            let holder = Holder { shape: open.shape, index: open.next - 1 };
            (first, at) = self.next(at);
            if first != b':' {
                return Err(self.unexpected(at, "a colon"));
            }
            (first, at) = self.next(at + 1);
            at = self.value(at, first, holder, level)?;
            (first, at) = self.next(at);
            if first != b',' {
                break;
            }
            (first, at) = self.next(at + 1);
        }
        if first != b'}' {
            return Err(self.unexpected(at, "a comma or the end of the object"));
        }
        Ok(at + 1)
    }

    /// The name whose opening quote is at `at`; gives the place after it.
    #[inline(always)]
    fn name(&mut self, open: &mut Open, at: usize) -> Result<usize, Stop> {
        if let Some(chunk) = self.text.get(at..).and_then(|t| t.first_chunk::<NAME_CHUNK>())
            && let Some((index, known)) = self.shapes.find(open.shape, open.next, chunk)
        {
            let start = self.out.len();
            let len = known.len as usize;
            self.names.push(NameKey { prefix: known.prefix, at: start - open.header_end() });
            self.out.extend_from_slice(&known.entry);
            self.out.truncate(start + 1 + len);
            open.exact &= index == open.next;
            open.next = index + 1;
            return Ok(at + len + 2);
        }
        self.new_name(open, at)
    }

    #[inline(never)]
    fn new_name(&mut self, open: &mut Open, at: usize) -> Result<usize, Stop> {
        let start = self.out.len();
        self.out.push(0);
        let (end, plain) = self.decode_string(at + 1)?;
        let len = self.out.len() - start - 1;
        if len < NAME_LEN_LONG {
            self.out[start] = (len as u8) << 1 | u8::from(plain);
        } else {
            self.out.extend_from_slice(&[0; 4]);
            self.out.copy_within(start + 1..start + 1 + len, start + 5);
            self.out[start] = (NAME_LEN_LONG as u8) << 1 | u8::from(plain);
            self.out[start + 1..start + 5].copy_from_slice(&(len as u32).to_le_bytes());
        }
        let name = &self.out[self.out.len() - len..];
        self.names.push(NameKey { prefix: prefix(name), at: start - open.header_end() });
        match self.shapes.find_name(open.shape, open.next, name) {
            Some(index) => {
                open.exact &= index == open.next;
                open.next = index + 1;
            }
            None if self.shapes.learn(open.shape, open.next, name, plain) => open.next += 1,
            None => {
                open.exact = false;
                open.next = LOST;
            }
        }
        if !plain && name.contains(&0) {
            self.fault(ErrorKind::NulInName, at, "a field name holds a NUL".to_owned());
        }
        Ok(end)
    }

    /// Writes the header and the directory of an object that began at `at` in the text.
    #[inline(always)]
    fn close_object(&mut self, at: usize, open: &Open, level: u32) {
        let count = self.names.len() - open.first_name;
        let frame = (open.start, Kind::Object, open.width);
        let closed = match self.shapes.get(open.shape) {
            Some(shape) if open.exact && count == shape.names.len() && shape.order.len() == count => {
                let names = self.names.get(open.first_name..).unwrap_or_default();
                let ats = shape.order.iter().map(|&i| names.get(i as usize).map_or(0, |name| name.at));
                directory::close(&mut self.out, frame, count, ats)
            }
            _ => {
                self.sort(at, open);
                let ats = self.names[open.first_name..].iter().map(|name| name.at);
                directory::close(&mut self.out, frame, count, ats)
            }
        };
        self.names.truncate(open.first_name);
        self.closed(open.start, level, open.width, closed);
        if closed != Some(open.width)
            && let Some(shape) = self.shapes.get_mut(open.shape)
        {
            shape.width = closed;
        }
    }

    #[inline(never)]
    fn sort(&mut self, at: usize, open: &Open) {
        let entries = &self.out[open.header_end()..];
        let names = &mut self.names[open.first_name..];
        match sort_names(names, entries) {
            Ok(()) if open.exact => self.shapes.learn_order(open.shape, names),
            Ok(()) => {}
            Err(repeated) => self.repeated(at, repeated.path().to_owned()),
        }
    }

    #[inline(always)]
    fn closed(&mut self, start: usize, level: u32, guess: Width, width: Option<Width>) {
        if width != Some(guess) || self.widths.len() <= level as usize {
            self.remember_width(start, level, width);
        }
    }

    #[cold]
    fn remember_width(&mut self, start: usize, level: u32, width: Option<Width>) {
        let level = level as usize;
        if self.widths.len() <= level {
            self.widths.resize(level + 1, Width::W1);
        }
        self.widths[level] = width.unwrap_or(Width::W1);
        if width.is_none() {
            self.out.truncate(start);
            push_eight(&mut self.out, Kind::Double, 0);
            self.fault(ErrorKind::TooLarge, self.from, "a value takes 4 GiB or more".to_owned());
        }
    }
}
