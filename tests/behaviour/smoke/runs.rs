//! Whole simulations with smoke: nothing gets lost beside anything that moves, and every run is the same.

use glug::geometry::{Body, MOST_MOTIONS, Material, Motion, Move, Shape, Solid};
use glug::math::Vector;
use glug::scene::Scene;
use glug::sim::{Flow, LiquidBody, Model, Setup, Simulation, SmokeSource, WallCells};
use rayon::ThreadPoolBuilder;

use crate::sim::{advance, corner_box};

use super::{ball, box_of_air, extremes, in_2d, in_3d, scene, totals};

/// A paddle that goes round, and a ball as light as air that it may hit.
fn stirrers<const D: usize>(degrees_per_second: f64) -> Vec<Solid<D>> {
    let middle = Vector::<D>::from_fn(|k, _| [0.45, 0.4, 0.5][k]);
    let half = Vector::from_fn(|k, _| [0.28, 0.04, 0.2][k]);
    let blade = Shape::Box { min: middle - half, max: middle + half };
    let spin = Move::Spin {
        center: middle,
        axis: [0.0, 0.0, 1.0],
        rate: degrees_per_second.to_radians(),
        from: 0.0,
        until: f64::INFINITY,
    };
    let mut light = Solid::new("ball", ball(0.75, 0.75, 0.1), Motion::default());
    let volume = light.shape.moments().expect("a ball has a volume").volume;
    let material = Material { mass: volume, friction: 0.3, restitution: 0.0, fixed: [false; MOST_MOTIONS] };
    light.body = Body::new(&light.shape, material, [0.0; MOST_MOTIONS]).map(Box::new);
    vec![Solid::new("paddle", blade, Motion::new(vec![spin])), light]
}

/// Runs for so many frames: smoke and heat stay what they are, and within their bounds.
fn stir<const D: usize>(setup: &Setup<D>, frames: usize, what: &str) {
    let mut simulation = Simulation::new(setup).expect("it starts");
    let before = totals(&simulation);
    let [[_, most], [coldest, hottest]] = extremes(&simulation.state().smoke, simulation.blocks());
    for frame in 0..frames {
        let report = advance(&mut simulation, 1.0 / 30.0);
        assert!(report.warnings.is_empty(), "{D}D {what}, frame {frame}: {:?}", report.warnings);
        let now = report.smoke.expect("there is smoke");
        let missing = [now.mass / before.mass - 1.0, now.heat / before.heat - 1.0];
        assert!(
            missing.iter().all(|missing| missing.abs() < 1e-6),
            "{D}D {what}, frame {frame}: {missing:?} of smoke and heat are missing"
        );
        let [density, heat] = extremes(&simulation.state().smoke, simulation.blocks());
        assert!(
            density[0] >= -1e-5 * most && density[1] <= most * (1.0 + 1e-4),
            "{D}D {what}, frame {frame}: densities {density:?} of {most}"
        );
        let slack = 1e-4 * coldest.abs().max(hottest.abs());
        assert!(
            heat[0] >= coldest - slack && heat[1] <= hottest + slack,
            "{D}D {what}, frame {frame}: heats {heat:?}, {coldest} to {hottest} at the start"
        );
    }
    assert!(simulation.state().max_component > 0.2, "{D}D {what}: it was stirred");
}

fn stirred_air_keeps_its_smoke<const D: usize>(cells: usize, frames: usize) {
    let smoke =
        || vec![(corner_box::<D>([0.0, 0.0], [1.0, 0.4], 1.0), 0.1, 0.0), (ball(0.3, 0.7, 0.15), 0.05, 10.0)];
    for walls in [WallCells::Cut, WallCells::Voxel] {
        for model in [Model::TwoPhase, Model::AffineBubbles] {
            let mut setup = box_of_air::<D>(cells, smoke(), stirrers(200.0));
            (setup.params.walls, setup.params.model) = (walls, model);
            stir(&setup, frames, &format!("{walls:?}, {model:?}"));
        }
    }
}

#[test]
fn stirred_air_keeps_its_smoke_2d() {
    stirred_air_keeps_its_smoke::<2>(48, 30);
}

#[test]
fn stirred_air_keeps_its_smoke_3d() {
    stirred_air_keeps_its_smoke::<3>(24, 10);
}

/// A paddle whose tips sweep over several cells in a substep.
#[test]
fn fast_paddles_lose_no_smoke() {
    let smoke = vec![(corner_box::<2>([0.0, 0.0], [1.0, 1.0], 1.0), 0.1, 5.0)];
    let mut setup = box_of_air(48, smoke, stirrers(1500.0));
    setup.params.cfl = 3.75;
    stir(&setup, 40, "fast");
}

/// Waves under smoke: what the water covers goes to the air above, and what falls below the surface comes back.
fn water_swallows_no_smoke<const D: usize>(cells: usize, frames: usize) {
    let mut setup =
        box_of_air::<D>(cells, vec![(corner_box([0.0, 0.0], [1.0, 1.0], 1.0), 0.1, 5.0)], Vec::new());
    let pile = corner_box([0.0, 0.0], [0.4, 0.5], 1.0);
    setup.liquids.push(LiquidBody { shape: pile, flow: Flow::rest() });
    stir(&setup, frames, "water");
}

