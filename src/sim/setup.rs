//! What a simulation starts from: the checked content of a scene, without its titles.

use crate::geometry::{Joint, Shape, Solid};
use crate::grid::Grid;
use crate::math::{Real, Vector};

use super::Params;

/// A body of liquid present at the start.
#[derive(Clone, Debug)]
pub struct LiquidBody<const D: usize> {
    /// Where it is.
    pub shape: Shape<D>,
    /// How it moves at the start.
    pub flow: Flow<D>,
}

/// An initial velocity field: a translation plus a rotation about a point.
#[derive(Clone, Debug)]
pub struct Flow<const D: usize> {
    /// Velocity of the centre, m/s.
    pub velocity: Vector<D>,
    /// The point the liquid turns about.
    pub center: Vector<D>,
    /// Angular velocity, rad/s: only the last entry is used in 2D (counter-clockwise).
    pub spin: [Real; 3],
}

impl<const D: usize> Flow<D> {
    /// No motion.
    pub fn rest() -> Self {
        Flow { velocity: Vector::zeros(), center: Vector::zeros(), spin: [0.0; 3] }
    }

    /// Velocity at a point.
    pub fn at(&self, x: &Vector<D>) -> Vector<D> {
        let arm: [Real; 3] =
            std::array::from_fn(|axis| if axis < D { x[axis] - self.center[axis] } else { 0.0 });
        let [wx, wy, wz] = self.spin;
        let turn = [wy * arm[2] - wz * arm[1], wz * arm[0] - wx * arm[2], wx * arm[1] - wy * arm[0]];
        Vector::from_fn(|axis, _| self.velocity[axis] + turn[axis])
    }
}

/// A place that is kept full of liquid moving at a given velocity.
#[derive(Clone, Debug)]
pub struct Source<const D: usize> {
    /// Where liquid appears.
    pub shape: Shape<D>,
    /// Its velocity, m/s.
    pub velocity: Vector<D>,
    /// First second it runs.
    pub from: Real,
    /// Second it stops.
    pub until: Real,
}

/// A place where liquid vanishes.
#[derive(Clone, Debug)]
pub struct Drain<const D: usize> {
    /// Where liquid vanishes.
    pub shape: Shape<D>,
    /// First second it runs.
    pub from: Real,
    /// Second it stops.
    pub until: Real,
}

/// A nozzle that releases bubbles into the liquid.
#[derive(Clone, Debug)]
pub struct AirSource<const D: usize> {
    /// What a new bubble looks like: liquid inside makes way.
    pub shape: Shape<D>,
    /// Air blown into the bubble for as long as it reaches into the shape, m³/s (m²/s in 2D).
    pub rate: Real,
    /// Seconds between two bubbles.
    pub every: Real,
    /// First second it runs.
    pub from: Real,
    /// Second it stops.
    pub until: Real,
}

impl<const D: usize> AirSource<D> {
    /// Whether it runs at a time.
    pub fn is_running(&self, time: Real) -> bool {
        (self.from..self.until).contains(&time)
    }

    /// Whether a bubble is due in the step of `dt` seconds that ends at `time`: the first one at `from`.
    pub fn is_due(&self, time: Real, dt: Real) -> bool {
        // A hair late, so that a step that ends on the dot by rounding counts like one that ends on it.
        let before = |time: Real| ((time - self.from) / self.every - 1e-9).ceil().max(0.0);
        self.is_running(time) && before(time) > before(time - dt)
    }
}

/// Smoke and heat in the air at the start.
#[derive(Clone, Debug)]
pub struct SmokeBody<const D: usize> {
    /// Where they are.
    pub shape: Shape<D>,
    /// Smoke, kg/m³ (kg/m² in 2D).
    pub density: Real,
    /// Temperature over that of the surroundings, K.
    pub heat: Real,
}

/// A place where smoke and heat get into the air.
#[derive(Clone, Debug)]
pub struct SmokeSource<const D: usize> {
    /// Where.
    pub shape: Shape<D>,
    /// The density that it fills the air up to, kg/m³ (kg/m² in 2D).
    pub density: Real,
    /// The temperature over that of the surroundings that the air takes on, K; without one it keeps its own.
    pub heat: Option<Real>,
    /// How fast, 1/s; infinite where the air is like that at once.
    pub rate: Real,
    /// First second it runs.
    pub from: Real,
    /// Second it stops.
    pub until: Real,
}

/// Everything a simulation needs to start.
#[derive(Clone, Debug)]
pub struct Setup<const D: usize> {
    /// Size of the domain, metres; its low corner is the origin.
    pub size: [Real; D],
    /// The grid that covers it.
    pub grid: Grid<D>,
    /// Which sides are open to the air: `open[axis] = [low, high]`. Liquid leaves through them.
    pub open: [[bool; 2]; D],
    /// Which sides liquid never leaves, even where it may leave walls.
    pub sticky: [[bool; 2]; D],
    /// Along which of the other sides viscous liquid slips.
    pub slip: [[bool; 2]; D],
    /// Liquid at the start.
    pub liquids: Vec<LiquidBody<D>>,
    /// Where liquid appears.
    pub sources: Vec<Source<D>>,
    /// Where liquid vanishes.
    pub drains: Vec<Drain<D>>,
    /// Where bubbles are released.
    pub air_sources: Vec<AirSource<D>>,
    /// Smoke at the start; where bodies overlap, the last one counts.
    pub smoke: Vec<SmokeBody<D>>,
    /// Where smoke appears.
    pub smoke_sources: Vec<SmokeSource<D>>,
    /// Obstacles and containers.
    pub solids: Vec<Solid<D>>,
    /// What ties those of them that move by forces.
    pub joints: Vec<Joint<D>>,
    /// Parameters at the start.
    pub params: Params,
}

impl<const D: usize> Setup<D> {
    /// Whether there is smoke, or will be.
    pub fn has_smoke(&self) -> bool {
        !self.smoke.is_empty() || !self.smoke_sources.is_empty()
    }

    /// How dense smoke is at most, kg/m³, and how far its temperature is from that of the surroundings, K.
    pub fn full_smoke(&self) -> Option<[f32; 2]> {
        let bodies = self.smoke.iter().map(|body| [body.density, body.heat]);
        let sources = self.smoke_sources.iter();
        let all = bodies.chain(sources.map(|source| [source.density, source.heat.unwrap_or(0.0)]));
        let most =
            |[density, heat]: [Real; 2], next: [Real; 2]| [density.max(next[0]), heat.max(next[1].abs())];
        self.has_smoke().then(|| all.fold([0.0; 2], most).map(|value| value as f32))
    }
}
