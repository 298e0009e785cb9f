//! Builds a scene in Rust instead of a file: a jet falls onto a paddle that turns in a glass tank. Writes the surface of
//! every frame as PLY into the folder named on the command line (`out/paddle` unless said).
//!
//!     cargo run --release --no-default-features --example scene_from_code

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use glug::export::{AtomicFile, write_ply};
use glug::geometry::{Motion, Move, Shape, Solid, extract_surface};
use glug::grid::Grid;
use glug::math::Vector;
use glug::sim::{Flow, LiquidBody, Model, Params, Setup, Simulation, Source};

fn setup() -> Setup<3> {
    let pool = Shape::Box { min: Vector::zeros(), max: Vector::from([1.0, 0.3, 0.5]) };
    let nozzle = Shape::Sphere { center: Vector::from([0.35, 0.9, 0.25]), radius: 0.06 };
    let blade = Shape::Box { min: Vector::from([0.25, 0.47, 0.1]), max: Vector::from([0.75, 0.53, 0.4]) };
    let center = Vector::from([0.5, 0.5, 0.25]);
    let turn = Move::Spin { axis: [0.0, 0.0, 1.0], center, rate: 2.0, from: 0.0, until: f64::INFINITY };
    Setup {
        size: [1.0, 1.0, 0.5],
        grid: Grid { cells: [48, 48, 24], dx: 1.0 / 48.0 },
        open: [[false; 2], [false, true], [false; 2]],
        sticky: [[false; 2]; 3],
        slip: [[false; 2]; 3],
        liquids: vec![LiquidBody { shape: pool, flow: Flow::rest() }],
        sources: vec![Source {
            shape: nozzle,
            velocity: Vector::from([0.0, -2.0, 0.0]),
            from: 0.0,
            until: 1.0,
        }],
        drains: Vec::new(),
        air_sources: Vec::new(),
        smoke: Vec::new(),
        smoke_sources: Vec::new(),
        solids: vec![Solid::new("paddle", blade, Motion::new(vec![turn]))],
        joints: Vec::new(),
        params: Params { model: Model::Constraint, ..Params::default() },
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or("out/paddle".to_owned()));
    std::fs::create_dir_all(&folder)?;
    let (mut simulation, stop) = (Simulation::new(&setup())?, AtomicBool::new(false));
    for frame in 1..=30 {
        let Some(report) = simulation.advance_frame(1.0 / 30.0, &stop)? else { break };
        let mesh = extract_surface(simulation.blocks(), simulation.surface());
        let mut file = AtomicFile::create(&folder.join(format!("surface_{frame:04}.ply")))?;
        write_ply(&mesh, &mut file)?;
        file.commit()?;
        println!("frame {frame}: {:.4} m³ of water, {} triangles", report.liquid.volume, mesh.elements.len());
    }
    Ok(())
}
