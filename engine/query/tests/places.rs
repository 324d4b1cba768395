//! Every operator of every part of a body, with operands that are wrong: the error says where, what, and MongoDB's number.
//!
//! The names come from the registries, so that a new operator is asked too. Which operands are wrong is found by trying:
//! what is taken is none of this test's business, but each operator must refuse some.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{JsonbBuf, parse};
use quarrydb_query::{Filter, ParseContext, Projection, QueryError, Sort, Update, expr};

/// Values of every type, and the shapes that are malformed most often.
const OPERANDS: &[&str] = &[
    "2.5",
    "-2",
    "7",
    r#"{"$numberDouble": "NaN"}"#,
    r#"{"$numberDecimal": "2"}"#,
    r#""x""#,
    r#""$""#,
    r#""$$none""#,
    r#""$a..b""#,
    "{}",
    r#"{"b": 1}"#,
    r#"{"b": "$$none"}"#,
    r#"{"$none": 1}"#,
    r#"{"input": 1, "zz": 2}"#,
    r#"{"input": "$$none"}"#,
    "[]",
    "[1]",
    "[1, 2, 3, 4, 5]",
    r#"["$$none"]"#,
    r#"[1, {"$none": 1}]"#,
    r#"{"$binary": {"base64": "AQ==", "subType": "00"}}"#,
    r#"{"$oid": "65a1b2c3d4e5f60718293a4b"}"#,
    "true",
    r#"{"$date": "2024-01-01T00:00:00Z"}"#,
    "null",
    r#"{"$regularExpression": {"pattern": "(", "options": ""}}"#,
    r#"{"$timestamp": {"t": 1, "i": 1}}"#,
    r#"{"$minKey": 1}"#,
];

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// What a parser says of a text.
type Ask = fn(&str) -> Option<QueryError>;

fn filter(text: &str) -> Option<QueryError> {
    Filter::parse(json(text).view(), &ParseContext::new("filter")).err()
}

fn projection(text: &str) -> Option<QueryError> {
    Projection::parse(json(text).view(), &ParseContext::new("projection")).err()
}

fn sort(text: &str) -> Option<QueryError> {
    Sort::parse(json(text).view(), &ParseContext::new("sort")).err()
}

fn update(text: &str) -> Option<QueryError> {
    Update::parse(json(text).view(), None, &ParseContext::new("update")).err()
}

