//! The velocity of modes and bodies together on a grid of cells, to be drawn and to carry things.
//!
//! Panels are vortices, and a sum over modes converges slowly towards a vortex. Smeared over a Gaussian of width `w` it
//! converges at once, and what that leaves out ends within a few `w`:
//!
//! ```text
//! u(d) = Γ/2πd (1 − exp(−d²/2w²))  +  Γ/2πd exp(−d²/2w²)
//!        by modes, walls included     close by, with the nearest images
//! ```

use std::f64::consts::PI;

use rayon::prelude::*;

use super::basis::{Basis, BasisScratch, add_scaled};
use super::bodies::{Body, Tank};
use super::panels::Panel;
use super::stream::StreamPoints;
use super::transform::Line;
use crate::math::{Real, Vector};

/// Cells per half wave of the finest mode.
const CELLS_PER_WAVE: usize = 4;

/// `k w` for the finest wave: what it still counts is `exp(−(k w)²/2)`, two thousandths.
const SMEARED: Real = 3.5;

/// Widths of the Gaussian after which it is nothing.
const REACH: Real = 4.0;

/// Panel lengths within which a panel is no point.
const CLOSE: Real = 4.0;

/// Cells along each axis are a multiple of this.
const STEP: usize = 16;

/// The velocity in the middle of every cell of a grid over a box.
#[derive(Clone, Debug)]
pub struct Flow {
    basis: Basis<2>,
    cells: [usize; 2],
    lines: [Line; 2],
    /// Places of a coarser list of amplitudes in that of `basis`.
    places: Vec<(usize, usize)>,
    width: Real,
    /// x slowest.
    velocity: Vec<[Real; 2]>,
    amplitudes: Vec<Real>,
    smeared: Vec<Real>,
    circulations: Vec<Real>,
    points: StreamPoints,
    scratch: BasisScratch<2>,
}

impl Flow {
    /// Still, on at least `cells` cells along each axis over the box of a basis, whose amplitudes it will show.
    pub fn new(basis: &Basis<2>, cells: [usize; 2]) -> Self {
        let cells = cells.map(|cells| cells.next_multiple_of(STEP).max(STEP));
        let highest = std::array::from_fn(|axis| basis.highest()[axis].max(cells[axis] / CELLS_PER_WAVE));
        let fine = Basis::new(basis.size(), highest);
        let lines = std::array::from_fn(|axis| Line::new(highest[axis], cells[axis], axis == 1));
        let place = |from: usize| fine.index(basis.numbers(from), 0).map(|to| (from, to));
        let finest = |axis: usize| highest[axis] as Real * PI / basis.size()[axis];
        Flow {
            cells,
            lines,
            places: (0..basis.len()).filter(|&from| basis.is_mode(from)).filter_map(place).collect(),
            width: SMEARED / finest(0).min(finest(1)),
            velocity: vec![[0.0; 2]; cells[0] * cells[1]],
            amplitudes: vec![0.0; fine.len()],
            smeared: vec![0.0; fine.len()],
            circulations: Vec::new(),
            points: StreamPoints::default(),
            scratch: BasisScratch::default(),
            basis: fine,
        }
    }

    /// Cells along each axis.
    pub fn cells(&self) -> [usize; 2] {
        self.cells
    }

    /// Extent of the box in metres.
    pub fn size(&self) -> [Real; 2] {
        self.basis.size()
    }

    /// The velocity in the middle of every cell, m/s; x is the slowest index.
    pub fn velocity(&self) -> &[[Real; 2]] {
        &self.velocity
    }

    /// The middle of a cell.
    pub fn middle(&self, cell: usize) -> Vector<2> {
        let [x, y] = [cell / self.cells[1], cell % self.cells[1]];
        let along = |axis: usize, i: usize| (i as Real + 0.5) * self.size()[axis] / self.cells[axis] as Real;
        Vector::from([along(0, x), along(1, y)])
    }

    /// Takes over the velocity of a tank's last step.
    pub fn update(&mut self, tank: &Tank) {
        self.amplitudes.fill(0.0);
        for &(from, to) in &self.places {
            self.amplitudes[to] = tank.pushed()[from];
        }
        let Flow { circulations, points, smeared, amplitudes, basis, .. } = self;
        circulations.clear();
        circulations.extend(tank.panels().map(|(panel, strength)| strength * panel.length));
        if !circulations.is_empty() {
            points.place(basis, tank.panels().map(|(panel, _)| panel.centre));
            smeared.fill(0.0);
            points.add_vortices(circulations, smeared);
            basis.diffuse(smeared, 0.5 * self.width * self.width);
            add_scaled(amplitudes, 1.0, smeared);
        }
        self.basis.sample_on(&self.lines, &self.amplitudes, &mut self.scratch);
        for (x, column) in self.velocity.chunks_exact_mut(self.cells[1]).enumerate() {
            let row = self.lines[0].place_of(x) * self.cells[1];
            for (y, velocity) in column.iter_mut().enumerate() {
                let at = row + self.lines[1].place_of(y);
                *velocity = [0, 1].map(|axis| self.scratch.velocity(axis)[at]);
            }
        }
        self.add_panels(tank);
        self.fill_bodies(tank);
    }

