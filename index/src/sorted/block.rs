//! Ascending byte keys in blocks of 16: the first of a block whole, each other by what it shares with the one before.
//!
//! Keys may repeat. It knows nothing of what belongs to a key; dictionaries, postings and sorted runs number them 0.. .

use std::cmp::Ordering;

use crate::error::{Error, Result, corrupt};
use crate::format::{put_varint, read_u32, slice, take, take_varint, to_u32};

/// Keys of a block.
pub(crate) const BLOCK_KEYS: usize = 16;
/// Keys of one sequence at most.
pub(crate) const KEYS_MAX: usize = 1 << 28;
/// Bytes of one key at most: more than a document may have.
pub(crate) const KEY_BYTES_MAX: usize = 1 << 25;
const HEAD_BYTES: usize = 4;

/// Appends keys one by one.
#[derive(Debug, Default)]
pub(crate) struct KeysWriter {
    offsets: Vec<u8>,
    data: Vec<u8>,
    last: Vec<u8>,
    count: usize,
}

impl KeysWriter {
    /// Appends a key that is not below the one before; whether it equals that.
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<bool> {
        if self.count >= KEYS_MAX || key.len() > KEY_BYTES_MAX {
            return Err(Error::TooLarge { what: "a key or their number" });
        }
        let shared = common(&self.last, key);
        let follows = match (self.last.get(shared), key.get(shared)) {
            (Some(last), Some(next)) => last < next,
            (last, _) => last.is_none(),
        };
        if self.count > 0 && !follows {
            return Err(Error::Misuse { what: "keys ascend" });
        }
        let same = self.count > 0 && shared == key.len() && shared == self.last.len();
        if self.count.is_multiple_of(BLOCK_KEYS) {
            self.offsets.extend(to_u32(self.data.len())?.to_le_bytes());
            put_varint(to_u32(key.len())?, &mut self.data);
            self.data.extend(key);
        } else {
            put_varint(to_u32(shared)?, &mut self.data);
            put_varint(to_u32(key.len() - shared)?, &mut self.data);
            self.data.extend(&key[shared..]);
        }
        if !same {
            self.last.truncate(shared);
            self.last.extend_from_slice(&key[shared..]);
        }
        self.count += 1;
        Ok(same)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Appends the last key once more.
    pub(crate) fn push_again(&mut self) -> Result<()> {
        if self.count == 0 || self.count >= KEYS_MAX {
            return Err(Error::Misuse { what: "a key that comes again came before" });
        }
        if self.count.is_multiple_of(BLOCK_KEYS) {
            let last = std::mem::take(&mut self.last);
            let pushed = self.push(&last).map(drop);
            self.last = last;
            return pushed;
        }
        put_varint(to_u32(self.last.len())?, &mut self.data);
        self.data.push(0);
        self.count += 1;
        Ok(())
    }

    /// Appends the keys of another, none of them below the last one here; whether its first equals that. Only whole blocks
    /// may be here.
    pub(crate) fn append(&mut self, mut other: Self) -> Result<bool> {
        let whole = self.count.is_multiple_of(BLOCK_KEYS) && self.count + other.count <= KEYS_MAX;
        let mut rest = other.data.as_slice();
        let first = take_varint(&mut rest).and_then(|len| take(&mut rest, len as usize)).unwrap_or_default();
        let order = self.last.as_slice().cmp(first);
        if !whole || (self.count > 0 && other.count > 0 && order == Ordering::Greater) {
            return Err(Error::Misuse { what: "keys ascend, in whole blocks" });
        }
        let same = self.count > 0 && other.count > 0 && order == Ordering::Equal;
        let moved = to_u32(self.data.len())?;
        to_u32(self.data.len() + other.data.len())?;
        for at in other.offsets.as_chunks::<4>().0 {
            self.offsets.extend((u32::from_le_bytes(*at) + moved).to_le_bytes());
        }
        self.data.append(&mut other.data);
        if other.count > 0 {
            self.last = other.last;
        }
        self.count += other.count;
        Ok(same)
    }

    /// Bytes that `finish` appends.
    pub(crate) fn bytes(&self) -> usize {
        HEAD_BYTES + self.offsets.len() + self.data.len()
    }

    /// Appends what was pushed to `out`.
    pub(crate) fn finish(self, out: &mut Vec<u8>) -> Result<()> {
        out.extend(to_u32(self.count)?.to_le_bytes());
        out.extend(self.offsets);
        out.extend(self.data);
        Ok(())
    }
}

/// How many bytes both begin with.
fn common(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(x, y)| x == y).count() * 8;
    words + a[words..].iter().zip(&b[words..]).take_while(|(x, y)| x == y).count()
}

/// Keys where they lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys<'a> {
    offsets: &'a [u8],
    data: &'a [u8],
    count: usize,
}

