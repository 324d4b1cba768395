//! Runs every case file of `testdata/queries`: see `support/case_file.rs` for what stands in them.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests panic so that the line is known, and read their own files"
)]

#[path = "support/case_file.rs"]
mod case_file;

#[test]
fn every_case_file_holds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/queries");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "case"));
    files.sort();
    assert!(!files.is_empty());
    let mut asked = 0;
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        asked += case_file::run(&name, &std::fs::read_to_string(&path).unwrap());
    }
    assert!(asked > 7200, "{asked} questions");
}
