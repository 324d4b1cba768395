//! A number for the value that each row has at a path, small where there are few values: what groups are told apart by
//! within one run of columns. Code 0 is no value, 1 null.
//!
//! The same value of the same type has the same code. Equal values of different types (1 and 1.0) have one where that is
//! asked for: that of the first that came.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use quarrydb_index::column::{Lane, Value, WINDOW_ROWS, Window};
use quarrydb_index::{RowId, RowSet};
use quarrydb_jsonb::{Builder, JsonbRef, sort_key};

use super::extremes::BELOW_ZERO;
use crate::columns::value::{Tag, scalar_of};
use crate::exec::plain::Plain;

/// No value.
pub(super) const MISSING: u32 = 0;
/// Null.
pub(super) const NULL: u32 = 1;
/// The first code of a value.
pub(super) const FIRST: u32 = 2;
/// Keys from the least to the greatest up to which the code is the distance.
const DIRECT_SPAN_MAX: u64 = 1 << 16;
/// Rows of a window up to which each is looked up alone.
const FEW_ROWS: usize = 96;

/// The codes of one path in one run of columns.
#[derive(Debug)]
pub(super) struct Codes<'a> {
    lanes: Vec<LaneCodes<'a>>,
    nulls: Option<Vec<u64>>,
    next: u32,
    equal: Option<Equal>,
}

/// Which codes are of equal values.
#[derive(Debug, Default)]
struct Equal {
    /// The code that stands for a code.
    of: HashMap<u32, u32, DefaultHashBuilder>,
    /// The first code of each value, by its `sort_key`.
    first: HashMap<Vec<u8>, u32, DefaultHashBuilder>,
}

#[derive(Debug)]
struct LaneCodes<'a> {
    lane: Lane<'a>,
    tag: Tag,
    window: Window,
    how: How,
}

#[derive(Debug)]
enum How {
    /// The code is `base` and the distance of the key from `least`.
    Direct { base: u32, least: u64, span: u64 },
    /// Codes by key, and keys by code, in the order in which they came.
    Hashed(HashMap<u64, u32, DefaultHashBuilder>, Vec<(u32, u64)>),
    /// Raw strings: codes by row of the part from row `first` on, and the strings from code `base` on. They lie in packed
    /// blocks, each of which would have to be unpacked for one of them.
    Raw { codes: Vec<u32>, first: u32, base: u32, texts: Vec<Box<[u8]>> },
}

