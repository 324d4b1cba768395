//! From JSON to the tree of an expression: literals, paths, variables, calls; constants are folded on the way.
//!
//! Takes a value of a body and what is known beside it; gives the tree. Depth is limited by [`NESTING_MAX`]. Operators
//! with a syntax of their own are read in `forms.rs`. Next: `forms.rs`, `registry.rs`.

use super::ast::{Call, Expr, Path};
use super::evaluate::evaluate;
use super::forms;
use super::let_variables::{self, LetVariables};
use super::registry::{self, Shape};
use super::scope::{Budget, Scope};
use crate::limits::{NESTING_MAX, PATH_PARTS_MAX};
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{ArrayRef, JsonbBuf, JsonbRef, Kind, NULL, ObjectRef};
use std::sync::Arc;

/// What the parser of one expression carries along.
#[derive(Debug)]
pub(super) struct Parser {
    now_ms: i64,
    /// The body's `let`, evaluated.
    constants: LetVariables,
    /// Variables in scope; the position is the slot.
    variables: Vec<Box<str>>,
    depth: usize,
    /// What folding constants may still take.
    fold_steps: u64,
    fold_bytes: usize,
}

/// What folding may take in one query: beyond that expressions stay as they are.
const FOLD_STEPS_MAX: u64 = 1 << 22;
const FOLD_BYTES_MAX: usize = 16 << 20;

/// Arrays and objects of more elements are searched for `$` before they are taken apart.
const LOOK_BEFORE_PARSING: usize = 64;

impl Parser {
    pub(super) fn new(context: &ParseContext<'_>) -> Result<Self, QueryError> {
        Ok(Self {
            now_ms: context.now_ms,
            constants: let_variables::visible(context)?,
            variables: Vec::new(),
            depth: 0,
            fold_steps: FOLD_STEPS_MAX,
            fold_bytes: FOLD_BYTES_MAX,
        })
    }

