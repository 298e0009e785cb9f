//! Liquid at rest stays at rest: one projection from rest under gravity, against an analytic surface.

use glug::geometry::{Motion, OUT_OF_PLANE, Shape, Solid};
use glug::math::Vector;

use crate::tank::Tank;

const GRAVITY_STEP: f64 = 9.81 / 60.0;

/// A tank of one metre: aligned with the grid, or turned against it with a ball in it.
fn tank<const D: usize>(oblique: bool) -> Tank<D> {
    let cells = if D == 2 { 40 } else { 20 };
    let middle = Vector::<D>::repeat(0.5);
    let mut solids = Vec::new();
    if oblique {
        let cavity = Shape::Box { min: middle.add_scalar(-0.31), max: middle.add_scalar(0.31) };
        let mut axis = OUT_OF_PLANE;
        if D == 3 {
            axis = [0.3, -0.2, 1.0];
        }
        let turned = cavity.rotated(axis, 0.43, middle).inverted();
        solids.push(Solid::new("tank", turned, Motion::default()));
        let ball = Shape::Sphere { center: middle.add_scalar(0.013), radius: 0.12 };
        solids.push(Solid::new("ball", ball, Motion::default()));
    }
    Tank::new([cells; D], 1.0 / cells as f64, solids)
}

fn liquid_at_rest_stays_at_rest<const D: usize>(oblique: bool) {
    let mut tank = tank::<D>(oblique);
    let dx = tank.blocks.grid().dx;
    // The surface's place between two cell centres, from just below the upper to just above the lower one.
    for theta in [0.011, 0.05, 0.2, 0.41, 0.5, 0.63, 0.85, 0.9999] {
        let height = ((0.53 / dx).floor() + 0.5 + theta) * dx;
        tank.fill(|x| x[1] - height);
        tank.set_velocity(|_, _| 0.0);
        tank.impulse[1] = -GRAVITY_STEP;
        let solved = tank.project();
        assert!(solved.info.converged, "{D}D theta {theta}: {:?}", solved.info);
        assert!(solved.unknowns > 100, "{D}D theta {theta}: only {} liquid cells", solved.unknowns);
        let fastest = tank.fastest();
        assert!(fastest < 1e-8, "{D}D oblique {oblique}, theta {theta}: rest became {fastest:.1e} m/s");
        // q = p dt / (rho dx), so that a cell more of depth is one gravity step more.
        for (cell, index) in tank.liquid() {
            let expected = GRAVITY_STEP * (height - tank.centre(cell)[1]) / dx;
            let error = (tank.pressure.q[index] - expected).abs();
            assert!(
                error < 2e-6 * GRAVITY_STEP / dx,
                "{D}D oblique {oblique}, theta {theta}: pressure off by {error:.1e} at {cell:?}"
            );
        }
    }
}

#[test]
fn liquid_at_rest_stays_at_rest_between_aligned_walls_2d() {
    liquid_at_rest_stays_at_rest::<2>(false);
}

#[test]
fn liquid_at_rest_stays_at_rest_between_aligned_walls_3d() {
    liquid_at_rest_stays_at_rest::<3>(false);
}

#[test]
fn liquid_at_rest_stays_at_rest_between_oblique_walls_2d() {
    liquid_at_rest_stays_at_rest::<2>(true);
}

#[test]
fn liquid_at_rest_stays_at_rest_between_oblique_walls_3d() {
    liquid_at_rest_stays_at_rest::<3>(true);
}
