//! Edits by path: a document and what is to change in it become a new document in one pass.
//!
//! Takes a document and [`Edits`], a tree of paths with an action at each leaf; gives a new document. What no edit
//! touches is copied as it lies. The result is what [`Builder`] would have written field by field. The document's size
//! and depth are checked here, so that no update makes what no insert may. Must never know of operators: what `$set` or
//! `$push` mean is the query crate's.

use std::collections::BTreeMap;

use crate::buf::JsonbBuf;
use crate::builder::Builder;
use crate::error::{Error, ErrorKind};
use crate::measure::bson_size;
use crate::object::ObjectRef;
use crate::parse::{DOCUMENT_BSON_BYTES_MAX, DOCUMENT_LEVELS_MAX};
use crate::path::{Path, array_index};
use crate::view::{JsonbRef, text};

const DEPTH_MAX: usize = DOCUMENT_LEVELS_MAX as usize;
/// No value takes more than this many times its bytes as BSON: int64 0 in an array takes 1 here, there 1 for its type, up
/// to 8 for its index, 1 for the NUL and 8 for itself.
const BSON_GROWTH_MAX: usize = 18;
/// Elements of null that one edit may put between an array's end and the index that it sets.
pub const ARRAY_PADDING_MAX: usize = 1_500_000;

/// What happens at a path.
#[derive(Clone, Debug)]
enum Action<'v> {
    Set(JsonbRef<'v>),
    Unset,
    Splice(Splice<'v>),
}

/// A change of an array: from `at` on (its end where it is shorter) `remove` elements go and `insert` come.
#[derive(Clone, Debug, Default)]
pub struct Splice<'v> {
    /// Index from 0; [`Splice::END`] for the end.
    pub at: usize,
    /// How many elements go; those that are not there do not count.
    pub remove: usize,
    /// What comes in their place.
    pub insert: Vec<JsonbRef<'v>>,
}

impl Splice<'_> {
    /// Behind the last element.
    pub const END: usize = usize::MAX;
}

/// Edits of one document; no path of theirs leads to or through another's.
///
/// ```
/// # use quarrydb_jsonb::{Builder, Edits, JsonbBuf, Path};
/// # let mut b = Builder::new();
/// # b.begin_object();
/// # b.field("n");
/// # b.int32(1);
/// # b.end_object().unwrap();
/// # let doc = JsonbBuf::from_valid(b.take());
/// let mut edits = Edits::new();
/// edits.set(&Path::parse("a.b")?, doc.view().get("n").unwrap())?;
/// edits.unset(&Path::parse("n")?)?;
/// let new = edits.apply(doc.view())?;
/// assert_eq!(Path::parse("a.b")?.get(new.view()).and_then(|v| v.as_i64()), Some(1));
/// assert_eq!(new.view().get("n"), None);
/// # Ok::<(), quarrydb_jsonb::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Edits<'v> {
    root: Node<'v>,
    count: usize,
}

#[derive(Clone, Debug, Default)]
struct Node<'v> {
    /// When the first edit that creates it was given: new fields are appended in this order.
    order: usize,
    action: Option<Action<'v>>,
    /// By name, in bytes: a document's names are looked up without a look at their text.
    children: BTreeMap<Box<[u8]>, Node<'v>>,
    /// Whether an edit at or below it puts something where nothing is.
    creates: bool,
}

impl<'v> Edits<'v> {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Puts `value` at `path`: in the place of what is there, else at the end of its object, creating the objects on the
    /// way. In an array the last part is an index; beyond the end nulls fill up.
    ///
    /// # Errors
    /// `BadPath` where another edit's path overlaps.
    pub fn set(&mut self, path: &Path, value: JsonbRef<'v>) -> Result<(), Error> {
        self.add(path, Action::Set(value))
    }

    /// Takes away the field at `path`; an element of an array becomes null. What is not there stays so.
    ///
    /// # Errors
    /// As [`Edits::set`].
    pub fn unset(&mut self, path: &Path) -> Result<(), Error> {
        self.add(path, Action::Unset)
    }

