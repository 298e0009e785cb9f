//! Runs with trapped air: pistons, chambers, bells, and the switch between models.

use glug::geometry::{Motion, Shape, Solid};
use glug::math::Vector;
use glug::scene::{AnyScene, Overrides, Scene, load};
use glug::sim::{BubbleReport, FrameReport, Model, Setup, Simulation};

use crate::sim::{advance, corner_box, scene_2d, scene_3d, tank};

fn scene_with(name: &str, cells: usize) -> Scene<2> {
    match load(name, &Overrides { cells: Some(cells), ..Overrides::default() }) {
        Ok(AnyScene::TwoD(scene)) => scene,
        other => panic!("{name} is a scene in two dimensions, not {other:?}"),
    }
}

fn open_air(report: &FrameReport) -> f64 {
    report.bubbles.iter().filter(|bubble| bubble.open).map(|bubble| bubble.volume).sum()
}

/// Every constrained bubble's net flux is what the correction asked for.
fn check_fluxes(report: &FrameReport) {
    let dt = report.time / report.frame as f64 / report.substeps as f64;
    for bubble in report.bubbles.iter().filter(|bubble| bubble.constrained) {
        let BubbleReport { net_flux, correction, volume, .. } = bubble;
        let error = (net_flux - correction).abs() * dt;
        assert!(error < 1e-6 * volume, "frame {}: {bubble:?} is off by {error:.1e}", report.frame);
    }
}

/// The piston's stroke of 0.2 m in an arm 0.2 m wide comes out at the spout, and goes back in again.
#[test]
fn a_piston_moves_its_volume_to_the_spout_and_back() {
    let scene = scene_with("bubble_tube_2d", 56);
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let (mut start, mut most) = (None, 0.0);
    let per_stroke = (2.0 * scene.fps) as usize;
    for frame in 1..=2 * per_stroke {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        check_fluxes(&report);
        let air = open_air(&report);
        let displaced = *start.get_or_insert(air) - air;
        if frame == per_stroke {
            most = displaced;
        }
        if frame == 2 * per_stroke {
            let back = most - displaced;
            assert!((most / 0.04 - 1.0).abs() < 0.015, "{most:.5} m² came out of the spout, swept 0.04");
            assert!((back / 0.04 - 1.0).abs() < 0.015, "{back:.5} m² went back, swept 0.04");
        }
    }
}

/// Two chambers joined under water, the left one under a lid.
fn chambers<const D: usize>(model: Model) -> Setup<D> {
    let mut size = [0.4; D];
    (size[0], size[1]) = (1.0, 0.8);
    let left = corner_box([0.0, 0.0], [0.45, 0.2], 0.4);
    let right = corner_box([0.55, 0.0], [1.0, 0.5], 0.4);
    let gap = corner_box([0.45, 0.0], [0.55, 0.1], 0.4);
    let mut setup = tank(size, if D == 2 { 60 } else { 40 }, vec![left, right, gap]);
    setup.open[1][1] = true;
    let (mut min, mut max) = (Vector::<D>::repeat(-1.0), Vector::<D>::repeat(2.0));
    (min[0], max[0], min[1]) = (0.45, 0.55, 0.1);
    setup.solids.push(Solid::new("wall", Shape::Box { min, max }, Motion::default()));
    let (mut min, mut max) = (Vector::<D>::repeat(-1.0), Vector::<D>::repeat(2.0));
    (max[0], min[1]) = (0.5, 0.7);
    setup.solids.push(Solid::new("lid", Shape::Box { min, max }, Motion::default()));
    setup.params.model = model;
    setup
}

/// Level in the left and the right chamber, from the air above.
fn levels(report: &FrameReport, depth: f64) -> [f64; 2] {
    let air = |open: bool| {
        let air = report.bubbles.iter().filter(move |bubble| bubble.open == open && !bubble.void);
        air.map(|bubble| bubble.volume).sum::<f64>() / (0.45 * depth)
    };
    [0.7 - air(false), 0.8 - air(true)]
}

fn trapped_air_keeps_the_levels_apart<const D: usize>() {
    let depth = if D == 2 { 1.0 } else { 0.4 };
    let mut simulation = Simulation::new(&chambers::<D>(Model::Constraint)).expect("it starts");
    let mut last = FrameReport::default();
    for _ in 0..45 {
        last = advance(&mut simulation, 1.0 / 30.0);
        check_fluxes(&last);
    }
    let [left, right] = levels(&last, depth);
    assert!(
        (left - 0.2).abs() < last.dx && (right - 0.5).abs() < last.dx,
        "{D}D: levels {left:.3} and {right:.3}"
    );
    // Let go, they meet at 0.35 m; friction is small, so they swing for a while.
    let mut simulation = Simulation::new(&chambers::<D>(Model::FreeSurface)).expect("it starts");
    let reports: Vec<FrameReport> = (0..150).map(|_| advance(&mut simulation, 1.0 / 30.0)).collect();
    let late = &reports[90..];
    let mean = late.iter().map(|report| levels(report, depth)[0]).sum::<f64>() / late.len() as f64;
    assert!((mean - 0.35).abs() < 2.0 * last.dx, "{D}D: a free surface settles at {mean:.3}");
}

#[test]
fn trapped_air_keeps_the_levels_apart_2d() {
    trapped_air_keeps_the_levels_apart::<2>();
}

#[test]
fn trapped_air_keeps_the_levels_apart_3d() {
    trapped_air_keeps_the_levels_apart::<3>();
}

