//! Fuzzes `quarrydb_jsonb::fuzzing::parse_any`, which says what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quarrydb_jsonb::fuzzing::parse_any(bytes));
