//! New liquid: bodies at the start, and sources while the simulation runs; and drains, where it vanishes.

use rayon::prelude::*;

use crate::geometry::{Shape, Walls};
use crate::grid::{Blocks, Grid, SIDE, VOID, block_cells, masks};
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

    /// The indices of a cell's particles that are missing among those there: those in whose part of the cell nobody is
    /// first, then any, until the cell is full with them.
    pub(super) fn free_places<const D: usize>(
        &self,
        cell: [i32; D],
        there: &[[f32; D]],
    ) -> impl Iterator<Item = usize> + use<D> {
        let part = |x: &[f32; D]| {
            let sub =
                |k: usize| (((x[k] - cell[k] as f32) * self.per_axis as f32) as usize).min(self.per_axis - 1);
            (0..D).rev().fold(0, |index, k| index * self.per_axis + sub(k))
        };
        let taken = there.iter().fold(0u32, |taken, x| taken | 1 << part(x));
        let count = self.per_cell(D);
        let is_taken = move |index: &usize| taken >> index & 1 == 1;
        (0..count).filter(move |index| !is_taken(index)).chain((0..count).filter(is_taken))
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
    let fits = move |x: [f32; D]| {
        let x = world(grid, &x);
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
            places.retain(|x| !taken(&world(grid, x)));
            places
        })
        .collect();
    particles.reserve(new.iter().map(Vec::len).sum());
    for position in new.into_iter().flatten() {
        let velocity = flow(&world(grid, &position));
        particles.push(position, std::array::from_fn(|k| velocity[k] as f32));
    }
}

/// A cell in which a source wants particles.
#[derive(Clone, Copy, Debug)]
struct CellPlaces {
    /// Its place in the block.
    local: u16,
    /// A bit for each of its regular places that lies in the shape and outside the walls that stand still.
    wanted: u32,
    /// How far those are inside at least, in cells.
    depth: f32,
}

/// Where a source wants particles, and memory to see which places are taken. Shapes are looked at once and not in every
/// substep.
#[derive(Clone, Debug)]
pub struct Emitter<const D: usize> {
    /// What the places are for.
    per_axis: usize,
    /// The blocks that the shape may touch, and one past the last of their cells in the list.
    blocks: Vec<([i32; D], usize)>,
    cells: Vec<CellPlaces>,
    /// The box of those cells and the ones around them: its low corner and its extent.
    low: [i32; D],
    extent: [usize; D],
    /// The stored blocks around those that the shape may touch.
    around: Vec<u32>,
    /// The particles in and near the shape, and the cell of the box that each is in.
    here: Vec<([f32; D], u32)>,
    /// Those by cell.
    by_cell: Vec<[f32; D]>,
    /// Where each cell's begin.
    start: Vec<u32>,
}

impl<const D: usize> Default for Emitter<D> {
    fn default() -> Self {
        Emitter {
            per_axis: 0,
            blocks: Vec::new(),
            cells: Vec::new(),
            low: [0; D],
            extent: [0; D],
            around: Vec::new(),
            here: Vec::new(),
            by_cell: Vec::new(),
            start: Vec::new(),
        }
    }
}

impl<const D: usize> Emitter<D> {
    /// Finds the places of a shape.
    fn find_places(&mut self, grid: &Grid<D>, shape: &Shape<D>, walls: &Walls<D>, layout: &Layout) {
        self.per_axis = layout.per_axis;
        self.blocks.clear();
        self.cells.clear();
        let (mut low, mut high) = ([i32::MAX; D], [i32::MIN; D]);
        for coords in blocks_touching(grid, shape) {
            let first = grid.first_cell(coords);
            for local in 0..block_cells(D) {
                let offset = unflatten::<D>(local, SIDE);
                let cell: [i32; D] = std::array::from_fn(|k| first[k] + offset[k] as i32);
                if !grid.contains(cell) {
                    continue;
                }
                let (mut wanted, mut depth) = (0, Real::INFINITY);
                for index in 0..layout.per_cell(D) {
                    let x = world(grid, &layout.places(cell, index)[0]);
                    let inside = (-shape.distance(&x)).min(walls.standing_distance(&x));
                    if inside > 0.0 {
                        wanted |= 1 << index;
                        depth = depth.min(inside);
                    }
                }
                if wanted != 0 {
                    self.cells.push(CellPlaces {
                        local: local as u16,
                        wanted,
                        depth: (depth / grid.dx) as f32,
                    });
                    low = std::array::from_fn(|k| low[k].min(cell[k] - 1));
                    high = std::array::from_fn(|k| high[k].max(cell[k] + 2));
                }
            }
            self.blocks.push((coords, self.cells.len()));
        }
        let is_empty = self.cells.is_empty();
        self.low = if is_empty { [0; D] } else { low };
        self.extent = if is_empty { [0; D] } else { std::array::from_fn(|k| (high[k] - low[k]) as usize) };
    }

