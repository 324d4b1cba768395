//! Which rows of one segment are dead, and since when: the part of a segment that changes.
//!
//! A bitmap of rows that are dead for every snapshot there can be, and a list of recent (row, `Seq`) for the others;
//! `fold` moves from the list to the bitmap what no snapshot is older than. Written whole to `del-<segment>-<n>.qdel`
//! before the log that names the deletes goes. Takes rows and `Seq`s; that a row dies by an update or a delete is not
//! its business.
//!
//! ```text
//! magic 8 | version u32 | zeros u32 | segment u64 | up to seq u64 | folded at seq u64 | recent u32 | bitmap length u32 |
//! bitmap (portable roaring) | recent: row u32, seq u64 each | crc32c of all before u32
//! ```

use crate::ids::{RowId, SegmentId, Seq};
use crate::io::fields::{Fields, PutFields};
use crate::{Error, ErrorKind, Result};
use parking_lot::RwLock;
use roaring::RoaringBitmap;
use std::collections::HashMap;

const MAGIC: [u8; 8] = *b"QUARDEL\n";
const VERSION: u32 = 0;
const FIXED_BYTES: usize = 48;
const CRC_BYTES: usize = 4;
const RECENT_BYTES: usize = 12;

/// Dead rows of one segment; shared by all threads.
#[derive(Debug)]
pub struct Deletes {
    segment: SegmentId,
    rows: u32,
    state: RwLock<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Dead for every snapshot at or after `folded`.
    base: RoaringBitmap,
    folded: Seq,
    /// In the order of their `Seq`s; after `folded`.
    recent: Vec<(RowId, Seq)>,
    /// The same by row.
    since: HashMap<u32, Seq>,
    /// What is after it is not folded.
    held: Option<Seq>,
}

/// Dead rows as of one moment.
#[derive(Clone, Debug)]
pub struct DeadRows {
    /// Dead for every snapshot there is or will be.
    pub forever: RoaringBitmap,
    /// The others, with when they died, in the order of commits.
    pub since: Vec<(RowId, Seq)>,
}

impl Deletes {
    /// No row of a segment of `rows` rows is dead.
    #[must_use]
    pub fn new(segment: SegmentId, rows: u32) -> Self {
        Self { segment, rows, state: RwLock::default() }
    }

    /// The segment it speaks of.
    #[must_use]
    pub fn segment(&self) -> SegmentId {
        self.segment
    }

    /// Lets `row` be dead from `seq` on. Calls come in the order of commits. `false`: it was dead already, and stays so
    /// since the earlier commit (replaying a log changes nothing).
    ///
    /// # Panics
    /// When the segment has no such row, or `seq` is before one marked earlier: writing it down would lose a row.
    pub fn mark(&self, row: RowId, seq: Seq) -> bool {
        assert!(row.get() < self.rows, "{} has no {row}", self.segment);
        let mut state = self.state.write();
        if state.base.contains(row.get()) || state.since.contains_key(&row.get()) {
            return false;
        }
        let last = state.recent.last().map_or(state.folded, |(_, last)| *last);
        assert!(seq >= last, "deletes are marked in the order of commits: {seq} after {last}");
        state.recent.push((row, seq));
        state.since.insert(row.get(), seq);
        true
    }

    /// Whether `row` is dead for a snapshot at `at`.
    #[must_use]
    pub fn is_dead(&self, row: RowId, at: Seq) -> bool {
        let state = self.state.read();
        state.base.contains(row.get()) || state.since.get(&row.get()).is_some_and(|since| *since <= at)
    }

