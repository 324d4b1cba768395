//! A power cut at every operation of the storage while indexes are declared, built, dropped, sealed and compacted under:
//! the documents are a prefix of the commits, the indexes those of the same prefix, and what serves holds every document.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{Chance, Model, Op, contents, insert, open, small, value};
use quarrydb::io::{MemoryStorage, Storage};
use quarrydb::{Collection, Database, IndexDefinition, IndexState, Result, WriteOptions, check_on};

/// `_id` is unique anyway, so an index over it too never refuses what the model takes.
const INDEXES: [(&str, &str); 3] = [
    ("k_1", r#"{"keys": {"k": 1}}"#),
    ("once", r#"{"keys": {"_id": 1, "k": -1}, "unique": true, "name": "once"}"#),
    ("v_-1", r#"{"keys": {"v": -1}, "partialFilterExpression": {"k": {"$gt": 1}}}"#),
];

#[derive(Clone, Debug)]
enum Step {
    Write(Op),
    Create(usize),
    Drop(usize),
    Seal,
    Compact,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    documents: Model,
    indexes: BTreeSet<usize>,
}

impl Step {
    fn random(chance: &mut Chance) -> Self {
        let index = chance.below(INDEXES.len() as u64) as usize;
        match chance.below(12) {
            0 | 1 => Self::Create(index),
            2 => Self::Drop(index),
            3 => Self::Seal,
            4 if chance.below(2) == 0 => Self::Compact,
            _ => Self::Write(Op::random(chance)),
        }
    }

    fn on_model(&self, state: &mut State) {
        match self {
            Self::Write(op) => op.on_model(&mut state.documents),
            Self::Create(index) => drop(state.indexes.insert(*index)),
            Self::Drop(index) => drop(state.indexes.remove(index)),
            Self::Seal | Self::Compact => {}
        }
    }

    fn run(&self, db: &Database, collection: &Collection) -> Result<()> {
        let write = WriteOptions::default();
        match self {
            Self::Write(op) => op.on_collection(db, collection),
            Self::Create(index) => {
                let definition = IndexDefinition::from_object(value(INDEXES[*index].1).view())?;
                collection.create_indexes(&[definition], &write).map(drop)
            }
            Self::Drop(index) => match collection.drop_index(INDEXES[*index].0, &write) {
                Ok(pending) => pending.wait(),
                Err(error) if error.code() == Some(27) => Ok(()),
                Err(error) => Err(error),
            },
            Self::Seal => db.seal(),
            Self::Compact => collection.compact(None).map(drop),
        }
    }
}

fn run(storage: &MemoryStorage, steps: &[Step]) -> usize {
    let Ok(db) = open(storage, small()) else { return 0 };
    let collection = db.collection("test", "crash").unwrap();
    steps.iter().take_while(|step| step.run(&db, &collection).is_ok()).count()
}

fn found(collection: &Collection) -> State {
    let named =
        |index: &quarrydb::IndexInfo| INDEXES.iter().position(|(name, _)| *name == index.definition.name()).unwrap();
    State { documents: contents(collection), indexes: collection.indexes().iter().map(named).collect() }
}

fn crash_everywhere(seed: u64, count: usize, leavings: &[u64], stride: u64) {
    let mut chance = Chance::new(seed);
    let steps: Vec<_> = (0..count).map(|_| Step::random(&mut chance)).collect();
    let mut states = vec![State::default()];
    for step in &steps {
        let mut next = states.last().unwrap().clone();
        step.on_model(&mut next);
        states.push(next);
    }
    let whole = MemoryStorage::new();
    assert_eq!(run(&whole, &steps), steps.len());
    let total = whole.operations();
    for stop in (0..total).step_by(stride as usize) {
        let storage = MemoryStorage::new();
        storage.stop_at(Some(stop));
        let done = run(&storage, &steps);
        for &leaving in leavings {
            let when = format!("seed {seed}, stopped at {stop} of {total}, left as {leaving}, {:?}", steps.get(done));
            let mut left = storage.crash(leaving);
            if leaving % 2 == 1 {
                // A second crash, in the middle of what goes on after the first.
                left.stop_at(Some(left.operations() + stop % 23));
                if let Ok(db) = open(&left, small()) {
                    let _ = db.build_indexes();
                }
                left = left.crash(leaving.wrapping_mul(31));
            }
            let db = open(&left, small()).unwrap_or_else(|e| panic!("{when}: {e}"));
            let collection = db.collection("test", "crash").unwrap();
            let state = found(&collection);
            let allowed = &states[done..=(done + 1).min(steps.len())];
            assert!(allowed.contains(&state), "{when}: found {state:?}, wanted one of {allowed:?}");
            db.build_indexes().unwrap_or_else(|e| panic!("{when}: {e}"));
            assert!(collection.indexes().iter().all(|i| i.state == IndexState::Ready), "{when}");
            assert_eq!(found(&collection), state, "{when}");
            if let (true, Some((id, (k, _)))) = (state.indexes.contains(&1), state.documents.first_key_value()) {
                let error = insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": {k}}}")).unwrap_err();
                assert_eq!(error.code(), Some(11000), "{when}");
            }
            db.seal().unwrap_or_else(|e| panic!("{when}: {e}"));
            assert_eq!(found(&collection), state, "{when}");
            let rows: u64 = state.documents.len() as u64;
            assert!(collection.indexes().iter().all(|i| i.definition.name() == "v_-1" || i.entries >= rows), "{when}");
            db.close().unwrap();
            drop((collection, db));
            // Holds every file's entries against the documents.
            let report = check_on(&(Arc::new(left) as Arc<dyn Storage>)).unwrap();
            assert!(report.is_whole(), "{when}: {report:?}");
        }
    }
}

#[test]
fn a_power_cut_among_declared_indexes_leaves_a_prefix_of_both() {
    if std::env::var("QUARRY_SOAK").is_ok() {
        for seed in 1..=30 {
            crash_everywhere(seed, 60, &[0, 1, 2, 3, u64::MAX], 1);
        }
    } else {
        crash_everywhere(1, 30, &[0, 3, u64::MAX], 2);
        crash_everywhere(2, 50, &[0, 5], 7);
    }
}
