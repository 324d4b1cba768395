//! What the names of the last object at each depth were ordered like, so that objects of one shape are not sorted anew.
//!
//! Takes the names of a finished object; puts them in the directory's order. What is remembered is only tried: it is
//! taken where the names are then in strict order, so a wrong memory costs time and nothing else. Used by `builder.rs`.

use crate::directory::{NameKey, compare_names, sort_names};
use crate::error::Error;

/// Fewer names are sorted faster than looked up.
const NAMES_MIN: usize = 8;
/// More names are not remembered: a bound on memory.
const NAMES_MAX: usize = 4096;
/// Deeper objects are not remembered: a bound on memory.
const DEPTH_MAX: usize = 16;

/// By depth the places, before sorting, of the names in their order.
#[derive(Debug, Default)]
pub(crate) struct KnownOrders {
    by_depth: Vec<Vec<u16>>,
    sorted: Vec<NameKey>,
}

impl KnownOrders {
    /// Orders `names` as `sort_names` does.
    #[inline]
    pub(crate) fn sort(&mut self, depth: usize, names: &mut [NameKey], entries: &[u8]) -> Result<(), Error> {
        if !(NAMES_MIN..=NAMES_MAX).contains(&names.len()) || depth > DEPTH_MAX {
            return sort_names(names, entries);
        }
        if self.by_depth.len() <= depth {
            self.by_depth.resize(depth + 1, Vec::new());
        }
        if self.by_depth[depth].len() == names.len() && self.fits(depth, names, entries) {
            names.copy_from_slice(&self.sorted);
            return Ok(());
        }
        let order = &mut self.by_depth[depth];
        order.clear();
        order.extend(0..names.len() as u16);
        order.sort_unstable_by(|&a, &b| compare_names(names[usize::from(a)], names[usize::from(b)], entries));
        if self.fits(depth, names, entries) {
            names.copy_from_slice(&self.sorted);
            return Ok(());
        }
        // A name stands twice: the words for it are there.
        sort_names(names, entries)
    }

    /// Whether the order remembered puts `names` in strict order; leaves them so in `sorted`.
    #[inline]
    fn fits(&mut self, depth: usize, names: &[NameKey], entries: &[u8]) -> bool {
        self.sorted.clear();
        self.sorted.extend(self.by_depth[depth].iter().filter_map(|&i| names.get(usize::from(i)).copied()));
        self.sorted.len() == names.len()
            && self.sorted.windows(2).all(|pair| compare_names(pair[0], pair[1], entries).is_lt())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Builder, ErrorKind, JsonbRef};

    fn write(b: &mut Builder, names: &[String]) -> Result<(), crate::Error> {
        b.begin_object();
        for (i, name) in names.iter().enumerate() {
            b.field(name);
            b.int32(i as i32);
        }
        b.end_object()
    }

    #[test]
    fn a_builder_that_remembers_writes_what_a_new_one_does() {
        let names = |n: usize, text: &str| -> Vec<_> { (0..n).map(|i| format!("{text} {}", (i * 37) % n)).collect() };
        let shapes = [
            names(10, "a"),
            names(10, "a"),
            names(10, "another text"),
            names(9, "a"),
            names(100, "z"),
            names(100, "z"),
        ];
        let mut b = Builder::new();
        for names in shapes.iter().chain(&shapes) {
            let from = b.len();
            write(&mut b, names).expect("names differ");
            let mut new = Builder::new();
            write(&mut new, names).expect("names differ");
            assert_eq!(&b.bytes()[from..], new.bytes());
            let sorted: Vec<_> = JsonbRef::from_valid(new.bytes()).as_object().expect("object").iter_sorted().collect();
            let keys: Vec<_> = sorted.iter().map(|e| (e.name().len(), e.name())).collect();
            assert!(keys.is_sorted_by(|a, b| a < b) && keys.len() == names.len(), "{keys:?}");
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_found_where_the_order_is_remembered() {
        let mut b = Builder::new();
        let mut names: Vec<_> = (0..12).map(|i| format!("name {i}")).collect();
        write(&mut b, &names).expect("names differ");
        names[3] = names[7].clone();
        let len = b.len();
        assert_eq!(write(&mut b, &names).expect_err("repeated").kind(), ErrorKind::RepeatedKey);
        b.rewind(len);
        names[3] = "other".into();
        write(&mut b, &names).expect("names differ");
    }
}