#[test]
fn water_swallows_no_smoke_2d() {
    water_swallows_no_smoke::<2>(40, 45);
}

#[test]
fn water_swallows_no_smoke_3d() {
    water_swallows_no_smoke::<3>(20, 20);
}

/// A source fills its shape up to its density while it runs; `rate` says how fast.
#[test]
fn sources_run_in_their_time_and_up_to_their_density() {
    let mut setup = box_of_air::<2>(40, Vec::new(), Vec::new());
    let shape = corner_box([0.25, 0.25], [0.5, 0.75], 1.0);
    let source = SmokeSource { shape, density: 0.2, heat: Some(-3.0), rate: 2.0, from: 0.1, until: 0.4 };
    setup.smoke_sources.push(source);
    setup.params.gravity = 0.0;
    let mut simulation = Simulation::new(&setup).expect("a source is enough to start");
    let mut masses = Vec::new();
    for _ in 0..60 {
        let smoke = advance(&mut simulation, 0.01).smoke.expect("there may be smoke");
        masses.push([smoke.mass, smoke.heat]);
    }
    assert_eq!(masses[8], [0.0; 2], "it has not begun");
    assert_eq!(masses[40], masses[59], "it has ended");
    // Thirty steps of a hundredth, up to where a step begins or ends just on the dot.
    let [mass, heat] = masses[59];
    let filled = 1.0 - (-2.0f64 * 0.3).exp();
    assert!((mass / (0.2 * 0.125 * filled) - 1.0).abs() < 0.04, "{mass} kg");
    assert!((heat / (-3.0 * 0.125 * filled) - 1.0).abs() < 0.04, "{heat} K m²");
}

/// Smoke fades and heat cools at their rates, and not at all unless asked to.
#[test]
fn smoke_fades_and_heat_cools_at_their_rates() {
    let mut setup = box_of_air::<2>(32, vec![(ball(0.5, 0.5, 0.2), 0.1, 8.0)], Vec::new());
    (setup.params.smoke_fading, setup.params.cooling) = (0.5, 2.0);
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let before = totals(&simulation);
    (0..15).for_each(|_| drop(advance(&mut simulation, 1.0 / 30.0)));
    let after = totals(&simulation);
    let [smoke, heat] = [after.mass / before.mass, after.heat / before.heat];
    assert!((smoke - (-0.25f64).exp()).abs() < 1e-4, "{smoke}");
    assert!((heat - (-1.0f64).exp()).abs() < 1e-4, "{heat}");
}

/// Air that loses its mass and gets it back: smoke waits.
#[test]
fn smoke_waits_while_air_weighs_nothing() {
    let smoke = vec![(corner_box::<2>([0.0, 0.0], [1.0, 0.5], 1.0), 0.1, 0.0)];
    let mut simulation = Simulation::new(&box_of_air(40, smoke, stirrers(200.0))).expect("it starts");
    let before = totals(&simulation).mass;
    for model in
        [Model::TwoPhase, Model::Constraint, Model::FreeSurface, Model::AffineTiles, Model::AffineBubbles]
    {
        simulation.params.model = model;
        for _ in 0..8 {
            let report = advance(&mut simulation, 1.0 / 30.0);
            let has_told = report.warnings.iter().any(|warning| warning.contains("smoke stands still"));
            assert_eq!(has_told, !model.has_gas(), "{model:?}: {:?}", report.warnings);
            let now = report.smoke.expect("there is smoke").mass;
            assert!((now / before - 1.0).abs() < 1e-6, "{model:?}: {now} kg of {before}");
        }
    }
}

fn saved<const D: usize>(simulation: &Simulation<D>) -> Vec<u8> {
    let mut bytes = Vec::new();
    simulation.save(&mut bytes).expect("memory has room");
    bytes
}

/// A whole run on some threads; between two frames it may be saved and loaded.
fn run<const D: usize>(scene: &Scene<D>, frames: usize, threads: usize, resumes_after: usize) -> Vec<u8> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut simulation = Simulation::new(&scene.setup).expect("it starts");
        for frame in 0..frames {
            if frame == resumes_after {
                simulation =
                    Simulation::load(&scene.setup, &saved(&simulation)[..]).expect("as it was saved");
            }
            advance(&mut simulation, 1.0 / scene.fps);
        }
        saved(&simulation)
    })
}

fn every_run_is_the_same<const D: usize>(scene: &Scene<D>, frames: usize) {
    let first = run(scene, frames, 1, frames);
    for (threads, resumes_after) in [(2, frames), (3, frames), (2, frames / 2)] {
        let other = run(scene, frames, threads, resumes_after);
        assert!(
            first == other,
            "{}: {threads} threads, resumed after {resumes_after} of {frames}",
            scene.name
        );
    }
}

#[test]
fn every_run_is_the_same_2d() {
    every_run_is_the_same(&scene("paddle_smoke_2d", 48, in_2d), 12);
}

#[test]
fn every_run_is_the_same_3d() {
    every_run_is_the_same(&scene("stirred_smoke", 24, in_3d), 6);
}
