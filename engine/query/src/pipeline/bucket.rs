//! `$sortByCount` and `$bucket`: stages that stand for a `$group` and a `$sort`.
//!
//! Written out as those stages' text and parsed as such, so that there is one meaning and one fast way for all of them.

use super::stage::Stage;
use crate::expr::Expression;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, ObjectRef, compare, type_rank};

/// Parses the value of `$sortByCount`.
pub(super) fn sort_by_count(
    value: JsonbRef<'_>,
    context: &ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<(), QueryError> {
    let error = |code, message: &str| Err(QueryError::location(code, message).at(&context.place));
    match (value.as_object(), value.as_str()) {
        (Some(object), _) if !is_expression(object) => {
            return error(
                40147,
                "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
            );
        }
        (None, Some(path)) if !path.starts_with('$') => {
            return error(
                40148,
                "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
            );
        }
        (None, None) => {
            return error(40149, "the sortByCount field must be specified as a string or as an object");
        }
        _ => {}
    }
    let group = build(|out| {
        out.begin_object();
        out.field("_id");
        out.copy(value);
        count(out);
        out.end_object()
    })?;
    Stage::parse("$group", group.view(), context, out)?;
    sort("count", -1, context, out)
}

fn is_expression(object: ObjectRef<'_>) -> bool {
    object.iter().next().is_some_and(|e| e.name().starts_with('$'))
}

/// `count: {$sum: 1}`.
fn count(out: &mut Builder) {
    out.field("count");
    out.begin_object();
    out.field("$sum");
    out.int32(1);
    let ended = out.end_object();
    debug_assert!(ended.is_ok(), "one name cannot stand twice");
}

fn sort(name: &str, direction: i32, context: &ParseContext<'_>, out: &mut Vec<Stage>) -> Result<(), QueryError> {
    let sort = build(|out| {
        out.begin_object();
        out.field(name);
        out.int32(direction);
        out.end_object()
    })?;
    Stage::parse("$sort", sort.view(), context, out)
}

fn build(write: impl FnOnce(&mut Builder) -> Result<(), quarrydb_jsonb::Error>) -> Result<JsonbBuf, QueryError> {
    let mut out = Builder::new();
    write(&mut out).map_err(|e| QueryError::failed_to_parse(e.to_string()))?;
    Ok(JsonbBuf::from_valid(out.take()))
}

/// The parts of a `$bucket`.
#[derive(Default)]
struct Bucket<'v> {
    group_by: Option<JsonbRef<'v>>,
    boundaries: Vec<JsonbBuf>,
    default: Option<JsonbBuf>,
    output: Option<ObjectRef<'v>>,
}

/// Parses the value of `$bucket`.
pub(super) fn bucket(value: JsonbRef<'_>, context: &ParseContext<'_>, out: &mut Vec<Stage>) -> Result<(), QueryError> {
    let place = context.place;
    let Some(object) = value.as_object() else {
        let message = format!("Argument to $bucket stage must be an object, but found type: {}.", value.kind().alias());
        return Err(QueryError::location(40201, message).at(&place));
    };
    let mut bucket = Bucket::default();
    for entry in object {
        let place = place.name(entry.name());
        bucket.option(entry.name(), entry.value, &context.at(place)).map_err(|e| e.at(&place))?;
    }
    let (Some(group_by), Some(first), Some(last)) =
        (bucket.group_by, bucket.boundaries.first(), bucket.boundaries.last())
    else {
        let message = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        return Err(QueryError::location(40198, message).at(&place));
    };
    if let Some(default) = &bucket.default {
        let (default, first, last) = (default.view(), first.view(), last.view());
        let same_type = type_rank(default.kind()) == type_rank(first.kind());
        if same_type && compare(default, first).is_ge() && compare(default, last).is_lt() {
            let message = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to \
                           the highest boundary.";
            return Err(QueryError::location(40199, message).at(&place.name("default")));
        }
    }
    let group = build(|out| bucket.write(group_by, out)).map_err(|e| e.at(&place))?;
    Stage::parse("$group", group.view(), context, out)?;
    sort("_id", 1, context, out)
}

