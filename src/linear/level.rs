//! One level of the hierarchy: its network, its vectors, its sweeps.

use macro_rules_attribute::apply;

use crate::grid::{block_cells, masks};
use crate::math::{Side, power, simd};

use super::coupling::{CoupledBlock, Row as NetworkRow};
use super::explicit::{Explicit, cell_value};
use super::kernels::{self, Around};
use super::layout::{Node, Place, Row, half_rows};
use super::parallel::{cut, each_block};
use super::source::{Source, Sums, kind};
use super::stencil::Stencil;
use super::topology::Topology;
use super::transfer::Transfer;

/// A network of links between cells and explicit nodes, with `A x = b` on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Level<const D: usize> {
    pub topology: Topology<D>,
    pub stencil: Stencil,
    pub explicit: Explicit<D>,
    /// Coefficients in natural order; empty on the finest level, where the caller has them.
    pub sums: Sums,
    /// Values of each colour. Cells that are no unknowns hold 0.
    pub x: [Vec<Row<f32>>; 2],
    /// Right-hand side, both colours of a block together. At contacts it includes the explicit nodes' part.
    pub b: Vec<Row<f32>>,
    /// To the next coarser level.
    pub transfer: Transfer,
    /// Nodes that are a whole component without ground: their row is zero.
    pub closed: Vec<Node>,
    /// With two materials: a whole link of each.
    pub whole: [f32; 2],
    /// Unknowns that touch bodies: sweeps leave them alone, and they are relaxed together.
    pub coupled: CoupledBlock,
    /// Unknowns.
    pub nodes: usize,
    /// Unknown cells with a link to another cell, extras with any link.
    pub linked: usize,
}

/// One bit for each of 64 cells that is a node.
#[apply(simd)]
fn nodes_among(kinds: &[u8; 64]) -> u64 {
    masks::word_of(kinds, |own| own & (kind::SINGLE | kind::MERGED) != 0)
}

impl<const D: usize> Level<D> {
    /// Makes a coarse level ready for sweeps, once its unknowns are known.
    pub fn make_ready(&mut self) {
        self.stencil.complete(&self.topology, &self.sums, &self.explicit, false);
        self.reserve_vectors();
    }

    /// Makes room for the vectors; the absent block is zero.
    pub fn reserve_vectors(&mut self) {
        let rows = half_rows(D) * self.topology.len();
        for x in &mut self.x {
            super::stencil::grow(x, rows);
            x[..half_rows(D)].fill([0.0; 8]);
        }
        super::stencil::grow(&mut self.b, 2 * rows);
    }

    /// One Gauss–Seidel half-sweep over the cells of a colour.
    fn relax_cells(&mut self, colour: usize) {
        let half = half_rows(D);
        let (topology, stencil, b) = (&self.topology, &self.stencil, &self.b);
        let [red, black] = &mut self.x;
        let (own, other) = if colour == 0 { (red, &*black) } else { (black, &*red) };
        each_block::<D, _>((cut(own, half),), |block, (x,)| {
            let start = 2 * block * half + colour * half;
            kernels::relax(
                x,
                &b[start..start + half],
                &Around::new(other, half, 0, topology, block),
                &stencil.of::<D>(block, colour),
                colour,
            );
        });
        self.hold_coupled(colour);
    }

    /// Gives the cells of a colour that touch bodies their values back.
    fn hold_coupled(&mut self, colour: usize) {
        let x = self.x[colour].as_flattened_mut();
        for (node, value) in self.coupled.cells(colour) {
            if let Place::Cell { index, .. } = node.place() {
                x[index] = value;
            }
        }
    }

    /// Takes the unknowns that touch bodies.
    pub fn set_coupled(&mut self, mut coupled: CoupledBlock) {
        coupled.factor();
        self.explicit.held.clear();
        if coupled.nodes().iter().any(|&node| node != Node::NONE && node.is_explicit()) {
            self.explicit.held.resize(self.explicit.count, false);
            for &node in coupled.nodes().iter().filter(|&&node| node != Node::NONE) {
                if let Place::Explicit(index) = node.place() {
                    self.explicit.held[index] = true;
                }
            }
        }
        self.coupled = coupled;
    }

    /// Relaxes all unknowns that touch bodies, as one block.
    fn relax_coupled(&mut self) {
        if self.coupled.is_empty() {
            return;
        }
        let mut coupled = std::mem::take(&mut self.coupled);
        coupled.relax(|node| self.value(node), |_| 0.0);
        coupled.values().for_each(|(node, value)| self.set_value(node, value));
        self.coupled = coupled;
    }

