//! The condition of a partial index: which conditions may be one, and which queries imply one.
//!
//! Takes parsed filters. A query may use a partial index only where every document that it matches is in the index; what
//! is said here must be sure, so a doubt is a no.

use quarrydb_jsonb::{JsonbRef, Kind, compare, type_rank};
use quarrydb_query::filter::{CompareOp, Comparison, FieldTest, Node, Test};

/// Whether a condition may be that of a partial index.
///
/// # Errors
/// MongoDB's words for what may not.
pub(super) fn check(node: &Node) -> Result<(), String> {
    match node {
        Node::All(nodes) => nodes.iter().try_for_each(check),
        Node::Any(nodes) => nodes.iter().try_for_each(check),
        Node::Field(FieldTest { test: Test::Compare(_) | Test::Exists | Test::Type(_), .. }) => Ok(()),
        Node::Field(FieldTest { test: Test::In(set), .. }) if set.has_no_pattern() => Ok(()),
        _ => Err("Expression not supported in partial index: $eq, $exists: true, $gt, $gte, $lt, $lte, $type, $in, \
                  $and and $or are"
            .to_owned()),
    }
}

/// Whether whatever meets `query` meets `condition`.
pub(crate) fn implies(query: &Node, condition: &Node) -> bool {
    match condition {
        Node::All(parts) => parts.iter().all(|part| implies(query, part)),
        Node::Any(parts) => parts.iter().any(|part| implies(query, part)) || each_branch(query, condition),
        Node::Field(wanted) => field_implied(query, wanted),
        _ => false,
    }
}

fn each_branch(query: &Node, condition: &Node) -> bool {
    match query {
        Node::Any(branches) => !branches.is_empty() && branches.iter().all(|branch| implies(branch, condition)),
        Node::All(parts) => parts.iter().any(|part| each_branch(part, condition)),
        _ => false,
    }
}

fn field_implied(query: &Node, wanted: &FieldTest) -> bool {
    match query {
        Node::All(parts) => parts.iter().any(|part| field_implied(part, wanted)),
        Node::Any(branches) => !branches.is_empty() && branches.iter().all(|branch| field_implied(branch, wanted)),
        Node::Field(given) => given.path == wanted.path && test_implies(&given.test, &wanted.test),
        _ => false,
    }
}

/// Whether each candidate that passes `given` passes `wanted`.
fn test_implies(given: &Test, wanted: &Test) -> bool {
    match (given, wanted) {
        (Test::In(set), _) if set.has_no_pattern() => {
            let mut values = set.values();
            values.all(|value| test_implies(&Test::Compare(Comparison::new(CompareOp::Eq, value)), wanted))
        }
        (Test::Compare(given), Test::Compare(wanted)) => comparison_implies(given, wanted),
        (Test::Compare(given), Test::Exists) => !given.test(None),
        (Test::Type(_) | Test::Size(_) | Test::Modulo(_) | Test::Bits(_) | Test::Pattern(_), Test::Exists) => true,
        (Test::Exists, Test::Exists) => true,
        (Test::Type(given), Test::Type(wanted)) => given == wanted,
        (Test::Compare(given), Test::Type(types)) => {
            let kind = given.operand().kind();
            // The one kind of its bracket, which is not the numbers', and the values of no other bracket pass.
            let alone = !kind.is_number() && !matches!(kind, Kind::Null | Kind::MinKey | Kind::MaxKey);
            alone && types.contains(kind)
        }
        (Test::Compare(given), Test::In(set)) if given.op() == CompareOp::Eq && set.has_no_pattern() => {
            let mut values = set.values();
            values.any(|value| comparison_implies(given, &Comparison::new(CompareOp::Eq, value)))
        }
        _ => false,
    }
}

fn comparison_implies(given: &Comparison, wanted: &Comparison) -> bool {
    let (a, b) = (given.operand(), wanted.operand());
    if given.op() == CompareOp::Eq {
        // What is missing passes where null does.
        return wanted.test(Some(a)) && (!given.test(None) || wanted.test(None));
    }
    if !is_plain(a) || !is_plain(b) || type_rank(a.kind()) != type_rank(b.kind()) {
        return false;
    }
    let order = compare(a, b);
    match (given.op(), wanted.op()) {
        (CompareOp::Gt, CompareOp::Gt | CompareOp::Gte) | (CompareOp::Gte, CompareOp::Gte) => order.is_ge(),
        (CompareOp::Gte, CompareOp::Gt) => order.is_gt(),
        (CompareOp::Lt, CompareOp::Lt | CompareOp::Lte) | (CompareOp::Lte, CompareOp::Lte) => order.is_le(),
        (CompareOp::Lte, CompareOp::Lt) => order.is_lt(),
        _ => false,
    }
}

