//! A tank of liquid in perspective.

use std::sync::atomic::AtomicBool;

use super::raster::Triangles;
use super::stage::{self, Things};
use super::vector::V3;
use super::{Picture, View};
use crate::geometry::{Solid, SurfaceMesh, mesh_distance};
use crate::grid::Grid;
use crate::math::Real;
use crate::sim::Setup;

/// Cells along the longest side of the grid that solids are drawn from.
const SOLID_CELLS: Real = 96.0;

/// Draws the tank; nothing once the stop flag is up.
pub(super) fn draw<const D: usize>(view: &View<'_, D>, stop: &AtomicBool) -> Option<Picture> {
    let setup = view.setup;
    let size: V3 = std::array::from_fn(|axis| setup.size[axis] as f32);
    let open = std::array::from_fn(|axis| setup.open[axis]);
    let [glass, solids] = [true, false].map(|clear| {
        triangles(&solid_surface(setup, view.time, |solid| is_glass(solid) == clear), Some((size, open)))
    });
    let hair = 0.05 * setup.grid.dx as f32;
    stage::draw(Things { size, open, liquid: triangles(view.mesh, None), solids, glass, hair }, stop)
}

/// Solids are seen through when their name says so.
fn is_glass<const D: usize>(solid: &Solid<D>) -> bool {
    solid.name.to_lowercase().contains("glass")
}

/// A mesh as triangles; those that lie in closed walls of a tank, given by its size and open sides, are left out.
fn triangles<const D: usize>(mesh: &SurfaceMesh<D>, tank: Option<(V3, [[bool; 2]; 3])>) -> Triangles {
    let padded = |values: &Vec<[f32; D]>| values.iter().map(super::super::mesh::padded).collect::<Vec<V3>>();
    let positions = padded(&mesh.positions);
    let in_wall = |corners: &[u32; 3]| {
        tank.is_some_and(|(size, open)| {
            (0..3).any(|axis| {
                let near = |end: f32| {
                    corners.iter().all(|&c| (positions[c as usize][axis] - end).abs() < 0.02 * size[axis])
                };
                (!open[axis][0] && near(0.0)) || (!open[axis][1] && near(size[axis]))
            })
        })
    };
    let corners = mesh.elements.iter().map(|element| std::array::from_fn(|i| element[i]));
    let corners = corners.filter(|corners| !in_wall(corners)).collect();
    Triangles { normals: padded(&mesh.normals), corners, positions }
}

/// The surface of some solids at a time, meshed on a grid just fine enough for a picture.
fn solid_surface<const D: usize>(
    setup: &Setup<D>,
    time: Real,
    wanted: impl Fn(&Solid<D>) -> bool,
) -> SurfaceMesh<D> {
    let solids: Vec<_> = setup.solids.iter().filter(|solid| wanted(solid)).collect();
    if solids.is_empty() {
        return SurfaceMesh::default();
    }
    let longest = setup.size.into_iter().fold(0.0, Real::max);
    let cells = (SOLID_CELLS * setup.size[0] / longest).ceil().max(8.0) as usize;
    mesh_distance(Grid::covering(setup.size, cells), |x| {
        solids.iter().map(|solid| solid.distance(x, time)).fold(Real::MAX, Real::min)
    })
}
