//! The `pressure` room.
