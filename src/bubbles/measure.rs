//! How large the components are, and who touches whom.

use crate::geometry::{Boundary, FAR, Label, Settled};
use crate::grid::{
    Blocks, CHUNKS, Field, Halo, SIDE, block_cells, for_each_block_collecting, halo_cells, load_halo,
};
use crate::math::{Real, Sets, Side, unflatten};

use super::fill::{Components, NO_COMPONENT};
use super::near::{AIRLESS, NOWHERE, Near, NearBlock, NearMap, SEVERAL, SPRAY, code};
use super::tally::Pairs;

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

const HALO: Halo = Halo::new(1);

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
                measure_block(blocks, boundary, surface, components, slot, &mut near, chunk);
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
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    components: &Components<D>,
    slot: usize,
    near: &mut NearBlock<'_>,
    chunk: &mut Chunk,
) {
    let dx = blocks.grid().dx as f32;
    let whole = boundary.bits(slot).close.iter().all(|&word| word == 0) && !reaches_out(blocks, slot);
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
    visit_cells(blocks, boundary, surface, components, slot, &mut found);
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

/// Someone to be told what a block's cells hold.
trait VisitCells {
    /// A row of whole cells, all of one component, with no other beside them.
    fn row(&mut self, first: usize, component: u32, is_air: bool);
    /// A row of cells without a component.
    fn solid_row(&mut self, first: usize);
    /// A row of cells that walls may cut and that may be solid: each, as far as it has `room`, belongs to its component
    /// in
    /// `of` alone.
    fn cut_row(&mut self, first: usize, of: &[u32; SIDE], room: &[f32; SIDE], is_air: &impl Fn(u32) -> bool);
    /// Any other cell.
    fn cell(&mut self, local: usize, cell: &CellContent);
}

/// What a cell holds.
struct CellContent {
    /// Its own component and that component's volume in it, in cells.
    own: Option<(u32, Real)>,
    /// The component of the other phase that has the rest.
    other: Option<(u32, Real)>,
    is_air: bool,
    /// Air behind its faces, if it is liquid.
    air_faces: [u32; 6],
    /// The air it touches, as particles remember it.
    airs: u16,
}

/// Looks at every cell of a block: whose it is, and how much of it.
#[inline(always)]
fn visit_cells<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    components: &Components<D>,
    slot: usize,
    visitor: &mut impl VisitCells,
) {
    // No more room is cleared than a block has cells.
    match D {
        2 => {
            visit_cells_of::<D, { halo_cells(HALO, 2) }>(blocks, boundary, surface, components, slot, visitor)
        }
        _ => {
            visit_cells_of::<D, { halo_cells(HALO, 3) }>(blocks, boundary, surface, components, slot, visitor)
        }
    }
}

/// The work of [`visit_cells`], for blocks of so many `CELLS`, margins included.
#[inline(always)]
fn visit_cells_of<const D: usize, const CELLS: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    components: &Components<D>,
    slot: usize,
    visitor: &mut impl VisitCells,
) {
    let dx = blocks.grid().dx as f32;
    let close = &boundary.bits(slot).close;
    let mut of = [NO_COMPONENT; CELLS];
    load_halo(blocks, &components.of, slot, HALO, &mut of);
    // Only where components meet does it matter how far the surface is.
    let (mut distance, mut is_loaded) = ([0f32; CELLS], false);
    let mut corner = [1f32; CELLS];
    if close.iter().any(|&word| word != 0) {
        load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
    }
    let is_air = |component: u32| components.list[component as usize].phase == Label::Air;
    let (partly_out, low) = (reaches_out(blocks, slot), blocks.first_cell(slot));
    let is_inside = |local: usize| {
        let place = unflatten::<D>(local, SIDE);
        blocks.grid().contains(std::array::from_fn(|k| low[k] + place[k] as i32))
    };
    for first in (0..block_cells(D)).step_by(SIDE) {
        let at = HALO.index(unflatten::<D>(first, SIDE).map(|c| c as i32));
        let partly_out = partly_out && !(is_inside(first) && is_inside(first + SIDE - 1));
        let row = row_of(&of, at);
        let own = row[0];
        let uniform = row.iter().fold(true, |same, &component| same & (component == own));
        if uniform && own == NO_COMPONENT {
            visitor.solid_row(first);
            continue;
        }
        // Eight cells at once: who has another component beside it?
        let mut meets = [0u32; SIDE];
        for axis in 0..D {
            for side in [at - HALO.stride(axis), at + HALO.stride(axis)] {
                for ((meets, own), next) in meets.iter_mut().zip(row).zip(row_of(&of, side)) {
                    *meets |= (next != own) as u32 & (*next != NO_COMPONENT) as u32;
                }
            }
        }
        let close = (close[first / 64] >> (first % 64)) & 0xff;
        if meets == [0; SIDE] && uniform && close == 0 && !partly_out {
            visitor.row(first, own, is_air(own));
            continue;
        }
        let mut room = if close != 0 { rooms::<D>(&corner, at, close) } else { [1.0; SIDE] };
        if partly_out {
            (0..SIDE).filter(|x| !is_inside(first + x)).for_each(|x| room[x] = 0.0);
        }
        if meets == [0; SIDE] {
            visitor.cut_row(first, row, &room, &is_air);
            continue;
        }
        if !is_loaded {
            load_halo(blocks, surface, slot, HALO, &mut distance);
            is_loaded = true;
        }
        for x in 0..SIDE {
            let (local, at, own) = (first + x, at + x, of[at + x]);
            let mut cell = CellContent {
                own: None,
                other: None,
                is_air: false,
                air_faces: [NO_COMPONENT; 6],
                airs: AIRLESS,
            };
            if own == NO_COMPONENT {
                visitor.cell(local, &cell);
                continue;
            }
            cell.is_air = is_air(own);
            if cell.is_air {
                cell.airs = code(own);
            }
            let mut other = NO_COMPONENT;
            if meets[x] != 0 {
                let open = |axis, side| boundary.is_open(blocks, slot, local, axis, side);
                other = look_around::<D>(&of, &distance, at, &is_air, open, &mut cell);
            }
            let liquid = (0.5 - distance[at] / dx).clamp(0.0, 1.0);
            let mine = match other {
                NO_COMPONENT => 1.0,
                _ if cell.is_air => 1.0 - liquid,
                _ => liquid,
            };
            cell.own = Some((own, (room[x] * mine) as Real));
            if other != NO_COMPONENT {
                cell.other = Some((other, (room[x] * (1.0 - mine)) as Real));
            }
            visitor.cell(local, &cell);
        }
    }
}

