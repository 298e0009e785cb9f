//! Liquid in tiles without particles deep inside, against the same with all of them.

use std::sync::atomic::AtomicBool;

use glug::geometry::{Boundary, Shape, Walls};
use glug::grid::{Blocks, FaceMask, Field, Grid, SIDE, block_cells, masks};
use glug::liquid::{Core, CoreScratch, MOST_CELLS};
use glug::math::{Vector, unflatten};
use glug::sim::{AirSource, Bubbles, Drain, Flow, FrameReport, Model, Setup, Simulation};
use rayon::ThreadPoolBuilder;

use super::waves::{heights, off};
use crate::sim::{advance, corner_box, scene_2d, tank};

/// A velocity that is affine without divergence, in cells: `gradient · (x − centre)`.
fn gradient<const D: usize>(axis: usize, k: usize) -> f64 {
    let stretch = [0.05, -0.02, -0.03];
    match (axis, k) {
        (1, 1) if D == 2 => -stretch[0],
        (a, k) if a == k => stretch[a],
        _ => 0.08 * (axis as f64 - k as f64) + 0.01 * (axis + k) as f64,
    }
}

/// Without any particle, an affine field is carried along with itself: `u(x) = A x` becomes `A X(x)`, where the way
/// back of a third-order scheme is `X = (1 − A + A²/2 − A³/6) x` over a unit of time.
fn affine_fields_are_carried<const D: usize>(cells: usize) {
    let blocks = Blocks::<D>::all(Grid { cells: [cells; D], dx: 1.0 });
    let centre = 0.5 * cells as f64 - 3.3;
    let apply = |x: [f64; D]| -> [f64; D] {
        std::array::from_fn(|axis| (0..D).map(|k| gradient::<D>(axis, k) * x[k]).sum())
    };
    let place = |slot: usize, local: usize, axis: usize| -> [f64; D] {
        let (first, at) = (blocks.first_cell(slot), unflatten::<D>(local, SIDE));
        std::array::from_fn(|k| {
            f64::from(first[k]) + at[k] as f64 + if k == axis { 0.0 } else { 0.5 } - centre
        })
    };
    let mut velocity: [Field<f32>; D] = std::array::from_fn(|_| Field::new(block_cells(D), 0.0));
    let mut known: [FaceMask; D] = std::array::from_fn(|_| FaceMask::new(D));
    for (axis, (field, known)) in velocity.iter_mut().zip(&mut known).enumerate() {
        field.resize(blocks.slot_count());
        known.bits.resize(blocks.slot_count());
        for &slot in blocks.slots().as_slice() {
            for (local, u) in field.block_mut(slot as usize).iter_mut().enumerate() {
                *u = apply(place(slot as usize, local, axis))[axis] as f32;
            }
        }
    }
    let open = Walls {
        solids: Vec::new(),
        size: [cells as f64; D],
        open: [[true; 2]; D],
        sticky: [[false; 2]; D],
        slip: [[false; 2]; D],
        voxels: false,
    };
    let mut boundary = Boundary::new();
    boundary.update(&blocks, &open, 0.0);
    let (mut core, mut scratch) = (Core::default(), CoreScratch::<D>::new());
    core.cells.fill(&blocks, |slot| {
        let inside = blocks.first_cell(slot).iter().all(|&c| c >= 8 && c + 16 <= cells as i32);
        if inside { masks::all(D) } else { masks::NONE }
    });
    scratch.advect(&core, &blocks, &boundary, &velocity, &velocity, 1.0);
    assert!(scratch.moved.len() > core.cells.len() && !core.cells.is_empty(), "{D}D: the hollow moves");
    let before = velocity.clone();
    scratch.write_velocity(&mut velocity, &mut known);
    let mut checked = 0;
    for (axis, known) in known.iter().enumerate() {
        for &slot in blocks.slots().as_slice() {
            let slot = slot as usize;
            for local in (0..block_cells(D)).filter(|&local| known.get(slot, local)) {
                let x = place(slot, local, axis);
                let ax = apply(x);
                let aax = apply(ax);
                let aaax = apply(aax);
                let from: [f64; D] = std::array::from_fn(|k| x[k] - ax[k] + aax[k] / 2.0 - aaax[k] / 6.0);
                // No step is so long that liquid goes further.
                if (0..D).any(|k| ax[k].abs().max((x[k] - from[k]).abs()) > MOST_CELLS) {
                    continue;
                }
                let (found, expected) = (f64::from(velocity[axis].block(slot)[local]), apply(from)[axis]);
                assert!((found - expected).abs() < 2e-5, "{D}D {axis} {x:?}: {found}, not {expected}");
                checked += usize::from((found - f64::from(before[axis].block(slot)[local])).abs() > 1e-3);
            }
        }
    }
    assert!(checked > 100 * D, "{D}D: {checked} faces changed");
}

