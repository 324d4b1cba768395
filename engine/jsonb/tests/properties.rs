//! Properties over random values: text to bytes to text, and bytes that somebody changed.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use proptest::prelude::*;
use quarrydb_jsonb::{
    Builder, Decimal128, JsonbBuf, JsonbRef, Style, compare, equal, fuzzing, parse, parse_document, print, validate,
};

/// A value as a test knows it: written to text and by the builder, apart from each other.
#[derive(Clone, Debug)]
enum Model {
    Null,
    Bool(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(bool, u128, i32),
    Text(String),
    Binary(u8, Vec<u8>),
    ObjectId([u8; 12]),
    Date(i64),
    Regex(String, String),
    Timestamp(u32, u32),
    MinKey,
    MaxKey,
    Array(Vec<Model>),
    Object(Vec<(String, Model)>),
}

fn name() -> impl Strategy<Value = String> {
    // No dollar first, or it might be a wrapper; no NUL.
    prop_oneof![
        8 => "[a-z_]{0,12}",
        2 => "[^$\0][^\0]{0,40}",
        1 => "[a-z]{120,140}",
    ]
}

fn model() -> impl Strategy<Value = Model> {
    let leaf = prop_oneof![
        Just(Model::Null),
        any::<bool>().prop_map(Model::Bool),
        any::<i32>().prop_map(Model::Int32),
        (any::<i64>(), 0..64).prop_map(|(v, shift)| Model::Int64(v >> shift)),
        any::<f64>().prop_map(Model::Double),
        (-1_000_000_i32..1_000_000, 0..6).prop_map(|(v, places)| Model::Double(f64::from(v) / 10_f64.powi(places))),
        (any::<bool>(), 0..10_u128.pow(34), -6176..6112).prop_map(|(s, c, e)| Model::Decimal(s, c, e)),
        ".{0,20}".prop_map(Model::Text),
        "[ -~]{0,40}".prop_map(Model::Text),
        "[a-z]{250,260}".prop_map(Model::Text),
        "[\0-\u{1f}\"\\\\a]{0,12}".prop_map(Model::Text),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(s, b)| Model::Binary(s, b)),
        any::<[u8; 12]>().prop_map(Model::ObjectId),
        any::<i64>().prop_map(Model::Date),
        (-70_000_000_000_000..260_000_000_000_000_i64).prop_map(Model::Date),
        ("[^\0]{0,9}", "i?l?m?s?u?x?").prop_map(|(p, o)| Model::Regex(p, o)),
        (any::<u32>(), any::<u32>()).prop_map(|(t, i)| Model::Timestamp(t, i)),
        Just(Model::MinKey),
        Just(Model::MaxKey),
    ];
    leaf.prop_recursive(5, 60, 10, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..10).prop_map(Model::Array),
            prop::collection::vec((name(), inner), 0..30).prop_map(|mut fields| {
                let mut seen = std::collections::BTreeSet::new();
                fields.retain(|(name, _)| seen.insert(name.clone()));
                Model::Object(fields)
            }),
        ]
    })
}

fn build(model: &Model, b: &mut Builder) {
    match model {
        Model::Null => b.null(),
        Model::Bool(v) => b.bool(*v),
        Model::Int32(v) => b.int32(*v),
        Model::Int64(v) => b.int64(*v),
        Model::Double(v) => b.double(*v),
        Model::Decimal(s, c, e) => b.decimal128(Decimal128::from_parts(*s, *c, *e).unwrap()),
        Model::Text(v) => b.string(v),
        Model::Binary(s, v) => b.binary(*s, v),
        Model::ObjectId(v) => b.object_id(*v),
        Model::Date(v) => b.date(*v),
        Model::Regex(p, o) => b.regex(p, o),
        Model::Timestamp(t, i) => b.timestamp(*t, *i),
        Model::MinKey => b.min_key(),
        Model::MaxKey => b.max_key(),
        Model::Array(elements) => {
            b.begin_array();
            elements.iter().for_each(|e| build(e, b));
            b.end_array().unwrap();
        }
        Model::Object(fields) => {
            b.begin_object();
            for (name, value) in fields {
                b.field(name);
                build(value, b);
            }
            b.end_object().unwrap();
        }
    }
}