    /// Keeps a source's shape full: adds particles where a cell's regular places are empty, and gives all particles in
    /// the shape its velocity. Returns how many were added. An emitter belongs to one shape among the same walls.
    #[allow(clippy::too_many_arguments, reason = "what is there, what comes, and where there is room for it")]
    pub fn emit(
        &mut self,
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
        if self.per_axis != layout.per_axis {
            self.find_places(&grid, shape, walls, layout);
        }
        let velocity: [f32; D] = std::array::from_fn(|k| velocity[k] as f32);
        self.find_particles(particles, ranges, blocks, shape, &velocity);
        self.sort_by_cell();
        let before = particles.len();
        let room = Room { grid: &grid, shape, walls, moving: walls.any_moving(), time };
        // No jitter leads further away, in cells; rounding is allowed for.
        let reach = 0.5 * layout.jitter / layout.per_axis as f32 * (D as f32).sqrt() + 0.01;
        let mut first_cell = 0;
        for &(coords, end) in &self.blocks {
            let (first, is_stored) = (grid.first_cell(coords), blocks.slot_at(coords) != VOID);
            for &CellPlaces { local, wanted, depth } in &self.cells[first_cell..end] {
                let offset = unflatten::<D>(local as usize, SIDE);
                let cell = std::array::from_fn(|k| first[k] + offset[k] as i32);
                for index in masks::each_in(wanted.into()) {
                    // The regular place decides, so that flat surfaces start flat; jitter must not leave the shape.
                    let [regular, moved] = layout.places(cell, index);
                    let is_free = |place| !is_stored || self.is_free(place, layout.per_axis);
                    let fits_surely = depth > reach && !room.moving;
                    // Mostly both are taken, and nothing needs to be known of shapes.
                    if !is_free(&moved) && (fits_surely || !is_free(&regular)) {
                        continue;
                    }
                    if !room.is_clear_of_moving(&regular) {
                        continue;
                    }
                    let fits = (depth > reach || room.is_inside(&moved)) && room.is_clear_of_moving(&moved);
                    let place = if fits { moved } else { regular };
                    if is_free(&place) {
                        particles.push(place, velocity);
                    }
                }
            }
            first_cell = end;
        }
        particles.len() - before
    }

    /// Lists the particles in and near the shape. Advection has moved them since the sort: those of the blocks around
    /// may be here as well. Those in the shape get its velocity.
    fn find_particles(
        &mut self,
        particles: &mut Particles<D>,
        ranges: &CellRanges,
        blocks: &Blocks<D>,
        shape: &Shape<D>,
        velocity: &[f32; D],
    ) {
        let (grid, near) = (blocks.grid(), bounds_in_cells(shape, blocks.grid()));
        self.around.clear();
        for &(coords, _) in &self.blocks {
            let slot = blocks.slot_at(coords);
            if slot != VOID {
                self.around.extend(blocks.around(slot as usize).iter().filter(|&&slot| slot != VOID));
            }
        }
        self.around.sort_unstable();
        self.around.dedup();
        self.here.clear();
        for &slot in &self.around {
            for i in ranges.of_block(slot as usize) {
                let x = particles.position[i];
                if !is_within(&x, &near) {
                    continue;
                }
                let distance = shape.distance(&world(grid, &x));
                if let Some(cell) = self.cell_of(&x).filter(|_| distance < 0.5 * grid.dx) {
                    self.here.push((x, cell));
                }
                if distance < 0.0 {
                    particles.velocity[i] = *velocity;
                }
            }
        }
    }

