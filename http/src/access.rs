//! Access keys: the file that lists them, what each may do where, and the comparing of what a client sent.
//!
//! Takes a file and the text of a header; gives a `Grant`. The file holds SHA-256 digests alone: a key is 32 random
//! bytes, so that neither salt nor a slow hash is needed. Digests are compared in constant time, each with each.
//! A secret never reaches the log.

use std::collections::HashMap;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::rand::SecureRandom;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// Failed attempts of one address in `FAILURE_WINDOW` before they are answered 429.
const FAILURES_MAX: u32 = 20;
const FAILURE_WINDOW: Duration = Duration::from_secs(10);
/// Addresses remembered; beyond it the map starts anew.
const ADDRESSES_MAX: usize = 4096;
const KEY_BYTES: usize = 32;
const KEY_PREFIX: &str = "qdb_";

/// What a key may do, each including the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Queries.
    #[serde(rename = "read")]
    Read,
    /// Writes, collections, indexes.
    #[serde(rename = "readWrite")]
    ReadWrite,
    /// Dropping databases, compaction.
    #[serde(rename = "admin")]
    Admin,
}

impl Role {
    /// From `read`, `readWrite`, `admin`.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "read" => Some(Self::Read),
            "readWrite" => Some(Self::ReadWrite),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    /// As it stands in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadWrite => "readWrite",
            Self::Admin => "admin",
        }
    }
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyLine {
    /// For the log and for `remove`.
    pub(crate) name: String,
    /// SHA-256 of the key, 64 hex digits.
    sha256: String,
    /// Role by database; `*` is every one.
    pub(crate) roles: HashMap<String, Role>,
}

/// What a request may do.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The key's name.
    pub(crate) name: String,
    roles: HashMap<String, Role>,
}

impl Grant {
    /// Whether it may act as `role` on `db`.
    pub(crate) fn allows(&self, db: &str, role: Role) -> bool {
        [self.roles.get(db), self.roles.get("*")].into_iter().flatten().any(|&held| held >= role)
    }

    /// Whether it may act as `role` on every database.
    pub(crate) fn allows_everywhere(&self, role: Role) -> bool {
        self.roles.get("*").is_some_and(|&held| held >= role)
    }
}

/// The keys that are valid now.
#[derive(Debug)]
pub(crate) struct AccessKeys {
    keys: Vec<([u8; 32], Arc<Grant>)>,
}

impl AccessKeys {
    /// Reads the file.
    ///
    /// # Errors
    /// One line for a person, with the number of the line that is wrong.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let mut keys: Vec<([u8; 32], Arc<Grant>)> = Vec::new();
        for line in read_lines(path)? {
            let digest = unhex(&line.sha256)
                .ok_or_else(|| format!("{}: the key {:?} has no sha256 of 64 hex digits", path.display(), line.name))?;
            keys.push((digest, Arc::new(Grant { name: line.name, roles: line.roles })));
        }
        Ok(Self { keys })
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The grant of the key that was sent. Takes the same time whichever key it is, or none.
    pub(crate) fn find(&self, sent: &[u8]) -> Option<&Arc<Grant>> {
        let digest = sha256(sent);
        let mut found = None;
        for (known, grant) in &self.keys {
            if bool::from(known.as_slice().ct_eq(digest.as_slice())) {
                found = Some(grant);
            }
        }
        found
    }
}

/// Counts failed attempts by address.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    by_address: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

impl Failures {
    /// Notes one and gives how many there were in this window.
    fn note(&self, from: IpAddr) -> u32 {
        let mut map = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if map.len() >= ADDRESSES_MAX && !map.contains_key(&from) {
            map.clear();
        }
        let entry = map.entry(from).or_insert((now, 0));
        if now.duration_since(entry.0) > FAILURE_WINDOW {
            *entry = (now, 0);
        }
        entry.1 = entry.1.saturating_add(1);
        entry.1
    }

    /// Notes and logs a failed attempt, without what was sent. True where it is to be answered 429: a valid key is
    /// answered all the same, so that nobody locks others out.
    pub(crate) fn failed(&self, from: IpAddr, why: &str) -> bool {
        let count = self.note(from);
        if count <= FAILURES_MAX {
            tracing::warn!(peer = %from, "refused: {why}");
        } else if count == FAILURES_MAX + 1 {
            tracing::warn!(peer = %from, "refused: more than {FAILURES_MAX} failed attempts; further ones are not logged for a while");
        }
        count > FAILURES_MAX
    }
}

