//! What each cell is made of.

use glug::geometry::Label;
use glug::geometry::{Motion, Shape, Solid};
use glug::math::{Vector, hash_unit, mix};

use crate::tank::Tank;

/// Some balls and boxes, and a bumpy liquid.
fn random_tank<const D: usize>(seed: u64) -> Tank<D> {
    let unit = |key: u64| hash_unit(mix(seed * 1000 + key)) as f64;
    let point = |key: u64| Vector::<D>::from_fn(|axis, _| unit(key * 10 + axis as u64));
    let solids = (0..4)
        .map(|i| {
            let center = point(i);
            let shape = match i % 2 {
                0 => Shape::Sphere { center, radius: 0.05 + 0.2 * unit(100 + i) },
                _ => Shape::Box { min: center.add_scalar(-0.15), max: center + point(i + 50) * 0.3 },
            };
            Solid::new("rock", shape, Motion::default())
        })
        .collect();
    let cells = if D == 2 { 36 } else { 18 };
    let mut tank = Tank::new([cells; D], 1.0 / cells as f64, solids);
    let (wave, height) = (point(200) * 20.0, 0.3 + 0.5 * unit(300));
    tank.fill(|x| x[1] - height - 0.1 * wave.dot(x).sin());
    tank
}

fn a_cell_is_solid_exactly_when_no_face_of_it_is_open<const D: usize>() {
    for seed in 0..6 {
        let mut tank = random_tank::<D>(seed);
        tank.label_cells();
        let mut openings = vec![0; tank.projection.label.as_slice().len()];
        for face in tank.faces().iter().filter(|face| tank.open(face) > 0.0) {
            openings[face.index] += 1;
            openings[tank.below(face)] += 1;
        }
        for (cell, index) in tank.cells() {
            let (label, openings) = (tank.label(index), openings[index]);
            assert_eq!(label == Label::Solid, openings == 0, "{D}D seed {seed}: {cell:?} is {label:?}");
            if label == Label::Air {
                assert!(tank.surface[index] > 0.0, "{D}D seed {seed}: {cell:?} is liquid, not air");
            }
        }
    }
}

#[test]
fn a_cell_is_solid_exactly_when_no_face_of_it_is_open_2d() {
    a_cell_is_solid_exactly_when_no_face_of_it_is_open::<2>();
}

#[test]
fn a_cell_is_solid_exactly_when_no_face_of_it_is_open_3d() {
    a_cell_is_solid_exactly_when_no_face_of_it_is_open::<3>();
}

/// A void one cell wide is a void in the middle of the liquid, and a sampling error in the corner of a wall.
fn only_walls_hide_liquid<const D: usize>() {
    let mut tank = Tank::<D>::new([24; D], 1.0 / 24.0, Vec::new());
    tank.fill(|_| -0.1);
    let (middle, corner) = (tank.index([12; D]), tank.index([0; D]));
    tank.surface[middle] = 0.001;
    tank.surface[corner] = 0.001;
    tank.label_cells();
    assert_eq!(tank.label(middle), Label::Air, "{D}D: far from walls");
    assert_eq!(tank.label(corner), Label::Liquid, "{D}D: hidden by the walls");
    // Where a way leads on to more air, even the corner is air.
    let mut beside = [0; D];
    beside[1] = 1;
    let beside = tank.index(beside);
    tank.surface[beside] = 0.001;
    tank.label_cells();
    assert_eq!(tank.label(corner), Label::Air, "{D}D: open to air");
}

#[test]
fn only_walls_hide_liquid_2d() {
    only_walls_hide_liquid::<2>();
}

#[test]
fn only_walls_hide_liquid_3d() {
    only_walls_hide_liquid::<3>();
}
