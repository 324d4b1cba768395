//! The golden files of each format version: written once, never again, read and written back byte for byte for ever.
//!
//! `testdata/formats/jsonb/v0`: `NAME.jsonb` beside `NAME.json`, its canonical Extended JSON; `corrupted.txt`, twins of the
//! worked example with one thing wrong each, as `hex | offset | what validate says`.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "golden files are files of the repository")]

use std::path::PathBuf;

use quarrydb_jsonb::{ErrorKind, JsonbRef, Style, parse, print, validate};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/formats/jsonb/v0")
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn golden_files_read_and_write_the_same() {
    let mut count = 0;
    for entry in std::fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonb") {
            continue;
        }
        let name = path.display();
        let golden = std::fs::read(&path).unwrap();
        let text = std::fs::read(path.with_extension("json")).unwrap();
        let text = text.trim_ascii_end();
        let value = validate(&golden).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut printed = Vec::new();
        print(value, Style::Canonical, &mut printed);
        assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(text), "{name} printed");
        assert!(parse(text).unwrap().as_bytes() == golden, "{name}: parsed from its text");
        count += 1;
    }
    assert_eq!(count, 4);
}

#[test]
fn the_worked_example_of_the_format_document_is_what_is_written() {
    let format = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("FORMAT.md")).unwrap();
    let (_, example) = format.split_once("## Worked example").unwrap();
    let mut bytes = Vec::new();
    for row in example.lines().filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit()) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1].parse(), Ok(bytes.len()), "{row}");
        bytes.extend(from_hex(cells[2]));
    }
    let parsed = parse(br#"{"_id": 1, "n": -300, "name": "Ann", "tags": ["a", 2.5]}"#).unwrap();
    assert_eq!(parsed.as_bytes(), bytes);
    validate(&bytes).unwrap();
    for (name, at) in [("_id", 7), ("n", 11), ("name", 19), ("tags", 29)] {
        let value = JsonbRef::from_valid(&bytes).get(name).unwrap();
        assert_eq!(value.as_bytes().as_ptr(), bytes[at..].as_ptr(), "{name} lies where the document says");
    }
    assert_eq!(std::fs::read(directory().join("worked-example.jsonb")).unwrap(), bytes);
}

#[test]
fn corrupted_twins_are_refused_with_what_is_wrong() {
    let twins = std::fs::read_to_string(directory().join("corrupted.txt")).unwrap();
    let mut count = 0;
    for line in twins.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [hex, offset, message] = line.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let bytes = from_hex(hex);
        let e = validate(&bytes).expect_err(line);
        let found = (e.kind(), e.place().map(|p| p.offset), e.message());
        assert_eq!(found, (ErrorKind::Malformed, offset.parse().ok(), message), "{line}");
        // What is refused is still printed without a panic by who does not ask.
        print(JsonbRef::from_valid(&bytes), Style::Relaxed, &mut Vec::new());
        count += 1;
    }
    assert!(count > 25, "{count} twins");
}

#[test]
fn each_cut_and_each_flipped_bit_of_the_worked_example_is_refused_or_another_value() {
    let golden = std::fs::read(directory().join("worked-example.jsonb")).unwrap();
    for end in 0..golden.len() {
        assert!(validate(&golden[..end]).is_err(), "cut at {end}");
    }
    for bit in 0..golden.len() * 8 {
        let mut twin = golden.clone();
        twin[bit / 8] ^= 1 << (bit % 8);
        if let Ok(value) = validate(&twin) {
            // It is then a value of its own: it has its own text and one form.
            let mut text = Vec::new();
            print(value, Style::Canonical, &mut text);
            assert_eq!(parse(&text).unwrap().as_bytes(), twin, "bit {bit}");
        }
    }
}
