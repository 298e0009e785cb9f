//! The projection with bubbles, on small random domains, against a dense solve of the whole indefinite system
//! (CBAR eq. 8): velocities, a multiplier per liquid cell, a multiplier per bubble.

use std::collections::HashMap;

use glug::bubbles::{Components, Measure};
use glug::geometry::{Label, Settled};
use glug::linear::assemble;
use glug::math::{hash_unit, mix};
use glug::pressure::FREE;
use nalgebra::{DMatrix, DVector};

use crate::pressure::dense::random_tank;
use crate::tank::{Face, Tank};

use super::shapes::components_of;

/// Which of the bubbles keep their volume.
#[derive(Clone, Copy, PartialEq)]
pub enum Closed {
    All,
    /// Some are open to the outside.
    Some,
}

/// A random tank whose air components are bubbles. Returns the container that each component belongs to.
pub fn bubbly_tank<const D: usize>(seed: u64, closed: Closed) -> (Tank<D>, Components<D>, Vec<u32>) {
    let mut tank = random_tank::<D>(seed);
    let components = components_of(&mut tank);
    let mut measure = Measure::new();
    measure.update(&tank.blocks, &tank.boundary, &tank.surface, &components, &Settled::default());
    tank.component = components.of.clone();
    tank.node = vec![FREE; components.len()];
    tank.outflow = vec![0.0; components.len()];
    tank.weight.clear();
    for (_, air, _) in measure.touching() {
        let air = air as usize;
        let stays = closed == Closed::All || hash_unit(mix(seed * 77 + air as u64)) < 0.6;
        if tank.node[air] == FREE && stays {
            tank.node[air] = tank.weight.len() as u32;
            tank.weight
                .push(components.of.as_slice().iter().filter(|&&component| component == air as u32).count()
                    as f64);
        }
    }
    (tank, components, measure.basin.clone())
}

/// A face that liquid moves through, with what the projection makes of it.
pub struct WetFace<const D: usize> {
    pub face: Face<D>,
    pub open: f64,
    /// The matrix entry: stored in single precision, and thereby the definition of the system.
    pub link: f64,
    pub before: f64,
}

/// The liquid's share of the way across a face, as the solver computes it.
fn theta(liquid: f32, air: f32) -> f32 {
    let (liquid, air) = (liquid.min(0.0), air.max(0.0));
    if air - liquid > 0.0 { (liquid / (liquid - air)).clamp(0.01, 1.0) } else { 0.01 }
}

pub fn wet_faces<const D: usize>(tank: &Tank<D>) -> Vec<WetFace<D>> {
    let mut found = Vec::new();
    for face in tank.faces() {
        let (high, low) = (face.index, tank.below(&face));
        let open = tank.boundary.open[face.axis][face.index];
        let theta = match (tank.label(low), tank.label(high)) {
            (Label::Liquid, Label::Liquid) => 1.0,
            (Label::Liquid, Label::Air) => theta(tank.surface[low], tank.surface[high]),
            (Label::Air, Label::Liquid) => theta(tank.surface[high], tank.surface[low]),
            _ => continue,
        };
        if open > 0.0 {
            let before = tank.velocity[face.axis][face.index] as f64 + tank.impulse[face.axis];
            found.push(WetFace { face, open: open as f64, link: (open / theta) as f64, before });
        }
    }
    round_grounds(tank, &mut found);
    found
}

/// What ties a liquid cell to open air is stored as one number in single precision, summed over its faces: that sum is
/// what the matrix has, and each face gets its part of it.
fn round_grounds<const D: usize>(tank: &Tank<D>, faces: &mut [WetFace<D>]) {
    let place: HashMap<(usize, usize), usize> =
        faces.iter().enumerate().map(|(at, wet)| ((wet.face.axis, wet.face.index), at)).collect();
    let is_open =
        |cell: usize| tank.label(cell) == Label::Air && tank.node[tank.component[cell] as usize] == FREE;
    for (cell, index) in tank.liquid() {
        let mut free: Vec<usize> = Vec::new();
        for axis in 0..D {
            for step in [-1, 1] {
                let mut next = cell;
                next[axis] += step;
                let next = tank.index(next);
                let face = if step > 0 { next } else { index };
                free.extend(place.get(&(axis, face)).copied().filter(|_| is_open(next)));
            }
        }
        let sum: f32 = free.iter().map(|&at| faces[at].link as f32).fold(0.0, |sum, link| sum + link);
        let exact: f64 = free.iter().map(|&at| faces[at].link).sum();
        free.iter().for_each(|&at| faces[at].link *= sum as f64 / exact);
    }
}

