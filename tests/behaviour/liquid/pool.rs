//! Particles on a grid, for tests of single stages.

use glug::geometry::{Boundary, Solid, Walls};
use glug::grid::{Blocks, CellSet, FaceMask, Field, Grid, SIDE, Slots, block_cells};
use glug::liquid::{self, CellRanges, Particles, Sorter, SurfaceScratch};
use glug::math::{Vector, hash_unit, mix, unflatten};

pub struct Pool<const D: usize> {
    pub particles: Particles<D>,
    pub blocks: Blocks<D>,
    pub walls: Walls<D>,
    pub boundary: Boundary<D>,
    pub sorter: Sorter<D>,
    pub ranges: CellRanges,
    pub velocity: [Field<f32>; D],
    /// Weights after a transfer.
    pub weight: [Field<f32>; D],
    pub mask: [FaceMask; D],
    pub surface: Field<f32>,
    pub scratch: SurfaceScratch,
}

impl<const D: usize> Pool<D> {
    /// An empty closed box.
    pub fn new(cells: [usize; D], dx: f64, solids: Vec<Solid<D>>) -> Self {
        let size = std::array::from_fn(|axis| cells[axis] as f64 * dx);
        Pool {
            particles: Particles::default(),
            blocks: Blocks::new(Grid { cells, dx }),
            walls: Walls {
                solids,
                size,
                open: [[false; 2]; D],
                sticky: [[false; 2]; D],
                slip: [[false; 2]; D],
                voxels: false,
            },
            boundary: Boundary::new(),
            sorter: Sorter::new(),
            ranges: CellRanges::new(D),
            velocity: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            weight: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            mask: std::array::from_fn(|_| FaceMask::new(D)),
            surface: Field::new(block_cells(D), 1.5 * dx as f32),
            scratch: SurfaceScratch::new(D),
        }
    }

    /// Sorts, and makes room for the active blocks.
    pub fn sort(&mut self) {
        self.sorter.sort(&mut self.particles, &mut self.ranges, &mut self.blocks, &self.walls, &[], 0.0);
        self.boundary.update(&self.blocks, &self.walls, 0.0);
        let slots = self.blocks.slot_count();
        self.velocity.iter_mut().chain(&mut self.weight).for_each(|field| field.resize(slots));
        self.mask.iter_mut().for_each(|mask| mask.bits.resize(slots));
    }

    pub fn transfer_to_grid(&mut self) {
        let Pool { particles, blocks, ranges, velocity, weight, mask, .. } = self;
        liquid::particles_to_grid(particles, ranges, blocks, velocity, weight, mask, &mut Slots::default());
    }

    /// Rebuilds the surface for cells of `per_axis^D` particles.
    pub fn rebuild_surface(&mut self, per_axis: usize) {
        let Pool { particles, blocks, boundary, ranges, surface, scratch, .. } = self;
        let per_cell = per_axis.pow(D as u32);
        liquid::rebuild_surface(
            particles,
            ranges,
            blocks,
            boundary,
            surface,
            scratch,
            per_cell,
            &CellSet::new(),
        );
    }

    /// Sets every stored face from a velocity field given in cells from the domain's corner.
    pub fn set_velocity(&mut self, flow: impl Fn([f64; D], usize) -> f64) {
        for &slot in self.blocks.slots().as_slice() {
            let first = self.blocks.first_cell(slot as usize);
            for local in 0..block_cells(D) {
                let offset = unflatten::<D>(local, SIDE);
                for axis in 0..D {
                    let x = std::array::from_fn(|k| {
                        (first[k] + offset[k] as i32) as f64 + if k == axis { 0.0 } else { 0.5 }
                    });
                    self.velocity[axis].block_mut(slot as usize)[local] = flow(x, axis) as f32;
                }
            }
        }
    }

    /// Particles at rest on a jittered lattice of half a cell, wherever `wanted` (in cells) says so.
    pub fn seed(&mut self, jitter: f32, wanted: impl Fn([f32; D]) -> bool) {
        let cells = self.blocks.grid().cells;
        let count: usize = cells.iter().map(|n| 2 * n).product();
        for mut flat in 0..count {
            let key = mix(flat as u64);
            let place: [f32; D] = std::array::from_fn(|axis| {
                let at = flat % (2 * cells[axis]);
                flat /= 2 * cells[axis];
                0.5 * at as f32 + 0.25
            });
            if wanted(place) {
                let moved = std::array::from_fn(|axis| {
                    place[axis] + 0.5 * jitter * (hash_unit(key.wrapping_add(axis as u64)) - 0.5)
                });
                self.particles.push(moved, [0.0; D]);
            }
        }
    }

    /// Signed distance to the surface at the centre of a cell, in cells.
    pub fn distance(&self, cell: [i32; D]) -> f64 {
        let (slot, local) = self.blocks.locate(cell);
        self.surface.block(slot as usize)[local] as f64 / self.blocks.grid().dx
    }

    pub fn world(&self, x: [f32; D]) -> Vector<D> {
        Vector::from_fn(|axis, _| x[axis] as f64 * self.blocks.grid().dx)
    }
}

/// A number in [0, 1) from two keys.
pub fn random(seed: u64, key: u64) -> f32 {
    hash_unit(mix(seed) ^ mix(key.wrapping_mul(0x9e37_79b9)))
}
