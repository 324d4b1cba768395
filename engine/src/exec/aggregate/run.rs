//! Sends documents through the stages of a plan.
//!
//! A scan's morsels go through the stages that take each document by itself on all cores; their results come back in row
//! order, or as tables of groups that are merged in row order, so that the answer is what one thread would give. A piece
//! that grows too large on the way is given up and made again by the thread that waits for it, which hands on each document
//! at once: memory is bounded whatever a stage makes of a document.

use std::ops::ControlFlow;
use std::sync::Arc;

use quarrydb_jsonb::JsonbRef;
use quarrydb_query::pipeline::{Fault, Flow, Group, GroupTable, Grouping, Host, Run, Stage};

use super::host::EngineHost;
use super::input::{Input, note_examined};
use super::plan::Plan;
use crate::budget::Reservation;
use crate::exec::cursor::{Print, Sink};
use crate::exec::in_order::{ahead, in_order};
use crate::exec::scan::{Morsel, Scan};
use crate::segment::BlockBuf;

/// Bytes of what a core makes of a morsel before it gives that up.
const PIECE_BYTES_MAX: usize = 2 << 20;
/// Fewer morsels are run through in place.
const PARALLEL_MORSELS: usize = 4;
/// Morsels that become one table of groups at most.
const GROUP_MORSELS_MAX: usize = 64;
/// Output is handed on at about this size.
const CHUNK_BYTES: usize = 256 * 1024;

type Take<'t> = &'t mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>;

/// Calls `sink` with what comes out of the last stage until it breaks.
///
/// # Errors
/// Those of the stages, of the host and of `sink`.
pub(super) fn run(plan: &Plan, input: &mut Input, host: &EngineHost, sink: Take<'_>) -> Result<(), Fault> {
    match input {
        Input::Nothing => Run::new(&plan.rest).finish(host, sink),
        Input::Cursor(cursor) => {
            let mut run = Run::new(&plan.stages());
            while let Some(document) = cursor.next()? {
                host.check()?;
                if run.push(document.view(), host, sink)?.is_break() {
                    break;
                }
            }
            run.finish(host, sink)
        }
        Input::Scan(scan) => {
            let result = of_scan(plan, scan, host, sink);
            note_examined(host, scan);
            result
        }
    }
}

fn of_scan(plan: &Plan, scan: &Scan, host: &EngineHost, sink: Take<'_>) -> Result<(), Fault> {
    if let Some(columns) = &plan.columns {
        let mut run = Run::new(plan.rest.get(1..).unwrap_or_default());
        if columns.run(scan, host, &mut |document| run.push(document, host, sink))? {
            host.note_columns();
            return run.finish(host, sink);
        }
    }
    let morsels = scan.morsels()?;
    let room = if morsels.len() < PARALLEL_MORSELS { None } else { room(host) };
    if room.is_none() {
        let mut run = Run::new(&plan.stages());
        let _ = through(scan, &morsels, host, &mut |document| run.push(document, host, sink))?;
        return run.finish(host, sink);
    }
    match &plan.rest[..] {
        [Stage::Group(group), rest @ ..] => grouped(plan, group, rest, (scan, &morsels), host, sink),
        rest => piled(plan, rest, (scan, &morsels), host, sink),
    }
}

/// Memory for the pieces in flight; none where there is no room for them.
fn room(host: &EngineHost) -> Option<Reservation> {
    host.core().queries.reserve(ahead() * PIECE_BYTES_MAX)
}

