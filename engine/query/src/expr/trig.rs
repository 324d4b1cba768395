//! Trigonometry, in radians.
//!
//! Decimals are computed by way of doubles: to some 15 digits, not 34. LANGUAGE.md lists that among the differences.

use super::arithmetic::one_number;
use super::datum::Datum;
use super::registry::{Arguments, ONE, Operator, TWO};
use crate::QueryError;
use crate::decimal;
use crate::number::Number;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$sin", shape: ONE, run: |args| finite(args, f64::sin) },
    Operator { name: "$cos", shape: ONE, run: |args| finite(args, f64::cos) },
    Operator { name: "$tan", shape: ONE, run: |args| finite(args, f64::tan) },
    Operator { name: "$asin", shape: ONE, run: |args| bounded(args, f64::asin, -1.0, 1.0) },
    Operator { name: "$acos", shape: ONE, run: |args| bounded(args, f64::acos, -1.0, 1.0) },
    Operator { name: "$atan", shape: ONE, run: |args| apply(args, f64::atan) },
    Operator { name: "$atan2", shape: TWO, run: atan2 },
    Operator { name: "$sinh", shape: ONE, run: |args| apply(args, f64::sinh) },
    Operator { name: "$cosh", shape: ONE, run: |args| apply(args, f64::cosh) },
    Operator { name: "$tanh", shape: ONE, run: |args| apply(args, f64::tanh) },
    Operator { name: "$asinh", shape: ONE, run: |args| apply(args, f64::asinh) },
    Operator { name: "$acosh", shape: ONE, run: |args| bounded(args, f64::acosh, 1.0, f64::INFINITY) },
    Operator { name: "$atanh", shape: ONE, run: |args| bounded(args, f64::atanh, -1.0, 1.0) },
    Operator { name: "$degreesToRadians", shape: ONE, run: |args| apply(args, f64::to_radians) },
    Operator { name: "$radiansToDegrees", shape: ONE, run: |args| apply(args, f64::to_degrees) },
];

fn apply<'a>(args: &Arguments<'_, 'a>, f: fn(f64) -> f64) -> Outcome<'a> {
    Ok(match one_number(args)? {
        None => Datum::Null,
        Some(n @ Number::Decimal(_)) => Datum::decimal(decimal::from_f64(f(n.to_f64()))),
        Some(n) => Datum::double(f(n.to_f64())),
    })
}

fn finite<'a>(args: &Arguments<'_, 'a>, f: fn(f64) -> f64) -> Outcome<'a> {
    if let Some(n) = one_number(args)?
        && n.to_f64().is_infinite()
    {
        return Err(out_of_range(args.name, n, "in (-inf, inf)"));
    }
    apply(args, f)
}

fn bounded<'a>(args: &Arguments<'_, 'a>, f: fn(f64) -> f64, low: f64, high: f64) -> Outcome<'a> {
    if let Some(n) = one_number(args)?
        && !n.is_nan()
        && !(low..=high).contains(&n.to_f64())
    {
        return Err(out_of_range(args.name, n, &format!("in [{low}, {high}]")));
    }
    apply(args, f)
}

fn out_of_range(name: &str, n: Number, wanted: &str) -> QueryError {
    QueryError::location(50989, format!("cannot apply {name} to {}, the value must be {wanted}", n.to_f64()))
}

fn atan2<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    match (args.get(0), args.get(1)) {
        (Datum::Number(y), Datum::Number(x)) => {
            let angle = y.to_f64().atan2(x.to_f64());
            let decimal = y.is_decimal() || x.is_decimal();
            Ok(if decimal { Datum::decimal(decimal::from_f64(angle)) } else { Datum::double(angle) })
        }
        (Datum::Number(_), other) | (other, _) => {
            let message = format!("$atan2 only supports numeric types, not {}", other.type_name());
            Err(QueryError::location(51044, message))
        }
    }
}
