//! What a frame reports: the statistics format, one JSON object per frame. The names are fixed: others measure
//! with them.

use serde::Serialize;

use crate::bubbles::Event;

use super::{BodyReport, FrameTimes};

/// One frame's statistics.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FrameReport {
    /// Frames since the start; the first is 1.
    pub frame: usize,
    /// Simulated seconds at the end of the frame.
    pub time: f64,
    /// Substeps in this frame.
    pub substeps: usize,
    /// Solver name.
    pub solver: &'static str,
    /// Model name.
    pub model: &'static str,
    /// Grid size; two numbers in 2D.
    pub cells_xyz: Vec<usize>,
    /// Cell width, metres.
    pub dx: f64,
    /// Wall time of the frame: `total` and one entry per stage.
    pub seconds: FrameTimes,
    /// Particle count.
    pub particles: usize,
    /// Cells by what they are made of, among the stored ones.
    pub cells: CellCounts,
    /// Unknowns of the last projection.
    pub unknowns: UnknownCounts,
    /// One entry per substep.
    pub solve: Vec<SolveReport>,
    /// One entry per substep in which viscosity acted; residuals are relative to what it found to do.
    pub viscosity: Vec<SolveReport>,
    /// Over liquid cells after the last projection, times dt.
    pub divergence: Divergence,
    /// The liquid as a whole.
    pub liquid: LiquidReport,
    /// Connected air components, the outside air among them.
    pub bubbles: Vec<BubbleReport>,
    /// What happened to bubbles in this frame.
    pub events: Vec<Event>,
    /// Affine tiles.
    pub tiles: TileCounts,
    /// Rigid bodies.
    pub bodies: Vec<BodyReport>,
    /// Smoke and heat in the air; left out where there never is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoke: Option<SmokeReport>,
    /// Things that went less well than hoped, in words; empty in a healthy frame.
    pub warnings: Vec<String>,
}

/// Cells by what they are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CellCounts {
    /// Liquid cells.
    pub liquid: usize,
    /// Air cells.
    pub air: usize,
    /// Solid cells.
    pub solid: usize,
    /// Cells stored: all cells of the active blocks.
    pub stored: usize,
}

/// Unknowns of a projection by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UnknownCounts {
    /// One per liquid cell, and per cell of air that has mass.
    pub pressure: usize,
    /// One per bubble.
    pub bubble: usize,
    /// Numbers of the motions of tiles and of rigid bodies.
    pub body: usize,
}

/// One solve, of the pressure or of viscosity.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SolveReport {
    /// Iterations of the conjugate gradients.
    pub iterations: usize,
    /// True residual over right-hand side, recomputed at the end.
    pub relative_residual: f64,
    /// Preconditioner used.
    pub method: &'static str,
    /// Wall time, set-up included.
    pub seconds: f64,
    /// Solves that it took to know which liquid leaves walls; one if none may, and of viscosity.
    pub rounds: usize,
    /// Cells of liquid that are leaving walls.
    pub loose: usize,
    /// Whether the tolerance was met.
    pub converged: bool,
}

/// Divergence times dt: the relative volume change of a cell in one substep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Divergence {
    /// Largest magnitude.
    pub max: f64,
    /// Root of the mean square.
    pub rms: f64,
}

/// The liquid as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiquidReport {
    /// From the surface, m³ (m² in 2D).
    pub volume: f64,
    /// Joules (per metre of depth in 2D).
    pub kinetic_energy: f64,
    /// Joules, zero at the bottom of the domain.
    pub potential_energy: f64,
    /// m/s.
    pub max_speed: f64,
    /// Metres.
    pub centroid: Vec<f64>,
    /// Largest coordinate reached by liquid along x, metres: a dam break's front.
    pub front: f64,
}

/// One connected component of air.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BubbleReport {
    /// Stays the same for as long as the bubble lives.
    pub id: u64,
    /// Measured now, m³ (m² in 2D).
    pub volume: f64,
    /// What it should be.
    pub rest_volume: f64,
    /// Metres.
    pub centroid: Vec<f64>,
    /// Rate of the centroid that the projected face velocities imply, m/s.
    pub velocity: Vec<f64>,
    /// Pa above the outside air; in a closed tank, above its largest bubble.
    pub pressure: f64,
    /// Net outflow through its surface after the last projection, m³/s (m²/s in 2D).
    pub net_flux: f64,
    /// Net outflow that the volume correction asked for, same units.
    pub correction: f64,
    /// Whether the projection kept its volume; otherwise it was a free surface at zero pressure.
    pub constrained: bool,
    /// Whether it touches a wall or a solid.
    pub touches_solid: bool,
    /// Whether it reaches an open side of the domain.
    pub open: bool,
    /// Whether it opened inside the liquid without a cause, and is being closed.
    pub void: bool,
}

/// Smoke and heat in the air.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SmokeReport {
    /// Smoke in the domain, kg (kg per metre of depth in 2D).
    pub mass: f64,
    /// Temperature over that of the surroundings, summed over the air: K·m³ (K·m² in 2D).
    pub heat: f64,
    /// The densest cell, kg/m³.
    pub max_density: f64,
    /// The middle of the smoke, metres; the origin if there is none.
    pub centroid: Vec<f64>,
}

/// Affine tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TileCounts {
    /// How many.
    pub count: usize,
    /// Cells they cover.
    pub cells: usize,
}
