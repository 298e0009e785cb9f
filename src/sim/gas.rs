//! Air that has mass: what a substep does about it beyond the liquid's business.

use crate::bubbles::Regions;
use crate::geometry::Label;
use crate::grid::{Blocks, CHUNKS, Field, SIDE, for_each_block_collecting};
use crate::math::{Real, unflatten};

use super::{Params, Scratch, State};

/// Carries the air's velocity through the substep, if air has mass; `velocity` is free before and afterwards.
pub(super) fn advect_gas<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    dt: Real,
) {
    let State { gas, blocks, velocity, earlier, .. } = state;
    if !params.model.has_gas() {
        return gas.leave();
    }
    for field in velocity.iter_mut().chain(&mut *earlier) {
        field.resize(blocks.slot_count());
        blocks.fresh().iter().for_each(|&slot| field.block_mut(slot as usize).fill(0.0));
    }
    scratch.resize(blocks.slot_count());
    if gas.enter(blocks, earlier) {
        gas.advect(blocks, &mut scratch.before, velocity, dt);
    }
}

/// Sums over the air cells of every region that lie in the domain.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Per region: cells, and the sum of their values.
    pub sums: Vec<[Real; 2]>,
    chunks: Box<[Vec<[Real; 2]>; CHUNKS]>,
}

impl Default for Tally {
    fn default() -> Self {
        Tally { sums: Vec::new(), chunks: Box::new(std::array::from_fn(|_| Vec::new())) }
    }
}

impl Tally {
    /// Counts anew, and adds up `value`.
    pub fn update<const D: usize>(
        &mut self,
        blocks: &Blocks<D>,
        regions: &Regions<D>,
        label: &Field<Label>,
        value: impl Fn(usize, usize) -> Real + Sync,
    ) {
        let count = regions.len();
        for sums in self.chunks.iter_mut().chain([&mut self.sums]) {
            sums.clear();
            sums.resize(count, [0.0; 2]);
        }
        for_each_block_collecting(blocks.slots(), (), &mut self.chunks, |slot, (), sums| {
            let first = blocks.first_cell(slot);
            for (local, _) in label.block(slot).iter().enumerate().filter(|(_, l)| **l == Label::Air) {
                let at = unflatten::<D>(local, SIDE);
                let inside = blocks.grid().contains(std::array::from_fn(|k| first[k] + at[k] as i32));
                if let Some(sum) = sums.get_mut(regions.of.block(slot)[local] as usize).filter(|_| inside) {
                    *sum = [sum[0] + 1.0, sum[1] + value(slot, local)];
                }
            }
        });
        for chunk in self.chunks.iter() {
            for (sum, part) in self.sums.iter_mut().zip(chunk) {
                *sum = [sum[0] + part[0], sum[1] + part[1]];
            }
        }
    }
}
