//! Bodies that move with the liquid, from a provider made up here.

use glug::geometry::{Label, Motion, Shape, Solid};
use glug::grid::block_cells;
use glug::math::Vector;
use glug::pressure::{BodyFace, BodyProvider, CoupledSystem, FREE, Solution};
use nalgebra::DMatrix;

use crate::bubbles::projection::trap_air;
use crate::tank::{Face, Tank, noise};

/// A ball that closes the shares of faces that the boundary says are closed around it.
struct Ball {
    faces: Vec<(BodyFace, Vec<f64>)>,
    /// Mass, and inertia, over those of a cell of liquid.
    masses: Vec<f64>,
    velocity: Vec<f64>,
    impulse: Vec<f64>,
}

impl<const D: usize> BodyProvider<D> for Ball {
    fn add_bodies(&mut self, to: &mut CoupledSystem<'_, D>) {
        let size = self.masses.len();
        let response = DMatrix::from_fn(size, size, |i, j| if i == j { 1.0 / self.masses[i] } else { 0.0 });
        let faces = self.faces.iter().map(|(face, motion)| (*face, motion.as_slice()));
        to.add_body(&response, &self.velocity, faces);
    }

    fn respond(&mut self, solution: &Solution<'_, D>) {
        self.impulse = solution.impulse_on(0);
        for ((velocity, change), mass) in
            self.velocity.iter_mut().zip(solution.change_of(0)).zip(&self.masses)
        {
            *velocity += change;
            assert!(mass.is_finite());
        }
    }
}

impl Ball {
    /// What the ball pushes across a face, given by its axis and its index in fields.
    fn flow<const D: usize>(&self, axis: usize, index: usize) -> f64 {
        let cells = block_cells(D);
        let place =
            |face: &BodyFace| (face.slot as usize * cells + face.local as usize, usize::from(face.axis));
        let found = self.faces.iter().find(|(face, _)| place(face) == (index, axis));
        found.map_or(0.0, |(face, motion)| {
            face.share * motion.iter().zip(&self.velocity).map(|(c, v)| c * v).sum::<f64>()
        })
    }

    fn energy(&self) -> f64 {
        self.masses.iter().zip(&self.velocity).map(|(m, v)| 0.5 * m * v * v).sum()
    }
}

/// A tank with a ball below its surface, and with air under a roof that the ball reaches into.
fn tank_with_ball<const D: usize>(density: f64, is_trapped: bool) -> (Tank<D>, Ball) {
    let cells = if D == 2 { 40 } else { 20 };
    let dx = 1.0 / cells as f64;
    let (radius, mut centre) = (0.2, Vector::<D>::repeat(0.503));
    centre[1] = 0.62;
    let solid = Solid::new("ball", Shape::Sphere { center: centre, radius }, Motion::default());
    let mut tank = Tank::<D>::new([cells; D], dx, vec![solid]);
    tank.fill(|x| x[1] - 0.7);
    tank.set_velocity(noise);
    tank.impulse[1] = -0.1;
    tank.label_cells();
    if is_trapped {
        trap_air(&mut tank, |_| false);
        assert_eq!(tank.weight.len(), 1, "{D}D: one bubble");
    } else {
        tank.node.fill(FREE);
    }
    let mut faces = Vec::new();
    for face in tank.faces() {
        let at = tank.face_centre(&face);
        let share = 1.0 - tank.open(&face);
        let is_inside = (0..D).all(|k| at[k] > 0.5 * dx && at[k] < 1.0 - 0.5 * dx);
        if share > 0.0 && is_inside && (at - centre).norm() < radius + 1.5 * dx {
            let r = (at - centre) / dx;
            let mut motion = vec![0.0; D];
            motion[face.axis] = 1.0;
            if D == 2 {
                motion.push(if face.axis == 0 { -r[1] } else { r[0] });
            }
            let (slot, local) = (face.index / block_cells(D), face.index % block_cells(D));
            let face = BodyFace { slot: slot as u32, local: local as u32, axis: face.axis as u8, share };
            faces.push((face, motion));
        }
    }
    assert!(faces.len() > 50, "{D}D: {} faces", faces.len());
    let volume = 3.0 * (radius / dx).powi(D as i32);
    let mut masses = vec![density * volume; D];
    if D == 2 {
        masses.push(0.5 * density * volume * (radius / dx).powi(2));
    }
    let velocity = masses.iter().enumerate().map(|(k, _)| 0.3 - 0.2 * k as f64).collect();
    (tank, Ball { faces, masses, velocity, impulse: Vec::new() })
}

