//! The Mersenne Twister as CPython seeds and reads it, so that a corpus is the same here and in a script of ten lines.
//!
//! Takes a seed, gives numbers. Matsumoto and Nishimura 1998 (MT19937), `init_by_array` of 2002, and the three ways of
//! reading it that Python's `random.Random` has. No good for secrets. The next file is `dataset.rs`.

const N: usize = 624;
const M: usize = 397;

/// The state of one generator.
#[derive(Clone, Debug)]
pub struct Mersenne {
    state: [u32; N],
    next: usize,
}

impl Mersenne {
    /// As `random.Random(seed)` for a seed of 32 bits.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let mut state = [0_u32; N];
        state[0] = 19_650_218;
        for i in 1..N {
            state[i] = mixed(state[i - 1]).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        let step = |i: usize, state: &mut [u32; N]| {
            if i + 1 >= N {
                state[0] = state[N - 1];
                1
            } else {
                i + 1
            }
        };
        for _ in 0..N {
            state[i] = (state[i] ^ mixed(state[i - 1]).wrapping_mul(1_664_525)).wrapping_add(seed);
            i = step(i, &mut state);
        }
        for _ in 0..N - 1 {
            state[i] = (state[i] ^ mixed(state[i - 1]).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i = step(i, &mut state);
        }
        state[0] = 0x8000_0000;
        Self { state, next: N }
    }

    /// The next 32 bits.
    pub fn bits(&mut self) -> u32 {
        if self.next == N {
            for i in 0..N {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
                self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ if y & 1 == 1 { 0x9908_b0df } else { 0 };
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// As `random()`: 53 bits in [0, 1).
    pub fn unit(&mut self) -> f64 {
        let (high, low) = (self.bits() >> 5, self.bits() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// As `choice(...)`: a number below `n`, each equally likely.
    ///
    /// # Panics
    /// Where `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "there is nothing below zero");
        let bits = 32 - n.leading_zeros();
        loop {
            let drawn = self.bits() >> (32 - bits);
            if drawn < n {
                return drawn;
            }
        }
    }
}

fn mixed(before: u32) -> u32 {
    before ^ (before >> 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected: CPython 3.11, r = random.Random(42), then the calls named.
    #[test]
    fn it_draws_what_python_draws() {
        let mut r = Mersenne::new(42);
        let drawn: Vec<u32> = (0..3).map(|_| r.bits()).collect();
        assert_eq!(drawn, [2_746_317_213, 478_163_327, 107_420_369]);
        let mut r = Mersenne::new(42);
        assert_eq!(r.unit().to_bits(), 0.639_426_798_457_883_7_f64.to_bits());
        let mut r = Mersenne::new(42);
        let chosen: Vec<u32> = (0..12).map(|_| r.below(10)).collect();
        assert_eq!(chosen, [1, 0, 4, 3, 3, 2, 1, 8, 1, 9, 6, 0]);
    }
}
