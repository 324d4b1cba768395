//! `$setWindowFields`: to each document values made of the documents around it in its partition.
//!
//! Documents are put in the order of partition and sort, a partition at a time is kept, and each function goes over its
//! rows once: what leaves a window is never recomputed but by functions whose result is as large as the window.
//!
//! Reading order: `function.rs`, `bounds.rs`, `rows.rs`, `running.rs`, then `sliding.rs`, `order.rs`, `distinct.rs`,
//! `scans.rs`.

mod arithmetic;
mod bounds;
mod distinct;
mod function;
mod order;
mod rows;
mod running;
mod scans;
mod sliding;

pub use self::function::window_function_names;

use self::function::{Function, WindowFunction};
use self::rows::Rows;
use self::running::Running;
use super::accumulate::Accumulator;
use super::host::{Fault, Host, Pace};
use super::operator::{Flow, Next, Operator};
use super::sorter::Sorter;
use crate::add_fields::AddFields;
use crate::expr::{Budget, Datum, Expression, Scope};
use crate::sort::Sort;
use crate::transform::check_nesting;
use crate::{ParseContext, Place, QueryError, scratch};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, ObjectRef, sort_key};
use std::sync::Arc;

/// The parsed stage.
#[derive(Debug)]
pub struct SetWindowFields {
    partition_by: Option<Expression>,
    sort: Option<Sort>,
    /// The value of the sort's one field.
    sort_value: Option<Expression>,
    functions: Vec<WindowFunction>,
    fields: AddFields,
}

impl SetWindowFields {
    /// Parses the stage's object.
    ///
    /// # Errors
    /// `FailedToParse` for what is no object and for windows and functions, 40414 and 40415 for its fields, 6307900 where
    /// two paths of `output` meet, those of functions and expressions.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let Some(object) = value.as_object() else {
            let message =
                format!("the $setWindowFields stage specification must be an object, found {}", value.kind().alias());
            return Err(QueryError::failed_to_parse(message).at(&context.place));
        };
        let known = ["partitionBy", "sortBy", "output"];
        if let Some(unknown) = object.iter().find(|e| !known.contains(&e.name())) {
            let message = format!("BSON field '$setWindowFields.{}' is an unknown field.", unknown.name());
            return Err(QueryError::location(40415, message).at(&context.place.name(unknown.name())));
        }
        let place = context.place.name("partitionBy");
        let partition_by = object.get("partitionBy").map(|v| Expression::parse(v, &context.at(place))).transpose()?;
        if partition_by.as_ref().and_then(Expression::constant).is_some_and(|v| v.as_array().is_some()) {
            return Err(array_partition().at(&place));
        }
        let (mut sort, mut sort_value) = (None, None);
        if let Some(sort_by) = object.get("sortBy") {
            let place = context.place.name("sortBy");
            let parsed = Sort::parse(sort_by, &context.at(place))?;
            if parsed.natural().is_some() {
                return Err(QueryError::failed_to_parse("$natural is no order of a window").at(&place));
            }
            if let (1, Some(field)) = (parsed.fields().len(), sort_by.as_object().and_then(|o| o.iter().next())) {
                let path = scratch::build(16, |out| {
                    out.string(&format!("${}", field.name()));
                    Ok(())
                })?;
                let place = place.name(field.name());
                sort_value = Some(Expression::parse(path.view(), &context.at(place))?);
            }
            sort = (!parsed.fields().is_empty()).then_some(parsed);
        }
        let place = context.place.name("output");
        let output = output(object, &place).map_err(|e| e.at(&context.place))?;
        let mut functions = Vec::new();
        for field in output {
            let place = place.name(field.name());
            functions.push(WindowFunction::parse(field.value, sort.as_ref(), &context.at(place))?);
        }
        let paths: Vec<&str> = output.iter().map(|e| e.name()).collect();
        let fields = AddFields::of_paths(&paths, &context.at(place)).map_err(|e| match e.code() {
            40176 => {
                let message = "$setWindowFields 'output' specification contains two conflicting paths";
                QueryError::location(6_307_900, message).at(&place)
            }
            _ => e,
        })?;
        Ok(Self { partition_by, sort, sort_value, functions, fields })
    }

    /// The key of a document's partition; nothing where there is but one.
    fn partition_key(&self, document: JsonbRef<'_>, key: &mut Vec<u8>, budget: Budget<'_>) -> Result<(), QueryError> {
        let Some(partition_by) = &self.partition_by else { return Ok(()) };
        let mut scope = Scope::new(document, budget);
        let value = partition_by.evaluate(&mut scope)?;
        if value.is_array() {
            return Err(array_partition());
        }
        // Null and missing are one partition.
        let value = if value.is_nullish() { Datum::Null } else { value };
        sort_key(value.encoded()?.view(), key);
        Ok(())
    }

    /// Puts what the functions need of a document into the columns.
    fn take_row(
        &self,
        document: JsonbRef<'_>,
        sort_key: &[u8],
        rows: &mut Rows,
        budget: Budget<'_>,
    ) -> Result<(), QueryError> {
        let mut scope = Scope::new(document, budget);
        for (at, function) in self.functions.iter().enumerate() {
            if let (Some(argument), Some(column)) = (function.argument(), rows.arguments.get_mut(at)) {
                column.push_datum(&argument.evaluate(&mut scope)?)?;
            }
            if let (Function::Accumulate(accumulator), Some(column)) = (&function.function, rows.keys.get_mut(at))
                && let Some(sort) = Accumulator::sort(accumulator)
            {
                let mut key = Vec::new();
                sort.key_within(document, &mut key, budget)?;
                column.push(&key);
            }
        }
        if let Some(sort_value) = &self.sort_value
            && self.functions.iter().any(WindowFunction::needs_sort_value)
        {
            rows.sort_values.push_datum(&sort_value.evaluate(&mut scope)?)?;
        }
        if self.functions.iter().any(|f| matches!(f.function, Function::Rank | Function::DenseRank)) {
            rows.sort_keys.push(sort_key);
        }
        Ok(())
    }

    /// Hands a partition on, each document with its values.
    fn emit(&self, rows: &mut Rows, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let host = next.host();
        let documents = rows.take_documents();
        let rows = &*rows;
        let mut running = Vec::with_capacity(self.functions.len());
        for (at, function) in self.functions.iter().enumerate() {
            running.push(Running::new(function, at, rows)?);
        }
        let mut pace = Pace::default();
        let mut row = 0;
        documents.each(&mut |document| {
            pace.step(host)?;
            let mut values = Vec::with_capacity(running.len());
            for function in &mut running {
                values.push(function.next(row, &mut || pace.step(host))?);
            }
            row += 1;
            let made: JsonbBuf = self.put(document, &values, host)?;
            check_nesting(made.view(), crate::limits::NESTING_MAX)?;
            next.push(made.view())
        })
    }
}

