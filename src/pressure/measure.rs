//! How well a projection did.

use crate::geometry::{Label, Nearness};
use crate::grid::{Face, Field, SIDE, block_cells, load_halo, sum_over_blocks};
use crate::math::{Real, Side, unflatten};

use super::phases::{CellKind, HALO, MOST, place_of_row};
use super::walls::SweptFlow;
use super::{LooseCells, Problem, Projection};

/// Largest and root-mean-square net outflow of the liquid cells, beyond what the volume correction asked for, per cell
/// volume and second. Cells that are leaving walls may expand.
pub fn divergence<const D: usize>(
    problem: &Problem<'_, D>,
    projection: &Projection<D>,
    loose: &LooseCells,
    velocity: &[Field<f32>; D],
    partial: &mut Vec<f64>,
) -> [Real; 2] {
    let dx = problem.blocks.grid().dx;
    let largest = std::sync::atomic::AtomicU64::new(0);
    let mut cells = 0usize;
    for &slot in projection.live.as_slice() {
        cells +=
            projection.label.block(slot as usize).iter().filter(|&&label| label == Label::Liquid).count();
    }
    let squares = sum_over_blocks(&projection.live, partial, |slot| {
        let blocks = problem.blocks;
        let is_clear = problem.boundary.nearness(slot) == Nearness::Clear;
        let (mut faces, mut open) = ([0f32; MOST], [0f32; MOST]);
        let mut outflow = [0f64; SIDE * SIDE * SIDE];
        let mut swept = [SweptFlow::default(); SIDE * SIDE * SIDE];
        for axis in 0..D {
            load_halo(blocks, &velocity[axis], slot, HALO, &mut faces);
            if is_clear {
                for (row, outflow) in outflow[..block_cells(D)].chunks_exact_mut(SIDE).enumerate() {
                    let low = place_of_row::<D>(row);
                    let high = low + HALO.stride(axis);
                    let pairs = faces[low..low + SIDE].iter().zip(&faces[high..high + SIDE]);
                    for (outflow, (low, high)) in outflow.iter_mut().zip(pairs) {
                        *outflow += *high as f64 - *low as f64;
                    }
                }
                continue;
            }
            load_halo(blocks, &problem.boundary.open[axis], slot, HALO, &mut open);
            for (local, (outflow, swept)) in
                outflow.iter_mut().zip(&mut swept).enumerate().take(block_cells(D))
            {
                let cell = unflatten::<D>(local, SIDE);
                let at = HALO.index(cell.map(|c| c as i32));
                for side in Side::BOTH {
                    let face = at + side.index() * HALO.stride(axis);
                    let share = open[face] as f64;
                    let (mut wall, mut scripted) = (0.0, 0.0);
                    if share < 1.0 {
                        let face = Face::of(cell, axis, side);
                        wall = problem.solid_flow(slot, face, share);
                        scripted = problem.scripted_flow(slot, face, share);
                    }
                    swept.add(side, share, scripted);
                    *outflow += side.sign() * (share * faces[face] as f64 + wall);
                }
            }
        }
        let (mut most, mut squares) = (0f64, 0f64);
        for (local, label) in projection.label.block(slot).iter().enumerate() {
            if *label == Label::Liquid {
                let wanted = problem.wanted_outflow(CellKind::Liquid, slot, local);
                let beyond = outflow[local] - swept[local].excess() - wanted;
                let outflow = if loose.has(slot, local) { beyond.min(0.0) } else { beyond };
                most = most.max(outflow.abs());
                squares += outflow * outflow;
            }
        }
        // Bits of non-negative numbers are ordered like the numbers.
        largest.fetch_max(most.to_bits(), std::sync::atomic::Ordering::Relaxed);
        squares
    });
    [f64::from_bits(largest.into_inner()) / dx, (squares / cells.max(1) as f64).sqrt() / dx]
}
