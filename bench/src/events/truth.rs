//! What the five questions have for answers, by going through the events one by one.
//!
//! Takes the lines, gives rows of values in each question's columns and order. Nothing of a query language: this is
//! what every engine is held to.

use super::QUESTIONS;
use crate::answer::Rows;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

const MICROS_AN_HOUR: u64 = 3_600_000_000;
const POST: &str = "app.bsky.feed.post";
/// The collections that the third question asks about.
const BY_HOUR: [&str; 3] = [POST, "app.bsky.feed.repost", "app.bsky.feed.like"];

/// The answers to `QUESTIONS`, in their order, of the events that `lines` are.
///
/// # Panics
/// Where a line is not an event.
#[must_use]
pub fn answers<'l>(lines: impl Iterator<Item = &'l [u8]>) -> [Rows; QUESTIONS.len()] {
    let mut collections: BTreeMap<Option<String>, u64> = BTreeMap::new();
    let mut creates: BTreeMap<String, (u64, HashSet<String>)> = BTreeMap::new();
    let mut hours: BTreeMap<(u64, String), u64> = BTreeMap::new();
    let mut posters: HashMap<String, (u64, u64)> = HashMap::new();
    for line in lines {
        let event: Value = serde_json::from_slice(line).expect("an event is JSON");
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        let (did, time) = (text("/did").expect("who"), event["time_us"].as_u64().expect("when"));
        let collection = text("/commit/collection");
        *collections.entry(collection.map(str::to_owned)).or_default() += 1;
        let (Some("commit"), Some("create"), Some(name)) = (text("/kind"), text("/commit/operation"), collection)
        else {
            continue;
        };
        let (count, users) = creates.entry(name.to_owned()).or_default();
        *count += 1;
        if !users.contains(did) {
            users.insert(did.to_owned());
        }
        if BY_HOUR.contains(&name) {
            *hours.entry((time / MICROS_AN_HOUR % 24, name.to_owned())).or_default() += 1;
        }
        if name == POST {
            let span = posters.entry(did.to_owned()).or_insert((time, time));
            *span = (span.0.min(time), span.1.max(time));
        }
    }
    let mut first: Vec<(u64, &String)> = posters.iter().map(|(did, (from, _))| (*from, did)).collect();
    first.sort_unstable();
    let mut longest: Vec<(Reverse<u64>, &String)> =
        posters.iter().map(|(did, (from, to))| (Reverse(to - from), did)).collect();
    longest.sort_unstable();
    [
        collections.iter().map(|(name, count)| vec![json!(name), json!(count)]).collect(),
        creates.iter().map(|(name, (count, users))| vec![json!(name), json!(count), json!(users.len())]).collect(),
        hours.iter().map(|((hour, name), count)| vec![json!(name), json!(hour), json!(count)]).collect(),
        first.iter().take(3).map(|(time, did)| vec![json!(did), json!(time)]).collect(),
        longest.iter().take(3).map(|(span, did)| vec![json!(did), json!(span.0)]).collect(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_a_handful_of_events_are_those_on_paper() {
        let event = |did: &str, time: u64, operation: &str, name: &str| {
            format!(
                r#"{{"did":"{did}","time_us":{time},"kind":"commit","commit":{{"operation":"{operation}","collection":"app.bsky.feed.{name}"}}}}"#
            )
        };
        let events = [
            event("a", 1_000, "create", "post"),
            event("b", 2_000, "create", "post"),
            event("a", 3_600_001_000, "create", "post"),
            event("b", 3_000, "delete", "post"),
            event("b", 4_000, "create", "like"),
            r#"{"did":"c","time_us":5000,"kind":"identity"}"#.to_owned(),
        ];
        let found = answers(events.iter().map(String::as_bytes));
        let (like, post) = (json!("app.bsky.feed.like"), json!("app.bsky.feed.post"));
        assert_eq!(found[0], [vec![json!(null), json!(1)], vec![like.clone(), json!(1)], vec![post.clone(), json!(4)]]);
        assert_eq!(found[1], [vec![like.clone(), json!(1), json!(1)], vec![post.clone(), json!(3), json!(2)]]);
        let hours =
            [vec![like, json!(0), json!(1)], vec![post.clone(), json!(0), json!(2)], vec![post, json!(1), json!(1)]];
        assert_eq!(found[2], hours);
        assert_eq!(found[3], [[json!("a"), json!(1_000)], [json!("b"), json!(2_000)]]);
        assert_eq!(found[4], [[json!("a"), json!(3_600_000_000_u64)], [json!("b"), json!(0)]]);
    }
}
