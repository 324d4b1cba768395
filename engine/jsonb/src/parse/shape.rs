//! What the parser remembers of the objects it has read: their names in order, and the order of their directory.
//!
//! Documents that follow each other mostly have the same names in the same order. A name that stands where the last
//! object of its kind had it is recognised by one comparison and copied; an object whose names all do has its directory
//! without sorting. Shapes form a tree: an object inside an object is remembered under the field that holds it. Only
//! speed depends on them: what is not remembered is read the slow way. Takes names and orders; knows nothing of text
//! beyond that a name stands in it between quotes.

use crate::directory::{NameKey, prefix};
use crate::tag::Width;

/// The shape of an object somewhere in a document.
pub(super) type ShapeId = usize;
/// No shape: nothing is known and nothing is learned.
pub(super) const NO_SHAPE: ShapeId = usize::MAX;

/// Shapes that are remembered at once; beyond it nothing new is learned until [`Shapes::root`].
const SHAPES_MAX: usize = 128;
/// Names that are remembered of one object.
const NAMES_MAX: usize = 256;
/// The longest name that is remembered: with its quotes, or its header, it fits a chunk.
const NAME_LEN_MAX: usize = NAME_CHUNK - 2;
/// The bytes that are compared and copied at once.
pub(super) const NAME_CHUNK: usize = 32;
/// How many names ahead are looked at when one is not where it was: fields that this document does not have.
const SKIP_MAX: usize = 3;

/// After so many documents it is decided whether learning pays.
const WINDOW_DOCUMENTS: u32 = 64;
/// It does not where as many objects as this in a window were unlike the last of their kind.
const RELEARNED_MAX: u32 = 16;
/// Then what is known stays as it is for so many documents.
const FROZEN_DOCUMENTS: u32 = 1024;

/// All that is remembered.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    /// Documents until the window or the frozen time ends.
    documents_left: u32,
    /// Objects in this window whose known names were given up for others.
    relearned: u32,
    /// Learning costs more than it brings: documents of many kinds alternate.
    frozen: bool,
}

#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) names: Vec<KnownName>,
    /// The directory: the index in `names` of each of its entries. Empty while it is not known.
    pub(super) order: Vec<u16>,
    /// The width that the last object of this shape had.
    pub(super) width: Option<Width>,
}

/// A name as it stands in text and as it stands in a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownName {
    /// The name between its quotes, zeros after it.
    text: [u128; 2],
    mask: [u128; 2],
    /// Header and name; what follows is noise.
    pub(super) entry: [u8; NAME_CHUNK],
    pub(super) prefix: u64,
    pub(super) len: u8,
    /// The shape of objects that stand under this name.
    child: u8,
}

const NO_CHILD: u8 = u8::MAX;
const _: () = assert!(SHAPES_MAX <= NO_CHILD as usize);

impl KnownName {
    /// A plain name.
    fn new(name: &[u8]) -> Self {
        let (mut text, mut mask, mut entry) = ([0; NAME_CHUNK], [0; NAME_CHUNK], [0; NAME_CHUNK]);
        text[0] = b'"';
        text[1..=name.len()].copy_from_slice(name);
        text[name.len() + 1] = b'"';
        mask[..name.len() + 2].fill(0xff);
        entry[0] = (name.len() as u8) << 1 | 1;
        entry[1..=name.len()].copy_from_slice(name);
        Self {
            text: halves(&text),
            mask: halves(&mask),
            entry,
            prefix: prefix(name),
            len: name.len() as u8,
            child: NO_CHILD,
        }
    }

    /// Whether `text` begins with this name in quotes.
    #[inline(always)]
    pub(super) fn stands_in(&self, text: &[u8; NAME_CHUNK]) -> bool {
        let [low, high] = halves(text);
        let differs = low & self.mask[0] ^ self.text[0];
        // Most names end in the first half.
        differs == 0 && (self.mask[1] == 0 || high & self.mask[1] == self.text[1])
    }
}

#[inline(always)]
fn halves(bytes: &[u8; NAME_CHUNK]) -> [u128; 2] {
    let (halves, _) = bytes.as_chunks::<16>();
    [0, 1].map(|i| halves.get(i).map_or(0, |half| u128::from_le_bytes(*half)))
}

