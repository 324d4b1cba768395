//! MD5 (RFC 1321), for `$toHashedIndexKey` alone: MongoDB's hashed indexes are made of it. Not for secrets.
//!
//! Takes bytes piece by piece, gives 16 bytes.

/// The shifts of the four rounds.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
/// Bytes of a block.
const BLOCK: usize = 64;
/// Where the length stands in the last block.
const LENGTH_AT: usize = 56;

/// A digest that is still being fed.
#[derive(Debug)]
pub(super) struct Md5 {
    state: [u32; 4],
    block: [u8; BLOCK],
    filled: usize,
    bytes: u64,
}

impl Md5 {
    pub(super) fn new() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        Self { state, block: [0; BLOCK], filled: 0, bytes: 0 }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.wrapping_add(bytes.len() as u64);
        for &b in bytes {
            self.block[self.filled] = b;
            self.filled += 1;
            if self.filled == BLOCK {
                self.mix();
                self.filled = 0;
            }
        }
    }

    pub(super) fn finish(mut self) -> [u8; 16] {
        let bits = self.bytes.wrapping_mul(8);
        self.add(&[0x80]);
        while self.filled != LENGTH_AT {
            self.add(&[0]);
        }
        self.add(&bits.to_le_bytes());
        let mut digest = [0; 16];
        for (to, word) in digest.chunks_exact_mut(4).zip(self.state) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }

    fn mix(&mut self) {
        let mut words = [0_u32; 16];
        for (word, four) in words.iter_mut().zip(self.block.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*four);
        }
        let [mut a, mut b, mut c, mut d] = self.state;
        for i in 0..BLOCK {
            let (f, at) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), 5 * i + 1),
                2 => (b ^ c ^ d, 3 * i + 5),
                _ => (c ^ (b | !d), 7 * i),
            };
            let sum = a.wrapping_add(f).wrapping_add(constant(i)).wrapping_add(words[at % 16]);
            let next = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4]));
            (a, d, c, b) = (d, c, b, next);
        }
        for (state, word) in self.state.iter_mut().zip([a, b, c, d]) {
            *state = state.wrapping_add(word);
        }
    }
}

/// The whole part of 2^32 |sin(i + 1)|.
fn constant(i: usize) -> u32 {
    static TABLE: std::sync::LazyLock<[u32; BLOCK]> =
        std::sync::LazyLock::new(|| std::array::from_fn(|i| (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32));
    TABLE[i % BLOCK]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        let mut digest = Md5::new();
        // In pieces, so that a block is filled across calls.
        for piece in text.as_bytes().chunks(7) {
            digest.add(piece);
        }
        digest.finish().iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn the_suite_of_the_rfc_holds() {
        for (text, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hex(text), expected, "{text}");
        }
    }
}
