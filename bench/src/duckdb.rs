//! DuckDB beside the harness, where the machine has its Python module: what columns give without a server between.
//!
//! A child process holds the database and its own clock: a time is what a query and the fetching of all its rows took
//! there. `QUARRYDB_BENCH_PYTHON` names the interpreter, if not `python3`. It takes SQL and gives rows.

use crate::answer::Rows;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Answers each line of its input, a query, with one line of JSON.
const PROGRAM: &str = r#"
import json, sys, time
import duckdb
con = duckdb.connect(sys.argv[1])
print(json.dumps({"version": duckdb.__version__}), flush=True)
for line in sys.stdin:
    sql = json.loads(line)
    try:
        start = time.perf_counter()
        rows = con.execute(sql).fetchall()
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "rows": rows}), flush=True)
    except Exception as error:
        print(json.dumps({"error": str(error)}), flush=True)
"#;

/// A database of its own, gone with the process.
#[derive(Debug)]
pub struct DuckDb {
    child: Child,
    queries: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// As the module says it.
    pub version: String,
}

impl DuckDb {
    /// Starts it on the file `at` (`:memory:` for none); nothing where this machine has no DuckDB.
    #[must_use]
    pub fn start(at: &Path) -> Option<Self> {
        let python = std::env::var_os("QUARRYDB_BENCH_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(python);
        command.args(["-c", PROGRAM]).arg(at).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let (queries, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let mut duck = Self { child, queries, answers, version: String::new() };
        duck.version = duck.answered().ok()?.get("version")?.as_str()?.to_owned();
        Some(duck)
    }

    fn answered(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "DuckDB's process ended"));
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Runs a query and gives all its rows with the time that they took.
    ///
    /// # Errors
    /// DuckDB's own, and where its process ends.
    pub fn ask(&mut self, sql: &str) -> io::Result<(Rows, Duration)> {
        writeln!(self.queries, "{}", Value::from(sql))?;
        self.queries.flush()?;
        let mut answer = self.answered()?;
        let (Some(seconds), Some(Value::Array(rows))) =
            (answer["seconds"].as_f64(), answer.get_mut("rows").map(Value::take))
        else {
            return Err(io::Error::other(format!("DuckDB: {answer} of {sql}")));
        };
        let row = |row: Value| if let Value::Array(values) = row { values } else { vec![row] };
        Ok((rows.into_iter().map(row).collect(), Duration::from_secs_f64(seconds)))
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