impl<'v> Bucket<'v> {
    fn option(&mut self, name: &str, value: JsonbRef<'v>, context: &ParseContext<'_>) -> Result<(), QueryError> {
        match name {
            "groupBy" => {
                let is_path = value.as_str().is_some_and(|s| s.starts_with('$'));
                if !is_path && !value.as_object().is_some_and(is_expression) {
                    let message = format!(
                        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {}.",
                        crate::error::shown(value)
                    );
                    return Err(QueryError::location(40202, message));
                }
                self.group_by = Some(value);
            }
            "boundaries" => self.boundaries(value, context)?,
            "default" => {
                self.default = Some(constant(value, context)?.ok_or_else(|| {
                    let message = format!(
                        "The $bucket 'default' field must be a constant expression, but found: {}.",
                        crate::error::shown(value)
                    );
                    QueryError::location(40195, message)
                })?);
            }
            "output" => {
                self.output = Some(value.as_object().ok_or_else(|| {
                    let message = format!(
                        "The $bucket 'output' field must be an object, but found type: {}.",
                        value.kind().alias()
                    );
                    QueryError::location(40196, message)
                })?);
            }
            _ => return Err(QueryError::location(40197, format!("Unrecognized option to $bucket: {name}."))),
        }
        Ok(())
    }

    fn boundaries(&mut self, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<(), QueryError> {
        let Some(array) = value.as_array() else {
            let message =
                format!("The $bucket 'boundaries' field must be an array, but found type: {}.", value.kind().alias());
            return Err(QueryError::location(40200, message));
        };
        for (i, boundary) in array.iter().enumerate() {
            let place = context.place.index(i);
            let found = constant(boundary, &context.at(place))?.ok_or_else(|| {
                let message = format!(
                    "The $bucket 'boundaries' field must be an array of constant values, but found value: {}.",
                    crate::error::shown(boundary)
                );
                QueryError::location(40191, message).at(&place)
            })?;
            self.boundaries.push(found);
        }
        if self.boundaries.len() < 2 {
            let message = format!(
                "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
                self.boundaries.len()
            );
            return Err(QueryError::location(40192, message));
        }
        for (i, pair) in self.boundaries.windows(2).enumerate() {
            let [lower, upper] = pair else { continue };
            let (lower, upper, place) = (lower.view(), upper.view(), context.place.index(i + 1));
            if type_rank(lower.kind()) != type_rank(upper.kind()) {
                let message = format!(
                    "All values in the 'boundaries' option to $bucket must have the same type. Found conflicting types {} \
                     and {}.",
                    lower.kind().alias(),
                    upper.kind().alias()
                );
                return Err(QueryError::location(40193, message).at(&place));
            }
            if compare(lower, upper).is_ge() {
                let message = format!(
                    "The 'boundaries' option to $bucket must be sorted, but elements {i} and {} are not in ascending order",
                    i + 1
                );
                return Err(QueryError::location(40194, message).at(&place));
            }
        }
        Ok(())
    }

    /// `{_id: {$let: {vars: {v: groupBy}, in: {$switch: ...}}}, ...output}`: what is grouped by is evaluated once, and the
    /// text is no longer than the stage's own.
    fn write(&self, group_by: JsonbRef<'_>, out: &mut Builder) -> Result<(), quarrydb_jsonb::Error> {
        out.begin_object();
        out.field("_id");
        out.begin_object();
        out.field("$let");
        out.begin_object();
        out.field("vars");
        out.begin_object();
        out.field("v");
        out.copy(group_by);
        out.end_object()?;
        out.field("in");
        out.begin_object();
        out.field("$switch");
        out.begin_object();
        out.field("branches");
        out.begin_array();
        for pair in self.boundaries.windows(2) {
            let [lower, upper] = pair else { continue };
            out.begin_object();
            out.field("case");
            out.begin_object();
            out.field("$and");
            out.begin_array();
            compared("$gte", lower, out)?;
            compared("$lt", upper, out)?;
            out.end_array()?;
            out.end_object()?;
            out.field("then");
            literal(lower, out)?;
            out.end_object()?;
        }
        out.end_array()?;
        if let Some(default) = &self.default {
            out.field("default");
            literal(default, out)?;
        }
        out.end_object()?;
        out.end_object()?;
        out.end_object()?;
        out.end_object()?;
        match self.output {
            None => count(out),
            Some(output) => {
                for entry in output {
                    out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
                    out.copy(entry.value);
                }
            }
        }
        out.end_object()
    }
}

fn constant(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Option<JsonbBuf>, QueryError> {
    let expression = Expression::parse(value, context)?;
    Ok(expression.constant().map(JsonbRef::to_buf))
}

/// `{operator: ["$$v", literal]}`.
fn compared(operator: &str, with: &JsonbBuf, out: &mut Builder) -> Result<(), quarrydb_jsonb::Error> {
    out.begin_object();
    out.field(operator);
    out.begin_array();
    out.string("$$v");
    literal(with, out)?;
    out.end_array()?;
    out.end_object()
}

fn literal(value: &JsonbBuf, out: &mut Builder) -> Result<(), quarrydb_jsonb::Error> {
    out.begin_object();
    out.field("$literal");
    out.copy(value.view());
    out.end_object()
}
