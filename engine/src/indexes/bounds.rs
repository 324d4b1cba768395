//! Which ranges of an index's keys a filter means, and whether they decide it.
//!
//! Takes a definition, the facts of a part's entries and a filter; gives ranges in which every row that matches has an
//! entry, or nothing where the index cannot say. `exact` says that every row with an entry there matches; else the caller
//! looks at the documents, or at what else knows. What is written here is held to the language's own evaluation.
//!
//! The rules that are easy to forget: ranges stay within the bracket of their value's type, and of numbers above NaN; null
//! means missing too, and an entry of null may come from a document where the path leads nowhere; conditions on one field
//! that leads through arrays may be met by different elements, so only one of them may bound it, but for those inside one
//! `$elemMatch`; of two fields through arrays the same holds. A sparse index has no document without its fields, a partial
//! one none outside its condition.

use quarrydb_jsonb::{JsonbRef, Kind, NUMBERS_ABOVE_NAN, type_rank};
use quarrydb_query::Sort;
use quarrydb_query::filter::{CompareOp, Comparison, FieldTest, Node, Pattern, Test, TypeSet};
use quarrydb_query::path_walk::FieldPath;
use quarrydb_query::sort::Direction;

use super::definition::{IndexDefinition, KeyField};
use super::keys::{Facts, NULL_KEY, PART_BYTES_MAX, UNDEFINED, put_value};
use super::partial;
use super::range::{KeyRange, intersect, normalize};

/// Ranges of one filter at most, over all fields; what would give more bounds fewer fields.
const RANGES_MAX: usize = 200_000;

/// Which ranges a filter means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexBounds {
    /// In order, without overlap.
    pub ranges: Vec<KeyRange>,
    /// Whether every row with an entry there matches.
    pub exact: bool,
    /// How many of the first fields are bounded.
    pub fields: usize,
    /// How many of the first fields have one value each: the entries are in the order of the fields behind them.
    pub fixed: usize,
}

/// What one condition means for one field.
#[derive(Clone, Debug)]
struct Part {
    /// Of the field's own keys, ascending, in order.
    ranges: Vec<KeyRange>,
    /// Whether a document without the field may meet it.
    missing: bool,
    /// Whether all ranges are single values.
    points: bool,
    /// Which `$elemMatch` it stands in, from 1, if the fields of one element can be told by it.
    group: Option<usize>,
    /// Which conditions of the filter it is of, and whether it decides each.
    conditions: Vec<(usize, bool)>,
}

/// The ranges of `filter`, and none where the index says nothing about it.
pub(crate) fn bounds(index: &IndexDefinition, facts: Facts, filter: &Node) -> Option<IndexBounds> {
    if facts.positional || facts.incomplete {
        return None;
    }
    if index.partial.as_ref().is_some_and(|own| !partial::implies(filter, own.filter.ast())) {
        return None;
    }
    let mut conditions = Vec::new();
    flatten(filter, &mut conditions);
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); index.fields.len()];
    for (number, condition) in conditions.iter().enumerate() {
        collect(index, condition, number, &mut parts);
    }
    let mut chosen: Vec<Part> = Vec::new();
    // The condition inside which fields through arrays are bounded: none yet, or that of the first such field.
    let mut arrays_by: Option<Option<usize>> = None;
    for (field, parts) in parts.iter_mut().enumerate() {
        let is_array = facts.is_array(field);
        if let (true, Some(group)) = (is_array, arrays_by) {
            parts.retain(|part| group.is_some() && part.group == group);
        }
        let Some(part) = (if is_array { one_of(parts) } else { all_of(parts) }) else { break };
        if is_array {
            arrays_by.get_or_insert(part.group);
        }
        chosen.push(part);
    }
    if index.sparse && !chosen.iter().any(|part| !part.missing) {
        return None;
    }
    join(index, &chosen, conditions.len())
}

