//! Sums over the air cells of each component.

use crate::geometry::Label;
use crate::grid::{Blocks, CHUNKS, Field, SIDE, for_each_block_collecting};
use crate::math::{Real, unflatten};

use super::Components;

/// Sums over the air cells of every component that lie in the domain.
#[derive(Clone, Debug)]
pub struct AirSums {
    /// Per component: how many cells, and the sum of their values.
    pub sums: Vec<[Real; 2]>,
    chunks: Box<[Vec<[Real; 2]>; CHUNKS]>,
}

impl Default for AirSums {
    fn default() -> Self {
        AirSums { sums: Vec::new(), chunks: Box::new(std::array::from_fn(|_| Vec::new())) }
    }
}

impl AirSums {
    /// Counts the cells again, and adds up `value(slot, cell)`.
    pub fn update<const D: usize>(
        &mut self,
        blocks: &Blocks<D>,
        components: &Components<D>,
        label: &Field<Label>,
        value: impl Fn(usize, usize) -> Real + Sync,
    ) {
        let count = components.len();
        for sums in self.chunks.iter_mut().chain([&mut self.sums]) {
            sums.clear();
            sums.resize(count, [0.0; 2]);
        }
        for_each_block_collecting(blocks.slots(), (), &mut self.chunks, |slot, (), sums| {
            let first = blocks.first_cell(slot);
            for (local, _) in label.block(slot).iter().enumerate().filter(|(_, l)| **l == Label::Air) {
                let at = unflatten::<D>(local, SIDE);
                let inside = blocks.grid().contains(std::array::from_fn(|k| first[k] + at[k] as i32));
                if let Some(sum) = sums.get_mut(components.of.block(slot)[local] as usize).filter(|_| inside)
                {
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
