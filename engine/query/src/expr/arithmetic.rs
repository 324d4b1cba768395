//! Arithmetic: sums, products, powers, roots, rounding.
//!
//! Integers that overflow become doubles in sums and products, as in MongoDB; decimals are rounded to 34 digits. Null and
//! missing give null; other types are errors.

use super::datum::Datum;
use super::registry::{ANY, Arguments, ONE, Operator, Shape, TWO};
use super::statistics::Sum;
use crate::QueryError;
use crate::decimal::{self, Round};
use crate::number::{Number, Operation};
use quarrydb_jsonb::Decimal128;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$add", shape: ANY, run: add },
    Operator { name: "$subtract", shape: TWO, run: subtract },
    Operator { name: "$multiply", shape: ANY, run: multiply },
    Operator { name: "$divide", shape: TWO, run: divide },
    Operator { name: "$mod", shape: TWO, run: modulo },
    Operator { name: "$abs", shape: ONE, run: abs },
    Operator { name: "$ceil", shape: ONE, run: ceil },
    Operator { name: "$floor", shape: ONE, run: floor },
    Operator { name: "$round", shape: Shape::Positional(1, 2), run: round },
    Operator { name: "$trunc", shape: Shape::Positional(1, 2), run: trunc },
    Operator { name: "$sqrt", shape: ONE, run: sqrt },
    Operator { name: "$exp", shape: ONE, run: exp },
    Operator { name: "$ln", shape: ONE, run: ln },
    Operator { name: "$log10", shape: ONE, run: log10 },
    Operator { name: "$log", shape: TWO, run: log },
    Operator { name: "$pow", shape: TWO, run: pow },
];

/// `a op b`; an int64 that overflows becomes a double.
pub(super) fn combine(a: Number, op: Operation, b: Number) -> Number {
    a.combine(op, b).unwrap_or_else(|| {
        let (a, b) = (a.to_f64(), b.to_f64());
        Number::Double(match op {
            Operation::Add => a + b,
            Operation::Sub => a - b,
            Operation::Mul => a * b,
        })
    })
}

fn add<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut sum = Sum::default();
    let mut date = None;
    let mut null = false;
    for argument in args.all() {
        match argument {
            Datum::Number(n) => sum.add(*n),
            Datum::Date(ms) if date.is_none() => date = Some(*ms),
            Datum::Date(_) => return Err(QueryError::location(16612, "only one date allowed in an $add expression")),
            Datum::Missing | Datum::Null => {
                null = true;
                break;
            }
            other => {
                let message = format!("$add only supports numeric or date types, not {}", other.type_name());
                return Err(QueryError::type_mismatch(message));
            }
        }
    }
    if null {
        return Ok(Datum::Null);
    }
    match date {
        None => Ok(Datum::Number(sum.finish())),
        Some(date) => shifted(date, sum.finish(), 1).map(Datum::Date),
    }
}

/// A date and so many milliseconds, rounded to whole ones.
fn shifted(date: i64, by: Number, sign: i64) -> Result<i64, QueryError> {
    let overflow = || QueryError::new("Overflow", 15, "date overflow");
    let by = match by {
        Number::Double(d) => crate::number::whole_f64(d.round()),
        Number::Decimal(d) => Number::Decimal(decimal::round_to(d, 0, Round::HalfEven)).as_whole(),
        other => other.as_i64(),
    };
    let by = by.and_then(|by| by.checked_mul(sign)).ok_or_else(overflow)?;
    date.checked_add(by).ok_or_else(overflow)
}

fn subtract<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    match (args.get(0), args.get(1)) {
        (Datum::Number(a), Datum::Number(b)) => Ok(Datum::Number(combine(*a, Operation::Sub, *b))),
        (Datum::Date(a), Datum::Date(b)) => {
            let difference = a.checked_sub(*b).ok_or_else(|| QueryError::new("Overflow", 15, "date overflow"))?;
            Ok(Datum::long(difference))
        }
        (Datum::Date(a), Datum::Number(b)) => shifted(*a, *b, -1).map(Datum::Date),
        (a, b) => {
            let message = format!("can't $subtract {} from {}", b.type_name(), a.type_name());
            Err(QueryError::type_mismatch(message))
        }
    }
}

