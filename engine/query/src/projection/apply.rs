//! What a projection leaves of one document.
//!
//! Walks document and tree together and writes what stays, in the document's order; after it comes what is computed, and
//! in an inclusion what `$elemMatch` picks.
//! Arrays on a path are walked element by element, arrays in arrays too. An inclusion drops scalars where a path goes on
//! and keeps objects, emptied if need be; an exclusion keeps scalars. Recursion is bounded by the document's nesting.

use super::tree::{Part, Slice, Tree};
use super::{Mode, Projection};
use crate::QueryError;
use crate::expr::{Datum, Scope};
use crate::filter::{Test, passes};
use crate::meter::Meter;
use quarrydb_jsonb::{ArrayRef, Builder, Entry, Error, JsonbRef, ObjectRef};

/// Appends what is left of `document`.
pub(super) fn apply<'a>(
    projection: &'a Projection,
    document: JsonbRef<'a>,
    position: Option<usize>,
    meter: &Meter<'a>,
    out: &mut Builder,
) -> Result<(), QueryError> {
    let Some(object) = document.as_object().filter(|_| !projection.is_everything()) else {
        out.copy(document);
        return Ok(());
    };
    let mut apply = Apply { mode: projection.mode, document, position, meter, scope: None };
    apply.object(&projection.root, object, false, out)
}

struct Apply<'a, 'm> {
    mode: Mode,
    document: JsonbRef<'a>,
    /// The element that the filter matched.
    position: Option<usize>,
    meter: &'m Meter<'a>,
    /// What all expressions of the projection spend together; made for the first.
    scope: Option<Scope<'a>>,
}

