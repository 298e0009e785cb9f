//! What stands still in a scene: domain, titles, and the shapes of its solids.

use rayon::prelude::*;

use crate::geometry::{Pose, Solid, SurfaceMesh, mesh_distance};
use crate::grid::Grid;
use crate::math::{Real, Vector};
use crate::scene::{AnyScene, Scene};
use crate::sim::Setup;

use super::data::{SolidField, Triangles};
use super::half::half_from_f32;

/// Cells along the longest side of the grid that a solid is meshed on.
const SOLID_CELLS: Real = 96.0;
/// Distances to solids are cut off here, in cells of the simulation.
const SOLID_REACH: Real = 24.0;

/// A scene without its simulation.
#[derive(Clone, Debug, Default)]
pub struct Scenery {
    /// The built-in name, or the file's name without its ending.
    pub name: String,
    /// A few words.
    pub title: String,
    /// 2 or 3.
    pub dimension: usize,
    /// Metres; the third is 0 in 2D.
    pub size: [f32; 3],
    /// Cells along each axis; one along the third in 2D.
    pub cells: [usize; 3],
    /// Cells along x that the scene file asks for.
    pub own_cells: usize,
    /// Cell width, metres.
    pub dx: f32,
    /// Frames per simulated second.
    pub fps: f64,
    /// Frames a run is meant to last.
    pub frames: usize,
    /// Which sides are open: low and high per axis.
    pub open: [[bool; 2]; 3],
    /// Obstacles and containers.
    pub solids: Vec<ScenerySolid>,
    /// What falling through the domain would give, m/s: the scale that speeds are shown on.
    pub speed: f32,
}

/// A solid at its rest pose.
#[derive(Clone, Debug, Default)]
pub struct ScenerySolid {
    /// How panels call it.
    pub name: String,
    /// Whether it is seen through: it says so, or liquid is inside it.
    pub glass: bool,
    /// Its surface; empty in 2D.
    pub surface: Triangles,
    /// In 2D, if it is a body: pieces of its outline, metres, each from one point to another.
    pub outline: Vec<[[f32; 2]; 2]>,
}

/// Where a solid is: `x = rotation X + translation`, and whether it is there at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolidPose {
    /// Columns.
    pub rotation: [[f32; 3]; 3],
    /// Metres.
    pub translation: [f32; 3],
    /// Whether it is there.
    pub present: bool,
}

fn padded<const D: usize>(values: impl Fn(usize) -> f64) -> [f32; 3] {
    std::array::from_fn(|axis| if axis < D { values(axis) as f32 } else { 0.0 })
}

impl Scenery {
    /// The scenery of a scene of either dimension.
    pub fn of(scene: &AnyScene) -> Self {
        match scene {
            AnyScene::TwoD(scene) => Scenery::of_scene(scene),
            AnyScene::ThreeD(scene) => Scenery::of_scene(scene),
        }
    }

    fn of_scene<const D: usize>(scene: &Scene<D>) -> Self {
        let setup = &scene.setup;
        let solids = setup.solids.iter().map(|solid| ScenerySolid::of(setup, solid));
        let first = setup.liquids.iter().map(|body| body.flow.velocity.norm()).fold(0.0, Real::max);
        let fall = (2.0 * setup.params.gravity * setup.size[1]).sqrt();
        Scenery {
            name: scene.name.clone(),
            title: scene.title.clone(),
            dimension: D,
            size: padded::<D>(|axis| setup.size[axis]),
            cells: std::array::from_fn(|axis| if axis < D { setup.grid.cells[axis] } else { 1 }),
            own_cells: scene.own_cells,
            dx: setup.grid.dx as f32,
            fps: scene.fps,
            frames: scene.frames,
            open: std::array::from_fn(|axis| if axis < D { setup.open[axis] } else { [true; 2] }),
            solids: solids.collect(),
            speed: (fall.max(first) as f32).max(1e-3),
        }
    }

    /// The same with solids that came later.
    pub fn with_solids<const D: usize>(&self, setup: &Setup<D>, solids: &[Solid<D>]) -> Self {
        let mut scenery = self.clone();
        let new = solids.iter().skip(scenery.solids.len());
        scenery.solids.extend(new.map(|solid| ScenerySolid::of(setup, solid)));
        scenery
    }
}

