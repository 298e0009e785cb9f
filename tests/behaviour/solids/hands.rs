//! Hands in running simulations: bodies that are pulled, thrown, put in and taken out.

use glug::math::Vector;
use glug::sim::{BodyReport, Edit, EditError, Form, Hold, Model, NewBody, Setup, Simulation};
use rayon::ThreadPoolBuilder;

use crate::checkpoint::{advance_both, statistics, traces};
use crate::sim::{advance, corner_box, tank};

use super::runs::dropped_bodies;

const STEP: f64 = 1.0 / 60.0;

/// A box of a metre, full of calm water up to there, open above.
fn pool<const D: usize>(cells: usize, level: f64) -> Setup<D> {
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, level], 1.0)]);
    setup.open[1][1] = true;
    setup
}

fn start<const D: usize>(setup: &Setup<D>) -> Simulation<D> {
    Simulation::new(setup).expect("it starts")
}

fn new_body(form: Form, density: f64, position: [f64; 3]) -> NewBody {
    NewBody { form, size: 0.24, density, position, velocity: [0.0; 3] }
}

fn add<const D: usize>(simulation: &mut Simulation<D>, form: Form, density: f64, position: [f64; 3]) {
    simulation.edit(&Edit::Add(new_body(form, density, position))).expect("there is room");
}

fn hold(strength: f64) -> Hold {
    Hold { strength, ..Hold::default() }
}

fn names(bodies: &[BodyReport]) -> Vec<(usize, &str)> {
    bodies.iter().map(|body| (body.id, body.name.as_str())).collect()
}

/// What a hand holds under water comes to where it is pulled, and is carried there: the hand does what gravity and lift leave, and
/// momentum changes by the forces there are, in every substep.
fn a_pulled_body_comes_to_its_target<const D: usize>(cells: usize) {
    for density in [200.0, 3000.0] {
        let mut simulation = start(&pool::<D>(cells, 0.7));
        let first = [0.4, 0.4, 0.5];
        add(&mut simulation, Form::Ball, density, first);
        simulation.edit(&Edit::Grab { body: 0, at: first, hold: hold(20.0) }).expect("a body");
        let target = [0.6, 0.33, 0.42];
        simulation.edit(&Edit::Move { body: 0, to: target }).expect("it is held");
        let (mut before, mut worst) = (None, 0.0f64);
        let mut report = simulation.survey();
        for _ in 0..240 {
            // Short enough to be one substep.
            let seconds = 0.25 * STEP;
            report = advance(&mut simulation, seconds);
            let body = &report.bodies[0];
            let pull = body.pull.as_ref().expect("it is held");
            for axis in (0..D).filter(|_| report.substeps == 1) {
                let Some(before): Option<Vec<f64>> = before.clone() else { continue };
                let weight = if axis == 1 { -body.mass * 9.81 } else { 0.0 };
                let force = body.force[axis] + pull.force[axis] + weight;
                let change = body.mass * (body.velocity[axis] - before[axis]);
                worst = worst.max((change - force * seconds).abs() / (body.mass * 9.81 * seconds));
            }
            before = Some(body.velocity.clone());
        }
        let body = &report.bodies[0];
        let off: f64 = (0..D).map(|axis| (body.position[axis] - target[axis]).powi(2)).sum::<f64>().sqrt();
        assert!(off < 0.5 * report.dx, "{D}D, density {density}: {off} m from its target");
        assert!(worst < 1e-9, "{D}D, density {density}: momentum is off by {worst:.1e} of the weight");
        let carried = (body.mass - 1000.0 * body.volume) * 9.81;
        let force = body.pull.as_ref().expect("it is held").force[1];
        let error = (force / carried - 1.0).abs();
        assert!(error < 0.05, "{D}D, density {density}: pulls up with {force} N, not {carried}");
    }
}

#[test]
fn a_pulled_body_comes_to_its_target_2d() {
    a_pulled_body_comes_to_its_target::<2>(40);
}

#[test]
fn a_pulled_body_comes_to_its_target_3d() {
    a_pulled_body_comes_to_its_target::<3>(24);
}

