//! The meaning of an update on one document: the old document and the tree of operators walked side by side.
//!
//! Takes the old document and the tree, writes the new one front to back; what no operator names is copied as bytes.
//! Missing fields are made after those that are there: positions by number, then names in order. Recursion is bounded
//! by the parts of a path. Next: `scalar.rs`, `arrays.rs` for the leaves.

use super::arrays::{add_to_set, pop, pull_all, wrap};
use super::ast::{ArrayFilter, ElementsNode, Leaf, Node, ObjectNode, Op, Rename, first_leaf, merge, place_of};
use super::parse::kind;
use super::scalar::{self, Clock};
use crate::limits::{ARRAY_PADDING_MAX, DOCUMENT_BYTES_MAX, DOCUMENT_NESTING_MAX, WRITTEN_BYTES_MAX};
use crate::meter::Meter;
use crate::path_walk::FieldPath;
use crate::transform::nesting;
use crate::{Filter, QueryError};
use quarrydb_jsonb::{ArrayRef, Builder, JsonbRef, Kind, ObjectRef};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

/// Bytes that are copied for the cost of one step.
const BYTES_PER_STEP: usize = 64;

/// One application of an update to one document.
pub(super) struct Application<'a, 'o> {
    pub(super) document: JsonbRef<'a>,
    pub(super) filter: &'a Filter,
    pub(super) array_filters: &'a [ArrayFilter],
    pub(super) clock: Clock,
    pub(super) inserting: bool,
    pub(super) out: &'o mut Builder,
    /// What `$` stands for, once asked.
    pub(super) position: OnceCell<Option<usize>>,
    /// What it has looked at.
    pub(super) meter: Meter<'a>,
}

