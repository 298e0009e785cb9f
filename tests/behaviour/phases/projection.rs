//! One projection of both phases: rest, energy, dense algebra, and the limit of light air.

use std::collections::HashMap;

use glug::geometry::{Label, Motion, OUT_OF_PLANE, Shape, Solid};
use glug::linear::assemble;
use glug::math::{Vector, hash_unit, mix};
use glug::pressure::OWN;
use nalgebra::{DMatrix, DVector};

use crate::bubbles::dense::wet_faces;
use crate::pressure::dense::random_tank;
use crate::tank::{Face, Tank};

use super::weigh_air;

const GRAVITY_STEP: f64 = 9.81 / 60.0;
const DENSITIES: [f64; 4] = [1e-3, 0.1, 1.0, 10.0];

fn noise<const D: usize>(x: &Vector<D>, axis: usize) -> f64 {
    let key = x.iter().fold(axis as u64, |key, x| mix(key ^ x.to_bits()));
    hash_unit(key) as f64 - 0.5
}

/// A closed tank of one metre: aligned with the grid, or turned against it with a ball in it.
fn tank<const D: usize>(oblique: bool) -> Tank<D> {
    let cells = if D == 2 { 40 } else { 20 };
    let middle = Vector::<D>::repeat(0.5);
    let mut solids = Vec::new();
    if oblique {
        let cavity = Shape::Box { min: middle.add_scalar(-0.31), max: middle.add_scalar(0.31) };
        let turned = cavity.rotated(OUT_OF_PLANE, 0.43, middle).inverted();
        solids.push(Solid::new("tank", turned, Motion::default()));
        let ball = Shape::Sphere { center: middle.add_scalar(0.013), radius: 0.12 };
        solids.push(Solid::new("ball", ball, Motion::default()));
    }
    Tank::new([cells; D], 1.0 / cells as f64, solids)
}

/// From rest under gravity; returns the largest velocity on any face of either fluid.
fn drop_for_a_step<const D: usize>(tank: &mut Tank<D>, density: f64) -> f64 {
    tank.set_velocity(|_, _| 0.0);
    tank.impulse[1] = -GRAVITY_STEP;
    weigh_air(tank, density);
    let solved = tank.project();
    let open = tank.cells().iter().filter(|&&(_, index)| tank.label(index) != Label::Solid).count();
    assert_eq!(solved.unknowns, open, "{D}D: an unknown for every cell of either fluid");
    assert!(solved.info.relative_residual < 1e-10, "{D}D, density {density}: {:?}", solved.info);
    tank.fastest()
}

/// A fluid on top of another is at rest whatever their densities and wherever the surface lies.
fn two_layers_stay_at_rest<const D: usize>(oblique: bool) {
    let mut tank = tank::<D>(oblique);
    let dx = tank.blocks.grid().dx;
    // Links are stored in single precision, and where walls cut faces each is rounded its own way.
    let limit = if oblique { 2e-7 * GRAVITY_STEP } else { 1e-8 };
    for theta in [1e-4, 0.05, 0.41, 0.63, 0.9999] {
        let height = ((0.53 / dx).floor() + 0.5 + theta) * dx;
        for (density, sign) in DENSITIES.into_iter().flat_map(|density| [(density, 1.0), (density, -1.0)]) {
            tank.fill(|x| sign * (x[1] - height));
            let fastest = drop_for_a_step(&mut tank, density);
            let case = format!("{D}D oblique {oblique}, theta {theta}, density {density}, sign {sign}");
            assert!(fastest < limit, "{case}: rest became {fastest:.1e} m/s");
        }
    }
}

#[test]
fn two_layers_stay_at_rest_2d() {
    two_layers_stay_at_rest::<2>(false);
    two_layers_stay_at_rest::<2>(true);
}

#[test]
fn two_layers_stay_at_rest_3d() {
    two_layers_stay_at_rest::<3>(false);
    two_layers_stay_at_rest::<3>(true);
}

