//! Power cuts and transactions: whole or absent, across collections and databases, at every step; money that is moved by
//! many is never more nor less, in any snapshot, before or after.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{Chance, Model, Op, check, contents, filter, interval, open, small, update};
use quarrydb::io::MemoryStorage;
use quarrydb::{
    Collection, Database, DeleteRequest, Error, FindRequest, Options, Result, Transaction, UpdateRequest, WriteOptions,
};

const WRITE: WriteOptions = WriteOptions { journal: None, deadline: None };
/// Collections in two databases, and one that comes and goes.
const PLACES: [(&str, &str); 3] = [("one", "a"), ("two", "a"), ("two", "b")];

type State = [Model; 3];

/// What is done in one commit: operations by their collection, and in which way.
#[derive(Clone, Debug)]
struct Step {
    ops: Vec<(usize, Op)>,
    interactive: bool,
    aborted: bool,
    drops: bool,
}

impl Step {
    fn random(chance: &mut Chance, state: &State) -> Self {
        let mut next = state.clone();
        let mut ops = Vec::new();
        for _ in 0..1 + chance.below(4) {
            let which = chance.below(3) as usize;
            let op = loop {
                match Op::random(chance) {
                    Op::Insert(mut documents) => {
                        documents.sort_unstable();
                        documents.dedup_by_key(|d| d.0);
                        documents.retain(|d| !next[which].contains_key(&d.0));
                        if !documents.is_empty() {
                            break Op::Insert(documents);
                        }
                    }
                    other => break other,
                }
            };
            op.on_model(&mut next[which]);
            ops.push((which, op));
        }
        let drops = chance.below(9) == 0;
        Self { ops, interactive: chance.below(2) == 0, aborted: chance.below(5) == 0, drops }
    }

    fn on_model(&self, state: &mut State) {
        if self.drops {
            state[2].clear();
        } else if !self.aborted {
            self.ops.iter().for_each(|(which, op)| op.on_model(&mut state[*which]));
        }
    }

    fn on_database(&self, db: &Database) -> Result<()> {
        if self.drops {
            return place(db, 2).drop(&WRITE)?.wait().map(drop);
        }
        let run = |transaction: &Transaction| -> Result<()> {
            for (which, op) in &self.ops {
                op.on_collection(db, &place(db, *which).within(transaction))?;
            }
            Ok(())
        };
        if self.interactive {
            let transaction = db.begin()?;
            run(&transaction)?;
            if self.aborted {
                assert!(transaction.abort());
                return Ok(());
            }
            return transaction.commit(&WRITE)?.wait();
        }
        let mut stopped = false;
        let done = db.transact(&WRITE, |transaction| {
            run(transaction)?;
            stopped = self.aborted;
            if stopped { Err(Error::new(quarrydb::ErrorKind::InvalidInput, "stopped")) } else { Ok(()) }
        });
        match done {
            Err(_) if stopped => Ok(()),
            other => other?.wait(),
        }
    }
}

fn place(db: &Database, which: usize) -> Collection {
    db.collection(PLACES[which].0, PLACES[which].1).unwrap()
}

fn found(db: &Database) -> State {
    std::array::from_fn(|which| contents(&place(db, which)))
}

fn run(storage: &MemoryStorage, options: &Options, steps: &[Step]) -> usize {
    let Ok(db) = open(storage, options.clone()) else { return 0 };
    for (i, step) in steps.iter().enumerate() {
        if step.on_database(&db).is_err() {
            return i;
        }
        if i % 5 == 4 {
            let _ = db.seal();
        }
        if i % 7 == 6 {
            let _ = place(&db, i % 3).compact(None);
        }
    }
    steps.len()
}

fn crash_everywhere(seed: u64, count: usize, leavings: &[u64], stride: usize) {
    let mut chance = Chance::new(seed);
    let (mut states, mut steps) = (vec![State::default()], Vec::new());
    for _ in 0..count {
        let mut next = states.last().unwrap().clone();
        let step = Step::random(&mut chance, &next);
        step.on_model(&mut next);
        states.push(next);
        steps.push(step);
    }
    let options = small();
    let whole = MemoryStorage::new();
    assert_eq!(run(&whole, &options, &steps), steps.len());
    let total = whole.operations();
    for stop in (0..total).step_by(stride) {
        let storage = MemoryStorage::new();
        storage.stop_at(Some(stop));
        let acknowledged = run(&storage, &options, &steps);
        for &leaving in leavings {
            let when = format!("seed {seed}, stopped at {stop} of {total}, left as {leaving}");
            let left = storage.crash(leaving);
            let db = open(&left, options.clone()).unwrap_or_else(|e| panic!("{when}: {e}"));
            let now = found(&db);
            // The one in flight is there as a whole or not at all.
            let possible = &states[acknowledged..=(acknowledged + 1).min(steps.len())];
            assert!(possible.contains(&now), "{when}: {acknowledged} were acknowledged, found {now:?}");
            for (which, model) in now.iter().enumerate() {
                check(&place(&db, which), model, &when);
            }
            db.seal().unwrap_or_else(|e| panic!("{when}: seal: {e}"));
            drop(db);
            let db = open(&left, options.clone()).unwrap_or_else(|e| panic!("{when}: reopened: {e}"));
            assert_eq!(found(&db), now, "{when}: reopened");
        }
    }
}

#[test]
fn a_power_cut_at_any_step_leaves_each_transaction_whole_or_absent() {
    if std::env::var("QUARRY_SOAK").is_ok() {
        for seed in 1..=40 {
            crash_everywhere(seed, 60, &[0, 1, 2, 3, u64::MAX], 1);
        }
    } else {
        crash_everywhere(1, 40, &[0, 5], 2);
        crash_everywhere(2, 40, &[u64::MAX], 3);
    }
}

