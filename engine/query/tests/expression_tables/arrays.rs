//! Arrays and sets.

use crate::check;

#[test]
fn elements_by_position() {
    check(&[
        (r#"{"$arrayElemAt": ["$a", 0]}"#, r#"{"a": [1, 2, 3]}"#, "1"),
        (r#"{"$arrayElemAt": ["$a", -1]}"#, r#"{"a": [1, 2, 3]}"#, "3"),
        (r#"{"$arrayElemAt": ["$a", 9]}"#, r#"{"a": [1, 2, 3]}"#, "missing"),
        (r#"{"$arrayElemAt": ["$a", 1.5]}"#, r#"{"a": [1]}"#, "error 28691"),
        (r#"{"$arrayElemAt": ["$a", "x"]}"#, r#"{"a": [1]}"#, "error 28690"),
        (r#"{"$arrayElemAt": [5, 0]}"#, "{}", "error 28689"),
        (r#"{"$arrayElemAt": ["$missing", 0]}"#, "{}", "null"),
        (r#"{"$first": "$a"}"#, r#"{"a": [1, 2]}"#, "1"),
        (r#"{"$last": "$a"}"#, r#"{"a": [1, 2]}"#, "2"),
        (r#"{"$last": "$a"}"#, r#"{"a": []}"#, "missing"),
        (r#"{"$first": "$a"}"#, r#"{"a": 5}"#, "error 28689"),
        (r#"{"$firstN": {"n": 2, "input": "$a"}}"#, r#"{"a": [3, 1, 2]}"#, "[3, 1]"),
        (r#"{"$lastN": {"n": 2, "input": "$a"}}"#, r#"{"a": [3, 1, 2]}"#, "[1, 2]"),
        (r#"{"$maxN": {"n": 2, "input": "$a"}}"#, r#"{"a": [3, null, 1, 2]}"#, "[3, 2]"),
        (r#"{"$minN": {"n": 9, "input": "$a"}}"#, r#"{"a": [3, 1, 2]}"#, "[1, 2, 3]"),
        (r#"{"$minN": {"n": 0, "input": "$a"}}"#, r#"{"a": []}"#, "error 5787908"),
        (r#"{"$minN": {"n": 1, "input": 5}}"#, "{}", "error 5788200"),
        (r#"{"$size": "$a"}"#, r#"{"a": [1, [2, 3]]}"#, "2"),
        (r#"{"$size": "$a"}"#, "{}", "error 17124"),
        (r#"{"$size": "$a"}"#, r#"{"a": 5}"#, "error 17124"),
        (r#"{"$slice": [[1, 2, 3], 1, 1]}"#, "{}", "[2]"),
        (r#"{"$slice": [[1, 2, 3], -2]}"#, "{}", "[2, 3]"),
        (r#"{"$slice": [[1, 2, 3], 15, 2]}"#, "{}", "[]"),
        (r#"{"$slice": [[1, 2, 3], -15, 2]}"#, "{}", "[1, 2]"),
        (r#"{"$slice": [[1, 2, 3], 0, 0]}"#, "{}", "error 28729"),
        (r#"{"$slice": [5, 1]}"#, "{}", "error 28724"),
        (r#"{"$slice": [null, 1]}"#, "{}", "null"),
    ]);
}

#[test]
fn arrays_are_made_joined_and_turned() {
    check(&[
        (r#"{"$range": [0, 10, 3]}"#, "{}", "[0, 3, 6, 9]"),
        (r#"{"$range": [10, 0, -2]}"#, "{}", "[10, 8, 6, 4, 2]"),
        (r#"{"$range": [0, 5]}"#, "{}", "[0, 1, 2, 3, 4]"),
        (r#"{"$range": [5, 0]}"#, "{}", "[]"),
        (r#"{"$range": [0, 5, 0]}"#, "{}", "error 34449"),
        (r#"{"$range": ["a", 5]}"#, "{}", "error 34443"),
        (r#"{"$range": [0.5, 5]}"#, "{}", "error 34444"),
        (r#"{"$range": [0, "a"]}"#, "{}", "error 34445"),
        (r#"{"$range": [0, 1, 1.5]}"#, "{}", "error 34448"),
        (r#"{"$concatArrays": [["a"], ["b", ["c"]]]}"#, "{}", r#"["a", "b", ["c"]]"#),
        (r#"{"$concatArrays": [[1], null]}"#, "{}", "null"),
        (r#"{"$concatArrays": [[1], 5]}"#, "{}", "error 28664"),
        (r#"{"$concatArrays": []}"#, "{}", "[]"),
        (r#"{"$reverseArray": [[1, 2, [3, 4]]]}"#, "{}", "[[3, 4], 2, 1]"),
        (r#"{"$reverseArray": 5}"#, "{}", "error 34435"),
        (r#"{"$zip": {"inputs": [["a", "b"], [1, 2, 3]]}}"#, "{}", r#"[["a", 1], ["b", 2]]"#),
        (
            r#"{"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": true, "defaults": ["x", "y"]}}"#,
            "{}",
            r#"[[1, 2], ["x", 3]]"#,
        ),
        (r#"{"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": true}}"#, "{}", "[[1, 2], [null, 3]]"),
        (r#"{"$zip": {"inputs": [[1], null]}}"#, "{}", "null"),
        (r#"{"$zip": {"inputs": [[1], 5]}}"#, "{}", "error 34468"),
        (r#"{"$zip": {"inputs": [[1]], "defaults": [1]}}"#, "{}", "error 34466"),
        (r#"{"$zip": {"useLongestLength": true}}"#, "{}", "error 34465"),
        (r#"{"$in": [2, [1, 2, 3]]}"#, "{}", "true"),
        (r#"{"$in": [2.0, [1, 2, 3]]}"#, "{}", "true"),
        (r#"{"$in": [[2], [1, 2]]}"#, "{}", "false"),
        (r#"{"$in": [2, "$a"]}"#, "{}", "error 40081"),
        (r#"{"$indexOfArray": [["a", "b", "a"], "a", 1]}"#, "{}", "2"),
        (r#"{"$indexOfArray": [["a", "b"], "c"]}"#, "{}", "-1"),
        (r#"{"$indexOfArray": [["a", "b"], "b", 0, 1]}"#, "{}", "-1"),
        (r#"{"$indexOfArray": [null, "b"]}"#, "{}", "null"),
        (r#"{"$indexOfArray": ["x", "b"]}"#, "{}", "error 40090"),
        (r#"{"$indexOfArray": [[1], 1, -1]}"#, "{}", "error 9711601"),
        (r#"{"$isArray": [[1]]}"#, "{}", "true"),
        (r#"{"$isArray": "$a"}"#, r#"{"a": [1]}"#, "true"),
        (r#"{"$isArray": ["x"]}"#, "{}", "false"),
    ]);
}

#[test]
fn elements_are_mapped_filtered_reduced_and_sorted() {
    check(&[
        (r#"{"$map": {"input": "$a", "as": "x", "in": {"$add": ["$$x", 2]}}}"#, r#"{"a": [5, 6, 7]}"#, "[7, 8, 9]"),
        (r#"{"$map": {"input": "$a", "in": "$$this.b"}}"#, r#"{"a": [{"b": 1}, {}]}"#, "[1, null]"),
        (r#"{"$map": {"input": null, "in": 1}}"#, "{}", "null"),
        (r#"{"$map": {"input": 5, "in": 1}}"#, "{}", "error 16883"),
        (r#"{"$map": {"in": 1}}"#, "{}", "error 16880"),
        (r#"{"$map": {"input": [], "in": 1, "x": 1}}"#, "{}", "error 16879"),
        (
            r#"{"$filter": {"input": [1, "a", 2, null, 3.1], "as": "n", "cond": {"$isNumber": "$$n"}}}"#,
            "{}",
            "[1, 2, 3.1]",
        ),
        (r#"{"$filter": {"input": [1, 2, 3], "cond": {"$gte": ["$$this", 2]}, "limit": 1}}"#, "{}", "[2]"),
        (r#"{"$filter": {"input": [1, 2], "cond": true, "limit": 0}}"#, "{}", "error 327392"),
        (r#"{"$filter": {"input": [1, 2], "cond": true, "limit": 1.5}}"#, "{}", "error 327391"),
        (r#"{"$filter": {"input": [1, 2], "cond": true, "limit": null}}"#, "{}", "[1, 2]"),
        (r#"{"$filter": {"input": 5, "cond": true}}"#, "{}", "error 28651"),
        (
            r#"{"$reduce": {"input": ["a", "b", "c"], "initialValue": "", "in": {"$concat": ["$$value", "$$this"]}}}"#,
            "{}",
            r#""abc""#,
        ),
        (
            r#"{"$reduce": {"input": [1, 2, 3], "initialValue": {"s": 5, "p": 2}, "in": {"s": {"$add": ["$$value.s", "$$this"]}, "p": {"$multiply": ["$$value.p", "$$this"]}}}}"#,
            "{}",
            r#"{"s": 11, "p": 12}"#,
        ),
        (r#"{"$reduce": {"input": [], "initialValue": 7, "in": 1}}"#, "{}", "7"),
        (r#"{"$reduce": {"input": null, "initialValue": 7, "in": 1}}"#, "{}", "null"),
        (r#"{"$reduce": {"input": 5, "initialValue": 7, "in": 1}}"#, "{}", "error 40080"),
        (r#"{"$reduce": {"input": [], "in": 1}}"#, "{}", "error 40078"),
        (
            r#"{"$sortArray": {"input": [20, 4, {"a": "x"}, 1, "z", null], "sortBy": 1}}"#,
            "{}",
            r#"[null, 1, 4, 20, "z", {"a": "x"}]"#,
        ),
        (
            r#"{"$sortArray": {"input": "$t", "sortBy": {"age": -1, "n.x": 1}}}"#,
            r#"{"t": [{"age": 1, "n": {"x": 2}}, {"age": 2}, {"age": 1, "n": {"x": 1}}]}"#,
            r#"[{"age": 2}, {"age": 1, "n": {"x": 1}}, {"age": 1, "n": {"x": 2}}]"#,
        ),
        (r#"{"$sortArray": {"input": null, "sortBy": 1}}"#, "{}", "null"),
        (r#"{"$sortArray": {"input": 5, "sortBy": 1}}"#, "{}", "error 2942504"),
        (r#"{"$sortArray": {"input": []}}"#, "{}", "error 2942503"),
        (
            r#"{"$map": {"input": {"$range": [0, 2]}, "as": "i", "in": {"$map": {"input": {"$range": [0, 2]}, "as": "j", "in": ["$$i", "$$j"]}}}}"#,
            "{}",
            "[[[0, 0], [0, 1]], [[1, 0], [1, 1]]]",
        ),
    ]);
}

#[test]
fn sets_have_no_order_and_no_doubles() {
    check(&[
        (r#"{"$setUnion": [[2, 1, 1], [3, 2]]}"#, "{}", "[1, 2, 3]"),
        (r#"{"$setUnion": [[1], null]}"#, "{}", "null"),
        (r#"{"$setUnion": [[1], 5]}"#, "{}", "error 17043"),
        (r#"{"$setIntersection": [[3, 2, 1], [2, 3], [3, 4]]}"#, "{}", "[3]"),
        (r#"{"$setIntersection": [[[1]], [1]]}"#, "{}", "[]"),
        (r#"{"$setIntersection": [[1], 5]}"#, "{}", "error 17047"),
        (r#"{"$setDifference": [[3, 1, 3, 2], [2]]}"#, "{}", "[3, 1]"),
        (r#"{"$setDifference": [5, [2]]}"#, "{}", "error 17048"),
        (r#"{"$setDifference": [[2], 5]}"#, "{}", "error 17049"),
        (r#"{"$setEquals": [["a", "b", "a"], ["b", "a"]]}"#, "{}", "true"),
        (r#"{"$setEquals": [[1], null]}"#, "{}", "error 17044"),
        (r#"{"$setEquals": [[1], [1.0], [2]]}"#, "{}", "false"),
        (r#"{"$setIsSubset": [["a"], ["b", "a"]]}"#, "{}", "true"),
        (r#"{"$setIsSubset": [5, []]}"#, "{}", "error 17046"),
        (r#"{"$setIsSubset": [[], 5]}"#, "{}", "error 17042"),
        (r#"{"$anyElementTrue": [[null, 0, "x"]]}"#, "{}", "true"),
        (r#"{"$allElementsTrue": [[1, 0]]}"#, "{}", "false"),
        (r#"{"$allElementsTrue": [[]]}"#, "{}", "true"),
        (r#"{"$anyElementTrue": "$a"}"#, r#"{"a": 5}"#, "error 17041"),
    ]);
}
