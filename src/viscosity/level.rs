//! One resolution of the system, and all of them.

use crate::geometry::FAR;
use crate::grid::{Blockwise, PAD, Parts, SIDE, Slots, block_cells, halo_cells, share};
use crate::linear::Operator;
use crate::math::{Real, Vector, flatten, power, unflatten};

use super::coefficients::{Coefficients, CoefficientsMut};
use super::cycle::Work;
use super::kernel::{add_stress, load_around};
use super::surroundings::{MOST_NEAR, NEAR, Surroundings, WIDE};
use super::{Problem, each_block};

/// Viscosity spreads motion less far than this share of a coarse cell's width squared: no need for yet coarser ones.
const ENOUGH: f32 = 0.5;
/// The domain is at least that many cells wide on every level but the finest.
const FEWEST_CELLS: usize = 4;

/// The blocks of a level, counted from 1: block 0 stands for all that are not stored.
#[derive(Clone, Default)]
pub(super) struct Places<const D: usize> {
    /// Cells of the finest level per cell, along an axis.
    width: usize,
    coords: Vec<[i32; D]>,
    /// The `3^D` blocks around each, itself in the middle.
    around: Vec<u32>,
    /// The `2^D` blocks of the next finer level in each.
    children: Vec<u32>,
    /// The block of the next coarser level around each.
    parent: Vec<u32>,
}

impl<const D: usize> Places<D> {
    /// The blocks around a block.
    #[inline]
    pub fn around(&self, block: usize) -> &[u32] {
        &self.around[block * power(3, D)..][..power(3, D)]
    }

    /// The blocks of the next finer level in a block.
    #[inline]
    pub fn children(&self, block: usize) -> &[u32] {
        &self.children[block * power(2, D)..][..power(2, D)]
    }

    /// The block of the next coarser level around a block, and which of its octants that is.
    #[inline]
    pub fn parent(&self, block: usize) -> (usize, usize) {
        (self.parent[block] as usize, octant_of(self.coords[block]))
    }

    /// The cell of the next finer level in an octant of a cell, which is given relative to a block and may lie beside it: its block
    /// and its place there. Cells that are not stored are in block 0.
    #[inline]
    pub fn child_cell(&self, block: usize, cell: [i32; D], octant: usize) -> (usize, usize) {
        let side = SIDE as i32;
        let step = cell.map(|c| (c.div_euclid(side) + 1) as usize);
        let beside = self.around(block)[flatten(step, 3)] as usize;
        if beside == 0 {
            return (0, 0);
        }
        let local = cell.map(|c| c.rem_euclid(side) as usize);
        let child = self.children(beside)[flatten(local.map(|c| c / (SIDE / 2)), 2)] as usize;
        let place = std::array::from_fn(|k| local[k] % (SIDE / 2) * 2 + (octant >> k & 1));
        (child, flatten::<D>(place, SIDE))
    }

    /// The centre of a low face of a cell of a block, metres.
    fn face_centre(&self, problem: &Problem<'_, D>, block: usize, cell: [i32; D], axis: usize) -> Vector<D> {
        let coords = self.coords[block];
        Vector::from_fn(|k, _| {
            let half = if k == axis { 0.0 } else { 0.5 };
            let cells = Real::from(coords[k] * SIDE as i32 + cell[k]) + half;
            (cells * self.width as Real - Real::from(PAD)) * problem.blocks.grid().dx
        })
    }

    /// Becomes those blocks of the grid.
    fn take_grid(&mut self, problem: &Problem<'_, D>, live: &Slots, block_of: &[u32]) {
        let slots = live.as_slice();
        self.width = 1;
        self.coords.clear();
        self.coords.push([0; D]);
        self.coords.extend(slots.iter().map(|&slot| problem.blocks.coords(slot as usize)));
        self.around.clear();
        self.around.resize(power(3, D), 0);
        for &slot in slots {
            let around = problem.blocks.around(slot as usize);
            self.around.extend(around.iter().map(|&slot| block_of[slot as usize]));
        }
    }

    /// Becomes the blocks of twice the width around finer ones.
    fn take_parents(&mut self, finer: &mut Places<D>) {
        let above = |coords: [i32; D]| coords.map(|c| c >> 1);
        let key = |coords: &[i32; D]| {
            let mut key = *coords;
            key.reverse();
            key
        };
        self.width = 2 * finer.width;
        self.coords.clear();
        self.coords.extend(finer.coords[1..].iter().map(|&coords| above(coords)));
        self.coords.sort_unstable_by_key(key);
        self.coords.dedup();
        self.coords.insert(0, [0; D]);
        let coords = &self.coords;
        let find = |wanted: [i32; D]| {
            coords[1..].binary_search_by_key(&key(&wanted), key).map_or(0, |place| place as u32 + 1)
        };
        self.around.clear();
        self.around.resize(power(3, D), 0);
        for own in &coords[1..] {
            self.around.extend((0..power(3, D)).map(|step| {
                let step = unflatten::<D>(step, 3);
                find(std::array::from_fn(|k| own[k] + step[k] as i32 - 1))
            }));
        }
        self.children.clear();
        self.children.resize(coords.len() * power(2, D), 0);
        finer.parent.clear();
        finer.parent.push(0);
        for (block, &coords) in finer.coords.iter().enumerate().skip(1) {
            let parent = find(above(coords));
            finer.parent.push(parent);
            self.children[parent as usize * power(2, D) + octant_of(coords)] = block as u32;
        }
    }