impl<'a> Codes<'a> {
    /// The codes of a path in the windows `windows`; none where columns do not have its values.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn new(plain: &Plain<'a>, windows: std::ops::Range<usize>) -> quarrydb_index::Result<Option<Self>> {
        let mut codes = Self { lanes: Vec::new(), nulls: None, next: FIRST, equal: None };
        let Plain::Column(data) = plain else { return Ok(Some(codes)) };
        let column = data.column()?;
        if column.null_count()? > 0 {
            codes.nulls = Some(column.nulls()?.to_dense(column.rows()).words().to_vec());
        }
        for lane in column.lanes()? {
            let Some(tag) = Tag::of(lane.tag()).filter(|tag| tag.is_exact()) else { return Ok(None) };
            let how = match lane.key_zone() {
                None if lane.has_windows() => continue,
                None => codes.raw(&lane, &windows)?,
                Some(_) if !lane.has_windows() => return Ok(None),
                Some((least, most)) if most - least < DIRECT_SPAN_MAX => {
                    let base = codes.next;
                    codes.next += (most - least) as u32 + 1;
                    How::Direct { base, least, span: most - least }
                }
                Some(_) => How::Hashed(HashMap::default(), Vec::new()),
            };
            codes.lanes.push(LaneCodes { lane, tag, window: Window::default(), how });
        }
        Ok(Some(codes))
    }

    /// Gives equal numbers of different types one code.
    pub(super) fn joining_equal(mut self) -> Self {
        let numbers = self.lanes.iter().filter(|lane| lane.tag.is_number()).count();
        // Of doubles 0.0 and -0.0 are equal.
        if numbers > 1 || self.lanes.iter().any(|lane| lane.tag == Tag::Double && lane.has_two_zeros()) {
            self.equal = Some(Equal::default());
        }
        self
    }

    /// Whether a code may stand for equal values of several types: which it is, a row tells.
    pub(super) fn is_joined(&self) -> bool {
        self.equal.is_some()
    }

    /// Reads raw strings whole: they lie in packed blocks, which windows would unpack again and again.
    fn raw(&mut self, lane: &Lane<'a>, windows: &std::ops::Range<usize>) -> quarrydb_index::Result<How> {
        let first = (windows.start * WINDOW_ROWS) as u32;
        let end = ((windows.end * WINDOW_ROWS) as u32).min(lane.presence().rows());
        let mut codes = vec![MISSING; end.saturating_sub(first) as usize];
        let (mut texts, mut known) = (Vec::<Box<[u8]>>::new(), HashTable::<u32>::new());
        let (base, hasher) = (self.next, DefaultHashBuilder::default());
        lane.for_rows(&RowSet::range(first..end), |row, value| {
            let Value::Bytes(bytes) = value else { return };
            let hash = hasher.hash_one(bytes);
            let text = |at: &u32| texts.get(*at as usize).map_or(&[][..], |text| text);
            let at = match known.find(hash, |at| text(at) == bytes) {
                Some(at) => *at,
                None => {
                    let at = texts.len() as u32;
                    known.insert_unique(hash, at, |at| hasher.hash_one(text(at)));
                    texts.push(bytes.into());
                    at
                }
            };
            if let Some(slot) = codes.get_mut((row.number() - first) as usize) {
                *slot = base + at;
            }
        })?;
        self.next = base + texts.len() as u32;
        Ok(How::Raw { codes, first, base, texts })
    }

    /// A number above all codes given so far, and, where it is small, above all that will be given.
    pub(super) fn bound(&self) -> Option<u32> {
        let grows = self.lanes.iter().any(|lane| matches!(lane.how, How::Hashed(..)));
        (!grows).then_some(self.next)
    }

    /// The codes of the picked rows of window `index`, by their place in the window.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn window(
        &mut self,
        index: usize,
        picks: &[u16],
        out: &mut [u32; WINDOW_ROWS],
    ) -> quarrydb_index::Result<()> {
        picks.iter().for_each(|&row| put(out, row, MISSING));
        if let Some(nulls) = &self.nulls {
            let words = nulls.get(index * (WINDOW_ROWS / 64)..).unwrap_or_default();
            for &row in picks {
                if words.get(usize::from(row) / 64).is_some_and(|word| word >> (row % 64) & 1 == 1) {
                    put(out, row, NULL);
                }
            }
        }
        let next = &mut self.next;
        for LaneCodes { lane, window, how, .. } in &mut self.lanes {
            match how {
                How::Raw { codes, first, .. } => {
                    let from = (index * WINDOW_ROWS).saturating_sub(*first as usize);
                    for &row in picks {
                        match codes.get(from + usize::from(row)) {
                            Some(&code) if code != MISSING => put(out, row, code),
                            _ => {}
                        }
                    }
                }
                How::Direct { base, least, span } => {
                    each_key(lane, index, picks, window, |row, key| {
                        put(out, row, *base + key.wrapping_sub(*least).min(*span) as u32);
                    })?;
                }
                How::Hashed(known, keys) => {
                    each_key(lane, index, picks, window, |row, key| {
                        let code = *known.entry(key).or_insert_with(|| {
                            let code = *next;
                            *next += 1;
                            keys.push((code, key));
                            code
                        });
                        put(out, row, code);
                    })?;
                }
            }
        }
        self.join_equal(picks, out)
    }

    fn join_equal(&mut self, picks: &[u16], out: &mut [u32; WINDOW_ROWS]) -> quarrydb_index::Result<()> {
        let Some(mut equal) = self.equal.take() else { return Ok(()) };
        let (mut buffer, mut builder, mut key) = (Vec::new(), Builder::new(), Vec::new());
        for &row in picks {
            let Some(code) = out.get_mut(usize::from(row)).filter(|code| **code >= FIRST) else { continue };
            if let Some(first) = equal.of.get(code) {
                *code = *first;
                continue;
            }
            builder.rewind(0);
            self.write(*code, &mut buffer, &mut builder)?;
            key.clear();
            sort_key(JsonbRef::from_valid(builder.bytes()), &mut key);
            let first = *equal.first.entry_ref(key.as_slice()).or_insert(*code);
            equal.of.insert(*code, first);
            *code = first;
        }
        self.equal = Some(equal);
        Ok(())
    }

    /// Appends the value of a code; nothing for [`MISSING`], as there is none.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn write(&self, code: u32, buffer: &mut Vec<u8>, out: &mut Builder) -> quarrydb_index::Result<bool> {
        if code == NULL {
            out.null();
            return Ok(true);
        }
        for LaneCodes { lane, tag, how, .. } in &self.lanes {
            let found = |list: &[(u32, u64)]| list.binary_search_by_key(&code, |(own, _)| *own).ok();
            match how {
                How::Direct { base, least, span } if code >= *base && u64::from(code - base) <= *span => {
                    let value = lane.value_of_key(least + u64::from(code - base), buffer)?;
                    return Ok(scalar_of(*tag, value, out));
                }
                How::Hashed(_, keys) => {
                    if let Some((_, key)) = found(keys).and_then(|at| keys.get(at)) {
                        return Ok(scalar_of(*tag, lane.value_of_key(*key, buffer)?, out));
                    }
                }
                How::Raw { base, texts, .. } => {
                    if let Some(text) = code.checked_sub(*base).and_then(|at| texts.get(at as usize)) {
                        return Ok(scalar_of(*tag, Value::Bytes(text), out));
                    }
                }
                How::Direct { .. } => {}
            }
        }
        Ok(false)
    }
}

impl LaneCodes<'_> {
    /// Whether it may have both 0.0 and -0.0, which only raw doubles do.
    fn has_two_zeros(&self) -> bool {
        self.lane.float_of_key(BELOW_ZERO) == 0.0
            && self.lane.key_zone().is_some_and(|(a, b)| a <= BELOW_ZERO && b > BELOW_ZERO)
    }
}

fn put(out: &mut [u32; WINDOW_ROWS], row: u16, code: u32) {
    if let Some(slot) = out.get_mut(usize::from(row)) {
        *slot = code;
    }
}

/// Calls `each` with the picked rows of a window that have a value, and its key.
pub(super) fn each_key(
    lane: &Lane<'_>,
    index: usize,
    picks: &[u16],
    window: &mut Window,
    mut each: impl FnMut(u16, u64),
) -> quarrydb_index::Result<()> {
    if picks.len() <= FEW_ROWS {
        for &row in picks {
            let at = RowId::at((index * WINDOW_ROWS) as u32 + u32::from(row));
            if let Some(key) = lane.key_of_row(at) {
                each(row, key);
            }
        }
        return Ok(());
    }
    lane.window(index, window)?;
    let (keys, present) = (window.keys(), window.present());
    if present.iter().all(|word| *word == u64::MAX) {
        for &row in picks {
            if let Some(key) = keys.get(usize::from(row)) {
                each(row, *key);
            }
        }
        return Ok(());
    }
    for &row in picks {
        let at = usize::from(row);
        if present.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
            && let Some(key) = keys.get(at)
        {
            each(row, *key);
        }
    }
    Ok(())
}
