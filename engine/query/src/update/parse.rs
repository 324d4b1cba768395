//! From the body's update document to a tree of operators.
//!
//! Takes a JSON object of operators and the array filters; gives the tree and the list of its simple leaves. Everything
//! that can be refused without a document is refused here, with its place. Next: `operands.rs` for each operator's
//! operand, `apply.rs` for the meaning.

use super::ast::{ArrayFilter, Leaf, Node, Op, Rename};
use super::draft::Draft;
use super::operands;
use super::path::{Step, UpdatePath};
use crate::limits::ARRAY_FILTERS_MAX;
use crate::path_walk::FieldPath;
use crate::{Filter, ParseContext, Place, QueryError};
use quarrydb_jsonb::{JsonbRef, Kind};
use std::sync::Arc;

/// Every update operator, in MongoDB's spelling.
pub(super) const OPERATORS: [&str; 15] = [
    "$addToSet",
    "$bit",
    "$currentDate",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$pull",
    "$pullAll",
    "$push",
    "$rename",
    "$set",
    "$setOnInsert",
    "$unset",
];

/// What parsing an update document gives.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: Node,
    /// The leaves, where each is a scalar operator at a fixed path outside `_id`: such an update can often be written
    /// over a copy of the document.
    pub(super) direct: Option<Vec<(FieldPath, Arc<Leaf>)>>,
    pub(super) array_filters: Vec<ArrayFilter>,
    pub(super) renames: Vec<Rename>,
    pub(super) touches_id: bool,
}

pub(super) fn parse(
    update: JsonbRef<'_>,
    array_filters: Option<JsonbRef<'_>>,
    context: &ParseContext<'_>,
) -> Result<Parsed, QueryError> {
    let place = &context.place;
    let Some(operators) = update.as_object() else {
        let message =
            format!("an update is an object of operators or a pipeline, not a value of type {}", kind(update));
        return Err(QueryError::failed_to_parse(message).at(place));
    };
    if operators.is_empty() {
        let message = "the update is empty: it needs an operator such as $set; a replacement is another operation";
        return Err(QueryError::failed_to_parse(message).at(place));
    }
    let array_filters = parse_array_filters(array_filters, context)?;
    let mut reading = Reading {
        context,
        draft: Draft::new(),
        direct: Some(Vec::new()),
        renames: Vec::new(),
        used: vec![false; array_filters.len()],
        array_filters: &array_filters,
        touches_id: false,
    };
    for entry in operators {
        reading.operator(entry.name(), entry.value, &place.name(entry.name()))?;
    }
    if let Some(unused) = reading.used.iter().position(|u| !u) {
        let identifier = &array_filters[unused].identifier;
        let message = format!("the array filter for identifier '{identifier}' is not used in the update");
        let root = Place::root("arrayFilters");
        return Err(QueryError::failed_to_parse(message).at(&root.index(unused)));
    }
    let Reading { draft, direct, renames, touches_id, .. } = reading;
    Ok(Parsed { root: draft.finish(), direct, renames, touches_id, array_filters })
}

struct Reading<'p> {
    context: &'p ParseContext<'p>,
    draft: Draft,
    direct: Option<Vec<(FieldPath, Arc<Leaf>)>>,
    renames: Vec<Rename>,
    array_filters: &'p [ArrayFilter],
    used: Vec<bool>,
    touches_id: bool,
}

