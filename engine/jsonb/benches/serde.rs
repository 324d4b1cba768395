//! Rust structs to and from documents, beside the `bson` crate: small, small nested, large, large nested.
//!
//! `cargo bench -p quarrydb-jsonb --features compare --bench serde` (or `--profile fast`). The shapes are those of the
//! MongoDB Go driver's codec benchmark: a few scalars; some objects in each other; a hundred fields; a hundred objects.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark stops where it fails")]

use std::hint::black_box;

use divan::Bencher;
use quarrydb_jsonb::{Builder, JsonbRef, compare, from_jsonb, id_hash, sort_key, to_builder, to_jsonb};
use serde::{Deserialize, Serialize};

fn main() {
    divan::main();
}

#[derive(Clone, Serialize, Deserialize)]
struct Small {
    name: String,
    age: i32,
    balance: f64,
    active: bool,
    visits: i64,
    city: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct SmallNested {
    id: i64,
    person: Small,
    address: Address,
    tags: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Address {
    street: String,
    zip: i32,
    location: Location,
}

#[derive(Clone, Serialize, Deserialize)]
struct Location {
    x: f64,
    y: f64,
}

/// A struct of a hundred fields by name.
macro_rules! large {
    ($($text:ident $int:ident $double:ident $flag:ident),*) => {
        #[derive(Clone, Serialize, Deserialize)]
        struct Large {
            $($text: String, $int: i64, $double: f64, $flag: bool,)*
        }
        fn large() -> Large {
            Large { $($text: concat!("the text of ", stringify!($text)).into(), $int: 1_234_567, $double: 0.75, $flag: true,)* }
        }
    };
}

large!(
    text_01 int_01 double_01 flag_01, text_02 int_02 double_02 flag_02, text_03 int_03 double_03 flag_03,
    text_04 int_04 double_04 flag_04, text_05 int_05 double_05 flag_05, text_06 int_06 double_06 flag_06,
    text_07 int_07 double_07 flag_07, text_08 int_08 double_08 flag_08, text_09 int_09 double_09 flag_09,
    text_10 int_10 double_10 flag_10, text_11 int_11 double_11 flag_11, text_12 int_12 double_12 flag_12,
    text_13 int_13 double_13 flag_13, text_14 int_14 double_14 flag_14, text_15 int_15 double_15 flag_15,
    text_16 int_16 double_16 flag_16, text_17 int_17 double_17 flag_17, text_18 int_18 double_18 flag_18,
    text_19 int_19 double_19 flag_19, text_20 int_20 double_20 flag_20, text_21 int_21 double_21 flag_21,
    text_22 int_22 double_22 flag_22, text_23 int_23 double_23 flag_23, text_24 int_24 double_24 flag_24,
    text_25 int_25 double_25 flag_25
);

#[derive(Clone, Serialize, Deserialize)]
struct LargeNested {
    first: Large,
    items: Vec<SmallNested>,
}

fn small() -> Small {
    Small {
        name: "Ada Lovelace".into(),
        age: 36,
        balance: 1234.5,
        active: true,
        visits: 1 << 40,
        city: Some("London".into()),
    }
}

fn small_nested() -> SmallNested {
    SmallNested {
        id: 77,
        person: small(),
        address: Address {
            street: "12 St James's Square".into(),
            zip: 12345,
            location: Location { x: 51.5, y: -0.13 },
        },
        tags: vec!["a".into(), "mathematics".into()],
    }
}

fn large_nested() -> LargeNested {
    LargeNested { first: large(), items: vec![small_nested(); 100] }
}

/// The four directions of one shape.
macro_rules! shape {
    ($module:ident, $type:ident) => {
        mod $module {
            use super::*;

            #[divan::bench]
            fn to_jsonb_new(b: Bencher<'_, '_>) {
                let v = super::$module();
                b.bench_local(|| to_jsonb(black_box(&v)).unwrap());
            }

            #[divan::bench]
            fn to_jsonb_reused(b: Bencher<'_, '_>) {
                let v = super::$module();
                let mut out = Builder::new();
                b.bench_local(|| {
                    out.rewind(0);
                    to_builder(black_box(&v), &mut out).unwrap();
                    black_box(out.len());
                });
            }

            #[divan::bench]
            fn to_bson(b: Bencher<'_, '_>) {
                let v = super::$module();
                b.bench_local(|| bson::serialize_to_vec(black_box(&v)).unwrap());
            }

            #[divan::bench]
            fn from_jsonb_owned(b: Bencher<'_, '_>) {
                let doc = to_jsonb(&super::$module()).unwrap();
                b.bench_local(|| from_jsonb::<$type>(black_box(doc.view())).unwrap());
            }

            #[divan::bench]
            fn from_bson_owned(b: Bencher<'_, '_>) {
                let doc = bson::serialize_to_vec(&super::$module()).unwrap();
                b.bench_local(|| bson::deserialize_from_slice::<$type>(black_box(&doc)).unwrap());
            }
        }
    };
}

shape!(small, Small);
shape!(small_nested, SmallNested);
shape!(large, Large);
shape!(large_nested, LargeNested);

mod borrowed {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[allow(dead_code, reason = "read by serde only")]
    struct SmallBorrowed<'a> {
        name: &'a str,
        age: i32,
        balance: f64,
        active: bool,
        visits: i64,
        city: Option<&'a str>,
    }

    #[divan::bench]
    fn small_from_jsonb(b: Bencher<'_, '_>) {
        let doc = to_jsonb(&small()).unwrap();
        b.bench_local(|| {
            black_box(from_jsonb::<SmallBorrowed<'_>>(black_box(doc.view())).unwrap().age);
        });
    }

    #[divan::bench]
    fn small_from_bson(b: Bencher<'_, '_>) {
        let doc = bson::serialize_to_vec(&small()).unwrap();
        b.bench_local(|| {
            black_box(bson::deserialize_from_slice::<SmallBorrowed<'_>>(black_box(&doc)).unwrap().age);
        });
    }
}

mod values {
    use super::*;

    fn bytes<T: Serialize>(v: T) -> Vec<u8> {
        to_jsonb(&v).unwrap().into_bytes()
    }

    #[divan::bench]
    fn compare_small_objects(b: Bencher<'_, '_>) {
        let (left, right) = (bytes(small()), bytes(Small { city: None, ..small() }));
        b.bench_local(|| compare(JsonbRef::from_valid(black_box(&left)), JsonbRef::from_valid(black_box(&right))));
    }

    #[divan::bench(args = ["int", "double", "text", "object"])]
    fn sort_key_of(b: Bencher<'_, '_>, what: &str) {
        let v = match what {
            "int" => bytes(12_345),
            "double" => bytes(0.1),
            "text" => bytes("twenty bytes of text"),
            _ => bytes(small()),
        };
        let mut out = Vec::new();
        b.bench_local(|| {
            out.clear();
            sort_key(JsonbRef::from_valid(black_box(&v)), &mut out);
            black_box(out.len());
        });
    }

    #[divan::bench(args = ["int", "text", "id"])]
    fn id_hash_of(b: Bencher<'_, '_>, what: &str) {
        let v = match what {
            "int" => bytes(12_345),
            "text" => bytes("twenty bytes of text"),
            _ => bytes(quarrydb_jsonb::ObjectId([7; 12])),
        };
        b.bench_local(|| id_hash(JsonbRef::from_valid(black_box(&v))));
    }

    #[divan::bench]
    fn get_one_of_a_hundred(b: Bencher<'_, '_>) {
        let v = bytes(large());
        b.bench_local(|| JsonbRef::from_valid(black_box(&v)).get(black_box("double_13")));
    }
}
