//! `$merge`: what a document becomes in the collection that it is written to.
//!
//! Takes the document of the pipeline and the one of the collection that has the same values in the fields of `on`, where
//! there is one; says what is to be written. Who finds and writes is the host.

use super::lookup::{evaluated, variables};
use super::sub::Bound;
use super::write::{check_target, wrong_type};
use super::written::too_large;
use crate::expr::{Budget, Expression, LetVariables, visible};
use crate::filter::Filter;
use crate::path_walk::FieldPath;
use crate::sort::check_path;
use crate::update::Stages;
use crate::{ParseContext, Place, QueryError, scratch};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind, equal};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A parsed `$merge`.
#[derive(Debug)]
pub struct Merge {
    /// The database, where it is another than the pipeline's.
    pub db: Option<Box<str>>,
    /// The collection.
    pub collection: Box<str>,
    /// The fields that decide which documents belong together: a unique index must have them. `_id` where none is named.
    pub on: Vec<FieldPath>,
    /// What to do where the collection has the document.
    pub when_matched: WhenMatched,
    /// What to do where it has not.
    pub when_not_matched: WhenNotMatched,
}

/// What to do with a document that the collection has.
#[derive(Debug)]
pub enum WhenMatched {
    /// Put the new one in its place.
    Replace,
    /// Leave it.
    KeepExisting,
    /// Put the fields of the new one into it.
    Merge,
    /// Fail.
    Fail,
    /// Apply a pipeline to it, which sees the new one as `$$new`.
    Pipeline(MergePipeline),
}

/// What to do with a document that the collection has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// Insert it.
    Insert,
    /// Forget it.
    Discard,
    /// Fail.
    Fail,
}

/// The pipeline of `whenMatched`, and its variables.
#[derive(Debug)]
pub struct MergePipeline {
    text: JsonbBuf,
    place: String,
    now_ms: i64,
    outer: LetVariables,
    variables: Vec<(Box<str>, Expression)>,
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Nothing.
    Nothing,
    /// The new document, as a new one of the collection. One without an `_id` is given one.
    Insert,
    /// This in the place of the collection's document.
    Replace(JsonbBuf),
}

