//! What the statistics say about bubbles.

use rayon::prelude::*;

use crate::bubbles::{BubbleList, FilledBlocks, air_shares};
use crate::geometry::{Label, Nearness};
use crate::grid::{Face, Halo, SIDE, halo_cells, load_halo};
use crate::math::{Real, Side, unflatten};
use crate::pressure::{leads_into_far_air, solid_flow};

use super::{BubbleReport, Params, Scratch, State};

const HALO: Halo = Halo::new(1);
const MOST: usize = halo_cells(HALO, 3);

/// Integrals over one air component. Lengths are in cells, velocities in m/s.
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

/// Every air component that touches liquid, and the open air.
pub(super) fn survey_bubbles<const D: usize>(
    state: &State<D>,
    scratch: &Scratch<D>,
    params: &Params,
) -> Vec<BubbleReport> {
    let (grid, dt) = (state.blocks.grid(), state.last_dt);
    let (air, component_roles, records) = (&scratch.air, &state.component_roles, state.tracker.records());
    let mut sums = vec![Sums::default(); records.len()];
    // Per block, then in order: the same for any number of threads.
    let slots = state.blocks.slots().as_slice().par_iter();
    let parts: Vec<Vec<(u32, Sums)>> =
        slots.map(|&slot| survey_block(state, scratch, slot as usize)).collect();
    for (component, part) in parts.iter().flatten() {
        sums[*component as usize].add(part);
    }
    add_far_air(scratch, &mut sums);
    let reference = reference_pressures(state, scratch);
    let face = grid.cell_volume() / grid.dx;
    let to_pascal = params.density * grid.dx / dt.max(1e-300);
    BubbleList::new(records)
        .components()
        .map(|component| {
            let (record, sum) = (&records[component], &sums[component]);
            let volume = sum.volume.max(1e-300);
            let centroid: Vec<Real> = (0..D).map(|k| sum.moment[k] / volume).collect();
            let velocity = (0..D).map(|k| (sum.flux_moment[k] - centroid[k] * sum.flux) / volume).collect();
            BubbleReport {
                id: record.id,
                volume: record.volume * grid.cell_volume(),
                rest_volume: record.rest * grid.cell_volume(),
                centroid: centroid.iter().map(|c| c * grid.dx).collect(),
                velocity,
                pressure: (record.pressure - reference[air.measure.basin[component] as usize]) * to_pascal,
                net_flux: sum.flux * face,
                correction: if component_roles.is_constrained(component) {
                    component_roles.outflow(component) * face
                } else {
                    0.0
                },
                constrained: component_roles.is_constrained(component),
                touches_solid: air.components.list[component].touches_solid,
                open: record.open,
                void: record.void,
            }
        })
        .collect()
}

/// Per group of touching components: the pressure to count from. Where air is open to the outside that is zero; in a
/// closed tank only differences mean anything, and its largest bubble is as good a zero as any.
fn reference_pressures<const D: usize>(state: &State<D>, scratch: &Scratch<D>) -> Vec<Real> {
    let (air, records) = (&scratch.air, state.tracker.records());
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

/// Air in blocks that are not stored: for the centroid of large components.
fn add_far_air<const D: usize>(scratch: &Scratch<D>, sums: &mut [Sums]) {
    for (component, sum) in scratch.air.components.list.iter().zip(sums) {
        let far = component.far_cells as Real;
        sum.volume += far;
        for k in 0..D {
            sum.moment[k] += component.far_moment[k];
        }
    }
}

/// Which components have a part in a block, and their sums there.
fn survey_block<const D: usize>(state: &State<D>, scratch: &Scratch<D>, slot: usize) -> Vec<(u32, Sums)> {
    let (blocks, components) = (&state.blocks, &scratch.air.components);
    let mut found: Vec<(u32, Sums)> = Vec::new();
    let labels = scratch.projection.label.block(slot);
    let (has_air, deep) = (labels.contains(&Label::Air), -0.5 * blocks.grid().dx as f32);
    if !has_air && state.surface.block(slot).iter().all(|&distance| distance <= deep) {
        return found;
    }
    let filled = FilledBlocks { blocks, boundary: &scratch.boundary, surface: &state.surface, components };
    air_shares(filled, slot, |component, first, count, share| {
        let mut middle = position::<D>(blocks.first_cell(slot), first).map(|x| x + 0.5);
        middle[0] += 0.5 * (count - 1) as Real;
        let (sum, volume) = (entry(&mut found, component), share * count as Real);
        sum.volume += volume;
        (0..D).for_each(|k| sum.moment[k] += volume * middle[k]);
    });
    let moving = scratch.boundary.nearness(slot) == Nearness::Moving;
    let mut label = [Label::Solid; MOST];
    load_halo(blocks, &scratch.projection.label, slot, HALO, &mut label);
    if !has_air || !(moving || label.contains(&Label::Liquid)) {
        return found;
    }
    let mut of = [u32::MAX; MOST];
    load_halo(blocks, &components.of, slot, HALO, &mut of);
    let (mut open, mut faces) = ([[1f32; MOST]; D], [[0f32; MOST]; D]);
    for axis in 0..D {
        load_halo(blocks, &scratch.boundary.open[axis], slot, HALO, &mut open[axis]);
        load_halo(blocks, &state.velocity[axis], slot, HALO, &mut faces[axis]);
    }
    for (local, _) in labels.iter().enumerate().filter(|(_, label)| **label == Label::Air) {
        let cell = unflatten::<D>(local, SIDE);
        let at = HALO.index(cell.map(|c| c as i32));
        let x = position::<D>(blocks.first_cell(slot), local);
        for axis in 0..D {
            for side in Side::BOTH {
                let face = at + side.index() * HALO.stride(axis);
                let next = face - side.opposite().index() * HALO.stride(axis);
                if !moving && label[next] != Label::Liquid {
                    continue;
                }
                let share = open[axis][face] as Real;
                let mut flow = 0.0;
                if share > 0.0 && label[next] == Label::Liquid {
                    flow += share * faces[axis][face] as Real;
                }
                let place = Face::of(cell, axis, side);
                if moving && share < 1.0 && !leads_into_far_air(blocks, slot, place) {
                    let (boundary, walls) = (&scratch.boundary, &state.walls);
                    flow += solid_flow(blocks, boundary, walls, slot, place, share, state.time);
                }
                if flow == 0.0 {
                    continue;
                }
                let outwards = side.sign() * flow;
                let sum = entry(&mut found, of[at]);
                sum.flux += outwards;
                for k in 0..D {
                    let offset = if k != axis { 0.5 } else { side.index() as Real };
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

fn entry(found: &mut Vec<(u32, Sums)>, component: u32) -> &mut Sums {
    let place = found.iter().rposition(|(known, _)| *known == component).unwrap_or_else(|| {
        found.push((component, Sums::default()));
        found.len() - 1
    });
    &mut found[place].1
}
