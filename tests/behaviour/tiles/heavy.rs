//! Affine bubbles of any density, alone and beside tiles of liquid, against a dense solve with both fluids' velocities
//! and all pressures as unknowns (CBAR eq. 19); and the indefinite form against the eliminated one.

use std::collections::HashMap;

use glug::geometry::{Label, Solid};
use glug::linear::{PreconditionerKind, SolverParams};
use glug::pressure::find_unknowns;
use glug::tiles::{Division, TileDomain, TileRules, TileSize, Tiling};
use nalgebra::{DMatrix, DVector};

use super::dense::{basis, rules, tiles_of, wavy_tank};
use crate::phases::projection::moving_faces;
use crate::phases::weigh_air;
use crate::tank::{Tank, noise};

/// A closed tank with a round bubble that has mass, random velocities, and tiles in the bubble; in the liquid as well,
/// if so asked.
fn bubble_in_tank<const D: usize>(
    side: usize,
    radius: f64,
    density: f64,
    division: Division,
    both: bool,
) -> Tank<D> {
    let mut tank = Tank::<D>::new([side; D], 1.0 / side as f64, Vec::<Solid<D>>::new());
    let centre = [0.47, 0.52, 0.5];
    tank.fill(|x| radius - (0..D).map(|k| (x[k] - centre[k]).powi(2)).sum::<f64>().sqrt());
    tank.set_velocity(noise);
    tank.impulse[1] = -0.2;
    weigh_air(&mut tank, density);
    tank.label_cells();
    let mut projection = std::mem::take(&mut tank.projection);
    find_unknowns(&tank.blocks, &tank.problem().roles, &mut projection);
    let mut tiling = Box::new(Tiling::new());
    let domain = TileDomain { blocks: &tank.blocks, boundary: &tank.boundary, live: &projection.live };
    tiling.clear(&tank.blocks);
    if both {
        let lattice = Division::Lattice(TileSize { least: 8, most: 8 });
        let rules = TileRules { division: lattice, surface_band: 1, wall_band: 1, density: 1.0 };
        tiling.add_liquid(&domain, &projection.label, &rules);
    }
    let rules = TileRules { division, surface_band: 1, wall_band: 1, density };
    tiling.add_gas(&domain, &projection.label, &projection.gas, &rules);
    projection.tiling = Some(tiling);
    tank.projection = projection;
    tank
}

/// Velocities of all faces of either fluid, from the saddle-point system with everything in it.
fn dense_velocities<const D: usize>(tank: &Tank<D>, density: f64) -> Vec<f64> {
    let of = tiles_of(tank);
    let tiles = of.values().max().map_or(0, |most| most + 1);
    let faces = moving_faces(tank);
    let mut cells: HashMap<usize, usize> = HashMap::new();
    for cell in faces.iter().flat_map(|moving| [moving.face.index, tank.below(&moving.face)]) {
        let next = cells.len();
        if !of.contains_key(&cell) {
            cells.entry(cell).or_insert(next);
        }
    }
    // Numbers may have gaps where a cell was met twice.
    let row: HashMap<usize, usize> = {
        let mut known: Vec<usize> = cells.into_keys().collect();
        known.sort_unstable();
        known.into_iter().enumerate().map(|(row, cell)| (cell, row)).collect()
    };
    let dx = tank.blocks.grid().dx;
    let tile_of = |moving: &crate::phases::projection::Moving<D>| {
        of.get(&moving.face.index).or_else(|| of.get(&tank.below(&moving.face))).copied()
    };
    let dof = D + D * D - 1;
    let (n, m) = (row.len(), tiles * dof);
    let (mut matrix, mut right) = (DMatrix::<f64>::zeros(n + m, n + m), DVector::<f64>::zeros(n + m));
    let field = |moving: &crate::phases::projection::Moving<D>| {
        basis::<D>(tank.face_centre(&moving.face).map(|x| (x - 0.4) / dx), moving.face.axis)
    };
    for moving in &faces {
        let ends = [(tank.below(&moving.face), 1.0), (moving.face.index, -1.0)];
        let Some(tile) = tile_of(moving) else {
            let [low, high] = ends.map(|(cell, _)| row[&cell]);
            for (a, b) in [(high, low), (low, high)] {
                matrix[(a, a)] += moving.link;
                matrix[(a, b)] -= moving.link;
            }
            right[low] -= moving.open * moving.before;
            right[high] += moving.open * moving.before;
            continue;
        };
        // Tiles are of one fluid: the faces of heavy ones weigh what that fluid does.
        let is_gas = ends.iter().any(|(cell, _)| of.contains_key(cell) && tank.label(*cell) == Label::Air);
        let mass = if is_gas { density } else { 1.0 };
        let c = field(moving);
        for k in 0..dof {
            right[n + tile * dof + k] -= mass * c[k] * moving.before;
            for l in 0..dof {
                matrix[(n + tile * dof + k, n + tile * dof + l)] -= mass * c[k] * c[l];
            }
            for (cell, sign) in ends {
                if let Some(&end) = row.get(&cell) {
                    matrix[(end, n + tile * dof + k)] += sign * c[k];
                    matrix[(n + tile * dof + k, end)] += sign * c[k];
                }
            }
        }
    }
    // Closed: pressure is known up to a constant.
    for a in 0..n {
        for b in 0..n {
            matrix[(a, b)] += 1.0 / n as f64;
        }
    }
    let solution = matrix.lu().solve(&right).expect("one solution");
    faces
        .iter()
        .map(|moving| match tile_of(moving) {
            Some(tile) => field(moving).dot(&solution.rows(n + tile * dof, dof)),
            None => {
                let push = solution[row[&moving.face.index]] - solution[row[&tank.below(&moving.face)]];
                moving.before - push * moving.link / moving.open
            }
        })
        .collect()
}

