//! The end of a container: its width, its header, and an object's directory of names.
//!
//! Takes a body that lies at the end of a buffer and the places of its entries; gives the finished value as FORMAT.md
//! states it. Shared by `builder.rs` and the parser, so that both write the same bytes. Knows nothing of text.

use crate::error::{Error, ErrorKind};
use crate::tag::{Kind, NAME_LEN_LONG, Width};

/// A name for sorting: its length and first seven bytes as one number, which orders most names alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameKey {
    pub(crate) prefix: u64,
    /// The entry, from the end of the object's header.
    pub(crate) at: usize,
}

/// `_id`'s entry when room is made for an ObjectId: header, name, tag, twelve bytes.
pub(crate) const RESERVED_ID_BYTES: usize = 1 + 3 + 1 + 12;
/// The prefix that only the name `_id` has.
pub(crate) const ID_PREFIX: u64 = prefix(b"_id");

const PREFIX_BYTES: usize = 7;
/// From this length on a prefix says only that the name is long: the order of lengths is above that of letters.
const PREFIX_LEN_MAX: usize = 0xff;
/// Entries above this are sorted by the library's sort instead of insertion.
const INSERTION_SORT_MAX: usize = 20;

#[inline]
pub(crate) const fn prefix(name: &[u8]) -> u64 {
    if name.len() >= PREFIX_LEN_MAX {
        return (PREFIX_LEN_MAX as u64) << 56;
    }
    let mut key = (name.len() as u64) << 56;
    let n = if name.len() < PREFIX_BYTES { name.len() } else { PREFIX_BYTES };
    let mut i = 0;
    while i < n {
        key |= (name[i] as u64) << (48 - 8 * i);
        i += 1;
    }
    key
}

/// The directory's order of two names.
#[inline]
pub(crate) fn compare_names(a: NameKey, b: NameKey, entries: &[u8]) -> core::cmp::Ordering {
    a.prefix.cmp(&b.prefix).then_with(|| {
        if a.prefix >> 56 <= PREFIX_BYTES as u64 {
            return core::cmp::Ordering::Equal;
        }
        let (a, b) = (name_at(entries, a.at), name_at(entries, b.at));
        (a.len(), a).cmp(&(b.len(), b))
    })
}

/// Orders the names of one object by (length, name). `entries` begins where their `at` counts from.
#[inline]
pub(crate) fn sort_names(names: &mut [NameKey], entries: &[u8]) -> Result<(), Error> {
    let full = |key: NameKey| name_at(entries, key.at);
    let less = |a: NameKey, b: NameKey| {
        a.prefix < b.prefix
            || (a.prefix == b.prefix && a.prefix >> 56 > PREFIX_BYTES as u64 && {
                let (a, b) = (full(a), full(b));
                (a.len(), a) < (b.len(), b)
            })
    };
    if names.len() <= INSERTION_SORT_MAX {
        for i in 1..names.len() {
            let key = names[i];
            let mut j = i;
            while j > 0 && less(key, names[j - 1]) {
                names[j] = names[j - 1];
                j -= 1;
            }
            names[j] = key;
        }
    } else {
        names.sort_unstable_by(|&a, &b| {
            a.prefix.cmp(&b.prefix).then_with(|| {
                let (a, b) = (full(a), full(b));
                (a.len(), a).cmp(&(b.len(), b))
            })
        });
    }
    for pair in names.windows(2) {
        if !less(pair[0], pair[1]) {
            let name = String::from_utf8_lossy(full(pair[0])).into_owned();
            let message = format!("the field {name:?} stands twice in one object");
            return Err(Error::new(ErrorKind::RepeatedKey, message).at_path(name));
        }
    }
    Ok(())
}

#[inline]
fn name_at(entries: &[u8], at: usize) -> &[u8] {
    let Some(&header) = entries.get(at) else { return &[] };
    let (mut start, mut len) = (at + 1, (header >> 1) as usize);
    if len == NAME_LEN_LONG {
        len = Width::W4.read(entries, start);
        start += 4;
    }
    entries.get(start..start + len).unwrap_or_default()
}

