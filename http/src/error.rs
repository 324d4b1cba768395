//! Every fault as one JSON shape: status, name, MongoDB's number, words, further fields.
//!
//! Takes errors of the engine, the language and the document format, and those that the front finds itself; gives
//! responses. Faults of ours are logged here under an id that the answer repeats; what they said stays in the log.
//! Must never know what a route does.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use quarrydb::ErrorKind;
use quarrydb_jsonb::JsonbRef;
use quarrydb_query::QueryError;

use crate::answer;

/// What every fallible step of a request returns.
pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

/// One fault, ready to be answered. Boxed: the good path carries one word.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Fault>);

#[derive(Debug)]
struct Fault {
    status: StatusCode,
    name: Cow<'static, str>,
    code: Option<i32>,
    message: String,
    /// Further fields as JSON text, each beginning with a comma.
    details: Vec<u8>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ApiError {
    /// A fault with its status, its name and MongoDB's number where one exists.
    pub(crate) fn new(
        status: StatusCode,
        name: impl Into<Cow<'static, str>>,
        code: Option<i32>,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Fault {
            status,
            name: name.into(),
            code,
            message: message.into(),
            details: Vec::new(),
            headers: Vec::new(),
        }))
    }

    /// 400 with one of MongoDB's names.
    pub(crate) fn bad(name: impl Into<Cow<'static, str>>, code: i32, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, name, Some(code), message)
    }

    /// 400 `BadValue`.
    pub(crate) fn bad_value(message: impl Into<String>) -> Self {
        Self::bad("BadValue", 2, message)
    }

    /// 400 `TypeMismatch`: which field, what was wanted, what was there.
    pub(crate) fn wrong_type(field: &str, wanted: &str, found: JsonbRef<'_>) -> Self {
        let fault =
            Self::bad("TypeMismatch", 14, format!("{field} must be {wanted}, not {}", answer::kind_name(found)));
        // Words in the place of a name (`the body`) are no place.
        if field.contains(' ') { fault } else { fault.at(field) }
    }

    /// The same with the place in the body where it was found.
    pub(crate) fn at(self, place: &str) -> Self {
        self.field("place", &answer::quoted(place))
    }

    /// 501: says what is not there.
    pub(crate) fn not_implemented(what: &str) -> Self {
        let message = format!("not built yet in this version of QuarryDB: {what}");
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", Some(238), message)
    }

    /// 500: the words go to the log under an id, the answer has the id alone.
    pub(crate) fn internal(what: &dyn std::fmt::Display) -> Self {
        let id = fault_id();
        tracing::error!(id, "internal error: {what}");
        let message = format!("an internal error; the server's log has it under the id {id}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", Some(1), message).field("id", &answer::quoted(&id))
    }

    /// 404 for a path that leads nowhere.
    pub(crate) fn no_such_route(path: &str) -> Self {
        let message = format!("there is no route {path:.200}; GET /openapi.json lists them");
        Self::new(StatusCode::NOT_FOUND, "NoSuchRoute", None, message)
    }

    /// 404 for a document asked for by its `_id`.
    pub(crate) fn no_such_document(id: &str) -> Self {
        let message = format!("there is no document with the _id {id:.200} in this collection");
        Self::new(StatusCode::NOT_FOUND, "NoSuchDocument", None, message)
    }

    /// 413 with the limit in bytes.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!(
            "the body is larger than {limit} bytes (--max-body): send it in parts, or as a stream to the import route, \
             which has no limit"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "BodyTooLarge", None, message).field("limit", &limit.to_string())
    }

    /// 429: no memory for the body now.
    pub(crate) fn too_many_requests(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", None, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// 503 with a name and when to come again.
    pub(crate) fn unavailable(name: &'static str, message: impl Into<String>) -> Self {
        let code = if name == "ShuttingDown" { Some(91) } else { None };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, name, code, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// The same with one further field; `json` is JSON text.
    pub(crate) fn field(mut self, name: &str, json: &str) -> Self {
        let details = &mut self.0.details;
        details.push(b',');
        answer::string(name, details);
        details.push(b':');
        details.extend_from_slice(json.as_bytes());
        self
    }

    /// The same with a header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// The same with words before its message (`documents[3]: ...`).
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// The same inside a part of the body: its place, where it has one, is within that part's
    /// (`operations[1].updateOne.filter.a.$in`). `part` needs no escaping in JSON.
    pub(crate) fn inside(mut self, part: &str) -> Self {
        const PLACE: &[u8] = b",\"place\":\"";
        let details = &mut self.0.details;
        let after = details.get(PLACE.len()).copied();
        if !details.starts_with(PLACE) || after == Some(b'"') {
            return self.within(part);
        }
        let place = details.get(PLACE.len()..).unwrap_or_default();
        let begins_with_place =
            place.split(|b| *b == b'"').next().is_some_and(|p| self.0.message.as_bytes().starts_with(p));
        details.splice(PLACE.len()..PLACE.len(), format!("{part}.").into_bytes());
        self.0.message = format!("{part}{}{}", if begins_with_place { "." } else { ": " }, self.0.message);
        self
    }

    /// The status that it is answered with.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// MongoDB's name, or ours.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// MongoDB's number, where one exists.
    pub(crate) fn code(&self) -> Option<i32> {
        self.0.code
    }

    /// For a person.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Appends `"code":..,"error_code":..,"error":..` and the further fields, as in `writeErrors` and in every body.
    pub(crate) fn print_fields(&self, out: &mut Vec<u8>) {
        let fault = &self.0;
        out.extend_from_slice(b"\"error\":");
        answer::string(&fault.message, out);
        out.extend_from_slice(b",\"error_code\":");
        answer::string(&fault.name, out);
        if let Some(code) = fault.code {
            out.extend_from_slice(b",\"code\":");
            answer::integer(i64::from(code), out);
        }
        out.extend_from_slice(&fault.details);
    }

    /// The whole body.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(160 + self.0.message.len());
        out.push(b'{');
        self.print_fields(&mut out);
        out.push(b'}');
        out
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json()));
        *response.status_mut() = self.0.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.0.headers {
            headers.insert(name, value);
        }
        response
    }
}

