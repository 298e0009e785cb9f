//! Behaviour tests, one module per room.