    /// Whether no row is dead for anybody: the usual case, asked first.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let state = self.state.read();
        state.base.is_empty() && state.recent.is_empty()
    }

    /// The rows dead for a snapshot at `at`, which must not be before the last `fold`'s horizon.
    #[must_use]
    pub fn dead_at(&self, at: Seq) -> RoaringBitmap {
        let state = self.state.read();
        let mut dead = state.base.clone();
        dead.extend(state.recent_at(at).iter().map(|(row, _)| row.get()));
        dead
    }

    /// How many of them there are; copies nothing.
    #[must_use]
    pub fn count_dead_at(&self, at: Seq) -> u64 {
        let state = self.state.read();
        state.base.len() + state.recent_at(at).len() as u64
    }

    /// Rows that died after `after`, in the order of commits: what a compaction that read at `after`, and
    /// held that, applies again.
    #[must_use]
    pub fn marked_after(&self, after: Seq) -> Vec<(RowId, Seq)> {
        let state = self.state.read();
        state.recent[state.recent_at(after).len()..].to_vec()
    }

    /// The rows that died at or before `at`.
    #[must_use]
    pub fn as_of(&self, at: Seq) -> DeadRows {
        let state = self.state.read();
        DeadRows { forever: state.base.clone(), since: state.recent_at(at).to_vec() }
    }

    /// Keeps since when rows are dead that died after `after`, until `let_go`: for who asks for them later on.
    pub fn hold(&self, after: Seq) {
        self.state.write().held = Some(after);
    }

    /// Ends `hold`.
    pub fn let_go(&self) {
        self.state.write().held = None;
    }

    /// Forgets since when rows are dead whose `Seq` is at or below `horizon`: no snapshot is older.
    pub fn fold(&self, horizon: Seq) {
        let mut state = self.state.write();
        let horizon = state.held.map_or(horizon, |held| held.min(horizon));
        let folded = state.recent_at(horizon).len();
        if folded > 0 {
            let rows: Vec<u32> = state.recent.drain(..folded).map(|(row, _)| row.get()).collect();
            for row in &rows {
                state.since.remove(row);
            }
            state.base.extend(rows);
        }
        state.folded = state.folded.max(horizon);
    }

    /// How many entries `fold` could still take.
    #[must_use]
    pub fn recent_len(&self) -> usize {
        self.state.read().recent.len()
    }

    /// The file's bytes: what died at or before `up_to`.
    #[must_use]
    pub fn encode(&self, up_to: Seq) -> Vec<u8> {
        let state = self.state.read();
        let recent = state.recent_at(up_to);
        let mut bitmap = Vec::with_capacity(state.base.serialized_size());
        state.base.serialize_into(&mut bitmap).expect("writing to memory cannot fail");
        let mut out = Vec::with_capacity(FIXED_BYTES + bitmap.len() + recent.len() * RECENT_BYTES + CRC_BYTES);
        out.extend_from_slice(&MAGIC);
        out.put_u32(VERSION);
        out.put_u32(0);
        out.put_u64(self.segment.get());
        out.put_u64(up_to.get());
        out.put_u64(state.folded.get());
        out.put_u32(u32::try_from(recent.len()).expect("a row dies once, and a segment has at most ROWS_MAX"));
        out.put_u32(u32::try_from(bitmap.len()).expect("a bitmap of ROWS_MAX rows takes some 130 KiB"));
        assert!(out.len() == FIXED_BYTES, "the fixed part takes what the format says");
        out.extend_from_slice(&bitmap);
        for (row, seq) in recent {
            out.put_u32(row.get());
            out.put_u64(seq.get());
        }
        let crc = crc32c::crc32c(&out);
        out.put_u32(crc);
        out
    }

    /// Reads a file's bytes; `segment` has `rows` rows. Gives up to which `Seq` it speaks, too.
    ///
    /// # Errors
    /// `Corrupt` with file and offset, `UnsupportedVersion`.
    pub fn decode(file: &str, bytes: &[u8], segment: SegmentId, rows: u32) -> Result<(Self, Seq)> {
        let Some((body, crc)) = bytes.split_last_chunk::<CRC_BYTES>() else {
            return Err(Error::corrupt(file, 0, "the file is too short for a list of dead rows"));
        };
        let mut fields = Fields::new(file, 0, body);
        let wrong = fields.corrupt("this is no list of dead rows");
        if fields.bytes(8)? != MAGIC {
            return Err(wrong);
        }
        let version = fields.u32()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(Error::corrupt(file, body.len() as u64, "the checksum is wrong"));
        }
        if version > VERSION {
            let message = format!("{file} is of format version {version}, this build reads up to {VERSION}");
            return Err(Error::new(ErrorKind::UnsupportedVersion, message));
        }
        fields.zeros(4)?;
        let of = fields.u64()?;
        if of != segment.get() {
            return Err(fields.corrupt(format_args!("it speaks of seg{of}, not of {segment}")));
        }
        let up_to = Seq::from_raw(fields.u64()?);
        let folded = Seq::from_raw(fields.u64()?);
        let count = fields.count(RECENT_BYTES)?;
        let base = decode_bitmap(&mut fields, rows)?;
        let mut state = State { base, folded, ..State::default() };
        for _ in 0..count {
            let at = fields.corrupt("a dead row is out of order, named twice or not there");
            let (row, seq) = (fields.u32()?, Seq::from_raw(fields.u64()?));
            let last = state.recent.last().map_or(Seq::default(), |(_, last)| *last);
            if row >= rows || seq < last || seq > up_to || state.base.contains(row) {
                return Err(at);
            }
            if state.since.insert(row, seq).is_some() {
                return Err(at);
            }
            state.recent.push((RowId::from_raw(row), seq));
        }
        fields.end()?;
        Ok((Self { segment, rows, state: RwLock::new(state) }, up_to))
    }
}

fn decode_bitmap(fields: &mut Fields<'_>, rows: u32) -> Result<RoaringBitmap> {
    let wrong = fields.corrupt("the bitmap of dead rows cannot be read or names rows that are not there");
    let bytes = fields.short_bytes()?;
    let mut rest = bytes;
    match RoaringBitmap::deserialize_from(&mut rest) {
        Ok(bitmap) if rest.is_empty() && bitmap.max().is_none_or(|row| row < rows) => Ok(bitmap),
        _ => Err(wrong),
    }
}

impl State {
    /// The recent ones at or before `at`: they are in order, so it is a first part.
    fn recent_at(&self, at: Seq) -> &[(RowId, Seq)] {
        &self.recent[..self.recent.partition_point(|(_, seq)| *seq <= at)]
    }
}

/// `del-7-3.qdel`: the third list of segment 7.
#[must_use]
pub fn delete_file_name(segment: SegmentId, number: u64) -> String {
    format!("del-{}-{number}.qdel", segment.get())
}

/// The numbers in the name of a list of dead rows.
#[must_use]
pub fn parse_delete_file_name(name: &str) -> Option<(SegmentId, u64)> {
    let (segment, number) = name.strip_prefix("del-")?.strip_suffix(".qdel")?.split_once('-')?;
    let parsed = (SegmentId::from_raw(segment.parse().ok()?), number.parse().ok()?);
    (delete_file_name(parsed.0, parsed.1) == name).then_some(parsed)
}

#[cfg(test)]
#[path = "deletes_tests.rs"]
mod tests;