/// The name and number of what is wrong with a text or a document.
fn name_of(kind: quarrydb_jsonb::ErrorKind) -> (&'static str, i32) {
    use quarrydb_jsonb::ErrorKind as Kind;
    match kind {
        Kind::Syntax | Kind::BodyTooDeep => ("InvalidJson", 9),
        Kind::BadWrapper => ("FailedToParse", 9),
        Kind::NumberOutOfRange | Kind::TooDeep => ("Overflow", 15),
        Kind::TooLarge => ("BSONObjectTooLarge", 10334),
        Kind::BadId => ("InvalidIdField", 53),
        _ => ("BadValue", 2),
    }
}

impl ApiError {
    /// What is wrong with one line of a stream: its column and its place in the stream, `start` being the line's.
    pub(crate) fn in_line(e: &quarrydb_jsonb::Error, start: u64) -> Self {
        let (name, code) = name_of(e.kind());
        let place = if e.path().is_empty() { String::new() } else { format!("{}: ", e.path()) };
        let (column, offset) = e.place().map_or((1, 0), |p| (p.column, p.offset as u64));
        Self::bad(name, code, format!("{place}{} at column {column}", e.message()))
            .field("column", &column.to_string())
            .field("byteOffset", &(start + offset).to_string())
    }
}

impl From<quarrydb_jsonb::Error> for ApiError {
    fn from(e: quarrydb_jsonb::Error) -> Self {
        let (name, code) = name_of(e.kind());
        let error = Self::bad(name, code, e.to_string());
        match e.place() {
            Some(place) => error
                .field("line", &place.line.to_string())
                .field("column", &place.column.to_string())
                .field("offset", &place.offset.to_string()),
            None => error,
        }
    }
}

impl From<quarrydb::Error> for ApiError {
    fn from(e: quarrydb::Error) -> Self {
        let status = match e.kind() {
            ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::HistoryLost => StatusCode::GONE,
            ErrorKind::DuplicateKey | ErrorKind::Exists | ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::LimitExceeded => StatusCode::BAD_REQUEST,
            ErrorKind::TimedOut => StatusCode::REQUEST_TIMEOUT,
            ErrorKind::Busy => return Self::too_many_requests(e.message()),
            ErrorKind::OutOfDiskSpace => StatusCode::INSUFFICIENT_STORAGE,
            ErrorKind::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            ErrorKind::ShuttingDown => return Self::unavailable("ShuttingDown", e.message()),
            ErrorKind::Cancelled => return Self::unavailable("Interrupted", e.message()),
            // Damage and a poisoned writer are for the operator to act on: the answer says which file, and where.
            ErrorKind::Corrupt | ErrorKind::Poisoned | ErrorKind::UnsupportedVersion => {
                let id = fault_id();
                tracing::error!(id, "{e}");
                let message = format!("{} (id {id} in the log)", e.message());
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", Some(1), message)
                    .field("id", &answer::quoted(&id));
            }
            _ => return Self::internal(&e),
        };
        let mut error = Self::new(status, e.name().to_owned(), e.code(), e.message());
        if let Some(object) = e.details().and_then(|d| JsonbRef::from_valid(d).as_object()) {
            for entry in object.iter() {
                let mut json = Vec::new();
                quarrydb_jsonb::print(entry.value, quarrydb_jsonb::Style::Relaxed, &mut json);
                error = error.field(entry.name(), &String::from_utf8_lossy(&json));
            }
        }
        error
    }
}

impl From<QueryError> for ApiError {
    fn from(e: QueryError) -> Self {
        quarrydb::Error::from(e).into()
    }
}

/// An id that no earlier fault of this process had, and that another process is unlikely to give.
fn fault_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let started = crate::state::process_salt();
    format!("{started:08x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_an_error_is_the_contracts() {
        let e = ApiError::bad("BadValue", 2, "limit must be \"positive\"\n").field("limit", "5");
        let text = String::from_utf8(e.to_json()).expect("UTF-8");
        assert_eq!(text, r#"{"error":"limit must be \"positive\"\n","error_code":"BadValue","code":2,"limit":5}"#);
    }

    #[test]
    fn an_internal_error_does_not_say_what_it_was() {
        let e = ApiError::internal(&"secret of the house");
        assert!(!String::from_utf8_lossy(&e.to_json()).contains("secret"));
        assert_eq!(e.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