/// The unknown of a cell: liquid cells one each, in order, then the bubbles; none for air that is open.
pub struct Unknowns {
    of_cell: Vec<Option<usize>>,
    pub liquid: usize,
    pub total: usize,
}

impl Unknowns {
    pub fn new<const D: usize>(tank: &Tank<D>) -> Self {
        let liquid = tank.liquid();
        let mut of_cell = vec![None; tank.surface.as_slice().len()];
        liquid.iter().enumerate().for_each(|(row, &(_, index))| of_cell[index] = Some(row));
        for (_, index) in tank.cells().into_iter().filter(|&(_, index)| tank.label(index) == Label::Air) {
            let node = tank.node[tank.component[index] as usize];
            of_cell[index] = (node != FREE).then(|| liquid.len() + node as usize);
        }
        Unknowns { of_cell, liquid: liquid.len(), total: liquid.len() + tank.weight.len() }
    }

    pub fn of(&self, cell: usize) -> Option<usize> {
        self.of_cell[cell]
    }

    /// Cells that a multiplier stands for.
    fn weight<const D: usize>(&self, tank: &Tank<D>, row: usize) -> f64 {
        if row < self.liquid { 1.0 } else { tank.weight[row - self.liquid] }
    }
}

/// Unknowns that hang together without reaching open air.
pub fn closed_groups<const D: usize>(
    tank: &Tank<D>,
    faces: &[WetFace<D>],
    unknowns: &Unknowns,
) -> Vec<Vec<usize>> {
    let outside = unknowns.total;
    let mut group: Vec<usize> = (0..=outside).collect();
    for wet in faces {
        let [a, b] = [wet.face.index, tank.below(&wet.face)].map(|cell| unknowns.of(cell).unwrap_or(outside));
        let (a, b) = (group[a], group[b]);
        group.iter_mut().filter(|name| **name == a).for_each(|name| *name = b);
    }
    let mut names: Vec<usize> = group[..outside].to_vec();
    names.sort_unstable();
    names.dedup();
    names.retain(|&name| name != group[outside]);
    let members = |name: usize| (0..outside).filter(|&row| group[row] == name).collect();
    names.into_iter().map(members).collect()
}

/// min Σ m (u − u*)² / 2 so that every liquid cell has no net outflow and every bubble the one asked for; where nothing
/// is open, what is left over is shared by all cells alike.
fn dense_velocities<const D: usize>(tank: &Tank<D>, faces: &[WetFace<D>]) -> Vec<f64> {
    let unknowns = Unknowns::new(tank);
    let groups = closed_groups(tank, faces, &unknowns);
    let (n, m, k) = (faces.len(), unknowns.total, groups.len());
    let mut matrix = DMatrix::zeros(n + m + k, n + m + k);
    let mut right = DVector::zeros(n + m + k);
    for (f, wet) in faces.iter().enumerate() {
        // Velocities times the root of their masses are the unknowns: narrow faces and thin films would otherwise
        // cost the dense solve half of its digits.
        let root = root_mass(wet);
        matrix[(f, f)] = 1.0;
        right[f] = root * wet.before;
        for (cell, sign) in [(wet.face.index, -1.0), (tank.below(&wet.face), 1.0)] {
            if let Some(row) = unknowns.of(cell) {
                matrix[(n + row, f)] += sign * wet.open / root;
                matrix[(f, n + row)] += sign * wet.open / root;
            }
        }
    }
    for (component, &node) in tank.node.iter().enumerate().filter(|(_, node)| **node != FREE) {
        right[n + unknowns.liquid + node as usize] = tank.outflow[component];
    }
    for (g, group) in groups.iter().enumerate() {
        for &row in group {
            matrix[(n + row, n + m + g)] = unknowns.weight(tank, row);
            matrix[(n + m + g, n + row)] = 1.0;
        }
    }
    let solution = matrix.lu().solve(&right).expect("the constrained problem has one solution");
    solution.rows(0, n).iter().zip(faces).map(|(scaled, wet)| scaled / root_mass(wet)).collect()
}

