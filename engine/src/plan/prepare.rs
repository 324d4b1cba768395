//! A filter made ready to be asked of many columns: constants in the form that lanes compare, once.
//!
//! Takes the filter's tree; gives one of the same shape whose leaves say what to ask which lanes for. What cannot be asked
//! of columns is there as *unknown*.

use std::ops::Bound;

use quarrydb_jsonb::{JsonbRef, Kind, Value, sort_key};
use quarrydb_query::filter::{CompareOp, Comparison, FieldTest, Filter, InSet, Node, Pattern, Test};
use quarrydb_query::path_walk::array_index;

use super::numbers::Numbers;
use crate::columns::value::{KINDS, Tag, VALUE_BYTES_MAX, tags_of};

/// Decimals are looked for by key in `$in` up to so many numbers; of more, rows with decimals are looked at.
const DECIMAL_KEYS_MAX: usize = 4096;
/// Doubles hold whole numbers exactly up to here.
const EXACT_MAX: i64 = 1 << 53;

/// A filter made ready.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(super) root: Step,
}

/// A node of it.
#[derive(Debug)]
pub(super) enum Step {
    All(Vec<Step>),
    Any(Vec<Step>),
    Not(Box<Step>),
    Field(Box<Field>),
    /// Two tests that bound one path, and the range between: what both mean where no array leads to several values.
    Span {
        between: Box<Field>,
        ends: Box<[Step; 2]>,
    },
    Constant(bool),
    Unknown,
}

/// A test on a path.
#[derive(Debug)]
pub(super) struct Field {
    pub path: String,
    /// The paths that it begins with, without itself: an array at one of them is on its way.
    pub ways: Vec<String>,
    /// Whether a part of it may mean a position in an array.
    pub numeric: bool,
    pub ask: Ask,
}

/// What to ask of a column.
#[derive(Debug)]
pub(super) enum Ask {
    /// Nothing passes.
    Never,
    /// Null, or missing.
    Null,
    Numbers(Box<Numbers>),
    /// A range of the values of one lane.
    Range {
        tag: Tag,
        low: Bound<Constant>,
        high: Bound<Constant>,
    },
    In(Box<In>),
    Exists,
    Types {
        tags: Vec<Tag>,
        null: bool,
        array: bool,
    },
    /// A test of each value of these lanes; rows with values of `unsure` must be looked at.
    Tested {
        test: Box<Test>,
        tags: &'static [Tag],
        unsure: &'static [Tag],
    },
    /// Only rows with values of these lanes.
    Among(&'static [Tag]),
    /// Only rows with an array here, and for which all of these are possible.
    Elements(Vec<Step>),
    Unknown,
}

/// A constant in a lane's form.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    Bool(bool),
    Int(i64),
    Bytes(Vec<u8>),
}

/// The values of an `$in`, by lane.
#[derive(Debug, Default)]
pub(super) struct In {
    pub ints: Vec<i64>,
    pub doubles: Vec<f64>,
    pub decimals: Vec<Vec<u8>>,
    /// Too many numbers to look for each among decimals.
    pub any_decimal: bool,
    pub texts: Vec<Vec<u8>>,
    pub ids: Vec<Vec<u8>>,
    pub dates: Vec<i64>,
    pub bools: Vec<bool>,
    pub others: Vec<Vec<u8>>,
    /// A text, or a value of a rarer type, that is too long to be kept.
    pub long: bool,
    pub null: bool,
    pub objects: bool,
    pub arrays: bool,
    pub patterns: Vec<Pattern>,
}

impl Prepared {
    /// Makes a filter ready.
    pub(crate) fn new(filter: &Filter) -> Self {
        Self { root: step(filter.ast(), "") }
    }

    /// Whether columns can say nothing of any row.
    pub(crate) fn is_unknown(&self) -> bool {
        self.root.is_unknown()
    }
}

impl Prepared {
    /// Whether it is one test on one path, perhaps turned around: mostly a matter of counts at hand.
    pub(crate) fn is_one_test(&self) -> bool {
        super::count::only_field(&self.root).is_some()
    }
}

impl Step {
    fn is_unknown(&self) -> bool {
        match self {
            Self::All(steps) => !steps.is_empty() && steps.iter().all(Self::is_unknown),
            Self::Any(steps) => steps.iter().any(Self::is_unknown),
            Self::Not(step) => step.is_unknown(),
            Self::Field(field) => matches!(field.ask, Ask::Unknown),
            Self::Span { .. } => false,
            Self::Constant(_) => false,
            Self::Unknown => true,
        }
    }
}

