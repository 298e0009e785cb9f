//! The bodies' term in the exact solve of the coarsest level.
//!
//! `L⁺` solves the network alone, for right-hand sides that sum to zero over components `Z` without ground. With `U = L⁺ Wᵀ` and
//! `C = 1 + W U`, forces `f` of the bodies and constants `a` of the components follow from
//! `x = L⁺ (b − Wᵀ f) + Z a`, `f = W x` and `Zᵀ (b − Wᵀ f) = 0`:
//!
//! ```text
//! x = L⁺ b − U C⁻¹ Uᵀ b + V (Zᵀ Wᵀ C⁻¹ W Z)⁺ Vᵀ b,   V = Z − U C⁻¹ W Z,
//! ```
//!
//! (with ties, `A + W₀ U` for `C` and `W₀` for `W`,) symmetric and positive whatever `b` is, and the solution wherever there is one.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::super::layout::Node;
use super::block::CoupledBlock;
use super::null::Indicators;

/// Unknowns of a level's block that the solve of its network does not know.
#[derive(Clone, Copy, Debug)]
struct Further {
    /// Index in the block.
    index: usize,
    /// One over the diagonal, 0 where there is none.
    inverse: f64,
}

/// Cholesky factors, some columns at a time: of a matrix of a thousand rows several times faster than one by one.
fn factor(mut matrix: DMatrix<f64>) -> Option<Cholesky<f64, Dyn>> {
    const COLUMNS: usize = 48;
    let size = matrix.nrows();
    for start in (0..size).step_by(COLUMNS) {
        let width = COLUMNS.min(size - start);
        let end = start + width;
        let own = Cholesky::new(matrix.view((start, start), (width, width)).into_owned())?.l();
        matrix.view_mut((start, start), (width, width)).copy_from(&own);
        let mut turned = matrix.view((end, start), (size - end, width)).transpose();
        own.solve_lower_triangular_mut(&mut turned);
        let below = turned.transpose();
        matrix.view_mut((end, start), (size - end, width)).copy_from(&below);
        matrix.view_mut((end, end), (size - end, size - end)).gemm(-1.0, &below, &turned, 1.0);
    }
    Some(Cholesky::pack_dirty(matrix))
}

/// What bodies add to the exact solve of a level.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct CoupledSolve {
    /// Unknowns of the network.
    size: usize,
    further: Vec<Further>,
    /// `U`, for rows of `W` that are not zero.
    u: DMatrix<f64>,
    c: Option<Cholesky<f64, Dyn>>,
    /// `V` times a root of what stands between.
    v: DMatrix<f64>,
    b: DVector<f64>,
}

impl CoupledSolve {
    /// Forgets all bodies.
    pub fn clear(&mut self) {
        *self = CoupledSolve::default();
    }

    /// Whether there are no bodies.
    pub fn is_empty(&self) -> bool {
        self.c.is_none()
    }

