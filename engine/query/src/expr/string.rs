//! Strings: by code points and by bytes.
//!
//! Lengths and positions of names ending in CP count code points, those in Bytes count UTF-8 bytes; a position inside a
//! character is an error, never a broken string.

use super::array::search_range;
use super::convert::coerce_text;
use super::datum::Datum;
use super::registry::{ANY, Arguments, ONE, Operator, Shape, THREE, TWO};
use crate::QueryError;
use crate::number::Number;
use std::borrow::Cow;
use std::cmp::Ordering;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

const TRIM: Shape = Shape::Named(&["input"], &["chars"]);
const REPLACE: Shape = Shape::Named(&["input", "find", "replacement"], &[]);

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$concat", shape: ANY, run: concat },
    Operator { name: "$toLower", shape: ONE, run: |args| cased(args, |c| c.to_ascii_lowercase()) },
    Operator { name: "$toUpper", shape: ONE, run: |args| cased(args, |c| c.to_ascii_uppercase()) },
    Operator { name: "$strcasecmp", shape: TWO, run: strcasecmp },
    Operator { name: "$strLenCP", shape: ONE, run: |args| length(args, 34471, |s| s.chars().count()) },
    Operator { name: "$strLenBytes", shape: ONE, run: |args| length(args, 34473, str::len) },
    Operator { name: "$substr", shape: THREE, run: substr_bytes },
    Operator { name: "$substrBytes", shape: THREE, run: substr_bytes },
    Operator { name: "$substrCP", shape: THREE, run: substr_cp },
    Operator { name: "$indexOfBytes", shape: Shape::Positional(2, 4), run: index_of_bytes },
    Operator { name: "$indexOfCP", shape: Shape::Positional(2, 4), run: index_of_cp },
    Operator { name: "$split", shape: TWO, run: split },
    Operator { name: "$trim", shape: TRIM, run: |args| trim(args, true, true) },
    Operator { name: "$ltrim", shape: TRIM, run: |args| trim(args, true, false) },
    Operator { name: "$rtrim", shape: TRIM, run: |args| trim(args, false, true) },
    Operator { name: "$replaceOne", shape: REPLACE, run: |args| replace(args, 1) },
    Operator { name: "$replaceAll", shape: REPLACE, run: |args| replace(args, usize::MAX) },
];

fn concat<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut out = String::new();
    for argument in args.all() {
        match argument.as_str() {
            Some(s) => out.push_str(s),
            None if argument.is_nullish() => return Ok(Datum::Null),
            None => {
                let message = format!("$concat only supports strings, not {}", argument.type_name());
                return Err(QueryError::location(16702, message));
            }
        }
    }
    args.text(out)
}

fn cased<'a>(args: &mut Arguments<'_, 'a>, change: fn(&str) -> String) -> Outcome<'a> {
    let changed = change(&coerce_text(args.get(0))?);
    args.text(changed)
}

fn strcasecmp<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let a = coerce_text(args.get(0))?.to_ascii_uppercase();
    let b = coerce_text(args.get(1))?.to_ascii_uppercase();
    Ok(Datum::int(match a.cmp(&b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

fn length<'a>(args: &Arguments<'_, 'a>, code: i32, count: fn(&str) -> usize) -> Outcome<'a> {
    match args.get(0).as_str() {
        Some(s) => Ok(Datum::count(count(s))),
        None => {
            let message = format!("{} requires a string argument, found: {}", args.name, args.get(0).type_name());
            Err(QueryError::location(code, message))
        }
    }
}

/// The whole part of a number that stands for a position.
fn position(d: &Datum<'_>, code: i32, what: &str) -> Result<i64, QueryError> {
    match d {
        Datum::Number(Number::Double(n)) => Ok(*n as i64),
        Datum::Number(n) => Ok(n.as_i64().or_else(|| n.as_whole()).unwrap_or(i64::MAX)),
        other => Err(QueryError::location(code, format!("{what} must be a number, not {}", other.type_name()))),
    }
}

fn substr_bytes<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let text = coerce_text(args.get(0))?;
    let start = position(args.get(1), 16034, "the starting index of $substrBytes")?;
    let len = position(args.get(2), 16035, "the length of $substrBytes")?;
    if start < 0 {
        return Err(QueryError::location(
            50752,
            format!("$substrBytes: the starting index must be non-negative, got: {start}"),
        ));
    }
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    if start >= text.len() {
        return Ok(Datum::Text(""));
    }
    let end = match usize::try_from(len) {
        Ok(len) => start.saturating_add(len).min(text.len()),
        Err(_) => text.len(),
    };
    if !text.is_char_boundary(start) {
        let message = "$substrBytes: invalid range, the starting index is a UTF-8 continuation byte";
        return Err(QueryError::location(28656, message));
    }
    if !text.is_char_boundary(end) {
        let message = "$substrBytes: invalid range, the ending index is in the middle of a UTF-8 character";
        return Err(QueryError::location(28657, message));
    }
    let part = text[start..end].to_owned();
    args.text(part)
}

fn int32(d: &Datum<'_>, type_code: i32, code: i32, what: &str) -> Result<i32, QueryError> {
    let Some(n) = d.as_number() else {
        return Err(QueryError::location(type_code, format!("{what} must be a numeric type, not {}", d.type_name())));
    };
    n.as_whole()
        .and_then(|n| i32::try_from(n).ok())
        .ok_or_else(|| QueryError::location(code, format!("{what} must be representable as a 32-bit integral value")))
}

fn substr_cp<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let text = coerce_text(args.get(0))?;
    let start = int32(args.get(1), 34450, 34451, "$substrCP: the starting index")?;
    let len = int32(args.get(2), 34452, 34453, "$substrCP: the length")?;
    let Ok(start) = usize::try_from(start) else {
        return Err(QueryError::location(34455, "$substrCP: the starting index must be a nonnegative integer"));
    };
    let Ok(len) = usize::try_from(len) else {
        return Err(QueryError::location(34454, "$substrCP: the length must be a nonnegative integer"));
    };
    let part: String = text.chars().skip(start).take(len).collect();
    args.text(part)
}

fn two_texts<'d>(args: &'d Arguments<'_, '_>, codes: (i32, i32)) -> Result<(&'d str, &'d str), QueryError> {
    let need = |i: usize, code: i32, which: &str| {
        args.get(i).as_str().ok_or_else(|| {
            let message =
                format!("{} requires a string as the {which} argument, found: {}", args.name, args.get(i).type_name());
            QueryError::location(code, message)
        })
    };
    Ok((need(0, codes.0, "first")?, need(1, codes.1, "second")?))
}

