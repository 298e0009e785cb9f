//! What a projection keeps and what it passes on: divergence-free flow, rest, pistons; and the smallest and fullest
//! domains.

use glug::geometry::{Label, Motion, Move, Shape, Solid};
use glug::math::Vector;
use glug::pressure;

use crate::tank::{Tank, noise};

fn ball<const D: usize>() -> Solid<D> {
    Solid::new("ball", Shape::Sphere { center: Vector::repeat(0.47), radius: 0.2 }, Motion::default())
}

fn a_divergence_free_flow_is_left_alone<const D: usize>() {
    let cells = if D == 2 { 40 } else { 18 };
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, vec![ball()]);
    tank.fill(|x| x[1] - 0.8 - 0.1 * (9.0 * x[0]).sin());
    tank.set_velocity(noise);
    tank.project();
    // Closed faces do not count: what moves there is not liquid.
    let once = tank.velocity.clone();
    tank.project();
    for face in tank.faces().into_iter().filter(|face| tank.is_valid(face)) {
        let change = (tank.velocity[face.axis][face.index] - once[face.axis][face.index]).abs();
        assert!(change < 2e-6, "{D}D: the second projection changed {:?} by {change:.1e}", face.cell);
    }
    assert!(tank.worst_outflow() < 2e-6, "{D}D: {:.1e}", tank.worst_outflow());
}

#[test]
fn a_divergence_free_flow_is_left_alone_2d() {
    a_divergence_free_flow_is_left_alone::<2>();
}

#[test]
fn a_divergence_free_flow_is_left_alone_3d() {
    a_divergence_free_flow_is_left_alone::<3>();
}

fn a_drop_in_flight_keeps_its_rigid_motion<const D: usize>() {
    let cells = if D == 2 { 40 } else { 20 };
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, Vec::new());
    tank.fill(|x| (x - Vector::repeat(0.5)).norm() - 0.23);
    let flow = |x: &Vector<D>, axis: usize| match axis {
        0 => 0.3 - 2.0 * (x[1] - 0.5),
        1 => -0.2 + 2.0 * (x[0] - 0.5),
        _ => 0.1,
    };
    tank.set_velocity(flow);
    tank.impulse[1] = -0.25;
    tank.project();
    for face in tank.faces().into_iter().filter(|face| tank.is_valid(face)) {
        let expected = flow(&tank.face_centre(&face), face.axis) + tank.impulse[face.axis];
        let error = (tank.velocity[face.axis][face.index] as f64 - expected).abs();
        assert!(error < 1e-6, "{D}D: {error:.1e} at {:?}", face.cell);
    }
}

#[test]
fn a_drop_in_flight_keeps_its_rigid_motion_2d() {
    a_drop_in_flight_keeps_its_rigid_motion::<2>();
}

#[test]
fn a_drop_in_flight_keeps_its_rigid_motion_3d() {
    a_drop_in_flight_keeps_its_rigid_motion::<3>();
}

fn nothing_comes_of_nothing<const D: usize>() {
    let mut tank = Tank::<D>::new([20; D], 0.05, vec![ball()]);
    tank.fill(|x| x[1] - 0.8 - 0.1 * (9.0 * x[0]).sin());
    let solved = tank.project();
    assert_eq!((solved.info.iterations, tank.fastest()), (0, 0.0), "{D}D");
    assert!(tank.pressure.q.as_slice().iter().all(|&q| q == 0.0), "{D}D: no motion, no pressure");
}

#[test]
fn nothing_comes_of_nothing_2d() {
    nothing_comes_of_nothing::<2>();
}

#[test]
fn nothing_comes_of_nothing_3d() {
    nothing_comes_of_nothing::<3>();
}

/// A tube along x, closed by a piston on the left; liquid up to a surface on the right.
fn a_piston_moves_as_much_as_it_sweeps<const D: usize>(slope: f64) {
    const SPEED: f64 = 0.7;
    let mut tank = Tank::<D>::with_piston(40, slope, SPEED);
    tank.fill(|x| x[0] - 1.62 - 0.3 * x[1]);
    tank.set_velocity(noise);
    let solved = tank.project();
    assert!(solved.info.converged, "{D}D: {:?}", solved.info);
    let rows = 10f64.powi(D as i32 - 1);
    for section in 15..30 {
        let through = tank.flux(section);
        let error = (through / (rows * SPEED) - 1.0).abs();
        assert!(error < 1e-6, "{D}D: flux {through} through section {section}, swept {}", rows * SPEED);
    }
}

#[test]
fn a_piston_moves_as_much_as_it_sweeps_2d() {
    a_piston_moves_as_much_as_it_sweeps::<2>(0.0);
    a_piston_moves_as_much_as_it_sweeps::<2>(0.4);
}

#[test]
fn a_piston_moves_as_much_as_it_sweeps_3d() {
    a_piston_moves_as_much_as_it_sweeps::<3>(0.0);
    a_piston_moves_as_much_as_it_sweeps::<3>(0.4);
}

fn a_full_container_converges<const D: usize>() {
    let cells = if D == 2 { 48 } else { 20 };
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, vec![ball()]);
    tank.fill(|_| -0.1);
    tank.set_velocity(noise);
    let solved = tank.project();
    assert!(solved.info.converged, "{D}D: {:?}", solved.info);
    assert_eq!(solved.info.closed_components, 1, "{D}D: one liquid, no air");
    assert!(solved.info.iterations < 60, "{D}D: {} iterations", solved.info.iterations);
    let liquid = tank.liquid();
    let mean = liquid.iter().map(|&(_, index)| tank.pressure.q[index]).sum::<f64>() / liquid.len() as f64;
    assert!(mean.abs() < 1e-12, "{D}D: mean pressure {mean:.1e}");
    assert!(tank.worst_outflow() < 2e-6, "{D}D: {:.1e}", tank.worst_outflow());
    // Gravity on a full container is pressure and nothing else.
    tank.set_velocity(|_, _| 0.0);
    tank.impulse[1] = -0.16;
    assert!(tank.project().info.converged);
    assert!(tank.fastest() < 1e-8, "{D}D: gravity made {:.1e} m/s", tank.fastest());
}

