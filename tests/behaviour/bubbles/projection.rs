//! What one projection does to trapped air: rest stays rest, pistons push through air, fluxes are those asked for.

use glug::bubbles::Measure;
use glug::geometry::{Label, Motion, Settled, Shape, Solid};
use glug::math::Vector;
use glug::pressure::FREE;

use crate::tank::{Tank, noise};

use super::shapes::components_of;

/// Makes every air component that touches liquid a bubble, except those that `is_open` names by one of their cells.
/// Returns the components that became one.
pub fn trap_air<const D: usize>(tank: &mut Tank<D>, is_open: impl Fn(&Vector<D>) -> bool) -> Vec<u32> {
    let components = components_of(tank);
    let mut measure = Measure::new();
    measure.update(&tank.blocks, &tank.boundary, &tank.surface, &components, &Settled::default());
    let mut open = vec![false; components.len()];
    for (cell, index) in tank.cells() {
        if tank.label(index) == Label::Air && is_open(&tank.centre(cell)) {
            open[components.of[index] as usize] = true;
        }
    }
    tank.component = components.of.clone();
    tank.node = vec![FREE; components.len()];
    tank.outflow = vec![0.0; components.len()];
    tank.weight.clear();
    let mut bubbles = Vec::new();
    for (_, air, _) in measure.touching() {
        if tank.node[air as usize] == FREE && !open[air as usize] {
            tank.node[air as usize] = tank.weight.len() as u32;
            tank.weight.push(measure.extent[air as usize].volume.max(1.0));
            bubbles.push(air);
        }
    }
    bubbles
}

/// A tank of one metre, divided by a wall that ends above the floor.
fn two_chambers<const D: usize>() -> Tank<D> {
    let cells = if D == 2 { 40 } else { 20 };
    let (mut min, mut max) = (Vector::<D>::repeat(-1.0), Vector::<D>::repeat(2.0));
    (min[0], max[0], min[1]) = (0.45, 0.55, 0.2);
    let wall = Solid::new("wall", Shape::Box { min, max }, Motion::default());
    Tank::new([cells; D], 1.0 / cells as f64, vec![wall])
}

/// Trapped air pushes back: unequal levels are at rest, to the tolerance of the solve. A free surface falls at once.
fn trapped_air_holds_unequal_levels<const D: usize>() {
    let mut tank = two_chambers::<D>();
    for theta in [0.011, 0.2, 0.5, 0.77, 0.9999] {
        let dx = tank.blocks.grid().dx;
        let level = |x: &Vector<D>| if x[0] < 0.5 { 0.3 } else { 0.7 + (theta + 0.5) * dx };
        let run = |tank: &mut Tank<D>, trapped: [bool; 2]| {
            tank.fill(|x| x[1] - level(x));
            tank.set_velocity(|_, _| 0.0);
            tank.impulse[1] = -0.16;
            let bubbles = trap_air(tank, |x| if x[0] < 0.5 { !trapped[0] } else { !trapped[1] });
            assert_eq!(bubbles.len(), trapped.iter().filter(|&&t| t).count(), "{D}D");
            let solved = tank.project();
            assert!(solved.info.converged, "{D}D theta {theta}: {:?}", solved.info);
            tank.fastest()
        };
        // With one side open the other's air is enough to hold the water.
        for trapped in [[true, true], [true, false], [false, true]] {
            let fastest = run(&mut tank, trapped);
            assert!(fastest < 1e-8, "{D}D theta {theta} {trapped:?}: rest became {fastest:.1e} m/s");
        }
        let fastest = run(&mut tank, [false, false]);
        assert!(fastest > 0.01, "{D}D theta {theta}: a free surface falls, not by {fastest:.1e} m/s");
    }
}

#[test]
fn trapped_air_holds_unequal_levels_2d() {
    trapped_air_holds_unequal_levels::<2>();
}

#[test]
fn trapped_air_holds_unequal_levels_3d() {
    trapped_air_holds_unequal_levels::<3>();
}

/// A layer of air with water on top of it: flat, it carries it.
fn a_layer_of_air_carries_the_water_above<const D: usize>() {
    let cells = if D == 2 { 32 } else { 16 };
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, Vec::new());
    for theta in [0.03, 0.4, 0.97] {
        let dx = 1.0 / cells as f64;
        let (bottom, top) = (0.25 + (0.5 + theta) * dx, 0.5 + (0.5 + 0.7 * theta) * dx);
        tank.fill(|x| (x[1] - bottom).min(top - x[1]).max(x[1] - 0.8));
        tank.set_velocity(|_, _| 0.0);
        tank.impulse[1] = -0.16;
        let bubbles = trap_air(&mut tank, |x| x[1] > 0.85);
        assert_eq!(bubbles.len(), 1, "{D}D: the layer");
        let solved = tank.project();
        assert!(solved.info.relative_residual < 1e-10, "{D}D theta {theta}: {:?}", solved.info);
        assert!(tank.fastest() < 1e-8, "{D}D theta {theta}: {:.1e} m/s", tank.fastest());
        // Its pressure carries the water above it: q = p dt / (rho dx).
        let (q, weight) = (tank.projection.shared_q()[0], 0.16 * (0.8 - top) / dx);
        assert!(
            (q / weight - 1.0).abs() < 1e-5,
            "{D}D theta {theta}: pressure {q} under a weight of {weight}"
        );
    }
}

