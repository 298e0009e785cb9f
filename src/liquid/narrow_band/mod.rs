//! A narrow band of particles (Ferstl et al. 2016) around a core without any.
//!
//! Deep below the surface particles tell the grid little that it does not know: where liquid is, and how fast. So they are
//! left out there, in all cells of the *core*, and the grid speaks for itself.
//!
//! * The core moves with the liquid: what a cell lacks is advected into the cells that it flows into. Where that may
//!   have happened during a substep is found from the fastest flow in it, and all those cells count as core until its
//!   end.
//! * They are liquid as they were, and so are all cells around them that are not in walls: a core lies deeper below every
//!   surface, and further from every wall that moves, than anything can go in a substep ([`CORE_DEPTH`]).
//! * The velocity on their faces, and on those that their particles would have reached, is carried by the grid, to second
//!   order ([`carry`]). For an affine field `u = A x + b` this is the affine field that self-advection gives,
//!   `A' = −A A`, `b' = −A b` over a short time.
//! * At the end of the substep the next core is known ([`target`]). Cells that are no part of it and have too few particles
//!   get new ones where there is room between those that they have; these move as the grid does. Particles in the next
//!   core are removed.
//!
//! No particles are kept inside the core rather than a few: one particle per cell would have to be moved, sorted and
//! counted like eight, and adds noise to what the grid knows.

mod carry;
mod target;

use rayon::prelude::*;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::{Boundary, Nearness};
use crate::grid::masks::{self, Bits};
use crate::grid::{
    Blocks, CellSet, DisjointMut, FaceMask, Field, Halo, SIDE, block_cells, for_each_block, load_halo, share,
};
use crate::math::{Real, unflatten};

use super::lanes::dispatch;
use super::reseed::{corner_sample, wall_corners};
use super::transfer::gather_new;
use super::{Bounds, CellRanges, Layout, MARGIN_CELLS, Particles, Reseeded};

use carry::{Carry, FAR, FURTHEST, MOST_FAR, MOST_NEAR, NEAR, SPAN_FAR, SPAN_NEAR};
pub use target::Band;

/// Cells between a core and whatever must have particles: as far as liquid goes in a substep, and the cells around
/// whose faces particles would have reached.
pub const CORE_DEPTH: usize = MARGIN_CELLS + 1;

/// Liquid that moves less than this in a substep, in cells, leaves nobody behind; should it do so for long, the
/// ordinary reseeding notices.
const STILL: f32 = 1e-3;