fn index_of_bytes<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let (text, wanted) = two_texts(args, (40091, 40092))?;
    let Some(range) = search_range(args, text.len())? else { return Ok(Datum::int(-1)) };
    let found = text.as_bytes().get(range.clone()).and_then(|part| find_bytes(part, wanted));
    Ok(found.map_or(Datum::int(-1), |at| Datum::count(range.start + at)))
}

/// The first place of `wanted` in `text`, in linear time.
fn find_bytes(text: &[u8], wanted: &str) -> Option<usize> {
    if wanted.is_empty() {
        return Some(0);
    }
    // A range that cuts characters: what is cut off at either end cannot be part of a match of whole characters.
    let start = text.iter().position(|b| b & 0xc0 != 0x80).unwrap_or(text.len());
    let rest = text.get(start..).unwrap_or_default();
    let whole = match std::str::from_utf8(rest) {
        Ok(whole) => whole,
        Err(e) => std::str::from_utf8(rest.get(..e.valid_up_to()).unwrap_or_default()).unwrap_or_default(),
    };
    whole.find(wanted).map(|at| at + start)
}

fn index_of_cp<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let (text, wanted) = two_texts(args, (40093, 40094))?;
    let len = text.chars().count();
    let Some(range) = search_range(args, len)? else { return Ok(Datum::int(-1)) };
    let byte_of = |cp: usize| text.char_indices().nth(cp).map_or(text.len(), |(at, _)| at);
    let (from, to) = (byte_of(range.start), byte_of(range.end));
    let part = text.get(from..to).unwrap_or_default();
    Ok(match part.find(wanted) {
        Some(at) => Datum::count(range.start + part[..at].chars().count()),
        None => Datum::int(-1),
    })
}

fn split<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let (text, separator) = two_texts(args, (40085, 10_503_900))?;
    if separator.is_empty() {
        return Err(QueryError::location(40087, "$split requires a non-empty separator"));
    }
    let parts: Vec<Datum<'a>> = text.split(separator).map(|part| Datum::OwnedText(part.into())).collect();
    args.array(parts)
}

/// What MongoDB trims where no characters are named.
const WHITESPACE: [char; 20] = [
    '\0', '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}',
    '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}',
];

fn trim<'a>(args: &mut Arguments<'_, 'a>, front: bool, back: bool) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(text) = args.get(0).as_str() else {
        let message = format!("{} requires its input to be a string, got {}", args.name, args.get(0).type_name());
        return Err(QueryError::location(50699, message));
    };
    let characters: Cow<'_, [char]> = if args.has(1) {
        if args.get(1).is_nullish() {
            return Ok(Datum::Null);
        }
        let Some(characters) = args.get(1).as_str() else {
            let message = format!("{} requires 'chars' to be a string, got {}", args.name, args.get(1).type_name());
            return Err(QueryError::location(50700, message));
        };
        let mut characters: Vec<char> = characters.chars().collect();
        characters.sort_unstable();
        Cow::Owned(characters)
    } else {
        Cow::Borrowed(&WHITESPACE)
    };
    let mut text = text;
    let is_trimmed = |c: char| characters.binary_search(&c).is_ok();
    if front {
        text = text.trim_start_matches(is_trimmed);
    }
    if back {
        text = text.trim_end_matches(is_trimmed);
    }
    let trimmed = text.to_owned();
    args.text(trimmed)
}

fn replace<'a>(args: &mut Arguments<'_, 'a>, most: usize) -> Outcome<'a> {
    for (i, (code, name)) in
        [(10_503_904, "input"), (10_503_901, "find"), (10_503_902, "replacement")].into_iter().enumerate()
    {
        if !args.get(i).is_nullish() && args.get(i).as_str().is_none() {
            let found = args.get(i).type_name();
            let message = format!("{} requires that '{name}' be a string, found: {found}", args.name);
            return Err(QueryError::location(code, message));
        }
    }
    let (Some(text), Some(find), Some(replacement)) =
        (args.get(0).as_str(), args.get(1).as_str(), args.get(2).as_str())
    else {
        return Ok(Datum::Null);
    };
    // What it takes is known before it is built.
    let count = text.matches(find).take(most).count();
    let grown = count.saturating_mul(replacement.len());
    let replaced = if grown > super::size::TEXT_BYTES_MAX {
        return Err(super::size::too_long(args.name));
    } else if most == 1 {
        text.replacen(find, replacement, 1)
    } else {
        text.replace(find, replacement)
    };
    args.text(replaced)
}
