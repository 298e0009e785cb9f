//! Built-in scenes against what is known about them.

use std::fs;
use std::path::Path;

use glug::sim::Simulation;

use super::{advance, rms_speed, scene_2d, scene_3d};

#[test]
fn still_water_in_a_tilted_tank_stays_still() {
    let scene = scene_2d("tilted_tank_2d");
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    for frame in 1..=90 {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        let speed = rms_speed(&report, scene.setup.params.density);
        assert!(speed < 5e-3, "frame {frame}: {:.2} mm/s", 1e3 * speed);
    }
}

#[test]
fn a_vortex_in_a_turned_box_keeps_its_energy() {
    let scene = scene_2d("vortex_box_2d");
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let mut first = None;
    for frame in 1..=30 {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        assert!(report.solve.iter().all(|solve| solve.converged), "frame {frame}: {:?}", report.solve);
        assert!(report.warnings.is_empty(), "frame {frame}: {:?}", report.warnings);
        let energy = report.liquid.kinetic_energy;
        let kept = energy / *first.get_or_insert(energy);
        assert!(kept > 0.9, "frame {frame}: {:.1} % of the energy left", 100.0 * kept);
        assert!(kept < 1.01, "frame {frame}: energy came from nowhere, {kept:.3}");
    }
}

/// The front of a dam break against the measurements of Martin and Moyce 1952.
#[test]
fn a_dam_break_runs_as_fast_as_measured() {
    const WIDTH: f64 = 0.05715;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/martin_moyce_1952.csv");
    let table = fs::read_to_string(path).expect("measurements");
    let rows = table.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let measured = rows.map(|line| {
        let (time, front) = line.split_once(',').expect("two columns");
        let number = |text: &str| text.trim().parse::<f64>().expect("a number");
        [number(time), number(front)]
    });
    let measured: Vec<[f64; 2]> = measured.filter(|[_, front]| *front <= 6.0).collect();
    assert_eq!(measured.len(), 7, "points up to six widths");

    let scene = scene_2d("dam_break_2d");
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let per_second = (2.0 * scene.setup.params.gravity / WIDTH).sqrt();
    let mut run = vec![[0.0, 1.0]];
    while run.last().is_some_and(|[time, _]| *time < measured[6][0]) {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        run.push([report.time * per_second, report.liquid.front / WIDTH]);
    }
    let mut sum = 0.0;
    for [time, front] in &measured {
        let next = run.partition_point(|[t, _]| t < time);
        let ([t0, z0], [t1, z1]) = (run[next - 1], run[next]);
        let found = z0 + (z1 - z0) * (time - t0) / (t1 - t0);
        let deviation = found / front - 1.0;
        assert!(deviation.abs() < 0.12, "T = {time}: front at {found:.3}, measured {front}");
        sum += deviation.abs();
    }
    println!("mean deviation from the measured front: {:.1} %", 100.0 * sum / measured.len() as f64);
}

#[test]
fn a_dam_break_keeps_its_volume() {
    let scene = scene_3d("dam_break", 32);
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    for frame in 1..=60 {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        // A quarter of a cubic metre at the start. Spray is seen smaller than it is, until it falls back.
        let drift = report.liquid.volume / 0.25 - 1.0;
        assert!(drift.abs() < 0.04, "frame {frame}: {:.2} % of the volume", 100.0 * drift);
        assert!(report.warnings.is_empty(), "frame {frame}: {:?}", report.warnings);
    }
}
