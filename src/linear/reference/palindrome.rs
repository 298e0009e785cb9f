//! The bubble preconditioner of CBAR, Algorithm 1, as a reference: sweeps around the shared nodes (bubbles), a V-cycle of
//! the cells (liquid) with the shared nodes held fixed, and the same sweeps in reverse.
//!
//! With `B` a pass over the shared nodes, `L` a damped Jacobi pass over the cells near them and `V` the V-cycle, one
//! application is `(B L)^10 B | V | (B L)^10 B`. It reads the same both ways, and so is symmetric. In two things it is
//! not the paper's: `V` is this crate's V-cycle over aggregates, as good as theirs or better, and the passes run on an
//! assembled matrix on one thread. Iterations can be compared, times cannot.

use sprs::CsMat;

use crate::grid::{Field, block_cells};

use super::super::explicit::cell_value_mut;
use super::super::hierarchy::Hierarchy;
use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::super::system::{SharedNodes, System};
use super::assemble::Assembled;

/// Pairs of passes on each side of the V-cycle.
const PAIRS: usize = 10;
/// Layers of cells around the shared nodes that take part.
const BAND_LAYERS: usize = 3;
/// Damping of the passes over them.
const DAMPING: f64 = 2.0 / 3.0;

/// The reference preconditioner for shared nodes.
#[derive(Clone, Debug)]
pub(in super::super) struct Palindrome<const D: usize> {
    matrix: CsMat<f64>,
    diagonal: Vec<f64>,
    /// Where each row's cell is stored.
    nodes: Vec<Node>,
    band: Vec<u32>,
    updates: Vec<f64>,
    r: Vec<f64>,
    z: Vec<f64>,
    /// The cells alone; links to shared nodes count as ground.
    liquid: Hierarchy<D>,
}

impl<const D: usize> Default for Palindrome<D> {
    fn default() -> Self {
        Palindrome {
            matrix: CsMat::zero((0, 0)),
            diagonal: Vec::new(),
            nodes: Vec::new(),
            band: Vec::new(),
            updates: Vec::new(),
            r: Vec::new(),
            z: Vec::new(),
            liquid: Hierarchy::default(),
        }
    }
}

impl<const D: usize> Palindrome<D> {
    /// Reads a system, also given as a matrix; `block_of` gives the block of each slot.
    pub fn build(&mut self, system: &System<'_, D>, assembled: Assembled, block_of: &[u32]) {
        let cells = block_cells(D);
        let at =
            |&cell: &u32| Node::cell::<D>(block_of[cell as usize / cells] as usize, cell as usize % cells);
        self.nodes.clear();
        self.nodes.extend(assembled.cells.iter().map(at));
        self.matrix = assembled.matrix;
        self.diagonal.clear();
        self.diagonal.extend((0..self.matrix.rows()).map(|i| self.matrix.get(i, i).copied().unwrap_or(0.0)));
        self.r.resize(self.matrix.rows(), 0.0);
        self.z.resize(self.matrix.rows(), 0.0);
        self.find_band();

        let (mut ground, mut area): (Field<f32>, Field<f32>) =
            (system.ground.clone(), system.ground_area.clone());
        for node in 0..system.shared.len() {
            for (cell, link, surface) in system.shared.links(node) {
                ground[cell] += link;
                area[cell] += surface;
            }
        }
        let none = SharedNodes::default();
        let couplings = None;
        self.liquid.build(&System {
            ground: &ground,
            ground_area: &area,
            shared: &none,
            couplings,
            ..*system
        });
    }

    /// Lists the cells within some layers of the shared nodes.
    fn find_band(&mut self) {
        let cells = self.nodes.len();
        let mut layer = vec![false; self.matrix.rows()];
        self.band.clear();
        let mut front: Vec<usize> = (cells..self.matrix.rows()).collect();
        for _ in 0..BAND_LAYERS {
            let mut next = Vec::new();
            for &row in &front {
                for (column, _) in self.matrix.outer_view(row).expect("a row").iter() {
                    if column < cells && !std::mem::replace(&mut layer[column], true) {
                        next.push(column);
                    }
                }
            }
            self.band.extend(next.iter().map(|&row| row as u32));
            front = next;
        }
        self.band.sort_unstable();
    }

    fn residual(&self, row: usize) -> f64 {
        let product: f64 =
            self.matrix.outer_view(row).expect("a row").iter().map(|(j, a)| a * self.z[j]).sum();
        self.r[row] - product
    }

    /// `B`: solves the rows of the shared nodes, which are not linked to each other.
    fn pass_shared(&mut self) {
        for row in self.nodes.len()..self.matrix.rows() {
            if self.diagonal[row] > 0.0 {
                self.z[row] += self.residual(row) / self.diagonal[row];
            }
        }
    }

    /// `L`.
    fn pass_band(&mut self) {
        let mut updates = std::mem::take(&mut self.updates);
        updates.clear();
        updates.extend(
            self.band.iter().map(|&row| DAMPING * self.residual(row as usize) / self.diagonal[row as usize]),
        );
        for (&row, update) in self.band.iter().zip(&updates) {
            self.z[row as usize] += update;
        }
        self.updates = updates;
    }

