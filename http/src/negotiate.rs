//! What the client accepts and sends: `Accept`, `Accept-Encoding`, `Content-Type`, `Content-Encoding`.
//!
//! Takes headers; gives a `Form`, codings, or the error that says what would have been accepted. Pure.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
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
    form_of(texts(headers, header::ACCEPT), plain)
}

/// The same from the header's values. What is named counts before what a wildcard covers (RFC 9110, 12.5.1); of what is
/// equally welcome, lines come before canonical Extended JSON and that before JSON, since nobody names them by accident.
pub(crate) fn form_of<'a>(values: impl IntoIterator<Item = &'a str>, plain: Style) -> Form {
    let (mut json, mut ejson, mut lines) = (None, None, None);
    let (mut application, mut anything) = (None, None);
    for (name, quality) in values.into_iter().flat_map(listed) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let place = match () {
            () if is("application/json") => &mut json,
            () if is("application/ejson") => &mut ejson,
            () if is("application/x-ndjson") || is("application/ndjson") => &mut lines,
            () if is("application/*") => &mut application,
            () if is("*/*") => &mut anything,
            () => continue,
        };
        *place = Some(place.unwrap_or(0.0_f32).max(quality));
    }
    let json = json.or(application).or(anything).unwrap_or(0.0);
    let (ejson, lines) = (ejson.unwrap_or(0.0), lines.unwrap_or(0.0));
    Form {
        style: if ejson > 0.0 && ejson >= json { Style::Canonical } else { plain },
        lines: lines > 0.0 && lines >= json && lines >= ejson,
    }
}

/// Whether `Accept` names server-sent events.
pub(crate) fn takes_events(headers: &HeaderMap) -> bool {
    let mut named = texts(headers, header::ACCEPT).flat_map(listed);
    named.any(|(name, quality)| name.eq_ignore_ascii_case("text/event-stream") && quality > 0.0)
}

/// The compression that `Accept-Encoding` asks for: zstd before gzip where both are equally welcome.
pub(crate) fn answer_coding(headers: &HeaderMap) -> Coding {
    coding_of(texts(headers, header::ACCEPT_ENCODING))
}

/// The same from the header's values. What is not named is as welcome as `*` says; packed is never sent where the answer
/// as it is was wanted more.
pub(crate) fn coding_of<'a>(values: impl IntoIterator<Item = &'a str>) -> Coding {
    let (mut zstd, mut gzip, mut identity, mut anything) = (None, None, None, None);
    for (name, quality) in values.into_iter().flat_map(listed) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let place = match () {
            () if is("zstd") => &mut zstd,
            () if is("gzip") || is("x-gzip") => &mut gzip,
            () if is("identity") => &mut identity,
            () if is("*") => &mut anything,
            () => continue,
        };
        *place = Some(quality);
    }
    let [zstd, gzip] = [zstd, gzip].map(|q| q.or(anything).unwrap_or(0.0_f32));
    let (best, coding) = if zstd >= gzip { (zstd, Coding::Zstd) } else { (gzip, Coding::Gzip) };
    if best > 0.0 && best >= identity.unwrap_or(0.0) { coding } else { Coding::Identity }
}

/// The compression of a request's body.
///
/// # Errors
/// 415 for one that is not known, and for one inside another.
pub(crate) fn body_coding(headers: &HeaderMap) -> Result<Coding> {
    let mut coding = Coding::Identity;
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for (name, _) in listed(value.to_str().unwrap_or("?")) {
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
    let value = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type_of(value, headers.contains_key(header::ORIGIN), takes)
}

/// The same from the header's value.
///
/// # Errors
/// 415, naming what is taken.
pub(crate) fn content_type_of(value: Option<&[u8]>, from_page: bool, takes: Takes) -> Result<()> {
    let wanted = match takes {
        Takes::Json => "application/json or application/ejson",
        Takes::Lines => "application/x-ndjson, application/json or application/ejson",
    };
    let Some(value) = value else {
        if from_page {
            return Err(unsupported(format!("a request with an Origin must say its Content-Type: {wanted}")));
        }
        return Ok(());
    };
    if value == b"application/json" {
        return Ok(());
    }
    let text = visible(value).unwrap_or("?");
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

/// The values of a header that are visible ASCII.
fn texts(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().filter_map(|v| visible(v.as_bytes()))
}

/// A header's value, where it is visible ASCII.
pub(crate) fn visible(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|t| t.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t')))
}

/// The elements of a header's list with their `q`, 1 where none is given and 0 where it is no number.
fn listed(value: &str) -> impl Iterator<Item = (&str, f32)> {
    value.split(',').map(str::trim).filter(|e| !e.is_empty()).map(|element| {
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
        for (accept, canonical, lines) in [
            ("*/*", false, false),
            ("text/html", false, false),
            ("application/ejson", true, false),
            ("application/ejson;q=0", false, false),
            ("application/json, application/ejson;q=0.5", false, false),
            ("application/json;q=0.5, application/ejson;q=0.6", true, false),
            ("application/json, application/ejson", true, false),
            ("application/ejson;q=0.5, */*", false, false),
            ("application/ejson, */*", true, false),
            ("application/x-ndjson", false, true),
            ("application/x-ndjson, */*;q=0.1", false, true),
            ("application/x-ndjson;q=0.1, */*", false, false),
            ("application/x-ndjson;q=0.1, application/json", false, false),
            ("application/x-ndjson;q=0.9, application/json;Q=0.8", false, true),
            ("application/json;q=0, application/x-ndjson;q=0.1, */*", false, true),
            ("application/x-ndjson;q=0, application/json;q=0.1", false, false),
            ("application/x-ndjson, application/ejson", true, true),
            ("application/x-ndjson;q=0.5, application/ejson", true, false),
            ("application/x-ndjson;q=0.5, application/*;q=0.6", false, false),
            ("application/ejson;q=high", false, false),
        ] {
            let form = form(&with(&[("accept", accept)]), Style::Relaxed);
            let found = (matches!(form.style, Style::Canonical), form.lines);
            assert_eq!(found, (canonical, lines), "{accept}");
        }
        let twice = with(&[("accept", "application/json;q=0.1"), ("accept", "application/ejson")]);
        assert!(matches!(form(&twice, Style::Relaxed).style, Style::Canonical));
    }

    #[test]
    fn accept_encoding_is_obeyed() {
        let coding = |v| answer_coding(&with(&[("accept-encoding", v)]));
        assert_eq!(coding("gzip, deflate, br, zstd"), Coding::Zstd);
        assert_eq!(coding("gzip, deflate"), Coding::Gzip);
        assert_eq!(coding("zstd;q=0.1, gzip;q=0.9"), Coding::Gzip);
        assert_eq!(coding("gzip;q=0"), Coding::Identity);
        assert_eq!(coding("br"), Coding::Identity);
        assert_eq!(coding("*"), Coding::Zstd);
        assert_eq!(coding("*, zstd;q=0"), Coding::Gzip);
        assert_eq!(coding("*;q=0"), Coding::Identity);
        assert_eq!(coding("gzip;q=0.5, identity"), Coding::Identity);
        assert_eq!(coding("gzip;q=0.5, identity;q=0.5"), Coding::Gzip);
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
