//! The top-level fields of a body: none that is unknown, each of the type it should have.
//!
//! Takes the encoded object and the names that the operation takes; gives typed options, or 400 naming the field and
//! what was wanted. Extended JSON numbers are numbers here as everywhere.

use std::time::Duration;

use quarrydb::{Collection, Deadline, WriteOptions};
use quarrydb_jsonb::{JsonbRef, Kind, ObjectRef, Value};
use quarrydb_query::PatternCount;

use crate::error::{ApiError, Result};

/// Taken by every operation.
const EVERYWHERE: [&str; 2] = ["comment", "maxTimeMS"];
/// `maxTimeMS` beyond this is no number of milliseconds (MongoDB's bound).
const MAX_TIME_MS_MAX: i64 = i32::MAX as i64;

/// The fields of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    object: ObjectRef<'a>,
    /// When they were first looked at: `maxTimeMS` counts from then.
    begun: Deadline,
}

impl<'a> Fields<'a> {
    /// Checks that every field is one of `taken`, of `further`, or one that every operation takes.
    ///
    /// # Errors
    /// 400: no object, or a field that is unknown to `operation`.
    pub(crate) fn new(body: JsonbRef<'a>, operation: &str, taken: &[&str], further: &[&str]) -> Result<Self> {
        let Some(object) = body.as_object() else {
            return Err(ApiError::wrong_type("the body", "a JSON object", body));
        };
        for entry in object.iter() {
            let name = entry.name();
            if !taken.contains(&name) && !EVERYWHERE.contains(&name) && !further.contains(&name) {
                let known: Vec<&str> = taken.iter().chain(&EVERYWHERE).chain(further).copied().collect();
                let message = format!("{operation} takes no field {name:?}: it takes {}", known.join(", "));
                return Err(ApiError::bad("IDLUnknownField", 40415, message).at(name));
            }
        }
        Ok(Self { object, begun: Deadline::after(Duration::ZERO) })
    }

