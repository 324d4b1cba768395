//! Engines of others, found by address or on the path.
