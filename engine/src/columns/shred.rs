//! Documents taken apart into columns, row by row.
//!
//! Takes the documents of one segment in the order of their rows; gives its column sections. Paths are found by a trie
//! that remembers where the last document of the same shape went. Memory: a few words for each value, and bounded
//! in the number of paths: objects used as maps, with keys that are data, do not get a column for each key.

use quarrydb_index::column::{Column, ColumnWriter, Value};
use quarrydb_index::postings;
use quarrydb_index::{RowId, RowSet};
use quarrydb_jsonb::{ArrayRef, JsonbRef, Kind, ObjectRef};
use rayon::prelude::*;
use std::collections::HashMap;

use super::value::{Tag, lane_of};
use super::{BUCKETS, COLUMNS_MAX, KIND_COLUMN, KIND_DIRECTORY, KIND_POSTINGS, LANE_TAGS, bucket_of, directory};
use crate::error::{Error, ErrorKind, Result};
use crate::segment::SegmentWriter;

/// Paths that are followed at a time; further ones have no column.
const NODES_MAX: usize = 4096;
/// Names in one object that get columns; of more, most are data.
const CHILDREN_MAX: usize = 512;
/// Names in one object that are looked through before a table is made of them.
const LISTED_MAX: usize = 12;
/// Columns up to which all are kept; of more, only those that are not rare.
const FREELY: usize = 128;
/// A path is rare where fewer than one row in so many has it.
const RARE: u32 = 1024;
/// Names on the way of a path that gets a column.
const PARTS_MAX: u16 = 16;
/// Bytes of a path that gets a column.
const PATH_BYTES_MAX: usize = 256;
/// A lane of fewer rows than this for each distinct value is found by a scan: lists would be longer than it.
const ROWS_PER_LIST: u32 = 16;

/// One path.
#[derive(Debug, Default)]
struct Node {
    path: String,
    parts: u16,
    children: Vec<(Box<[u8]>, u32)>,
    table: HashMap<Box<[u8]>, u32>,
    column: ColumnWriter,
    /// The last row that had it, and how many did.
    last: Option<u32>,
    rows: u32,
}

/// Takes documents apart.
#[derive(Debug)]
pub(crate) struct Shredder {
    /// The first is the document itself, whose column stays empty.
    nodes: Vec<Node>,
    buckets: Vec<RowSet>,
    rows: u32,
    key: Vec<u8>,
}

/// A column as bytes, and its postings by the tag of the lane.
pub(super) struct Made {
    pub path: String,
    pub rows: u32,
    pub column: Vec<u8>,
    pub postings: Vec<(u8, Vec<u8>)>,
}

fn broken(error: &quarrydb_index::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("a column cannot be made: {error}"))
}

impl Shredder {
    /// One that has seen nothing.
    pub(crate) fn new() -> Self {
        Self { nodes: vec![Node::default()], buckets: Vec::new(), rows: 0, key: Vec::new() }
    }

    /// Takes the document of the next row apart.
    ///
    /// # Errors
    /// `Internal` beyond the rows of a segment.
    pub(crate) fn push(&mut self, document: JsonbRef<'_>) -> Result<()> {
        let row = RowId::at(self.rows);
        self.rows += 1;
        match document.as_object() {
            Some(object) => self.object(0, object, row),
            None => Ok(()),
        }
    }

    /// The fields of an object at the path of a node.
    fn object(&mut self, node: u32, object: ObjectRef<'_>, row: RowId) -> Result<()> {
        let mut hint = 0;
        for entry in object.iter() {
            let (child, next) = self.child(node, entry.name_bytes(), hint);
            hint = next;
            match child {
                Some(child) => self.value(child, entry.value, row)?,
                None => self.overflow(node, entry.name(), row),
            }
        }
        Ok(())
    }

    /// What a path leads to.
    fn value(&mut self, node: u32, value: JsonbRef<'_>, row: RowId) -> Result<()> {
        match value.kind() {
            Kind::Array => match value.as_array() {
                Some(array) => self.array(node, array, row),
                None => Ok(()),
            },
            _ => self.scalar(node, value, row),
        }
    }

    /// One candidate that is not an array: a scalar, null or an object, whose fields are followed.
    fn scalar(&mut self, node: u32, value: JsonbRef<'_>, row: RowId) -> Result<()> {
        let Some(found) = self.nodes.get_mut(node as usize) else { return Ok(()) };
        found.seen(row);
        match lane_of(value, &mut self.key) {
            Some((tag, value)) => found.column.push(tag as u8, row, value).map_err(|e| broken(&e))?,
            None => found.column.set_null(row),
        }
        match value.as_object() {
            Some(object) => self.object(node, object, row),
            None => Ok(()),
        }
    }

