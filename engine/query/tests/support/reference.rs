//! A second, naive meaning of filters, over values that share nothing with the code under test.
//!
//! Slow and plain: all candidates of a path are listed first, each in its own copy, then each is tested. Numbers are
//! small enough to be exact as doubles. Written from MongoDB's manual, not from `path_walk.rs`.

use std::cmp::Ordering;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum V {
    Null,
    Bool(bool),
    Int(i32),
    Double(f64),
    Text(String),
    Array(Vec<V>),
    Object(Vec<(String, V)>),
}

/// A condition on one value or path.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Eq(V),
    Ne(V),
    Gt(V),
    Gte(V),
    Lt(V),
    Lte(V),
    In(Vec<V>),
    Nin(Vec<V>),
    Exists(bool),
    Type(&'static str),
    Size(usize),
    Mod(i32, i32),
    All(Vec<V>),
    Not(Vec<Op>),
    ElemValue(Vec<Op>),
    ElemObject(Vec<Q>),
}

/// A filter.
#[derive(Clone, Debug)]
pub(crate) enum Q {
    And(Vec<Q>),
    Or(Vec<Q>),
    Nor(Vec<Q>),
    Field(String, Vec<Op>),
}

impl V {
    pub(crate) fn json(&self) -> String {
        match self {
            V::Null => "null".to_owned(),
            V::Bool(b) => b.to_string(),
            V::Int(n) => n.to_string(),
            V::Double(d) => format!("{d:?}"),
            V::Text(s) => format!("{s:?}"),
            V::Array(a) => format!("[{}]", a.iter().map(V::json).collect::<Vec<_>>().join(", ")),
            V::Object(o) => {
                let fields: Vec<_> = o.iter().map(|(k, v)| format!("{k:?}: {}", v.json())).collect();
                format!("{{{}}}", fields.join(", "))
            }
        }
    }

    fn bracket(&self) -> u8 {
        match self {
            V::Null => 0,
            V::Int(_) | V::Double(_) => 1,
            V::Text(_) => 2,
            V::Object(_) => 3,
            V::Array(_) => 4,
            V::Bool(_) => 5,
        }
    }

    fn number(&self) -> f64 {
        match self {
            V::Int(n) => f64::from(*n),
            V::Double(d) => *d,
            _ => f64::NAN,
        }
    }

    fn field(&self, name: &str) -> Option<&V> {
        match self {
            V::Object(fields) => fields.iter().find(|(k, _)| k == name).map(|(_, v)| v),
            _ => None,
        }
    }
}

