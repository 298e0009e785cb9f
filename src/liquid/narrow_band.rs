//! Reduced advection: a narrow band of particles (Ferstl et al. 2016) around a core without any.
//!
//! Deep inside liquid that moves in affine tiles, particles tell the grid nothing that it does not know: where liquid
//! is, and how fast. So they are left out there, in all cells of the *core*, and the grid speaks for itself.
//!
//! * The core moves with the liquid: what a cell lacks is advected into the cells that it flows into. Where that may
//!   have happened during a substep is found from the fastest flow in it, and all those cells count as core until its
//!   end.
//! * They are liquid as they were, and so are all cells around them: a core lies deeper below every surface and wall
//!   than anything can go in a substep ([`CORE_DEPTH`]).
//! * The velocity on their faces, and on those that their particles would have reached, is advected on the grid: traced
//!   back along the path that a particle would have come, and looked up there (semi-Lagrangian). For an affine field
//!   `u = A x + b` this is the affine field that self-advection gives, `A' = −A A`, `b' = −A b` over a short time. What
//!   the method is blamed for, the smoothing by interpolation, is not there: linear interpolation of an affine field is
//!   exact. It only happens at the seams between tiles, where liquid flows from one into the next, which is why tracing
//!   on the grid is better than moving each tile's field on by itself.
//! * At the end of the substep the next core is known. Cells that are no part of it get a full set of new particles at
//!   well-spread places, which move as the grid does; those in it lose what drifted in.
//!
//! No particles are kept inside the core rather than a few: one particle per cell would have to be moved, sorted and
//! counted like eight, and adds noise to what the grid knows exactly.

use rayon::prelude::*;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::grid::masks::{self, Bits};
use crate::grid::{
    Blocks, CellSet, DisjointMut, FaceMask, Field, Halo, SIDE, block_cells, for_each_block, halo_cells,
    load_halo,
};
use crate::math::{Real, power, unflatten};

use super::advect::{self, lane_displacement};
use super::kernel::lane_sample;
use super::lanes::{Job, LANES, Wide, dispatch};
use super::transfer::gather_new;
use super::{CellRanges, Layout, MARGIN_CELLS, Particles, Reseeded};

/// Cells between a core and whatever must have particles: as far as liquid goes in a substep, and the cells around
/// whose faces particles would have reached.
pub const CORE_DEPTH: usize = MARGIN_CELLS + 1;

/// Liquid that moves less than this in a substep, in cells, leaves nobody behind; should it do so for long, the
/// ordinary reseeding notices.
const STILL: f32 = 1e-3;

/// Room for the end of the path, and for the interpolation there.
const HALO: Halo = Halo::new(5);
const MOST: usize = halo_cells(HALO, 3);

/// The part of the liquid that has no particles, between two substeps.
#[derive(Clone, Debug, Default)]
pub struct Core {
    /// Cells without particles.
    pub cells: CellSet,
    /// Particles listed behind the sorted ones: the block that they were put into, the first, and one past the last.
    seeded: Vec<[u32; 3]>,
}

impl Core {
    /// Particles seeded since the last sort, by block.
    pub(super) fn seeded(&self) -> impl IndexedParallelIterator<Item = (usize, std::ops::Range<usize>)> + '_ {
        self.seeded.par_iter().map(|&[slot, first, end]| (slot as usize, first as usize..end as usize))
    }

    /// Says that all particles are sorted.
    pub fn note_sorted(&mut self) {
        self.seeded.clear();
    }

    /// Blocks of the core: a cell in each, and how many cells there are.
    pub fn shares(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.cells.slots().as_slice().iter().filter_map(|&slot| {
            let bits = self.cells.bits(slot as usize);
            let count = masks::count(bits);
            masks::first(bits).map(|cell| (slot as usize, cell, count))
        })
    }

    /// Writes the cells, and who was seeded.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        self.cells.save("hollow", out)?;
        out.array("hollow.born", &self.seeded)
    }

    /// Reads what [`Core::save`] wrote, for a state of that many particles.
    pub fn load<const D: usize>(
        blocks: &Blocks<D>,
        particles: usize,
        from: &mut Reader<'_>,
    ) -> Result<Self, ArchiveError> {
        let cells = CellSet::load("hollow", blocks, from)?;
        let seeded = from.array::<[u32; 3]>("hollow.born", blocks.slots().len())?;
        // Blocks have stretches of their own, one after the other.
        let mut last = 0;
        for &[slot, first, end] in &seeded {
            let is_sane = (slot as usize) < blocks.slot_count() && last <= first && first <= end;
            ArchiveError::unless(is_sane, "hollow.born", "is not in order")?;
            last = end;
        }
        ArchiveError::unless(
            last as usize <= particles,
            "hollow.born",
            "names more particles than there are",
        )?;
        Ok(Core { cells, seeded })
    }

    /// Bytes held on the grid.
    pub fn bytes(&self) -> usize {
        self.cells.bytes() + self.seeded.capacity() * size_of::<[u32; 3]>()
    }
}

