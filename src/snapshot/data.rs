//! What a simulation shows of itself: small, single precision, immutable, of either dimension.

use std::sync::Arc;

use crate::bubbles::BubbleIndex;
use crate::sim::{BubbleReport, FrameReport, Params};

use super::half::f32_from_half;
use super::scenery::{Scenery, SolidPose};

/// The regions a cell can belong to; bubbles come behind them.
pub mod region {
    use crate::bubbles::BubbleIndex;

    /// Air that belongs to no bubble.
    pub const AIR: u16 = 0;
    /// Liquid.
    pub const LIQUID: u16 = 1;
    /// Inside a wall.
    pub const SOLID: u16 = 2;
    /// The first bubble of the report; the next ones follow.
    pub const FIRST_BUBBLE: u16 = 3;

    /// The number that marks a bubble's cells. Beyond the 65 533rd bubble there is none: such a bubble is drawn as plain
    /// air, and never as another one.
    pub fn of_bubble(bubble: BubbleIndex) -> Option<u16> {
        u16::try_from(FIRST_BUBBLE as usize + bubble.get()).ok()
    }

    /// The bubble whose cells carry a number.
    pub fn bubble(number: u16) -> Option<BubbleIndex> {
        number.checked_sub(FIRST_BUBBLE).map(|place| BubbleIndex::new(place as usize))
    }
}

/// Which costly parts of a snapshot someone wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Velocities on the grid.
    pub velocity: bool,
    /// Pressure and divergence on the grid.
    pub scalars: bool,
    /// Particles.
    pub particles: bool,
    /// What cells are where there are tiles.
    pub roles: bool,
}

/// Smoke in the air, on the same dense grid as [`CellFields`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Smoke {
    /// Density in kg/m³ and heat in K over the surroundings, at every cell's centre. Zero where a cell is solid or liquid: who
    /// draws finds those in [`CellFields::region`], and the walls between cell centres in [`SolidField`].
    pub values: Vec<[u16; 2]>,
    /// The densest smoke that the scene started with or lets in, kg/m³: what shows as full. It stays the same.
    pub full_density: f32,
    /// The largest heat, in magnitude, of the same, K.
    pub full_heat: f32,
    /// What it looks like in every cell: density and heat as shares of the full ones, and the shares of the sun's and the sky's
    /// light that reach it. Density and heat are continued a little into solids and liquid.
    pub appearance: Vec<[u16; 4]>,
}

/// Values on the dense grid of all cells, x fastest; one layer in 2D. Numbers are half precision, ready for textures.
#[derive(Clone, Debug, Default)]
pub struct CellFields {
    /// Cells along each axis.
    pub cells: [usize; 3],
    /// Signed distance to the liquid's surface in cells, negative inside, cut off some cells away.
    pub distance: Vec<u16>,
    /// Region of each cell, see [`region`].
    pub region: Vec<u16>,
    /// Velocity at cell centres, m/s, and how much of it is known, 0 or 1.
    pub velocity: Option<Vec<[u16; 4]>>,
    /// Pressure in Pa and divergence in 1/s.
    pub scalars: Option<Vec<[u16; 2]>>,
    /// Smoke; none in scenes without.
    pub smoke: Option<Smoke>,
    /// Role of each cell, see [`role`](super::role); none where there are no tiles.
    pub roles: Option<Vec<u8>>,
}

/// A surface as the renderer takes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triangles {
    /// Metres.
    pub positions: Vec<[f32; 3]>,
    /// Unit normals.
    pub normals: Vec<[f32; 3]>,
    /// Three per triangle, counter-clockwise seen from outside.
    pub corners: Vec<u32>,
}

/// Air that fills more than this share of the domain is the room, not a bubble.
const ROOM_SHARE: f64 = 0.3;

/// One of the liquid's particles: place in metres and speed in m/s.
pub type SampleParticle = [f32; 4];

/// A tile: cells deep in the liquid that move as one, `u(x) = velocity + gradient (x − centre)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileView {
    /// Its number, for as long as it lives.
    pub id: u64,
    /// The first of its cells along each axis; 0 along the third in 2D.
    pub low: [i32; 3],
    /// The cell behind its last along each axis; 1 along the third in 2D.
    pub high: [i32; 3],
    /// Metres.
    pub centre: [f32; 3],
    /// Velocity at the centre, m/s.
    pub velocity: [f32; 3],
    /// Rows of the velocity's gradient, 1/s.
    pub gradient: [[f32; 3]; 3],
}

