//! From the object of a body to the tree of a projection.
//!
//! Whether a projection names what stays or what goes follows from what it says of any field but `_id`; `$slice` alone
//! leaves the rest where it is, `$elemMatch` alone takes the rest away, and `_id` alone decides for itself.

use super::tree::{Part, Slice, Tree};
use super::{Mode, Projection};
use crate::computed::Computed;
use crate::filter::is_truthy;
use crate::limits::{NESTING_MAX, PATH_PARTS_MAX};
use crate::number::truncated_i64;
use crate::sort::check_path;
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{JsonbRef, Kind, ObjectRef, Value};

struct Parser<'c> {
    context: &'c ParseContext<'c>,
    root: Tree,
    mode: Option<Mode>,
    /// What `{_id: ...}` says, where it does.
    id: Option<bool>,
    slice: bool,
    elem_match: bool,
    /// Where the positional operator stands.
    positional: Option<String>,
    /// Of a pipeline: what `find` alone has is an expression there, or an error.
    stage: bool,
}

/// Parses a projection.
pub(super) fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Projection, QueryError> {
    let place = context.place;
    let Some(object) = value.as_object() else {
        let message = format!("a projection is an object, not {}", value.kind().alias());
        return Err(QueryError::type_mismatch(message).at(&place));
    };
    let mut parser = Parser::new(context);
    parser.object(object, "", &place, 0)?;
    parser.finish()
}

