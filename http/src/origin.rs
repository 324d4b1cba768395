//! Who may call from a browser: the rules for `Host` and `Origin`, and CORS.
//!
//! Takes headers; gives a verdict, and the headers of an answer. On a loopback address a page that the user happens to
//! visit must not reach the database: not by its own origin, and not by a name that it points at 127.0.0.1. Pure.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};

use crate::error::{ApiError, Result};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, apikey, content-type, content-encoding, accept, last-event-id, transaction-id, x-request-id",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("x-request-id, retry-after");
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The rules, from the options.
#[derive(Debug)]
pub(crate) struct WebRules {
    loopback: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
    every_origin: bool,
    credentials: bool,
}

/// What was found about a request's `Origin`.
#[derive(Clone, Debug)]
pub(crate) enum OriginVerdict {
    /// No page: curl, a driver.
    None,
    /// A page that may call; its origin, or `*`.
    Allowed(HeaderValue),
    /// A page that may not read answers. Beyond loopback it is answered all the same: it has no key.
    Foreign,
}

impl WebRules {
    /// Checks the options.
    ///
    /// # Errors
    /// `*` with credentials; an origin that is none.
    pub(crate) fn new(loopback: bool, hosts: &[String], origins: &[String], credentials: bool) -> Result<Self, String> {
        let clean = |list: &[String]| -> Vec<String> {
            list.iter().map(|v| v.trim().to_ascii_lowercase()).filter(|v| !v.is_empty()).collect()
        };
        let (hosts, mut origins) = (clean(hosts), clean(origins));
        let every_origin = origins.iter().any(|o| o == "*");
        if every_origin && credentials {
            return Err("--cors-origins '*' with --cors-credentials would let every web page act for the user: name \
                        the origins"
                .to_owned());
        }
        origins.retain(|o| o != "*");
        for origin in &mut origins {
            while origin.ends_with('/') {
                origin.pop();
            }
            let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            if host.is_none_or(|h| h.is_empty() || h.contains('/')) {
                return Err(format!(
                    "--cors-origins {origin}: an origin is a scheme and a host, such as https://app.example"
                ));
            }
        }
        Ok(Self { loopback, hosts, origins, every_origin, credentials })
    }

    /// Checks the host that was asked for, in the URI and in the header.
    ///
    /// # Errors
    /// 403 where it is none of ours, 400 where HTTP/1.1 names none.
    pub(crate) fn check_host(&self, uri_host: Option<&str>, version: Version, headers: &HeaderMap) -> Result<()> {
        let mut values = headers.get_all(header::HOST).iter();
        let (first, second) = (values.next(), values.next());
        if second.is_some() {
            return Err(ApiError::bad_value("more than one Host header"));
        }
        let named = match first {
            Some(value) => Some(value.to_str().map_err(|_| ApiError::bad_value("the Host header is not ASCII"))?),
            None if version >= Version::HTTP_11 => return Err(ApiError::bad_value("HTTP/1.1 needs a Host header")),
            None => None,
        };
        named.into_iter().chain(uri_host).try_for_each(|host| self.check_host_name(host))
    }

    /// Checks one host, with or without a port.
    ///
    /// # Errors
    /// 403 where it is none of ours.
    pub(crate) fn check_host_name(&self, host: &str) -> Result<()> {
        if self.host_is_ours(host) {
            return Ok(());
        }
        let message = format!(
            "the host {host:.100} is not one of this server's: localhost, a loopback address, or one named by \
             --allowed-hosts"
        );
        Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", None, message))
    }

    /// Whether answers depend on the request's `Origin`.
    pub(crate) fn varies(&self) -> bool {
        !self.origins.is_empty()
    }

    fn host_is_ours(&self, host: &str) -> bool {
        if !self.loopback && self.hosts.is_empty() {
            return true;
        }
        let name = without_port(host);
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            // An address cannot be pointed elsewhere by whoever owns a name; beyond loopback any may be ours.
            if ip.is_loopback() || !self.loopback {
                return true;
            }
        }
        self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host))
    }

    /// What the `Origin` header means here.
    ///
    /// # Errors
    /// 403 on a loopback address for an origin that is not allowed.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<OriginVerdict> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(OriginVerdict::None) };
        let text = origin.to_str().unwrap_or("");
        if self.origins.iter().any(|o| o.eq_ignore_ascii_case(text)) {
            return Ok(OriginVerdict::Allowed(origin.clone()));
        }
        if self.every_origin {
            return Ok(OriginVerdict::Allowed(HeaderValue::from_static("*")));
        }
        if self.loopback {
            let message =
                format!("web pages of {text:.100} may not call this server: --cors-origins names those that may");
            return Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", None, message));
        }
        Ok(OriginVerdict::Foreign)
    }

    /// Whether the request is a browser's question before the real one.
    pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
        *method == Method::OPTIONS
            && headers.contains_key(header::ORIGIN)
            && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// The headers that an allowed preflight is answered with, beside [`WebRules::mark`].
    pub(crate) fn preflight(headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }

    /// Adds what lets the page read this answer, errors too.
    pub(crate) fn mark(&self, verdict: &OriginVerdict, headers: &mut HeaderMap) {
        if self.varies() {
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        }
        if let OriginVerdict::Allowed(origin) = verdict {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            if self.credentials {
                headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            }
        }
    }
}

/// `localhost:7117` to `localhost`, `[::1]:7117` to `[::1]`; a trailing dot goes too.
fn without_port(host: &str) -> &str {
    let name = if host.starts_with('[') {
        host.find(']').map_or(host, |end| &host[..=end])
    } else {
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        }
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    fn rules(loopback: bool, hosts: &[&str], origins: &[&str]) -> WebRules {
        let own = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        WebRules::new(loopback, &own(hosts), &own(origins), false).unwrap()
    }

    fn host(rules: &WebRules, value: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(value));
        rules.check_host(None, Version::HTTP_11, &headers).is_ok()
    }

    #[test]
    fn on_loopback_only_our_own_names_are_answered() {
        let r = rules(true, &["db.internal"], &[]);
        for ours in [
            "localhost",
            "LOCALHOST:7117",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.9.9.9:1",
            "[::1]:7117",
            "[::1]",
            "db.internal:9",
            "localhost.",
        ] {
            assert!(host(&r, ours), "{ours}");
        }
        for foreign in [
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "192.168.0.1",
            "",
            "[::2]",
            "evil.test:7117",
            "0.0.0.0",
        ] {
            assert!(!host(&r, foreign), "{foreign}");
        }
        assert!(r.check_host(Some("evil.test"), Version::HTTP_10, &HeaderMap::new()).is_err());
        assert!(r.check_host(None, Version::HTTP_11, &HeaderMap::new()).is_err());
        assert!(r.check_host(None, Version::HTTP_10, &HeaderMap::new()).is_ok());
    }

    #[test]
    fn an_origin_must_be_listed() {
        let r = rules(true, &[], &["https://app.test/"]);
        let verdict = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_static(value));
            r.check_origin(&headers)
        };
        assert!(matches!(verdict("https://app.test").unwrap(), OriginVerdict::Allowed(_)));
        for foreign in
            ["https://evil.test", "null", "https://app.test.evil.test", "http://app.test", "https://app.test:444"]
        {
            assert_eq!(verdict(foreign).unwrap_err().status(), 403, "{foreign}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for wrong in ["app.test", "https://", "https://a/b", "ftp://a"] {
            assert!(WebRules::new(true, &[], &[wrong.to_owned()], false).is_err(), "{wrong}");
        }
    }
}
