//! Whole lives of bubbles: who appears, who goes, and where the volume is.

use std::collections::BTreeSet;

use glug::bubbles::{Event, EventKind};
use glug::geometry::{Label, Shape};
use glug::math::Vector;
use glug::scene::Scene;
use glug::sim::{Drain, FrameReport, Model, Setup, Simulation};

use crate::sim::{advance, corner_box, scene_2d, scene_3d, tank};

/// Checks that bubbles come and go only with an event that says why.
#[derive(Default)]
struct Register {
    alive: BTreeSet<u64>,
    gone: usize,
    kinds: BTreeSet<&'static str>,
}

fn is_birth(kind: EventKind) -> bool {
    use EventKind::*;
    matches!(kind, Present | Released | Trapped | SplitFrom(_) | Void | Formed)
}

fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Present => "present",
        EventKind::Released => "released",
        EventKind::Trapped => "trapped",
        EventKind::SplitFrom(_) => "split",
        EventKind::MergedInto(_) => "merged",
        EventKind::Burst => "burst",
        EventKind::Collapsed => "collapsed",
        EventKind::Void => "void",
        EventKind::Closed => "closed",
        EventKind::Formed => "formed",
    }
}

impl Register {
    fn check(&mut self, report: &FrameReport) {
        let mut expected = self.alive.clone();
        for Event { id, kind, .. } in &report.events {
            self.kinds.insert(name(*kind));
            if is_birth(*kind) {
                assert!(expected.insert(*id), "frame {}: {id} was there and came again", report.frame);
            } else {
                assert!(expected.remove(id), "frame {}: {id} went twice, {kind:?}", report.frame);
                self.gone += 1;
            }
        }
        let found: BTreeSet<u64> = report.bubbles.iter().map(|bubble| bubble.id).collect();
        assert_eq!(found.len(), report.bubbles.len(), "frame {}: names are unique", report.frame);
        assert_eq!(found, expected, "frame {}: what is there and what was recorded", report.frame);
        self.alive = found;
    }
}

#[test]
fn no_bubble_goes_without_a_word() {
    let scene = scene_3d("carbonated_glass", 24);
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let mut register = Register::default();
    for _ in 0..90 {
        register.check(&advance(&mut simulation, 1.0 / scene.fps));
    }
    assert!(simulation.state().steps >= 90, "{} steps", simulation.state().steps);
    assert!(register.gone > 10, "only {} bubbles ended", register.gone);
    assert!(register.kinds.contains("released") && register.kinds.contains("burst"), "{:?}", register.kinds);
}

/// The same where bubbles break and meet.
#[test]
fn no_glug_goes_without_a_word() {
    let scene = scene_2d("water_cooler_2d");
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let mut register = Register::default();
    for _ in 0..60 {
        register.check(&advance(&mut simulation, 1.0 / scene.fps));
    }
    for kind in ["present", "trapped", "split", "merged"] {
        assert!(register.kinds.contains(kind), "{kind} is not among {:?}", register.kinds);
    }
}

#[test]
#[ignore = "20,000 steps take about half an hour"]
fn a_long_soak_loses_no_bubble_and_no_memory() {
    let scene: Scene<3> = scene_3d("carbonated_glass", 20);
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let mut register = Register::default();
    let mut early = None;
    while simulation.state().steps < 20_000 {
        register.check(&advance(&mut simulation, 1.0 / scene.fps));
        if simulation.state().steps > 2_000 && early.is_none() {
            early = Some((simulation.memory(), simulation.tracker().records().len()));
        }
    }
    let (then, records) = early.expect("it got that far");
    let now = simulation.memory();
    println!("{} bubbles ended; {then:?} became {now:?}", register.gone);
    assert!(now.grid_bytes as f64 <= 1.25 * then.grid_bytes as f64, "{then:?} became {now:?}");
    assert!(now.particle_bytes as f64 <= 1.25 * then.particle_bytes as f64, "{then:?} became {now:?}");
    let left = simulation.tracker().records().len();
    assert!(left <= 4 * records + 40, "{records} records became {left}");
    assert!(simulation.tracker().history().events().count() <= 4096);
}

/// A closed tank with two bubbles and a drop that falls on the water: splits, merges, spray.
fn busy_tank<const D: usize>() -> Setup<D> {
    let ball = |x: f64, y: f64, radius: f64| {
        let mut center = Vector::<D>::repeat(0.5);
        (center[0], center[1]) = (x, y);
        Shape::Sphere { center, radius }
    };
    let water = corner_box([0.0, 0.0], [1.0, 0.55], 1.0);
    let body = Shape::Difference(Box::new(water), vec![ball(0.3, 0.2, 0.12), ball(0.62, 0.25, 0.14)]);
    let mut setup = tank([1.0; D], if D == 2 { 64 } else { 28 }, vec![body, ball(0.5, 0.8, 0.1)]);
    setup.params.model = Model::Constraint;
    setup
}

