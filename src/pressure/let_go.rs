//! Liquid that leaves walls.
//!
//! Nothing may flow into a wall, but whatever is incompressible cannot flow away from it either: suction holds it there, in thick
//! layers, even under ceilings. So cells along walls get an inequality in place of their equation (FVF §4),
//!
//! ```text
//! 0 ≤ q − q_air   ⟂   (A q − b) ≥ 0
//! ```
//!
//! either pressure presses the liquid against the wall, or it is that of the air and the cell may expand. The set of these *loose*
//! cells is found around the solver: solve with a guess of it, set free what sucks, hold what flows into the wall, and solve again
//! if anything changed. `A` is an M-matrix, so this ends (policy iteration); begun with the set of the last step one round is
//! enough for most.
//!
//! A loose cell stays an unknown. It is tied to the air by a link so strong that their pressures are the same to a millionth, and
//! what flows through that link is by how much the cell expands.

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::{Label, Nearness};
use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, Field, SIDE, across, block_cells};
use crate::linear::SharedLink;
use crate::math::{Real, Side, Vector, unflatten};
use crate::tiles::Tiling;

use super::assemble::BlockCoefficients;
use super::{Problem, Projection};

/// How liquid may leave walls in a projection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LetGo {
    /// Suction that a wetted wall stands: how far scaled pressure may fall below that of the air, m/s.
    pub suction: Real,
    /// Whether air has to get in: liquid then leaves a wall only beside air, and beside cells that air has got into. Otherwise a
    /// vacuum opens, as where air is nothing anyway.
    pub needs_air: bool,
}

/// Most solves of a projection; what is left to change then waits for the next one.
const MOST_ROUNDS: usize = 3;
/// The link that ties a loose cell to the air, in whole links.
const TIE: f32 = (1 << 20) as f32;
/// Less suction than this share of the largest pressure along walls is taken for noise, and so is less inflow.
const NOISE: Real = 1e-4;

/// Cells of liquid that are leaving walls.
#[derive(Clone, Debug)]
pub struct LooseCells {
    /// A bit per cell. Without meaning, and maybe too short, if there are none.
    bits: Field<u64>,
    count: usize,
}

impl LooseCells {
    /// None, on grids of that dimension.
    pub fn new(dimension: usize) -> Self {
        LooseCells { bits: Field::new(masks::words(dimension), 0), count: 0 }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a cell of a block is one.
    #[inline]
    pub fn has(&self, slot: usize, local: usize) -> bool {
        self.count > 0 && self.bits.block(slot)[local / 64] >> (local % 64) & 1 == 1
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.bits.as_mut_slice().fill(0);
            self.count = 0;
        }
    }

    /// Follows a change of blocks: comes after every one.
    pub fn follow<const D: usize>(&mut self, blocks: &Blocks<D>) {
        if self.count > 0 {
            self.bits.resize(blocks.slot_count());
            blocks.fresh().iter().for_each(|&slot| self.bits.block_mut(slot as usize).fill(0));
        }
    }

    fn insert(&mut self, slot: usize, local: usize) {
        self.bits.block_mut(slot)[local / 64] |= 1 << (local % 64);
        self.count += 1;
    }

    /// Takes them and the cells beside them out of a set of cells, given as a byte per row of a block: liquid that parts from a
    /// wall leaves a gap there, which is not to be filled up. Where walls leave but a sliver of a cell, that never held anything,
    /// and the gap opens in the next one.
    pub fn exclude_from<const D: usize>(&self, blocks: &Blocks<D>, rows: &mut Field<u8>) {
        if self.is_empty() {
            return;
        }
        let mut exclude = |slot: usize, cells: &Bits| {
            let bytes = cells.iter().flat_map(|word| word.to_le_bytes());
            rows.block_mut(slot).iter_mut().zip(bytes).for_each(|(row, cells)| *row &= !cells);
        };
        for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
            let mut loose = masks::NONE;
            loose.iter_mut().zip(self.bits.block(slot)).for_each(|(to, from)| *to = *from);
            if loose == masks::NONE {
                continue;
            }
            exclude(slot, &loose);
            for (axis, side) in (0..D).flat_map(|axis| Side::BOTH.map(|side| (axis, side))) {
                exclude(slot, &masks::beside::<D>(&loose, axis, side, &masks::NONE));
                let next = blocks.beside(slot, axis, side.opposite()) as usize;
                exclude(next, &masks::beside::<D>(&masks::NONE, axis, side, &loose));
            }
        }
    }

    /// Writes them.
    pub(super) fn save<const D: usize>(
        &self,
        blocks: &Blocks<D>,
        out: &mut Writer<'_>,
    ) -> Result<(), ArchiveError> {
        out.value("pressure.loose", &self.count)?;
        if self.is_empty() { Ok(()) } else { self.bits.save("pressure.loose.cells", blocks, out) }
    }

    /// Reads what [`Self::save`] wrote.
    pub(super) fn load<const D: usize>(
        blocks: &Blocks<D>,
        from: &mut Reader<'_>,
    ) -> Result<Self, ArchiveError> {
        let mut loose = LooseCells { count: from.value("pressure.loose")?, ..LooseCells::new(D) };
        if loose.count > 0 {
            loose.bits.load("pressure.loose.cells", blocks, from)?;
            let found: usize = loose.bits.as_slice().iter().map(|word| word.count_ones() as usize).sum();
            ArchiveError::unless(
                found == loose.count,
                "pressure.loose",
                "counts other cells than there are",
            )?;
        }
        Ok(loose)
    }
}

