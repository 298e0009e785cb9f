//! Whole simulations of two fluids.

use glug::geometry::Shape;
use glug::math::Vector;
use glug::scene::Scene;
use glug::sim::{FrameReport, Model, Params, Simulation};

use crate::sim::{advance, corner_box, scene_2d, scene_3d, tank};

/// The models in which air has a mass.
const WITH_MASS: [Model; 2] = [Model::TwoPhase, Model::AffineBubbles];

/// Acceleration of a ball with that density over the liquid's in the first substep, over g, upwards.
fn first_acceleration<const D: usize>(model: Model, cells: usize, density: f64) -> f64 {
    let water = Shape::Box { min: Vector::zeros(), max: Vector::repeat(1.6) };
    let ball = Shape::Sphere { center: Vector::<D>::repeat(0.8), radius: 0.15 };
    let mut setup = tank([1.6; D], cells, vec![Shape::Difference(Box::new(water), vec![ball])]);
    setup.params.model = model;
    setup.params.air_density = density * setup.params.density;
    setup.params.tolerance = 1e-9;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let report = advance(&mut simulation, 1e-3);
    assert_eq!((report.substeps, report.bubbles.len()), (1, 1), "{D}D: one step, one bubble");
    let bubble = &report.bubbles[0];
    assert!(bubble.constrained, "{D}D: it keeps its volume");
    assert_eq!(report.unknowns.body > 0, model == Model::AffineBubbles, "{D}D: {:?}", report.unknowns);
    bubble.velocity[1] / report.time / setup.params.gravity
}

/// A ball in boundless liquid moves half its own volume of it along (in 2D all of it): added-mass theory.
fn a_released_ball_starts_as_theory_says<const D: usize>(cells: usize) {
    let added = if D == 2 { 1.0 } else { 0.5 };
    for (model, density) in WITH_MASS.into_iter().flat_map(|model| [10.0, 1.0, 1e-3].map(|d| (model, d))) {
        let expected = (1.0 - density) / (density + added);
        let found = first_acceleration::<D>(model, cells, density);
        let name = model.name();
        println!("{D}D, {name}, {cells} cells, density {density}: {found:.4} g, in theory {expected:.4} g");
        let limit = if density > 1.0 { 0.05 } else { 0.08 };
        assert!(
            (found - expected).abs() < limit * expected.abs() + 1e-4,
            "{D}D {name} density {density}: {found} g"
        );
    }
}

#[test]
fn a_released_ball_starts_as_theory_says_2d() {
    a_released_ball_starts_as_theory_says::<2>(128);
}

