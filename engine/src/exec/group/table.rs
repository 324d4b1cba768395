//! The groups of one run of rows: a number for each combination of codes, given in the order in which they come.

use hashbrown::{DefaultHashBuilder, HashMap};
use quarrydb_index::column::WINDOW_ROWS;

/// Combinations of codes up to which a group is found by its place in a table.
const DIRECT_MAX: u64 = 1 << 18;
/// More codes than a path can have in one run of rows: its rows, and what lies between the least and the greatest of each type.
const CODES_MAX: u64 = 1 << 22;
/// No group yet.
const NONE: u32 = u32::MAX;

/// How codes of several paths make one number.
#[derive(Debug)]
pub(super) struct Mix {
    bounds: Vec<u64>,
    total: u64,
}

impl Mix {
    /// For paths with so many codes at most; none where the combinations are beyond a number.
    pub(super) fn new(bounds: impl Iterator<Item = Option<u32>>) -> Option<Self> {
        let bounds: Vec<u64> = bounds.map(|bound| bound.map_or(CODES_MAX, u64::from)).collect();
        let total = bounds.iter().try_fold(1_u64, |total, bound| total.checked_mul(*bound))?;
        Some(Self { bounds, total })
    }

    /// Adds the codes of path `path`, the first, the second and so on, to the numbers of the picked rows.
    pub(super) fn add(&self, path: usize, picks: &[u16], codes: &[u32; WINDOW_ROWS], mixed: &mut [u64; WINDOW_ROWS]) {
        let bound = self.bounds.get(path).copied().unwrap_or(1);
        for &row in picks {
            if let (Some(mixed), Some(code)) = (mixed.get_mut(usize::from(row)), codes.get(usize::from(row))) {
                let before = if path == 0 { 0 } else { *mixed };
                *mixed = before * bound + u64::from(*code);
            }
        }
    }

    /// The codes that a number was made of.
    pub(super) fn split(&self, mut mixed: u64, out: &mut Vec<u32>) {
        out.clear();
        for bound in self.bounds.iter().rev() {
            out.push((mixed % bound) as u32);
            mixed /= bound;
        }
        out.reverse();
    }
}

/// Groups by their number.
#[derive(Debug)]
pub(super) struct Table {
    find: Find,
    /// Of each group the number, and the first row.
    pub groups: Vec<(u64, u32)>,
}

#[derive(Debug)]
enum Find {
    Direct(Vec<u32>),
    Hashed(HashMap<u64, u32, DefaultHashBuilder>),
}

impl Table {
    /// No groups yet.
    pub(super) fn new(mix: &Mix) -> Self {
        let find = match mix.total {
            total if total <= DIRECT_MAX => Find::Direct(vec![NONE; total as usize]),
            _ => Find::Hashed(HashMap::default()),
        };
        Self { find, groups: Vec::new() }
    }

    /// The groups of the picked rows, in their order, in place of what `out` held. `first` is the number of the first row
    /// of the window.
    pub(super) fn groups_of(&mut self, first: u32, picks: &[u16], mixed: &[u64; WINDOW_ROWS], out: &mut Vec<u32>) {
        out.clear();
        let groups = &mut self.groups;
        let mut new = |number: u64, row: u16| {
            groups.push((number, first + u32::from(row)));
            groups.len() as u32 - 1
        };
        match &mut self.find {
            Find::Direct(table) => {
                for &row in picks {
                    let number = mixed.get(usize::from(row)).copied().unwrap_or(0);
                    let Some(slot) = table.get_mut(number as usize) else { continue };
                    if *slot == NONE {
                        *slot = new(number, row);
                    }
                    out.push(*slot);
                }
            }
            Find::Hashed(table) => {
                for &row in picks {
                    let number = mixed.get(usize::from(row)).copied().unwrap_or(0);
                    out.push(*table.entry(number).or_insert_with(|| new(number, row)));
                }
            }
        }
    }
}
