//! The flood fill: face-connected cells of one phase, through open faces, are one component (CBAR §4).
//!
//! Three steps. Every block splits its own cells into pieces, in parallel and 64 cells at a time. Pieces that touch
//! across blocks are joined. Blocks that are not stored hold nothing but air, or nothing but wall; each airy one counts
//! as one piece. The fill covers the volume and not the surface, so that a bubble with a droplet in it is one
//! component.

use crate::geometry::{Boundary, Label, Nearness, Settled, Walls};
use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, Field, SIDE, VOID, block_cells, for_each_block};
use crate::math::{Real, Sets, Side, Vector, unflatten};

/// The component of a cell that has none.
pub const NO_COMPONENT: u32 = u32::MAX;

/// One connected component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Air or liquid.
    pub phase: Label,
    /// Whether it is air that reaches an open side of the domain.
    pub open: bool,
    /// Whether it touches a wall.
    pub touches_solid: bool,
    /// Cells in blocks that are not stored: all of them air.
    pub far_cells: usize,
    /// The sum of those cells' centres, in cells.
    pub far_moment: [Real; 3],
    /// A block that it has a part in.
    pub home: [i32; 3],
}

/// What the fill keeps about a block besides its cells' pieces.
#[derive(Clone, Copy, Debug, Default)]
struct BlockPieces {
    /// Per phase (air, liquid), axis and end: the cells at the block's edge.
    plane: [[[u64; 2]; 3]; 2],
    /// Per axis: open faces at the low edge.
    open: [u64; 3],
    /// Pieces in the block.
    pieces: u32,
    /// How many of the pieces are air; these come first.
    air: u32,
    /// Bit per piece (the last for all from 63 on): reaches an open side; touches a wall.
    outside: u64,
    walls: u64,
    /// The component of the only piece, when there is no other.
    component: u32,
}

/// The components of the last fill, and the memory for the next.
#[derive(Clone, Debug)]
pub struct Components<const D: usize> {
    /// Which component each cell belongs to: an index into `list`, or [`NO_COMPONENT`].
    pub of: Field<u32>,
    /// All components, in the order in which their first cells are stored.
    pub list: Vec<Component>,
    edge: Field<BlockPieces>,
    first_piece: Vec<u32>,
    /// Per block of the lookup table: the piece of an airy block that is not stored.
    far_piece: Vec<u32>,
    sets: Sets,
    component_of_piece: Vec<u32>,
}

impl<const D: usize> Components<D> {
    /// No component yet.
    pub fn new() -> Self {
        Components {
            of: Field::new(block_cells(D), NO_COMPONENT),
            list: Vec::new(),
            edge: Field::new(1, BlockPieces::default()),
            first_piece: Vec::new(),
            far_piece: Vec::new(),
            sets: Sets::default(),
            component_of_piece: Vec::new(),
        }
    }

    /// Finds all components anew.
    pub fn fill(
        &mut self,
        blocks: &Blocks<D>,
        boundary: &Boundary<D>,
        walls: &Walls<D>,
        label: &Field<Label>,
        settled: &Settled,
        far: &WallBlocks,
    ) {
        self.of.resize(blocks.slot_count());
        self.edge.resize(blocks.slot_count());
        for_each_block(blocks.slots(), (self.of.parts(), self.edge.parts()), |slot, (of, edge)| {
            // A settled block in one piece keeps what is known of it, and its cells the component they had.
            if settled.is_settled(slot) && edge[0].pieces <= 1 {
                return;
            }
            edge[0] = split_block(blocks, boundary, walls, label, slot, of);
        });
        self.number_pieces(blocks, far);
        self.join_stored(blocks);
        self.join_far(blocks);
        self.list_components(blocks, walls);
        let (first, component) = (&self.first_piece, &self.component_of_piece);
        for_each_block(blocks.slots(), (self.of.parts(), self.edge.parts()), |slot, (of, edge)| {
            if edge[0].pieces <= 1 {
                let now = component.get(first[slot] as usize).copied().unwrap_or(NO_COMPONENT);
                if !settled.is_settled(slot) || edge[0].component != now {
                    of.iter_mut().filter(|of| **of != NO_COMPONENT).for_each(|of| *of = now);
                    edge[0].component = now;
                }
                return;
            }
            for of in of.iter_mut().filter(|of| **of != NO_COMPONENT) {
                *of = component[(first[slot] + *of) as usize];
            }
        });
    }

