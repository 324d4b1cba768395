//! What the client accepts and sends: `Accept`, `Accept-Encoding`, `Content-Type`, `Content-Encoding`.
//!
//! Takes headers; gives a `Form`, codings, or the error that says what would have been accepted. Pure.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use quarrydb_jsonb::Style;

use crate::answer::Form;
use crate::error::{ApiError, Result};

/// A compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

/// What a route takes as a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One JSON object.
    Json,
    /// Documents, one a line or in one array.
    Lines,
}

/// The printed form that `Accept` asks for. `plain` is the form of `application/json` on this route.
pub(crate) fn form(headers: &HeaderMap, plain: Style) -> Form {
    let mut form = Form { style: plain, lines: false };
    let (mut json, mut ejson) = (-1.0, -1.0);
    for value in headers.get_all(header::ACCEPT) {
        for (name, quality) in listed(value) {
            if quality <= 0.0 {
                continue;
            }
            if name.eq_ignore_ascii_case("application/ejson") {
                ejson = f32::max(ejson, quality);
            } else if name.eq_ignore_ascii_case("application/json") {
                json = f32::max(json, quality);
            } else if name.eq_ignore_ascii_case("application/x-ndjson")
                || name.eq_ignore_ascii_case("application/ndjson")
            {
                form.lines = true;
            }
        }
    }
    if ejson > 0.0 && ejson >= json {
        form.style = Style::Canonical;
    }
    form
}

/// The compression that `Accept-Encoding` asks for: zstd before gzip where both are equally welcome.
pub(crate) fn answer_coding(headers: &HeaderMap) -> Coding {
    let (mut best, mut chosen) = (0.0, Coding::Identity);
    for value in headers.get_all(header::ACCEPT_ENCODING) {
        for (name, quality) in listed(value) {
            let coding = match name {
                n if n.eq_ignore_ascii_case("zstd") => Coding::Zstd,
                n if n.eq_ignore_ascii_case("gzip") => Coding::Gzip,
                _ => continue,
            };
            if quality > best || (quality == best && quality > 0.0 && coding == Coding::Zstd) {
                (best, chosen) = (quality, coding);
            }
        }
    }
    chosen
}

/// The compression of a request's body.
///
/// # Errors
/// 415 for one that is not known, and for one inside another.
pub(crate) fn body_coding(headers: &HeaderMap) -> Result<Coding> {
    let mut coding = Coding::Identity;
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for (name, _) in listed(value) {
            let this = match name {
                n if n.eq_ignore_ascii_case("identity") => continue,
                n if n.eq_ignore_ascii_case("gzip") || n.eq_ignore_ascii_case("x-gzip") => Coding::Gzip,
                n if n.eq_ignore_ascii_case("zstd") => Coding::Zstd,
                other => {
                    let message = format!("Content-Encoding {other:.40} is not taken: gzip, zstd or none");
                    return Err(unsupported(message));
                }
            };
            if coding != Coding::Identity {
                return Err(unsupported(
                    "Content-Encoding names more than one coding: send one of gzip, zstd".to_owned(),
                ));
            }
            coding = this;
        }
    }
    Ok(coding)
}

/// Checks `Content-Type` by the rules of the contract. What curl says without a header, and no type at all, is taken as
/// JSON, but never from a web page: a form posted by one needs no permission of the browser.
///
/// # Errors
/// 415, naming what is taken.
pub(crate) fn content_type(headers: &HeaderMap, takes: Takes) -> Result<()> {
    let from_page = headers.contains_key(header::ORIGIN);
    let wanted = match takes {
        Takes::Json => "application/json or application/ejson",
        Takes::Lines => "application/x-ndjson, application/json or application/ejson",
    };
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        if from_page {
            return Err(unsupported(format!("a request with an Origin must say its Content-Type: {wanted}")));
        }
        return Ok(());
    };
    if value == "application/json" {
        return Ok(());
    }
    let text = value.to_str().unwrap_or("?");
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let name = name.trim();
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    let known = is("application/json")
        || is("application/ejson")
        || (takes == Takes::Lines
            && (is("application/x-ndjson") || is("application/ndjson") || is("application/jsonl")))
        || (!from_page && is("application/x-www-form-urlencoded"));
    if !known {
        return Err(unsupported(format!("Content-Type {text:.80} is not taken here: {wanted}")));
    }
    let charset =
        parameters.split(';').filter_map(|p| p.split_once('=')).find(|(k, _)| k.trim().eq_ignore_ascii_case("charset"));
    match charset {
        Some((_, v)) if !v.trim().trim_matches('"').eq_ignore_ascii_case("utf-8") => {
            Err(unsupported(format!("charset {:.40} is not taken: JSON is UTF-8", v.trim())))
        }
        _ => Ok(()),
    }
}