/// Makes a key, adds its digest to the file and gives the key.
///
/// # Errors
/// A name that is taken or a role that is none; what the system says of the file.
pub(crate) fn add(path: &Path, name: &str, roles: &[String]) -> Result<String, String> {
    let mut lines = if path.exists() { read_lines(path)? } else { Vec::new() };
    if name.is_empty() || lines.iter().any(|l| l.name == name) {
        return Err(format!("the name {name:?} is empty or taken"));
    }
    let mut by_db = HashMap::new();
    for text in roles {
        let (role, db) = text.split_once(':').unwrap_or((text, "*"));
        let role = Role::parse(role)
            .ok_or_else(|| format!("{text}: read, readWrite or admin, such as read:shop or admin:*"))?;
        by_db.insert(db.to_owned(), role);
    }
    let mut random = [0; KEY_BYTES];
    ring::rand::SystemRandom::new().fill(&mut random).map_err(|_| "the system gives no random bytes".to_owned())?;
    let key = format!("{KEY_PREFIX}{}", hex(&random));
    lines.push(KeyLine { name: name.to_owned(), sha256: hex(&sha256(key.as_bytes())), roles: by_db });
    write_lines(path, &lines)?;
    Ok(key)
}

/// Removes a key by its name; false where there is none.
///
/// # Errors
/// What the system says of the file.
pub(crate) fn remove(path: &Path, name: &str) -> Result<bool, String> {
    let mut lines = read_lines(path)?;
    let before = lines.len();
    lines.retain(|l| l.name != name);
    if lines.len() < before {
        write_lines(path, &lines)?;
    }
    Ok(lines.len() < before)
}

/// The lines of the file.
///
/// # Errors
/// One line for a person.
pub(crate) fn read_lines(path: &Path) -> Result<Vec<KeyLine>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("access keys {}: {e}", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    lines
        .map(|(i, l)| {
            serde_json::from_str(l).map_err(|e| format!("access keys {}: line {}: {e}", path.display(), i + 1))
        })
        .collect()
}

/// Writes the file anew, readable by its owner alone, whole or not at all.
fn write_lines(path: &Path, lines: &[KeyLine]) -> Result<(), String> {
    let told = |e: std::io::Error| format!("access keys {}: {e}", path.display());
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary).map_err(told)?;
    for line in lines {
        let mut text = serde_json::to_string(line).map_err(|e| e.to_string())?;
        text.push('\n');
        file.write_all(text.as_bytes()).map_err(told)?;
    }
    file.sync_all().map_err(told)?;
    std::fs::rename(&temporary, path).map_err(told)
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    #[test]
    fn a_key_opens_what_its_roles_say_and_the_file_does_not_hold_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.jsonl");
        let reader = add(&path, "reader", &["read:shop".to_owned()]).unwrap();
        let boss = add(&path, "boss", &["admin:*".to_owned()]).unwrap();
        assert!(add(&path, "boss", &["read:*".to_owned()]).is_err());
        assert!(add(&path, "x", &["god:*".to_owned()]).is_err());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&reader[KEY_PREFIX.len()..]) && !text.contains(&boss));
        let keys = AccessKeys::read(&path).unwrap();
        let grant = keys.find(reader.as_bytes()).unwrap();
        assert!(
            grant.allows("shop", Role::Read)
                && !grant.allows("shop", Role::ReadWrite)
                && !grant.allows("other", Role::Read)
        );
        assert!(keys.find(boss.as_bytes()).unwrap().allows_everywhere(Role::Admin));
        for wrong in ["", "x", &reader[1..], &format!("{reader}0"), &reader.to_uppercase()] {
            assert!(keys.find(wrong.as_bytes()).is_none());
        }
        assert!(remove(&path, "reader").unwrap() && !remove(&path, "reader").unwrap());
        assert!(AccessKeys::read(&path).unwrap().find(reader.as_bytes()).is_none());
    }

    #[test]
    fn a_digest_is_sha_256() {
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn many_failures_of_one_address_are_noticed() {
        let failures = Failures::default();
        let ip: IpAddr = [192, 0, 2, 1].into();
        assert!((0..FAILURES_MAX).all(|_| !failures.failed(ip, "wrong key")));
        assert!(failures.failed(ip, "wrong key"));
        assert!(!failures.failed([192, 0, 2, 2].into(), "wrong key"));
    }

    #[test]
    fn a_broken_file_names_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.jsonl");
        std::fs::write(&path, "# comment\n{\"name\":1}\n").unwrap();
        assert!(AccessKeys::read(&path).unwrap_err().contains("line 2"));
    }
}
