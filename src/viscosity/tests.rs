//! The viscous step against analytic answers. Lengths are in cells, and so are times: viscosity is `alpha`.

use rayon::ThreadPoolBuilder;

use super::*;
use crate::geometry::{Motion, Move, Shape, Solid};
use crate::grid::{Grid, SIDE};
use crate::linear::Operator;
use crate::math::{Vector, hash_unit, unflatten};

/// A grid whose blocks are all active, with cells one metre wide.
struct Tank<const D: usize> {
    blocks: Blocks<D>,
    walls: Walls<D>,
    boundary: Boundary<D>,
    surface: Field<f32>,
    velocity: [Field<f32>; D],
    label: Field<Label>,
    /// None anywhere.
    pressure: Field<f64>,
    gravity: [Real; D],
    viscosity: Viscosity<D>,
}

/// A low face, by axis, place in fields and where its centre is.
type FaceAt<const D: usize> = (usize, usize, Vector<D>);

const EXACT: StoppingRule = StoppingRule {
    tolerance: 1e-9,
    floor: 0.0,
    max_iterations: 500,
    patience: 500,
    restarts: false,
    fallback_after: None,
};

impl<const D: usize> Tank<D> {
    /// A box with these solids in it, open on all sides, where liquid lies where `distance` is negative.
    fn new(cells: [usize; D], solids: Vec<Solid<D>>, distance: impl Fn(&Vector<D>) -> Real) -> Self {
        let blocks = Blocks::all(Grid { cells, dx: 1.0 });
        let size = cells.map(|count| count as Real);
        let walls = Walls {
            solids,
            size,
            open: [[true; 2]; D],
            sticky: [[false; 2]; D],
            slip: [[false; 2]; D],
            voxels: false,
        };
        let mut field = Field::new(block_cells(D), 0f32);
        field.resize(blocks.slot_count());
        let mut tank = Tank {
            boundary: Boundary::new(),
            surface: Field::new(block_cells(D), 1.5),
            velocity: std::array::from_fn(|_| field.clone()),
            label: Field::new(block_cells(D), Label::Liquid),
            pressure: Field::new(block_cells(D), 0.0),
            gravity: [0.0; D],
            viscosity: Viscosity::default(),
            walls,
            blocks,
        };
        tank.surface.resize(tank.blocks.slot_count());
        tank.label.resize(tank.blocks.slot_count());
        tank.pressure.resize(tank.blocks.slot_count());
        for (place, x) in tank.places(|_| 0.5) {
            tank.surface[place] = distance(&x).clamp(-1.5, 1.5) as f32;
        }
        tank.look_at_walls();
        tank
    }

    fn look_at_walls(&mut self) {
        self.boundary = Boundary::new();
        self.boundary.update(&self.blocks, &self.walls, 0.0);
    }

    /// Every stored cell's place in fields, and a point of it.
    fn places(&self, share: impl Fn(usize) -> Real) -> Vec<(usize, Vector<D>)> {
        let mut found = Vec::new();
        for &slot in self.blocks.slots().as_slice() {
            let first = self.blocks.first_cell(slot as usize);
            for local in 0..block_cells(D) {
                let cell = unflatten::<D>(local, SIDE);
                let x = Vector::from_fn(|k, _| Real::from(first[k] + cell[k] as i32) + share(k));
                found.push((slot as usize * block_cells(D) + local, x));
            }
        }
        found
    }

    fn faces(&self) -> Vec<FaceAt<D>> {
        let of_axis = |axis: usize| {
            let centres = self.places(|k| if k == axis { 0.0 } else { 0.5 });
            centres.into_iter().map(move |(place, x)| (axis, place, x))
        };
        (0..D).flat_map(of_axis).collect()
    }

    fn set(&mut self, flow: impl Fn(&Vector<D>) -> Vector<D>) {
        for (axis, place, x) in self.faces() {
            self.velocity[axis][place] = flow(&x)[axis] as f32;
        }
    }