    /// Changes elements of the array at `path`; where nothing is, an array of the inserted elements comes.
    ///
    /// # Errors
    /// As [`Edits::set`].
    pub fn splice(&mut self, path: &Path, splice: Splice<'v>) -> Result<(), Error> {
        self.add(path, Action::Splice(splice))
    }

    /// Appends `value` to the array at `path`.
    ///
    /// # Errors
    /// As [`Edits::set`].
    pub fn push(&mut self, path: &Path, value: JsonbRef<'v>) -> Result<(), Error> {
        self.splice(path, Splice { at: Splice::END, remove: 0, insert: vec![value] })
    }

    /// Moves the value at `from` in `doc` to `to`, where it replaces what is there or comes at the end; nothing happens
    /// where `from` is not there. Goes through objects only.
    ///
    /// # Errors
    /// As [`Edits::set`].
    pub fn rename(&mut self, doc: JsonbRef<'v>, from: &Path, to: &Path) -> Result<(), Error> {
        let Some(value) = from.get(doc) else { return Ok(()) };
        self.unset(from)?;
        self.set(to, value)
    }

    fn add(&mut self, path: &Path, action: Action<'v>) -> Result<(), Error> {
        let conflict = |at: &str| {
            let message = format!("updating the path '{path}' would create a conflict at '{at}'");
            Err(Error::new(ErrorKind::BadPath, message).at_path(path.as_str()))
        };
        // Refused before anything is added, so that a refused edit leaves no trace.
        let (mut node, mut depth) = (Some(&self.root), 0);
        for part in path.parts() {
            node = node.and_then(|node| node.children.get(part.as_bytes()));
            depth += 1;
            if node.is_some_and(|node| node.action.is_some()) {
                return conflict(path.prefix(depth).as_ref().map_or("", Path::as_str));
            }
        }
        if node.is_some() {
            return conflict(path.as_str());
        }
        let creates = match &action {
            Action::Set(_) => true,
            Action::Unset => false,
            Action::Splice(splice) => !splice.insert.is_empty(),
        };
        self.count += 1;
        let order = self.count;
        let mut node = &mut self.root;
        node.creates |= creates;
        for part in path.parts() {
            node = node.children.entry(part.as_bytes().into()).or_default();
            if creates && !node.creates {
                node.creates = true;
                node.order = order;
            }
        }
        node.action = Some(action);
        Ok(())
    }

    /// The document with all edits made.
    ///
    /// # Errors
    /// `BadPath` where a path leads through a scalar, sets a name in an array or splices what is no array; `TooDeep`,
    /// `TooLarge` where the result may be no document.
    pub fn apply(&self, doc: JsonbRef<'_>) -> Result<JsonbBuf, Error> {
        let mut out = Builder::onto(Vec::with_capacity(doc.as_bytes().len() + EXTRA_BYTES));
        self.apply_onto(doc, &mut out)?;
        Ok(JsonbBuf::from_valid(out.take()))
    }

    /// The same, appended to `out`, which is to be rewound after an error.
    ///
    /// # Errors
    /// As [`Edits::apply`].
    pub fn apply_onto(&self, doc: JsonbRef<'_>, out: &mut Builder) -> Result<(), Error> {
        let from = out.len();
        let mut pass = Pass { out, path: String::new() };
        let object =
            doc.as_object().ok_or_else(|| Error::new(ErrorKind::BadPath, "only objects are edited by path"))?;
        pass.object(Some(object), &self.root, 1)?;
        check_size(JsonbRef::from_valid(out.bytes().get(from..).unwrap_or_default()))
    }
}

fn check_size(doc: JsonbRef<'_>) -> Result<(), Error> {
    let small = doc.as_bytes().len() <= DOCUMENT_BSON_BYTES_MAX / BSON_GROWTH_MAX;
    if small || bson_size(doc) <= DOCUMENT_BSON_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the document would take more than {DOCUMENT_BSON_BYTES_MAX} bytes as BSON");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// Room for what most edits add.
const EXTRA_BYTES: usize = 64;

/// One application of edits.
struct Pass<'b> {
    out: &'b mut Builder,
    /// Where the pass is, for errors.
    path: String,
}

