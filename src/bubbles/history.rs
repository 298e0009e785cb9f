//! What happened to the bubbles.

use std::collections::VecDeque;

use serde::Serialize;

use crate::math::Real;

/// What happened to a bubble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "what", content = "other")]
pub enum EventKind {
    /// It was there at the start, or when its surroundings were first looked at.
    Present,
    /// A source released it.
    Released,
    /// Liquid closed over open air.
    Trapped,
    /// It broke off another one.
    SplitFrom(u64),
    /// It became part of another one.
    MergedInto(u64),
    /// It reached the open air.
    Burst,
    /// It shrank below what the grid can show.
    Collapsed,
    /// A hole opened in the liquid without a cause; it is being closed.
    Void,
    /// A hole is closed again.
    Closed,
}

/// Something that happened to a bubble.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Simulated seconds.
    pub time: Real,
    /// To whom.
    pub id: u64,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The latest events, and how many there were.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: VecDeque<Event>,
    total: usize,
}

/// Events kept: enough for hours of glugging, and a bound on memory.
const MOST_EVENTS: usize = 4096;

impl History {
    /// Records an event; the oldest one is forgotten when there are too many.
    pub fn record(&mut self, time: Real, id: u64, kind: EventKind) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event { time, id, kind });
        self.total += 1;
    }

    /// All events that are still known, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter()
    }

    /// Events since the start, forgotten ones included.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Those after the first `known`, as far as they are still known.
    pub fn since(&self, known: usize) -> impl Iterator<Item = &Event> {
        let new = self.total.saturating_sub(known).min(self.events.len());
        self.events.iter().skip(self.events.len() - new)
    }
}
