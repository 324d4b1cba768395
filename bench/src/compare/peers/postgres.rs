//! PostgreSQL as an engine: a table of `jsonb`, indexes on expressions, statements prepared ahead, answers in binary.

use super::super::data::{BATCH, Data};
use super::super::engine::{Durability, Engine, Place, Reader, Session, Single, Takes, Timed, lines};
use super::super::question::{Condition, Dialect, Grouping, Literal};
use super::super::rows::Index;
use super::cluster::{Cluster, SETTINGS};
use super::other;
use crate::answer::Rows;
use crate::timed::clocked;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{FromSql, ToSql, Type};
use postgres::{Client, NoTls, Statement};
use serde_json::json;
use std::error::Error;
use std::io;
use std::time::Duration;

const DIALECT: Dialect = Dialect { field, bools: ["false", "true"] };

fn field(path: &str, literal: Literal) -> String {
    let (within, last) = path.rsplit_once('.').unwrap_or(("", path));
    let steps: String = within.split('.').filter(|s| !s.is_empty()).map(|step| format!("->'{step}'")).collect();
    let text = format!("(doc{steps}->>'{last}')");
    match literal {
        Literal::Text(_) => text,
        Literal::Number(_) => format!("({text}::float8)"),
        Literal::Bool(_) => format!("({text}::boolean)"),
    }
}

/// A value as it was sent: of `jsonb` its text, behind a version of one byte.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.get(1..).unwrap_or_default()))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }
}

pub(super) struct Postgres {
    client: Client,
    address: String,
    version: String,
    durability: Durability,
    cluster: Option<Cluster>,
    indexes: usize,
}

impl Postgres {
    /// The one at `QUARRYDB_BENCH_POSTGRES`, or one of its own; nothing where there is neither.
    ///
    /// # Errors
    /// Where it cannot be reached.
    pub(super) fn start(durability: Durability) -> io::Result<Option<Self>> {
        let named = std::env::var("QUARRYDB_BENCH_POSTGRES").ok();
        let synchronous = durability == Durability::Commit;
        let cluster = if named.is_none() { Cluster::start(synchronous)? } else { None };
        let Some(address) = named.or_else(|| cluster.as_ref().map(Cluster::address)) else { return Ok(None) };
        let mut client = connect(&address, durability)?;
        let version: String = client.query_one("SHOW server_version", &[]).map_err(other)?.get(0);
        Ok(Some(Self { client, address, version, durability, cluster, indexes: 0 }))
    }

    fn done(&mut self, sql: &str) -> io::Result<()> {
        self.client.batch_execute(sql).map_err(other)
    }

    fn documents(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
        into: &mut Vec<u8>,
    ) -> io::Result<()> {
        let parameters = parameters.iter().map(|p| *p as &dyn ToSql);
        let mut rows = self.client.query_raw(statement, parameters).map_err(other)?;
        while let Some(row) = rows.next().map_err(other)? {
            let Raw(text) = row.try_get(0).map_err(other)?;
            into.extend_from_slice(text);
            into.push(b'\n');
        }
        Ok(())
    }

    fn changed(&mut self, sql: &str) -> Timed<u64> {
        let statement = self.client.prepare(sql).map_err(other)?;
        clocked(|| self.client.execute(&statement, &[]).map_err(other))
    }
}

fn connect(address: &str, durability: Durability) -> io::Result<Client> {
    let mut client = Client::connect(address, NoTls).map_err(other)?;
    let synchronous = if durability == Durability::Commit { "on" } else { "off" };
    client.batch_execute(&format!("SET synchronous_commit = {synchronous}")).map_err(other)?;
    Ok(client)
}

impl Engine for Postgres {
    fn name(&self) -> &str {
        "PostgreSQL"
    }

    fn describe(&self) -> String {
        let synchronous = if self.durability == Durability::Commit { "on" } else { "off" };
        let settings = if self.cluster.is_some() { SETTINGS } else { "settings of its own" };
        format!("{}, jsonb, indexes on expressions, synchronous_commit {synchronous}; {settings}", self.version)
    }

    fn place(&self) -> Place {
        Place::Server
    }

    fn fresh(&mut self) -> io::Result<()> {
        self.indexes = 0;
        self.done("DROP TABLE IF EXISTS t; CREATE TABLE t (id bigint PRIMARY KEY, doc jsonb NOT NULL)")
    }

    fn insert(&mut self, data: &Data) -> io::Result<Duration> {
        let arrays: Vec<String> = data
            .lines
            .batches(BATCH)
            .iter()
            // What ours takes as {"documents":[...]}, this takes as the array alone.
            .map(|body| String::from_utf8_lossy(body.get(13..body.len() - 1).unwrap_or_default()).into_owned())
            .collect();
        let sql = "INSERT INTO t SELECT (d->>'_id')::bigint, d FROM jsonb_array_elements($1::text::jsonb) d";
        let statement = self.client.prepare(sql).map_err(other)?;
        let (_, elapsed) = clocked(|| {
            for array in &arrays {
                self.client.execute(&statement, &[array]).map_err(other)?;
            }
            Ok(())
        })?;
        Ok(elapsed)
    }

    fn rest(&mut self) -> io::Result<()> {
        self.done("VACUUM ANALYZE t")?;
        self.done("CHECKPOINT")
    }

