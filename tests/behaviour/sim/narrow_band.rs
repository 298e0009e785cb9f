//! Liquid with a narrow band of particles, against the same with particles everywhere.

use glug::geometry::{Boundary, Shape, Walls};
use glug::grid::{Blocks, FaceMask, Field, Grid, SIDE, block_cells, masks};
use glug::liquid::{Core, CoreScratch};
use glug::math::{Vector, unflatten};
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
        let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.75], 1.0)]);
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

/// A box with equal sides: less of it is near its surface than of a ball.
fn cube<const D: usize>(center: Vector<D>, width: f64) -> Shape<D> {
    let half = Vector::repeat(0.5 * width);
    Shape::Box { min: center - half, max: center + half }
}

/// Liquid that moves evenly has a core that moves with it: nothing is lost, and nothing else is felt.
fn a_core_moves_along<const D: usize>(cells: usize, width: f64, seconds: f64) {
    let velocity = Vector::<D>::from_fn(|k, _| [0.7, 0.31, -0.53][k]);
    let center = Vector::from_fn(|k, _| 0.5 - 0.1 * f64::signum(velocity[k]));
    let mut setup = tank([1.0; D], cells, vec![cube(center, width)]);
    setup.liquids[0].flow = Flow { velocity, center, spin: [0.0; 3] };
    setup.params.gravity = 0.0;
    // What is measured of the volume jitters, and correcting it pushes the surface by millimetres a second.
    setup.params.volume_correction = 0.0;
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
        assert!(off < 1e-5, "{D}D: {off} m/s");
    }
}

/// In steps shorter than a cell, and longer.
#[test]
fn a_core_moves_along_2d() {
    a_core_moves_along::<2>(96, 0.55, 0.01);
    a_core_moves_along::<2>(96, 0.55, 0.04);
}

#[test]
fn a_core_moves_along_3d() {
    a_core_moves_along::<3>(56, 0.63, 0.02);
    a_core_moves_along::<3>(56, 0.63, 0.05);
}

/// Liquid that spins keeps its energy, and its angular momentum with it.
fn spinning_liquid_keeps_its_energy<const D: usize>(cells: usize, width: f64, frames: usize) {
    let center = Vector::repeat(0.5);
    let mut setup = tank([1.0; D], cells, vec![cube(center, width)]);
    setup.liquids[0].flow = Flow { velocity: Vector::zeros(), center, spin: [0.0, 0.0, 3.0] };
    setup.params.gravity = 0.0;
    let start = banded(&setup, 0).survey().liquid.kinetic_energy;
    let [full, band] = both(&setup, 6, frames, 0.02);
    let [full_share, share] = [&full, &band].map(|report| report.liquid.kinetic_energy / start);
    println!("{D}D: {share:.4} of the energy, {full_share:.4} with all particles");
    assert!(share > full_share - 5e-3 && share < 1.005, "{D}D: {share} against {full_share}");
    assert!(band.particles * 10 < full.particles * 9, "{D}D: {} of {}", band.particles, full.particles);
}

#[test]
fn spinning_liquid_keeps_its_energy_2d() {
    spinning_liquid_keeps_its_energy::<2>(96, 0.65, 12);
}

