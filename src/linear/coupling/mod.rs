//! Low-rank terms `Σ Jᵀ K J` of a system: bodies that many unknowns push, each with a weight of its own.
//!
//! A column of `J` says how the pressure of one unknown, a cell or a shared node, pushes a body's degrees of freedom; `K` says how
//! the body answers. Both are given as they are: shares of cut faces, rigid or affine motions, joints and contacts folded into
//! `K`. With `K = Rᵀ R` and `W = R J` the term is `Wᵀ W`, symmetric and positive semi-definite to the last bit.
//!
//! * [`Couplings`]: what a solve is given.
//! * `block`: all unknowns of a level that touch bodies, relaxed together, and `W` on that level.
//! * `ties`: what ties many bodies together, and `sparse`: the matrices of that.
//! * `exact`: the term in the exact solve of the coarsest level.
//! * `null`: constants that are free in spite of bodies.

mod block;
mod exact;
mod null;
mod sparse;
mod ties;

pub(super) use block::{CoupledBlock, LevelRows, Row};
pub(super) use exact::CoupledSolve;
pub(super) use null::{Indicators, free_means};
pub use ties::TieRow;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use nalgebra::DMatrix;

use sparse::SparseBlocks;
use ties::Ties;

/// An unknown of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unknown {
    /// A cell, `slot · 8^D + local`.
    Cell(u32),
    /// A shared node.
    Shared(u32),
}

/// Pivots of `K`, scaled to a diagonal of ones, below which a degree of freedom counts as held by the others.
const LEAST_PIVOT: f64 = 1e-10;

/// The bodies' terms of a system. Columns of cells and shared nodes that are no unknowns count as zero.
#[derive(Clone, Debug, Default)]
pub struct Couplings {
    bodies: Vec<CoupledBody>,
    /// Per column: its unknown. Ascending, body by body.
    unknowns: Vec<Unknown>,
    /// Per column: one number for each row of `W` that its body has.
    weights: Vec<f64>,
    /// Per body: `R`.
    roots: Vec<DMatrix<f64>>,
    /// Per column: its numbers in `J`.
    forces: Vec<f64>,
    columns: Vec<(Unknown, u32)>,
    ties: Option<Arc<Ties>>,
}

/// One body: where its rows and columns of `W` are.
#[derive(Clone, Copy, Debug)]
struct CoupledBody {
    first_row: usize,
    rows: usize,
    first_column: usize,
    columns: usize,
    first_weight: usize,
    first_force: usize,
}

/// Forces on one unknown that cancel to less than this share of their sizes are rounding.
const ROUNDING: f64 = 1e-12;

impl Couplings {
    /// Forgets all bodies, keeps the memory.
    pub fn clear(&mut self) {
        self.bodies.clear();
        self.unknowns.clear();
        self.weights.clear();
        self.roots.clear();
        self.forces.clear();
        self.ties = None;
    }

    /// Whether there is no body.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// How many bodies there are.
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Adds a body with the symmetric positive semi-definite response `K` and columns of `J`, each with as many numbers in
    /// `forces` as `K` has rows. Columns may come in any order; those of one unknown add up, and go where nothing but rounding is
    /// left: a body in the middle of a bubble pushes away on one side what it makes room for on the other. Returns the rank of `K`.
    pub fn push(&mut self, response: &DMatrix<f64>, unknowns: &[Unknown], forces: &[f64]) -> usize {
        let size = response.nrows();
        assert_eq!(response.ncols(), size, "a response is square");
        assert_eq!(forces.len(), size * unknowns.len(), "one force per degree of freedom and column");
        let root = root_of(response);
        let rows = root.nrows();
        self.columns.clear();
        self.columns.extend(unknowns.iter().zip(0..).map(|(&unknown, column)| (unknown, column)));
        self.columns.sort_unstable();
        let (first_column, first_weight) = (self.unknowns.len(), self.weights.len());
        let first_force = self.forces.len();
        for same in self.columns.chunk_by(|a, b| a.0 == b.0) {
            let start = self.forces.len();
            self.forces.resize(start + size, 0.0);
            let sum = &mut self.forces[start..];
            let parts = |column: u32| &forces[column as usize * size..(column as usize + 1) * size];
            for &(_, column) in same {
                sum.iter_mut().zip(parts(column)).for_each(|(sum, force)| *sum += force);
            }
            let is_rounding = |(k, sum): (usize, &f64)| {
                sum.abs() <= ROUNDING * same.iter().map(|&(_, column)| parts(column)[k].abs()).sum::<f64>()
            };
            if same.len() > 1 && sum.iter().enumerate().all(is_rounding) {
                self.forces.truncate(start);
                continue;
            }
            let weight = |row: usize| (0..size).map(|k| root[(row, k)] * sum[k]).sum::<f64>();
            self.unknowns.push(same[0].0);
            self.weights.extend((0..rows).map(weight));
        }
        let first_row = self.bodies.last().map_or(0, |body| body.first_row + body.rows);
        let columns = self.unknowns.len() - first_column;
        self.bodies.push(CoupledBody { first_row, rows, first_column, columns, first_weight, first_force });
        self.roots.push(root);
        rows
    }

