//! What is wrong and where: lines and columns, paths. Runs only when something is wrong.
//!
//! Takes places in the text; gives errors. Paths are not kept while parsing: they are found by going through the
//! document once more up to the fault, which is done for the first fault of each document only.

use super::{BODY_LEVELS_MAX, BYTE_ORDER_MARK, DOCUMENT_LEVELS_MAX, Parser, Stop};
use crate::error::{Error, ErrorKind, Place};

/// Counts lines from where it counted last, so that many faults in one text cost one pass over it.
#[derive(Debug)]
pub(super) struct Lines {
    counted: Place,
}

impl Default for Lines {
    fn default() -> Self {
        Self { counted: Place { line: 1, column: 1, offset: 0 } }
    }
}

impl Lines {
    /// Line and column of `offset`. Later calls are fast for later offsets.
    pub(super) fn place(&mut self, text: &[u8], offset: usize) -> Place {
        if offset < self.counted.offset {
            *self = Self::default();
        }
        let mut place = self.counted;
        let between = text.get(place.offset..offset.min(text.len())).unwrap_or_default();
        place.line += between.iter().filter(|&&b| b == b'\n').count();
        place.column = match between.iter().rposition(|&b| b == b'\n') {
            Some(newline) => between.len() - newline,
            None => place.column + between.len(),
        };
        place.offset = offset;
        self.counted = place;
        if place.line == 1 && text.starts_with(BYTE_ORDER_MARK) {
            place.column = place.column.saturating_sub(BYTE_ORDER_MARK.len()).max(1);
        }
        place
    }
}

/// One step of the path to a place.
enum Step {
    /// Where the field's name begins, its quote; none before the name.
    Field(Option<usize>),
    Element(usize),
}

impl Parser<'_> {
    /// Stops the parser: the text is not JSON.
    #[cold]
    pub(super) fn syntax(&mut self, at: usize, message: String) -> Stop {
        self.stop(ErrorKind::Syntax, at, message)
    }

    #[cold]
    fn stop(&mut self, kind: ErrorKind, at: usize, message: String) -> Stop {
        let place = self.lines.place(self.text, at);
        self.stopped = Some(Error::new(kind, message).at(place));
        Stop
    }

    /// Stops at what is not `wanted`.
    #[cold]
    pub(super) fn unexpected(&mut self, at: usize, wanted: &str) -> Stop {
        let message = format!("found {} where {wanted} must stand", self.found(at));
        self.syntax(at, message)
    }

    /// What stands at `at`, for a message.
    pub(crate) fn found(&self, at: usize) -> String {
        let rest = self.text.get(at..).unwrap_or_default();
        let rest = rest.get(..rest.len().min(8)).unwrap_or_default();
        let valid = rest.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        match valid.chars().next() {
            None if rest.is_empty() => "the end of the text".to_owned(),
            None => "bytes that are not UTF-8".to_owned(),
            Some(c) => format!("{c:?}"),
        }
    }

    /// Goes on after a look ahead that failed.
    pub(super) fn forget_stop(&mut self) {
        self.stopped = None;
    }

    /// Why the parser stopped.
    pub(super) fn why(&mut self) -> Error {
        self.stopped.take().unwrap_or_else(|| Error::new(ErrorKind::Syntax, "the text is not JSON"))
    }

    /// Notes what is wrong with the document, at the value or name that begins at `at`; the first one stays.
    #[cold]
    pub(crate) fn fault(&mut self, kind: ErrorKind, at: usize, message: String) {
        if self.fault.is_none() {
            let path = self.path_to(at);
            let place = self.lines.place(self.text, at);
            self.fault = Some(Error::new(kind, message).at_path(path).at(place));
        }
    }

    /// Notes that `name` stands twice in the object that begins at `at`.
    #[cold]
    pub(super) fn repeated(&mut self, at: usize, name: String) {
        if self.fault.is_some() {
            return;
        }
        let second = self.second_place(at, &name).unwrap_or(at);
        let mut path = self.path_to(at);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&name);
        let place = self.lines.place(self.text, second);
        let message = format!("the field {name:?} stands twice in one object");
        self.fault = Some(Error::new(ErrorKind::RepeatedKey, message).at_path(path).at(place));
    }

    /// A container beyond the levels that its document, or any body, may have.
    #[cold]
    pub(super) fn too_deep(&mut self, at: usize, level: u32) -> Result<(), Stop> {
        if level > BODY_LEVELS_MAX {
            let message = format!("more than {BODY_LEVELS_MAX} levels of objects and arrays");
            return Err(self.stop(ErrorKind::BodyTooDeep, at, message));
        }
        let message = format!("more than {DOCUMENT_LEVELS_MAX} levels of objects and arrays in a document");
        self.fault(ErrorKind::TooDeep, at, message);
        // Noted: the rest of the document is only looked at for its syntax.
        self.levels_max = BODY_LEVELS_MAX;
        Ok(())
    }

    /// The path from the document to the value or name at `at`. All text before `at` is known to be JSON.
    fn path_to(&mut self, at: usize) -> String {
        let mut steps = Vec::new();
        let mut name_next = false;
        let mut place = self.from;
        while place < at {
            match self.byte(place) {
                b'{' => {
                    steps.push(Step::Field(None));
                    name_next = true;
                }
                b'[' => steps.push(Step::Element(0)),
                b'}' | b']' => drop(steps.pop()),
                b',' => match steps.last_mut() {
                    Some(Step::Element(index)) => *index += 1,
                    Some(name) => {
                        *name = Step::Field(None);
                        name_next = true;
                    }
                    None => {}
                },
                b'"' => {
                    if name_next && let Some(step) = steps.last_mut() {
                        *step = Step::Field(Some(place));
                    }
                    name_next = false;
                    place = self.string_end(place);
                    continue;
                }
                _ => {}
            }
            place += 1;
        }
        let mut path = String::new();
        for step in steps {
            let name = match step {
                Step::Field(None) => continue,
                Step::Field(Some(name)) => self.name_at(name),
                Step::Element(index) => index.to_string(),
            };
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
        }
        path
    }

    /// Where `name` stands for the second time among the names of the object that begins at `at`.
    fn second_place(&mut self, at: usize, name: &str) -> Option<usize> {
        let (mut level, mut name_next, mut seen) = (0_usize, false, false);
        let mut place = at;
        while place < self.text.len() {
            match self.byte(place) {
                b'{' | b'[' => {
                    level += 1;
                    name_next = level == 1;
                }
                b'}' | b']' => level -= 1,
                b',' => name_next = level == 1,
                b'"' => {
                    if name_next && self.name_at(place) == name {
                        if seen {
                            return Some(place);
                        }
                        seen = true;
                    }
                    name_next = false;
                    place = self.string_end(place);
                    continue;
                }
                _ => {}
            }
            if level == 0 {
                return None;
            }
            place += 1;
        }
        None
    }

    /// The place after the string whose opening quote is at `at`.
    fn string_end(&self, at: usize) -> usize {
        let mut place = at + 1;
        while place < self.text.len() {
            match self.byte(place) {
                b'"' => return place + 1,
                b'\\' => place += 2,
                _ => place += 1,
            }
        }
        place
    }

    /// The decoded name whose opening quote is at `at`.
    fn name_at(&mut self, at: usize) -> String {
        let start = self.out.len();
        let decoded = self.decode_string(at + 1).is_ok();
        let name = self.out.get(start..).filter(|_| decoded).unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        self.out.truncate(start);
        name
    }
}
