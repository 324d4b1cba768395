//! One document as bytes.
//!
//! A document is one contiguous, self-contained slice. [`Builder`] writes it, [`JsonbRef`] reads it where it lies.
//! This crate takes bytes and gives bytes: it knows no files, clocks, threads, collections or queries.
//!
//! Reading order: `tag.rs`, `view.rs`, `object.rs`, `array.rs`, `builder.rs`, then `parse/mod.rs` and
//! `print.rs`.

mod array;
mod bignum;
mod buf;
mod builder;
mod date;
mod de;
mod de_key;
mod de_value;
mod decimal;
mod directory;
pub mod edit;
mod error;
mod extended;
#[doc(hidden)]
pub mod fuzzing;
mod known_order;
mod measure;
mod newtypes;
mod number;
mod object;
mod order;
mod parse;
mod path;
mod print;
mod ser;
mod ser_key;
mod sort_key;
mod tag;
mod validate;
mod view;

pub use array::{ArrayIter, ArrayRef};
pub use buf::JsonbBuf;
pub use builder::{Builder, is_plain};
pub use de::from_jsonb;
pub use edit::{Edits, Splice};
pub use error::{Error, ErrorKind, Place};
pub use measure::bson_size;
pub use newtypes::{Binary, DateTime, MaxKey, MinKey, ObjectId, Regex, Timestamp};
pub use number::{Decimal128, compare_numbers};
pub use object::{Entry, ObjectIter, ObjectRef};
pub use order::{compare, equal, type_rank};
pub use parse::{BODY_LEVELS_MAX, DOCUMENT_BSON_BYTES_MAX, DOCUMENT_LEVELS_MAX, parse, parse_body, parse_document};
pub use path::{PATH_PARTS_MAX, Path, array_index, step};
pub use print::{Style, print};
pub use ser::{to_builder, to_jsonb};
pub use sort_key::{NUMBERS_ABOVE_NAN, id_hash, sort_key, sort_key_descending, sort_key_len, sort_key_of};
pub use tag::{Kind, Width};
pub use validate::validate;
pub use view::{JsonbRef, NULL, Value, first_value};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_written_is_read_back_in_order_and_by_name() {
        let mut b = Builder::new();
        for _ in 0..2 {
            let from = b.len();
            b.begin_document();
            b.field("name");
            b.string("a \"quoted\" one");
            b.field("n");
            b.int64(-1);
            b.field("_id");
            b.int32(300);
            b.field("address");
            b.begin_object();
            for i in 0..100 {
                b.field(&format!("field number {i}"));
                b.int32(i);
            }
            b.end_object().expect("names differ");
            b.field("list");
            b.begin_array();
            b.double(0.5);
            b.null();
            b.int64(i64::MIN);
            b.end_array().expect("small");
            b.end_document(|| [7; 12]).expect("names differ");
            let doc = JsonbRef::from_valid(&b.bytes()[from..]);
            let names: Vec<_> = doc.as_object().expect("object").iter().map(|e| e.name().to_owned()).collect();
            assert_eq!(names, ["_id", "name", "n", "address", "list"]);
            assert_eq!(doc.get("_id").and_then(JsonbRef::as_i64), Some(300));
            assert_eq!(doc.get("n").and_then(JsonbRef::as_i64), Some(-1));
            let address = doc.get("address").expect("address");
            for i in 0..100 {
                assert_eq!(address.get(&format!("field number {i}")).and_then(JsonbRef::as_i64), Some(i));
            }
            let list: Vec<_> = doc.get("list").and_then(JsonbRef::as_array).expect("list").iter().collect();
            assert_eq!(list.len(), 3);
            assert_eq!(list[2].as_i64(), Some(i64::MIN));
            assert_eq!(doc.get("missing"), None);
        }
    }

    #[test]
    fn an_id_is_made_where_none_is_given() {
        let mut b = Builder::new();
        b.begin_document();
        b.field("a");
        b.bool(true);
        b.end_document(|| *b"twelve bytes").expect("names differ");
        let bytes = b.take();
        let doc = JsonbRef::from_valid(&bytes);
        assert_eq!(doc.get("_id").map(JsonbRef::value), Some(Value::ObjectId(*b"twelve bytes")));
        assert_eq!(doc.get("a").map(JsonbRef::value), Some(Value::Bool(true)));
        assert_eq!(doc.as_object().map(ObjectRef::len), Some(2));
    }

    #[test]
    fn a_repeated_name_is_refused() {
        let mut b = Builder::new();
        b.begin_object();
        for name in ["abcdefghij", "abcdefghik", "abcdefghij"] {
            b.field(name);
            b.null();
        }
        assert_eq!(b.end_object().expect_err("repeated").kind(), ErrorKind::RepeatedKey);
    }
}
