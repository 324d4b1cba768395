//! Codes of what an expression makes of the value at a path: each different value is asked once.
//!
//! Where the expression goes up in steps (the hour of a time) it is asked once a step. An expression that fails on a value
//! is for documents, which say so in the language's own way.

use std::cmp::Ordering;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashMap};
use quarrydb_index::column::{Lane, WINDOW_ROWS, Window};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, sort_key};
use quarrydb_query::expr::{Budget, Expression, Staircase};

use super::codes::{Codes, FIRST, MISSING, NULL, each_key};
use super::trouble::{Read, Trouble};
use crate::columns::value::{Tag, scalar_of};
use crate::exec::plain::Plain;

/// Codes of an expression's values in one run of columns.
#[derive(Debug)]
pub(super) struct Derived<'a> {
    expression: &'a Expression,
    /// The path, part by part.
    path: Vec<&'a str>,
    of: Of<'a>,
    made: Made,
}

#[derive(Debug)]
enum Of<'a> {
    /// By the code of the value at the path.
    Codes(Codes<'a>, HashMap<u32, u32, DefaultHashBuilder>),
    /// By the step on which the number is; the code of a row without one last.
    Steps(Box<Steps<'a>>),
}

#[derive(Debug)]
struct Steps<'a> {
    stairs: Staircase<'a>,
    lane: Lane<'a>,
    tag: Tag,
    window: Window,
    zone: (u64, u64),
    /// The first and the last key of each step that was met, and its code, in order.
    known: Vec<(u64, u64, u32)>,
    of_missing: Option<u32>,
}

/// The values that were made.
#[derive(Debug, Default)]
struct Made {
    /// By their `sort_key`.
    codes: HashMap<Vec<u8>, u32, DefaultHashBuilder>,
    /// From code [`FIRST`] on.
    values: Vec<JsonbBuf>,
    /// Whether one code stands for values that are equal and not the same.
    joined: bool,
}

impl<'a> Derived<'a> {
    /// For an expression of the path whose column is `plain`; none where the column does not have its values.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn new(
        expression: &'a Expression,
        path: &'a str,
        plain: &Plain<'a>,
        windows: Range<usize>,
    ) -> quarrydb_index::Result<Option<Self>> {
        let of = match Steps::new(expression, plain)? {
            Some(steps) => Of::Steps(Box::new(steps)),
            None => match Codes::new(plain, windows)? {
                Some(codes) => Of::Codes(codes, HashMap::default()),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { expression, path: path.split('.').collect(), of, made: Made::default() }))
    }

    /// Whether a code may stand for equal values of several types: which it is, a row tells.
    pub(super) fn is_joined(&self) -> bool {
        self.made.joined
    }

    /// The value of a code; none for [`MISSING`].
    pub(super) fn value(&self, code: u32) -> Option<JsonbRef<'_>> {
        match code {
            NULL => Some(quarrydb_jsonb::NULL),
            code => self.made.values.get(code.checked_sub(FIRST)? as usize).map(JsonbBuf::view),
        }
    }

    /// What the expression makes of a value at the path; none where that is missing.
    ///
    /// # Errors
    /// [`Trouble::Documents`] where it fails.
    pub(super) fn of_value(&self, value: Option<JsonbRef<'_>>) -> Read<Option<JsonbBuf>> {
        evaluated(self.expression, &self.path, value)
    }

    /// The codes of the picked rows of window `index`, by their place in the window.
    ///
    /// # Errors
    /// `Corrupt` of the index, [`Trouble::Documents`] where the expression fails.
    pub(super) fn window(&mut self, index: usize, picks: &[u16], out: &mut [u32; WINDOW_ROWS]) -> Read<()> {
        let (expression, path, made) = (self.expression, &self.path, &mut self.made);
        match &mut self.of {
            Of::Codes(codes, known) => {
                codes.window(index, picks, out)?;
                let (mut buffer, mut builder) = (Vec::new(), Builder::new());
                for &row in picks {
                    let Some(code) = out.get_mut(usize::from(row)) else { continue };
                    *code = match known.get(code) {
                        Some(known) => *known,
                        None => {
                            builder.rewind(0);
                            let there = *code != MISSING && codes.write(*code, &mut buffer, &mut builder)?;
                            let value = there.then(|| JsonbRef::from_valid(builder.bytes()));
                            let new = made.code(evaluated(expression, path, value)?);
                            known.insert(*code, new);
                            new
                        }
                    };
                }
                Ok(())
            }
            Of::Steps(steps) => steps.window(expression, path, made, index, picks, out),
        }
    }
}

/// What an expression makes of a document with a value at a path, and nothing else.
fn evaluated(expression: &Expression, path: &[&str], value: Option<JsonbRef<'_>>) -> Read<Option<JsonbBuf>> {
    let document = document(path, value)?;
    expression.value(document.view(), Budget::default()).map_err(|_| Trouble::Documents)
}

fn document(path: &[&str], value: Option<JsonbRef<'_>>) -> Read<JsonbBuf> {
    let mut out = Builder::new();
    out.begin_object();
    if let (Some((last, outer)), Some(value)) = (path.split_last(), value) {
        for name in outer {
            out.field(name);
            out.begin_object();
        }
        out.field(last);
        out.copy(value);
        for _ in outer {
            out.end_object().map_err(|error| Trouble::Other(error.into()))?;
        }
    }
    out.end_object().map_err(|error| Trouble::Other(error.into()))?;
    Ok(JsonbBuf::from_valid(out.take()))
}

