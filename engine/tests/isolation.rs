//! Isolation: each anomaly by itself, and random histories of lists that are read and appended to, held to what snapshot
//! isolation allows.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use common::{Chance, filter, insert, open, small, update, value};
use quarrydb::io::MemoryStorage;
use quarrydb::{Collection, Database, FindRequest, Options, Result, Transaction, UpdateRequest, WriteOptions};

const WRITE: WriteOptions = WriteOptions { journal: None, deadline: None };

fn two() -> (Database, Collection) {
    let db = open(&MemoryStorage::new(), small()).unwrap();
    let collection = db.collection("test", "c").unwrap();
    insert(&db, &collection, r#"{"_id": 1, "v": 10}"#).unwrap();
    insert(&db, &collection, r#"{"_id": 2, "v": 20}"#).unwrap();
    (db, collection)
}

fn set(collection: &Collection, id: i64, v: i64) -> Result<()> {
    let change = update(&format!("{{\"$set\": {{\"v\": {v}}}}}"));
    let request = UpdateRequest::one(filter(&format!("{{\"_id\": {id}}}")), change);
    assert_eq!(collection.update(&request, &WRITE)?.wait()?.matched, 1);
    Ok(())
}

fn v(collection: &Collection, id: i64) -> i64 {
    let found = collection.get(value(&id.to_string()).view()).unwrap().unwrap();
    found.view().get("v").unwrap().as_i64().unwrap()
}

fn begin(db: &Database) -> (Transaction, Collection) {
    let transaction = db.begin().unwrap();
    let within = transaction.collection("test", "c").unwrap();
    (transaction, within)
}

fn commit(transaction: &Transaction) -> Result<()> {
    transaction.commit(&WRITE)?.wait()
}

/// Dirty write (G0): of two that write the same two documents one is there whole.
#[test]
fn no_dirty_write() {
    let (db, collection) = two();
    let ((a, in_a), (b, in_b)) = (begin(&db), begin(&db));
    set(&in_a, 1, 11).unwrap();
    assert!(set(&in_b, 1, 12).is_err());
    set(&in_a, 2, 21).unwrap();
    commit(&a).unwrap();
    assert!(commit(&b).is_err());
    assert_eq!((v(&collection, 1), v(&collection, 2)), (11, 21));
}

/// Aborted read (G1a), and dirty read: what is undone was seen by nobody.
#[test]
fn no_aborted_read() {
    let (db, collection) = two();
    let ((a, in_a), (_b, in_b)) = (begin(&db), begin(&db));
    set(&in_a, 1, 101).unwrap();
    assert_eq!((v(&in_b, 1), v(&collection, 1)), (10, 10));
    a.abort();
    assert_eq!((v(&in_b, 1), v(&collection, 1)), (10, 10));
}

/// Intermediate read (G1b): of several writes of one document the last is seen, once it is committed.
#[test]
fn no_intermediate_read() {
    let (db, collection) = two();
    let (a, in_a) = begin(&db);
    set(&in_a, 1, 101).unwrap();
    assert_eq!(v(&collection, 1), 10);
    set(&in_a, 1, 11).unwrap();
    commit(&a).unwrap();
    assert_eq!(v(&collection, 1), 11);
}

/// Circular information flow (G1c).
#[test]
fn no_circular_information_flow() {
    let (db, _) = two();
    let ((a, in_a), (b, in_b)) = (begin(&db), begin(&db));
    set(&in_a, 1, 11).unwrap();
    set(&in_b, 2, 22).unwrap();
    assert_eq!((v(&in_a, 2), v(&in_b, 1)), (20, 10));
    commit(&a).unwrap();
    commit(&b).unwrap();
}

/// Lost update (P4): who read before another wrote cannot write over it.
#[test]
fn no_lost_update() {
    let (db, collection) = two();
    let ((a, in_a), (_b, in_b)) = (begin(&db), begin(&db));
    let (of_a, of_b) = (v(&in_a, 1), v(&in_b, 1));
    set(&in_a, 1, of_a + 1).unwrap();
    commit(&a).unwrap();
    assert!(set(&in_b, 1, of_b + 1).is_err());
    assert_eq!(v(&collection, 1), 11);
}

/// Read skew (G-single) and unrepeatable read: two documents are seen as of one moment.
#[test]
fn no_read_skew() {
    let (db, _) = two();
    let ((_a, in_a), (b, in_b)) = (begin(&db), begin(&db));
    assert_eq!(v(&in_a, 1), 10);
    set(&in_b, 1, 12).unwrap();
    set(&in_b, 2, 18).unwrap();
    commit(&b).unwrap();
    assert_eq!((v(&in_a, 1), v(&in_a, 2)), (10, 20));
}

/// Phantom (PMP): a question gives the same documents throughout a snapshot.
#[test]
fn no_phantom_in_a_snapshot() {
    let (db, collection) = two();
    let (_a, in_a) = begin(&db);
    let thirty = || in_a.count(filter(r#"{"v": 30}"#), 0, None, None).unwrap();
    assert_eq!(thirty(), 0);
    insert(&db, &collection, r#"{"_id": 3, "v": 30}"#).unwrap();
    set(&collection, 1, 30).unwrap();
    db.seal().unwrap();
    assert_eq!(thirty(), 0);
    assert_eq!(
        in_a.find(FindRequest::new(filter(r#"{"v": {"$gte": 20}}"#))).unwrap().next().unwrap().map(|d| d
            .view()
            .get("_id")
            .unwrap()
            .as_i64()),
        Some(Some(2))
    );
}

/// Write skew (G2-item) is what snapshot isolation allows; one request with what it expects does not.
#[test]
fn write_skew_is_possible_in_snapshots_and_not_in_one_request() {
    let (db, collection) = two();
    let ((a, in_a), (b, in_b)) = (begin(&db), begin(&db));
    for within in [&in_a, &in_b] {
        assert_eq!(v(within, 1) + v(within, 2), 30);
    }
    set(&in_a, 1, -10).unwrap();
    set(&in_b, 2, -20).unwrap();
    commit(&a).unwrap();
    commit(&b).unwrap();
    assert_eq!(v(&collection, 1) + v(&collection, 2), -30, "as documented");
    set(&collection, 1, 10).unwrap();
    set(&collection, 2, 20).unwrap();
    // Each takes thirty from one of the two where both together have it; many at once.
    let take = |id: i64| {
        db.transact(&WRITE, |transaction| -> Result<()> {
            let within = transaction.collection("test", "c")?;
            if v(&within, 1) + v(&within, 2) >= 30 {
                set(&within, id, v(&within, id) - 30)?;
            }
            Ok(())
        })
        .and_then(quarrydb::Pending::wait)
        .unwrap();
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let take = &take;
            scope.spawn(move || take(1 + thread % 2));
        }
    });
    assert_eq!(v(&collection, 1) + v(&collection, 2), 0);
}

/// What stands in lists, by their keys.
type Lists = BTreeMap<i64, Vec<i64>>;

/// What one transaction of a history did: lists that it read, before what it appended itself, and what it appended.
#[derive(Clone, Debug)]
struct Done {
    /// What was known to be committed when it began, and by when it had.
    begun: u64,
    ended: u64,
    reads: Lists,
    appends: Lists,
    /// Whether it promises more than a snapshot.
    serial: bool,
}

fn list(collection: &Collection, key: i64, by_scan: bool) -> Result<Vec<i64>> {
    let text = if by_scan { format!("{{\"k\": {key}}}") } else { format!("{{\"_id\": {key}}}") };
    let mut cursor = collection.find(FindRequest::new(filter(&text)))?;
    let Some(found) = cursor.next()? else { return Ok(Vec::new()) };
    let list = found.view().get("l").unwrap();
    Ok(list.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect())
}

fn append(collection: &Collection, key: i64, n: i64) -> Result<()> {
    let change = update(&format!("{{\"$push\": {{\"l\": {n}}}, \"$set\": {{\"k\": {key}}}}}"));
    let mut request = UpdateRequest::one(filter(&format!("{{\"_id\": {key}}}")), change);
    request.upsert = true;
    collection.update(&request, &WRITE)?.wait().map(drop)
}

/// A history of random transactions by some threads.
fn history(db: &Database, seed: u64, threads: u64, each: u64, keys: u64) -> Vec<Done> {
    let (clock, next) = (std::sync::atomic::AtomicU64::new(1), std::sync::atomic::AtomicI64::new(1));
    let history = Mutex::new(Vec::new());
    let tick = || clock.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    let one = |thread: u64| {
        let mut chance = Chance::new(seed * 1009 + thread);
        for _ in 0..each {
            let serial = chance.below(3) == 0;
            let plan: Vec<_> = (0..1 + chance.below(5)).map(|_| (chance.below(keys) as i64, chance.below(3))).collect();
            let mut done = None;
            let begun = tick();
            let mut run = |transaction: &Transaction| -> Result<()> {
                let within = transaction.collection("test", "lists")?;
                let (mut reads, mut appends) = (BTreeMap::new(), Lists::new());
                for &(key, what) in &plan {
                    if what == 0 {
                        let n = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        append(&within, key, n)?;
                        appends.entry(key).or_default().push(n);
                    } else {
                        let mut seen = list(&within, key, what == 1)?;
                        let own = appends.get(&key).cloned().unwrap_or_default();
                        assert!(seen.ends_with(&own), "its own appends are the last: {seen:?}, {own:?}");
                        seen.truncate(seen.len() - own.len());
                        let before = reads.insert(key, seen.clone());
                        assert!(before.is_none_or(|before| before == seen), "two reads of one list differ");
                    }
                }
                done = Some((reads, appends));
                Ok(())
            };
            let committed = if serial {
                db.transact(&WRITE, &mut run).and_then(quarrydb::Pending::wait).is_ok()
            } else {
                let transaction = db.begin().unwrap();
                run(&transaction).and_then(|()| commit(&transaction)).is_ok()
            };
            if committed {
                let (reads, appends) = done.unwrap();
                history.lock().unwrap().push(Done { begun, ended: tick(), reads, appends, serial });
            }
        }
    };
    std::thread::scope(|scope| {
        let one = &one;
        (0..threads).for_each(|thread| drop(scope.spawn(move || one(thread))));
    });
    history.into_inner().unwrap()
}

/// Holds a history to snapshot isolation; gives what is wrong with it.
///
/// The last state of each list gives the order in which it was appended to. A read is a beginning of that; which, says what
/// its snapshot has of the list. A transaction's snapshot must have of each list all that was committed before it began, be
/// the same moment for all lists, and no other that appended to the same list may lie between it and its commit.
fn faults(history: &[Done], last: &Lists) -> Vec<String> {
    let mut faults = Vec::new();
    let mut writer: BTreeMap<i64, usize> = BTreeMap::new();
    for (t, done) in history.iter().enumerate() {
        for (key, appended) in &done.appends {
            writer.extend(appended.iter().map(|&n| (n, t)));
            let all = last.get(key).cloned().unwrap_or_default();
            let at = all.windows(appended.len()).position(|w| w == appended);
            match at {
                None => faults.push(format!("{done:?}: what it appended does not stand together in {all:?}")),
                // Lost update: it must have seen exactly what stands before.
                Some(at) if done.reads.get(key).is_some_and(|read| read[..] != all[..at]) => {
                    faults.push(format!("{done:?}: it appended to {key} behind what it had not read: {all:?}"));
                }
                Some(_) => {}
            }
        }
    }
    for (key, all) in last {
        for n in all {
            if !writer.contains_key(n) {
                faults.push(format!("list {key} has {n}, which nobody committed"));
            }
        }
    }
    // Edges: who must be before whom. `wr`, `ww`: of what is seen or written over; `rw`: who has not seen must be before in
    // its snapshot; real time.
    let count = history.len();
    let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    let mut unseen: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    for (t, done) in history.iter().enumerate() {
        for (key, read) in &done.reads {
            let all = last.get(key).cloned().unwrap_or_default();
            if !all.starts_with(read) {
                faults.push(format!("{done:?}: it read of {key} what never was: {all:?}"));
                continue;
            }
            before[t].extend(read.iter().filter_map(|n| writer.get(n)).filter(|w| **w != t));
            let later = all[read.len()..].iter().filter_map(|n| writer.get(n)).filter(|w| **w != t);
            unseen[t].extend(later);
        }
    }
    for all in last.values() {
        let writers: Vec<_> = all.iter().filter_map(|n| writer.get(n).copied()).collect();
        for pair in writers.windows(2).filter(|pair| pair[0] != pair[1]) {
            before[pair[1]].insert(pair[0]);
        }
    }
    for t in 0..count {
        for other in 0..count {
            if history[other].ended < history[t].begun {
                before[t].insert(other);
            }
        }
    }
    // What a snapshot has must be closed: with a transaction all that is before it.
    let mut closed: Vec<Option<BTreeSet<usize>>> = vec![None; count];
    for t in 0..count {
        let seen = close(t, &before, &mut closed, &mut vec![false; count], &mut faults);
        let missed: Vec<_> = seen.intersection(&unseen[t]).collect();
        if !missed.is_empty() {
            faults.push(format!("{:?}: its snapshot has only a part of {:?}", history[t], history[*missed[0]]));
        }
    }
    faults
}

/// All that is before `t`.
fn close(
    t: usize,
    before: &[BTreeSet<usize>],
    closed: &mut Vec<Option<BTreeSet<usize>>>,
    on_way: &mut Vec<bool>,
    faults: &mut Vec<String>,
) -> BTreeSet<usize> {
    if let Some(known) = &closed[t] {
        return known.clone();
    }
    if std::mem::replace(&mut on_way[t], true) {
        faults.push(format!("transaction {t} is before itself"));
        return BTreeSet::new();
    }
    let mut all = before[t].clone();
    for &other in &before[t] {
        all.extend(close(other, before, closed, on_way, faults));
    }
    on_way[t] = false;
    closed[t] = Some(all.clone());
    all
}

fn hold(seed: u64, threads: u64, each: u64, keys: u64) {
    let options = Options { background: true, tail_rows_max: 30, ..small() };
    let db = open(&MemoryStorage::new(), options).unwrap();
    let history = history(&db, seed, threads, each, keys);
    let lists = db.collection("test", "lists").unwrap();
    let last: BTreeMap<_, _> = (0..keys as i64).map(|key| (key, list(&lists, key, false).unwrap())).collect();
    let found = faults(&history, &last);
    assert!(found.is_empty(), "seed {seed}:\n{}", found.join("\n"));
    assert!(!history.is_empty() && history.iter().any(|done| done.serial), "seed {seed}: a history of nothing");
}

#[test]
fn random_histories_of_lists_are_those_of_snapshot_isolation() {
    let rounds = if std::env::var("QUARRY_SOAK").is_ok() { 400 } else { 6 };
    for seed in 1..=rounds {
        hold(seed, 6, 25, 2 + seed % 5);
    }
}

#[test]
fn the_checker_of_histories_finds_each_anomaly() {
    let done = |begun, ended, reads: &[(i64, &[i64])], appends: &[(i64, &[i64])]| Done {
        begun,
        ended,
        reads: reads.iter().map(|(key, list)| (*key, list.to_vec())).collect(),
        appends: appends.iter().map(|(key, list)| (*key, list.to_vec())).collect(),
        serial: false,
    };
    let last = |lists: &[(i64, &[i64])]| lists.iter().map(|(key, list)| (*key, list.to_vec())).collect();
    let both = |n: i64| -> Done { done(1, 2, &[], &[(1, &[n]), (2, &[n])]) };
    let right = [both(7), done(1, 5, &[(1, &[]), (2, &[])], &[]), done(3, 4, &[(1, &[7]), (2, &[7])], &[])];
    assert!(faults(&right, &last(&[(1, &[7]), (2, &[7])])).is_empty());
    let wrong: [(&[Done], Lists); 6] = [
        // Aborted read: nobody committed 9.
        (&[done(1, 2, &[(1, &[9])], &[])], last(&[(1, &[9])])),
        // Read skew.
        (&[both(7), done(1, 3, &[(1, &[7]), (2, &[])], &[])], last(&[(1, &[7]), (2, &[7])])),
        // Lost update.
        (&[done(1, 3, &[(1, &[])], &[(1, &[5])]), done(1, 4, &[(1, &[])], &[(1, &[6])])], last(&[(1, &[5, 6])])),
        // Intermediate read: half of what one appended.
        (&[done(1, 2, &[], &[(1, &[5, 6])]), done(1, 3, &[(1, &[5])], &[])], last(&[(1, &[5, 6])])),
        // A snapshot older than what was committed before it began.
        (&[done(1, 2, &[], &[(1, &[5])]), done(3, 4, &[(1, &[])], &[])], last(&[(1, &[5])])),
        // What was acknowledged is gone.
        (&[done(1, 2, &[], &[(1, &[5])])], last(&[(1, &[])])),
    ];
    for (history, last) in wrong {
        assert!(!faults(history, &last).is_empty(), "{history:?}");
    }
}
