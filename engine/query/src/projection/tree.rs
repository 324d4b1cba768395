//! A parsed projection as a tree of names.
//!
//! Made by `parse.rs`, walked by `apply.rs`. Knows nothing of documents.

use crate::QueryError;
use crate::computed::Computed;
use crate::filter::Test;
use hashbrown::HashMap;

/// What becomes of one field.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// It stays.
    Include,
    /// It goes.
    Exclude,
    /// Its own fields are told apart.
    Tree(Tree),
    /// Of an array, a stretch.
    Slice(Slice),
    /// Of an array, the first element that passes.
    ElemMatch(Box<Test>),
    /// Of the first array on the path, the element that the filter matched.
    Positional,
    /// It is the value of an expression.
    Computed(Computed),
}

/// A stretch of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Elements before it; counted from the end where negative. None: the stretch is at one end.
    pub(super) skip: Option<i64>,
    /// How many elements; from the end where negative, which only is without a skip.
    pub(super) limit: i64,
}

impl Slice {
    /// The positions of an array of `len` elements that it takes.
    pub(super) fn range(self, len: usize) -> std::ops::Range<usize> {
        let end = i64::try_from(len).unwrap_or(i64::MAX);
        let (from, count) = match self.skip {
            None if self.limit < 0 => (end.saturating_add(self.limit).max(0), end),
            None => (0, self.limit),
            Some(skip) if skip < 0 => (end.saturating_add(skip).max(0), self.limit),
            Some(skip) => (skip.min(end), self.limit),
        };
        let to = from.saturating_add(count).min(end);
        usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0)
    }
}

/// Fields by name, in the order of the projection.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    children: Vec<(Box<str>, Part)>,
    /// Where a name stands in `children`, kept only where there are many.
    index: HashMap<Box<str>, usize>,
    /// Whether something is computed in it, or picked by `$elemMatch`: both come after what merely stays.
    pub(super) computed: bool,
    /// Whether the positional operator stands at the end of a path in it.
    pub(super) positional: bool,
}

/// Children up to here are found by looking at each.
const CHILDREN_SCANNED_MAX: usize = 8;

impl Tree {
    pub(super) fn children(&self) -> &[(Box<str>, Part)] {
        &self.children
    }

    /// The child of a name and its position among the children.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<(usize, &Part)> {
        if self.children.len() <= CHILDREN_SCANNED_MAX {
            return self.children.iter().enumerate().find(|(_, (n, _))| n.as_bytes() == name).map(|(i, (_, p))| (i, p));
        }
        let name = std::str::from_utf8(name).ok()?;
        self.index.get(name).and_then(|&i| self.children.get(i).map(|(_, part)| (i, part)))
    }

    /// Puts a part at the end of a path.
    ///
    /// # Errors
    /// 31249 and 31250 where the path, or one before it, is taken.
    pub(super) fn insert(&mut self, path: &str, part: Part) -> Result<(), QueryError> {
        let mut here = self;
        let mut rest = path;
        loop {
            here.computed |= matches!(part, Part::Computed(_) | Part::ElemMatch(_));
            here.positional |= matches!(part, Part::Positional);
            let (name, remaining) = rest.split_once('.').map_or((rest, None), |(name, more)| (name, Some(more)));
            let at = here.find(name.as_bytes()).map(|(at, _)| at);
            let Some(remaining) = remaining else {
                if at.is_some() {
                    return Err(QueryError::location(31250, format!("Path collision at {path}")));
                }
                here.push(name, part);
                return Ok(());
            };
            let at = at.unwrap_or_else(|| here.push(name, Part::Tree(Tree::default())));
            match here.children.get_mut(at) {
                Some((_, Part::Tree(tree))) => (here, rest) = (tree, remaining),
                _ => {
                    let message = format!("Path collision at {path} remaining portion {remaining}");
                    return Err(QueryError::location(31249, message));
                }
            }
        }
    }

    fn push(&mut self, name: &str, part: Part) -> usize {
        self.children.push((name.into(), part));
        if self.children.len() > CHILDREN_SCANNED_MAX {
            let known = self.index.len();
            let new = self.children.iter().enumerate().skip(known).map(|(i, (n, _))| (n.clone(), i));
            self.index.extend(new.collect::<Vec<_>>());
        }
        self.children.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_takes_what_mongodb_takes() {
        let of = |skip, limit| Slice { skip, limit }.range(5);
        assert_eq!(of(None, 2), 0..2);
        assert_eq!(of(None, 9), 0..5);
        assert_eq!(of(None, 0), 0..0);
        assert_eq!(of(None, -2), 3..5);
        assert_eq!(of(None, -9), 0..5);
        assert_eq!(of(None, i64::MIN), 0..5);
        assert_eq!(of(Some(1), 2), 1..3);
        assert_eq!(of(Some(4), i64::MAX), 4..5);
        assert_eq!(of(Some(9), 2), 5..5);
        assert_eq!(of(Some(-3), 2), 2..4);
        assert_eq!(of(Some(-9), 2), 0..2);
        assert_eq!(of(Some(i64::MIN), 2), 0..2);
    }

    #[test]
    fn names_are_found_however_many_there_are() {
        let mut tree = Tree::default();
        for i in 0..40 {
            assert!(tree.insert(&format!("f{i}.x"), Part::Include).is_ok());
            assert!(tree.insert(&format!("f{i}.y"), Part::Include).is_ok());
        }
        for i in 0..40 {
            assert!(
                matches!(tree.find(format!("f{i}").as_bytes()), Some((at, Part::Tree(t))) if at == i && t.children().len() == 2)
            );
        }
        assert!(tree.find(b"f40").is_none());
        assert_eq!(tree.insert("f7", Part::Include).map_err(|e| e.code()), Err(31250));
        assert_eq!(tree.insert("f7.x.y", Part::Include).map_err(|e| e.code()), Err(31249));
    }
}