/// `under` is the path of the array whose elements the node is a condition on; empty at the top.
fn step(node: &Node, under: &str) -> Step {
    match node {
        Node::All(nodes) => Step::All(spans(nodes.iter().map(|node| step(node, under)).collect())),
        Node::Any(nodes) => Step::Any(nodes.iter().map(|node| step(node, under)).collect()),
        // One element that does not pass says nothing of the others.
        Node::Not(_) if !under.is_empty() => Step::Unknown,
        Node::Not(node) => Step::Not(Box::new(step(node, under))),
        Node::Field(test) => field(test, under),
        Node::Constant(value) => Step::Constant(*value),
        Node::Value(test) if !under.is_empty() && !is_numeric(under) => {
            at(under.to_owned(), false, ask_element(test, under))
        }
        Node::Value(_) | Node::Expression(_) | Node::Schema(_) => Step::Unknown,
    }
}

/// Puts each test that bounds a path from one side together with the next one on the same path.
fn spans(steps: Vec<Step>) -> Vec<Step> {
    let mut out: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let before = out.iter().position(|other| between(other, &step).is_some());
        let span = before.and_then(|at| Some((at, between(out.get(at)?, &step)?)));
        match span {
            Some((at, field)) => {
                let first = std::mem::replace(&mut out[at], Step::Unknown);
                out[at] = Step::Span { between: Box::new(field), ends: Box::new([first, step]) };
            }
            None => out.push(step),
        }
    }
    out
}

/// The range that two tests on one path mean together.
fn between(a: &Step, b: &Step) -> Option<Field> {
    let (Step::Field(a), Step::Field(b)) = (a, b) else { return None };
    if a.path != b.path || a.numeric {
        return None;
    }
    let ask = match (&a.ask, &b.ask) {
        (Ask::Numbers(a), Ask::Numbers(b)) => Ask::Numbers(Box::new(a.and(b)?)),
        (Ask::Range { tag, low, high }, Ask::Range { tag: other, low: low_b, high: high_b }) if tag == other => {
            let (low, high) = (only(low, low_b)?, only(high, high_b)?);
            Ask::Range { tag: *tag, low, high }
        }
        _ => return None,
    };
    Some(Field { path: a.path.clone(), ways: a.ways.clone(), numeric: false, ask })
}

/// The end that only one of two ranges has; none where both have one.
fn only(a: &Bound<Constant>, b: &Bound<Constant>) -> Option<Bound<Constant>> {
    match (a, b) {
        (Bound::Unbounded, other) | (other, Bound::Unbounded) => Some(other.clone()),
        _ => None,
    }
}

fn field(FieldTest { path, test }: &FieldTest, under: &str) -> Step {
    let text = path.as_str();
    let full = if under.is_empty() { text.to_owned() } else { format!("{under}.{text}") };
    let numeric = is_numeric(&full);
    // Below an element a number may be a position in it.
    if numeric && !under.is_empty() {
        return Step::Unknown;
    }
    let ask = ask(test, &full);
    at(full, numeric, ask)
}

fn is_numeric(path: &str) -> bool {
    path.split('.').any(|part| array_index(part).is_some())
}

fn at(path: String, numeric: bool, ask: Ask) -> Step {
    let ways = path.match_indices('.').filter_map(|(end, _)| path.get(..end).map(str::to_owned)).collect();
    Step::Field(Box::new(Field { path, ways, numeric, ask }))
}

fn ask(test: &Test, path: &str) -> Ask {
    match test {
        Test::Compare(comparison) => compare(comparison),
        Test::In(set) => Ask::In(Box::new(In::of(set))),
        Test::Exists => Ask::Exists,
        Test::Type(types) => {
            let kinds = KINDS.into_iter().filter(|kind| types.contains(*kind));
            let mut tags: Vec<Tag> = kinds.flat_map(tags_of).copied().collect();
            tags.sort_unstable();
            tags.dedup();
            let has = |kind| types.contains(kind);
            Ask::Types { tags, null: has(Kind::Null), array: has(Kind::Array) }
        }
        Test::Modulo(_) => tested(test, &[Tag::Int32, Tag::Int64, Tag::Double], &[Tag::Decimal]),
        Test::Bits(_) => tested(test, &[Tag::Int32, Tag::Int64, Tag::Double], &[Tag::Decimal, Tag::Other, Tag::Long]),
        Test::Pattern(_) => tested(test, &[Tag::String], &[Tag::Other, Tag::Long]),
        Test::Size(_) => Ask::Elements(Vec::new()),
        Test::ElemMatchObject(node) | Test::ElemMatchValue(node) => Ask::Elements(vec![step(node, path)]),
    }
}

/// What a test on an element asks of the column of its array.
fn ask_element(test: &Test, path: &str) -> Ask {
    match test {
        // Elements of an array in an array are in no lane.
        Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => Ask::Elements(Vec::new()),
        _ => ask(test, path),
    }
}

