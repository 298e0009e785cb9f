//! The projection with tiles against a dense solve of the same problem, with bases and mass matrices of its own.

use std::collections::HashMap;

use glug::geometry::{Label, Solid};
use glug::grid::Field;
use glug::linear::{Solver, SolverParams, assemble};
use glug::math::{Vector, hash_unit, mix};
use glug::tiles::{Division, TileDomain, TileRules, TileSize, Tiling};
use nalgebra::{DMatrix, DVector};

use crate::tank::{Face, Tank};

/// Where tiles may be in these tests.
pub fn rules(size: usize, surface_band: usize) -> TileRules {
    lattice(TileSize { least: size, most: size }, surface_band)
}

/// Tiles of liquid on a lattice.
pub fn lattice(size: TileSize, surface_band: usize) -> TileRules {
    TileRules { division: Division::Lattice(size), surface_band, wall_band: 2, density: 1.0 }
}

/// A tank with a wavy surface, random velocities and tiles.
pub fn wavy_tank<const D: usize>(side: usize, rules: &TileRules, seed: u64) -> Tank<D> {
    let mut tank = Tank::<D>::new([side; D], 1.0 / side as f64, Vec::<Solid<D>>::new());
    let level = 0.75 + 0.2 * f64::from(hash_unit(mix(seed)));
    tank.fill(|x| x[1] - level - 0.03 * (6.0 * x[0]).sin());
    for face in tank.faces() {
        let key = face.cell.iter().fold(seed * 7 + face.axis as u64, |key, &c| key * 137 + (c + 9) as u64);
        let u = if tank.open(&face) > 0.0 { hash_unit(mix(key)) - 0.5 } else { 0.0 };
        tank.velocity[face.axis][face.index] = u;
    }
    tank.label_cells();
    lay(&mut tank, rules);
    tank
}

/// Lays out the tiles.
pub fn lay<const D: usize>(tank: &mut Tank<D>, rules: &TileRules) {
    let mut tiling = Box::new(Tiling::new());
    let projection = &mut tank.projection;
    let domain = TileDomain { blocks: &tank.blocks, boundary: &tank.boundary, live: &projection.live };
    tiling.clear(&tank.blocks);
    tiling.add_liquid(&domain, &projection.label, rules);
    projection.tiling = Some(tiling);
}

/// The tile of every cell in one, by flood fill.
pub fn tiles_of<const D: usize>(tank: &Tank<D>) -> HashMap<usize, usize> {
    let tiling = tank.projection.tiling.as_ref().expect("laid out");
    let cells = glug::grid::block_cells(D);
    let inside = |index: usize| {
        let local = index % cells;
        tiling.inside(index / cells)[local / 64] >> (local % 64) & 1 == 1
    };
    let mut of = HashMap::new();
    let mut count = 0;
    for (cell, index) in tank.cells() {
        if !inside(index) || of.contains_key(&index) {
            continue;
        }
        let mut todo = vec![cell];
        while let Some(cell) = todo.pop() {
            let index = tank.index(cell);
            if !inside(index) || of.insert(index, count).is_some() {
                continue;
            }
            for axis in 0..D {
                for step in [-1, 1] {
                    let mut next = cell;
                    next[axis] += step;
                    if inside(tank.index(next)) && !of.contains_key(&tank.index(next)) {
                        todo.push(next);
                    }
                }
            }
        }
        count += 1;
    }
    of
}

/// The value of every affine basis field on a face, the trace eliminated.
pub fn basis<const D: usize>(x: Vector<D>, axis: usize) -> DVector<f64> {
    let mut row = DVector::zeros(D + D * D - 1);
    row[axis] = 1.0;
    for k in 0..D {
        let slot = axis * D + k;
        if slot < D * D - 1 {
            row[D + slot] += x[k];
        } else {
            (0..D - 1).for_each(|other| row[D + other * D + other] -= x[k]);
        }
    }
    row
}