fn multiply<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut product = Number::Int32(1);
    let mut null = false;
    for argument in args.all() {
        match argument {
            Datum::Number(n) => product = combine(product, Operation::Mul, *n),
            Datum::Missing | Datum::Null => null = true,
            other => {
                let message = format!("$multiply only supports numeric types, not {}", other.type_name());
                return Err(QueryError::type_mismatch(message));
            }
        }
        if null {
            return Ok(Datum::Null);
        }
    }
    Ok(Datum::Number(product))
}

fn two_numbers(args: &Arguments<'_, '_>) -> Result<(Number, Number), QueryError> {
    match (args.get(0), args.get(1)) {
        (Datum::Number(a), Datum::Number(b)) => Ok((*a, *b)),
        (a, b) => {
            let message =
                format!("{} only supports numeric types, not {} and {}", args.name, a.type_name(), b.type_name());
            Err(if args.name == "$mod" {
                QueryError::location(16611, message)
            } else {
                QueryError::type_mismatch(message)
            })
        }
    }
}

fn divide<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let (a, b) = two_numbers(args)?;
    if b.is_zero() {
        return Err(QueryError::bad_value("can't $divide by zero"));
    }
    Ok(if a.is_decimal() || b.is_decimal() {
        Datum::decimal(decimal::div(a.to_decimal(), b.to_decimal()))
    } else {
        Datum::double(a.to_f64() / b.to_f64())
    })
}

fn modulo<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let (a, b) = two_numbers(args)?;
    if b.is_zero() {
        let code = if a.is_decimal() || b.is_decimal() { 5_733_415 } else { 16610 };
        return Err(QueryError::location(code, "can't $mod by zero"));
    }
    if a.is_decimal() || b.is_decimal() {
        return Ok(Datum::decimal(decimal::rem(a.to_decimal(), b.to_decimal())));
    }
    // A whole double on the right is taken as an integer, as in MongoDB.
    if let (Some(x), Some(y)) = (a.as_whole(), b.as_whole()) {
        let r = x.checked_rem(y).unwrap_or(0);
        let narrow = matches!((a, b), (Number::Int32(_) | Number::Double(_), Number::Int32(_) | Number::Double(_)));
        return Ok(match i32::try_from(r) {
            _ if matches!(a, Number::Double(_)) => Datum::double(a.to_f64() % b.to_f64()),
            Ok(r) if narrow => Datum::int(r),
            _ => Datum::long(r),
        });
    }
    Ok(Datum::double(a.to_f64() % b.to_f64()))
}

/// The one number of a call; none where it is null or missing.
pub(super) fn one_number(args: &Arguments<'_, '_>) -> Result<Option<Number>, QueryError> {
    match args.get(0) {
        Datum::Number(n) => Ok(Some(*n)),
        Datum::Missing | Datum::Null => Ok(None),
        other => {
            let message = format!("{} only supports numeric types, not {}", args.name, other.type_name());
            Err(QueryError::location(28765, message))
        }
    }
}

/// The same by a function on doubles and one on decimals.
pub(super) fn real<'a>(
    args: &Arguments<'_, '_>,
    double: impl FnOnce(f64) -> Result<f64, QueryError>,
    decimal: impl FnOnce(Decimal128) -> Result<Decimal128, QueryError>,
) -> Outcome<'a> {
    Ok(match one_number(args)? {
        None => Datum::Null,
        Some(Number::Decimal(d)) => Datum::decimal(decimal(d)?),
        Some(n) => Datum::double(double(n.to_f64())?),
    })
}

fn abs<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    Ok(match one_number(args)? {
        None => Datum::Null,
        Some(Number::Int32(n)) => n.checked_abs().map_or(Datum::long(i64::from(n).abs()), Datum::int),
        Some(Number::Int64(n)) => match n.checked_abs() {
            Some(n) => Datum::long(n),
            None => return Err(QueryError::location(28680, "can't take $abs of long long min")),
        },
        Some(Number::Double(n)) => Datum::double(n.abs()),
        Some(Number::Decimal(n)) => Datum::decimal(decimal::abs(n)),
    })
}