impl ScenerySolid {
    fn of<const D: usize>(setup: &Setup<D>, solid: &Solid<D>) -> Self {
        ScenerySolid {
            name: solid.name.clone(),
            glass: is_container(setup, solid),
            surface: if D == 3 { solid_surface(setup, solid) } else { Triangles::default() },
            outline: if D == 2 && solid.body.is_some() { solid_outline(setup, solid) } else { Vec::new() },
        }
    }
}

impl<const D: usize> From<&SurfaceMesh<D>> for Triangles {
    /// Only for D = 3: curves have no triangles.
    fn from(mesh: &SurfaceMesh<D>) -> Self {
        let padded = |values: &[[f32; D]]| values.iter().map(|v| std::array::from_fn(|k| v[k])).collect();
        Triangles {
            positions: padded(&mesh.positions),
            normals: padded(&mesh.normals),
            corners: mesh.elements.iter().flatten().copied().collect(),
        }
    }
}

/// Where a solid is at a time.
pub fn pose_of<const D: usize>(solid: &Solid<D>, time: Real) -> SolidPose {
    let pose = solid.pose(time).unwrap_or_else(Pose::rest);
    SolidPose {
        rotation: std::array::from_fn(|column| {
            std::array::from_fn(|row| {
                if row < D && column < D {
                    pose.rotation[(row, column)] as f32
                } else {
                    (row == column) as u8 as f32
                }
            })
        }),
        translation: padded::<D>(|axis| pose.translation[axis]),
        present: solid.is_present(time),
    }
}

/// Whether a solid's name says glass.
fn is_called_glass<const D: usize>(solid: &Solid<D>) -> bool {
    solid.name.to_lowercase().contains("glass")
}

/// A solid is a container when its name says glass, or when liquid has it on most sides at the start.
fn is_container<const D: usize>(setup: &Setup<D>, solid: &Solid<D>) -> bool {
    if is_called_glass(solid) {
        return true;
    }
    setup.liquids.iter().filter_map(|body| body.shape.bounds()).any(|[low, high]| {
        let from: Vector<D> = (low + high) / 2.0;
        const DIRECTIONS: usize = 8;
        let hits = (0..DIRECTIONS).filter(|&k| {
            let angle = k as Real / DIRECTIONS as Real * std::f64::consts::TAU;
            // Sideways all around in 3D; in 2D around in the plane.
            let (other, along) = (if D == 3 { 2 } else { 1 }, [angle.cos(), angle.sin()]);
            let step = Vector::<D>::from_fn(|axis, _| match axis {
                0 => along[0],
                axis if axis == other => along[1],
                _ => 0.0,
            });
            meets(solid, from, step, setup.size, setup.grid.dx)
        });
        solid.distance(&from, 0.0) > 0.0 && hits.count() * 4 >= DIRECTIONS * 3
    })
}

/// Whether a ray from a place meets a solid before it leaves the domain.
fn meets<const D: usize>(
    solid: &Solid<D>,
    from: Vector<D>,
    step: Vector<D>,
    size: [Real; D],
    dx: Real,
) -> bool {
    let mut x = from;
    for _ in 0..256 {
        if (0..D).any(|axis| x[axis] < 0.0 || x[axis] > size[axis]) {
            return false;
        }
        let distance = solid.distance(&x, 0.0);
        if distance < 0.25 * dx {
            return true;
        }
        x += step * distance.min(size[0]);
    }
    false
}

/// The surface of a solid at its rest pose, where it can come into the domain.
fn solid_surface<const D: usize>(setup: &Setup<D>, solid: &Solid<D>) -> Triangles {
    let Some(mesh) = solid_mesh(setup, solid) else { return Triangles::default() };
    let size = setup.size;
    let mut triangles = Triangles::from(&mesh);
    if !solid.has_pose() {
        // Where the domain cuts the shape off there is nothing to see.
        let (positions, corners) = (&triangles.positions, &triangles.corners);
        let outside = |corner: &u32| {
            let x = &positions[*corner as usize];
            (0..D).any(|axis| x[axis] < 0.0 || x[axis] > size[axis] as f32)
        };
        let kept = corners.chunks_exact(3).filter(|corners| !corners.iter().all(outside));
        triangles.corners = kept.flatten().copied().collect();
    }
    triangles
}

