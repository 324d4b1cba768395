//! Which segments are worth making anew: a pure choice from their figures.
//!
//! Takes what a collection's segments hold, oldest first; gives a run of neighbours, for rows keep their order. A
//! segment half as large as one may become is left alone, and others grow threefold by each making, so a row is
//! rewritten a few times at most; a segment a quarter of whose rows are dead is rewritten whatever its size, with the
//! small ones beside it. Knows no files, no threads and no time.

use std::ops::Range;

/// So many segments of about one size are made one.
const RUN_MIN: usize = 4;
/// Segments within this factor are of about one size; the smallest size there is.
const SIZE_STEP: u64 = 4;
const SIZE_MIN: u64 = 1 << 20;
/// What becomes of a run is at least this much larger than the largest segment in it, unless that is small anyway.
const GROWTH: u64 = 3;
/// One part in this many dead: the segment is rewritten.
const DEAD_PART: u64 = 4;
/// On demand so many segments' worth are made at a time: what is made in vain when it ends early, and the room that
/// old and new take together.
const STEP_SEGMENTS: u64 = 4;

/// What one segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    pub rows: u64,
    /// Rows that a rewriting would drop.
    pub dead: u64,
    /// Bytes of all rows before packing.
    pub bytes: u64,
    /// Whether it is packed as densely as can be.
    pub dense: bool,
}

/// The most that one segment takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    pub rows: u64,
    pub bytes: u64,
}

impl Most {
    fn half(self) -> Self {
        Self { rows: self.rows / 2, bytes: self.bytes / 2 }
    }
}

impl Figures {
    fn live_rows(&self) -> u64 {
        self.rows.saturating_sub(self.dead)
    }

    /// Bytes of the rows that stay, taking all rows for equal.
    fn live_bytes(&self) -> u64 {
        let part = u128::from(self.bytes) * u128::from(self.live_rows()) / u128::from(self.rows.max(1));
        u64::try_from(part).unwrap_or(self.bytes)
    }

    fn is_wasteful(&self) -> bool {
        self.dead > 0 && self.dead.saturating_mul(DEAD_PART) >= self.rows
    }

    fn is_large(&self, most: Most) -> bool {
        self.live_rows() > most.rows / 2 || self.live_bytes() > most.bytes / 2
    }

    /// Whether it takes no further row.
    fn is_full(&self, most: Most) -> bool {
        self.rows >= most.rows || self.bytes >= most.bytes
    }

    fn size(&self) -> u32 {
        (self.live_bytes() / SIZE_MIN).checked_ilog(SIZE_STEP).map_or(0, |log| log + 1)
    }
}

/// Sums what stays of segments, up to what one may hold.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    rows: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, figures: &Figures, most: Most) -> bool {
        let (rows, bytes) = (self.rows + figures.live_rows(), self.bytes.saturating_add(figures.live_bytes()));
        let fits = rows <= most.rows && bytes <= most.bytes;
        if fits {
            *self = Self { rows, bytes };
        }
        fits
    }
}

/// The run that is to be made anew first, unasked; none where all is well. It becomes half as large as it might: its
/// columns lie in memory while they are made, which is for who asks for it.
pub(crate) fn unasked(segments: &[Figures], most: Most) -> Option<Range<usize>> {
    let most = most.half();
    wasteful(segments, most).or_else(|| alike(segments, most))
}

/// The first segment with many dead rows, and the small ones around it that fit in with what stays of it.
fn wasteful(segments: &[Figures], most: Most) -> Option<Range<usize>> {
    let first = segments.iter().position(Figures::is_wasteful)?;
    let mut sum = Sum::default();
    let (mut from, mut to) = (first, first + 1);
    if !sum.add(&segments[first], most) {
        return Some(from..to);
    }
    let joins = |figures: &Figures| figures.is_wasteful() || !figures.is_large(most);
    while to < segments.len() && joins(&segments[to]) && sum.add(&segments[to], most) {
        to += 1;
    }
    while from > 0 && joins(&segments[from - 1]) && sum.add(&segments[from - 1], most) {
        from -= 1;
    }
    Some(from..to)
}

/// The first run of segments of one size or smaller, from the smallest size up.
fn alike(segments: &[Figures], most: Most) -> Option<Range<usize>> {
    let small = |figures: &Figures| !figures.is_large(most);
    let largest = segments.iter().filter(|figures| small(figures)).map(Figures::size).max()?;
    for size in 0..=largest {
        let mut from = 0;
        while from < segments.len() {
            let mut sum = Sum::default();
            let fits = |figures: &&Figures| small(figures) && figures.size() <= size && sum.add(figures, most);
            let run = segments[from..].iter().take_while(fits).count();
            // What fills a segment by half is worth it whatever their number.
            let fills = run > 1 && (sum.rows > most.rows / 2 || sum.bytes > most.bytes / 2);
            let largest = segments[from..from + run].iter().map(Figures::live_bytes).max().unwrap_or(0);
            let grows = largest < SIZE_MIN || sum.bytes / GROWTH >= largest;
            if fills || run >= RUN_MIN && grows {
                return Some(from..from + run);
            }
            from += run.max(1);
        }
    }
    None
}

