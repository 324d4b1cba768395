//! Any bytes as a log file; the body is `quarrydb::fuzzing::fuzz_log_read`, which a test on stable runs too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quarrydb::fuzzing::fuzz_log_read(data));
