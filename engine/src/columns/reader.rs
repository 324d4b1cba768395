//! The columns of one segment, or of a part of a tail: found by path, opened when first asked for.
//!
//! Sections are checked by the segment at their first touch and mapped; `quarrydb-index` reads them within their bounds
//! whatever they hold. A path that has no column is answered with the rows that may have it.

use quarrydb_index::RowSet;
use quarrydb_index::column::Column;
use quarrydb_index::postings::Postings;
use smallvec::SmallVec;
use std::sync::OnceLock;

use super::directory::{self, Directory};
use super::shred::Shredder;
use super::value::Tag;
use super::{KIND_COLUMN, KIND_DIRECTORY, KIND_POSTINGS, LANE_TAGS, bucket_of};
use crate::error::{Error, Result};
use crate::io::Section;
use crate::segment::Segment;

/// The columns of a run of rows.
#[derive(Debug)]
pub(crate) struct Columns {
    /// Who holds them, for messages.
    name: String,
    directory: Directory,
    opened: Vec<OnceLock<ColumnData>>,
}

/// One column with its postings.
#[derive(Debug)]
pub(crate) struct ColumnData {
    column: Section,
    postings: SmallVec<[(u8, Lists); 1]>,
}

/// The postings of a lane.
#[derive(Debug)]
struct Lists {
    section: Section,
    /// How many rows the lists before each have, and all of them.
    before: OnceLock<Box<[u64]>>,
}

impl Lists {
    fn new(section: Section) -> Self {
        Self { section, before: OnceLock::new() }
    }
}

/// Columns with what they are read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    columns: &'a Columns,
    segment: Option<&'a Segment>,
    rows: u32,
}

impl<'a> Source<'a> {
    /// Columns of a segment.
    pub(crate) fn segment(columns: &'a Columns, segment: &'a Segment) -> Self {
        Self { columns, segment: Some(segment), rows: segment.rows() }
    }

    /// Columns in memory, of so many rows.
    pub(crate) fn memory(columns: &'a Columns, rows: u32) -> Self {
        Self { columns, segment: None, rows }
    }

    /// Rows of all columns.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// What there is of a path.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn find(&self, path: &str) -> Result<Found<'a>> {
        self.columns.find(path, self.segment)
    }

    /// Whether a path's column was read and checked before, or there is none: asking for it waits for no disk.
    pub(crate) fn is_open(&self, path: &str) -> bool {
        self.columns.is_open(path)
    }

    /// The error of a column that cannot be read after all.
    pub(crate) fn unreadable(&self, path: &str, error: &quarrydb_index::Error) -> Error {
        self.columns.damaged(path, error)
    }
}

/// What there is of a path.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// Its column.
    Column(&'a ColumnData),
    /// None; these rows may have it, others do not.
    Rows(RowSet),
}

impl Columns {
    /// Those of a segment; none where it was written without.
    ///
    /// # Errors
    /// `Corrupt`, `UnsupportedVersion`, `Io`.
    pub(crate) fn of_segment(segment: &Segment) -> Result<Option<Self>> {
        let Some(section) = segment.section(KIND_DIRECTORY, 0)? else { return Ok(None) };
        let info = segment.sections().iter().find(|info| info.kind == KIND_DIRECTORY);
        let offset = info.map_or(0, |info| info.offset);
        let directory = directory::decode(segment.file_name(), offset, &section, segment.rows())?;
        let opened = directory.paths.iter().map(|_| OnceLock::new()).collect();
        Ok(Some(Self { name: segment.file_name().to_owned(), directory, opened }))
    }

    /// Those of documents in memory.
    ///
    /// # Errors
    /// `Internal` beyond the limits of a column.
    pub(crate) fn of_rows(shredder: Shredder) -> Result<Self> {
        let (made, buckets) = shredder.finish()?;
        let mut directory = Directory { paths: Vec::with_capacity(made.len()), buckets };
        let mut opened = Vec::with_capacity(made.len());
        for made in made {
            directory.paths.push((made.path.into(), made.rows));
            let postings =
                made.postings.into_iter().map(|(tag, bytes)| (tag, Lists::new(Section::owned(bytes)))).collect();
            opened.push(OnceLock::from(ColumnData { column: Section::owned(made.column), postings }));
        }
        Ok(Self { name: "a tail".to_owned(), directory, opened })
    }

