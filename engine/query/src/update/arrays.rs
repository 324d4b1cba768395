//! What `$push`, `$addToSet`, `$pull`, `$pullAll` and `$pop` make of an array.
//!
//! Takes the array that stands there (or none) and writes the new one. Membership is equality of whole elements, with
//! numbers by value and fields in order. Knows nothing of paths. Work is near-linear in array and operand: membership
//! in long lists goes by the order-preserving key of an element.

use crate::meter::Meter;
use crate::path_walk::FieldPath;
use crate::{Filter, QueryError};
use quarrydb_jsonb::{ArrayRef, Builder, JsonbBuf, JsonbRef, Kind, NULL, compare, equal, sort_key};
use std::cmp::Ordering;
use std::collections::HashSet;

/// `$push` with its modifiers.
#[derive(Debug, Default)]
pub(super) struct Push {
    pub(super) each: Vec<JsonbBuf>,
    /// From the front, or from the back where negative; the end where absent.
    pub(super) position: Option<i64>,
    /// How many stay: from the front, or from the back where negative; all where absent.
    pub(super) slice: Option<i64>,
    pub(super) sort: Option<PushSort>,
}

/// `$sort` of `$push`.
#[derive(Debug)]
pub(super) enum PushSort {
    /// By the whole elements.
    Whole { descending: bool },
    /// By fields of elements; elements that are no objects have none.
    Fields(Vec<(FieldPath, bool)>),
}

/// What `$pull` takes away.
#[derive(Debug)]
pub(super) enum PullCondition {
    /// Elements equal to it.
    Equal(JsonbBuf),
    /// Objects that the filter accepts.
    Object(Filter),
    /// Elements that are accepted as the field [`PULLED_FIELD`] of an object.
    Wrapped(Filter),
}

/// The name under which an element stands while a condition without a path is asked about it.
pub(super) const PULLED_FIELD: &str = "element";

/// Lists up to here are searched one by one.
const LINEAR_MEMBERSHIP_MAX: usize = 16;

fn write_all<'a>(elements: impl IntoIterator<Item = JsonbRef<'a>>, out: &mut Builder) -> Result<(), QueryError> {
    out.begin_array();
    for element in elements {
        out.copy(element);
    }
    out.end_array().map_err(|e| QueryError::bad_value(e.to_string()))
}

impl Push {
    pub(super) fn write(&self, current: Option<ArrayRef<'_>>, out: &mut Builder) -> Result<(), QueryError> {
        let mut elements: Vec<JsonbRef<'_>> = current.into_iter().flatten().collect();
        let len = elements.len();
        let at = match self.position {
            None => len,
            Some(p) if p >= 0 => usize::try_from(p).unwrap_or(len).min(len),
            Some(p) => len.saturating_sub(usize::try_from(p.unsigned_abs()).unwrap_or(len)),
        };
        elements.splice(at..at, self.each.iter().map(JsonbBuf::view));
        match &self.sort {
            None => {}
            Some(PushSort::Whole { descending }) => elements.sort_by(|&a, &b| directed(compare(a, b), *descending)),
            Some(PushSort::Fields(fields)) => elements.sort_by(|&a, &b| by_fields(fields, a, b)),
        }
        let kept = match self.slice {
            None => 0..elements.len(),
            Some(n) => {
                let keep = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX).min(elements.len());
                if n >= 0 { 0..keep } else { elements.len() - keep..elements.len() }
            }
        };
        write_all(elements.drain(kept), out)
    }
}

fn directed(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

fn by_fields(fields: &[(FieldPath, bool)], a: JsonbRef<'_>, b: JsonbRef<'_>) -> Ordering {
    fields
        .iter()
        .map(|(path, descending)| directed(compare(along(path, a), along(path, b)), *descending))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The value at a path through objects and array positions; null where it is missing.
fn along<'a>(path: &FieldPath, element: JsonbRef<'a>) -> JsonbRef<'a> {
    let mut here = element;
    for (i, part) in path.parts().iter().enumerate() {
        let next = match here.kind() {
            Kind::Object => here.get(part.name()),
            Kind::Array if i > 0 => part.index().and_then(|n| here.as_array()?.get(n)),
            _ => None,
        };
        let Some(next) = next else { return NULL };
        here = next;
    }
    here
}

/// The array with those of `values` that it does not hold yet.
pub(super) fn add_to_set(
    values: &[JsonbBuf],
    current: Option<ArrayRef<'_>>,
    out: &mut Builder,
) -> Result<(), QueryError> {
    let mut elements: Vec<JsonbRef<'_>> = current.into_iter().flatten().collect();
    if values.len() <= LINEAR_MEMBERSHIP_MAX {
        for value in values {
            if !elements.iter().any(|&e| equal(e, value.view())) {
                elements.push(value.view());
            }
        }
    } else {
        let mut seen: HashSet<Vec<u8>> = elements.iter().map(|&e| key_of(e)).collect();
        elements.extend(values.iter().map(JsonbBuf::view).filter(|&v| seen.insert(key_of(v))));
    }
    write_all(elements, out)
}

fn key_of(v: JsonbRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    sort_key(v, &mut key);
    key
}

/// The array without elements equal to one of `values`.
pub(super) fn pull_all(values: &[JsonbBuf], current: ArrayRef<'_>, out: &mut Builder) -> Result<(), QueryError> {
    if values.len() <= LINEAR_MEMBERSHIP_MAX {
        return write_all(current.iter().filter(|&e| !values.iter().any(|v| equal(e, v.view()))), out);
    }
    let keys: HashSet<Vec<u8>> = values.iter().map(|v| key_of(v.view())).collect();
    write_all(current.iter().filter(|&e| !keys.contains(&key_of(e))), out)
}

impl PullCondition {
    /// The array without the elements that the condition accepts.
    pub(super) fn write(&self, current: ArrayRef<'_>, meter: &Meter<'_>, out: &mut Builder) -> Result<(), QueryError> {
        let mut kept = Vec::with_capacity(current.len().min(current.as_value().as_bytes().len()));
        let mut wrapped = Builder::new();
        for element in current {
            let taken = match self {
                Self::Equal(value) => equal(element, value.view()),
                Self::Object(filter) => element.kind() == Kind::Object && filter.matches_in(element, meter)?,
                Self::Wrapped(filter) => {
                    wrap(PULLED_FIELD, element, &mut wrapped)?;
                    filter.matches_in(JsonbRef::from_valid(wrapped.bytes()), meter)?
                }
            };
            if !taken {
                kept.push(element);
            }
        }
        write_all(kept, out)
    }
}

/// Leaves in `scratch` an object whose one field is `element`.
pub(super) fn wrap(name: &str, element: JsonbRef<'_>, scratch: &mut Builder) -> Result<(), QueryError> {
    scratch.rewind(0);
    scratch.begin_object();
    scratch.field(name);
    scratch.copy(element);
    scratch.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
}

/// The array without its first or last element.
pub(super) fn pop(first: bool, current: ArrayRef<'_>, out: &mut Builder) -> Result<(), QueryError> {
    let len = current.len();
    if first {
        write_all(current.iter().skip(1), out)
    } else {
        write_all(current.iter().take(len.saturating_sub(1)), out)
    }
}
