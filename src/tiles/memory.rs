//! What the next step has to know of the tiles of this one.

use crate::archive::{ArchiveError, Reader, Writer};
use crate::grid::{Blocks, SIDE};
use crate::math::AffineMotion;

use super::TileSize;
use super::tiling::{Division, TileRules, Tiling};

/// How the tiles of the last two steps moved, and by which rules they were laid out. Where they are follows from that
/// and from where the fluids are.
#[derive(Clone, Debug, Default)]
pub struct TileMemory {
    /// The rules for tiles of liquid and of air with mass.
    pub rules: [Option<TileRules>; 2],
    /// Names and motions of the tiles, in their order.
    now: Vec<(u64, AffineMotion)>,
    /// Names and motions of the tiles of the step before.
    before: Vec<(u64, AffineMotion)>,
}

impl TileMemory {
    /// Remembers how tiles move that were laid out by these rules; none if there are no tiles.
    pub fn note<const D: usize>(&mut self, rules: [Option<TileRules>; 2], tiling: Option<&Tiling<D>>) {
        self.rules = rules;
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
        match tiling {
            Some(tiling) => self.now.extend(tiling.tiles.iter().map(|tile| (tile.id, tile.motion))),
            None => self.before.clear(),
        }
    }

    /// Writes rules, names and motions.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.value("tiles.rules", &self.rules)?;
        for (name, tiles) in [("now", &self.now), ("before", &self.before)] {
            let (ids, rows): (Vec<u64>, Vec<[[f64; 4]; 3]>) =
                tiles.iter().map(|(id, motion)| (*id, *motion.rows())).unzip();
            out.array(&format!("tiles.{name}.id"), &ids)?;
            out.array(&format!("tiles.{name}.field"), &rows)?;
        }
        Ok(())
    }

    /// Reads what [`TileMemory::save`] wrote.
    pub fn load(from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let rules: [Option<TileRules>; 2] = from.value("tiles.rules")?;
        ArchiveError::unless(
            rules.iter().flatten().all(TileRules::are_sane),
            "tiles.rules",
            "makes no sense",
        )?;
        let mut tiles = |name: &str| {
            let ids = from.array::<u64>(&format!("tiles.{name}.id"), u32::MAX as usize)?;
            let rows = from.array_of::<[[f64; 4]; 3]>(&format!("tiles.{name}.field"), ids.len())?;
            Ok::<_, ArchiveError>(ids.into_iter().zip(rows.into_iter().map(AffineMotion::from)).collect())
        };
        Ok(TileMemory { rules, now: tiles("now")?, before: tiles("before")? })
    }
}

impl TileRules {
    /// Whether tiles can be laid out by these rules at all.
    fn are_sane(&self) -> bool {
        let widths = match self.division {
            Division::Whole => [SIDE; 2],
            Division::Lattice(TileSize { least, most }) => [least, most],
        };
        let is_width = |width: &usize| (SIDE..=1 << 12).contains(width) && width.is_power_of_two();
        let bands = [self.surface_band, self.wall_band];
        widths.iter().all(is_width) && bands.iter().all(|&band| band <= 1 << 12) && self.density > 0.0
    }
}

impl<const D: usize> Tiling<D> {
    /// Whether tiles that were laid out anew are those that are remembered.
    pub fn is_remembered(&self, memory: &TileMemory) -> bool {
        self.tiles.iter().map(|tile| tile.id).eq(memory.now.iter().map(|(id, _)| *id))
    }

    /// Gives tiles that were laid out anew, by the rules that are remembered, the motion that they had.
    pub fn recall(&mut self, blocks: &Blocks<D>, memory: &TileMemory) {
        self.tiles.iter_mut().zip(&memory.now).for_each(|(tile, (_, motion))| tile.motion = *motion);
        self.before.clear();
        self.before.extend(memory.before.iter().copied());
        self.find_interior(blocks);
    }
}
