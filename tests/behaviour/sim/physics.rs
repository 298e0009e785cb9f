//! Motions that are known beforehand.

use glug::geometry::Shape;
use glug::math::Vector;
use glug::sim::{FrameReport, Simulation};

use super::{advance, corner_box, rms_speed, tank};

fn a_drop_falls_as_all_things_fall<const D: usize>() {
    let mut center = Vector::<D>::repeat(0.5);
    center[1] = 0.8;
    let cells = if D == 2 { 64 } else { 32 };
    let mut setup = tank([1.0; D], cells, vec![Shape::Sphere { center, radius: 0.12 }]);
    setup.params.min_substeps = 10;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let (gravity, frame) = (setup.params.gravity, 1.0 / 60.0);
    let mut start = None;
    for _ in 0..18 {
        let report = advance(&mut simulation, frame);
        let time = report.time;
        let start = *start.get_or_insert(report.liquid.centroid[1] + 0.5 * gravity * time * time);
        // Steps of length dt carry the velocity of their beginning.
        let lag = 0.5 * gravity * time * frame / 10.0;
        let error = report.liquid.centroid[1] - (start - 0.5 * gravity * time * time);
        assert!(error.abs() < lag + 0.1 * report.dx, "{D}D: {error:.4} m off at {time:.3} s");
        let sideways = (0..D).filter(|&k| k != 1).map(|k| (report.liquid.centroid[k] - 0.5).abs());
        assert!(sideways.fold(0.0, f64::max) < 0.1 * report.dx, "{D}D: {:?}", report.liquid.centroid);
        let velocities = simulation.particle_velocities();
        let mean = velocities.iter().map(|v| v[1] as f64).sum::<f64>() / velocities.len() as f64;
        let slower = 1.0 + mean / (gravity * time);
        assert!(slower.abs() < 1e-3, "{D}D: {mean} m/s at {time:.3} s");
    }
    assert!((start.unwrap_or(0.0) - 0.8).abs() < 0.01, "{D}D: started at {start:?}");
}

#[test]
fn a_drop_falls_as_all_things_fall_2d() {
    a_drop_falls_as_all_things_fall::<2>();
}

#[test]
fn a_drop_falls_as_all_things_fall_3d() {
    a_drop_falls_as_all_things_fall::<3>();
}

/// How far above its parabola a drop is after 0.3 s in so many substeps per frame, in metres.
fn lag_of_a_falling_drop(substeps: u32) -> f64 {
    let center = Vector::<2>::new(0.5, 0.8);
    let mut setup = tank([1.0; 2], 64, vec![Shape::Sphere { center, radius: 0.12 }]);
    setup.params.min_substeps = substeps;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let report = (0..18).map(|_| advance(&mut simulation, 1.0 / 60.0)).last().expect("many frames");
    report.liquid.centroid[1] - (0.8 - 0.5 * setup.params.gravity * report.time * report.time)
}

#[test]
fn long_substeps_do_not_hold_up_a_falling_drop() {
    for substeps in [1, 2, 4] {
        let lag = lag_of_a_falling_drop(substeps);
        // What it would be if substeps carried the velocity of their beginning.
        let first_order = 0.5 * 9.81 * 0.3 / (60.0 * substeps as f64);
        assert!(
            lag.abs() < 0.15 * first_order + 0.05 / 64.0,
            "{substeps} substeps: {lag:.4} m of {first_order:.4}"
        );
    }
}

fn still_water_stays_still<const D: usize>() {
    let setup = tank([1.0; D], 24, vec![corner_box([0.0, 0.0], [1.0, 0.43], 1.0)]);
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let mut start = None;
    for frame in 1..=60 {
        let report = advance(&mut simulation, 1.0 / 60.0);
        let speed = rms_speed(&report, setup.params.density);
        assert!(speed < 5e-3, "{D}D frame {frame}: {:.2} mm/s", 1e3 * speed);
        let drift = report.liquid.volume / *start.get_or_insert(report.liquid.volume) - 1.0;
        assert!(drift.abs() < 0.005, "{D}D frame {frame}: {:.2} % of the volume", 100.0 * drift);
    }
}

#[test]
fn still_water_stays_still_2d() {
    still_water_stays_still::<2>();
}

#[test]
fn still_water_stays_still_3d() {
    still_water_stays_still::<3>();
}

fn a_splash_keeps_volume_and_makes_no_energy<const D: usize>() {
    let mut center = Vector::<D>::repeat(0.5);
    center[1] = 0.65;
    let liquids = vec![corner_box([0.0, 0.0], [1.0, 0.3], 1.0), Shape::Sphere { center, radius: 0.15 }];
    let setup = tank([1.0; D], if D == 2 { 48 } else { 24 }, liquids);
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let first = advance(&mut simulation, 1.0 / 30.0);
    let energy = |report: &FrameReport| report.liquid.kinetic_energy + report.liquid.potential_energy;
    let mut fastest: f64 = 0.0;
    for frame in 2..=45 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        fastest = fastest.max(report.liquid.max_speed);
        assert!(report.solve.iter().all(|solve| solve.converged), "{D}D frame {frame}: {:?}", report.solve);
        let drift = report.liquid.volume / first.liquid.volume - 1.0;
        assert!(drift.abs() < 0.05, "{D}D frame {frame}: {:.2} % of the volume", 100.0 * drift);
        // A falling drop gains a little: steps carry the velocity of their beginning.
        let gain = energy(&report) / energy(&first) - 1.0;
        assert!(gain < 0.04, "{D}D frame {frame}: {:.2} % more energy", 100.0 * gain);
    }
    // The drop arrives at 2.2 m/s; jets are faster, but not by much.
    assert!(fastest > 1.5 && fastest < 6.0, "{D}D: {fastest} m/s");
}

#[test]
fn a_splash_keeps_volume_and_makes_no_energy_2d() {
    a_splash_keeps_volume_and_makes_no_energy::<2>();
}

#[test]
fn a_splash_keeps_volume_and_makes_no_energy_3d() {
    a_splash_keeps_volume_and_makes_no_energy::<3>();
}
