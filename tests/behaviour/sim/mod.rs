//! Whole simulations.

mod growth;
mod let_go;
mod narrow_band;
mod physics;
mod scenes;
mod traffic;
mod viscosity;
mod volume;
mod voxels;

use std::sync::atomic::AtomicBool;

use glug::geometry::Shape;
use glug::grid::Grid;
use glug::math::Vector;
use glug::scene::{AnyScene, Overrides, Scene, load};
use glug::sim::{Flow, FrameReport, LiquidBody, Params, Setup, Simulation};

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

/// The next frame's report.
pub fn advance<const D: usize>(simulation: &mut Simulation<D>, seconds: f64) -> FrameReport {
    let report = simulation.advance_frame(seconds, &never()).expect("the simulation goes on");
    report.expect("nobody asked it to stop")
}

/// A built-in scene in two dimensions.
pub fn scene_2d(name: &str) -> Scene<2> {
    match load(name, &Overrides::default()) {
        Ok(AnyScene::TwoD(scene)) => scene,
        other => panic!("{name} is a scene in two dimensions, not {other:?}"),
    }
}

/// A built-in scene in three dimensions, with that many cells along x.
pub fn scene_3d(name: &str, cells: usize) -> Scene<3> {
    match load(name, &Overrides { cells: Some(cells), ..Overrides::default() }) {
        Ok(AnyScene::ThreeD(scene)) => scene,
        other => panic!("{name} is a scene in three dimensions, not {other:?}"),
    }
}

/// A closed box with liquid at rest in it.
pub fn tank<const D: usize>(size: [f64; D], cells_x: usize, liquids: Vec<Shape<D>>) -> Setup<D> {
    Setup {
        size,
        grid: Grid::covering(size, cells_x),
        open: [[false; 2]; D],
        sticky: [[false; 2]; D],
        slip: [[false; 2]; D],
        liquids: liquids.into_iter().map(|shape| LiquidBody { shape, flow: Flow::rest() }).collect(),
        sources: Vec::new(),
        drains: Vec::new(),
        air_sources: Vec::new(),
        smoke: Vec::new(),
        smoke_sources: Vec::new(),
        solids: Vec::new(),
        joints: Vec::new(),
        params: Params::default(),
    }
}

/// A box from the origin's corner, `size` metres large; all other axes take the last entry.
pub fn corner_box<const D: usize>(min: [f64; 2], max: [f64; 2], depth: f64) -> Shape<D> {
    let pick =
        |from: [f64; 2], rest: f64| Vector::from_fn(|axis, _| if axis < 2 { from[axis] } else { rest });
    Shape::Box { min: pick(min, 0.0), max: pick(max, depth) }
}

/// Root of the mean square speed, m/s, from energy and volume.
fn rms_speed(report: &FrameReport, density: f64) -> f64 {
    (2.0 * report.liquid.kinetic_energy / (density * report.liquid.volume)).sqrt()
}
