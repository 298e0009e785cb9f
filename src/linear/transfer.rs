//! Between a level and the next coarser one: restriction sums residuals over aggregates, prolongation copies back.

use crate::grid::block_cells;
use crate::math::power;

use super::explicit::cell_value_mut;
use super::kernels::{self, Around};
use super::layout::{Node, Place, Row, half_rows, split_row};
use super::level::Level;
use super::parallel::{Cut, each_block};

/// Who is whose parent. Almost everywhere a cell's parent is the coarse cell that covers it; the rest is listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    /// The block that covers each fine block.
    pub parent: Vec<u32>,
    /// Fine blocks under each coarse block, by octant; 0 where absent.
    pub children: Vec<[u32; 8]>,
    /// Where each fine block's mask is, plus 1; 0 where all its cells follow the rule.
    pub keep_at: Vec<u32>,
    /// Both colours of a block: 1 for cells whose parent is the cell that covers them.
    pub keep: Vec<Row<f32>>,
    /// Cells whose parent is an explicit node, red ones first, and that node.
    pub strays: Vec<(Node, u32)>,
    /// Parents of the explicit nodes; [`Node::NONE`] for those that need no coarse correction.
    pub of_explicit: Vec<Node>,
}

impl Transfer {
    /// Mask of one colour of a block, if it has one.
    #[inline]
    fn mask<const D: usize>(&self, block: usize, colour: usize) -> Option<&[Row<f32>]> {
        let half = half_rows(D);
        match self.keep_at[block] as usize {
            0 => None,
            slot => Some(&self.keep[(2 * (slot - 1) + colour) * half..(2 * (slot - 1) + colour + 1) * half]),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.parent.capacity() + self.keep_at.capacity()) * 4
            + self.children.capacity() * 32
            + self.keep.capacity() * 32
            + self.strays.capacity() * 8
            + self.of_explicit.capacity() * 4
    }
}

/// Where coarse values are read from, or added to.
pub(super) fn add<const D: usize>(coarse: &mut Level<D>, node: Node, value: f32) {
    match node.place() {
        _ if node == Node::NONE => {}
        Place::Cell { .. } => *cell_value_mut::<D>(&mut coarse.b, node) += value,
        Place::Explicit(index) => coarse.explicit.b[index] += value,
    }
}

pub(super) fn value<const D: usize>(coarse: &Level<D>, node: Node) -> f32 {
    match node.place() {
        _ if node == Node::NONE => 0.0,
        Place::Cell { colour, index } => coarse.x[colour].as_flattened()[index],
        Place::Explicit(index) => coarse.explicit.x[index],
    }
}

/// Sets the coarse right-hand side to the sums of the fine residuals, after a downward sweep: black cells were relaxed
/// last, so that only red ones and shared nodes have a residual, and black extras if black cells are linked to them.
pub(super) fn restrict<const D: usize>(fine: &mut Level<D>, coarse: &mut Level<D>) {
    if fine.explicit.has_contacts() {
        fine.explicit.refresh(&mut fine.b, 0);
    }
    let (half, octants) = (half_rows(D), power(2, D));
    let this = &*fine;
    each_block::<D, _>((Cut(&mut coarse.b, 2 * half),), |cover, (b,)| {
        let mut sums = [[0.0f32; 8]; 64];
        let sums = &mut sums[..2 * half];
        for &block in &this.transfer.children[cover][..octants] {
            let block = block as usize;
            if block == 0 {
                continue;
            }
            kernels::restrict(
                sums,
                &this.topology.octant(block),
                &this.x[0][block * half..(block + 1) * half],
                &this.b[2 * block * half..(2 * block + 1) * half],
                &Around::new(&this.x[1], half, 0, &this.topology, block),
                &this.stencil.of::<D>(block, 0),
                this.transfer.mask::<D>(block, 0),
                0,
            );
        }
        for (row, b) in b.iter_mut().enumerate() {
            *b = split_row::<_, D>(sums, row / half, row % half);
        }
    });
    coarse.explicit.b.fill(0.0);
    let black = fine.transfer.strays.partition_point(|(cell, _)| cell.0 >> 30 == 0);
    for &(cell, parent) in &fine.transfer.strays[..black] {
        coarse.explicit.b[parent as usize] += fine.red_residual(cell);
    }
    let [mut red, black] = fine.explicit.ends;
    if fine.explicit.entangled {
        red = black;
    }
    for node in (0..red).chain(black..fine.explicit.count) {
        let residual = fine.explicit.residual(node, [&fine.x[0], &fine.x[1]]);
        add(coarse, fine.transfer.of_explicit[node], residual);
    }
}

/// Adds the coarse values to the red cells and the explicit nodes; black cells are relaxed before they are read.
pub(super) fn prolong<const D: usize>(fine: &mut Level<D>, coarse: &Level<D>) {
    copy_to_colour(fine, coarse, 0);
    for (node, &parent) in fine.transfer.of_explicit.iter().enumerate() {
        fine.explicit.x[node] += value(coarse, parent);
    }
}

/// Sets every fine value to that of its parent, 0 where there is none.
pub(super) fn inject<const D: usize>(fine: &mut Level<D>, coarse: &Level<D>) {
    for colour in 0..2 {
        fine.x[colour].fill([0.0; 8]);
        copy_to_colour(fine, coarse, colour);
    }
    for (node, &parent) in fine.transfer.of_explicit.iter().enumerate() {
        fine.explicit.x[node] = value(coarse, parent);
    }
}

fn copy_to_colour<const D: usize>(fine: &mut Level<D>, coarse: &Level<D>, colour: usize) {
    let half = half_rows(D);
    let (topology, stencil, transfer) = (&fine.topology, &fine.stencil, &fine.transfer);
    each_block::<D, _>((Cut(&mut fine.x[colour], half),), |block, (x,)| {
        let cover = transfer.parent[block] as usize;
        let inverse = stencil.of::<D>(block, colour).inverse;
        kernels::prolong(
            x,
            &topology.octant(block),
            &coarse.x[0][cover * half..(cover + 1) * half],
            &coarse.x[1][cover * half..(cover + 1) * half],
            (!stencil.is_uniform(block)).then_some(inverse),
            transfer.mask::<D>(block, colour),
        );
    });
    for &(cell, parent) in &fine.transfer.strays {
        if let Place::Cell { colour: its, index } = cell.place()
            && its == colour
        {
            fine.x[colour].as_flattened_mut()[index] += coarse.explicit.x[parent as usize];
        }
    }
}

/// The coarse cell over a fine cell: its block and natural index.
#[inline]
pub(super) fn cover_of<const D: usize>(octant: [usize; D], local: usize) -> usize {
    let mut rest = local;
    let mut index = 0;
    for (axis, part) in octant.iter().enumerate() {
        let coordinate = rest % 8;
        rest /= 8;
        index += (4 * part + coordinate / 2) * power(8, axis);
    }
    debug_assert!(index < block_cells(D));
    index
}
