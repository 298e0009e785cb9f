//! What the statistics say about bubbles.

use rayon::prelude::*;

use crate::bubbles::{BubbleList, air_shares};
use crate::geometry::{Label, Nearness};
use crate::grid::{Halo, SIDE, halo_cells, load_halo};
use crate::math::{Real, unflatten};
use crate::pressure::{face_velocity, leads_into_far_air};

use super::{BubbleReport, Params, State};

const HALO: Halo = Halo::new(1);
const MOST: usize = halo_cells(HALO, 3);

/// Integrals over one air region. Lengths are in cells, velocities in m/s.
#[derive(Clone, Copy, Default)]
struct Sums {
    volume: Real,
    moment: [Real; 3],
    /// ∮ u·n dA over its whole surface, outwards.
    flux: Real,
    /// ∮ x (u·n) dA.
    flux_moment: [Real; 3],
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.volume += other.volume;
        self.flux += other.flux;
        for k in 0..3 {
            self.moment[k] += other.moment[k];
            self.flux_moment[k] += other.flux_moment[k];
        }
    }
}

/// Every air region that touches liquid, and the open air.
pub(super) fn survey_bubbles<const D: usize>(
    state: &State<D>,
    params: &Params,
    dt: Real,
) -> Vec<BubbleReport> {
    let grid = state.blocks.grid();
    let (air, records) = (&state.air, state.air.tracker.records());
    let mut sums = vec![Sums::default(); records.len()];
    // Per block, then in order: the same for any number of threads.
    let parts: Vec<Vec<(u32, Sums)>> =
        state.blocks.slots().as_slice().par_iter().map(|&slot| survey_block(state, slot as usize)).collect();
    for (region, part) in parts.iter().flatten() {
        sums[*region as usize].add(part);
    }
    add_far_air(state, &mut sums);
    let reference = reference_pressures(state);
    let face = grid.cell_volume() / grid.dx;
    let to_pascal = params.density * grid.dx / dt.max(1e-300);
    BubbleList::new(records)
        .regions()
        .map(|region| {
            let (record, sum) = (&records[region], &sums[region]);
            let volume = sum.volume.max(1e-300);
            let centroid: Vec<Real> = (0..D).map(|k| sum.moment[k] / volume).collect();
            let velocity = (0..D).map(|k| (sum.flux_moment[k] - centroid[k] * sum.flux) / volume).collect();
            BubbleReport {
                id: record.id,
                volume: record.volume * grid.cell_volume(),
                rest_volume: record.rest * grid.cell_volume(),
                centroid: centroid.iter().map(|c| c * grid.dx).collect(),
                velocity,
                pressure: (record.pressure - reference[air.measure.basin[region] as usize]) * to_pascal,
                net_flux: sum.flux * face,
                correction: if air.is_constrained(region) { air.outflow(region) * face } else { 0.0 },
                constrained: air.is_constrained(region),
                touches_solid: air.regions.list[region].touches_solid,
                open: record.open,
                void: record.void,
            }
        })
        .collect()
}

/// Per group of touching regions: the pressure to count from. Where air is open to the outside that is zero; in a closed
/// tank only differences mean anything, and its largest bubble is as good a zero as any.
fn reference_pressures<const D: usize>(state: &State<D>) -> Vec<Real> {
    let (air, records) = (&state.air, state.air.tracker.records());
    let mut largest = vec![(0.0, 0.0); records.len()];
    for (record, &basin) in records.iter().zip(&air.measure.basin).filter(|(r, _)| r.phase == Label::Air) {
        let best = &mut largest[basin as usize];
        let size = if record.open { Real::INFINITY } else { record.volume };
        if size > best.0 {
            *best = (size, if record.open { 0.0 } else { record.pressure });
        }
    }
    largest.into_iter().map(|(_, pressure)| pressure).collect()
}