pub(crate) fn order(a: &V, b: &V) -> Ordering {
    a.bracket().cmp(&b.bracket()).then_with(|| match (a, b) {
        (V::Text(a), V::Text(b)) => a.cmp(b),
        (V::Bool(a), V::Bool(b)) => a.cmp(b),
        (V::Array(a), V::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|o| o.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (V::Object(a), V::Object(b)) => {
            let field = |((ka, va), (kb, vb)): (&(String, V), &(String, V))| {
                va.bracket().cmp(&vb.bracket()).then_with(|| ka.cmp(kb)).then_with(|| order(va, vb))
            };
            let first = a.iter().zip(b).map(field).find(|o| o.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (V::Null, V::Null) => Ordering::Equal,
        _ => a.number().partial_cmp(&b.number()).unwrap(),
    })
}

/// Everything that `path` may mean in `value`; none for what is missing. Arrays at the end are not taken apart here.
fn candidates(value: &V, path: &[&str]) -> Vec<Option<V>> {
    let Some((name, rest)) = path.split_first() else { return vec![Some(value.clone())] };
    match value {
        V::Object(_) => match value.field(name) {
            None => vec![None],
            Some(inner @ V::Array(_)) if !rest.is_empty() => inside(inner, rest),
            Some(inner) => candidates(inner, rest),
        },
        _ => vec![None],
    }
}

/// The same for the elements of an array that the path has met on its way.
fn inside(array: &V, path: &[&str]) -> Vec<Option<V>> {
    let V::Array(elements) = array else { return candidates(array, path) };
    let mut all = Vec::new();
    for (i, element) in elements.iter().enumerate() {
        if matches!(element, V::Object(_)) {
            all.extend(candidates(element, path));
        }
        if path[0] == i.to_string() {
            match element {
                // Marked as a whole: a position has named it.
                _ if path.len() == 1 => all.push(Some(V::Object(vec![("$whole".to_owned(), element.clone())]))),
                V::Array(_) => all.extend(inside(element, &path[1..])),
                V::Object(_) => all.extend(candidates(element, &path[1..])),
                _ => {}
            }
        }
    }
    all
}

fn is_type(value: &V, name: &str) -> bool {
    matches!(
        (value, name),
        (V::Null, "null")
            | (V::Bool(_), "bool")
            | (V::Int(_), "int" | "number")
            | (V::Double(_), "double" | "number")
            | (V::Text(_), "string")
            | (V::Array(_), "array")
            | (V::Object(_), "object")
    )
}

/// One candidate and one operator that asks nothing of a whole path.
fn one(op: &Op, candidate: Option<&V>) -> bool {
    let compare = |operand: &V, takes: fn(Ordering) -> bool| match candidate {
        None => *operand == V::Null && takes(Ordering::Equal),
        Some(v) => v.bracket() == operand.bracket() && takes(order(v, operand)),
    };
    match op {
        Op::Eq(v) => compare(v, Ordering::is_eq),
        Op::Gt(v) => compare(v, Ordering::is_gt),
        Op::Gte(v) => compare(v, Ordering::is_ge),
        Op::Lt(v) => compare(v, Ordering::is_lt),
        Op::Lte(v) => compare(v, Ordering::is_le),
        Op::In(list) => list.iter().any(|v| compare(v, Ordering::is_eq)),
        Op::Exists(true) => candidate.is_some(),
        Op::Type(name) => candidate.is_some_and(|v| is_type(v, name)),
        Op::Mod(divisor, remainder) => match candidate {
            Some(v @ (V::Int(_) | V::Double(_))) => v.number().trunc() % f64::from(*divisor) == f64::from(*remainder),
            _ => false,
        },
        Op::Size(n) => matches!(candidate, Some(V::Array(a)) if a.len() == *n),
        Op::ElemValue(ops) => match candidate {
            Some(V::Array(a)) => a.iter().any(|v| ops.iter().all(|op| on_value(op, v))),
            _ => false,
        },
        Op::ElemObject(qs) => match candidate {
            Some(V::Array(a)) => a.iter().any(|v| match v {
                V::Object(_) => qs.iter().all(|q| matches(q, v)),
                // An array is taken as an object of its positions.
                V::Array(inner) => {
                    let fields = inner.iter().enumerate().map(|(i, v)| (i.to_string(), v.clone())).collect();
                    let object = V::Object(fields);
                    qs.iter().all(|q| matches(q, &object))
                }
                _ => false,
            }),
            _ => false,
        },
        _ => unreachable!("asked of whole paths"),
    }
}

fn on_value(op: &Op, value: &V) -> bool {
    match op {
        Op::Ne(v) => !one(&Op::Eq(v.clone()), Some(value)),
        Op::Nin(list) => !one(&Op::In(list.clone()), Some(value)),
        Op::Exists(false) => false,
        Op::Not(ops) => !ops.iter().all(|op| on_value(op, value)),
        Op::All(list) => !list.is_empty() && list.iter().all(|v| one(&Op::Eq(v.clone()), Some(value))),
        _ => one(op, Some(value)),
    }
}

fn on_path(op: &Op, path: &[&str], document: &V) -> bool {
    match op {
        Op::Ne(v) => return !on_path(&Op::Eq(v.clone()), path, document),
        Op::Nin(list) => return !on_path(&Op::In(list.clone()), path, document),
        Op::Exists(false) => return !on_path(&Op::Exists(true), path, document),
        Op::Not(ops) => return !ops.iter().all(|op| on_path(op, path, document)),
        Op::All(list) => {
            return !list.is_empty() && list.iter().all(|v| on_path(&Op::Eq(v.clone()), path, document));
        }
        _ => {}
    }
    let whole = matches!(op, Op::Exists(_) | Op::Size(_) | Op::ElemValue(_) | Op::ElemObject(_));
    candidates(document, path).iter().any(|candidate| match candidate {
        None => one(op, None),
        Some(marked) if marked.field("$whole").is_some() => one(op, marked.field("$whole")),
        Some(v @ V::Array(elements)) if !whole => elements.iter().any(|e| one(op, Some(e))) || one(op, Some(v)),
        Some(v) => one(op, Some(v)),
    })
}

/// Whether a document matches.
pub(crate) fn matches(q: &Q, document: &V) -> bool {
    match q {
        Q::And(qs) => qs.iter().all(|q| matches(q, document)),
        Q::Or(qs) => qs.iter().any(|q| matches(q, document)),
        Q::Nor(qs) => !qs.iter().any(|q| matches(q, document)),
        Q::Field(path, ops) => {
            let parts: Vec<&str> = path.split('.').collect();
            ops.iter().all(|op| on_path(op, &parts, document))
        }
    }
}

fn list(values: &[V]) -> String {
    V::Array(values.to_vec()).json()
}

impl Op {
    /// The operator's name, with its quotes.
    pub(crate) fn name(&self) -> String {
        self.json().split(':').next().unwrap_or_default().to_owned()
    }

    fn json(&self) -> String {
        match self {
            Op::Eq(v) => format!(r#""$eq": {}"#, v.json()),
            Op::Ne(v) => format!(r#""$ne": {}"#, v.json()),
            Op::Gt(v) => format!(r#""$gt": {}"#, v.json()),
            Op::Gte(v) => format!(r#""$gte": {}"#, v.json()),
            Op::Lt(v) => format!(r#""$lt": {}"#, v.json()),
            Op::Lte(v) => format!(r#""$lte": {}"#, v.json()),
            Op::In(l) => format!(r#""$in": {}"#, list(l)),
            Op::Nin(l) => format!(r#""$nin": {}"#, list(l)),
            Op::Exists(b) => format!(r#""$exists": {b}"#),
            Op::Type(t) => format!(r#""$type": "{t}""#),
            Op::Size(n) => format!(r#""$size": {n}"#),
            Op::Mod(d, r) => format!(r#""$mod": [{d}, {r}]"#),
            Op::All(l) => format!(r#""$all": {}"#, list(l)),
            Op::Not(ops) => format!(r#""$not": {}"#, ops_json(ops)),
            Op::ElemValue(ops) => format!(r#""$elemMatch": {}"#, ops_json(ops)),
            Op::ElemObject(qs) => format!(r#""$elemMatch": {{"$and": [{}]}}"#, qs_json(qs)),
        }
    }
}

/// Operators as one object; the generator makes each name once.
fn ops_json(ops: &[Op]) -> String {
    format!("{{{}}}", ops.iter().map(Op::json).collect::<Vec<_>>().join(", "))
}

fn qs_json(qs: &[Q]) -> String {
    qs.iter().map(Q::json).collect::<Vec<_>>().join(", ")
}

impl Q {
    pub(crate) fn json(&self) -> String {
        match self {
            Q::And(qs) => format!(r#"{{"$and": [{}]}}"#, qs_json(qs)),
            Q::Or(qs) => format!(r#"{{"$or": [{}]}}"#, qs_json(qs)),
            Q::Nor(qs) => format!(r#"{{"$nor": [{}]}}"#, qs_json(qs)),
            Q::Field(path, ops) => format!("{{{path:?}: {}}}", ops_json(ops)),
        }
    }
}
