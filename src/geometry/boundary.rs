//! Obstacles and domain walls as the grid sees them: signed distances at cell corners and the open share of
//! every face.

use crate::grid::{Blocks, Field, SIDE, Slots, across, block_cells, for_each_block};
use crate::math::{Real, Side, Vector, power, unflatten};

use super::Solid;
use super::fraction::{corner_mean, positive_segment, positive_square, snap};

/// Distances are stored in cells and cut off here: nothing farther away matters to any stage.
pub const FAR: f32 = 4.0;

/// The solids of a scene together with the closed sides of the domain.
#[derive(Clone, Debug)]
pub struct Walls<const D: usize> {
    /// Obstacles and containers.
    pub solids: Vec<Solid<D>>,
    /// Size of the domain, metres.
    pub size: [Real; D],
    /// Which sides are open: `[low, high]` per axis.
    pub open: [[bool; 2]; D],
}

impl<const D: usize> Walls<D> {
    /// Signed distance to the nearest solid or closed side, metres, negative inside.
    pub fn distance(&self, x: &Vector<D>, time: Real) -> Real {
        self.solids.iter().map(|solid| solid.distance(x, time)).fold(self.side_distance(x), Real::min)
    }

    /// Like [`Self::distance`], of the solids that never move and the closed sides.
    pub fn standing_distance(&self, x: &Vector<D>) -> Real {
        let standing = self.solids.iter().filter(|solid| !solid.is_moving());
        standing.map(|solid| solid.distance(x, 0.0)).fold(self.side_distance(x), Real::min)
    }

    /// Like [`Self::distance`], of the solids that move; infinite if none does.
    pub fn moving_distance(&self, x: &Vector<D>, time: Real) -> Real {
        let moving = self.solids.iter().filter(|solid| solid.is_moving());
        moving.map(|solid| solid.distance(x, time)).fold(Real::INFINITY, Real::min)
    }

    /// Distance to the nearest closed side of the domain, negative beyond it.
    fn side_distance(&self, x: &Vector<D>) -> Real {
        let mut nearest = Real::INFINITY;
        for axis in 0..D {
            if !self.open[axis][0] {
                nearest = nearest.min(x[axis]);
            }
            if !self.open[axis][1] {
                nearest = nearest.min(self.size[axis] - x[axis]);
            }
        }
        nearest
    }

    /// Velocity of the nearest solid's material at `x`; zero next to a side of the domain.
    pub fn velocity(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        let nearest = self
            .solids
            .iter()
            .map(|solid| (solid.distance(x, time), solid))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match nearest {
            Some((distance, solid)) if solid.is_moving() && distance < self.side_distance(x) => {
                solid.velocity(x, time)
            }
            _ => Vector::zeros(),
        }
    }

    /// Whether any solid ever moves.
    pub fn any_moving(&self) -> bool {
        self.solids.iter().any(Solid::is_moving)
    }

    /// The fastest any solid moves near the domain, m/s: what limits the step.
    pub fn max_speed(&self, time: Real) -> Real {
        let corners = power(2, D);
        let mut fastest: Real = 0.0;
        for solid in self.solids.iter().filter(|solid| solid.is_moving()) {
            for corner in 0..corners {
                let x = Vector::from_fn(|axis, _| self.size[axis] * ((corner >> axis) & 1) as Real);
                fastest = fastest.max(solid.velocity(&x, time).norm());
            }
        }
        fastest
    }
}

/// How a block lies with respect to the solids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nearness {
    /// No solid within [`FAR`] cells: every face is open.
    #[default]
    Clear,
    /// Some solid is near, none of those moves.
    Static,
    /// A moving solid is near.
    Moving,
}

/// A bit per cell of a block, 64 cells to a word, x fastest; a 2D block uses the first word.
pub type CellBits = [u64; SIDE];

/// What walls do to the cells of one block, as bits.
#[derive(Clone, Copy, Debug)]
pub struct WallBits {
    /// Per axis: the low face is open, if only in part.
    pub passable: [CellBits; 3],
    /// No face is open.
    pub closed: CellBits,
    /// Some face is not wholly open.
    pub cut: CellBits,
    /// The centre is closer to a wall than half a cell, or in it: the wall takes part of the cell.
    pub close: CellBits,
    /// The centre is closer than a quarter of a cell, or in the wall: particles need not be there.
    pub full: CellBits,
}

