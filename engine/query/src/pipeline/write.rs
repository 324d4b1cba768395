//! `$out`, and the operator of the two stages that write.
//!
//! The host writes; what `$merge` makes of a document says `merge.rs`.

use super::host::Fault;
use super::merge::Merge;
use super::operator::{Flow, Next, Operator};
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::JsonbRef;
use std::sync::Arc;

/// A stage that writes.
#[derive(Debug)]
pub enum Write {
    /// `$out`.
    Out(Out),
    /// `$merge`.
    Merge(Box<Merge>),
}

/// A parsed `$out`: its documents take the place of a collection's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// The database, where it is another than the pipeline's.
    pub db: Option<Box<str>>,
    /// The collection.
    pub collection: Box<str>,
}

impl Out {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// 16990 where it is neither a string nor an object, 40414 and 40415 for a field that is missing or not known, 14 for
    /// one that is no string, 73 for a name that no collection can have.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        if let Some(collection) = value.as_str() {
            check_target(collection).map_err(|e| e.at(&place))?;
            return Ok(Self { db: None, collection: collection.into() });
        }
        let Some(object) = value.as_object() else {
            let message = format!("$out only supports a string or object argument, but found {}", value.kind().alias());
            return Err(QueryError::location(16990, message).at(&place));
        };
        for entry in object {
            let (name, place) = (entry.name(), place.name(entry.name()));
            let error = match name {
                "db" | "coll" if entry.value.as_str().is_some() => continue,
                "db" | "coll" => wrong_type("$out", name, entry.value),
                "timeseries" => {
                    QueryError::location(40415, "$out to a time series collection is not supported: there are none")
                }
                _ => QueryError::location(40415, format!("BSON field '$out.{name}' is an unknown field.")),
            };
            return Err(error.at(&place));
        }
        let field = |name: &str| {
            object.get(name).and_then(JsonbRef::as_str).ok_or_else(|| {
                let message = format!("BSON field '$out.{name}' is missing but a required field");
                QueryError::location(40414, message).at(&place)
            })
        };
        let (db, collection) = (field("db")?, field("coll")?);
        check_target(db).map_err(|e| e.at(&place.name("db")))?;
        check_target(collection).map_err(|e| e.at(&place.name("coll")))?;
        Ok(Self { db: Some(db.into()), collection: collection.into() })
    }
}

/// A field of the wrong type, where a string is wanted.
pub(super) fn wrong_type(stage: &str, name: &str, value: JsonbRef<'_>) -> QueryError {
    let found = value.kind().alias();
    let message = format!("BSON field '{stage}.{name}' is the wrong type '{found}', expected type 'string'");
    QueryError::type_mismatch(message)
}

/// What a collection that is written to may be called.
pub(super) fn check_target(name: &str) -> Result<(), QueryError> {
    if name.starts_with("system.") {
        let message = format!("a pipeline does not write to the collection '{name}'");
        return Err(QueryError::new("InvalidNamespace", 73, message));
    }
    super::lookup::check_collection(name)
}

/// Nothing comes out.
pub(super) struct Writing(pub Arc<Write>);

impl Operator for Writing {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        next.host().write(&self.0, document)?;
        Ok(Flow::Continue(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        next.host().write_end(&self.0)
    }
}
