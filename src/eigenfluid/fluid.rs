//! A fluid in modes, step by step.
//!
//! `dr/dt = P A(r) − ν Λ r + forces`: advection by a Runge-Kutta step of fourth order whose length is corrected so that
//! energy is kept to rounding (relaxation: of `r + g d` with the step `d`, that `g` near 1 for which `|r|` stays), then
//! viscosity exactly, mode by mode. `P` projects onto the space of kept and drawn modes; it is orthogonal, so energy is
//! kept in any space.

use std::f64::consts::PI;
use std::ops::Range;

use super::basis::{BasisScratch, WavesAt, add_scaled, dot};
use super::space::Space;
use super::stream::StreamPoints;
use crate::math::{Real, Vector};

/// Highest phase that a wave may be carried through in a step. The limit of Runge's and Kutta's scheme is 2.8.
const STABLE_PHASE: Real = 2.0;

/// Terms of the exponential's series.
const TERMS: usize = 8;

/// How a fluid goes forward in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Integrator {
    /// Runge and Kutta's scheme of fourth order, corrected for energy.
    #[default]
    RelaxedRungeKutta,
    /// The exponential of what the vorticity at the beginning of the step does (`EMRFS`): of first order, and keeps
    /// energy but not enstrophy.
    Exponential,
}

/// How a fluid moves.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct FluidParams {
    /// Kinematic viscosity in m²/s, 0 or more.
    pub viscosity: Real,
    /// Share of the largest stable step to be taken, above 0 and up to 1.
    pub cfl: Real,
    /// How it goes forward.
    pub integrator: Integrator,
}

impl Default for FluidParams {
    fn default() -> Self {
        FluidParams { viscosity: 0.0, cfl: 0.5, integrator: Integrator::default() }
    }
}

/// Energy of the modes whose wave vectors have lengths in a band.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Lengths of wave vectors, 1/m.
    pub waves: Range<Real>,
    /// Kinetic energy per density, m^(D+2)/s².
    pub energy: Real,
    /// How many modes of the basis there are in it.
    pub modes: usize,
}

/// A fluid in modes.
#[derive(Clone, Debug)]
pub struct Fluid<const D: usize> {
    /// What it can do.
    pub space: Space<D>,
    /// How it moves.
    pub params: FluidParams,
    pub(super) amplitudes: Vec<Real>,
    /// Seconds by which the amplitudes are ahead of what was asked for, since the length of a step is corrected.
    pub(super) ahead: Real,
    scratch: Scratch<D>,
}

#[derive(Clone, Debug, Default)]
struct Scratch<const D: usize> {
    basis: BasisScratch<D>,
    waves: WavesAt<D>,
    rates: Vec<Real>,
    stage: Vec<Real>,
    step: Vec<Real>,
}

impl<const D: usize> Fluid<D> {
    /// A fluid at rest.
    pub fn new(space: Space<D>, params: FluidParams) -> Self {
        let amplitudes = vec![0.0; space.basis().len()];
        Fluid { space, params, amplitudes, ahead: 0.0, scratch: Scratch::default() }
    }

    /// Amplitudes among the modes of the basis; their squares add up to twice the energy.
    pub fn amplitudes(&self) -> &[Real] {
        &self.amplitudes
    }

    /// Changes amplitudes, and takes out again what lies outside of the space.
    pub fn change(&mut self, change: impl FnOnce(&mut [Real])) {
        change(&mut self.amplitudes);
        self.space.project(&mut self.amplitudes);
    }

    /// Kinetic energy per density, m^(D+2)/s².
    pub fn energy(&self) -> Real {
        0.5 * dot(&self.amplitudes, &self.amplitudes)
    }

    /// Half the square of the vorticity, integrated, m^D/s².
    pub fn enstrophy(&self) -> Real {
        let eigenvalues = self.space.basis().eigenvalues();
        let directions = self.amplitudes.chunks_exact(eigenvalues.len());
        directions.flatten().zip(eigenvalues.iter().cycle()).map(|(r, lambda)| 0.5 * lambda * r * r).sum()
    }

    /// The energy in `count` bands of equal width, by the length of the wave vector.
    pub fn spectrum(&self, count: usize) -> Vec<Band> {
        let basis = self.space.basis();
        let highest = basis.eigenvalues().iter().copied().fold(0.0, Real::max).sqrt();
        let width = highest / count.max(1) as Real;
        let band = |number: usize| Band {
            waves: number as Real * width..(number + 1) as Real * width,
            energy: 0.0,
            modes: 0,
        };
        let mut bands: Vec<Band> = (0..count.max(1)).map(band).collect();
        for (index, amplitude) in
            self.amplitudes.iter().enumerate().filter(|&(index, _)| basis.is_mode(index))
        {
            let number = (basis.eigenvalue(index).sqrt() / width) as usize;
            let band = &mut bands[number.min(count.max(1) - 1)];
            band.energy += 0.5 * amplitude * amplitude;
            band.modes += 1;
        }
        bands
    }

    /// Multiplies the amplitudes of a band by `factor`: 0 mutes it.
    pub fn scale_band(&mut self, waves: &Range<Real>, factor: Real) {
        let Fluid { space, amplitudes, .. } = self;
        for (index, amplitude) in amplitudes.iter_mut().enumerate() {
            if waves.contains(&space.basis().eigenvalue(index).sqrt()) {
                *amplitude *= factor;
            }
        }
        space.project(amplitudes);
    }