/// A steady hand keeps a body from turning, wherever it holds it; another one lets it hang.
fn a_steady_hand_keeps_a_body_upright<const D: usize>(cells: usize) {
    for steady in [true, false] {
        let mut simulation = start(&pool::<D>(cells, 0.1));
        add(&mut simulation, Form::Box, 500.0, [0.5, 0.6, 0.5]);
        let hold = Hold { steady, ..Hold::default() };
        simulation.edit(&Edit::Grab { body: 0, at: [0.61, 0.71, 0.5], hold }).expect("a body");
        let mut most = 0.0f64;
        for _ in 0..40 {
            let report = advance(&mut simulation, STEP);
            let pose = simulation.state().walls.solids[0].pose(report.time).expect("a body");
            most = most.max((pose.rotation - glug::geometry::Matrix::identity()).norm());
        }
        assert_eq!(most < 0.05, steady, "{D}D: turned by {most}");
    }
}

#[test]
fn a_steady_hand_keeps_a_body_upright_2d() {
    a_steady_hand_keeps_a_body_upright::<2>(32);
}

#[test]
fn a_steady_hand_keeps_a_body_upright_3d() {
    a_steady_hand_keeps_a_body_upright::<3>(20);
}

/// What a hand lets go of flies on as it was pulled, and falls.
#[test]
fn a_body_is_thrown_with_the_speed_it_has() {
    let mut simulation = start(&pool::<2>(32, 0.08));
    add(&mut simulation, Form::Ball, 700.0, [0.25, 0.5, 0.0]);
    simulation.edit(&Edit::Grab { body: 0, at: [0.25, 0.5, 0.0], hold: hold(15.0) }).expect("a body");
    simulation.edit(&Edit::Move { body: 0, to: [0.75, 0.7, 0.0] }).expect("it is held");
    (0..8).for_each(|_| drop(advance(&mut simulation, STEP)));
    let thrown = simulation.bodies()[0].clone();
    simulation.edit(&Edit::Release { body: 0 }).expect("it is held");
    let report = advance(&mut simulation, STEP);
    let body = &report.bodies[0];
    assert!(thrown.velocity[0] > 1.0 && body.pull.is_none(), "{thrown:?}");
    assert!((body.velocity[0] - thrown.velocity[0]).abs() < 1e-6, "{body:?}");
    assert!((body.velocity[1] - thrown.velocity[1] + 9.81 * STEP).abs() < 1e-6, "{body:?}");
}

/// A body that was put into calm water and taken out again leaves all as it was, but for the water that made way.
fn what_is_taken_out_leaves_nothing_but_a_lack_of_water<const D: usize>(cells: usize) {
    let mut setup = pool::<D>(cells, 0.6);
    // Particles everywhere, to count them.
    setup.params.narrow_band = 0;
    let mut alone = start(&setup);
    let mut edited = alone.branch();
    add(&mut edited, Form::Ball, 1000.0, [0.5, 0.3, 0.5]);
    let shown = edited.bodies();
    assert_eq!(names(&shown), [(0, "ball 1")], "seen at once");
    let volume = shown[0].volume;
    let before = advance(&mut alone, STEP);
    let with = advance(&mut edited, STEP);
    assert!((with.bodies[0].submerged - 1.0).abs() < 0.02, "{D}D: {:?}", with.bodies[0]);
    let lost = before.liquid.volume - with.liquid.volume;
    assert!((lost / volume - 1.0).abs() < 0.1, "{D}D: {lost} m³ for a body of {volume}");
    edited.edit(&Edit::Remove { body: 0 }).expect("it is there");
    assert!(edited.bodies().is_empty(), "gone at once");
    let (mut one, mut other) = (before, with);
    for _ in 0..90 {
        [one, other] = [&mut alone, &mut edited].map(|simulation| advance(simulation, STEP));
        assert!(other.warnings.is_empty() && other.bodies.is_empty(), "{D}D: {:?}", other.warnings);
    }
    let lost = one.liquid.volume - other.liquid.volume;
    assert!((lost / volume - 1.0).abs() < 0.15, "{D}D: {lost} m³ for a body of {volume}");
    let particles = (one.particles - other.particles) as f64 / one.particles as f64;
    let share = volume / one.liquid.volume;
    assert!((particles / share - 1.0).abs() < 0.25, "{D}D: {particles} of the particles, not {share}");
    let walls = &edited.state().walls;
    assert!(walls.bodies(other.time).next().is_none(), "nothing is left in the walls");
}