impl SetWindowFields {
    fn put(&self, document: JsonbRef<'_>, values: &[JsonbBuf], host: &dyn Host) -> Result<JsonbBuf, QueryError> {
        self.fields.put_values(document, values.iter().map(|v| Datum::from(v.view())).collect(), host.budget())
    }
}

fn output<'v>(object: ObjectRef<'v>, place: &Place<'_>) -> Result<ObjectRef<'v>, QueryError> {
    let Some(output) = object.get("output") else {
        let message = "BSON field '$setWindowFields.output' is missing but a required field";
        return Err(QueryError::location(40414, message));
    };
    output.as_object().ok_or_else(|| {
        let message = format!("'output' is an object, not {}", output.kind().alias());
        QueryError::type_mismatch(message).at(place)
    })
}

fn array_partition() -> QueryError {
    QueryError::type_mismatch("an expression used to partition cannot evaluate to value of type array")
}

/// The running stage.
pub(super) struct WindowOperator {
    spec: Arc<SetWindowFields>,
    sorter: Sorter,
}

impl WindowOperator {
    pub(super) fn new(spec: &Arc<SetWindowFields>) -> Self {
        Self { spec: Arc::clone(spec), sorter: Sorter::new("$setWindowFields", None) }
    }

    /// The key of a document: that of its partition, and behind it that of the sort. Gives the length of the first.
    fn key(
        spec: &SetWindowFields,
        document: JsonbRef<'_>,
        key: &mut Vec<u8>,
        host: &dyn Host,
    ) -> Result<usize, QueryError> {
        key.clear();
        spec.partition_key(document, key, host.budget())?;
        let partition = key.len();
        if let Some(sort) = &spec.sort {
            sort.key_within(document, key, host.budget())?;
        }
        Ok(partition)
    }
}

impl Operator for WindowOperator {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let mut key = Vec::new();
        Self::key(&self.spec, document, &mut key, next.host())?;
        self.sorter.push(&key, document, next.host())?;
        Ok(Flow::Continue(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        let spec = Arc::clone(&self.spec);
        let mut rows = Rows::new(&spec.functions);
        let (mut key, mut partition) = (Vec::new(), Vec::new());
        let mut flow = Flow::Continue(());
        self.sorter.finish(host, &mut |document| {
            let partition_bytes = Self::key(&spec, document, &mut key, host)?;
            let (its_partition, sort_key) = key.split_at(partition_bytes);
            if rows.len() > 0 && partition != its_partition {
                let mut complete = std::mem::replace(&mut rows, Rows::new(&spec.functions));
                flow = spec.emit(&mut complete, next)?;
            }
            if flow.is_continue() {
                its_partition.clone_into(&mut partition);
                spec.take_row(document, sort_key, &mut rows, host.budget())?;
                rows.keep(document, host)?;
            }
            Ok(flow)
        })?;
        if flow.is_continue() && rows.len() > 0 {
            return spec.emit(&mut rows, next).map(drop);
        }
        Ok(())
    }
}