fn tested(test: &Test, tags: &'static [Tag], unsure: &'static [Tag]) -> Ask {
    Ask::Tested { test: Box::new(test.clone()), tags, unsure }
}

fn compare(comparison: &Comparison) -> Ask {
    let (op, operand) = (comparison.op(), comparison.operand());
    let range = |tag, constant: Constant| {
        let (low, high) = ends(op, constant);
        Ask::Range { tag, low, high }
    };
    match operand.value() {
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => {
            Ask::Numbers(Box::new(Numbers::of(op, operand)))
        }
        Value::String(text) => range(Tag::String, Constant::Bytes(text.as_bytes().to_vec())),
        Value::ObjectId(id) => range(Tag::ObjectId, Constant::Bytes(id.to_vec())),
        Value::Date(millis) => range(Tag::Date, Constant::Int(millis)),
        Value::Bool(value) => range(Tag::Bool, Constant::Bool(value)),
        Value::Null if op.takes_equal() => Ask::Null,
        Value::Null => Ask::Never,
        Value::MinKey | Value::MaxKey => Ask::Unknown,
        Value::Object(_) => Ask::Among(&[Tag::Object]),
        Value::Array(_) => Ask::Elements(Vec::new()),
        Value::Binary { .. } | Value::Regex { .. } | Value::Timestamp { .. } => match key_of(operand) {
            Some(key) if op == CompareOp::Eq => range(Tag::Other, Constant::Bytes(key)),
            _ => Ask::Among(&[Tag::Other, Tag::Long]),
        },
    }
}

fn ends(op: CompareOp, constant: Constant) -> (Bound<Constant>, Bound<Constant>) {
    match op {
        CompareOp::Eq => (Bound::Included(constant.clone()), Bound::Included(constant)),
        CompareOp::Lt => (Bound::Unbounded, Bound::Excluded(constant)),
        CompareOp::Lte => (Bound::Unbounded, Bound::Included(constant)),
        CompareOp::Gt => (Bound::Excluded(constant), Bound::Unbounded),
        CompareOp::Gte => (Bound::Included(constant), Bound::Unbounded),
    }
}

/// The `sort_key` of a value where it is short enough to be kept.
fn key_of(value: JsonbRef<'_>) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    sort_key(value, &mut key);
    (key.len() <= VALUE_BYTES_MAX).then_some(key)
}

impl In {
    fn of(set: &InSet) -> Self {
        let mut found = Self { patterns: set.patterns().to_vec(), ..Self::default() };
        for value in set.values() {
            found.add(value);
        }
        found.ints.sort_unstable();
        found.ints.dedup();
        found
    }

    fn add(&mut self, value: JsonbRef<'_>) {
        match value.value() {
            Value::Int32(number) => self.add_int(number.into(), value),
            Value::Int64(number) => self.add_int(number, value),
            Value::Double(_) | Value::Decimal128(_) => self.add_number(value),
            Value::String(text) if text.len() > VALUE_BYTES_MAX => self.long = true,
            Value::String(text) => self.texts.push(text.as_bytes().to_vec()),
            Value::ObjectId(id) => self.ids.push(id.to_vec()),
            Value::Date(millis) => self.dates.push(millis),
            Value::Bool(value) => self.bools.push(value),
            Value::Null => self.null = true,
            Value::Object(_) => self.objects = true,
            Value::Array(_) => self.arrays = true,
            // It is among the patterns, which regular expressions in documents may equal.
            Value::Regex { .. } => {}
            Value::Binary { .. } | Value::Timestamp { .. } | Value::MinKey | Value::MaxKey => match key_of(value) {
                Some(key) => self.others.push(key),
                None => self.long = true,
            },
        }
    }

    fn add_int(&mut self, number: i64, value: JsonbRef<'_>) {
        if !(-EXACT_MAX..=EXACT_MAX).contains(&number) {
            return self.add_number(value);
        }
        self.ints.push(number);
        self.doubles.push(number as f64);
        self.add_decimal(value);
    }

    fn add_number(&mut self, value: JsonbRef<'_>) {
        let Numbers { ints, doubles, .. } = Numbers::of(CompareOp::Eq, value);
        self.ints.extend(ints.map(|(number, _)| number));
        self.doubles.extend(doubles.map(|(number, _)| number));
        self.add_decimal(value);
    }

    fn add_decimal(&mut self, value: JsonbRef<'_>) {
        if self.decimals.len() >= DECIMAL_KEYS_MAX {
            self.any_decimal = true;
        } else {
            self.decimals.extend(key_of(value));
        }
    }
}