fn tiles_equal_a_dense_solve<const D: usize>(side: usize, size: usize, band: usize, seed: u64) {
    let mut tank = wavy_tank::<D>(side, &rules(size, band), seed);
    let before = tank.velocity.clone();
    let of = tiles_of(&tank);
    let tiles = of.values().max().map_or(0, |most| most + 1);
    assert_eq!(
        tiles,
        tank.projection.tiling.as_ref().map_or(0, |t| t.tiles.len()),
        "as many as were laid out"
    );
    assert!(tiles > 1, "{D}D {side} {size}: {tiles} tiles");
    let dx = 1.0 / side as f64;
    let place = |face: &Face<D>| tank.face_centre(face).map(|x| (x - 0.4) / dx);
    let tile_of =
        |tank: &Tank<D>, face: &Face<D>| of.get(&face.index).or_else(|| of.get(&tank.below(face))).copied();

    let unknowns: Vec<usize> = tank
        .cells()
        .into_iter()
        .map(|(_, i)| i)
        .filter(|i| tank.label(*i) == Label::Liquid && !of.contains_key(i))
        .collect();
    let row: HashMap<usize, usize> = unknowns.iter().enumerate().map(|(row, &index)| (index, row)).collect();
    let n = unknowns.len();
    let dof = D + D * D - 1;
    let (mut a, mut b) = (DMatrix::<f64>::zeros(n, n), DVector::<f64>::zeros(n));
    let mut mass = vec![DMatrix::<f64>::zeros(dof, dof); tiles];
    let mut momentum = vec![DVector::<f64>::zeros(dof); tiles];
    let mut j = vec![DMatrix::<f64>::zeros(dof, n); tiles];
    for face in tank.faces().into_iter().filter(|face| tank.open(face) > 0.0) {
        let u = f64::from(before[face.axis][face.index]);
        let ends = [(row.get(&tank.below(&face)), 1.0), (row.get(&face.index), -1.0)];
        if let Some(tile) = tile_of(&tank, &face) {
            let c = basis::<D>(place(&face), face.axis);
            mass[tile] += &c * c.transpose();
            momentum[tile] += &c * u;
            for (end, sign) in ends {
                if let Some(&end) = end {
                    let mut column = j[tile].column_mut(end);
                    column += &c * sign;
                }
            }
            continue;
        }
        for (end, sign) in ends {
            if let Some(&end) = end {
                b[end] -= sign * tank.open(&face) * u;
            }
        }
    }
    // The network as it is stored, without the faces that belong to tiles.
    let solved = tank.project();
    assert!(solved.info.converged, "{D}D {side} {size}: {:?}", solved.info);
    let network = glug::linear::assemble(&tank.projection.system(&tank.blocks));
    for (&value, (from, to)) in network.matrix.iter() {
        let ends = [from, to].map(|end| row.get(&(network.cells[end] as usize)));
        if let [Some(&from), Some(&to)] = ends {
            a[(from, to)] += value;
        }
    }
    let mut field: Vec<DVector<f64>> = Vec::new();
    for tile in 0..tiles {
        let inverse = mass[tile].clone().cholesky().expect("tiles are thick enough").inverse();
        let start = &inverse * &momentum[tile];
        b -= j[tile].transpose() * &start;
        a += j[tile].transpose() * &inverse * &j[tile];
        mass[tile] = inverse;
        field.push(start);
    }
    let q = a.clone().cholesky().expect("a free surface everywhere").solve(&b);
    for tile in 0..tiles {
        let change = &mass[tile] * (&j[tile] * &q);
        field[tile] += change;
    }

    let scale = q.amax();
    let errors = unknowns.iter().enumerate().map(|(row, &index)| (tank.pressure.q[index] - q[row]).abs());
    let worst = errors.fold(0.0, f64::max) / scale;
    assert!(worst < 1e-9, "{D}D {side} {size}: pressures differ by {worst:.1e}");
    assert!(solved.info.iterations <= 35, "{D}D {side} {size}: {} iterations", solved.info.iterations);
    for face in tank.faces().into_iter().filter(|face| tank.open(face) > 0.0) {
        if let Some(tile) = tile_of(&tank, &face) {
            let expected =
                basis::<D>(tank.face_centre(&face).map(|x| (x - 0.4) / dx), face.axis).dot(&field[tile]);
            let found = f64::from(tank.velocity[face.axis][face.index]);
            assert!((found - expected).abs() < 1e-6, "{D}D: {found} {expected}");
        }
    }
    // What flows out of every cell, inside tiles and outside.
    assert!(tank.worst_outflow() < 2e-6, "{D}D: outflow {}", tank.worst_outflow());
}