/// No air gets at a cell.
const SEALED: u32 = u32::MAX;
/// Air at zero pressure does, or a vacuum.
const ZERO: u32 = u32::MAX - 1;

/// A cell of liquid along a wall.
#[derive(Clone, Copy, Debug)]
struct WallCell {
    slot: u32,
    local: u32,
    /// Where it is in fields.
    cell: u32,
    /// The air it touches: the unknown that this shares, [`ZERO`] or [`SEALED`].
    touches: u32,
    /// Whether it is loose.
    is_loose: bool,
    /// The air it is tied to if it is, with the same meaning.
    air: u32,
    /// Its ground without the tie, and how large the surface is that this acts through.
    ground: [f32; 2],
}

/// The cells along walls of one projection, and which of them are loose.
#[derive(Clone, Debug, Default)]
pub(super) struct CellsAlongWalls {
    /// In the order of blocks.
    cells: Vec<WallCell>,
    /// Where cells stand in that list, in the order of cells; only if air has to get from one to the next.
    order: Vec<(u32, u32)>,
    /// Links of the bubbles' own.
    links: usize,
    /// By component: whether it touches a free surface.
    is_grounded: Vec<bool>,
    /// Those that the last solution changes.
    changes: Vec<u32>,
}

impl CellsAlongWalls {
    /// Finds them in an assembled system, loose as they were.
    pub fn find<const D: usize>(
        &mut self,
        problem: &Problem<'_, D>,
        rule: &LetGo,
        system: &Projection<D>,
        tiles: Option<&Tiling<D>>,
        loose: &mut LooseCells,
    ) {
        loose.bits.resize(problem.blocks.slot_count());
        self.cells.clear();
        self.links = system.shared_links.len();
        if !rule.needs_air {
            self.find_grounded(problem, system);
        }
        let has_sticky = problem.walls.any_sticky();
        for &slot in system.live.as_slice() {
            let slot = slot as usize;
            if problem.boundary.nearness(slot) == Nearness::Clear {
                continue;
            }
            let (labels, component) = (system.label.block(slot), problem.roles.component.block(slot));
            let cut = problem.boundary.bits(slot).cut;
            for (word, &bits) in cut.iter().enumerate().take(masks::words(D)) {
                for local in masks::each_in(bits).map(|bit| word * 64 + bit) {
                    let is_whole = tiles.is_some_and(|tiles| masks::has(tiles.inside(slot), local));
                    if labels[local] != Label::Liquid
                        || is_whole
                        || has_sticky && is_sticky(problem, slot, local)
                    {
                        continue;
                    }
                    let cell = slot * block_cells(D) + local;
                    let touches = match rule.needs_air {
                        true => air_beside(problem, &system.label, slot, local),
                        false if self.is_grounded.get(component[local] as usize) == Some(&true) => ZERO,
                        false => SEALED,
                    };
                    self.cells.push(WallCell {
                        slot: slot as u32,
                        local: local as u32,
                        cell: cell as u32,
                        touches,
                        is_loose: loose.has(slot, local),
                        air: SEALED,
                        ground: [system.ground[cell], system.ground_area[cell]],
                    });
                }
            }
        }
        self.order.clear();
        if rule.needs_air {
            self.order.extend(self.cells.iter().enumerate().map(|(at, wall)| (wall.cell, at as u32)));
            self.order.sort_unstable();
        }
        self.tie_to_air(problem);
    }

