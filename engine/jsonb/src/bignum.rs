//! A large unsigned integer of fixed room: just what the exact comparison of a decimal with a double needs.
//!
//! Takes a coefficient, powers of 5 and of 2; gives an order. The room suffices for every decimal128 whose nearest
//! double is finite and not 0: see [`WORDS`]. Must never know what the numbers mean.

use core::cmp::Ordering;

/// 64-bit words. A decimal next to a finite double other than 0 has an exponent from -358 (34 digits at 2^-1074) to 308:
/// at most 53 bits times 5^358 (832 bits), or 113 bits times 5^308 (716 bits), shifted by at most 1,100 bits.
const WORDS: usize = 32;
const _: () = assert!(WORDS * 64 >= 53 + 832 + 1100 && WORDS * 64 >= 113 + 716 + 1100);

/// The largest power of 5 in a word.
const POWER_OF_5_IN_WORD: u32 = 27;

/// An integer below 2^2048, least significant word first.
#[derive(Debug)]
pub(crate) struct Bignum([u64; WORDS]);

impl Bignum {
    /// From an integer.
    pub(crate) fn of(v: u128) -> Self {
        let mut words = [0; WORDS];
        words[0] = v as u64;
        words[1] = (v >> 64) as u64;
        Self(words)
    }

    /// Multiplies by 5^`n`.
    pub(crate) fn multiply_by_power_of_5(&mut self, mut n: u32) {
        while n > 0 {
            let step = n.min(POWER_OF_5_IN_WORD);
            self.multiply(5u64.pow(step));
            n -= step;
        }
    }

    fn multiply(&mut self, by: u64) {
        let mut carry = 0u128;
        for word in &mut self.0 {
            carry += u128::from(*word) * u128::from(by);
            *word = carry as u64;
            carry >>= 64;
        }
        debug_assert!(carry == 0, "the room suffices for every decimal next to a double");
    }

    /// Multiplies by 2^`n`.
    pub(crate) fn shift_left(&mut self, n: u32) {
        let (words, bits) = ((n / 64) as usize, n % 64);
        for i in (0..WORDS).rev() {
            let word = |at: Option<usize>| at.map_or(0, |at| self.0[at]);
            let high = word(i.checked_sub(words));
            let low = word(i.checked_sub(words + 1));
            self.0[i] = if bits == 0 { high } else { high << bits | low >> (64 - bits) };
        }
    }

    /// The order of two.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}
