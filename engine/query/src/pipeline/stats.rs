//! `$collStats` and `$indexStats`: what the host knows of a collection, as documents. Nothing comes in.

use super::host::Fault;
use super::operator::{Flow, Next, Operator};
use super::stage::whole;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::JsonbRef;
use std::sync::Arc;

/// A parsed `$collStats`: what is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollStats {
    /// The collection, where it is another than the pipeline's.
    pub collection: Option<Box<str>>,
    /// `latencyStats`, and whether with histograms.
    pub latency: Option<bool>,
    /// `storageStats`, and what its sizes are divided by: at least 1.
    pub storage: Option<i64>,
    /// `count`.
    pub count: bool,
    /// `queryExecStats`.
    pub query_exec: bool,
}

/// A parsed `$indexStats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// The collection, where it is another than the pipeline's.
    pub collection: Option<Box<str>>,
}

impl CollStats {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// 5447000 where it is no object, 14 for an option of the wrong type, 40415 for one that is not known, 51024 for a
    /// scale below 1.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        let Some(object) = value.as_object() else {
            let message = format!("$collStats must take a nested object but found: {}", crate::error::shown(value));
            return Err(QueryError::location(5_447_000, message).at(&place));
        };
        let mut stats = Self { collection: context.within.collection().map(Box::from), ..Self::default() };
        for entry in object {
            let (name, place) = (entry.name(), place.name(entry.name()));
            let Some(options) = entry.value.as_object() else {
                let found = entry.value.kind().alias();
                let message =
                    format!("BSON field '$collStats.{name}' is the wrong type '{found}', expected type 'object'");
                return Err(QueryError::type_mismatch(message).at(&place));
            };
            let known = match name {
                "latencyStats" => "histograms",
                "storageStats" => "scale",
                "count" | "queryExecStats" => "",
                _ => return Err(unknown(name).at(&place)),
            };
            if let Some(other) = options.iter().find(|e| e.name() != known) {
                return Err(unknown(&format!("{name}.{}", other.name())).at(&place.name(other.name())));
            }
            match (name, options.get(known)) {
                ("latencyStats", None) => stats.latency = Some(false),
                ("latencyStats", Some(value)) => stats.latency = Some(value.as_bool().unwrap_or(false)),
                ("storageStats", None) => stats.storage = Some(1),
                ("storageStats", Some(scale)) => {
                    let scale = whole(scale).filter(|&n| n >= 1).ok_or_else(|| {
                        let message = format!("the scale is a number from 1, not {}", crate::error::shown(scale));
                        QueryError::location(51024, message).at(&place.name("scale"))
                    })?;
                    stats.storage = Some(scale);
                }
                ("count", _) => stats.count = true,
                _ => stats.query_exec = true,
            }
        }
        Ok(stats)
    }
}

fn unknown(name: &str) -> QueryError {
    QueryError::location(40415, format!("BSON field '$collStats.{name}' is an unknown field."))
}

impl IndexStats {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// 28803 where it is anything but an empty object.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        if value.as_object().is_none_or(|o| !o.is_empty()) {
            let message = "The $indexStats stage specification must be an empty object";
            return Err(QueryError::location(28803, message).at(&context.place));
        }
        Ok(Self { collection: context.within.collection().map(Box::from) })
    }
}

pub(super) struct CollectionStats(pub Arc<CollStats>);

impl Operator for CollectionStats {
    fn push(&mut self, _: JsonbRef<'_>, _: &mut Next<'_>) -> Result<Flow, Fault> {
        Ok(Flow::Break(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        host.collection_stats(&self.0, &mut |document| next.push(document))
    }
}

pub(super) struct IndexesStats(pub Arc<IndexStats>);

impl Operator for IndexesStats {
    fn push(&mut self, _: JsonbRef<'_>, _: &mut Next<'_>) -> Result<Flow, Fault> {
        Ok(Flow::Break(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        host.index_stats(&self.0, &mut |document| next.push(document))
    }
}
