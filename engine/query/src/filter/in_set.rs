//! The values of one `$in`: found by hash, however many they are.
//!
//! Takes the array of the body; answers in constant time whether a value equals one of them. Whole numbers are held as
//! int64, strings as bytes, everything else by its `sort_key`, which equal values share. Regular expressions among them
//! are tried one by one.

use super::pattern::Pattern;
use crate::byte_set::ByteSet;
use crate::number::whole_i64;
use crate::path_walk::Candidate;
use hashbrown::HashSet;
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind, sort_key};
use std::cell::RefCell;

/// The values of one `$in`.
#[derive(Clone, Debug)]
pub struct InSet {
    list: JsonbBuf,
    patterns: Vec<Pattern>,
    null: bool,
    ints: HashSet<i64>,
    texts: ByteSet,
    keys: ByteSet,
}

thread_local! {
    /// The `sort_key` being looked for, so that looking allocates nothing.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl InSet {
    /// Takes the array `list`; `patterns` are the regular expressions in it, compiled.
    #[must_use]
    pub(crate) fn new(list: JsonbRef<'_>, patterns: Vec<Pattern>) -> Self {
        let mut set = Self {
            list: JsonbBuf::from_valid(list.as_bytes().to_vec()),
            patterns,
            null: false,
            ints: HashSet::new(),
            texts: ByteSet::default(),
            keys: ByteSet::default(),
        };
        set.add_all(|value| value.kind() != Kind::Regex);
        set
    }

    /// The values of an array, regular expressions as values like any other.
    #[must_use]
    pub(crate) fn of_values(list: JsonbRef<'_>) -> Self {
        let mut set = Self::new(list, Vec::new());
        set.add_all(|value| value.kind() == Kind::Regex);
        set
    }

    fn add_all(&mut self, which: impl Fn(JsonbRef<'_>) -> bool) {
        let Self { list, null, ints, texts, keys, .. } = self;
        let mut key = Vec::new();
        for value in list.view().as_array().into_iter().flatten().filter(|v| which(*v)) {
            match value.kind() {
                Kind::Null => *null = true,
                Kind::String => {
                    texts.insert(value.as_str_bytes().unwrap_or_default());
                }
                _ => match whole_i64(value) {
                    Some(n) => {
                        ints.insert(n);
                    }
                    None => {
                        key.clear();
                        sort_key(value, &mut key);
                        keys.insert(&key);
                    }
                },
            }
        }
    }

    /// The values as they were written, regular expressions among them.
    pub fn values(&self) -> impl Iterator<Item = JsonbRef<'_>> {
        self.list.view().as_array().into_iter().flatten()
    }

    /// Whether it holds nothing but values to be equal to.
    #[must_use]
    pub fn has_no_pattern(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether null is among the values, so that what is missing passes too.
    #[must_use]
    pub fn has_null(&self) -> bool {
        self.null
    }

    /// Whether a candidate equals one of the values; the regular expressions are the caller's to try.
    #[must_use]
    pub(crate) fn test(&self, candidate: Candidate<'_>) -> bool {
        let Some(value) = candidate else { return self.null };
        match value.kind() {
            Kind::Null => self.null,
            Kind::String => self.texts.contains(value.as_str_bytes().unwrap_or_default()),
            _ => match whole_i64(value) {
                Some(n) => self.ints.contains(&n),
                None => self.has_key_of(value),
            },
        }
    }

    /// The regular expressions among the values.
    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    fn has_key_of(&self, value: JsonbRef<'_>) -> bool {
        !self.keys.is_empty()
            && SCRATCH.with_borrow_mut(|key| {
                key.clear();
                sort_key(value, key);
                self.keys.contains(key)
            })
    }
}
