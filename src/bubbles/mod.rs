//! Connected components of air and of liquid: finding them, knowing them again after a step, and keeping their volumes
//! (CBAR §4 and §7.1; CB17).
//!
//! * [`Components`]: the flood fill. Every cell that is not solid belongs to one component of its phase.
//! * [`Measure`]: how large each component is, with sub-cell precision, and which components touch.
//! * [`AirSums`]: sums over the air cells of each component.
//! * [`Tracker`]: who is who from step to step, rest volumes, and what happened to whom.
//! * [`BubbleList`]: which components are bubbles to those who look, and in what order.
//! * [`Targets`]: the net outflow that brings drifted volumes back.

mod air_sums;
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

pub use air_sums::AirSums;
pub use fill::{Component, Components, NO_COMPONENT, WallBlocks};
pub use graph::{Graph, Share, Vertex};
pub use history::{Event, EventKind, History};
pub use list::{BubbleIndex, BubbleList};
pub use measure::{Extent, FilledBlocks, Measure, air_shares};
pub use tags::Tags;
pub use targets::{Rates, Targets};
pub use track::{FIRST_SPECK, FIRST_VOID, Record, Tracker, TrackerInput, TrackerScratch, number};
