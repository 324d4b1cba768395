//! What fuzzing asks of this crate, as plain functions: the targets call them, and so do tests without a fuzzer.
//!
//! Takes any bytes; panics where a promise is broken.

use crate::{
    BODY_LEVELS_MAX, Builder, Edits, JsonbRef, Path, Splice, Style, bson_size, compare, equal, id_hash, parse,
    parse_body, parse_document, print, sort_key, validate,
};

/// Any text is answered; what is accepted is valid and comes back from what is printed.
///
/// # Panics
/// Where that does not hold.
pub fn parse_any(text: &[u8]) {
    let mut out = Builder::new();
    // The second time the parser knows the shapes of the first.
    for _ in 0..2 {
        let from = out.len();
        if parse_document(text, &mut out, &mut || [7; 12]).is_ok() {
            let document = validate(&out.bytes()[from..]).expect("a parsed document is valid");
            assert_eq!(document.as_object().and_then(|o| o.iter().next()).map(|e| e.name()), Some("_id"));
        } else {
            assert_eq!(out.len(), from, "nothing is left of a refused document");
        }
    }
    if out.len().is_multiple_of(2) {
        let (first, second) = out.bytes().split_at(out.len() / 2);
        assert_eq!(first, second, "what the parser remembers changes nothing");
    }
    let mut ranges = Vec::new();
    if let Ok(rest) = parse_body(text, "d", &mut out, &mut || [7; 12], &mut |document| ranges.extend(document)) {
        validate(rest.as_bytes()).expect("what is beside the documents is valid");
        for range in ranges {
            validate(&out.bytes()[range]).expect("a document of a body is valid");
        }
    }
    let Ok(value) = parse(text) else { return };
    validate(value.as_bytes()).expect("a parsed value is valid");
    check_text(value.view());
}

/// A valid value comes back from its text: canonical with the same bytes, relaxed with an equal value.
fn check_text(value: JsonbRef<'_>) {
    let mut text = Vec::new();
    print(value, Style::Canonical, &mut text);
    let canonical = parse(&text).expect("canonical text is accepted");
    assert_eq!(canonical.as_bytes(), value.as_bytes(), "canonical text gives the same bytes");
    text.clear();
    print(value, Style::Relaxed, &mut text);
    let relaxed = parse(&text).expect("relaxed text is accepted");
    assert!(equal(relaxed.view(), value), "relaxed text gives an equal value");
}

/// Bytes that nobody checked can be read, printed, measured and compared; what `validate` passes is read whole.
///
/// # Panics
/// Where that does not hold.
pub fn validate_any(bytes: &[u8]) {
    let unchecked = JsonbRef::from_valid(bytes);
    let mut text = Vec::new();
    for style in [Style::Relaxed, Style::Canonical, Style::Plain] {
        print(unchecked, style, &mut text);
    }
    read(unchecked, BODY_LEVELS_MAX);
    sort_key(unchecked, &mut text);
    let _ = (bson_size(unchecked), compare(unchecked, unchecked), id_hash(unchecked));
    if let Ok(value) = validate(bytes) {
        assert!(equal(value, value));
        text.clear();
        print(value, Style::Canonical, &mut text);
        assert!(core::str::from_utf8(&text).is_ok(), "a valid value prints as UTF-8");
    }
}

/// Edits of a document: parts of `bytes` between lines are the document's text, then in turn a path and a value's text.
/// What comes out is valid, and is what parsing its own text gives.
///
/// # Panics
/// Where that does not hold.
pub fn edit_any(bytes: &[u8]) {
    let mut lines = bytes.split(|&b| b == b'\n');
    let mut document = Builder::new();
    if parse_document(lines.next().unwrap_or_default(), &mut document, &mut || [7; 12]).is_err() {
        return;
    }
    let values: Vec<_> = lines.map(|line| (line, parse(line).ok())).collect();
    let mut edits = Edits::new();
    for (i, pair) in values.chunks(2).enumerate() {
        let Some(Ok(path)) = pair.first().map(|(line, _)| Path::parse(&String::from_utf8_lossy(line))) else {
            continue;
        };
        // What is refused here leaves the others as they are.
        let _ = match pair.get(1) {
            Some((_, Some(value))) if i % 3 == 2 => {
                edits.splice(&path, Splice { at: i, remove: 1, insert: vec![value.view()] })
            }
            Some((_, Some(value))) => edits.set(&path, value.view()),
            _ => edits.unset(&path),
        };
    }
    if let Ok(edited) = edits.apply(JsonbRef::from_valid(document.bytes())) {
        validate(edited.as_bytes()).expect("an edited document is valid");
        check_text(edited.view());
    }
}

/// Goes through everything that accessors give.
fn read(value: JsonbRef<'_>, levels_left: u32) {
    let _ = (value.value(), value.as_str(), value.as_i64(), value.as_f64(), value.as_bool(), value.is_plain());
    if levels_left == 0 {
        return;
    }
    if let Some(object) = value.as_object() {
        let _ = (object.len(), object.is_empty(), object.get(""), object.get("name"), object.get("a longer name"));
        for entry in object.iter_sorted() {
            let _ = (entry.name(), entry.value.kind());
        }
        for entry in object {
            let _ = (entry.name(), entry.name_is_plain(), object.get(entry.name()));
            read(entry.value, levels_left - 1);
        }
    }
    if let Some(array) = value.as_array() {
        let _ = (array.len(), array.is_empty(), array.get(1));
        array.iter().for_each(|element| read(element, levels_left - 1));
    }
}