/// Drops the reserved entry of `_id` at `header` and brings the document's own, the entry `own` of `names`, into its
/// place. `names` does not hold the reserved one.
pub(crate) fn id_to_front(out: &mut Vec<u8>, header: usize, names: &mut [NameKey], own: usize) {
    let from = names[own].at;
    let to = names.get(own + 1).map_or(out.len() - header, |next| next.at);
    let len = to - from;
    out[header + RESERVED_ID_BYTES..header + to].rotate_right(len);
    out.drain(header..header + RESERVED_ID_BYTES);
    for (i, name) in names.iter_mut().enumerate() {
        match i.cmp(&own) {
            core::cmp::Ordering::Less => name.at = name.at - RESERVED_ID_BYTES + len,
            core::cmp::Ordering::Equal => name.at = 0,
            core::cmp::Ordering::Greater => name.at -= RESERVED_ID_BYTES,
        }
    }
}

/// Begins a container: its tag and room for size and count of width `guess`.
#[inline(always)]
pub(crate) fn open(out: &mut Vec<u8>, kind: Kind, guess: Width) {
    let start = out.len();
    out.extend_from_slice(&[kind.tag(guess as u8), 0, 0, 0, 0, 0, 0, 0, 0]);
    out.truncate(start + 1 + 2 * guess.bytes());
}

/// Finishes the container that begins at `start` and was opened with the width `guess`: its body moves where the guess
/// was wrong, the directory of `ats` (in their order) is appended, the header filled in. Gives the width; `None` where
/// it takes 4 GiB or more.
#[inline(always)]
pub(crate) fn close(
    out: &mut Vec<u8>,
    (start, kind, guess): (usize, Kind, Width),
    count: usize,
    ats: impl ExactSizeIterator<Item = usize>,
) -> Option<Width> {
    let body = out.len() - (start + 1 + 2 * guess.bytes());
    let directory = ats.len();
    let size_at = |width: Width| 1 + 2 * width.bytes() + body + directory * width.bytes();
    let width = if size_at(Width::W1) <= Width::W1.max() {
        Width::W1
    } else if size_at(Width::W2) <= Width::W2.max() {
        Width::W2
    } else if size_at(Width::W4) <= Width::W4.max() {
        Width::W4
    } else {
        return None;
    };
    if width != guess {
        move_body(out, start, guess, width, body);
        out[start] = kind.tag(width as u8);
    }
    let size = size_at(width);
    let header = 1 + 2 * width.bytes();
    if directory > 0 {
        let from = out.len();
        out.resize(from + directory * width.bytes(), 0);
        let room = &mut out[from..];
        match width {
            Width::W1 => room.iter_mut().zip(ats).for_each(|(b, at)| *b = (at + header) as u8),
            Width::W2 => {
                let (room, _) = room.as_chunks_mut::<2>();
                room.iter_mut().zip(ats).for_each(|(b, at)| *b = ((at + header) as u16).to_le_bytes());
            }
            Width::W4 => {
                let (room, _) = room.as_chunks_mut::<4>();
                room.iter_mut().zip(ats).for_each(|(b, at)| *b = ((at + header) as u32).to_le_bytes());
            }
        }
    }
    match width {
        Width::W1 => out[start + 1..start + 3].copy_from_slice(&[size as u8, count as u8]),
        Width::W2 => {
            let both = (size as u32 & 0xffff) | (count as u32) << 16;
            out[start + 1..start + 5].copy_from_slice(&both.to_le_bytes());
        }
        Width::W4 => {
            let both = (size as u64 & 0xffff_ffff) | (count as u64) << 32;
            out[start + 1..start + 9].copy_from_slice(&both.to_le_bytes());
        }
    }
    Some(width)
}

#[cold]
fn move_body(out: &mut Vec<u8>, start: usize, guess: Width, width: Width, body: usize) {
    let (old, new) = (start + 1 + 2 * guess.bytes(), start + 1 + 2 * width.bytes());
    if new > old {
        out.extend_from_slice(&[0; 8][..new - old]);
    }
    out.copy_within(old..old + body, new);
    out.truncate(new + body);
}