    /// Liquid that nothing but walls surrounds has no pressure to compare with.
    fn find_grounded<const D: usize>(&mut self, problem: &Problem<'_, D>, system: &Projection<D>) {
        self.is_grounded.clear();
        self.is_grounded.resize(problem.roles.node.len(), false);
        for &slot in system.live.as_slice() {
            let slot = slot as usize;
            if system.coefficients.block(slot)[0] != BlockCoefficients::Individual {
                continue;
            }
            let component = problem.roles.component.block(slot);
            for (&component, _) in
                component.iter().zip(system.ground.block(slot)).filter(|(_, ground)| **ground > 0.0)
            {
                if let Some(grounded) = self.is_grounded.get_mut(component as usize) {
                    *grounded = true;
                }
            }
        }
    }

    /// The cell in the list that an open face leads to.
    fn beside<const D: usize>(
        &self,
        problem: &Problem<'_, D>,
        wall: &WallCell,
        axis: usize,
        side: Side,
    ) -> Option<&WallCell> {
        let (slot, local) = (wall.slot as usize, wall.local as usize);
        let (other_slot, other) = cell_beside(problem.blocks, slot, local, axis, side);
        let face = if side == Side::Low { (slot, local) } else { (other_slot, other) };
        if problem.boundary.open[axis].block(face.0)[face.1] == 0.0 {
            return None;
        }
        let cell = (other_slot * block_cells(D) + other) as u32;
        let at = self.order.binary_search_by_key(&cell, |entry| entry.0).ok()?;
        Some(&self.cells[self.order[at].1 as usize])
    }

    /// The air that a loose cell beside one is tied to.
    fn air_of_neighbours<const D: usize>(&self, problem: &Problem<'_, D>, wall: &WallCell) -> u32 {
        let faces = (0..D).flat_map(|axis| Side::BOTH.map(|side| (axis, side)));
        let found = faces.filter_map(|(axis, side)| self.beside(problem, wall, axis, side));
        found
            .filter(|other| other.is_loose)
            .map(|other| other.air)
            .find(|&air| air != SEALED)
            .unwrap_or(SEALED)
    }

    /// Ties loose cells to the air that they touch, themselves or through others. Those that no air gets at are not loose.
    fn tie_to_air<const D: usize>(&mut self, problem: &Problem<'_, D>) {
        for wall in &mut self.cells {
            wall.air = if wall.is_loose { wall.touches } else { SEALED };
        }
        loop {
            let mut any = false;
            for at in 0..self.cells.len() {
                let wall = self.cells[at];
                if wall.is_loose && wall.air == SEALED {
                    let air = self.air_of_neighbours(problem, &wall);
                    self.cells[at].air = air;
                    any |= air != SEALED;
                }
            }
            if !any {
                break;
            }
        }
        self.cells.iter_mut().for_each(|wall| wall.is_loose &= wall.air != SEALED);
    }

    /// Ties loose cells to the air in the system, and gives them its pressure to start from. All others are as they were.
    pub fn tie<const D: usize>(&self, problem: &Problem<'_, D>, to: &mut Projection<D>, q: &mut Field<f64>) {
        to.shared_links.truncate(self.links);
        for wall in &self.cells {
            let cell = wall.cell as usize;
            let [mut ground, mut area] = wall.ground;
            if wall.is_loose {
                q[cell] = air_pressure(wall.air, &to.shared_q);
                // Blocks with ties are like no others.
                to.known.block_mut(wall.slot as usize)[0] = None;
                match wall.air {
                    ZERO => (ground, area) = (ground + TIE, area + 1.0),
                    node => to.shared_links.push(SharedLink { node, cell: wall.cell, link: TIE, area: 1.0 }),
                }
            }
            (to.ground[cell], to.ground_area[cell]) = (ground, area);
        }
        if !problem.roles.all_free() {
            to.shared.rebuild(problem.roles.weight, &to.shared_links);
        }
    }