/// Air in blocks that are not stored: for the centroid of large regions.
fn add_far_air<const D: usize>(state: &State<D>, sums: &mut [Sums]) {
    for (region, sum) in state.air.regions.list.iter().zip(sums) {
        let far = region.far_cells as Real;
        sum.volume += far;
        for k in 0..D {
            sum.moment[k] += region.far_moment[k];
        }
    }
}

/// Which regions have a part in a block, and their sums there.
fn survey_block<const D: usize>(state: &State<D>, slot: usize) -> Vec<(u32, Sums)> {
    let (blocks, regions) = (&state.blocks, &state.air.regions);
    let mut found: Vec<(u32, Sums)> = Vec::new();
    let labels = state.projection.label.block(slot);
    let (has_air, deep) = (labels.contains(&Label::Air), -0.5 * blocks.grid().dx as f32);
    if !has_air && state.surface.block(slot).iter().all(|&distance| distance <= deep) {
        return found;
    }
    air_shares(blocks, &state.boundary, &state.surface, regions, slot, |region, first, count, share| {
        let mut middle = position::<D>(blocks.first_cell(slot), first).map(|x| x + 0.5);
        middle[0] += 0.5 * (count - 1) as Real;
        let (sum, volume) = (entry(&mut found, region), share * count as Real);
        sum.volume += volume;
        (0..D).for_each(|k| sum.moment[k] += volume * middle[k]);
    });
    let moving = state.boundary.nearness(slot) == Nearness::Moving;
    let mut label = [Label::Solid; MOST];
    load_halo(blocks, &state.projection.label, slot, HALO, &mut label);
    if !has_air || !(moving || label.contains(&Label::Liquid)) {
        return found;
    }
    let mut of = [u32::MAX; MOST];
    load_halo(blocks, &regions.of, slot, HALO, &mut of);
    let (mut open, mut faces) = ([[1f32; MOST]; D], [[0f32; MOST]; D]);
    for axis in 0..D {
        load_halo(blocks, &state.boundary.open[axis], slot, HALO, &mut open[axis]);
        load_halo(blocks, &state.velocity[axis], slot, HALO, &mut faces[axis]);
    }
    for (local, _) in labels.iter().enumerate().filter(|(_, label)| **label == Label::Air) {
        let cell = unflatten::<D>(local, SIDE);
        let at = HALO.index(cell.map(|c| c as i32));
        let x = position::<D>(blocks.first_cell(slot), local);
        for axis in 0..D {
            for high in [false, true] {
                let face = at + high as usize * HALO.stride(axis);
                let next = if high { at + HALO.stride(axis) } else { at - HALO.stride(axis) };
                if !moving && label[next] != Label::Liquid {
                    continue;
                }
                let share = open[axis][face] as Real;
                let mut flow = 0.0;
                if share > 0.0 && label[next] == Label::Liquid {
                    flow += share * faces[axis][face] as Real;
                }
                if moving && share < 1.0 && !(high && leads_into_far_air(blocks, slot, cell, axis)) {
                    let mut place = cell;
                    place[axis] += high as usize;
                    flow +=
                        (1.0 - share) * face_velocity(blocks, &state.walls, slot, place, axis, state.time);
                }
                if flow == 0.0 {
                    continue;
                }
                let outwards = if high { flow } else { -flow };
                let sum = entry(&mut found, of[at]);
                sum.flux += outwards;
                for k in 0..D {
                    let offset = if k != axis { 0.5 } else { high as usize as Real };
                    sum.flux_moment[k] += outwards * (x[k] + offset);
                }
            }
        }
    }
    found
}

fn position<const D: usize>(first: [i32; D], local: usize) -> [Real; D] {
    let at = unflatten::<D>(local, SIDE);
    std::array::from_fn(|k| (first[k] + at[k] as i32) as Real)
}

fn entry(found: &mut Vec<(u32, Sums)>, region: u32) -> &mut Sums {
    let place = found.iter().rposition(|(known, _)| *known == region).unwrap_or_else(|| {
        found.push((region, Sums::default()));
        found.len() - 1
    });
    &mut found[place].1
}
