//! How large the components are, and who touches whom.

mod visit;

use crate::geometry::{Boundary, Label, Settled};
use crate::grid::{Blocks, CHUNKS, Field, SIDE, block_cells, for_each_block_collecting};
use crate::math::{Real, Sets};

use super::fill::{Components, NO_COMPONENT};
use super::near::{AIRLESS, NOWHERE, Near, NearBlock, NearMap, SPRAY, code};
use super::tally::Pairs;

use visit::{CellContent, VisitCells, visit_cells};
pub use visit::{FilledBlocks, air_shares};

/// How large a component is. Volumes are in cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extent {
    /// With sub-cell precision: partly filled cells and cells cut by walls count in part.
    pub volume: Real,
    /// Of a liquid: cells at least one cell below the surface.
    pub deep: Real,
}

/// Sizes of all components, and the memory to find them.
#[derive(Clone, Debug)]
pub struct Measure<const D: usize> {
    /// Per component.
    pub extent: Vec<Extent>,
    /// Which group of touching components each component belongs to, named by its first member: air and liquid that
    /// share an open face are one container's content (a combined region).
    pub basin: Vec<u32>,
    /// The components that particles in each cell are part of.
    pub near: NearMap,
    /// What each block held last.
    kept: Field<SettledVolume>,
    chunks: Box<[Chunk; CHUNKS]>,
    touching: Pairs,
    sets: Sets,
}

/// What a settled block held when it was last measured.
#[derive(Clone, Copy, Debug)]
struct SettledVolume {
    /// The only component with a part in it; none if it was not settled.
    component: u32,
    /// How much of it, cells.
    volume: Real,
}

impl SettledVolume {
    const UNKNOWN: SettledVolume = SettledVolume { component: NO_COMPONENT, volume: 0.0 };
}

/// What one chunk of blocks found.
#[derive(Clone, Debug, Default)]
struct Chunk {
    extent: Vec<Extent>,
    touching: Pairs,
}

impl<const D: usize> Measure<D> {
    /// Nothing measured yet.
    pub fn new() -> Self {
        Measure {
            extent: Vec::new(),
            basin: Vec::new(),
            near: NearMap::new(D),
            kept: Field::new(1, SettledVolume::UNKNOWN),
            chunks: Box::new(std::array::from_fn(|_| Chunk::default())),
            touching: Pairs::default(),
            sets: Sets::default(),
        }
    }

    /// Measures the components of the last fill.
    pub fn update(
        &mut self,
        blocks: &Blocks<D>,
        boundary: &Boundary<D>,
        surface: &Field<f32>,
        components: &Components<D>,
        settled: &Settled,
    ) {
        let filled = FilledBlocks { blocks, boundary, surface, components };
        let count = components.len();
        for chunk in self.chunks.iter_mut() {
            chunk.extent.clear();
            chunk.extent.resize(count, Extent::default());
            chunk.touching.clear();
        }
        self.near.resize(blocks);
        self.kept.resize(blocks.slot_count());
        blocks.fresh().iter().for_each(|&slot| self.kept[slot as usize] = SettledVolume::UNKNOWN);
        for_each_block_collecting(
            blocks.slots(),
            (self.near.parts(), self.kept.parts()),
            &mut self.chunks,
            |slot, ((cells, alike), kept), chunk| {
                // Air in a settled block is as much as it was.
                let only = components.only_component(slot);
                let is_settled = settled.is_settled(slot);
                if let Some(component) =
                    only.filter(|&component| is_settled && component == kept[0].component)
                {
                    chunk.extent[component as usize].volume += kept[0].volume;
                    return;
                }
                // The only component is summed up for the block alone: so it counts as much as when it is known
                // already, to the last bit.
                let aside = only.map(|component| std::mem::take(&mut chunk.extent[component as usize]));
                let mut near = NearBlock { cells, alike: &mut alike[0] };
                measure_block(filled, slot, &mut near, chunk);
                kept[0] = SettledVolume::UNKNOWN;
                if let Some((component, others)) = only.zip(aside) {
                    let extent = &mut chunk.extent[component as usize];
                    // Where liquid is next door, what is near may change all the same.
                    if is_settled && near.cells.iter().all(|near| near.liquid == SPRAY) {
                        kept[0] = SettledVolume { component, volume: extent.volume };
                    }
                    extent.volume += others.volume;
                    extent.deep += others.deep;
                }
            },
        );
        self.extent.clear();
        self.extent.extend(
            components.list.iter().map(|component| Extent { volume: component.far_cells as Real, deep: 0.0 }),
        );
        for chunk in self.chunks.iter() {
            for (sum, part) in self.extent.iter_mut().zip(&chunk.extent) {
                sum.volume += part.volume;
                sum.deep += part.deep;
            }
        }
        self.touching.merge(self.chunks.iter().map(|chunk| &chunk.touching));
        self.sets.reset(count);
        for (liquid, air, _) in self.touching.iter() {
            self.sets.join(liquid, air);
        }
        self.basin.clear();
        self.basin.extend((0..count as u32).map(|component| self.sets.find(component)));
    }

