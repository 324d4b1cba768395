//! `GET /v1/changes` and `GET /v1/db/{db}/{coll}/changes`: what is watched, from where, and in which form it is told.
//!
//! Takes the query string and a few headers; opens the engine's stream on a thread that may wait, and hands it to
//! `feed.rs`. A key must be allowed to read what it watches: a database, or with none named all of them.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::Request;
use http::request::Parts;
use quarrydb::{ChangeRequest, FullDocument};
use quarrydb_jsonb::Style;
use quarrydb_query::Filter;

use super::{Call, Names, blocking, check_everywhere, context};
use crate::body;
use crate::error::{ApiError, Result};
use crate::feed::{self, Ask, Told};
use crate::negotiate;
use crate::operation::Operation;
use crate::state::Shared;

/// What the query string may say.
pub(crate) const PARAMETERS: [&str; 7] = ["db", "coll", "since", "match", "fullDocument", "wait", "heartbeat"];
/// How often an idle stream says that it is there, where the client does not say.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The least and the most of it that a client may ask for.
const HEARTBEAT_MS: std::ops::RangeInclusive<u64> = 100..=3_600_000;
/// The longest that a client may wait for an answer that ends.
const WAIT_MS_MAX: u64 = 3_600_000;

/// The route.
pub(crate) async fn handle(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    body::drain(body);
    let call = match Call::new(&app, Operation::Changes, &mut parts).await {
        Ok(call) => call,
        Err(error) => return error.into_response(),
    };
    let response = match open(&call, &parts).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    call.done(&[], response.status());
    response
}

async fn open(call: &Call, parts: &Parts) -> Result<Response> {
    if call.app.is_stopping() {
        return Err(ApiError::unavailable("ShuttingDown", "the server is stopping"));
    }
    let (request, ask) = read(call, parts)?;
    match &request.db {
        Some(db) => call.check_role(db, Operation::Changes.role())?,
        None => check_everywhere(parts, Operation::Changes, Operation::Changes.role())?,
    }
    let database = call.database()?.clone();
    let stream = blocking(move || Ok(database.watch(request)?)).await?;
    Ok(feed::answer(&call.app, stream, ask))
}

/// What the request asks for.
fn read(call: &Call, parts: &Parts) -> Result<(ChangeRequest, Ask)> {
    let mut given = parameters(parts.uri.query().unwrap_or_default())?;
    let mut take = |name: &str| given.iter().position(|(known, _)| *known == name).map(|at| given.swap_remove(at).1);
    let (mut db, mut collection) = (take("db").filter(|v| !v.is_empty()), take("coll").filter(|v| !v.is_empty()));
    if let Names::Path { db: of_path, coll } = &call.names
        && !coll.is_empty()
    {
        if db.is_some() || collection.is_some() {
            return Err(ApiError::bad_value("the path names the collection already: leave db and coll out"));
        }
        (db, collection) = (Some(of_path.clone()), Some(coll.clone()));
    }
    let header = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    // A client that comes back has told more than its first address says.
    let since = header.map(str::to_owned).or(take("since")).filter(|token| !token.is_empty());
    let filter = take("match").map(|text| filter(&text)).transpose()?;
    let full_document = match take("fullDocument").as_deref() {
        None | Some("default") => FullDocument::Default,
        Some("updateLookup") => FullDocument::UpdateLookup,
        // What a change has made of a document is always there.
        Some("whenAvailable" | "required") => FullDocument::WhenAvailable,
        Some(other) => {
            let message = format!("fullDocument is default, updateLookup, whenAvailable or required, not {other:.60?}");
            return Err(ApiError::bad_value(message));
        }
    };
    let wait = take("wait").map(|text| number("wait", &text, 0..=WAIT_MS_MAX)).transpose()?;
    let heartbeat = take("heartbeat").map(|text| number("heartbeat", &text, HEARTBEAT_MS)).transpose()?;
    let form = negotiate::form(&parts.headers, Style::Relaxed);
    // Who waits for an end reads lines, unless it says otherwise.
    let events = negotiate::takes_events(&parts.headers);
    let told = if form.lines || wait.is_some() && !events { Told::Lines } else { Told::Events };
    let ask = Ask {
        told,
        style: form.style,
        wait: wait.map(Duration::from_millis),
        heartbeat: heartbeat.map_or(HEARTBEAT, Duration::from_millis),
    };
    Ok((ChangeRequest { db, collection, since, filter, full_document }, ask))
}

fn filter(text: &str) -> Result<Filter> {
    let value = quarrydb_jsonb::parse(text.as_bytes()).map_err(|e| ApiError::from(e).within("match"))?;
    Ok(Filter::parse(value.view(), &context("match", None))?)
}

fn number(name: &str, text: &str, allowed: std::ops::RangeInclusive<u64>) -> Result<u64> {
    text.parse().ok().filter(|n| allowed.contains(n)).ok_or_else(|| {
        let (least, most) = (allowed.start(), allowed.end());
        ApiError::bad_value(format!("{name} is a number of milliseconds from {least} to {most}, not {text:.60?}"))
    })
}

/// The parameters of a query string, decoded; each known, none twice.
fn parameters(query: &str) -> Result<Vec<(&'static str, String)>> {
    let mut given: Vec<(&'static str, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(name) = PARAMETERS.into_iter().find(|known| *known == name) else {
            let known = PARAMETERS.join(", ");
            let message = format!("the query string has no parameter {name:.60?} here: it takes {known}");
            return Err(ApiError::bad("IDLUnknownField", 40415, message));
        };
        if given.iter().any(|(other, _)| *other == name) {
            return Err(ApiError::bad_value(format!("the parameter {name} is given twice")));
        }
        given.push((name, decoded(name, value)?));
    }
    Ok(given)
}

/// A value of a query string, where `%` and two digits are a byte and `+` is a space.
fn decoded(name: &str, text: &str) -> Result<String> {
    let wrong = || ApiError::bad_value(format!("the parameter {name} is not percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|c| char::from(c).to_digit(16)).ok_or_else(wrong);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high << 4 | low).map_err(|_| wrong())?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;

    #[test]
    fn parameters_are_decoded_once() {
        let given = parameters("db=shop&match=%7B%22a%22%3A+1%7D&&since=").unwrap();
        let expected = [("db", "shop".to_owned()), ("match", "{\"a\": 1}".to_owned()), ("since", String::new())];
        assert_eq!(given, expected);
        assert_eq!(decoded("db", "%C3%A9%2541").unwrap(), "\u{e9}%41");
        for wrong in ["%", "%4", "%zz", "%ff", "%E2%82"] {
            assert!(decoded("db", wrong).is_err(), "{wrong}");
        }
        assert!(parameters("db=a&db=b").is_err() && parameters("what=1").is_err());
    }
}