    /// Parses one expression.
    pub(super) fn expression(&mut self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Expr, QueryError> {
        match value.kind() {
            Kind::String => self.text(value, value.as_str().unwrap_or_default(), place),
            Kind::Array | Kind::Object => {
                if self.depth >= NESTING_MAX {
                    let message = format!("an expression nested deeper than {NESTING_MAX} levels");
                    return Err(QueryError::bad_value(message).at(place));
                }
                self.depth += 1;
                let parsed = match (value.as_array(), value.as_object()) {
                    (Some(array), _) => self.array(array, place),
                    (_, Some(object)) => self.object(object, place),
                    _ => Ok(Expr::Constant(value.to_buf())),
                };
                self.depth -= 1;
                parsed
            }
            _ => Ok(Expr::Constant(value.to_buf())),
        }
    }

    fn text(&self, value: JsonbRef<'_>, text: &str, place: &Place<'_>) -> Result<Expr, QueryError> {
        if let Some(variable) = text.strip_prefix("$$") {
            return self.variable(variable, place);
        }
        match text.strip_prefix('$') {
            Some("") => Err(QueryError::location(16872, "'$' by itself is not a valid field path").at(place)),
            Some(path) => self.field(path, place),
            None => Ok(Expr::Constant(value.to_buf())),
        }
    }

    fn field(&self, path: &str, place: &Place<'_>) -> Result<Expr, QueryError> {
        let path = field_path(path, place)?;
        // `$a` is short for `$$CURRENT.a`, which `$let` may bind anew.
        Ok(match self.slot("CURRENT") {
            Some(slot) => Expr::Variable { slot, path },
            None => Expr::Root(path),
        })
    }

    /// The operation's time.
    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// `$$CURRENT`.
    fn current(&self) -> Expr {
        match self.slot("CURRENT") {
            Some(slot) => Expr::Variable { slot, path: Path::default() },
            None => Expr::Root(Path::default()),
        }
    }

    fn slot(&self, name: &str) -> Option<usize> {
        self.variables.iter().rposition(|v| **v == *name)
    }

    fn variable(&self, text: &str, place: &Place<'_>) -> Result<Expr, QueryError> {
        let (name, rest) = text.split_once('.').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let path = match rest {
            Some(rest) => field_path(rest, place)?,
            None => Path::default(),
        };
        if name.is_empty() {
            return Err(QueryError::failed_to_parse("empty variable names are not allowed").at(place));
        }
        if let Some(slot) = self.slot(name) {
            return Ok(Expr::Variable { slot, path });
        }
        if let Some((_, value)) = self.constants.iter().rfind(|(n, _)| **n == *name) {
            return Ok(match value {
                Some(value) => Expr::Shared { value: Arc::clone(value), path },
                None => Expr::Missing,
            });
        }
        match name {
            "ROOT" | "CURRENT" => Ok(Expr::Root(path)),
            "REMOVE" => Ok(Expr::Missing),
            "NOW" if path.is_empty() => constant(|out| out.date(self.now_ms)),
            "NOW" => Ok(Expr::Missing),
            "KEEP" | "PRUNE" | "DESCEND" => constant(|out| out.string(&name.to_lowercase())),
            "CLUSTER_TIME" | "USER_ROLES" => {
                let message = format!("$${name} is not supported: this server has no such value");
                Err(QueryError::location(51144, message).at(place))
            }
            _ => Err(QueryError::location(17276, format!("use of undefined variable: {name}")).at(place)),
        }
    }

    fn array(&mut self, array: ArrayRef<'_>, place: &Place<'_>) -> Result<Expr, QueryError> {
        if array.len() > LOOK_BEFORE_PARSING && is_literal(array.as_value()) {
            return Ok(Expr::Constant(array.as_value().to_buf()));
        }
        let mut items = Vec::new();
        for (i, item) in array.iter().enumerate() {
            items.push(self.expression(item, &place.index(i))?);
        }
        if items.iter().all(|i| matches!(i, Expr::Constant(_))) {
            return Ok(self.fold(Expr::Array(items)));
        }
        Ok(Expr::Array(items))
    }

    fn object(&mut self, object: ObjectRef<'_>, place: &Place<'_>) -> Result<Expr, QueryError> {
        let first = object.iter().next();
        if let Some(first) = first
            && first.name().starts_with('$')
        {
            if object.len() != 1 {
                let message = format!(
                    "an object representing an expression must have exactly one field, and '{}' is not alone",
                    first.name()
                );
                return Err(QueryError::location(15983, message).at(place));
            }
            return self.operator(first.name(), first.value, &place.name(first.name()));
        }
        if object.len() > LOOK_BEFORE_PARSING && is_literal(object.as_value()) {
            return Ok(Expr::Constant(object.as_value().to_buf()));
        }
        let mut fields = Vec::new();
        for field in object {
            let place = place.name(field.name());
            check_field_name(field.name(), &place)?;
            fields.push((field.name().into(), self.expression(field.value, &place)?));
        }
        if fields.iter().all(|(_, e)| matches!(e, Expr::Constant(_))) {
            return Ok(self.fold(Expr::Object(fields)));
        }
        Ok(Expr::Object(fields))
    }

    fn operator(&mut self, name: &str, operand: JsonbRef<'_>, place: &Place<'_>) -> Result<Expr, QueryError> {
        if let Some(parsed) = forms::parse(self, name, operand, place) {
            return parsed;
        }
        let Some(operator) = registry::find(name) else {
            return Err(forms::unknown(name).at(place));
        };
        let mut arguments = match operator.shape {
            Shape::Positional(least, most) => self.positional(name, operand, least, most, place)?,
            Shape::Named(required, optional) => {
                let Some(object) = operand.as_object() else {
                    return Err(forms::needs_object(name, operand).at(place));
                };
                self.named(name, object, required, optional, place)?
            }
            Shape::NamedOrFirst(required, optional) => {
                let by_name =
                    operand.as_object().filter(|o| o.iter().next().is_none_or(|e| !e.name().starts_with('$')));
                match by_name {
                    Some(object) if name == "$getField" => self.named(name, object, &["field", "input"], &[], place)?,
                    Some(object) => self.named(name, object, required, optional, place)?,
                    None => {
                        let mut arguments = self.positional(name, operand, 1, 1, place)?;
                        arguments.resize_with(required.len() + optional.len(), || None);
                        arguments
                    }
                }
            }
        };
        if matches!(name, "$setField" | "$unsetField") && !matches!(arguments.first(), Some(Some(Expr::Constant(_)))) {
            let message = format!("{name} requires 'field' to be a constant; $literal keeps a '$' in it");
            let is_path = matches!(arguments.first(), Some(Some(Expr::Root(_) | Expr::Variable { .. })));
            let code = if is_path { 4_161_108 } else { 4_161_106 };
            return Err(QueryError::location(code, message).at(place));
        }
        if name == "$getField"
            && let Some(input @ None) = arguments.last_mut()
        {
            *input = Some(self.current());
        }
        let constant = arguments.iter().flatten().all(|e| matches!(e, Expr::Constant(_) | Expr::Missing));
        let call = Expr::Call(Box::new(Call { operator, arguments }));
        Ok(if constant { self.fold(call) } else { call })
    }

    /// Arguments in an array, or one alone.
    pub(super) fn positional(
        &mut self,
        name: &str,
        operand: JsonbRef<'_>,
        least: usize,
        most: usize,
        place: &Place<'_>,
    ) -> Result<Vec<Option<Expr>>, QueryError> {
        let mut arguments = Vec::new();
        match operand.as_array() {
            Some(array) => {
                check_arity(name, array.len(), least, most, place)?;
                for (i, item) in array.iter().enumerate() {
                    arguments.push(Some(self.expression(item, &place.index(i))?));
                }
            }
            None => {
                check_arity(name, 1, least, most, place)?;
                arguments.push(Some(self.expression(operand, place)?));
            }
        }
        Ok(arguments)
    }

    /// Arguments by name, in the order of `required`, then `optional`.
    pub(super) fn named(
        &mut self,
        name: &str,
        object: ObjectRef<'_>,
        required: &[&str],
        optional: &[&str],
        place: &Place<'_>,
    ) -> Result<Vec<Option<Expr>>, QueryError> {
        let mut arguments = Vec::new();
        arguments.resize_with(required.len() + optional.len(), || None);
        for field in object {
            let place = place.name(field.name());
            let Some(at) = required.iter().chain(optional).position(|n| *n == field.name()) else {
                let known: Vec<_> = required.iter().chain(optional).copied().collect();
                let message =
                    format!("unrecognized argument to {name}: '{}'; it takes {}", field.name(), known.join(", "));
                return Err(forms::named_error(name, "unknown", message).at(&place));
            };
            arguments[at] = Some(self.expression(field.value, &place)?);
        }
        if let Some(missing) = (0..required.len()).find(|&i| arguments[i].is_none()) {
            let message = format!("missing '{}' parameter to {name}", required[missing]);
            return Err(forms::named_error(name, required[missing], message).at(place));
        }
        Ok(arguments)
    }

    /// An expression of constants by its value. One that fails is kept: it fails where it is evaluated, if it is.
    pub(super) fn fold(&mut self, e: Expr) -> Expr {
        let budget = Budget { bytes: self.fold_bytes, steps: self.fold_steps, go_on: None };
        let folded = {
            let mut scope = Scope::new(NULL, budget);
            let value = evaluate(&e, &mut scope);
            self.fold_steps = self.fold_steps.saturating_sub(scope.steps());
            match value {
                Ok(v) if v.kind().is_none() => Some(Expr::Missing),
                Ok(v) => v.to_buf().ok().map(Expr::Constant),
                Err(_) => None,
            }
        };
        if let Some(Expr::Constant(value)) = &folded {
            self.fold_bytes = self.fold_bytes.saturating_sub(value.as_bytes().len());
        }
        folded.unwrap_or(e)
    }

    /// Runs `parse` with `names` bound; gives the slot of the first beside its result.
    pub(super) fn with_variables<T>(
        &mut self,
        names: &[&str],
        parse: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<(usize, T), QueryError> {
        let slot = self.variables.len();
        self.variables.extend(names.iter().map(|&n| Box::from(n)));
        let parsed = parse(self);
        self.variables.truncate(slot);
        parsed.map(|p| (slot, p))
    }
}

/// A constant written by `write`.
fn constant(write: impl FnOnce(&mut quarrydb_jsonb::Builder)) -> Result<Expr, QueryError> {
    let mut out = quarrydb_jsonb::Builder::new();
    write(&mut out);
    Ok(Expr::Constant(JsonbBuf::from_valid(out.take())))
}

/// Whether a value holds nothing that an expression would not take literally.
fn is_literal(v: JsonbRef<'_>) -> bool {
    match v.kind() {
        Kind::String => !v.as_str_bytes().is_some_and(|s| s.starts_with(b"$")),
        Kind::Array => v.as_array().into_iter().flatten().all(is_literal),
        Kind::Object => v.as_object().into_iter().flatten().all(|e| {
            !e.name().is_empty() && !e.name().starts_with('$') && !e.name().contains('.') && is_literal(e.value)
        }),
        _ => true,
    }
}

fn field_path(text: &str, place: &Place<'_>) -> Result<Path, QueryError> {
    if text.ends_with('.') {
        return Err(QueryError::location(40353, format!("the field path '{text}' must not end with '.'")).at(place));
    }
    if text.contains('\0') {
        return Err(QueryError::location(16411, "field path names may not contain NUL").at(place));
    }
    let parts: Path = text.split('.').take(PATH_PARTS_MAX + 1).map(Box::from).collect();
    if parts.len() > PATH_PARTS_MAX {
        let message = format!("a field path has at most {PATH_PARTS_MAX} parts");
        return Err(QueryError::new("Overflow", 15, message).at(place));
    }
    for part in &parts {
        if part.is_empty() {
            let message = format!("the field path '{text}' holds an empty name");
            return Err(QueryError::location(15998, message).at(place));
        }
        if part.starts_with('$') {
            let message = format!("names in the field path '{text}' may not start with '$'; consider $getField");
            return Err(QueryError::location(16410, message).at(place));
        }
    }
    Ok(parts)
}

fn check_field_name(name: &str, place: &Place<'_>) -> Result<(), QueryError> {
    if name.starts_with('$') {
        let message = format!("the field name '{name}' may not start with '$'; consider $setField");
        return Err(QueryError::location(16410, message).at(place));
    }
    if name.contains('.') {
        let message = format!("the field name '{name}' may not contain '.'; consider $setField");
        return Err(QueryError::location(16412, message).at(place));
    }
    if name.is_empty() {
        return Err(QueryError::location(15998, "field names in an expression may not be empty").at(place));
    }
    Ok(())
}

/// User variables begin with a lower-case letter or a byte above ASCII; then letters, digits and underscores.
pub(crate) fn check_variable_name(name: &str, place: &Place<'_>) -> Result<(), QueryError> {
    if name == "CURRENT" {
        return Ok(());
    }
    let first = name.bytes().next();
    if first.is_none_or(|b| !(b.is_ascii_lowercase() || b >= 0x80)) {
        let message = format!("'{name}' starts with an invalid character for a user variable name");
        return Err(QueryError::failed_to_parse(message).at(place));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80) {
        let message = format!("'{name}' contains an invalid character for a variable name");
        return Err(QueryError::failed_to_parse(message).at(place));
    }
    Ok(())
}

fn check_arity(name: &str, found: usize, least: usize, most: usize, place: &Place<'_>) -> Result<(), QueryError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let (code, wanted) = match (least, most) {
        (1, 1) if super::convert::SHORT_FORMS.contains(&name) => (50723, "a single argument".to_owned()),
        (1, 1) if forms::DATE_PARTS.contains(&name) => (40536, "exactly 1 argument".to_owned()),
        (l, usize::MAX) if name == "$setEquals" => (17045, format!("at least {l} arguments")),
        (1, 1) => (16020, "exactly 1 argument".to_owned()),
        (l, m) if l == m => (16020, format!("exactly {l} arguments")),
        (l, usize::MAX) => (28667, format!("at least {l} arguments")),
        (l, m) => (28667, format!("at least {l} arguments and at most {m}")),
    };
    Err(QueryError::location(code, format!("{name} takes {wanted}, {found} were passed in")).at(place))
}
