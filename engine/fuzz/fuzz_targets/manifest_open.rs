//! Any bytes as a manifest file; the body is `quarrydb::fuzzing::fuzz_manifest`, which a test on stable runs too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quarrydb::fuzzing::fuzz_manifest(data));