    fn index(&mut self, index: &Index) -> io::Result<Duration> {
        self.indexes += 1;
        let fields: Vec<String> = index
            .iter()
            .map(|(path, text)| field(path, if *text { Literal::Text("") } else { Literal::Number(0.0) }))
            .collect();
        let sql = format!("CREATE INDEX i{} ON t ({})", self.indexes, fields.join(", "));
        let ((), elapsed) = clocked(|| self.client.batch_execute(&sql).map_err(other))?;
        // So that it knows how the indexed values are spread; not timed.
        self.done("ANALYZE t")?;
        Ok(elapsed)
    }

    fn find(&mut self, condition: &Condition, into: &mut Vec<u8>) -> Timed<Reader> {
        let sql = format!("SELECT doc FROM t WHERE {}", condition.sql(&DIALECT));
        let statement = self.client.prepare(&sql).map_err(other)?;
        let ((), elapsed) = clocked(|| self.documents(&statement, &[], into))?;
        Ok((lines, elapsed))
    }

    fn count(&mut self, condition: &Condition) -> Timed<u64> {
        let sql = format!("SELECT count(*) FROM t WHERE {}", condition.sql(&DIALECT));
        let statement = self.client.prepare(&sql).map_err(other)?;
        clocked(|| {
            let count: i64 = self.client.query_one(&statement, &[]).map_err(other)?.get(0);
            Ok(count.unsigned_abs())
        })
    }

    fn group(&mut self, grouping: &Grouping) -> Timed<Rows> {
        let statement = self.client.prepare(&grouping.sql(&DIALECT, "t")).map_err(other)?;
        let (found, elapsed) = clocked(|| self.client.query(&statement, &[]).map_err(other))?;
        let rows = found.iter().map(|row| {
            let (key, count): (Option<String>, i64) = (row.get(0), row.get(1));
            let mut values = vec![json!(key), json!(count)];
            values.extend(grouping.average.map(|_| json!(row.get::<_, f64>(2))));
            values
        });
        Ok((rows.collect(), elapsed))
    }

    fn get(&mut self, id: usize, into: &mut Vec<u8>) -> Timed<Reader> {
        let statement = self.client.prepare("SELECT doc FROM t WHERE id = $1").map_err(other)?;
        let ((), elapsed) = clocked(|| self.documents(&statement, &[&(id as i64)], into))?;
        Ok((lines, elapsed))
    }

    fn update(&mut self, condition: &Condition) -> Timed<u64> {
        self.changed(&format!("{} WHERE {}", INCREMENT, condition.sql(&DIALECT)))
    }

    fn delete(&mut self, condition: &Condition) -> Timed<u64> {
        self.changed(&format!("DELETE FROM t WHERE {}", condition.sql(&DIALECT)))
    }

    fn session(&self) -> io::Result<Box<dyn Session + Send>> {
        let mut client = connect(&self.address, self.durability)?;
        let mut statement = |sql: &str| client.prepare(sql).map_err(other);
        let statements = [
            statement("INSERT INTO t VALUES ($1, $2::text::jsonb)")?,
            statement("SELECT doc FROM t WHERE id = $1")?,
            statement(&format!("{INCREMENT} WHERE id = $1"))?,
            statement("DELETE FROM t WHERE id = $1")?,
            statement(
                "INSERT INTO t VALUES ($1, jsonb_build_object('_id', $1::bigint, 'visits', 7)) \
                 ON CONFLICT (id) DO UPDATE SET doc = jsonb_set(t.doc, '{visits}', '7')",
            )?,
        ];
        Ok(Box::new(PostgresSession { client, statements, work: Vec::new(), texts: Vec::new() }))
    }

    fn takes(&self) -> Takes {
        Takes { disk: self.cluster.as_ref().and_then(Cluster::disk), memory: None }
    }
}

/// Adds 1 to `visits`.
const INCREMENT: &str =
    "UPDATE t SET doc = jsonb_set(doc, '{visits}', to_jsonb(coalesce((doc->>'visits')::bigint, 0) + 1))";

struct PostgresSession {
    client: Client,
    /// For insert, find, update, delete, upsert.
    statements: [Statement; 5],
    work: Vec<Single>,
    texts: Vec<String>,
}

impl Session for PostgresSession {
    fn ready(&mut self, data: &Data, work: &[Single]) -> io::Result<()> {
        self.work = work.to_vec();
        let text = |n: usize| String::from_utf8_lossy(data.lines.get(n)).into_owned();
        self.texts = work
            .iter()
            .map(|single| match single {
                Single::Insert(n) => text(*n),
                // A field that no other document has: its address.
                Single::Find(n) => text(*n).split('"').find(|part| part.contains('@')).unwrap_or_default().to_owned(),
                _ => String::new(),
            })
            .collect();
        Ok(())
    }

    fn go(&mut self, n: usize) -> io::Result<bool> {
        let [insert, find, update, delete, upsert] = &self.statements;
        let mut execute = |statement: &Statement, id: usize, text: Option<&String>| {
            let id = id as i64;
            let done = match text {
                Some(text) => self.client.execute(statement, &[&id, text]),
                None => self.client.execute(statement, &[&id]),
            };
            Ok(done.map_err(other)? == 1)
        };
        match self.work[n] {
            Single::Insert(id) => execute(insert, id, Some(&self.texts[n])),
            Single::Update(id) => execute(update, id, None),
            Single::Delete(id) => execute(delete, id, None),
            Single::Upsert(id) => execute(upsert, id, None),
            Single::Find(id) => {
                let row = self.client.query_one(find, &[&(id as i64)]).map_err(other)?;
                let Raw(document) = row.try_get(0).map_err(other)?;
                let address = self.texts[n].as_bytes();
                Ok(document.windows(address.len()).any(|w| w == address))
            }
        }
    }
}
