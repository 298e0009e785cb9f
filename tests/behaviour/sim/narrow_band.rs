//! Liquid with a narrow band of particles, against the same with particles everywhere.

use glug::geometry::Shape;
use glug::math::Vector;
use glug::sim::{AirSource, Drain, Flow, FrameReport, Model, Setup, Simulation};
use rayon::ThreadPoolBuilder;

use super::{advance, corner_box, rms_speed, scene_2d, scene_3d, tank};

/// A simulation with so many cells of particles below its surfaces; 0 is for all.
fn banded<const D: usize>(setup: &Setup<D>, width: u32) -> Simulation<D> {
    let mut setup = setup.clone();
    setup.params.narrow_band = width;
    Simulation::new(&setup).expect("it starts")
}

/// Runs both ways, and returns the last frames: all particles first.
fn both<const D: usize>(setup: &Setup<D>, width: u32, frames: usize, seconds: f64) -> [FrameReport; 2] {
    [0, width].map(|width| {
        let mut simulation = banded(setup, width);
        (0..frames).map(|_| advance(&mut simulation, seconds)).last().expect("some frames")
    })
}

/// A closed box, nearly full.
fn deep_pool<const D: usize>(cells: usize) -> Setup<D> {
    tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.8137], 1.0)])
}

fn off(one: f64, other: f64) -> f64 {
    (one / other - 1.0).abs()
}

/// Every model, water at rest: it stays so, and most of it has no particles.
fn still_water_stays_still<const D: usize>(cells: usize, models: &[Model], share: f64) {
    for &model in models {
        let mut setup = deep_pool::<D>(cells);
        setup.params.model = model;
        setup.params.jitter = 0.0;
        let what = format!("{D}D {}", model.name());
        let [full, band] = [0, 6].map(|width| {
            let mut pool = banded(&setup, width);
            let frames: Vec<_> = (0..15).map(|_| advance(&mut pool, 1.0 / 60.0)).collect();
            frames
        });
        for (full, band) in full.iter().zip(&band) {
            let [still, speed] = [full, band].map(|report| rms_speed(report, 1000.0));
            assert!(speed < 1e-3 && speed < 1.1 * still + 1e-5, "{what}: {speed} and {still} m/s");
            assert!((band.particles as f64) < share * full.particles as f64, "{what}: {}", band.particles);
            let lost = off(band.liquid.volume, full.liquid.volume);
            assert!(lost < 1e-4, "{what}: {lost} of the volume");
        }
    }
}

#[test]
fn still_water_stays_still_2d() {
    still_water_stays_still::<2>(72, &Model::ALL, 0.6);
}

#[test]
fn still_water_stays_still_3d() {
    still_water_stays_still::<3>(40, &[Model::FreeSurface, Model::Constraint], 0.8);
}

/// Liquid that moves evenly has a core that moves with it: nothing is lost, and nothing else is felt.
fn a_core_moves_along<const D: usize>(cells: usize, radius: f64, seconds: f64) {
    let velocity = Vector::<D>::from_fn(|k, _| [0.7, 0.31, -0.53][k]);
    let center = Vector::from_fn(|k, _| 0.5 - 0.1 * f64::signum(velocity[k]));
    let mut setup = tank([1.0; D], cells, vec![Shape::Sphere { center, radius }]);
    setup.liquids[0].flow = Flow { velocity, center, spin: [0.0; 3] };
    setup.params.gravity = 0.0;
    let mut ball = banded(&setup, 6);
    let start = ball.survey();
    for _ in 0..(0.2 / seconds).round() as usize {
        let report = advance(&mut ball, seconds);
        assert!(report.particles * 20 < start.particles * 17, "{D}D: {} particles", report.particles);
        let lost = off(report.liquid.volume, start.liquid.volume);
        assert!(lost < 2e-3, "{D}D: volume off by {lost}");
        for k in 0..D {
            let way = report.liquid.centroid[k] - start.liquid.centroid[k];
            assert!((way - report.time * velocity[k]).abs() < 1e-3, "{D}D axis {k}: {way} m");
        }
    }
    for found in ball.particle_velocities() {
        let off = (0..D).map(|k| (f64::from(found[k]) - velocity[k]).abs()).fold(0.0, f64::max);
        assert!(off < 2e-3, "{D}D: {off} m/s");
    }
}

