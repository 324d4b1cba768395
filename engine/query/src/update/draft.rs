//! The tree while it grows: each path is entered once, and one that meets another is refused.
//!
//! Takes paths with their operators; gives the tree of `ast.rs`. Entering a path costs its parts, however many there are.

use super::ast::{Child, ElementsNode, Leaf, Node, ObjectNode, conflict, creation_order};
use super::path::{Step, UpdatePath};
use crate::QueryError;
use crate::path_walk::array_index;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) enum Draft {
    Leaf(Arc<Leaf>),
    Object { named: HashMap<Box<str>, Self>, positional: Option<Box<Self>> },
    Elements(Vec<(Box<str>, Self)>),
}

impl Draft {
    pub(super) fn new() -> Self {
        Self::Object { named: HashMap::new(), positional: None }
    }

    /// Enters `leaf` at `path`.
    pub(super) fn enter(&mut self, path: &UpdatePath, leaf: Arc<Leaf>) -> Result<(), QueryError> {
        let mut here = self;
        let last = path.steps().len().saturating_sub(1);
        for (i, step) in path.steps().iter().enumerate() {
            let refused = |depth: usize| conflict(path.as_str(), &path.prefix(depth));
            let fresh = || match path.steps().get(i + 1) {
                None => Self::Leaf(Arc::clone(&leaf)),
                Some(Step::Elements(_)) => Self::Elements(Vec::new()),
                Some(_) => Self::new(),
            };
            let mut was_there = true;
            here = match (here, step) {
                (Self::Object { named, .. }, Step::Name(name)) => named.entry(name.clone()).or_insert_with(|| {
                    was_there = false;
                    fresh()
                }),
                (Self::Object { positional, .. }, Step::Positional) => positional.get_or_insert_with(|| {
                    was_there = false;
                    Box::new(fresh())
                }),
                (Self::Elements(list), Step::Elements(identifier)) => {
                    let at = list.iter().position(|(i, _)| i == identifier).unwrap_or_else(|| {
                        was_there = false;
                        list.push((identifier.clone(), fresh()));
                        list.len() - 1
                    });
                    &mut list[at].1
                }
                _ => return Err(refused(i)),
            };
            if was_there && i == last {
                return Err(refused(i + 1));
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Node {
        match self {
            Self::Leaf(leaf) => Node::Leaf(leaf),
            Self::Object { named, positional } => {
                let mut children: Vec<_> = named
                    .into_iter()
                    .map(|(name, node)| Child { index: array_index(&name), name, node: Arc::new(node.finish()) })
                    .collect();
                children.sort_unstable_by(|a, b| creation_order((a.index, &a.name), (b.index, &b.name)));
                Node::Object(ObjectNode { children, positional: positional.map(|p| Arc::new(p.finish())) })
            }
            Self::Elements(list) => Node::Elements(ElementsNode {
                by_identifier: list.into_iter().map(|(i, node)| (i, Arc::new(node.finish()))).collect(),
            }),
        }
    }
}
