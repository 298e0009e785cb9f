//! The `linear` room.
