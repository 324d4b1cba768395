//! The branches of an `$or`: a list, and where there are many of them, an index over what each needs of a document.
//!
//! Most branches cannot hold where a document lacks some field, and many ask for one value of it. So a document's fields
//! are looked up among the branches, not the branches in the document: 100,000 branches cost as much as the few that
//! may hold. Takes nodes, gives those that may hold on a document. Next: `evaluate.rs`.

use super::ast::{FieldTest, Node, Test};
use super::comparison::CompareOp;
use super::evaluate::passes_alone;
use hashbrown::HashMap;
use quarrydb_jsonb::{JsonbRef, Kind, ObjectRef, sort_key};
use std::ops::{ControlFlow, Deref};

/// Branches from here on are indexed.
const INDEXED_MIN: usize = 16;
/// Fields of a document for each branch: with more of them the branches are tried one by one.
const FIELDS_PER_BRANCH_MAX: usize = 4;

/// Conditions of which one must hold: a slice of [`Node`].
#[derive(Clone, Debug)]
pub struct Branches {
    nodes: Vec<Node>,
    index: Option<Box<Index>>,
}

#[derive(Clone, Debug, Default)]
struct Index {
    by_name: HashMap<Vec<u8>, Group>,
    /// Those that may hold on any document.
    always: Vec<u32>,
}

/// Branches that only hold where the document has one field.
#[derive(Clone, Debug, Default)]
struct Group {
    /// By the `sort_key` of the value that they ask for.
    by_value: HashMap<Vec<u8>, Vec<u32>>,
    /// Those that ask for something else.
    others: Vec<u32>,
}

impl Deref for Branches {
    type Target = [Node];
    fn deref(&self) -> &[Node] {
        &self.nodes
    }
}

impl From<Vec<Node>> for Branches {
    fn from(nodes: Vec<Node>) -> Self {
        let index = (nodes.len() >= INDEXED_MIN).then(|| Box::new(Index::of(&nodes)));
        Self { nodes, index }
    }
}

impl Branches {
    /// Calls `try_branch` with each branch that may hold on a document, in no order, until it breaks; says whether it did.
    pub(super) fn any(&self, document: JsonbRef<'_>, mut try_branch: impl FnMut(&Node) -> bool) -> bool {
        match (&self.index, document.as_object()) {
            (Some(index), Some(object)) if object.len() <= FIELDS_PER_BRANCH_MAX * self.nodes.len() => {
                let mut try_numbered = |i: u32| match self.nodes.get(i as usize) {
                    Some(node) if try_branch(node) => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                };
                index.each(object, &mut try_numbered).is_break()
            }
            _ => self.nodes.iter().any(try_branch),
        }
    }
}

impl Index {
    fn of(nodes: &[Node]) -> Self {
        let mut index = Self::default();
        for (i, node) in (0_u32..).zip(nodes) {
            match need_of(node) {
                None => index.always.push(i),
                Some(need) => {
                    let group = index.by_name.entry_ref(need.name.as_bytes()).or_default();
                    match need.value {
                        None => group.others.push(i),
                        Some(value) => {
                            let mut key = Vec::new();
                            sort_key(value, &mut key);
                            group.by_value.entry_ref(&*key).or_default().push(i);
                        }
                    }
                }
            }
        }
        index
    }

    fn each(&self, object: ObjectRef<'_>, visit: &mut impl FnMut(u32) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut key = Vec::new();
        for entry in object {
            let Some(group) = self.by_name.get(entry.name_bytes()) else { continue };
            if !group.by_value.is_empty() {
                let elements = entry.value.as_array().into_iter().flatten();
                for value in elements.chain([entry.value]) {
                    key.clear();
                    sort_key(value, &mut key);
                    group.by_value.get(&*key).into_iter().flatten().try_for_each(|&i| visit(i))?;
                }
            }
            group.others.iter().try_for_each(|&i| visit(i))?;
        }
        self.always.iter().try_for_each(|&i| visit(i))
    }
}

/// What a document must have for a branch to hold.
#[derive(Clone, Copy)]
struct Need<'n> {
    /// A field at its top.
    name: &'n str,
    /// That field's value, or an element of it.
    value: Option<JsonbRef<'n>>,
}

fn need_of(node: &Node) -> Option<Need<'_>> {
    match node {
        Node::Field(FieldTest { path, test }) if !passes_alone(test, None) => {
            let name = path.parts().first()?.name();
            let value = match test {
                Test::Compare(c) if c.op() == CompareOp::Eq && path.parts().len() == 1 => Some(c.operand()),
                _ => None,
            };
            // A regular expression is equal to itself and matches more.
            Some(Need { name, value: value.filter(|v| v.kind() != Kind::Regex) })
        }
        // What an expression says must be heard, its errors too.
        Node::All(nodes) if !nodes.iter().any(has_expression) => {
            let mut needs = nodes.iter().filter_map(need_of);
            let first = needs.next()?;
            Some(needs.find(|need| first.value.is_none() && need.value.is_some()).unwrap_or(first))
        }
        _ => None,
    }
}

fn has_expression(node: &Node) -> bool {
    match node {
        Node::Expression(_) => true,
        Node::All(nodes) => nodes.iter().any(has_expression),
        Node::Any(nodes) => nodes.iter().any(has_expression),
        Node::Not(node) => has_expression(node),
        _ => false,
    }
}
