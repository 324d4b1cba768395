//! `quarrydb export`: a collection as NDJSON with a trailer that proves it whole, from a directory or a running server.
//!
//! A file appears whole under its name or not at all; on standard output the trailer tells. Exits 0 only where the
//! trailer was seen and fits.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use quarrydb::{Database, FindRequest};
use quarrydb_jsonb::Style;
use quarrydb_query::{Filter, ParseContext};

use super::client::Client;
use super::exit;
use crate::cli::ExportArgs;

/// Runs the command.
pub(crate) fn run(args: ExportArgs) -> ExitCode {
    exit(export(&args))
}

fn export(args: &ExportArgs) -> Result<(), String> {
    let Some(path) = &args.output else {
        let mut out = BufWriter::with_capacity(256 << 10, io::stdout().lock());
        return write(args, &mut out).and_then(|()| out.flush().map_err(|e| e.to_string()));
    };
    let partial = partial(path);
    let done = File::create(&partial).map_err(|e| e.to_string()).and_then(|file| {
        let mut out = BufWriter::with_capacity(256 << 10, file);
        write(args, &mut out)?;
        out.flush().and_then(|()| out.get_ref().sync_all()).map_err(|e| e.to_string())?;
        std::fs::rename(&partial, path).map_err(|e| e.to_string())
    });
    if done.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    done.map_err(|e| format!("{}: {e}", path.display()))
}

fn write(args: &ExportArgs, out: &mut dyn Write) -> Result<(), String> {
    match &args.place.url {
        Some(url) => {
            let client = Client::new(url, args.place.key.as_deref(), args.place.ca.as_deref(), None)?;
            from_server(args, &client, out)
        }
        None => from_directory(args, out),
    }
}

fn from_server(args: &ExportArgs, client: &Client, out: &mut dyn Write) -> Result<(), String> {
    let accept = if args.relaxed { "application/x-ndjson" } else { "application/x-ndjson, application/ejson" };
    let body = format!("{{\"filter\":{}}}", args.filter);
    let headers = [("Content-Type", "application/json"), ("Accept", accept)];
    let path = format!("/v1/db/{}/{}/find?trailer=true", args.db, args.coll);
    let mut answer = client.post(&path, &headers, &mut body.as_bytes())?;
    copy_checked(BufReader::with_capacity(256 << 10, answer.as_reader()), out)
}

/// Copies lines and holds the trailer against their number.
fn copy_checked(mut lines: impl BufRead, out: &mut dyn Write) -> Result<(), String> {
    let (mut count, mut held, mut next) = (0_u64, Vec::new(), Vec::new());
    loop {
        next.clear();
        let n = lines
            .read_until(b'\n', &mut next)
            .map_err(|e| format!("the export broke off after {count} documents: {e}"))?;
        if n == 0 {
            break;
        }
        if !held.is_empty() {
            count += 1;
            out.write_all(&held).map_err(|e| e.to_string())?;
        }
        std::mem::swap(&mut held, &mut next);
    }
    let last: serde_json::Value = serde_json::from_slice(&held).unwrap_or_default();
    if last["end"]["count"].as_u64() != Some(count) {
        let why = last["error"].as_str().unwrap_or("the answer ends without its trailer");
        return Err(format!("the export is not whole: {count} documents, then: {why}"));
    }
    out.write_all(&held).map_err(|e| e.to_string())
}

fn from_directory(args: &ExportArgs, out: &mut dyn Write) -> Result<(), String> {
    let filter = quarrydb_jsonb::parse(args.filter.as_bytes()).map_err(|e| format!("--filter: {e}"))?;
    let filter = Filter::parse(filter.view(), &ParseContext::new("filter")).map_err(|e| format!("--{e}"))?;
    if !args.place.data.is_dir() {
        return Err(format!("{} is no directory", args.place.data.display()));
    }
    let database = Database::open(&args.place.data).map_err(|e| e.to_string())?;
    let collection = database.collection(&args.db, &args.coll).map_err(|e| e.to_string())?;
    let style = if args.relaxed { Style::Relaxed } else { Style::Canonical };
    let cursor = collection.find(FindRequest::new(filter)).map_err(|e| e.to_string())?;
    let (mut count, mut failed) = (0, None);
    let printed = cursor.stream(
        &|document, chunk| {
            quarrydb_jsonb::print(document, style, chunk);
            chunk.push(b'\n');
        },
        &mut |chunk, documents| {
            count += documents;
            match out.write_all(&chunk) {
                Ok(()) => ControlFlow::Continue(()),
                Err(e) => {
                    failed = Some(e.to_string());
                    ControlFlow::Break(())
                }
            }
        },
    );
    if let Some(message) = failed {
        return Err(message);
    }
    printed.map_err(|e| format!("the export broke off after {count} documents: {e}"))?;
    writeln!(out, "{{\"end\": {{\"count\": {count}}}}}").map_err(|e| e.to_string())
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}
