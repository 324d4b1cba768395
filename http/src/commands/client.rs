//! The small HTTP client of the commands that talk to a running server.
//!
//! Takes a base URL, a key and trusted certificates; gives responses whose body is read as a stream.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body, SendBody};

/// How long a connection may take to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// An answer that is an error is read up to this.
const ERROR_BYTES_MAX: u64 = 64 << 10;

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
    key: Option<String>,
}

impl Client {
    /// For the server at `url`.
    ///
    /// # Errors
    /// One line about the certificates.
    pub(crate) fn new(
        url: &str,
        key: Option<&str>,
        ca: Option<&Path>,
        whole: Option<Duration>,
    ) -> Result<Self, String> {
        let mut tls = TlsConfig::builder().provider(TlsProvider::Rustls);
        if let Some(path) = ca {
            let pem = std::fs::read(path).map_err(|e| format!("--ca {}: {e}", path.display()))?;
            let found: Vec<Certificate<'static>> = parse_pem(&pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate),
                    _ => None,
                })
                .collect();
            if found.is_empty() {
                return Err(format!("--ca {}: holds no certificate in PEM", path.display()));
            }
            tls = tls.root_certs(RootCerts::from(found));
        }
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .timeout_global(whole)
            .build();
        Ok(Self { agent: config.into(), base: url.trim_end_matches('/').to_owned(), key: key.map(str::to_owned) })
    }

    /// `GET path`: the status, and the body as text.
    ///
    /// # Errors
    /// One line: no connection, no answer.
    pub(crate) fn get(&self, path: &str) -> Result<(u16, String), String> {
        let url = format!("{}{path}", self.base);
        let mut request = self.agent.get(&url);
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let mut response = request.call().map_err(|e| format!("{url}: {e}"))?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(ERROR_BYTES_MAX).read_to_string();
        Ok((status, text.map_err(|e| format!("{url}: {e}"))?))
    }

    /// `POST path` with a body; the answer's body where the status is a success.
    ///
    /// # Errors
    /// One line: what the server said, or that it said nothing.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &mut dyn Read) -> Result<Body, String> {
        let url = format!("{}{path}", self.base);
        let mut request = self.agent.post(&url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let mut response = request.send(SendBody::from_reader(body)).map_err(|e| format!("{url}: {e}"))?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let status = response.status();
        let text = response.body_mut().with_config().limit(ERROR_BYTES_MAX).read_to_string().unwrap_or_default();
        let told = serde_json::from_str::<serde_json::Value>(&text).ok();
        let message = told.as_ref().and_then(|v| v["error"].as_str()).unwrap_or(text.trim());
        Err(format!("{url} answered {status}: {message}"))
    }
}
