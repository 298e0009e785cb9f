//! Tiles around a solid whose edges lie on the lines of the grid.

use glug::geometry::{Motion, Shape, Solid};
use glug::math::Vector;
use glug::sim::{Model, Simulation, WallCells};

use crate::sim::{advance, corner_box, tank};

/// A pool that fell onto the floor comes to rest, and so does the air above it, around a box.
///
/// Cells at the box's edges touch each other by corners only, and tiles that reached in between separated parts of the network that
/// the solver took for closed: the air's velocity grew fourfold from step to step.
fn air_around_a_box_comes_to_rest<const D: usize>(cells: usize, walls: WallCells) {
    let size = 1.0;
    let dx = size / cells as f64;
    let mut setup = tank([size; D], cells, vec![corner_box([0.0, 0.0], [size, 0.3], size)]);
    setup.liquids[0].flow.velocity = Vector::from_fn(|axis, _| if axis == 1 { -1.0 } else { 0.0 });
    let lines = |cells: f64| Vector::repeat(cells * dx);
    let lift = Vector::from_fn(|axis, _| if axis == 1 { 2.0 * dx } else { 0.0 });
    let half = (cells / 2) as f64;
    let solid = Shape::Box { min: lines(half - 2.0) + lift, max: lines(half + 1.0) + lift };
    setup.solids.push(Solid::new("box", solid, Motion::default()));
    setup.params.model = Model::AffineBubbles;
    setup.params.gravity = 0.0;
    setup.params.wall_band = 1;
    setup.params.bubble_tile_size = 0;
    setup.params.walls = walls;
    setup.params.tolerance = 1e-8;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    for _ in 0..12 {
        let report = advance(&mut simulation, 1e-3);
        assert!(report.unknowns.body > 0, "{D}D: the air has a tile");
        let speed = report.bubbles[0].velocity.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        println!("{D}D {walls:?}: air {speed:.2e} m/s, {:?}", report.divergence);
        assert!(speed < 0.02, "{D}D {walls:?}, {:.3} s: air moves at {speed} m/s", report.time);
    }
}

#[test]
fn air_around_a_box_comes_to_rest_2d() {
    air_around_a_box_comes_to_rest::<2>(32, WallCells::Cut);
    air_around_a_box_comes_to_rest::<2>(32, WallCells::Voxel);
}

#[test]
fn air_around_a_box_comes_to_rest_3d() {
    air_around_a_box_comes_to_rest::<3>(24, WallCells::Cut);
}