impl Shapes {
    /// The shape of whole documents. Called when nothing is being read: forgets all where there is no room left.
    pub(super) fn root(&mut self) -> ShapeId {
        match self.documents_left.checked_sub(1) {
            Some(left) => self.documents_left = left,
            None => {
                self.frozen = self.relearned > RELEARNED_MAX;
                self.documents_left = if self.frozen { FROZEN_DOCUMENTS } else { WINDOW_DOCUMENTS };
                self.relearned = 0;
            }
        }
        if self.shapes.len() >= SHAPES_MAX && !self.frozen {
            self.shapes.clear();
        }
        if self.shapes.is_empty() {
            self.shapes.push(Shape::default());
        }
        0
    }

    #[inline(always)]
    pub(super) fn get(&self, id: ShapeId) -> Option<&Shape> {
        self.shapes.get(id)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, id: ShapeId) -> Option<&mut Shape> {
        self.shapes.get_mut(id)
    }

    /// The name known at `index`, or up to a few after it, that `text` begins with; its index.
    #[inline(always)]
    pub(super) fn find(&self, id: ShapeId, index: usize, text: &[u8; NAME_CHUNK]) -> Option<(usize, &KnownName)> {
        let names = self.shapes.get(id)?.names.get(index..)?;
        let first = names.first()?;
        if first.stands_in(text) {
            return Some((index, first));
        }
        let skipped = names.iter().take(1 + SKIP_MAX).position(|name| name.stands_in(text))?;
        Some((index + skipped, &names[skipped]))
    }

    /// The same for a name that is read already.
    pub(super) fn find_name(&self, id: ShapeId, index: usize, name: &[u8]) -> Option<usize> {
        let names = self.shapes.get(id)?.names.get(index..)?;
        let same = |known: &KnownName| known.entry.get(1..1 + known.len as usize) == Some(name);
        names.iter().take(1 + SKIP_MAX).position(same).map(|skipped| index + skipped)
    }

    /// Makes `name` the first name of a shape; false where it cannot be.
    pub(super) fn expect_first(&mut self, id: ShapeId, name: &[u8]) -> bool {
        self.find_name(id, 0, name) == Some(0) || self.learn(id, 0, name, true)
    }

    /// Remembers that `name` stands at `index`, and forgets what was known after it. False where it is not remembered.
    pub(super) fn learn(&mut self, id: ShapeId, index: usize, name: &[u8], plain: bool) -> bool {
        let Some(shape) = self.shapes.get_mut(id) else { return false };
        if index > shape.names.len() || self.frozen {
            return false;
        }
        self.relearned += u32::from(index < shape.names.len());
        shape.names.truncate(index);
        shape.order.clear();
        if !plain || name.len() > NAME_LEN_MAX || index >= NAMES_MAX {
            return false;
        }
        shape.names.push(KnownName::new(name));
        true
    }

    /// The shape of objects under the name at `index`.
    #[inline]
    pub(super) fn child(&mut self, id: ShapeId, index: usize) -> ShapeId {
        let room = self.shapes.len();
        let Some(name) = self.shapes.get_mut(id).and_then(|shape| shape.names.get_mut(index)) else { return NO_SHAPE };
        if name.child != NO_CHILD {
            return name.child as usize;
        }
        if room >= SHAPES_MAX {
            return NO_SHAPE;
        }
        name.child = room as u8;
        self.shapes.push(Shape::default());
        room
    }

    /// Remembers the directory of an object whose names are exactly those of the shape. `sorted` is in its order, the
    /// names of the shape were written front to back.
    pub(super) fn learn_order(&mut self, id: ShapeId, sorted: &[NameKey]) {
        let Some(shape) = self.shapes.get_mut(id) else { return };
        if shape.names.len() != sorted.len() {
            return;
        }
        let mut by_place: Vec<usize> = (0..sorted.len()).collect();
        by_place.sort_unstable_by_key(|&i| sorted[i].at);
        shape.order.clear();
        shape.order.resize(sorted.len(), 0);
        for (place, &i) in by_place.iter().enumerate() {
            shape.order[i] = place as u16;
        }
    }
}