#[test]
fn a_full_container_converges_2d() {
    a_full_container_converges::<2>();
}

#[test]
fn a_full_container_converges_3d() {
    a_full_container_converges::<3>();
}

/// A piston pushes into a tube that is closed and full: there is no solution, but there is a best one. Every cell is
/// squeezed as much as every other.
fn an_impossible_squeeze_is_shared<const D: usize>() {
    const SPEED: f64 = 0.5;
    let mut cells = [8; D];
    cells[0] = 24;
    let push = Vector::from_fn(|axis, _| if axis == 0 { SPEED } else { 0.0 });
    let glide = Move::Glide { velocity: push, from: 0.0, until: 9.0 };
    let mut face = Vector::<D>::zeros();
    face[0] = 0.213;
    let piston = Solid::new("piston", Shape::half_space(face, push), Motion::new(vec![glide]));
    let mut tank = Tank::<D>::new(cells, 0.05, vec![piston]);
    tank.fill(|_| -0.1);
    let solved = tank.project();
    assert!(solved.info.converged, "{D}D: {:?}", solved.info);
    // The piston ends in the fifth cell of every row.
    let (rows, liquid) = (8f64.powi(D as i32 - 1), tank.liquid().len() as f64);
    assert_eq!(liquid, rows * 20.0, "{D}D");
    let mut partial = Vec::new();
    let (projection, loose) = (&tank.projection, &tank.pressure.loose);
    let [most, mean] = pressure::divergence(&tank.problem(), projection, loose, &tank.velocity, &mut partial);
    let expected = SPEED / 20.0 / 0.05;
    assert!((most / expected - 1.0).abs() < 1e-4, "{D}D: {most} and not {expected}");
    assert!((mean / expected - 1.0).abs() < 1e-4, "{D}D: {mean} and not {expected}");
}

#[test]
fn an_impossible_squeeze_is_shared_2d() {
    an_impossible_squeeze_is_shared::<2>();
}

#[test]
fn an_impossible_squeeze_is_shared_3d() {
    an_impossible_squeeze_is_shared::<3>();
}

fn the_volume_correction_gets_its_outflow<const D: usize>() {
    let mut tank = Tank::<D>::new([20; D], 0.05, vec![ball()]);
    tank.fill(|x| x[1] - 0.71);
    tank.outflow[0] = 0.003;
    assert!(tank.project().info.converged);
    let deep = tank.liquid().iter().filter(|cell| tank.surface[cell.1] <= -0.05).count() as f64;
    // All of it leaves through the surface.
    let mut up = 0.0;
    for face in tank.faces().iter().filter(|face| face.axis == 1 && tank.is_valid(face)) {
        if tank.label(face.index) == Label::Air {
            up += tank.open(face) * tank.velocity[1][face.index] as f64;
        }
    }
    assert!((up / (deep * tank.outflow[0]) - 1.0).abs() < 1e-4, "{D}D: {up} of {}", deep * tank.outflow[0]);
    assert!(tank.worst_outflow() < 1e-7, "{D}D: {:.1e} beyond the wanted", tank.worst_outflow());
}

#[test]
fn the_volume_correction_gets_its_outflow_2d() {
    the_volume_correction_gets_its_outflow::<2>();
}

#[test]
fn the_volume_correction_gets_its_outflow_3d() {
    the_volume_correction_gets_its_outflow::<3>();
}

fn extreme_domains_give_finite_velocities<const D: usize>() {
    let middle = Vector::<D>::repeat(0.525);
    type Distance<const D: usize> = Box<dyn Fn(&Vector<D>) -> f64>;
    let domains: [(&str, usize, Distance<D>); 4] = [
        ("one liquid cell", 1, Box::new(move |x: &Vector<D>| (x - middle).norm() - 0.02)),
        ("no liquid", 0, Box::new(|_: &Vector<D>| 0.1)),
        ("all liquid", 20usize.pow(D as u32), Box::new(|_: &Vector<D>| -0.1)),
        ("a surface at every centre", 20usize.pow(D as u32), Box::new(|_: &Vector<D>| 0.0)),
    ];
    for (name, cells, distance) in domains {
        let mut tank = Tank::<D>::new([20; D], 0.05, Vec::new());
        tank.fill(distance);
        tank.set_velocity(noise);
        tank.impulse[1] = -0.16;
        let solved = tank.project();
        assert_eq!(solved.unknowns, cells, "{D}D, {name}");
        assert!(solved.info.converged, "{D}D, {name}: {:?}", solved.info);
        let finite = tank.velocity.iter().flat_map(|field| field.as_slice()).all(|u| u.is_finite());
        assert!(finite, "{D}D, {name}: velocities");
        assert!(tank.pressure.q.as_slice().iter().all(|q| q.is_finite()), "{D}D, {name}: pressures");
        assert!(tank.worst_outflow() < 1e-5, "{D}D, {name}: {:.1e}", tank.worst_outflow());
    }
}

#[test]
fn extreme_domains_give_finite_velocities_2d() {
    extreme_domains_give_finite_velocities::<2>();
}

#[test]
fn extreme_domains_give_finite_velocities_3d() {
    extreme_domains_give_finite_velocities::<3>();
}
