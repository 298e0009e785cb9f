//! The `runner` room.