impl WallBits {
    /// No wall.
    const CLEAR: WallBits = WallBits {
        passable: [[u64::MAX; SIDE]; 3],
        closed: [0; SIDE],
        cut: [0; SIDE],
        close: [0; SIDE],
        full: [0; SIDE],
    };
}

/// The walls sampled on the active blocks.
#[derive(Clone, Debug)]
pub struct Boundary<const D: usize> {
    /// Signed distance at every cell's low corner, in cells, cut off at ±[`FAR`].
    pub corner: Field<f32>,
    /// Open share of every low face, per axis.
    pub open: [Field<f32>; D],
    /// Closed low faces that lie along a wall, per axis: a bit per face, a byte per row of eight along x.
    pub along: [Field<u8>; D],
    bits: Field<WallBits>,
    near: Vec<Nearness>,
    due: Vec<bool>,
    stale: Slots,
}

impl<const D: usize> Boundary<D> {
    /// Nothing sampled yet. Beyond the active blocks all faces read as closed.
    pub fn new() -> Self {
        Boundary {
            corner: Field::new(block_cells(D), -FAR),
            open: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            along: std::array::from_fn(|_| Field::new(block_cells(D) / SIDE, 0)),
            bits: Field::new(1, WallBits::CLEAR),
            near: Vec::new(),
            due: Vec::new(),
            stale: Slots::default(),
        }
    }

    /// How the block in a slot lies with respect to the solids.
    #[inline]
    pub fn nearness(&self, slot: usize) -> Nearness {
        self.near[slot]
    }

    /// What walls do to a block's cells.
    #[inline]
    pub fn bits(&self, slot: usize) -> &WallBits {
        &self.bits.block(slot)[0]
    }

    /// Whether a cell's face on a side across an axis is open, if only in part.
    #[inline]
    pub fn is_open(&self, blocks: &Blocks<D>, slot: usize, cell: usize, axis: usize, side: Side) -> bool {
        // A face is stored with the cell on its high side.
        let (face, is_beyond) = match side {
            Side::Low => (cell, false),
            Side::High => across(cell, axis, side),
        };
        let slot = if is_beyond { blocks.beside(slot, axis, Side::High) as usize } else { slot };
        slot != crate::grid::VOID as usize
            && self.bits(slot).passable[axis][face / 64] >> (face % 64) & 1 == 1
    }

    /// Samples new blocks, and those near moving solids anew.
    pub fn update(&mut self, blocks: &Blocks<D>, walls: &Walls<D>, time: Real) {
        let known = self.near.len();
        self.corner.resize(blocks.slot_count());
        self.open.iter_mut().for_each(|open| open.resize(blocks.slot_count()));
        self.along.iter_mut().for_each(|along| along.resize(blocks.slot_count()));
        self.bits.resize(blocks.slot_count());
        self.near.resize(blocks.slot_count(), Nearness::Clear);
        // A block is due when it is new here, when a moving solid is near, or when one was.
        let due = &mut self.due;
        due.clear();
        due.resize(known, false);
        due.resize(blocks.slot_count(), true);
        blocks.fresh().iter().for_each(|&slot| due[slot as usize] = true);
        let (near, stale) = (&mut self.near, &mut self.stale);
        for solid in walls.solids.iter().filter(|solid| solid.is_moving()) {
            let solid = solid.at(time);
            for &slot in blocks.slots().as_slice() {
                let (centre, _, reach) = reach(blocks, blocks.coords(slot as usize));
                let is_near = || near[slot as usize] == Nearness::Moving || solid.distance(&centre) <= reach;
                due[slot as usize] = due[slot as usize] || is_near();
            }
        }
        stale.refill(blocks.slots(), |slot| due[slot]);
        for &slot in stale.as_slice() {
            near[slot as usize] = nearness(blocks, walls, slot as usize, time);
        }
        let near = &self.near;
        let (open, along) = (self.open.each_mut().map(Field::parts), self.along.each_mut().map(Field::parts));
        for_each_block(
            &self.stale,
            (self.corner.parts(), open, along, self.bits.parts()),
            |slot, (corner, mut open, mut along, bits)| {
                if near[slot] == Nearness::Clear {
                    corner.fill(FAR);
                    open.iter_mut().for_each(|face| face.fill(1.0));
                    along.iter_mut().for_each(|rows| rows.fill(0));
                    bits[0] = WallBits::CLEAR;
                } else {
                    bits[0] = sample_block(blocks, walls, slot, time, corner, &mut open, &mut along);
                }
            },
        );
    }