/// In steps shorter than a cell, and longer.
#[test]
fn a_core_moves_along_2d() {
    a_core_moves_along::<2>(96, 0.3, 0.01);
    a_core_moves_along::<2>(96, 0.3, 0.04);
}

#[test]
fn a_core_moves_along_3d() {
    a_core_moves_along::<3>(56, 0.33, 0.02);
    a_core_moves_along::<3>(56, 0.33, 0.05);
}

/// Liquid that spins keeps its energy, and its angular momentum with it.
fn spinning_liquid_keeps_its_energy<const D: usize>(cells: usize, radius: f64) {
    let center = Vector::repeat(0.5);
    let mut setup = tank([1.0; D], cells, vec![Shape::Sphere { center, radius }]);
    setup.liquids[0].flow = Flow { velocity: Vector::zeros(), center, spin: [0.0, 0.0, 3.0] };
    setup.params.gravity = 0.0;
    let start = banded(&setup, 0).survey().liquid.kinetic_energy;
    let [full, band] = both(&setup, 6, 12, 0.02);
    let [full_share, share] = [&full, &band].map(|report| report.liquid.kinetic_energy / start);
    println!("{D}D: {share:.4} of the energy, {full_share:.4} with all particles");
    assert!(share > full_share - 5e-3 && share < 1.005, "{D}D: {share} against {full_share}");
    assert!(band.particles * 10 < full.particles * 9, "{D}D: {} of {}", band.particles, full.particles);
}

#[test]
fn spinning_liquid_keeps_its_energy_2d() {
    spinning_liquid_keeps_its_energy::<2>(96, 0.35);
}

#[test]
fn spinning_liquid_keeps_its_energy_3d() {
    spinning_liquid_keeps_its_energy::<3>(48, 0.4);
}

/// Two turns of a vortex in a box that is full: the grid alone carries most of it, and loses no more than particles do.
#[test]
fn a_vortex_keeps_its_energy() {
    let setup = scene_2d("vortex_box_2d").setup;
    let start = banded(&setup, 0).survey().liquid.kinetic_energy;
    let [full, band] = both(&setup, 6, 60, 1.0 / 30.0);
    let [full_share, share] = [&full, &band].map(|report| report.liquid.kinetic_energy / start);
    println!("{share:.4} of the energy, {full_share:.4} with all particles");
    assert!(share > full_share - 0.01 && share < 1.001, "{share} against {full_share}");
    assert!(band.particles * 2 < full.particles, "{} of {}", band.particles, full.particles);
}

/// Whoever switches it on or off in the middle of a splash keeps volume and energy; all particles come back.
fn it_is_switched_on_and_off_on_the_way<const D: usize>(cells: usize) {
    let drop = Shape::Sphere { center: Vector::repeat(0.5) + Vector::from_fn(|k, _| [0.0, 0.35, 0.0][k]), radius: 0.1 };
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.7], 1.0), drop]);
    setup.liquids[1].flow.velocity[1] = -2.0;
    let [mut full, mut band] = [0, 0].map(|width| banded(&setup, width));
    for frame in 0..24 {
        band.params.narrow_band = if (6..18).contains(&frame) { 8 } else { 0 };
        let [full, band] = [&mut full, &mut band].map(|splash| advance(splash, 1.0 / 60.0));
        let count = off(band.particles as f64, full.particles as f64);
        match frame {
            8..18 => assert!(count > 0.1, "{D}D frame {frame}: {} of {}", band.particles, full.particles),
            19.. => assert!(count < 0.02, "{D}D frame {frame}: {} of {}", band.particles, full.particles),
            _ => {}
        }
        let [volume, energy] = [
            off(band.liquid.volume, full.liquid.volume),
            off(
                band.liquid.kinetic_energy + band.liquid.potential_energy,
                full.liquid.kinetic_energy + full.liquid.potential_energy,
            ),
        ];
        assert!(volume < 3e-3 && energy < 0.01, "{D}D frame {frame}: {volume} of volume, {energy} of energy");
    }
}