    /// A field's value, of whatever type.
    pub(crate) fn get(&self, name: &str) -> Option<JsonbRef<'a>> {
        self.object.get(name)
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// 400 naming it.
    pub(crate) fn required(&self, name: &str) -> Result<JsonbRef<'a>> {
        self.get(name).ok_or_else(|| missing(name))
    }

    /// An object, where the field is there.
    ///
    /// # Errors
    /// 400 for another type.
    pub(crate) fn object(&self, name: &str) -> Result<Option<JsonbRef<'a>>> {
        match self.get(name) {
            Some(v) if v.kind() != Kind::Object => Err(ApiError::wrong_type(name, "an object", v)),
            other => Ok(other),
        }
    }

    /// An array, where the field is there.
    ///
    /// # Errors
    /// 400 for another type.
    pub(crate) fn array(&self, name: &str) -> Result<Option<JsonbRef<'a>>> {
        match self.get(name) {
            Some(v) if v.kind() != Kind::Array => Err(ApiError::wrong_type(name, "an array", v)),
            other => Ok(other),
        }
    }

    /// A string that must be there.
    ///
    /// # Errors
    /// 400 for another type, or none.
    pub(crate) fn string(&self, name: &str) -> Result<&'a str> {
        let value = self.required(name)?;
        value.as_str().ok_or_else(|| ApiError::wrong_type(name, "a string", value))
    }

    /// A boolean, `default` where the field is not there.
    ///
    /// # Errors
    /// 400 for another type.
    pub(crate) fn bool(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(v) => v.as_bool().ok_or_else(|| ApiError::wrong_type(name, "true or false", v)),
        }
    }

    /// A count of documents: a whole number from 0.
    ///
    /// # Errors
    /// 400 for another type, a fraction, or a negative number.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let n = whole(name, value)?;
        let count = u64::try_from(n);
        count
            .map(Some)
            .map_err(|_| ApiError::bad("Location51024", 51024, format!("{name} must be 0 or more, not {n}")).at(name))
    }

    /// When the operation must end: `maxTimeMS`, else what the server is set to.
    ///
    /// # Errors
    /// 400 for what is no number of milliseconds.
    pub(crate) fn deadline(&self, default: Option<Duration>) -> Result<Option<Deadline>> {
        let default = default.map(|after| self.begun.plus(after));
        let Some(value) = self.get("maxTimeMS") else { return Ok(default) };
        let ms = whole("maxTimeMS", value)?;
        match u64::try_from(ms) {
            Ok(0) => Ok(default),
            Ok(n) if ms <= MAX_TIME_MS_MAX => Ok(Some(self.begun.plus(Duration::from_millis(n)))),
            _ => {
                let message = format!("maxTimeMS must be from 0 to {MAX_TIME_MS_MAX}, not {ms}");
                Err(ApiError::bad_value(message).at("maxTimeMS"))
            }
        }
    }

    /// Opens the count of regular expressions for what is parsed next: they are compiled as long as `maxTimeMS` allows.
    ///
    /// # Errors
    /// As [`Fields::deadline`].
    pub(crate) fn patterns(&self) -> Result<PatternCount> {
        Ok(match self.deadline(None)? {
            Some(deadline) => PatternCount::open_until(move || !deadline.is_over()),
            None => PatternCount::open(),
        })
    }

    /// `writeConcern` and `maxTimeMS` of a write.
    ///
    /// # Errors
    /// 400 for fields that a write concern has not, and for more members than this server is.
    pub(crate) fn write_options(&self, default: Option<Duration>) -> Result<WriteOptions> {
        let mut options = WriteOptions { deadline: self.deadline(default)?, ..WriteOptions::default() };
        let Some(concern) = self.object("writeConcern")?.and_then(JsonbRef::as_object) else { return Ok(options) };
        for entry in concern.iter() {
            match entry.name() {
                "j" => {
                    let j = entry.value.as_bool();
                    options.journal =
                        Some(j.ok_or_else(|| ApiError::wrong_type("writeConcern.j", "true or false", entry.value))?);
                }
                "w" => check_w(entry.value)?,
                "wtimeout" => {
                    whole("writeConcern.wtimeout", entry.value)?;
                }
                other => {
                    let message = format!("writeConcern takes no field {other:?}: it takes j, w, wtimeout");
                    let place = format!("writeConcern.{other}");
                    return Err(ApiError::bad("IDLUnknownField", 40415, message).at(&place));
                }
            }
        }
        Ok(options)
    }

    /// `hint`: the name or the keys of an index of `collection`.
    ///
    /// # Errors
    /// 400 for one that is not there, or another type.
    pub(crate) fn check_hint(&self, collection: &Collection) -> Result<()> {
        let Some(hint) = self.get("hint") else { return Ok(()) };
        if !matches!(hint.kind(), Kind::String | Kind::Object) {
            return Err(ApiError::wrong_type("hint", "an index's name or its keys", hint));
        }
        if collection.takes_hint(hint) {
            return Ok(());
        }
        let mut text = Vec::new();
        quarrydb_jsonb::print(hint, quarrydb_jsonb::Style::Relaxed, &mut text);
        let message = format!(
            "hint provided does not correspond to an existing index: {} names none of {}.{}",
            String::from_utf8_lossy(&text),
            collection.database_name(),
            collection.name()
        );
        Err(ApiError::bad_value(message).at("hint"))
    }
}

/// 400 for a field that is not there.
pub(crate) fn missing(name: &str) -> ApiError {
    ApiError::bad("IDLFailedToParse", 40414, format!("the field {name:?} is missing")).at(name)
}

