//! What a filter implies of every document that matches: its `_id`, its equalities.
//!
//! Takes the tree, gives borrowed values. Looks only where all must hold: at the top, inside `$and`, and inside an `$or`
//! of one branch.

use super::ast::{FieldTest, Node, Test};
use super::comparison::{CompareOp, Comparison};
use crate::QueryError;
use crate::path_walk::FieldPath;
use quarrydb_jsonb::JsonbRef;

/// The first `_id` asked for by equality.
pub(crate) fn id_point(node: &Node) -> Option<JsonbRef<'_>> {
    match node {
        Node::All(nodes) => nodes.iter().find_map(id_point),
        Node::Any(nodes) if nodes.len() == 1 => id_point(&nodes[0]),
        Node::Field(field) => equality(field).filter(|(path, _)| path.as_str() == "_id").map(|(_, value)| value),
        _ => None,
    }
}

fn equality(field: &FieldTest) -> Option<(&FieldPath, JsonbRef<'_>)> {
    match &field.test {
        Test::Compare(c) if c.op() == CompareOp::Eq => Some((&field.path, Comparison::operand(c))),
        _ => None,
    }
}

/// All equalities, each path once.
pub(crate) fn equality_fields(node: &Node) -> Result<Vec<(&FieldPath, JsonbRef<'_>)>, QueryError> {
    let mut fields = Vec::new();
    collect(node, &mut fields);
    let mut paths: Vec<&str> = fields.iter().map(|(path, _): &(&FieldPath, _)| path.as_str()).collect();
    // A path and one inside it need not be neighbours in plain order ("a", "a-b", "a.b"): dots sort first here.
    paths.sort_unstable_by(|a, b| a.split('.').cmp(b.split('.')));
    for pair in paths.windows(2) {
        let (outer, inner) = (pair[0], pair[1]);
        if inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
            let message = if outer == inner {
                format!("cannot infer query fields to set, path '{inner}' is matched twice")
            } else {
                format!("cannot infer query fields to set, both paths '{inner}' and '{outer}' are matched")
            };
            return Err(QueryError::new("NotSingleValueField", 54, message));
        }
    }
    Ok(fields)
}

fn collect<'a>(node: &'a Node, fields: &mut Vec<(&'a FieldPath, JsonbRef<'a>)>) {
    match node {
        Node::All(nodes) => nodes.iter().for_each(|n| collect(n, fields)),
        Node::Any(nodes) if nodes.len() == 1 => collect(&nodes[0], fields),
        Node::Field(field) => fields.extend(equality(field)),
        _ => {}
    }
}