    fn step(&mut self, alpha: Real, rule: &StoppingRule) -> Solved {
        let problem = Problem {
            blocks: &self.blocks,
            boundary: &self.boundary,
            walls: &self.walls,
            surface: &self.surface,
            label: &self.label,
            gravity: self.gravity,
            earlier: Some(EarlierPressure { q: &self.pressure, factor: 1.0 }),
            alpha,
            time: 0.0,
        };
        diffuse(&mut self.velocity, &problem, rule, &mut self.viscosity, None)
    }

    /// Unknown faces with their masses, after a step.
    fn unknowns(&self) -> Vec<(FaceAt<D>, Real)> {
        let finest = self.viscosity.hierarchy.finest();
        let cells = block_cells(D);
        let faces = self.faces().into_iter().filter_map(|face| {
            let (axis, place, _) = face;
            let block = self.viscosity.block_of[place / cells] as usize;
            if block == 0 {
                return None;
            }
            let mass = finest.coefficients(block).mass[axis * cells + place % cells];
            (mass > 0.0).then_some((face, Real::from(mass)))
        });
        faces.collect()
    }

    /// Momentum along every axis, about the middle of the tank (about z), and kinetic energy.
    fn moments(&self) -> ([Real; D], Real, Real) {
        let (mut momentum, mut spin, mut energy) = ([0.0; D], 0.0, 0.0);
        for ((axis, place, x), mass) in self.unknowns() {
            let velocity = Real::from(self.velocity[axis][place]);
            let arm = x - Vector::from(self.walls.size) * 0.5;
            momentum[axis] += mass * velocity;
            spin += mass * velocity * [-arm[1], arm[0], 0.0][axis];
            energy += 0.5 * mass * velocity * velocity;
        }
        (momentum, spin, energy)
    }

    fn shake(&mut self) {
        for (axis, place, x) in self.faces() {
            let key = x.iter().fold(axis as u64, |key, &x| key * 1000 + (2.0 * x + 20.0) as u64);
            self.velocity[axis][place] = hash_unit(key) - 0.5;
        }
    }
}

fn ball<const D: usize>(radius: Real, centre: Real) -> impl Fn(&Vector<D>) -> Real {
    move |x| (x - Vector::repeat(centre)).norm() - radius
}

fn disc<const D: usize>(middle: Real, radius: Real) -> Shape<D> {
    Shape::Sphere { center: Vector::repeat(middle), radius }
}

fn full<const D: usize>(_: &Vector<D>) -> Real {
    -1.5
}

fn wall<const D: usize>(point: Vector<D>, outward: Vector<D>, motion: Motion<D>) -> Solid<D> {
    Solid::new("wall", Shape::half_space(point, outward), motion)
}

fn glide<const D: usize>(velocity: Vector<D>) -> Motion<D> {
    Motion::new(vec![Move::Glide { velocity, from: -1.0, until: 9.0 }])
}

/// Root of the mean square of a difference, over that of what is expected.
fn relative_error(pairs: impl Iterator<Item = (Real, Real)>) -> Real {
    let (mut wrong, mut all) = (0.0, 0.0);
    for (found, expected) in pairs {
        wrong += (found - expected).powi(2);
        all += expected.powi(2);
    }
    (wrong / all).sqrt()
}

