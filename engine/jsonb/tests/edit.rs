//! Edits by path: against a model that rebuilds the document field by field.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{Random, any_value, object, value, write_any};
use quarrydb_jsonb::{Builder, Edits, ErrorKind, JsonbBuf, JsonbRef, NULL, Path, Splice, edit, validate};

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

fn int(v: i32) -> JsonbBuf {
    value(|b| b.int32(v))
}

fn ints(v: &[i32]) -> JsonbBuf {
    value(|b| {
        b.begin_array();
        v.iter().for_each(|&v| b.int32(v));
        b.end_array().unwrap();
    })
}

#[test]
fn paths_are_parsed_printed_and_stepped() {
    for bad in ["", ".", "a.", ".a", "a..b", "a\0"] {
        assert_eq!(Path::parse(bad).unwrap_err().kind(), ErrorKind::BadPath, "{bad:?}");
    }
    assert_eq!(Path::parse(&["a"; 201].join(".")).unwrap_err().kind(), ErrorKind::BadPath);
    let p = path("a.b.0.\u{e9}");
    assert_eq!(p.to_string(), "a.b.0.\u{e9}");
    assert_eq!(p.parts().collect::<Vec<_>>(), ["a", "b", "0", "\u{e9}"]);
    assert_eq!((p.part(0), p.part(3), p.part(4)), (Some("a"), Some("\u{e9}"), None));
    assert_eq!(p.prefix(2), Some(path("a.b")));
    assert_eq!((p.prefix(0), p.prefix(5)), (None, None));
    assert!(
        path("a.b").overlaps(&path("a")) && path("a").overlaps(&path("a.b")) && !path("a.b").overlaps(&path("a.c"))
    );
    assert!(!path("a.b").overlaps(&path("ab")));
    let doc = object(&[("a", object(&[("b", ints(&[4, 5])), ("0", int(6))]))]);
    assert_eq!(path("a.0").get(doc.view()), Some(int(6).view()));
    assert_eq!(path("a.b.1").get(doc.view()), None);
    assert_eq!(path("a.b.1").get_indexed(doc.view()), Some(int(5).view()));
    for miss in ["a.b.2", "a.b.01", "a.b.-1", "a.b.x", "a.0.x", "b"] {
        assert_eq!(path(miss).get_indexed(doc.view()), None, "{miss}");
    }
}

#[test]
fn new_fields_come_at_the_end_in_the_order_given() {
    let doc = object(&[("x", int(1)), ("y", int(2))]);
    let (one, two) = (int(1), int(2));
    let mut edits = Edits::new();
    edits.set(&path("z.b"), one.view()).unwrap();
    edits.set(&path("a"), two.view()).unwrap();
    edits.unset(&path("x")).unwrap();
    edits.set(&path("z.a"), two.view()).unwrap();
    edits.unset(&path("q.r")).unwrap();
    let z = object(&[("b", int(1)), ("a", int(2))]);
    let expected = object(&[("y", int(2)), ("z", z), ("a", int(2))]);
    assert_eq!(edits.apply(doc.view()).unwrap(), expected);
}

#[test]
fn a_rename_moves_the_value() {
    let doc = object(&[("a", int(1)), ("b", int(2)), ("c", int(3))]);
    let mut edits = Edits::new();
    edits.rename(doc.view(), &path("a"), &path("n.a")).unwrap();
    edits.rename(doc.view(), &path("missing"), &path("m")).unwrap();
    edits.rename(doc.view(), &path("c"), &path("b")).unwrap();
    let expected = object(&[("b", int(3)), ("n", object(&[("a", int(1))]))]);
    assert_eq!(edits.apply(doc.view()).unwrap(), expected);
}

