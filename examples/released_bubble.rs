//! Lets a round bubble go in still water and compares how it starts to rise with added-mass theory: a light disc in
//! boundless liquid accelerates with g, a light ball with 2 g. Walls and the grid take a few percent.
//!
//!     cargo run --release --no-default-features --example released_bubble

use std::sync::atomic::AtomicBool;

use glug::geometry::Shape;
use glug::grid::Grid;
use glug::math::Vector;
use glug::sim::{Flow, LiquidBody, Model, Params, Setup, SimError, Simulation};

/// A closed tank, `cells` wide and as high, full of water but for a bubble in its middle.
fn tank<const D: usize>(cells: usize, radius: f64) -> Setup<D> {
    let water = Shape::Box { min: Vector::zeros(), max: Vector::repeat(1.0) };
    let bubble = Shape::Sphere { center: Vector::repeat(0.5), radius };
    let shape = Shape::Difference(Box::new(water), vec![bubble]);
    Setup {
        size: [1.0; D],
        grid: Grid { cells: [cells; D], dx: 1.0 / cells as f64 },
        open: [[false; 2]; D],
        sticky: [[false; 2]; D],
        slip: [[false; 2]; D],
        liquids: vec![LiquidBody { shape, flow: Flow::rest() }],
        sources: Vec::new(),
        drains: Vec::new(),
        air_sources: Vec::new(),
        smoke: Vec::new(),
        smoke_sources: Vec::new(),
        solids: Vec::new(),
        joints: Vec::new(),
        params: Params { model: Model::Constraint, ..Params::default() },
    }
}

fn release<const D: usize>(cells: usize, theory: f64) -> Result<(), SimError> {
    let setup = tank::<D>(cells, 0.1);
    let mut simulation = Simulation::new(&setup)?;
    let seconds = 1e-3;
    if let Some(report) = simulation.advance_frame(seconds, &AtomicBool::new(false))? {
        let rise = report.bubbles[0].velocity[1];
        let in_g = rise / (seconds * setup.params.gravity);
        println!("{D}D, {cells} cells: the bubble starts to rise with {in_g:.2} g (theory: {theory} g)");
    }
    Ok(())
}

fn main() -> Result<(), SimError> {
    release::<2>(128, 1.0)?;
    release::<3>(64, 2.0)
}