fn the_matrix_is_symmetric_and_positive<const D: usize>() {
    let solids = vec![Solid::new("disc", disc(7.3, 3.1), Motion::default())];
    let mut tank = Tank::new([20; D], solids, ball(8.4, 9.2));
    tank.step(30.0, &EXACT);
    let finest = tank.viscosity.hierarchy.finest();
    let mut diagonal = vec![0.0; finest.size()];
    finest.diagonal(&mut diagonal);
    let random = |salt: u64| -> Vec<Real> {
        let entry = |(k, &d): (usize, &Real)| {
            if d > 0.0 { Real::from(hash_unit(salt + k as u64)) - 0.5 } else { 0.0 }
        };
        diagonal.iter().enumerate().map(entry).collect()
    };
    let product = |x: &[Real]| {
        let mut out = vec![0.0; x.len()];
        finest.apply(x, &mut out);
        out
    };
    let dot = |a: &[Real], b: &[Real]| a.iter().zip(b).map(|(a, b)| a * b).sum::<Real>();
    let (x, y) = (random(0), random(1 << 40));
    let (ax, ay) = (product(&x), product(&y));
    let (one, other) = (dot(&x, &ay), dot(&y, &ax));
    assert!((one - other).abs() < 1e-9 * dot(&x, &ax), "{D}D: {one} and {other}");
    assert!(dot(&x, &ax) > 0.0);
    for face in (0..x.len()).filter(|&face| diagonal[face] > 0.0).step_by(97) {
        let mut unit = vec![0.0; x.len()];
        unit[face] = 1.0;
        let found = product(&unit)[face];
        assert!(
            (found / diagonal[face] - 1.0).abs() < 1e-5,
            "{D}D: {found} on the diagonal, not {}",
            diagonal[face]
        );
    }
}

#[test]
fn the_matrix_is_symmetric_and_positive_2d() {
    the_matrix_is_symmetric_and_positive::<2>();
}

#[test]
fn the_matrix_is_symmetric_and_positive_3d() {
    the_matrix_is_symmetric_and_positive::<3>();
}

fn liquid_that_turns_as_a_whole_is_left_alone<const D: usize>() {
    let mut tank = Tank::<D>::new([24; D], Vec::new(), ball(8.3, 11.7));
    let flow = |x: &Vector<D>| Vector::from_fn(|k, _| [0.3 - (x[1] - 12.0), 0.1 + (x[0] - 12.0), 0.7][k]);
    tank.set(flow);
    tank.step(100.0, &EXACT);
    let change = tank
        .unknowns()
        .into_iter()
        .map(|((axis, place, x), _)| (Real::from(tank.velocity[axis][place]) - flow(&x)[axis]).abs());
    let change = change.fold(0.0, Real::max);
    assert!(change < 1e-4, "{D}D: {change}");
}

#[test]
fn liquid_that_turns_as_a_whole_is_left_alone_2d() {
    liquid_that_turns_as_a_whole_is_left_alone::<2>();
}

#[test]
fn liquid_that_turns_as_a_whole_is_left_alone_3d() {
    liquid_that_turns_as_a_whole_is_left_alone::<3>();
}

/// The walls turn, too.
#[test]
fn liquid_that_turns_with_its_vessel_is_left_alone() {
    let spin =
        Move::Spin { center: Vector::repeat(16.0), axis: [0.0, 0.0, 1.0], rate: 0.2, from: -1.0, until: 9.0 };
    let vessel = disc(16.0, 11.3).inverted();
    let mut tank = Tank::<2>::new([32; 2], vec![Solid::new("vessel", vessel, Motion::new(vec![spin]))], full);
    let flow = |x: &Vector<2>| Vector::from([-0.2 * (x[1] - 16.0), 0.2 * (x[0] - 16.0)]);
    tank.set(flow);
    tank.step(100.0, &EXACT);
    let faces = tank.unknowns();
    assert!(faces.len() > 500);
    let change = faces
        .into_iter()
        .map(|((axis, place, x), _)| (Real::from(tank.velocity[axis][place]) - flow(&x)[axis]).abs());
    let change = change.fold(0.0, Real::max);
    assert!(change < 1e-4, "{change}");
}

fn free_liquid_keeps_its_momentum_and_loses_energy<const D: usize>() {
    let mut tank = Tank::<D>::new([24; D], Vec::new(), ball(7.9, 11.6));
    tank.shake();
    // Finds the masses without moving anything.
    tank.step(1e-12, &StoppingRule { max_iterations: 1, ..EXACT });
    for alpha in [0.01, 1.0, 100.0] {
        let (momentum, spin, energy) = tank.moments();
        tank.step(alpha, &EXACT);
        let (momentum_after, spin_after, energy_after) = tank.moments();
        let scale = energy * tank.unknowns().len() as Real;
        for axis in 0..D {
            let change = momentum_after[axis] - momentum[axis];
            assert!(change.abs() < 1e-6 * scale.sqrt() + 1e-3, "{D}D, {alpha}: momentum {change}");
        }
        if D == 2 {
            assert!((spin_after - spin).abs() < 1e-2, "{alpha}: spin {spin} to {spin_after}");
        }
        assert!(energy_after < energy, "{D}D, {alpha}: {energy} to {energy_after}");
    }
}

