//! Solvers keep what they made of one step's tiles for the next step. Nobody should be able to tell.

use glug::geometry::Shape;
use glug::linear::PreconditionerKind;
use glug::math::Vector;
use glug::sim::{Bubbles, Model, Simulation};

use crate::sim::{advance, corner_box, tank};

/// A ball falls into a pool in tiles, while solves from zero are compared with those of a solver that has seen nothing
/// before: to the last bit.
fn a_solver_that_remembers_solves_as_a_new_one<const D: usize>(cells: usize) {
    let ball = Shape::Sphere { center: Vector::from_fn(|k, _| [0.45, 0.86, 0.55][k]), radius: 0.09 };
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.7], 1.0), ball]);
    setup.params.model = Model::AffineTiles;
    setup.params.bubbles = Bubbles::FreeSurface;
    setup.params.surface_band = 3;
    setup.params.tile_size = 8;
    setup.params.tile_size_deep = 8;
    setup.params.warm_start = false;
    setup.params.tolerance_floor = 0.0;
    let mut pool = Simulation::new(&setup).expect("it starts");
    let mut tiles = Vec::new();
    for frame in 0..12 {
        // On the way, the levels are left out for a while, and all tiles change twice.
        let kind =
            if (4..6).contains(&frame) { PreconditionerKind::Jacobi } else { PreconditionerKind::Multigrid };
        let size = if frame == 7 { 16 } else { 8 };
        let params = &mut pool.params;
        params.preconditioner = kind;
        (params.tile_size, params.tile_size_deep) = (size, size);
        let report = advance(&mut pool, 0.01);
        assert!(report.solve.iter().all(|solve| solve.converged), "{D}D frame {frame}");
        tiles.push(report.tiles.count);
        let (info, afresh, _) = pool.solve_again(kind, 0);
        let here = report.solve.last().expect("there was a solve").iterations;
        assert_eq!(here, info.iterations, "{D}D frame {frame}");
        // Inside tiles the simulation goes on with a pressure of its own.
        let all = pool.state().pressure.q.as_slice().iter().zip(afresh.as_slice());
        let outside: Vec<_> = all.filter(|(_, new)| **new != 0.0).collect();
        assert!(outside.len() > 1000, "{D}D frame {frame}: {} pressures", outside.len());
        let other = outside.iter().filter(|(kept, new)| kept.to_bits() != new.to_bits()).count();
        assert_eq!(other, 0, "{D}D frame {frame}: pressures that differ");
    }
    assert!(tiles.iter().all(|&count| count > 0) && tiles[7] < tiles[6], "{D}D: tiles {tiles:?}");
}

#[test]
fn a_solver_that_remembers_solves_as_a_new_one_2d() {
    a_solver_that_remembers_solves_as_a_new_one::<2>(96);
}

#[test]
fn a_solver_that_remembers_solves_as_a_new_one_3d() {
    a_solver_that_remembers_solves_as_a_new_one::<3>(40);
}
