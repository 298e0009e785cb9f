//! The `export` room.