/// Asks `template` with each operand in the place of `#` and `name` in that of `@`: each error has words, a number, and a
/// place that begins with `place`. Gives how many were refused.
fn refused(ask: Ask, template: &str, name: &str, place: &str, faults: &mut Vec<String>) -> usize {
    let mut count = 0;
    for operand in OPERANDS {
        let text = template.replace('@', name).replace('#', operand);
        let Some(error) = ask(&text) else { continue };
        count += 1;
        let place = place.replace('@', name);
        let inside =
            error.place().strip_prefix(&*place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        if !inside || error.code() <= 0 || error.message().len() < 8 || error.name().is_empty() {
            faults.push(format!("{text}: {error:?}, not at {place}"));
        }
    }
    count
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn operators_of_filters() {
    let beside = [
        "$eq",
        "$ne",
        "$gt",
        "$gte",
        "$lt",
        "$lte",
        "$in",
        "$nin",
        "$not",
        "$exists",
        "$type",
        "$mod",
        "$regex",
        "$all",
        "$elemMatch",
        "$size",
        "$bitsAllSet",
        "$bitsAllClear",
        "$bitsAnySet",
        "$bitsAnyClear",
        "$near",
        "$geoWithin",
    ];
    let mut faults = Vec::new();
    for name in beside {
        let mut count = 0;
        for (template, place) in [
            (r##"{"a": {"@": #}}"##, "filter.a.@"),
            (r##"{"$or": [{"b": 1}, {"a.b": {"@": #}}]}"##, "filter.$or[1].a.b.@"),
            (r##"{"a": {"$not": {"@": #}}}"##, "filter.a.$not.@"),
            (r##"{"a": {"$elemMatch": {"b": {"@": #}}}}"##, "filter.a.$elemMatch.b.@"),
            (r##"{"a": {"$all": [{"$elemMatch": {"@": #}}]}}"##, "filter.a.$all[0].$elemMatch.@"),
        ] {
            count += refused(filter, template, name, place, &mut faults);
        }
        assert!(count > 0 || name == "$eq" || name == "$exists", "{name} takes everything");
    }
    for name in
        ["$and", "$or", "$nor", "$expr", "$jsonSchema", "$sampleRate", "$alwaysTrue", "$alwaysFalse", "$where", "$text"]
    {
        let mut count = refused(filter, r##"{"@": #}"##, name, "filter.@", &mut faults);
        count += refused(filter, r##"{"$nor": [{"@": #}]}"##, name, "filter.$nor[0].@", &mut faults);
        assert!(count > 1, "{name} takes everything");
    }
    report(&faults);
}

#[test]
fn keywords_of_schemas() {
    let mut faults = Vec::new();
    for name in [
        "properties",
        "required",
        "type",
        "bsonType",
        "items",
        "additionalItems",
        "additionalProperties",
        "patternProperties",
        "dependencies",
        "enum",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "title",
        "description",
        "$ref",
        "default",
        "format",
    ] {
        let mut count = refused(filter, r##"{"$jsonSchema": {"@": #}}"##, name, "filter.$jsonSchema", &mut faults);
        let nested = r##"{"$jsonSchema": {"properties": {"p": {"@": #}}}}"##;
        count += refused(filter, nested, name, "filter.$jsonSchema.properties.p", &mut faults);
        assert!(count > 0, "{name} takes everything");
    }
    report(&faults);
}

#[test]
fn operators_of_updates() {
    let mut faults = Vec::new();
    for name in [
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
        "$none",
    ] {
        let count = refused(update, r##"{"@": #}"##, name, "update.@", &mut faults)
            + refused(update, r##"{"@": {"a.b": #}}"##, name, "update.@", &mut faults);
        assert!(count > 0, "{name} takes everything");
    }
    for (operator, modifier) in [
        ("$push", "$each"),
        ("$push", "$position"),
        ("$push", "$slice"),
        ("$push", "$sort"),
        ("$push", "$none"),
        ("$addToSet", "$each"),
        ("$bit", "and"),
        ("$bit", "nand"),
        ("$currentDate", "$type"),
        ("$currentDate", "x"),
    ] {
        let each = if operator == "$push" && modifier != "$each" { r#""$each": [1], "# } else { "" };
        let template = format!(r##"{{"{operator}": {{"v": {{{each}"@": #}}}}}}"##);
        let count = refused(update, &template, modifier, &format!("update.{operator}.v.@"), &mut faults);
        assert!(count > 0, "{modifier} of {operator} takes everything");
    }
    for (path, code) in
        [("", 56), ("a.", 56), (".a", 56), ("a..b", 56), ("$", 2), ("$[]", 2), ("a.$[none]", 2), ("$x", 52)]
    {
        let error = update(&format!(r#"{{"$inc": {{"{path}": 1}}}}"#));
        match error {
            Some(error) if error.place().starts_with("update.$inc") => {
                if error.code() != code {
                    faults.push(format!("path {path:?}: {error:?}, not {code}"));
                }
            }
            // Names with a dollar are taken where a document has them.
            None if path == "$x" => {}
            other => faults.push(format!("path {path:?}: {other:?}")),
        }
    }
    report(&faults);
}

#[test]
fn array_filters() {
    for operand in OPERANDS {
        let ask = |filters: &str| {
            let update = json(r#"{"$set": {"a.$[e]": 1}}"#);
            Update::parse(update.view(), Some(json(filters).view()), &ParseContext::new("update")).err()
        };
        for (filters, place) in [
            (operand.to_string(), "arrayFilters"),
            (format!("[{operand}]"), "arrayFilters"),
            (format!(r#"[{{"e": {{"$in": {operand}}}}}]"#), "arrayFilters[0].e.$in"),
            (format!(r#"[{{"e": 1}}, {{"f": {operand}}}]"#), "arrayFilters[1]"),
        ] {
            if let Some(error) = ask(&filters) {
                // A filter that is right may still be none that the update asks for.
                let placed = error.place().starts_with(place) || error.place() == "update.$set.a.$[e]";
                assert!(placed && error.code() > 0, "{filters}: {error:?}");
            }
        }
    }
}

#[test]
fn operators_of_projections_and_sorts() {
    let mut faults = Vec::new();
    for name in ["$slice", "$elemMatch", "$meta", "$none"] {
        assert!(refused(projection, r##"{"a": {"@": #}}"##, name, "projection.a.@", &mut faults) > 0, "{name}");
    }
    assert!(refused(projection, r##"{"a.b": #}"##, "", "projection.a.b", &mut faults) > 0);
    assert!(refused(projection, r##"{"a": {"b": {"c": #}}}"##, "", "projection.a.b.c", &mut faults) > 0);
    assert!(refused(sort, r##"{"x": 1, "a.b": #}"##, "", "sort.a.b", &mut faults) > 20);
    assert!(refused(sort, r##"{"a": {"$meta": #}}"##, "", "sort.a", &mut faults) > 20);
    report(&faults);
}

#[test]
fn operators_of_expressions() {
    let mut faults = Vec::new();
    let names: Vec<&str> = expr::operator_names().collect();
    assert!(names.len() > 150, "{} operators", names.len());
    for name in names {
        let mut count = 0;
        for (ask, template, place) in [
            (filter as Ask, r##"{"$expr": {"@": #}}"##, "filter.$expr.@"),
            (filter, r##"{"$and": [{"$expr": {"$gt": [1, {"@": #}]}}]}"##, "filter.$and[0].$expr.$gt[1].@"),
            (projection, r##"{"x": {"@": #}}"##, "projection.x.@"),
            (update, r##"[{"$set": {"x.y": {"@": #}}}]"##, "update[0].$set.x.y.@"),
            (update, r##"[{"$set": {"k": 1}}, {"$replaceWith": {"@": #}}]"##, "update[1].$replaceWith.@"),
        ] {
            count += refused(ask, template, name, place, &mut faults);
        }
        let takes_all = ["$literal", "$const"].contains(&name);
        assert!(count > 0 || takes_all, "{name} takes everything");
    }
    report(&faults);
}

#[test]
fn what_expressions_do_not_have_is_refused_by_its_name() {
    for name in
        ["$none", "$function", "$accumulator", "$where", "$meta", "$match", "$hash", "$toArray", "$similarityCosine"]
    {
        let error = filter(&format!(r#"{{"$expr": {{"{name}": 1}}}}"#)).unwrap();
        assert!(error.message().contains(name) && error.place() == format!("filter.$expr.{name}"), "{error:?}");
    }
    for stage in ["$match", "$group", "$lookup", "$none", "$out", "$merge", "$sort"] {
        let error = update(&format!(r#"[{{"$set": {{"a": 1}}}}, {{"{stage}": {{}}}}]"#)).unwrap();
        assert!(error.message().contains(stage) && error.place().starts_with("update[1]"), "{error:?}");
    }
}