/// Everything about the particles, as bits.
fn bits<const D: usize>(simulation: &Simulation<D>) -> Vec<u32> {
    let all = simulation.particle_positions().iter().chain(simulation.particle_velocities());
    all.flatten().map(|x| x.to_bits()).collect()
}

/// Volume of all bubbles.
fn closed_air(report: &FrameReport) -> f64 {
    report.bubbles.iter().filter(|bubble| !bubble.open && !bubble.void).map(|bubble| bubble.volume).sum()
}

#[test]
fn switching_the_model_acts_on_the_next_step_and_on_nothing_else() {
    let scene = scene_2d("rising_bubble_2d");
    let start = || {
        let mut simulation = Simulation::new(&scene.setup).expect("it starts");
        (0..10).for_each(|_| drop(advance(&mut simulation, 1.0 / scene.fps)));
        simulation
    };
    let (mut kept, mut toggled, mut switched) = (start(), start(), start());
    let before = bits(&kept);
    // There and back without a step in between.
    toggled.params.model = Model::FreeSurface;
    assert!(bits(&toggled) == before, "a switch moves nothing");
    toggled.params.model = Model::Constraint;
    switched.params.model = Model::FreeSurface;
    let reports = [&mut kept, &mut toggled, &mut switched].map(|simulation| advance(simulation, 1e-3));
    assert!(bits(&kept) == bits(&toggled), "there and back is nothing at all");
    assert!(bits(&kept) != bits(&switched), "but the next step is another one");
    let whole = closed_air(&reports[0]);
    let [kept, _, switched] = reports.map(|report| report.bubbles.into_iter().find(|bubble| !bubble.open));
    let (kept, switched) = (kept.expect("the bubble"), switched.expect("the bubble"));
    assert_eq!((kept.constrained, switched.constrained), (true, false));
    assert_eq!(kept.id, switched.id, "it is the same bubble");
    let drift = (kept.net_flux - kept.correction).abs();
    assert!(drift < 1e-6, "{drift:.1e} beyond the correction");
    assert!(switched.correction == 0.0 && switched.net_flux < -0.01, "{switched:?} falls in");
    // And back again: what is left of it, by now in pieces, keeps its volume.
    let mut simulation = start();
    simulation.params.model = Model::FreeSurface;
    advance(&mut simulation, 0.05);
    simulation.params.model = Model::Constraint;
    let left = closed_air(&advance(&mut simulation, 1e-3));
    let later = (0..5).map(|_| closed_air(&advance(&mut simulation, 1e-2))).last().expect("five frames");
    assert!(left > 0.0 && left < 0.95 * whole, "{left} of {whole}");
    assert!((later / left - 1.0).abs() < 0.02, "{left} became {later}");
}

/// A copy of a simulation goes the way of the original, bit by bit, until something is changed.
fn a_branch_goes_the_same_way<const D: usize>(scene: &Scene<D>) {
    let mut original = Simulation::new(&scene.setup).expect("it starts");
    (0..4).for_each(|_| drop(advance(&mut original, 1.0 / scene.fps)));
    let [mut same, mut other] = [original.branch(), original.branch()];
    other.params.gravity *= 0.5;
    for simulation in [&mut original, &mut same, &mut other] {
        (0..3).for_each(|_| drop(advance(simulation, 1.0 / scene.fps)));
    }
    assert!(bits(&original) == bits(&same), "the same bits");
    assert!(bits(&original) != bits(&other), "another way");
}

#[test]
fn a_branch_goes_the_same_way_2d() {
    a_branch_goes_the_same_way(&scene_with("water_cooler_2d", 48));
}

#[test]
fn a_branch_goes_the_same_way_3d() {
    a_branch_goes_the_same_way(&scene_3d("rising_bubbles", 16));
}

/// The bell takes its air down: as much of it under water as above.
#[test]
fn a_bell_keeps_its_air_under_water() {
    let scene = scene_with("diving_bell_2d", 64);
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let mut first = None;
    for _ in 0..120 {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        check_fluxes(&report);
        let air: f64 = report.bubbles.iter().filter(|b| !b.open && !b.void).map(|b| b.volume).sum();
        let first = *first.get_or_insert(air);
        let drift = air / first - 1.0;
        assert!(drift.abs() < 0.01, "frame {}: {:.2} % of the air", report.frame, 100.0 * drift);
    }
}

/// Air above a shelf and in a sealed box touches no liquid: no particle speaks for it, and yet it is who it was.
#[test]
fn air_without_liquid_keeps_its_name() {
    let mut setup = chambers::<2>(Model::Constraint);
    let shelf = corner_box([-1.0, 0.5], [0.5, 0.55], 1.0);
    setup.solids[1] = Solid::new("shelf", shelf, Motion::default());
    let hollow = Shape::Difference(
        Box::new(corner_box([0.65, 0.55], [0.95, 0.78], 1.0)),
        vec![corner_box([0.7, 0.6], [0.9, 0.73], 1.0)],
    );
    setup.solids.push(Solid::new("hollow", hollow, Motion::default()));
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let ids = |report: &FrameReport| {
        let mut ids: Vec<u64> = report.bubbles.iter().map(|bubble| bubble.id).collect();
        ids.sort_unstable();
        ids
    };
    let first = advance(&mut simulation, 1.0 / 30.0);
    assert_eq!(first.bubbles.len(), 4, "{:?}", first.bubbles);
    assert_eq!(
        first.bubbles.iter().filter(|bubble| bubble.open).count(),
        2,
        "over the shelf and on the right"
    );
    for _ in 0..8 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        assert_eq!(ids(&report), ids(&first), "frame {}", report.frame);
        assert!(report.events.is_empty(), "frame {}: {:?}", report.frame, report.events);
    }
}