    /// What is close to panels and to their images.
    fn add_panels(&mut self, tank: &Tank) {
        let (size, reach) = (self.size(), REACH * self.width);
        for (panel, strength) in tank.panels() {
            let near = |axis: usize| {
                let walls = [0.0, size[axis]].into_iter();
                walls
                    .filter(move |wall| (panel.centre[axis] - wall).abs() < reach)
                    .map(move |wall| (axis, wall))
            };
            self.add_panel(panel, strength);
            for (axis, wall) in near(0).chain(near(1)) {
                self.add_panel(&panel.mirrored(axis, wall), -strength);
            }
            for (_, first) in near(0) {
                for (_, second) in near(1) {
                    self.add_panel(&panel.mirrored(0, first).mirrored(1, second), strength);
                }
            }
        }
    }

    fn add_panel(&mut self, panel: &Panel, strength: Real) {
        let (reach, sharp) = (REACH * self.width, 0.5 / (self.width * self.width));
        let (size, cells) = (self.size(), self.cells);
        let range = |axis: usize| {
            let at =
                |x: Real| (x / size[axis] * cells[axis] as Real).clamp(0.0, cells[axis] as Real) as usize;
            at(panel.centre[axis] - reach)..(at(panel.centre[axis] + reach) + 1).min(cells[axis])
        };
        let close = (CLOSE * panel.length).powi(2);
        for x in range(0) {
            for y in range(1) {
                let cell = x * cells[1] + y;
                let middle = self.middle(cell);
                let arm = middle - panel.centre;
                let squared = arm.norm_squared();
                if squared > reach * reach {
                    continue;
                }
                let turn = Vector::from([-arm[1], arm[0]]) * (panel.length / (2.0 * PI));
                // (1 − exp(−d²/2w²)) / d² of what modes have; the whole of the panel but for that when it is close.
                let velocity = if squared < close {
                    let smeared = if squared > 0.0 { -(-squared * sharp).exp_m1() / squared } else { sharp };
                    panel.velocity(middle) - turn * smeared
                } else {
                    turn * ((-squared * sharp).exp() / squared)
                };
                self.velocity[cell][0] += strength * velocity[0];
                self.velocity[cell][1] += strength * velocity[1];
            }
        }
    }

    /// Inside of a body all moves as it does.
    fn fill_bodies(&mut self, tank: &Tank) {
        let (size, cells) = (self.size(), self.cells);
        for body in &tank.bodies {
            let range = |axis: usize| {
                let at =
                    |x: Real| (x / size[axis] * cells[axis] as Real).clamp(0.0, cells[axis] as Real) as usize;
                let (centre, reach) = (body.position[axis], body.outline.reach);
                at(centre - reach)..(at(centre + reach) + 1).min(cells[axis])
            };
            for x in range(0) {
                for y in range(1) {
                    let cell = x * cells[1] + y;
                    let middle = self.middle(cell);
                    if body.off_core(middle).0 < body.outline.rounding {
                        let velocity = body.velocity_at(middle);
                        self.velocity[cell] = [velocity[0], velocity[1]];
                    }
                }
            }
        }
    }

    /// The velocity anywhere in the box, between the middles of four cells, m/s. At walls nothing goes through.
    pub fn velocity_at(&self, x: Vector<2>) -> Vector<2> {
        let size = self.size();
        let (mut low, mut share, mut signs) = ([[0; 2]; 2], [0.0; 2], [[1.0; 2]; 2]);
        for axis in 0..2 {
            let cells = self.cells[axis];
            let at = (x[axis] / size[axis] * cells as Real).clamp(0.0, cells as Real) - 0.5;
            let floor = at.floor();
            share[axis] = at - floor;
            for (end, offset) in [floor as isize, floor as isize + 1].into_iter().enumerate() {
                // Behind a wall there is its mirror image.
                let inside = (0..cells as isize).contains(&offset);
                low[axis][end] = offset.clamp(0, cells as isize - 1) as usize;
                signs[axis][end] = if inside { 1.0 } else { -1.0 };
            }
        }
        let mut velocity = Vector::zeros();
        for i in 0..2 {
            for j in 0..2 {
                let weight = (if i == 0 { 1.0 - share[0] } else { share[0] })
                    * (if j == 0 { 1.0 - share[1] } else { share[1] });
                let [u, v] = self.velocity[low[0][i] * self.cells[1] + low[1][j]];
                velocity += Vector::from([signs[0][i] * u, signs[1][j] * v]) * weight;
            }
        }
        velocity
    }

