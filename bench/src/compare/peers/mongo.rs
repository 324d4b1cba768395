//! A server of MongoDB's protocol as an engine, whoever made it, through the official driver; answers as raw BSON.

use super::super::data::{BATCH, Data};
use super::super::engine::{Durability, Engine, Place, Reader, Session, Single, Timed};
use super::super::question::{Condition, Grouping};
use super::super::rows::Index;
use super::other;
use crate::answer::Rows;
use crate::timed::clocked;
use mongodb::IndexModel;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use mongodb::options::WriteConcern;
use mongodb::sync::{Client, Collection};
use serde_json::Value;
use std::io;
use std::time::Duration;

/// Documents of one answer of a cursor: as many as 16 MiB hold.
const CURSOR_BATCH: u32 = 100_000;
const DATABASE: &str = "bench";
const COLLECTION: &str = "compared";

pub(super) struct Mongo {
    collection: Collection<RawDocumentBuf>,
    address: String,
    name: String,
    version: String,
    durability: Durability,
}

fn document(json: &str) -> io::Result<Document> {
    Ok(serde_json::from_str(json)?)
}

/// Reads documents that stand one behind the other, each beginning with its length.
fn documents(bytes: &[u8], each: &mut dyn FnMut(Value)) -> Result<(), String> {
    let mut rest = bytes;
    while let Some(head) = rest.first_chunk::<4>() {
        let length = u32::from_le_bytes(*head) as usize;
        let raw = rest.get(..length).ok_or("a document that is cut off")?;
        let raw = RawDocument::from_bytes(raw).map_err(|e| e.to_string())?;
        let document = Document::try_from(raw).map_err(|e| e.to_string())?;
        // By way of text, so that a number is read as those of the others are.
        let text = Bson::Document(document).into_relaxed_extjson().to_string();
        each(serde_json::from_str(&text).map_err(|e| e.to_string())?);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}

impl Mongo {
    /// The one at an address `mongodb://...`.
    ///
    /// # Errors
    /// Where it cannot be reached.
    pub(super) fn connect(address: &str, durability: Durability) -> io::Result<Self> {
        let collection = collection(address, durability)?;
        let client = Client::with_uri_str(address).map_err(other)?;
        let info = client.database("admin").run_command(doc! {"buildInfo": 1}).run().map_err(other)?;
        let version = info.get_str("version").unwrap_or("of unknown version").to_owned();
        // Some that speak the protocol say who they are in a field of their own.
        let own = info.keys().find(|k| ["secantus", "ferretdb"].iter().any(|n| k.to_lowercase().starts_with(n)));
        let name = std::env::var("QUARRYDB_BENCH_MONGODB_NAME").ok();
        let name = name.or_else(|| own.cloned()).unwrap_or_else(|| "MongoDB's protocol".into());
        Ok(Self { collection, address: address.into(), name, version, durability })
    }

    fn collected(cursor: mongodb::sync::Cursor<RawDocumentBuf>, into: &mut Vec<u8>) -> io::Result<()> {
        let mut cursor = cursor;
        while cursor.advance().map_err(other)? {
            into.extend_from_slice(cursor.current().as_bytes());
        }
        Ok(())
    }

    fn filter(condition: &Condition) -> io::Result<Document> {
        document(&condition.filter().to_string())
    }
}

fn collection(address: &str, durability: Durability) -> io::Result<Collection<RawDocumentBuf>> {
    let client = Client::with_uri_str(address).map_err(other)?;
    let mut concern = WriteConcern::builder().build();
    concern.journal = Some(durability == Durability::Commit);
    let options = mongodb::options::CollectionOptions::builder().write_concern(concern).build();
    Ok(client.database(DATABASE).collection_with_options(COLLECTION, options))
}

impl Engine for Mongo {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        format!("{}, official driver, raw BSON, journal {}", self.version, self.durability == Durability::Commit)
    }

    fn place(&self) -> Place {
        Place::Server
    }

    fn fresh(&mut self) -> io::Result<()> {
        self.collection.drop().run().map_err(other)
    }

    fn insert(&mut self, data: &Data) -> io::Result<Duration> {
        let encoded = |line: &[u8]| -> io::Result<RawDocumentBuf> {
            RawDocumentBuf::try_from(serde_json::from_slice::<Document>(line)?).map_err(other)
        };
        let documents = data.lines.iter().map(encoded).collect::<io::Result<Vec<RawDocumentBuf>>>()?;
        let (_, elapsed) = clocked(|| {
            for batch in documents.chunks(BATCH) {
                self.collection.insert_many(batch).run().map_err(other)?;
            }
            Ok(())
        })?;
        Ok(elapsed)
    }

    fn rest(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn index(&mut self, index: &Index) -> io::Result<Duration> {
        let keys: Document = index.iter().map(|(path, _)| ((*path).to_owned(), Bson::Int32(1))).collect();
        let model = IndexModel::builder().keys(keys).build();
        Ok(clocked(|| self.collection.create_index(model).run().map_err(other))?.1)
    }

    fn find(&mut self, condition: &Condition, into: &mut Vec<u8>) -> Timed<Reader> {
        let filter = Self::filter(condition)?;
        let ((), elapsed) = clocked(|| {
            Self::collected(self.collection.find(filter).batch_size(CURSOR_BATCH).run().map_err(other)?, into)
        })?;
        Ok((documents, elapsed))
    }

    fn count(&mut self, condition: &Condition) -> Timed<u64> {
        let filter = Self::filter(condition)?;
        clocked(|| self.collection.count_documents(filter).run().map_err(other))
    }

    fn group(&mut self, grouping: &Grouping) -> Timed<Rows> {
        let pipeline: Vec<Document> = serde_json::from_str(&grouping.pipeline())?;
        let (found, elapsed) = clocked(|| {
            let cursor = self.collection.aggregate(pipeline).run().map_err(other)?;
            cursor.collect::<Result<Vec<Document>, _>>().map_err(other)
        })?;
        let field = |document: &Document, name: &&str| {
            document.get(name).map_or(Value::Null, |value| value.clone().into_relaxed_extjson())
        };
        let row = |document: &Document| grouping.fields().iter().map(|name| field(document, name)).collect();
        Ok((found.iter().map(row).collect(), elapsed))
    }

    fn get(&mut self, id: usize, into: &mut Vec<u8>) -> Timed<Reader> {
        let filter = doc! {"_id": id as i32};
        let (found, elapsed) = clocked(|| self.collection.find_one(filter).run().map_err(other))?;
        into.extend_from_slice(found.as_ref().map_or(&[], |document| document.as_bytes()));
        Ok((documents, elapsed))
    }

    fn update(&mut self, condition: &Condition) -> Timed<u64> {
        let filter = Self::filter(condition)?;
        let update = doc! {"$inc": {"visits": 1}};
        let (done, elapsed) = clocked(|| self.collection.update_many(filter, update).run().map_err(other))?;
        Ok((done.modified_count, elapsed))
    }

    fn delete(&mut self, condition: &Condition) -> Timed<u64> {
        let filter = Self::filter(condition)?;
        let (done, elapsed) = clocked(|| self.collection.delete_many(filter).run().map_err(other))?;
        Ok((done.deleted_count, elapsed))
    }

    fn session(&self) -> io::Result<Box<dyn Session + Send>> {
        let collection = collection(&self.address, self.durability)?;
        Ok(Box::new(MongoSession { collection, work: Vec::new(), documents: Vec::new() }))
    }
}

struct MongoSession {
    collection: Collection<RawDocumentBuf>,
    work: Vec<Single>,
    documents: Vec<Option<RawDocumentBuf>>,
}

impl Session for MongoSession {
    fn ready(&mut self, data: &Data, work: &[Single]) -> io::Result<()> {
        self.work = work.to_vec();
        self.documents = work
            .iter()
            .map(|single| match single {
                Single::Insert(n) | Single::Find(n) => {
                    let document: Document = serde_json::from_slice(data.lines.get(*n))?;
                    RawDocumentBuf::try_from(document).map(Some).map_err(other)
                }
                _ => Ok(None),
            })
            .collect::<io::Result<_>>()?;
        Ok(())
    }

    fn go(&mut self, n: usize) -> io::Result<bool> {
        let filter = |id: usize| doc! {"_id": id as i32};
        match self.work[n] {
            Single::Insert(_) => match &self.documents[n] {
                Some(document) => self.collection.insert_one(document).run().map(|_| true).map_err(other),
                None => Ok(false),
            },
            // To the byte: nothing has changed it.
            Single::Find(id) => Ok(self.collection.find_one(filter(id)).run().map_err(other)? == self.documents[n]),
            Single::Update(id) => {
                let update = doc! {"$inc": {"visits": 1}};
                Ok(self.collection.update_one(filter(id), update).run().map_err(other)?.modified_count == 1)
            }
            Single::Delete(id) => Ok(self.collection.delete_one(filter(id)).run().map_err(other)?.deleted_count == 1),
            Single::Upsert(id) => {
                let update = doc! {"$set": {"visits": 7}};
                self.collection.update_one(filter(id), update).upsert(true).run().map(|_| true).map_err(other)
            }
        }
    }
}