/// Ranges of the fields to ranges of whole keys.
fn join(index: &IndexDefinition, chosen: &[Part], conditions: usize) -> Option<IndexBounds> {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut fields, mut fixed) = (0, 0);
    let mut decided = vec![false; conditions];
    let mut ranges = None;
    for (part, field) in chosen.iter().zip(&index.fields) {
        if prefixes.len().saturating_mul(part.ranges.len()) > RANGES_MAX {
            break;
        }
        fields += 1;
        for &(condition, exact) in &part.conditions {
            decided[condition] = exact;
        }
        if part.points {
            let key = |range: &KeyRange| match field.descending {
                true => range.from.iter().map(|byte| !byte).collect(),
                false => range.from.clone(),
            };
            let own: Vec<Vec<u8>> = part.ranges.iter().map(key).collect();
            prefixes = prefixes.iter().flat_map(|prefix| own.iter().map(|key| [&prefix[..], key].concat())).collect();
            if fixed + 1 == fields && part.ranges.len() == 1 {
                fixed = fields;
            }
            continue;
        }
        let own: Vec<KeyRange> = part.ranges.iter().map(|range| directed(range, field)).collect();
        ranges = Some(prefixes.iter().flat_map(|prefix| own.iter().map(|range| range.behind(prefix))).collect());
        break;
    }
    if fields == 0 {
        return None;
    }
    let ranges = ranges.unwrap_or_else(|| prefixes.iter().map(|prefix| KeyRange::prefix(prefix)).collect());
    Some(IndexBounds { ranges: normalize(ranges), exact: decided.iter().all(|&yes| yes), fields, fixed })
}

fn directed(range: &KeyRange, field: &KeyField) -> KeyRange {
    if field.descending { range.inverted() } else { range.clone() }
}

fn flatten<'n>(node: &'n Node, out: &mut Vec<&'n Node>) {
    match node {
        Node::All(nodes) => nodes.iter().for_each(|node| flatten(node, out)),
        node => out.push(node),
    }
}

/// The conditions of a field without arrays hold for one value: all of them at once.
fn all_of(parts: &[Part]) -> Option<Part> {
    let (first, rest) = parts.split_first()?;
    let mut all = first.clone();
    for part in rest {
        all.conditions.extend(&part.conditions);
        all.ranges = intersect(&all.ranges, &part.ranges);
        all.missing &= part.missing;
        all.points |= part.points;
    }
    all.group = None;
    Some(all)
}

/// Of the conditions of a field with arrays, one: single values before ranges.
fn one_of(parts: &[Part]) -> Option<Part> {
    parts.iter().find(|part| part.points).or(parts.first()).cloned()
}

/// Puts what a condition means for the index's fields to them.
fn collect(index: &IndexDefinition, condition: &Node, number: usize, parts: &mut [Vec<Part>]) {
    let Node::Field(FieldTest { path, test }) = condition else { return };
    if let Test::ElemMatchObject(inner) = test {
        let mut inside = Vec::new();
        flatten(inner, &mut inside);
        for node in inside {
            let Node::Field(inner) = node else { continue };
            let whole = format!("{}.{}", path.as_str(), inner.path.as_str());
            for (field, parts) in index.fields.iter().zip(&mut *parts) {
                if field.path.as_str() == whole
                    && !parts.iter().any(|part| part.group == Some(number))
                    && let Some(part) = of_test(&inner.test, &field.path, number)
                {
                    // Fields of one element are told together only where no array lies between them and it.
                    let group = (inner.path.parts().len() == 1).then_some(number);
                    parts.push(Part { conditions: vec![(number, false)], group, ..part });
                }
            }
        }
        return;
    }
    for (field, parts) in index.fields.iter().zip(parts) {
        if field.path == *path {
            parts.extend(of_test(test, &field.path, number));
        }
    }
}

