//! States that are left behind and gone on from.

mod resumed;
mod saved;
mod scratch;

use glug::geometry::{Motion, Move, Shape, Solid};
use glug::math::Vector;
use glug::sim::{AirSource, Bubbles, Drain, FrameReport, Model, Setup, Simulation, Source};

use crate::sim::{advance, corner_box, tank};

/// A tank in which everything happens at once: a dam breaks over a trapped bubble and a swinging ball, liquid runs in and
/// out, a nozzle releases bubbles, a plate vanishes, and one side is open.
pub fn busy_tank<const D: usize>(model: Model, cells: usize) -> Setup<D> {
    let at = |x: f64, y: f64| Vector::<D>::from_fn(|axis, _| [x, y, 0.5][axis]);
    let ball = |x: f64, y: f64, radius: f64| Shape::Sphere { center: at(x, y), radius };
    let pool =
        Shape::Difference(Box::new(corner_box([0.0, 0.0], [1.0, 0.5], 1.0)), vec![ball(0.3, 0.2, 0.11)]);
    let mut setup = tank([1.0; D], cells, vec![pool, corner_box([0.0, 0.5], [0.4, 0.8], 1.0)]);
    setup.open[1][1] = true;
    let swing = Move::Swing { amplitude: at(0.1, 0.0) - at(0.0, 0.0), frequency: 1.5, phase: 0.0 };
    setup.solids.push(Solid::new("ball", ball(0.7, 0.3, 0.12), Motion::new(vec![swing])));
    let plate = corner_box([0.45, 0.62], [0.9, 0.7], 1.0);
    setup.solids.push(Solid { present: [0.0, 0.1], ..Solid::new("plate", plate, Motion::default()) });
    setup.sources.push(Source {
        shape: ball(0.85, 0.85, 0.08),
        velocity: at(0.0, -1.0) - at(0.0, 0.0),
        from: 0.02,
        until: 0.2,
    });
    setup.drains.push(Drain { shape: corner_box([0.9, 0.0], [1.0, 0.1], 1.0), from: 0.05, until: 0.3 });
    let nozzle = ball(0.5, 0.12, 0.07);
    setup.air_sources.push(AirSource { shape: nozzle, rate: 0.0, every: 0.06, from: 0.03, until: 1.0 });
    let params = &mut setup.params;
    params.model = model;
    params.bubbles = Bubbles::Constraint;
    params.air_density = 50.0;
    (params.tile_size, params.tile_size_deep, params.bubble_tile_size) = (8, 8, 8);
    (params.surface_band, params.wall_band, params.bubble_band) = (2, 2, 2);
    params.affine_liquid = true;
    params.reduced_advection = true;
    setup
}

/// A frame's statistics as text, less what a clock has measured.
pub fn statistics(mut report: FrameReport) -> String {
    report.seconds = Default::default();
    report.solve.iter_mut().for_each(|solve| solve.seconds = 0.0);
    serde_json::to_string(&report).expect("statistics as text")
}

/// All that the next frames may depend on, as far as it can be seen from outside, to the last bit.
pub fn traces<const D: usize>(simulation: &Simulation<D>) -> Vec<u32> {
    let particles = simulation.particle_positions().iter().chain(simulation.particle_velocities());
    let state = simulation.state();
    let active = state.blocks.slots().as_slice().iter();
    let fields = active.flat_map(|&slot| {
        let faces = state.velocity.iter().chain(&state.earlier).chain([&state.surface]);
        faces.flat_map(move |field| field.block(slot as usize).iter().map(|value| value.to_bits()))
    });
    let pressures = state.blocks.slots().as_slice().iter().flat_map(|&slot| {
        state.pressure.q.block(slot as usize).iter().map(|q| (q.to_bits() ^ (q.to_bits() >> 32)) as u32)
    });
    particles.flatten().map(|x| x.to_bits()).chain(fields).chain(pressures).collect()
}

/// The next frame of two simulations that should be the same.
pub fn advance_both<const D: usize>(a: &mut Simulation<D>, b: &mut Simulation<D>, seconds: f64, what: &str) {
    let [one, other] = [&mut *a, &mut *b].map(|simulation| statistics(advance(simulation, seconds)));
    assert_eq!(one, other, "{what}, frame {}: statistics", a.frame());
    assert!(traces(a) == traces(b), "{what}, frame {}: fields or particles", a.frame());
}
