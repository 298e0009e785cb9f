//! What happened to the bubbles.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

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
    /// Specks grew together to it.
    Formed,
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    events: VecDeque<Event>,
    total: usize,
}

/// A [`History`] as a saved file holds it: what JSON says of events in words is two numbers there.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedHistory {
    events: Vec<(Real, u64, (u8, u64))>,
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

    /// What a saved file holds of it.
    pub(super) fn to_saved(&self) -> SavedHistory {
        let kind = |kind: EventKind| match kind {
            EventKind::Present => (0, 0),
            EventKind::Released => (1, 0),
            EventKind::Trapped => (2, 0),
            EventKind::SplitFrom(other) => (3, other),
            EventKind::MergedInto(other) => (4, other),
            EventKind::Burst => (5, 0),
            EventKind::Collapsed => (6, 0),
            EventKind::Void => (7, 0),
            EventKind::Closed => (8, 0),
            EventKind::Formed => (9, 0),
        };
        let events = self.events.iter().map(|event| (event.time, event.id, kind(event.kind)));
        SavedHistory { events: events.collect(), total: self.total }
    }

    /// The inverse of [`Self::to_saved`]; none if that holds something that cannot happen.
    pub(super) fn from_saved(saved: SavedHistory) -> Option<Self> {
        let kind = |(kind, other): (u8, u64)| {
            Some(match kind {
                0 => EventKind::Present,
                1 => EventKind::Released,
                2 => EventKind::Trapped,
                3 => EventKind::SplitFrom(other),
                4 => EventKind::MergedInto(other),
                5 => EventKind::Burst,
                6 => EventKind::Collapsed,
                7 => EventKind::Void,
                8 => EventKind::Closed,
                9 => EventKind::Formed,
                _ => return None,
            })
        };
        let events =
            saved.events.into_iter().map(|(time, id, what)| Some(Event { time, id, kind: kind(what)? }));
        let events: VecDeque<Event> = events.collect::<Option<_>>()?;
        (events.len() <= MOST_EVENTS && events.len() <= saved.total)
            .then_some(History { events, total: saved.total })
    }

    /// All events that are still known, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter()
    }

    /// Events since the start, forgotten ones included.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Events after the first `known`, as far as they are still held.
    pub fn since(&self, known: usize) -> impl Iterator<Item = &Event> {
        let new = self.total.saturating_sub(known).min(self.events.len());
        self.events.iter().skip(self.events.len() - new)
    }
}
