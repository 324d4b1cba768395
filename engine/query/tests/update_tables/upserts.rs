//! The document that an upsert makes.

use crate::{check_upsert, context, expect, filter, json, shown};
use quarrydb_query::{ApplyContext, Update};

#[test]
fn equalities_of_the_filter_seed_the_document() {
    check_upsert(&[
        (
            r#"{"f.x": 1, "f.y": {"$eq": 2}, "f.z": {"$ne": 3}, "k": {"$gt": 9}, "$and": [{"w": 4}], "_id": "u1"}"#,
            r#"{"$set": {"g": 5}}"#,
            r#"{"_id": "u1", "f": {"x": 1, "y": 2}, "w": 4, "g": 5}"#,
        ),
        (
            r#"{"_id": "u2", "v": {"$gt": 3}}"#,
            r#"{"$set": {"found": true}, "$setOnInsert": {"made": 1}}"#,
            r#"{"_id": "u2", "found": true, "made": 1}"#,
        ),
        (r#"{"a": 1}"#, r#"{"$set": {"b": 2}}"#, r#"{"_id": {"$oid": "070707070707070707070707"}, "a": 1, "b": 2}"#),
        (r#"{"a": 1}"#, r#"{"$inc": {"a": 2}}"#, r#"{"_id": {"$oid": "070707070707070707070707"}, "a": 3}"#),
        (r#"{"b": 1}"#, r#"{"$set": {"_id": 5}}"#, r#"{"_id": 5, "b": 1}"#),
        (r#"{"_id": 1}"#, r#"{"$set": {"_id": 5}}"#, "error 66"),
        (
            r#"{"_id": {"$in": [1, 2]}}"#,
            r#"{"$set": {"a": 5}}"#,
            r#"{"_id": {"$oid": "070707070707070707070707"}, "a": 5}"#,
        ),
        // A list of one value is that value, and of one value written twice too; of one pattern it is nothing.
        (r#"{"_id": {"$in": [1]}}"#, r#"{"$set": {"a": 5}}"#, r#"{"_id": 1, "a": 5}"#),
        (r#"{"_id": 2, "a": {"$in": [1, 1.0]}}"#, r#"{"$set": {"b": 5}}"#, r#"{"_id": 2, "a": 1, "b": 5}"#),
        (r#"{"_id": 2, "a": {"$in": []}}"#, r#"{"$set": {"b": 5}}"#, r#"{"_id": 2, "b": 5}"#),
        (r#"{"_id": 2, "a": {"$nin": [1]}}"#, r#"{"$set": {"b": 5}}"#, r#"{"_id": 2, "b": 5}"#),
        (
            r#"{"_id": 2, "a": {"$in": [{"$regularExpression": {"pattern": "x", "options": ""}}]}}"#,
            r#"{"$set": {"b": 5}}"#,
            r#"{"_id": 2, "b": 5}"#,
        ),
        (r#"{"_id": 2, "a": {"$all": [1]}}"#, r#"{"$set": {"b": 5}}"#, r#"{"_id": 2, "a": 1, "b": 5}"#),
        (
            r#"{"$or": [{"a": 1}]}"#,
            r#"{"$set": {"b": 2}}"#,
            r#"{"_id": {"$oid": "070707070707070707070707"}, "a": 1, "b": 2}"#,
        ),
        (
            r#"{"$or": [{"a": 1}, {"a": 2}]}"#,
            r#"{"$set": {"b": 2}}"#,
            r#"{"_id": {"$oid": "070707070707070707070707"}, "b": 2}"#,
        ),
        (r#"{"a": 1, "$and": [{"a": 1}]}"#, r#"{"$set": {"b": 2}}"#, "error 54"),
        (r#"{"a": 1, "a.b": 1}"#, r#"{"$set": {"b": 2}}"#, "error 54"),
        (r#"{"a": 1}"#, r#"{"$set": {"a.b": 2}}"#, "error 28"),
        (r#"{"z": "q"}"#, r#"{"$mul": {"y": 3}, "$setOnInsert": {"y": true}}"#, "error 40"),
        (
            r#"{"a": [1, 2]}"#,
            r#"{"$push": {"a": 3}}"#,
            r#"{"_id": {"$oid": "070707070707070707070707"}, "a": [1, 2, 3]}"#,
        ),
        (r#"{"a": 1}"#, r#"{"$set": {"a.$": 2}}"#, "error 2"),
        (r#"{}"#, r#"{"$set": {"_id": [1]}}"#, "error 53"),
        (r#"{"_id": 3, "a": 1}"#, r#"[{"$set": {"b": {"$add": ["$a", 1]}}}]"#, r#"{"_id": 3, "a": 1, "b": 2}"#),
    ]);
}

#[test]
fn a_replacement_takes_only_the_id_from_the_filter() {
    let rows = [
        (r#"{"_id": 4, "a": 1}"#, r#"{"b": 2}"#, r#"{"_id": 4, "b": 2}"#),
        (r#"{"a": 1}"#, r#"{"b": 2}"#, r#"{"_id": {"$oid": "070707070707070707070707"}, "b": 2}"#),
        (r#"{"a": 1}"#, r#"{"b": 2, "_id": 9}"#, r#"{"_id": 9, "b": 2}"#),
        (r#"{"_id": 4}"#, r#"{"b": 2, "_id": 9}"#, "error 66"),
    ];
    let mut wrong = Vec::new();
    for (query, replacement, expected) in rows {
        let update = Update::parse_replacement(json(replacement).view(), &context()).unwrap();
        let result = update.upsert(&filter(query), &ApplyContext::default(), &mut || [7; 12]);
        expect(&shown(result.map(Some)), expected, replacement, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
