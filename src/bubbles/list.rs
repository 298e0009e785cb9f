//! Which regions are listed as bubbles, and where: reports and pictures count them by one list.

use crate::geometry::Label;

use super::Record;

/// A bubble's place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BubbleIndex(u32);

impl BubbleIndex {
    /// The bubble at a place in the list.
    pub fn new(place: usize) -> Self {
        BubbleIndex(u32::try_from(place).expect("fewer bubbles than cells"))
    }

    /// The place in the list.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// All regions of air, the outside air among them, in the order of their regions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BubbleList {
    regions: Vec<u32>,
    index: Vec<Option<BubbleIndex>>,
}

impl BubbleList {
    /// Lists the air among these regions.
    pub fn new(records: &[Record]) -> Self {
        let mut list = BubbleList::default();
        for (region, record) in records.iter().enumerate() {
            let is_air = record.phase == Label::Air;
            list.index.push(is_air.then(|| BubbleIndex::new(list.regions.len())));
            if is_air {
                list.regions.push(region as u32);
            }
        }
        list
    }

    /// The bubbles' regions, in the order of the list.
    pub fn regions(&self) -> impl Iterator<Item = usize> + '_ {
        self.regions.iter().map(|&region| region as usize)
    }

    /// The bubble that a region is; `None` for liquid, and for what is no region.
    pub fn of_region(&self, region: u32) -> Option<BubbleIndex> {
        self.index.get(region as usize).copied().flatten()
    }
}