#[test]
fn spinning_liquid_keeps_its_energy_3d() {
    spinning_liquid_keeps_its_energy::<3>(52, 0.68, 6);
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
    let drop = Shape::Sphere {
        center: Vector::repeat(0.5) + Vector::from_fn(|k, _| [0.0, 0.35, 0.0][k]),
        radius: 0.1,
    };
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.7], 1.0), drop]);
    setup.liquids[1].flow.velocity[1] = -2.0;
    let [mut full, mut band] = [0, 0].map(|width| banded(&setup, width));
    for frame in 0..24 {
        band.params.narrow_band = if (6..18).contains(&frame) { 8 } else { 0 };
        let [full, band] = [&mut full, &mut band].map(|splash| advance(splash, 1.0 / 60.0));
        let count = off(band.particles as f64, full.particles as f64);
        match frame {
            8..=17 => assert!(count > 0.1, "{D}D frame {frame}: {} of {}", band.particles, full.particles),
            19.. => assert!(count < 0.05, "{D}D frame {frame}: {} of {}", band.particles, full.particles),
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
    let setup = scene_2d("dam_break_2d").setup;
    let [mut full, mut band] = [0, 6].map(|width| banded(&setup, width));
    for frame in 0..50 {
        let [full, band] = [&mut full, &mut band].map(|dam| advance(dam, 0.005));
        let lag = off(band.liquid.front, full.liquid.front);
        assert!(lag < 0.01, "frame {frame}: {} instead of {}", band.liquid.front, full.liquid.front);
        let saved = band.particles * 10 < full.particles * 9;
        assert!(saved || frame > 10, "frame {frame}: {} of {}", band.particles, full.particles);
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
    let setup = tank([1.0; 2], 64, vec![corner_box([0.0, 0.0], [1.0, 0.12], 1.0)]);
    let [full, band] = both(&setup, 6, 4, 1.0 / 60.0);
    assert_eq!(band.particles, full.particles);
}

/// A velocity that is a parabola along every axis is carried exactly, over ways shorter than a cell and longer.
fn parabolas_are_carried<const D: usize>(way: [f64; 3]) {
    const CELLS: usize = 40;
    let blocks = Blocks::<D>::all(Grid { cells: [CELLS; D], dx: 1.0 });
    let open = Walls {
        solids: Vec::new(),
        size: [CELLS as f64; D],
        open: [[true; 2]; D],
        sticky: [[false; 2]; D],
        slip: [[false; 2]; D],
        voxels: false,
    };
    let mut boundary = Boundary::new();
    boundary.update(&blocks, &open, 0.0);
    let place = |slot: usize, local: usize, axis: usize| -> [f64; D] {
        let (first, at) = (blocks.first_cell(slot), unflatten::<D>(local, SIDE));
        std::array::from_fn(|k| f64::from(first[k]) + at[k] as f64 + if k == axis { 0.0 } else { 0.5 } - 17.3)
    };
    let parabola = |x: [f64; D], axis: usize| -> f64 {
        (0..D).map(|k| 1.0 - 0.02 * (x[k] - axis as f64) + 0.01 * x[k] * x[k]).product()
    };
    let field = |value: &dyn Fn([f64; D], usize) -> f64| -> [Field<f32>; D] {
        std::array::from_fn(|axis| {
            let mut field = Field::new(block_cells(D), 0.0);
            field.resize(blocks.slot_count());
            for &slot in blocks.slots().as_slice() {
                for (local, u) in field.block_mut(slot as usize).iter_mut().enumerate() {
                    *u = value(place(slot as usize, local, axis), axis) as f32;
                }
            }
            field
        })
    };
    let (now, midpoint) = (field(&parabola), field(&|_, axis| way[axis]));
    let (mut core, mut scratch) = (Core::default(), CoreScratch::<D>::new());
    core.cells.fill(&blocks, |slot| {
        let inside = blocks.first_cell(slot).iter().all(|&c| c >= 8 && c + 16 <= CELLS as i32);
        if inside { masks::all(D) } else { masks::NONE }
    });
    scratch.advect(&core, &blocks, &boundary, &now, &midpoint, 1.0);
    let (mut velocity, mut known) = (now.clone(), std::array::from_fn(|_| FaceMask::new(D)));
    known.iter_mut().for_each(|known| known.bits.resize(blocks.slot_count()));
    scratch.write_velocity(&mut velocity, &mut known);
    let mut checked = 0;
    for (axis, known) in known.iter().enumerate() {
        for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
            for local in (0..block_cells(D)).filter(|&local| known.get(slot, local)) {
                let x = place(slot, local, axis);
                let (found, expected) = (
                    velocity[axis].block(slot)[local],
                    parabola(std::array::from_fn(|k| x[k] - way[k]), axis),
                );
                let error = (f64::from(found) - expected).abs();
                assert!(error < 3e-5 * expected.abs().max(1.0), "{D}D {axis} {x:?}: {found}, not {expected}");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{D}D: {checked} faces");
}

#[test]
fn parabolas_are_carried_2d() {
    parabolas_are_carried::<2>([0.3, -0.7, 0.0]);
    parabolas_are_carried::<2>([2.3, -3.6, 0.0]);
}

#[test]
fn parabolas_are_carried_3d() {
    parabolas_are_carried::<3>([0.3, -0.7, 0.45]);
    parabolas_are_carried::<3>([2.3, -1.6, 3.7]);
}

/// All that a run leaves behind on so many threads, saved and read again in the middle if wanted.
fn traces<const D: usize>(
    setup: &Setup<D>,
    frames: usize,
    threads: usize,
    is_saved: bool,
) -> (Vec<u32>, usize) {
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
