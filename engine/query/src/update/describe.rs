//! What an update changed, as change streams tell it: `updatedFields`, `removedFields`, `truncatedArrays`.
//!
//! Takes a document before and after, and the update between them; gives an object. An operator's path is told whole, as
//! MongoDB does (`$set: {a: {...}}` tells `a`), an element that `$push` appends by its position; where no operator says
//! what was meant (a pipeline, elements chosen by a filter) the two are compared. Of the two a pipeline alone tells an
//! array that became shorter as truncated. What would be longer than the document, or would name one path twice (a name
//! with a dot in it), is told by top-level fields instead. Recursion is bounded by the nesting of documents.

use super::ast::{Leaf, Node, ObjectNode, Op};
use quarrydb_jsonb::{ArrayRef, Builder, JsonbBuf, JsonbRef, ObjectRef};

/// What a description may take beside the bytes of the document.
const SPARE_BYTES: usize = 4 << 10;

/// What is known of the meaning of a change at some place.
#[derive(Clone, Copy)]
pub(super) enum Guide<'n> {
    /// The operators there.
    Node(&'n Node),
    /// Nothing: what differs is told.
    Free,
}

/// What changed; `pipeline` where stages did it.
pub(super) fn describe(before: JsonbRef<'_>, after: JsonbRef<'_>, guide: Guide<'_>, pipeline: bool) -> JsonbBuf {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return Told::default().finish_bare() };
    let most = 2 * after.as_bytes().len() + SPARE_BYTES;
    let mut told = Told { pipeline, most, ..Told::default() };
    told.object(old, new, guide);
    if told.bytes <= most
        && let Some(whole) = told.finish()
    {
        return whole;
    }
    let mut told = Told { most: usize::MAX, ..Told::default() };
    told.top(old, new);
    told.finish().unwrap_or_else(|| Told::default().finish_bare())
}

#[derive(Default)]
struct Told<'a> {
    path: String,
    updated: Vec<(String, JsonbRef<'a>)>,
    removed: Vec<String>,
    truncated: Vec<(String, usize)>,
    pipeline: bool,
    /// About how long it is, and what it may be.
    bytes: usize,
    most: usize,
}

impl<'a> Told<'a> {
    fn object(&mut self, before: ObjectRef<'a>, after: ObjectRef<'a>, guide: Guide<'_>) {
        for old in before.iter() {
            if after.get_bytes(old.name_bytes()).is_none() && self.has_room() {
                let path = self.below(old.name());
                self.bytes += path.len();
                self.removed.push(path);
            }
        }
        // Fields keep their order where operators change them; a pipeline may put them in another.
        let mut furthest = 0;
        for new in after.iter() {
            let Some(old) = before.get_bytes(new.name_bytes()) else {
                let path = self.below(new.name());
                self.updated(path, new.value);
                continue;
            };
            let place = old.as_bytes().as_ptr() as usize;
            let moved = self.pipeline && place < furthest;
            furthest = furthest.max(place);
            if moved {
                let path = self.below(new.name());
                self.updated(path, new.value);
            } else if old.as_bytes() != new.value.as_bytes() {
                let below = match guide {
                    Guide::Node(Node::Object(node)) => named(node, new.name_bytes()),
                    _ => Guide::Free,
                };
                self.enter(new.name(), |told| told.value(old, new.value, below));
            }
        }
    }

    fn value(&mut self, before: JsonbRef<'a>, after: JsonbRef<'a>, guide: Guide<'_>) {
        if !self.has_room() {
            return;
        }
        let from = (self.updated.len(), self.removed.len(), self.truncated.len(), self.bytes);
        match (before.as_object(), after.as_object(), before.as_array(), after.as_array()) {
            (_, _, Some(old), Some(new)) if is_push(guide) && begins_with(new, old) => {
                for (i, element) in new.iter().enumerate().skip(old.len()) {
                    let path = self.below(&i.to_string());
                    self.updated(path, element);
                }
            }
            (Some(old), Some(new), ..) if !is_leaf(guide) => self.object(old, new, guide),
            (_, _, Some(old), Some(new)) if !is_leaf(guide) && (new.len() >= old.len() || self.pipeline) => {
                self.array(old, new, guide);
            }
            _ => self.whole(after),
        }
        if self.pipeline && self.bytes - from.3 >= after.as_bytes().len() + self.path.len() {
            // The value itself is shorter.
            self.updated.truncate(from.0);
            self.removed.truncate(from.1);
            self.truncated.truncate(from.2);
            self.bytes = from.3;
            self.whole(after);
        }
    }

