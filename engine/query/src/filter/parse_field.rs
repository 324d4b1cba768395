//! What stands beside a field name in a filter: a value, or an object of operators.
//!
//! Takes the object and a way to make a node of a test: beside a field the test is for the path's candidates, inside an
//! `$elemMatch` of operators it is for the element itself.

use super::ast::{Node, Test};
use super::bits::{Bits, BitsOp};
use super::comparison::{CompareOp, Comparison};
use super::in_set::InSet;
use super::modulo::Modulo;
use super::parse::Parser;
use super::pattern::Pattern;
use super::type_set::TypeSet;
use crate::error::shown;
use crate::number::whole_i64;
use crate::pattern_count::PatternCount;
use crate::{Place, QueryError};
use quarrydb_jsonb::{JsonbRef, Kind, ObjectRef, Value, equal};

/// Makes a node of a test.
type Make<'m> = &'m dyn Fn(Test) -> Node;

/// Whether an object is one of operators: its first name begins with `$`. A reference (`$ref` and `$id`) is a value.
pub(crate) fn is_operators(object: ObjectRef<'_>) -> bool {
    object.iter().next().is_some_and(|first| first.name_bytes().first() == Some(&b'$')) && !is_reference(object)
}

fn is_reference(object: ObjectRef<'_>) -> bool {
    object.get("$ref").is_some() && object.get("$id").is_some()
}

/// Whether an operator can stand beside a field name.
pub(crate) fn is_field_operator(name: &str) -> bool {
    const NAMES: [&str; 21] = [
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
        "$options",
        "$all",
        "$elemMatch",
        "$size",
        "$bitsAllSet",
        "$bitsAllClear",
        "$bitsAnySet",
        "$bitsAnyClear",
    ];
    NAMES.contains(&name)
}

