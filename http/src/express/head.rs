//! The head of a request that can go the short way.
//!
//! Takes the bytes that have arrived; says whether a whole small request of the plain kind stands at their beginning, and
//! gives its parts. What is not plain in any respect is `Other`, never an error: the long way judges it. So this file
//! may only ever be too narrow. It parses with hyper's own parser, so that no two readings of a head are possible. Pure.

use std::mem::MaybeUninit;

use quarrydb_jsonb::Style;

use super::REQUEST_BYTES_MAX;
use crate::answer::Form;
use crate::front;
use crate::negotiate::{self, Coding, Takes, visible};
use crate::operation::Operation;

/// How every request of the short way begins.
const BEGIN: &[u8] = b"POST /v1/";
/// The one path without a collection in it: the body names them.
const TRANSACTION: &str = "/v1/transaction";
/// A head with more fields goes the long way.
const FIELDS_MAX: usize = 32;

/// Fields that the long way must see, whatever they say: framing, what a page sends, what changes a request's meaning.
const LONG_WAY: [&str; 11] = [
    "transfer-encoding",
    "expect",
    "upgrade",
    "te",
    "trailer",
    "content-encoding",
    "origin",
    "access-control-request-method",
    "transaction-id",
    "http2-settings",
    "proxy-connection",
];

/// What stands at the beginning of what has arrived.
#[derive(Debug)]
pub(super) enum Look<'a> {
    /// The beginning of a request that may be of the plain kind.
    Partial,
    /// A whole one.
    Request(Head<'a>),
    /// Something else.
    Other,
}

/// A request of the plain kind; its body is `body_bytes` behind the first `head_bytes`.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) db: &'a str,
    pub(crate) coll: &'a str,
    pub(crate) operation: Operation,
    pub(crate) host: &'a str,
    pub(crate) form: Form,
    pub(crate) coding: Coding,
    /// The bearer key, where one was sent.
    pub(crate) key: Option<&'a [u8]>,
    /// The client's own id of the request.
    pub(crate) request_id: Option<&'a str>,
    pub(crate) head_bytes: usize,
    pub(crate) body_bytes: usize,
}

/// The fields that count, each at most once.
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    content_length: Option<&'a [u8]>,
    content_type: Option<&'a [u8]>,
    accept: Option<&'a [u8]>,
    accept_encoding: Option<&'a [u8]>,
    authorization: Option<&'a [u8]>,
    request_id: Option<&'a [u8]>,
    connection: Option<&'a [u8]>,
}

/// What `seen` begins with.
pub(super) fn look(seen: &[u8]) -> Look<'_> {
    let known = seen.len().min(BEGIN.len());
    if seen.get(..known) != BEGIN.get(..known) {
        return Look::Other;
    }
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let head_bytes = match request.parse_with_uninit_headers(seen, &mut fields) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Look::Partial,
        Err(_) => return Look::Other,
    };
    let (Some(path), Some(1)) = (request.path, request.version) else { return Look::Other };
    let head = plain(path, request.headers, head_bytes);
    match head {
        Some(head) if head.head_bytes + head.body_bytes > REQUEST_BYTES_MAX => Look::Other,
        Some(head) if head.head_bytes + head.body_bytes > seen.len() => Look::Partial,
        Some(head) => Look::Request(head),
        None => Look::Other,
    }
}