/// A whole number of any numeric type.
fn whole(name: &str, value: JsonbRef<'_>) -> Result<i64> {
    let fraction = |text: String| {
        ApiError::bad("FailedToParse", 9, format!("{name} must be a whole number of 64 bits, not {text}")).at(name)
    };
    match value.value() {
        Value::Int32(n) => Ok(i64::from(n)),
        Value::Int64(n) => Ok(n),
        Value::Double(n) if n.fract() == 0.0 && n.abs() < (1_i64 << 53) as f64 => Ok(n as i64),
        Value::Double(n) => Err(fraction(n.to_string())),
        Value::Decimal128(n) => n.to_string().parse().map_err(|_| fraction(n.to_string())),
        _ => Err(ApiError::wrong_type(name, "a number", value)),
    }
}

/// `w`: this server is one member, which is also the majority.
fn check_w(w: JsonbRef<'_>) -> Result<()> {
    match w.value() {
        Value::String("majority") => Ok(()),
        Value::String(other) => {
            let message = format!("writeConcern.w {other:?}: this server knows \"majority\", 0 and 1");
            Err(ApiError::bad("UnknownReplWriteConcern", 79, message).at("writeConcern.w"))
        }
        _ => match whole("writeConcern.w", w)? {
            0 | 1 => Ok(()),
            n => {
                let message = format!("writeConcern.w {n}: this server is one member: \"majority\", 0 or 1");
                Err(ApiError::bad_value(message).at("writeConcern.w"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    fn with<T>(json: &str, taken: &[&str], read: impl Fn(Fields<'_>) -> Result<T>) -> Result<T> {
        let body = quarrydb_jsonb::parse(json.as_bytes()).unwrap();
        Fields::new(body.view(), "find", taken, &[]).and_then(read)
    }

    #[test]
    fn an_unknown_field_is_named() {
        let e = with(r#"{"filter": {}, "limt": 5}"#, &["filter", "limit"], |_| Ok(())).unwrap_err();
        assert_eq!((e.name(), e.status().as_u16()), ("IDLUnknownField", 400));
        assert!(e.message().contains("\"limt\"") && e.message().contains("limit"), "{}", e.message());
        assert!(with("[]", &[], |_| Ok(())).is_err());
        assert!(with(r#"{"comment": [1], "maxTimeMS": 5}"#, &[], |_| Ok(())).is_ok());
    }

    #[test]
    fn counts_are_whole_and_not_negative() {
        let limit = |json: &str| with(json, &["limit"], |f| f.count("limit"));
        assert_eq!(limit("{}").unwrap(), None);
        for five in ["5", "5.0", r#"{"$numberInt": "5"}"#, r#"{"$numberLong": "5"}"#, r#"{"$numberDecimal": "5"}"#] {
            assert_eq!(limit(&format!(r#"{{"limit": {five}}}"#)).unwrap(), Some(5), "{five}");
        }
        for wrong in ["-1", "1.5", "\"5\"", "null", "true", "1e300", r#"{"$numberDouble": "NaN"}"#] {
            let e = limit(&format!(r#"{{"limit": {wrong}}}"#)).unwrap_err();
            assert!(e.status() == 400 && e.message().contains("limit"), "{wrong}: {}", e.message());
        }
    }

    #[test]
    fn a_write_concern_says_whether_to_sync() {
        let journal = |json: &str| with(json, &["writeConcern"], |f| f.write_options(None)).map(|o| o.journal);
        assert_eq!(journal("{}").unwrap(), None);
        assert_eq!(journal(r#"{"writeConcern": {"j": false, "w": 1, "wtimeout": 100}}"#).unwrap(), Some(false));
        assert_eq!(journal(r#"{"writeConcern": {"w": "majority"}}"#).unwrap(), None);
        for wrong in [r#"{"j": 1}"#, r#"{"w": 3}"#, r#"{"w": "moon"}"#, r#"{"jay": true}"#, "5"] {
            assert!(journal(&format!(r#"{{"writeConcern": {wrong}}}"#)).is_err(), "{wrong}");
        }
    }
}
