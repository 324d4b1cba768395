//! `$regexMatch`, `$regexFind` and `$regexFindAll`, in time linear in the text for each match.
//!
//! A pattern that is constant is compiled when the query is parsed, others once for each evaluation.

use super::ast::Expr;
use super::datum::Datum;
use super::evaluate::evaluate;
use super::forms;
use super::parse::Parser;
use super::scope::Scope;
use crate::filter::Pattern;
use crate::pattern_count::PatternCount;
use crate::{Place, QueryError};
use quarrydb_jsonb::{JsonbRef, Value};
use std::borrow::Cow;
use std::rc::Rc;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Match,
    Find,
    FindAll,
}

/// One of the three operators.
#[derive(Debug)]
pub(super) struct RegexCall {
    kind: Kind,
    name: &'static str,
    input: Expr,
    pattern: Expr,
    options: Option<Expr>,
    compiled: Option<Box<Pattern>>,
}

impl RegexCall {
    /// Its arguments.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Expr> {
        [&self.input, &self.pattern].into_iter().chain(&self.options)
    }
}

pub(super) fn parse(p: &mut Parser, name: &str, operand: JsonbRef<'_>, place: &Place<'_>) -> Result<Expr, QueryError> {
    let (kind, name) = match name {
        "$regexFind" => (Kind::Find, "$regexFind"),
        "$regexFindAll" => (Kind::FindAll, "$regexFindAll"),
        _ => (Kind::Match, "$regexMatch"),
    };
    let Some(object) = operand.as_object() else { return Err(forms::needs_object(name, operand).at(place)) };
    let mut arguments = p.named(name, object, &["input", "regex"], &["options"], place)?;
    let options = arguments.pop().flatten();
    let (Some(pattern), Some(input)) = (arguments.pop().flatten(), arguments.pop().flatten()) else {
        return Err(forms::needs_object(name, operand).at(place));
    };
    let mut call = RegexCall { kind, name, input, pattern, options, compiled: None };
    if let (Expr::Constant(pattern), Some(Expr::Constant(_)) | None) = (&call.pattern, &call.options) {
        let options = match &call.options {
            Some(Expr::Constant(options)) => Datum::from(options.view()),
            _ => Datum::Missing,
        };
        let wanted = wanted(name, &Datum::from(pattern.view()), &options).map_err(|e| e.at(place))?;
        if let Some((text, options)) = wanted {
            let pattern =
                PatternCount::next().and_then(|nth| compile(&text, &options, nth)).map_err(|e| e.at(place))?;
            call.compiled = Some(Box::new(pattern));
        }
    }
    Ok(Expr::Regex(Box::new(call)))
}

/// The pattern and the options that are asked for; none where the pattern is null.
fn wanted(name: &str, pattern: &Datum<'_>, options: &Datum<'_>) -> Result<Option<(String, String)>, QueryError> {
    let option_text = match options.as_str() {
        Some(s) => s,
        None if options.is_nullish() => "",
        None => {
            let message = format!("{name} needs 'options' to be of type string, not {}", options.type_name());
            return Err(QueryError::location(51106, message));
        }
    };
    if pattern.is_nullish() {
        return Ok(None);
    }
    if option_text.contains('\0') {
        return Err(QueryError::location(51110, format!("{name}: 'options' cannot contain an embedded null byte")));
    }
    if let Some(text) = pattern.as_str() {
        if text.contains('\0') {
            return Err(QueryError::location(51109, format!("{name}: 'regex' cannot contain an embedded null byte")));
        }
        return Ok(Some((text.to_owned(), option_text.to_owned())));
    }
    match pattern.other() {
        Some(Value::Regex { pattern, options }) => {
            if !options.is_empty() && !option_text.is_empty() {
                let message = format!("{name}: found regex options specified in both 'regex' and 'options' fields");
                return Err(QueryError::location(51107, message));
            }
            let options = if options.is_empty() { option_text } else { options };
            Ok(Some((pattern.to_owned(), options.to_owned())))
        }
        _ => {
            let message = format!("{name} needs 'regex' to be of type string or regex, not {}", pattern.type_name());
            Err(QueryError::location(51105, message))
        }
    }
}

/// What a filter calls an invalid pattern (51091), expressions call 51111.
fn compile(text: &str, options: &str, nth: usize) -> Result<Pattern, QueryError> {
    Pattern::compile(text, options, nth).map_err(|e| match e.code() {
        51091 => QueryError::location(51111, e.message()),
        _ => e,
    })
}

