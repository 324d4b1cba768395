//! An update as a tree: one level of nodes for each part of the paths it names, operators at the leaves.
//!
//! Two operators on one path, or on a path and its parent, cannot both be in the tree: `draft.rs` refuses them. The
//! tree is immutable and shared between threads. Next: `parse.rs` builds it, `apply.rs` gives it its meaning.

use super::arrays::{PullCondition, Push};
use crate::number::Number;
use crate::path_walk::{FieldPath, array_index};
use crate::{Filter, QueryError};
use quarrydb_jsonb::JsonbBuf;
use std::cmp::Ordering;
use std::sync::Arc;

/// What happens at one path and below.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(Arc<Leaf>),
    Object(ObjectNode),
    Elements(ElementsNode),
}

/// Named fields (or array positions) of what stands here.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectNode {
    /// Positions first, in their order, then names in theirs: the order in which missing fields are made.
    pub(super) children: Vec<Child>,
    /// What happens to the field or position that `$` stands for.
    pub(super) positional: Option<Arc<Node>>,
}

#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) name: Box<str>,
    pub(super) index: Option<usize>,
    pub(super) node: Arc<Node>,
}

/// Elements of the array that stands here, by array filter; the empty identifier means all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct ElementsNode {
    pub(super) by_identifier: Vec<(Box<str>, Arc<Node>)>,
}

/// One operator at one path.
#[derive(Debug)]
pub(super) struct Leaf {
    /// The path as it was written, for messages.
    pub(super) path: Box<str>,
    /// Where it stands in the body.
    pub(super) place: Box<str>,
    pub(super) op: Op,
    /// The containers that the operand may put inside each other.
    pub(super) nesting: usize,
}

/// A `$rename`: looked at as a whole before anything is written.
#[derive(Debug)]
pub(super) struct Rename {
    pub(super) from: FieldPath,
    pub(super) to: FieldPath,
    /// Where it stands in the body.
    pub(super) place: Box<str>,
}

#[derive(Debug)]
pub(super) enum Op {
    Set(JsonbBuf),
    SetOnInsert(JsonbBuf),
    Unset,
    Inc(Number),
    Mul(Number),
    Min(JsonbBuf),
    Max(JsonbBuf),
    /// At the new name: the value that stands at the old one.
    RenameTo(FieldPath),
    /// At the old name.
    RenameFrom,
    CurrentDate {
        timestamp: bool,
    },
    Bit(Vec<(BitOp, Number)>),
    Push(Push),
    AddToSet(Vec<JsonbBuf>),
    Pull(PullCondition),
    PullAll(Vec<JsonbBuf>),
    Pop {
        first: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BitOp {
    And,
    Or,
    Xor,
}

/// A condition on array elements that a path names as `$[identifier]`.
#[derive(Debug)]
pub(super) struct ArrayFilter {
    pub(super) identifier: Box<str>,
    /// Asked of an object whose one field, the identifier, is the element.
    pub(super) filter: Filter,
}

/// Linear search is faster than binary up to here.
const LINEAR_SEARCH_MAX: usize = 8;

impl ObjectNode {
    /// What happens to the field `name`.
    #[inline]
    pub(super) fn child(&self, name: &[u8]) -> Option<&Arc<Node>> {
        if self.children.len() <= LINEAR_SEARCH_MAX {
            return self.children.iter().find(|c| c.name.as_bytes() == name).map(|c| &c.node);
        }
        let name = std::str::from_utf8(name).ok()?;
        let key = (array_index(name), name);
        let found = self.children.binary_search_by(|c| creation_order((c.index, &c.name), key)).ok()?;
        self.children.get(found).map(|c| &c.node)
    }

    /// This with `$` put in the place of `position`.
    pub(super) fn resolved(&self, position: usize) -> Result<Self, QueryError> {
        let Some(positional) = &self.positional else { return Ok(self.clone()) };
        let name = position.to_string();
        let other = Self {
            children: vec![Child { name: name.into(), index: Some(position), node: Arc::clone(positional) }],
            positional: None,
        };
        merge_objects(&Self { children: self.children.clone(), positional: None }, &other)
    }
}

/// Positions by number before names by their bytes.
pub(super) fn creation_order(a: (Option<usize>, &str), b: (Option<usize>, &str)) -> Ordering {
    match (a.0, b.0) {
        (Some(x), Some(y)) => x.cmp(&y),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.1.cmp(b.1),
    }
}

/// Both of two nodes that turned out to stand at one place: `a.$` and `a.0`, or two array filters that hold for one
/// element.
pub(super) fn merge(a: &Node, b: &Node) -> Result<Node, QueryError> {
    match (a, b) {
        (Node::Object(a), Node::Object(b)) => merge_objects(a, b).map(Node::Object),
        (Node::Elements(a), Node::Elements(b)) => {
            let mut merged = a.clone();
            for (identifier, node) in &b.by_identifier {
                match merged.by_identifier.iter_mut().find(|(i, _)| i == identifier) {
                    Some((_, old)) => *old = Arc::new(merge(old, node)?),
                    None => merged.by_identifier.push((identifier.clone(), Arc::clone(node))),
                }
            }
            Ok(Node::Elements(merged))
        }
        _ => Err(conflict(path_of(b), path_of(a)).at_written(place_of(b))),
    }
}

fn merge_objects(a: &ObjectNode, b: &ObjectNode) -> Result<ObjectNode, QueryError> {
    let mut merged = a.clone();
    for child in &b.children {
        let key = (child.index, &*child.name);
        match merged.children.binary_search_by(|c| creation_order((c.index, &c.name), key)) {
            Ok(at) => merged.children[at].node = Arc::new(merge(&merged.children[at].node, &child.node)?),
            Err(at) => merged.children.insert(at, child.clone()),
        }
    }
    merged.positional = match (merged.positional, &b.positional) {
        (Some(a), Some(b)) => Some(Arc::new(merge(&a, b)?)),
        (a, b) => a.or_else(|| b.clone()),
    };
    Ok(merged)
}

/// A path of some operator in a node, for messages.
fn path_of(node: &Node) -> &str {
    first_leaf(node).map_or("", |leaf| &leaf.path)
}

/// Where some operator of a node stands in the body.
pub(super) fn place_of(node: &Node) -> &str {
    first_leaf(node).map_or("", |leaf| &leaf.place)
}

/// Some operator of a node.
pub(super) fn first_leaf(node: &Node) -> Option<&Leaf> {
    let mut node = node;
    loop {
        let next = match node {
            Node::Leaf(leaf) => return Some(leaf),
            Node::Object(o) => o.children.first().map(|c| &c.node).or(o.positional.as_ref()),
            Node::Elements(e) => e.by_identifier.first().map(|(_, node)| node),
        };
        node = next?;
    }
}

/// `ConflictingUpdateOperators`, 40.
pub(super) fn conflict(path: &str, at: &str) -> QueryError {
    let message =
        format!("updating the path '{path}' would create a conflict at '{at}': name each path in one operator");
    QueryError::new("ConflictingUpdateOperators", 40, message)
}
