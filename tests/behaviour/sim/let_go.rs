//! Liquid that leaves walls, in whole simulations.

use glug::geometry::{Motion, OUT_OF_PLANE, Shape, Solid};
use glug::math::Vector;
use glug::sim::{Flow, LiquidBody, Model, Setup, Simulation};
use rayon::ThreadPoolBuilder;

use crate::checkpoint::{advance_both, busy_tank, statistics, traces};

use super::{advance, corner_box, scene_3d, tank};

const GRAVITY: f64 = 9.81;

/// A layer of water under the ceiling of a box that is one metre high.
fn layer<const D: usize>(model: Model, lets_go: bool) -> Setup<D> {
    let cells = if D == 2 { 48 } else { 24 };
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.75], [1.0, 1.0], 1.0)]);
    setup.params.model = model;
    setup.params.walls_let_go = lets_go;
    // Particles everywhere, to see where each goes.
    setup.params.narrow_band = 0;
    setup
}

/// How far the liquid has come down after a time in which all would have fallen by 0.3 m, and how far the highest of its particles.
fn fall<const D: usize>(setup: &Setup<D>) -> [f64; 2] {
    let mut simulation = Simulation::new(setup).expect("it starts");
    let (time, frames) = ((2.0 * 0.3 / GRAVITY).sqrt(), 12);
    let start = simulation.survey().liquid.centroid[1];
    for _ in 0..frames {
        let report = advance(&mut simulation, time / f64::from(frames));
        assert!(report.warnings.is_empty(), "{D}D: {:?}", report.warnings);
    }
    let report = simulation.survey();
    let places = simulation.particle_positions().iter().filter(|x| !x[0].is_nan());
    let highest = places.map(|x| f64::from(x[1]) * report.dx).fold(0.0, f64::max);
    [start - report.liquid.centroid[1], 1.0 - highest]
}

fn a_ceiling_lets_go_of_a_layer<const D: usize>() {
    for model in [Model::FreeSurface, Model::AffineTiles] {
        let mut setup = layer::<D>(model, true);
        // Tiles as deep as the layer leaves room for, and air that is nothing.
        setup.params.bubbles = glug::sim::Bubbles::FreeSurface;
        (setup.params.tile_size, setup.params.surface_band) = (8, 2);
        let [mean, last] = fall(&setup);
        let dx = setup.grid.dx;
        let what = format!("{D}D {}", model.name());
        println!("{what}: falls by {mean:.3} m, the last of it by {last:.3} m");
        assert!((mean - 0.3).abs() < 0.01, "{what}: all of it has fallen by 0.3 m, not {mean:.3} m");
        // What is nearest to the wall is carried along by what it has next to it, and takes some cells to get going.
        assert!(last > 0.3 - 4.0 * dx, "{what}: something hangs {last:.3} m below the ceiling");
        setup.params.walls_let_go = false;
        let [mean, last] = fall(&setup);
        assert!(mean < 0.03 && last < dx, "{what}: suction holds it, but it falls by {mean:.3} m");
    }
}

#[test]
fn a_ceiling_lets_go_of_a_layer_2d() {
    a_ceiling_lets_go_of_a_layer::<2>();
}

#[test]
fn a_ceiling_lets_go_of_a_layer_3d() {
    a_ceiling_lets_go_of_a_layer::<3>();
}

/// Water in a closed box stays up as long as no air gets above it.
#[test]
fn air_that_keeps_its_volume_holds_water_up() {
    for model in [Model::Constraint, Model::TwoPhase] {
        let [mean, _] = fall(&layer::<2>(model, true));
        assert!(mean < 0.1, "{}: it falls by {mean:.3} m", model.name());
    }
}

