//! Conversion between types: `$convert`, its short forms, and the implicit conversion to text.
//!
//! Numbers are cut towards zero and must fit; strings must be whole numbers of the type; what has no meaning in another
//! type is `ConversionFailure` (241), which `onError` catches.

use super::ast::ConvertCall;
use super::binary_number::{self, ByteOrder};
use super::datum::Datum;
use super::evaluate::evaluate;
use super::registry::{Arguments, ONE, Operator};
use super::scope::Scope;
use super::{binary_text, date_format, date_parse, double_text};
use crate::QueryError;
use crate::decimal;
use crate::number::Number;
use quarrydb_jsonb::{Decimal128, Kind, Value};
use std::borrow::Cow;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

/// The short forms of `$convert`.
pub(super) const SHORT_FORMS: [&str; 9] =
    ["$toBool", "$toInt", "$toLong", "$toDouble", "$toDecimal", "$toString", "$toObjectId", "$toDate", "$toUUID"];

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$toBool", shape: ONE, run: |args| short(args, Target::plain(Kind::Bool)) },
    Operator { name: "$toInt", shape: ONE, run: |args| short(args, Target::plain(Kind::Int32)) },
    Operator { name: "$toLong", shape: ONE, run: |args| short(args, Target::plain(Kind::Int64)) },
    Operator { name: "$toDouble", shape: ONE, run: |args| short(args, Target::plain(Kind::Double)) },
    Operator { name: "$toDecimal", shape: ONE, run: |args| short(args, Target::plain(Kind::Decimal128)) },
    Operator {
        name: "$toString",
        shape: ONE,
        run: |args| short(args, Target { format: Some("auto"), ..Target::plain(Kind::String) }),
    },
    Operator { name: "$toObjectId", shape: ONE, run: |args| short(args, Target::plain(Kind::ObjectId)) },
    Operator { name: "$toDate", shape: ONE, run: |args| short(args, Target::plain(Kind::Date)) },
    Operator {
        name: "$toUUID",
        shape: ONE,
        run: |args| short(args, Target { subtype: 4, format: Some("uuid"), ..Target::plain(Kind::Binary) }),
    },
];

/// What to convert to.
#[derive(Clone, Copy, Debug)]
struct Target<'t> {
    kind: Kind,
    /// Of binary data.
    subtype: u8,
    /// How binary data stands as text.
    format: Option<&'t str>,
    /// How numbers stand as binary data.
    byte_order: ByteOrder,
}

impl Target<'_> {
    const fn plain(kind: Kind) -> Self {
        Self { kind, subtype: 0, format: None, byte_order: ByteOrder::Little }
    }
}

fn failure(message: impl Into<String>) -> QueryError {
    let mut message = message.into();
    message.push_str(" in $convert with no onError value");
    QueryError::new("ConversionFailure", 241, message)
}

fn short<'a>(args: &mut Arguments<'_, 'a>, target: Target<'_>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let input = args.take(0);
    convert(&input, target, args.scope)
}

pub(super) fn evaluate_call<'a>(call: &'a ConvertCall, scope: &mut Scope<'a>) -> Outcome<'a> {
    let to = evaluate(&call.to, scope)?;
    let input = evaluate(&call.input, scope)?;
    let format = match &call.format {
        Some(format) => evaluate(format, scope)?,
        None => Datum::Missing,
    };
    if input.is_nullish() {
        return match &call.on_null {
            Some(on_null) => evaluate(on_null, scope),
            None => Ok(Datum::Null),
        };
    }
    if to.is_nullish() {
        return Ok(Datum::Null);
    }
    let (kind, subtype) = target_of(&to)?;
    let format = match format.as_str() {
        Some(format) => Some(format),
        None if format.is_nullish() => None,
        None => {
            let message = format!("$convert requires that 'format' be a string, found: {}", format.type_name());
            return Err(QueryError::location(4_341_114, message));
        }
    };
    let byte_order = match &call.byte_order {
        Some(order) => byte_order(&evaluate(order, scope)?)?,
        None => ByteOrder::default(),
    };
    match (convert(&input, Target { kind, subtype, format, byte_order }, scope), &call.on_error) {
        (Err(e), Some(on_error)) if e.code() == CONVERSION_FAILURE => evaluate(on_error, scope),
        (result, _) => result,
    }
}

const CONVERSION_FAILURE: i32 = 241;

