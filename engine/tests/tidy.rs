//! Holds the repository to what of the house style a program can check.
//!
//! Reads the source tree and nothing else. Each test lists every fault it finds, with file and line, so that one run
//! shows all there is to mend. CONTRIBUTING.md says the rules; the tables below hold the exceptions and the layers.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the test's subject is files")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines a source file may have, its tests apart.
const LINES_MAX: usize = 600;

/// Files that are longer, with the length they must not grow past. A ratchet: mend one, and take it out of here.
const LONGER: &[(&str, usize)] = &[];

/// The layers of `engine/src`, lowest number on top. A module uses its own layer and those of a higher number.
const LAYERS: &[(&str, u8)] = &[
    ("lib", 0),
    ("database", 0),
    ("collection", 0),
    ("transactions", 0),
    ("aggregations", 0),
    ("typed", 0),
    ("fuzzing", 0),
    ("core", 1),
    ("maintain", 1),
    ("recovery", 1),
    ("changes", 1),
    ("txn", 1),
    ("plan", 1),
    ("exec", 1),
    ("aggregate", 1),
    ("fuzzing", 2),
    ("catalog", 2),
    ("batch", 2),
    ("mvcc", 2),
    ("columns", 3),
    ("tail", 3),
    ("indexes", 3),
    ("segment", 3),
    ("manifest", 3),
    ("spill", 3),
    ("log", 3),
    ("io", 4),
    ("budget", 5),
    ("object_id", 5),
    ("ids", 5),
    ("error", 5),
    ("options", 5),
    ("limits", 5),
];

/// Uses that the layers would allow and the design does not: who, and whom they must not name.
const FORBIDDEN: &[(&str, &str)] = &[
    ("exec", "txn"),
    ("plan", "txn"),
    ("aggregate", "txn"),
    ("plan", "segment"),
    ("plan", "tail"),
    ("log", "tail"),
    ("log", "segment"),
    ("segment", "log"),
    ("segment", "tail"),
    ("segment", "columns"),
    ("columns", "tail"),
];

/// Uses that go upward all the same, each with its reason. A ratchet: one that is no longer needed is taken out.
const UPWARD: &[(&str, &str)] = &[
    // A batch is begun from a handle, for its clock and its ids.
    ("engine/src/batch.rs", "Database"),
    // A deadline asks the one clock.
    ("engine/src/options.rs", "io"),
    // What is whole goes into a new database by the door that everyone uses.
    ("engine/src/recovery/salvage.rs", "collection"),
    ("engine/src/recovery/salvage.rs", "database"),
];

/// Directories that are not source.
const SKIPPED: &[&str] = &["target", ".git", "quarry-data", "large", "node_modules", "corpus", "artifacts", "results"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Every file of the tree, by its path from the root with `/` between.
fn files() -> Vec<String> {
    fn walk(dir: &Path, from: &Path, out: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    walk(&path, from, out);
                }
            } else {
                out.push(path.strip_prefix(from).unwrap().to_string_lossy().replace('\\', "/"));
            }
        }
    }
    let mut out = Vec::new();
    walk(&root(), &root(), &mut out);
    out.sort();
    assert!(out.iter().any(|f| f == "engine/tests/tidy.rs"), "the walk does not see the repository");
    out
}

fn text(file: &str) -> String {
    String::from_utf8_lossy(&fs::read(root().join(file)).unwrap()).into_owned()
}

fn has_suffix(file: &str, suffixes: &[&str]) -> bool {
    suffixes.iter().any(|s| file.ends_with(s))
}

fn is_test_file(file: &str) -> bool {
    file.contains("/tests/") || has_suffix(file, &["_tests.rs", "/tests.rs"])
}

/// The lines of a source file before its inline tests.
fn product_lines(source: &str) -> usize {
    let lines: Vec<&str> = source.lines().collect();
    let opens = |l: &&str| l.starts_with("mod ") && l.ends_with('{');
    let tests = (0..lines.len()).find(|&i| lines[i] == "#[cfg(test)]" && lines[i..].iter().take(4).any(opens));
    tests.unwrap_or(lines.len())
}

fn report(rule: &str, faults: &[String]) {
    let mut list = String::new();
    for fault in faults {
        let _ = write!(list, "\n  {fault}");
    }
    assert!(faults.is_empty(), "{rule}:{list}");
}

