//! Operators with a syntax of their own: those that choose what to evaluate, and those that bind variables.
//!
//! Takes an operator's operand, gives its node. Which arguments are wanted and MongoDB's number for each that is missing
//! or unknown stand here. Next: `evaluate.rs`.

use super::ast::{Call, ConvertCall, DateFromStringCall, Expr};
use super::datum::Datum;
use super::parse::{Parser, check_variable_name};
use super::{array, regex, registry};
use crate::{Place, QueryError};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, ObjectRef};

type Parsed = Result<Expr, QueryError>;

/// Names that `parse` knows; the rest is in the registry.
pub(super) const FORMS: [&str; 20] = [
    "$and",
    "$or",
    "$cond",
    "$ifNull",
    "$switch",
    "$let",
    "$map",
    "$filter",
    "$reduce",
    "$convert",
    "$dateFromString",
    "$regexMatch",
    "$regexFind",
    "$regexFindAll",
    "$rand",
    "$createObjectId",
    "$sigmoid",
    "$literal",
    "$const",
    "$expr",
];

/// The node of an operator with a syntax of its own; none for all others.
pub(super) fn parse(p: &mut Parser, name: &str, operand: JsonbRef<'_>, place: &Place<'_>) -> Option<Parsed> {
    Some(match name {
        "$literal" | "$const" => Ok(Expr::Constant(operand.to_buf())),
        "$expr" => p.expression(operand, place),
        "$and" => many(p, name, operand, 0, place).map(|a| fold_all(p, Expr::And(a))),
        "$or" => many(p, name, operand, 0, place).map(|a| fold_all(p, Expr::Or(a))),
        "$ifNull" => if_null(p, operand, place),
        "$cond" => cond(p, operand, place),
        "$switch" => switch(p, operand, place),
        "$let" => bind(p, operand, place),
        "$map" => map(p, operand, place),
        "$filter" => filter(p, operand, place),
        "$reduce" => reduce(p, operand, place),
        "$convert" => convert(p, operand, place),
        "$dateFromString" => date_from_string(p, operand, place),
        "$regexMatch" | "$regexFind" | "$regexFindAll" => regex::parse(p, name, operand, place),
        "$sortArray" => sort_array(p, operand, place),
        "$rand" => no_arguments(name, 3_040_501, operand, place).map(|()| Expr::Random),
        "$createObjectId" => {
            no_arguments(name, FAILED_TO_PARSE, operand, place).map(|()| Expr::NewObjectId(p.now_ms()))
        }
        "$sigmoid" => sigmoid(p, operand, place),
        _ => return None,
    })
}

/// What is said of an operator that is not there.
pub(super) fn unknown(name: &str) -> QueryError {
    let message = match name {
        "$function" | "$accumulator" | "$where" => {
            format!("{name} is not supported: this server runs no code from queries")
        }
        "$meta" => "$meta is not supported: there is no text or vector search".to_owned(),
        _ => {
            let mut near: Vec<_> = registry::names().chain(FORMS).filter(|n| n.eq_ignore_ascii_case(name)).collect();
            near.sort_unstable();
            match near.first() {
                Some(near) => format!("unrecognized expression '{name}': did you mean '{near}'?"),
                None => format!("unrecognized expression '{name}'"),
            }
        }
    };
    QueryError::new("InvalidPipelineOperator", 168, message)
}

/// What is said where an object of arguments is wanted.
pub(super) fn needs_object(name: &str, operand: JsonbRef<'_>) -> QueryError {
    let message = format!("{name} takes an object of arguments, not a value of type {}", operand.kind().alias());
    named_error(name, "object", message)
}