    /// What there is of a path; `segment` is the one that they are of, if they are of one.
    fn find(&self, path: &str, segment: Option<&Segment>) -> Result<Found<'_>> {
        let Ok(place) = self.directory.paths.binary_search_by(|(known, _)| (**known).cmp(path)) else {
            return Ok(Found::Rows(self.rows_without_column(path)));
        };
        let Some(slot) = self.opened.get(place) else { return Ok(Found::Rows(RowSet::new())) };
        if let Some(data) = slot.get() {
            return Ok(Found::Column(data));
        }
        let data = self.load(place as u32, segment)?;
        Ok(Found::Column(slot.get_or_init(|| data)))
    }

    fn is_open(&self, path: &str) -> bool {
        match self.directory.paths.binary_search_by(|(known, _)| (**known).cmp(path)) {
            Ok(place) => self.opened.get(place).is_some_and(|slot| slot.get().is_some()),
            Err(_) => true,
        }
    }

    fn load(&self, place: u32, segment: Option<&Segment>) -> Result<ColumnData> {
        let missing = || Error::corrupt(&self.name, 0, format_args!("column {place} of the directory is not there"));
        let segment = segment.ok_or_else(missing)?;
        let column = segment.section(KIND_COLUMN, place)?.ok_or_else(missing)?;
        let mut postings = SmallVec::new();
        for info in segment.sections() {
            if info.kind == KIND_POSTINGS && info.item / LANE_TAGS == place {
                let tag = (info.item % LANE_TAGS) as u8;
                postings.extend(segment.section(KIND_POSTINGS, info.item)?.map(|section| (tag, Lists::new(section))));
            }
        }
        let data = ColumnData { column, postings };
        let path = self.directory.paths.get(place as usize).map_or("", |(path, _)| path);
        // All lanes once: what is opened later was opened before.
        let opened = Column::open(&data.column).and_then(|column| Ok((column.rows(), column.lanes()?)));
        match opened.map(|(rows, _)| rows) {
            Ok(rows) if rows == segment.rows() => Ok(data),
            Ok(rows) => Err(self.damaged(path, &format_args!("it has {rows} rows, the segment {}", segment.rows()))),
            Err(error) => Err(self.damaged(path, &error)),
        }
    }

    fn damaged(&self, path: &str, what: &dyn std::fmt::Display) -> Error {
        Error::corrupt(&self.name, 0, format_args!("the column of {path:?} cannot be read: {what}"))
    }

    /// The rows that may have a path without a column: it, or one that it begins with, is in their bucket.
    fn rows_without_column(&self, path: &str) -> RowSet {
        let mut rows = RowSet::new();
        if self.directory.buckets.is_empty() {
            return rows;
        }
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            if let Some(bucket) = path.get(..end).and_then(|prefix| self.directory.buckets.get(bucket_of(prefix))) {
                rows.add(bucket);
            }
        }
        rows
    }

    /// Sets of rows with paths that have no column: so many such paths there are at least.
    pub(crate) fn overflow(&self) -> u64 {
        self.directory.buckets.iter().filter(|bucket| !bucket.is_empty()).count() as u64
    }

    /// Bytes of a segment's file that are columns and what belongs to them.
    pub(crate) fn bytes_in(segment: &Segment) -> u64 {
        let own = [KIND_DIRECTORY, KIND_COLUMN, KIND_POSTINGS];
        segment.sections().iter().filter(|info| own.contains(&info.kind)).map(|info| info.len).sum()
    }

    /// Bytes of columns in memory: those of a tail.
    pub(crate) fn bytes(&self) -> usize {
        let of = |data: &ColumnData| {
            let all = std::iter::once(&data.column).chain(data.postings.iter().map(|(_, lists)| &lists.section));
            all.filter(|section| !section.is_mapped()).map(|section| section.len()).sum::<usize>()
        };
        self.opened.iter().filter_map(OnceLock::get).map(of).sum()
    }
}

impl ColumnData {
    /// The column.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(crate) fn column(&self) -> quarrydb_index::Result<Column<'_>> {
        Column::reopen(&self.column)
    }

    /// The postings of a lane, where there are some.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(crate) fn postings(&self, tag: Tag) -> quarrydb_index::Result<Option<Postings<'_>>> {
        let found = self.postings.iter().find(|(of, _)| *of == tag as u8);
        found.map(|(_, lists)| Postings::open(&lists.section)).transpose()
    }

    /// How many rows a run of the lists of a lane have together, each counted in each list; `postings` are those of the lane.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(crate) fn rows_in(
        &self,
        tag: Tag,
        postings: &Postings<'_>,
        lists: std::ops::Range<usize>,
    ) -> quarrydb_index::Result<u64> {
        let Some((_, own)) = self.postings.iter().find(|(of, _)| *of == tag as u8) else { return Ok(0) };
        let before = match own.before.get() {
            Some(before) => before,
            None => {
                let (mut sums, mut sum) = (Vec::with_capacity(postings.len() + 1), 0);
                sums.push(0);
                for list in 0..postings.len() {
                    sum += postings.list(list)?.len();
                    sums.push(sum);
                }
                own.before.get_or_init(|| sums.into())
            }
        };
        let at = |list: usize| before.get(list).or(before.last()).copied().unwrap_or(0);
        Ok(at(lists.end).saturating_sub(at(lists.start)))
    }
}