fn affine_bubbles_equal_a_dense_solve<const D: usize>(
    side: usize,
    radius: f64,
    density: f64,
    division: Division,
    both: bool,
) {
    let case = format!("{D}D {side}, density {density}, {division:?}, both {both}");
    let mut tank = bubble_in_tank::<D>(side, radius, density, division, both);
    let tiles = tank.projection.tiling.as_ref().map_or(0, |tiling| tiling.tiles.len());
    assert!(tiles > both as usize, "{case}: {tiles} tiles");
    let faces = moving_faces(&tank);
    let expected = dense_velocities(&tank, density);
    // With links a thousand times stronger in the gas, residuals of 1e-12 are mere rounding.
    let solved = tank.project_to(1e-11);
    assert!(solved.info.converged, "{case}: {:?}", solved.info);
    // Links of gas and velocities are stored in single precision.
    let scale = expected.iter().fold(1.0, |most: f64, u| most.max(u.abs()));
    for (moving, expected) in faces.iter().zip(&expected) {
        let found = f64::from(tank.velocity[moving.face.axis][moving.face.index]);
        let place = (moving.face.axis, moving.face.cell);
        assert!((found - expected).abs() < 1e-6 * scale, "{case}: {found}, not {expected} at {place:?}");
    }
}

const LATTICE: Division = Division::Lattice(TileSize { least: 8, most: 8 });

#[test]
fn affine_bubbles_equal_a_dense_solve_2d() {
    for density in [1e-3, 0.1, 1.0, 10.0] {
        for division in [Division::Whole, LATTICE] {
            affine_bubbles_equal_a_dense_solve::<2>(30, 0.35, density, division, false);
            affine_bubbles_equal_a_dense_solve::<2>(36, 0.22, density, division, true);
        }
    }
}

#[test]
fn affine_bubbles_equal_a_dense_solve_3d() {
    for density in [0.1, 10.0] {
        affine_bubbles_equal_a_dense_solve::<3>(12, 0.42, density, Division::Whole, false);
    }
}

/// Minimal residuals of the indefinite form find the same pressures as conjugate gradients of the eliminated one.
fn both_forms_agree<const D: usize>(side: usize, size: usize, seed: u64) {
    let mut tank = wavy_tank::<D>(side, &rules(size, 3), seed);
    assert!(tank.project().info.converged);
    let solve = |preconditioner: PreconditionerKind| {
        let params =
            SolverParams { tolerance: 1e-9, max_iterations: 2000, preconditioner, ..Default::default() };
        tank.projection.solve_afresh(&tank.blocks, &params, 0)
    };
    let (eliminated, q, _) = solve(PreconditionerKind::Multigrid);
    let (diagonal, ..) = solve(PreconditionerKind::Jacobi);
    let (indefinite, other, _) = solve(PreconditionerKind::MinimalResiduals);
    assert!(eliminated.converged && indefinite.converged && diagonal.converged, "{D}D: {indefinite:?}");
    let most = q.as_slice().iter().fold(0.0, |most: f64, q| most.max(q.abs()));
    for (a, b) in q.as_slice().iter().zip(other.as_slice()) {
        assert!((a - b).abs() < 1e-6 * most, "{D}D: {a} and {b}");
    }
    // What elimination is for.
    assert!(
        indefinite.iterations > diagonal.iterations,
        "{D}D: {} and {}",
        indefinite.iterations,
        diagonal.iterations
    );
}

#[test]
fn both_forms_agree_2d() {
    both_forms_agree::<2>(64, 16, 5);
}

#[test]
fn both_forms_agree_3d() {
    both_forms_agree::<3>(32, 8, 6);
}