    /// The component of a block that has a part in no other.
    pub fn only_component(&self, slot: usize) -> Option<u32> {
        let edge = &self.edge[slot];
        (edge.pieces == 1).then_some(edge.component)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The component of a block that is not stored, if it is airy.
    pub fn far_component(&self, table_index: usize) -> Option<u32> {
        let piece = self.far_piece.get(table_index).filter(|piece| **piece != NO_COMPONENT)?;
        self.component_of_piece.get(*piece as usize).copied().filter(|component| *component != NO_COMPONENT)
    }

    /// Whether a component has a part in a block, stored or not.
    pub fn has_part_in(&self, blocks: &Blocks<D>, coords: [i32; D], component: u32) -> bool {
        let slot = blocks.slot_at(coords);
        if slot == VOID {
            let far = blocks.table_index(coords).and_then(|index| self.far_component(index));
            return far == Some(component);
        }
        let (first, pieces) = (self.first_piece[slot as usize], self.edge[slot as usize].pieces);
        self.component_of_piece[first as usize..(first + pieces) as usize].contains(&component)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.of.bytes() + self.edge.bytes() + self.far_piece.capacity() * 4
    }

    fn number_pieces(&mut self, blocks: &Blocks<D>, far: &WallBlocks) {
        self.first_piece.clear();
        self.first_piece.resize(blocks.slot_count(), 0);
        let mut next = 0;
        for &slot in blocks.slots().as_slice() {
            self.first_piece[slot as usize] = next;
            next += self.edge[slot as usize].pieces;
        }
        self.sets.reset(next as usize);
        self.far_piece.clear();
        self.far_piece.resize(blocks.table_len(), NO_COMPONENT);
        for coords in blocks.grid().all_blocks() {
            if blocks.slot_at(coords) == VOID
                && let Some(index) = blocks.table_index(coords)
                && far.is_airy(index)
            {
                self.far_piece[index] = self.sets.push();
            }
        }
    }

    fn join_stored(&mut self, blocks: &Blocks<D>) {
        for &slot in blocks.slots().as_slice() {
            let slot = slot as usize;
            for axis in 0..D {
                let low = blocks.beside(slot, axis, Side::Low);
                if low != VOID {
                    self.join_across(slot, low as usize, axis);
                }
                for side in Side::BOTH {
                    self.join_to_far(blocks, slot, axis, side);
                }
            }
        }
    }

    /// Joins the pieces on both sides of the faces between a block and the one below it.
    fn join_across(&mut self, slot: usize, low: usize, axis: usize) {
        let (here, there) = (self.edge[slot], self.edge[low]);
        for phase in 0..2 {
            let touching = here.plane[phase][axis][0] & there.plane[phase][axis][1] & here.open[axis];
            if touching == 0 {
                continue;
            }
            let single =
                |edge: &BlockPieces| if phase == 0 { edge.air == 1 } else { edge.pieces - edge.air == 1 };
            // One face is enough when each side is in one piece.
            let touching =
                if single(&here) && single(&there) { touching & touching.wrapping_neg() } else { touching };
            for bit in masks::each_in(touching) {
                let own = self.piece_at(slot, masks::plane_cell::<D>(bit, axis, Side::Low));
                let other = self.piece_at(low, masks::plane_cell::<D>(bit, axis, Side::High));
                self.sets.join(own, other);
            }
        }
    }

    /// Joins the air at a block's edge with the airy block behind it that is not stored. No wall is near those.
    fn join_to_far(&mut self, blocks: &Blocks<D>, slot: usize, axis: usize, side: Side) {
        let mut coords = blocks.coords(slot);
        coords[axis] += side.sign() as i32;
        if blocks.beside(slot, axis, side) != VOID {
            return;
        }
        let Some(far) = blocks.table_index(coords).map(|index| self.far_piece[index]) else { return };
        if far == NO_COMPONENT {
            return;
        }
        let edge = self.edge[slot];
        let open = if side == Side::High { u64::MAX } else { edge.open[axis] };
        let air = edge.plane[0][axis][side.index()] & open;
        // One face is enough when all air here is in one piece.
        let air = if edge.air == 1 { air & air.wrapping_neg() } else { air };
        for bit in masks::each_in(air) {
            let own = self.piece_at(slot, masks::plane_cell::<D>(bit, axis, side));
            self.sets.join(own, far);
        }
    }

    /// The piece of a cell that has one, before pieces became components.
    fn piece_at(&self, slot: usize, cell: usize) -> u32 {
        let local = if self.edge[slot].pieces == 1 { 0 } else { self.of.block(slot)[cell] };
        self.first_piece[slot] + local
    }

    fn join_far(&mut self, blocks: &Blocks<D>) {
        for index in 0..self.far_piece.len() {
            let own = self.far_piece[index];
            if own == NO_COMPONENT {
                continue;
            }
            let coords = blocks.table_coords(index);
            for axis in 0..D {
                let mut low = coords;
                low[axis] -= 1;
                let other = blocks.table_index(low).map_or(NO_COMPONENT, |index| self.far_piece[index]);
                if other != NO_COMPONENT {
                    self.sets.join(own, other);
                }
            }
        }
    }

    /// Turns sets of pieces into components, and sums up what is known of their pieces.
    fn list_components(&mut self, blocks: &Blocks<D>, walls: &Walls<D>) {
        self.list.clear();
        self.component_of_piece.clear();
        self.component_of_piece.resize(self.sets.len(), NO_COMPONENT);
        for &slot in blocks.slots().as_slice() {
            let edge = self.edge[slot as usize];
            for piece in 0..edge.pieces {
                let number = self.first_piece[slot as usize] + piece;
                let phase = if piece < edge.air { Label::Air } else { Label::Liquid };
                let component = self.component_of(number, phase, blocks.coords(slot as usize));
                let bit = 1u64 << piece.min(63);
                component.open |= edge.outside & bit != 0;
                component.touches_solid |= edge.walls & bit != 0;
            }
        }
        let cells = blocks.grid().cells;
        for index in 0..self.far_piece.len() {
            let piece = self.far_piece[index];
            if piece == NO_COMPONENT {
                continue;
            }
            let coords = blocks.table_coords(index);
            let first = blocks.grid().first_cell(coords);
            let component = self.component_of(piece, Label::Air, coords);
            let (mut inside, mut centre) = (1, [0.0; 3]);
            for axis in 0..D {
                let (low, high) = (first[axis], first[axis] + SIDE as i32);
                let end = cells[axis] as i32;
                component.open |= (low < 0 && walls.open[axis][0]) || (high > end && walls.open[axis][1]);
                component.touches_solid |=
                    (low <= 0 && !walls.open[axis][0]) || (high >= end && !walls.open[axis][1]);
                inside *= (high.min(end) - low.max(0)).max(0) as usize;
                centre[axis] = 0.5 * (high.min(end) + low.max(0)) as Real;
            }
            component.far_cells += inside;
            (0..D).for_each(|k| component.far_moment[k] += inside as Real * centre[k]);
        }
    }

    /// The component of a piece in a block; its first piece opens it.
    fn component_of(&mut self, piece: u32, phase: Label, block: [i32; D]) -> &mut Component {
        let root = self.sets.find(piece) as usize;
        if self.component_of_piece[root] == NO_COMPONENT {
            self.component_of_piece[root] = self.list.len() as u32;
            self.list.push(Component {
                phase,
                open: false,
                touches_solid: false,
                far_cells: 0,
                far_moment: [0.0; 3],
                home: std::array::from_fn(|axis| block.get(axis).copied().unwrap_or(0)),
            });
        }
        let component = self.component_of_piece[root];
        self.component_of_piece[piece as usize] = component;
        &mut self.list[component as usize]
    }
}

impl<const D: usize> Default for Components<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// Numbers the pieces of one block: air first, then liquid.
fn split_block<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    walls: &Walls<D>,
    label: &Field<Label>,
    slot: usize,
    of: &mut [u32],
) -> BlockPieces {
    let labels = label.block(slot);
    let clear = boundary.nearness(slot) == Nearness::Clear;
    let bits = boundary.bits(slot);
    let open: [Bits; D] = std::array::from_fn(|axis| bits.passable[axis]);
    let mut edge = BlockPieces::default();
    for axis in 0..D {
        edge.open[axis] = masks::plane::<D>(&open[axis], axis, Side::Low);
    }
    let beyond = cells_beyond_open_sides(blocks, walls, slot);
    let at_wall = &bits.cut;
    of.fill(NO_COMPONENT);
    for (phase, wanted) in [Label::Air, Label::Liquid].into_iter().enumerate() {
        let mut left = if labels.iter().all(|&label| label == wanted) {
            masks::all(D)
        } else {
            masks::bits_of(labels, |label| label == wanted)
        };
        for axis in 0..D {
            for side in Side::BOTH {
                edge.plane[phase][axis][side.index()] = masks::plane::<D>(&left, axis, side);
            }
        }
        while let Some(seed) = masks::first(&left) {
            // A whole open block needs no growing.
            let piece =
                if clear && left == masks::all(D) { left } else { masks::connected(seed, &left, &open) };
            let bit = 1u64 << edge.pieces.min(63);
            let meets = |cells: &Bits| piece.iter().zip(cells).any(|(a, b)| a & b != 0);
            if phase == 0 && meets(&beyond) {
                edge.outside |= bit;
            }
            if meets(at_wall) {
                edge.walls |= bit;
            }
            if piece == masks::all(D) {
                of.fill(edge.pieces);
            } else {
                masks::each(&piece).for_each(|cell| of[cell] = edge.pieces);
            }
            left.iter_mut().zip(&piece).for_each(|(left, piece)| *left &= !piece);
            edge.pieces += 1;
        }
        if phase == 0 {
            edge.air = edge.pieces;
        }
    }
    edge
}