impl<'a> Apply<'a, '_> {
    /// `in_array`: an array was taken apart on the way, so the positional operator has done its work.
    fn object(
        &mut self,
        tree: &'a Tree,
        object: ObjectRef<'_>,
        in_array: bool,
        out: &mut Builder,
    ) -> Result<(), QueryError> {
        let mut written = vec![false; if tree.computed { tree.children().len() } else { 0 }];
        out.begin_object();
        for entry in object {
            self.meter.step(1)?;
            let Some((at, part)) = tree.find(entry.name_bytes()) else {
                if self.mode == Mode::Exclusion {
                    copy(&entry, out);
                }
                continue;
            };
            let wrote = self.field(part, &entry, in_array, out)?;
            if let Some(flag) = written.get_mut(at) {
                *flag = wrote;
            }
        }
        if tree.computed {
            self.computed(tree, &written, out)?;
        }
        out.end_object().map_err(internal)
    }

    /// One field that the projection names; says whether it was written.
    fn field(
        &mut self,
        part: &'a Part,
        entry: &Entry<'_>,
        in_array: bool,
        out: &mut Builder,
    ) -> Result<bool, QueryError> {
        let value = entry.value;
        match part {
            Part::Exclude | Part::Computed(_) => return Ok(false),
            Part::Include => copy(entry, out),
            Part::Slice(slice) => match value.as_array() {
                Some(array) => {
                    name(entry, out);
                    write_slice(array, *slice, out)?;
                }
                None => copy(entry, out),
            },
            Part::ElemMatch(_) if self.mode == Mode::Inclusion => return Ok(false),
            Part::ElemMatch(test) => match picked(test, value, self.meter)? {
                Some(element) => {
                    name(entry, out);
                    write_one(element, out)?;
                }
                None => return Ok(false),
            },
            Part::Positional => match value.as_array().filter(|_| !in_array) {
                Some(array) => {
                    name(entry, out);
                    write_one(self.matched(array)?, out)?;
                }
                None => copy(entry, out),
            },
            Part::Tree(tree) => return self.tree(tree, entry, in_array, out),
        }
        Ok(true)
    }

    fn tree(
        &mut self,
        tree: &'a Tree,
        entry: &Entry<'_>,
        in_array: bool,
        out: &mut Builder,
    ) -> Result<bool, QueryError> {
        if let Some(object) = entry.value.as_object() {
            name(entry, out);
            self.object(tree, object, in_array, out)?;
        } else if let Some(array) = entry.value.as_array() {
            name(entry, out);
            if tree.positional && !in_array {
                let matched = self.matched(array)?;
                out.begin_array();
                self.element(tree, matched, out)?;
                out.end_array().map_err(internal)?;
            } else {
                self.array(tree, array, out)?;
            }
        } else if self.mode == Mode::Exclusion {
            copy(entry, out);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn array(&mut self, tree: &'a Tree, array: ArrayRef<'_>, out: &mut Builder) -> Result<(), QueryError> {
        out.begin_array();
        for element in array {
            self.meter.step(1)?;
            self.element(tree, element, out)?;
        }
        out.end_array().map_err(internal)
    }

    fn element(&mut self, tree: &'a Tree, element: JsonbRef<'_>, out: &mut Builder) -> Result<(), QueryError> {
        if let Some(object) = element.as_object() {
            self.object(tree, object, true, out)?;
        } else if let Some(array) = element.as_array() {
            self.array(tree, array, out)?;
        } else if self.mode == Mode::Exclusion {
            out.copy(element);
        }
        Ok(())
    }

    /// The element that the filter matched.
    fn matched<'v>(&self, array: ArrayRef<'v>) -> Result<JsonbRef<'v>, QueryError> {
        let position = self.position.ok_or_else(|| {
            let message = "positional operator '.$' couldn't find a matching element in the array";
            QueryError::location(51246, message)
        })?;
        array.get(position).ok_or_else(|| QueryError::location(51247, "positional operator '.$' element mismatch"))
    }

    /// What is computed or picked and not written yet, in the projection's order.
    fn computed(&mut self, tree: &'a Tree, written: &[bool], out: &mut Builder) -> Result<(), QueryError> {
        for ((name, part), _) in tree.children().iter().zip(written).filter(|(_, written)| !**written) {
            match part {
                Part::Computed(computed) => {
                    let (document, budget) = (self.document, self.meter.budget());
                    let scope = self.scope.get_or_insert_with(|| Scope::new(document, budget));
                    match computed.expression().evaluate(scope)? {
                        Datum::Missing => {}
                        value => {
                            out.field(name);
                            value.write(out)?;
                        }
                    }
                }
                Part::ElemMatch(test) if self.mode == Mode::Inclusion => {
                    let value = self.document.get(name);
                    if let Some(element) = value.map(|v| picked(test, v, self.meter)).transpose()?.flatten() {
                        out.field(name);
                        write_one(element, out)?;
                    }
                }
                Part::Tree(inner) if inner.computed => {
                    out.field(name);
                    out.begin_object();
                    self.computed(inner, &vec![false; inner.children().len()], out)?;
                    out.end_object().map_err(internal)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The first element that passes an `$elemMatch`.
fn picked<'v>(test: &Test, value: JsonbRef<'v>, meter: &Meter<'_>) -> Result<Option<JsonbRef<'v>>, QueryError> {
    let mut at = None;
    let passes = passes(test, Some(value), &mut at, meter)?;
    Ok(at.filter(|_| passes).and_then(|at| value.as_array()?.get(at)))
}

fn write_one(element: JsonbRef<'_>, out: &mut Builder) -> Result<(), QueryError> {
    out.begin_array();
    out.copy(element);
    out.end_array().map_err(internal)
}

fn name(entry: &Entry<'_>, out: &mut Builder) {
    out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
}

fn copy(entry: &Entry<'_>, out: &mut Builder) {
    name(entry, out);
    out.copy(entry.value);
}

fn write_slice(array: ArrayRef<'_>, slice: Slice, out: &mut Builder) -> Result<(), QueryError> {
    let range = slice.range(array.len());
    out.begin_array();
    array.iter().skip(range.start).take(range.len()).for_each(|v| out.copy(v));
    out.end_array().map_err(internal)
}

/// Names of one document differ and its parts are smaller than itself, so that only a computed value can be too large.
fn internal(error: Error) -> QueryError {
    QueryError::new("BSONObjectTooLarge", 10334, error.to_string())
}