    /// Looks at a solution: sets free what sucks at its wall, and holds what flows into it. Returns whether anything changed.
    pub fn revise<const D: usize>(
        &mut self,
        problem: &Problem<'_, D>,
        rule: &LetGo,
        q: &Field<f64>,
        shared_q: &[f64],
    ) -> bool {
        let fall = problem.impulse.iter().fold(0.0, |most: Real, impulse| most.max(impulse.abs()));
        let most = |most: Real, wall: &WallCell| most.max(q[wall.cell as usize].abs());
        let noise = NOISE * self.cells.iter().fold(fall, most);
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        for (at, wall) in self.cells.iter().enumerate() {
            let own = q[wall.cell as usize];
            let changed = if wall.is_loose {
                let outflow = f64::from(TIE) * (air_pressure(wall.air, shared_q) - own);
                outflow < -noise
            } else {
                let air = match wall.touches {
                    SEALED if rule.needs_air => self.air_of_neighbours(problem, wall),
                    air => air,
                };
                air != SEALED && own < air_pressure(air, shared_q) - rule.suction - noise
            };
            if changed {
                changes.push(at as u32);
            }
        }
        changes.iter().for_each(|&at| self.cells[at as usize].is_loose ^= true);
        let any = !changes.is_empty();
        self.changes = changes;
        if any {
            self.tie_to_air(problem);
        }
        any
    }

    /// Keeps those that are loose for the next projection.
    pub fn keep(&self, loose: &mut LooseCells) {
        loose.clear();
        for wall in self.cells.iter().filter(|wall| wall.is_loose) {
            loose.insert(wall.slot as usize, wall.local as usize);
        }
    }
}

/// Solves as often as it takes to know which cells along walls are loose, and returns how often that was.
pub(super) fn solve_in_rounds<const D: usize>(
    problem: &Problem<'_, D>,
    tiles: Option<&Tiling<D>>,
    projection: &mut Projection<D>,
    q: &mut Field<f64>,
    loose: &mut LooseCells,
    mut solve: impl FnMut(&mut Projection<D>, &mut Field<f64>) -> bool,
) -> usize {
    let Some(rule) = &problem.let_go else {
        loose.clear();
        solve(projection, q);
        return 1;
    };
    let mut walls = std::mem::take(&mut projection.wall_cells);
    walls.find(problem, rule, projection, tiles, loose);
    let mut rounds = 0;
    loop {
        walls.tie(problem, projection, q);
        let goes_on = solve(projection, q);
        rounds += 1;
        let changed = walls.revise(problem, rule, q, &projection.shared_q);
        if !changed || !goes_on || rounds == MOST_ROUNDS {
            break;
        }
    }
    walls.keep(loose);
    projection.wall_cells = walls;
    rounds
}

/// The pressure of what a cell is tied to.
fn air_pressure(air: u32, shared_q: &[f64]) -> f64 {
    if air == ZERO { 0.0 } else { shared_q[air as usize] }
}

/// The cell beside one: its slot, and where it is there.
fn cell_beside<const D: usize>(
    blocks: &Blocks<D>,
    slot: usize,
    local: usize,
    axis: usize,
    side: Side,
) -> (usize, usize) {
    let (other, is_beyond) = across(local, axis, side);
    (if is_beyond { blocks.beside(slot, axis, side) as usize } else { slot }, other)
}

/// The air that a cell touches through its most open face.
fn air_beside<const D: usize>(
    problem: &Problem<'_, D>,
    label: &Field<Label>,
    slot: usize,
    local: usize,
) -> u32 {
    let (mut widest, mut air) = (0.0, SEALED);
    for (axis, side) in (0..D).flat_map(|axis| Side::BOTH.map(|side| (axis, side))) {
        let (other_slot, other) = cell_beside(problem.blocks, slot, local, axis, side);
        let face = if side == Side::Low { (slot, local) } else { (other_slot, other) };
        let share = problem.boundary.open[axis].block(face.0)[face.1];
        if share > widest && label.block(other_slot)[other] == Label::Air {
            let component = problem.roles.component.block(other_slot)[other];
            air = problem.roles.node_of(component).map_or(ZERO, |node| node as u32);
            widest = share;
        }
    }
    air
}

/// Whether a cell is along a wall that never lets go.
fn is_sticky<const D: usize>(problem: &Problem<'_, D>, slot: usize, local: usize) -> bool {
    let (blocks, dx) = (problem.blocks, problem.blocks.grid().dx);
    let (first, cell) = (blocks.first_cell(slot), unflatten::<D>(local, SIDE));
    let centre = Vector::from_fn(|k, _| ((first[k] + cell[k] as i32) as Real + 0.5) * dx);
    // As far as the corners of a cell, and a little more for rounding.
    problem.walls.sticky_distance(&centre, problem.time) < 0.501 * (D as Real).sqrt() * dx
}
