//! Arrays: elements by position, parts, joining, searching, sorting.

use super::datum::Datum;
use super::evaluate::walk;
use super::registry::{ANY, Arguments, ONE, Operator, Shape, TWO};
use crate::QueryError;
use crate::limits::SORT_FIELDS_MAX;
use crate::number::Number;
use quarrydb_jsonb::JsonbRef;
use std::cmp::Ordering;
use std::ops::Range;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

const N: Shape = Shape::Named(&["n", "input"], &[]);

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$arrayElemAt", shape: TWO, run: element_at },
    Operator { name: "$first", shape: ONE, run: |args| end(args, true) },
    Operator { name: "$last", shape: ONE, run: |args| end(args, false) },
    Operator { name: "$firstN", shape: N, run: |args| n_of(args, Pick::First) },
    Operator { name: "$lastN", shape: N, run: |args| n_of(args, Pick::Last) },
    Operator { name: "$maxN", shape: N, run: |args| n_of(args, Pick::Greatest) },
    Operator { name: "$minN", shape: N, run: |args| n_of(args, Pick::Least) },
    Operator { name: "$concatArrays", shape: ANY, run: concat },
    Operator { name: "$in", shape: TWO, run: contains },
    Operator { name: "$indexOfArray", shape: Shape::Positional(2, 4), run: index_of },
    Operator { name: "$range", shape: Shape::Positional(2, 3), run: range },
    Operator { name: "$reverseArray", shape: ONE, run: reverse },
    Operator { name: "$size", shape: ONE, run: size },
    Operator { name: "$slice", shape: Shape::Positional(2, 3), run: slice },
    Operator { name: "$sortArray", shape: Shape::Named(&["input", "sortBy"], &[]), run: sort },
    Operator { name: "$zip", shape: Shape::Named(&["inputs"], &["useLongestLength", "defaults"]), run: zip },
];

/// An argument that is a whole number of 32 bits.
fn int32(args: &Arguments<'_, '_>, i: usize, type_code: i32, code: i32, what: &str) -> Result<i32, QueryError> {
    let argument = args.get(i);
    let Some(n) = argument.as_number() else {
        let message = format!("{}: {what} must be a numeric value, not {}", args.name, argument.type_name());
        return Err(QueryError::location(type_code, message));
    };
    n.as_whole().and_then(|n| i32::try_from(n).ok()).ok_or_else(|| {
        QueryError::location(code, format!("{}: {what} must be representable as a 32-bit integer", args.name))
    })
}

fn wrong(args: &Arguments<'_, '_>, i: usize, code: i32) -> QueryError {
    let message = format!("{} requires an array, found a value of type {}", args.name, args.get(i).type_name());
    QueryError::location(code, message)
}

fn element_at<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let Some(len) = args.get(0).array_len() else { return Err(wrong(args, 0, 28689)) };
    let at = int32(args, 1, 28690, 28691, "the second argument")?;
    let at = if at < 0 { len.checked_sub(at.unsigned_abs() as usize) } else { Some(at as usize) };
    element(args, at)
}

/// Elements stepped over for the cost of one step.
const ELEMENTS_PER_STEP: usize = 8;

/// The element of the first argument at a position.
fn element<'a>(args: &mut Arguments<'_, 'a>, at: Option<usize>) -> Outcome<'a> {
    let Some(at) = at else { return Ok(Datum::Missing) };
    let Datum::StoredArray(array) = *args.get(0) else {
        return Ok(args.get(0).element(at).unwrap_or(Datum::Missing));
    };
    let (found, stepped) = args.scope.positions.get(array, at);
    args.scope.step((stepped / ELEMENTS_PER_STEP) as u64)?;
    Ok(Datum::from(found))
}

fn end<'a>(args: &mut Arguments<'_, 'a>, first: bool) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(len) = args.get(0).array_len() else { return Err(wrong(args, 0, 28689)) };
    let at = if first { Some(0) } else { len.checked_sub(1) };
    element(args, at)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    First,
    Last,
    Greatest,
    Least,
}