/// Cells of a block that lie beyond an open side of the domain.
fn cells_beyond_open_sides<const D: usize>(blocks: &Blocks<D>, walls: &Walls<D>, slot: usize) -> Bits {
    let first = blocks.first_cell(slot);
    let cells = blocks.grid().cells;
    let reaches = (0..D).any(|axis| {
        (walls.open[axis][0] && first[axis] < 0)
            || (walls.open[axis][1] && first[axis] + SIDE as i32 > cells[axis] as i32)
    });
    let mut found = masks::NONE;
    if reaches {
        for cell in 0..block_cells(D) {
            let at = unflatten::<D>(cell, SIDE);
            let is_beyond = (0..D).any(|axis| {
                let c = first[axis] + at[axis] as i32;
                (walls.open[axis][0] && c < 0) || (walls.open[axis][1] && c >= cells[axis] as i32)
            });
            found[cell / 64] |= (is_beyond as u64) << (cell % 64);
        }
    }
    found
}

/// What the blocks that are not stored are made of, and which blocks must be stored because a solid's surface runs
/// through them: without those, air on both sides of a thin wall would look connected.
#[derive(Clone, Debug, Default)]
pub struct WallBlocks {
    airy: Vec<bool>,
    /// Places in the lookup table of the blocks with a solid's surface in them, then of the airy ones.
    needed: Vec<u32>,
    /// How many of them have a surface.
    surfaces: usize,
    /// Per place in the table: how far solids that never move are from the block's centre, and all that may matter to it.
    standing: Vec<Real>,
    distance: Vec<Real>,
}

