//! The benchmarks: ours beside the floors of the machine, in one run.

fn main() {}