impl Pass<'_> {
    fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).at_path(self.path.as_str())
    }

    /// Runs `f` with `part` on the path.
    fn at(&mut self, part: &str, f: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(part);
        // An error has taken its copy of the path, so it is cut in both cases.
        let result = f(self);
        self.path.truncate(len);
        result
    }

    /// Writes the object that `old` (none: empty) becomes.
    fn object(&mut self, old: Option<ObjectRef<'_>>, node: &Node<'_>, depth: usize) -> Result<(), Error> {
        self.check_depth(depth)?;
        self.out.begin_object();
        for field in old.into_iter().flatten() {
            match node.children.get(field.name_bytes()) {
                None => {
                    self.out.field_unescaped(field.name_bytes(), field.name_is_plain());
                    self.out.copy(field.value);
                }
                Some(Node { action: Some(Action::Unset), .. }) => {}
                Some(child) => self.at(field.name(), |pass| {
                    pass.out.field_unescaped(field.name_bytes(), field.name_is_plain());
                    pass.value(Some(field.value), child, depth + 1)
                })?,
            }
        }
        let missing = |name: &[u8]| old.is_none_or(|old| old.get_bytes(name).is_none());
        let mut new: Vec<_> = node.children.iter().filter(|(name, child)| child.creates && missing(name)).collect();
        new.sort_by_key(|(_, child)| child.order);
        for (name, child) in new {
            self.at(text(name), |pass| {
                pass.out.field(text(name));
                pass.value(None, child, depth + 1)
            })?;
        }
        self.out.end_object()
    }

    /// Writes the value that `old` becomes, which may stand `depth` levels deep.
    fn value(&mut self, old: Option<JsonbRef<'_>>, node: &Node<'_>, depth: usize) -> Result<(), Error> {
        match &node.action {
            Some(Action::Set(new)) => self.copy(*new, depth),
            // Of an element: a field is left out before.
            Some(Action::Unset) => {
                self.out.null();
                Ok(())
            }
            Some(Action::Splice(splice)) => self.splice(old, splice, depth),
            None => match old {
                None => self.object(None, node, depth),
                Some(old) => match (old.as_object(), old.as_array()) {
                    (Some(object), _) => self.object(Some(object), node, depth),
                    (_, Some(_)) => self.array(old, node, depth),
                    _ if !node.creates => {
                        self.out.copy(old);
                        Ok(())
                    }
                    _ => {
                        let name = node.children.keys().next().map_or("", |name| text(name));
                        let message =
                            format!("cannot create the field '{name}' in a value of type {}", old.kind().alias());
                        Err(self.error(ErrorKind::BadPath, message))
                    }
                },
            },
        }
    }

    fn array(&mut self, old: JsonbRef<'_>, node: &Node<'_>, depth: usize) -> Result<(), Error> {
        self.check_depth(depth)?;
        let mut edits = Vec::with_capacity(node.children.len());
        for (name, child) in &node.children {
            let name = text(name);
            match array_index(name) {
                Some(index) => edits.push((index, name, child)),
                None if child.creates => {
                    let message = format!("cannot create the field '{name}' in an array");
                    return Err(self.error(ErrorKind::BadPath, message));
                }
                None => {}
            }
        }
        edits.sort_by_key(|&(index, ..)| index);
        let mut edits = edits.into_iter().peekable();
        self.out.begin_array();
        let mut len = 0;
        for element in old.as_array().into_iter().flatten() {
            match edits.next_if(|&(index, ..)| index == len) {
                None => self.out.copy(element),
                Some((_, name, child)) => self.at(name, |pass| pass.value(Some(element), child, depth + 1))?,
            }
            len += 1;
        }
        let mut padding = 0;
        for (index, name, child) in edits.filter(|(.., child)| child.creates) {
            padding += index - len;
            if padding > ARRAY_PADDING_MAX {
                let message = format!("the index {index} is more than {ARRAY_PADDING_MAX} beyond the array's end");
                return Err(self.error(ErrorKind::BadPath, message));
            }
            (len..index).for_each(|_| self.out.null());
            self.at(name, |pass| pass.value(None, child, depth + 1))?;
            len = index + 1;
        }
        self.out.end_array()
    }

    fn splice(&mut self, old: Option<JsonbRef<'_>>, splice: &Splice<'_>, depth: usize) -> Result<(), Error> {
        self.check_depth(depth)?;
        let array = match old {
            None => None,
            Some(old) => Some(old.as_array().ok_or_else(|| {
                let message = format!("must be an array but is of type {}", old.kind().alias());
                self.error(ErrorKind::BadPath, message)
            })?),
        };
        let mut elements = array.into_iter().flatten();
        self.out.begin_array();
        elements.by_ref().take(splice.at).for_each(|element| self.out.copy(element));
        for &new in &splice.insert {
            self.copy(new, depth + 1)?;
        }
        elements.skip(splice.remove).for_each(|element| self.out.copy(element));
        self.out.end_array()
    }

    /// Writes a new value whose containers begin at `depth`.
    fn copy(&mut self, new: JsonbRef<'_>, depth: usize) -> Result<(), Error> {
        if !fits_depth(new, (DEPTH_MAX + 1).saturating_sub(depth)) {
            return self.check_depth(DEPTH_MAX + 1);
        }
        self.out.copy(new);
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Result<(), Error> {
        if depth <= DEPTH_MAX {
            return Ok(());
        }
        let message = format!("the document would nest deeper than {DEPTH_MAX} levels");
        Err(self.error(ErrorKind::TooDeep, message))
    }
}