impl<'a> Application<'a, '_> {
    /// Writes the whole new document.
    pub(super) fn run(&mut self, root: &Node, renames: &[Rename]) -> Result<(), QueryError> {
        for rename in renames {
            self.check_rename(&rename.from, &rename.to).map_err(|e| e.at_written(&rename.place))?;
        }
        match (root, self.document.as_object()) {
            (Node::Object(node), Some(object)) => self.object(node, Some(object), 1),
            _ => Err(QueryError::bad_value("only an object can be updated")),
        }
    }

    fn position(&self) -> Result<usize, QueryError> {
        let found = match self.position.get() {
            Some(found) => *found,
            None if self.inserting => None,
            None => {
                let found = self.filter.matches_at_in(self.document, &self.meter)?.flatten();
                *self.position.get_or_init(|| found)
            }
        };
        found.ok_or_else(|| {
            let message = "the positional operator '$' did not find the match needed from the query: \
                           the filter must hold a condition on the array";
            QueryError::bad_value(message)
        })
    }

    fn resolved<'n>(&self, node: &'n ObjectNode) -> Result<Cow<'n, ObjectNode>, QueryError> {
        if node.positional.is_none() {
            return Ok(Cow::Borrowed(node));
        }
        node.resolved(self.position_for(node)?).map(Cow::Owned)
    }

    /// The position for the `$` of a node.
    fn position_for(&self, node: &ObjectNode) -> Result<usize, QueryError> {
        self.position().map_err(|e| e.at_written(node.positional.as_ref().map_or("", |node| place_of(node))))
    }

    /// Whether a missing value is made at `node`.
    fn creates(&self, node: &Node) -> Result<bool, QueryError> {
        match node {
            Node::Leaf(leaf) => Ok(match &leaf.op {
                Op::SetOnInsert(_) => self.inserting,
                Op::RenameTo(from) => lookup(self.document, from).is_some(),
                Op::Unset | Op::RenameFrom | Op::Pull(_) | Op::PullAll(_) | Op::Pop { .. } => false,
                _ => true,
            }),
            Node::Object(object) => {
                if object.positional.is_some() {
                    self.position_for(object)?;
                }
                let mut any = false;
                for node in object.children.iter().map(|c| &c.node).chain(&object.positional) {
                    any |= self.creates(node)?;
                }
                Ok(any)
            }
            Node::Elements(_) => {
                let message = format!(
                    "the path '{}' must exist in the document in order to apply array updates",
                    before_elements(node)
                );
                Err(QueryError::bad_value(message).at_written(place_of(node)))
            }
        }
    }

    /// Whether a scalar in the way of `node` is an error: not for what would change nothing there.
    fn needs_path(&self, node: &Node) -> bool {
        match node {
            Node::Leaf(leaf) => match &leaf.op {
                Op::Unset | Op::RenameFrom => false,
                Op::SetOnInsert(_) => self.inserting,
                Op::RenameTo(from) => lookup(self.document, from).is_some(),
                _ => true,
            },
            Node::Object(o) => o.children.iter().map(|c| &c.node).chain(&o.positional).any(|n| self.needs_path(n)),
            Node::Elements(_) => true,
        }
    }

    /// Writes an object: what stands there, changed, then what is missing.
    fn object(&mut self, node: &ObjectNode, current: Option<ObjectRef<'a>>, depth: usize) -> Result<(), QueryError> {
        let node = self.resolved(node)?;
        self.out.begin_object();
        for entry in current.into_iter().flatten() {
            match node.child(entry.name_bytes()) {
                Some(child) if removes(child) => {}
                child => {
                    self.out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
                    match child {
                        None => self.out.copy(entry.value),
                        Some(child) => self.existing(child, entry.name(), entry.value, depth)?,
                    }
                }
            }
        }
        for child in &node.children {
            let missing = current.is_none_or(|c| c.get(&child.name).is_none());
            if missing && self.creates(&child.node)? {
                self.out.field(&child.name);
                self.missing(&child.node, depth)?;
            }
        }
        self.out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
    }

    /// Writes what becomes of a value inside `depth` containers.
    fn existing(&mut self, node: &Node, name: &str, current: JsonbRef<'a>, depth: usize) -> Result<(), QueryError> {
        if let Node::Object(object @ ObjectNode { positional: Some(_), .. }) = node {
            // Without a match the update is refused for that, whatever stands here.
            self.position_for(object)?;
        }
        match node {
            Node::Leaf(leaf) => self.leaf(leaf, Some(current), depth),
            Node::Object(object) => match (current.as_object(), current.as_array()) {
                (Some(inner), _) => self.object(object, Some(inner), depth + 1),
                (_, Some(array)) => self.positions(object, name, array, depth + 1),
                _ if self.needs_path(node) => Err(not_viable(object, name, current)),
                _ => {
                    self.out.copy(current);
                    Ok(())
                }
            },
            Node::Elements(elements) => match current.as_array() {
                Some(array) => self.elements(elements, name, array, depth + 1),
                None => {
                    let message = format!(
                        "cannot apply array updates to the non-array element '{name}' of type {}",
                        kind(current)
                    );
                    Err(QueryError::bad_value(message).at_written(place_of(node)))
                }
            },
        }
    }

    /// Writes a value where none stands.
    fn missing(&mut self, node: &Node, depth: usize) -> Result<(), QueryError> {
        match node {
            Node::Leaf(leaf) => self.leaf(leaf, None, depth),
            Node::Object(object) => {
                check_depth(depth + 1)?;
                self.object(object, None, depth + 1)
            }
            // `creates` has refused it.
            Node::Elements(_) => self.creates(node).map(|_| ()),
        }
    }

    /// Writes an array of which some positions are named.
    fn positions(
        &mut self,
        node: &ObjectNode,
        name: &str,
        array: ArrayRef<'a>,
        depth: usize,
    ) -> Result<(), QueryError> {
        let node = self.resolved(node)?;
        let by_name = node.children.iter().find(|c| c.index.is_none());
        if let Some(child) = by_name
            && self.needs_path(&child.node)
        {
            return Err(not_viable(&node, name, array.as_value()));
        }
        self.out.begin_array();
        let mut named = node.children.iter().filter(|c| c.index.is_some()).peekable();
        let (mut len, mut padding) = (0, 0);
        for (i, element) in array.iter().enumerate() {
            match named.next_if(|c| c.index == Some(i)) {
                None => self.out.copy(element),
                // What is taken out of an array leaves null, so that the others keep their positions.
                Some(child) if removes(&child.node) => self.out.null(),
                Some(child) => self.existing(&child.node, &child.name, element, depth)?,
            }
            len = i + 1;
        }
        for child in named {
            let index = child.index.unwrap_or(len);
            if !self.creates(&child.node)? {
                continue;
            }
            padding += index - len;
            if padding > ARRAY_PADDING_MAX {
                let message = format!(
                    "the position {index} is more than {ARRAY_PADDING_MAX} beyond the end of the array '{name}'"
                );
                return Err(QueryError::new("CannotBackfillArray", 34, message).at_written(place_of(&child.node)));
            }
            (len..index).for_each(|_| self.out.null());
            self.missing(&child.node, depth)?;
            len = index + 1;
        }
        self.out.end_array().map_err(|e| QueryError::bad_value(e.to_string()))
    }

    /// Writes an array of which some or all elements are meant.
    fn elements(
        &mut self,
        node: &ElementsNode,
        name: &str,
        array: ArrayRef<'a>,
        depth: usize,
    ) -> Result<(), QueryError> {
        let mut chosen = Vec::with_capacity(node.by_identifier.len());
        for (identifier, child) in &node.by_identifier {
            let filter = self.array_filters.iter().find(|f| f.identifier == *identifier);
            chosen.push((child, filter));
        }
        let mut wrapped = Builder::new();
        self.out.begin_array();
        for (i, element) in array.iter().enumerate() {
            self.meter.step(1)?;
            let mut meant: Option<Cow<'_, Arc<Node>>> = None;
            for (child, filter) in &chosen {
                if let Some(filter) = filter {
                    wrap(&filter.identifier, element, &mut wrapped)?;
                    self.meter.step(1 + (element.as_bytes().len() / BYTES_PER_STEP) as u64)?;
                    if !filter.filter.matches_in(JsonbRef::from_valid(wrapped.bytes()), &self.meter)? {
                        continue;
                    }
                }
                meant = Some(match meant {
                    None => Cow::Borrowed(*child),
                    Some(other) => Cow::Owned(Arc::new(merge(&other, child)?)),
                });
            }
            match meant {
                None => self.out.copy(element),
                Some(node) if removes(&node) => self.out.null(),
                Some(node) => self.existing(&node, &format!("{name}.{i}"), element, depth)?,
            }
        }
        self.out.end_array().map_err(|e| QueryError::bad_value(e.to_string()))
    }

    /// Writes what an operator makes of a value, as long as the document stays of a size that it may have.
    fn leaf(&mut self, leaf: &Leaf, current: Option<JsonbRef<'a>>, depth: usize) -> Result<(), QueryError> {
        self.operate(leaf, current, depth).map_err(|e| e.at_written(&leaf.place))?;
        if self.out.len() <= WRITTEN_BYTES_MAX {
            return Ok(());
        }
        let message = format!("the document would take more than {DOCUMENT_BYTES_MAX} bytes");
        Err(QueryError::new("BSONObjectTooLarge", 10334, message).at_written(&leaf.place))
    }

    fn operate(&mut self, leaf: &Leaf, current: Option<JsonbRef<'a>>, depth: usize) -> Result<(), QueryError> {
        if leaf.nesting > 0 {
            check_depth(depth + leaf.nesting)?;
        }
        match &leaf.op {
            Op::SetOnInsert(_) if !self.inserting => {
                self.out.copy(current.unwrap_or(quarrydb_jsonb::NULL));
                Ok(())
            }
            Op::RenameTo(from) => {
                let moved = lookup(self.document, from).or(current).unwrap_or(quarrydb_jsonb::NULL);
                check_depth(depth + nesting(moved))?;
                self.out.copy(moved);
                Ok(())
            }
            Op::Push(_) | Op::AddToSet(_) | Op::Pull(_) | Op::PullAll(_) | Op::Pop { .. } => {
                let array = match current {
                    None => None,
                    Some(current) => Some(current.as_array().ok_or_else(|| not_an_array(leaf, current))?),
                };
                let elements = array.map_or(0, ArrayRef::len) as u64;
                self.meter.step(elements)?;
                match (&leaf.op, array) {
                    (Op::Push(push), array) => push.write(array, self.out),
                    (Op::AddToSet(values), array) => add_to_set(values, array, self.out),
                    (Op::Pull(condition), Some(array)) => condition.write(array, &self.meter, self.out),
                    (Op::PullAll(values), Some(array)) => pull_all(values, array, self.out),
                    (Op::Pop { first }, Some(array)) => pop(*first, array, self.out),
                    _ => scalar::write(leaf, current, self.clock, self.out),
                }
            }
            _ => scalar::write(leaf, current, self.clock, self.out),
        }
    }

    /// `$rename` neither reads from nor writes into arrays.
    fn check_rename(&self, from: &FieldPath, to: &FieldPath) -> Result<(), QueryError> {
        let refuse = |which: &str, path: &FieldPath| {
            let message = format!("the {which} field for $rename cannot be an array element: '{}'", path.as_str());
            Err(QueryError::bad_value(message))
        };
        let (mut here, mut through_array) = (self.document, false);
        for part in from.parts() {
            match here.kind() {
                Kind::Object => match here.get(part.name()) {
                    Some(next) => here = next,
                    None => return Ok(()),
                },
                Kind::Array if part.index().is_some() => {
                    match part.index().and_then(|i| here.as_array()?.get(i)) {
                        // What comes behind it may still lead nowhere.
                        Some(next) => (here, through_array) = (next, true),
                        None => return Ok(()),
                    }
                }
                _ => {
                    let message = format!(
                        "cannot use the part '{}' of '{}' to traverse a value of type {}",
                        part.name(),
                        from.as_str(),
                        kind(here)
                    );
                    return Err(QueryError::new("PathNotViable", 28, message));
                }
            }
        }
        if through_array {
            return refuse("source", from);
        }
        let mut here = self.document;
        for part in to.parts() {
            match here.kind() {
                Kind::Array => return refuse("destination", to),
                Kind::Object => match here.get(part.name()) {
                    Some(next) => here = next,
                    None => break,
                },
                _ => break,
            }
        }
        Ok(())
    }
}

