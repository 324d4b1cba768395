//! Every bound of this crate, by name.

/// How deep filters, projections, updates and expressions may nest: the depth that a body may have.
pub const NESTING_MAX: usize = 200;

/// The parts that a dotted path may have.
pub const PATH_PARTS_MAX: usize = 200;

/// Fields of one sort.
pub const SORT_FIELDS_MAX: usize = 32;

/// Bytes that a compiled regular expression may take.
pub const REGEX_BYTES_MAX: usize = 8 << 20;

/// Bytes of the lazy automaton's cache while a regular expression runs.
pub const REGEX_CACHE_BYTES_MAX: usize = 2 << 20;

/// Bytes of a regular expression's text.
pub const REGEX_PATTERN_BYTES_MAX: usize = 32_764;
