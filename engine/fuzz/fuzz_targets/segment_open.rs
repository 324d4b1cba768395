//! Any bytes as a segment file; the body is `quarrydb::fuzzing::fuzz_segment_open`, which a test on stable runs too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quarrydb::fuzzing::fuzz_segment_open(data));
