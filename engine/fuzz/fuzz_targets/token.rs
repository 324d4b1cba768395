//! Any text as the resume token of a change stream; the body is `quarrydb::fuzzing::fuzz_token`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quarrydb::fuzzing::fuzz_token(data));