#[test]
fn files_stay_short() {
    let mut faults = Vec::new();
    for file in files().iter().filter(|f| f.ends_with(".rs") && !is_test_file(f)) {
        let lines = product_lines(&text(file));
        match LONGER.iter().find(|(name, _)| name == file) {
            Some((_, most)) if lines > *most => faults.push(format!("{file}: {lines} lines, at most {most}")),
            Some(_) if lines <= LINES_MAX => faults.push(format!("{file}: {lines} lines, take it out of LONGER")),
            None if lines > LINES_MAX => faults.push(format!("{file}: {lines} lines, at most {LINES_MAX}")),
            _ => {}
        }
    }
    report("a file over the limit wants to be two, by step", &faults);
}

#[test]
fn files_open_with_what_they_are_for() {
    let opens = |file: &String| text(file).lines().next().is_some_and(|l| l.starts_with("//! ") && l.len() > 12);
    let faults: Vec<String> = files().into_iter().filter(|f| f.ends_with(".rs") && !opens(f)).collect();
    report("the first line says what the file is for: `//! ...`", &faults);
}

#[test]
fn source_is_ascii() {
    let mut faults = Vec::new();
    let names = [".rs", ".toml", ".sh", ".mjs", "Makefile", "Dockerfile", ".ci/run"];
    for file in files().iter().filter(|f| has_suffix(f, &names)) {
        for (i, line) in text(file).lines().enumerate().filter(|(_, line)| !line.is_ascii()) {
            faults.push(format!("{file}:{}: {}", i + 1, line.trim()));
        }
    }
    report("source is ASCII: write other characters as escapes", &faults);
}

