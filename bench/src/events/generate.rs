//! Events as a social network's firehose gives them: by seed, byte for byte the same for every engine that is measured.
//!
//! Gives compact JSON, 480 bytes on average: who (`did`), when (`time_us`, microseconds, over one day, each later than the
//! one before), and most often a `commit` of one of 13 collections, whose shares fall as 1, 1/2, 1/3 and so on. In a
//! million events about 118,000 users are seen, some of them far more often than others. It knows nothing of questions.

use crate::mersenne::Mersenne;
use std::io::Write as _;

/// The collections, the most frequent first.
pub const COLLECTIONS: [&str; 13] = [
    "app.bsky.feed.like",
    "app.bsky.feed.post",
    "app.bsky.graph.follow",
    "app.bsky.feed.repost",
    "app.bsky.graph.block",
    "app.bsky.graph.listitem",
    "app.bsky.actor.profile",
    "app.bsky.feed.threadgate",
    "app.bsky.graph.list",
    "app.bsky.feed.postgate",
    "app.bsky.graph.listblock",
    "app.bsky.feed.generator",
    "app.bsky.graph.starterpack",
];
const WORDS: [&str; 32] = [
    "again", "all", "because", "book", "cat", "coffee", "day", "every", "from", "good", "great", "here", "just",
    "like", "little", "long", "look", "morning", "music", "never", "new", "people", "rain", "really", "some", "summer",
    "that", "think", "this", "today", "walk", "world",
];
const LANGUAGE: [&str; 4] = ["en", "ja", "pt", "de"];
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// 2024-11-21T00:00:00Z, in microseconds.
const BEGIN_MICROS: u64 = 1_732_147_200_000_000;
/// The events are spread over so long.
const DAY_MICROS: u64 = 86_400_000_000;
/// Users for each event. With who is drawn how often, nearly all of them are seen.
const USERS: f64 = 0.1185;
/// Events without a commit: an identity or an account has changed.
const BARE: f64 = 0.006;
/// Commits that delete, and that update; all others create.
const DELETES: f64 = 0.06;
const UPDATES: f64 = 0.015;
/// Posts that answer another.
const REPLIES: f64 = 0.55;

/// Events without end.
#[derive(Clone, Debug)]
pub struct Firehose {
    random: Mersenne,
    seq: u64,
    step: u64,
    users: u32,
    /// Up to where each collection's share goes, of 1.
    shares: [f64; COLLECTIONS.len()],
}

/// A number that looks like any other, of one that does not (Steele, Lea, Flood 2014: `SplitMix64`).
fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `length` letters of a name that belongs to `number`.
fn letters(out: &mut Vec<u8>, number: u64, length: usize) {
    let mut bits = 0;
    for i in 0..length {
        if i % 12 == 0 {
            bits = scattered(number.wrapping_add((i as u64) << 56));
        }
        out.push(BASE32[(bits & 31) as usize]);
        bits >>= 5;
    }
}

impl Firehose {
    /// From the first of `events` events on; the day and the users are theirs.
    #[must_use]
    pub fn new(seed: u32, events: usize) -> Self {
        let whole: f64 = (1..=COLLECTIONS.len()).map(|rank| 1.0 / rank as f64).sum();
        let mut until = 0.0;
        let shares = std::array::from_fn(|i| {
            until += 1.0 / (i + 1) as f64 / whole;
            until
        });
        let step = DAY_MICROS / events.max(1) as u64;
        let users = (events as f64 * USERS).max(1.0) as u32;
        Self { random: Mersenne::new(seed), seq: 0, step: step.max(1), users, shares }
    }

    /// Few are seen often: the density of users falls as the inverse root.
    fn user(&mut self) -> u64 {
        let drawn = self.random.unit();
        (drawn * drawn * f64::from(self.users)) as u64
    }

    fn did(&mut self, out: &mut Vec<u8>) {
        let user = self.user();
        out.extend_from_slice(b"did:plc:");
        letters(out, user << 1, 24);
    }

    /// A name of a record or of its content: `length` letters that no other has.
    fn fresh(&mut self, out: &mut Vec<u8>, length: usize) {
        let number = u64::from(self.random.bits()) << 32 | u64::from(self.random.bits());
        letters(out, number | 1, length);
    }