/// An operator, and the numbers of its faults.
type Numbers = (&'static str, i32, i32, &'static [(&'static str, i32)]);

/// The numbers that MongoDB gives to faults in arguments by name: for a value that is no object, for an unknown
/// argument, then for each required argument.
const NUMBERS: [Numbers; 27] = [
    ("$map", 16878, 16879, &[("input", 16880), ("in", 16882)]),
    ("$filter", 28646, 28647, &[("input", 28648), ("cond", 28650)]),
    ("$reduce", 40075, 40076, &[("input", 40077), ("initialValue", 40078), ("in", 40079)]),
    ("$let", 16874, 16875, &[("vars", 16876), ("in", 16877)]),
    ("$cond", 17083, 17083, &[("if", 17080), ("then", 17081), ("else", 17082)]),
    ("$switch", 40060, 40067, &[("branches", 40068)]),
    ("$getField", FAILED_TO_PARSE, 3041701, &[("field", 3041702), ("input", 3041703)]),
    ("$setField", 4161100, 4161101, &[("field", 4161102), ("value", 4161103), ("input", 4161109)]),
    ("$unsetField", 4161110, 4161111, &[("field", 4161102), ("input", 4161109)]),
    ("$zip", 34460, 34464, &[("inputs", 34465)]),
    ("$sortArray", 2942500, 2942501, &[("input", 2942502), ("sortBy", 2942503)]),
    ("$trim", 50696, 50694, &[("input", 50695)]),
    ("$ltrim", 50696, 50694, &[("input", 50695)]),
    ("$rtrim", 50696, 50694, &[("input", 50695)]),
    ("$replaceOne", 51751, 51750, &[("input", 51749), ("find", 51748), ("replacement", 51747)]),
    ("$replaceAll", 51751, 51750, &[("input", 51749), ("find", 51748), ("replacement", 51747)]),
    ("$regexMatch", 51103, 31024, &[("input", 31022), ("regex", 31023)]),
    ("$regexFind", 51103, 31024, &[("input", 31022), ("regex", 31023)]),
    ("$regexFindAll", 51103, 31024, &[("input", 31022), ("regex", 31023)]),
    ("$dateToString", 18629, 18534, &[("date", 18628)]),
    ("$dateToParts", 40524, 40520, &[("date", 40522)]),
    ("$dateFromParts", 40519, 40518, &[]),
    ("$dateFromString", 40540, 40541, &[("dateString", 40542)]),
    ("$dateAdd", 5166400, 5166401, &[("startDate", 5166402), ("unit", 5166402), ("amount", 5166402)]),
    ("$dateSubtract", 5166400, 5166401, &[("startDate", 5166402), ("unit", 5166402), ("amount", 5166402)]),
    ("$dateDiff", 5166301, 5166302, &[("startDate", 5166303), ("endDate", 5166304), ("unit", 5166305)]),
    ("$dateTrunc", 5439007, 5439008, &[("date", 5439009), ("unit", 5439010)]),
];

/// The error for a fault in arguments by name: "object" where they are none, "unknown", or the one that is missing.
pub(super) fn named_error(name: &str, fault: &str, message: String) -> QueryError {
    let numbers = NUMBERS.iter().find(|(n, ..)| *n == name);
    let code = match (numbers, fault) {
        (Some((_, object, _, _)), "object") => Some(*object),
        (Some((_, _, unknown, _)), "unknown") => Some(*unknown),
        (Some((_, _, _, required)), argument) => required.iter().find(|(n, _)| *n == argument).map(|(_, code)| *code),
        (None, "unknown") if DATE_PARTS.contains(&name) => Some(40535),
        (None, "date") if DATE_PARTS.contains(&name) => Some(40539),
        (None, _) => None,
    };
    match code {
        Some(FAILED_TO_PARSE) | None => QueryError::failed_to_parse(message),
        Some(code) => QueryError::location(code, message),
    }
}

/// Operators that take a date alone, or an object with `date` and `timezone`.
pub(super) const DATE_PARTS: [&str; 13] = [
    "$year",
    "$month",
    "$week",
    "$dayOfMonth",
    "$dayOfWeek",
    "$dayOfYear",
    "$hour",
    "$minute",
    "$second",
    "$millisecond",
    "$isoWeek",
    "$isoWeekYear",
    "$isoDayOfWeek",
];

fn object<'v>(name: &str, operand: JsonbRef<'v>, place: &Place<'_>) -> Result<ObjectRef<'v>, QueryError> {
    operand.as_object().ok_or_else(|| needs_object(name, operand).at(place))
}

/// MongoDB's number where it gives no other.
const FAILED_TO_PARSE: i32 = 9;

/// Checks that nothing is given to an operator that takes nothing.
fn no_arguments(name: &str, code: i32, operand: JsonbRef<'_>, place: &Place<'_>) -> Result<(), QueryError> {
    let none = match (operand.as_object(), operand.as_array()) {
        (Some(object), _) => object.is_empty(),
        (_, Some(array)) => array.is_empty(),
        _ => false,
    };
    if none {
        return Ok(());
    }
    let message = format!("{name} takes no arguments: {{{name}: {{}}}}");
    Err(if code == FAILED_TO_PARSE {
        QueryError::failed_to_parse(message)
    } else {
        QueryError::location(code, message)
    }
    .at(place))
}

/// `$sigmoid` is `1 / (1 + e^-x)`, by the operators that say so.
fn sigmoid(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let mut arguments = p.positional("$sigmoid", operand, 1, 1, place)?;
    let one = |n| Expr::Constant(int(n));
    let mut here = arguments.pop().flatten().unwrap_or(Expr::Missing);
    for (name, before) in [("$multiply", Some(-1)), ("$exp", None), ("$add", Some(1)), ("$divide", Some(1))] {
        let Some(operator) = registry::find(name) else { return Err(unknown(name).at(place)) };
        let constant = matches!(here, Expr::Constant(_) | Expr::Missing);
        let arguments = before.map(one).into_iter().chain([here]).map(Some).collect();
        let call = Expr::Call(Box::new(Call { operator, arguments }));
        here = if constant { p.fold(call) } else { call };
    }
    Ok(here)
}

fn int(n: i32) -> JsonbBuf {
    let mut out = Builder::new();
    out.int32(n);
    JsonbBuf::from_valid(out.take())
}

fn many(
    p: &mut Parser,
    name: &str,
    operand: JsonbRef<'_>,
    least: usize,
    place: &Place<'_>,
) -> Result<Vec<Expr>, QueryError> {
    Ok(p.positional(name, operand, least, usize::MAX, place)?.into_iter().flatten().collect())
}

/// Folds a node whose parts are all constant.
fn fold_all(p: &mut Parser, e: Expr) -> Expr {
    let constant = match &e {
        Expr::And(a) | Expr::Or(a) | Expr::IfNull(a) => a.iter().all(|e| matches!(e, Expr::Constant(_))),
        Expr::Cond(a) => a.iter().all(|e| matches!(e, Expr::Constant(_) | Expr::Missing)),
        _ => false,
    };
    if constant { p.fold(e) } else { e }
}

fn if_null(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let arguments = many(p, "$ifNull", operand, 0, place)?;
    if arguments.len() < 2 {
        let message = format!("$ifNull needs at least two arguments, had: {}", arguments.len());
        return Err(QueryError::location(1_257_300, message).at(place));
    }
    Ok(fold_all(p, Expr::IfNull(arguments)))
}

fn cond(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let arguments = match operand.as_object() {
        Some(object) => p.named("$cond", object, &["if", "then", "else"], &[], place)?,
        None => p.positional("$cond", operand, 3, 3, place)?,
    };
    let mut arguments = arguments.into_iter().flatten();
    match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(a), Some(b), Some(c)) => Ok(fold_all(p, Expr::Cond(Box::new([a, b, c])))),
        _ => Err(QueryError::location(16020, "$cond takes exactly 3 arguments").at(place)),
    }
}

fn switch(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let mut branches = Vec::new();
    let mut default = None;
    for field in object("$switch", operand, place)? {
        let place = place.name(field.name());
        match field.name() {
            "branches" => {
                let Some(list) = field.value.as_array() else {
                    let message = format!("the branches of $switch are an array, not {}", field.value.kind().alias());
                    return Err(QueryError::location(40061, message).at(&place));
                };
                for (i, branch) in list.iter().enumerate() {
                    branches.push(switch_branch(p, branch, &place.index(i))?);
                }
            }
            "default" => default = Some(Box::new(p.expression(field.value, &place)?)),
            other => {
                let message = format!("unrecognized argument to $switch: '{other}'");
                return Err(QueryError::location(40067, message).at(&place));
            }
        }
    }
    if branches.is_empty() {
        return Err(QueryError::location(40068, "$switch requires at least one branch").at(place));
    }
    // A case that never holds is no branch: where no other is left, MongoDB's number says so.
    branches.retain(|(case, _)| !matches!(case, Expr::Constant(v) if !Datum::from(v.view()).is_true()));
    Ok(Expr::Switch { branches, default })
}

fn switch_branch(p: &mut Parser, branch: JsonbRef<'_>, place: &Place<'_>) -> Result<(Expr, Expr), QueryError> {
    let Some(branch) = branch.as_object() else {
        return Err(QueryError::location(40062, "each branch of $switch is an object with case and then").at(place));
    };
    let (mut case, mut then) = (None, None);
    for field in branch {
        let place = place.name(field.name());
        let parsed = match field.name() {
            "case" => &mut case,
            "then" => &mut then,
            other => {
                let message = format!("unrecognized argument to a $switch branch: '{other}'");
                return Err(QueryError::location(40063, message).at(&place));
            }
        };
        *parsed = Some(p.expression(field.value, &place)?);
    }
    match (case, then) {
        (Some(case), Some(then)) => Ok((case, then)),
        (None, _) => Err(QueryError::location(40064, "a $switch branch needs a 'case'").at(place)),
        (_, None) => Err(QueryError::location(40065, "a $switch branch needs a 'then'").at(place)),
    }
}

fn bind(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let object = object("$let", operand, place)?;
    if let Some(other) = object.iter().find(|e| !matches!(e.name(), "vars" | "in")) {
        let message = format!("unrecognized parameter to $let: '{}'", other.name());
        return Err(QueryError::location(16875, message).at(place));
    }
    let Some(variables) = object.get("vars") else {
        return Err(QueryError::location(16876, "missing 'vars' parameter to $let").at(place));
    };
    let Some(body) = object.get("in") else {
        return Err(QueryError::location(16877, "missing 'in' parameter to $let").at(place));
    };
    let here = place.name("vars");
    let Some(variables) = variables.as_object() else {
        return Err(QueryError::location(10065, "the 'vars' of $let are an object").at(&here));
    };
    let mut names = Vec::new();
    let mut values = Vec::new();
    for variable in variables {
        let place = here.name(variable.name());
        check_variable_name(variable.name(), &place)?;
        names.push(variable.name());
        values.push(p.expression(variable.value, &place)?);
    }
    let (slot, body) = p.with_variables(&names, |p| p.expression(body, &place.name("in")))?;
    Ok(Expr::Let { variables: values, slot, body: Box::new(body) })
}

/// The value of an argument that must be there.
fn required<'v>(
    name: &str,
    object: ObjectRef<'v>,
    argument: &str,
    place: &Place<'_>,
) -> Result<JsonbRef<'v>, QueryError> {
    object
        .get(argument)
        .ok_or_else(|| named_error(name, argument, format!("missing '{argument}' parameter to {name}")).at(place))
}

