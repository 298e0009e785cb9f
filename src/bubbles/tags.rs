//! What particles remember from step to step: the liquid they are part of, and the bubble whose wall they make up.

use rayon::prelude::*;

use crate::grid::{Blocks, CHUNKS, DisjointMut, Slots, for_each_block_collecting};
use crate::liquid::{CellRanges, Particles};

use super::near::{AIRLESS, Near, NearMap, SEVERAL};
use super::tally::Pairs;

/// The liquid of particles that nobody asked yet.
const UNKNOWN: u16 = AIRLESS;

const NONE: Near = Near { air: AIRLESS, liquid: UNKNOWN };

/// The tags of all particles, in the order the particles had when they were tagged, and the votes they cast.
#[derive(Clone, Debug)]
pub struct Tags {
    tags: Vec<Near>,
    /// Particles listed behind the tagged ones up to here were born inside the liquid; later ones came from sources.
    reseeded: usize,
    /// Votes for "the air region that was X is now Y".
    pub air: Pairs,
    /// Votes for "the liquid that was X is now Y". Spray is [`SPRAY`] before and now.
    pub liquid: Pairs,
    /// New particles from sources per liquid region, as pairs with zero.
    pub fresh: Pairs,
    /// Air regions touched by particles that came from a source or that touched several before: as pairs with zero.
    pub touched: Pairs,
    /// Particles per liquid region, as pairs with zero.
    pub present: Pairs,
    chunks: Box<[Votes; CHUNKS]>,
    /// Liquid without particles: it votes as if it had them.
    hollow: Vec<Absent>,
    /// Of every [`GROUP`] of particles, whether any is dead.
    have_dead: Vec<bool>,
}

/// Particles looked at together when the dead are looked for.
const GROUP: usize = 256;

/// The particles that a block would have in cells that are kept without.
#[derive(Clone, Copy, Debug)]
struct Absent {
    slot: u32,
    /// One of those cells.
    cell: u32,
    liquid: u16,
    count: u32,
}

/// Of so many particles deep inside a liquid, one votes.
const SAMPLE: usize = 16;

/// The votes of one chunk of blocks.
#[derive(Clone, Debug, Default)]
struct Votes {
    air: Pairs,
    liquid: Pairs,
    fresh: Pairs,
    touched: Pairs,
    present: Pairs,
}

impl Tags {
    /// No particle is tagged.
    pub fn new() -> Self {
        Tags {
            tags: Vec::new(),
            reseeded: 0,
            air: Pairs::default(),
            liquid: Pairs::default(),
            fresh: Pairs::default(),
            touched: Pairs::default(),
            present: Pairs::default(),
            chunks: Box::new(std::array::from_fn(|_| Votes::default())),
            hollow: Vec::new(),
            have_dead: Vec::new(),
        }
    }

    /// How many particles are tagged, those behind them that were born inside the liquid included.
    pub fn known(&self) -> usize {
        self.reseeded
    }

    /// Bytes held per particle.
    pub fn bytes(&self) -> usize {
        self.tags.capacity() * size_of::<Near>()
    }

    /// Says that the `count` particles listed behind the tagged ones were born inside the liquid.
    pub fn note_reseeded(&mut self, count: usize) {
        self.reseeded = self.tags.len() + count;
    }

    /// Forgets particles that were taken out of crowds: they are no loss to their liquid. Calls `gone` with the liquid
    /// of each, and returns how many there were.
    pub fn forget_removed<const D: usize>(
        &mut self,
        particles: &Particles<D>,
        mut gone: impl FnMut(usize),
    ) -> usize {
        // Few are dead: groups with any are looked for side by side.
        self.have_dead.resize(self.tags.len().div_ceil(GROUP), false);
        let groups = self.have_dead.par_iter_mut().zip(particles.position.par_chunks(GROUP));
        groups.with_min_len(64).for_each(|(has_dead, group)| {
            *has_dead = group.iter().fold(false, |dead, position| dead | !Particles::is_alive(position));
        });
        let mut count = 0;
        let groups = self.tags.chunks_mut(GROUP).zip(particles.position.chunks(GROUP)).zip(&self.have_dead);
        for ((tags, positions), _) in groups.filter(|(_, has_dead)| **has_dead) {
            for (tag, position) in tags.iter_mut().zip(positions) {
                if !Particles::is_alive(position) && *tag != NONE {
                    if tag.liquid != UNKNOWN {
                        gone(tag.liquid as usize);
                    }
                    *tag = NONE;
                    count += 1;
                }
            }
        }
        count
    }

    /// Says where liquid is without particles from now on: slot, one of its cells there, and how many particles it would
    /// have. Calls `counted` with the liquid and that number.
    pub fn note_hollow(
        &mut self,
        near: &NearMap,
        shares: impl Iterator<Item = (usize, usize, usize)>,
        mut counted: impl FnMut(usize, usize),
    ) {
        self.hollow.clear();
        self.hollow.extend(shares.map(|(slot, cell, count)| {
            let liquid = near.block(slot)[cell].liquid;
            counted(liquid as usize, count);
            Absent { slot: slot as u32, cell: cell as u32, liquid, count: count as u32 }
        }));
    }