#[test]
fn affine_fields_are_carried_2d() {
    affine_fields_are_carried::<2>(48);
}

#[test]
fn affine_fields_are_carried_3d() {
    affine_fields_are_carried::<3>(40);
}

/// The setup in tiles of 16 below thin bands, reduced or not.
fn tiled<const D: usize>(mut setup: Setup<D>, reduced: bool) -> Simulation<D> {
    setup.params.model = Model::AffineTiles;
    setup.params.bubbles = Bubbles::FreeSurface;
    setup.params.surface_band = 3;
    setup.params.narrow_band = 0;
    setup.params.reduced_advection = reduced;
    Simulation::new(&setup).expect("it starts")
}

/// A closed box, nearly full.
fn deep_pool<const D: usize>(cells: usize) -> Setup<D> {
    tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.8137], 1.0)])
}

/// Mean square speed, m²/s².
fn mean_square(report: &FrameReport) -> f64 {
    2.0 * report.liquid.kinetic_energy / (1000.0 * report.liquid.volume)
}

fn still_water_stays_still<const D: usize>(cells: usize) {
    let [mut full, mut reduced] = [false, true].map(|reduced| tiled(deep_pool::<D>(cells), reduced));
    for frame in 1..=20 {
        let [full, reduced] = [&mut full, &mut reduced].map(|pool| advance(pool, 1.0 / 60.0));
        // Particles laid out with jitter settle a little in the first frames.
        let [still, speed] = [&full, &reduced].map(|report| mean_square(report).sqrt());

        assert!(speed < 1.05 * still + 1e-4 && still < 5e-3, "{D}D frame {frame}: {speed} and {still} m/s");
        assert!(reduced.particles * 5 < full.particles * 4, "{D}D frame {frame}: {}", reduced.particles);
        let lost = reduced.liquid.volume / full.liquid.volume - 1.0;
        assert!(lost.abs() < 1e-4, "{D}D frame {frame}: {lost}");
    }
}

#[test]
fn still_water_stays_still_2d() {
    still_water_stays_still::<2>(64);
}

#[test]
fn still_water_stays_still_3d() {
    still_water_stays_still::<3>(44);
}

/// A ball of liquid in flight, without gravity.
fn flying_ball<const D: usize>(flow: Flow<D>, radius: f64, cells: usize) -> Setup<D> {
    let center = flow.center;
    let mut setup = tank([1.0; D], cells, vec![Shape::Sphere { center, radius }]);
    setup.liquids[0].flow = flow;
    setup.params.gravity = 0.0;
    setup
}

/// Liquid that moves evenly has a core that moves with it, through the grid and in every direction: nothing is lost,
/// and nothing else is felt.
fn a_core_moves_along<const D: usize>(cells: usize, radius: f64) {
    let velocity = Vector::<D>::from_fn(|k, _| [0.7, 0.31, -0.53][k]);
    let center = Vector::from_fn(|k, _| 0.5 - 0.1 * f64::signum(velocity[k]));
    let flow = Flow { velocity, center, spin: [0.0; 3] };
    let mut ball = tiled(flying_ball(flow, radius, cells), true);
    let start = ball.survey();
    for _ in 0..10 {
        let report = advance(&mut ball, 0.02);
        assert!(report.particles * 20 < start.particles * 19, "{D}D: {} particles", report.particles);
        let lost = (report.liquid.volume / start.liquid.volume - 1.0).abs();
        assert!(lost < 2e-3, "{D}D: volume off by {lost}");
        assert!((mean_square(&report) / velocity.norm_squared() - 1.0).abs() < 2e-3, "{D}D");
        for k in 0..D {
            let way = report.liquid.centroid[k] - start.liquid.centroid[k];
            assert!((way - report.time * velocity[k]).abs() < 1e-3, "{D}D axis {k}: {way} m");
        }
    }
    for velocity_found in ball.particle_velocities() {
        let off = (0..D).map(|k| (f64::from(velocity_found[k]) - velocity[k]).abs()).fold(0.0, f64::max);
        assert!(off < 2e-3, "{D}D: {off} m/s");
    }
}

#[test]
fn a_core_moves_along_2d() {
    a_core_moves_along::<2>(96, 0.3);
}

#[test]
fn a_core_moves_along_3d() {
    a_core_moves_along::<3>(56, 0.33);
}

