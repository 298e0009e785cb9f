//! New liquid: bodies at the start, and sources while the simulation runs; and drains, where it vanishes.

use rayon::prelude::*;

use crate::geometry::{Shape, Walls};
use crate::grid::{Blocks, Grid, SIDE, block_cells};
use crate::math::{Real, Vector, hash_unit, mix, power, unflatten};

use super::{CellRanges, Particles};

/// How new particles are laid out in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Particles along each axis of a cell.
    pub per_axis: usize,
    /// Random displacement, as a share of the spacing.
    pub jitter: f32,
    /// Another number, other random displacements.
    pub salt: u64,
}

impl Layout {
    /// Particles in a full cell.
    pub fn per_cell(&self, dimension: usize) -> usize {
        power(self.per_axis, dimension)
    }

    /// The place of a cell's `index`-th particle, in cells.
    pub(super) fn place<const D: usize>(&self, cell: [i32; D], index: usize) -> [f32; D] {
        self.places(cell, index)[1]
    }

    /// The regular place of a cell's `index`-th particle and the jittered one, in cells.
    fn places<const D: usize>(&self, cell: [i32; D], index: usize) -> [[f32; D]; 2] {
        let sub = unflatten::<D>(index, self.per_axis);
        let spacing = 1.0 / self.per_axis as f32;
        let key = cell.iter().fold(self.salt, |key, &c| mix(key ^ c as u32 as u64));
        let regular: [f32; D] = std::array::from_fn(|k| cell[k] as f32 + (sub[k] as f32 + 0.5) * spacing);
        let moved = std::array::from_fn(|k| {
            let random = hash_unit(key.wrapping_add((index * D + k) as u64)) - 0.5;
            regular[k] + random * self.jitter * spacing
        });
        [regular, moved]
    }
}

/// Blocks of the domain that a shape may touch, as block coordinates, in a fixed order.
fn blocks_touching<const D: usize>(grid: &Grid<D>, shape: &Shape<D>) -> Vec<[i32; D]> {
    let half = 0.5 * SIDE as Real;
    let radius = half * grid.dx * (D as Real).sqrt();
    let touches = |coords: &[i32; D]| {
        let first = grid.first_cell(*coords);
        let centre = Vector::from_fn(|k, _| (first[k] as Real + half) * grid.dx);
        shape.distance(&centre) <= radius
    };
    grid.all_blocks().filter(touches).collect()
}

/// The places in a cell where a shape wants particles: inside it and outside the walls.
fn wanted_places<'a, const D: usize>(
    grid: &'a Grid<D>,
    shape: &'a Shape<D>,
    walls: &'a Walls<D>,
    time: Real,
    layout: &'a Layout,
    cell: [i32; D],
) -> impl Iterator<Item = (usize, [f32; D])> + 'a {
    let world = move |x: [f32; D]| Vector::from_fn(|k, _| x[k] as Real * grid.dx);
    let fits = move |x: [f32; D]| {
        let x = world(x);
        shape.distance(&x) < 0.0 && walls.distance(&x, time) > 0.0
    };
    (0..layout.per_cell(D)).filter_map(move |index| {
        // The regular place decides, so that flat surfaces start flat; jitter must not leave the shape.
        let [regular, moved] = layout.places(cell, index);
        fits(regular).then(|| (index, if fits(moved) { moved } else { regular }))
    })
}

/// Fills a body with particles that move with `flow`, except where `taken` says that a body before it already did.
pub fn seed<const D: usize>(
    particles: &mut Particles<D>,
    grid: &Grid<D>,
    shape: &Shape<D>,
    walls: &Walls<D>,
    layout: &Layout,
    flow: impl Fn(&Vector<D>) -> Vector<D> + Sync,
    taken: impl Fn(&Vector<D>) -> bool + Sync,
) {
    let new: Vec<Vec<[f32; D]>> = blocks_touching(grid, shape)
        .par_iter()
        .map(|coords| {
            let first = grid.first_cell(*coords);
            let mut places = Vec::new();
            for local in 0..block_cells(D) {
                let offset = unflatten::<D>(local, SIDE);
                let cell = std::array::from_fn(|k| first[k] + offset[k] as i32);
                if grid.contains(cell) {
                    places.extend(wanted_places(grid, shape, walls, 0.0, layout, cell).map(|(_, x)| x));
                }
            }
            places.retain(|x| !taken(&Vector::from_fn(|k, _| x[k] as Real * grid.dx)));
            places
        })
        .collect();
    particles.reserve(new.iter().map(Vec::len).sum());
    for position in new.into_iter().flatten() {
        let velocity = flow(&Vector::from_fn(|k, _| position[k] as Real * grid.dx));
        particles.push(position, std::array::from_fn(|k| velocity[k] as f32));
    }
}

/// Keeps a source's shape full: adds particles where a cell's regular places are empty, and gives all particles in
/// the shape its velocity. Returns how many were added.
pub fn emit<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    shape: &Shape<D>,
    velocity: &Vector<D>,
    walls: &Walls<D>,
    layout: &Layout,
    time: Real,
) -> usize {
    let grid = *blocks.grid();
    let velocity: [f32; D] = std::array::from_fn(|k| velocity[k] as f32);
    let before = particles.len();
    for coords in blocks_touching(&grid, shape) {
        let first = grid.first_cell(coords);
        let slot = blocks.slot_at(coords) as usize;
        let range = if slot == 0 { 0..0 } else { ranges.of_block(slot) };
        // Advection has moved the particles since the sort: those of this block and its neighbours may be here.
        let mut here = Vec::new();
        let around: &[u32] = if slot == 0 { &[] } else { blocks.around(slot) };
        let mut visit = |range: std::ops::Range<usize>, particles: &mut Particles<D>| {
            for i in range {
                let x = particles.position[i];
                let world = Vector::from_fn(|k, _| x[k] as Real * grid.dx);
                if Particles::is_alive(&x) && shape.distance(&world) < 0.5 * grid.dx {
                    here.push(x);
                    if shape.distance(&world) < 0.0 {
                        particles.velocity[i] = velocity;
                    }
                }
            }
        };
        visit(range, particles);
        for &next in around.iter().filter(|&&next| next as usize != slot && next != 0) {
            visit(ranges.of_block(next as usize), particles);
        }
        for local in 0..block_cells(D) {
            let offset = unflatten::<D>(local, SIDE);
            let cell = std::array::from_fn(|k| first[k] + offset[k] as i32);
            if !grid.contains(cell) {
                continue;
            }
            let reach = 0.5 / layout.per_axis as f32;
            for (_, place) in wanted_places(&grid, shape, walls, time, layout, cell) {
                let free = !here.iter().any(|x| (0..D).all(|k| (x[k] - place[k]).abs() < 2.0 * reach * 0.75));
                if free {
                    particles.push(place, velocity);
                }
            }
        }
    }
    particles.len() - before
}

/// Removes the particles inside a drain's shape. Returns how many.
pub fn drain<const D: usize>(particles: &mut Particles<D>, grid: &Grid<D>, shape: &Shape<D>) -> usize {
    particles
        .position
        .par_iter_mut()
        .with_min_len(4096)
        .map(|position| {
            let x = Vector::from_fn(|k, _| position[k] as Real * grid.dx);
            let inside = Particles::is_alive(position) && shape.distance(&x) < 0.0;
            if inside {
                Particles::kill(position);
            }
            inside as usize
        })
        .sum()
}
