//! The `liquid` room.
