//! What an engine answered, made comparable: rows of values, and documents by their number and a sum over their content.
//!
//! Takes answers as bytes once the clock has stopped. Two documents are the same whatever the order of their fields, the
//! form of their numbers and their `_id`; two answers of documents are the same in any order. Sums of rounded numbers
//! differ in their last digits from engine to engine, so that values of rows may be apart by a billionth. It knows no
//! engine and no question.

use serde_json::Value;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Rows of an answer, each its values in the order of the question's columns.
pub type Rows = Vec<Vec<Value>>;

/// By how much of itself a computed number may differ.
const APART: f64 = 1e-9;

/// What a set of documents is, whatever their order: two sets that differ have different ones (but for one chance in 2^64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// How many.
    pub documents: u64,
    sum: u64,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} documents of sum {:016x}", self.documents, self.sum)
    }
}

impl Digest {
    /// Adds a document whose own hash is known.
    pub fn add_hash(&mut self, hash: u64) {
        self.documents += 1;
        self.sum = self.sum.wrapping_add(hash);
    }

    /// Adds a document.
    pub fn add(&mut self, document: &Value) {
        self.add_hash(hash_of(document));
    }
}

/// The hash of a document without its `_id`: the same for the same fields and values.
#[must_use]
pub fn hash_of(document: &Value) -> u64 {
    let Some(fields) = document.as_object() else { return value_hash(document) };
    fields
        .iter()
        .filter(|(name, _)| *name != "_id")
        .fold(1, |sum, (name, value)| sum.wrapping_add(field_hash(name, value)))
}

fn field_hash(name: &str, value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, value_hash(value)).hash(&mut hasher);
    hasher.finish()
}

fn value_hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(b) => (1_u8, b).hash(&mut hasher),
        Value::Number(n) => (2_u8, n.as_f64().unwrap_or(f64::NAN).to_bits()).hash(&mut hasher),
        Value::String(s) => (3_u8, s).hash(&mut hasher),
        Value::Array(values) => {
            (4_u8, values.len()).hash(&mut hasher);
            values.iter().for_each(|v| value_hash(v).hash(&mut hasher));
        }
        Value::Object(fields) => {
            let sum = fields.iter().fold(0_u64, |sum, (name, v)| sum.wrapping_add(field_hash(name, v)));
            (5_u8, fields.len(), sum).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Hands each document of an answer `{"documents": [...]}` on.
///
/// # Errors
/// Saying where the answer is not that.
pub fn documents(answer: &[u8], mut each: impl FnMut(Value)) -> Result<(), String> {
    let odd = |at: usize| {
        let shown = String::from_utf8_lossy(answer.get(at..answer.len().min(at + 200)).unwrap_or_default());
        format!("not an answer of documents, at byte {at}: {shown}")
    };
    let mut at = match answer.iter().position(|b| *b == b'[') {
        Some(at) if answer[..at].starts_with(b"{\"documents\":") => at + 1,
        _ => return Err(odd(0)),
    };
    loop {
        while matches!(answer.get(at), Some(b',' | b' ' | b'\n' | b'\r')) {
            at += 1;
        }
        if answer.get(at) == Some(&b']') {
            break;
        }
        let mut values = serde_json::Deserializer::from_slice(answer.get(at..).unwrap_or_default()).into_iter();
        each(values.next().and_then(Result::ok).ok_or_else(|| odd(at))?);
        at += values.byte_offset();
    }
    if answer[at..].trim_ascii_end() == b"]}" { Ok(()) } else { Err(odd(at)) }
}

/// The documents of an answer as rows of these fields; a field that is not there is null.
///
/// # Errors
/// As `documents`.
pub fn rows(answer: &[u8], fields: &[&str]) -> Result<Rows, String> {
    let mut rows = Vec::new();
    documents(answer, |document| {
        rows.push(fields.iter().map(|field| document.get(field).cloned().unwrap_or_default()).collect());
    })?;
    Ok(rows)
}

fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() <= APART * a.abs().max(b.abs())
        }
        _ => a == b,
    }
}

