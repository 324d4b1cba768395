//! The `Seq` of every row, packed: which commit put it there.
//!
//! ```text
//! per frame of 128 rows: base u64 | words before u32 | width u8 | zeros 3      then all frames' words u64
//! ```
//!
//! A row's `Seq` is its frame's base plus `width` bits at its place. Rows of one commit take no bits, rows in order of
//! commits some seven. Takes and gives numbers; any order is right, some are shorter.

use crate::io::fields::PutFields;
use std::ops::Range;

const FRAME_ROWS: usize = 128;
const FRAME_BYTES: usize = 16;

/// Packs as rows come.
#[derive(Debug, Default)]
pub(crate) struct SeqsBuilder {
    frame: Vec<u64>,
    frames: Vec<u8>,
    words: Vec<u8>,
}

impl SeqsBuilder {
    pub(crate) fn push(&mut self, seq: u64) {
        self.frame.push(seq);
        if self.frame.len() == FRAME_ROWS {
            self.close_frame();
        }
    }

    fn close_frame(&mut self) {
        let base = self.frame.iter().copied().min().unwrap_or(0);
        let spread = self.frame.iter().copied().max().unwrap_or(0) - base;
        let width = u64::BITS - spread.leading_zeros();
        self.frames.put_u64(base);
        self.frames.put_u32(u32::try_from(self.words.len() / 8).expect("at most two words a row of a segment"));
        self.frames.put_u8(width as u8);
        self.frames.put_zeros(3);
        let (mut word, mut filled) = (0_u64, 0_u32);
        for seq in self.frame.drain(..) {
            if width == 0 {
                continue;
            }
            let value = seq - base;
            word |= value << filled;
            filled += width;
            if filled >= u64::BITS {
                self.words.put_u64(word);
                filled -= u64::BITS;
                // What did not fit; a shift by the whole width would be no shift.
                word = if filled == 0 { 0 } else { value >> (width - filled) };
            }
        }
        if filled > 0 {
            self.words.put_u64(word);
        }
    }

    /// The bytes of the section.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.frame.is_empty() {
            self.close_frame();
        }
        self.frames.extend_from_slice(&self.words);
        self.frames
    }
}

/// What is wrong with the section, if something is; after this every row has a `Seq`.
pub(crate) fn validate(bytes: &[u8], rows: u32) -> Result<(), &'static str> {
    let frames = frames(rows);
    let words = bytes.len().checked_sub(frames * FRAME_BYTES).ok_or("the run of seqs is shorter than its frames")?;
    let mut expected = 0;
    for index in 0..frames {
        let frame = Frame::at(bytes, index).ok_or("the run of seqs is shorter than its frames")?;
        if frame.word != expected {
            return Err("a frame of seqs is impossible");
        }
        let count = (rows as usize - index * FRAME_ROWS).min(FRAME_ROWS);
        expected += (count * frame.width as usize).div_ceil(64);
    }
    if expected * 8 == words { Ok(()) } else { Err("the run of seqs does not fit its rows") }
}

/// The `Seq` of `row`, of a section that passed `validate` for `rows`.
pub(crate) fn get(bytes: &[u8], rows: u32, row: u32) -> Option<u64> {
    let frame = Frame::at(bytes, row as usize / FRAME_ROWS)?;
    frame.value(bytes, frames(rows), row as usize % FRAME_ROWS)
}

/// The `Seq`s of a range of rows, in order, appended to `out`.
pub(crate) fn get_range(bytes: &[u8], rows: u32, range: Range<u32>, out: &mut Vec<u64>) -> Option<()> {
    let mut row = range.start as usize;
    while row < range.end as usize {
        let frame = Frame::at(bytes, row / FRAME_ROWS)?;
        let stop = (row / FRAME_ROWS + 1) * FRAME_ROWS;
        for row in row..stop.min(range.end as usize) {
            out.push(frame.value(bytes, frames(rows), row % FRAME_ROWS)?);
        }
        row = stop;
    }
    Some(())
}

fn frames(rows: u32) -> usize {
    (rows as usize).div_ceil(FRAME_ROWS)
}

struct Frame {
    base: u64,
    word: usize,
    width: u32,
}

impl Frame {
    fn at(bytes: &[u8], index: usize) -> Option<Self> {
        let bytes = bytes.get(index * FRAME_BYTES..(index + 1) * FRAME_BYTES)?;
        let zeros = bytes[13..].iter().all(|b| *b == 0);
        let width = u32::from(bytes[12]);
        (zeros && width <= u64::BITS).then_some(Self {
            base: u64::from_le_bytes(bytes[..8].try_into().ok()?),
            word: u32::from_le_bytes(bytes[8..12].try_into().ok()?) as usize,
            width,
        })
    }

    fn value(&self, bytes: &[u8], frames: usize, index: usize) -> Option<u64> {
        if self.width == 0 {
            return Some(self.base);
        }
        let bit = index * self.width as usize;
        let at = frames * FRAME_BYTES + (self.word + bit / 64) * 8;
        let shift = (bit % 64) as u32;
        let mut value = word_at(bytes, at)? >> shift;
        if shift + self.width > u64::BITS {
            value |= word_at(bytes, at + 8)? << (u64::BITS - shift);
        }
        let mask = u64::MAX >> (u64::BITS - self.width);
        Some(self.base.wrapping_add(value & mask))
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;

    fn check(seqs: &[u64]) -> usize {
        let mut builder = SeqsBuilder::default();
        seqs.iter().for_each(|seq| builder.push(*seq));
        let bytes = builder.finish();
        let rows = seqs.len() as u32;
        validate(&bytes, rows).unwrap();
        let found: Vec<u64> = (0..rows).map(|row| get(&bytes, rows, row).unwrap()).collect();
        assert_eq!(found, seqs);
        for range in [0..rows, rows / 3..rows / 2, rows..rows] {
            let mut found = Vec::new();
            get_range(&bytes, rows, range.clone(), &mut found).unwrap();
            assert_eq!(found, seqs[range.start as usize..range.end as usize]);
        }
        bytes.len()
    }

    #[test]
    fn every_width_and_every_order_comes_back() {
        check(&[]);
        check(&[u64::MAX]);
        for width in 1..=64 {
            let top = u64::MAX >> (64 - width);
            let seqs: Vec<u64> =
                (0..300_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & top).chain([top, 0]).collect();
            check(&seqs);
        }
    }

    #[test]
    fn rows_of_one_commit_take_next_to_nothing_and_rows_in_order_about_a_byte() {
        assert_eq!(check(&[77; 1280]), 160);
        let in_order: Vec<u64> = (1_000_000..1_001_280).collect();
        assert_eq!(check(&in_order), 160 + 10 * 128 * 7 / 8);
    }

    #[test]
    fn hostile_bytes_do_not_panic() {
        let mut builder = SeqsBuilder::default();
        (0..200).for_each(|i| builder.push(i * i));
        let bytes = builder.finish();
        for at in 0..bytes.len() {
            for value in [0, 0x41, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = validate(&damaged, 200);
                (0..200).for_each(|row| _ = get(&damaged, 200, row));
            }
            assert!(validate(&bytes[..at], 200).is_err());
        }
        assert!(validate(&bytes, 201 + 128).is_err());
    }
}
