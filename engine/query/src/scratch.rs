//! A builder for each thread, so that making a small value allocates its bytes and nothing else.
//!
//! Takes a function that writes one value, gives the value. A function that itself asks for one gets another builder.

use crate::QueryError;
use quarrydb_jsonb::{Builder, JsonbBuf};
use std::cell::Cell;

thread_local! {
    static BUILDER: Cell<Builder> = Cell::new(Builder::new());
}

/// The value that `write` writes, in a buffer that begins with `capacity` bytes.
pub(crate) fn build(
    capacity: usize,
    write: impl FnOnce(&mut Builder) -> Result<(), QueryError>,
) -> Result<JsonbBuf, QueryError> {
    let mut builder = BUILDER.take();
    builder.put(Vec::with_capacity(capacity));
    let written = write(&mut builder);
    if written.is_err() {
        builder.rewind(0);
    }
    let value = JsonbBuf::from_valid(builder.take());
    BUILDER.set(builder);
    written.map(|()| value)
}
