//! Between the fields of a system with bodies and the compact vectors of its solve.

use rayon::prelude::*;

use crate::grid::{Field, for_each_block};

use super::super::super::blas;
use super::super::super::closed::Remove;
use super::super::super::coupling::{Indicators, free_means};
use super::super::super::krylov::ResidualNorm;
use super::super::super::layout::{Node, Place};
use super::super::super::space::PressureSpace;
use super::super::super::system::System;
use super::super::components::MIXED;
use super::super::cycle::CompositeHierarchy;
use super::super::network::{Colours, Network};
use super::super::rows;
use super::super::visit::{Form, PerBlock, both, pieces, visit};
use super::{Composite, own};

/// Takes the values of all nodes from a field.
fn gather<const D: usize>(
    net: &Network<D>,
    system: &System<'_, D>,
    field: &Field<f64>,
    out: &mut Colours<f64>,
) {
    visit(&net.blocks, both(out), &|| (), &|(), block, (red, black)| {
        let values = field.block(system.live.as_slice()[block - 1] as usize);
        let pattern = net.pattern(block);
        for (colour, out) in [red.0, black.0].into_iter().enumerate() {
            if net.blocks[block].form == Form::AllRows {
                rows::split::<D>(out, values, colour);
                pattern.clear_others(colour, out);
            } else {
                pattern.pick(colour, values, out);
            }
        }
    });
}

impl<const D: usize> PressureSpace<D> for Composite<D> {
    fn load_r(&mut self, system: &System<'_, D>, rhs: &Field<f64>, shared: &[f64]) -> ResidualNorm {
        gather(self.levels.finest(), system, rhs, &mut self.rhs);
        self.reload_r(system, rhs, shared);
        self.measure_r()
    }

    fn reload_r(&mut self, _: &System<'_, D>, _: &Field<f64>, shared: &[f64]) {
        self.r_is_rhs = true;
        let mut r = std::mem::take(&mut self.shared.r);
        r.copy_from_slice(shared);
        self.clear_unlinked(&mut r);
        self.shared.r = r;
    }

    fn store_r(&mut self, system: &System<'_, D>, rhs: &mut Field<f64>, shared: &mut [f64]) {
        self.settle_r();
        self.rhs.clone_from(&self.r);
        scatter(&self.levels, &self.r, system, rhs);
        let entries = &self.levels.finest().shared;
        for ((rhs, &r), &diagonal) in shared.iter_mut().zip(&self.shared.r).zip(&entries.diagonal) {
            *rhs = if diagonal > 0.0 { r } else { *rhs };
        }
    }

    fn measure_r(&mut self) -> ResidualNorm {
        let counts = self.levels.finest().counts();
        let r = if self.r_is_rhs { &self.rhs } else { &self.r };
        pieces(r, counts).map(blas::norm).collect_into_vec(&mut self.sizes);
        self.measure()
    }

    fn load_x(&mut self, system: &System<'_, D>, x: &Field<f64>, shared: &[f64]) {
        self.pending_alpha = 0.0;
        gather(self.levels.finest(), system, x, &mut self.x);
        let mut x = std::mem::take(&mut self.shared.x);
        x.copy_from_slice(shared);
        self.clear_unlinked(&mut x);
        self.shared.x = x;
    }

    fn store_x(&mut self, system: &System<'_, D>, x: &mut Field<f64>, shared: &mut [f64]) {
        self.settle_x();
        scatter(&self.levels, &self.x, system, x);
        shared.copy_from_slice(&self.shared.x);
    }

    fn add_direction(&mut self) {
        self.settle_x();
        self.pending_alpha = 1.0;
    }