#[test]
fn open_ends_name_their_issue() {
    let marks = ["TO".to_owned() + "DO", "FIX".to_owned() + "ME", "XX".to_owned() + "X"];
    let mut faults = Vec::new();
    for file in files().iter().filter(|f| f.ends_with(".rs")) {
        for (i, line) in text(file).lines().enumerate() {
            let named = |mark: &String| line.split(mark.as_str()).skip(1).all(|rest| rest.starts_with("(#"));
            if !marks.iter().all(named) {
                faults.push(format!("{file}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    report("an open end names its issue, as in `(#12)`", &faults);
}

#[test]
fn nothing_names_a_machine() {
    // Put together here, so that this file does not name one itself.
    let places = ["work", "root", "home", "farm"].map(|p| format!("/{p}/"));
    let mut faults = Vec::new();
    let names = [".rs", ".toml", ".sh", ".mjs", ".md", "Makefile", "Dockerfile", ".ci/run", ".case"];
    for file in files().iter().filter(|f| has_suffix(f, &names)) {
        for (i, line) in text(file).lines().enumerate() {
            let absolute = |place: &String| {
                line.match_indices(place.as_str()).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || "_.-/)}".contains(c))
                })
            };
            if places.iter().any(absolute) {
                faults.push(format!("{file}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    report("paths of one machine do not belong here", &faults);
}

#[test]
fn crates_take_the_workspace_lints() {
    let mut faults = Vec::new();
    for file in files().iter().filter(|f| f.ends_with("/Cargo.toml") && !f.contains("/fuzz/")) {
        if !text(file).contains("[lints]\nworkspace = true") {
            faults.push(file.clone());
        }
    }
    report("a crate says `[lints]` `workspace = true`", &faults);
}

/// Modules of the own crate that a line of code names: `crate::a::b`, `crate::{a, b::{c, d}}`.
fn modules_named(code: &str) -> Vec<String> {
    let mut named = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        let grouped = rest.strip_prefix('{');
        let (mut depth, mut word, mut first) = (0_usize, String::new(), true);
        for c in grouped.unwrap_or(rest).chars() {
            if (c.is_alphanumeric() || c == '_') && first && depth == 0 {
                word.push(c);
                continue;
            }
            if !word.is_empty() {
                named.push(std::mem::take(&mut word));
                first = false;
            }
            if grouped.is_none() {
                break;
            }
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => first = true,
                _ => {}
            }
        }
        if !word.is_empty() {
            named.push(word);
        }
    }
    named
}

#[test]
fn modules_named_are_found_in_groups_too() {
    assert_eq!(modules_named("use crate::log::writer::{Writer, Ticket};"), ["log"]);
    assert_eq!(modules_named("use crate::{Error, io::{Storage, disk}, log};"), ["Error", "io", "log"]);
    assert_eq!(modules_named("let a = crate::txn::begin(crate::mvcc::now());"), ["txn", "mvcc"]);
    assert_eq!(modules_named("pub(crate) fn f() {}"), Vec::<String>::new());
}

#[test]
fn layers_of_the_engine_hold() {
    let level = |module: &str| LAYERS.iter().find(|(name, _)| *name == module).map(|(_, level)| *level);
    let mut faults = Vec::new();
    let mut excused = BTreeSet::new();
    for file in files().iter().filter(|f| f.starts_with("engine/src/") && f.ends_with(".rs") && !is_test_file(f)) {
        let within = file.strip_prefix("engine/src/").unwrap();
        let module = within.split(['/', '.']).next().unwrap();
        let Some(own) = level(module) else {
            faults.push(format!("{file}: the module `{module}` has no layer in engine/tests/tidy.rs"));
            continue;
        };
        let source = text(file);
        let product: Vec<&str> = source.lines().take(product_lines(&source)).collect();
        let code: String =
            product.iter().map(|l| l.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
        for used in modules_named(&code).into_iter().collect::<BTreeSet<_>>() {
            let upward = match level(&used) {
                Some(other) => other < own,
                // What lib.rs gives out of the top layer.
                None => own > 0 && ["Database", "Collection"].contains(&used.as_str()),
            };
            let wrong = upward || FORBIDDEN.contains(&(module, used.as_str()));
            if wrong && UPWARD.contains(&(file.as_str(), used.as_str())) {
                excused.insert((file.clone(), used));
            } else if wrong {
                faults.push(format!("{file}: `{module}` must not use `{used}`"));
            }
        }
    }
    for (file, used) in UPWARD {
        if !excused.contains(&((*file).to_owned(), (*used).to_owned())) {
            faults.push(format!("{file}: does not use `{used}` any more, take it out of UPWARD"));
        }
    }
    report("a module uses what stands below it", &faults);
}

/// The anchors of a page, made as the usual renderers make them.
fn anchors(page: &str) -> Vec<String> {
    let heading = |line: &str| line.starts_with('#').then(|| line.trim_start_matches('#').trim().to_lowercase());
    let slug = |title: String| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    };
    page.lines().filter_map(heading).map(slug).collect()
}

/// A page without its fenced blocks, line numbers kept.
fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (i, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            lines.push((i + 1, line));
        }
    }
    lines
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let mut faults = Vec::new();
    for file in files().iter().filter(|f| f.ends_with(".md")) {
        let page = text(file);
        let dir = root().join(file).parent().unwrap().to_path_buf();
        for (number, line) in prose(&page) {
            for rest in line.split("](").skip(1) {
                let Some(target) = rest.split([')', ' ']).next() else { continue };
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let there = if path.is_empty() { root().join(file) } else { dir.join(path) };
                let leads = there.exists()
                    && (anchor.is_empty()
                        || !path.is_empty() && !path.ends_with(".md")
                        || anchors(&fs::read_to_string(&there).unwrap()).iter().any(|a| a == anchor));
                if !leads {
                    faults.push(format!("{file}:{number}: {target}"));
                }
            }
        }
    }
    report("a link leads to a file, and to a heading in it", &faults);
}

#[test]
fn files_named_in_the_pages_exist() {
    let mut faults = Vec::new();
    let suffixes = [".rs", ".md", ".toml", ".sh", ".mjs", ".ndjson"];
    for file in files().iter().filter(|f| f.ends_with(".md") && *f != "CHANGELOG.md") {
        let page = text(file);
        let dir = root().join(file).parent().unwrap().to_path_buf();
        let places = [root(), dir.clone(), dir.join("src"), root().join("engine/src"), root().join("engine")];
        for (number, line) in prose(&page) {
            for quoted in line.split('`').skip(1).step_by(2) {
                let path = quoted.split("::").next().unwrap_or_default();
                let is_path = path.contains('/')
                    && has_suffix(path, &suffixes)
                    && !path.starts_with("testdata/large/")
                    && !path.starts_with("large/")
                    && path.chars().all(|c| c.is_alphanumeric() || "_./-".contains(c));
                if is_path && !places.iter().any(|place| place.join(path).exists()) {
                    faults.push(format!("{file}:{number}: {path}"));
                }
            }
        }
    }
    report("a file that a page names exists", &faults);
}