/// A bubble as heavy as the liquid has no reason to move; a lighter one rises, a heavier one sinks.
fn neutral_bubbles_stay_at_rest<const D: usize>() {
    let mut tank = tank::<D>(false);
    tank.fill(|x| {
        let away =
            |spot: [f64; 2], r: f64| r - (0..D).map(|k| (x[k] - spot[k.min(1)]).powi(2)).sum::<f64>().sqrt();
        away([0.43, 0.4], 0.21).max(away([0.77, 0.7], 0.13)).max(x[1] - 0.9 - 0.03 * (9.0 * x[0]).sin())
    });
    let fastest = drop_for_a_step(&mut tank, 1.0);
    assert!(fastest < 1e-8, "{D}D: a neutral bubble moves by {fastest:.1e} m/s");
    let place = Face { axis: 1, index: 0, cell: [0; D] };
    let centre: [i32; D] = std::array::from_fn(|_| (0.4 / tank.blocks.grid().dx) as i32);
    let face = Face { index: tank.index(centre), cell: centre, ..place };
    for (density, up) in [(0.1, 1.0), (10.0, -1.0)] {
        drop_for_a_step(&mut tank, density);
        let found = up * tank.velocity[1][face.index] as f64;
        assert!(found > 0.1 * GRAVITY_STEP, "{D}D density {density}: {found} m/s the right way");
    }
}

#[test]
fn neutral_bubbles_stay_at_rest_2d() {
    neutral_bubbles_stay_at_rest::<2>();
}

#[test]
fn neutral_bubbles_stay_at_rest_3d() {
    neutral_bubbles_stay_at_rest::<3>();
}

/// Every face that either fluid moves through: open share, mass over open share, velocity before.
pub struct Moving<const D: usize> {
    pub face: Face<D>,
    pub open: f64,
    pub link: f64,
    pub before: f64,
}

pub fn moving_faces<const D: usize>(tank: &Tank<D>) -> Vec<Moving<D>> {
    let is_own = |cell: usize| match tank.label(cell) {
        Label::Liquid => true,
        Label::Air => tank.node[tank.component[cell] as usize] == OWN,
        Label::Solid => false,
    };
    let share = |liquid: usize, air: usize| {
        let (liquid, air) = (tank.surface[liquid].min(0.0), tank.surface[air].max(0.0));
        if air - liquid > 0.0 { liquid / (liquid - air) } else { 0.0 }
    };
    let faces = tank.faces().into_iter().filter(|face| tank.open(face) > 0.0);
    let faces = faces.filter(|face| is_own(face.index) && is_own(tank.below(face)));
    let moving = faces.map(|face| {
        let theta: f32 = match (tank.label(tank.below(&face)), tank.label(face.index)) {
            (Label::Liquid, Label::Liquid) => 1.0,
            (Label::Liquid, _) => share(tank.below(&face), face.index),
            (_, Label::Liquid) => share(face.index, tank.below(&face)),
            _ => 0.0,
        };
        // The matrix is defined in single precision.
        let mass = theta + (1.0 - theta) * tank.air_mass as f32;
        let link = (tank.open(&face) as f32 / mass) as f64;
        let before = tank.velocity[face.axis][face.index] as f64 + tank.impulse[face.axis];
        Moving { open: tank.open(&face), link, before, face }
    });
    moving.collect()
}

