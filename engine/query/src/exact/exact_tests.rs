//! Exact sums, held to the same sums of whole numbers, and to any split of them.

use super::*;

/// A generator (splitmix64, Steele, Lea, Flood 2014) that gives the same numbers each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A finite double whose exponent lies among `exponents`, from `low` on.
    fn double(&mut self, low: u64, exponents: u64) -> f64 {
        let bits = self.next() & (1 << 63 | ((1 << 52) - 1)) | (low + self.below(exponents)) << 52;
        f64::from_bits(bits)
    }
}

/// The correctly rounded sum by another way: J. R. Shewchuk's growing expansions (1997), rounded as Python's `fsum` does.
fn shewchuk(numbers: &[f64]) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for &n in numbers {
        let mut x = n;
        let mut kept = Vec::new();
        for &y in &partials {
            let (big, small) = if x.abs() < y.abs() { (y, x) } else { (x, y) };
            let high = big + small;
            let low = small - (high - big);
            if low != 0.0 {
                kept.push(low);
            }
            x = high;
        }
        kept.push(x);
        partials = kept;
    }
    let mut high = partials.pop().unwrap_or(0.0);
    let mut low = 0.0;
    while let Some(y) = partials.pop() {
        let x = high;
        high = x + y;
        low = y - (high - x);
        if low != 0.0 {
            break;
        }
    }
    if let Some(y) = partials.last()
        && (low < 0.0 && *y < 0.0 || low > 0.0 && *y > 0.0)
    {
        let twice = low * 2.0;
        let x = high + twice;
        if twice == x - high {
            high = x;
        }
    }
    high
}

fn sum_of(numbers: &[Number]) -> Sum {
    let mut sum = Sum::default();
    numbers.iter().for_each(|n| sum.add(*n));
    sum
}

fn doubles(numbers: &[f64]) -> Number {
    sum_of(&numbers.iter().map(|n| Number::Double(*n)).collect::<Vec<_>>()).finish()
}

fn decimal(text: &str) -> Number {
    let json = format!("{{\"$numberDecimal\": \"{text}\"}}");
    let value = quarrydb_jsonb::parse(json.as_bytes()).expect("a decimal");
    Number::of(value.view()).expect("a number")
}

/// Numbers are the same only with the same type and bits.
fn bits(n: Number) -> String {
    match n {
        Number::Double(d) => format!("double {:x}", d.to_bits()),
        Number::Decimal(d) => format!("decimal {:x}", d.to_bits()),
        other => format!("{other:?}"),
    }
}

#[test]
fn doubles_are_rounded_once() {
    for (numbers, expected) in [
        (&[0.1; 10][..], 1.0),
        (&[1e16, 1.0, -1e16], 1.0),
        (&[1e308, 1e308, -1e308], 1e308),
        (&[f64::MAX, f64::MAX], f64::INFINITY),
        (&[f64::MIN, f64::MIN], f64::NEG_INFINITY),
        (&[5e-324, 5e-324, 5e-324], 1.5e-323),
        (&[5e-324, -5e-324], 0.0),
        (&[1e308, 5e-324, -1e308], 5e-324),
        (&[-0.0, -0.0], 0.0),
        (&[f64::INFINITY, 1.0], f64::INFINITY),
        (&[f64::NEG_INFINITY, f64::MAX], f64::NEG_INFINITY),
        // Half of the last place goes to the even one; a little more goes up, however small it is.
        (&[9_007_199_254_740_992.0, 1.0], 9_007_199_254_740_992.0),
        (&[9_007_199_254_740_992.0, 1.0, 1e-300], 9_007_199_254_740_994.0),
        (&[9_007_199_254_740_994.0, 1.0], 9_007_199_254_740_996.0),
        (&[2.225_073_858_507_201e-308, 5e-324], 2.225_073_858_507_201_4e-308),
    ] {
        assert_eq!(bits(doubles(numbers)), bits(Number::Double(expected)), "{numbers:?}");
    }
    for numbers in [[f64::NAN, 1.0], [f64::INFINITY, f64::NEG_INFINITY]] {
        assert!(doubles(&numbers).is_nan(), "{numbers:?}");
    }
}

