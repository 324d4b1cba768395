//! DuckDB as an engine: the documents' fields in the columns of a flat table, their text beside them.
//!
//! In its own process and asked without a socket: the floor of columns, and what a client in the same process could have.
//! It loads from a file, which is no insert by batches: that row stays empty.

use super::data::Data;
use super::engine::{Engine, Place, Reader, Timed, lines, unsupported};
use super::question::{Condition, Dialect, Grouping};
use super::rows::Index;
use crate::answer::Rows;
use crate::duckdb::DuckDb;
use crate::server::Scratch;
use serde_json::Value;
use std::io;
use std::time::Duration;

const DIALECT: Dialect =
    Dialect { field: |path, _| format!("\"{}\"", path.replace('.', "_")), bools: ["false", "true"] };

/// The fields that are asked for, with the type of each; those that a data set does not have stay null.
const FIELDS: [(&str, &str); 13] = [
    ("_id", "BIGINT"),
    ("age", "BIGINT"),
    ("salary", "DOUBLE"),
    ("department", "VARCHAR"),
    ("city", "VARCHAR"),
    ("status", "VARCHAR"),
    ("score", "DOUBLE"),
    ("verified", "BOOLEAN"),
    ("address.zip", "VARCHAR"),
    ("group", "VARCHAR"),
    ("active", "BOOLEAN"),
    ("visits", "BIGINT"),
    ("email", "VARCHAR"),
];

/// A database of its own.
#[derive(Debug)]
pub struct Columns {
    duck: DuckDb,
    scratch: Scratch,
    indexes: usize,
}

impl Columns {
    /// Starts it; nothing where the machine has no DuckDB.
    ///
    /// # Errors
    /// Where there is no place for its file.
    pub fn start() -> io::Result<Option<Self>> {
        let scratch = Scratch::new("duckdb")?;
        let duck = DuckDb::start(&scratch.path().join("database"));
        Ok(duck.map(|duck| Self { duck, scratch, indexes: 0 }))
    }

    fn number(&mut self, sql: &str) -> Timed<u64> {
        let (rows, elapsed) = self.duck.ask(sql)?;
        let number = rows.first().and_then(|row| row.first()).and_then(Value::as_u64);
        Ok((number.ok_or_else(|| io::Error::other(format!("no number: {rows:?}")))?, elapsed))
    }

    fn texts(&mut self, sql: &str, into: &mut Vec<u8>) -> Timed<Reader> {
        let (rows, elapsed) = self.duck.ask(sql)?;
        for text in rows.iter().filter_map(|row| row.first()).filter_map(Value::as_str) {
            into.extend_from_slice(text.as_bytes());
            into.push(b'\n');
        }
        Ok((lines, elapsed))
    }
}

impl Engine for Columns {
    fn name(&self) -> &str {
        "DuckDB"
    }

    fn describe(&self) -> String {
        format!("{}, in its process, fields as columns; loaded from a file", self.duck.version)
    }

    fn place(&self) -> Place {
        Place::InProcess
    }

    fn fresh(&mut self) -> io::Result<()> {
        self.indexes = 0;
        self.duck.ask("DROP TABLE IF EXISTS t").map(|_| ())
    }

    fn insert(&mut self, data: &Data) -> io::Result<Duration> {
        let file = self.scratch.path().join("documents");
        std::fs::write(&file, data.lines.text())?;
        let fields = FIELDS.map(|(path, kind)| {
            format!("(doc->>'$.{path}')::{kind} AS {}", (DIALECT.field)(path, super::question::Literal::Text("")))
        });
        let create = format!(
            "CREATE TABLE t AS SELECT {}, doc::VARCHAR AS doc FROM (SELECT json AS doc FROM read_json_objects('{}', \
             format = 'newline_delimited'))",
            fields.join(", "),
            file.display()
        );
        self.duck.ask(&create)?;
        std::fs::remove_file(&file)?;
        Err(unsupported("loads from a file"))
    }

    fn rest(&mut self) -> io::Result<()> {
        self.duck.ask("CHECKPOINT").map(|_| ())
    }

    fn index(&mut self, index: &Index) -> io::Result<Duration> {
        self.indexes += 1;
        let fields: Vec<String> =
            index.iter().map(|(path, _)| (DIALECT.field)(path, super::question::Literal::Text(""))).collect();
        let sql = format!("CREATE INDEX i{} ON t ({})", self.indexes, fields.join(", "));
        Ok(self.duck.ask(&sql)?.1)
    }

    fn find(&mut self, condition: &Condition, into: &mut Vec<u8>) -> Timed<Reader> {
        self.texts(&format!("SELECT doc FROM t WHERE {}", condition.sql(&DIALECT)), into)
    }

    fn count(&mut self, condition: &Condition) -> Timed<u64> {
        self.number(&format!("SELECT count(*) FROM t WHERE {}", condition.sql(&DIALECT)))
    }

    fn group(&mut self, grouping: &Grouping) -> Timed<Rows> {
        self.duck.ask(&grouping.sql(&DIALECT, "t"))
    }

    fn get(&mut self, _id: usize, _into: &mut Vec<u8>) -> Timed<Reader> {
        Err(unsupported("not asked"))
    }

    fn update(&mut self, condition: &Condition) -> Timed<u64> {
        self.number(&format!("UPDATE t SET visits = visits + 1 WHERE {}", condition.sql(&DIALECT)))
    }

    fn delete(&mut self, condition: &Condition) -> Timed<u64> {
        self.number(&format!("DELETE FROM t WHERE {}", condition.sql(&DIALECT)))
    }
}