const ACCOUNTS: u64 = 24;
const MONEY: i64 = 100;

/// Every account of both collections, as one snapshot has them.
fn balances(transaction: &Transaction) -> Result<BTreeMap<i64, i64>> {
    let mut all = BTreeMap::new();
    for (db, name) in &PLACES[..2] {
        let mut cursor = transaction.collection(db, name)?.find(FindRequest::new(filter("{}")))?;
        while let Some(document) = cursor.next()? {
            let number = |name: &str| document.view().get(name).unwrap().as_i64().unwrap();
            all.insert(number("_id"), number("v"));
        }
    }
    Ok(all)
}

/// The total by a snapshot, in one of the two ways.
fn total(db: &Database, ordered: bool) -> Result<i64> {
    let sum = |transaction: &Transaction| balances(transaction).map(|all| all.values().sum());
    if ordered { db.transact(&WRITE, sum)?.wait() } else { sum(&db.begin()?) }
}

/// Moves money from one account to another, which lie in two databases; what an account has not it does not give. An
/// account that is empty is closed now and then, and opened again by what it gets.
fn transfer(db: &Database, chance: &mut Chance) -> Result<()> {
    let (from, to) = (chance.below(ACCOUNTS) as i64, chance.below(ACCOUNTS) as i64);
    let amount = 1 + chance.below(30) as i64;
    if from == to {
        return Ok(());
    }
    let account = |transaction: &Transaction, id: i64| {
        let (db, name) = PLACES[(id % 2) as usize];
        transaction.collection(db, name)
    };
    let of = |id: i64| filter(&format!("{{\"_id\": {id}}}"));
    let run = |transaction: &Transaction| -> Result<()> {
        let has = filter(&format!("{{\"_id\": {from}, \"v\": {{\"$gte\": {amount}}}}}"));
        let take = update(&format!("{{\"$inc\": {{\"v\": -{amount}}}}}"));
        let giver = account(transaction, from)?;
        if giver.update(&UpdateRequest::one(has, take), &WRITE)?.wait()?.modified == 0 {
            return Ok(());
        }
        let mut give = UpdateRequest::one(of(to), update(&format!("{{\"$inc\": {{\"v\": {amount}}}}}")));
        give.upsert = true;
        account(transaction, to)?.update(&give, &WRITE)?.wait()?;
        let empty = filter(&format!("{{\"_id\": {from}, \"v\": 0}}"));
        giver.delete(&DeleteRequest::one(empty), &WRITE)?.wait().map(drop)
    };
    if chance.below(3) == 0 { db.transaction(run) } else { db.transact(&WRITE, run)?.wait() }
}

fn bank(round: u64, threads: u64, most: usize, options: &Options) -> usize {
    let storage = MemoryStorage::new();
    let db = open(&storage, options.clone()).unwrap();
    for id in 0..ACCOUNTS {
        let (db_name, name) = PLACES[(id % 2) as usize];
        let text = format!("{{\"_id\": {id}, \"k\": 0, \"v\": {MONEY}}}");
        common::insert(&db, &db.collection(db_name, name).unwrap(), &text).unwrap();
    }
    // What `interval` has not synced yet a power cut may take: one synced commit keeps all that came before.
    let mut synced = quarrydb::InsertBatch::new(&db);
    synced.push_text(b"{\"_id\": 0}").unwrap();
    let journal = WriteOptions { journal: Some(true), ..WRITE };
    db.collection("bank", "open").unwrap().insert_batch(synced, true, &journal).unwrap().wait().unwrap();
    let all = ACCOUNTS as i64 * MONEY;
    storage.stop_at(Some(storage.operations() + 60 + 53 * round % 2000));
    let (done, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (db, done, over) = (&db, &done, &over);
        let writers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let mut chance = Chance::new(round * 101 + thread);
                    for _ in 0..most {
                        if transfer(db, &mut chance).is_err() {
                            return;
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            for i in 0.. {
                if over.load(Ordering::Acquire) {
                    return;
                }
                if let Ok(found) = total(db, i % 4 == 0) {
                    assert_eq!(found, all, "round {round}: a snapshot");
                }
                let _ = place(db, i % 2).compact(None);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Ordering::Release);
    });
    let left = storage.crash(round);
    drop(db);
    let db = open(&left, options.clone()).unwrap_or_else(|e| panic!("round {round}: {e}"));
    assert_eq!(total(&db, false).unwrap(), all, "round {round}: after the crash");
    let empty: u64 = PLACES[..2]
        .iter()
        .map(|(db_name, name)| {
            db.collection(db_name, name).unwrap().count(filter(r#"{"v": {"$lte": 0}}"#), 0, None, None).unwrap()
        })
        .sum();
    assert_eq!(empty, 0, "round {round}: an account that gave what it had not");
    done.into_inner()
}

#[test]
fn money_that_is_moved_by_many_under_power_cuts_is_never_more_nor_less() {
    let soak = std::env::var("QUARRY_SOAK").is_ok();
    let (rounds, threads, most) = if soak { (1000, 16, 400) } else { (12, 16, 60) };
    let mut done = 0;
    for round in 0..rounds {
        let durability = if round % 3 == 0 { interval() } else { quarrydb::Durability::Commit };
        let options = Options { background: true, tail_rows_max: 20, durability, ..small() };
        done += bank(round, threads, most, &options);
    }
    assert!(done > 0, "nothing was ever moved");
}