fn whole<'a>(args: &Arguments<'_, '_>, double: fn(f64) -> f64, how: Round) -> Outcome<'a> {
    Ok(match one_number(args)? {
        None => Datum::Null,
        Some(Number::Double(n)) => Datum::double(double(n)),
        Some(Number::Decimal(n)) => Datum::decimal(decimal::round_to(n, 0, how)),
        Some(n) => Datum::Number(n),
    })
}

fn ceil<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    whole(args, f64::ceil, Round::Ceiling)
}

fn floor<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    whole(args, f64::floor, Round::Floor)
}

fn round<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    rounded(args, Round::HalfEven)
}

fn trunc<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    rounded(args, Round::Down)
}

const PLACES_MIN: i64 = -20;
const PLACES_MAX: i64 = 100;

fn rounded<'a>(args: &Arguments<'_, '_>, how: Round) -> Outcome<'a> {
    let place = if args.len() > 1 {
        match args.get(1) {
            Datum::Missing | Datum::Null => return Ok(Datum::Null),
            Datum::Number(n) => match n.as_whole() {
                None => {
                    let message = format!("precision argument to {} must be a integral value", args.name);
                    return Err(QueryError::location(51082, message));
                }
                Some(n) if !(PLACES_MIN..=PLACES_MAX).contains(&n) => {
                    let message =
                        format!("cannot apply {} with precision value {n}: it must be in [-20, 100]", args.name);
                    return Err(QueryError::location(51083, message));
                }
                Some(n) => n as i32,
            },
            other => {
                let message =
                    format!("precision argument to {} must be a integral value, not {}", args.name, other.type_name());
                return Err(QueryError::location(51082, message));
            }
        }
    } else {
        0
    };
    let n = match args.get(0) {
        Datum::Missing | Datum::Null => return Ok(Datum::Null),
        Datum::Number(n) => *n,
        other => {
            let message = format!("{} only supports numeric types, not {}", args.name, other.type_name());
            return Err(QueryError::location(51081, message));
        }
    };
    Ok(match n {
        Number::Decimal(d) => Datum::decimal(decimal::round_to(d, place, how)),
        Number::Double(d) => Datum::double(round_double(d, place, how)),
        Number::Int32(_) | Number::Int64(_) if place >= 0 => Datum::Number(n),
        n => round_integer(n, place, how)?,
    })
}

fn round_double(d: f64, place: i32, how: Round) -> f64 {
    if !d.is_finite() {
        return d;
    }
    if place == 0 {
        return match how {
            Round::Down => d.trunc(),
            _ => d.round_ties_even(),
        };
    }
    // The decimal expansion of a double is finite: rounding its first 34 digits is as good as rounding all.
    let exact = decimal_of_double(d);
    decimal::to_f64(decimal::round_to(exact, place, how))
}

/// A double to 34 digits.
fn decimal_of_double(d: f64) -> Decimal128 {
    let text = format!("{:.33e}", d.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    decimal::from_parts(d < 0.0, digits.parse().unwrap_or(0), exponent.parse::<i32>().unwrap_or(0) - 33)
}

fn round_integer<'a>(n: Number, place: i32, how: Round) -> Outcome<'a> {
    let value = i128::from(n.as_i64().unwrap_or(0));
    let unit = 10_i128.pow(place.unsigned_abs());
    let down = value / unit * unit;
    let rest = (value - down).abs();
    let even = (down / unit) % 2 == 0;
    let up = how == Round::HalfEven && (rest * 2 > unit || (rest * 2 == unit && !even));
    let rounded = if up { down + unit * value.signum() } else { down };
    match (n, i32::try_from(rounded), i64::try_from(rounded)) {
        (Number::Int32(_), Ok(n), _) => Ok(Datum::int(n)),
        (_, _, Ok(n)) => Ok(Datum::long(n)),
        _ => Err(QueryError::location(51080, "invalid conversion to int: the rounded value is out of range")),
    }
}

fn sqrt<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let negative = || QueryError::location(28714, "$sqrt's argument must be greater than or equal to 0");
    real(
        args,
        |d| if d < 0.0 { Err(negative()) } else { Ok(d.sqrt()) },
        |d| {
            if d.is_negative() && !decimal::is_zero(d) && !d.is_nan() { Err(negative()) } else { Ok(decimal::sqrt(d)) }
        },
    )
}

