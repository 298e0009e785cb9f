//! Liquid that leaves walls, in whole simulations.

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

/// The published figure: a ball of water that hits a wall.
fn splash(lets_go: bool) -> Setup<2> {
    let mut setup = tank([1.0; 2], 64, Vec::new());
    let shape = glug::geometry::Shape::Sphere { center: Vector::from([0.25, 0.7]), radius: 0.15 };
    setup
        .liquids
        .push(LiquidBody { shape, flow: Flow { velocity: Vector::from([-3.0, 0.0]), ..Flow::rest() } });
    setup.params.walls_let_go = lets_go;
    setup
}

/// Liquid that has hit a wall comes off it, and none is lost.
#[test]
fn a_ball_of_water_peels_off_a_wall() {
    let near_wall = |lets_go: bool| {
        let mut simulation = Simulation::new(&splash(lets_go)).expect("it starts");
        let before = simulation.survey().particles;
        for _ in 0..18 {
            let report = advance(&mut simulation, 1.0 / 60.0);
            assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        }
        let dx = simulation.survey().dx;
        let near = |x: &&[f32; 2]| x[0] < 2.0 && f64::from(x[1]) * dx > 0.3;
        let near = simulation.particle_positions().iter().filter(near).count();
        near as f64 / before as f64
    };
    let [stuck, free] = [false, true].map(near_wall);
    println!("share along the wall: {stuck:.3} without, {free:.3} with it");
    assert!(free < 0.7 * stuck, "{free:.3} of it is along the wall, {stuck:.3} where walls do not let go");
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
