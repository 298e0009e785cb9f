//! The network as it would be if bodies were ordinary cells.

use rayon::prelude::*;

use crate::grid::{Slots, block_cells, masks};
use crate::math::power;

use super::super::level::Level;
use super::super::source::Source;
use super::super::system::System;
use super::body::Bodies;

/// Where the links of a block come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    /// No body is near.
    Own,
    /// All are whole, in one of the two fluids.
    Whole(usize),
    /// A copy with the bodies' links filled in.
    Copy(u32),
}

/// Memory for [`Filled`].
#[derive(Clone, Debug, Default)]
pub(super) struct Filling {
    links: Vec<Links>,
    copies: Vec<f32>,
    whole: [Vec<f32>; 2],
}

impl Filling {
    /// Finds out what to fill in. `outside` is the finest level of the system, and `block_of` says where its blocks are.
    pub fn prepare<const D: usize>(
        &mut self,
        system: &System<'_, D>,
        bodies: &Bodies<'_>,
        outside: &Level<D>,
        block_of: &[u32],
    ) {
        let cells = block_cells(D);
        self.whole = bodies.fluids.whole.map(|link| vec![link; cells]);
        let live = bodies.live.as_slice();
        let kinds = live
            .par_iter()
            .with_min_len(32)
            .map(|&slot| kind_of(system, bodies, outside, block_of, slot as usize));
        let mut kinds: Vec<Links> = kinds.collect();
        let mut copied = Vec::new();
        for (kind, &slot) in kinds.iter_mut().zip(live) {
            if *kind == Links::Copy(0) {
                *kind = Links::Copy(copied.len() as u32);
                copied.push(slot as usize);
            }
        }
        self.links.clear();
        self.links.push(Links::Own);
        self.links.extend(kinds);
        self.copies.resize(copied.len() * D * cells, 0.0);
        self.copies.par_chunks_exact_mut(D * cells).zip(copied).for_each(|(copy, slot)| {
            for (axis, copy) in copy.chunks_exact_mut(cells).enumerate() {
                copy.copy_from_slice(system.link[axis].block(slot));
                fill_in(system, bodies, slot, axis, copy);
            }
        });
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.links.capacity() * size_of::<Links>() + self.copies.capacity() * 4
    }
}

/// Cells of a block that lie in bodies or have a neighbour there, by their link towards it along an axis.
fn near_bodies<const D: usize>(
    system: &System<'_, D>,
    bodies: &Bodies<'_>,
    slot: usize,
    axis: usize,
) -> masks::Bits {
    let inside = &bodies.inside[slot];
    let below = system.blocks.beside(slot, axis, crate::math::Side::Low) as usize;
    let beside = masks::beside::<D>(inside, axis, false, &bodies.inside[below]);
    std::array::from_fn(|word| inside[word] | beside[word])
}

fn kind_of<const D: usize>(
    system: &System<'_, D>,
    bodies: &Bodies<'_>,
    outside: &Level<D>,
    block_of: &[u32],
    slot: usize,
) -> Links {
    let inside = &bodies.inside[slot];
    let fluid = |local: usize| bodies.fluids.of(slot, local);
    if *inside == masks::all(D) {
        return Links::Whole(fluid(0));
    }
    let near: [masks::Bits; D] = std::array::from_fn(|axis| near_bodies(system, bodies, slot, axis));
    if near.iter().all(|near| *near == masks::NONE) {
        return Links::Own;
    }
    // Whole links outside of bodies, and nothing but bodies where there are none: whole altogether.
    let (block, words) = (block_of[slot] as usize, masks::words(D));
    let live = &outside.stencil.live[block * words..(block + 1) * words];
    let is_full = (0..words).all(|word| live[word] | inside[word] == u64::MAX);
    let is_one_fluid = bodies.fluids.is_one(slot);
    let whole = bodies.fluids.whole[fluid(0)];
    let is_whole = is_full
        && is_one_fluid
        && system.ground.block(slot).iter().all(|&ground| ground == 0.0)
        && (0..D).all(|axis| {
            let links = system.link[axis].block(slot);
            links
                .iter()
                .enumerate()
                .all(|(local, &link)| link == whole || near[axis][local / 64] >> (local % 64) & 1 == 1)
        });
    if is_whole { Links::Whole(fluid(0)) } else { Links::Copy(0) }
}

/// Gives links that lead into bodies, or through them, their whole strength.
fn fill_in<const D: usize>(
    system: &System<'_, D>,
    bodies: &Bodies<'_>,
    slot: usize,
    axis: usize,
    links: &mut [f32],
) {
    let stride = power(8, axis);
    let below = system.blocks.beside(slot, axis, crate::math::Side::Low) as usize;
    let inside = &bodies.inside[slot];
    for local in masks::each(&near_bodies(system, bodies, slot, axis)) {
        let own = inside[local / 64] >> (local % 64) & 1 == 1;
        let fluid = match local / stride % 8 {
            _ if own => bodies.fluids.of(slot, local),
            0 => bodies.fluids.of(below, local + 7 * stride),
            _ => bodies.fluids.of(slot, local - stride),
        };
        links[local] = bodies.fluids.whole[fluid];
    }
}

/// The system with all bodies filled in.
pub(super) struct Filled<'a, const D: usize> {
    pub system: &'a System<'a, D>,
    pub live: &'a Slots,
    pub filling: &'a Filling,
}

impl<const D: usize> Filled<'_, D> {
    #[inline]
    fn slot(&self, block: usize) -> usize {
        if block == 0 { 0 } else { self.live.as_slice()[block - 1] as usize }
    }
}

impl<const D: usize> Source<D> for Filled<'_, D> {
    #[inline]
    fn link(&self, axis: usize, block: usize) -> &[f32] {
        let cells = block_cells(D);
        match self.filling.links[block] {
            Links::Own => self.system.link[axis].block(self.slot(block)),
            Links::Whole(fluid) => &self.filling.whole[fluid],
            Links::Copy(at) => &self.filling.copies[(at as usize * D + axis) * cells..][..cells],
        }
    }
    #[inline]
    fn ground(&self, block: usize) -> &[f32] {
        self.system.ground.block(self.slot(block))
    }
    #[inline]
    fn area(&self, block: usize) -> &[f32] {
        self.system.ground_area.block(self.slot(block))
    }
    #[inline]
    fn material(&self, block: usize) -> Option<&[bool]> {
        self.system.materials.map(|materials| materials.second.block(self.slot(block)))
    }
}
