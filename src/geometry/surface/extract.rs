//! Marching cubes on the blocks that the surface passes through.
//!
//! A unit is the 8^D lattice points of one block: it owns the edges that leave them upwards, hence the vertices on
//! those edges, and the cubes of which they are the low corner. First every unit finds its vertices, then it
//! connects them, asking its upper neighbours for theirs. Both passes are parallel; the order is that of the blocks.

use rayon::prelude::*;

use super::SurfaceMesh;
use super::lattice::{BOX, Content, Lattice};
use super::table::Table;
use crate::grid::{Blocks, Field, Grid, SIDE, block_cells};
use crate::math::{Real, Vector, flatten, power, unflatten};

/// Vertices keep this distance from the ends of their edge, as a share of it, so that no triangle degenerates.
const MARGIN: f32 = 0.01;

/// No unit.
const NONE: u32 = u32::MAX;

/// What the first pass finds in a unit.
struct Part<const D: usize> {
    positions: Vec<[f32; D]>,
    normals: Vec<[f32; D]>,
    /// One bit per edge, axis after axis: whether it holds a vertex.
    cut: Vec<u64>,
    /// Vertices before each word of `cut`.
    before: Vec<u16>,
    /// Cubes the surface passes through, with their patterns.
    cubes: Vec<(u16, u8)>,
}

/// Meshes where a distance, asked at every cell centre of a grid, is zero.
pub fn mesh_distance<const D: usize>(
    grid: Grid<D>,
    distance: impl Fn(&Vector<D>) -> Real + Sync,
) -> SurfaceMesh<D> {
    let blocks = Blocks::all(grid);
    let mut field = Field::new(block_cells(D), f32::MAX);
    field.resize(blocks.slot_count());
    // Every block is active, so that all slots but the void one hold cells.
    field.as_mut_slice().par_chunks_mut(block_cells(D)).enumerate().skip(1).for_each(|(slot, values)| {
        let first = blocks.first_cell(slot);
        for (local, value) in values.iter_mut().enumerate() {
            let offset = unflatten::<D>(local, SIDE);
            let centre = std::array::from_fn(|axis| (first[axis] + offset[axis] as i32) as Real + 0.5);
            *value = distance(&blocks.grid().world_from_grid(centre)) as f32;
        }
    });
    extract_surface(&blocks, &field)
}

/// The closed surface where a signed distance at cell centres changes sign. Whatever lies outside the active blocks
/// or outside the domain is air.
pub fn extract_surface<const D: usize>(blocks: &Blocks<D>, field: &Field<f32>) -> SurfaceMesh<D> {
    let lattice = Lattice { blocks, field, dx: blocks.grid().dx as f32 };
    let units = Units::find(&lattice);
    let parts: Vec<Part<D>> =
        units.list.par_iter().with_min_len(4).map(|&unit| find_vertices(&lattice, unit)).collect();
    let mut first_vertex = Vec::with_capacity(parts.len());
    let mut count = 0;
    for part in &parts {
        first_vertex.push(count);
        count += part.positions.len() as u32;
    }
    let elements: Vec<Vec<[u32; D]>> = (0..parts.len())
        .into_par_iter()
        .with_min_len(4)
        .map(|unit| connect(&units, &parts, &first_vertex, unit))
        .collect();
    SurfaceMesh {
        positions: parts.iter().flat_map(|part| &part.positions).copied().collect(),
        normals: parts.iter().flat_map(|part| &part.normals).copied().collect(),
        elements: elements.into_iter().flatten().collect(),
    }
}

/// The units the surface may pass through, in order, and where to find them by block coordinates.
struct Units<const D: usize> {
    list: Vec<[i32; D]>,
    extent: [usize; D],
    lookup: Vec<u32>,
}

impl<const D: usize> Units<D> {
    fn find(lattice: &Lattice<'_, D>) -> Self {
        let grid = lattice.blocks.grid();
        let counts = grid.blocks();
        // Blocks that hold cells of the domain. Beyond them the lattice repeats the outermost cells.
        let last = grid.block_of(grid.cells.map(|cells| cells as i32 - 1));
        let index = |coords: [i32; D]| {
            (0..D)
                .rev()
                .fold(0, |index, axis| index * counts[axis] + coords[axis].clamp(0, last[axis]) as usize)
        };
        let mut contents = vec![Content::Air; counts.iter().product()];
        let slots = lattice.blocks.slots().as_slice();
        let found: Vec<Content> =
            slots.par_iter().with_min_len(16).map(|&slot| lattice.content(slot as usize)).collect();
        for (&slot, content) in slots.iter().zip(found) {
            let coords = lattice.blocks.coords(slot as usize);
            if (0..D).all(|axis| (0..=last[axis]).contains(&coords[axis])) {
                contents[index(coords)] = content;
            }
        }
        let crossed = |unit: [i32; D]| {
            // At a wall the unit also holds lattice points that are air by definition.
            let first = grid.first_cell(unit);
            let at_wall =
                (0..D).any(|axis| first[axis] < 0 || first[axis] + SIDE as i32 >= grid.cells[axis] as i32);
            let above = |corner: usize| {
                let coords = std::array::from_fn(|axis| unit[axis] + (corner >> axis & 1) as i32);
                contents[index(coords)]
            };
            let other = if at_wall { Content::Air } else { above(0) };
            (0..1 << D).any(|corner| above(corner) == Content::Mixed || above(corner) != other)
        };
        let extent = counts;
        let mut units = Units { list: Vec::new(), extent, lookup: vec![NONE; extent.iter().product()] };
        for flat in 0..units.lookup.len() {
            let mut rest = flat;
            let unit = std::array::from_fn(|axis| {
                let coordinate = rest % extent[axis];
                rest /= extent[axis];
                coordinate as i32
            });
            if crossed(unit) {
                units.lookup[flat] = units.list.len() as u32;
                units.list.push(unit);
            }
        }
        units
    }

