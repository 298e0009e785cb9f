//! A pass over the cells of a block: whose each is, and how much of it, as cheaply as the block allows.

use crate::geometry::{Boundary, Label, free_shares};
use crate::grid::{Blocks, Field, Halo, SIDE, block_cells, halo_cells, load_halo};
use crate::math::{Real, Side, unflatten};

use super::super::fill::{Components, NO_COMPONENT};
use super::super::near::{AIRLESS, SEVERAL, code};

const HALO: Halo = Halo::new(1);

/// Someone to be told what a block's cells hold.
pub trait VisitCells {
    /// A row of whole cells, all of one component, with no other beside them.
    fn row(&mut self, first: usize, component: u32, is_air: bool);
    /// A row of cells without a component.
    fn solid_row(&mut self, first: usize);
    /// A row of cells that walls may cut and that may be solid: each, as far as it has `room`, belongs to its
    /// component in `of` alone.
    fn cut_row(&mut self, first: usize, of: &[u32; SIDE], room: &[f32; SIDE], is_air: &impl Fn(u32) -> bool);
    /// Any other cell.
    fn cell(&mut self, local: usize, cell: &CellContent);
}

/// What a cell holds.
pub struct CellContent {
    /// Its own component and that component's volume in it, in cells.
    pub own: Option<(u32, Real)>,
    /// The component of the other phase that has the rest.
    pub other: Option<(u32, Real)>,
    /// Whether it is air itself.
    pub is_air: bool,
    /// Air behind its faces, if it is liquid.
    pub air_faces: [u32; 6],
    /// The air it touches, as particles remember it.
    pub airs: u16,
}

/// What tells whose a cell is, and how much of it.
#[derive(Clone, Copy)]
pub struct FilledBlocks<'a, const D: usize> {
    /// The grid.
    pub blocks: &'a Blocks<D>,
    /// The walls.
    pub boundary: &'a Boundary<D>,
    /// Signed distance to the surface of the liquid, metres.
    pub surface: &'a Field<f32>,
    /// The last fill.
    pub components: &'a Components<D>,
}

/// Looks at every cell of a block: whose it is, and how much of it.
#[inline(always)]
pub fn visit_cells<const D: usize>(filled: FilledBlocks<'_, D>, slot: usize, visitor: &mut impl VisitCells) {
    // No more room is cleared than a block has cells.
    match D {
        2 => visit_cells_of::<D, { halo_cells(HALO, 2) }>(filled, slot, visitor),
        _ => visit_cells_of::<D, { halo_cells(HALO, 3) }>(filled, slot, visitor),
    }
}

/// The work of [`visit_cells`], for blocks of so many `CELLS`, margins included.
#[inline(always)]
fn visit_cells_of<const D: usize, const CELLS: usize>(
    filled: FilledBlocks<'_, D>,
    slot: usize,
    visitor: &mut impl VisitCells,
) {
    let FilledBlocks { blocks, boundary, surface, components } = filled;
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
    let (partly_out, low) = (blocks.reaches_out(slot), blocks.first_cell(slot));
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
        let mut room = if close != 0 { free_shares::<D>(&corner, HALO, at, close) } else { [1.0; SIDE] };
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
    filled: FilledBlocks<'_, D>,
    slot: usize,
    share: impl FnMut(u32, usize, usize, Real),
) {
    visit_cells(filled, slot, &mut AirOnly(share));
}