    /// Ties all bodies that were added by rows. Returns how much faster each of them is on account of what the rows miss.
    pub fn tie(&mut self, rows: &[TieRow]) -> Vec<Vec<f64>> {
        let mut matrix = SparseBlocks::identity(self.bodies.iter().map(|body| body.rows));
        let mut pull = vec![0.0; self.rows()];
        for TieRow { parts, missing, give } in rows {
            let own: Vec<(usize, Vec<f64>)> = parts
                .iter()
                .map(|(body, motion)| {
                    let root = &self.roots[*body];
                    let along = |row: usize| (0..motion.len()).map(|k| root[(row, k)] * motion[k]).sum();
                    (*body, (0..root.nrows()).map(along).collect())
                })
                .collect();
            let size: f64 = own.iter().flat_map(|(_, part)| part).map(|value| value * value).sum();
            if size <= 0.0 {
                continue;
            }
            let factor = 1.0 / (give * size);
            for (k, (body, part)) in own.iter().enumerate() {
                let first = self.bodies[*body].first_row;
                let pull = pull[first..].iter_mut().zip(part);
                pull.for_each(|(pull, part)| *pull += factor * missing * part);
                for (other, others) in &own[..=k] {
                    matrix.add((*body, part), (*other, others), factor);
                }
            }
        }
        let Some(factors) = matrix.factor() else { return vec![Vec::new(); self.len()] };
        factors.solve(&mut pull);
        self.ties = Some(Arc::new(Ties { matrix, factors }));
        (0..self.len()).map(|body| self.change(body, &pull)).collect()
    }

    /// Calls `each(unknown, flow)` with the flow `Jᵀ v` out of the unknowns that a body touches.
    pub fn each_flow(&self, body: usize, velocity: &[f64], mut each: impl FnMut(Unknown, f64)) {
        let CoupledBody { first_column, columns, first_force, .. } = self.bodies[body];
        let forces = self.forces[first_force..].chunks_exact(velocity.len().max(1));
        for (&unknown, forces) in self.unknowns[first_column..first_column + columns].iter().zip(forces) {
            each(unknown, forces.iter().zip(velocity).map(|(force, velocity)| force * velocity).sum());
        }
    }

    /// Rows of `W`, of all bodies together.
    pub fn rows(&self) -> usize {
        self.bodies.last().map_or(0, |body| body.first_row + body.rows)
    }

    /// The columns of a body: the unknown of each, and its numbers in [`Self::rows_of`] of `W`, as it is without ties.
    pub fn columns(&self, body: usize) -> impl Iterator<Item = (Unknown, &[f64])> {
        let CoupledBody { rows, first_column, columns, first_weight, .. } = self.bodies[body];
        (0..columns).map(move |column| {
            let start = first_weight + column * rows;
            (self.unknowns[first_column + column], &self.weights[start..start + rows])
        })
    }

    /// `J q` of a body: the impulse on each of its motions.
    pub fn impulse(&self, body: usize, q: impl Fn(Unknown) -> f64) -> Vec<f64> {
        let CoupledBody { first_column, columns, first_force, .. } = self.bodies[body];
        let size = self.roots[body].ncols();
        let mut impulse = vec![0.0; size];
        for column in 0..columns {
            let (q, start) = (q(self.unknowns[first_column + column]), first_force + column * size);
            let forces = &self.forces[start..start + size];
            impulse.iter_mut().zip(forces).for_each(|(sum, force)| *sum += force * q);
        }
        impulse
    }

    /// `A⁻¹ W₀ q` of all bodies.
    pub fn pull(&self, q: impl Fn(Unknown) -> f64) -> Vec<f64> {
        let mut pull = vec![0.0; self.rows()];
        for body in 0..self.len() {
            let own = &mut pull[self.rows_of(body)];
            for (unknown, weights) in self.columns(body) {
                let q = q(unknown);
                own.iter_mut().zip(weights).for_each(|(pull, weight)| *pull += weight * q);
            }
        }
        if let Some(ties) = &self.ties {
            ties.factors.solve(&mut pull);
        }
        pull
    }

    /// What a [`Self::pull`] makes of a body's velocities, `K J q` as `Rᵀ A⁻¹ W₀ q`: the flow of that is what the rows of the
    /// system see.
    pub fn change(&self, body: usize, pull: &[f64]) -> Vec<f64> {
        let (root, own) = (&self.roots[body], &pull[self.rows_of(body)]);
        (0..root.ncols()).map(|k| (0..root.nrows()).map(|row| root[(row, k)] * own[row]).sum()).collect()
    }