    /// Takes the block of a level whose network has `size` unknowns. `place` finds a node among these, `component` the number of an
    /// unknown's component without ground from 1, of so many `components`, or 0; `solve` is `L⁺`, in place.
    pub fn build(
        &mut self,
        block: &CoupledBlock,
        size: usize,
        place: impl Fn(Node) -> Option<usize>,
        components: usize,
        component: impl Fn(usize) -> usize,
        mut solve: impl FnMut(&mut [f64]),
    ) {
        self.clear();
        self.size = size;
        let mut at = Vec::with_capacity(block.nodes().len());
        for (index, &node) in block.nodes().iter().enumerate() {
            let diagonal = block.row(index).diagonal;
            let found = if node == Node::NONE || diagonal == 0.0 { None } else { place(node) };
            at.push(found.unwrap_or_else(|| {
                let inverse = if diagonal > 0.0 { 1.0 / diagonal } else { 0.0 };
                self.further.push(Further { index, inverse });
                size + self.further.len() - 1
            }));
        }
        let total = size + self.further.len();
        let mut row_of = vec![usize::MAX; block.row_count()];
        let mut rows = 0;
        let mut count = |row: usize| {
            if row_of[row] == usize::MAX {
                row_of[row] = rows;
                rows += 1;
            }
        };
        block.each_weight(|row, _, _| count(row));
        block.each_tie(|row, _, _| count(row));
        let mut w = DMatrix::zeros(rows, total);
        block.each_weight(|row, index, weight| w[(row_of[row], at[index])] += weight);
        self.u = w.transpose();
        for mut column in self.u.column_iter_mut() {
            let (network, further) = column.as_mut_slice().split_at_mut(size);
            solve(network);
            further.iter_mut().zip(&self.further).for_each(|(value, further)| *value *= further.inverse);
        }
        let mut c = DMatrix::identity(rows, rows) + &w * &self.u;
        block.each_tie(|row, column, value| c[(row_of[row], row_of[column])] += value);
        c = 0.5 * (&c + c.transpose());
        // Components: those of the network, and what has neither link nor ground.
        let of = |at: usize| match at.checked_sub(size) {
            None => component(at).checked_sub(1),
            Some(further) => (self.further[further].inverse == 0.0).then_some(components + further),
        };
        let indicators = Indicators::new(rows, components + self.further.len(), |each| {
            block.each_weight(|row, index, weight| {
                if let Some(component) = of(at[index]) {
                    each(row_of[row], component, weight);
                }
            });
        });
        let Some(factors) = factor(c) else { return };
        let held = &indicators.held;
        let answer = factors.solve(&indicators.columns);
        let product = indicators.columns.transpose() * &answer;
        let scale: Vec<f64> = (0..held.len()).map(|k| 1.0 / product[(k, k)].max(1e-300).sqrt()).collect();
        let [root, _] = Indicators::split(&product, &scale);
        let root = DMatrix::from_fn(root.nrows(), root.ncols(), |i, j| root[(i, j)] * scale[i]);
        let mut v = -(&self.u * answer);
        for unknown in 0..total {
            if let Some(component) = of(unknown)
                && let Ok(k) = held.binary_search(&component)
            {
                v[(unknown, k)] += 1.0;
            }
        }
        self.v = v * root;
        self.b = DVector::zeros(total);
        self.c = Some(factors);
    }

    /// Solves: `values` are the right-hand side of the network's unknowns, and become their solution. The block has the right-hand
    /// side of the others, and is given their values.
    pub fn solve(&mut self, values: &mut [f64], block: &mut CoupledBlock, solve: impl FnOnce(&mut [f64])) {
        let Some(c) = &self.c else { return };
        let (b, size) = (&mut self.b, self.size);
        b.as_mut_slice()[..size].copy_from_slice(values);
        for (value, further) in b.as_mut_slice()[size..].iter_mut().zip(&self.further) {
            *value = f64::from(block.b(further.index));
        }
        let forces = c.solve(&(self.u.transpose() * &*b));
        let held = self.v.transpose() * &*b;
        let change = &self.v * held - &self.u * forces;
        solve(values);
        values.iter_mut().zip(change.iter()).for_each(|(value, change)| *value += change);
        for (k, further) in self.further.iter().enumerate() {
            block.set_x(further.index, (b[size + k] * further.inverse + change[size + k]) as f32);
        }
    }

    /// The block's nodes that the network's solve does not know, and their values.
    pub fn further(&self, block: &CoupledBlock) -> impl Iterator<Item = (Node, f32)> {
        let nodes = self.further.iter().map(|further| (block.nodes()[further.index], block.x(further.index)));
        nodes.filter(|(node, _)| *node != Node::NONE)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        8 * (self.u.len() + self.v.len() + self.b.len() + self.u.ncols().pow(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    #[test]
    fn factors_are_those_found_column_by_column() {
        for size in [1, 47, 48, 130] {
            let root = DMatrix::from_fn(size, size, |i, j| f64::from(hash_unit((i * 211 + j) as u64)) - 0.5);
            let matrix = &root * root.transpose() + DMatrix::identity(size, size);
            let b = DVector::from_fn(size, |i, _| (i % 7) as f64 - 2.0);
            let [found, expected] = [factor(matrix.clone()), Cholesky::new(matrix)]
                .map(|factors| factors.expect("positive").solve(&b));
            assert!((&found - &expected).amax() < 1e-10, "{size} rows");
        }
        assert!(factor(-DMatrix::<f64>::identity(60, 60)).is_none());
    }
}
