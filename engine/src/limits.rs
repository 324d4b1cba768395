//! Hard limits, each named once, related by assertions. What a user may set is in `options.rs`.

/// The deepest nesting of a stored document, as MongoDB has it.
pub const DOCUMENT_DEPTH_MAX: usize = 100;
/// The largest document, as BSON would measure it.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most bytes that one commit may put into the log.
pub const COMMIT_BYTES_MAX: usize = 1 << 30;
/// Rows of a tail or segment; row numbers stay below it.
pub const ROWS_MAX: u32 = 1 << 20;
/// A segment takes no further row once its rows have this many bytes.
pub const SEGMENT_BYTES_MAX: u64 = 256 << 20;
/// A database's name.
pub const DATABASE_NAME_BYTES_MAX: usize = 63;
/// A collection's name.
pub const COLLECTION_NAME_BYTES_MAX: usize = 120;
/// How often a write by filter starts over because its candidates changed, before it runs inside the committing order.
pub const WRITE_RETRIES_MAX: usize = 3;
/// Rows that a scan takes before it looks at its deadline.
pub const DEADLINE_CHECK_ROWS: usize = 256;
/// The most sort keys that one sort holds in memory.
pub const SORT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most memory that one stage of a pipeline takes, beyond which it uses the disk.
pub const STAGE_BYTES_MAX: usize = 100 << 20;
/// The most memory that the values of one `distinct` take; an answer is one document, of at most 16 MiB.
pub const DISTINCT_BYTES_MAX: usize = 4 * DOCUMENT_BYTES_MAX;
/// Bytes of documents that one transaction may write.
pub const TRANSACTION_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Documents that one transaction may write, each time counted.
pub const TRANSACTION_WRITES_MAX: usize = ROWS_MAX as usize;
/// Documents that changed since a transaction's snapshot and that its questions are held against before it begins anew.
pub const CHANGES_ASKED_MAX: usize = 4096;
/// Outcomes of transactions that are remembered, for commits that are asked for again.
pub const OUTCOMES_MAX: usize = 10_000;

const _: () = assert!(DOCUMENT_BYTES_MAX * 4 < COMMIT_BYTES_MAX);
const _: () = assert!(TRANSACTION_BYTES_MAX * 2 < COMMIT_BYTES_MAX);
/// Declared indexes of one collection, `_id_` counted.
pub const INDEXES_MAX: usize = 64;
/// Fields of one index.
pub const INDEX_FIELDS_MAX: usize = 32;
/// An index's name.
pub const INDEX_NAME_BYTES_MAX: usize = 1024;
/// Entries of one document in one index.
pub const INDEX_KEYS_MAX: usize = 100_000;
/// Bytes of the entries of one document in one index.
pub const INDEX_KEYS_BYTES_MAX: usize = 64 * 1024 * 1024;
