//! Walls as the grid sees them.

use glug::geometry::{Boundary, MOST_MOTIONS, Motion, Move, Shape, Solid};
use glug::grid::block_cells;
use glug::math::{Vector, hash_unit, mix};

use crate::solids::{ball, body};
use crate::tank::{Face, Tank};

/// Share of a face outside the walls, by counting points.
fn counted_share<const D: usize>(tank: &Tank<D>, face: &Face<D>, time: f64) -> f64 {
    const SIDE: usize = 40;
    let dx = tank.blocks.grid().dx;
    let count = SIDE.pow(D as u32 - 1);
    let free = (0..count).filter(|&flat| {
        let mut rest = flat;
        let mut x = tank.face_centre(face);
        for axis in (0..D).filter(|&axis| axis != face.axis) {
            x[axis] += ((rest % SIDE) as f64 + 0.5 - 0.5 * SIDE as f64) / SIDE as f64 * dx;
            rest /= SIDE;
        }
        tank.walls.distance(&x, time) > 0.0
    });
    free.count() as f64 / count as f64
}

fn faces_are_as_open_as_a_slanted_wall_leaves_them<const D: usize>() {
    for seed in 0..4 {
        let unit = |key: u64| hash_unit(mix(seed * 100 + key)) as f64;
        let normal = Vector::<D>::from_fn(|axis, _| unit(axis as u64) - 0.5);
        let through = Vector::from_fn(|axis, _| 0.4 + 0.2 * unit(10 + axis as u64));
        let glide = Move::Glide { velocity: Vector::repeat(0.1), from: 0.0, until: 9.0 };
        let slab = Solid::new("slab", Shape::half_space(through, normal), Motion::new(vec![glide]));
        let mut tank = Tank::<D>::new([12; D], 1.0 / 12.0, vec![slab]);
        for time in [0.0, 0.7] {
            let Tank { boundary, blocks, walls, .. } = &mut tank;
            boundary.update(blocks, walls, time);
            let mut cut = 0;
            for face in tank.faces() {
                // A corner of slab and side is not straight.
                if !face.cell.iter().all(|c| (1..11).contains(c)) {
                    continue;
                }
                let (open, expected) = (tank.open(&face), counted_share(&tank, &face, time));
                assert!((open - expected).abs() < 0.03, "{D}D at {time} s: {open:.3}, counted {expected:.3}");
                cut += (open > 0.0 && open < 1.0) as usize;
            }
            assert!(cut > 5, "{D}D: the slab cuts {cut} faces");
        }
    }
}

#[test]
fn faces_are_as_open_as_a_slanted_wall_leaves_them_2d() {
    faces_are_as_open_as_a_slanted_wall_leaves_them::<2>();
}

#[test]
fn faces_are_as_open_as_a_slanted_wall_leaves_them_3d() {
    faces_are_as_open_as_a_slanted_wall_leaves_them::<3>();
}

/// What was sampled step by step is what would be sampled at once.
fn walls_that_moved_are_sampled_anew<const D: usize>() {
    let ball = Shape::Sphere { center: Vector::<D>::repeat(0.2), radius: 0.13 };
    let glide = Move::Glide { velocity: Vector::repeat(0.5), from: 0.0, until: 9.0 };
    let mut gate =
        Solid::new("gate", Shape::Sphere { center: Vector::repeat(0.8), radius: 0.1 }, Motion::default());
    gate.present = [0.0, 0.35];
    let solids = vec![Solid::new("ball", ball, Motion::new(vec![glide])), gate];
    let cells = if D == 2 { 60 } else { 36 };
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, solids);
    for step in 1..=10 {
        let time = 0.1 * step as f64;
        let Tank { boundary, blocks, walls, .. } = &mut tank;
        boundary.update(blocks, walls, time);
        let mut fresh = Boundary::new();
        fresh.update(&glug::grid::Blocks::all(*blocks.grid()), walls, time);
        for axis in 0..D {
            assert!(boundary.open[axis].as_slice() == fresh.open[axis].as_slice(), "{D}D at {time:.1} s");
        }
        assert!(boundary.corner.as_slice() == fresh.corner.as_slice(), "{D}D at {time:.1} s");
    }
}

#[test]
fn walls_that_moved_are_sampled_anew_2d() {
    walls_that_moved_are_sampled_anew::<2>();
}

#[test]
fn walls_that_moved_are_sampled_anew_3d() {
    walls_that_moved_are_sampled_anew::<3>();
}

/// A face is open if the centres of both its cells are, and what a body closes belongs to it.
fn voxels_are_whole_cells<const D: usize>() {
    let at = |x: f64| Vector::<D>::from_fn(|axis, _| x + 0.137 * axis as f64);
    let post = Solid::new("post", ball(at(5.3), 2.7), Motion::default());
    let float = body(ball(at(10.1), 2.3), 0.5, [0.0; MOST_MOTIONS]);
    let mut tank = Tank::<D>::new([16; D], 1.0, vec![post, float]);
    tank.walls.voxels = true;
    tank.boundary = Boundary::new();
    tank.boundary.update(&tank.blocks, &tank.walls, 0.0);
    let mut closed = [0usize; 2];
    for face in tank.faces().into_iter().filter(|face| face.cell.iter().all(|c| (1..15).contains(c))) {
        let mut below = face.cell;
        below[face.axis] -= 1;
        let solid_at = |cell: [i32; D]| {
            let distance = |solid: &Solid<D>| solid.distance(&tank.centre(cell), 0.0);
            tank.walls.solids.iter().position(|solid| distance(solid) < 0.0)
        };
        let (low, high) = (solid_at(below), solid_at(face.cell));
        let is_open = low.is_none() && high.is_none();
        assert_eq!(tank.open(&face), f64::from(u8::from(is_open)), "{D}D: {:?} {:?}", face.cell, face.axis);
        let (slot, local) = (face.index / block_cells(D), face.index % block_cells(D));
        let held: f64 = tank.boundary.bodies_at(slot, face.axis, local).iter().map(|held| held.share).sum();
        let expected = if low.is_some() != high.is_some() && low.or(high) == Some(1) { 1.0 } else { 0.0 };
        assert_eq!(held, expected, "{D}D: {:?} {:?}", face.cell, face.axis);
        low.xor(high).into_iter().for_each(|solid| closed[solid] += 1);
    }
    assert!(closed.iter().all(|&count| count > 8), "{D}D: {closed:?} faces of post and float");
}

#[test]
fn voxels_are_whole_cells_2d() {
    voxels_are_whole_cells::<2>();
}

#[test]
fn voxels_are_whole_cells_3d() {
    voxels_are_whole_cells::<3>();
}