/// What a test means for the field at its path.
fn of_test(test: &Test, path: &FieldPath, condition: usize) -> Option<Part> {
    let part = |mut ranges: Vec<KeyRange>, exact, missing, points| {
        // Single values stay apart though they may meet.
        if points {
            ranges.sort_unstable();
            ranges.dedup();
        } else {
            ranges = normalize(ranges);
        }
        Some(Part { ranges, missing, points, group: None, conditions: vec![(condition, exact)] })
    };
    match test {
        Test::Compare(comparison) => {
            let found = of_comparison(comparison, path)?;
            part(found.ranges, found.exact, found.missing, found.points)
        }
        Test::In(set) if set.has_no_pattern() => {
            let mut all = Found { ranges: Vec::new(), exact: true, missing: false, points: true };
            for value in set.values() {
                let found = of_comparison(&Comparison::new(CompareOp::Eq, value), path)?;
                all.ranges.extend(found.ranges);
                all.exact &= found.exact;
                all.missing |= found.missing;
            }
            part(all.ranges, all.exact, all.missing, true)
        }
        Test::Type(types) => {
            let (ranges, exact, missing) = of_types(*types)?;
            part(ranges, exact, missing, false)
        }
        Test::Pattern(pattern) => part(of_pattern(pattern)?, false, false, false),
        Test::ElemMatchValue(inner) => {
            let mut inside = Vec::new();
            flatten(inner, &mut inside);
            let mut all: Option<Part> = None;
            for node in inside {
                let Node::Value(test) = node else { continue };
                // An element that is an array is meant as a whole there.
                let plain = match test {
                    Test::Compare(comparison) => comparison.operand().kind() != Kind::Array,
                    Test::In(set) => set.values().all(|value| value.kind() != Kind::Array),
                    Test::Type(_) | Test::Pattern(_) => true,
                    _ => false,
                };
                let Some(found) = plain.then(|| of_test(test, path, condition)).flatten() else { continue };
                all = Some(match all {
                    None => found,
                    Some(before) => Part {
                        ranges: intersect(&before.ranges, &found.ranges),
                        missing: before.missing && found.missing,
                        points: before.points || found.points,
                        ..before
                    },
                });
            }
            all.map(|part| Part { conditions: vec![(condition, false)], missing: false, ..part })
        }
        _ => None,
    }
}

struct Found {
    ranges: Vec<KeyRange>,
    exact: bool,
    missing: bool,
    points: bool,
}

fn points(keys: Vec<Vec<u8>>, exact: bool, missing: bool) -> Found {
    let ranges = keys.iter().map(|key| KeyRange::prefix(key)).collect();
    Found { ranges, exact, missing, points: true }
}

fn of_comparison(comparison: &Comparison, path: &FieldPath) -> Option<Found> {
    let value = comparison.operand();
    let (mut key, op) = (Vec::new(), comparison.op());
    let cut = put_value(value, &mut key);
    let nothing = || Some(points(Vec::new(), true, false));
    match value.kind() {
        Kind::Null if !op.takes_equal() => return nothing(),
        // A path that leads nowhere for want of an object in an array is not missing, and has an entry all the same.
        Kind::Null => return Some(points(vec![vec![NULL_KEY]], path.parts().len() == 1, true)),
        Kind::MinKey | Kind::MaxKey => {
            let beyond = if value.kind() == Kind::MinKey { CompareOp::Lt } else { CompareOp::Gt };
            let equal = if value.kind() == Kind::MinKey { CompareOp::Lte } else { CompareOp::Gte };
            return match op {
                CompareOp::Eq => Some(points(vec![key], true, false)),
                op if op == equal => Some(points(vec![key], true, false)),
                op if op == beyond => nothing(),
                _ => None,
            };
        }
        Kind::Array if op == CompareOp::Eq => return Some(of_array(value, key)),
        // A whole array has no entry.
        Kind::Array => return None,
        kind if kind.is_number() && is_nan(&key) => {
            return if op.takes_equal() { Some(points(vec![key], true, false)) } else { nothing() };
        }
        _ => {}
    }
    if op == CompareOp::Eq {
        return Some(points(vec![key], !cut, false));
    }
    let rank = type_rank(value.kind());
    let lowest = if value.kind().is_number() { NUMBERS_ABOVE_NAN.to_vec() } else { vec![rank] };
    let (bracket, end) = (lowest, Some(vec![rank + 1]));
    if cut {
        // Where the rest of a long value was cut off, all that begin alike are in doubt.
        key.truncate(PART_BYTES_MAX);
    }
    let own = KeyRange::prefix(&key);
    let range = match op {
        CompareOp::Gt if !cut => KeyRange { from: own.to.unwrap_or_default(), to: end },
        CompareOp::Gt | CompareOp::Gte => KeyRange { from: own.from, to: end },
        CompareOp::Lt if !cut => KeyRange { from: bracket, to: Some(own.from) },
        _ => KeyRange { from: bracket, to: own.to },
    };
    Some(Found { ranges: vec![range], exact: !cut, missing: false, points: false })
}

