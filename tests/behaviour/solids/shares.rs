//! What bodies close of faces.

use glug::geometry::{Label, MOST_MOTIONS, Shape};
use glug::grid::block_cells;
use glug::math::Vector;

use crate::tank::{Face, Tank};

use super::{ball, body, point};

/// Two bodies close to each other, and one of them to the floor.
fn tank_with_neighbours<const D: usize>() -> Tank<D> {
    let cells = if D == 2 { 40 } else { 20 };
    let dx = 1.0 / cells as f64;
    let first = ball(point(0.4, 0.2 + 0.3 * dx, 0.5), 0.2);
    let second = ball(point(0.4 + 0.31 + 0.2 * dx, 0.31, 0.5), 0.13);
    let none = [0.0; MOST_MOTIONS];
    let mut tank = Tank::new([cells; D], dx, vec![body(first, 1.0, none), body(second, 1.0, none)]);
    tank.fill(|_| -1.0);
    tank.label_cells();
    tank
}

fn held<const D: usize>(tank: &Tank<D>, face: &Face<D>, body: Option<u32>) -> f64 {
    let (slot, local) = (face.index / block_cells(D), face.index % block_cells(D));
    let all = tank.boundary.bodies_at(slot, face.axis, local).iter();
    all.filter(|held| body.is_none_or(|body| held.solid == body)).map(|held| held.share).sum()
}

/// Away from sides and other solids, what is open and what bodies close is the whole face.
fn shares_sum_to_one<const D: usize>() {
    let tank = tank_with_neighbours::<D>();
    let dx = tank.blocks.grid().dx;
    let mut cut = 0;
    for face in tank.faces() {
        let at = tank.face_centre(&face);
        let bodies = held(&tank, &face, None);
        let sum = tank.open(&face) + bodies;
        assert!(sum < 1.0 + 1e-12, "{D}D: {sum} of a face at {at:?}");
        if (0..D).all(|k| at[k] > 1.01 * dx && at[k] < 1.0 - 1.01 * dx) {
            assert!((sum - 1.0).abs() < 1e-12, "{D}D: {sum} of a face at {at:?}");
            cut += usize::from(bodies > 0.0 && tank.open(&face) > 0.0);
        }
    }
    assert!(cut > 50, "{D}D: {cut} cut faces");
}

#[test]
fn shares_sum_to_one_2d() {
    shares_sum_to_one::<2>();
}

#[test]
fn shares_sum_to_one_3d() {
    shares_sum_to_one::<3>();
}

/// What a moving body takes of the liquid on one side it gives back on the other, in every motion.
fn what_bodies_push_sums_to_zero<const D: usize>() {
    let tank = tank_with_neighbours::<D>();
    let dx = tank.blocks.grid().dx;
    for (index, solid) in tank.walls.solids.iter().enumerate() {
        let centre = solid.body.as_ref().expect("a body").position();
        let mut sums = [0.0; MOST_MOTIONS];
        for face in tank.faces() {
            let share = held(&tank, &face, Some(index as u32));
            if share == 0.0 {
                continue;
            }
            let arm = (tank.face_centre(&face) - centre) / dx;
            let direction = Vector::<D>::from_fn(|k, _| if k == face.axis { 1.0 } else { 0.0 });
            let motion = glug::geometry::Body::motion_at(&arm, &direction);
            for (cell, sign) in [(tank.below(&face), 1.0), (face.index, -1.0)] {
                if tank.label(cell) == Label::Liquid {
                    sums.iter_mut().zip(motion).for_each(|(sum, c)| *sum += sign * share * c);
                }
            }
        }
        let worst = sums.iter().fold(0.0, |worst: f64, sum| worst.max(sum.abs()));
        assert!(worst < 1e-9, "{D}D: body {index} pushes {sums:?}");
    }
}

#[test]
fn what_bodies_push_sums_to_zero_2d() {
    what_bodies_push_sums_to_zero::<2>();
}

#[test]
fn what_bodies_push_sums_to_zero_3d() {
    what_bodies_push_sums_to_zero::<3>();
}

/// A plate much thinner than a cell closes all that it crosses.
fn thin_plates_do_not_leak<const D: usize>() {
    let cells = if D == 2 { 32 } else { 16 };
    let dx = 1.0 / cells as f64;
    let centre = Vector::<D>::repeat(0.5);
    for angle in [0.0, 0.3, 0.8] {
        let mut half = Vector::repeat(2.0);
        half[1] = 0.1 * dx;
        let plate =
            Shape::Box { min: centre - half, max: centre + half }.rotated([0.0, 0.0, 1.0], angle, centre);
        let solid = body(plate, 1.0, [0.0; MOST_MOTIONS]);
        let tank = Tank::<D>::new([cells; D], dx, vec![solid]);
        // No way through open faces leads from below to above.
        let mut reached = vec![false; tank.surface.as_slice().len()];
        // The plate rises to the right: the lower right corner is below it, the upper left one above.
        let mut start = [1; D];
        start[0] = cells as i32 - 2;
        let mut open: Vec<[i32; D]> = vec![start];
        while let Some(cell) = open.pop() {
            let index = tank.index(cell);
            let inside = tank.blocks.grid().contains(cell);
            if !inside || std::mem::replace(&mut reached[index], true) {
                continue;
            }
            for axis in 0..D {
                let (mut above, mut below) = (cell, cell);
                above[axis] += 1;
                below[axis] -= 1;
                if tank.open(&Face { axis, index: tank.index(above), cell: above }) > 0.0 {
                    open.push(above);
                }
                if tank.open(&Face { axis, index, cell }) > 0.0 {
                    open.push(below);
                }
            }
        }
        let mut top = [1; D];
        top[1] = cells as i32 - 2;
        assert!(!reached[tank.index(top)], "{D}D turned by {angle}: it leaks");
    }
}

#[test]
fn thin_plates_do_not_leak_2d() {
    thin_plates_do_not_leak::<2>();
}

#[test]
fn thin_plates_do_not_leak_3d() {
    thin_plates_do_not_leak::<3>();
}