    fn bytes(&self) -> usize {
        let tables = [&self.around, &self.children, &self.parent];
        4 * tables.iter().map(|table| table.capacity()).sum::<usize>()
            + self.coords.capacity() * size_of::<[i32; D]>()
    }
}

/// The octant of its parent that a block is.
fn octant_of<const D: usize>(coords: [i32; D]) -> usize {
    flatten(coords.map(|c| (c & 1) as usize), 2)
}

/// The system at one resolution.
#[derive(Clone, Default)]
pub(super) struct Level<const D: usize> {
    pub places: Places<D>,
    /// `μ dt / (ρ h²)` with the level's cell width.
    alpha: f32,
    /// The coefficients of each block; those in the midst of the liquid share the first ones.
    set_of: Vec<u32>,
    weights: Vec<f32>,
    mass: Vec<f32>,
    inverse: Vec<f32>,
    /// Liquid share of every cell, and wall distance at its low corner in cells.
    share: Vec<f32>,
    corner: Vec<f32>,
}

impl<const D: usize> Level<D> {
    /// Entries of a vector.
    pub fn vector_len(&self) -> usize {
        self.places.coords.len() * D * block_cells(D)
    }

    /// The coefficients of a block.
    #[inline]
    pub fn coefficients(&self, block: usize) -> Coefficients<'_> {
        let set = self.set_of[block] as usize;
        let [weights, faces] = Self::set_len();
        Coefficients {
            weights: &self.weights[set * weights..][..weights],
            mass: &self.mass[set * faces..][..faces],
            inverse: &self.inverse[set * faces..][..faces],
        }
    }

    /// Numbers of a set of coefficients: of its samples, and of its faces.
    const fn set_len() -> [usize; 2] {
        [D * D * halo_cells(NEAR, D), D * block_cells(D)]
    }

    /// Liquid share of every cell.
    pub fn share(&self) -> &[f32] {
        &self.share
    }

    /// Wall distance at the low corner of every cell, in cells of this level.
    pub fn corner(&self) -> &[f32] {
        &self.corner
    }

    /// Faces that are unknowns.
    pub fn unknowns(&self) -> usize {
        let of_block =
            |block: usize| self.coefficients(block).inverse.iter().filter(|&&inverse| inverse > 0.0).count();
        (1..self.places.coords.len()).map(of_block).sum()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let numbers = [&self.weights, &self.mass, &self.inverse, &self.share, &self.corner];
        self.places.bytes()
            + 4 * (self.set_of.capacity() + numbers.iter().map(|numbers| numbers.capacity()).sum::<usize>())
    }

    /// Becomes the finest level.
    fn take_grid(&mut self, problem: &Problem<'_, D>, live: &Slots, block_of: &[u32]) {
        self.places.take_grid(problem, live, block_of);
        let slot_of = |block: usize| live.as_slice()[block - 1] as usize;
        self.fill(
            problem,
            |_, block| Surroundings::is_slot_inside(problem, slot_of(block)),
            |_, block| Surroundings::of_slot(problem, slot_of(block)),
            |_, _, _| true,
        );
    }

    /// Becomes the level above a finer one.
    fn take_parents(&mut self, problem: &Problem<'_, D>, finer: &mut Level<D>) {
        self.places.take_parents(&mut finer.places);
        let finer = &*finer;
        self.fill(
            problem,
            |places, block| Surroundings::of_children(places, finer, block).is_inside(),
            |places, block| Surroundings::of_children(places, finer, block),
            |places, block, cell| places.child_cell(block, cell, 0).0 != 0,
        );
    }

    /// Finds the coefficients, of blocks where not all is liquid from what is `around` them.
    fn fill(
        &mut self,
        problem: &Problem<'_, D>,
        is_inside: impl Fn(&Places<D>, usize) -> bool + Sync + Send,
        around: impl Fn(&Places<D>, usize) -> Surroundings<D> + Sync,
        is_stored: impl Fn(&Places<D>, usize, [i32; D]) -> bool + Sync,
    ) {
        let places = &self.places;
        let (count, cells) = (places.coords.len(), block_cells(D));
        let [weights, faces] = Self::set_len();
        self.alpha = problem.alpha as f32 / (places.width * places.width) as f32;
        self.set_of.clear();
        self.set_of.resize(count, 0);
        each_block(&mut self.set_of, 1, |block, set| set[0] = u32::from(!is_inside(places, block)));
        let mut sets = 1;
        for set in self.set_of[1..].iter_mut().filter(|set| **set != 0) {
            *set = sets as u32;
            sets += 1;
        }
        // Each set is written as a whole.
        self.weights.resize(sets * weights, 0.0);
        self.mass.resize(sets * faces, 0.0);
        self.inverse.resize(sets * faces, 0.0);
        self.share.resize(count * cells, 0.0);
        self.corner.resize(count * cells, 0.0);
        self.share[..cells].fill(0.0);
        self.corner[..cells].fill(FAR);
        let mut inside = CoefficientsMut {
            weights: &mut self.weights[..weights],
            mass: &mut self.mass[..faces],
            inverse: &mut self.inverse[..faces],
        };
        inside.fill_inside::<D>(self.alpha);
        let (alpha, set_of) = (self.alpha, &self.set_of);
        let coefficients = (
            Parts::new(&mut self.weights, weights),
            Parts::new(&mut self.mass, faces),
            Parts::new(&mut self.inverse, faces),
        );
        let cells = (Parts::new(&mut self.share, cells), Parts::new(&mut self.corner, cells));
        share(count - 1, 1, &|range| {
            for block in range.start + 1..range.end + 1 {
                // SAFETY: ranges are disjoint, and the void block is in none.
                let (shares, corners) = unsafe { cells.take(block) };
                if set_of[block] == 0 {
                    shares.fill(1.0);
                    corners.fill(FAR);
                    continue;
                }
                let around = around(places, block);
                around.cell_shares(shares);
                for (local, corner) in corners.iter_mut().enumerate() {
                    *corner = around.corner[WIDE.index(unflatten::<D>(local, SIDE).map(|c| c as i32))];
                }
                // SAFETY: no two blocks have the same set, but those that have the first one.
                let (weights, mass, inverse) = unsafe { coefficients.take(set_of[block] as usize) };
                let slips = |cell: [i32; D], axis: usize| {
                    problem.walls.any_slip()
                        && problem.walls.slips(&places.face_centre(problem, block, cell, axis), problem.time)
                };
                let mut found = CoefficientsMut { weights, mass, inverse };
                found.fill(&around, alpha, slips, |cell| is_stored(places, block, cell));
            }
        });
    }
}