fn byte_order(order: &Datum<'_>) -> Result<ByteOrder, QueryError> {
    match order.as_str() {
        Some(name) => ByteOrder::parse(name),
        None if order.is_nullish() => Ok(ByteOrder::default()),
        None => {
            let message = format!("$convert requires that 'byteOrder' be a string, found: {}", order.type_name());
            Err(QueryError::location(9_130_001, message))
        }
    }
}

/// BSON's subtypes of binary data that are known.
fn subtype_of(subtype: &Datum<'_>) -> Result<u8, QueryError> {
    const KNOWN: [i64; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 128];
    if subtype.is_nullish() {
        return Ok(0);
    }
    let Some(n) = subtype.as_number() else {
        let message = format!("$convert's 'subtype' must be a number, but is {}", subtype.type_name());
        return Err(QueryError::location(4_341_108, message));
    };
    let Some(n) = n.as_whole() else {
        return Err(QueryError::location(4_341_106, "in $convert, a numeric 'subtype' must be an integer"));
    };
    match u8::try_from(n) {
        Ok(subtype) if KNOWN.contains(&n) => Ok(subtype),
        _ => Err(QueryError::location(4_341_107, format!("in $convert, {n} is no subtype of binary data"))),
    }
}

fn target_of(to: &Datum<'_>) -> Result<(Kind, u8), QueryError> {
    if to.is_object() {
        let (kind, _) = target_of(&to.field("type"))?;
        return Ok((kind, subtype_of(&to.field("subtype"))?));
    }
    let known = [
        (1, Kind::Double),
        (2, Kind::String),
        (3, Kind::Object),
        (4, Kind::Array),
        (5, Kind::Binary),
        (7, Kind::ObjectId),
        (8, Kind::Bool),
        (9, Kind::Date),
        (10, Kind::Null),
        (11, Kind::Regex),
        (16, Kind::Int32),
        (17, Kind::Timestamp),
        (18, Kind::Int64),
        (19, Kind::Decimal128),
        (-1, Kind::MinKey),
        (127, Kind::MaxKey),
    ];
    if let Some(name) = to.as_str() {
        return known
            .iter()
            .find(|(_, k)| k.alias() == name)
            .map(|&(_, k)| (k, 0))
            .ok_or_else(|| QueryError::bad_value(format!("unknown type name: {name}")));
    }
    let Some(n) = to.as_number() else {
        let message = format!("$convert's 'to' argument must be a string or number, but is {}", to.type_name());
        return Err(QueryError::failed_to_parse(message));
    };
    let Some(n) = n.as_whole() else {
        return Err(QueryError::failed_to_parse("in $convert, a numeric 'to' argument must be an integer"));
    };
    known
        .iter()
        .find(|(code, _)| *code == n)
        .map(|&(_, k)| (k, 0))
        .ok_or_else(|| QueryError::failed_to_parse(format!("in $convert, the numeric value {n} is no type")))
}

fn convert<'a>(input: &Datum<'a>, target: Target<'_>, scope: &mut Scope<'a>) -> Outcome<'a> {
    let unsupported =
        || failure(format!("unsupported conversion from {} to {}", input.type_name(), target.kind.alias()));
    match target.kind {
        Kind::Bool => Ok(Datum::Bool(match input {
            Datum::Bool(b) => *b,
            Datum::Number(n) => !n.is_zero(),
            _ => true,
        })),
        Kind::Int32 | Kind::Int64 => match input.other() {
            Some(Value::Binary { subtype, bytes }) => {
                binary_to_integer(&binary_number::in_bson(subtype, bytes), target, unsupported)
            }
            _ => to_integer(input, target.kind, unsupported),
        },
        Kind::Double => match input.other() {
            Some(Value::Binary { subtype, bytes }) => {
                let bytes = binary_number::in_bson(subtype, bytes);
                binary_number::double(&bytes, target.byte_order).map(Datum::double).ok_or_else(unsupported)
            }
            _ => to_double(input, unsupported),
        },
        Kind::Decimal128 => to_decimal(input, unsupported),
        Kind::String => to_text(input, target.format, scope)?.ok_or_else(unsupported),
        Kind::ObjectId => match (input.other(), input.as_str()) {
            (Some(Value::ObjectId(_)), _) => Ok(input.clone()),
            (_, Some(text)) => match binary_text::hex(text).and_then(|b| <[u8; 12]>::try_from(b).ok()) {
                Some(id) => Ok(Datum::made(|out| out.object_id(id))),
                None => Err(failure(format!("failed to parse objectId '{text}': 24 hex digits are needed"))),
            },
            _ => Err(unsupported()),
        },
        Kind::Date => to_date(input, unsupported),
        Kind::Binary => match (input.other(), input.as_str()) {
            (Some(Value::Binary { subtype, .. }), _) if subtype == target.subtype => Ok(input.clone()),
            (_, Some(text)) => match target.format {
                None => Err(no_format(input, target.kind)),
                Some(format) => match binary_text::decode(text, format)? {
                    Some(bytes) => Ok(Datum::made(|out| out.binary(target.subtype, &bytes))),
                    None => Err(failure(format!("input '{text}' does not match the format '{format}'"))),
                },
            },
            _ => number_to_binary(input, target).ok_or_else(unsupported),
        },
        kind if input.kind() == Some(kind) => Ok(input.clone()),
        _ => Err(unsupported()),
    }
}