/// Compiles a pattern that is not constant, or finds that it is the one of last time.
fn compiled<'a>(text: &str, options: &str, scope: &mut Scope<'a>) -> Result<Rc<Pattern>, QueryError> {
    let key = format!("{options}/{text}");
    if let Some((last, pattern)) = &scope.last_pattern
        && **last == *key
    {
        return Ok(Rc::clone(pattern));
    }
    scope.step(COMPILE_STEPS + text.len() as u64)?;
    let pattern = Rc::new(compile(text, options, DYNAMIC_NTH)?);
    scope.last_pattern = Some((key.into(), Rc::clone(&pattern)));
    Ok(pattern)
}

/// Compiling costs about so many steps.
const COMPILE_STEPS: u64 = 10_000;
/// A pattern that is not constant has the room of the pattern of this number in a query.
const DYNAMIC_NTH: usize = 64;

pub(super) fn evaluate_call<'a>(call: &'a RegexCall, scope: &mut Scope<'a>) -> Result<Datum<'a>, QueryError> {
    let input = evaluate(&call.input, scope)?;
    let fresh;
    let pattern = match &call.compiled {
        Some(pattern) => Some(&**pattern),
        None => {
            let pattern = evaluate(&call.pattern, scope)?;
            let options = match &call.options {
                Some(options) => evaluate(options, scope)?,
                None => Datum::Missing,
            };
            fresh = match wanted(call.name, &pattern, &options)? {
                Some((text, options)) => Some(compiled(&text, &options, scope)?),
                None => None,
            };
            fresh.as_deref()
        }
    };
    let nothing = |scope: &mut Scope<'a>| match call.kind {
        Kind::Match => Ok(Datum::Bool(false)),
        Kind::Find => Ok(Datum::Null),
        Kind::FindAll => Datum::array(Vec::new(), scope),
    };
    if input.is_nullish() {
        return nothing(scope);
    }
    let Some(text) = input.as_str() else {
        let message = format!("{} needs 'input' to be of type string, not {}", call.name, input.type_name());
        return Err(QueryError::location(51104, message));
    };
    let Some(pattern) = pattern else { return nothing(scope) };
    scope.step(1 + text.len() as u64 / BYTES_PER_STEP)?;
    let regex = pattern.regex();
    if call.kind == Kind::Match {
        return Ok(Datum::Bool(regex.is_match(text.as_bytes())));
    }
    let mut found = Vec::new();
    // Positions are counted on from the match before, so that all of them cost one pass over the text.
    let (mut counted_bytes, mut counted_chars) = (0, 0);
    let mut looked = moment();
    for captures in regex.captures_iter(text.as_bytes()) {
        let Some(whole) = captures.get(0) else { continue };
        // A short match may have cost a look at all of the rest, as with `.*b|a`: what it cost can only be measured.
        let now = moment();
        let cost = u64::try_from((now - looked).as_nanos()).unwrap_or(u64::MAX) / NANOSECONDS_PER_STEP;
        looked = now;
        scope.step(1 + cost)?;
        counted_chars += text.get(counted_bytes..whole.start()).map_or(0, |s| s.chars().count());
        counted_bytes = whole.start();
        let mut groups = Vec::new();
        for group in captures.iter().skip(1) {
            groups.push(match group {
                Some(group) => owned(text, group.start()..group.end(), scope)?,
                None => Datum::Null,
            });
        }
        let fields = vec![
            (Cow::Borrowed("match"), owned(text, whole.start()..whole.end(), scope)?),
            (Cow::Borrowed("idx"), Datum::count(counted_chars)),
            (Cow::Borrowed("captures"), Datum::array(groups, scope)?),
        ];
        found.push(Datum::object(fields, scope)?);
        if call.kind == Kind::Find {
            break;
        }
    }
    match call.kind {
        Kind::Find => Ok(found.pop().unwrap_or(Datum::Null)),
        _ => Datum::array(found, scope),
    }
}

#[allow(clippy::disallowed_methods, reason = "a cost is measured; nothing is stored or ordered by it")]
fn moment() -> Instant {
    Instant::now()
}

/// Text searched for the cost of one step.
const BYTES_PER_STEP: u64 = 64;
/// Time that one match may take for the cost of one step: some seconds for all steps of a budget.
const NANOSECONDS_PER_STEP: u64 = 64;

fn owned<'a>(text: &str, range: std::ops::Range<usize>, scope: &mut Scope<'a>) -> Result<Datum<'a>, QueryError> {
    Datum::text(Rc::<str>::from(text.get(range).unwrap_or_default()), scope)
}