/// The parts of a head, where it is plain.
fn plain<'a>(path: &'a str, headers: &[httparse::Header<'a>], head_bytes: usize) -> Option<Head<'a>> {
    let (db, coll, operation) = route(path)?;
    let fields = Fields::of(headers)?;
    let keeps_alive = fields.connection.is_none_or(|v| v.eq_ignore_ascii_case(b"keep-alive"));
    negotiate::content_type_of(fields.content_type, false, Takes::Json).ok()?;
    let key = match fields.authorization {
        None => None,
        Some(value) => Some(front::bearer(value)?),
    };
    let request_id = match fields.request_id {
        None => None,
        Some(id) => Some(front::sane_id(id)?),
    };
    keeps_alive.then_some(Head {
        db,
        coll,
        operation,
        host: visible(fields.host?)?,
        form: match fields.accept {
            None | Some(b"*/*" | b"application/json") => Form { style: Style::Relaxed, lines: false },
            Some(accept) => negotiate::form_of([visible(accept)?], Style::Relaxed),
        },
        coding: match fields.accept_encoding {
            None => Coding::Identity,
            Some(accept) => negotiate::coding_of([visible(accept)?]),
        },
        key,
        request_id,
        head_bytes,
        body_bytes: length(fields.content_length?)?,
    })
}

impl<'a> Fields<'a> {
    /// None where one of them is there twice, or one is there that the long way must see.
    fn of(headers: &[httparse::Header<'a>]) -> Option<Self> {
        let mut fields = Self::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let place = match header.name.len() {
                4 if is("host") => &mut fields.host,
                6 if is("accept") => &mut fields.accept,
                10 if is("connection") => &mut fields.connection,
                12 if is("content-type") => &mut fields.content_type,
                12 if is("x-request-id") => &mut fields.request_id,
                13 if is("authorization") => &mut fields.authorization,
                14 if is("content-length") => &mut fields.content_length,
                15 if is("accept-encoding") => &mut fields.accept_encoding,
                _ if LONG_WAY.iter().any(|name| is(name)) => return None,
                _ => continue,
            };
            if place.replace(header.value).is_some() {
                return None;
            }
        }
        Some(fields)
    }
}

/// Database, collection and operation of a path that needs no decoding and has no query string; no names where the body has
/// them.
fn route(path: &str) -> Option<(&str, &str, Operation)> {
    if path == TRANSACTION {
        return Some(("", "", Operation::Transaction));
    }
    if path.bytes().any(|b| matches!(b, b'%' | b'?' | b'#')) {
        return None;
    }
    let mut parts = path.strip_prefix("/v1/db/")?.split('/');
    let (db, coll, name) = (parts.next()?, parts.next()?, parts.next()?);
    let operation = operation(name)?;
    (parts.next().is_none() && !db.is_empty() && !coll.is_empty()).then_some((db, coll, operation))
}

/// The operations that find their answer in a moment or stream it: those that build or transform go the long way.
fn operation(name: &str) -> Option<Operation> {
    Some(match name {
        "insertOne" => Operation::InsertOne,
        "insertMany" => Operation::InsertMany,
        "findOne" => Operation::FindOne,
        "find" => Operation::Find,
        "count" => Operation::Count,
        "distinct" => Operation::Distinct,
        "updateOne" => Operation::UpdateOne,
        "updateMany" => Operation::UpdateMany,
        "replaceOne" => Operation::ReplaceOne,
        "deleteOne" => Operation::DeleteOne,
        "deleteMany" => Operation::DeleteMany,
        "findOneAndUpdate" => Operation::FindOneAndUpdate,
        "findOneAndReplace" => Operation::FindOneAndReplace,
        "findOneAndDelete" => Operation::FindOneAndDelete,
        "bulkWrite" => Operation::BulkWrite,
        _ => return None,
    })
}

/// A length as RFC 9110 writes it: digits alone.
fn length(value: &[u8]) -> Option<usize> {
    if value.is_empty() || value.len() > 9 {
        return None;
    }
    value.iter().try_fold(0, |n: usize, b| b.is_ascii_digit().then(|| n * 10 + usize::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "POST /v1/db/shop/orders/findOne HTTP/1.1\r\n";

    fn request(line: &str, fields: &str, body: &str) -> String {
        format!("{line}Host: localhost\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn a_plain_request_is_taken_apart() {
        let fields =
            "Accept: application/ejson\r\nauthorization:  Bearer k1 \r\nX-Request-Id: a-1\r\nTraceparent: x\r\n";
        let text = request(LINE, fields, "{\"filter\": {}}") + "POST /v1/db/next";
        let Look::Request(head) = look(text.as_bytes()) else { panic!("it is plain") };
        assert_eq!((head.db, head.coll, head.operation), ("shop", "orders", Operation::FindOne));
        assert_eq!((head.host, head.key, head.request_id), ("localhost", Some(b"k1".as_slice()), Some("a-1")));
        assert!(matches!(head.form.style, Style::Canonical));
        let body = &text.as_bytes()[head.head_bytes..head.head_bytes + head.body_bytes];
        assert_eq!(body, b"{\"filter\": {}}");
    }

    #[test]
    fn several_operations_in_one_request_name_their_collections_in_the_body() {
        let text = request("POST /v1/transaction HTTP/1.1\r\n", "", "{\"operations\": []}");
        let Look::Request(head) = look(text.as_bytes()) else { panic!("it is plain") };
        assert_eq!((head.db, head.coll, head.operation), ("", "", Operation::Transaction));
    }

    #[test]
    fn every_beginning_of_a_plain_request_is_partial() {
        let text = request(LINE, "Connection: Keep-Alive\r\n", "{}");
        for end in 0..text.len() {
            assert!(matches!(look(&text.as_bytes()[..end]), Look::Partial), "{end} bytes");
        }
        assert!(matches!(look(text.as_bytes()), Look::Request(_)));
    }

    #[test]
    fn whatever_is_not_plain_goes_the_long_way() {
        for line in [
            "GET /v1/db/shop/orders/findOne HTTP/1.1\r\n",
            "POST /v1/db/shop/orders/findOne HTTP/1.0\r\n",
            "POST /v1/db/shop/orders/findOne?x=1 HTTP/1.1\r\n",
            "POST /v1/db/sh%6Fp/orders/findOne HTTP/1.1\r\n",
            "POST /v1/db/shop/orders/findOne/ HTTP/1.1\r\n",
            "POST /v1/db/shop/orders/aggregate HTTP/1.1\r\n",
            "POST /v1/db/shop//findOne HTTP/1.1\r\n",
            "POST /v1/db/shop/orders HTTP/1.1\r\n",
            "POST /v1/transactions HTTP/1.1\r\n",
            "POST /v1/transaction/ HTTP/1.1\r\n",
            "POST /v1/transaction?x=1 HTTP/1.1\r\n",
            "POST /v1/db HTTP/1.1\r\n",
            "POST http://localhost/v1/db/shop/orders/findOne HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n",
        ] {
            assert!(matches!(look(request(line, "", "{}").as_bytes()), Look::Other), "{line}");
        }
        for fields in [
            "Transfer-Encoding: chunked\r\n",
            "Content-Length: 2\r\n",
            "Host: other\r\n",
            "Expect: 100-continue\r\n",
            "Origin: https://a.test\r\n",
            "Connection: close\r\n",
            "Connection: upgrade\r\nUpgrade: h2c\r\n",
            "Content-Encoding: gzip\r\n",
            "Content-Type: text/plain\r\n",
            "Transaction-Id: t\r\n",
            "Authorization: Basic eDp5\r\n",
            "X-Request-Id: no spaces\r\n",
            "Folded: a\r\n b\r\n",
            "Bad Name: a\r\n",
            "Accept: \u{e9}\r\n",
        ] {
            assert!(matches!(look(request(LINE, fields, "{}").as_bytes()), Look::Other), "{fields}");
        }
        for length in ["+2", "2, 2", "", "0x2", "99999999999999999999", "16384"] {
            let text = format!("{LINE}Host: localhost\r\nContent-Length: {length}\r\n\r\n{{}}");
            assert!(matches!(look(text.as_bytes()), Look::Other), "{length}");
        }
        assert!(matches!(look(format!("{LINE}Content-Length: 2\r\n\r\n{{}}").as_bytes()), Look::Other), "no host");
        assert!(matches!(look(format!("{LINE}Host: localhost\r\n\r\n").as_bytes()), Look::Other), "no length");
    }
}
