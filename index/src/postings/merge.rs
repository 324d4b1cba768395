//! Postings of several segments to those of the one they become: by key, or by number through tables of the caller.

use super::{Postings, PostingsWriter};
use crate::error::{Error, Result};
use crate::remap::{RowRemap, origins};
use crate::rowset::RowSet;
use std::collections::BTreeMap;

/// Merges postings with keys. Lists that have no row left are left out.
///
/// # Errors
/// `Corrupt`; `Misuse` if an input has lists without keys, or other rows than its remap, or a new row does not come from
/// exactly one old one.
pub fn merge(inputs: &[(Option<Postings<'_>>, &RowRemap)]) -> Result<Vec<u8>> {
    let remaps: Vec<&RowRemap> = inputs.iter().map(|(_, remap)| *remap).collect();
    let rows = origins(&remaps)?.len() as u32;
    let mut lists: BTreeMap<Vec<u8>, RowSet> = BTreeMap::new();
    let mut key = Vec::new();
    for (postings, remap) in inputs {
        let Some(postings) = postings else { continue };
        if postings.rows() != remap.rows() {
            return Err(Error::Misuse { what: "a remap has the rows of its postings" });
        }
        if !postings.has_keys() && !postings.is_empty() {
            return Err(Error::Misuse { what: "postings without keys are not merged: their numbers change" });
        }
        for index in 0..postings.len() {
            postings.key(index, &mut key)?;
            let rows = remap.map(&postings.list(index)?.to_row_set());
            match lists.get_mut(&key) {
                Some(list) => list.add(&rows),
                None => drop(lists.insert(key.clone(), rows)),
            }
        }
    }
    let mut writer = PostingsWriter::new();
    for (key, rows) in lists.iter().filter(|(_, rows)| !rows.is_empty()) {
        writer.push(key, rows)?;
    }
    writer.finish(rows)
}
