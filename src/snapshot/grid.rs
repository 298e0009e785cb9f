//! From a simulation on the grid to a snapshot, in two parts: what has to be looked up in the simulation, and what can be
//! made of it while the simulation goes on.

use crate::geometry::extract_surface;
use crate::math::compiled_here;
use crate::sim::Simulation;

use super::data::{Snapshot, Triangles, Wanted};
use super::fields::{cell_fields, distances, sample_particles, tiles};
use super::haze::appearance;
use super::scenery::pose_of;
use super::wall_surface::WallSurface;

/// What is left to be drawn of a moment: copies that know nothing of the simulation any more.
pub struct Undrawn<const D: usize> {
    surface: WallSurface<D>,
}

impl<const D: usize> Undrawn<D> {
    /// Fills in what follows from the surface, its distance in every cell and its triangles, and what smoke looks like.
    pub fn draw(&self, snapshot: &mut Snapshot) {
        draw(self, snapshot);
    }
}

compiled_here! {
    /// Fills in what a simulation on the grid shows, with the costly parts that are wanted, as far as that is quick; all
    /// but the solids' distance. Returns what is left.
    pub fn sketch_grid<D>(
        simulation: &Simulation<D>,
        wanted: Wanted,
        snapshot: &mut Snapshot,
    ) -> Undrawn<D> = fill_in;
}

compiled_here! {
    fn draw<D>(undrawn: &Undrawn<D>, snapshot: &mut Snapshot) -> () = finish;
}

/// Fills in what a simulation on the grid shows, with the costly parts that are wanted; all but the solids' distance.
pub fn show_grid<const D: usize>(simulation: &Simulation<D>, wanted: Wanted, snapshot: &mut Snapshot) {
    sketch_grid(simulation, wanted, snapshot).draw(snapshot);
}

fn fill_in<const D: usize>(
    simulation: &Simulation<D>,
    wanted: Wanted,
    snapshot: &mut Snapshot,
) -> Undrawn<D> {
    // What hands put in or took out just now is seen at once.
    let time = snapshot.report.time.next_up();
    // The flow is part of the picture in 2D, and small.
    let wanted = Wanted { velocity: wanted.velocity || D == 2, ..wanted };
    snapshot.cells = cell_fields(simulation, wanted);
    snapshot.particles = wanted.particles.then(|| sample_particles(simulation));
    snapshot.tiles = tiles(simulation);
    // Where bodies are, and which hands put in, is not in the setup.
    let solids = &simulation.state().walls.solids;
    snapshot.poses = solids.iter().map(|solid| pose_of(solid, time)).collect();
    Undrawn { surface: WallSurface::of(simulation) }
}

fn finish<const D: usize>(undrawn: &Undrawn<D>, snapshot: &mut Snapshot) {
    let blocks = &undrawn.surface.blocks;
    let surface = undrawn.surface.up_to_walls();
    snapshot.cells.distance = distances(blocks, &surface);
    let cells = &mut snapshot.cells;
    if let Some(smoke) = &mut cells.smoke {
        smoke.appearance = appearance(cells.cells, &cells.region, smoke);
    }
    if D == 3 {
        snapshot.surface = Triangles::from(&extract_surface(blocks, &surface));
    }
}