impl Made {
    fn code(&mut self, value: Option<JsonbBuf>) -> u32 {
        let Some(value) = value else { return MISSING };
        if value.view().kind() == quarrydb_jsonb::Kind::Null {
            return NULL;
        }
        let mut key = Vec::new();
        sort_key(value.view(), &mut key);
        let code = *self.codes.entry(key).or_insert(FIRST + self.values.len() as u32);
        match self.values.get((code - FIRST) as usize) {
            Some(first) => self.joined |= first.as_bytes() != value.as_bytes(),
            None => self.values.push(value),
        }
        code
    }
}

impl<'a> Steps<'a> {
    /// For columns of one type of whole numbers or dates, and expressions that go up in steps.
    fn new(expression: &'a Expression, plain: &Plain<'a>) -> quarrydb_index::Result<Option<Self>> {
        let (Some(stairs), Plain::Column(data)) = (expression.staircase(), plain) else { return Ok(None) };
        let column = data.column()?;
        let lanes = column.lanes()?;
        let [lane] = &lanes[..] else { return Ok(None) };
        let tag = Tag::of(lane.tag()).filter(|tag| matches!(tag, Tag::Int32 | Tag::Int64 | Tag::Date));
        let (Some(tag), Some(zone)) = (tag, lane.key_zone()) else { return Ok(None) };
        if !lane.has_windows() || column.null_count()? > 0 {
            return Ok(None);
        }
        let known = Vec::new();
        Ok(Some(Self { stairs, lane: *lane, tag, window: Window::default(), zone, known, of_missing: None }))
    }

    fn window(
        &mut self,
        expression: &Expression,
        path: &[&str],
        made: &mut Made,
        index: usize,
        picks: &[u16],
        out: &mut [u32; WINDOW_ROWS],
    ) -> Read<()> {
        if self.lane.presence().rows_with() < self.lane.presence().rows() {
            let of_missing = match self.of_missing {
                Some(code) => code,
                None => made.code(evaluated(expression, path, None)?),
            };
            self.of_missing = Some(of_missing);
            for &row in picks {
                if let Some(slot) = out.get_mut(usize::from(row)) {
                    *slot = of_missing;
                }
            }
        }
        let mut window = std::mem::take(&mut self.window);
        let lane = self.lane;
        let (mut failed, mut last) = (None, 0);
        let read = each_key(&lane, index, picks, &mut window, |row, key| {
            let holds = |step: &(u64, u64, u32)| (step.0..=step.1).contains(&key);
            if !self.known.get(last).is_some_and(holds) {
                match self.step(expression, path, made, key) {
                    Ok(at) => last = at,
                    Err(trouble) => failed = Some(trouble),
                }
            }
            if let (Some(slot), Some((.., code))) = (out.get_mut(usize::from(row)), self.known.get(last)) {
                *slot = *code;
            }
        });
        self.window = window;
        read?;
        failed.map_or(Ok(()), Err)
    }

    /// The place of the step of a key among those that are known, after it was made known.
    fn step(&mut self, expression: &Expression, path: &[&str], made: &mut Made, key: u64) -> Read<usize> {
        let found = self.known.binary_search_by(|(first, last, _)| match (key < *first, key > *last) {
            (true, _) => Ordering::Greater,
            (_, true) => Ordering::Less,
            _ => Ordering::Equal,
        });
        let at = match found {
            Ok(at) => return Ok(at),
            Err(at) => at,
        };
        let value = self.value(key)?;
        let step = self.step_of(path, key)?;
        let same = |other: u64| Ok(self.step_of(path, other)? == step);
        // As far as the step goes on both sides, within what the column holds.
        let first = border(key, self.zone.0, &same)?;
        let last = border(key, self.zone.1, &same)?;
        let code = made.code(evaluated(expression, path, Some(value.view()))?);
        self.known.insert(at, (first, last, code));
        Ok(at)
    }

    fn value(&self, key: u64) -> Read<JsonbBuf> {
        let (mut buffer, mut out) = (Vec::new(), Builder::new());
        let value = self.lane.value_of_key(key, &mut buffer)?;
        if scalar_of(self.tag, value, &mut out) {
            Ok(JsonbBuf::from_valid(out.take()))
        } else {
            Err(Trouble::Documents)
        }
    }

    fn step_of(&self, path: &[&str], key: u64) -> Read<i64> {
        let document = document(path, Some(self.value(key)?.view()))?;
        let step = self.stairs.step_of(document.view(), Budget::default());
        step.ok().flatten().ok_or(Trouble::Documents)
    }
}

/// The key farthest from `key` towards `end` that is still on its step: on the way there steps only change.
fn border(key: u64, end: u64, same: &dyn Fn(u64) -> Read<bool>) -> Read<u64> {
    let (mut inside, mut outside) = (key, end);
    if same(end)? {
        return Ok(end);
    }
    while inside.abs_diff(outside) > 1 {
        let middle = inside.min(outside) + inside.abs_diff(outside) / 2;
        if same(middle)? { inside = middle } else { outside = middle }
    }
    Ok(inside)
}