fn only(name: &str, object: ObjectRef<'_>, known: &[&str], place: &Place<'_>) -> Result<(), QueryError> {
    match object.iter().find(|e| !known.contains(&e.name())) {
        None => Ok(()),
        Some(other) => {
            let message =
                format!("unrecognized parameter to {name}: '{}'; it takes {}", other.name(), known.join(", "));
            Err(named_error(name, "unknown", message).at(&place.name(other.name())))
        }
    }
}

/// The name that `as` gives to the element; `this` where it is absent.
fn element_name<'v>(object: ObjectRef<'v>, place: &Place<'_>) -> Result<&'v str, QueryError> {
    let Some(name) = object.get("as") else { return Ok("this") };
    let place = place.name("as");
    let Some(name) = name.as_str() else {
        return Err(QueryError::failed_to_parse("the 'as' of an array operator is a variable name").at(&place));
    };
    check_variable_name(name, &place)?;
    Ok(name)
}

fn map(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let object = object("$map", operand, place)?;
    only("$map", object, &["input", "as", "in"], place)?;
    let input = required("$map", object, "input", place)?;
    let body = required("$map", object, "in", place)?;
    let input = Box::new(p.expression(input, &place.name("input"))?);
    let name = element_name(object, place)?;
    let (slot, body) = p.with_variables(&[name], |p| p.expression(body, &place.name("in")))?;
    Ok(Expr::Map { input, slot, body: Box::new(body) })
}