    /// For small systems: the entries of the bodies' term.
    pub fn each_entry(
        &self,
        place: impl Fn(Unknown) -> Option<usize>,
        mut each: impl FnMut(usize, usize, f64),
    ) {
        let Some(ties) = &self.ties else {
            for body in 0..self.len() {
                let columns = self.columns(body).filter_map(|(unknown, w)| Some((place(unknown)?, w)));
                let columns: Vec<(usize, &[f64])> = columns.collect();
                for (column, weights) in &columns {
                    for (row, others) in &columns {
                        each(*row, *column, weights.iter().zip(*others).map(|(a, b)| a * b).sum());
                    }
                }
            }
            return;
        };
        let mut columns: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for body in 0..self.len() {
            for (unknown, weights) in self.columns(body) {
                if let Some(at) = place(unknown) {
                    let column = columns.entry(at).or_insert_with(|| vec![0.0; self.rows()]);
                    column[self.rows_of(body)].copy_from_slice(weights);
                }
            }
        }
        columns.values_mut().for_each(|column| ties.factors.forward(column));
        for (&column, weights) in &columns {
            for (&row, others) in &columns {
                let value: f64 = weights.iter().zip(others).map(|(a, b)| a * b).sum();
                if value != 0.0 {
                    each(row, column, value);
                }
            }
        }
    }

    /// Whether a body pushes an unknown.
    pub fn touch(&self, unknown: Unknown) -> bool {
        self.bodies.iter().any(|body| {
            let range = body.first_column..body.first_column + body.columns;
            self.unknowns[range].binary_search(&unknown).is_ok()
        })
    }

    /// The rows of `W` that a body has.
    pub fn rows_of(&self, body: usize) -> Range<usize> {
        let CoupledBody { first_row, rows, .. } = self.bodies[body];
        first_row..first_row + rows
    }
}

/// `R` with `Rᵀ R = K`, as many rows as `K` has free motions: Cholesky with pivots, on a `K` scaled to a diagonal of ones, so that
/// the units of its degrees of freedom do not matter.
fn root_of(response: &DMatrix<f64>) -> DMatrix<f64> {
    let size = response.nrows();
    let scale: Vec<f64> = (0..size).map(|k| response[(k, k)].max(0.0).sqrt()).collect();
    let mut rest = DMatrix::from_fn(size, size, |i, j| match scale[i] * scale[j] {
        product if product > 0.0 => 0.5 * (response[(i, j)] + response[(j, i)]) / product,
        _ => 0.0,
    });
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for _ in 0..size {
        let largest = (0..size).fold(0, |best, k| if rest[(k, k)] > rest[(best, best)] { k } else { best });
        let pivot = rest[(largest, largest)];
        if pivot <= LEAST_PIVOT {
            break;
        }
        let row: Vec<f64> = (0..size).map(|k| rest[(largest, k)] / pivot.sqrt()).collect();
        for i in 0..size {
            for j in 0..size {
                rest[(i, j)] -= row[i] * row[j];
            }
        }
        rows.push(row);
    }
    DMatrix::from_fn(rows.len(), size, |row, k| rows[row][k] * scale[k])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    #[test]
    fn a_root_times_itself_is_the_response_whatever_its_rank_and_units() {
        for rank in 0..=6 {
            let mut response = DMatrix::zeros(6, 6);
            for row in 0..rank {
                let unit = |k: usize| f64::from(hash_unit((row * 7 + k) as u64)) - 0.5;
                let motion: Vec<f64> = (0..6).map(|k| unit(k) * if k < 3 { 1.0 } else { 1e-4 }).collect();
                response += DMatrix::from_fn(6, 6, |i, j| motion[i] * motion[j]);
            }
            let root = root_of(&response);
            assert_eq!(root.nrows(), rank);
            let product = root.transpose() * &root;
            for i in 0..6 {
                for j in 0..6 {
                    let size = (response[(i, i)] * response[(j, j)]).sqrt();
                    assert!(
                        (product[(i, j)] - response[(i, j)]).abs() <= 1e-12 * size,
                        "rank {rank}: {i} {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn columns_of_one_unknown_add_up_and_come_sorted() {
        let mut couplings = Couplings::default();
        let cells = [Unknown::Shared(1), Unknown::Cell(9), Unknown::Cell(4), Unknown::Cell(9)];
        let rank = couplings.push(&DMatrix::identity(1, 1), &cells, &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!((rank, couplings.rows(), couplings.len()), (1, 1, 1));
        let columns: Vec<_> = couplings.columns(0).map(|(unknown, weights)| (unknown, weights[0])).collect();
        assert_eq!(columns, [(Unknown::Cell(4), 3.0), (Unknown::Cell(9), 6.0), (Unknown::Shared(1), 1.0)]);
        assert_eq!(couplings.push(&DMatrix::zeros(2, 2), &cells, &[1.0; 8]), 0);
        assert_eq!((couplings.rows(), couplings.rows_of(1)), (1, 1..1));
    }
}
