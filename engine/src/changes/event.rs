//! One change as the document that streams tell, with MongoDB's names in MongoDB's order.
//!
//! Takes what is known of a change; writes an object. The time of a commit is its wall time; `clusterTime` is the second of
//! that and the low half of the commit's number, so that it rises with the order of commits.

use quarrydb_jsonb::{Builder, JsonbRef};

use crate::error::Result;
use crate::ids::Seq;

/// What an event is made of.
#[derive(Debug)]
pub(crate) struct Event<'a> {
    /// The token of the place behind it.
    pub token: &'a str,
    /// `insert`, `update`, ...
    pub operation: &'a str,
    /// Its commit, and that one's wall time.
    pub at: (Seq, u64),
    /// The document, where it is told; `None` inside: there is none any more.
    pub full_document: Option<Option<JsonbRef<'a>>>,
    /// Database and, where it is of one, collection; none of an `invalidate`.
    pub ns: Option<(&'a str, Option<&'a str>)>,
    /// The `_id` of the document that changed.
    pub id: Option<JsonbRef<'a>>,
    /// What changed in it.
    pub described: Option<JsonbRef<'a>>,
}

impl Event<'_> {
    /// Writes it as one object.
    ///
    /// # Errors
    /// Where the object would be larger than one may be.
    pub(crate) fn write(&self, out: &mut Builder) -> Result<()> {
        let (seq, wall_ms) = self.at;
        out.begin_object();
        out.field("_id");
        out.string(self.token);
        out.field("operationType");
        out.string(self.operation);
        out.field("clusterTime");
        out.timestamp(u32::try_from(wall_ms / 1000).unwrap_or(u32::MAX), seq.get() as u32);
        out.field("wallTime");
        out.date(i64::try_from(wall_ms).unwrap_or(i64::MAX));
        if let Some(document) = self.full_document {
            out.field("fullDocument");
            out.copy(document.unwrap_or(quarrydb_jsonb::NULL));
        }
        if let Some((db, name)) = self.ns {
            out.field("ns");
            out.begin_object();
            out.field("db");
            out.string(db);
            if let Some(name) = name {
                out.field("coll");
                out.string(name);
            }
            out.end_object()?;
        }
        if let Some(id) = self.id {
            out.field("documentKey");
            out.begin_object();
            out.field("_id");
            out.copy(id);
            out.end_object()?;
        }
        if let Some(described) = self.described {
            out.field("updateDescription");
            out.copy(described);
        }
        out.end_object()?;
        Ok(())
    }
}