/// A disc that spins keeps spinning, reduced or not.
#[test]
fn a_spinning_disc_keeps_its_energy() {
    let flow = Flow { velocity: Vector::zeros(), center: Vector::repeat(0.5), spin: [0.0, 0.0, 3.0] };
    let [full, reduced] = [false, true].map(|reduced| {
        let mut disc = tiled(flying_ball::<2>(flow.clone(), 0.35, 96), reduced);
        let start = disc.survey().liquid.kinetic_energy;
        let end = (0..10).map(|_| advance(&mut disc, 0.02)).last().expect("ten frames");
        (end.liquid.kinetic_energy / start, end.particles)
    });
    assert!(reduced.1 < full.1 * 3 / 4, "{reduced:?} against {full:?}");
    assert!((reduced.0 - full.0).abs() < 0.01, "{reduced:?} against {full:?}");
}

/// A splash keeps its liquid, and its surface.
fn a_splash_is_the_same(scene: &str, cells: usize, frames: usize, volume: f64, surface: f64) {
    let runs = ["false", "true"].map(|reduced| {
        let set = [("surface_band", "9"), ("narrow_band", "full"), ("reduced_advection", reduced)];
        heights(scene, cells, frames, "affine-tiles", &set)
    });
    let [full, reduced] = &runs;
    let uniform = heights(scene, cells, frames, "free-surface", &[("narrow_band", "full")]).heights;
    let [far, reduced_far] = [full, reduced].map(|run| off(&run.heights, &uniform));
    let mean = |heights: &[Vec<f32>]| {
        heights.iter().flatten().map(|&height| f64::from(height)).sum::<f64>()
            / heights.iter().map(Vec::len).sum::<usize>() as f64
    };
    let lost = mean(&reduced.heights) / mean(&full.heights) - 1.0;
    let difference = off(&reduced.heights, &full.heights);
    println!(
        "{scene}, {cells} cells: {difference:.3} cells off, {:.4} % of the volume, {} of {} particles; \
         {reduced_far:.3} cells away from single cells instead of {far:.3}",
        100.0 * lost,
        reduced.particles,
        full.particles
    );
    assert!(reduced.particles < full.particles * 3 / 4, "{scene}: {} particles", reduced.particles);
    assert!(
        (reduced.volume / full.volume - 1.0).abs() < volume,
        "{scene}: {} {}",
        reduced.volume,
        full.volume
    );
    assert!(difference < surface, "{scene}: {difference} cells off");
    assert!(reduced_far < far + 0.5 * surface, "{scene}: {reduced_far} instead of {far} cells off");
}

#[test]
fn a_splash_is_the_same_2d() {
    a_splash_is_the_same("pool_tiles_2d", 128, 60, 5e-4, 0.4);
}

#[test]
#[ignore = "minutes"]
fn a_splash_is_the_same_3d() {
    a_splash_is_the_same("splash_tank_tiles", 96, 30, 5e-4, 0.4);
}

/// Whoever switches it off, or the tiles, gets all particles back, evenly spread.
fn switching_off_brings_particles_back<const D: usize>(cells: usize, change: fn(&mut Simulation<D>)) {
    let mut pool = tiled(deep_pool::<D>(cells), true);
    let first = pool.survey().particles;
    for _ in 0..3 {
        assert!(advance(&mut pool, 1.0 / 60.0).particles * 5 < first * 4);
    }
    change(&mut pool);
    let report = advance(&mut pool, 1.0 / 60.0);
    assert_eq!(report.particles, first, "{D}D");
    assert!(pool.state().core.cells.is_empty());
    // One in every part of every cell below the surface, and no faster than still water is.
    let low = pool.particle_positions().iter().filter(|x| x[1] < 0.7 * cells as f32);
    let mut parts: Vec<_> = low.map(|x| x.map(|x| (2.0 * x) as i32)).collect();
    parts.sort_unstable();
    let all = parts.len();
    parts.dedup();
    assert!(parts.len() * 100 > all * 97, "{D}D: {} of {all}", parts.len());
    for _ in 0..3 {
        let report = advance(&mut pool, 1.0 / 60.0);
        let speed = mean_square(&report).sqrt();
        assert!(
            speed < 5e-3 && report.particles == first,
            "{D}D: {speed} m/s, {} particles",
            report.particles
        );
    }
}

#[test]
fn switching_off_brings_particles_back_2d() {
    switching_off_brings_particles_back::<2>(64, |pool| pool.params.reduced_advection = false);
    switching_off_brings_particles_back::<2>(64, |pool| pool.params.model = Model::FreeSurface);
    switching_off_brings_particles_back::<2>(64, |pool| pool.params.surface_band = 60);
}

#[test]
fn switching_off_brings_particles_back_3d() {
    switching_off_brings_particles_back::<3>(44, |pool| pool.params.model = Model::TwoPhase);
}