/// Rest volumes are never made and never lost: liquid that flies as spray is the only one that air makes room for.
fn a_closed_tank_keeps_its_rest_volume<const D: usize>(frames: usize) {
    let setup = busy_tank::<D>();
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let sums = |simulation: &Simulation<D>| {
        let tracker = simulation.tracker();
        let sum = |phase: Label| {
            let records = tracker.records().iter().filter(move |record| record.phase == phase);
            records.map(|record| record.rest).sum::<f64>()
        };
        let room: f64 = tracker.records().iter().map(|record| record.volume).sum();
        (sum(Label::Liquid) + tracker.spray(), sum(Label::Air) + sum(Label::Liquid), room)
    };
    let (liquid, _, room) = sums(&simulation);
    let mut register = Register::default();
    for frame in 1..=frames {
        register.check(&advance(&mut simulation, 1.0 / 30.0));
        let now = sums(&simulation);
        let drift = now.0 / liquid - 1.0;
        assert!(drift.abs() < 1e-9, "{D}D frame {frame}: {drift:.1e} of the liquid's rest volume");
        assert!((now.1 / now.2 - 1.0).abs() < 1e-9, "{D}D frame {frame}: all rest volumes fill the room");
        assert!(
            (now.2 / room - 1.0).abs() < 1e-3,
            "{D}D frame {frame}: the room is {} and was {room}",
            now.2
        );
    }
    assert!(
        register.kinds.contains("split") && register.kinds.contains("merged"),
        "{D}D: {:?}",
        register.kinds
    );
}

#[test]
fn a_closed_tank_keeps_its_rest_volume_2d() {
    a_closed_tank_keeps_its_rest_volume::<2>(60);
}

#[test]
fn a_closed_tank_keeps_its_rest_volume_3d() {
    a_closed_tank_keeps_its_rest_volume::<3>(30);
}

/// A hole torn into still water without a cause: recognised at once, and gone within five frames. The bubble nearby
/// keeps its rest volume.
fn a_hole_without_a_cause_is_closed<const D: usize>(open: bool) {
    let cells = if D == 2 { 48 } else { 24 };
    let dx = 1.0 / cells as f64;
    let mut center = Vector::<D>::repeat(0.5);
    center[1] = 0.25;
    let water = corner_box([0.0, 0.0], [1.0, 0.7], 1.0);
    let bubble = Shape::Sphere { center, radius: 0.12 };
    let body = Shape::Difference(Box::new(water), vec![bubble]);
    let mut setup = tank([1.0; D], cells, vec![body]);
    setup.open[1][1] = open;
    setup.params.model = Model::Constraint;
    // Without weight nothing else moves, and nothing but the void can cause an event.
    setup.params.gravity = 0.0;
    let mut hole = Vector::<D>::repeat(0.5);
    (hole[0], hole[1]) = (0.2, 0.4);
    let shape = Shape::Sphere { center: hole, radius: 1.7 * dx };
    setup.drains.push(Drain { shape, from: 0.05, until: 0.08 });
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let (mut opened, mut closed, mut rest) = (None, None, None);
    for frame in 1..=16 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        for event in &report.events {
            match event.kind {
                EventKind::Void => opened = opened.or(Some((frame, event.id))),
                EventKind::Closed => closed = Some((frame, event.id)),
                EventKind::Present if frame == 1 => {}
                other => panic!("{D}D open {open}, frame {frame}: {other:?}"),
            }
        }
        if let Some((_, id)) = opened.filter(|_| closed.is_none()) {
            let void = report.bubbles.iter().find(|bubble| bubble.id == id).expect("it is reported");
            assert!(void.void && void.rest_volume == 0.0 && void.correction <= 0.0, "{D}D: {void:?}");
        }
        let kept = report.bubbles.iter().filter(|bubble| !bubble.void && !bubble.open);
        let sum: f64 = kept.map(|bubble| bubble.rest_volume).sum();
        let first = *rest.get_or_insert(sum);
        // In the closed tank the other air takes over what the drained liquid leaves.
        let lost = if D == 2 { 12.0 } else { 26.0 } * dx.powi(D as i32);
        let room = if open { 1e-9 } else { lost / first };
        assert!((sum / first - 1.0).abs() < room, "{D}D open {open}, frame {frame}: {sum} was {first}");
    }
    let (Some((from, id)), Some((until, same))) = (opened, closed) else {
        panic!("{D}D open {open}: void {opened:?}, closed {closed:?}");
    };
    assert_eq!(id, same, "{D}D: the void that opened is the one that closed");
    assert!(until <= from + 5, "{D}D open {open}: open from frame {from} to {until}");
}

#[test]
fn a_hole_without_a_cause_is_closed_2d() {
    a_hole_without_a_cause_is_closed::<2>(true);
    a_hole_without_a_cause_is_closed::<2>(false);
}

#[test]
fn a_hole_without_a_cause_is_closed_3d() {
    a_hole_without_a_cause_is_closed::<3>(true);
    a_hole_without_a_cause_is_closed::<3>(false);
}