#[test]
fn arrays_are_pushed_inserted_removed_and_padded() {
    let doc = object(&[("l", ints(&[1, 2, 3]))]);
    let is = |new: JsonbBuf, expected: &[i32]| assert_eq!(new.view().get("l"), Some(ints(expected).view()));
    is(edit::push(doc.view(), &path("l"), int(4).view()).unwrap(), &[1, 2, 3, 4]);
    is(edit::insert(doc.view(), &path("l"), 0, int(4).view()).unwrap(), &[4, 1, 2, 3]);
    is(edit::insert(doc.view(), &path("l"), 9, int(4).view()).unwrap(), &[1, 2, 3, 4]);
    is(edit::remove(doc.view(), &path("l"), 1).unwrap(), &[1, 3]);
    is(edit::remove(doc.view(), &path("l"), 3).unwrap(), &[1, 2, 3]);
    is(edit::set(doc.view(), &path("l.1"), int(9).view()).unwrap(), &[1, 9, 3]);
    let mut edits = Edits::new();
    let new = int(7);
    edits.splice(&path("l"), Splice { at: 1, remove: 5, insert: vec![new.view(), new.view()] }).unwrap();
    is(edits.apply(doc.view()).unwrap(), &[1, 7, 7]);
    let padded = edit::set(doc.view(), &path("l.5"), int(9).view()).unwrap();
    let elements: Vec<_> = padded.view().get("l").unwrap().as_array().unwrap().iter().collect();
    assert_eq!(elements[3..], [NULL, NULL, int(9).view()]);
    let unset = edit::unset(doc.view(), &path("l.0")).unwrap();
    assert_eq!(path("l.0").get_indexed(unset.view()), Some(NULL));
    assert_eq!(
        edit::push(doc.view(), &path("n.m"), int(1).view()).unwrap().view().get("n"),
        Some(object(&[("m", ints(&[1]))]).view())
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let doc = object(&[("s", int(1)), ("l", ints(&[1]))]);
    let bad = |result: Result<JsonbBuf, quarrydb_jsonb::Error>, place: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::BadPath, place), "{error}");
    };
    bad(edit::set(doc.view(), &path("s.a"), NULL), "s");
    bad(edit::set(doc.view(), &path("l.a"), NULL), "l");
    bad(edit::set(doc.view(), &path("l.0.a"), NULL), "l.0");
    bad(edit::set(doc.view(), &path("l.1600000"), NULL), "l");
    bad(edit::push(doc.view(), &path("s"), NULL), "s");
    bad(edit::set(int(1).view(), &path("s"), NULL), "");
    assert_eq!(edit::unset(doc.view(), &path("s.a")).unwrap(), doc);
    assert_eq!(edit::unset(doc.view(), &path("l.a")).unwrap(), doc);
    let mut edits = Edits::new();
    edits.unset(&path("a.b")).unwrap();
    for (overlapping, at) in [("a", "a"), ("a.b", "a.b"), ("a.b.c", "a.b")] {
        let error = edits.set(&path(overlapping), NULL).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadPath);
        assert!(error.message().ends_with(&format!("a conflict at '{at}'")), "{error}");
    }
    edits.set(&path("a.c"), NULL).unwrap();
}

#[test]
fn depth_and_size_are_bounded() {
    let doc = object(&[]);
    // 99 objects below the document, a scalar in the innermost: 100 levels.
    assert!(edit::set(doc.view(), &path(&["a"; 100].join(".")), NULL).is_ok());
    let deep = |parts: usize, v: &JsonbBuf| edit::set(doc.view(), &path(&vec!["a"; parts].join(".")), v.view());
    assert_eq!(deep(101, &int(1)).unwrap_err().kind(), ErrorKind::TooDeep);
    assert!(deep(99, &ints(&[1])).is_ok());
    assert_eq!(deep(100, &ints(&[1])).unwrap_err().kind(), ErrorKind::TooDeep);
    assert_eq!(edit::push(doc.view(), &path(&["a"; 100].join(".")), NULL).unwrap_err().kind(), ErrorKind::TooDeep);
    let large = value(|b| b.string(&"x".repeat(9 << 20)));
    let half = edit::set(doc.view(), &path("a"), large.view()).unwrap();
    assert_eq!(edit::set(half.view(), &path("b"), large.view()).unwrap_err().kind(), ErrorKind::TooLarge);
}

/// A document as a tree, edited the plain way.
#[derive(Clone, Debug, PartialEq)]
enum Model {
    Object(Vec<(String, Model)>),
    Array(Vec<Model>),
    /// Null that filled an array up: as good as missing for a later edit.
    Hole,
    Other(JsonbBuf),
}

impl Model {
    fn of(v: JsonbRef<'_>) -> Self {
        if let Some(object) = v.as_object() {
            return Self::Object(object.iter().map(|e| (e.name().to_owned(), Self::of(e.value))).collect());
        }
        match v.as_array() {
            Some(array) => Self::Array(array.iter().map(Self::of).collect()),
            None => Self::Other(v.to_buf()),
        }
    }