/// Drains and nozzles find liquid where they are, though everything around them is without particles.
#[test]
fn liquid_comes_and_goes_as_before() {
    let [full, reduced] = [false, true].map(|reduced| {
        let mut setup = deep_pool::<2>(96);
        let ball = |x: f64| Shape::Sphere { center: Vector::from([x, 0.35]), radius: 0.03 };
        setup.drains.push(Drain { shape: ball(0.3), from: 0.05, until: 0.06 });
        setup.air_sources.push(AirSource { shape: ball(0.7), rate: 0.0, every: 9.0, from: 0.05, until: 0.1 });
        let mut pool = tiled(setup, reduced);
        pool.params.bubbles = Bubbles::Constraint;
        let end = (0..8).map(|_| advance(&mut pool, 1.0 / 60.0)).last().expect("eight frames");
        (end.liquid.volume, end.bubbles.len(), end.particles)
    });
    assert!((reduced.0 / full.0 - 1.0).abs() < 2e-3, "{reduced:?} against {full:?}");
    assert!(reduced.1 == full.1 && full.1 > 1, "{reduced:?} against {full:?}");
    assert!(reduced.2 < full.2 * 3 / 4, "{reduced:?} against {full:?}");
}

/// Everything that a run leaves behind on some threads, less what a clock has measured: statistics and particles; and
/// how many of those live.
fn traces<const D: usize>(setup: &Setup<D>, frames: usize, threads: usize) -> (Vec<String>, Vec<u32>, usize) {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut simulation = Simulation::new(setup).expect("it starts");
        let frame = |_| {
            let mut report = advance(&mut simulation, 1.0 / 30.0);
            report.seconds = Default::default();
            report.solve.iter_mut().for_each(|solve| solve.seconds = 0.0);
            serde_json::to_string(&report).expect("statistics as text")
        };
        let statistics = (0..frames).map(frame).collect();
        let particles = simulation.particle_positions().iter().chain(simulation.particle_velocities());
        let particles = particles.flatten().map(|x| x.to_bits()).collect();
        (statistics, particles, simulation.survey().particles)
    })
}

fn threads_do_not_change_a_bit<const D: usize>(mut setup: Setup<D>, frames: usize) {
    setup.params.model = Model::AffineTiles;
    setup.params.surface_band = 2;
    setup.params.wall_band = 1;
    setup.params.narrow_band = 0;
    setup.params.reduced_advection = true;
    let (one, two) = (traces(&setup, frames, 1), traces(&setup, frames, 2));
    for (frame, (a, b)) in one.0.iter().zip(&two.0).enumerate() {
        assert_eq!(a, b, "{D}D frame {}", frame + 1);
    }
    assert!(one.1 == two.1, "{D}D: particles differ");
    setup.params.reduced_advection = false;
    let all = traces(&setup, frames, 2).2;
    assert!(one.2 * 20 < all * 19, "{D}D: {} of {all} particles", one.2);
}

#[test]
fn threads_do_not_change_a_bit_2d() {
    threads_do_not_change_a_bit(scene_2d("pool_tiles_2d").setup, 20);
}

#[test]
fn threads_do_not_change_a_bit_3d() {
    let flow = Flow { velocity: Vector::repeat(0.4), center: Vector::repeat(0.45), spin: [1.0, 2.0, 3.0] };
    threads_do_not_change_a_bit(flying_ball::<3>(flow, 0.33, 56), 4);
}

/// Both fluids affine: the core in the liquid goes with air that has mass as well.
#[test]
fn it_works_beside_air_with_mass() {
    let mut scene = scene_2d("heavy_bubble_2d");
    scene.setup.params.affine_liquid = true;
    scene.setup.params.narrow_band = 0;
    let [full, reduced] = [false, true].map(|reduced| {
        scene.setup.params.model = Model::AffineBubbles;
        scene.setup.params.surface_band = 4;
        scene.setup.params.reduced_advection = reduced;
        let mut simulation = Simulation::new(&scene.setup).expect("it starts");
        let stop = AtomicBool::new(false);
        let frames = (0..10).map(|_| simulation.advance_frame(1.0 / scene.fps, &stop));
        let last =
            frames.last().expect("ten frames").expect("the simulation goes on").expect("nobody stops it");
        (last.particles, last.liquid.volume, last.bubbles[0].centroid.clone())
    });
    assert!(reduced.0 < full.0 * 9 / 10, "{reduced:?} against {full:?}");
    assert!((reduced.1 / full.1 - 1.0).abs() < 1e-3, "{reduced:?} against {full:?}");
    let off = (reduced.2[1] - full.2[1]).abs();
    assert!(off < 0.5 / scene.setup.grid.cells[0] as f64, "{reduced:?} against {full:?}");
}
