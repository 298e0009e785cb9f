//! Which components are listed as bubbles, and where: reports and pictures count them by one list.

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

/// All components of air, the outside air among them, in the order of their components.
///
/// ```no_run
/// use glug::bubbles::BubbleList;
/// # fn of(simulation: &glug::sim::Simulation<2>) {
/// let list = BubbleList::new(simulation.tracker().records());
/// for component in list.components() {
///     let bubble = list.of_component(component as u32).expect("it is in the list");
///     println!("bubble {} is component {component} of the flood fill", bubble.get());
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BubbleList {
    components: Vec<u32>,
    index: Vec<Option<BubbleIndex>>,
}

impl BubbleList {
    /// Lists the air among these components.
    pub fn new(records: &[Record]) -> Self {
        let mut list = BubbleList::default();
        for (component, record) in records.iter().enumerate() {
            let is_air = record.phase == Label::Air;
            list.index.push(is_air.then(|| BubbleIndex::new(list.components.len())));
            if is_air {
                list.components.push(component as u32);
            }
        }
        list
    }

    /// The bubbles' components, in the order of the list.
    pub fn components(&self) -> impl Iterator<Item = usize> + '_ {
        self.components.iter().map(|&component| component as usize)
    }

    /// The bubble that a component is; `None` for liquid, and for what is no component.
    pub fn of_component(&self, component: u32) -> Option<BubbleIndex> {
        self.index.get(component as usize).copied().flatten()
    }
}