impl Merge {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// With MongoDB's numbers: 51182, 51178, 51186, 51187, 51134, 31465, 51191, 51181, 51199, 51273, 5786800 and its like.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        let error = |code, message: String| QueryError::location(code, message);
        let mut merge = Self {
            db: None,
            collection: Box::default(),
            on: Vec::new(),
            when_matched: WhenMatched::Merge,
            when_not_matched: WhenNotMatched::Insert,
        };
        let Some(object) = value.as_object() else {
            if value.as_str().is_none() {
                let message = format!("$merge only supports a string or object argument, not {}", value.kind().alias());
                return Err(error(51182, message).at(&place));
            }
            merge.name_target(value, &place)?;
            merge.default_on(&place)?;
            return Ok(merge);
        };
        let Some(into) = object.get("into") else {
            let message = "BSON field '$merge.into' is missing but a required field".to_owned();
            return Err(error(40414, message).at(&place));
        };
        merge.name_target(into, &place.name("into"))?;
        let mut given = None;
        for entry in object {
            let (name, place) = (entry.name(), place.name(entry.name()));
            match name {
                "into" => {}
                "on" => merge.on = on(entry.value, &place)?,
                "let" => given = Some(entry.value),
                "whenMatched" => merge.when_matched = when_matched(entry.value, &context.at(place))?,
                "whenNotMatched" => merge.when_not_matched = when_not_matched(entry.value, &place)?,
                _ => {
                    let message = format!("BSON field '$merge.{name}' is an unknown field.");
                    return Err(error(40415, message).at(&place));
                }
            }
        }
        merge.default_on(&place)?;
        let rare = match (&merge.when_matched, merge.when_not_matched) {
            (WhenMatched::KeepExisting, WhenNotMatched::Discard | WhenNotMatched::Fail) => Some("keepExisting"),
            (WhenMatched::Fail, WhenNotMatched::Discard | WhenNotMatched::Fail) => Some("fail"),
            _ => None,
        };
        if let Some(matched) = rare {
            let message = format!(
                "Combination of $merge modes 'whenMatched: {matched}' and 'whenNotMatched: {}' is not supported",
                merge.when_not_matched.name()
            );
            return Err(error(51181, message).at(&place));
        }
        merge.bind(given, context)?;
        Ok(merge)
    }

    fn name_target(&mut self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<(), QueryError> {
        let error = |code, message: &str| QueryError::location(code, message).at(place);
        let (db, collection) = match (value.as_str(), value.as_object()) {
            (Some(""), _) => return Err(error(5_786_800, "$merge 'into' field cannot be an empty string")),
            (Some(collection), _) => (None, collection),
            (_, Some(object)) => {
                for entry in object {
                    let place = place.name(entry.name());
                    let wrong = match entry.name() {
                        "db" | "coll" if entry.value.as_str().is_some() => continue,
                        name @ ("db" | "coll") => wrong_type("into", name, entry.value),
                        name => QueryError::location(40415, format!("BSON field 'into.{name}' is an unknown field.")),
                    };
                    return Err(wrong.at(&place));
                }
                let field = |name: &str| object.get(name).and_then(JsonbRef::as_str);
                let Some(collection) = field("coll").filter(|c| !c.is_empty()) else {
                    let message = "$merge 'into' field must specify a 'coll' that is not empty, null or undefined";
                    return Err(error(5_786_801, message));
                };
                (field("db"), collection)
            }
            _ => {
                let found = value.kind().alias();
                let message = format!("$merge 'into' field must be either a string or an object, but found {found}");
                return Err(error(51178, &message));
            }
        };
        for name in [Some(collection), db].into_iter().flatten() {
            check_target(name).map_err(|e| e.at(place))?;
        }
        self.db = db.map(Box::from);
        self.collection = collection.into();
        Ok(())
    }

    fn default_on(&mut self, place: &Place<'_>) -> Result<(), QueryError> {
        if self.on.is_empty() {
            self.on.push(FieldPath::parse("_id", place)?);
        }
        Ok(())
    }

    /// Reads `let`, and the pipeline with its variables.
    fn bind(&mut self, given: Option<JsonbRef<'_>>, context: &ParseContext<'_>) -> Result<(), QueryError> {
        let place = context.place.name("let");
        let name = self.when_matched.name();
        let WhenMatched::Pipeline(pipeline) = &mut self.when_matched else {
            if given.is_some() {
                let message = format!("Cannot use 'let' variables with 'whenMatched: {name}' mode");
                return Err(QueryError::location(51199, message).at(&place));
            }
            return Ok(());
        };
        let new = given.and_then(|g| g.get("new"));
        if new.is_some_and(|new| new.as_str() != Some("$$ROOT")) {
            let message = "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'";
            return Err(QueryError::location(51273, message).at(&place.name("new")));
        }
        pipeline.variables = variables(given, "$merge", &context.at(place))?;
        if new.is_none() {
            let root = scratch::build(16, |out| {
                out.string("$$ROOT");
                Ok(())
            })?;
            pipeline.variables.push(("new".into(), Expression::parse(root.view(), context)?));
        }
        let null = Some(Arc::new(quarrydb_jsonb::NULL.to_buf()));
        pipeline.stages(pipeline.variables.iter().map(|_| null.clone()).collect()).map(drop)
    }

    /// The filter of the one document of the collection to which a document belongs; none where it has no `_id` and
    /// belongs to none.
    ///
    /// # Errors
    /// 51132 where a field of `on` is missing, null or an array; 51185 where there is an array on the way to it.
    pub fn target(&self, document: JsonbRef<'_>) -> Result<Option<Filter>, QueryError> {
        let mut filter = Filter::everything();
        for path in &self.on {
            let mut value = Some(document);
            for part in path.parts() {
                if value.is_some_and(|v| v.kind() == Kind::Array) {
                    let message = format!("$merge write error: 'on' field '{}' cannot be an array", path.as_str());
                    return Err(QueryError::location(51185, message));
                }
                value = value.and_then(|v| v.get(part.name()));
            }
            let value = match value {
                None if path.as_str() == "_id" => return Ok(None),
                Some(value) if !matches!(value.kind(), Kind::Null | Kind::Array) => value,
                _ => {
                    let message = format!(
                        "$merge write error: 'on' field '{}' cannot be missing, null, undefined or an array",
                        path.as_str()
                    );
                    return Err(QueryError::location(51132, message));
                }
            };
            let one = scratch::build(value.as_bytes().len() + 16, |out| {
                out.begin_array();
                out.copy(value);
                out.end_array().map_err(too_large)
            })?;
            filter = filter.and(Filter::one_of(path, one.view()));
        }
        Ok(Some(filter))
    }

    /// What is to be written for a document of the pipeline, where the collection has `existing`.
    ///
    /// # Errors
    /// `DuplicateKey` (11000) and `MergeStageNoMatchingDocument` (13113) where the stage says to fail, `ImmutableField` (66)
    /// where an `_id` would change, those of the pipeline.
    pub fn merged(
        &self,
        existing: Option<JsonbRef<'_>>,
        new: JsonbRef<'_>,
        budget: Budget<'_>,
    ) -> Result<Merged, QueryError> {
        let Some(existing) = existing else {
            return match self.when_not_matched {
                WhenNotMatched::Insert => Ok(Merged::Insert),
                WhenNotMatched::Discard => Ok(Merged::Nothing),
                WhenNotMatched::Fail => {
                    let message = "$merge could not find a matching document in the target collection for at least one \
                                   document in the source collection";
                    Err(QueryError::new("MergeStageNoMatchingDocument", 13113, message))
                }
            };
        };
        let made = match &self.when_matched {
            WhenMatched::KeepExisting => return Ok(Merged::Nothing),
            WhenMatched::Fail => {
                let message = "$merge found a document with the same 'on' fields, and 'whenMatched' is 'fail'";
                return Err(QueryError::new("DuplicateKey", 11000, message));
            }
            WhenMatched::Replace => new.to_buf(),
            WhenMatched::Merge => united(existing, new)?,
            WhenMatched::Pipeline(pipeline) => pipeline.apply(existing, new, budget)?,
        };
        let made = with_id(made, existing.get("_id"))?;
        let same = made.as_bytes() == existing.as_bytes();
        Ok(if same { Merged::Nothing } else { Merged::Replace(made) })
    }
}

