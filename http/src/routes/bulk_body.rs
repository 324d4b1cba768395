//! The operations of a bulkWrite's body: each with its own fault where it has one.
//!
//! A value that no document can hold (a wrong wrapper, a name that stands twice) is its operation's fault, a text that is
//! no JSON the whole body's. Bodies without either, nearly all, are parsed once. Takes the body; gives its other fields and
//! the operations.

use std::collections::BTreeMap;
use std::ops::Range;

use quarrydb_jsonb::{Builder, Error, ErrorKind, JsonbBuf};

use crate::error::{ApiError, Result};

/// The field that holds the operations.
const FIELD: &str = "operations";

/// A body with a fault in some operation.
#[derive(Debug)]
pub(super) struct Apart {
    /// All fields but the operations.
    pub(super) rest: JsonbBuf,
    /// The operations in order; anything in the place of one with a fault.
    pub(super) operations: Vec<JsonbBuf>,
    /// The faults.
    pub(super) faults: Faults,
}

/// Faults by the position of the operation.
pub(crate) type Faults = BTreeMap<usize, ApiError>;

/// Takes a body apart that cannot be parsed as a whole for the reason of `fault`.
///
/// # Errors
/// `fault`, or another of the whole body, where it is not one operation's.
pub(super) fn apart(body: &[u8], fault: Error) -> Result<Apart> {
    if matches!(fault.kind(), ErrorKind::Syntax | ErrorKind::BodyTooDeep) {
        return Err(fault.into());
    }
    // Finds out that all of it is JSON and that the fault is not beside the operations. The `_id`s that operations would
    // be given as documents are of no use here.
    let rest = quarrydb_jsonb::parse_body(body, FIELD, &mut Builder::new(), &mut || [0; 12], &mut |_| {})?;
    let Some(places) = elements(body) else { return Err(fault.into()) };
    let mut faults = Faults::new();
    let mut operations = Vec::with_capacity(places.len());
    for (index, place) in places.into_iter().enumerate() {
        operations.push(parse(body, place).unwrap_or_else(|fault| {
            faults.insert(index, fault);
            quarrydb_jsonb::NULL.to_buf()
        }));
    }
    Ok(Apart { rest, operations, faults })
}

fn parse(body: &[u8], place: Range<usize>) -> Result<JsonbBuf> {
    let from = place.start;
    quarrydb_jsonb::parse(body.get(place).unwrap_or_default()).map_err(|e| {
        let at = e.place().map(|p| from + p.offset);
        let path = if e.path().is_empty() { String::new() } else { format!("{}: ", e.path()) };
        let whole = Error::new(e.kind(), format!("{path}{}", e.message()));
        ApiError::from(match at {
            Some(offset) => whole.at(place_of(body, offset)),
            None => whole,
        })
    })
}

/// Line and column of a place, as the parser counts them: from 1, in bytes.
fn place_of(body: &[u8], offset: usize) -> quarrydb_jsonb::Place {
    let before = body.get(..offset).unwrap_or_default();
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1) + 1;
    quarrydb_jsonb::Place { line, column, offset }
}

/// Where the elements of the array of operations stand in a text that is known to be a JSON object.
fn elements(text: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut at = skip_white(text, memchr::memchr(b'{', text)? + 1);
    while text.get(at) == Some(&b'"') {
        let end = skip_value(text, at)?;
        let name = text.get(at + 1..end - 1)?;
        at = skip_white(text, end);
        at = skip_white(text, at + 1);
        if name == FIELD.as_bytes() {
            break;
        }
        at = skip_white(text, skip_value(text, at)?);
        at = skip_white(text, at + 1);
    }
    if text.get(at) != Some(&b'[') {
        return None;
    }
    let mut elements = Vec::new();
    at = skip_white(text, at + 1);
    while *text.get(at)? != b']' {
        let end = skip_value(text, at)?;
        elements.push(at..end);
        at = skip_white(text, end);
        if text.get(at) == Some(&b',') {
            at = skip_white(text, at + 1);
        }
    }
    Some(elements)
}

fn skip_white(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// The end of the value that begins at `at`.
fn skip_value(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => at = skip_string(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' => at += 1,
            b if b.is_ascii_whitespace() => at += 1,
            _ => {
                let rest = text.get(at..)?;
                at += rest.iter().take_while(|b| !b",:]}".contains(b) && !b.is_ascii_whitespace()).count();
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The end of the string that begins at `at`.
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    fn taken(body: &str) -> Result<Apart> {
        apart(body.as_bytes(), quarrydb_jsonb::parse(body.as_bytes()).unwrap_err())
    }

    #[test]
    fn operations_are_found_whatever_stands_around_them() {
        for (body, expected) in [
            (r#"{"operations":[]}"#, vec![]),
            (
                r#" { "operations" : [ 1 , "a,]\"" , {"b":[1,{"c":2}]} ] , "x": 1 }"#,
                vec!["1", r#""a,]\"""#, r#"{"b":[1,{"c":2}]}"#],
            ),
            (
                r#"{"a\\":{"operations":[9]},"b":"\"operations\":[8]","operations":[true,null,-1.5e3]}"#,
                vec!["true", "null", "-1.5e3"],
            ),
            ("\u{feff}{\n\"operations\":\t[\r\n{}\n]}", vec!["{}"]),
        ] {
            let found = elements(body.as_bytes()).unwrap();
            let texts: Vec<&str> = found.into_iter().map(|place| &body[place]).collect();
            assert_eq!(texts, expected, "{body}");
        }
        for none in [r#"{"operations":{}}"#, r#"{"oper\u0061tions":[]}"#, r#"{}"#, r#"{"other":[1]}"#] {
            assert!(elements(none.as_bytes()).is_none(), "{none}");
        }
    }

    #[test]
    fn a_fault_is_its_operations_alone() {
        // The second operation begins in the 31st column of the second line.
        let body = concat!(
            "{\"ordered\": false,\n",
            "  \"operations\": [   {\"a\": 1}, {\"b\": {\"$oid\": \"zz\"}}, {\"c\": 1, \"c\": 2}]}"
        );
        let Apart { rest, operations, faults } = taken(body).unwrap();
        assert!(rest.view().get("ordered").is_some() && rest.view().get(FIELD).is_none());
        assert!(operations[0].view().get("a").is_some());
        assert_eq!((operations.len(), faults.keys().copied().collect::<Vec<_>>()), (3, vec![1, 2]));
        let text = String::from_utf8(faults[&1].to_json()).unwrap();
        // What the parser says where the same stands alone.
        let alone = format!("\n{}{}", " ".repeat(30), r#"{"b": {"$oid": "zz"}}"#);
        let place = quarrydb_jsonb::parse(alone.as_bytes()).unwrap_err().place().unwrap();
        assert!(text.contains(&format!(r#""line":{},"column":{}"#, place.line, place.column)), "{text}");
        assert!(text.contains(r#""error":"b: "#), "{text}");
    }

    #[test]
    fn a_body_that_is_no_json_or_wrong_elsewhere_is_refused_whole() {
        for body in [
            r#"{"operations": [{"a": {"$oid": "zz"}}, {]}"#,
            r#"{"operations": [{"a": {"$oid": "zz"}}]} x"#,
            r#"{"let": {"a": {"$oid": "zz"}}, "operations": [{"b": 1}]}"#,
            r#"{"operations": [{"a": {"$oid": "zz"}}], "operations": []}"#,
        ] {
            assert!(taken(body).is_err(), "{body}");
        }
    }
}