    fn write(&self, b: &mut Builder) {
        match self {
            Self::Object(fields) => {
                b.begin_object();
                for (name, v) in fields {
                    b.field(name);
                    v.write(b);
                }
                b.end_object().unwrap();
            }
            Self::Array(elements) => {
                b.begin_array();
                elements.iter().for_each(|v| v.write(b));
                b.end_array().unwrap();
            }
            Self::Hole => b.null(),
            Self::Other(v) => b.copy(v.view()),
        }
    }

    fn set(&mut self, parts: &[&str], new: Model) -> Result<(), ()> {
        let Some((first, rest)) = parts.split_first() else {
            *self = new;
            return Ok(());
        };
        match self {
            Self::Object(fields) => {
                if let Some((_, v)) = fields.iter_mut().find(|(name, _)| name == first) {
                    return v.set(rest, new);
                }
                let mut v = Self::Hole;
                v.set(rest, new)?;
                fields.push(((*first).to_owned(), v));
                Ok(())
            }
            Self::Array(elements) => {
                let index: usize = first.parse().map_err(|_| ())?;
                while elements.len() <= index {
                    elements.push(Self::Hole);
                }
                elements[index].set(rest, new)
            }
            Self::Hole => {
                *self = Self::Object(Vec::new());
                self.set(parts, new)
            }
            Self::Other(_) => Err(()),
        }
    }

    fn unset(&mut self, parts: &[&str]) {
        let (first, rest) = parts.split_first().unwrap();
        match self {
            Self::Object(fields) if rest.is_empty() => fields.retain(|(name, _)| name != first),
            Self::Object(fields) => {
                if let Some((_, v)) = fields.iter_mut().find(|(name, _)| name == first) {
                    v.unset(rest);
                }
            }
            Self::Array(elements) => {
                if let Some(v) = first.parse().ok().and_then(|i: usize| elements.get_mut(i)) {
                    if rest.is_empty() {
                        *v = Self::Other(NULL.to_buf());
                    } else {
                        v.unset(rest);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A document whose names are few, so that paths often meet something.
fn write_document(random: &mut Random, depth: usize, b: &mut Builder) {
    b.begin_object();
    for name in ["a", "b", "0", "1", "long name \" with a quote", "\u{e9}"] {
        match random.below(5) {
            0 => {}
            1 if depth > 0 => {
                b.field(name);
                write_document(random, depth - 1, b);
            }
            2 if depth > 0 => {
                b.field(name);
                b.begin_array();
                for _ in 0..random.below(4) {
                    match random.below(2) {
                        0 => write_document(random, depth - 1, b),
                        _ => write_any(random, 1, b),
                    }
                }
                b.end_array().unwrap();
            }
            _ => {
                b.field(name);
                // Sizes around the steps of the widths.
                match random.below(12) {
                    0 => b.string(&"x".repeat(random.below(300) as usize)),
                    1 => b.string(&"x".repeat(65_400 + random.below(200) as usize)),
                    _ => write_any(random, 1, b),
                }
            }
        }
    }
    b.end_object().unwrap();
}

#[test]
fn edits_equal_the_document_rebuilt() {
    let mut random = Random::new(11);
    let (mut done, mut refused) = (0, 0);
    for _ in 0..2500 {
        let doc = value(|b| write_document(&mut random, 3, b));
        let mut model = Model::of(doc.view());
        let new: Vec<_> = (0..5).map(|_| any_value(&mut random, 2)).collect();
        let mut edits = Edits::new();
        let mut fits = true;
        for v in &new[..random.below(6) as usize] {
            let parts: Vec<_> =
                (0..=random.below(4)).map(|_| random.pick(&["a", "b", "0", "1", "3", "\u{e9}", "new"])).collect();
            let path = path(&parts.join("."));
            if random.below(3) == 0 {
                if edits.unset(&path).is_ok() {
                    model.unset(&parts);
                }
            } else if edits.set(&path, v.view()).is_ok() {
                fits &= model.set(&parts, Model::of(v.view())).is_ok();
            }
        }
        let result = edits.apply(doc.view());
        if fits {
            done += 1;
            let new = result.unwrap();
            assert_eq!(validate(new.as_bytes()).err(), None);
            assert!(new == value(|b| model.write(b)), "{edits:?} on {doc:?}");
        } else {
            refused += 1;
            assert_eq!(result.unwrap_err().kind(), ErrorKind::BadPath);
        }
    }
    assert!(done > 800 && refused > 200, "{done} {refused}");
}
