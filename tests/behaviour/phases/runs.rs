//! Whole simulations of two fluids.

use glug::geometry::Shape;
use glug::math::Vector;
use glug::scene::Scene;
use glug::sim::{FrameReport, Model, Params, Simulation};

use crate::sim::{advance, corner_box, scene_2d, scene_3d, tank};

/// Acceleration of a ball with that density over the liquid's in the first substep, over g, upwards.
fn first_acceleration<const D: usize>(cells: usize, density: f64) -> f64 {
    let water = Shape::Box { min: Vector::zeros(), max: Vector::repeat(1.6) };
    let ball = Shape::Sphere { center: Vector::<D>::repeat(0.8), radius: 0.15 };
    let mut setup = tank([1.6; D], cells, vec![Shape::Difference(Box::new(water), vec![ball])]);
    setup.params.model = Model::TwoPhase;
    setup.params.air_density = density * setup.params.density;
    setup.params.tolerance = 1e-9;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let report = advance(&mut simulation, 1e-3);
    assert_eq!((report.substeps, report.bubbles.len()), (1, 1), "{D}D: one step, one bubble");
    let bubble = &report.bubbles[0];
    assert!(bubble.constrained, "{D}D: it keeps its volume");
    bubble.velocity[1] / report.time / setup.params.gravity
}

/// A ball in boundless liquid moves half its own volume of it along (in 2D all of it): added-mass theory.
fn a_released_ball_starts_as_theory_says<const D: usize>(cells: usize) {
    let added = if D == 2 { 1.0 } else { 0.5 };
    for density in [10.0, 1.0, 1e-3] {
        let expected = (1.0 - density) / (density + added);
        let found = first_acceleration::<D>(cells, density);
        println!("{D}D, {cells} cells, density {density}: {found:.4} g, in theory {expected:.4} g");
        let limit = if density > 1.0 { 0.05 } else { 0.08 };
        assert!(
            (found - expected).abs() < limit * expected.abs() + 1e-4,
            "{D}D density {density}: {found} g"
        );
    }
}

#[test]
fn a_released_ball_starts_as_theory_says_2d() {
    a_released_ball_starts_as_theory_says::<2>(128);
}

#[test]
fn a_released_ball_starts_as_theory_says_3d() {
    a_released_ball_starts_as_theory_says::<3>(54);
}

fn run<const D: usize>(scene: &Scene<D>, model: Model, frames: usize) -> Vec<FrameReport> {
    let mut setup = scene.setup.clone();
    setup.params.model = model;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    (0..frames).map(|_| advance(&mut simulation, 1.0 / scene.fps)).collect()
}

/// The most iterations that any solve of a run took.
fn most_iterations(reports: &[FrameReport]) -> usize {
    let solves = || reports.iter().flat_map(|report| &report.solve);
    assert!(solves().all(|solve| solve.converged && solve.method == "multigrid"), "multigrid does it");
    solves().map(|solve| solve.iterations).max().expect("something was solved")
}

#[test]
fn jumps_of_density_take_few_iterations() {
    let flat = run(&scene_2d("light_bubble_2d"), Model::TwoPhase, 12);
    let deep = run(&scene_3d("rising_bubbles", 40), Model::TwoPhase, 4);
    let heavy = run(&scene_2d("heavy_bubble_2d"), Model::TwoPhase, 12);
    let neutral = run(&scene_2d("neutral_bubble_2d"), Model::TwoPhase, 4);
    let most = [&flat, &deep, &heavy, &neutral].map(|reports| most_iterations(reports));
    println!("iterations: {most:?}");
    assert!(most.iter().all(|&most| most <= 12), "{most:?}");
    assert!(flat[0].unknowns.pressure > flat[0].cells.liquid, "air has unknowns");
}