impl Parser<'_> {
    /// Equality with a value: a regular expression matches.
    pub(crate) fn equality(&mut self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Test, QueryError> {
        Ok(match value.value() {
            Value::Regex { pattern, options } => Test::Pattern(Box::new(self.pattern(pattern, options, place)?)),
            _ => Test::Compare(Comparison::new(CompareOp::Eq, value)),
        })
    }

    pub(crate) fn pattern(&mut self, pattern: &str, options: &str, place: &Place<'_>) -> Result<Pattern, QueryError> {
        PatternCount::next().and_then(|nth| Pattern::compile(pattern, options, nth)).map_err(|e| e.at(place))
    }

    /// An object of operators, each a condition of its own.
    pub(crate) fn operators(
        &mut self,
        operators: ObjectRef<'_>,
        place: &Place<'_>,
        make: Make<'_>,
        nodes: &mut Vec<Node>,
    ) -> Result<(), QueryError> {
        for entry in operators {
            let name = entry.name();
            let place = place.name(name);
            let node = match name {
                "$options" if operators.get("$regex").is_some() => continue,
                "$options" => return Err(QueryError::bad_value("$options needs a $regex").at(&place)),
                "$regex" => {
                    let options = operators.get("$options");
                    let options_first =
                        operators.iter().take_while(|e| e.name() != name).any(|e| e.name() == "$options");
                    make(self.regex(entry.value, options, options_first, &place)?)
                }
                "$comment" => continue,
                _ => self.operator_beside_field(name, entry.value, &place, make)?,
            };
            nodes.push(node);
        }
        Ok(())
    }

    /// One operator. What recurses stands here alone, so that its frame is small.
    fn operator_beside_field(
        &mut self,
        name: &str,
        value: JsonbRef<'_>,
        place: &Place<'_>,
        make: Make<'_>,
    ) -> Result<Node, QueryError> {
        match name {
            "$not" => self.not(value, place, make),
            "$all" => self.all(value, place, make),
            "$elemMatch" => self.elem_match(value, place).map(make),
            _ => self.simple_operator(name, value, place, make),
        }
    }

    #[inline(never)]
    fn simple_operator(
        &mut self,
        name: &str,
        value: JsonbRef<'_>,
        place: &Place<'_>,
        make: Make<'_>,
    ) -> Result<Node, QueryError> {
        let test = match name {
            "$eq" => comparison(CompareOp::Eq, value),
            "$ne" => comparison(CompareOp::Eq, no_regex(name, value, place)?),
            "$gt" => comparison(CompareOp::Gt, no_regex(name, value, place)?),
            "$gte" => comparison(CompareOp::Gte, no_regex(name, value, place)?),
            "$lt" => comparison(CompareOp::Lt, no_regex(name, value, place)?),
            "$lte" => comparison(CompareOp::Lte, no_regex(name, value, place)?),
            "$in" | "$nin" => self.in_set(name, value, place)?,
            "$exists" => Test::Exists,
            "$type" => Test::Type(TypeSet::parse(value, place)?),
            "$size" => Test::Size(size(value, place)?),
            "$mod" => Test::Modulo(Modulo::parse(value, place)?),
            "$bitsAllSet" => bits(BitsOp::AllSet, name, value, place)?,
            "$bitsAllClear" => bits(BitsOp::AllClear, name, value, place)?,
            "$bitsAnySet" => bits(BitsOp::AnySet, name, value, place)?,
            "$bitsAnyClear" => bits(BitsOp::AnyClear, name, value, place)?,
            _ => return Err(unknown_beside_field(name).at(place)),
        };
        let negated = matches!(name, "$ne" | "$nin") || (name == "$exists" && !is_truthy(value));
        Ok(if negated { Node::Not(Box::new(make(test))) } else { make(test) })
    }

    fn regex(
        &mut self,
        value: JsonbRef<'_>,
        options: Option<JsonbRef<'_>>,
        options_first: bool,
        place: &Place<'_>,
    ) -> Result<Test, QueryError> {
        let options = match options {
            None => None,
            Some(o) => match o.as_str() {
                Some(text) => Some(text),
                None => return Err(QueryError::bad_value("$options has to be a string").at(place)),
            },
        };
        let (text, options) = match value.value() {
            Value::String(text) => (text, options.unwrap_or("")),
            Value::Regex { options: own, .. } if options.is_some() && !own.is_empty() => {
                let code = if options_first { 51074 } else { 51075 };
                return Err(QueryError::location(code, "options set in both $regex and $options").at(place));
            }
            Value::Regex { pattern, options: own } => (pattern, options.unwrap_or(own)),
            _ => return Err(QueryError::bad_value("$regex has to be a string").at(place)),
        };
        Ok(Test::Pattern(Box::new(self.pattern(text, options, place)?)))
    }

    fn in_set(&mut self, name: &str, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Test, QueryError> {
        let Some(array) = value.as_array() else {
            let message = format!("{name} needs an array, not {}", value.kind().alias());
            return Err(QueryError::bad_value(message).at(place));
        };
        let mut patterns = Vec::new();
        for (i, element) in array.iter().enumerate() {
            match element.value() {
                Value::Object(object) if is_operators(object) => {
                    return Err(QueryError::bad_value(format!("cannot nest $ under {name}")).at(&place.index(i)));
                }
                Value::Regex { pattern, options } => patterns.push(self.pattern(pattern, options, &place.index(i))?),
                _ => {}
            }
        }
        // One value, however often, is equality, also for what an upsert begins with; one pattern is itself.
        if let Some(first) = array.get(0) {
            if patterns.is_empty() && array.iter().all(|other| equal(first, other)) {
                return Ok(comparison(CompareOp::Eq, first));
            }
            if array.len() == 1
                && let Some(only) = patterns.pop()
            {
                return Ok(Test::Pattern(Box::new(only)));
            }
        }
        Ok(Test::In(Box::new(InSet::new(value, patterns))))
    }

    /// `$not`: a regular expression, or an object of operators that do not all hold.
    fn not(&mut self, value: JsonbRef<'_>, place: &Place<'_>, make: Make<'_>) -> Result<Node, QueryError> {
        let inner = match value.value() {
            Value::Regex { pattern, options } => make(Test::Pattern(Box::new(self.pattern(pattern, options, place)?))),
            Value::Object(object) if object.is_empty() => {
                return Err(QueryError::bad_value("$not cannot be empty").at(place));
            }
            Value::Object(object) => self.deeper(place, |parser| {
                let mut nodes = Vec::new();
                parser.operators(object, place, make, &mut nodes)?;
                Ok(all_of(nodes))
            })?,
            _ => return Err(QueryError::bad_value("$not needs a regex or a document").at(place)),
        };
        Ok(Node::Not(Box::new(inner)))
    }

    /// `$all`: values that are all there, or conditions that each hold for an element. Of nothing: never.
    fn all(&mut self, value: JsonbRef<'_>, place: &Place<'_>, make: Make<'_>) -> Result<Node, QueryError> {
        let Some(array) = value.as_array() else {
            let message = format!("$all needs an array, not {}", value.kind().alias());
            return Err(QueryError::bad_value(message).at(place));
        };
        let conditions = array.iter().next().and_then(is_condition).is_some();
        let mut nodes = Vec::with_capacity(array.len());
        for (i, element) in array.iter().enumerate() {
            let place = place.index(i);
            let condition = is_condition(element).map(|o| o.iter().next().map_or("", |first| first.name()));
            nodes.push(match condition {
                Some("$elemMatch") if conditions => {
                    let inner = element.get("$elemMatch").unwrap_or(element);
                    make(self.elem_match(inner, &place.name("$elemMatch"))?)
                }
                None if !conditions => make(self.equality(element, &place)?),
                Some(name) if !conditions || name != "$elemMatch" => {
                    return Err(QueryError::bad_value(format!("no $ expressions in $all: {name}")).at(&place));
                }
                _ => return Err(QueryError::bad_value("$all/$elemMatch has to be consistent").at(&place)),
            });
        }
        Ok(if nodes.is_empty() { Node::Constant(false) } else { all_of(nodes) })
    }

    /// `$elemMatch`: of operators on an element's value, or of conditions on an element's fields.
    pub(super) fn elem_match(&mut self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Test, QueryError> {
        let Some(object) = value.as_object() else {
            let message = format!("$elemMatch needs an Object, not {}", value.kind().alias());
            return Err(QueryError::bad_value(message).at(place));
        };
        let first = object.iter().next().map_or("", |first| first.name());
        let of_fields = !is_operators(object) || !(is_field_operator(first) || is_unsupported_beside_field(first));
        let outer = std::mem::replace(&mut self.in_element, true);
        let test = self.deeper(place, |parser| {
            if of_fields {
                return parser.object(object, place).map(|node| Test::ElemMatchObject(Box::new(node)));
            }
            let mut nodes = Vec::new();
            parser.operators(object, place, &Node::Value, &mut nodes)?;
            Ok(Test::ElemMatchValue(Box::new(all_of(nodes))))
        });
        self.in_element = outer;
        test
    }
}

/// A value as an object of operators, where it is one.
fn is_condition(value: JsonbRef<'_>) -> Option<ObjectRef<'_>> {
    value.as_object().filter(|o| is_operators(*o))
}

fn all_of(mut nodes: Vec<Node>) -> Node {
    if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) }
}

fn comparison(op: CompareOp, operand: JsonbRef<'_>) -> Test {
    Test::Compare(Comparison::new(op, operand))
}

fn no_regex<'v>(name: &str, value: JsonbRef<'v>, place: &Place<'_>) -> Result<JsonbRef<'v>, QueryError> {
    if value.kind() == Kind::Regex {
        return Err(QueryError::bad_value(format!("Can't have regex as arg to {name}")).at(place));
    }
    Ok(value)
}

/// What counts as true: all but false, zero and null.
pub(crate) fn is_truthy(value: JsonbRef<'_>) -> bool {
    match value.value() {
        Value::Bool(b) => b,
        Value::Null => false,
        _ => !value.kind().is_number() || whole_i64(value) != Some(0),
    }
}

fn size(value: JsonbRef<'_>, place: &Place<'_>) -> Result<u64, QueryError> {
    let wanted = match whole_i64(value) {
        Some(n) if (0..=i64::from(i32::MAX)).contains(&n) => return Ok(n.unsigned_abs()),
        Some(n) if n >= 0 => "an integer of 32 bits",
        Some(_) => "a non-negative number",
        None if value.kind().is_number() => "an integer",
        None => "a number",
    };
    let message = format!("Failed to parse $size. Expected {wanted} in: $size: {}", shown(value));
    Err(QueryError::bad_value(message).at(place))
}

fn bits(op: BitsOp, name: &str, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Test, QueryError> {
    Ok(Test::Bits(Box::new(Bits::parse(op, name, value, place)?)))
}

/// Operators of MongoDB that stand beside a field name and are not here.
fn is_unsupported_beside_field(name: &str) -> bool {
    matches!(
        name,
        "$near" | "$nearSphere" | "$geoWithin" | "$within" | "$geoIntersects" | "$maxDistance" | "$minDistance"
    )
}

fn unknown_beside_field(name: &str) -> QueryError {
    let message = match name {
        _ if is_unsupported_beside_field(name) => format!("{name} is not supported: there is no geospatial index"),
        "$and" | "$or" | "$nor" | "$expr" | "$jsonSchema" | "$text" | "$where" => {
            format!("unknown operator: {name} stands at the top of a filter, not beside a field name")
        }
        _ if name.starts_with('$') => format!("unknown operator: {name}"),
        _ => format!("unknown operator: {name}, among operators: an object is either all operators or all fields"),
    };
    QueryError::unknown_operator(message)
}