fn is_nan(key: &[u8]) -> bool {
    key < NUMBERS_ABOVE_NAN.as_slice()
}

/// An array is met as an element, or as a whole by its first element.
fn of_array(value: JsonbRef<'_>, key: Vec<u8>) -> Found {
    let first = match value.as_array().and_then(|array| array.get(0)) {
        Some(first) => {
            let mut key = Vec::new();
            put_value(first, &mut key);
            key
        }
        None => vec![UNDEFINED],
    };
    points(vec![key, first], false, false)
}

/// The brackets of types; whether they hold nothing else; whether what is missing may be there.
fn of_types(types: TypeSet) -> Option<(Vec<KeyRange>, bool, bool)> {
    const KINDS: [Kind; 16] = [
        Kind::MinKey,
        Kind::Null,
        Kind::Int32,
        Kind::Int64,
        Kind::Double,
        Kind::Decimal128,
        Kind::String,
        Kind::Object,
        Kind::Array,
        Kind::Binary,
        Kind::ObjectId,
        Kind::Bool,
        Kind::Date,
        Kind::Timestamp,
        Kind::Regex,
        Kind::MaxKey,
    ];
    if types.contains(Kind::Array) {
        return None;
    }
    let wanted = KINDS.into_iter().filter(|&kind| types.contains(kind));
    let numbers = KINDS.into_iter().filter(|kind| kind.is_number() && types.contains(*kind)).count();
    let null = types.contains(Kind::Null);
    let ranges = wanted.map(|kind| KeyRange::prefix(&[type_rank(kind)])).collect();
    Some((ranges, !null && (numbers == 0 || numbers == 4), false))
}

/// The strings that begin as a pattern does, and the pattern itself as a value.
fn of_pattern(pattern: &Pattern) -> Option<Vec<KeyRange>> {
    if pattern.options().chars().any(|option| option != 's') || pattern.text().contains('|') {
        return None;
    }
    let mut literal = String::new();
    let mut chars = pattern.text().strip_prefix('^')?.chars().peekable();
    while let Some(c) = chars.next() {
        let next = match c {
            '\\' => match chars.next() {
                Some(escaped) if escaped.is_ascii_punctuation() => escaped,
                _ => break,
            },
            '.' | '^' | '$' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' => break,
            c if (c as u32) < 0x20 => break,
            c => c,
        };
        // What may be absent is no part of it.
        if matches!(chars.peek(), Some('*' | '?' | '{' | '+')) {
            break;
        }
        if literal.len() + next.len_utf8() > PART_BYTES_MAX / 2 {
            break;
        }
        literal.push(next);
    }
    if literal.is_empty() {
        return None;
    }
    let strings = [&[type_rank(Kind::String)], literal.as_bytes()].concat();
    Some(vec![KeyRange::prefix(&strings), KeyRange::prefix(&[type_rank(Kind::Regex)])])
}

/// Whether entries walked through in order, or backwards, are in the order of `sort`: none where they are not. The first
/// `fixed` fields have one value each. A row without an entry, of a sparse or a partial index, is the caller's to know of:
/// with bounds there is none that matches, without them `has_all` says.
pub(crate) fn order(index: &IndexDefinition, facts: Facts, sort: &Sort, fixed: usize) -> Option<bool> {
    if facts.positional || facts.incomplete || facts.cut || facts.arrays != 0 || sort.natural().is_some() {
        return None;
    }
    let descending = |direction: Direction| direction == Direction::Descending;
    // Fields of one value may stand in the sort and may be left out of it.
    let is_fixed = |path: &FieldPath| index.fields.iter().take(fixed).any(|field| field.path == *path);
    let mut wanted = sort.fields().iter().filter(|field| !is_fixed(&field.path));
    let mut backwards = None;
    let mut own = index.fields.iter().skip(fixed);
    wanted.try_for_each(|field| {
        let key = own.next().filter(|key| key.path == field.path)?;
        let reverse = key.descending != descending(field.direction);
        (*backwards.get_or_insert(reverse) == reverse).then_some(())
    })?;
    Some(backwards.unwrap_or(false))
}

/// Whether every document has an entry.
pub(crate) fn has_all(index: &IndexDefinition) -> bool {
    !index.sparse && index.partial.is_none()
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