#[test]
fn what_is_taken_out_leaves_nothing_but_a_lack_of_water_2d() {
    what_is_taken_out_leaves_nothing_but_a_lack_of_water::<2>(40);
}

#[test]
fn what_is_taken_out_leaves_nothing_but_a_lack_of_water_3d() {
    what_is_taken_out_leaves_nothing_but_a_lack_of_water::<3>(20);
}

/// In the air it leaves the liquid alone.
#[test]
fn a_body_in_the_air_leaves_the_liquid_alone() {
    let mut setup = pool::<2>(40, 0.3);
    // No faster than it is corrected where something moves.
    setup.params.volume_correction = 4.0;
    let mut alone = start(&setup);
    let mut edited = alone.branch();
    add(&mut edited, Form::Box, 500.0, [0.5, 0.8, 0.0]);
    for frame in 0..6 {
        let [one, other] = [&mut alone, &mut edited].map(|simulation| advance(simulation, STEP));
        assert_eq!(one.particles, other.particles, "frame {frame}");
        let change = (one.liquid.volume - other.liquid.volume).abs();
        assert!(change < 1e-6, "frame {frame}: {change:.1e}");
        if frame == 3 {
            edited.edit(&Edit::Remove { body: 0 }).expect("it is there");
        }
    }
}

#[test]
fn numbers_stay_when_bodies_go() {
    let mut simulation = start(&pool::<2>(40, 0.3));
    add(&mut simulation, Form::Ball, 500.0, [0.2, 0.7, 0.0]);
    add(&mut simulation, Form::Box, 500.0, [0.6, 0.7, 0.0]);
    simulation.edit(&Edit::Remove { body: 0 }).expect("it is there");
    add(&mut simulation, Form::Cup, 2500.0, [0.2, 0.7, 0.0]);
    let expected = [(1, "box 1"), (2, "glass cup 1")];
    assert_eq!(names(&simulation.bodies()), expected);
    assert_eq!(names(&advance(&mut simulation, STEP).bodies), expected);
    let gone = Err(EditError::NoBody(0));
    assert_eq!(simulation.edit(&Edit::Remove { body: 0 }), gone);
    assert_eq!(simulation.edit(&Edit::Grab { body: 0, at: [0.2, 0.7, 0.0], hold: Hold::default() }), gone);
    assert_eq!(simulation.edit(&Edit::Move { body: 1, to: [0.0; 3] }), Err(EditError::NotHeld(1)));
    assert_eq!(simulation.edit(&Edit::Release { body: 1 }), Ok(()));
}

/// A body that would overlap a wall a little is moved out of it; one without room is refused in a line, and takes its number along,
/// so that simulations side by side count alike.
#[test]
fn bodies_find_room_or_are_refused() {
    let mut setup = pool::<2>(40, 0.3);
    setup.open = [[false; 2]; 2];
    let mut simulation = start(&setup);
    add(&mut simulation, Form::Ball, 500.0, [0.02, 0.01, 0.0]);
    let position = simulation.bodies()[0].position.clone();
    assert!(position.iter().all(|x| (0.12..0.13).contains(x)), "{position:?}");
    add(&mut simulation, Form::Box, 500.0, [0.3, 0.2, 0.0]);
    let other = simulation.bodies()[1].position.clone();
    let apart = Vector::<2>::from_fn(|k, _| ((other[k] - position[k]).abs() - 0.12).max(0.0)).norm();
    assert!(apart > 0.12 && apart < 0.13, "the box is {apart} m from the ball's middle");
    let huge = NewBody { size: 0.85, ..new_body(Form::Box, 500.0, [0.5, 0.5, 0.0]) };
    let refused = simulation.edit(&Edit::Add(huge)).expect_err("there is no room");
    let message = refused.to_string();
    assert!(message.starts_with("there is no room for the box at that place: "), "{message}");
    assert_eq!(names(&simulation.bodies()), [(0, "ball 1"), (1, "box 1")]);
    add(&mut simulation, Form::Ball, 500.0, [0.7, 0.7, 0.0]);
    assert_eq!(simulation.bodies()[2].id, 3, "the one that was refused took number 2");
    for (what, body) in [
        ("density", NewBody { density: f64::NAN, ..new_body(Form::Box, 0.0, [0.5; 3]) }),
        ("size", NewBody { size: 1e-3, ..new_body(Form::Box, 1.0, [0.5; 3]) }),
        ("place", new_body(Form::Box, 1.0, [1.5, 0.5, 0.0])),
    ] {
        let message = simulation.edit(&Edit::Add(body)).expect_err("it cannot be").to_string();
        assert!(message.contains(what) && message.lines().count() == 1, "{message}");
    }
}

