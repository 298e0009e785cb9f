//! What particles remember from step to step: the liquid they are part of, and the bubble whose wall they make up.

use rayon::prelude::*;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::grid::{Blocks, CHUNKS, DisjointMut, Slots, block_cells, for_each_block_collecting};
use crate::liquid::{CellRanges, Particles};

use super::near::{AIRLESS, Near, NearMap, SEVERAL};
use super::tally::Pairs;

/// The liquid of particles that nobody asked yet.
const UNKNOWN: u16 = AIRLESS;

const NONE: Near = Near { air: AIRLESS, liquid: UNKNOWN };

/// The tags of all particles, in the order the particles had when they were tagged.
#[derive(Clone, Debug, Default)]
pub struct Tags {
    tags: Vec<Near>,
    /// Particles listed behind the tagged ones up to here were seeded inside the liquid; later ones came from sources.
    reseeded: usize,
    /// Liquid without particles: it votes as if it had them.
    core: Vec<CoreParticles>,
}

/// Votes that particles cast.
#[derive(Clone, Debug, Default)]
pub struct Votes {
    /// Votes for "the air component that was X is now Y".
    pub air: Pairs,
    /// Votes for "the liquid that was X is now Y". Spray is [`SPRAY`] before and now.
    pub liquid: Pairs,
    /// New particles from sources per liquid component, as pairs with zero.
    pub fresh: Pairs,
    /// Air components touched by particles that came from a source or that touched several before: as pairs with zero.
    pub touched: Pairs,
    /// Particles per liquid component, as pairs with zero.
    pub present: Pairs,
}

/// Memory to collect votes in.
#[derive(Clone, Debug)]
pub struct Ballot {
    /// All votes.
    pub votes: Votes,
    /// Votes from each chunk of blocks.
    chunks: Box<[Votes; CHUNKS]>,
    /// Of every [`GROUP`] of particles, whether any is dead.
    have_dead: Vec<bool>,
}

impl Default for Ballot {
    fn default() -> Self {
        Ballot {
            votes: Votes::default(),
            chunks: Box::new(std::array::from_fn(|_| Votes::default())),
            have_dead: Vec::new(),
        }
    }
}

/// Particles looked at together when the dead are looked for.
const GROUP: usize = 256;

/// The particles that a block would have in cells that are kept without.
#[derive(Clone, Copy, Debug)]
struct CoreParticles {
    slot: u32,
    /// One of those cells.
    cell: u32,
    liquid: u16,
    count: u32,
}

/// Deep inside a liquid, one particle of this many votes.
const SAMPLE: usize = 16;