#[test]
fn it_is_switched_on_and_off_on_the_way_2d() {
    it_is_switched_on_and_off_on_the_way::<2>(96);
}

#[test]
fn it_is_switched_on_and_off_on_the_way_3d() {
    it_is_switched_on_and_off_on_the_way::<3>(48);
}

/// A dam breaks as fast.
#[test]
fn a_dam_break_runs_as_fast() {
    let mut scene = scene_2d("dam_break_2d");
    scene.setup.params.narrow_band = 0;
    for (full, band) in {
        let [mut full, mut band] = [0, 6].map(|width| banded(&scene.setup, width));
        (0..50).map(move |_| (advance(&mut full, 0.005), advance(&mut band, 0.005))).collect::<Vec<_>>()
    } {
        let lag = off(band.liquid.front, full.liquid.front);
        assert!(lag < 0.01, "frame {}: {} instead of {}", full.frame, band.liquid.front, full.liquid.front);
    }
}

/// Drains and nozzles find liquid where they are, though everything around them is without particles.
#[test]
fn liquid_comes_and_goes_as_before() {
    let mut setup = deep_pool::<2>(96);
    let ball = |x: f64| Shape::Sphere { center: Vector::from([x, 0.35]), radius: 0.03 };
    setup.drains.push(Drain { shape: ball(0.3), from: 0.05, until: 0.06 });
    setup.air_sources.push(AirSource { shape: ball(0.7), rate: 0.0, every: 9.0, from: 0.05, until: 0.1 });
    setup.params.model = Model::Constraint;
    let [full, band] = both(&setup, 6, 10, 1.0 / 60.0);
    let lost = off(band.liquid.volume, full.liquid.volume);
    assert!(lost < 2e-3, "{lost} of the volume");
    assert!(band.bubbles.len() == full.bubbles.len() && full.bubbles.len() > 1, "{}", band.bubbles.len());
    assert!(band.particles * 4 < full.particles * 3, "{} of {}", band.particles, full.particles);
}

/// A little liquid keeps all its particles: the band would cost more than it saves.
#[test]
fn shallow_water_is_left_alone() {
    let setup = tank([1.0; 2], 64, vec![corner_box([0.0, 0.0], [1.0, 0.25], 1.0)]);
    let [full, band] = both(&setup, 6, 4, 1.0 / 60.0);
    assert_eq!(band.particles, full.particles);
}

/// All that a run leaves behind on so many threads, saved and read again in the middle if wanted.
fn traces<const D: usize>(setup: &Setup<D>, frames: usize, threads: usize, is_saved: bool) -> (Vec<u32>, usize) {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut simulation = banded(setup, 6);
        for frame in 0..frames {
            if is_saved && frame == frames / 2 {
                let mut bytes = Vec::new();
                simulation.save(&mut bytes).expect("memory takes everything");
                assert!(!simulation.state().core.cells.is_empty(), "{D}D: there is something to save");
                simulation = Simulation::load(setup, bytes.as_slice()).expect("it is whole");
            }
            advance(&mut simulation, 1.0 / 30.0);
        }
        let particles = simulation.particle_positions().iter().chain(simulation.particle_velocities());
        (particles.flatten().map(|x| x.to_bits()).collect(), simulation.survey().particles)
    })
}

fn threads_and_checkpoints_do_not_change_a_bit<const D: usize>(setup: &Setup<D>, frames: usize) {
    let one = traces(setup, frames, 1, false);
    for (threads, is_saved) in [(2, false), (4, false), (2, true)] {
        let other = traces(setup, frames, threads, is_saved);
        assert!(one == other, "{D}D: {threads} threads, saved: {is_saved}: particles differ");
    }
}

#[test]
fn threads_and_checkpoints_do_not_change_a_bit_2d() {
    threads_and_checkpoints_do_not_change_a_bit(&scene_2d("pool_tiles_2d").setup, 12);
}

#[test]
fn threads_and_checkpoints_do_not_change_a_bit_3d() {
    threads_and_checkpoints_do_not_change_a_bit(&scene_3d("splash_tank", 48).setup, 6);
}