/// Between text and binary data nothing is said without a format.
fn no_format(input: &Datum<'_>, to: Kind) -> QueryError {
    let message = format!("$convert needs a 'format' to convert from {} to {}", input.type_name(), to.alias());
    QueryError::location(4_341_115, message)
}

fn binary_to_integer<'a>(bytes: &[u8], target: Target<'_>, unsupported: impl Fn() -> QueryError) -> Outcome<'a> {
    if target.kind == Kind::Int32 {
        let n = binary_number::integer(bytes, target.byte_order, 4).and_then(|n| i32::try_from(n).ok());
        return n.map(Datum::int).ok_or_else(unsupported);
    }
    binary_number::integer(bytes, target.byte_order, 8).map(Datum::long).ok_or_else(unsupported)
}

fn number_to_binary<'a>(input: &Datum<'_>, target: Target<'_>) -> Option<Datum<'a>> {
    let little = match input {
        Datum::Number(Number::Int32(n)) => n.to_le_bytes().to_vec(),
        Datum::Number(Number::Int64(n)) => n.to_le_bytes().to_vec(),
        Datum::Number(Number::Double(d)) => d.to_le_bytes().to_vec(),
        _ => return None,
    };
    let bytes = target.byte_order.arrange(little);
    Some(Datum::made(|out| out.binary(target.subtype, &bytes)))
}

fn to_integer<'a>(input: &Datum<'a>, kind: Kind, unsupported: impl Fn() -> QueryError) -> Outcome<'a> {
    let wide = match input {
        Datum::Bool(b) => Some(i128::from(*b)),
        Datum::Number(n) if n.is_nan() => return Err(failure("attempt to convert NaN value to an integer type")),
        Datum::Number(Number::Double(d)) if d.is_infinite() => {
            return Err(failure("attempt to convert infinity value to an integer type"));
        }
        Datum::Number(Number::Double(d)) => (d.abs() < 1e19).then_some(*d as i128),
        Datum::Number(Number::Decimal(d)) => decimal::to_i128(*d),
        Datum::Number(n) => n.as_i64().map(i128::from),
        Datum::Date(ms) if kind == Kind::Int64 => Some(i128::from(*ms)),
        _ => match input.as_str() {
            Some(text) => return parse_integer(text, kind),
            None => return Err(unsupported()),
        },
    };
    let overflow = || failure("conversion would overflow target type");
    let wide = wide.ok_or_else(overflow)?;
    if kind == Kind::Int32 {
        i32::try_from(wide).map(Datum::int).map_err(|_| overflow())
    } else {
        i64::try_from(wide).map(Datum::long).map_err(|_| overflow())
    }
}

fn parse_integer<'a>(text: &str, kind: Kind) -> Outcome<'a> {
    let parsed =
        if kind == Kind::Int32 { text.parse().ok().map(Datum::int) } else { text.parse().ok().map(Datum::long) };
    parsed.ok_or_else(|| failure(format!("failed to parse number '{text}'")))
}

fn to_double<'a>(input: &Datum<'a>, unsupported: impl Fn() -> QueryError) -> Outcome<'a> {
    Ok(Datum::double(match input {
        Datum::Bool(b) => f64::from(u8::from(*b)),
        Datum::Number(Number::Decimal(d)) => {
            let n = decimal::to_f64(*d);
            if n.is_infinite() && !d.is_infinite() {
                return Err(failure("conversion would overflow target type"));
            }
            n
        }
        Datum::Number(n) => n.to_f64(),
        Datum::Date(ms) => *ms as f64,
        _ => match input.as_str() {
            Some(text) => match double_text::parse(text) {
                Some(n) => n,
                None => return Err(failure(format!("failed to parse number '{text}'"))),
            },
            None => return Err(unsupported()),
        },
    }))
}

