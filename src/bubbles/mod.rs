//! Connected regions of air and of liquid: finding them, knowing them again after a step, and keeping their volumes
//! (CBAR §4 and §7.1; CB17).
//!
//! * [`Regions`]: the flood fill. Every cell that is not solid belongs to one region of its phase.
//! * [`Measure`]: how large each region is, with sub-cell precision, and which regions touch.
//! * [`Tracker`]: who is who from step to step, rest volumes, and what happened to whom.
//! * [`BubbleList`]: which regions are bubbles to those who look, and in what order.
//! * [`Targets`]: the net outflow that brings drifted volumes back.

mod fill;
mod graph;
mod history;
mod list;
mod measure;
mod near;
mod tags;
mod tally;
mod targets;
mod track;

pub use fill::{NO_REGION, Region, Regions, WallBlocks};
pub use graph::{Graph, Party, Share};
pub use history::{Event, EventKind, History};
pub use list::{BubbleIndex, BubbleList};
pub use measure::{Extent, Measure, air_shares};
pub use tags::Tags;
pub use targets::{Rates, Targets};
pub use track::{Record, Scene, Tracker};