/// Whether no more than `levels` containers stand inside each other in `v`, itself counted. Goes no deeper than that.
fn fits_depth(v: JsonbRef<'_>, levels: usize) -> bool {
    if let Some(object) = v.as_object() {
        return levels > 0 && object.iter().all(|field| fits_depth(field.value, levels - 1));
    }
    if let Some(array) = v.as_array() {
        return levels > 0 && array.iter().all(|element| fits_depth(element, levels - 1));
    }
    true
}

/// `doc` with `value` at `path`: see [`Edits::set`].
///
/// # Errors
/// As [`Edits::apply`].
pub fn set(doc: JsonbRef<'_>, path: &Path, value: JsonbRef<'_>) -> Result<JsonbBuf, Error> {
    let mut edits = Edits::new();
    edits.set(path, value)?;
    edits.apply(doc)
}

/// `doc` without what is at `path`: see [`Edits::unset`].
///
/// # Errors
/// As [`Edits::apply`].
pub fn unset(doc: JsonbRef<'_>, path: &Path) -> Result<JsonbBuf, Error> {
    let mut edits = Edits::new();
    edits.unset(path)?;
    edits.apply(doc)
}

/// `doc` with `value` at the end of the array at `path`.
///
/// # Errors
/// As [`Edits::apply`].
pub fn push(doc: JsonbRef<'_>, path: &Path, value: JsonbRef<'_>) -> Result<JsonbBuf, Error> {
    insert(doc, path, Splice::END, value)
}

/// `doc` with `value` before the element `at` of the array at `path`.
///
/// # Errors
/// As [`Edits::apply`].
pub fn insert(doc: JsonbRef<'_>, path: &Path, at: usize, value: JsonbRef<'_>) -> Result<JsonbBuf, Error> {
    let mut edits = Edits::new();
    edits.splice(path, Splice { at, remove: 0, insert: vec![value] })?;
    edits.apply(doc)
}

/// `doc` without the element `at` of the array at `path`.
///
/// # Errors
/// As [`Edits::apply`].
pub fn remove(doc: JsonbRef<'_>, path: &Path, at: usize) -> Result<JsonbBuf, Error> {
    let mut edits = Edits::new();
    edits.splice(path, Splice { at, remove: 1, insert: Vec::new() })?;
    edits.apply(doc)
}
