//! Components without ground: the right-hand side must sum to zero over each, and `x` is known up to a constant.
//!
//! Aggregates never join cells without a link, so a component is a node of the coarsest network, or of the level where
//! nothing else was left of it. Its number travels down to the cells the way coarse values do.

use crate::grid::{DisjointMut, share};

use super::coarsest::Coarsest;
use super::coupling::{Indicators, free_means};
use super::layout::{Place, half_rows};
use super::level::Level;
use super::parallel::{cut, each_block};
use super::transfer;

/// Sets the finest `x` to the number of each node's component, from 1; 0 where the component has a ground.
/// Returns how many there are.
pub(super) fn label<const D: usize>(levels: &mut [Level<D>], coarsest: &Coarsest) -> usize {
    let Some((last, finer)) = levels.split_last_mut() else { return 0 };
    let mut count = coarsest.closed;
    coarsest.write_components(last);
    name_closed(last, &mut count);
    let mut coarse = last;
    for fine in finer.iter_mut().rev() {
        transfer::inject(fine, coarse);
        name_closed(fine, &mut count);
        coarse = fine;
    }
    count
}

/// How many components have no ground.
pub(super) fn count<const D: usize>(levels: &[Level<D>], coarsest: &Coarsest) -> usize {
    coarsest.closed + levels.iter().map(|level| level.closed.len()).sum::<usize>()
}

fn name_closed<const D: usize>(level: &mut Level<D>, count: &mut usize) {
    for node in &level.closed {
        *count += 1;
        // f32 holds the number exactly up to 2^24.
        match node.place() {
            Place::Cell { colour, index } => level.x[colour].as_flattened_mut()[index] = *count as f32,
            Place::Explicit(index) => level.explicit.x[index] = *count as f32,
        }
    }
}

/// Sums per component, in a fixed order.
#[derive(Clone, Debug, Default)]
pub(super) struct Means {
    sum: Vec<f64>,
    weight: Vec<f64>,
}

/// What is made to vanish over each component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Remove {
    /// The sum, by taking the same amount from every cell: for right-hand sides.
    Sum,
    /// The mean, by shifting all values alike: for solutions.
    Mean,
}

/// Blocks whose sums a thread takes at a time.
const BLOCKS: usize = 64;

impl Means {
    /// Changes `values` (both colours of a block together) and `shared`; components are numbered by `level.x`. A shared
    /// node counts as `weight` cells. Components that bodies close off are left alone: see `coupling`.
    pub fn remove<const D: usize>(
        &mut self,
        what: Remove,
        level: &Level<D>,
        components: usize,
        values: &mut [[f64; 8]],
        shared: &mut [f64],
        weight: impl Fn(usize) -> f64,
    ) {
        let coupled = &level.coupled;
        let indicators = Indicators::new(coupled.row_count(), components, |each| {
            coupled.each_weight(|row, index, weight| {
                if let Some(component) = (level.value(coupled.nodes()[index]) as usize).checked_sub(1) {
                    each(row, component, weight);
                }
            });
        });
        let half = half_rows(D);
        let labels =
            |block: usize| (0..2).flat_map(move |colour| &level.x[colour][block * half..(block + 1) * half]);
        // Sums of some blocks at a time; few enough parts to be small beside the cells, however many components.
        let grain = BLOCKS.max(components / 8) * 2 * half;
        let all = &values[2 * half..];
        let mut parts = vec![Vec::new(); all.len().div_ceil(grain)];
        let out = DisjointMut::new(&mut parts);
        share(all.len().div_ceil(grain), 1, &|range| {
            for part in range {
                let mut sums = vec![[0.0; 2]; components + 1];
                let values = &all[part * grain..all.len().min((part + 1) * grain)];
                for (index, values) in values.chunks_exact(2 * half).enumerate() {
                    let block = 1 + part * (grain / (2 * half)) + index;
                    for (values, labels) in values.iter().zip(labels(block)) {
                        for (value, &label) in values.iter().zip(labels) {
                            let sum = &mut sums[label as usize];
                            *sum = [sum[0] + value, sum[1] + 1.0];
                        }
                    }
                }
                // SAFETY: ranges are disjoint.
                unsafe { *out.at(part) = sums };
            }
        });
        self.sum.clear();
        self.weight.clear();
        for component in 0..=components {
            let [sum, weight] = parts.iter().fold([0.0; 2], |[sum, weight], part| {
                [sum + part[component][0], weight + part[component][1]]
            });
            self.sum.push(sum);
            self.weight.push(weight);
        }
        let first = level.explicit.ends[1];
        let shared_label = |k: usize| level.explicit.x[first + k] as usize;
        for (k, value) in shared.iter().enumerate() {
            let each = if what == Remove::Mean { weight(k) } else { 1.0 };
            self.sum[shared_label(k)] += each * value;
            self.weight[shared_label(k)] += weight(k);
        }
        free_means(&indicators, &mut self.sum[1..], &self.weight[1..]);
        self.sum[0] = 0.0;
        let means = &self.sum;
        each_block::<D, _>((cut(values, 2 * half),), |block, (values,)| {
            for (values, labels) in values.iter_mut().zip(labels(block)) {
                for (value, &label) in values.iter_mut().zip(labels) {
                    *value -= means[label as usize];
                }
            }
        });
        for (k, value) in shared.iter_mut().enumerate() {
            let each = if what == Remove::Sum { weight(k) } else { 1.0 };
            *value -= each * self.sum[shared_label(k)];
        }
    }
}