/// The next run on the way to the fewest segments that hold the rows; none where they are that already.
pub(crate) fn fewest(segments: &[Figures], most: Most) -> Option<Range<usize>> {
    let done = |figures: &Figures| figures.dead == 0 && figures.dense && figures.is_full(most);
    let from = segments.iter().position(|figures| !done(figures))?;
    if let [only] = &segments[from..]
        && only.dead == 0
        && only.dense
    {
        return None;
    }
    let (mut rows, mut bytes) = (0_u64, 0_u64);
    let enough = |rows: u64, bytes: u64| {
        rows >= most.rows.saturating_mul(STEP_SEGMENTS) || bytes >= most.bytes.saturating_mul(STEP_SEGMENTS)
    };
    let mut to = from;
    while to < segments.len() && !enough(rows, bytes) {
        rows += segments[to].live_rows();
        bytes = bytes.saturating_add(segments[to].live_bytes());
        to += 1;
    }
    Some(from..to)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Most = Most { rows: 1 << 20, bytes: 256 << 20 };
    /// For what is chosen unasked, which halves it.
    const TWICE: Most = Most { rows: 2 << 20, bytes: 512 << 20 };

    /// Segments of so many MiB, rows of 256 bytes, with so many percent dead.
    fn segments(of: &[(u64, u64)]) -> Vec<Figures> {
        let figures = |&(mib, dead): &(u64, u64)| {
            let rows = mib * 4096;
            Figures { rows, dead: rows * dead / 100, bytes: mib << 20, dense: false }
        };
        of.iter().map(figures).collect()
    }

    fn alive(of: &[u64]) -> Vec<Figures> {
        segments(&of.iter().map(|&mib| (mib, 0)).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_well_is_left_alone() {
        for of in [&[][..], &[200], &[1], &[1, 1, 1], &[200, 250, 140], &[40, 40, 40], &[64, 16, 16, 4, 4, 1, 1, 1]] {
            assert_eq!(unasked(&alive(of), TWICE), None, "{of:?}");
        }
        assert_eq!(unasked(&segments(&[(200, 24), (250, 10)]), TWICE), None, "less than a quarter is dead");
    }

    #[test]
    fn four_of_one_size_become_one_and_the_smallest_come_first() {
        assert_eq!(unasked(&alive(&[200, 1, 1, 1, 1]), TWICE), Some(1..5));
        assert_eq!(unasked(&alive(&[40, 40, 40, 40]), TWICE), Some(0..4));
        assert_eq!(unasked(&alive(&[40, 40, 40, 40, 1, 2, 1, 2]), TWICE), Some(4..8));
        assert_eq!(unasked(&alive(&[40, 1, 40, 1, 40, 40]), TWICE), Some(0..6), "smaller ones between go along");
        assert_eq!(unasked(&alive(&[40; 12]), TWICE), Some(0..6), "no more than one segment holds");
        assert_eq!(unasked(&alive(&[100, 100]), TWICE), Some(0..2), "what makes a large one");
    }

    #[test]
    fn a_quarter_dead_is_rewritten_with_its_small_neighbours() {
        assert_eq!(unasked(&segments(&[(200, 0), (200, 25), (200, 0)]), TWICE), Some(1..2));
        assert_eq!(unasked(&segments(&[(200, 0), (1, 0), (200, 50), (2, 0), (200, 0)]), TWICE), Some(1..4));
        assert_eq!(unasked(&segments(&[(200, 60), (200, 60), (200, 60)]), TWICE), Some(0..3));
        assert_eq!(unasked(&segments(&[(200, 100)]), TWICE), Some(0..1));
    }

    /// What becomes of segments where each run is made as few as can be; dead rows go, rows are all alike.
    fn made(of: &[Figures], run: &Range<usize>) -> Vec<Figures> {
        let mut rows: u64 = of[run.clone()].iter().map(Figures::live_rows).sum();
        let per_row = of.first().map_or(256, |f| f.bytes / f.rows);
        let mut out = of[..run.start].to_vec();
        while rows > 0 {
            let some = rows.min(MOST.rows).min(MOST.bytes.div_ceil(per_row));
            out.push(Figures { rows: some, dead: 0, bytes: some * per_row, dense: true });
            rows -= some;
        }
        out.extend_from_slice(&of[run.end..]);
        out
    }

    #[test]
    fn on_demand_the_fewest_are_reached_step_by_step() {
        for (of, expected) in [
            (segments(&[]), 0),
            (segments(&[(3, 0)]), 1),
            (segments(&[(3, 1)]), 1),
            (segments(&[(256, 0)]), 1),
            (segments(&[(3, 100)]), 0),
            (segments(&[(1, 0), (2, 0)]), 1),
            (segments(&[(40, 0); 8]), 2),
            (segments(&[(200, 10), (1, 0), (250, 99), (256, 0)]), 2),
            (segments(&[(40, 50); 100]), 8),
        ] {
            let mut now = of.clone();
            let mut steps = 0;
            while let Some(run) = fewest(&now, MOST) {
                now = made(&now, &run);
                steps += 1;
                assert!(steps <= of.len() + 1, "{of:?} is never done");
            }
            assert_eq!(now.len(), expected, "{of:?} became {now:?}");
        }
    }

    #[test]
    fn what_was_chosen_is_not_chosen_again() {
        let mut now = Vec::new();
        let mut rewritten = 0;
        for round in 0..400_u64 {
            now.extend(segments(&[(1 + round % 3, 0)]));
            while let Some(run) = unasked(&now, TWICE) {
                rewritten += now[run.clone()].iter().map(|f| f.bytes >> 20).sum::<u64>();
                now = made(&now, &run);
            }
        }
        let total: u64 = now.iter().map(|f| f.bytes >> 20).sum();
        assert!(now.len() < 4 + 3 * 5, "{now:?}");
        assert!(rewritten < 5 * total, "{rewritten} of {total} MiB");
    }
}