#[test]
fn free_liquid_keeps_its_momentum_and_loses_energy_2d() {
    free_liquid_keeps_its_momentum_and_loses_energy::<2>();
}

#[test]
fn free_liquid_keeps_its_momentum_and_loses_energy_3d() {
    free_liquid_keeps_its_momentum_and_loses_energy::<3>();
}

/// A channel along x, its walls between grid lines; the upper one moves. Returns speeds across its middle.
fn channel<const D: usize>(low: Real, high: Real, speed: Real, pull: Real, alpha: Real) -> Vec<(Real, Real)> {
    let up = Vector::<D>::from_fn(|k, _| if k == 1 { 1.0 } else { 0.0 });
    let along = Vector::<D>::from_fn(|k, _| if k == 0 { speed } else { 0.0 });
    let solids = vec![
        wall(up * low, up, Motion::default()),
        wall(up * high, -up, if speed > 0.0 { glide(along) } else { Motion::default() }),
    ];
    let mut cells = [16; D];
    cells[0] = 128;
    let mut tank = Tank::<D>::new(cells, solids, full);
    let exact = |y: Real| speed * (y - low) / (high - low) + 0.5 * pull / alpha * (y - low) * (high - y);
    tank.set(|x| Vector::from_fn(|k, _| if k == 0 { exact(x[1]) } else { 0.0 }));
    tank.gravity = std::array::from_fn(|k| if k == 0 { pull } else { 0.0 });
    for _ in 0..4 {
        tank.step(alpha, &EXACT);
        // The pull acts where the velocities are used.
        for (axis, place, _) in tank.faces() {
            tank.velocity[axis][place] += tank.gravity[axis] as f32;
        }
    }
    let faces = tank.unknowns().into_iter().filter(|((axis, _, x), _)| *axis == 0 && x[0] == 64.0);
    faces.map(|((_, place, x), _)| (Real::from(tank.velocity[0][place]), exact(x[1]))).collect()
}

#[test]
fn shear_between_moving_walls_is_exact_wherever_they_lie() {
    for offset in [0.0, 0.13, 0.5, 0.77] {
        let speeds = channel::<2>(1.0 + offset, 13.3, 1.0, 0.0, 50.0);
        assert!(speeds.len() > 10);
        let error = speeds.iter().map(|(found, exact)| (found - exact).abs()).fold(0.0, Real::max);
        assert!(error < 1e-5, "{offset}: {error}");
    }
}

#[test]
fn flow_in_a_channel_is_a_parabola() {
    for (low, high) in [(1.0, 15.0), (1.3, 15.3), (0.6, 14.9)] {
        let error = relative_error(channel::<2>(low, high, 0.0, 0.1, 50.0).into_iter());
        assert!(error < 0.01, "{low}: {error}");
    }
}

/// Between two cylinders, the outer one turning. Returns the error's norm.
fn circular_couette(cells: usize) -> Real {
    let size = cells as Real;
    let (middle, inner, outer) = (0.5 * size + 0.1, 0.2 * size, 0.45 * size);
    let centre = Vector::repeat(middle);
    let spin = Move::Spin { center: centre, axis: [0.0, 0.0, 1.0], rate: 1.0, from: -1.0, until: 9.0 };
    let vessel = disc(middle, outer).inverted();
    let solids = vec![
        Solid::new("inner", disc(middle, inner), Motion::default()),
        Solid::new("outer", vessel, Motion::new(vec![spin])),
    ];
    let mut tank = Tank::<2>::new([cells; 2], solids, full);
    for _ in 0..6 {
        tank.step(10.0 * size * size, &EXACT);
    }
    let slope = outer * outer / (outer * outer - inner * inner);
    let exact = |x: &Vector<2>| {
        let arm = x - centre;
        Vector::from([-arm[1], arm[0]]) * slope * (1.0 - inner * inner / arm.norm_squared())
    };
    let pairs = tank
        .unknowns()
        .into_iter()
        .map(|((axis, place, x), _)| (Real::from(tank.velocity[axis][place]), exact(&x)[axis]));
    relative_error(pairs)
}

