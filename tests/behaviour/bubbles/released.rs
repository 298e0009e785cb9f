//! A round bubble let go in still water: added-mass theory says how fast it starts to rise.

use glug::geometry::Shape;
use glug::math::Vector;
use glug::sim::{Model, Simulation};

use crate::sim::{advance, tank};

/// Acceleration of the bubble in the first substep, over g, and the bubble's radius as it is measured.
fn first_acceleration<const D: usize>(cells: usize) -> f64 {
    let (centre, radius) = (Vector::<D>::repeat(0.8), 0.15);
    let water = Shape::Box { min: Vector::zeros(), max: Vector::repeat(1.6) };
    let bubble = Shape::Sphere { center: centre, radius };
    let body = Shape::Difference(Box::new(water), vec![bubble]);
    let mut setup = tank([1.6; D], cells, vec![body]);
    setup.params.model = Model::Constraint;
    setup.params.tolerance = 1e-9;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let report = advance(&mut simulation, 1e-3);
    assert_eq!((report.substeps, report.bubbles.len()), (1, 1), "{D}D: one step, one bubble");
    let bubble = &report.bubbles[0];
    let sideways = (0..D).filter(|&k| k != 1).map(|k| bubble.velocity[k].abs()).fold(0.0, f64::max);
    let rise = bubble.velocity[1];
    assert!(sideways < 0.05 * rise, "{D}D: {:?} goes straight up", bubble.velocity);
    rise / report.time / setup.params.gravity
}

fn a_released_bubble_starts_as_theory_says<const D: usize>(expected: f64, cells: [usize; 3]) {
    let found = cells.map(first_acceleration::<D>);
    println!("{D}D: {cells:?} cells give {found:?} g");
    let finest = found[2] / expected - 1.0;
    assert!(finest.abs() < 0.08, "{D}D: {:.4} g and not {expected} g", found[2]);
    // Walls and a finite tank leave a few percent; what the grid adds gets less.
    let (coarse, fine) = ((found[1] - found[0]).abs(), (found[2] - found[1]).abs());
    assert!(fine < coarse || fine < 0.01 * expected, "{D}D: {found:?} settles");
}

#[test]
fn a_released_bubble_starts_as_theory_says_2d() {
    a_released_bubble_starts_as_theory_says::<2>(1.0, [48, 80, 128]);
}

#[test]
fn a_released_bubble_starts_as_theory_says_3d() {
    a_released_bubble_starts_as_theory_says::<3>(2.0, [24, 36, 54]);
}