    /// Derives the bits anew from open shares that were set by hand.
    pub fn derive_bits(&mut self, blocks: &Blocks<D>) {
        for &slot in blocks.slots().as_slice() {
            let slot = slot as usize;
            let mut bits = WallBits { closed: [0; SIDE], cut: [0; SIDE], ..*self.bits(slot) };
            for cell in 0..block_cells(D) {
                let (word, bit) = (cell / 64, cell % 64);
                let (mut closed, mut cut) = (true, false);
                for axis in 0..D {
                    let stride = power(SIDE, axis);
                    let low = self.open[axis].block(slot)[cell];
                    let high = if cell / stride % SIDE + 1 < SIDE {
                        self.open[axis].block(slot)[cell + stride]
                    } else {
                        let next = blocks.beside(slot, axis, crate::math::Side::High) as usize;
                        self.open[axis].block(next)[cell - (SIDE - 1) * stride]
                    };
                    closed &= low == 0.0 && high == 0.0;
                    cut |= low < 1.0 || high < 1.0;
                    bits.passable[axis][word] &= !(1 << bit);
                    bits.passable[axis][word] |= ((low > 0.0) as u64) << bit;
                }
                bits.closed[word] |= (closed as u64) << bit;
                bits.cut[word] |= (cut as u64) << bit;
            }
            self.bits.block_mut(slot)[0] = bits;
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.corner.bytes()
            + self.open.iter().map(Field::bytes).sum::<usize>()
            + self.along.iter().map(Field::bytes).sum::<usize>()
            + self.bits.bytes()
            + 2 * self.near.capacity()
    }
}

impl<const D: usize> Default for Boundary<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// Centre of a block, metres, and the distance from it within which solids matter to the block.
fn reach<const D: usize>(blocks: &Blocks<D>, coords: [i32; D]) -> (Vector<D>, Real, Real) {
    let dx = blocks.grid().dx;
    let half = 0.5 * SIDE as Real;
    let first = blocks.grid().first_cell(coords);
    let centre = Vector::from_fn(|axis, _| (first[axis] as Real + half) * dx);
    let radius = half * (D as Real).sqrt() * dx;
    (centre, radius, radius + FAR as Real * dx)
}

fn nearness<const D: usize>(blocks: &Blocks<D>, walls: &Walls<D>, slot: usize, time: Real) -> Nearness {
    let (centre, _, reach) = reach(blocks, blocks.coords(slot));
    let mut near = if walls.side_distance(&centre) <= reach { Nearness::Static } else { Nearness::Clear };
    for solid in &walls.solids {
        if solid.distance(&centre, time) <= reach {
            if solid.is_moving() {
                return Nearness::Moving;
            }
            near = Nearness::Static;
        }
    }
    near
}

/// Whether a block lies so far inside the walls that no liquid cell ever looks at its corners or faces.
pub fn block_is_solid<const D: usize>(
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    coords: [i32; D],
    time: Real,
) -> bool {
    let (centre, radius, _) = reach(blocks, coords);
    walls.distance(&centre, time) <= -(radius + blocks.grid().dx)
}

/// Samples one block: corner distances, open shares from the distances at the corners of each face, and which of the
/// closed faces lie along a wall.
fn sample_block<const D: usize>(
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    slot: usize,
    time: Real,
    corner: &mut [f32],
    open: &mut [&mut [f32]; D],
    along: &mut [&mut [u8]; D],
) -> WallBits {
    // The block's own corners, those on its high sides, and one more layer below for the normals.
    const NODES: usize = SIDE + 2;
    // Solids whose poses are worked out together, without asking for memory.
    const GROUP: usize = 8;
    let dx = blocks.grid().dx;
    let first = blocks.first_cell(slot);
    let (centre, _, reach) = reach(blocks, blocks.coords(slot));
    let mut node = [0f32; NODES * NODES * NODES];
    let node = &mut node[..power(NODES, D)];
    for (index, value) in node.iter_mut().enumerate() {
        let x = Vector::from_fn(|axis, _| {
            (first[axis] + unflatten::<D>(index, NODES)[axis] as i32 - 1) as Real * dx
        });
        *value = ((walls.side_distance(&x) / dx) as f32).clamp(-FAR, FAR);
    }
    for group in walls.solids.chunks(GROUP) {
        // Solids out of reach of the block's centre cannot be within FAR of any of its corners.
        let near: [_; GROUP] = std::array::from_fn(|i| {
            group.get(i).map(|solid| solid.at(time)).filter(|solid| solid.distance(&centre) <= reach)
        });
        for (index, value) in node.iter_mut().enumerate() {
            let x = Vector::from_fn(|axis, _| {
                (first[axis] + unflatten::<D>(index, NODES)[axis] as i32 - 1) as Real * dx
            });
            for solid in near.iter().flatten() {
                *value = value.min(((solid.distance(&x) / dx) as f32).max(-FAR));
            }
        }
    }
    let stride: [usize; D] = std::array::from_fn(|axis| power(NODES, axis));
    // Open share of the face across an axis whose lowest corner is given.
    let share_of = |base: usize, axis: usize| {
        snap(if D == 2 {
            positive_segment(node[base], node[base + stride[1 - axis]])
        } else {
            let (s, t) = (stride[(axis + 1) % D], stride[(axis + 2) % D]);
            positive_square([node[base], node[base + s], node[base + s + t], node[base + t]])
        })
    };
    let mut bits = WallBits { passable: [[0; SIDE]; 3], ..WallBits::CLEAR };
    for (local, corner) in corner.iter_mut().enumerate() {
        let offset = unflatten::<D>(local, SIDE);
        let base: usize = (0..D).map(|axis| (offset[axis] + 1) * stride[axis]).sum();
        *corner = node[base];
        let (mut closed, mut cut) = (true, false);
        let (word, bit) = (local / 64, local % 64);
        for axis in 0..D {
            open[axis][local] = share_of(base, axis);
            let high = share_of(base + stride[axis], axis);
            closed &= open[axis][local] == 0.0 && high == 0.0;
            cut |= open[axis][local] < 1.0 || high < 1.0;
            bits.passable[axis][word] |= ((open[axis][local] > 0.0) as u64) << bit;
            if local % SIDE == 0 {
                along[axis][local / SIDE] = 0;
            }
            let is_along = open[axis][local] == 0.0 && lies_along(node, base, &stride, axis);
            along[axis][local / SIDE] |= (is_along as u8) << (local % SIDE);
        }
        let centre = corner_mean::<D>(base, |k| stride[k], |at| node[at]);
        bits.closed[word] |= (closed as u64) << bit;
        bits.cut[word] |= (cut as u64) << bit;
        bits.close[word] |= ((centre < 0.5) as u64) << bit;
        bits.full[word] |= ((centre < 0.25) as u64) << bit;
    }
    bits
}

/// Whether the wall at a face has its normal along `axis`, up to a few degrees.
fn lies_along<const D: usize>(node: &[f32], base: usize, stride: &[usize; D], axis: usize) -> bool {
    const COSINE: f32 = 0.95;
    let mut gradient = [0f32; D];
    for c in (0..power(2, D)).filter(|c| c & (1 << axis) == 0) {
        let at = base + (0..D).filter(|k| c & (1 << k) != 0).map(|k| stride[k]).sum::<usize>();
        // Across the face: from the corner before to the corner behind. Along it: between its corners.
        gradient[axis] += 0.5 * (node[at + stride[axis]] - node[at - stride[axis]]);
        for k in (0..D).filter(|&k| k != axis) {
            // Half as many differences as corners.
            gradient[k] += if c & (1 << k) != 0 { 2.0 * node[at] } else { -2.0 * node[at] };
        }
    }
    let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
    norm > 0.0 && gradient[axis].abs() > COSINE * norm
}