    fn array(&mut self, before: ArrayRef<'a>, after: ArrayRef<'a>, guide: Guide<'_>) {
        if after.len() < before.len() {
            self.bytes += self.path.len();
            self.truncated.push((self.path.clone(), after.len()));
        }
        let mut olds = before.iter();
        for (i, new) in after.iter().enumerate() {
            match olds.next() {
                Some(old) if old.as_bytes() == new.as_bytes() => {}
                Some(old) => {
                    let below = match guide {
                        Guide::Node(Node::Object(node)) => positioned(node, i),
                        _ => Guide::Free,
                    };
                    self.enter(&i.to_string(), |told| told.value(old, new, below));
                }
                None => {
                    let path = self.below(&i.to_string());
                    self.updated(path, new);
                }
            }
            if !self.has_room() {
                return;
            }
        }
    }

    /// Top-level fields alone.
    fn top(&mut self, before: ObjectRef<'a>, after: ObjectRef<'a>) {
        for old in before.iter().filter(|old| after.get_bytes(old.name_bytes()).is_none()) {
            self.removed.push(old.name().to_owned());
        }
        for new in after.iter() {
            if before.get_bytes(new.name_bytes()).is_none_or(|old| old.as_bytes() != new.value.as_bytes()) {
                self.updated(new.name().to_owned(), new.value);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.bytes <= self.most
    }

    fn whole(&mut self, value: JsonbRef<'a>) {
        let path = self.path.clone();
        self.updated(path, value);
    }

    fn updated(&mut self, path: String, value: JsonbRef<'a>) {
        if self.has_room() {
            self.bytes += path.len() + value.as_bytes().len();
            self.updated.push((path, value));
        }
    }

    /// The path of `name` in what stands here.
    fn below(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn enter(&mut self, name: &str, then: impl FnOnce(&mut Self)) {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        then(self);
        self.path.truncate(len);
    }

    /// The object; none where a path would stand in it twice.
    fn finish(&self) -> Option<JsonbBuf> {
        let mut out = Builder::new();
        out.begin_object();
        out.field("updatedFields");
        out.begin_object();
        for (path, value) in &self.updated {
            out.field(path);
            out.copy(*value);
        }
        out.end_object().ok()?;
        out.field("removedFields");
        out.begin_array();
        self.removed.iter().for_each(|path| out.string(path));
        out.end_array().ok()?;
        out.field("truncatedArrays");
        out.begin_array();
        for (path, len) in &self.truncated {
            out.begin_object();
            out.field("field");
            out.string(path);
            out.field("newSize");
            out.int32(i32::try_from(*len).unwrap_or(i32::MAX));
            out.end_object().ok()?;
        }
        out.end_array().ok()?;
        out.end_object().ok()?;
        Some(JsonbBuf::from_valid(out.take()))
    }

    fn finish_bare(&self) -> JsonbBuf {
        self.finish().expect("an empty description names nothing twice")
    }
}

/// Whether `array` is `start` and more.
fn begins_with(array: ArrayRef<'_>, start: ArrayRef<'_>) -> bool {
    array.len() > start.len() && array.iter().zip(start.iter()).all(|(a, b)| a.as_bytes() == b.as_bytes())
}

fn leaf<'n>(guide: Guide<'n>) -> Option<&'n Leaf> {
    match guide {
        Guide::Node(Node::Leaf(leaf)) => Some(leaf),
        _ => None,
    }
}

fn is_leaf(guide: Guide<'_>) -> bool {
    leaf(guide).is_some()
}

fn is_push(guide: Guide<'_>) -> bool {
    leaf(guide).is_some_and(|leaf| matches!(leaf.op, Op::Push(_)))
}

fn named<'n>(node: &'n ObjectNode, name: &[u8]) -> Guide<'n> {
    node.child(name).map_or(Guide::Free, |child| Guide::Node(child))
}

fn positioned(node: &ObjectNode, at: usize) -> Guide<'_> {
    let found = node.children.iter().find(|child| child.index == Some(at)).map(|child| &child.node);
    match (found, &node.positional) {
        (Some(child), None) => Guide::Node(child),
        // One position, known when it was applied; where both meet the two are compared.
        (None, Some(positional)) => Guide::Node(positional),
        _ => Guide::Free,
    }
}