impl<const D: usize> Operator for Level<D> {
    fn size(&self) -> usize {
        self.vector_len()
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        let part = D * block_cells(D);
        each_block(out, part, |block, out| {
            let mut halo = [0f64; 3 * MOST_NEAR];
            load_around::<f64, D>(self.places.around(block), x, &mut halo);
            let Coefficients { weights, mass, inverse } = self.coefficients(block);
            let own = &x[block * part..][..part];
            for ((out, x), &mass) in out.iter_mut().zip(own).zip(mass) {
                *out = f64::from(mass) * x;
            }
            add_stress::<f64, D>(weights, &halo, out);
            for (out, &inverse) in out.iter_mut().zip(inverse) {
                *out = if inverse > 0.0 { *out } else { 0.0 };
            }
        });
    }

    fn diagonal(&self, out: &mut [f64]) {
        let part = D * block_cells(D);
        each_block(out, part, |block, out| {
            for (out, &inverse) in out.iter_mut().zip(self.coefficients(block).inverse) {
                *out = if inverse > 0.0 { 1.0 / f64::from(inverse) } else { 0.0 };
            }
        });
    }
}

/// All levels, finest first, and the vectors of the cycle.
#[derive(Clone, Default)]
pub(super) struct Hierarchy<const D: usize> {
    levels: Vec<Level<D>>,
    work: Vec<Work>,
    /// Levels in use.
    count: usize,
}

impl<const D: usize> Hierarchy<D> {
    /// Finds all levels of a problem.
    pub fn build(&mut self, problem: &Problem<'_, D>, live: &Slots, block_of: &[u32]) {
        let narrowest = problem.blocks.grid().cells.into_iter().min().unwrap_or(1);
        self.count = 0;
        loop {
            if self.levels.len() == self.count {
                self.levels.push(Level::default());
                self.work.push(Work::default());
            }
            let (finer, rest) = self.levels.split_at_mut(self.count);
            let level = &mut rest[0];
            match finer.last_mut() {
                None => level.take_grid(problem, live, block_of),
                Some(finer) => level.take_parents(problem, finer),
            }
            self.work[self.count].resize(level.vector_len());
            self.count += 1;
            if level.alpha <= ENOUGH || narrowest / level.places.width < 2 * FEWEST_CELLS {
                return;
            }
        }
    }

    /// The system itself.
    pub fn finest(&self) -> &Level<D> {
        &self.levels[0]
    }

    /// The levels with their vectors.
    pub fn parts(&mut self) -> (&[Level<D>], &mut [Work]) {
        (&self.levels[..self.count], &mut self.work[..self.count])
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(Level::bytes).sum::<usize>() + self.work.iter().map(Work::bytes).sum::<usize>()
    }
}