/// Calls `each` with the documents of morsels, in order, until it breaks.
fn through(scan: &Scan, morsels: &[Morsel], host: &EngineHost, each: Take<'_>) -> Result<Flow, Fault> {
    let mut buffer = BlockBuf::default();
    let mut fault = None;
    for morsel in morsels {
        host.check()?;
        let flow = scan.run(morsel, &mut buffer, &mut |document, _| {
            Ok(each(document).unwrap_or_else(|failed| {
                fault = Some(failed);
                ControlFlow::Break(())
            }))
        })?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The same, of what the stages that take each document by itself make of them.
fn through_each(
    plan: &Plan,
    scan: &Scan,
    morsels: &[Morsel],
    host: &EngineHost,
    each: Take<'_>,
) -> Result<Flow, Fault> {
    let mut run = Run::new(&plan.each);
    through(scan, morsels, host, &mut |document| run.push(document, host, each))
}

/// Documents one behind the other.
#[derive(Default)]
struct Pile {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Morsels through the first stages on all cores, what comes out through the rest in order.
fn piled(
    plan: &Plan,
    rest: &[Stage],
    (scan, morsels): (&Scan, &[Morsel]),
    host: &EngineHost,
    sink: Take<'_>,
) -> Result<(), Fault> {
    let piece = |index: usize| -> Result<Option<Pile>, Fault> {
        let mut pile = Pile::default();
        let flow = through_each(plan, scan, one(morsels, index), host, &mut |document| {
            pile.bytes.extend_from_slice(document.as_bytes());
            pile.ends.push(pile.bytes.len());
            Ok(if pile.bytes.len() > PIECE_BYTES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(flow.is_continue().then_some(pile))
    };
    let mut run = Run::new(rest);
    let mut at = 0;
    let mut take = |pile: Option<Pile>| -> Result<Flow, Fault> {
        let morsel = one(morsels, at);
        at += 1;
        host.check()?;
        let Some(pile) = pile else {
            return through_each(plan, scan, morsel, host, &mut |document| run.push(document, host, sink));
        };
        let mut from = 0;
        for to in pile.ends {
            let document = JsonbRef::from_valid(pile.bytes.get(from..to).unwrap_or_default());
            from = to;
            if run.push(document, host, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    in_order(morsels.len(), &piece, &mut take)?;
    run.finish(host, sink)
}

fn one(morsels: &[Morsel], index: usize) -> &[Morsel] {
    morsels.get(index..=index).unwrap_or_default()
}

/// Some morsels as a table of groups; none where it grew too large.
struct Partial {
    table: Option<GroupTable>,
    /// How many of them are in it.
    morsels: usize,
}

/// Runs of morsels to tables of groups on all cores, merged in order; the groups through the rest.
fn grouped(
    plan: &Plan,
    group: &Arc<Group>,
    rest: &[Stage],
    (scan, morsels): (&Scan, &[Morsel]),
    host: &EngineHost,
    sink: Take<'_>,
) -> Result<(), Fault> {
    let together = (morsels.len() / (2 * ahead())).clamp(1, GROUP_MORSELS_MAX);
    let tasks: Vec<&[Morsel]> = morsels.chunks(together).collect();
    let most = (host.stage_bytes() / ahead()).max(PIECE_BYTES_MAX);
    let piece = |index: usize| -> Result<Partial, Fault> {
        let task = tasks.get(index).copied().unwrap_or_default();
        let mut table = GroupTable::new(Arc::clone(group));
        for morsel in 0..task.len() {
            // What is left goes into the table of all.
            if table.bytes() > most / 2 {
                return Ok(Partial { table: Some(table), morsels: morsel });
            }
            let flow = through_each(plan, scan, one(task, morsel), host, &mut |document| {
                table.add(document, host.budget())?;
                Ok(if table.bytes() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            if flow.is_break() {
                return Ok(Partial { table: None, morsels: 0 });
            }
        }
        Ok(Partial { table: Some(table), morsels: task.len() })
    };
    let mut grouping = Grouping::new(Arc::clone(group));
    let mut at = 0;
    let mut take = |partial: Partial| -> Result<Flow, Fault> {
        let task = tasks.get(at).copied().unwrap_or_default();
        at += 1;
        host.check()?;
        if let Some(table) = partial.table {
            grouping.absorb(table, host)?;
        }
        let left = task.get(partial.morsels..).unwrap_or_default();
        through_each(plan, scan, left, host, &mut |document| {
            grouping.add(document, host)?;
            Ok(ControlFlow::Continue(()))
        })
    };
    in_order(tasks.len(), &piece, &mut take)?;
    let mut run = Run::new(rest);
    grouping.finish(host, &mut |document| run.push(document, host, sink))?;
    run.finish(host, sink)
}

/// Printed documents on their way out.
pub(super) struct Pieces<'s> {
    sink: Sink<'s>,
    out: Vec<u8>,
    documents: u64,
    bytes_max: usize,
    sent: u64,
    gone: bool,
}

impl<'s> Pieces<'s> {
    pub(super) fn new(sink: Sink<'s>) -> Self {
        // The first comes early.
        Self { sink, out: Vec::new(), documents: 0, bytes_max: CHUNK_BYTES / 16, sent: 0, gone: false }
    }

    /// Adds a document; a break where nobody takes more.
    pub(super) fn add(&mut self, document: JsonbRef<'_>, print: Print<'_>) -> Flow {
        print(document, &mut self.out);
        self.documents += 1;
        if self.out.len() >= self.bytes_max {
            self.bytes_max = CHUNK_BYTES;
            return self.flush();
        }
        ControlFlow::Continue(())
    }

    fn flush(&mut self) -> Flow {
        if self.documents == 0 {
            return ControlFlow::Continue(());
        }
        let (out, documents) = (std::mem::take(&mut self.out), std::mem::take(&mut self.documents));
        self.hand_on(out, documents)
    }

    fn hand_on(&mut self, out: Vec<u8>, documents: u64) -> Flow {
        self.sent += documents;
        let flow = (self.sink)(out, documents);
        self.gone |= flow.is_break();
        flow
    }

    /// Whether nobody takes more.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Hands on what is left; how many documents there were.
    pub(super) fn end(mut self) -> u64 {
        if !self.gone {
            let _ = self.flush();
        }
        self.sent
    }
}

/// Prints on all cores what the stages that take each document by itself make of a scan's, in order.
///
/// # Errors
/// As [`run`].
pub(super) fn print(
    plan: &Plan,
    scan: &Scan,
    host: &EngineHost,
    print: Print<'_>,
    pieces: &mut Pieces<'_>,
) -> Result<(), Fault> {
    let morsels = scan.morsels()?;
    let room = if morsels.len() < PARALLEL_MORSELS { None } else { room(host) };
    if room.is_none() {
        return through_each(plan, scan, &morsels, host, &mut |document| Ok(pieces.add(document, print))).map(drop);
    }
    let piece = |index: usize| -> Result<Option<(Vec<u8>, u64)>, Fault> {
        let (mut out, mut documents) = (Vec::with_capacity(CHUNK_BYTES), 0);
        let flow = through_each(plan, scan, one(&morsels, index), host, &mut |document| {
            print(document, &mut out);
            documents += 1;
            Ok(if out.len() > PIECE_BYTES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(flow.is_continue().then_some((out, documents)))
    };
    let mut at = 0;
    let mut take = |made: Option<(Vec<u8>, u64)>| -> Result<Flow, Fault> {
        let morsel = one(&morsels, at);
        at += 1;
        host.check()?;
        match made {
            Some((out, documents)) => Ok(match pieces.flush() {
                ControlFlow::Continue(()) => pieces.hand_on(out, documents),
                flow => flow,
            }),
            None => through_each(plan, scan, morsel, host, &mut |document| Ok(pieces.add(document, print))),
        }
    };
    in_order(morsels.len(), &piece, &mut take)
}
