//! The double that a text means to `$convert`: decimal, hexadecimal as C has it, infinity, NaN.
//!
//! What is too large, or so small that it would be zero, means nothing; nor does a hexadecimal text that begins with `0x`
//! as it is, which MongoDB refuses (`+0x1p0` and `0X1P0` it takes).

/// The double; none where the text is none.
pub(super) fn parse(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        if text.starts_with("0x") {
            return None;
        }
        return hexadecimal(hex).map(|n| if negative { -n } else { n });
    }
    let numeric = unsigned.bytes().next().is_some_and(|b| b.is_ascii_digit() || b".IiNn".contains(&b));
    let n: f64 = text.parse().ok().filter(|_| numeric)?;
    let digits = unsigned.bytes().next().is_some_and(|b| b.is_ascii_digit() || b == b'.');
    let significand = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let lost = n == 0.0 && significand.bytes().any(|b| (b'1'..=b'9').contains(&b));
    if lost || (digits && n.is_infinite()) { None } else { Some(n) }
}

/// What stands behind `0x`: hex digits with a point, and a power of two in decimal.
fn hexadecimal(text: &str) -> Option<f64> {
    let (significand, exponent) = match text.split_once(['p', 'P']) {
        Some((significand, exponent)) => (significand, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = significand.split_once('.').unwrap_or((significand, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut n, mut scale) = (0.0_f64, 0_i32);
    let mut nonzero = false;
    for (b, behind_point) in whole.bytes().map(|b| (b, false)).chain(fraction.bytes().map(|b| (b, true))) {
        let digit = char::from(b).to_digit(16)?;
        nonzero |= digit != 0;
        n = n * 16.0 + f64::from(digit);
        if behind_point {
            scale -= 4;
        }
        if !n.is_finite() {
            return None;
        }
    }
    let n = times_power_of_two(n, exponent.saturating_add(scale));
    (n.is_finite() && (n != 0.0 || !nonzero)).then_some(n)
}

/// `n * 2^exponent`, by steps that are exact as long as the result is a normal number.
fn times_power_of_two(mut n: f64, exponent: i32) -> f64 {
    const STEP: i32 = 1000;
    let mut left = exponent.clamp(-3 * STEP, 3 * STEP);
    while left != 0 {
        let step = left.clamp(-STEP, STEP);
        n *= 2.0_f64.powi(step);
        left -= step;
    }
    n
}
