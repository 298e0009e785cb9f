//! From a simulation on the grid to a snapshot.

use crate::geometry::extract_surface;
use crate::sim::{Setup, Simulation};

use super::data::{Snapshot, Triangles, Wanted};
use super::fields::{cell_fields, sample_particles, tiles};
use super::scenery::pose_of;
use super::wall_surface::surface_up_to_walls;

/// Fills in what a simulation on the grid shows, with the costly parts that are wanted; all but the solids' distance.
pub fn show_grid<const D: usize>(
    simulation: &Simulation<D>,
    setup: &Setup<D>,
    wanted: Wanted,
    snapshot: &mut Snapshot,
) {
    let time = snapshot.report.time;
    let surface = surface_up_to_walls(simulation);
    // The flow is part of the picture in 2D, and small.
    let wanted = Wanted { velocity: wanted.velocity || D == 2, ..wanted };
    snapshot.cells = cell_fields(simulation, &surface, wanted);
    snapshot.particles = wanted.particles.then(|| sample_particles(simulation));
    snapshot.tiles = tiles(simulation);
    snapshot.poses = setup.solids.iter().map(|solid| pose_of(solid, time)).collect();
    if D == 3 {
        snapshot.surface = Triangles::from(&extract_surface(simulation.blocks(), &surface));
    }
}
