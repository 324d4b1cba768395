//! From the object of a body to the tree: names, and the operators that stand where a name does.
//!
//! `parse_field.rs` reads what stands beside a name. Each level passes its place down, so that an error says
//! `filter.$or[2].age.$in`. Depth is limited by [`NESTING_MAX`].

use super::ast::{FieldTest, Node, Test};
use super::comparison::CompareOp;
use super::in_set::InSet;
use super::parse_field;
use crate::computed::Computed;
use crate::limits::NESTING_MAX;
use crate::number::Number;
use crate::path_walk::FieldPath;
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{Builder, JsonbRef, Kind, ObjectRef};

/// What the parser of one filter carries along.
#[derive(Debug)]
pub(crate) struct Parser<'c> {
    context: &'c ParseContext<'c>,
    depth: usize,
    /// Inside `$elemMatch`, where the whole document is out of reach.
    pub(crate) in_element: bool,
}

/// Parses a filter.
pub(crate) fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Node, QueryError> {
    let mut parser = Parser::new(context);
    let place = context.place;
    let object = object(value, &place, "a filter is an object")?;
    parser.object(object, &place)
}

/// Parses what stands beside a field, which is called `name`: a value or an object of operators.
pub(crate) fn parse_beside(name: &str, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Node, QueryError> {
    let path = FieldPath::parse(name, &context.place)?;
    let mut nodes = Vec::new();
    Parser::new(context).field(&path, value, &context.place, &mut nodes)?;
    Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) })
}