/// Whether what stands at `node` goes away.
fn removes(node: &Node) -> bool {
    matches!(node, Node::Leaf(leaf) if matches!(leaf.op, Op::Unset | Op::RenameFrom))
}

/// The value at a path of objects.
fn lookup<'a>(document: JsonbRef<'a>, path: &FieldPath) -> Option<JsonbRef<'a>> {
    path.parts().iter().try_fold(document, |here, part| here.get(part.name()))
}

fn check_depth(depth: usize) -> Result<(), QueryError> {
    if depth <= DOCUMENT_NESTING_MAX {
        return Ok(());
    }
    let message = format!("the document would nest {depth} levels deep: at most {DOCUMENT_NESTING_MAX} are allowed");
    Err(QueryError::new("Overflow", 15, message))
}

fn not_viable(node: &ObjectNode, name: &str, current: JsonbRef<'_>) -> QueryError {
    let part = node.children.iter().find(|c| c.index.is_none()).or(node.children.first()).map_or("$", |c| &*c.name);
    let message = format!("cannot create field '{part}' in the element '{name}' of type {}", kind(current));
    let child = node.children.iter().find(|c| *c.name == *part).map(|c| &c.node).or(node.positional.as_ref());
    QueryError::new("PathNotViable", 28, message).at_written(child.map_or("", |node| place_of(node)))
}

fn not_an_array(leaf: &Leaf, current: JsonbRef<'_>) -> QueryError {
    let message = format!("the field '{}' must be an array but is of type {}", leaf.path, kind(current));
    match leaf.op {
        Op::Pop { .. } => QueryError::type_mismatch(message),
        _ => QueryError::bad_value(message),
    }
}

/// The part of some path below `node` that stands before its first `$[...]`.
fn before_elements(node: &Node) -> &str {
    let path = first_leaf(node).map_or("", |leaf| &leaf.path);
    path.split_once(".$[").map_or(path, |(before, _)| before)
}