    /// Where something goes in `dt` seconds: the midpoint rule, kept in the box.
    pub fn carry(&self, x: Vector<2>, dt: Real) -> Vector<2> {
        let middle = x + self.velocity_at(x) * (0.5 * dt);
        let end = x + self.velocity_at(middle) * dt;
        let size = self.size();
        Vector::from_fn(|axis, _| end[axis].clamp(0.0, size[axis]))
    }
}

/// Colours that the fluid carries: any number of them in every cell of a [`Flow`]'s grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Ink<const C: usize> {
    cells: [usize; 2],
    values: Vec<[f32; C]>,
    earlier: Vec<[f32; C]>,
}

impl<const C: usize> Ink<C> {
    /// None, on the grid of a flow.
    pub fn new(flow: &Flow) -> Self {
        let values = vec![[0.0; C]; flow.velocity.len()];
        Ink { cells: flow.cells, earlier: values.clone(), values }
    }

    /// In every cell, like [`Flow::velocity`].
    pub fn values(&self) -> &[[f32; C]] {
        &self.values
    }

    /// Sets each cell's value by its middle and what it was.
    pub fn paint(&mut self, flow: &Flow, mut value: impl FnMut(Vector<2>, [f32; C]) -> [f32; C]) {
        for (cell, own) in self.values.iter_mut().enumerate() {
            *own = value(flow.middle(cell), *own);
        }
    }

    /// Carries it along for `dt` seconds: every cell takes what was where it comes from, by cubic interpolation between the
    /// values around that place.
    pub fn advance(&mut self, flow: &Flow, dt: Real) {
        assert_eq!(self.cells, flow.cells, "ink and flow on the same grid");
        std::mem::swap(&mut self.values, &mut self.earlier);
        let (earlier, cells) = (&self.earlier, self.cells);
        self.values.par_chunks_mut(cells[1]).enumerate().for_each(|(x, column)| {
            for (y, value) in column.iter_mut().enumerate() {
                let from = flow.carry(flow.middle(x * cells[1] + y), -dt);
                *value = interpolate(earlier, cells, flow.size(), from);
            }
        });
    }
}

/// Catmull and Rom's cubic through four cells along each axis, kept between the values of the nearest four.
fn interpolate<const C: usize>(
    values: &[[f32; C]],
    cells: [usize; 2],
    size: [Real; 2],
    x: Vector<2>,
) -> [f32; C] {
    let (mut at, mut weights) = ([[0usize; 4]; 2], [[0.0f32; 4]; 2]);
    for axis in 0..2 {
        let place = x[axis] / size[axis] * cells[axis] as Real - 0.5;
        let floor = place.floor();
        let t = (place - floor) as f32;
        let (t2, t3) = (t * t, t * t * t);
        weights[axis] = [
            0.5 * (2.0 * t2 - t - t3),
            0.5 * (3.0 * t3 - 5.0 * t2 + 2.0),
            0.5 * (4.0 * t2 + t - 3.0 * t3),
            0.5 * (t3 - t2),
        ];
        for (offset, at) in at[axis].iter_mut().enumerate() {
            *at = (floor as isize - 1 + offset as isize).clamp(0, cells[axis] as isize - 1) as usize;
        }
    }
    let (mut sum, mut least, mut most) = ([0.0; C], [f32::INFINITY; C], [f32::NEG_INFINITY; C]);
    for i in 0..4 {
        for j in 0..4 {
            let own = &values[at[0][i] * cells[1] + at[1][j]];
            let (weight, nearest) =
                (weights[0][i] * weights[1][j], (1..3).contains(&i) && (1..3).contains(&j));
            for c in 0..C {
                sum[c] += weight * own[c];
                if nearest {
                    (least[c], most[c]) = (least[c].min(own[c]), most[c].max(own[c]));
                }
            }
        }
    }
    std::array::from_fn(|c| sum[c].clamp(least[c], most[c]))
}

/// Points that the fluid carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tracers {
    /// Where they are, m.
    pub places: Vec<Vector<2>>,
}

impl Tracers {
    /// Carries them along for `dt` seconds, and out of bodies if they have come into one.
    pub fn advance(&mut self, flow: &Flow, bodies: &[Body], dt: Real) {
        self.places.par_iter_mut().for_each(|place| {
            *place = flow.carry(*place, dt);
            for body in bodies {
                let (distance, away) = body.off_core(*place);
                let inside = body.outline.rounding - distance;
                if inside > 0.0 {
                    *place += away * inside;
                }
            }
        });
    }
}