    /// `V`.
    fn cycle(&mut self, sweeps: usize) {
        for (row, &node) in self.nodes.iter().enumerate() {
            let residual = self.residual(row) as f32;
            *cell_value_mut::<D>(&mut self.liquid.finest_mut().b, node) = residual;
        }
        self.liquid.cycle(sweeps);
        for (row, node) in self.nodes.iter().enumerate() {
            if let Place::Cell { colour, index } = node.place() {
                self.z[row] += f64::from(self.liquid.finest().x[colour].as_flattened()[index]);
            }
        }
    }

    /// The whole sequence; `framed` adds the passes over the shared nodes next to the V-cycle and at the end.
    fn sequence(&mut self, sweeps: usize, framed: bool) {
        self.z.fill(0.0);
        for half in 0..2 {
            for _ in 0..PAIRS {
                self.pass_shared();
                self.pass_band();
            }
            if framed {
                self.pass_shared();
            }
            if half == 0 {
                self.cycle(sweeps);
            }
        }
    }

    /// Sets the level's `x` from its `b`.
    pub fn apply(&mut self, level: &mut Level<D>, sweeps: usize) {
        let first = self.nodes.len();
        for (row, &node) in self.nodes.iter().enumerate() {
            self.r[row] = f64::from(*cell_value_mut::<D>(&mut level.b, node));
        }
        for (r, &b) in self.r[first..].iter_mut().zip(&level.explicit.b) {
            *r = f64::from(b);
        }
        self.sequence(sweeps, true);
        for x in &mut level.x {
            x.fill([0.0; 8]);
        }
        for (row, node) in self.nodes.iter().enumerate() {
            if let Place::Cell { colour, index } = node.place() {
                level.x[colour].as_flattened_mut()[index] = self.z[row] as f32;
            }
        }
        for (x, &z) in level.explicit.x.iter_mut().zip(&self.z[first..]) {
            *x = z as f32;
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.matrix.nnz() * 16
            + (self.diagonal.capacity() + self.updates.capacity() + self.r.capacity() + self.z.capacity()) * 8
            + (self.nodes.capacity() + self.band.capacity()) * 4
            + self.liquid.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Blocks, Grid, Slots};
    use crate::linear::assemble;
    use crate::math::hash_unit;

    /// `|x·M y − y·M x|` relative to their sizes, for a full box with two shared nodes at some cells and a ground.
    fn asymmetry(framed: bool) -> f64 {
        let blocks = Blocks::<2>::all(Grid { cells: [40, 40], dx: 1.0 });
        let mut ground = Field::new(block_cells(2), 0.0f32);
        ground.resize(blocks.slot_count());
        let (mut area, mut link) = (ground.clone(), [ground.clone(), ground.clone()]);
        let index = |cell: [i32; 2]| {
            let (slot, local) = blocks.locate(cell);
            slot as usize * block_cells(2) + local
        };
        let mut shared = SharedNodes::default();
        for x in 0..40 {
            for y in 0..40 {
                for axis in 0..2 {
                    link[axis][index([x, y])] = if [x, y][axis] > 0 { 1.0 } else { 0.0 };
                }
            }
            let top = index([x, 39]);
            (ground[top], area[top]) = (2.0, 1.0);
        }
        for (node, row) in [(0, 8), (1, 20)] {
            shared.push_node(1.0);
            for x in 5..25 {
                shared.push_link(index([x + 3 * node, row]), 0.5 + 3.0 * hash_unit(x as u64), 1.0);
            }
        }
        let mut live = Slots::default();
        live.refill(blocks.slots(), |_| true);
        let system = System {
            blocks: &blocks,
            live: &live,
            link: &link,
            ground: &ground,
            ground_area: &area,
            shared: &shared,
            materials: None,
            couplings: None,
        };
        let mut block_of = vec![0; blocks.slot_count()];
        live.as_slice().iter().enumerate().for_each(|(i, &slot)| block_of[slot as usize] = i as u32 + 1);
        let mut preconditioner = Palindrome::default();
        preconditioner.build(&system, assemble(&system), &block_of);
        let mut apply = |seed: u64| {
            for (i, r) in preconditioner.r.iter_mut().enumerate() {
                *r = f64::from(hash_unit(seed + i as u64)) - 0.5;
            }
            preconditioner.sequence(2, framed);
            (preconditioner.r.clone(), preconditioner.z.clone())
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let ((x, mx), (y, my)) = (apply(10_000), apply(20_000));
        assert!(dot(&x, &mx) > 0.0 && dot(&y, &my) > 0.0, "positive");
        (dot(&x, &my) - dot(&y, &mx)).abs() / (dot(&x, &mx) * dot(&y, &my)).sqrt()
    }

    #[test]
    fn symmetry_needs_the_passes_that_frame_the_cycle() {
        let (with, without) = (asymmetry(true), asymmetry(false));
        assert!(with < 1e-6, "asymmetry {with:.1e}");
        assert!(without > 1e-5, "asymmetry without them {without:.1e}");
    }
}
