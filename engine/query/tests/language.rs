//! LANGUAGE.md tells the truth: every example in it runs, and every operator of filters and updates has one.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "integration tests read files of the repository")]

use quarrydb_query::pipeline::accumulate::AccumulatorKind;
use quarrydb_query::pipeline::window::window_function_names;

#[path = "support/case_file.rs"]
mod case_file;

fn language() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/LANGUAGE.md")).unwrap()
}

/// The insides of the fenced blocks of one kind, blank lines in place of everything else, so that line numbers hold.
fn blocks(text: &str, kind: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for line in text.lines() {
        match line.trim() {
            fence if fence == format!("```{kind}") => inside = true,
            "```" if inside => {
                inside = false;
                // A block begins anew.
                out.push_str("case the block before");
            }
            _ if inside => out.push_str(line),
            _ => {}
        }
        out.push('\n');
    }
    out
}

#[test]
fn every_example_runs() {
    let asked = case_file::run("LANGUAGE.md", &blocks(&language(), "case"));
    assert!(asked > 60, "{asked} examples");
}

#[test]
fn every_operator_has_an_example() {
    let examples = blocks(&language(), "case");
    for name in [
        "$eq",
        "$ne",
        "$gt",
        "$gte",
        "$lt",
        "$lte",
        "$in",
        "$nin",
        "$and",
        "$or",
        "$nor",
        "$not",
        "$exists",
        "$type",
        "$expr",
        "$mod",
        "$regex",
        "$options",
        "$jsonSchema",
        "$comment",
        "$sampleRate",
        "$alwaysTrue",
        "$alwaysFalse",
        "$all",
        "$elemMatch",
        "$size",
        "$bitsAllSet",
        "$bitsAllClear",
        "$bitsAnySet",
        "$bitsAnyClear",
        "$slice",
        "$set",
        "$unset",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$rename",
        "$setOnInsert",
        "$currentDate",
        "$bit",
        "$push",
        "$each",
        "$position",
        "$sort",
        "$addToSet",
        "$pull",
        "$pullAll",
        "$pop",
        "$group",
        "$bucketAuto",
        "$setWindowFields",
        "$densify",
        "$fill",
        "$match",
        "$addFields",
        "$project",
        "$replaceRoot",
        "$replaceWith",
        "$limit",
        "$skip",
        "$count",
        "$sample",
        "$unwind",
        "$sortByCount",
        "$bucket",
        "$facet",
        "$lookup",
        "$graphLookup",
        "$unionWith",
        "$redact",
        "$documents",
        "$collStats",
        "$indexStats",
        "$out",
        "$merge",
        ".$\"",
        ".$[]",
        ".$[big]",
    ]
    .into_iter()
    .chain(AccumulatorKind::names())
    .chain(window_function_names())
    {
        let asks = examples
            .lines()
            .filter(|l| !l.starts_with('#'))
            .any(|l| l.contains(&format!("\"{name}\"")) || (name.starts_with('.') && l.contains(name)));
        assert!(asks, "{name} has no example in LANGUAGE.md");
    }
}