    fn remove(&mut self, what: Remove, system: &System<'_, D>, components: usize) {
        self.settle_x();
        self.settle_r();
        let labels = self.labels.get_or_insert_with(|| self.levels.label_components());
        let (cells, shared) = match what {
            Remove::Sum => (&mut self.r, &mut self.shared.r),
            Remove::Mean => (&mut self.x, &mut self.shared.x),
        };
        // Blocks that belong to one component are summed side by side.
        let net = self.levels.finest();
        let mut parts = vec![[0.0; 2]; labels.blocks.len()];
        visit(&net.blocks, PerBlock(&mut parts), &|| (), &|(), block, sum| {
            if labels.blocks[block] != MIXED {
                let of = |colour: usize| blas::sum(own(&cells[colour], &net.blocks, block, colour));
                sum.0[0] = [of(0) + of(1), net.pattern(block).nodes() as f64];
            }
        });
        let mut sums = vec![[0.0; 2]; components + 1];
        for (block, (&label, part)) in labels.blocks.iter().zip(&parts).enumerate() {
            if label != MIXED {
                let sum = &mut sums[label as usize];
                *sum = [sum[0] + part[0], sum[1] + part[1]];
                continue;
            }
            for colour in 0..2 {
                let range = net.range(block, colour);
                for (&value, &label) in cells[colour][range.clone()].iter().zip(&labels.nodes[colour][range])
                {
                    let sum = &mut sums[label as usize];
                    *sum = [sum[0] + value, sum[1] + 1.0];
                }
            }
        }
        for (node, (value, &label)) in shared.iter().zip(&labels.shared).enumerate() {
            let (sum, weight) = (&mut sums[label as usize], system.shared.weight(node));
            sum[0] += if what == Remove::Mean { weight * value } else { *value };
            sum[1] += weight;
        }
        let coupled = &net.coupled;
        let label = |node: Node| match node.place() {
            Place::Cell { colour, index } => labels.nodes[colour][index],
            Place::Explicit(shared) => labels.shared[shared],
        };
        let indicators = Indicators::new(coupled.row_count(), components, |each| {
            coupled.each_weight(|row, index, weight| {
                if let Some(component) = (label(coupled.nodes()[index]) as usize).checked_sub(1) {
                    each(row, component, weight);
                }
            });
        });
        let (mut means, weights): (Vec<f64>, Vec<f64>) =
            sums.iter().map(|&[sum, weight]| (sum, weight)).unzip();
        free_means(&indicators, &mut means[1..], &weights[1..]);
        means[0] = 0.0;
        visit(&net.blocks, both(cells), &|| (), &|(), block, (red, black)| {
            let (label, pattern) = (labels.blocks[block], net.pattern(block));
            if label == 0 {
                return;
            }
            for (colour, values) in [red.0, black.0].into_iter().enumerate() {
                if label == MIXED {
                    let of = own(&labels.nodes[colour], &net.blocks, block, colour);
                    values.iter_mut().zip(of).for_each(|(value, &label)| *value -= means[label as usize]);
                } else {
                    values.iter_mut().for_each(|value| *value -= means[label as usize]);
                }
                pattern.clear_others(colour, values);
            }
        });
        for (node, (value, &label)) in shared.iter_mut().zip(&labels.shared).enumerate() {
            let each = if what == Remove::Sum { system.shared.weight(node) } else { 1.0 };
            *value -= each * means[label as usize];
        }
    }
}

/// Puts the values of all nodes into a field; other cells of their blocks become zero.
fn scatter<const D: usize>(
    levels: &CompositeHierarchy<D>,
    values: &Colours<f64>,
    system: &System<'_, D>,
    field: &mut Field<f64>,
) {
    let (net, block_of) = (levels.finest(), levels.block_of());
    for_each_block(system.live, field.parts(), |slot, out| {
        let block = block_of[slot] as usize;
        if net.blocks[block].form == Form::AllRows {
            let [red, black] = [0, 1].map(|colour| own(&values[colour], &net.blocks, block, colour));
            rows::join::<D>(out, red, black);
            return;
        }
        out.fill(0.0);
        for (colour, half) in net.pattern(block).half.iter().enumerate() {
            for (&cell, &value) in half.cells.iter().zip(own(&values[colour], &net.blocks, block, colour)) {
                out[cell as usize] = value;
            }
        }
    });
}