impl WhenMatched {
    fn name(&self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::KeepExisting => "keepExisting",
            Self::Merge => "merge",
            Self::Fail => "fail",
            Self::Pipeline(_) => "pipeline",
        }
    }
}

impl WhenNotMatched {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Discard => "discard",
            Self::Fail => "fail",
        }
    }
}

impl MergePipeline {
    fn stages(&self, values: Vec<Bound>) -> Result<Stages, QueryError> {
        let names = self.variables.iter().map(|(name, _)| name.clone());
        let bound = LetVariables::new(self.outer.iter().cloned().chain(names.zip(values)).collect());
        let mut context = ParseContext::new("").at(Place::root(&self.place)).with_now(self.now_ms);
        context.bound = Some(&bound);
        let view = self.text.view();
        let array = view.as_array().ok_or_else(|| QueryError::type_mismatch("a pipeline is an array of stages"))?;
        Stages::parse(array, &context)
    }

    fn apply(&self, existing: JsonbRef<'_>, new: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        self.stages(evaluated(&self.variables, new, budget)?)?.apply(existing, budget)
    }
}

fn on(value: JsonbRef<'_>, place: &Place<'_>) -> Result<Vec<FieldPath>, QueryError> {
    let error = |code, message: String| QueryError::location(code, message);
    let path = |text: &str, place: &Place<'_>| {
        check_path(text).map_err(|e| e.at(place))?;
        FieldPath::parse(text, place)
    };
    if let Some(text) = value.as_str() {
        return Ok(vec![path(text, place)?]);
    }
    let Some(array) = value.as_array() else {
        let found = value.kind().alias();
        let message = format!("$merge 'on' field must be either a string or an array of strings, but found {found}");
        return Err(error(51186, message).at(place));
    };
    let (mut paths, mut seen) = (Vec::new(), BTreeSet::new());
    for (i, value) in array.iter().enumerate() {
        let place = place.index(i);
        let Some(text) = value.as_str() else {
            let message = format!("$merge 'on' array elements must be strings, but found {}", value.kind().alias());
            return Err(error(51134, message).at(&place));
        };
        if !seen.insert(text) {
            return Err(error(31465, format!("Found a duplicate field '{text}'")).at(&place));
        }
        paths.push(path(text, &place)?);
    }
    if paths.is_empty() {
        let message = "If explicitly specifying $merge 'on', must include at least one field".to_owned();
        return Err(error(51187, message).at(place));
    }
    Ok(paths)
}

