//! Rooms with walls, liquid and air of which only some blocks are stored, and the flood fill that anybody would write.

use std::collections::{HashMap, VecDeque};

use glug::bubbles::{Components, Measure, WallBlocks};
use glug::geometry::{Boundary, Label, Motion, Nearness, Settled, Shape, Solid, Walls, label_cells};
use glug::grid::{Activation, Blocks, Field, Grid, SIDE, Slots, VOID, block_cells};
use glug::math::{Vector, hash_unit, mix, unflatten};

/// A domain with only a part of its blocks stored, as a simulation has it.
pub struct Room<const D: usize> {
    pub blocks: Blocks<D>,
    pub walls: Walls<D>,
    pub boundary: Boundary<D>,
    pub surface: Field<f32>,
    pub label: Field<Label>,
    pub far: WallBlocks,
}

/// A connected component, found the slow way.
#[derive(Clone, Debug, PartialEq)]
pub struct NaiveComponent {
    pub phase: Label,
    pub open: bool,
    /// Cells inside the domain that are not stored.
    pub far_cells: usize,
    /// Whether any of its cells is stored.
    pub stored: bool,
}

/// All blocks that `wanted` names, those next to them, and those with a wall in them.
fn store<const D: usize>(grid: Grid<D>, far: &WallBlocks, wanted: impl Fn([i32; D]) -> bool) -> Blocks<D> {
    let mut blocks = Blocks::new(grid);
    let mut marks = Activation::default();
    blocks.begin(&mut marks);
    for coords in grid.all_blocks().filter(|&coords| wanted(coords)) {
        for offset in 0..3usize.pow(D as u32) {
            let step = unflatten::<D>(offset, 3);
            blocks.mark(&mut marks, std::array::from_fn(|k| coords[k] + step[k] as i32 - 1));
        }
    }
    for &index in far.needed(false) {
        let coords = blocks.table_coords(index as usize);
        blocks.mark(&mut marks, coords);
    }
    blocks.activate(&marks);
    blocks
}

impl<const D: usize> Room<D> {
    /// Random lumps of liquid full of holes, plates and balls in the way, random sides open, random faces closed, and
    /// random blocks left out where there is nothing but air.
    pub fn random(seed: u64) -> Self {
        Self::stored(seed, false)
    }

    /// The same room, with every block stored if `all`.
    pub fn stored(seed: u64, all: bool) -> Self {
        let unit = |key: u64| hash_unit(mix(seed).wrapping_add(key)) as f64;
        let mut cells = [61; D];
        (cells[0], cells[1]) = if D == 2 { (83, 70) } else { (50, 45) };
        if D == 3 {
            cells[2] = 41;
        }
        let grid = Grid { cells, dx: 0.02 };
        let size: [f64; D] = std::array::from_fn(|k| cells[k] as f64 * grid.dx);
        let point = |key: u64| Vector::<D>::from_fn(|k, _| size[k] * unit(key * 10 + k as u64));
        let mut solids = Vec::new();
        for i in 0..2 {
            // A plate thinner than a cell, across a part of the room.
            let mut min = point(i + 1) * 0.5;
            let mut max = Vector::from(size) - point(i + 11) * 0.3;
            max[i as usize] = min[i as usize] + 0.7 * grid.dx;
            (0..D).for_each(|k| min[k] = min[k].min(max[k] - 0.7 * grid.dx));
            solids.push(Solid::new("plate", Shape::Box { min, max }, Motion::default()));
        }
        let ball = Shape::Sphere { center: point(21), radius: 0.08 };
        solids.push(Solid::new("ball", ball, Motion::default()));
        let open = std::array::from_fn(|k| [unit(100 + k as u64) < 0.3, unit(110 + k as u64) < 0.3]);
        let walls =
            Walls { solids, size, open, sticky: [[false; 2]; D], slip: [[false; 2]; D], voxels: false };
        let mut far = WallBlocks::default();
        far.update(&Blocks::new(grid), &walls, 0.0);

        let lumps: Vec<(Vector<D>, f64)> =
            (0..3).map(|i| (point(31 + i), (0.05 + 0.15 * unit(131 + i)) * size[0])).collect();
        let centre = |cell: [i32; D]| Vector::<D>::from_fn(|k, _| (cell[k] as f64 + 0.5) * grid.dx);
        let wet = |x: &Vector<D>| lumps.iter().any(|(middle, radius)| (x - middle).norm() < *radius);
        let blocks = store(grid, &far, |coords| {
            let first = grid.first_cell(coords);
            all || (0..block_cells(D)).any(|local| {
                let at = unflatten::<D>(local, SIDE);
                wet(&centre(std::array::from_fn(|k| first[k] + at[k] as i32)))
            })
        });
        let mut boundary = Boundary::new();
        boundary.update(&blocks, &walls, 0.0);
        let mut surface = Field::new(block_cells(D), 0.1f32);
        surface.resize(blocks.slot_count());
        let full = 0.4 + 0.5 * unit(140);
        for &slot in blocks.slots().as_slice() {
            let slot = slot as usize;
            let first = blocks.first_cell(slot);
            for local in 0..block_cells(D) {
                let at = unflatten::<D>(local, SIDE);
                let cell: [i32; D] = std::array::from_fn(|k| first[k] + at[k] as i32);
                let key = cell.iter().fold(seed, |key, &c| mix(key ^ (c + 99) as u64));
                let liquid = wet(&centre(cell)) && (hash_unit(mix(key)) as f64) < full;
                surface.block_mut(slot)[local] = if liquid { -0.01 } else { 0.01 };
                // Faces may be closed only where the fill looks at them: near walls.
                for axis in 0..D {
                    let share = &mut boundary.open[axis].block_mut(slot)[local];
                    let closed = hash_unit(mix(key ^ (7 + axis as u64))) < 0.25;
                    let near = wet(&centre(cell)) && closed;
                    *share = if near && *share > 0.0 { 0.0 } else { *share };
                }
            }
            if boundary.nearness(slot) == Nearness::Clear {
                boundary.open.iter_mut().for_each(|open| open.block_mut(slot).fill(1.0));
            }
        }
        let mut room =
            Room { blocks, walls, boundary, surface, label: Field::new(block_cells(D), Label::Solid), far };
        room.label_cells();
        room
    }