/// What a substep finds out about the core.
#[derive(Clone, Debug)]
pub struct CoreScratch<const D: usize> {
    /// Cells that the core may have moved into, itself included.
    pub moved: CellSet,
    /// Cells at whose low faces the grid's own velocity counts: those, and the ones around.
    around: CellSet,
    /// The least and the largest velocity in a block along each axis, m/s, as far as it matters.
    range: Field<[[f32; 2]; D]>,
    /// How far the core may move in and around a block: in cells along each axis, towards low and towards high.
    reach: Field<[[usize; 2]; D]>,
    /// The velocity at the faces around.
    advected: [Field<f32>; D],
    /// The core after this substep.
    pub target: CellSet,
    /// Blocks to store, as places in the lookup table.
    pub needed: Vec<u32>,
    /// New particles by block: slot, first place, and one past the last.
    plan: Vec<[u32; 3]>,
}

impl<const D: usize> CoreScratch<D> {
    /// No memory yet.
    pub fn new() -> Self {
        CoreScratch {
            moved: CellSet::new(),
            around: CellSet::new(),
            range: Field::new(1, [[0.0; 2]; D]),
            reach: Field::new(1, [[0; 2]; D]),
            advected: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            target: CellSet::new(),
            needed: Vec::new(),
            plan: Vec::new(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        [&self.moved, &self.around, &self.target].into_iter().map(CellSet::bytes).sum::<usize>()
            + self.range.bytes()
            + self.reach.bytes()
            + self.advected.iter().map(Field::bytes).sum::<usize>()
    }

    /// Moves the core by `dt` seconds, and the velocity in it: particles would go with the velocity `midpoint`, and
    /// take
    /// `now` with them.
    pub fn advect(
        &mut self,
        core: &Core,
        blocks: &Blocks<D>,
        now: &[Field<f32>; D],
        midpoint: &[Field<f32>; D],
        dt: Real,
    ) {
        self.moved.clear();
        self.around.clear();
        if core.cells.is_empty() {
            return;
        }
        let cells_per_speed = (dt / blocks.grid().dx) as f32;
        self.find_reach(core, blocks, midpoint, cells_per_speed);
        let reach = &self.reach;
        self.moved.fill(blocks, |slot| *core.cells.bits(slot));
        self.moved.grow(blocks, |slot| reach[slot]);
        let moved = &self.moved;
        self.around.fill(blocks, |slot| *moved.bits(slot));
        self.around.grow(blocks, |_| [[1; 2]; D]);
        self.advected.iter_mut().for_each(|field| field.resize(blocks.slot_count()));
        let around = &self.around;
        for_each_block(around.slots(), self.advected.each_mut().map(Field::parts), |slot, advected| {
            let (mut paths, mut faces) = ([0f32; 3 * advect::MOST], [[0f32; MOST]; D]);
            for axis in 0..D {
                let path = &mut paths[axis * advect::MOST..(axis + 1) * advect::MOST];
                load_halo(blocks, &midpoint[axis], slot, advect::HALO, path);
                load_halo(blocks, &now[axis], slot, HALO, &mut faces[axis]);
            }
            dispatch(Backtrace {
                bits: around.bits(slot),
                paths: &paths,
                faces: &faces,
                cells_per_speed,
                advected,
            });
        });
    }

    /// Finds how far the liquid of the core goes at most, by block: that in the blocks around it counts as well, for it
    /// may get there.
    fn find_reach(
        &mut self,
        core: &Core,
        blocks: &Blocks<D>,
        midpoint: &[Field<f32>; D],
        cells_per_speed: f32,
    ) {
        self.around.fill(blocks, |slot| *core.cells.bits(slot));
        self.around.grow(blocks, |_| [[CORE_DEPTH; 2]; D]);
        self.range.resize(blocks.slot_count());
        self.reach.resize(blocks.slot_count());
        self.range.as_mut_slice().fill([[0.0; 2]; D]);
        let around = &self.around;
        for_each_block(around.slots(), self.range.parts(), |slot, range| {
            for (range, field) in range[0].iter_mut().zip(midpoint) {
                for (row, values) in field.block(slot).chunks_exact(SIDE).enumerate() {
                    // All of a row or nothing: a little too far does no harm.
                    if around.row(slot, row) != 0 {
                        *range = values.iter().fold(*range, |[low, high], &u| [low.min(u), high.max(u)]);
                    }
                }
            }
        });
        let range = &self.range;
        let cells =
            |speed: f32| ((speed.abs() * cells_per_speed - STILL).ceil().max(0.0) as usize).min(MARGIN_CELLS);
        for_each_block(blocks.slots(), self.reach.parts(), |slot, reach| {
            reach[0] = std::array::from_fn(|axis| {
                let ranges = blocks.around(slot).iter().map(|&next| range[next as usize][axis]);
                let widest = ranges.fold([0f32; 2], |[low, high], [l, h]| [low.min(l), high.max(h)]);
                widest.map(cells)
            });
        });
    }

    /// Lists the blocks that must stay active: those in `also`, and those of the core and around it.
    pub fn list_needed(&mut self, blocks: &Blocks<D>, also: &[u32]) {
        self.needed.clear();
        self.needed.extend_from_slice(also);
        let own = self.around.slots().as_slice().iter();
        self.needed.extend(
            own.filter_map(|&slot| blocks.table_index(blocks.coords(slot as usize))).map(|i| i as u32),
        );
    }

    /// Writes the velocities that were advected by the grid, and marks them as known.
    pub fn write_velocity(&self, velocity: &mut [Field<f32>; D], known: &mut [FaceMask; D]) {
        let known = known.each_mut().map(|mask| mask.bits.parts());
        for_each_block(
            self.around.slots(),
            (velocity.each_mut().map(Field::parts), known),
            |slot, (velocity, known)| {
                let parts = velocity.into_iter().zip(known).zip(&self.advected);
                for ((velocity, known), advected) in parts {
                    let rows = velocity.chunks_exact_mut(SIDE).zip(known).enumerate();
                    for ((row, (to, known)), from) in rows.zip(advected.block(slot).chunks_exact(SIDE)) {
                        let bits = self.around.row(slot, row);
                        *known |= bits;
                        for x in masks::each_in(u64::from(bits)) {
                            to[x] = from[x];
                        }
                    }
                }
            },
        );
    }

    /// Takes the cells of the core out of those where the ordinary reseeding looks for too few particles.
    pub fn exclude_from(&self, deep: &mut Field<u8>) {
        for set in [&self.moved, &self.target] {
            for_each_block(set.slots(), deep.parts(), |slot, deep| {
                deep.iter_mut().enumerate().for_each(|(row, deep)| *deep &= !set.row(slot, row));
            });
        }
    }

    /// Makes the core what it is to be: fills the cells that it leaves with particles that move as the grid does, and
    /// removes those in the others. Particles are sorted up to those that were added afterwards.
    #[allow(clippy::too_many_arguments, reason = "what a particle needs to be born: place and field")]
    pub fn update(
        &mut self,
        core: &mut Core,
        particles: &mut Particles<D>,
        ranges: &CellRanges,
        blocks: &Blocks<D>,
        velocity: &[Field<f32>; D],
        layout: &Layout,
        flip: f32,
    ) -> Reseeded {
        if self.moved.is_empty() && self.target.is_empty() {
            return Reseeded::default();
        }
        let removed = self.empty(particles, ranges, blocks);
        let added = self.refill(core, particles, blocks, velocity, layout, flip);
        let target = &self.target;
        core.cells.fill(blocks, |slot| *target.bits(slot));
        Reseeded { added, removed }
    }

    /// Removes all particles of the cells that are core or were. Those left behind in the latter are unevenly spread.
    fn empty(&self, particles: &mut Particles<D>, ranges: &CellRanges, blocks: &Blocks<D>) -> usize {
        let position = DisjointMut::new(&mut particles.position);
        let removed = blocks.slots().as_slice().par_iter().with_min_len(16).map(|&slot| {
            let (slot, position) = (slot as usize, &position);
            let (before, after) = (self.moved.bits(slot), self.target.bits(slot));
            let either: Bits = std::array::from_fn(|word| before[word] | after[word]);
            if ranges.of_block(slot).is_empty() || either == masks::NONE {
                return 0;
            }
            let mut count = 0;
            for cell in masks::each(&either) {
                for i in ranges.of_cells(slot, cell, cell) {
                    // SAFETY: cells have disjoint ranges of particles.
                    let position = unsafe { position.at(i) };
                    count += usize::from(Particles::is_alive(position));
                    Particles::kill(position);
                }
            }
            count
        });
        removed.sum()
    }

    fn refill(
        &mut self,
        core: &mut Core,
        particles: &mut Particles<D>,
        blocks: &Blocks<D>,
        velocity: &[Field<f32>; D],
        layout: &Layout,
        flip: f32,
    ) -> usize {
        let (moved, target) = (&self.moved, &self.target);
        let left = |slot: usize| -> Bits {
            let (before, after) = (moved.bits(slot), target.bits(slot));
            masks::without(before, after)
        };
        let (first, per_cell) = (particles.len(), layout.per_cell(D));
        let mut end = first;
        self.plan.clear();
        for &slot in moved.slots().as_slice() {
            let cells: u32 = left(slot as usize).iter().map(|word| word.count_ones()).sum();
            if cells > 0 {
                let start = end;
                end += cells as usize * per_cell;
                self.plan.push([slot, start as u32, end as u32]);
            }
        }
        particles.extend(end - first);
        let positions = DisjointMut::new(&mut particles.position);
        self.plan.par_iter().for_each(|&[slot, first, _]| {
            let (positions, low) = (&positions, blocks.first_cell(slot as usize));
            let mut next = first as usize;
            for cell in masks::each(&left(slot as usize)) {
                let at = unflatten::<D>(cell, SIDE);
                let cell = std::array::from_fn(|k| low[k] + at[k] as i32);
                for index in 0..per_cell {
                    // SAFETY: every block has places of its own, as counted above.
                    unsafe { *positions.at(next) = layout.place(cell, index) };
                    next += 1;
                }
            }
        });
        core.seeded.clear();
        core.seeded.extend_from_slice(&self.plan);
        gather_new(particles, core.seeded(), blocks, velocity, flip);
        end - first
    }
}

impl<const D: usize> Default for CoreScratch<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// Points along each axis of a block, its ends among them, where the path that liquid came is found.
const POINTS: usize = 3;
const SPACING: f32 = SIDE as f32 / (POINTS - 1) as f32;
/// Such points of a block in 3D, rounded up to whole groups of lanes.
const MOST_POINTS: usize = (POINTS * POINTS * POINTS).next_multiple_of(LANES);

/// How much each of those points along an axis counts at `x`, in cells from the block's low corner.
fn shares(x: f32) -> [f32; POINTS] {
    std::array::from_fn(|point| (1.0 - (x / SPACING - point as f32).abs()).max(0.0))
}

/// A block's faces, traced back. The displacement is found at a few points and interpolated: that of an affine field is
/// affine as well.
struct Backtrace<'a, const D: usize> {
    /// Cells whose low faces are wanted.
    bits: &'a Bits,
    paths: &'a [f32; 3 * advect::MOST],
    faces: &'a [[f32; MOST]; D],
    cells_per_speed: f32,
    advected: [&'a mut [f32]; D],
}

impl<const D: usize> Job for Backtrace<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        const { assert!(SIDE == LANES) };
        let displacements = backtrace::<W, D>(self.paths, self.cells_per_speed);
        for (axis, advected) in self.advected.into_iter().enumerate() {
            let offset = |k: usize| if k == axis { 0.0 } else { 0.5 };
            let along: [f32; LANES] = std::array::from_fn(|lane| lane as f32 + offset(0));
            let mut share = [W::splat(0.0); POINTS];
            for (point, share) in share.iter_mut().enumerate() {
                *share = W::load(&along.map(|x| shares(x)[point]));
            }
            for row in 0..power(SIDE, D - 1) {
                if masks::row(self.bits, row) == 0 {
                    continue;
                }
                let at = unflatten::<D>(row * SIDE, SIDE);
                let place: [f32; D] = std::array::from_fn(|k| at[k] as f32 + offset(k));
                let mut from = [W::splat(0.0); D];
                for k in 0..D {
                    let start = if k == 0 { W::load(&along) } else { W::splat(place[k]) };
                    let [a, b, c] = in_row(&displacements[k], &place).map(|part| W::splat(part));
                    let back = a * share[0] + b * share[1] + c * share[2];
                    let (low, high) = (0.5 - HALO.margin as f32, (HALO.side - HALO.margin) as f32 - 1.001);
                    from[k] = W::within(start + back, low, high);
                }
                let found = W::store(lane_sample::<W, D, MOST>(&self.faces[axis], &from, axis, HALO));
                advected[row * SIDE..][..SIDE].copy_from_slice(&found);
            }
        }
    }
}