#[test]
fn a_released_ball_starts_as_theory_says_3d() {
    a_released_ball_starts_as_theory_says::<3>(64);
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
    assert!(way < -1.2, "it sank by {way} m");
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
    use Model::{AffineBubbles, AffineTiles, Constraint, FreeSurface, TwoPhase};
    let order =
        [TwoPhase, Constraint, AffineBubbles, AffineTiles, TwoPhase, AffineBubbles, FreeSurface, TwoPhase];
    for (round, model) in order.into_iter().enumerate() {
        simulation.params.model = model;
        for _ in 0..3 {
            let report = advance(&mut simulation, 1.0 / scene.fps);
            assert_eq!(report.model, model.name());
            assert!(report.solve.iter().all(|solve| solve.converged), "round {round}: {:?}", report.solve);
            assert!(report.liquid.max_speed < 10.0, "round {round}: {} m/s", report.liquid.max_speed);
            let has_air = report.unknowns.pressure > report.cells.liquid;
            assert_eq!(has_air, model.has_gas(), "round {round}: {:?}", report.unknowns);
            let has_bodies = report.unknowns.body > 0;
            assert_eq!(has_bodies, matches!(model, AffineBubbles | AffineTiles), "round {round}");
        }
        simulation.params.air_density *= 2.0;
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

/// A bubble as dense as the liquid has no reason to move, whatever its shape and however it is divided.
fn a_neutral_affine_bubble_rests<const D: usize>(cells: usize, frames: usize, sizes: &[u32]) {
    let water = Shape::Box { min: Vector::zeros(), max: Vector::repeat(1.0) };
    let ball = Shape::Sphere { center: Vector::<D>::repeat(0.5), radius: 0.31 };
    let mut low = Vector::<D>::repeat(0.25);
    low[1] = 0.55;
    let brick = Shape::Box { min: low, max: Vector::repeat(0.87) };
    for (shape, &size) in [vec![ball.clone()], vec![ball, brick]].into_iter().zip(sizes) {
        let mut setup = tank([1.0; D], cells, vec![Shape::Difference(Box::new(water.clone()), shape)]);
        setup.params.model = Model::AffineBubbles;
        setup.params.air_density = setup.params.density;
        setup.params.tolerance = 1e-7;
        setup.params.bubble_tile_size = size;
        let mut simulation = Simulation::new(&setup).expect("it starts");
        let mut fastest: f64 = 0.0;
        for _ in 0..frames {
            let report = advance(&mut simulation, 1.0 / 60.0);
            assert!(report.unknowns.body > 0, "{D}D, tiles of {size}: {:?}", report.unknowns);
            fastest = fastest.max(report.liquid.max_speed);
        }
        println!("{D}D, tiles of {size}: {fastest:.1e} m/s");
        assert!(fastest < 1e-5, "{D}D, tiles of {size}: {fastest} m/s");
        simulation.params.model = Model::Constraint;
        let report = (0..6).map(|_| advance(&mut simulation, 1.0 / 60.0)).last().expect("some");
        assert!(report.bubbles[0].velocity[1] > 0.1, "{D}D: weightless, it rises: {:?}", report.bubbles[0]);
    }
}

#[test]
fn a_neutral_affine_bubble_rests_2d() {
    a_neutral_affine_bubble_rests::<2>(96, 60, &[0, 0]);
    a_neutral_affine_bubble_rests::<2>(96, 30, &[8, 16]);
}

#[test]
fn a_neutral_affine_bubble_rests_3d() {
    a_neutral_affine_bubble_rests::<3>(36, 20, &[0, 8]);
}

/// Where the matter of all bubbles is, on average.
fn centroid(report: &FrameReport) -> Vec<f64> {
    let volume: f64 = report.bubbles.iter().map(|bubble| bubble.volume).sum();
    let moment = |k: usize| report.bubbles.iter().map(|b| b.volume * b.centroid[k]).sum::<f64>();
    (0..report.bubbles[0].centroid.len()).map(|k| moment(k) / volume).collect()
}

/// Affine or not: a heavy bubble falls the same way, and takes as few iterations.
fn affine_bubbles_follow_two_phase_flow<const D: usize>(scene: &Scene<D>, seconds: f64) {
    let frames = (seconds * scene.fps).round() as usize;
    let [full, affine] = WITH_MASS.map(|model| run(scene, model, frames));
    let dx = scene.setup.grid.dx;
    for (full, affine) in full.iter().zip(&affine) {
        let (a, b) = (centroid(full), centroid(affine));
        let apart = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt() / dx;
        assert!(apart < 1.0, "{D}D, frame {}: {apart:.2} cells apart", full.frame);
    }
    assert!(most_iterations(&affine) <= 12, "{D}D: {} iterations", most_iterations(&affine));
    let way = centroid(&affine[frames - 1])[1] - centroid(&affine[0])[1];
    assert!(way < -2.0 * dx, "{D}D: all of it sank by {way} m");
}

#[test]
fn affine_bubbles_follow_two_phase_flow_2d() {
    affine_bubbles_follow_two_phase_flow(&scene_2d("heavy_bubble_2d"), 1.0);
}

#[test]
fn affine_bubbles_follow_two_phase_flow_3d() {
    affine_bubbles_follow_two_phase_flow(&scene_3d("sinking_bubbles", 32), 0.5);
}

/// Both fluids in tiles.
#[test]
fn both_fluids_may_be_affine() {
    let mut scene = scene_2d("heavy_bubble_2d");
    scene.setup.params.surface_band = 4;
    let [plain, both] = [false, true].map(|both| {
        scene.setup.params.affine_liquid = both;
        run(&scene, Model::AffineBubbles, 20)
    });
    assert!(both[19].unknowns.body > 10 * plain[19].unknowns.body, "{:?}", both[19].unknowns);
    assert!(2 * both[19].unknowns.pressure < plain[19].unknowns.pressure, "{:?}", both[19].unknowns);
    let (a, b) = (centroid(&plain[19]), centroid(&both[19]));
    let apart = (a[0] - b[0]).hypot(a[1] - b[1]) / scene.setup.grid.dx;
    println!("{apart:.2} cells apart");
    assert!(apart < 1.0, "{apart} cells apart");
    assert!(most_iterations(&both) <= 12, "{} iterations", most_iterations(&both));
}