fn n_of<'a>(args: &mut Arguments<'_, 'a>, pick: Pick) -> Outcome<'a> {
    let Some(n) = args.get(0).as_number().and_then(Number::as_whole) else {
        let message =
            format!("{}: the value for 'n' must be of integral type, but found {}", args.name, args.get(0).type_name());
        return Err(QueryError::location(5_787_902, message));
    };
    let Some(n) = usize::try_from(n).ok().filter(|&n| n > 0) else {
        return Err(QueryError::location(5_787_908, format!("{}: 'n' must be greater than 0, found {n}", args.name)));
    };
    let Some(elements) = args.get(1).elements() else { return Err(wrong(args, 1, 5_788_200)) };
    let mut items: Vec<_> = elements.collect();
    match pick {
        Pick::First => items.truncate(n),
        Pick::Last => drop(items.drain(..items.len().saturating_sub(n))),
        Pick::Greatest | Pick::Least => {
            items.retain(|i| !i.is_nullish());
            sort_whole(&mut items, pick == Pick::Greatest, args)?;
            items.truncate(n);
        }
    }
    args.array(items)
}

fn concat<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut items = Vec::new();
    for argument in args.take_all() {
        if argument.is_nullish() {
            return Ok(Datum::Null);
        }
        let Some(elements) = argument.elements() else {
            let message = format!("$concatArrays only supports arrays, not {}", argument.type_name());
            return Err(QueryError::location(28664, message));
        };
        args.scope.charge(argument.array_len().unwrap_or(0).saturating_mul(size_of::<Datum<'_>>()))?;
        items.extend(elements);
    }
    args.array(items)
}

fn contains<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let Some(elements) = args.get(1).elements() else {
        let message = format!("$in requires an array as a second argument, found: {}", args.get(1).type_name());
        return Err(QueryError::location(40081, message));
    };
    let wanted = args.take(0);
    for element in elements {
        args.scope.step(1)?;
        if element.compare(&wanted)?.is_eq() {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

/// The start or end position that a search takes.
pub(super) fn index_argument(args: &Arguments<'_, '_>, i: usize, what: &str) -> Result<usize, QueryError> {
    let whole = args.get(i).as_number().and_then(Number::as_whole).and_then(|n| i32::try_from(n).ok());
    match whole {
        None => {
            let message = format!(
                "{} requires an integral {what} index, found a value of type: {}",
                args.name,
                args.get(i).type_name()
            );
            let code = if args.name == "$indexOfArray" { 9_711_600 } else { 40096 };
            Err(QueryError::location(code, message))
        }
        Some(n) => usize::try_from(n).map_err(|_| {
            let code = if args.name == "$indexOfArray" { 9_711_601 } else { 40097 };
            QueryError::location(code, format!("{} requires a nonnegative {what} index, found: {n}", args.name))
        }),
    }
}

/// The part of `len` elements that the third and fourth argument leave to search; none where it is before it begins.
pub(super) fn search_range(args: &Arguments<'_, '_>, len: usize) -> Result<Option<Range<usize>>, QueryError> {
    let start = if args.has(2) { index_argument(args, 2, "starting")? } else { 0 };
    let end = if args.has(3) { index_argument(args, 3, "ending")?.min(len) } else { len };
    Ok((start <= end).then_some(start..end))
}

fn index_of<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(elements) = args.get(0).elements() else { return Err(wrong(args, 0, 40090)) };
    let Some(range) = search_range(args, args.get(0).array_len().unwrap_or(0))? else { return Ok(Datum::int(-1)) };
    let wanted = args.take(1);
    for (i, element) in elements.enumerate().take(range.end).skip(range.start) {
        args.scope.step(1)?;
        if element.compare(&wanted)?.is_eq() {
            return Ok(Datum::count(i));
        }
    }
    Ok(Datum::int(-1))
}

fn range<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let start = i64::from(int32(args, 0, 34443, 34444, "the starting value")?);
    let end = i64::from(int32(args, 1, 34445, 34446, "the ending value")?);
    let step = if args.len() > 2 { i64::from(int32(args, 2, 34447, 34448, "the step value")?) } else { 1 };
    if step == 0 {
        return Err(QueryError::location(34449, "$range requires a non-zero step value"));
    }
    let span = if step > 0 { end - start } else { start - end };
    let count = if span <= 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
    let count = usize::try_from(count).unwrap_or(0);
    // What it will take is known before it is made.
    args.scope.charge(count.saturating_mul(size_of::<Datum<'_>>()))?;
    args.scope.step(count as u64)?;
    let items = (0..count).map(|i| Datum::int((start + i as i64 * step) as i32)).collect();
    args.array(items)
}

fn reverse<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(elements) = args.get(0).elements() else { return Err(wrong(args, 0, 34435)) };
    let mut items: Vec<_> = elements.collect();
    items.reverse();
    args.array(items)
}

fn size<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    match args.get(0).array_len() {
        Some(len) => Ok(Datum::count(len)),
        None => {
            let message =
                format!("the argument to $size must be an array, but was of type: {}", args.get(0).type_name());
            Err(QueryError::location(17124, message))
        }
    }
}

fn slice<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let Some(len) = args.get(0).array_len() else { return Err(wrong(args, 0, 28724)) };
    let second = int32(args, 1, 28725, 28726, "the second argument")?;
    let from_end = |n: i32| len.saturating_sub(n.unsigned_abs() as usize);
    let range = if args.len() < 3 {
        if second >= 0 { 0..len.min(second as usize) } else { from_end(second)..len }
    } else {
        let count = int32(args, 2, 28727, 28728, "the third argument")?;
        if count <= 0 {
            return Err(QueryError::location(28729, format!("the third argument to $slice must be positive: {count}")));
        }
        let start = if second >= 0 { len.min(second as usize) } else { from_end(second) };
        start..len.min(start + count as usize)
    };
    let items: Vec<_> = match args.get(0) {
        Datum::StoredArray(array) => {
            let (from, stepped) = args.scope.positions.from(*array, range.start);
            args.scope.step((stepped / ELEMENTS_PER_STEP) as u64)?;
            from.take(range.len()).map(Datum::from).collect()
        }
        made => made.elements().into_iter().flatten().take(range.end).skip(range.start).collect(),
    };
    args.scope.step(items.len() as u64)?;
    args.array(items)
}