fn to_decimal<'a>(input: &Datum<'a>, unsupported: impl Fn() -> QueryError) -> Outcome<'a> {
    Ok(Datum::decimal(match input {
        Datum::Bool(b) => Decimal128::from_i64(i64::from(*b)),
        Datum::Number(n) => n.to_decimal(),
        Datum::Date(ms) => Decimal128::from_i64(*ms),
        _ => match input.as_str() {
            Some(text) => Decimal128::parse(text).map_err(|_| failure(format!("failed to parse number '{text}'")))?,
            None => return Err(unsupported()),
        },
    }))
}

fn to_date<'a>(input: &Datum<'a>, unsupported: impl Fn() -> QueryError) -> Outcome<'a> {
    let ms = match input {
        Datum::Date(ms) => Some(*ms),
        Datum::Number(Number::Int32(_)) => return Err(unsupported()),
        Datum::Number(Number::Double(d)) => crate::number::whole_f64(d.trunc()),
        Datum::Number(Number::Decimal(d)) => decimal::to_i128(*d).and_then(|n| i64::try_from(n).ok()),
        Datum::Number(n) => n.as_i64(),
        _ => match (input.as_str(), date_of(input)) {
            (Some(text), _) => return date_parse::parse_iso(text, None).map(Datum::Date),
            (_, Some(ms)) => Some(ms),
            _ => return Err(unsupported()),
        },
    };
    ms.map(Datum::Date).ok_or_else(|| failure("conversion would overflow target type"))
}

/// The date that a date, an ObjectId or a timestamp stands for.
pub(super) fn date_of(d: &Datum<'_>) -> Option<i64> {
    if let Datum::Date(ms) = d {
        return Some(*ms);
    }
    match d.other()? {
        Value::ObjectId([a, b, c, d, ..]) => Some(i64::from(u32::from_be_bytes([a, b, c, d])) * 1000),
        Value::Timestamp { seconds, .. } => Some(i64::from(seconds) * 1000),
        _ => None,
    }
}

fn to_text<'a>(
    input: &Datum<'a>,
    format: Option<&str>,
    scope: &mut Scope<'a>,
) -> Result<Option<Datum<'a>>, QueryError> {
    if input.as_str().is_some() {
        return Ok(Some(input.clone()));
    }
    let text = match (input, input.other()) {
        (Datum::Bool(b), _) => b.to_string(),
        (_, Some(Value::ObjectId(id))) => binary_text::to_hex(&id),
        (_, Some(Value::Binary { subtype, bytes })) => match format {
            None => return Err(no_format(input, Kind::String)),
            Some(format) => binary_text::encode(bytes, subtype, format)?,
        },
        _ => match number_or_date(input) {
            Some(text) => text,
            None => return Ok(None),
        },
    };
    Datum::text(text, scope).map(Some)
}

fn number_or_date(d: &Datum<'_>) -> Option<String> {
    Some(match d {
        Datum::Number(Number::Int32(n)) => n.to_string(),
        Datum::Number(Number::Int64(n)) => n.to_string(),
        Datum::Number(Number::Double(n)) => double_text(*n),
        Datum::Number(Number::Decimal(n)) => n.to_string(),
        Datum::Date(ms) => date_format::iso(*ms),
        _ => return None,
    })
}

/// A double as MongoDB prints it into a string: C's `%.16g`.
fn double_text(n: f64) -> String {
    const DIGITS: i32 = 16;
    if n.is_nan() {
        return "NaN".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if n == 0.0 {
        return if n.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{n:.15e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() }
    };
    if (-4..DIGITS).contains(&exponent) {
        let places = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return trim(&format!("{n:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs())
}

/// What operators on strings make of other values: null is empty, numbers and dates are written out.
pub(super) fn coerce_text<'d>(d: &'d Datum<'_>) -> Result<Cow<'d, str>, QueryError> {
    if let Some(s) = d.as_str() {
        return Ok(Cow::Borrowed(s));
    }
    if d.is_nullish() {
        return Ok(Cow::Borrowed(""));
    }
    match number_or_date(d) {
        Some(text) => Ok(Cow::Owned(text)),
        None => {
            let message = format!("can't convert from BSON type {} to String", d.type_name());
            Err(QueryError::location(16007, message))
        }
    }
}