fn exp<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    real(args, |d| Ok(d.exp()), |d| Ok(decimal::exp(d)))
}

fn not_positive(n: Number) -> bool {
    !n.is_nan() && (n.is_zero() || n.to_f64() < 0.0 || matches!(n, Number::Decimal(d) if d.is_negative()))
}

fn logarithm<'a>(
    args: &Arguments<'_, '_>,
    code: i32,
    double: fn(f64) -> f64,
    decimal: fn(Decimal128) -> Decimal128,
) -> Outcome<'a> {
    if let Some(n) = one_number(args)?
        && not_positive(n)
    {
        let message = format!("{}'s argument must be a positive number", args.name);
        return Err(QueryError::location(code, message));
    }
    real(args, |d| Ok(double(d)), |d| Ok(decimal(d)))
}

fn ln<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    logarithm(args, 28766, f64::ln, decimal::ln)
}

fn log10<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    logarithm(args, 28761, f64::log10, decimal::log10)
}

fn log<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let Datum::Number(n) = *args.get(0) else {
        let message = format!("$log's argument must be numeric, not {}", args.get(0).type_name());
        return Err(QueryError::location(28756, message));
    };
    let Datum::Number(base) = *args.get(1) else {
        let message = format!("$log's base must be numeric, not {}", args.get(1).type_name());
        return Err(QueryError::location(28757, message));
    };
    if not_positive(n) {
        return Err(QueryError::location(28758, "$log's argument must be a positive number"));
    }
    if not_positive(base) || base.to_f64() == 1.0 {
        return Err(QueryError::location(28759, "$log's base must be a positive number not equal to 1"));
    }
    Ok(if n.is_decimal() || base.is_decimal() {
        Datum::decimal(decimal::div(decimal::ln(n.to_decimal()), decimal::ln(base.to_decimal())))
    } else {
        Datum::double(n.to_f64().ln() / base.to_f64().ln())
    })
}

fn pow<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let Datum::Number(base) = *args.get(0) else {
        let message = format!("$pow's base must be numeric, not {}", args.get(0).type_name());
        return Err(QueryError::location(28762, message));
    };
    let Datum::Number(exponent) = *args.get(1) else {
        let message = format!("$pow's exponent must be numeric, not {}", args.get(1).type_name());
        return Err(QueryError::location(28763, message));
    };
    if base.is_zero() && exponent.to_f64() < 0.0 {
        return Err(QueryError::location(28764, "$pow cannot take a base of 0 and a negative exponent"));
    }
    if base.is_decimal() || exponent.is_decimal() {
        return Ok(Datum::decimal(decimal::pow(base.to_decimal(), exponent.to_decimal())));
    }
    if let (Some(b), Some(e)) = (base.as_i64(), exponent.as_i64()) {
        let whole = match (b, e) {
            (1, _) => Some(1),
            (-1, e) => Some(if e % 2 == 0 { 1 } else { -1 }),
            (_, 0..) => u32::try_from(e).ok().and_then(|e| b.checked_pow(e)),
            _ => None,
        };
        let narrow = matches!((base, exponent), (Number::Int32(_), Number::Int32(_)));
        return Ok(match whole {
            None => Datum::double((b as f64).powf(e as f64)),
            Some(n) => match i32::try_from(n) {
                Ok(n) if narrow => Datum::int(n),
                _ => Datum::long(n),
            },
        });
    }
    Ok(Datum::double(base.to_f64().powf(exponent.to_f64())))
}