const _: () = assert!(FURTHEST >= MARGIN_CELLS);

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
    /// Cells too near to the surface for the core.
    outside: CellSet,
    /// Cells near a wall that moves.
    walls: CellSet,
    /// Cells of the core that stay without particles though others like them keep theirs.
    stay: CellSet,
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
            outside: CellSet::new(),
            walls: CellSet::new(),
            stay: CellSet::new(),
            plan: Vec::new(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let sets = [&self.moved, &self.around, &self.target, &self.outside, &self.walls, &self.stay];
        sets.into_iter().map(CellSet::bytes).sum::<usize>()
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
        boundary: &Boundary<D>,
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
        // There is room for liquid in walls neither before nor after.
        self.moved.map(|slot, bits| masks::without(bits, &full_cells(boundary, slot)));
        let moved = &self.moved;
        self.around.fill(blocks, |slot| *moved.bits(slot));
        self.around.grow(blocks, |_| [[1; 2]; D]);
        self.advected.iter_mut().for_each(|field| field.resize(blocks.slot_count()));
        let around = &self.around;
        let carried = self.advected.each_mut().map(|field| DisjointMut::new(field.as_mut_slice()));
        let slots = around.slots().as_slice();
        share(slots.len(), 4, &|range| {
            // Room for the velocities around a block, made once for many.
            let mut paths = [[0f32; MOST_NEAR]; D];
            let (mut near, mut far) = ([[0f32; MOST_NEAR]; D], None);
            for slot in slots[range].iter().map(|&slot| slot as usize) {
                load_faces(blocks, midpoint, slot, NEAR, &mut paths);
                let own = slot * block_cells(D)..(slot + 1) * block_cells(D);
                // SAFETY: blocks own disjoint ranges of faces.
                let carried = carried.each_ref().map(|carried| unsafe { carried.range(own.clone()) });
                let (bits, paths) = (around.bits(slot), &paths);
                if reach[slot].iter().flatten().all(|&cells| cells < NEAR.margin) {
                    load_faces(blocks, now, slot, NEAR, &mut near);
                    let faces = &near;
                    dispatch(NearCarry { bits, paths, cells_per_speed, faces, carried });
                } else {
                    let faces = far.get_or_insert_with(|| Box::new([[0f32; MOST_FAR]; D]));
                    load_faces(blocks, now, slot, FAR, faces);
                    dispatch(FarCarry { bits, paths, cells_per_speed, faces: &**faces, carried });
                }
            }
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
                *range = range_of(around.bits(slot), field.block(slot));
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

    /// Makes the core what it is to be: fills cells that it leaves with particles that move as the grid does, and
    /// removes those in its cells. Particles are sorted up to those that were added afterwards.
    #[allow(clippy::too_many_arguments, reason = "what a particle needs to be born: place and field")]
    pub fn update(
        &mut self,
        core: &mut Core,
        particles: &mut Particles<D>,
        ranges: &CellRanges,
        blocks: &Blocks<D>,
        boundary: &Boundary<D>,
        velocity: &[Field<f32>; D],
        layout: &Layout,
        flip: f32,
    ) -> Reseeded {
        if self.moved.is_empty() && self.target.is_empty() {
            return Reseeded::default();
        }
        let removed = self.empty(particles, ranges);
        let added = self.refill(core, particles, ranges, blocks, boundary, velocity, layout, flip);
        let target = &self.target;
        core.cells.fill(blocks, |slot| *target.bits(slot));
        Reseeded { added, removed }
    }

    /// Removes all particles of the next core.
    fn empty(&self, particles: &mut Particles<D>, ranges: &CellRanges) -> usize {
        let position = DisjointMut::new(&mut particles.position);
        let removed = self.target.slots().as_slice().par_iter().with_min_len(16).map(|&slot| {
            let (slot, position) = (slot as usize, &position);
            if ranges.of_block(slot).is_empty() {
                return 0;
            }
            let mut count = 0;
            for cell in masks::each(self.target.bits(slot)) {
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

    /// Fills the cells that the core leaves, as far as they have too few particles.
    #[allow(clippy::too_many_arguments, reason = "what a particle needs to be born: place and field")]
    fn refill(
        &mut self,
        core: &mut Core,
        particles: &mut Particles<D>,
        ranges: &CellRanges,
        blocks: &Blocks<D>,
        boundary: &Boundary<D>,
        velocity: &[Field<f32>; D],
        layout: &Layout,
        flip: f32,
    ) -> usize {
        let (moved, target) = (&self.moved, &self.target);
        let (first, per_cell) = (particles.len(), layout.per_cell(D));
        let fewest = Bounds::around(per_cell).fewest;
        let old = &particles.position;
        let born = moved.slots().as_slice().par_iter().with_min_len(4).map(|&slot| {
            let (slot, low) = (slot as usize, blocks.first_cell(slot as usize));
            let left = masks::without(moved.bits(slot), target.bits(slot));
            let (mut born, mut walls) = (Vec::new(), None);
            for cell in masks::each(&left) {
                let own = ranges.of_cells(slot, cell, cell);
                if own.len() >= fewest {
                    continue;
                }
                let at = unflatten::<D>(cell, SIDE);
                let cell = std::array::from_fn(|k| low[k] + at[k] as i32);
                let free = layout.free_places(cell, &old[own.clone()]).take(per_cell - own.len());
                let places = free.map(|index| layout.place(cell, index));
                if boundary.nearness(slot) == Nearness::Clear {
                    born.extend(places);
                } else {
                    let walls = walls.get_or_insert_with(|| wall_corners(blocks, boundary, slot));
                    born.extend(places.filter(|place| {
                        corner_sample::<D>(walls, &std::array::from_fn(|k| place[k] - low[k] as f32))
                            >= WALL_SKIN
                    }));
                }
            }
            (slot as u32, born)
        });
        let born: Vec<(u32, Vec<[f32; D]>)> = born.filter(|(_, born)| !born.is_empty()).collect();
        self.plan.clear();
        let mut end = first;
        for (slot, born) in &born {
            self.plan.push([*slot, end as u32, (end + born.len()) as u32]);
            end += born.len();
        }
        particles.extend(end - first);
        let mut new = &mut particles.position[first..];
        for (_, born) in &born {
            let own;
            (own, new) = new.split_at_mut(born.len());
            own.copy_from_slice(born);
        }
        core.seeded.clear();
        core.seeded.extend_from_slice(&self.plan);
        gather_new(particles, core.seeded(), blocks, velocity, flip);
        end - first
    }
}

/// How far from walls new particles are put at least, in cells: half of what is between two.
const WALL_SKIN: f32 = 0.25;

/// The cells of a block that are in walls, or so near to one that nobody needs to be there, or shut in by walls.
fn full_cells<const D: usize>(boundary: &Boundary<D>, slot: usize) -> Bits {
    if boundary.nearness(slot) == Nearness::Clear {
        return masks::NONE;
    }
    let walls = boundary.bits(slot);
    masks::or(&walls.full, &walls.closed)
}

type NearCarry<'a, const D: usize> = Carry<'a, D, { NEAR.margin }, MOST_NEAR, SPAN_NEAR>;
type FarCarry<'a, const D: usize> = Carry<'a, D, { FAR.margin }, MOST_FAR, SPAN_FAR>;

/// Copies the velocities in and around a block.
#[inline(always)]
fn load_faces<const D: usize, const N: usize>(
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    slot: usize,
    halo: Halo,
    faces: &mut [[f32; N]; D],
) {
    velocity.iter().zip(faces).for_each(|(field, faces)| load_halo(blocks, field, slot, halo, faces));
}

/// The least and the largest of some of a block's values; zero is among them. All of a row or nothing: a little too much
/// does no harm.
fn range_of(bits: &Bits, values: &[f32]) -> [f32; 2] {
    let (mut low, mut high) = ([0f32; SIDE], [0f32; SIDE]);
    for (row, values) in values.as_chunks::<SIDE>().0.iter().enumerate() {
        if masks::row(bits, row) != 0 {
            for x in 0..SIDE {
                low[x] = if values[x] < low[x] { values[x] } else { low[x] };
                high[x] = if values[x] > high[x] { values[x] } else { high[x] };
            }
        }
    }
    [low.into_iter().fold(0.0, f32::min), high.into_iter().fold(0.0, f32::max)]
}

impl<const D: usize> Default for CoreScratch<D> {
    fn default() -> Self {
        Self::new()
    }
}