    /// Pushes the fluid at `x` by an impulse per density, spread by a Gaussian of radius `width` metres. What is not a
    /// number does nothing.
    pub fn push(&mut self, x: Vector<D>, impulse: Vector<D>, width: Real) {
        if !x.iter().chain(&impulse).all(|value| value.is_finite()) || !width.is_finite() {
            return;
        }
        let basis = self.space.basis();
        basis.waves_at(x, &mut self.scratch.waves);
        basis.add_impulse(&mut self.amplitudes, &mut self.scratch.waves, impulse, width);
        self.space.project(&mut self.amplitudes);
    }

    /// How strongly a drawn mode is there, as the highest speed in it, m/s.
    pub fn strength(&self, number: usize) -> Real {
        let mode = &self.space.drawn()[number];
        dot(&mode.field, &self.amplitudes) * mode.peak
    }

    /// Adds a drawn mode with a highest speed of `speed` m/s.
    pub fn excite(&mut self, number: usize, speed: Real) {
        let mode = &self.space.drawn()[number];
        add_scaled(&mut self.amplitudes, speed / mode.peak, &mode.field);
        self.space.project(&mut self.amplitudes);
    }

    /// The velocity at `x`, m/s.
    pub fn velocity_at(&self, x: Vector<D>) -> Vector<D> {
        let mut waves = WavesAt::default();
        self.space.basis().waves_at(x, &mut waves);
        self.space.basis().velocity_at(&self.amplitudes, &waves)
    }

    /// Goes forward by `dt` seconds in as few steps as are stable; returns how many.
    pub fn advance(&mut self, dt: Real) -> usize {
        let (mut left, mut steps) = (dt - self.ahead, 0);
        loop {
            self.tendency();
            let pieces = (left / self.longest_step()).ceil().clamp(1.0, 1e6);
            left -= self.step(left / pieces);
            steps += 1;
            if pieces == 1.0 {
                break;
            }
        }
        self.ahead = -left;
        steps
    }

    /// The longest step for the velocity of the last tendency, s.
    fn longest_step(&self) -> Real {
        let (basis, scratch) = (self.space.basis(), &self.scratch.basis);
        let phase: Real = (0..D)
            .map(|axis| {
                let peak = scratch.velocity(axis).iter().fold(0.0, |peak: Real, u| peak.max(u.abs()));
                peak * basis.highest()[axis] as Real * PI / basis.size()[axis]
            })
            .sum();
        self.params.cfl * STABLE_PHASE / phase.max(Real::MIN_POSITIVE)
    }

    fn tendency(&mut self) {
        let Scratch { basis, rates, .. } = &mut self.scratch;
        rates.resize(self.amplitudes.len(), 0.0);
        self.space.basis().advect(&self.amplitudes, rates, basis);
        self.space.project(rates);
    }

    /// One step, with the tendency at its beginning already found. Returns how far it went: counting `dt` in place of the
    /// corrected length would make it a scheme of third order.
    fn step(&mut self, dt: Real) -> Real {
        let length = match self.params.integrator {
            Integrator::RelaxedRungeKutta => self.step_relaxed(dt),
            Integrator::Exponential => self.step_exponential(dt),
        };
        if self.params.viscosity > 0.0 {
            self.space.diffuse(&mut self.amplitudes, self.params.viscosity * length);
        }
        length
    }

    fn step_exponential(&mut self, dt: Real) -> Real {
        let Fluid { space, amplitudes, scratch: Scratch { basis, rates, stage, step, .. }, .. } = self;
        for list in [&mut *stage, &mut *step] {
            list.clear();
            list.extend_from_slice(amplitudes);
        }
        // Term by term: what was turned once more, over the next factorial.
        for term in 1..=TERMS {
            space.basis().turn(amplitudes, stage, rates, basis);
            space.project(rates);
            stage.iter_mut().zip(&*rates).for_each(|(stage, rate)| *stage = rate * dt / term as Real);
            add_scaled(step, 1.0, stage);
        }
        amplitudes.copy_from_slice(step);
        dt
    }

    fn step_relaxed(&mut self, dt: Real) -> Real {
        let Fluid { space, amplitudes, scratch: Scratch { basis, rates, stage, step, .. }, .. } = self;
        stage.resize(amplitudes.len(), 0.0);
        step.resize(amplitudes.len(), 0.0);
        step.fill(0.0);
        for (weight, next) in [(1.0, 0.5), (2.0, 0.5), (2.0, 1.0), (1.0, 0.0)] {
            add_scaled(step, weight * dt / 6.0, rates);
            if next > 0.0 {
                stage.copy_from_slice(amplitudes);
                add_scaled(stage, next * dt, rates);
                space.basis().advect(stage, rates, basis);
                space.project(rates);
            }
        }
        let length = dot(step, step);
        let relaxed = -2.0 * dot(amplitudes, step) / length;
        // A step that is nothing, or far from what energy asks for, is taken as it is.
        let factor = if (0.5..1.5).contains(&relaxed) { relaxed } else { 1.0 };
        add_scaled(amplitudes, factor, step);
        factor * dt
    }
}

impl Fluid<2> {
    /// The stream function at `x`, zero at the walls, m²/s.
    pub fn stream_at(&self, x: Vector<2>) -> Real {
        let mut points = StreamPoints::default();
        points.place(self.space.basis(), [x].into_iter());
        let mut values = Vec::new();
        points.stream(&self.amplitudes, &mut values);
        values[0]
    }
}