impl Reading<'_> {
    fn operator(&mut self, name: &str, operand: JsonbRef<'_>, place: &Place<'_>) -> Result<(), QueryError> {
        if !OPERATORS.contains(&name) {
            let message = if name.starts_with('$') {
                format!("unknown update operator '{name}': expected one of {}", OPERATORS.join(", "))
            } else {
                format!("'{name}' is no update operator: put fields under $set, or replace the whole document")
            };
            return Err(QueryError::new("FailedToParse", 9, message).at(place));
        }
        let Some(fields) = operand.as_object() else {
            let message =
                format!("{name} takes an object of fields, such as {{{name}: {{field: ...}}}}, not {}", kind(operand));
            return Err(QueryError::failed_to_parse(message).at(place));
        };
        for field in fields {
            let place = place.name(field.name());
            let path = UpdatePath::parse(field.name(), &place)?;
            if name == "$rename" {
                self.rename(&path, field.value, &place)?;
            } else {
                let op = operands::parse(name, &path, field.value, &self.context.at(place))?;
                self.enter(&path, op, &place)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, path: &UpdatePath, op: Op, place: &Place<'_>) -> Result<(), QueryError> {
        for step in path.steps() {
            if let Step::Elements(identifier) = step
                && !identifier.is_empty()
            {
                let known = self.array_filters.iter().position(|f| f.identifier == *identifier);
                let Some(known) = known else {
                    let message =
                        format!("no array filter found for identifier '{identifier}' in path '{}'", path.as_str());
                    return Err(QueryError::bad_value(message).at(place));
                };
                self.used[known] = true;
            }
        }
        self.touches_id |= path.touches_id();
        let nesting = op.nesting();
        let leaf = Arc::new(Leaf { path: path.as_str().into(), place: place.to_string().into(), op, nesting });
        if leaf.op.is_direct() && path.is_fixed() && !path.touches_id() {
            if let Some(direct) = &mut self.direct {
                direct.push((FieldPath::parse(path.as_str(), place)?, Arc::clone(&leaf)));
            }
        } else {
            self.direct = None;
        }
        self.draft.enter(path, leaf).map_err(|e| e.at(place))
    }

    fn rename(&mut self, from: &UpdatePath, to: JsonbRef<'_>, place: &Place<'_>) -> Result<(), QueryError> {
        let Some(to) = to.as_str() else {
            let message = format!("the new name for $rename must be a string, not {}", kind(to));
            return Err(QueryError::bad_value(message).at(place));
        };
        let to = UpdatePath::parse(to, place)?;
        for (path, which) in [(from, "source"), (&to, "destination")] {
            if !path.is_fixed() {
                let message = format!("the {which} field for $rename may not be dynamic: '{}'", path.as_str());
                return Err(QueryError::bad_value(message).at(place));
            }
        }
        let (a, b) = (from.as_str(), to.as_str());
        let inside = |x: &str, y: &str| x.strip_prefix(y).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if inside(a, b) || inside(b, a) {
            let message = format!("the source and target field for $rename must not be on the same path: '{a}', '{b}'");
            return Err(QueryError::bad_value(message).at(place));
        }
        let source = FieldPath::parse(a, place)?;
        let to_path = FieldPath::parse(b, place)?;
        self.renames.push(Rename { from: source.clone(), to: to_path, place: place.to_string().into() });
        self.enter(from, Op::RenameFrom, place)?;
        self.enter(&to, Op::RenameTo(source), place)
    }
}

fn parse_array_filters(
    filters: Option<JsonbRef<'_>>,
    context: &ParseContext<'_>,
) -> Result<Vec<ArrayFilter>, QueryError> {
    let Some(filters) = filters else { return Ok(Vec::new()) };
    let root = Place::root("arrayFilters");
    let Some(filters) = filters.as_array() else {
        let message = format!("arrayFilters is an array of filters, not {}", kind(filters));
        return Err(QueryError::type_mismatch(message).at(&root));
    };
    if filters.len() > ARRAY_FILTERS_MAX {
        let message = format!("an update has at most {ARRAY_FILTERS_MAX} array filters, not {}", filters.len());
        return Err(QueryError::failed_to_parse(message).at(&root));
    }
    let mut parsed: Vec<ArrayFilter> = Vec::new();
    for (i, filter) in filters.iter().enumerate() {
        let place = root.index(i);
        if filter.kind() != Kind::Object {
            let message = format!("an array filter is an object, not {}", kind(filter));
            return Err(QueryError::type_mismatch(message).at(&place));
        }
        let mut identifier = None;
        find_identifier(filter, &mut identifier, &place, 0)?;
        let Some(identifier) = identifier else {
            let message = "an array filter needs a top-level field name, the identifier that stands in $[identifier]";
            return Err(QueryError::failed_to_parse(message).at(&place));
        };
        let lower = identifier.starts_with(|c: char| c.is_ascii_lowercase());
        if !lower || !identifier.bytes().all(|b| b.is_ascii_alphanumeric()) {
            let message = format!(
                "the identifier '{identifier}' must begin with a lower-case letter and hold letters and digits"
            );
            return Err(QueryError::bad_value(message).at(&place));
        }
        if parsed.iter().any(|f| *f.identifier == *identifier) {
            let message = format!("found two array filters with the same top-level field name '{identifier}'");
            return Err(QueryError::failed_to_parse(message).at(&place));
        }
        let filter = Filter::parse(filter, &context.at(place))?;
        parsed.push(ArrayFilter { identifier: identifier.into(), filter });
    }
    Ok(parsed)
}

/// The one first path part that all fields of an array filter share.
fn find_identifier<'a>(
    filter: JsonbRef<'a>,
    found: &mut Option<&'a str>,
    place: &Place<'_>,
    depth: usize,
) -> Result<(), QueryError> {
    if depth > crate::limits::NESTING_MAX {
        return Err(QueryError::bad_value("the array filter nests too deep").at(place));
    }
    for entry in filter.as_object().into_iter().flatten() {
        let name = entry.name();
        if name.starts_with('$') {
            for inner in entry.value.as_array().into_iter().flatten() {
                find_identifier(inner, found, place, depth + 1)?;
            }
            continue;
        }
        let first = name.split('.').next().unwrap_or(name);
        match found {
            None => *found = Some(first),
            Some(known) if *known == first => {}
            Some(known) => {
                let message = format!("expected a single top-level field name, found '{known}' and '{first}'");
                return Err(QueryError::failed_to_parse(message).at(place));
            }
        }
    }
    Ok(())
}

/// The name of a value's type, for messages.
pub(super) fn kind(v: JsonbRef<'_>) -> &'static str {
    v.kind().alias()
}