    /// Lets the particles say what they were part of and where that is now. `origin[i]` is the place that particle `i`
    /// had in the list before it was sorted. With `sample`, only some of those deep inside a liquid are asked.
    pub fn vote<const D: usize>(
        &mut self,
        blocks: &Blocks<D>,
        ranges: &CellRanges,
        origin: &[u32],
        near: &NearMap,
        sample: bool,
    ) {
        for votes in self.chunks.iter_mut() {
            let Votes { air, liquid, fresh, touched, present } = votes;
            [air, liquid, fresh, touched, present].into_iter().for_each(Pairs::clear);
        }
        let (tags, reseeded) = (&self.tags, self.reseeded);
        for_each_block_collecting(blocks.slots(), (), &mut self.chunks, |slot, (), votes| {
            let calm = near.alike(slot).filter(|alike| alike.air == AIRLESS && sample);
            if let Some(alike) = calm {
                // Deep inside one liquid: one of many speaks for all.
                let (particles, liquid) = (ranges.of_block(slot), alike.liquid as u32);
                votes.present.add(liquid, 0, particles.len() as u32);
                let mut left = particles.len();
                for &from in origin[particles].iter().step_by(SAMPLE) {
                    let weight = left.min(SAMPLE) as u32;
                    left -= weight as usize;
                    if let Some(tag) = tags.get(from as usize).filter(|tag| tag.liquid != UNKNOWN) {
                        votes.liquid.add(tag.liquid as u32, liquid, weight);
                    }
                }
                return;
            }
            let near = near.block(slot);
            filled_cells(ranges, slot).for_each(|(cell, particles)| {
                let Near { air, liquid } = near[cell];
                let count = particles.len() as u32;
                votes.present.add(liquid as u32, 0, count);
                if air == AIRLESS && sample {
                    if let Some(tag) =
                        tags.get(origin[particles.start] as usize).filter(|tag| tag.liquid != UNKNOWN)
                    {
                        votes.liquid.add(tag.liquid as u32, liquid as u32, count);
                    }
                    return;
                }
                for &from in &origin[particles] {
                    let tag = match tags.get(from as usize) {
                        Some(tag) => *tag,
                        None if (from as usize) < reseeded => continue,
                        None => {
                            votes.fresh.add(liquid as u32, 0, 1);
                            if air < SEVERAL {
                                votes.touched.add(air as u32, 0, 1);
                            }
                            continue;
                        }
                    };
                    if tag.liquid != UNKNOWN {
                        votes.liquid.add(tag.liquid as u32, liquid as u32, 1);
                    }
                    if air < SEVERAL {
                        match tag.air {
                            AIRLESS => {}
                            SEVERAL => votes.touched.add(air as u32, 0, 1),
                            before => votes.air.add(before as u32, air as u32, 1),
                        }
                    }
                }
            });
        });
        for absent in &self.hollow {
            // Deep inside, a block's liquid is one and the same before and after.
            let now = near.block(absent.slot as usize)[absent.cell as usize].liquid;
            self.chunks[0].liquid.add(absent.liquid as u32, now as u32, absent.count);
        }
        self.air.merge(self.chunks.iter().map(|votes| &votes.air));
        self.liquid.merge(self.chunks.iter().map(|votes| &votes.liquid));
        self.fresh.merge(self.chunks.iter().map(|votes| &votes.fresh));
        self.touched.merge(self.chunks.iter().map(|votes| &votes.touched));
        self.present.merge(self.chunks.iter().map(|votes| &votes.present));
    }

    /// Tags every particle with the regions of this step.
    pub fn renew<const D: usize>(
        &mut self,
        blocks: &Blocks<D>,
        ranges: &CellRanges,
        particles: usize,
        near: &NearMap,
    ) {
        if particles > self.tags.capacity() {
            self.tags.reserve_exact(particles + particles / 64 - self.tags.len());
        }
        self.tags.resize(particles, NONE);
        self.reseeded = particles;
        let out = DisjointMut::new(&mut self.tags);
        let slots: &Slots = blocks.slots();
        crate::grid::for_each_block(slots, (), |slot, ()| {
            if let Some(alike) = near.alike(slot) {
                // SAFETY: blocks own disjoint ranges of particles.
                return unsafe { out.range(ranges.of_block(slot)) }.fill(alike);
            }
            let near = near.block(slot);
            filled_cells(ranges, slot).for_each(|(cell, range)| {
                // SAFETY: cells own disjoint ranges of particles.
                unsafe { out.range(range) }.fill(near[cell]);
            });
        });
    }
}

impl Default for Tags {
    fn default() -> Self {
        Self::new()
    }
}

/// The cells of a block that hold particles, and those.
#[inline(always)]
fn filled_cells(
    ranges: &CellRanges,
    slot: usize,
) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + '_ {
    let any = !ranges.of_block(slot).is_empty();
    ranges
        .cells(slot)
        .enumerate()
        .take(if any { usize::MAX } else { 0 })
        .filter(|(_, range)| !range.is_empty())
}