    /// The value of a node.
    pub fn value(&self, node: Node) -> f32 {
        match node.place() {
            Place::Cell { colour, index } => self.x[colour].as_flattened()[index],
            Place::Explicit(index) => self.explicit.x[index],
        }
    }

    /// Sets the value of a node.
    pub fn set_value(&mut self, node: Node, value: f32) {
        match node.place() {
            Place::Cell { colour, index } => self.x[colour].as_flattened_mut()[index] = value,
            Place::Explicit(index) => self.explicit.x[index] = value,
        }
    }

    /// The right-hand side of a node, before explicit nodes enter that of cells.
    pub fn rhs(&self, node: Node) -> f32 {
        match node.place() {
            Place::Cell { .. } => *cell_value::<D>(&self.b, node),
            Place::Explicit(index) => self.explicit.b[index],
        }
    }

    /// The row of a node; coefficients of cells are in `source`.
    pub fn row<S: Source<D>>(&self, source: &S, node: Node) -> NetworkRow {
        let mut row = NetworkRow::default();
        match node.place() {
            Place::Cell { .. } => {
                let (block, cell) = node.block_and_local::<D>();
                row.diagonal = f64::from(source.ground(block)[cell]);
                for axis in 0..D {
                    let stride = power(8, axis);
                    let [low, high] = self.topology.beside(block)[axis].map(|block| block as usize);
                    let (below, above) = match cell / stride % 8 {
                        0 => ((low, cell + 7 * stride), (block, cell + stride)),
                        7 => ((block, cell - stride), (high, cell - 7 * stride)),
                        _ => ((block, cell - stride), (block, cell + stride)),
                    };
                    let links = [source.link(axis, block)[cell], source.link(axis, above.0)[above.1]];
                    for ((block, cell), link) in [below, above].into_iter().zip(links) {
                        if block != 0 && link > 0.0 {
                            row.links.push((Node::cell::<D>(block, cell), link));
                        }
                    }
                }
                row.links.extend(self.explicit.contacts_of_cell(node));
            }
            Place::Explicit(index) => {
                row.diagonal = f64::from(self.explicit.ground[index]);
                row.links.extend(self.explicit.links(index).map(|(to, link, _)| (to, link)));
            }
        }
        row.diagonal += row.links.iter().map(|&(_, link)| f64::from(link)).sum::<f64>();
        row
    }

    /// One pass over the extra nodes and the cells of a colour, in this order: those of one place may be linked.
    fn relax_colour(&mut self, colour: usize) {
        self.explicit.relax_extras(colour, [&self.x[0], &self.x[1]], false);
        if self.explicit.has_contacts() {
            self.explicit.refresh(&mut self.b, colour);
        }
        self.relax_cells(colour);
    }

    /// [`Self::relax_colour`] in the reverse order.
    fn relax_colour_backwards(&mut self, colour: usize) {
        if self.explicit.has_contacts() {
            self.explicit.refresh(&mut self.b, colour);
        }
        self.relax_cells(colour);
        self.explicit.relax_extras(colour, [&self.x[0], &self.x[1]], true);
    }

    fn relax_shared(&mut self) {
        self.explicit.relax_shared([&self.x[0], &self.x[1]]);
    }

    /// Pre-smoothing: red–black Gauss–Seidel sweeps from zero: shared nodes, red, black, what touches bodies, and again.
    ///
    /// Shared nodes come first, so that on the way up they come last. After a coarse correction, cells glued to a shared
    /// node by strong links follow its new value; the other way round they would drag it back to theirs.
    pub fn sweep_down(&mut self, sweeps: usize) {
        if !self.coupled.is_empty() {
            let mut coupled = std::mem::take(&mut self.coupled);
            coupled.start(|node| self.rhs(node));
            self.coupled = coupled;
        }
        self.explicit.take_base(&self.b);
        self.explicit.start_from_zero();
        if self.explicit.entangled {
            // Black extras are relaxed before the black cells, and may read them.
            self.x[1].fill([0.0; 8]);
        }
        if self.explicit.has_contacts() {
            self.explicit.refresh(&mut self.b, 0);
        }
        let half = half_rows(D);
        let (stencil, b) = (&self.stencil, &self.b);
        each_block::<D, _>((cut(&mut self.x[0], half),), |block, (x,)| {
            kernels::relax_first(x, &b[2 * block * half..], stencil.of::<D>(block, 0).inverse);
        });
        self.hold_coupled(0);
        self.relax_colour(1);
        self.relax_coupled();
        for _ in 1..sweeps {
            self.relax_shared();
            self.relax_colour(0);
            self.relax_colour(1);
            self.relax_coupled();
        }
    }