/// A slab of water that hangs under a wall leaning over it. Held by suction it slides down along the wall; if that lets go, it falls
/// straight down.
#[test]
fn water_drops_off_an_overhang() {
    let moves = |lets_go: bool| {
        let normal = Vector::from([0.5, -(0.75f64.sqrt())]);
        let through = Vector::from([0.55, 0.75]);
        let mut setup = tank([1.0; 2], 64, Vec::new());
        let shape = Shape::half_space(through, normal);
        setup.solids.push(Solid::new("overhang", shape, Motion::default()));
        let (centre, half) = (through + normal * 0.06, Vector::from([0.25, 0.06]));
        let slab = Shape::Box { min: centre - half, max: centre + half };
        let slab = slab.rotated(OUT_OF_PLANE, std::f64::consts::FRAC_PI_6, centre);
        setup.liquids.push(LiquidBody { shape: slab, flow: Flow::rest() });
        setup.params.walls_let_go = lets_go;
        let mut simulation = Simulation::new(&setup).expect("it starts");
        let start = simulation.survey().liquid.centroid;
        for _ in 0..12 {
            let report = advance(&mut simulation, (2.0 * 0.3 / GRAVITY).sqrt() / 12.0);
            assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        }
        let end = simulation.survey().liquid.centroid;
        [end[0] - start[0], end[1] - start[1]]
    };
    let [stuck, free] = [false, true].map(moves);
    println!("moved by {stuck:.3?} m without, {free:.3?} m with it");
    assert!(stuck[0] < -0.05, "held by suction it slides down along the wall: by {stuck:.3?} m");
    assert!(free[0].abs() < 0.02 && (free[1] + 0.3).abs() < 0.02, "it falls by {free:.3?} m");
}

/// The set of cells is the same in most steps: to find it takes hardly more than one solve.
#[test]
fn a_splash_takes_few_rounds() {
    let mut setup = scene_3d("splash_tank", 40).setup;
    setup.params.walls_let_go = true;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let (mut rounds, mut loose) = (Vec::new(), 0);
    for _ in 0..20 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        rounds.extend(report.solve.iter().map(|solve| solve.rounds));
        loose += report.solve.iter().map(|solve| solve.loose).sum::<usize>();
    }
    let mean = rounds.iter().sum::<usize>() as f64 / rounds.len() as f64;
    println!("{mean:.2} rounds a step, {} loose cells a step", loose / rounds.len());
    assert!(loose > 0 && mean <= 2.0, "{mean:.2} rounds a step, {loose} loose cells: {rounds:?}");
}

/// Saved with one thread, gone on from with two: not a bit is different.
fn runs_are_the_same_however_they_go<const D: usize>(cells: usize, frames: [usize; 2]) {
    for model in [Model::FreeSurface, Model::Constraint, Model::AffineTiles] {
        let what = format!("{D}D {}", model.name());
        let mut setup = busy_tank::<D>(model, cells);
        setup.params.walls_let_go = true;
        if D == 3 {
            // Something to fall off at once.
            setup.open[1][1] = false;
            let shape = corner_box([0.5, 0.9], [1.0, 1.0], 1.0);
            setup.liquids.push(LiquidBody { shape, flow: Flow::rest() });
        }
        let pool = |threads: usize| ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let run = |threads: usize| {
            pool(threads).install(|| {
                let mut simulation = Simulation::new(&setup).expect("it starts");
                let reports: Vec<String> =
                    (0..frames[0]).map(|_| statistics(advance(&mut simulation, 0.012))).collect();
                (simulation, reports)
            })
        };
        let ((mut one, first), (other, second)) = (run(1), run(3));
        assert_eq!(first, second, "{what}: statistics with three threads");
        assert!(traces(&one) == traces(&other), "{what}: fields or particles with three threads");
        assert!(!one.state().pressure.loose.is_empty(), "{what}: something is loose");
        let mut bytes = Vec::new();
        one.save(&mut bytes).expect("memory takes everything");
        pool(2).install(|| {
            let mut again =
                Simulation::load(&setup, bytes.as_slice()).unwrap_or_else(|error| panic!("{what}: {error}"));
            (0..frames[1]).for_each(|_| advance_both(&mut one, &mut again, 0.012, &what));
        });
    }
}

#[test]
fn runs_are_the_same_however_they_go_2d() {
    runs_are_the_same_however_they_go::<2>(64, [8, 6]);
}

#[test]
fn runs_are_the_same_however_they_go_3d() {
    runs_are_the_same_however_they_go::<3>(32, [4, 3]);
}
