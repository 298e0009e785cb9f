use glug::geometry::*;
use glug::grid::*;
use glug::math::*;
use glug::sim::*;
use std::sync::atomic::AtomicBool;
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let frames: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let which = std::env::args().nth(3).unwrap();
    if which == "3" {
        go::<3>(n, frames, 0.5, 0.5)
    } else if which == "2" {
        go::<2>(n, frames, 0.5, 0.5)
    } else {
        go::<2>(n, frames, 1.0, 0.47)
    }
}
fn go<const D: usize>(n: usize, frames: usize, w: f64, h: f64) {
    let mut max = Vector::<D>::from_element(1.0);
    max[0] = w;
    max[1] = h;
    let setup = Setup::<D> {
        size: [1.0; D],
        grid: Grid::covering([1.0; D], n),
        open: [[false; 2]; D],
        liquids: vec![LiquidBody { shape: Shape::Box { min: Vector::zeros(), max }, flow: Flow::rest() }],
        sources: vec![],
        drains: vec![],
        solids: vec![],
        params: Params::default(),
    };
    let mut sim = Simulation::new(&setup).unwrap();
    let stop = AtomicBool::new(false);
    for _ in 0..frames {
        let r = sim.advance_frame(1.0 / 30.0, &stop).unwrap().unwrap();
        println!(
            "f{} n{} p{} liq{} it{:?} div {:.1e} vol {:.4} ke {:.3e} pe {:.4e} vmax {:.3} rms {:.2}mm/s  front {:.3}",
            r.frame,
            r.substeps,
            r.particles,
            r.cells.liquid,
            r.solve.iter().map(|s| s.iterations).collect::<Vec<_>>(),
            r.divergence.max,
            r.liquid.volume,
            r.liquid.kinetic_energy,
            r.liquid.potential_energy,
            r.liquid.max_speed,
            (2.0 * r.liquid.kinetic_energy / r.liquid.volume / 1000.0).sqrt() * 1e3,
            r.liquid.front
        );
        print!("   ");
        for (k, v) in &r.seconds {
            print!("{k} {:.1}ms ", v * 1e3);
        }
        println!();
    }
    let m = sim.memory();
    println!(
        "{m:?} per cell {} per particle {}",
        m.grid_bytes / m.near_cells,
        m.particle_bytes / m.particles
    );
}