/// How `$sortArray` orders.
enum SortBy {
    Whole { descending: bool },
    Fields(Vec<(Vec<Box<str>>, bool)>),
}

fn sort_direction(v: JsonbRef<'_>) -> Option<bool> {
    match Number::of(v).and_then(Number::as_whole) {
        Some(1) => Some(false),
        Some(-1) => Some(true),
        _ => None,
    }
}

/// Reads what stands as `sortBy`.
fn sort_spec(v: JsonbRef<'_>) -> Result<SortBy, QueryError> {
    let wrong =
        |code| QueryError::location(code, "the sortBy of $sortArray is 1, -1 or an object of fields with 1 or -1");
    let Some(fields) = v.as_object() else {
        let code = if v.kind().is_number() { 2_942_506 } else { 2_942_507 };
        return sort_direction(v).map(|descending| SortBy::Whole { descending }).ok_or_else(|| wrong(code));
    };
    let wrong = || wrong(2_942_505);
    if fields.is_empty() || fields.len() > SORT_FIELDS_MAX {
        return Err(wrong());
    }
    let mut parsed = Vec::new();
    for field in fields {
        let path = field.name().split('.').map(Box::from).collect::<Vec<Box<str>>>();
        if path.iter().any(|p| p.is_empty()) {
            return Err(wrong());
        }
        parsed.push((path, sort_direction(field.value).ok_or_else(wrong)?));
    }
    Ok(SortBy::Fields(parsed))
}

/// Refuses a `sortBy` that means nothing.
pub(super) fn check_sort(v: JsonbRef<'_>) -> Result<(), QueryError> {
    sort_spec(v).map(drop)
}