impl Tags {
    /// Writes the tags.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        let tags: Vec<[u16; 2]> = self.tags.iter().map(|tag| [tag.air, tag.liquid]).collect();
        out.array("tags", &tags)?;
        let core =
            self.core.iter().map(|absent| [absent.slot, absent.cell, absent.liquid.into(), absent.count]);
        out.array("tags.hollow", &core.collect::<Vec<[u32; 4]>>())?;
        out.value("tags.known", &self.reseeded)
    }

    /// Reads the tags of at most `particles` particles, which name at most `components` components.
    pub fn load<const D: usize>(
        blocks: &Blocks<D>,
        particles: usize,
        components: usize,
        from: &mut Reader<'_>,
    ) -> Result<Self, ArchiveError> {
        let near = |[air, liquid]: [u16; 2]| Near { air, liquid };
        let tags: Vec<Near> = from.array("tags", particles)?.into_iter().map(near).collect();
        let is_sane = |tag: &Near| tag.air >= SEVERAL || (tag.air as usize) < components;
        ArchiveError::unless(tags.iter().all(is_sane), "tags", "names a component that is not there")?;
        let core = from.array::<[u32; 4]>("tags.hollow", blocks.slot_count())?.into_iter();
        let core: Vec<CoreParticles> = core
            .map(|[slot, cell, liquid, count]| CoreParticles { slot, cell, liquid: liquid as u16, count })
            .collect();
        let is_sane = |absent: &CoreParticles| {
            (absent.slot as usize) < blocks.slot_count() && (absent.cell as usize) < block_cells(D)
        };
        ArchiveError::unless(core.iter().all(is_sane), "tags.hollow", "names a cell that is not there")?;
        let reseeded: usize = from.value("tags.known")?;
        let is_sane = (tags.len()..=particles).contains(&reseeded);
        ArchiveError::unless(is_sane, "tags.known", "counts other particles than there are")?;
        Ok(Tags { tags, reseeded, core })
    }

    /// How many particles are tagged, those behind them that were seeded inside the liquid included.
    pub fn known(&self) -> usize {
        self.reseeded
    }

    /// Bytes held per particle.
    pub fn bytes(&self) -> usize {
        self.tags.capacity() * size_of::<Near>()
    }

    /// Says that the `count` particles listed behind the tagged ones were seeded inside the liquid.
    pub fn note_reseeded(&mut self, count: usize) {
        self.reseeded = self.tags.len() + count;
    }

    /// Forgets particles that were taken out of crowds: they are no loss to their liquid. Calls `gone` with the liquid
    /// of each, and returns how many there were.
    pub fn forget_removed<const D: usize>(
        &mut self,
        particles: &Particles<D>,
        ballot: &mut Ballot,
        mut gone: impl FnMut(usize),
    ) -> usize {
        // Few are dead: groups with any are looked for side by side.
        let have_dead = &mut ballot.have_dead;
        have_dead.resize(self.tags.len().div_ceil(GROUP), false);
        let groups = have_dead.par_iter_mut().zip(particles.position.par_chunks(GROUP));
        groups.with_min_len(64).for_each(|(has_dead, group)| {
            *has_dead = group.iter().fold(false, |dead, position| dead | !Particles::is_alive(position));
        });
        let mut count = 0;
        let groups = self.tags.chunks_mut(GROUP).zip(particles.position.chunks(GROUP)).zip(&*have_dead);
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

    /// Says where liquid is without particles from now on: slot, one of its cells there, and how many particles it
    /// would have. Calls `counted` with the liquid and that number.
    pub fn note_core(
        &mut self,
        near: &NearMap,
        shares: impl Iterator<Item = (usize, usize, usize)>,
        mut counted: impl FnMut(usize, usize),
    ) {
        self.core.clear();
        self.core.extend(shares.map(|(slot, cell, count)| {
            let liquid = near.block(slot)[cell].liquid;
            counted(liquid as usize, count);
            CoreParticles { slot: slot as u32, cell: cell as u32, liquid, count: count as u32 }
        }));
    }

    /// Lets the particles say what they were part of and where that is now. `origin[i]` is the place that particle `i`
    /// had in the list before it was sorted. With `sample`, only some of those deep inside a liquid are asked.
    pub fn vote<const D: usize>(
        &self,
        blocks: &Blocks<D>,
        ranges: &CellRanges,
        origin: &[u32],
        near: &NearMap,
        sample: bool,
        ballot: &mut Ballot,
    ) {
        let Ballot { votes: all, chunks, .. } = ballot;
        for votes in chunks.iter_mut() {
            let Votes { air, liquid, fresh, touched, present } = votes;
            [air, liquid, fresh, touched, present].into_iter().for_each(Pairs::clear);
        }
        let (tags, reseeded) = (&self.tags, self.reseeded);
        for_each_block_collecting(blocks.slots(), (), chunks, |slot, (), votes| {
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
        for absent in &self.core {
            // Deep inside, a block's liquid is one and the same before and after.
            let now = near.block(absent.slot as usize)[absent.cell as usize].liquid;
            chunks[0].liquid.add(absent.liquid as u32, now as u32, absent.count);
        }
        all.air.merge(chunks.iter().map(|votes| &votes.air));
        all.liquid.merge(chunks.iter().map(|votes| &votes.liquid));
        all.fresh.merge(chunks.iter().map(|votes| &votes.fresh));
        all.touched.merge(chunks.iter().map(|votes| &votes.touched));
        all.present.merge(chunks.iter().map(|votes| &votes.present));
    }

    /// Tags every particle with the components of this step.
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
