//! Where the elements of stored arrays lie, for expressions that look up one position after another.
//!
//! A stored array has no table of its elements: the element at a position is found by stepping over those before it. So
//! the places of every few elements of the last arrays are kept, as far as somebody has looked. Takes an array and a
//! position, gives the element and what it cost to find.

use quarrydb_jsonb::{ArrayIter, ArrayRef, JsonbRef};

/// Elements between two places that are kept.
const STRIDE: usize = 64;
/// Arrays whose places are kept: an expression may go through a few side by side.
const ARRAYS_KEPT: usize = 4;

/// The places of the last arrays. They take less than a twentieth of a document each.
#[derive(Debug, Default)]
pub(super) struct Positions<'a> {
    /// The last used one at the end.
    kept: Vec<Places<'a>>,
}

#[derive(Debug)]
struct Places<'a> {
    array: ArrayRef<'a>,
    /// What is left from element `i * STRIDE` on.
    places: Vec<ArrayIter<'a>>,
}

impl<'a> Positions<'a> {
    /// The elements from `index` on, and how many were stepped over to get there.
    pub(super) fn from(&mut self, array: ArrayRef<'a>, index: usize) -> (ArrayIter<'a>, usize) {
        let mut stepped = 0;
        let mut here = if index < STRIDE {
            array.iter()
        } else {
            let places = self.places_of(array);
            let wanted = index / STRIDE;
            while places.len() <= wanted {
                let mut next = places.last().cloned().unwrap_or_else(|| array.iter());
                // Stepping over the last element leaves an iterator at the end.
                next.nth(STRIDE - 1);
                stepped += STRIDE;
                places.push(next);
            }
            places.get(wanted).cloned().unwrap_or_else(|| array.iter())
        };
        let rest = index % STRIDE;
        if rest > 0 {
            here.nth(rest - 1);
        }
        (here, stepped + rest)
    }

    /// The element at `index`, and how many were stepped over to find it.
    pub(super) fn get(&mut self, array: ArrayRef<'a>, index: usize) -> (Option<JsonbRef<'a>>, usize) {
        if index >= array.len() {
            return (None, 0);
        }
        let (mut here, stepped) = self.from(array, index);
        (here.next(), stepped)
    }

    fn places_of(&mut self, array: ArrayRef<'a>) -> &mut Vec<ArrayIter<'a>> {
        let bytes = array.as_value().as_bytes();
        let known = self.kept.iter().position(|p| std::ptr::eq(p.array.as_value().as_bytes(), bytes));
        let places = match known {
            Some(at) => self.kept.remove(at),
            None => {
                if self.kept.len() == ARRAYS_KEPT {
                    self.kept.remove(0);
                }
                Places { array, places: vec![array.iter()] }
            }
        };
        self.kept.push(places);
        // Just pushed.
        let last = self.kept.len() - 1;
        &mut self.kept[last].places
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;
    use quarrydb_jsonb::{JsonbBuf, parse};

    fn array(len: usize, first: usize) -> JsonbBuf {
        let items: Vec<String> = (first..first + len).map(|n| n.to_string()).collect();
        parse(format!("[{}]", items.join(",")).as_bytes()).unwrap()
    }

    #[test]
    fn elements_are_found_wherever_one_looks_and_soon() {
        let arrays: Vec<JsonbBuf> = (0..6).map(|n| array(1000, n * 10_000)).collect();
        let mut positions = Positions::default();
        let mut index = 0;
        for round in 0..3000 {
            // A walk that visits every position, forwards and back, in an array after another.
            index = (index + 617) % 1003;
            let which = round % arrays.len();
            let found = positions.get(arrays[which].view().as_array().unwrap(), index).0.and_then(JsonbRef::as_i64);
            assert_eq!(found, (index < 1000).then_some((which * 10_000 + index) as i64), "{which} at {index}");
        }
        // In order, all elements of one array together cost little more than one walk.
        let long = array(100_000, 0);
        let long = long.view().as_array().unwrap();
        let stepped: usize = (0..100_000).map(|i| positions.get(long, i).1).sum();
        assert!(stepped < 100_000 * STRIDE, "{stepped}");
        let (rest, _) = positions.from(long, 99_990);
        assert_eq!(rest.filter_map(JsonbRef::as_i64).collect::<Vec<_>>(), (99_990..100_000).collect::<Vec<_>>());
    }
}