    /// The cell of the box that a point is in, if it is in the box.
    fn cell_of(&self, x: &[f32; D]) -> Option<u32> {
        let mut index = 0;
        for axis in (0..D).rev() {
            let coordinate = x[axis].floor() as i32 - self.low[axis];
            if coordinate < 0 || coordinate as usize >= self.extent[axis] {
                return None;
            }
            index = index * self.extent[axis] + coordinate as usize;
        }
        Some(index as u32)
    }

    /// Sorts the listed particles by the cell they are in.
    fn sort_by_cell(&mut self) {
        self.start.clear();
        self.start.resize(self.extent.iter().product::<usize>() + 1, 0);
        self.here.iter().for_each(|&(_, cell)| self.start[cell as usize] += 1);
        let mut next = 0;
        for start in &mut self.start {
            next += *start;
            *start = next;
        }
        self.by_cell.clear();
        self.by_cell.resize(self.here.len(), [0.0; D]);
        for (x, cell) in &self.here {
            let start = &mut self.start[*cell as usize];
            *start -= 1;
            self.by_cell[*start as usize] = *x;
        }
    }

    /// Whether no particle is near a place: three quarters of a spacing away along some axis.
    fn is_free(&self, place: &[f32; D], per_axis: usize) -> bool {
        let reach = 2.0 * (0.5 / per_axis as f32) * 0.75;
        // Cells that hold whoever is so near; rounding is allowed for.
        let [low, high] = [-reach - 0.01, reach + 0.01].map(|step| -> [i32; D] {
            std::array::from_fn(|k| (place[k] + step).floor() as i32 - self.low[k])
        });
        let mut cell = low;
        loop {
            let index = (0..D).rev().fold(0, |index, k| index * self.extent[k] + cell[k] as usize);
            let here = self.start[index] as usize..self.start[index + 1] as usize;
            if self.by_cell[here].iter().any(|x| (0..D).all(|k| (x[k] - place[k]).abs() < reach)) {
                return false;
            }
            let Some(axis) = (0..D).find(|&k| cell[k] < high[k]) else { return true };
            cell[axis] += 1;
            cell[..axis].copy_from_slice(&low[..axis]);
        }
    }
}

/// Where a source may put particles.
struct Room<'a, const D: usize> {
    grid: &'a Grid<D>,
    shape: &'a Shape<D>,
    walls: &'a Walls<D>,
    moving: bool,
    time: Real,
}

impl<const D: usize> Room<'_, D> {
    /// Whether a place lies in the shape and outside walls that stand still.
    fn is_inside(&self, place: &[f32; D]) -> bool {
        let x = world(self.grid, place);
        self.shape.distance(&x) < 0.0 && self.walls.standing_distance(&x) > 0.0
    }

    /// Whether a place lies outside solids that move.
    fn is_clear_of_moving(&self, place: &[f32; D]) -> bool {
        !self.moving || self.walls.moving_distance(&world(self.grid, place), self.time) > 0.0
    }
}

/// A place given in cells, in metres.
fn world<const D: usize>(grid: &Grid<D>, x: &[f32; D]) -> Vector<D> {
    Vector::from_fn(|k, _| x[k] as Real * grid.dx)
}

/// A box that holds a shape and a cell around it, in cells: looking at it first saves most exact distances.
fn bounds_in_cells<const D: usize>(shape: &Shape<D>, grid: &Grid<D>) -> [[f32; 2]; D] {
    let [low, high] = shape.extent();
    std::array::from_fn(|k| [(low[k] / grid.dx) as f32 - 1.0, (high[k] / grid.dx) as f32 + 1.0])
}

/// Whether a particle lies in a box; one that is no number does not.
#[inline(always)]
fn is_within<const D: usize>(x: &[f32; D], bounds: &[[f32; 2]; D]) -> bool {
    (0..D).all(|k| x[k] >= bounds[k][0] && x[k] <= bounds[k][1])
}

/// Removes the particles inside a drain's shape. Returns how many.
pub fn drain<const D: usize>(particles: &mut Particles<D>, grid: &Grid<D>, shape: &Shape<D>) -> usize {
    let near = bounds_in_cells(shape, grid);
    particles
        .position
        .par_iter_mut()
        .with_min_len(4096)
        .map(|position| {
            let inside = is_within(position, &near) && shape.distance(&world(grid, position)) < 0.0;
            if inside {
                Particles::kill(position);
            }
            inside as usize
        })
        .sum()
}
