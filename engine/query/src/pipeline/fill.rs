//! `$fill`: values for what is null or missing.
//!
//! It stands for others: the methods `linear` and `locf` for a `$setWindowFields` with `$linearFill` and `$locf`, values for
//! an `$addFields` with `$ifNull` behind it. Takes the stage's object, gives the two.

use super::stage::Stage;
use super::window::SetWindowFields;
use crate::add_fields::AddFields;
use crate::expr::Expression;
use crate::sort::check_path;
use crate::transform::Transform;
use crate::{ParseContext, QueryError, scratch};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, ObjectRef};
use std::sync::Arc;

/// Parses the stage's object and appends what it stands for.
///
/// # Errors
/// `FailedToParse` for what is no object, 6050200 to 6050204 for its fields, 40414 and 40415 where one is missing or not
/// known, those of the stages it stands for.
pub(super) fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>, out: &mut Vec<Stage>) -> Result<(), QueryError> {
    let Some(object) = value.as_object() else {
        let message = format!("the $fill stage specification must be an object, found {}", value.kind().alias());
        return Err(QueryError::failed_to_parse(message).at(&context.place));
    };
    check_known(object, &["partitionBy", "partitionByFields", "sortBy", "output"], context)?;
    let error = |code, message: &str| QueryError::location(code, message);
    let place = context.place.name("output");
    let Some(output) = object.get("output") else {
        return Err(error(40414, "BSON field '$fill.output' is missing but a required field").at(&context.place));
    };
    let Some(output) = output.as_object().filter(|o| !o.is_empty()) else {
        let message = "the output field in '$fill' must contain an object with at least one element";
        return Err(error(6_050_203, message).at(&place));
    };
    let (mut methods, mut values) = (Vec::new(), Vec::new());
    for field in output {
        let path = field.name();
        let place = place.name(path);
        check_path(path).map_err(|e| e.at(&place))?;
        let Some(spec) = field.value.as_object() else {
            let message = "each fill output specification must be an object with exactly one field";
            return Err(error(6_050_200, message).at(&place));
        };
        check_known(spec, &["method", "value"], &context.at(place))?;
        match (spec.get("method"), spec.get("value")) {
            (Some(_), Some(_)) => {
                let message = "each fill output specification must have exactly one of 'method' or 'value', not both";
                return Err(error(6_050_201, message).at(&place));
            }
            (Some(method), None) => match method.as_str() {
                Some("linear") => methods.push((path, "$linearFill")),
                Some("locf") => methods.push((path, "$locf")),
                _ => return Err(error(6_050_202, "method must be either locf or linear").at(&place.name("method"))),
            },
            (None, Some(value)) => {
                let inner = place.name("value");
                Expression::parse(value, &context.at(inner))?;
                values.push((path, value));
            }
            // As in MongoDB nothing is asked for then.
            (None, None) => {}
        }
    }
    let partition_by = partition(object, context)?;
    if !methods.is_empty() {
        let spec = window_spec(&methods, partition_by.as_ref(), object.get("sortBy"))?;
        out.push(Stage::SetWindowFields(Arc::new(SetWindowFields::parse(spec.view(), context)?)));
    }
    if !values.is_empty() {
        let spec = values_spec(&values)?;
        let parsed = AddFields::parse("$addFields", spec.view(), &context.at(place))?;
        out.push(Stage::Transform(Arc::new(Transform::AddFields(parsed))));
    }
    Ok(())
}

fn check_known(object: ObjectRef<'_>, known: &[&str], context: &ParseContext<'_>) -> Result<(), QueryError> {
    match object.iter().find(|e| !known.contains(&e.name())) {
        None => Ok(()),
        Some(unknown) => {
            let message = format!("BSON field '$fill.{}' is an unknown field.", unknown.name());
            Err(QueryError::location(40415, message).at(&context.place.name(unknown.name())))
        }
    }
}

/// What partitions are made by, as an expression.
fn partition(object: ObjectRef<'_>, context: &ParseContext<'_>) -> Result<Option<JsonbBuf>, QueryError> {
    let place = context.place.name("partitionByFields");
    match (object.get("partitionBy"), object.get("partitionByFields")) {
        (Some(_), Some(_)) => {
            let message = "maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'";
            Err(QueryError::location(6_050_204, message).at(&place))
        }
        (Some(by), None) if by.as_str().is_some() || by.as_object().is_some() => Ok(Some(by.to_buf())),
        (Some(by), None) => {
            let message = format!("'partitionBy' is a string or an object, not {}", by.kind().alias());
            Err(QueryError::type_mismatch(message).at(&context.place.name("partitionBy")))
        }
        (None, Some(fields)) => {
            let wrong = || QueryError::type_mismatch("'partitionByFields' is an array of paths").at(&place);
            let fields = fields.as_array().ok_or_else(wrong)?;
            let mut paths = Vec::new();
            for (at, field) in fields.iter().enumerate() {
                let path = field.as_str().ok_or_else(wrong)?;
                check_path(path).map_err(|e| e.at(&place.index(at)))?;
                paths.push(path);
            }
            // An array of values would be refused as a partition: each stands in a field by its number.
            let build = |out: &mut Builder| {
                out.begin_object();
                for (at, path) in paths.iter().enumerate() {
                    out.field(&format!("f{at}"));
                    out.string(&format!("${path}"));
                }
                ended(out)
            };
            Ok(if paths.is_empty() { None } else { Some(scratch::build(64, build)?) })
        }
        (None, None) => Ok(None),
    }
}

fn ended(out: &mut Builder) -> Result<(), QueryError> {
    out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
}

fn window_spec(
    methods: &[(&str, &str)],
    partition_by: Option<&JsonbBuf>,
    sort_by: Option<JsonbRef<'_>>,
) -> Result<JsonbBuf, QueryError> {
    scratch::build(128, |out| {
        out.begin_object();
        if let Some(partition_by) = partition_by {
            out.field("partitionBy");
            out.copy(partition_by.view());
        }
        if let Some(sort_by) = sort_by {
            out.field("sortBy");
            out.copy(sort_by);
        }
        out.field("output");
        out.begin_object();
        for (path, function) in methods {
            out.field(path);
            out.begin_object();
            out.field(function);
            out.string(&format!("${path}"));
            ended(out)?;
        }
        ended(out)?;
        ended(out)
    })
}

/// `{path: {$ifNull: ["$path", value]}, ...}`.
fn values_spec(values: &[(&str, JsonbRef<'_>)]) -> Result<JsonbBuf, QueryError> {
    scratch::build(128, |out| {
        out.begin_object();
        for (path, value) in values {
            out.field(path);
            out.begin_object();
            out.field("$ifNull");
            out.begin_array();
            out.string(&format!("${path}"));
            out.copy(*value);
            out.end_array().map_err(|e| QueryError::bad_value(e.to_string()))?;
            ended(out)?;
        }
        ended(out)
    })
}