impl<'a> Keys<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let count = read_u32(bytes, 0)? as usize;
        if count > KEYS_MAX {
            return Err(corrupt("fewer keys", 0));
        }
        let offsets = slice(bytes, HEAD_BYTES, count.div_ceil(BLOCK_KEYS) * 4)?;
        let data = &bytes[HEAD_BYTES + offsets.len()..];
        Ok(Self { offsets, data, count })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn block(&self, block: usize) -> Result<&'a [u8]> {
        let from = read_u32(self.offsets, block * 4)? as usize;
        let to = read_u32(self.offsets, block * 4 + 4).map_or(self.data.len(), |to| to as usize);
        self.data.get(from..to).ok_or(corrupt("a block of keys", block * 4))
    }

    fn first_of(&self, block: usize) -> Result<&'a [u8]> {
        let mut rest = self.block(block)?;
        take_varint(&mut rest).and_then(|len| take(&mut rest, len as usize)).ok_or(corrupt("a whole key", block * 4))
    }

    /// From key `index` on.
    pub(crate) fn cursor(&self, index: usize) -> Result<Cursor<'a>> {
        let index = index.min(self.count);
        let block = index / BLOCK_KEYS;
        let mut cursor = Cursor { keys: *self, next: block * BLOCK_KEYS, rest: &[], key: Vec::new() };
        while cursor.next < index {
            cursor.step()?;
        }
        Ok(cursor)
    }

    /// Key `index` in place of what `out` held.
    pub(crate) fn get(&self, index: usize, out: &mut Vec<u8>) -> Result<()> {
        if index >= self.count {
            return Err(corrupt("a key of this number", index));
        }
        if index.is_multiple_of(BLOCK_KEYS) {
            out.clear();
            out.extend(self.first_of(index / BLOCK_KEYS)?);
            return Ok(());
        }
        let mut cursor = self.cursor(index)?;
        cursor.step()?;
        *out = cursor.key;
        Ok(())
    }

    /// How many keys are below `key` (or, `with_equal`, not above it).
    pub(crate) fn rank(&self, key: &[u8], with_equal: bool) -> Result<usize> {
        let below = |other: &[u8]| match other.cmp(key) {
            Ordering::Less => true,
            Ordering::Equal => with_equal,
            Ordering::Greater => false,
        };
        let (mut low, mut high) = (0, self.offsets.len() / 4);
        while low < high {
            let middle = low + (high - low) / 2;
            if below(self.first_of(middle)?) { low = middle + 1 } else { high = middle }
        }
        let Some(block) = low.checked_sub(1) else { return Ok(0) };
        let mut cursor = self.cursor(block * BLOCK_KEYS)?;
        let end = ((block + 1) * BLOCK_KEYS).min(self.count);
        while cursor.next < end {
            cursor.step()?;
            if !below(&cursor.key) {
                return Ok(cursor.next - 1);
            }
        }
        Ok(end)
    }

    /// The number of the first key equal to `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<usize>> {
        let index = self.rank(key, false)?;
        if index >= self.count {
            return Ok(None);
        }
        let mut found = Vec::new();
        self.get(index, &mut found)?;
        Ok((found == key).then_some(index))
    }

    /// Whether all keys can be read and ascend. Costs a pass.
    pub(crate) fn check(&self, distinct: bool) -> Result<()> {
        let mut cursor = self.cursor(0)?;
        let mut last: Option<Vec<u8>> = None;
        for index in 0..self.count {
            cursor.step()?;
            if last.as_ref().is_some_and(|last| *last > cursor.key || (distinct && *last == cursor.key)) {
                return Err(corrupt("ascending keys", index));
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend(&cursor.key);
            if (index + 1 == self.count || (index + 1) % BLOCK_KEYS == 0) && !cursor.rest.is_empty() {
                return Err(corrupt("the end of a block of keys", index));
            }
        }
        Ok(())
    }
}

/// Keys in order.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    keys: Keys<'a>,
    next: usize,
    rest: &'a [u8],
    key: Vec<u8>,
}

impl Cursor<'_> {
    fn step(&mut self) -> Result<()> {
        let broken = corrupt("a whole key", self.next);
        let shared = if self.next.is_multiple_of(BLOCK_KEYS) {
            self.rest = self.keys.block(self.next / BLOCK_KEYS)?;
            0
        } else {
            take_varint(&mut self.rest).ok_or(broken.clone())? as usize
        };
        let suffix = take_varint(&mut self.rest).and_then(|len| take(&mut self.rest, len as usize));
        let suffix = suffix.ok_or(broken.clone())?;
        if shared > self.key.len() || shared + suffix.len() > KEY_BYTES_MAX {
            return Err(broken);
        }
        self.key.truncate(shared);
        self.key.extend(suffix);
        self.next += 1;
        Ok(())
    }

    /// The next key and its number.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, &[u8])>> {
        if self.next >= self.keys.count {
            return Ok(None);
        }
        self.step()?;
        Ok(Some((self.next - 1, &self.key)))
    }
}