/// The displacement back from every point of a block, in cells, along the path that a particle would have come, by the
/// scheme of [`super::advect()`].
#[inline(always)]
fn backtrace<W: Wide, const D: usize>(
    paths: &[f32; 3 * advect::MOST],
    cells_per_speed: f32,
) -> [[f32; MOST_POINTS]; D] {
    let mut displacements = [[0.0; MOST_POINTS]; D];
    let back = W::splat(-cells_per_speed);
    for first in (0..power(POINTS, D)).step_by(LANES) {
        let mut x = [W::splat(0.0); D];
        for k in 0..D {
            // Past the last point, whatever comes: nobody looks at it.
            let point = |lane: usize| (first + lane) / power(POINTS, k) % POINTS;
            x[k] = W::load(&std::array::from_fn(|lane| point(lane) as f32 * SPACING));
        }
        let k1 = lane_displacement::<W, D>(paths, &x, back);
        let k2 = lane_displacement::<W, D>(paths, &advect::along::<W, D>(&x, &k1, 0.5), back);
        let k3 = lane_displacement::<W, D>(paths, &advect::along::<W, D>(&x, &k2, 0.75), back);
        for k in 0..D {
            let sum = W::splat(2.0) * k1[k] + W::splat(3.0) * k2[k] + W::splat(4.0) * k3[k];
            displacements[k][first..][..LANES].copy_from_slice(&W::store(sum * W::splat(1.0 / 9.0)));
        }
    }
    displacements
}

/// Interpolates between the points of a block along all axes but the first.
#[inline(always)]
fn in_row<const D: usize>(displacements: &[f32; MOST_POINTS], place: &[f32; D]) -> [f32; POINTS] {
    let mut row = [0.0; POINTS];
    for across in 0..power(POINTS, D - 1) {
        let share: f32 = (1..D).map(|k| shares(place[k])[across / power(POINTS, k - 1) % POINTS]).product();
        for (x, row) in row.iter_mut().enumerate() {
            *row += share * displacements[across * POINTS + x];
        }
    }
    row
}