fn sort_whole<'a>(
    items: &mut Vec<Datum<'a>>,
    descending: bool,
    args: &mut Arguments<'_, 'a>,
) -> Result<(), QueryError> {
    let mut keyed = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        let key = item.sort_key()?;
        args.scope.charge(key.len())?;
        keyed.push((key, item));
    }
    args.scope.step(keyed.len() as u64)?;
    keyed.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
    items.extend(keyed.into_iter().map(|(_, item)| item));
    Ok(())
}

fn sort<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(elements) = args.get(0).elements() else {
        let message = format!("the input of $sortArray must be an array, not {}", args.get(0).type_name());
        return Err(QueryError::location(2_942_504, message));
    };
    let mut items: Vec<_> = elements.collect();
    let spec = sort_spec(args.get(1).encoded()?.view())?;
    let fields = match spec {
        SortBy::Whole { descending } => {
            sort_whole(&mut items, descending, args)?;
            return args.array(items);
        }
        SortBy::Fields(fields) => fields,
    };
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        let mut keys = Vec::with_capacity(fields.len());
        for (path, _) in &fields {
            let value = if item.is_object() { walk(item.clone(), path, args.scope)? } else { Datum::Null };
            let key = value.sort_key()?;
            args.scope.charge(key.len())?;
            keys.push(key);
        }
        keyed.push((keys, item));
    }
    keyed.sort_by(|(a, _), (b, _)| {
        let ordered = fields.iter().zip(a.iter().zip(b));
        let mut orders = ordered.map(|((_, descending), (a, b))| if *descending { b.cmp(a) } else { a.cmp(b) });
        orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    });
    args.array(keyed.into_iter().map(|(_, item)| item).collect())
}

fn zip<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(inputs) = args.get(0).elements() else {
        let message = format!("inputs must be an array of expressions, found {}", args.get(0).type_name());
        return Err(QueryError::location(34461, message));
    };
    let longest = match args.get(1) {
        Datum::Missing => false,
        Datum::Bool(b) => *b,
        other => {
            let message = format!("useLongestLength must be a bool, found {}", other.type_name());
            return Err(QueryError::location(34463, message));
        }
    };
    let inputs: Vec<_> = inputs.collect();
    if inputs.is_empty() {
        return Err(QueryError::location(34465, "$zip requires at least one input array"));
    }
    let defaults: Vec<_> = match args.get(2) {
        Datum::Missing | Datum::Null => Vec::new(),
        other => match other.elements() {
            Some(elements) => elements.collect(),
            None => {
                let message = format!("defaults must be an array of expressions, found {}", other.type_name());
                return Err(QueryError::location(34462, message));
            }
        },
    };
    if !defaults.is_empty() && !longest {
        return Err(QueryError::location(34466, "cannot specify defaults unless useLongestLength is true"));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(QueryError::location(34467, "defaults and inputs must have the same length"));
    }
    if inputs.iter().any(Datum::is_nullish) {
        return Ok(Datum::Null);
    }
    let mut lengths = Vec::with_capacity(inputs.len());
    for input in &inputs {
        let Some(len) = input.array_len() else {
            let message = format!("$zip found a non-array expression in input: {}", input.type_name());
            return Err(QueryError::location(34468, message));
        };
        lengths.push(len);
    }
    let rows = if longest { lengths.iter().max() } else { lengths.iter().min() };
    let rows = rows.copied().unwrap_or(0);
    args.scope.charge(rows.saturating_mul(inputs.len()).saturating_mul(size_of::<Datum<'_>>()))?;
    let mut columns: Vec<_> = inputs.iter().map(|i| i.elements().into_iter().flatten()).collect();
    let mut zipped = Vec::with_capacity(rows);
    for _ in 0..rows {
        args.scope.step(inputs.len() as u64)?;
        let row = columns.iter_mut().enumerate();
        let row = row.map(|(i, column)| column.next().or_else(|| defaults.get(i).cloned()).unwrap_or(Datum::Null));
        let row = row.collect();
        zipped.push(args.array(row)?);
    }
    args.array(zipped)
}
