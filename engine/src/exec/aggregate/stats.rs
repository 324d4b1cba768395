//! What `$collStats` and `$indexStats` tell of a collection, as documents.

use quarrydb_jsonb::{Builder, JsonbBuf};
use quarrydb_query::QueryError;
use quarrydb_query::pipeline::CollStats;

use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;

/// The document of `$collStats`. Sizes are divided by the scale that was asked for.
///
/// # Errors
/// `NotImplemented` (238) for what is not counted here.
pub(super) fn collection(core: &Core, state: &CollectionState, asked: &CollStats) -> Result<JsonbBuf> {
    if asked.latency.is_some() || asked.query_exec {
        let message = "$collStats tells storageStats and count: latencies and executions are not counted by collection";
        return Err(QueryError::new("NotImplemented", 238, message).into());
    }
    let version = state.version();
    let count = state.count_at(core.watermarks().visible());
    let mut out = Builder::new();
    out.begin_object();
    out.field("ns");
    out.string(&format!("{}.{}", state.db, state.name));
    out.field("localTime");
    out.date(core.clock.wall_millis().cast_signed());
    if let Some(scale) = asked.storage {
        let scale = scale.max(1);
        let files: u64 = version.segments.iter().map(|sealed| sealed.segment.meta().file_bytes).sum();
        let tails: u64 = version.tails().map(|tail| tail.bytes() as u64).sum();
        let indexes: u64 = version.segments.iter().flat_map(|sealed| sealed.indexes.files()).map(|file| file.len).sum();
        out.field("storageStats");
        out.begin_object();
        let mut number = |name: &str, n: u64| {
            out.field(name);
            out.int64(n.cast_signed());
        };
        let scaled = |bytes: u64| bytes / scale.cast_unsigned();
        number("size", scaled(files + tails));
        number("count", count);
        number("avgObjSize", (files + tails).checked_div(count).unwrap_or(0));
        number("storageSize", scaled(files));
        number("nindexes", state.indexes().iter().count() as u64 + 1);
        number("totalIndexSize", scaled(indexes));
        number("totalSize", scaled(files + indexes));
        number("scaleFactor", scale.cast_unsigned());
        out.end_object()?;
    }
    if asked.count {
        out.field("count");
        out.int64(count.cast_signed());
    }
    out.end_object()?;
    Ok(JsonbBuf::from_valid(out.take()))
}

/// A document for each index, `_id_` first.
pub(super) fn indexes(state: &CollectionState) -> Result<Vec<JsonbBuf>> {
    let id = |out: &mut Builder| {
        out.begin_object();
        out.field("_id");
        out.int32(1);
        out.end_object()
    };
    let mut all = vec![index("_id_", None, &id)?];
    for declared in state.indexes().iter() {
        let definition = &declared.definition;
        let key = |out: &mut Builder| {
            out.copy(definition.key_pattern.view());
            Ok(())
        };
        all.push(index(definition.name(), (!declared.is_ready()).then_some(true), &key)?);
    }
    Ok(all)
}

type WriteKey<'k> = &'k dyn Fn(&mut Builder) -> std::result::Result<(), quarrydb_jsonb::Error>;

fn index(name: &str, building: Option<bool>, key: WriteKey<'_>) -> Result<JsonbBuf> {
    let mut out = Builder::new();
    out.begin_object();
    out.field("name");
    out.string(name);
    out.field("key");
    key(&mut out)?;
    if let Some(building) = building {
        out.field("building");
        out.bool(building);
    }
    out.end_object()?;
    Ok(JsonbBuf::from_valid(out.take()))
}
