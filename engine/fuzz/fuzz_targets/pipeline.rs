//! See the body: `quarrydb_query::fuzzing::fuzz_pipeline`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quarrydb_query::fuzzing::fuzz_pipeline(data));
