//! Ranges of an index's keys, as bytes: from a lowest one on, up to where another begins.
//!
//! Keys are the keys of fields one behind the other, and none is the beginning of another. So everything that begins
//! with some bytes is a range too, and every range is half open.

use std::ops::Bound;

/// Keys from `low` on, below `high`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyRange {
    /// The first that may be in it.
    pub from: Vec<u8>,
    /// The first that is beyond it; none: there is no end.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    pub(crate) fn all() -> Self {
        Self { from: Vec::new(), to: None }
    }

    /// All keys that begin with `prefix`; a whole key is itself alone.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        Self { from: prefix.to_vec(), to: successor(prefix) }
    }

    /// Whether there can be nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| self.from >= *to)
    }

    /// Its lower bound.
    pub(crate) fn low(&self) -> Bound<&[u8]> {
        Bound::Included(&self.from)
    }

    /// Its upper bound.
    pub(crate) fn high(&self) -> Bound<&[u8]> {
        self.to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(to))
    }

    /// Whether a key is in it.
    #[cfg(test)]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_ref().is_none_or(|to| key < to.as_slice())
    }

    /// Whether it has something in common with the keys from `first` to `last`.
    pub(crate) fn overlaps(&self, first: &[u8], last: &[u8]) -> bool {
        last >= self.from.as_slice() && self.to.as_ref().is_none_or(|to| first < to.as_slice())
    }

    /// What is in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let from = self.from.clone().max(other.from.clone());
        let to = match (&self.to, &other.to) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (a, b) => a.as_ref().or(b.as_ref()).cloned(),
        };
        Self { from, to }
    }

    /// The same range of a field whose larger values come first: every byte of a key is inverted there.
    pub(crate) fn inverted(&self) -> Self {
        let invert = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
        let from = self.to.as_ref().map_or(Some(Vec::new()), |to| successor(&invert(to)));
        let to = if self.from.is_empty() { None } else { successor(&invert(&self.from)) };
        // Above everything there is nothing: such a range is empty.
        from.map_or(Self { from: Vec::new(), to: Some(Vec::new()) }, |from| Self { from, to })
    }

    /// It behind the bytes that the fields before it have.
    pub(crate) fn behind(&self, prefix: &[u8]) -> Self {
        let join = |rest: &[u8]| [prefix, rest].concat();
        let to = self.to.as_ref().map_or_else(|| successor(prefix), |to| Some(join(to)));
        Self { from: join(&self.from), to }
    }
}

/// The least bytes above everything that begins with `prefix`; none where there are none.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut next = prefix[..=kept].to_vec();
    next[kept] += 1;
    Some(next)
}

/// Puts ranges in order, those that meet as one, empty ones left out.
pub(crate) fn normalize(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable();
    let mut out: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(KeyRange { to: None, .. }) => break,
            Some(KeyRange { to: Some(to), .. }) if *to >= range.from => {
                *to = match range.to {
                    Some(end) => end.max(std::mem::take(to)),
                    None => {
                        let from = out.pop().map_or(Vec::new(), |last| last.from);
                        out.push(KeyRange { from, to: None });
                        break;
                    }
                };
            }
            _ => out.push(range),
        }
    }
    out
}

/// What is in both of two lists of ranges that are in order.
pub(crate) fn intersect(a: &[KeyRange], b: &[KeyRange]) -> Vec<KeyRange> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while let (Some(one), Some(other)) = (a.get(i), b.get(j)) {
        let both = one.and(other);
        if !both.is_empty() {
            out.push(both);
        }
        let one_first = match (&one.to, &other.to) {
            (Some(x), Some(y)) => x <= y,
            (to, _) => to.is_some(),
        };
        if one_first { i += 1 } else { j += 1 }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: &[u8], to: Option<&[u8]>) -> KeyRange {
        KeyRange { from: from.to_vec(), to: to.map(<[u8]>::to_vec) }
    }

    /// All keys of two bytes, so that none is the beginning of another.
    fn keys() -> impl Iterator<Item = [u8; 2]> {
        (0..=255_u8).flat_map(|a| [0, 1, 7, 254, 255].into_iter().map(move |b| [a, b]))
    }

    #[test]
    fn an_inverted_range_holds_the_inverted_keys() {
        let bounds: [&[u8]; 9] = [&[], &[0], &[3], &[3, 7], &[3, 8], &[255], &[255, 255], &[0, 0], &[254, 255]];
        for from in bounds {
            for to in bounds.map(Some).into_iter().chain([None]) {
                let one = range(from, to);
                let inverted = one.inverted();
                for key in keys() {
                    let other = [!key[0], !key[1]];
                    assert_eq!(one.contains(&key), inverted.contains(&other), "{one:?} {inverted:?} {key:?}");
                }
            }
        }
    }

    #[test]
    fn lists_are_joined_and_intersected() {
        let list = normalize(vec![
            range(&[5], Some(&[7])),
            range(&[1], Some(&[2])),
            range(&[6], Some(&[9])),
            range(&[9], None),
        ]);
        assert_eq!(list, [range(&[1], Some(&[2])), range(&[5], None)]);
        let other = [range(&[0], Some(&[1, 5])), range(&[6], Some(&[6, 1])), range(&[8], None)];
        let both = intersect(&list, &other);
        assert_eq!(both, [range(&[1], Some(&[1, 5])), range(&[6], Some(&[6, 1])), range(&[8], None)]);
        for key in keys() {
            let inside = |list: &[KeyRange]| list.iter().any(|range| range.contains(&key));
            assert_eq!(inside(&both), inside(&list) && inside(&other));
        }
        assert_eq!(range(&[1], Some(&[2])).behind(&[9]), range(&[9, 1], Some(&[9, 2])));
        assert_eq!(KeyRange::all().behind(&[9, 255]), range(&[9, 255], Some(&[10])));
    }
}