/// What hands do in a tank with two bodies, before a frame.
fn play<const D: usize>(simulation: &mut Simulation<D>, frame: usize) {
    let edits: &[Edit] = match frame {
        1 => &[
            Edit::Add(NewBody { size: 0.22, ..new_body(Form::Cup, 2500.0, [0.5, 0.85, 0.5]) }),
            Edit::Grab {
                body: 0,
                at: [0.4, 0.6, 0.5],
                hold: Hold { strength: 20.0, damping: 0.7, steady: true },
            },
            Edit::Move { body: 0, to: [0.4, 0.2, 0.5] },
        ],
        3 => &[
            Edit::Move { body: 0, to: [0.6, 0.3, 0.5] },
            Edit::Remove { body: 1 },
            Edit::Grab {
                body: 2,
                at: [0.5, 0.9, 0.5],
                hold: Hold { strength: 20.0, damping: 1.0, steady: false },
            },
        ],
        4 => &[
            Edit::Move { body: 2, to: [0.7, 0.4, 0.4] },
            Edit::Add(NewBody { size: 0.22, ..new_body(Form::Ball, 300.0, [0.2, 0.2, 0.4]) }),
        ],
        6 => &[Edit::Release { body: 0 }],
        _ => &[],
    };
    edits.iter().for_each(|edit| simulation.edit(edit).expect("there is room"));
}

/// The same bits for any number of threads.
fn threads_do_not_change_a_bit<const D: usize>(cells: usize, frames: usize) {
    let setup = dropped_bodies::<D>(cells, Model::Constraint);
    let run = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut simulation = start(&setup);
            let frame = |frame| {
                play(&mut simulation, frame);
                statistics(advance(&mut simulation, STEP))
            };
            let reports: Vec<String> = (0..frames).map(frame).collect();
            (reports, traces(&simulation))
        })
    };
    let one = run(1);
    for threads in [2, 3] {
        let several = run(threads);
        assert_eq!(one.0, several.0, "{D}D: statistics with {threads} threads");
        assert!(one.1 == several.1, "{D}D: fields or particles with {threads} threads");
    }
}

#[test]
fn threads_do_not_change_a_bit_2d() {
    threads_do_not_change_a_bit::<2>(40, 10);
}

#[test]
fn threads_do_not_change_a_bit_3d() {
    threads_do_not_change_a_bit::<3>(20, 8);
}

/// A run that was saved in the middle of it all goes on as if it had not been, in every model.
fn resumed_runs_are_like_uninterrupted_ones<const D: usize>(cells: usize, narrow_band: u32) {
    for model in Model::ALL {
        let mut setup = dropped_bodies::<D>(cells, model);
        setup.params.narrow_band = narrow_band;
        let mut whole = start(&setup);
        for frame in 0..5 {
            play(&mut whole, frame);
            let report = if frame < 4 { advance(&mut whole, STEP) } else { whole.survey() };
            assert!(report.warnings.is_empty(), "{D}D {}: {:?}", model.name(), report.warnings);
        }
        // With a ball that is there from the next substep on.
        let mut saved = Vec::new();
        whole.save(&mut saved).expect("it is saved");
        let mut resumed = Simulation::<D>::load(&setup, saved.as_slice()).expect("it is read");
        for frame in 5..9 {
            [&mut whole, &mut resumed].into_iter().for_each(|simulation| play(simulation, frame));
            advance_both(&mut whole, &mut resumed, STEP, &format!("{D}D {}", model.name()));
        }
        assert_eq!(whole.state().hands, resumed.state().hands, "{D}D {}", model.name());
    }
}

#[test]
fn resumed_runs_are_like_uninterrupted_ones_2d() {
    resumed_runs_are_like_uninterrupted_ones::<2>(40, 8);
}

#[test]
fn resumed_runs_are_like_uninterrupted_ones_3d() {
    resumed_runs_are_like_uninterrupted_ones::<3>(20, 0);
}