    /// Pairs of a liquid and an air component that share open faces, with the number of cells that do.
    pub fn touching(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.touching.iter()
    }

    /// Bytes held on the grid.
    pub fn bytes(&self) -> usize {
        self.near.bytes()
    }
}

impl<const D: usize> Default for Measure<D> {
    fn default() -> Self {
        Self::new()
    }
}

fn measure_block<const D: usize>(
    filled: FilledBlocks<'_, D>,
    slot: usize,
    near: &mut NearBlock<'_>,
    chunk: &mut Chunk,
) {
    let FilledBlocks { blocks, boundary, surface, components } = filled;
    let dx = blocks.grid().dx as f32;
    let whole = boundary.bits(slot).close.iter().all(|&word| word == 0) && !blocks.reaches_out(slot);
    // One component, and neither surface nor wall in a cell: the common case.
    if let Some(first) = components.only_component(slot).filter(|_| whole) {
        let distance = surface.block(slot);
        let phase = components.list[first as usize].phase;
        let cells = block_cells(D) as Real;
        if phase == Label::Liquid && distance.iter().all(|&d| d <= -dx) {
            near.fill(Near { air: AIRLESS, liquid: code(first) });
            chunk.extent[first as usize].volume += cells;
            chunk.extent[first as usize].deep += cells;
            return;
        }
        if phase == Label::Air && distance.iter().all(|&d| d >= 0.5 * dx) {
            near.fill(Near { air: code(first), liquid: SPRAY });
            chunk.extent[first as usize].volume += cells;
            return;
        }
    }
    let mut found = CellMeasure { near: near.each(), chunk, surface: surface.block(slot), below: -dx };
    visit_cells(filled, slot, &mut found);
}

/// Takes in what a block's cells hold.
struct CellMeasure<'a> {
    near: &'a mut [Near],
    chunk: &'a mut Chunk,
    surface: &'a [f32],
    below: f32,
}

impl VisitCells for CellMeasure<'_> {
    #[inline(always)]
    fn row(&mut self, first: usize, component: u32, is_air: bool) {
        let cells = first..first + SIDE;
        self.near[cells.clone()].fill(match is_air {
            true => Near { air: code(component), liquid: SPRAY },
            false => Near { air: AIRLESS, liquid: code(component) },
        });
        let extent = &mut self.chunk.extent[component as usize];
        extent.volume += SIDE as Real;
        if !is_air {
            extent.deep += self.surface[cells].iter().filter(|&&d| d <= self.below).count() as Real;
        }
    }

    #[inline(always)]
    fn solid_row(&mut self, first: usize) {
        self.near[first..first + SIDE].fill(NOWHERE);
    }

    #[inline(always)]
    fn cut_row(&mut self, first: usize, of: &[u32; SIDE], room: &[f32; SIDE], is_air: &impl Fn(u32) -> bool) {
        for (x, (&component, &room)) in of.iter().zip(room).enumerate() {
            let near = &mut self.near[first + x];
            *near = NOWHERE;
            if component == NO_COMPONENT {
                continue;
            }
            let extent = &mut self.chunk.extent[component as usize];
            extent.volume += room as Real;
            if is_air(component) {
                near.air = code(component);
            } else {
                near.liquid = code(component);
                extent.deep += (self.surface[first + x] <= self.below) as usize as Real;
            }
        }
    }

    #[inline(always)]
    fn cell(&mut self, local: usize, cell: &CellContent) {
        self.near[local] = NOWHERE;
        let Some((own, mine)) = cell.own else { return };
        let liquid = if cell.is_air { cell.other.map_or(SPRAY, |(other, _)| code(other)) } else { code(own) };
        self.near[local] = Near { air: cell.airs, liquid };
        self.chunk.extent[own as usize].volume += mine;
        if let Some((other, theirs)) = cell.other {
            self.chunk.extent[other as usize].volume += theirs;
        }
        if !cell.is_air {
            if self.surface[local] <= self.below {
                self.chunk.extent[own as usize].deep += 1.0;
            }
            for &air in cell.air_faces.iter().filter(|&&air| air != NO_COMPONENT) {
                self.chunk.touching.add(own, air, 1);
            }
        }
    }
}
