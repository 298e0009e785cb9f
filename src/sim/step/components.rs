//! What cells are made of, and which of them hang together.

use crate::geometry::label_cells;
use crate::pressure;
use crate::sim::air::{Air, AirInput};
use crate::sim::{Params, Scratch, State};

use super::StepLength;

pub(super) fn label<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let pressure::Projection { label, live, settled, .. } = &mut scratch.projection;
    label_cells(&state.blocks, &scratch.boundary, &state.surface, label, live, settled);
}

/// What the components of air and liquid are found from, and those.
fn around<'a, const D: usize>(
    state: &'a State<D>,
    scratch: &'a mut Scratch<D>,
) -> (AirInput<'a, D>, &'a mut Air<D>) {
    let State { blocks, walls, surface, time, .. } = state;
    let Scratch { boundary, projection, air, .. } = scratch;
    (AirInput::new(blocks, boundary, walls, projection, surface, *time), air)
}

/// Finds the connected components of air and liquid.
pub(super) fn fill_components<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let (around, air) = around(state, scratch);
    air.fill(&around);
}

/// Finds how large they are.
pub(super) fn measure_components<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let (around, air) = around(state, scratch);
    air.measure(&around);
}

/// Knows the components again, and decides which volumes to correct.
pub(super) fn track<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    length: StepLength,
) {
    let State { tracker, component_roles, blocks, walls, surface, ranges, air_sources, smoke, time, .. } =
        state;
    let Scratch { air, boundary, projection, sorter, .. } = scratch;
    let around = AirInput::new(blocks, boundary, walls, projection, surface, *time);
    let has_smoke = smoke.is_present();
    let origin = sorter.origin();
    air.track(tracker, component_roles, &around, ranges, origin, air_sources, has_smoke, params, length);
}
