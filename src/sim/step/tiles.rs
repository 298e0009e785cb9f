//! Which parts of the fluids move as a whole.

use crate::liquid;
use crate::pressure;
use crate::sim::{Model, Params, Scratch, State};
use crate::tiles::{Division, TileDomain, TileRules, TileSize};

/// Decides which parts of the fluids move as a whole.
pub(super) fn lay_tiles<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
    lay_tiles_by(&tile_rules(params), state, scratch, params.reduced_advection);
    let Some(tiling) = &scratch.projection.tiling else { return };
    let State { tracker, component_roles, .. } = state;
    scratch.air.ask_outside(tracker, component_roles, tiling);
}

/// Lays out tiles of liquid, and of air with mass, as far as there are rules for them. If it `wants_core`, finds the
/// cells between and in tiles of liquid that need no particles.
pub(super) fn lay_tiles_by<const D: usize>(
    rules: &[Option<TileRules>; 2],
    state: &State<D>,
    scratch: &mut Scratch<D>,
    wants_core: bool,
) {
    let [in_liquid, in_gas] = rules;
    let Scratch { boundary, projection, core, .. } = scratch;
    core.target.clear();
    if in_liquid.is_none() && in_gas.is_none() {
        projection.tiling = None;
        return;
    }
    let pressure::Projection { label, live, gas, tiling, .. } = projection;
    let blocks = &state.blocks;
    let (tiling, domain) = (tiling.get_or_insert_default(), TileDomain { blocks, boundary, live });
    tiling.clear(blocks);
    if let Some(rules) = in_liquid {
        tiling.add_liquid(&domain, label, rules);
        if wants_core {
            tiling.find_core(blocks, liquid::CORE_DEPTH, &mut core.target);
        }
    }
    if let Some(rules) = in_gas.as_ref().filter(|_| state.component_roles.has_gas()) {
        tiling.add_gas(&domain, label, gas, rules);
    }
}

/// Where tiles of liquid and of air with mass may be.
pub(super) fn tile_rules(params: &Params) -> [Option<TileRules>; 2] {
    [tiles_in_liquid(params), tiles_in_gas(params)]
}

/// Where tiles of liquid may be, if there are any.
fn tiles_in_liquid(params: &Params) -> Option<TileRules> {
    params.tiles_liquid().then_some(TileRules {
        division: division(params.tile_size, params.tile_size_deep),
        surface_band: params.surface_band as usize,
        wall_band: params.wall_band as usize,
        density: 1.0,
    })
}

/// Tiles of that many cells, more far away from the bands; 0 is for one that is not divided.
fn division(size: u32, deep: u32) -> Division {
    match size as usize {
        0 => Division::Whole,
        least => Division::Lattice(TileSize { least, most: least.max(deep as usize) }),
    }
}

/// Where tiles of air with mass may be, if there are any.
fn tiles_in_gas(params: &Params) -> Option<TileRules> {
    (params.model == Model::AffineBubbles).then_some(TileRules {
        division: division(params.bubble_tile_size, params.bubble_tile_size),
        surface_band: params.bubble_band as usize,
        wall_band: params.wall_band as usize,
        density: params.air_density / params.density,
    })
}