    /// Post-smoothing: the sweeps of [`Self::sweep_down`] in reverse order, from the values at hand.
    pub fn sweep_up(&mut self, sweeps: usize) {
        for _ in 0..sweeps {
            self.relax_coupled();
            self.relax_colour_backwards(1);
            self.relax_colour_backwards(0);
            self.relax_shared();
        }
    }

    /// Jacobi: sets `x` to `b` over the diagonal.
    pub fn divide_by_diagonal(&mut self) {
        let half = half_rows(D);
        let (stencil, b) = (&self.stencil, &self.b);
        for (colour, x) in self.x.iter_mut().enumerate() {
            each_block::<D, _>((cut(x, half),), |block, (x,)| {
                let start = (2 * block + colour) * half;
                kernels::relax_first(x, &b[start..], stencil.of::<D>(block, colour).inverse);
            });
        }
        let explicit = &mut self.explicit;
        for ((x, &b), &diagonal) in explicit.x.iter_mut().zip(&explicit.b).zip(&explicit.diagonal) {
            *x = if diagonal > 0.0 { (f64::from(b) / diagonal) as f32 } else { 0.0 };
        }
        if !self.coupled.is_empty() {
            let mut coupled = std::mem::take(&mut self.coupled);
            coupled.start(|node| self.rhs(node));
            coupled.relax(|_| 0.0, |_| 0.0);
            coupled.values().for_each(|(node, value)| self.set_value(node, value));
            self.coupled = coupled;
        }
    }

    /// Residual of one red cell.
    pub fn red_residual(&self, cell: Node) -> f32 {
        let cells = block_cells(D) / 2;
        let half = half_rows(D);
        let (block, place) = (cell.0 as usize / cells, cell.0 as usize % cells);
        kernels::residual_row(
            &self.x[0][block * half..(block + 1) * half],
            &self.b[2 * block * half..(2 * block + 1) * half],
            &Around::new(&self.x[1], half, 0, &self.topology, block),
            &self.stencil.of::<D>(block, 0),
            0,
            place / 8,
        )[place % 8]
    }

    /// How many links the network has, those of shared nodes left out, and how many cells have links on all sides; cell
    /// coefficients are in `source`.
    pub fn count_links<S: Source<D>>(&self, source: &S) -> [usize; 2] {
        let positive = |axis: usize, block: usize| {
            let mut bits = masks::NONE;
            for (bits, links) in bits.iter_mut().zip(source.link(axis, block).as_chunks().0) {
                *bits = masks::word_of(links, |link| link > 0.0);
            }
            bits
        };
        let count = |bits: &masks::Bits| bits.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let (mut links, mut inner) = (self.explicit.extra_link_count(), 0);
        for block in 1..self.topology.len() {
            let mut on_all_sides = masks::all(D);
            for axis in 0..D {
                let low = positive(axis, block);
                let beyond = positive(axis, self.topology.beside(block)[axis][1] as usize);
                let high = masks::beside::<D>(&low, axis, Side::High, &beyond);
                on_all_sides = masks::and(&on_all_sides, &masks::and(&low, &high));
                links += count(&low);
            }
            inner += count(&on_all_sides);
        }
        [links, inner]
    }

    /// Counts nodes and finds closed components, once the network is in place.
    pub fn count_nodes(&mut self) {
        let extras = 0..self.explicit.ends[1];
        self.nodes = self.stencil.unknowns() + self.explicit.count
            - self.explicit.shared().filter(|&node| self.explicit.diagonal[node] == 0.0).count();
        self.linked = self.stencil.linked.iter().map(|word| word.count_ones() as usize).sum::<usize>()
            + extras.clone().filter(|&e| self.explicit.links(e).next().is_some()).count();
        self.closed.clear();
        let words = super::stencil::mask_words(D);
        for (index, (&live, kinds)) in
            self.stencil.live.iter().zip(self.sums.kind.as_chunks::<64>().0).enumerate()
        {
            if live == u64::MAX {
                continue;
            }
            let mut closed = nodes_among(kinds) & !live;
            while closed != 0 {
                let bit = closed.trailing_zeros() as usize;
                self.closed.push(Node::cell::<D>(index / words, index % words * 64 + bit));
                closed &= closed - 1;
            }
        }
        self.closed.extend(extras.filter(|&e| self.explicit.diagonal[e] == 0.0).map(Node::explicit));
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.topology.bytes()
            + self.stencil.bytes()
            + self.explicit.bytes()
            + self.sums.bytes()
            + self.transfer.bytes()
            + (self.x[0].capacity() + self.x[1].capacity() + self.b.capacity()) * 32
            + self.closed.capacity() * 4
            + self.coupled.bytes()
    }
}
