//! Random updates: none may panic, what comes out is a valid document with the same `_id`, and an update that says that it
//! changed nothing did.

use crate::{json, parse_update};
use quarrydb_jsonb::validate;
use quarrydb_query::{ApplyContext, Filter, Update, expr};

const OPERATORS: [&str; 14] = [
    "$set",
    "$unset",
    "$inc",
    "$mul",
    "$min",
    "$max",
    "$rename",
    "$setOnInsert",
    "$bit",
    "$push",
    "$addToSet",
    "$pull",
    "$pullAll",
    "$pop",
];
const PATHS: [&str; 20] = [
    "a",
    "a.b",
    "a.b.c",
    "v",
    "v.0",
    "v.2",
    "v.9",
    "v.$[]",
    "v.$[].x",
    "v.$[e]",
    "v.$[e].x",
    "v.$",
    "v.$.x",
    "n",
    "n.0.1",
    "n.$[].$[]",
    "_id",
    "z.y.x",
    "7",
    "a.0",
];
const OPERANDS: [&str; 20] = [
    "1",
    "-1",
    "0.5",
    "null",
    r#""w""#,
    r#""a.q""#,
    "[1, 2]",
    r#"{"x": 1}"#,
    r#"{"$each": [3, {"x": 0}, 1]}"#,
    r#"{"$each": [3, 1], "$sort": -1, "$slice": -2, "$position": 1}"#,
    r#"{"$gt": 1}"#,
    r#"{"or": 6}"#,
    r#"{"xor": {"$numberLong": "5"}, "and": 3}"#,
    r#"{"$numberLong": "9223372036854775807"}"#,
    r#"{"$numberDecimal": "1.5"}"#,
    r#"{"$in": [1, 2]}"#,
    "true",
    r#"{"x": {"$lt": 5}}"#,
    "[]",
    "{}",
];
const DOCUMENTS: [&str; 5] = [
    r#"{"_id": 1}"#,
    r#"{"_id": 1, "a": {"b": {"c": 5}, "0": 1}, "v": [1, {"x": 2}, [3], null, 2.0], "n": [[1, 2], [3]], "7": 1}"#,
    r#"{"_id": 1, "a": 5, "v": [], "n": [], "z": null}"#,
    r#"{"_id": 1, "a": [{"b": 1}, {"b": 2}], "v": [{"x": 1}, {"x": 9}], "n": 5}"#,
    r#"{"_id": {"k": 1}, "a": "s", "v": "s", "n": [[{"$numberLong": "9223372036854775807"}]], "z": {"y": {}}}"#,
];

struct Random(u64);

impl Random {
    /// A number below `n` (xorshift64*, Vigna 2016).
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }

    fn update(&mut self) -> String {
        let mut operators = std::collections::BTreeMap::new();
        for _ in 0..1 + self.below(3) {
            let fields: std::collections::BTreeMap<_, _> =
                (0..1 + self.below(3)).map(|_| (self.pick(&PATHS), self.pick(&OPERANDS))).collect();
            let fields: Vec<_> = fields.iter().map(|(path, operand)| format!(r#""{path}": {operand}"#)).collect();
            operators.insert(self.pick(&OPERATORS), fields.join(", "));
        }
        let operators: Vec<_> = operators.iter().map(|(name, fields)| format!(r#""{name}": {{{fields}}}"#)).collect();
        format!("{{{}}}", operators.join(", "))
    }
}

#[test]
fn no_update_panics_and_what_comes_out_is_a_document() {
    let mut random = Random(0x51ed_270b_9f3c_4a1d);
    let filter = crate::filter(r#"{"v": {"$gte": 1}}"#);
    let (mut applied, mut changed) = (0, 0);
    for i in 0..60_000 {
        let update = random.update();
        let array_filters = (i % 2 == 0).then_some(r#"[{"$or": [{"e": {"$gte": 2}}, {"e.x": {"$exists": true}}]}]"#);
        let Ok(parsed) = parse_update(&update, array_filters) else { continue };
        for document in DOCUMENTS.map(json) {
            match parsed.apply(document.view(), &filter, &ApplyContext::at(0)) {
                Ok(Some(new)) => {
                    validate(new.as_bytes()).unwrap_or_else(|e| panic!("{update}: {e}"));
                    assert_eq!(new.view().get("_id"), document.view().get("_id"), "{update}");
                    assert_ne!(new, document, "{update}");
                    super::describe::holds(&parsed, &document, &new, &update);
                    changed += 1;
                }
                Ok(None) => applied += 1,
                Err(e) => assert!(e.code() > 0 && !e.message().is_empty(), "{update}"),
            }
        }
        if let Ok(new) = parsed.upsert(&filter, &ApplyContext::at(0), &mut || [1; 12]) {
            validate(new.as_bytes()).unwrap_or_else(|e| panic!("{update}: {e}"));
            assert_eq!(new.view().as_object().unwrap().iter().next().unwrap().name(), "_id");
        }
    }
    assert!(applied > 1000 && changed > 5000, "{applied} applied, {changed} changed");
}

#[test]
fn parsed_updates_and_expressions_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Update>();
    shared::<Filter>();
    shared::<expr::Expression>();
}