#[test]
fn a_layer_of_air_carries_the_water_above_2d() {
    a_layer_of_air_carries_the_water_above::<2>();
}

#[test]
fn a_layer_of_air_carries_the_water_above_3d() {
    a_layer_of_air_carries_the_water_above::<3>();
}

/// Net outflow of every bubble through its liquid faces, m/s times whole faces.
fn outflows<const D: usize>(tank: &Tank<D>, bubbles: &[u32]) -> Vec<f64> {
    let mut found = vec![0.0; bubbles.len()];
    for face in tank.faces().iter().filter(|face| tank.is_valid(face)) {
        let flow = tank.open(face) * tank.velocity[face.axis][face.index] as f64;
        for (cell, sign) in [(face.index, -1.0), (tank.below(face), 1.0)] {
            if tank.label(cell) == Label::Air
                && let Some(bubble) = bubbles.iter().position(|&component| component == tank.component[cell])
            {
                found[bubble] += sign * flow;
            }
        }
    }
    found
}

fn bubbles_get_the_outflow_they_ask_for<const D: usize>(open: bool) {
    let cells = if D == 2 { 48 } else { 24 };
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, Vec::new());
    let spots = [[0.25, 0.3], [0.7, 0.25], [0.5, 0.6]];
    tank.fill(|x| {
        let away =
            |spot: &[f64; 2]| 0.13 - (0..D).map(|k| (x[k] - spot[k.min(1)]).powi(2)).sum::<f64>().sqrt();
        spots.iter().map(away).fold(x[1] - 0.85, f64::max)
    });
    tank.set_velocity(noise);
    tank.impulse[1] = -0.2;
    let bubbles = trap_air(&mut tank, |x| open && x[1] > 0.9);
    assert_eq!(bubbles.len(), if open { 3 } else { 4 }, "{D}D");
    for (&component, wanted) in bubbles.iter().zip([0.0, 0.7, -0.4, -0.3]) {
        tank.outflow[component as usize] = wanted;
    }
    assert!(tank.project().info.converged, "{D}D");
    let area = (cells as f64 * 0.26).powi(D as i32 - 1) * 3.0;
    for (found, &component) in outflows(&tank, &bubbles).iter().zip(&bubbles) {
        let wanted = tank.outflow[component as usize];
        assert!((found - wanted).abs() < 1e-6 * area, "{D}D open {open}: {found} and not {wanted}");
    }
    // In the closed tank they sum to zero, so that the liquid need not give.
    assert!(tank.worst_outflow() < 2e-6, "{D}D open {open}: {:.1e}", tank.worst_outflow());
}

#[test]
fn bubbles_get_the_outflow_they_ask_for_2d() {
    bubbles_get_the_outflow_they_ask_for::<2>(true);
    bubbles_get_the_outflow_they_ask_for::<2>(false);
}

#[test]
fn bubbles_get_the_outflow_they_ask_for_3d() {
    bubbles_get_the_outflow_they_ask_for::<3>(true);
    bubbles_get_the_outflow_they_ask_for::<3>(false);
}

/// Piston, air, slug, air, slug, and open air at the end: each slug moves by what the piston sweeps.
fn a_piston_pushes_through_air<const D: usize>(slope: f64, speed: f64) {
    let mut tank = Tank::<D>::with_piston(60, slope, speed);
    // Slugs with slanted ends, the second one thicker.
    tank.fill(|x| {
        let s = x[0] - 0.3 * x[1];
        ((s - 1.02).abs() - 0.2).min((s - 2.0).abs() - 0.37)
    });
    tank.set_velocity(noise);
    let bubbles = trap_air(&mut tank, |x| x[0] > 2.7);
    assert_eq!(bubbles.len(), 2, "{D}D: behind the piston and between the slugs");
    let solved = tank.project();
    assert!(solved.info.converged, "{D}D: {:?}", solved.info);
    let rows = 10f64.powi(D as i32 - 1);
    for section in [20, 39, 40] {
        let through = tank.flux(section);
        let swept = rows * speed;
        assert!((through / swept - 1.0).abs() < 1e-6, "{D}D: {through} through {section}, swept {swept}");
    }
    // The air between the slugs gets as much as it gives; that behind the piston gives what is swept.
    let flows = outflows(&tank, &bubbles);
    let (least, most) = (flows[0].abs().min(flows[1].abs()), flows[0].abs().max(flows[1].abs()));
    assert!(least < 1e-5 && (most / (rows * speed.abs()) - 1.0).abs() < 1e-5, "{D}D: {flows:?}");
}

#[test]
fn a_piston_pushes_through_air_2d() {
    a_piston_pushes_through_air::<2>(0.0, 0.7);
    a_piston_pushes_through_air::<2>(0.4, 0.7);
    a_piston_pushes_through_air::<2>(0.0, -0.3);
}

#[test]
fn a_piston_pushes_through_air_3d() {
    a_piston_pushes_through_air::<3>(0.0, 0.7);
    a_piston_pushes_through_air::<3>(0.4, -0.3);
}
