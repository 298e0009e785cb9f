//! Incomplete Cholesky factors without fill, as a reference: one thread, rows in natural order.

use sprs::CsMat;

use crate::grid::block_cells;

use super::super::explicit::paired_index;
use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::assemble::Assembled;

/// `L` with `A ≈ L Lᵀ`, on the entries that `A` has.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct IncompleteCholesky {
    start: Vec<usize>,
    column: Vec<u32>,
    /// Off-diagonal entries of `L`.
    value: Vec<f64>,
    /// 1 over the diagonal of `L`; 0 for a pivot that vanished.
    inverse: Vec<f64>,
    nodes: Vec<Node>,
    work: Vec<f64>,
}

impl IncompleteCholesky {
    /// Factors an assembled system; `block_of` gives the block of each slot.
    pub fn build<const D: usize>(&mut self, assembled: &Assembled, block_of: &[u32]) {
        let cells = block_cells(D);
        self.nodes.clear();
        self.nodes.extend(
            assembled.cells.iter().map(|&cell| {
                Node::cell::<D>(block_of[cell as usize / cells] as usize, cell as usize % cells)
            }),
        );
        let shared = assembled.matrix.rows() - self.nodes.len();
        self.nodes.extend((0..shared).map(Node::explicit));
        self.factor(&assembled.matrix);
        self.work.resize(self.nodes.len(), 0.0);
    }

    fn factor(&mut self, matrix: &CsMat<f64>) {
        self.start.clear();
        self.start.push(0);
        self.column.clear();
        self.value.clear();
        self.inverse.clear();
        for (i, row) in matrix.outer_iterator().enumerate() {
            let first = self.column.len();
            let mut diagonal = 0.0;
            for (j, &a) in row.iter() {
                if j > i {
                    break;
                }
                if j == i {
                    diagonal = a;
                    break;
                }
                // a − Σ_k L_ik L_jk over the columns both rows have.
                let (mut k, mut l, mut sum) = (first, self.start[j], a);
                while k < self.column.len() && l < self.start[j + 1] {
                    match self.column[k].cmp(&self.column[l]) {
                        std::cmp::Ordering::Less => k += 1,
                        std::cmp::Ordering::Greater => l += 1,
                        std::cmp::Ordering::Equal => {
                            sum -= self.value[k] * self.value[l];
                            k += 1;
                            l += 1;
                        }
                    }
                }
                self.column.push(j as u32);
                self.value.push(sum * self.inverse[j]);
            }
            let pivot = diagonal - self.value[first..].iter().map(|v| v * v).sum::<f64>();
            self.inverse.push(if pivot > 1e-10 * diagonal { 1.0 / pivot.sqrt() } else { 0.0 });
            self.start.push(self.column.len());
        }
    }

    /// Sets the level's `x` from its `b`.
    pub fn apply<const D: usize>(&mut self, level: &mut Level<D>) {
        for i in 0..self.nodes.len() {
            let mut sum = f64::from(match self.nodes[i].place() {
                Place::Cell { .. } => level.b.as_flattened()[paired_index::<D>(self.nodes[i])],
                Place::Explicit(index) => level.explicit.b[index],
            });
            for k in self.start[i]..self.start[i + 1] {
                sum -= self.value[k] * self.work[self.column[k] as usize];
            }
            self.work[i] = sum * self.inverse[i];
        }
        for i in (0..self.nodes.len()).rev() {
            let x = self.work[i] * self.inverse[i];
            self.work[i] = x;
            for k in self.start[i]..self.start[i + 1] {
                self.work[self.column[k] as usize] -= self.value[k] * x;
            }
            match self.nodes[i].place() {
                Place::Cell { colour, index } => level.x[colour].as_flattened_mut()[index] = x as f32,
                Place::Explicit(index) => level.explicit.x[index] = x as f32,
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.start.capacity() + self.value.capacity() + self.inverse.capacity() + self.work.capacity()) * 8
            + (self.column.capacity() + self.nodes.capacity()) * 4
    }
}
