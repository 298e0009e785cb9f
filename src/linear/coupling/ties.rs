//! Rows that tie many bodies together, such as the contacts of a heap.
//!
//! With `Y` such rows of the motions behind `W₀` (of the bodies, each by itself), the response of all is that of
//! `A = 1 + Yᵀ E⁻¹ Y`, and the term of the system `W₀ᵀ A⁻¹ W₀`. `E` is how much a row gives: little enough not to be seen, and
//! so much that rows which nearly repeat others do no harm. `A` has blocks where bodies touch. With its factors `A = L Lᵀ`,
//! `W = L⁻¹ W₀` is what products and norms need, and nobody asks for it entry by entry.

use super::sparse::{SparseBlocks, SparseFactors};

/// A row `N v = target` of motions of bodies.
#[derive(Clone, Debug)]
pub struct TieRow {
    /// `N`: bodies, and a number for each of their motions.
    pub parts: Vec<(usize, Vec<f64>)>,
    /// The target less `N v*`.
    pub missing: f64,
    /// The share of the velocity that a force along the row would cause, were there no ties, with which it gives way to it.
    pub give: f64,
}

/// What ties make of the bodies' responses.
#[derive(Clone, Debug)]
pub(in super::super) struct Ties {
    /// `A`.
    pub matrix: SparseBlocks,
    /// Those of `A`.
    pub factors: SparseFactors,
}
