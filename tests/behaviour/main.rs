//! Behaviour tests, one module per room.

mod surface;
