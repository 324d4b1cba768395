//! The stages that MongoDB has and a pipeline here has not: each is refused by its name, with the reason.

use crate::QueryError;

const REFUSED: [(&str, &str); 21] = [
    ("$changeStream", "changes are read by a request of their own"),
    ("$changeStreamSplitLargeEvent", "changes are read by a request of their own"),
    ("$currentOp", "a pipeline reads collections, not the server's operations"),
    ("$geoNear", "there are no geospatial indexes"),
    ("$listCachedAndActiveUsers", "there are keys and no users"),
    ("$listClusterCatalog", "there is no cluster"),
    ("$listLocalSessions", "there are no sessions"),
    ("$listSampledQueries", "queries are not sampled"),
    ("$listSearchIndexes", "there is no text search"),
    ("$listSessions", "there are no sessions"),
    ("$planCacheStats", "plans are not cached"),
    ("$querySettings", "there are no query settings"),
    ("$queryStats", "queries are not recorded"),
    ("$rankFusion", "there is no text or vector search to rank"),
    ("$score", "there is no text or vector search to score"),
    ("$scoreFusion", "there is no text or vector search to score"),
    ("$search", "there is no text search"),
    ("$searchMeta", "there is no text search"),
    ("$setQuerySettings", "there are no query settings"),
    ("$shardedDataDistribution", "there are no shards"),
    ("$vectorSearch", "there is no vector search"),
];

/// Why a stage is not known.
pub(super) fn unknown(name: &str) -> QueryError {
    let message = match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, reason)) => format!("the stage {name} is not supported: {reason}"),
        None => format!("Unrecognized pipeline stage name: '{name}'"),
    };
    QueryError::location(40324, message)
}