#[test]
fn tiles_equal_a_dense_solve_2d() {
    tiles_equal_a_dense_solve::<2>(40, 8, 3, 1);
    tiles_equal_a_dense_solve::<2>(40, 16, 2, 2);
    tiles_equal_a_dense_solve::<2>(48, 8, 1, 3);
}

#[test]
fn tiles_equal_a_dense_solve_3d() {
    tiles_equal_a_dense_solve::<3>(14, 8, 1, 4);
}

/// `a·M b = b·M a` for the V-cycle `M` of a network with tiles, whatever the number of sweeps.
fn preconditioner_with_tiles_is_symmetric<const D: usize>(side: usize, size: usize, sweeps: usize) {
    let mut tank = wavy_tank::<D>(side, &rules(size, 2), 5);
    tank.project();
    let (system, bodies) = (tank.projection.system(&tank.blocks), tank.projection.bodies());
    assert!(bodies.as_ref().is_some_and(|bodies| bodies.list.len() > 1), "{D}D {side}: tiles");
    let unknowns = assemble(&system).cells;
    let params = SolverParams { sweeps, ..SolverParams::default() };
    let mut solver = Solver::new();
    let mut apply = |seed: u64| {
        let mut r = tank.projection.rhs().clone();
        r.as_mut_slice().fill(0.0);
        for &cell in &unknowns {
            r[cell as usize] = f64::from(hash_unit(seed ^ u64::from(cell) << 8)) - 0.5;
        }
        let (shared, mut shared_z) = (vec![0.0; system.shared.len()], vec![0.0; system.shared.len()]);
        let mut z = r.clone();
        solver.precondition(&system, bodies.as_ref(), (&r, &shared), (&mut z, &mut shared_z), &params);
        (r, z)
    };
    let ((a, ma), (b, mb)) = (apply(1), apply(2));
    let dot = |a: &Field<f64>, b: &Field<f64>| {
        a.as_slice().iter().zip(b.as_slice()).map(|(a, b)| a * b).sum::<f64>()
    };
    assert!(dot(&a, &ma) > 0.0 && dot(&b, &mb) > 0.0, "{D}D {side}: positive");
    let asymmetry = (dot(&a, &mb) - dot(&b, &ma)).abs() / (dot(&a, &ma) * dot(&b, &mb)).sqrt();
    assert!(asymmetry < 1e-5, "{D}D {side} {sweeps} sweeps: asymmetry {asymmetry:.1e}");
}

#[test]
fn preconditioner_with_tiles_is_symmetric_2d() {
    for sweeps in 1..4 {
        preconditioner_with_tiles_is_symmetric::<2>(64, 8, sweeps);
        // So wide that they stay still on the first coarse level too.
        preconditioner_with_tiles_is_symmetric::<2>(160, 32, sweeps);
    }
}

#[test]
fn preconditioner_with_tiles_is_symmetric_3d() {
    for sweeps in 1..3 {
        preconditioner_with_tiles_is_symmetric::<3>(40, 8, sweeps);
        preconditioner_with_tiles_is_symmetric::<3>(80, 32, sweeps);
    }
}
