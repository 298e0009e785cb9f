//! Between a level and the next coarser one: restriction sums residuals over aggregates, prolongation copies back.

use crate::grid::block_cells;
use crate::math::power;

use super::explicit::cell_value_mut;
use super::kernels::{self, Around};
use super::layout::{Node, Place, Row, half_rows, split_row};
use super::level::Level;
use super::parallel::{cut, each_block};
use super::source::kind;

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

/// The parent of a node of the finer level, if it has one.
pub(super) fn parent_of<const D: usize>(fine: &Level<D>, coarse: &Level<D>, node: Node) -> Option<Node> {
    let transfer = &fine.transfer;
    match node.place() {
        Place::Explicit(index) => Some(transfer.of_explicit[index]).filter(|&parent| parent != Node::NONE),
        Place::Cell { colour, index } => {
            let (block, local) = node.block_and_local::<D>();
            let place = index % (block_cells(D) / 2);
            let is_kept =
                transfer.mask::<D>(block, colour).is_none_or(|keep| keep.as_flattened()[place] > 0.0);
            if !is_kept {
                let stray = transfer.strays.binary_search_by_key(&node, |stray| stray.0).ok()?;
                return Some(Node::explicit(transfer.strays[stray].1 as usize));
            }
            let words = super::stencil::mask_words(D);
            let is_carried = fine.stencil.carried[block * words + local / 64] >> (local % 64) & 1 != 0;
            let (cover, target) =
                (transfer.parent[block] as usize, cover_of(fine.topology.octant(block), local));
            let is_node = coarse.sums.kind[cover * block_cells(D) + target] != kind::EMPTY;
            (is_carried && is_node).then(|| Node::cell::<D>(cover, target))
        }
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
    each_block::<D, _>((cut(&mut coarse.b, 2 * half),), |cover, (b,)| {
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
    for node in 0..red {
        let residual = fine.explicit.residual(node, [&fine.x[0], &fine.x[1]]);
        add(coarse, fine.transfer.of_explicit[node], residual);
    }
    fine.explicit.pull_shared([&fine.x[0], &fine.x[1]]);
    for (node, pull) in fine.explicit.pull_of_shared() {
        add(coarse, fine.transfer.of_explicit[node], fine.explicit.residual_with(node, pull));
    }
    restrict_coupled(fine, coarse);
}

/// Whether [`restrict`] and [`prolong`] reach a node by themselves: black cells count as solved after a sweep, and as about to be
/// solved before one.
fn is_reached<const D: usize>(level: &Level<D>, node: Node) -> bool {
    match node.place() {
        Place::Cell { colour, .. } => colour == 0,
        Place::Explicit(index) => {
            let [red, black] = level.explicit.ends;
            index < red || index >= black || level.explicit.entangled
        }
    }
}

/// What the unknowns that touch bodies add to the restriction. They were relaxed last: their own rows feel the bodies, and black
/// ones beside them are no longer solved.
fn restrict_coupled<const D: usize>(fine: &mut Level<D>, coarse: &mut Level<D>) {
    if fine.coupled.is_empty() {
        return;
    }
    let mut coupled = std::mem::take(&mut fine.coupled);
    let mut below = std::mem::take(&mut coarse.coupled);
    let level = &*fine;
    coupled.restrict(
        |node| level.value(node),
        &mut below,
        |coupled, index, residual, term| {
            let (node, row) = (coupled.nodes()[index], coupled.row(index));
            // Where the network has no row, it has no residual either.
            let is_reached = is_reached(level, node) && row.diagonal > 0.0;
            let parent = coupled.parent(index).unwrap_or(Node::NONE);
            add(coarse, parent, if is_reached { -term } else { residual - term });
        },
    );
    coupled.each_outward(|place, residual| {
        let (node, parent) = coupled.beside()[place];
        if !is_reached(level, node) {
            add(coarse, parent, residual);
        }
    });
    coarse.coupled = below;
    fine.coupled = coupled;
}

/// Adds the coarse values to the unknowns that touch bodies, and to black ones beside them: these are read before they are relaxed.
fn prolong_coupled<const D: usize>(fine: &mut Level<D>, coarse: &Level<D>) {
    if fine.coupled.is_empty() {
        return;
    }
    let mut coupled = std::mem::take(&mut fine.coupled);
    coupled.prolong(&coarse.coupled, |node| value(coarse, node));
    coupled.values().for_each(|(node, value)| fine.set_value(node, value));
    for &(node, parent) in coupled.beside() {
        if let Place::Cell { colour: 1, .. } = node.place() {
            fine.set_value(node, fine.value(node) + value(coarse, parent));
        }
    }
    fine.coupled = coupled;
}

/// Adds the coarse values to the red cells and the explicit nodes; black cells are relaxed before they are read.
pub(super) fn prolong<const D: usize>(fine: &mut Level<D>, coarse: &Level<D>) {
    copy_to_colour(fine, coarse, 0);
    for (node, &parent) in fine.transfer.of_explicit.iter().enumerate() {
        fine.explicit.x[node] += value(coarse, parent);
    }
    prolong_coupled(fine, coarse);
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
    each_block::<D, _>((cut(&mut fine.x[colour], half),), |block, (x,)| {
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