#[test]
fn random_doubles_sum_as_by_another_method_in_every_order_and_split() {
    let mut random = Random(7);
    // Prices, all that is normal, what is nearly nothing, and far apart.
    for (low, exponents) in [(1020, 14), (1, 1990), (0, 40), (600, 900)] {
        for round in 0..40 {
            let mut numbers: Vec<f64> = (0..1 + random.below(200)).map(|_| random.double(low, exponents)).collect();
            if round % 2 == 0 {
                // Most cancels.
                let negated: Vec<f64> = numbers.iter().skip(1).map(|n| -n).collect();
                numbers.extend(negated);
            }
            let expected = bits(Number::Double(shewchuk(&numbers)));
            assert_eq!(bits(doubles(&numbers)), expected, "{numbers:?}");
            for at in 1..numbers.len() {
                numbers.swap(at, random.below(at as u64 + 1) as usize);
            }
            assert_eq!(bits(doubles(&numbers)), expected, "in another order: {numbers:?}");
            let mut merged = Sum::default();
            for part in numbers.chunks(1 + random.below(50) as usize) {
                let part = sum_of(&part.iter().map(|n| Number::Double(*n)).collect::<Vec<_>>());
                let mut stored = Vec::new();
                part.write(&mut stored);
                let mut from = Reader(&stored);
                merged.merge(&Sum::read(&mut from).expect("what was written"));
                assert!(from.0.is_empty());
            }
            assert_eq!(bits(merged.finish()), expected, "in parts: {numbers:?}");
        }
    }
}

#[test]
fn the_widest_type_wins_and_integers_that_overflow_go_on() {
    let int = Number::Int32;
    let long = Number::Int64;
    for (numbers, expected) in [
        (vec![], int(0)),
        (vec![int(1), int(2)], int(3)),
        (vec![int(i32::MAX), int(1)], long(2_147_483_648)),
        (vec![int(1), long(2)], long(3)),
        (vec![long(i64::MAX), long(i64::MAX), long(-i64::MAX)], long(i64::MAX)),
        (vec![long(i64::MAX), long(1)], Number::Double(9_223_372_036_854_775_808.0)),
        (vec![long(i64::MAX), int(1), Number::Double(-9_223_372_036_854_775_808.0)], Number::Double(0.0)),
        (vec![int(1), Number::Double(0.5)], Number::Double(1.5)),
        (vec![long(9_007_199_254_740_993), Number::Double(-1.0)], Number::Double(9_007_199_254_740_992.0)),
        (vec![int(1), decimal("2.50")], decimal("3.50")),
        (vec![Number::Double(0.5), decimal("2")], decimal("2.5")),
        // As exact as 34 digits are: a double is what it is, not what it prints as.
        (vec![Number::Double(0.1), decimal("1")], decimal("1.100000000000000005551115123125783")),
        (vec![decimal("1e34"), decimal("0.1"), decimal("0.11"), decimal("-1e34")], decimal("0.21")),
        (vec![Number::Double(1e34), decimal("0.1"), decimal("0.11"), Number::Double(-1e34)], decimal("0.21")),
        (vec![decimal("NaN"), int(1)], decimal("NaN")),
        (vec![decimal("Infinity"), Number::Double(1.0)], decimal("Infinity")),
        (vec![decimal("1"), Number::Double(f64::NEG_INFINITY)], decimal("-Infinity")),
        (vec![decimal("Infinity"), Number::Double(f64::NEG_INFINITY)], decimal("NaN")),
    ] {
        assert_eq!(bits(sum_of(&numbers).finish()), bits(expected), "{numbers:?}");
        let turned: Vec<Number> = numbers.iter().rev().copied().collect();
        assert_eq!(bits(sum_of(&turned).finish()), bits(expected), "{turned:?}");
    }
}

#[test]
fn decimals_are_rounded_once_and_keep_their_places() {
    for (numbers, expected) in [
        (&["1.10", "2.2"][..], "3.30"),
        (&["-0", "-0"], "0"),
        (&["1", "-1.000"], "0.000"),
        (&["9999999999999999999999999999999999", "1"], "1.000000000000000000000000000000000E+34"),
        (&["1E+40", "1"], "1.000000000000000000000000000000000E+40"),
        (&["1E+40"], "1.000000000000000000000000000000000E+40"),
        (&["9.999999999999999999999999999999999E+6144", "9.999999999999999999999999999999999E+6144"], "Infinity"),
        (&["1E-6176", "1E-6176"], "2E-6176"),
        // A half goes to the even digit, and a little more goes up.
        (&["1000000000000000000000000000000001", "0.5"], "1000000000000000000000000000000002"),
        (&["1000000000000000000000000000000002", "0.5"], "1000000000000000000000000000000002"),
        (&["1000000000000000000000000000000002", "0.5", "1E-6000"], "1000000000000000000000000000000003"),
        (&["-1000000000000000000000000000000002", "-0.5", "-1E-6000"], "-1000000000000000000000000000000003"),
    ] {
        let numbers: Vec<Number> = numbers.iter().map(|n| decimal(n)).collect();
        assert_eq!(bits(sum_of(&numbers).finish()), bits(decimal(expected)), "{numbers:?}");
    }
}