/// What flows out of a cell: through open shares as the faces say, if the cell beyond is one that `counts`, and through closed
/// ones as the ball does.
fn outflow<const D: usize>(
    tank: &Tank<D>,
    ball: &Ball,
    cell: [i32; D],
    counts: impl Fn(Label) -> bool,
) -> f64 {
    let mut sum = 0.0;
    for axis in 0..D {
        for high in [0, 1] {
            let (mut at, mut other) = (cell, cell);
            at[axis] += high;
            other[axis] += 2 * high - 1;
            let face = Face { axis, index: tank.index(at), cell: at };
            let mut flow = ball.flow::<D>(axis, face.index);
            if counts(tank.label(tank.index(other))) {
                flow += tank.open(&face) * f64::from(tank.velocity[axis][face.index]);
            }
            sum += f64::from(2 * high - 1) * flow;
        }
    }
    sum
}

/// Kinetic energy of the liquid's faces, in units of a cell's mass.
fn energy_of_liquid<const D: usize>(tank: &Tank<D>) -> f64 {
    let faces = tank.faces().into_iter().filter(|face| {
        [face.index, tank.below(face)].iter().all(|&index| tank.label(index) == Label::Liquid)
    });
    faces.map(|face| 0.5 * tank.open(&face) * f64::from(tank.velocity[face.axis][face.index]).powi(2)).sum()
}

/// After a projection nothing flows out of any cell, with what the ball pushes counted, and the bubble keeps its volume.
fn liquid_and_body_fit_together<const D: usize>(density: f64, is_trapped: bool) {
    let (mut tank, mut ball) = tank_with_ball::<D>(density, is_trapped);
    let solved = tank.project_with(&mut [&mut ball], 1e-12);
    assert!(solved.info.converged && !solved.info.fallback, "{D}D density {density}: {:?}", solved.info);
    assert!(solved.info.iterations <= 40, "{D}D density {density}: {} iterations", solved.info.iterations);
    let mut worst = 0f64;
    for (cell, _) in tank.liquid() {
        worst = worst.max(outflow(&tank, &ball, cell, |_| true).abs());
    }
    assert!(worst < 2e-6, "{D}D density {density}: {worst:.1e} m/s flow out of a cell");
    // The ball moves by the pressure on it, and by nothing else.
    for ((impulse, mass), (k, velocity)) in
        ball.impulse.iter().zip(&ball.masses).zip(ball.velocity.iter().enumerate())
    {
        let expected = 0.3 - 0.2 * k as f64 + impulse / mass;
        assert!((velocity - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{D}D: {velocity} {expected}");
    }
    if is_trapped {
        // All air is one bubble: what the ball pushes into it leaves through its surface.
        let grid = tank.blocks.grid();
        let air = tank
            .cells()
            .into_iter()
            .filter(|&(cell, index)| grid.contains(cell) && tank.label(index) == Label::Air);
        let sum: f64 =
            air.map(|(cell, _)| outflow(&tank, &ball, cell, |beyond| beyond == Label::Liquid)).sum();
        assert!(sum.abs() < 1e-4, "{D}D density {density}: {sum:.1e} m/s flow out of the bubble");
    }
}

#[test]
fn liquid_and_body_fit_together_2d() {
    for density in [0.01, 1.0, 100.0] {
        liquid_and_body_fit_together::<2>(density, false);
        liquid_and_body_fit_together::<2>(density, true);
    }
}

#[test]
fn liquid_and_body_fit_together_3d() {
    for density in [0.01, 10.0] {
        liquid_and_body_fit_together::<3>(density, false);
        liquid_and_body_fit_together::<3>(density, true);
    }
}

/// A projection takes energy away from liquid and body together, and never gives any. Without gravity, and with trapped air, so
/// that all faces with mass lie between cells of liquid.
fn energy_does_not_grow<const D: usize>(density: f64) {
    let (mut tank, mut ball) = tank_with_ball::<D>(density, true);
    tank.impulse[1] = 0.0;
    tank.fill(|_| -1.0);
    tank.node.fill(FREE);
    tank.weight.clear();
    tank.label_cells();
    let before = energy_of_liquid(&tank) + ball.energy();
    let solved = tank.project_with(&mut [&mut ball], 1e-12);
    assert!(solved.info.converged, "{D}D density {density}: {:?}", solved.info);
    let after = energy_of_liquid(&tank) + ball.energy();
    assert!(after < before * (1.0 + 1e-6), "{D}D density {density}: {before} → {after}");
    assert!(after > 0.01 * before, "{D}D density {density}: something is left of {before}: {after}");
}

#[test]
fn energy_does_not_grow_2d() {
    [0.01, 1.0, 100.0].into_iter().for_each(energy_does_not_grow::<2>);
}

#[test]
fn energy_does_not_grow_3d() {
    [0.01, 100.0].into_iter().for_each(energy_does_not_grow::<3>);
}
