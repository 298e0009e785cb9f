//! Behaviour tests, one module per room.

mod linear;