    fn array(&mut self, node: u32, array: ArrayRef<'_>, row: RowId) -> Result<()> {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.seen(row);
            node.column.set_array(row);
        }
        let mut nested = false;
        for element in array.iter() {
            match element.kind() {
                // It is a candidate as a whole, and nothing in it is one.
                Kind::Array => nested = true,
                _ => self.scalar(node, element, row)?,
            }
        }
        match self.nodes.get_mut(node as usize) {
            Some(node) if nested => node.column.push(Tag::Nested as u8, row, Value::Bool(true)).map_err(|e| broken(&e)),
            _ => Ok(()),
        }
    }

    /// The node of a name below a node; none where it gets no column. `hint` is where it is looked for first; the second
    /// is the hint for the name after it.
    fn child(&mut self, node: u32, name: &[u8], hint: usize) -> (Option<u32>, usize) {
        let Some(parent) = self.nodes.get(node as usize) else { return (None, hint) };
        if let Some((known, child)) = parent.children.get(hint)
            && **known == *name
        {
            return (Some(*child), hint + 1);
        }
        if parent.children.len() <= LISTED_MAX {
            if let Some(at) = parent.children.iter().position(|(known, _)| **known == *name) {
                return (Some(parent.children[at].1), at + 1);
            }
        } else if let Some(&at) = parent.table.get(name) {
            let child = parent.children.get(at as usize).map(|(_, child)| *child);
            return (child, at as usize + 1);
        }
        let Some(path) = self.path_below(node, name) else { return (None, hint) };
        let child = self.nodes.len() as u32;
        let Some(parent) = self.nodes.get_mut(node as usize) else { return (None, hint) };
        let at = parent.children.len();
        parent.children.push((name.into(), child));
        if at == LISTED_MAX {
            parent.table = (0..).zip(&parent.children).map(|(at, (name, _))| (name.clone(), at)).collect();
        } else if at > LISTED_MAX {
            parent.table.insert(name.into(), at as u32);
        }
        let parts = parent.parts + 1;
        self.nodes.push(Node { path, parts, ..Node::default() });
        (Some(child), at + 1)
    }

    /// The path of a name that is new below a node; none where it gets no column.
    fn path_below(&self, node: u32, name: &[u8]) -> Option<String> {
        let parent = self.nodes.get(node as usize)?;
        let name = std::str::from_utf8(name).ok()?;
        let room = self.nodes.len() <= NODES_MAX && parent.children.len() < CHILDREN_MAX && parent.parts < PARTS_MAX;
        let reached = !name.contains('.') && parent.path.len() + name.len() < PATH_BYTES_MAX;
        (room && reached).then(|| joined(parent, name))
    }

    /// Notes that a row has a path without a column, and so perhaps all that begin with it.
    fn overflow(&mut self, node: u32, name: &str, row: RowId) {
        // By such a name no path goes.
        let Some(parent) = self.nodes.get(node as usize).filter(|_| !name.contains('.')) else { return };
        if self.buckets.is_empty() {
            self.buckets.resize(BUCKETS, RowSet::new());
        }
        let bucket = bucket_of(&joined(parent, name));
        self.buckets[bucket].insert(row);
    }

    /// The columns as bytes, the most frequent paths first where not all can be kept; and the rows of the others.
    pub(super) fn finish(mut self) -> Result<(Vec<Made>, Vec<RowSet>)> {
        let rows = self.rows;
        let mut nodes: Vec<Node> = std::mem::take(&mut self.nodes);
        nodes.remove(0);
        let mut frequent: Vec<u32> = nodes.iter().map(|node| node.rows).collect();
        frequent.sort_unstable_by(|a, b| b.cmp(a));
        // So many rows a path must have.
        let least = match frequent.get(FREELY) {
            None => 0,
            Some(_) => {
                let beyond = frequent.get(COLUMNS_MAX).map_or(0, |&rows| rows + 1);
                beyond.max(rows / RARE)
            }
        };
        let (kept, rare): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| node.rows >= least);
        for node in rare {
            let bucket = bucket_of(&node.path);
            if self.buckets.is_empty() {
                self.buckets.resize(BUCKETS, RowSet::new());
            }
            self.buckets[bucket].add(&node.column.present_rows());
        }
        let mut made = kept.into_par_iter().map(|node| make(node, rows)).collect::<Result<Vec<_>>>()?;
        made.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((made, self.buckets))
    }

    /// Writes the sections of the columns behind the rows of a segment.
    ///
    /// # Errors
    /// Those of [`SegmentWriter::add_section`].
    pub(crate) fn write(self, segment: &mut SegmentWriter) -> Result<()> {
        let (made, buckets) = self.finish()?;
        let paths = made.iter().map(|made| (&*made.path, made.rows));
        segment.add_section(KIND_DIRECTORY, 0, &directory::encode(paths, &buckets))?;
        for (item, made) in (0..).zip(&made) {
            segment.add_section(KIND_COLUMN, item, &made.column)?;
            for (tag, postings) in &made.postings {
                segment.add_section(KIND_POSTINGS, item * LANE_TAGS + u32::from(*tag), postings)?;
            }
        }
        Ok(())
    }
}

impl Node {
    #[inline]
    fn seen(&mut self, row: RowId) {
        if self.last != Some(row.number()) {
            self.last = Some(row.number());
            self.rows += 1;
        }
    }
}

fn joined(parent: &Node, name: &str) -> String {
    if parent.parts == 0 { name.to_owned() } else { format!("{}.{name}", parent.path) }
}

fn make(node: Node, rows: u32) -> Result<Made> {
    let column = node.column.finish(rows).map_err(|e| broken(&e))?;
    let mut lists = Vec::new();
    for lane in Column::open(&column).and_then(|column| column.lanes()).map_err(|e| broken(&e))? {
        let distinct = lane.distinct();
        let few =
            distinct.exact && u64::from(distinct.count) * u64::from(ROWS_PER_LIST) <= lane.presence().values() as u64;
        // Of one value everywhere the lane says all there is.
        if few
            && distinct.count > 1
            && Tag::of(lane.tag()).is_some_and(|tag| !tag.is_mark())
            && let Some(bytes) = postings::build(&lane).map_err(|e| broken(&e))?
        {
            lists.push((lane.tag(), bytes));
        }
    }
    Ok(Made { path: node.path, rows: node.rows, column, postings: lists })
}