/// Velocities from a dense solve with one pressure per cell. Every container's outflow is made to vanish as a whole.
fn dense_velocities<const D: usize>(tank: &Tank<D>, faces: &[Moving<D>]) -> Vec<f64> {
    let mut row: HashMap<usize, usize> = HashMap::new();
    for moving in faces {
        for cell in [moving.face.index, tank.below(&moving.face)] {
            let next = row.len();
            row.entry(cell).or_insert(next);
        }
    }
    let n = row.len();
    let (mut matrix, mut right) = (DMatrix::<f64>::zeros(n, n), DVector::<f64>::zeros(n));
    let mut group: Vec<usize> = (0..n).collect();
    for moving in faces {
        let (high, low) = (row[&moving.face.index], row[&tank.below(&moving.face)]);
        for (a, b) in [(high, low), (low, high)] {
            matrix[(a, a)] += moving.link;
            matrix[(a, b)] -= moving.link;
        }
        right[low] -= moving.open * moving.before;
        right[high] += moving.open * moving.before;
        let (a, b) = (group[high], group[low]);
        group.iter_mut().filter(|name| **name == a).for_each(|name| *name = b);
    }
    for a in 0..n {
        for b in 0..n {
            if group[a] == group[b] {
                matrix[(a, b)] += 1.0;
            }
        }
    }
    let q = matrix.cholesky().expect("positive definite").solve(&right);
    let change = |moving: &Moving<D>| {
        let push = q[row[&moving.face.index]] - q[row[&tank.below(&moving.face)]];
        moving.before - push * moving.link / moving.open
    };
    faces.iter().map(change).collect()
}

fn both_phases_agree_with_a_dense_solve<const D: usize>(seed: u64, density: f64) {
    let mut tank = random_tank::<D>(seed);
    tank.impulse = std::array::from_fn(|axis| if seed.is_multiple_of(2) { 0.0 } else { 0.3 - axis as f64 });
    weigh_air(&mut tank, density);
    let faces = moving_faces(&tank);
    let expected = dense_velocities(&tank, &faces);
    let energy = |tank: &Tank<D>| -> f64 {
        let speed = |moving: &Moving<D>| tank.velocity[moving.face.axis][moving.face.index] as f64;
        faces.iter().map(|moving| 0.5 * moving.open.powi(2) / moving.link * speed(moving).powi(2)).sum()
    };
    let before = energy(&tank);
    let solved = tank.project();
    assert!(solved.info.relative_residual < 1e-10, "{D}D seed {seed}: {:?}", solved.info);
    let scale = expected.iter().fold(1.0, |most: f64, u| most.max(u.abs()));
    for (moving, expected) in faces.iter().zip(&expected) {
        let found = tank.velocity[moving.face.axis][moving.face.index] as f64;
        let (error, place) = ((found - expected).abs(), (moving.face.axis, moving.face.cell));
        assert!(
            error < 1e-6 * scale,
            "{D}D seed {seed}, density {density}: {found} and not {expected} at {place:?}"
        );
        assert!(tank.is_valid(&moving.face), "{D}D seed {seed}: {place:?} was decided");
    }
    if tank.impulse == [0.0; D] {
        let after = energy(&tank);
        assert!(after <= before * (1.0 + 1e-6), "{D}D seed {seed}: energy rose from {before} to {after}");
    }
    assert!(tank.worst_outflow() < 1e-5 * scale, "{D}D seed {seed}: {:.1e}", tank.worst_outflow());
}

#[test]
fn both_phases_agree_with_a_dense_solve_2d() {
    for seed in 0..12 {
        DENSITIES.iter().for_each(|&density| both_phases_agree_with_a_dense_solve::<2>(seed, density));
    }
}

#[test]
fn both_phases_agree_with_a_dense_solve_3d() {
    for seed in 0..6 {
        DENSITIES.iter().for_each(|&density| both_phases_agree_with_a_dense_solve::<3>(seed, density));
    }
}