fn unsupported(message: String) -> ApiError {
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", None, message)
}

/// The elements of a header's list with their `q`, 1 where none is given and 0 where it is no number.
fn listed(value: &HeaderValue) -> impl Iterator<Item = (&str, f32)> {
    value.to_str().unwrap_or("").split(',').map(str::trim).filter(|e| !e.is_empty()).map(|element| {
        let mut parts = element.split(';').map(str::trim);
        let name = parts.next().unwrap_or("");
        let quality = parts.filter_map(|p| p.split_once('=')).find(|(k, _)| k.trim().eq_ignore_ascii_case("q"));
        (name, quality.map_or(1.0, |(_, v)| v.trim().parse().unwrap_or(0.0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (k, v) in pairs {
            map.append(*k, HeaderValue::from_static(v));
        }
        map
    }

    #[test]
    fn accept_chooses_the_form() {
        let style = |accept| form(&with(&[("accept", accept)]), Style::Relaxed).style;
        assert!(matches!(style("*/*"), Style::Relaxed));
        assert!(matches!(style("application/ejson"), Style::Canonical));
        assert!(matches!(style("application/json, application/ejson;q=0.5"), Style::Relaxed));
        assert!(matches!(style("application/ejson;q=0"), Style::Relaxed));
        assert!(form(&with(&[("accept", "application/x-ndjson, */*;q=0.1")]), Style::Relaxed).lines);
    }

    #[test]
    fn accept_encoding_is_obeyed() {
        let coding = |v| answer_coding(&with(&[("accept-encoding", v)]));
        assert_eq!(coding("gzip, deflate, br, zstd"), Coding::Zstd);
        assert_eq!(coding("gzip, deflate"), Coding::Gzip);
        assert_eq!(coding("zstd;q=0.1, gzip;q=0.9"), Coding::Gzip);
        assert_eq!(coding("gzip;q=0"), Coding::Identity);
        assert_eq!(coding("br"), Coding::Identity);
    }

    #[test]
    fn a_body_has_one_known_coding() {
        let coding = |v| body_coding(&with(&[("content-encoding", v)]));
        assert_eq!(coding("gzip").expect("known"), Coding::Gzip);
        assert_eq!(coding("identity").expect("known"), Coding::Identity);
        for refused in ["gzip, gzip", "br", "deflate", "gzip, zstd"] {
            assert_eq!(coding(refused).expect_err("refused").status(), 415);
        }
    }

    #[test]
    fn content_types_follow_the_contract() {
        let check = |pairs: &[(&'static str, &'static str)], takes| content_type(&with(pairs), takes).is_ok();
        assert!(check(&[], Takes::Json));
        assert!(check(&[("content-type", "application/json; charset=UTF-8")], Takes::Json));
        assert!(check(&[("content-type", "application/ejson")], Takes::Json));
        assert!(check(&[("content-type", "application/x-www-form-urlencoded")], Takes::Json));
        assert!(!check(
            &[("content-type", "application/x-www-form-urlencoded"), ("origin", "https://a.test")],
            Takes::Json
        ));
        assert!(!check(&[("origin", "https://a.test")], Takes::Json));
        assert!(!check(&[("content-type", "text/plain")], Takes::Json));
        assert!(!check(&[("content-type", "application/json; charset=latin1")], Takes::Json));
        assert!(!check(&[("content-type", "application/x-ndjson")], Takes::Json));
        assert!(check(&[("content-type", "application/x-ndjson")], Takes::Lines));
    }
}
