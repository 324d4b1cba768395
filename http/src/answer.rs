//! Writes answers: JSON text straight into a buffer, and the responses around it.
//!
//! Takes encoded values and small facts; gives bytes and responses. Knows the three printed forms, not the routes.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use quarrydb_jsonb::{JsonbRef, Kind, Style};

/// The three media types of answers.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Canonical Extended JSON.
pub(crate) const EJSON: HeaderValue = HeaderValue::from_static("application/ejson");
/// One document a line.
pub(crate) const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// How an answer is printed and labelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The printed form of values.
    pub(crate) style: Style,
    /// Whether the client asked for one document a line.
    pub(crate) lines: bool,
}

impl Form {
    /// The `Content-Type` of a whole JSON answer in this form.
    pub(crate) fn content_type(self) -> HeaderValue {
        match self.style {
            Style::Canonical => EJSON,
            _ => JSON,
        }
    }

    /// A JSON answer.
    pub(crate) fn answer(self, status: StatusCode, body: Vec<u8>) -> Response {
        respond(status, self.content_type(), body)
    }
}

/// A response with a whole body.
pub(crate) fn respond(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Appends a JSON string.
pub(crate) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if u32::from(c) < 0x20 => out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

/// A JSON string as text.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    string(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends an integer.
pub(crate) fn integer(n: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(n.to_string().as_bytes());
}

/// Appends `"name":n`, with a comma before it unless it opens the object.
pub(crate) fn count(name: &str, n: u64, out: &mut Vec<u8>) {
    if out.last().is_some_and(|&b| b != b'{') {
        out.push(b',');
    }
    string(name, out);
    out.push(b':');
    out.extend_from_slice(n.to_string().as_bytes());
}

/// What a person calls the type of a value.
pub(crate) fn kind_name(v: JsonbRef<'_>) -> &'static str {
    match v.kind() {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Int32 | Kind::Int64 => "an integer",
        Kind::Double => "a double",
        Kind::Decimal128 => "a decimal",
        Kind::String => "a string",
        Kind::Binary => "binary data",
        Kind::ObjectId => "an ObjectId",
        Kind::Date => "a date",
        Kind::Regex => "a regular expression",
        Kind::Timestamp => "a timestamp",
        Kind::MinKey => "minKey",
        Kind::MaxKey => "maxKey",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_read_back_as_they_were() {
        for text in ["", "plain", "\"\\\n\r\t\u{1}\u{1f}\u{7f}", "\u{e9}\u{1f980}\u{2028}"] {
            let back: String = serde_json::from_str(&quoted(text)).expect("JSON");
            assert_eq!(back, text);
        }
    }

    #[test]
    fn counts_are_set_apart_by_commas() {
        let mut out = vec![b'{'];
        count("a", 1, &mut out);
        count("b", 2, &mut out);
        assert_eq!(out, br#"{"a":1,"b":2"#);
    }
}