fn filter(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let object = object("$filter", operand, place)?;
    only("$filter", object, &["input", "as", "cond", "limit"], place)?;
    let input = required("$filter", object, "input", place)?;
    let condition = required("$filter", object, "cond", place)?;
    let input = Box::new(p.expression(input, &place.name("input"))?);
    let limit = match object.get("limit") {
        Some(limit) => Some(Box::new(p.expression(limit, &place.name("limit"))?)),
        None => None,
    };
    let name = element_name(object, place)?;
    let (slot, condition) = p.with_variables(&[name], |p| p.expression(condition, &place.name("cond")))?;
    Ok(Expr::Filter { input, limit, slot, condition: Box::new(condition) })
}

fn reduce(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let object = object("$reduce", operand, place)?;
    only("$reduce", object, &["input", "initialValue", "in"], place)?;
    let input = required("$reduce", object, "input", place)?;
    let initial = required("$reduce", object, "initialValue", place)?;
    let body = required("$reduce", object, "in", place)?;
    let input = Box::new(p.expression(input, &place.name("input"))?);
    let initial = Box::new(p.expression(initial, &place.name("initialValue"))?);
    let (slot, body) = p.with_variables(&["value", "this"], |p| p.expression(body, &place.name("in")))?;
    Ok(Expr::Reduce { input, initial, slot, body: Box::new(body) })
}