/// Root of the liquid's mass that moves through a face.
fn root_mass<const D: usize>(wet: &WetFace<D>) -> f64 {
    wet.open / wet.link.sqrt()
}

/// Velocities from the pressures found, in double precision: stored ones are single.
pub fn found_velocities<const D: usize>(tank: &Tank<D>, faces: &[WetFace<D>]) -> Vec<f64> {
    let unknowns = Unknowns::new(tank);
    let pressure = |cell: usize| match unknowns.of(cell) {
        Some(row) if row >= unknowns.liquid => tank.projection.shared_q()[row - unknowns.liquid],
        Some(_) => tank.pressure.q[cell],
        None => 0.0,
    };
    let change = |wet: &WetFace<D>| pressure(wet.face.index) - pressure(tank.below(&wet.face));
    faces.iter().map(|wet| wet.before - change(wet) * wet.link / wet.open).collect()
}

fn bubbles_agree_with_a_dense_solve<const D: usize>(seed: u64, closed: Closed) -> usize {
    let (mut tank, _, _) = bubbly_tank::<D>(seed, closed);
    tank.impulse = std::array::from_fn(|axis| 0.2 - 0.3 * axis as f64);
    // Every other domain also asks for volume corrections.
    if seed % 2 == 1 {
        for (component, outflow) in tank.outflow.iter_mut().enumerate() {
            *outflow = 0.2 * hash_unit(mix(seed * 31 + component as u64)) as f64 - 0.1;
        }
        // Those of liquids are per deep cell, and nothing is deep here.
        let deepest = tank.surface.as_slice().iter().fold(0f32, |deepest, d| deepest.min(*d));
        assert!(deepest > -0.1, "no cell is a whole cell below the surface");
    }
    let faces = wet_faces(&tank);
    let expected = dense_velocities(&tank, &faces);
    let groups = closed_groups(&tank, &faces, &Unknowns::new(&tank)).len();
    // Narrow faces and thin films turn a residual into a thousand times the velocity.
    let solved = tank.project_to(1e-13);
    assert!(solved.info.converged, "{D}D seed {seed}: {:?}", solved.info);
    assert_eq!(solved.info.closed_components, groups, "{D}D seed {seed}: containers without an opening");
    assert_eq!(solved.bubbles, tank.weight.len(), "{D}D seed {seed}: an equation per bubble");
    let scale = expected.iter().fold(1.0, |most: f64, u| most.max(u.abs()));
    let found = found_velocities(&tank, &faces);
    for ((wet, found), expected) in faces.iter().zip(&found).zip(&expected) {
        let place = (wet.face.axis, wet.face.cell);
        let error = (found - expected).abs() / scale;
        // A cell's links to open air are summed in single precision: that alone is worth a few 1e-9.
        assert!(error < 1e-8, "{D}D seed {seed}: {found} and not {expected} at {place:?}, {:?}", solved.info);
        let stored = tank.velocity[wet.face.axis][wet.face.index] as f64;
        assert!((stored - expected).abs() < 2e-6 * scale, "{D}D seed {seed}: stored {stored} at {place:?}");
    }
    tank.weight.len()
}