/// Eight components in a row.
#[inline(always)]
fn row_of(of: &[u32], start: usize) -> &[u32; SIDE] {
    of[start..start + SIDE].try_into().expect("a row has SIDE cells")
}

/// Looks through a cell's open faces: notes the air behind them, and returns the neighbour of the other phase whose
/// centre lies deepest in it, which gets this cell's share of that phase.
#[inline(always)]
fn look_around<const D: usize>(
    of: &[u32],
    distance: &[f32],
    at: usize,
    is_air: &impl Fn(u32) -> bool,
    open: impl Fn(usize, Side) -> bool,
    cell: &mut CellContent,
) -> u32 {
    let (own, mut other, mut depth) = (of[at], NO_COMPONENT, 0f32);
    for axis in 0..D {
        let stride = HALO.stride(axis);
        for (side, next) in [(Side::Low, at - stride), (Side::High, at + stride)] {
            let component = of[next];
            if component == own
                || component == NO_COMPONENT
                || is_air(component) == cell.is_air
                || !open(axis, side)
            {
                continue;
            }
            if distance[next].abs() > depth || other == NO_COMPONENT {
                (other, depth) = (component, distance[next].abs());
            }
            if !cell.is_air {
                let seen = code(component);
                cell.airs = if cell.airs == AIRLESS || cell.airs == seen { seen } else { SEVERAL };
                cell.air_faces[2 * axis + side.index()] = component;
            }
        }
    }
    other
}

/// Whether a block holds cells beyond the domain. Behind its open sides those are air, but none that counts: how many
/// of them are stored is chance.
fn reaches_out<const D: usize>(blocks: &Blocks<D>, slot: usize) -> bool {
    let (first, cells) = (blocks.first_cell(slot), blocks.grid().cells);
    (0..D).any(|k| first[k] < 0 || first[k] + SIDE as i32 > cells[k] as i32)
}

/// Passes on the air alone, whole rows at once.
struct AirOnly<F>(F);

impl<F: FnMut(u32, usize, usize, Real)> VisitCells for AirOnly<F> {
    #[inline(always)]
    fn row(&mut self, first: usize, component: u32, is_air: bool) {
        if is_air {
            (self.0)(component, first, SIDE, 1.0);
        }
    }

    fn solid_row(&mut self, _: usize) {}

    #[inline(always)]
    fn cut_row(&mut self, first: usize, of: &[u32; SIDE], room: &[f32; SIDE], is_air: &impl Fn(u32) -> bool) {
        for (x, (&component, &room)) in of.iter().zip(room).enumerate() {
            if component != NO_COMPONENT && is_air(component) {
                (self.0)(component, first + x, 1, room as Real);
            }
        }
    }

    #[inline(always)]
    fn cell(&mut self, local: usize, cell: &CellContent) {
        let air = if cell.is_air { cell.own } else { cell.other };
        if let Some((component, volume)) = air {
            (self.0)(component, local, 1, volume);
        }
    }
}

/// Calls `share(component, first, count, volume)` for the air in a block: `count` cells in a row, from `first` on, hold
/// `volume` each, in cells.
pub fn air_shares<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    components: &Components<D>,
    slot: usize,
    share: impl FnMut(u32, usize, usize, Real),
) {
    visit_cells(blocks, boundary, surface, components, slot, &mut AirOnly(share));
}

/// How much of each cell of a row walls leave free, from their distances at its corners; `close` has a bit for every
/// cell that a wall may reach.
#[inline(always)]
fn rooms<const D: usize>(corner: &[f32], at: usize, close: u64) -> [f32; SIDE] {
    // Corners that deep in a wall cannot belong to such a cell: they lie in a block that is not stored, where all is
    // air.
    let known = |corner: f32| if corner <= -FAR { FAR } else { corner };
    let mut column = [0f32; SIDE + 1];
    for edge in 0..1 << (D - 1) {
        let start = at + (1..D).map(|k| (edge >> (k - 1) & 1) * HALO.stride(k)).sum::<usize>();
        for (sum, &corner) in column.iter_mut().zip(&corner[start..=start + SIDE]) {
            *sum += known(corner);
        }
    }
    let share = 1.0 / (1 << D) as f32;
    std::array::from_fn(|x| match close >> x & 1 {
        0 => 1.0,
        _ => (0.5 + share * (column[x] + column[x + 1])).clamp(0.0, 1.0),
    })
}