#[test]
fn a_neutral_bubble_stays_and_keeps_its_volume() {
    let reports = run(&scene_2d("neutral_bubble_2d"), Model::TwoPhase, 60);
    for report in &reports {
        let bubble = &report.bubbles[0];
        let off = (0..2).map(|k| (bubble.centroid[k] - 0.5).abs()).fold(0.0, f64::max);
        assert!(off < 2e-3, "frame {}: {off:.1e} m away", report.frame);
        assert!(
            (bubble.volume / bubble.rest_volume - 1.0).abs() < 0.02,
            "frame {}: {bubble:?}",
            report.frame
        );
        assert!(report.liquid.max_speed < 5e-3, "frame {}: {} m/s", report.frame, report.liquid.max_speed);
    }
    // Weightless, it would rise.
    let constraint = run(&scene_2d("neutral_bubble_2d"), Model::Constraint, 12);
    assert!(constraint[11].bubbles[0].velocity[1] > 0.1, "{:?}", constraint[11].bubbles[0]);
}

#[test]
fn heavy_bubbles_sink_and_light_ones_rise() {
    let heavy = run(&scene_2d("heavy_bubble_2d"), Model::TwoPhase, 20);
    let ends = |reports: &[FrameReport]| {
        let biggest = |report: &FrameReport| {
            let sizes = report.bubbles.iter().filter(|bubble| !bubble.open);
            sizes.max_by(|a, b| a.volume.total_cmp(&b.volume)).expect("a bubble").clone()
        };
        (biggest(&reports[0]), biggest(&reports[reports.len() - 1]))
    };
    let (first, last) = ends(&heavy);
    let way = last.centroid[1] - first.centroid[1];
    assert!(way < -0.15, "it sank by {way} m");
    assert_eq!(first.id, last.id, "it is the same one");
    assert!((last.volume / first.rest_volume - 1.0).abs() < 0.05, "{first:?} became {last:?}");
    // Air with its true density does what weightless air does.
    let [light, constraint] = [Model::TwoPhase, Model::Constraint]
        .map(|model| ends(&run(&scene_2d("light_bubble_2d"), model, 12)).1);
    let apart = (light.centroid[1] - constraint.centroid[1]).abs();
    let risen = constraint.centroid[1] - 0.3;
    println!("risen by {risen:.4} m, models {apart:.4} m apart");
    assert!(risen > 0.1 && apart < 0.1 * risen, "{light:?} and {constraint:?}");
}

#[test]
fn models_may_change_while_it_runs() {
    let scene = scene_2d("light_bubble_2d");
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let order = [Model::TwoPhase, Model::Constraint, Model::TwoPhase, Model::FreeSurface, Model::TwoPhase];
    for (round, model) in order.into_iter().enumerate() {
        simulation.params.model = model;
        for _ in 0..3 {
            let report = advance(&mut simulation, 1.0 / scene.fps);
            assert_eq!(report.model, model.name());
            assert!(report.solve.iter().all(|solve| solve.converged), "round {round}: {:?}", report.solve);
            assert!(report.liquid.max_speed < 10.0, "round {round}: {} m/s", report.liquid.max_speed);
            let has_air = report.unknowns.pressure > report.cells.liquid;
            assert_eq!(has_air, model == Model::TwoPhase, "round {round}: {:?}", report.unknowns);
        }
        simulation.params.air_density *= 3.0;
    }
}

/// Both fluids in a tank open at its top: the one above is held by nothing but the pressure outside.
#[test]
fn an_open_tank_of_two_fluids_stays_still() {
    let mut setup = tank([1.0; 2], 48, vec![corner_box([0.0, 0.0], [1.0, 0.5], 0.0)]);
    setup.open[1][1] = true;
    setup.params = Params { model: Model::TwoPhase, air_density: 100.0, ..setup.params };
    let mut simulation = Simulation::new(&setup).expect("it starts");
    for _ in 0..20 {
        let report = advance(&mut simulation, 1.0 / 60.0);
        assert!(report.liquid.max_speed < 0.05, "{} m/s", report.liquid.max_speed);
        assert!(!report.bubbles[0].constrained && report.bubbles[0].open, "{:?}", report.bubbles[0]);
    }
}
