//! The groups of a scan on their way to the next stage.

use quarrydb_jsonb::{Builder, JsonbRef, Kind};
use quarrydb_query::Sort;
use quarrydb_query::pipeline::accumulate::State;
use quarrydb_query::pipeline::{Fault, Flow, GroupTable, Host};

use super::local::Groups;
use super::spec::ColumnGroup;
use crate::error::{Error, Result};
use crate::exec::scan::within;
use crate::options::Deadline;

/// Groups in the order of their first rows.
#[derive(Debug)]
pub(crate) struct Grouped(Form);

#[derive(Debug)]
enum Form {
    /// In shares, each in the order of its first rows.
    Columns(Vec<Groups>),
    Table(GroupTable),
}

/// What takes the groups as documents.
pub(crate) type Give<'g> = &'g mut dyn FnMut(JsonbRef<'_>) -> std::result::Result<Flow, Fault>;

impl Grouped {
    pub(super) fn of_groups(shares: Vec<Groups>) -> Self {
        Self(Form::Columns(shares))
    }

    pub(super) fn of_table(table: GroupTable) -> Self {
        Self(Form::Table(table))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Columns(shares) => shares.iter().map(|groups| groups.entries.len()).sum(),
            Form::Table(table) => table.len(),
        }
    }

    /// Whether no document was looked at.
    #[cfg(test)]
    pub(super) fn is_of_columns(&self) -> bool {
        matches!(self.0, Form::Columns(_))
    }

    /// Hands on all groups as documents, in order, until `give` breaks.
    ///
    /// # Errors
    /// Those of accumulators, `TimedOut`, those of `give`.
    pub(crate) fn finish(
        self,
        spec: &ColumnGroup,
        host: &dyn Host,
        deadline: Option<Deadline>,
        give: Give<'_>,
    ) -> std::result::Result<(), Fault> {
        let shares = match self.0 {
            Form::Columns(shares) => shares,
            Form::Table(table) => return table.finish(host, give),
        };
        let mut builder = Builder::new();
        for (at, (share, group)) in in_order(&shares).into_iter().enumerate() {
            if at % 1024 == 0 {
                Deadline::check(deadline).map_err(fault)?;
            }
            let Some(groups) = shares.get(share as usize) else { continue };
            builder.rewind(0);
            write(spec, groups, group as usize, &mut builder).map_err(fault)?;
            if give(JsonbRef::from_valid(builder.bytes()))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Hands on the first `keep` groups in the order of `sort`; false, with nothing given, where that takes the groups as
    /// documents.
    ///
    /// # Errors
    /// As [`Grouped::finish`].
    pub(crate) fn top(
        &self,
        spec: &ColumnGroup,
        sort: &Sort,
        keep: usize,
        give: Give<'_>,
    ) -> std::result::Result<bool, Fault> {
        let Form::Columns(shares) = &self.0 else { return Ok(false) };
        let mut front: Vec<(Vec<u8>, u64, u32, u32)> = Vec::new();
        let mut builder = Builder::new();
        for (share, groups) in shares.iter().enumerate() {
            for (at, entry) in groups.entries.iter().enumerate() {
                let mut key = Vec::with_capacity(16);
                for field in sort.fields() {
                    builder.rewind(0);
                    let name = field.path.as_str();
                    match spec.group.fields().iter().position(|own| *own.name == *name) {
                        _ if name == "_id" => builder.copy(groups.id(entry)),
                        Some(own) => write_field(spec, groups, own, at, &mut builder).map_err(fault)?,
                        None => return Ok(false),
                    }
                    let value = JsonbRef::from_valid(builder.bytes());
                    // Arrays are ordered by their elements, which is for the sort itself.
                    if value.kind() == Kind::Array {
                        return Ok(false);
                    }
                    field.direction.key_of(Some(value), &mut key);
                }
                front.push((key, entry.first, share as u32, at as u32));
            }
        }
        if keep > 0 && keep < front.len() {
            front.select_nth_unstable(keep - 1);
        }
        front.truncate(keep);
        front.sort_unstable();
        for (_, _, share, at) in front {
            let Some(groups) = shares.get(share as usize) else { continue };
            builder.rewind(0);
            write(spec, groups, at as usize, &mut builder).map_err(fault)?;
            if give(JsonbRef::from_valid(builder.bytes()))?.is_break() {
                break;
            }
        }
        Ok(true)
    }
}

fn fault(error: Error) -> Fault {
    Fault::Host(Box::new(error))
}

/// The share and the place of each group, in the order of their first rows.
fn in_order(shares: &[Groups]) -> Vec<(u32, u32)> {
    let mut order = Vec::with_capacity(shares.iter().map(|groups| groups.entries.len()).sum());
    let of_share = |(share, groups): (u32, &Groups)| {
        let places = (0..).zip(&groups.entries);
        places.map(|(at, entry)| (entry.first, share, at)).collect::<Vec<_>>()
    };
    (0..).zip(shares).for_each(|share| order.extend(of_share(share)));
    if shares.len() > 1 {
        // Runs in order: a merge for the sort.
        order.sort();
    }
    order.into_iter().map(|(_, share, at)| (share, at)).collect()
}

fn write(spec: &ColumnGroup, groups: &Groups, at: usize, out: &mut Builder) -> Result<()> {
    let Some(entry) = groups.entries.get(at) else { return Ok(()) };
    out.begin_object();
    out.field("_id");
    out.copy(groups.id(entry));
    for (own, field) in spec.group.fields().iter().enumerate() {
        out.field(&field.name);
        write_field(spec, groups, own, at, out)?;
    }
    out.end_object()?;
    Ok(())
}

fn write_field(spec: &ColumnGroup, groups: &Groups, own: usize, at: usize, out: &mut Builder) -> Result<()> {
    match (spec.group.fields().get(own), groups.made.get(own)) {
        (Some(field), Some(made)) => made.write(&field.accumulator, at, out),
        _ => {
            out.null();
            Ok(())
        }
    }
}

/// Adds groups that columns made to a table of those of the rows before.
///
/// # Errors
/// Those of accumulators.
pub(super) fn add_to(
    table: &mut GroupTable,
    spec: &ColumnGroup,
    groups: &Groups,
    deadline: Option<Deadline>,
) -> Result<()> {
    for (at, entry) in groups.entries.iter().enumerate() {
        let mut later = Vec::with_capacity(groups.made.len());
        for (made, accumulator) in groups.made.iter().zip(spec.accumulators()) {
            later.push(made.state(accumulator, at)?);
        }
        within(deadline, |budget| {
            table.update(groups.id(entry), budget, |group, states: &mut [State]| {
                let fields = group.fields().iter();
                states
                    .iter_mut()
                    .zip(later)
                    .zip(fields)
                    .try_for_each(|((own, later), field)| own.merge(&field.accumulator, later))
            })
        })?;
    }
    Ok(())
}