fn built(model: &Model) -> JsonbBuf {
    let mut b = Builder::new();
    build(model, &mut b);
    JsonbBuf::from_valid(b.take())
}

fn printed(v: JsonbRef<'_>, style: Style) -> Vec<u8> {
    let mut out = Vec::new();
    print(v, style, &mut out);
    out
}

/// Whether a reader that is not ours takes a text for JSON.
fn is_json(text: &[u8]) -> bool {
    simd_json::to_tape(&mut text.to_vec()).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_value_is_valid_and_comes_back_from_its_text(model in model()) {
        let value = built(&model);
        validate(value.as_bytes()).unwrap();
        let canonical = printed(value.view(), Style::Canonical);
        prop_assert!(is_json(&canonical));
        prop_assert_eq!(&parse(&canonical).unwrap(), &value);
        let relaxed = printed(value.view(), Style::Relaxed);
        prop_assert!(is_json(&relaxed));
        let back = parse(&relaxed).unwrap();
        prop_assert!(equal(back.view(), value.view()));
        prop_assert_eq!(printed(back.view(), Style::Relaxed), relaxed);
        prop_assert!(is_json(&printed(value.view(), Style::Plain)));
        prop_assert_eq!(compare(value.view(), value.view()), core::cmp::Ordering::Equal);
    }

    #[test]
    fn documents_parsed_one_after_the_other_are_as_if_alone(models in prop::collection::vec(model(), 1..8)) {
        let mut together = Builder::new();
        for model in &models {
            let Model::Object(_) = model else { continue };
            let text = printed(built(model).view(), Style::Canonical);
            for _ in 0..2 {
                let from = together.len();
                let mut alone = Builder::new();
                let one = parse_document(&text, &mut alone, &mut || [9; 12]);
                prop_assert_eq!(&parse_document(&text, &mut together, &mut || [9; 12]), &one);
                prop_assert_eq!(&together.bytes()[from..], alone.bytes());
            }
        }
    }

    #[test]
    fn fields_are_found_by_name(fields in prop::collection::btree_map(name(), any::<i32>(), 0..300)) {
        let mut b = Builder::new();
        b.begin_object();
        for (name, value) in &fields {
            b.field(name);
            b.int32(*value);
        }
        b.end_object().unwrap();
        let object = JsonbRef::from_valid(b.bytes());
        validate(b.bytes()).unwrap();
        for (name, value) in &fields {
            prop_assert_eq!(object.get(name).and_then(|v| v.as_i64()), Some(i64::from(*value)), "{}", name);
            let longer = format!("{name}\u{1}");
            prop_assert_eq!(object.get(&longer).is_some(), fields.contains_key(&longer));
        }
    }

    #[test]
    fn changed_bytes_are_survived(model in model(), changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..4)) {
        let mut bytes = built(&model).into_bytes();
        for (at, byte) in changes {
            let at = at as usize % bytes.len();
            bytes[at] = byte;
            fuzzing::validate_any(&bytes);
        }
    }

    #[test]
    fn changed_text_is_survived(model in model(), changes in prop::collection::vec((any::<u16>(), "[\"\\\\{}\\[\\],:$0-9a-e.\\-]"), 1..4)) {
        let mut text = printed(built(&model).view(), Style::Canonical);
        for (at, byte) in changes {
            let at = at as usize % text.len();
            text[at] = byte.as_bytes()[0];
            fuzzing::parse_any(&text);
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::validate_any(&bytes);
        fuzzing::parse_any(&bytes);
        fuzzing::edit_any(&bytes);
    }
}