/// The outline of a flat solid at its rest pose.
fn solid_outline<const D: usize>(setup: &Setup<D>, solid: &Solid<D>) -> Vec<[[f32; 2]; 2]> {
    let Some(mesh) = solid_mesh(setup, solid) else { return Vec::new() };
    let place = |corner: u32| [0, 1].map(|axis| mesh.positions[corner as usize][axis]);
    mesh.elements.iter().map(|piece| [place(piece[0]), place(piece[1])]).collect()
}

/// The surface of a solid at its rest pose as a mesh; nothing if it cannot come into the domain.
fn solid_mesh<const D: usize>(setup: &Setup<D>, solid: &Solid<D>) -> Option<SurfaceMesh<D>> {
    let size = setup.size;
    let longest = size.into_iter().fold(0.0, Real::max);
    // Shapes that go on forever, and those that never move, are cut at the domain; a hair's breadth outside it, so that
    // what lies flush with a wall is still closed.
    let hair = 0.02 * longest;
    let [mut low, mut high] = solid.shape.extent();
    for axis in 0..D {
        if !solid.has_pose() || !low[axis].is_finite() || !high[axis].is_finite() {
            low[axis] = low[axis].max(-hair);
            high[axis] = high[axis].min(size[axis] + hair);
        }
        if low[axis] >= high[axis] {
            return None;
        }
    }
    let span = high - low;
    let dx = (span.max() / SOLID_CELLS).max(longest / (4.0 * SOLID_CELLS));
    // Two cells of air around it.
    let corner = low.add_scalar(-2.0 * dx);
    let cells: [usize; D] = std::array::from_fn(|axis| (span[axis] / dx).ceil() as usize + 4);
    let mut mesh = mesh_distance(Grid { cells, dx }, |x| {
        let x = x + corner;
        // The box itself ends the shape where it goes on.
        let outside = (0..D).map(|k| (low[k] - x[k]).max(x[k] - high[k])).fold(Real::MIN, Real::max);
        solid.shape.distance(&x).max(outside)
    });
    for position in &mut mesh.positions {
        *position = std::array::from_fn(|axis| position[axis] + corner[axis] as f32);
    }
    Some(mesh)
}

/// The solids' distance at one time on a grid over the domain: twice as fine as the cells in 2D, where it is all there
/// is to see of them; as fine as the cells in 3D, where it shapes the water along them, but coarser where it has to be
/// made again and again. Bodies of glass are left out in 3D: they are thin, and one looks through them at the liquid behind.
pub fn solid_field<const D: usize>(setup: &Setup<D>, time: Real) -> SolidField {
    if setup.solids.is_empty() {
        return SolidField { corners: [1; 3], distance: vec![half_from_f32(SOLID_REACH as f32)] };
    }
    let moving = setup.solids.iter().any(Solid::is_moving);
    let corners: [usize; 3] = std::array::from_fn(|axis| match D {
        _ if axis >= D => 1,
        2 => (2 * setup.grid.cells[axis]).min(1024) + 1,
        _ => {
            let longest = setup.grid.cells.into_iter().max().unwrap_or(1);
            let most = longest.min(if moving { 64 } else { 128 });
            (setup.grid.cells[axis] * most / longest).max(4) + 1
        }
    });
    let is_clear = |solid: &Solid<D>| D == 3 && solid.body.is_some() && is_called_glass(solid);
    let shown = setup.solids.iter().filter(|solid| !is_clear(solid));
    let solids: Vec<_> = shown.map(|solid| solid.at(time)).collect();
    let (dx, reach) = (setup.grid.dx, SOLID_REACH);
    let rows = corners[1] * corners[2];
    let distance = (0..rows)
        .into_par_iter()
        .flat_map_iter(|row| {
            let solids = &solids;
            (0..corners[0]).map(move |i| {
                let place = [i, row % corners[1], row / corners[1]];
                let x = Vector::<D>::from_fn(|axis, _| {
                    place[axis] as Real / (corners[axis] - 1).max(1) as Real * setup.size[axis]
                });
                let nearest = solids.iter().map(|solid| solid.distance(&x)).fold(Real::MAX, Real::min);
                half_from_f32((nearest / dx).clamp(-reach, reach) as f32)
            })
        })
        .collect();
    SolidField { corners, distance }
}