fn when_matched(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<WhenMatched, QueryError> {
    let place = &context.place;
    Ok(match (value.as_str(), value.as_array()) {
        (Some("replace"), _) => WhenMatched::Replace,
        (Some("keepExisting"), _) => WhenMatched::KeepExisting,
        (Some("merge"), _) => WhenMatched::Merge,
        (Some("fail"), _) => WhenMatched::Fail,
        (Some(other), _) => return Err(no_mode("whenMatched", other).at(place)),
        (_, Some(_)) => WhenMatched::Pipeline(MergePipeline {
            text: value.to_buf(),
            place: place.to_string(),
            now_ms: context.now_ms,
            outer: visible(context)?,
            variables: Vec::new(),
        }),
        _ => {
            let found = value.kind().alias();
            let message = format!("$merge 'whenMatched' field must be either a string or an array, but found {found}");
            return Err(QueryError::location(51191, message).at(place));
        }
    })
}

fn when_not_matched(value: JsonbRef<'_>, place: &Place<'_>) -> Result<WhenNotMatched, QueryError> {
    match value.as_str() {
        Some("insert") => Ok(WhenNotMatched::Insert),
        Some("discard") => Ok(WhenNotMatched::Discard),
        Some("fail") => Ok(WhenNotMatched::Fail),
        Some(other) => Err(no_mode("whenNotMatched", other).at(place)),
        None => Err(wrong_type("$merge", "whenNotMatched", value).at(place)),
    }
}

fn no_mode(field: &str, value: &str) -> QueryError {
    QueryError::bad_value(format!("Enumeration value '{value}' for field '{field}' is not a valid value."))
}

/// The fields of `new` in `old`.
fn united(old: JsonbRef<'_>, new: JsonbRef<'_>) -> Result<JsonbBuf, QueryError> {
    let (old, new) = (old.as_object(), new.as_object());
    scratch::build(old.map_or(0, |o| o.as_value().as_bytes().len()) + 64, |out| {
        out.begin_object();
        for entry in old.into_iter().flatten() {
            out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
            out.copy(new.and_then(|n| n.get_bytes(entry.name_bytes())).unwrap_or(entry.value));
        }
        for entry in new.into_iter().flatten() {
            if old.is_none_or(|o| o.get_bytes(entry.name_bytes()).is_none()) {
                out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
                out.copy(entry.value);
            }
        }
        out.end_object().map_err(too_large)
    })
}

/// A document with the `_id` of the one whose place it takes.
fn with_id(made: JsonbBuf, id: Option<JsonbRef<'_>>) -> Result<JsonbBuf, QueryError> {
    match (made.view().get("_id"), id) {
        (Some(new), Some(old)) if !equal(new, old) => {
            let message =
                "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?";
            Err(QueryError::new("ImmutableField", 66, message))
        }
        (None, Some(old)) => scratch::build(made.as_bytes().len() + old.as_bytes().len() + 16, |out| {
            out.begin_object();
            out.field("_id");
            out.copy(old);
            for entry in made.view().as_object().into_iter().flatten() {
                out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
                out.copy(entry.value);
            }
            out.end_object().map_err(too_large)
        }),
        _ => Ok(made),
    }
}