/// Whether ranges up to and from it are ranges of its own bracket: not NaN, null, and the ends of the order.
fn is_plain(value: JsonbRef<'_>) -> bool {
    match value.kind() {
        Kind::Null | Kind::MinKey | Kind::MaxKey => false,
        kind if kind.is_number() => Comparison::new(CompareOp::Gte, value).test(Some(infinity())),
        _ => true,
    }
}

/// Above every number: only NaN is not at or below it.
fn infinity() -> JsonbRef<'static> {
    static INFINITY: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        let mut builder = quarrydb_jsonb::Builder::new();
        builder.double(f64::INFINITY);
        builder.take()
    });
    JsonbRef::from_valid(&INFINITY)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;
    use quarrydb_query::{Filter, ParseContext};

    fn filter(text: &str) -> Filter {
        let value = quarrydb_jsonb::parse(text.as_bytes()).unwrap();
        Filter::parse(value.view(), &ParseContext::new("filter")).unwrap()
    }

    #[test]
    fn what_a_query_implies_is_known_and_no_more() {
        for (query, condition, expected) in [
            (r#"{"a": 5}"#, r#"{"a": {"$gt": 3}}"#, true),
            (r#"{"a": 3}"#, r#"{"a": {"$gt": 3}}"#, false),
            (r#"{"a": {"$gt": 5}}"#, r#"{"a": {"$gte": 5}}"#, true),
            (r#"{"a": {"$gte": 5}}"#, r#"{"a": {"$gt": 5}}"#, false),
            (r#"{"a": {"$lt": 5}}"#, r#"{"a": {"$gt": 3}}"#, false),
            (r#"{"a": {"$gt": "x"}}"#, r#"{"a": {"$gt": 3}}"#, false),
            (r#"{"a": {"$gte": {"$numberDouble": "NaN"}}}"#, r#"{"a": {"$gte": 3}}"#, false),
            (r#"{"a": {"$gte": 3}}"#, r#"{"a": {"$gte": {"$numberDouble": "NaN"}}}"#, false),
            (r#"{"a": null}"#, r#"{"a": {"$exists": true}}"#, false),
            (r#"{"a": 0}"#, r#"{"a": {"$exists": true}}"#, true),
            (r#"{"a": {"$ne": 0}}"#, r#"{"a": {"$exists": true}}"#, false),
            (r#"{"b": 1}"#, r#"{"a": {"$exists": true}}"#, false),
            (r#"{"b": 1, "a": {"$in": [4, 5]}}"#, r#"{"a": {"$gt": 3}}"#, true),
            (r#"{"a": {"$in": [4, 2]}}"#, r#"{"a": {"$gt": 3}}"#, false),
            (r#"{"a": {"$in": [4, null]}}"#, r#"{"a": {"$exists": true}}"#, false),
            (r#"{"$or": [{"a": 4}, {"a": 9}]}"#, r#"{"a": {"$gt": 3}}"#, true),
            (r#"{"$or": [{"a": 4}, {"b": 9}]}"#, r#"{"a": {"$gt": 3}}"#, false),
            (r#"{"$or": [{"a": 4}, {"b": 9}]}"#, r#"{"$or": [{"a": 4}, {"b": 9}, {"c": 1}]}"#, true),
            (r#"{"a": "x"}"#, r#"{"a": {"$type": "string"}}"#, true),
            (r#"{"a": 1}"#, r#"{"a": {"$type": "int"}}"#, false),
            (r#"{"a": null}"#, r#"{"a": null}"#, true),
            (r#"{}"#, r#"{"a": null}"#, false),
            (r#"{"a": 1}"#, r#"{}"#, true),
            (r#"{"a": 7}"#, r#"{"a": {"$in": [7, 8]}}"#, true),
        ] {
            assert_eq!(implies(filter(query).ast(), filter(condition).ast()), expected, "{query} {condition}");
        }
    }

    #[test]
    fn conditions_that_no_index_may_have_are_refused() {
        for refused in [
            r#"{"a": {"$ne": 1}}"#,
            r#"{"a": {"$exists": false}}"#,
            r#"{"a": {"$regex": "x"}}"#,
            r#"{"$expr": {"$eq": ["$a", 1]}}"#,
            r#"{"a": {"$elemMatch": {"b": 1}}}"#,
            r#"{"a": {"$size": 1}}"#,
        ] {
            assert!(check(filter(refused).ast()).is_err(), "{refused}");
        }
        assert!(
            check(filter(r#"{"a": {"$gt": 1, "$type": "int"}, "$or": [{"b": 1}, {"c": {"$in": [1]}}]}"#).ast()).is_ok()
        );
    }
}