    /// Where somebody's post is, as records name it.
    fn reference(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"cid\":\"bafyrei");
        self.fresh(out, 52);
        out.extend_from_slice(b"\",\"uri\":\"at://");
        self.did(out);
        out.extend_from_slice(b"/app.bsky.feed.post/3l");
        self.fresh(out, 11);
        out.extend_from_slice(b"\"}");
    }

    fn words(&mut self, out: &mut Vec<u8>, least: u32, most: u32) {
        for n in 0..least + self.random.below(most - least) {
            if n > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(WORDS[self.random.below(WORDS.len() as u32) as usize].as_bytes());
        }
    }

    fn record(&mut self, out: &mut Vec<u8>, rank: usize, second: u64) {
        let name = COLLECTIONS[rank];
        let (hour, minute, second) = (second / 3600 % 24, second / 60 % 60, second % 60);
        let milli = self.random.below(1000);
        // A vector takes all.
        let _ = write!(
            out,
            "{{\"$type\":\"{name}\",\"createdAt\":\"2024-11-21T{hour:02}:{minute:02}:{second:02}.{milli:03}Z\""
        );
        match rank {
            0 | 3 => {
                out.extend_from_slice(b",\"subject\":");
                self.reference(out);
            }
            1 => {
                let language = LANGUAGE[self.random.below(4) as usize];
                let _ = write!(out, ",\"langs\":[\"{language}\"]");
                if self.random.unit() < REPLIES {
                    out.extend_from_slice(b",\"reply\":{\"parent\":");
                    self.reference(out);
                    out.extend_from_slice(b",\"root\":");
                    self.reference(out);
                    out.push(b'}');
                }
                out.extend_from_slice(b",\"text\":\"");
                self.words(out, 2, 30);
                out.push(b'"');
            }
            2 | 4 | 5 | 10 => {
                out.extend_from_slice(b",\"subject\":\"");
                self.did(out);
                out.push(b'"');
            }
            _ => {
                out.extend_from_slice(b",\"name\":\"");
                self.words(out, 1, 4);
                out.extend_from_slice(b"\",\"description\":\"");
                self.words(out, 4, 24);
                out.push(b'"');
            }
        }
        out.push(b'}');
    }

    /// Appends the next event, without a line's end.
    pub fn append(&mut self, out: &mut Vec<u8>) {
        let after = self.seq * self.step + (self.random.unit() * self.step as f64) as u64;
        self.seq += 1;
        out.extend_from_slice(b"{\"did\":\"");
        self.did(out);
        let _ = write!(out, "\",\"time_us\":{},\"kind\":", BEGIN_MICROS + after);
        if self.random.unit() < BARE {
            let kind = ["identity", "account"][self.random.below(2) as usize];
            let _ = write!(out, "\"{kind}\",\"{kind}\":{{\"seq\":{},\"active\":true}}}}", 4_000_000 + self.seq);
            return;
        }
        let drawn = self.random.unit();
        let rank = self.shares.iter().position(|until| drawn < *until).unwrap_or(0);
        let drawn = self.random.unit();
        let operation = match drawn {
            d if d < DELETES => "delete",
            d if d < DELETES + UPDATES => "update",
            _ => "create",
        };
        out.extend_from_slice(b"\"commit\",\"commit\":{\"rev\":\"3l");
        self.fresh(out, 11);
        let _ = write!(out, "\",\"operation\":\"{operation}\",\"collection\":\"{}\",\"rkey\":\"3l", COLLECTIONS[rank]);
        self.fresh(out, 11);
        out.push(b'"');
        if operation != "delete" {
            out.extend_from_slice(b",\"record\":");
            self.record(out, rank, after / 1_000_000);
            out.extend_from_slice(b",\"cid\":\"bafyrei");
            self.fresh(out, 52);
            out.push(b'"');
        }
        out.extend_from_slice(b"}}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::HashSet;

    #[test]
    fn events_have_the_shape_of_a_firehose() {
        const EVENTS: usize = 50_000;
        let mut firehose = Firehose::new(42, EVENTS);
        let (mut bytes, mut last, mut users, mut bare) = (0, 0, HashSet::new(), 0);
        let mut seen = [0_usize; COLLECTIONS.len()];
        let mut line = Vec::new();
        for _ in 0..EVENTS {
            line.clear();
            firehose.append(&mut line);
            bytes += line.len();
            let event: Value = serde_json::from_slice(&line).unwrap();
            let time = event["time_us"].as_u64().unwrap();
            assert!(time > last && time < BEGIN_MICROS + DAY_MICROS, "{event}");
            last = time;
            users.insert(event["did"].as_str().unwrap().to_owned());
            let Some(commit) = event.get("commit") else {
                bare += 1;
                continue;
            };
            let rank = COLLECTIONS.iter().position(|c| commit["collection"] == *c).unwrap();
            seen[rank] += 1;
            assert_eq!(commit["operation"] == "delete", commit.get("record").is_none(), "{event}");
        }
        let each = bytes / EVENTS;
        assert!((460..500).contains(&each), "{each} bytes each");
        let share = users.len() as f64 / EVENTS as f64;
        assert!((0.115..0.121).contains(&share), "{share} users for each event");
        assert!((100..600).contains(&bare), "{bare} without commit");
        // Shares of 1, 1/2, ... 1/13.
        let halves = seen[0] as f64 / seen[1] as f64;
        assert!((1.9..2.1).contains(&halves) && seen[12] * 10 < seen[0] && seen[12] * 16 > seen[0], "{seen:?}");
    }
}