#[test]
fn shear_between_cylinders_is_right() {
    let errors = [16, 32, 64].map(circular_couette);
    assert!(errors[1] < 0.005, "{errors:?}");
    assert!(errors[2] < errors[1] / 1.5 && errors[1] < errors[0] / 1.5, "{errors:?}");
}

#[test]
fn vortices_between_slippery_walls_decay_at_their_rate() {
    let (cells, alpha) = (32, 0.5);
    let mut tank = Tank::<2>::new([cells; 2], Vec::new(), full);
    tank.walls.open = [[false; 2]; 2];
    tank.walls.slip = [[true; 2]; 2];
    tank.look_at_walls();
    let k = std::f64::consts::PI / cells as Real;
    tank.set(|x| Vector::from([(k * x[0]).sin() * (k * x[1]).cos(), -(k * x[0]).cos() * (k * x[1]).sin()]));
    tank.step(1e-12, &StoppingRule { max_iterations: 1, ..EXACT });
    let before = tank.moments().2;
    let steps = 20;
    for _ in 0..steps {
        tank.step(alpha, &EXACT);
    }
    let rate = (before / tank.moments().2).ln() / Real::from(steps);
    let expected = 4.0 * alpha * k * k;
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} against {expected}");
}

/// Iterations for a shear flow with gravity and noise.
fn iterations<const D: usize>(tank: &mut Tank<D>, alpha: Real) -> usize {
    tank.shake();
    for (axis, place, x) in tank.faces() {
        tank.velocity[axis][place] =
            0.3 * tank.velocity[axis][place] + if axis == 0 { 0.1 * x[1] as f32 } else { 0.0 };
    }
    tank.gravity[1] = -1.0;
    let solved = tank.step(alpha, &StoppingRule { tolerance: 1e-4, ..EXACT });
    assert!(solved.info.converged);
    println!(
        "{D}D alpha {alpha}: {} iterations, {} unknowns, {:.3} s",
        solved.info.iterations, solved.unknowns, solved.seconds
    );
    solved.info.iterations
}

fn few_iterations_are_enough<const D: usize>(cells: usize) {
    let size = cells as Real;
    for alpha in [1.0, 10.0, 100.0] {
        let disc = Solid::new("disc", disc(0.4 * size, 0.17 * size), Motion::default());
        let level = |x: &Vector<D>| x[1] - 0.7 * size - 0.4;
        let mut tank = Tank::<D>::new([cells; D], vec![disc], level);
        tank.walls.open = [[false; 2]; D];
        tank.walls.open[1][1] = true;
        tank.look_at_walls();
        let in_tank = iterations(&mut tank, alpha);
        let mut drop = Tank::<D>::new([cells; D], Vec::new(), ball(0.3 * size, 0.47 * size));
        let in_drop = iterations(&mut drop, alpha);
        assert!(
            in_tank <= 8 && in_drop <= 8,
            "{D}D, alpha {alpha}: {in_tank} in a tank, {in_drop} in a drop"
        );
    }
}

#[test]
fn few_iterations_are_enough_2d() {
    few_iterations_are_enough::<2>(64);
}

#[test]
fn few_iterations_are_enough_3d() {
    few_iterations_are_enough::<3>(32);
}

#[test]
fn threads_do_not_change_a_bit() {
    let run = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut tank = Tank::<3>::new([20; 3], Vec::new(), ball(8.4, 9.2));
            tank.shake();
            tank.step(20.0, &StoppingRule { tolerance: 1e-4, ..EXACT });
            tank.velocity
                .each_ref()
                .map(|field| field.as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>())
        })
    };
    assert!(run(1) == run(3));
}
