//! `$unionWith` and `$documents`: documents that come from elsewhere.

use super::host::{Fault, Pace};
use super::lookup::{brings_documents, check_collection};
use super::operator::{Flow, Next, Operator};
use super::sub::{self, SubPipeline};
use super::within::Inside;
use crate::expr::Expression;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbRef, Kind};
use std::sync::Arc;

/// A parsed `$unionWith`.
#[derive(Debug)]
pub struct UnionWith {
    /// The other collection; none where the pipeline brings its own documents.
    pub collection: Option<Box<str>>,
    /// What becomes of its documents.
    pub pipeline: Option<SubPipeline>,
}

impl UnionWith {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// `FailedToParse` (9) and `TypeMismatch` (14) for its shape, 40415 for an unknown field, those of the pipeline.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        if let Some(collection) = value.as_str() {
            check_collection(collection).map_err(|e| e.at(&place))?;
            return Ok(Self { collection: Some(collection.into()), pipeline: None });
        }
        let Some(object) = value.as_object() else {
            let message = format!(
                "the $unionWith stage specification must be an object or string, but found {}",
                value.kind().alias()
            );
            return Err(QueryError::failed_to_parse(message).at(&place));
        };
        let mut collection = None;
        for entry in object {
            let place = place.name(entry.name());
            match entry.name() {
                "coll" => {
                    let name =
                        entry.value.as_str().ok_or_else(|| wrong_type("coll", "string", entry.value).at(&place))?;
                    check_collection(name).map_err(|e| e.at(&place))?;
                    collection = Some(name);
                }
                "pipeline" => {}
                name => {
                    let message = format!("BSON field '$unionWith.{name}' is an unknown field.");
                    return Err(QueryError::location(40415, message).at(&place));
                }
            }
        }
        let pipeline = object.get("pipeline");
        if collection.is_none() && !pipeline.is_some_and(brings_documents) {
            let message = "$unionWith must specify 'coll', or a 'pipeline' that begins with $documents";
            return Err(QueryError::failed_to_parse(message).at(&place));
        }
        let place = place.name("pipeline");
        let pipeline = pipeline.map(|p| SubPipeline::parse(p, &context.at(place), Inside::Union(collection), &[]));
        Ok(Self { collection: collection.map(Box::from), pipeline: pipeline.transpose()? })
    }
}

fn wrong_type(name: &str, wanted: &str, value: JsonbRef<'_>) -> QueryError {
    let message = format!(
        "BSON field '$unionWith.{name}' is the wrong type '{}', expected type '{wanted}'",
        value.kind().alias()
    );
    QueryError::type_mismatch(message)
}

/// Its own documents behind those that come in.
pub(super) struct Joining {
    union: Arc<UnionWith>,
    /// No more are wanted.
    done: bool,
}

impl Joining {
    pub(super) fn new(union: &Arc<UnionWith>) -> Self {
        Self { union: Arc::clone(union), done: false }
    }
}

impl Operator for Joining {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let flow = next.push(document)?;
        self.done |= flow.is_break();
        Ok(flow)
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        if self.done {
            return Ok(());
        }
        let stages = self.union.pipeline.as_ref().map_or(&[][..], |sub| sub.pipeline().stages());
        let host = next.host();
        sub::run(stages, self.union.collection.as_deref(), host, &mut |document| next.push(document))
    }
}

/// The documents of an expression's value; none come in.
pub(super) struct Bringing(pub Arc<Expression>);

impl Operator for Bringing {
    fn push(&mut self, _: JsonbRef<'_>, _: &mut Next<'_>) -> Result<Flow, Fault> {
        Ok(Flow::Break(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let empty = crate::scratch::build(16, |out| {
            out.begin_object();
            out.end_object().map_err(super::written::too_large)
        })?;
        let value = self.0.value(empty.view(), next.host().budget())?;
        let Some(array) = value.as_ref().and_then(|v| v.view().as_array()) else {
            let found = value.as_ref().map_or("missing", |v| v.view().kind().alias());
            let message = format!("$documents takes an array of documents, not a value of type {found}");
            return Err(QueryError::location(5_858_203, message).into());
        };
        let mut pace = Pace::default();
        for document in array {
            pace.step(next.host())?;
            if document.kind() != Kind::Object {
                let message = format!(
                    "$documents takes an array of documents, and in it stands a value of type {}",
                    document.kind().alias()
                );
                return Err(QueryError::location(40228, message).into());
            }
            if next.push(document)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