/// Parses the value of `$project`.
pub(super) fn parse_stage(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Projection, QueryError> {
    let place = context.place;
    let Some(object) = value.as_object() else {
        let message = format!("$project specification must be an object, not {}", value.kind().alias());
        return Err(QueryError::location(15969, message).at(&place));
    };
    if object.is_empty() {
        let message = "Invalid $project :: projection specification must have at least one field";
        return Err(QueryError::location(51272, message).at(&place));
    }
    let mut parser = Parser { stage: true, ..Parser::new(context) };
    parser.object(object, "", &place, 0)?;
    parser.finish()
}

/// The exclusion of paths, each with its place.
pub(super) fn exclusion(paths: &[(Place<'_>, &str)], context: &ParseContext<'_>) -> Result<Projection, QueryError> {
    let mut parser = Parser::new(context);
    for (place, path) in paths {
        check_whole_path(path).and_then(|()| parser.exclude(path)).map_err(|e| e.at(place))?;
    }
    parser.finish()
}

impl<'c> Parser<'c> {
    fn new(context: &'c ParseContext<'c>) -> Self {
        Self {
            context,
            root: Tree::default(),
            mode: None,
            id: None,
            slice: false,
            elem_match: false,
            positional: None,
            stage: false,
        }
    }

    fn finish(self) -> Result<Projection, QueryError> {
        let mode = self.mode.unwrap_or(match self.id {
            _ if self.slice && self.id != Some(true) => Mode::Exclusion,
            _ if self.elem_match => Mode::Inclusion,
            Some(true) => Mode::Inclusion,
            _ => Mode::Exclusion,
        });
        let mut root = self.root;
        if mode == Mode::Inclusion && root.find(b"_id").is_none() {
            root.insert("_id", Part::Include)?;
        }
        let positional_place = self.positional.unwrap_or_default().into();
        Ok(Projection { mode, root, filter: None, positional_place })
    }

    fn object(
        &mut self,
        object: ObjectRef<'_>,
        prefix: &str,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), QueryError> {
        if depth > NESTING_MAX {
            let message = format!("a projection nested deeper than {NESTING_MAX} levels: that is the most it may be");
            return Err(QueryError::bad_value(message).at(place));
        }
        for entry in object {
            let name = entry.name();
            let place = place.name(name);
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
            self.field(&path, entry.value, &place, depth).map_err(|e| e.at(&place))?;
        }
        Ok(())
    }

    fn field(&mut self, path: &str, value: JsonbRef<'_>, place: &Place<'_>, depth: usize) -> Result<(), QueryError> {
        let truth = match value.value() {
            Value::Bool(_) => Some(is_truthy(value)),
            _ if value.kind().is_number() => Some(is_truthy(value)),
            _ => None,
        };
        if self.stage && path.ends_with(".$") {
            return Err(QueryError::location(31324, "Cannot use positional projection in aggregation projection"));
        }
        if let Some(path) = positional(path)?.filter(|_| !self.stage) {
            return self.positional(path, truth, value.kind(), place);
        }
        check_whole_path(path)?;
        match (truth, value.as_object()) {
            (Some(true), _) => self.include(path),
            (Some(false), _) => self.exclude(path),
            (None, Some(object)) => self.operators_or_fields(path, object, value, place, depth),
            (None, None) => self.computed(path, value, place),
        }
    }

    fn include(&mut self, path: &str) -> Result<(), QueryError> {
        if path == "_id" {
            self.id = Some(true);
        } else {
            self.decide(Mode::Inclusion, path)?;
        }
        self.root.insert(path, Part::Include)
    }

    fn exclude(&mut self, path: &str) -> Result<(), QueryError> {
        if path == "_id" {
            self.id = Some(false);
        } else {
            self.decide(Mode::Exclusion, path)?;
        }
        self.root.insert(path, Part::Exclude)
    }

    fn decide(&mut self, mode: Mode, path: &str) -> Result<(), QueryError> {
        match (*self.mode.get_or_insert(mode), mode) {
            (Mode::Exclusion, Mode::Inclusion) => {
                let message = format!("Cannot do inclusion on field {path} in exclusion projection");
                Err(QueryError::location(31253, message))
            }
            (Mode::Inclusion, Mode::Exclusion) => {
                let message = format!("Cannot do exclusion on field {path} in inclusion projection");
                Err(QueryError::location(31254, message))
            }
            _ => Ok(()),
        }
    }

    fn operators_or_fields(
        &mut self,
        path: &str,
        object: ObjectRef<'_>,
        value: JsonbRef<'_>,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), QueryError> {
        let Some(first) = object.iter().next() else {
            let message = format!("An empty sub-projection is not a valid value. Found empty object at path {path}");
            return Err(QueryError::location(51270, message));
        };
        match first.name() {
            "$slice" if object.len() == 1 && !self.stage => {
                self.slice(path, first.value, value, place).map_err(|e| e.at(&place.name("$slice")))
            }
            "$elemMatch" if object.len() == 1 && !self.stage => {
                let here = place.name("$elemMatch");
                self.elem_match(path, value, first.value, place, depth).map_err(|e| e.at(&here))
            }
            "$meta" => {
                let message = "$meta is not supported: there is no text index, and rows have no scores";
                Err(QueryError::unknown_operator(message).at(&place.name("$meta")))
            }
            "$id" | "$ref" | "$db" => self.object(object, path, place, depth + 1),
            name if name.starts_with('$') => self.computed(path, value, place),
            _ => self.object(object, path, place, depth + 1),
        }
    }

    /// `{$slice: limit}` and `{$slice: [skip, limit]}`; other arguments are the expression of the same name.
    fn slice(
        &mut self,
        path: &str,
        argument: JsonbRef<'_>,
        whole: JsonbRef<'_>,
        place: &Place<'_>,
    ) -> Result<(), QueryError> {
        let slice = match argument.value() {
            _ if argument.kind().is_number() => Slice { skip: None, limit: clamped(argument) },
            Value::Array(array) => {
                let numbers: Vec<_> = array.iter().take(4).map(|v| v.kind().is_number().then(|| clamped(v))).collect();
                match *numbers {
                    [Some(skip), Some(limit)] if limit > 0 => Slice { skip: Some(skip), limit },
                    [Some(_), Some(limit)] => {
                        return Err(QueryError::location(28724, format!("$slice limit must be positive, got {limit}")));
                    }
                    [_, _] | [_, _, _] => return self.computed(path, whole, place),
                    _ => return Err(slice_arguments(array.len())),
                }
            }
            _ => return Err(slice_arguments(1)),
        };
        self.slice = true;
        self.root.insert(path, Part::Slice(slice))
    }

    fn elem_match(
        &mut self,
        path: &str,
        whole: JsonbRef<'_>,
        argument: JsonbRef<'_>,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), QueryError> {
        if argument.kind() != Kind::Object {
            let found = argument.kind().alias();
            let message = format!("elemMatch: Invalid argument, object required, but got {found}");
            return Err(QueryError::location(31274, message));
        }
        if self.positional.is_some() {
            return Err(QueryError::location(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if depth > 0 || path.contains('.') {
            return Err(QueryError::location(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        let test = crate::filter::parse_elem_match(whole, &self.context.at(*place))?;
        self.elem_match = true;
        self.root.insert(path, Part::ElemMatch(Box::new(test)))
    }

    fn positional(&mut self, path: &str, truth: Option<bool>, kind: Kind, place: &Place<'_>) -> Result<(), QueryError> {
        match truth {
            Some(true) => {}
            Some(false) => {
                let message = "positional projection cannot be used with exclusion";
                return Err(QueryError::location(31395, message));
            }
            None if kind == Kind::Object => {
                let message = "positional projection cannot be used with an expression or sub object";
                return Err(QueryError::location(31271, message));
            }
            None => return Err(QueryError::location(31308, "positional projection cannot be used with a literal")),
        }
        if self.positional.is_some() {
            let message = "Cannot specify more than one positional projection per query.";
            return Err(QueryError::location(31276, message));
        }
        if self.elem_match {
            return Err(QueryError::location(31256, "Cannot specify positional operator and $elemMatch."));
        }
        check_path(path)?;
        self.decide(Mode::Inclusion, path)?;
        self.positional = Some(place.to_string());
        self.root.insert(path, Part::Positional)
    }

    /// An expression, or a literal, which is one too.
    fn computed(&mut self, path: &str, value: JsonbRef<'_>, place: &Place<'_>) -> Result<(), QueryError> {
        if self.mode == Some(Mode::Exclusion) {
            return Err(match value.kind() {
                Kind::Object => {
                    QueryError::location(31252, "Cannot use expression other than $meta in exclusion projection")
                }
                _ => QueryError::location(31310, format!("Cannot use an expression {path} in an exclusion projection")),
            });
        }
        let computed = Computed::parse(value, &self.context.at(*place))?;
        self.mode = Some(Mode::Inclusion);
        self.root.insert(path, Part::Computed(computed))
    }
}

fn check_whole_path(path: &str) -> Result<(), QueryError> {
    check_path(path)?;
    if path.split('.').count() > PATH_PARTS_MAX {
        return Err(QueryError::bad_value(format!("a path of more than {PATH_PARTS_MAX} parts")));
    }
    Ok(())
}

/// The path before a `.$` at its end, where there is one.
fn positional(path: &str) -> Result<Option<&str>, QueryError> {
    let places = path.split('.').filter(|part| *part == "$").count();
    match (places, path.strip_suffix(".$")) {
        (0, _) => Ok(None),
        (1, Some(before)) => Ok(Some(before)),
        (1, None) if path == "$" => {
            let message = "Positional projection '$' does not match the query document.";
            Err(QueryError::location(31277, message))
        }
        (1, None) => {
            let message = format!(
                "As of 4.4, it's illegal to specify positional operator in the middle of a path. Positional \
                 projection may only be used at the end, for example: a.b.$. Found: {path}"
            );
            Err(QueryError::location(31394, message))
        }
        _ => Err(QueryError::location(31287, format!("Cannot use positional operator twice: {path}"))),
    }
}

/// A number's whole part, at most as far as an int32 goes: no array is longer.
fn clamped(value: JsonbRef<'_>) -> i64 {
    let bound = |n: i64| n.clamp(i32::MIN.into(), i32::MAX.into());
    match (truncated_i64(value), value.as_f64()) {
        (Some(n), _) => bound(n),
        (None, Some(d)) if d > 0.0 => i32::MAX.into(),
        (None, Some(d)) if d < 0.0 => i32::MIN.into(),
        _ => 0,
    }
}

fn slice_arguments(count: usize) -> QueryError {
    let message = format!(
        "Invalid $slice syntax: it takes a number, or [skip, limit]. Expression $slice takes at least 2 arguments, and \
         at most 3, but {count} were passed in."
    );
    QueryError::location(28667, message)
}