impl WallBlocks {
    /// Looks at every block of the domain, if that was not done yet or if solids move.
    pub fn update<const D: usize>(&mut self, blocks: &Blocks<D>, walls: &Walls<D>, time: Real) {
        let known = self.airy.len() == blocks.table_len();
        if known && !walls.any_moving() {
            return;
        }
        let grid = blocks.grid();
        let half = 0.5 * SIDE as Real;
        let reach = (half * (D as Real).sqrt() + 1.0) * grid.dx;
        let centre = |coords: [i32; D]| {
            let first = grid.first_cell(coords);
            Vector::from_fn(|axis, _| (first[axis] as Real + half) * grid.dx)
        };
        let places = || grid.all_blocks().filter_map(|coords| Some((blocks.table_index(coords)?, coords)));
        if !known {
            self.standing.clear();
            self.standing.resize(blocks.table_len(), Real::INFINITY);
            for solid in walls.solids.iter().filter(|solid| !solid.is_moving()) {
                for (index, coords) in places() {
                    self.standing[index] = self.standing[index].min(solid.distance(&centre(coords), time));
                }
            }
        }
        self.distance.clone_from(&self.standing);
        for solid in walls.solids.iter().filter(|solid| solid.is_moving() && solid.is_present(time)) {
            let posed = solid.at(time);
            for (index, coords) in places() {
                let centre = centre(coords);
                // Beyond the reach all distances mean the same.
                if solid.may_reach(&centre, reach) {
                    self.distance[index] = self.distance[index].min(posed.distance(&centre));
                }
            }
        }
        self.airy.clear();
        self.airy.resize(blocks.table_len(), false);
        self.needed.clear();
        for (index, coords) in places() {
            let first = grid.first_cell(coords);
            let beyond_closed = (0..D).any(|axis| {
                (!walls.open[axis][0] && first[axis] + SIDE as i32 <= 0)
                    || (!walls.open[axis][1] && first[axis] >= grid.cells[axis] as i32)
            });
            let distance = self.distance[index];
            if beyond_closed {
                continue;
            }
            if distance.abs() <= reach {
                self.needed.push(index as u32);
            } else {
                self.airy[index] = distance > 0.0;
            }
        }
        self.surfaces = self.needed.len();
        self.needed.extend((0..self.airy.len() as u32).filter(|&index| self.airy[index as usize]));
    }

    /// Whether a block that is not stored, given by its place in the lookup table, is air.
    pub fn is_airy(&self, index: usize) -> bool {
        self.airy[index]
    }

    /// Places in the lookup table of the blocks that must be stored; all that are not solid if air has mass.
    pub fn needed(&self, air_has_mass: bool) -> &[u32] {
        if air_has_mass { &self.needed } else { &self.needed[..self.surfaces] }
    }
}
