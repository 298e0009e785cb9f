//! The numbers of vectors: f32 inside the preconditioner, f64 outside of it.

use std::ops::{Add, AddAssign, Mul, MulAssign};

/// A floating-point number that kernels are compiled for.
pub(super) trait Scalar:
    Copy
    + Default
    + Into<f64>
    + From<f32>
    + Add<Output = Self>
    + AddAssign
    + Mul<Output = Self>
    + MulAssign
    + Send
    + Sync
{
    /// Rounds a number in double precision.
    fn from_f64(value: f64) -> Self;
}

impl Scalar for f32 {
    #[inline(always)]
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
}

impl Scalar for f64 {
    #[inline(always)]
    fn from_f64(value: f64) -> f64 {
        value
    }
}
