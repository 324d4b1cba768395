//! Every bound of this crate, by name.

/// How deep filters, projections, updates and expressions may nest: the depth that a body may have.
pub const NESTING_MAX: usize = 200;

/// The parts that a dotted path may have.
pub const PATH_PARTS_MAX: usize = 200;

/// Fields of one sort.
pub const SORT_FIELDS_MAX: usize = 32;

/// Bytes that the first regular expressions of a filter may take when compiled; later ones have less.
pub const PATTERN_PROGRAM_BYTES_MAX: usize = 4 << 20;

/// Bytes that every regular expression may take when compiled, however many came before.
pub const PATTERN_PROGRAM_BYTES_MIN: usize = 32 << 10;

/// Bytes of the lazy automaton's cache while a regular expression runs.
pub const PATTERN_CACHE_BYTES_MAX: usize = 1 << 20;

/// Bytes of a regular expression's text: PCRE's limit as MongoDB has it.
pub const PATTERN_BYTES_MAX: usize = 32_764;

/// What compiling one regular expression may take, in characters of the classes that it names: some tenth of a second. Wide
/// ranges and Unicode properties are taken apart character by character before their size is known.
pub const PATTERN_WORK_MAX: u64 = 1 << 25;

/// The same for all of one filter.
pub const PATTERNS_WORK_MAX: u64 = 8 * PATTERN_WORK_MAX;

/// Candidates that one filter may look at in one document: seconds of work. A filter of 100,000 branches on an array of a
/// million elements would look at 10^11, and nothing could stop it.
pub const MATCH_STEPS_MAX: u64 = 1 << 28;

/// Regular expressions of one filter.
pub const PATTERNS_MAX: usize = 4096;

/// How deep the containers of a document may nest, the document itself counted.
pub const DOCUMENT_NESTING_MAX: usize = 100;

/// Bytes of a document, as BSON would measure it.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// Nulls that an update may put between an array's end and the position it writes to.
pub const ARRAY_PADDING_MAX: usize = 1_500_000;

/// Stages of one pipeline, as in MongoDB.
pub const PIPELINE_STAGES_MAX: usize = 1000;

/// `$lookup`s and `$unionWith`s inside each other, as in MongoDB.
pub const SUB_PIPELINES_MAX: usize = 20;

/// Bytes of the pipelines inside each other that are kept, to be parsed again with the values of their variables.
pub const KEPT_PIPELINE_BYTES_MAX: usize = 48 << 20;

/// Bytes that one search of `$graphLookup` may hold, as in MongoDB.
pub const GRAPH_BYTES_MAX: usize = 100 << 20;

/// Array filters of one update: each is asked about each element of an array.
pub const ARRAY_FILTERS_MAX: usize = 256;

/// Bytes that an update may write before its result is measured: no document of [`DOCUMENT_BYTES_MAX`] takes more here.
pub const WRITTEN_BYTES_MAX: usize = 3 * DOCUMENT_BYTES_MAX;

/// Bytes of a body's `let`, as it is stored.
pub const LET_BYTES_MAX: usize = 64 << 10;
