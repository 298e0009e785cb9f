//! Colours of tiles that no lattice colours.

use std::collections::HashMap;

use crate::linear::BodyFace;

/// The colours seen by the cells beside tiles so far.
#[derive(Default)]
pub(super) struct Palette {
    seen: HashMap<u32, u64>,
}

impl Palette {
    /// The first colour that no cell beside these faces has seen; none if all 64 are taken.
    pub fn pick(&mut self, faces: &[Vec<BodyFace>; 3]) -> Option<u8> {
        let cells = || faces.iter().flatten().map(|face| face.cell);
        let taken = cells().fold(0, |taken, cell| taken | self.seen.get(&cell).copied().unwrap_or(0));
        let colour = taken.trailing_ones();
        if colour == u64::BITS {
            return None;
        }
        cells().for_each(|cell| *self.seen.entry(cell).or_default() |= 1 << colour);
        Some(colour as u8)
    }
}
