//! decimal128 as text: the forms, the clamping and the refusals of the BSON decimal128 specification.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{Decimal128, ErrorKind};

#[test]
fn text_and_bits_are_those_of_the_specification() {
    // (bits, canonical text), worked out from the encoding: sign, 14 bits of exponent + 6176, 113 bits of coefficient.
    let bits = |negative: bool, coefficient: u128, exponent: i32| {
        u128::from(negative) << 127 | ((exponent + 6176) as u128) << 113 | coefficient
    };
    let all_nines = 9_999_999_999_999_999_999_999_999_999_999_999_u128;
    for (wanted, text) in [
        (bits(false, 0, 0), "0"),
        (bits(true, 0, 0), "-0"),
        (bits(true, 0, -1), "-0.0"),
        (bits(false, 0, 3), "0E+3"),
        (bits(false, 0, -7), "0E-7"),
        (bits(false, 0, -6176), "0E-6176"),
        (bits(false, 0, 6111), "0E+6111"),
        (bits(false, 1, 0), "1"),
        (bits(false, 10, -1), "1.0"),
        (bits(false, 1, -1), "0.1"),
        (bits(false, 1, -6), "0.000001"),
        (bits(false, 1, -7), "1E-7"),
        (bits(false, 12, -8), "1.2E-7"),
        (bits(false, 12345678901234567, -16), "1.2345678901234567"),
        (bits(false, 123, -2), "1.23"),
        (bits(true, 123, 2), "-1.23E+4"),
        (bits(false, 1, 3), "1E+3"),
        (bits(false, all_nines, 0), "9999999999999999999999999999999999"),
        (bits(false, all_nines, 6111), "9.999999999999999999999999999999999E+6144"),
        (bits(true, all_nines, 6111), "-9.999999999999999999999999999999999E+6144"),
        (bits(false, 1, -6176), "1E-6176"),
        (bits(false, 10_u128.pow(33), 6111), "1.000000000000000000000000000000000E+6144"),
        (0x1e << 122, "Infinity"),
        (1 << 127 | 0x1e << 122, "-Infinity"),
        (0x1f << 122, "NaN"),
    ] {
        let v = Decimal128::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(v.to_bits(), wanted, "{text}");
        assert_eq!(Decimal128::from_bits(wanted).to_string(), text);
    }
}

#[test]
fn other_spellings_mean_the_same() {
    for (text, canonical) in [
        ("+1", "1"),
        ("007.50", "7.50"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1E+3"),
        ("1E03", "1E+3"),
        ("100E-2", "1.00"),
        ("inf", "Infinity"),
        ("-INFINITY", "-Infinity"),
        ("nan", "NaN"),
        ("-NaN", "NaN"),
        // Clamping: the exponent comes into range by zeros of the coefficient.
        ("1E+6144", "1.000000000000000000000000000000000E+6144"),
        ("1.2E+6143", "1.20000000000000000000000000000000E+6143"),
        ("10E-6177", "1E-6176"),
        ("0E+99999999999999999999", "0E+6111"),
        ("-0E-8000", "-0E-6176"),
        // More digits than fit, the last of them zeros.
        ("10000000000000000000000000000000000", "1.000000000000000000000000000000000E+34"),
        ("1.00000000000000000000000000000000000000", "1.000000000000000000000000000000000"),
        ("0.00000000000000000000000000000000000000000000000001", "1E-50"),
    ] {
        assert_eq!(Decimal128::parse(text).unwrap().to_string(), canonical, "{text}");
    }
}

#[test]
fn what_cannot_be_held_exactly_or_is_no_number_is_refused() {
    for text in [
        "12345678901234567890123456789012345",
        "1.0000000000000000000000000000000001",
        "1E+6145",
        "1.0E-6177",
        "1E-6177",
        "123E+6143",
        "1E+999999999999999999999999",
        "1E-999999999999999999999999",
    ] {
        let e = Decimal128::parse(text);
        if text == "1.0E-6177" {
            // 10 * 10^-6178: one zero to take off is one too few.
            assert!(e.is_err(), "{text}");
            continue;
        }
        assert_eq!(e.unwrap_err().kind(), ErrorKind::NumberOutOfRange, "{text}");
    }
    for text in [
        "", "-", "+", ".", "e5", "1e", "1e+", "1..2", "1.2.3", "--1", "1 ", " 1", "0x1", "1_0", "infinit", "\u{661}",
        "1e5.0", "1-",
    ] {
        assert_eq!(Decimal128::parse(text).unwrap_err().kind(), ErrorKind::BadWrapper, "{text:?}");
    }
}

#[test]
fn parts_and_integers_come_back() {
    for v in [0, 1, -1, i64::MAX, i64::MIN, 10_000_000_000_000_000] {
        let d = Decimal128::from_i64(v);
        assert_eq!(d.to_string(), v.to_string());
        assert_eq!(d.parts(), Some((v < 0, u128::from(v.unsigned_abs()), 0)));
    }
    assert_eq!(Decimal128::from_u64(u64::MAX).to_string(), u64::MAX.to_string());
    assert_eq!(Decimal128::from_parts(true, 15, -1), Some(Decimal128::parse("-1.5").unwrap()));
    assert_eq!(Decimal128::from_parts(false, 10_u128.pow(34), 0), None);
    assert_eq!(Decimal128::from_parts(false, 1, 6112), None);
    assert_eq!(Decimal128::from_parts(false, 1, -6177), None);
    assert!(Decimal128::NAN.is_nan() && !Decimal128::NAN.is_infinite() && Decimal128::NAN.parts().is_none());
    assert!(Decimal128::NEG_INFINITY.is_infinite() && Decimal128::NEG_INFINITY.is_negative());
}

#[test]
fn every_encoding_prints_and_what_it_prints_reads_back() {
    let mut seed = 3_u128;
    for _ in 0..20_000 {
        seed = seed
            .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
            .wrapping_add(0x5851_f42d_4c95_7f2d_1405_7b7e_f767_814f);
        let v = Decimal128::from_bits(seed ^ seed >> 64);
        let text = v.to_string();
        let back = Decimal128::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(back.to_string(), text);
        if let Some((negative, coefficient, exponent)) = v.parts() {
            assert_eq!(back.parts(), Some((negative, coefficient, exponent)), "{text}");
        }
    }
}