/// Parses `{$elemMatch: ...}` of a projection.
pub(crate) fn parse_elem_match(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Test, QueryError> {
    let place = context.place;
    Parser::new(context).elem_match(value.get("$elemMatch").unwrap_or(value), &place.name("$elemMatch"))
}

pub(crate) fn object<'v>(value: JsonbRef<'v>, place: &Place<'_>, wanted: &str) -> Result<ObjectRef<'v>, QueryError> {
    value.as_object().ok_or_else(|| {
        QueryError::type_mismatch(format!("{wanted}, and here stands a value of type {}", value.kind().alias()))
            .at(place)
    })
}

impl<'c> Parser<'c> {
    fn new(context: &'c ParseContext<'c>) -> Self {
        Self { context, depth: 0, in_element: false }
    }

    /// All fields of a filter's object.
    pub(crate) fn object(&mut self, object: ObjectRef<'_>, place: &Place<'_>) -> Result<Node, QueryError> {
        let mut nodes = Vec::with_capacity(object.len());
        for entry in object {
            let name = entry.name();
            let place = place.name(name);
            if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
                self.operator(name, entry.value, &place, &mut nodes)?;
            } else {
                let path = FieldPath::parse(name, &place)?;
                self.field(&path, entry.value, &place, &mut nodes)?;
            }
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) })
    }

    /// One level deeper.
    pub(crate) fn deeper<T>(
        &mut self,
        place: &Place<'_>,
        parse: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        if self.depth >= NESTING_MAX {
            let message = format!("a filter nested deeper than {NESTING_MAX} levels: that is the most it may be");
            return Err(QueryError::bad_value(message).at(place));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// An operator where a name could stand.
    fn operator(
        &mut self,
        name: &str,
        value: JsonbRef<'_>,
        place: &Place<'_>,
        nodes: &mut Vec<Node>,
    ) -> Result<(), QueryError> {
        match name {
            "$and" => nodes.append(&mut self.branches(name, value, place)?),
            "$or" => nodes.push(any_of(self.branches(name, value, place)?)),
            "$nor" => nodes.push(Node::Not(Box::new(any_of(self.branches(name, value, place)?)))),
            "$comment" => {}
            "$expr" if self.in_element => {
                let message = "$expr can only be applied to the top-level document";
                return Err(QueryError::bad_value(message).at(place));
            }
            "$expr" => nodes.push(Node::Expression(Computed::parse(value, &self.context.at(*place))?)),
            "$sampleRate" => nodes.push(self.sample_rate(value, place)?),
            "$jsonSchema" => nodes.push(Node::Schema(Box::new(self.schema(value, place)?))),
            "$alwaysTrue" | "$alwaysFalse" => {
                if crate::number::whole_i64(value) != Some(1) {
                    return Err(QueryError::failed_to_parse(format!("{name} must be an integer value of 1")).at(place));
                }
                nodes.push(Node::Constant(name == "$alwaysTrue"));
            }
            _ => return Err(unknown_at_top(name).at(place)),
        }
        Ok(())
    }

    /// `$sampleRate`: each document with that probability.
    fn sample_rate(&self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Node, QueryError> {
        let refuse = |message: &str| Err(QueryError::bad_value(message).at(place));
        if self.in_element {
            return refuse("$sampleRate can only be applied to the top-level document");
        }
        if !value.kind().is_number() {
            return refuse("the argument of $sampleRate must be a number");
        }
        let rate = Number::of(value).map_or(f64::NAN, Number::to_f64);
        if !(0.0..=1.0).contains(&rate) {
            return refuse("the argument of $sampleRate must be from 0 to 1");
        }
        if rate == 0.0 || rate == 1.0 {
            return Ok(Node::Constant(rate == 1.0));
        }
        Computed::below_random(rate, &self.context.at(*place)).map(Node::Expression)
    }

    fn branches(&mut self, name: &str, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Vec<Node>, QueryError> {
        let array = value.as_array().filter(|a| !a.is_empty()).ok_or_else(|| {
            QueryError::bad_value(format!("{name} must be a nonempty array, not {}", value.kind().alias())).at(place)
        })?;
        self.deeper(place, |parser| {
            let mut branches = Vec::with_capacity(array.len());
            for (i, branch) in array.iter().enumerate() {
                let place = place.index(i);
                let Some(object) = branch.as_object() else {
                    let message =
                        format!("$or/$and/$nor entries need to be full objects, not {}", branch.kind().alias());
                    return Err(QueryError::bad_value(message).at(&place));
                };
                branches.push(parser.object(object, &place)?);
            }
            Ok(branches)
        })
    }

    /// What stands beside a name: a value to be equal to, or an object of operators.
    fn field(
        &mut self,
        path: &FieldPath,
        value: JsonbRef<'_>,
        place: &Place<'_>,
        nodes: &mut Vec<Node>,
    ) -> Result<(), QueryError> {
        let make = |test: Test| Node::Field(FieldTest { path: path.clone(), test });
        match value.as_object().filter(|o| parse_field::is_operators(*o)) {
            Some(operators) => self.operators(operators, place, &make, nodes),
            None => {
                nodes.push(make(self.equality(value, place)?));
                Ok(())
            }
        }
    }
}

/// Branches from here on, where all are equalities on one path, become one `$in`: it is found by hash.
const BRANCHES_HASHED_MIN: usize = 16;

/// One of several conditions; one alone stands for itself.
fn any_of(mut branches: Vec<Node>) -> Node {
    match branches.len() {
        1 => branches.swap_remove(0),
        BRANCHES_HASHED_MIN.. => one_of(&branches).unwrap_or_else(|| Node::Any(branches.into())),
        _ => Node::Any(branches.into()),
    }
}

/// Equalities on one path as an `$in`; none where they are anything else.
fn one_of(branches: &[Node]) -> Option<Node> {
    let Some(Node::Field(FieldTest { path, .. })) = branches.first() else { return None };
    let mut list = Builder::new();
    list.begin_array();
    for branch in branches {
        match branch {
            Node::Field(FieldTest { path: same, test: Test::Compare(c) })
                if same == path && c.op() == CompareOp::Eq && c.operand().kind() != Kind::Regex =>
            {
                list.copy(c.operand());
            }
            _ => return None,
        }
    }
    list.end_array().ok()?;
    let set = InSet::new(JsonbRef::from_valid(list.bytes()), Vec::new());
    Some(Node::Field(FieldTest { path: path.clone(), test: Test::In(Box::new(set)) }))
}

/// Why an operator cannot stand at the top of a filter.
fn unknown_at_top(name: &str) -> QueryError {
    let message = match name {
        "$where" | "$function" | "$accumulator" => {
            format!("{name} is not supported: this server runs no code from queries; say it with operators or $expr")
        }
        "$text" | "$search" | "$vectorSearch" => format!("{name} is not supported: there is no text index"),
        "$near" | "$nearSphere" | "$geoWithin" | "$geoIntersects" | "$geoNear" => {
            format!("{name} is not supported: there is no geospatial index")
        }
        _ if parse_field::is_field_operator(name) => {
            format!(
                "{name} stands beside a field name, as in {{field: {{{name}: ...}}}}, and not at the top of a filter"
            )
        }
        _ => format!(
            "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, consider \
             using $getField or $setField"
        ),
    };
    QueryError::unknown_operator(message)
}