    fn label_cells(&mut self) {
        // Shares were set by hand.
        self.boundary.derive_bits(&self.blocks);
        let mut live = Slots::default();
        label_cells(
            &self.blocks,
            &self.boundary,
            &self.surface,
            &mut self.label,
            &mut live,
            &mut Settled::default(),
        );
    }

    /// The fill under test.
    pub fn fill(&self) -> Components<D> {
        let mut components = Components::new();
        components.fill(
            &self.blocks,
            &self.boundary,
            &self.walls,
            &self.label,
            &Settled::default(),
            &self.far,
        );
        components
    }

    pub fn measure(&self, components: &Components<D>) -> Measure<D> {
        let mut measure = Measure::new();
        measure.update(&self.blocks, &self.boundary, &self.surface, components, &Settled::default());
        measure
    }

    /// What a cell is made of; cells that are not stored are air unless walls surround them.
    fn kind(&self, cell: [i32; D]) -> Label {
        let grid = self.blocks.grid();
        let coords = grid.block_of(cell);
        let slot = self.blocks.slot_at(coords);
        if slot != VOID {
            return self.label.block(slot as usize)[self.blocks.local_index(cell)];
        }
        let walled = (0..D).any(|k| {
            (cell[k] < 0 && !self.walls.open[k][0])
                || (cell[k] >= grid.cells[k] as i32 && !self.walls.open[k][1])
        });
        let centre = Vector::from_fn(|k, _| (cell[k] as f64 + 0.5) * grid.dx);
        let inside = self.walls.solids.iter().any(|solid| solid.distance(&centre, 0.0) < 0.0);
        if walled || inside { Label::Solid } else { Label::Air }
    }

    /// Whether the low face of a cell lets anything through. No wall is near blocks that are not stored.
    fn is_open(&self, cell: [i32; D], axis: usize) -> bool {
        let slot = self.blocks.slot_at(self.blocks.grid().block_of(cell));
        slot == VOID || self.boundary.open[axis].block(slot as usize)[self.blocks.local_index(cell)] > 0.0
    }

    /// Every cell's component by breadth-first search; `together` joins liquid and air.
    pub fn search(&self, together: bool) -> (HashMap<[i32; D], usize>, Vec<NaiveComponent>) {
        let grid = *self.blocks.grid();
        let mut kind = HashMap::new();
        let mut cells = Vec::new();
        for coords in grid.all_blocks() {
            let first = grid.first_cell(coords);
            for local in 0..block_cells(D) {
                let at = unflatten::<D>(local, SIDE);
                let cell: [i32; D] = std::array::from_fn(|k| first[k] + at[k] as i32);
                kind.insert(cell, self.kind(cell));
                cells.push(cell);
            }
        }
        let (mut of, mut list) = (HashMap::new(), Vec::new());
        for seed in cells {
            if kind[&seed] == Label::Solid || of.contains_key(&seed) {
                continue;
            }
            let mut found = NaiveComponent { phase: kind[&seed], open: false, far_cells: 0, stored: false };
            let mut queue = VecDeque::from([seed]);
            of.insert(seed, list.len());
            while let Some(cell) = queue.pop_front() {
                let beyond = (0..D).any(|k| {
                    (cell[k] < 0 && self.walls.open[k][0])
                        || (cell[k] >= grid.cells[k] as i32 && self.walls.open[k][1])
                });
                found.open |= beyond && kind[&cell] == Label::Air;
                let stored = self.blocks.slot_at(grid.block_of(cell)) != VOID;
                found.stored |= stored;
                found.far_cells += (!stored && grid.contains(cell)) as usize;
                for axis in 0..D {
                    for high in [false, true] {
                        let mut next = cell;
                        next[axis] += if high { 1 } else { -1 };
                        let Some(&label) = kind.get(&next) else { continue };
                        let same = label != Label::Solid && (together || label == found.phase);
                        if same
                            && self.is_open(if high { next } else { cell }, axis)
                            && !of.contains_key(&next)
                        {
                            of.insert(next, list.len());
                            queue.push_back(next);
                        }
                    }
                }
            }
            list.push(found);
        }
        (of, list)
    }

    /// Stored cells with their index in fields.
    pub fn cells(&self) -> Vec<([i32; D], usize)> {
        let mut cells = Vec::new();
        for &slot in self.blocks.slots().as_slice() {
            let first = self.blocks.first_cell(slot as usize);
            for local in 0..block_cells(D) {
                let at = unflatten::<D>(local, SIDE);
                let cell = std::array::from_fn(|k| first[k] + at[k] as i32);
                cells.push((cell, slot as usize * block_cells(D) + local));
            }
        }
        cells
    }
}
