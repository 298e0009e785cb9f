//! Liquid that comes, goes and is pushed.

use glug::geometry::{Motion, Move, Solid};
use glug::math::Vector;
use glug::sim::{Drain, Simulation, Source};

use super::{advance, corner_box, tank};

fn an_open_side_lets_the_liquid_out<const D: usize>() {
    let mut setup = tank([1.0; D], 24, vec![corner_box([0.0, 0.0], [0.4, 0.6], 1.0)]);
    setup.open[0][1] = true;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let mut volumes = Vec::new();
    for _ in 0..90 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        assert!(report.liquid.front <= 1.0 + 1e-6, "{D}D: liquid at {} is outside", report.liquid.front);
        volumes.push(report.liquid.volume);
    }
    let left = volumes[89] / volumes[0];
    assert!(left < 0.2, "{D}D: {:.0} % are still there", 100.0 * left);
    let rise = volumes.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max) / volumes[0];
    assert!(rise < 0.02, "{D}D: {:.1} % came back in a frame", 100.0 * rise);
}

#[test]
fn an_open_side_lets_the_liquid_out_2d() {
    an_open_side_lets_the_liquid_out::<2>();
}

#[test]
fn an_open_side_lets_the_liquid_out_3d() {
    an_open_side_lets_the_liquid_out::<3>();
}

fn a_source_fills_and_a_drain_empties<const D: usize>() {
    let mut setup = tank([1.0; D], 24, Vec::new());
    let (from, speed, running) = ([0.4, 0.8], 1.5, 1.0);
    let down = Vector::from_fn(|axis, _| if axis == 1 { -speed } else { 0.0 });
    setup.sources.push(Source {
        shape: corner_box(from, [0.6, 0.9], 1.0),
        velocity: down,
        from: 0.0,
        until: running,
    });
    setup.drains.push(Drain {
        shape: corner_box([0.0, -0.1], [1.0, 0.1], 1.0),
        from: 1.5,
        until: f64::INFINITY,
    });
    let mut simulation = Simulation::new(&setup).expect("a source is enough to start");
    let (mut full, mut last) = (0.0, f64::NAN);
    for frame in 1..=120 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        if report.time < 1.5 {
            full = report.liquid.volume;
        }
        last = report.liquid.volume;
        assert!(report.liquid.volume.is_finite(), "{D}D frame {frame}");
    }
    // What the source holds, and what passes through its mouth.
    let expected = 0.2 * 0.1 + 0.2 * speed * running;
    assert!((full / expected - 1.0).abs() < 0.15, "{D}D: {full:.3} came, expected {expected:.3}");
    assert!(last < 0.05 * full, "{D}D: {last:.4} of {full:.3} are left");
}

#[test]
fn a_source_fills_and_a_drain_empties_2d() {
    a_source_fills_and_a_drain_empties::<2>();
}

#[test]
fn a_source_fills_and_a_drain_empties_3d() {
    a_source_fills_and_a_drain_empties::<3>();
}

/// What a drain took must not come back as volume to be made up for.
fn a_drain_takes_liquid_for_good<const D: usize>() {
    let mut setup = tank([1.0; D], 24, vec![corner_box([0.0, 0.0], [1.0, 0.5], 1.0)]);
    let half = corner_box([0.5, -0.1], [1.1, 1.0], 1.0);
    setup.drains.push(Drain { shape: half, from: 0.05, until: 0.06 });
    setup.params.min_substeps = 4;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let before = advance(&mut simulation, 1.0 / 30.0).liquid.volume;
    let after = (0..45).map(|_| advance(&mut simulation, 1.0 / 30.0)).last().expect("many frames");
    let left = after.liquid.volume / before;
    assert!((left - 0.5).abs() < 0.03, "{D}D: half was taken, {:.1} % are there", 100.0 * left);
}

#[test]
fn a_drain_takes_liquid_for_good_2d() {
    a_drain_takes_liquid_for_good::<2>();
}

#[test]
fn a_drain_takes_liquid_for_good_3d() {
    a_drain_takes_liquid_for_good::<3>();
}

/// A piston as high as the tank halves the length that the water has.
fn a_moving_wall_pushes_the_water<const D: usize>() {
    let mut size = [0.5; D];
    (size[0], size[1]) = (1.0, 1.0);
    let mut setup = tank(size, 24, vec![corner_box([0.1, 0.0], [1.0, 0.3], 0.5)]);
    let glide = Vector::from_fn(|axis, _| if axis == 0 { 0.2 } else { 0.0 });
    setup.solids.push(Solid::new(
        "piston",
        corner_box([-1.0, -0.5], [0.1, 1.5], 1.0),
        Motion::new(vec![Move::Glide { velocity: glide, from: 0.0, until: 2.0 }]),
    ));
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let first = advance(&mut simulation, 1.0 / 30.0);
    let mut last = first.clone();
    for frame in 2..=105 {
        last = advance(&mut simulation, 1.0 / 30.0);
        let wall = 0.1 + 0.2 * last.time.min(2.0);
        let dx = last.dx;
        for x in simulation.particle_positions().iter().filter(|x| !x[0].is_nan()) {
            assert!(x[0] as f64 * dx > wall - 0.25 * dx, "{D}D frame {frame}: {x:?} is in the piston");
        }
        let drift = last.liquid.volume / first.liquid.volume - 1.0;
        assert!(drift.abs() < 0.05, "{D}D frame {frame}: {:.1} % of the volume", 100.0 * drift);
    }
    // Half as long, so twice as high, and between the piston and the wall.
    let [x, y] = [last.liquid.centroid[0], last.liquid.centroid[1]];
    assert!((x - 0.75).abs() < 0.03, "{D}D: the middle is at {x:.3}");
    assert!((y - 0.27).abs() < 0.04, "{D}D: the middle is {y:.3} high");
    assert!(last.liquid.potential_energy > 1.5 * first.liquid.potential_energy, "{D}D: lifted");
}

#[test]
fn a_moving_wall_pushes_the_water_2d() {
    a_moving_wall_pushes_the_water::<2>();
}

#[test]
fn a_moving_wall_pushes_the_water_3d() {
    a_moving_wall_pushes_the_water::<3>();
}
