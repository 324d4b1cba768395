//! Every update operator on every type of stored value: what it takes, and the error of the others.

use crate::type_values::{ARRAY, INTEGERS, NUMBERS, OBJECT, VALUES};
use crate::{json, parse_update, shown};
use quarrydb_query::{ApplyContext, Filter};

const ALL: &[&str] = &[];

/// An update of the field `v`, the types of `v` that it takes (none listed: all), and the error of the others.
const ROWS: &[(&str, &[&str], i32)] = &[
    (r#"{"$set": {"v": 1}}"#, ALL, 0),
    (r#"{"$unset": {"v": 1}}"#, ALL, 0),
    (r#"{"$setOnInsert": {"v": 1}}"#, ALL, 0),
    (r#"{"$min": {"v": 5}}"#, ALL, 0),
    (r#"{"$max": {"v": 5}}"#, ALL, 0),
    (r#"{"$rename": {"v": "w"}}"#, ALL, 0),
    (r#"{"$currentDate": {"v": true}}"#, ALL, 0),
    (r#"{"$inc": {"v": 1}}"#, NUMBERS, 14),
    (r#"{"$mul": {"v": 2}}"#, NUMBERS, 14),
    (r#"{"$bit": {"v": {"or": 1}}}"#, INTEGERS, 2),
    (r#"{"$push": {"v": 1}}"#, ARRAY, 2),
    (r#"{"$push": {"v": {"$each": [1], "$sort": 1, "$slice": 5}}}"#, ARRAY, 2),
    (r#"{"$addToSet": {"v": 1}}"#, ARRAY, 2),
    (r#"{"$pull": {"v": 1}}"#, ARRAY, 2),
    (r#"{"$pull": {"v": {"$gt": 1}}}"#, ARRAY, 2),
    (r#"{"$pullAll": {"v": [1]}}"#, ARRAY, 2),
    (r#"{"$pop": {"v": 1}}"#, ARRAY, 14),
    (r#"{"$inc": {"v.$[]": 1}}"#, ARRAY, 2),
    (r#"{"$set": {"v.x": 1}}"#, OBJECT, 28),
    (r#"{"$inc": {"v.x": 1}}"#, OBJECT, 28),
    (r#"{"$push": {"v.x": 1}}"#, OBJECT, 28),
    (r#"{"$max": {"v.x.y": 1}}"#, OBJECT, 28),
    (r#"{"$set": {"v.0": 1}}"#, &["object", "array"], 28),
    (r#"{"$unset": {"v.x": 1}}"#, ALL, 0),
    (r#"{"$setOnInsert": {"v.x": 1}}"#, ALL, 0),
];

#[test]
fn every_operator_takes_its_types_and_refuses_the_others() {
    let mut wrong = Vec::new();
    for (update, taken, code) in ROWS {
        let parsed = parse_update(update, None).unwrap();
        for (kind, value) in VALUES {
            let document = json(&format!(r#"{{"_id": 1, "v": {value}, "z": 1}}"#));
            let found = shown(parsed.apply(document.view(), &Filter::everything(), &ApplyContext::at(0)));
            let right = if taken.is_empty() || taken.contains(&kind) {
                !found.starts_with("error")
            } else {
                found == format!("error {code}")
            };
            if !right {
                wrong.push(format!("{update} on {kind} gave {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_min_and_max_keep_follows_the_order_of_types() {
    // From the manual, "Comparison/Sort Order".
    let order = [
        "minKey",
        "null",
        "number",
        "string",
        "object",
        "array",
        "binData",
        "objectId",
        "bool",
        "date",
        "timestamp",
        "regex",
        "maxKey",
    ];
    let rank = |kind: &str| {
        let bracket = if NUMBERS.contains(&kind) { "number" } else { kind };
        order.iter().position(|o| *o == bracket).unwrap()
    };
    for (stored_kind, stored) in VALUES {
        for (operand_kind, operand) in VALUES {
            if rank(stored_kind) == rank(operand_kind) {
                continue;
            }
            for (operator, wins) in
                [("$min", rank(operand_kind) < rank(stored_kind)), ("$max", rank(operand_kind) > rank(stored_kind))]
            {
                let update = format!(r#"{{"{operator}": {{"v": {operand}}}}}"#);
                let document = json(&format!(r#"{{"_id": 1, "v": {stored}}}"#));
                let new = parse_update(&update, None)
                    .and_then(|u| u.apply(document.view(), &Filter::everything(), &ApplyContext::at(0)))
                    .unwrap();
                assert_eq!(new.is_some(), wins, "{update} on {stored_kind}");
            }
        }
    }
}