fn convert(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let object = object("$convert", operand, place)?;
    let optional = ["format", "onError", "onNull", "byteOrder"];
    let mut arguments = p.named("$convert", object, &["input", "to"], &optional, place)?;
    let mut next = || arguments.remove(0);
    let (Some(input), Some(to)) = (next(), next()) else { return Err(needs_object("$convert", operand).at(place)) };
    let (format, on_error, on_null, byte_order) = (next(), next(), next(), next());
    Ok(Expr::Convert(Box::new(ConvertCall { input, to, format, on_error, on_null, byte_order })))
}

fn date_from_string(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let object = object("$dateFromString", operand, place)?;
    let optional = ["format", "timezone", "onError", "onNull"];
    let mut arguments = p.named("$dateFromString", object, &["dateString"], &optional, place)?;
    let mut next = || arguments.remove(0);
    let Some(text) = next() else { return Err(needs_object("$dateFromString", operand).at(place)) };
    let (format, zone, on_error, on_null) = (next(), next(), next(), next());
    Ok(Expr::DateFromString(Box::new(DateFromStringCall { text, format, zone, on_error, on_null })))
}

fn sort_array(p: &mut Parser, operand: JsonbRef<'_>, place: &Place<'_>) -> Parsed {
    let object = object("$sortArray", operand, place)?;
    only("$sortArray", object, &["input", "sortBy"], place)?;
    let input = required("$sortArray", object, "input", place)?;
    let by = required("$sortArray", object, "sortBy", place)?;
    array::check_sort(by).map_err(|e| e.at(&place.name("sortBy")))?;
    let input = p.expression(input, &place.name("input"))?;
    let Some(operator) = registry::find("$sortArray") else { return Err(unknown("$sortArray").at(place)) };
    let constant = matches!(input, Expr::Constant(_));
    let arguments = vec![Some(input), Some(Expr::Constant(by.to_buf()))];
    let call = Expr::Call(Box::new(Call { operator, arguments }));
    Ok(if constant { p.fold(call) } else { call })
}