/// A moment of a simulation.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The scene.
    pub scenery: Arc<Scenery>,
    /// Counts loads and resets: snapshots of different runs have different numbers.
    pub run: u64,
    /// Statistics of the frame; its bubbles are those of `cells`.
    pub report: FrameReport,
    /// Liquid volume at the start of the run.
    pub start_volume: f64,
    /// The parameters in use.
    pub params: Params,
    /// The liquid's surface, bubble walls included; empty in 2D.
    pub surface: Triangles,
    /// Fields on the grid.
    pub cells: CellFields,
    /// Particles, thinned out when there are many.
    pub particles: Option<Vec<SampleParticle>>,
    /// Tiles; none where the model has none.
    pub tiles: Vec<TileView>,
    /// Where each solid of the stage is now.
    pub poses: Vec<SolidPose>,
    /// Signed distance to the solids, shared for as long as nothing moves.
    pub solids: Arc<SolidField>,
    /// Simulated seconds per second of the wall clock, lately.
    pub pace: f64,
    /// Wall seconds that making it kept the simulation from going on.
    pub pause_seconds: f64,
    /// Wall seconds that making it took beside the simulation.
    pub draw_seconds: f64,
}

/// The solids' signed distance at the corners of a grid over the domain, in cells of the simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolidField {
    /// Corners along each axis.
    pub corners: [usize; 3],
    /// Half precision, x fastest.
    pub distance: Vec<u16>,
}

impl Snapshot {
    /// A moment of which nothing is seen yet.
    pub fn new(scenery: Arc<Scenery>, run: u64, report: FrameReport, params: Params) -> Self {
        Snapshot {
            scenery,
            run,
            start_volume: report.liquid.volume,
            report,
            params,
            surface: Triangles::default(),
            cells: CellFields::default(),
            particles: None,
            tiles: Vec::new(),
            poses: Vec::new(),
            solids: Arc::default(),
            pace: 0.0,
            pause_seconds: 0.0,
            draw_seconds: 0.0,
        }
    }

    /// Whether there is liquid to speak of, or may come: all scenes without smoke are about liquid.
    pub fn has_liquid(&self) -> bool {
        self.cells.smoke.is_none() || self.start_volume > 0.0 || self.report.liquid.volume > 0.0
    }

    /// Whether air is a bubble to people: it cannot leave, it is no flaw of the surface that is being closed, and it is
    /// not most of the room.
    pub fn is_trapped(&self, bubble: &BubbleReport) -> bool {
        let room: f64 =
            self.scenery.size[..self.scenery.dimension].iter().map(|length| f64::from(*length)).product();
        !bubble.open && !bubble.void && bubble.volume < ROOM_SHARE * room
    }

    /// Volume of the trapped air: measured, and as it should be.
    pub fn trapped_air(&self) -> [f64; 2] {
        let trapped = self.report.bubbles.iter().filter(|bubble| self.is_trapped(bubble));
        trapped.fold([0.0; 2], |[now, rest], bubble| [now + bubble.volume, rest + bubble.rest_volume])
    }

    /// Height of the liquid in every column of cells, in cells: what lies above something else counts as well.
    pub fn column_heights(&self) -> Vec<f32> {
        let [nx, ny, nz] = self.cells.cells;
        let mut heights = vec![0.0; nx * nz];
        for (row, distances) in self.cells.distance.chunks_exact(nx.max(1)).enumerate() {
            let first = row / ny * nx;
            for (height, distance) in heights[first..first + nx].iter_mut().zip(distances) {
                *height += (0.5 - f32_from_half(*distance)).clamp(0.0, 1.0);
            }
        }
        heights
    }

    /// The number that marks a bubble's cells.
    pub fn region_of(&self, id: u64) -> Option<u16> {
        let place = self.report.bubbles.iter().position(|bubble| bubble.id == id)?;
        region::of_bubble(BubbleIndex::new(place))
    }

    /// The bubble that has the cell at a place in metres.
    pub fn bubble_at(&self, place: [f32; 3]) -> Option<&BubbleReport> {
        let bubble = region::bubble(self.cells.region[self.cell_at(place)?])?;
        self.report.bubbles.get(bubble.get())
    }

    /// The cell that holds a place in metres.
    pub fn cell_at(&self, place: [f32; 3]) -> Option<usize> {
        let (cells, dx) = (self.cells.cells, self.scenery.dx);
        let mut index = 0;
        for axis in (0..3).rev() {
            let at = if cells[axis] == 1 { 0.0 } else { (place[axis] / dx).floor() };
            if !(0.0..cells[axis] as f32).contains(&at) {
                return None;
            }
            index = index * cells[axis] + at as usize;
        }
        Some(index)
    }
}
