//! SQLite as an engine: linked, a table of `jsonb` blobs, indexes on expressions. In process: no server is ahead of it.

use super::super::data::Data;
use super::super::engine::{Durability, Engine, Place, Reader, Takes, Timed, lines};
use super::super::question::{Condition, Dialect, Grouping, Literal};
use super::super::rows::Index;
use super::other;
use crate::answer::Rows;
use crate::server::{Scratch, disk_bytes};
use crate::timed::clocked;
use rusqlite::{Connection, Params, params};
use serde_json::json;
use std::io;
use std::time::Duration;

const DIALECT: Dialect = Dialect { field, bools: ["0", "1"] };
/// Documents in one transaction.
const BATCH: usize = super::super::data::BATCH;

fn field(path: &str, _: Literal) -> String {
    format!("(doc ->> '$.{path}')")
}

pub(super) struct Sqlite {
    connection: Connection,
    scratch: Scratch,
    durability: Durability,
    indexes: usize,
}

impl Sqlite {
    /// On a file of its own.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub(super) fn start(durability: Durability) -> io::Result<Self> {
        let scratch = Scratch::new("sqlite")?;
        let connection = Connection::open(scratch.path().join("database")).map_err(other)?;
        let synchronous = if durability == Durability::Commit { "FULL" } else { "NORMAL" };
        let settings = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -524288; \
             PRAGMA mmap_size = 4294967296; PRAGMA temp_store = MEMORY"
        );
        connection.execute_batch(&settings).map_err(other)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { connection, scratch, durability, indexes: 0 })
    }

    fn done(&self, sql: &str) -> io::Result<()> {
        self.connection.execute_batch(sql).map_err(other)
    }

    fn documents(&self, sql: &str, parameters: impl Params, into: &mut Vec<u8>) -> Timed<Reader> {
        let mut statement = self.connection.prepare_cached(sql).map_err(other)?;
        let ((), elapsed) = clocked(|| {
            let mut rows = statement.query(parameters).map_err(other)?;
            while let Some(row) = rows.next().map_err(other)? {
                let text = row.get_ref(0).map_err(other)?.as_str().map_err(other)?;
                into.extend_from_slice(text.as_bytes());
                into.push(b'\n');
            }
            Ok(())
        })?;
        Ok((lines, elapsed))
    }

    fn changed(&self, sql: &str) -> Timed<u64> {
        clocked(|| Ok(self.connection.execute(sql, []).map_err(other)? as u64))
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &str {
        "SQLite"
    }

    fn describe(&self) -> String {
        let synchronous = if self.durability == Durability::Commit { "FULL" } else { "NORMAL" };
        format!("{}, jsonb, WAL, synchronous {synchronous}, cache 512 MB, mapped", rusqlite::version())
    }

    fn place(&self) -> Place {
        Place::InProcess
    }

    fn fresh(&mut self) -> io::Result<()> {
        self.indexes = 0;
        self.done("DROP TABLE IF EXISTS t; CREATE TABLE t (id INTEGER PRIMARY KEY, doc BLOB NOT NULL)")
    }

    fn insert(&mut self, data: &Data) -> io::Result<Duration> {
        let texts: Vec<&str> = data.lines.iter().map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
        let mut statement = self.connection.prepare("INSERT INTO t VALUES (?1, jsonb(?2))").map_err(other)?;
        let (_, elapsed) = clocked(|| {
            for (number, batch) in texts.chunks(BATCH).enumerate() {
                self.connection.execute_batch("BEGIN").map_err(other)?;
                for (n, text) in batch.iter().enumerate() {
                    statement.execute(params![(number * BATCH + n) as i64, text]).map_err(other)?;
                }
                self.connection.execute_batch("COMMIT").map_err(other)?;
            }
            Ok(())
        })?;
        Ok(elapsed)
    }

    fn rest(&mut self) -> io::Result<()> {
        self.done("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn index(&mut self, index: &Index) -> io::Result<Duration> {
        self.indexes += 1;
        let fields: Vec<String> = index.iter().map(|(path, _)| field(path, Literal::Text(""))).collect();
        let sql = format!("CREATE INDEX i{} ON t ({})", self.indexes, fields.join(", "));
        let ((), elapsed) = clocked(|| self.done(&sql))?;
        self.done("ANALYZE")?;
        Ok(elapsed)
    }

    fn find(&mut self, condition: &Condition, into: &mut Vec<u8>) -> Timed<Reader> {
        self.documents(&format!("SELECT json(doc) FROM t WHERE {}", condition.sql(&DIALECT)), [], into)
    }

    fn count(&mut self, condition: &Condition) -> Timed<u64> {
        let sql = format!("SELECT count(*) FROM t WHERE {}", condition.sql(&DIALECT));
        let mut statement = self.connection.prepare_cached(&sql).map_err(other)?;
        clocked(|| Ok(statement.query_row([], |row| row.get::<_, i64>(0)).map_err(other)?.unsigned_abs()))
    }

    fn group(&mut self, grouping: &Grouping) -> Timed<Rows> {
        let mut statement = self.connection.prepare_cached(&grouping.sql(&DIALECT, "t")).map_err(other)?;
        clocked(|| {
            let rows = statement.query_map([], |row| {
                let mut values = vec![json!(row.get::<_, Option<String>>(0)?), json!(row.get::<_, i64>(1)?)];
                if grouping.average.is_some() {
                    values.push(json!(row.get::<_, f64>(2)?));
                }
                Ok(values)
            });
            rows.map_err(other)?.collect::<Result<Rows, _>>().map_err(other)
        })
    }

    fn get(&mut self, id: usize, into: &mut Vec<u8>) -> Timed<Reader> {
        self.documents("SELECT json(doc) FROM t WHERE id = ?1", params![id as i64], into)
    }

    fn update(&mut self, condition: &Condition) -> Timed<u64> {
        let set = "UPDATE t SET doc = jsonb_set(doc, '$.visits', coalesce(doc ->> '$.visits', 0) + 1)";
        self.changed(&format!("{set} WHERE {}", condition.sql(&DIALECT)))
    }

    fn delete(&mut self, condition: &Condition) -> Timed<u64> {
        self.changed(&format!("DELETE FROM t WHERE {}", condition.sql(&DIALECT)))
    }

    fn takes(&self) -> Takes {
        Takes { disk: disk_bytes(self.scratch.path()).ok().map(|(_, taken)| taken), memory: None }
    }
}