#[test]
fn bubbles_agree_with_a_dense_solve_2d() {
    let closed: usize = (0..16).map(|seed| bubbles_agree_with_a_dense_solve::<2>(seed, Closed::All)).sum();
    let open: usize = (0..16).map(|seed| bubbles_agree_with_a_dense_solve::<2>(seed, Closed::Some)).sum();
    assert!(closed > 30 && open > 15 && open < closed, "{closed} and {open} bubbles took part");
}

#[test]
fn bubbles_agree_with_a_dense_solve_3d() {
    let closed: usize = (0..6).map(|seed| bubbles_agree_with_a_dense_solve::<3>(seed, Closed::All)).sum();
    let open: usize = (0..6).map(|seed| bubbles_agree_with_a_dense_solve::<3>(seed, Closed::Some)).sum();
    assert!(closed > 5 && open > 0 && open < closed, "{closed} and {open} bubbles took part");
}

/// As large as the shift of an eigenvalue by rounding may be.
const NOTHING: f64 = 1e-10;

fn the_matrix_is_symmetric_and_null_where_nothing_is_open<const D: usize>(seed: u64, closed: Closed) {
    let (mut tank, _, _) = bubbly_tank::<D>(seed, closed);
    tank.project();
    let assembled = assemble(&tank.projection.system(&tank.blocks));
    let size = assembled.matrix.rows();
    let mut matrix = DMatrix::zeros(size, size);
    for (value, (row, column)) in assembled.matrix.iter() {
        matrix[(row, column)] = *value;
    }
    for row in 0..size {
        for column in 0..row {
            let (a, b): (f64, f64) = (matrix[(row, column)], matrix[(column, row)]);
            assert_eq!(a.to_bits(), b.to_bits(), "{D}D seed {seed}: entry {row}, {column}");
            let bubbles = row >= assembled.cells.len() && column >= assembled.cells.len();
            assert!(!bubbles || a == 0.0, "{D}D seed {seed}: two bubbles are linked");
        }
        assert!(matrix[(row, row)] > 0.0, "{D}D seed {seed}: row {row} is empty");
    }
    let faces = wet_faces(&tank);
    let unknowns = Unknowns::new(&tank);
    let groups = closed_groups(&tank, &faces, &unknowns);
    let eigen = matrix.clone().symmetric_eigenvalues();
    let largest = eigen.iter().fold(0.0, |most: f64, value| most.max(*value));
    assert!(eigen.iter().all(|&value| value > -NOTHING * largest), "{D}D seed {seed}: indefinite");
    let null = eigen.iter().filter(|value| value.abs() < NOTHING * largest).count();
    assert_eq!(null, groups.len(), "{D}D seed {seed}: {size} unknowns");
    // The null vectors: the same value everywhere in a container.
    let row_of_cell = |cell: usize| assembled.cells.iter().position(|&c| c as usize == cell);
    for group in &groups {
        let mut vector = DVector::zeros(size);
        for (_, index) in tank.liquid() {
            if let (Some(unknown), Some(row)) = (unknowns.of(index), row_of_cell(index))
                && group.contains(&unknown)
            {
                vector[row] = 1.0;
            }
        }
        for node in (0..tank.weight.len()).filter(|node| group.contains(&(unknowns.liquid + node))) {
            vector[assembled.cells.len() + node] = 1.0;
        }
        let product = (&matrix * vector).amax();
        assert!(product < 1e-6 * largest, "{D}D seed {seed}: {product:.1e} is left of a constant");
    }
}

#[test]
fn the_matrix_is_symmetric_and_null_where_nothing_is_open_2d() {
    for seed in 0..12 {
        the_matrix_is_symmetric_and_null_where_nothing_is_open::<2>(seed, Closed::All);
        the_matrix_is_symmetric_and_null_where_nothing_is_open::<2>(seed, Closed::Some);
    }
}

#[test]
fn the_matrix_is_symmetric_and_null_where_nothing_is_open_3d() {
    for seed in 0..4 {
        the_matrix_is_symmetric_and_null_where_nothing_is_open::<3>(seed, Closed::All);
        the_matrix_is_symmetric_and_null_where_nothing_is_open::<3>(seed, Closed::Some);
    }
}