    /// The place of a unit in the list, [`NONE`] if the surface does not pass through it.
    fn place(&self, coords: [i32; D]) -> u32 {
        let mut index = 0;
        for axis in (0..D).rev() {
            if coords[axis] < 0 || coords[axis] as usize >= self.extent[axis] {
                return NONE;
            }
            index = index * self.extent[axis] + coords[axis] as usize;
        }
        self.lookup[index]
    }
}

/// Pass one: a unit's vertices and the patterns of its cubes.
fn find_vertices<const D: usize>(lattice: &Lattice<'_, D>, unit: [i32; D]) -> Part<D> {
    let first = lattice.blocks.grid().first_cell(unit);
    let mut samples = vec![0.0f32; power(BOX, D)];
    lattice.load(first, &mut samples);
    let place = |point: [usize; D]| flatten(point.map(|c| c + 1), BOX);
    let stride = |axis: usize| power(BOX, axis);
    let beyond =
        |point: [usize; D]| (0..D).any(|axis| lattice.is_beyond(axis, first[axis] + point[axis] as i32));
    let inside: Vec<bool> = (0..power(SIDE + 1, D))
        .map(|flat| {
            let point = unflatten::<D>(flat, SIDE + 1);
            samples[place(point)] < 0.0 && !beyond(point)
        })
        .collect();
    let is_inside = |point: [usize; D]| inside[flatten(point, SIDE + 1)];

    let words = (D * block_cells(D)).div_ceil(64);
    let mut part = Part {
        positions: Vec::new(),
        normals: Vec::new(),
        cut: vec![0; words],
        before: Vec::with_capacity(words),
        cubes: Vec::new(),
    };
    for edge in 0..D * block_cells(D) {
        if edge % 64 == 0 {
            part.before.push(part.positions.len() as u16);
        }
        let (axis, low) = (edge / block_cells(D), unflatten::<D>(edge % block_cells(D), SIDE));
        let mut high = low;
        high[axis] += 1;
        if is_inside(low) == is_inside(high) {
            continue;
        }
        part.cut[edge / 64] |= 1 << (edge % 64);
        let cell: [i32; D] = std::array::from_fn(|a| first[a] + low[a] as i32);
        let mut position = std::array::from_fn(|a| lattice.coordinate(a, cell[a]));
        let outward = if is_inside(low) { 1.0 } else { -1.0 };
        let mut normal = std::array::from_fn(|a| if a == axis { outward } else { 0.0 });
        if lattice.is_beyond(axis, cell[axis]) || lattice.is_beyond(axis, cell[axis] + 1) {
            let wall = if outward > 0.0 { cell[axis] + 1 } else { cell[axis] };
            position[axis] = lattice.coordinate(axis, wall);
        } else {
            let (a, b) = (samples[place(low)], samples[place(high)]);
            let share = (a / (a - b)).clamp(MARGIN, 1.0 - MARGIN);
            let (from, to) = (position[axis], lattice.coordinate(axis, cell[axis] + 1));
            position[axis] = from + share * (to - from);
            let slope = |at: usize, a: usize| samples[at + stride(a)] - samples[at - stride(a)];
            let gradient: [f32; D] =
                std::array::from_fn(|a| (1.0 - share) * slope(place(low), a) + share * slope(place(high), a));
            let length = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
            if length > 1e-6 * lattice.dx {
                normal = gradient.map(|g| g / length);
            }
        }
        part.positions.push(position);
        part.normals.push(normal);
    }
    for cube in 0..block_cells(D) {
        let low = unflatten::<D>(cube, SIDE);
        let pattern = (0..1usize << D).fold(0, |pattern, corner| {
            let point = std::array::from_fn(|axis| low[axis] + (corner >> axis & 1));
            pattern | usize::from(is_inside(point)) << corner
        });
        if pattern != 0 && pattern != (1 << (1 << D)) - 1 {
            part.cubes.push((cube as u16, pattern as u8));
        }
    }
    part
}

/// Pass two: a unit's elements.
fn connect<const D: usize>(
    units: &Units<D>,
    parts: &[Part<D>],
    first_vertex: &[u32],
    unit: usize,
) -> Vec<[u32; D]> {
    let table = Table::get(D);
    let coords = units.list[unit];
    let above: Vec<u32> = (0..1usize << D)
        .map(|corner| units.place(std::array::from_fn(|axis| coords[axis] + (corner >> axis & 1) as i32)))
        .collect();
    let mut elements = Vec::new();
    for &(cube, pattern) in &parts[unit].cubes {
        let low = unflatten::<D>(cube as usize, SIDE);
        for edges in table.edges(pattern as usize).chunks_exact(D) {
            elements.push(std::array::from_fn(|i| {
                let point: [usize; D] =
                    std::array::from_fn(|axis| low[axis] + (edges[i].corner() >> axis & 1));
                let owner = (0..D).fold(0, |owner, axis| owner | (point[axis] / SIDE) << axis);
                let owner = above[owner] as usize;
                let bit = edges[i].axis() * block_cells(D) + flatten(point.map(|c| c % SIDE), SIDE);
                let part = &parts[owner];
                let earlier = (part.cut[bit / 64] & ((1 << (bit % 64)) - 1)).count_ones();
                first_vertex[owner] + u32::from(part.before[bit / 64]) + earlier
            }));
        }
    }
    elements
}