/// Velocities of the faces that touch liquid, from a dense solve of the system as it was assembled: densities as small
/// as these ask for more digits than any tolerance of the solver.
fn velocities_at_liquid<const D: usize>(tank: &mut Tank<D>) -> Vec<f64> {
    let moving = moving_faces(tank);
    let wet = wet_faces(tank);
    tank.project();
    let assembled = assemble(&tank.projection.system(&tank.blocks));
    let n = assembled.matrix.rows();
    // All is one container, whose pressure is known up to a constant.
    let mut matrix = DMatrix::from_element(n, n, 1.0 / n as f64);
    for (&value, (i, j)) in &assembled.matrix {
        matrix[(i, j)] += value;
    }
    let cells = assembled.cells.iter().map(|&cell| tank.projection.rhs()[cell as usize]);
    let right = DVector::from_iterator(n, cells.chain(tank.projection.shared_rhs().iter().copied()));
    let q = matrix.cholesky().expect("positive definite").solve(&right);
    let row: HashMap<usize, usize> =
        assembled.cells.iter().enumerate().map(|(row, &cell)| (cell as usize, row)).collect();
    let row_of = |cell: usize| {
        let node = tank.node[tank.component[cell] as usize] as usize;
        row.get(&cell).copied().unwrap_or(assembled.cells.len() + node)
    };
    let push = |face: &Face<D>| q[row_of(face.index)] - q[row_of(tank.below(face))];
    if tank.air_mass == 0.0 {
        return wet.iter().map(|wet| wet.before - push(&wet.face) * wet.link / wet.open).collect();
    }
    // The same faces in the same order.
    let is_liquid = |cell: usize| tank.label(cell) == Label::Liquid;
    let at_liquid = moving.iter().filter(|m| is_liquid(m.face.index) || is_liquid(tank.below(&m.face)));
    at_liquid.map(|moving| moving.before - push(&moving.face) * moving.link / moving.open).collect()
}

/// The constraint is what air becomes when it weighs nothing: ten times lighter, ten times closer.
fn light_air_becomes_the_constraint<const D: usize>(cells: usize) {
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, Vec::new());
    let dx = tank.blocks.grid().dx;
    // No surface so close to a cell's centre that the constraint's lower bound of theta would matter.
    let away_from_centres = |distance: f64| distance.signum() * distance.abs().max(0.15 * dx);
    tank.fill(|x| {
        let ball =
            |spot: [f64; 2], r: f64| r - (0..D).map(|k| (x[k] - spot[k.min(1)]).powi(2)).sum::<f64>().sqrt();
        away_from_centres(ball([0.27, 0.4], 0.14).max(ball([0.73, 0.33], 0.15)).max(x[1] - 0.81))
    });
    weigh_air(&mut tank, 1.0);
    let components: Vec<usize> =
        (0..tank.node.len()).filter(|&component| tank.node[component] == OWN).collect();
    assert_eq!(components.len(), 3, "{D}D: two bubbles and a layer");
    let mut velocities = |density: f64| {
        tank.set_velocity(noise);
        tank.impulse[1] = -GRAVITY_STEP;
        tank.air_mass = density;
        tank.weight.clear();
        for (node, &component) in components.iter().enumerate() {
            tank.node[component] = if density > 0.0 { OWN } else { node as u32 };
            let size = tank.component.as_slice().iter().filter(|&&r| r as usize == component).count();
            tank.weight.extend((density == 0.0).then_some(size as f64));
        }
        velocities_at_liquid(&mut tank)
    };
    let limit = velocities(0.0);
    let errors = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6].map(|density| {
        let found = velocities(density);
        assert_eq!(found.len(), limit.len(), "{D}D: the same faces");
        found.iter().zip(&limit).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    });
    println!("{D}D: distance from the constraint {errors:?}");
    let slope = (errors[0] / errors[4]).log10() / 4.0;
    assert!((0.95..1.05).contains(&slope), "{D}D: slope {slope:.3} of {errors:?}");
    for pair in errors.windows(2) {
        assert!((7.0..12.5).contains(&(pair[0] / pair[1])), "{D}D: {errors:?}");
    }
}

#[test]
fn light_air_becomes_the_constraint_2d() {
    light_air_becomes_the_constraint::<2>(36);
}

#[test]
fn light_air_becomes_the_constraint_3d() {
    light_air_becomes_the_constraint::<3>(13);
}
