//! What conjugate gradients ask of the vectors they work on.

/// The size of a residual.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResidualNorm {
    /// Sum of the squares of its entries.
    pub sum_sq: f64,
    /// Its largest magnitude.
    pub max_abs: f64,
}

impl ResidualNorm {
    /// The Euclidean norm.
    pub fn norm(&self) -> f64 {
        self.sum_sq.sqrt()
    }

    /// Takes one more entry into account.
    pub fn include(&mut self, value: f64) {
        self.sum_sq += value * value;
        self.max_abs = self.max_abs.max(value.abs());
    }

    /// Takes the entries of another part of the residual into account.
    pub fn include_all(&mut self, part: ResidualNorm) {
        self.sum_sq += part.sum_sq;
        self.max_abs = self.max_abs.max(part.max_abs);
    }
}

/// Which preconditioner an iteration uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linear) enum Precondition {
    /// The one that the space was made with.
    Primary,
    /// Division by the diagonal, when the primary one has failed.
    Jacobi,
}

/// The vectors of a solve: `x` the answer so far, `r = b − A x` its residual, `p` the direction of search, `z = M r`.
pub(in crate::linear) trait KrylovSpace {
    /// Takes a power of two near `1 / ‖b‖`. A preconditioner in single precision scales `r` by it, so that rounding neither
    /// overflows nor loses small right-hand sides.
    fn set_scale(&mut self, _scale: f64) {}

    /// `x = 0`.
    fn clear_x(&mut self);

    /// Hands an `r` that was set from outside to the preconditioner.
    fn round_residual(&mut self) {}

    /// `r −= A x`, for an `r` that holds the right-hand side, and hands it to the preconditioner. Returns the size of `r`.
    fn subtract_product(&mut self) -> ResidualNorm;

    /// `z = M r`; returns `z·r`.
    fn precondition(&mut self, with: Precondition) -> f64;

    /// `p = z + β p`; `β = 0` forgets `p`, whatever it holds.
    fn update_direction(&mut self, beta: f64);

    /// `p·A p`.
    fn energy(&mut self) -> f64;

    /// `x += α p` and `r −= α A p`, for the `p` of the last [`Self::energy`], and hands `r` to the preconditioner. Returns
    /// the size of `r`.
    fn step(&mut self, alpha: f64) -> ResidualNorm;
}
