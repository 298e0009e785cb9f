//! A bubble keeps its number.

use std::collections::BTreeSet;

use glug::bubbles::{EventKind, number};
use glug::geometry::{Motion, Move, Shape, Solid};
use glug::math::Vector;
use glug::scene::{AnyScene, Overrides, Scene, load};
use glug::sim::{BubbleReport, FrameReport, Model, Setup, Simulation};

use crate::sim::{advance, corner_box, tank};

/// A closed tank, its air in two rooms under the ceiling. The wall between them rises to the ceiling, and comes down
/// again. On the right, where more air is, little of the water has a surface: a shelf covers the rest.
fn two_rooms<const D: usize>() -> Setup<D> {
    let mut size = [0.3; D];
    (size[0], size[1]) = (1.0, 1.0);
    let mut setup = tank(size, 40, vec![corner_box([0.0, 0.0], [1.0, 0.4], 0.3)]);
    setup.params.model = Model::Constraint;
    let slab = |low: [f64; 2], high: [f64; 2]| {
        let (mut min, mut max) = (Vector::<D>::repeat(-1.0), Vector::<D>::repeat(2.0));
        (min[0], min[1], max[0], max[1]) = (low[0], low[1], high[0], high[1]);
        Shape::Box { min, max }
    };
    let glide = |speed: f64, from: f64| {
        let mut velocity = Vector::<D>::zeros();
        velocity[1] = speed;
        Move::Glide { velocity, from, until: from + 0.3 }
    };
    let motion = Motion::new(vec![glide(0.4, 0.1), glide(-0.4, 0.6)]);
    setup.solids.push(Solid::new("wall", slab([0.3375, 0.15], [0.4125, 0.925]), motion));
    setup.solids.push(Solid::new("shelf", slab([0.525, 0.3], [1.5, 0.5]), Motion::default()));
    setup
}

fn a_wall_splits_and_merges<const D: usize>() {
    let mut simulation = Simulation::new(&two_rooms::<D>()).expect("it starts");
    let (mut split, mut merged) = (None, None);
    for frame in 1..=36 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        for event in &report.events {
            match event.kind {
                EventKind::SplitFrom(1) if split.is_none() => split = Some(event.id),
                EventKind::MergedInto(1) if split == Some(event.id) => merged = Some(frame),
                _ => {}
            }
        }
        let mut bubbles: Vec<&BubbleReport> = report.bubbles.iter().collect();
        bubbles.sort_by(|a, b| b.volume.total_cmp(&a.volume));
        assert_eq!(bubbles[0].id, 1, "{D}D frame {frame}: the largest part, {bubbles:?}");
        if split.is_some() && merged.is_none() {
            assert!(bubbles.len() > 1 && Some(bubbles[1].id) == split, "{D}D frame {frame}: {bubbles:?}");
            // The smaller room is the one with more of the surface.
            assert!(bubbles[1].centroid[0] < 0.35 && bubbles[0].centroid[0] > 0.45, "{D}D: {bubbles:?}");
        }
    }
    assert_eq!(split, Some(2), "{D}D: the smaller part is the second bubble");
    assert!(merged.is_some_and(|frame| frame > 18), "{D}D: merged in frame {merged:?}");
}

#[test]
fn the_largest_part_and_the_largest_parent_carry_the_number_on_2d() {
    a_wall_splits_and_merges::<2>();
}

#[test]
fn the_largest_part_and_the_largest_parent_carry_the_number_on_3d() {
    a_wall_splits_and_merges::<3>();
}

/// The largest bubble that cannot leave.
fn largest(report: &FrameReport) -> Option<&BubbleReport> {
    let trapped = report.bubbles.iter().filter(|bubble| !bubble.open && !bubble.void);
    trapped.max_by(|a, b| a.volume.total_cmp(&b.volume))
}

/// Runs a scene, and expects its largest bubble to be called 1 from the first frame to the last.
fn the_largest_is_the_first_all_along<const D: usize>(scene: &Scene<D>, frames: usize) {
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let mut numbers = BTreeSet::new();
    for frame in 1..=frames {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        let bubble = largest(&report).unwrap_or_else(|| panic!("frame {frame}: no bubble"));
        assert_eq!(bubble.id, 1, "frame {frame}: {:?}, {:?}", report.bubbles, report.events);
        numbers.extend(report.bubbles.iter().filter_map(|bubble| number(bubble.id)));
    }
    println!("{} numbers, up to {:?}", numbers.len(), numbers.last());
}

fn the_largest_of(name: &str, cells: usize, frames: usize) {
    match load(name, &Overrides { cells: Some(cells), ..Overrides::default() }) {
        Ok(AnyScene::TwoD(scene)) => the_largest_is_the_first_all_along(&scene, frames),
        Ok(AnyScene::ThreeD(scene)) => the_largest_is_the_first_all_along(&scene, frames),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_air_in_a_bell_keeps_its_number() {
    the_largest_of("diving_bell_2d", 64, 120);
}

#[test]
fn the_air_in_a_cup_keeps_its_number() {
    the_largest_of("cup_under_water_2d", 50, 90);
}

#[test]
fn the_air_in_a_tube_keeps_its_number() {
    the_largest_of("bubble_tube", 40, 20);
}

/// It breaks up, and the largest part met the second largest again: both went on under the name of that one.
#[test]
fn a_breaking_bubble_keeps_its_number() {
    the_largest_of("light_bubble_2d", 64, 20);
}