/// Holds rows to what they should be.
///
/// # Errors
/// Naming the first row that is another.
pub fn agree(expected: &Rows, found: &Rows, ordered: bool) -> Result<(), String> {
    let (mut expected, mut found) = (expected.clone(), found.clone());
    if !ordered {
        // By what stands first: the key of the group.
        let key = |row: &Vec<Value>| row.first().map_or_else(String::new, Value::to_string);
        expected.sort_by_key(key);
        found.sort_by_key(key);
    }
    if expected.len() != found.len() {
        return Err(format!("{} rows, {} expected", found.len(), expected.len()));
    }
    for (e, f) in expected.iter().zip(&found) {
        if e.len() != f.len() || !e.iter().zip(f).all(|(a, b)| alike(a, b)) {
            return Err(format!("the row {}, {} expected", Value::from(f.clone()), Value::from(e.clone())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_the_same_whatever_their_form() {
        let hash = |text: &str| hash_of(&serde_json::from_str(text).unwrap());
        let document = hash(r#"{"a": 1, "b": {"c": [1, 2.5], "d": "x"}}"#);
        assert_eq!(document, hash(r#"{"_id": 7, "b": {"d": "x", "c": [1.0, 25e-1]}, "a": 1.0}"#));
        for other in [
            r#"{"a": 1, "b": {"c": [2.5, 1], "d": "x"}}"#,
            r#"{"a": 1, "b": {"c": [1, 2.5], "d": "y"}}"#,
            r#"{"a": 2, "b": {"c": [1, 2.5], "d": "x"}}"#,
            r#"{"a": 1, "b": {"c": [1, 2.5], "d": "x"}, "e": null}"#,
            r#"{"a": "1", "b": {"c": [1, 2.5], "d": "x"}}"#,
        ] {
            assert_ne!(document, hash(other), "{other}");
        }
    }

    #[test]
    fn a_digest_sees_a_document_lost_doubled_or_changed() {
        let digest = |values: &[i32]| {
            let mut digest = Digest::default();
            values.iter().for_each(|v| digest.add(&json!({"v": v})));
            digest
        };
        assert_eq!(digest(&[1, 2, 3]), digest(&[3, 1, 2]));
        for other in [&[1, 2][..], &[1, 2, 3, 3], &[1, 2, 4], &[1, 2, 2]] {
            assert_ne!(digest(&[1, 2, 3]), digest(other), "{other:?}");
        }
    }

    #[test]
    fn an_answer_is_taken_whole_or_not() {
        let taken = |text: &str| {
            let mut all = Vec::new();
            documents(text.as_bytes(), |d| all.push(d)).map(|()| all)
        };
        assert_eq!(taken(r#"{"documents":[]}"#).unwrap(), Vec::<Value>::new());
        assert_eq!(taken("{\"documents\":[{\"a\":[1]},\n{\"b\":2}]}\n").unwrap(), [json!({"a": [1]}), json!({"b": 2})]);
        for wrong in
            [r#"{"documents":[{"a":1}"#, r#"{"documents":[{"a":1},{"b""#, r#"{"error":"no"}"#, "", r#"{"documents":[]"#]
        {
            assert!(taken(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_agree_to_a_billionth_and_no_further() {
        let expected = vec![vec![json!("a"), json!(1.0)], vec![json!("b"), json!(3)]];
        let found = vec![vec![json!("b"), json!(3.0)], vec![json!("a"), json!(1.000_000_000_1)]];
        assert_eq!(agree(&expected, &found, false), Ok(()));
        assert!(agree(&expected, &found, true).is_err());
        assert!(agree(&expected, &found[..1].to_vec(), false).is_err());
        let off = vec![vec![json!("b"), json!(3)], vec![json!("a"), json!(1.000_001)]];
        assert!(agree(&expected, &off, false).is_err());
    }
}
