//! Simulations that go forward together: nobody starts a frame before all have finished the one before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a member has done.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Frames since the start of its run.
    frames: u64,
    /// Whether others should wait for it.
    active: bool,
}

/// A group of simulations on one clock.
#[derive(Debug, Default)]
pub struct Pace {
    members: Mutex<Vec<Member>>,
    /// Held by whose turn it is, where there are fewer threads than simulations.
    turn: Option<Mutex<()>>,
}

/// One simulation's place in the group.
#[derive(Debug)]
pub struct Place {
    pace: Arc<Pace>,
    index: usize,
}

impl Pace {
    /// A group of simulations that share one thread: only one works at a time.
    pub fn taking_turns() -> Self {
        Pace { turn: Some(Mutex::new(())), ..Pace::default() }
    }

    /// Waits for the caller's turn, which lasts as long as the guard; at once where all may work together.
    pub fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A new member, which nobody waits for yet.
    pub fn join(self: &Arc<Self>) -> Place {
        let mut members = self.members();
        members.push(Member::default());
        Place { pace: Arc::clone(self), index: members.len() - 1 }
    }

    /// A panic elsewhere cannot leave the numbers half-written.
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The group.
    pub fn pace(&self) -> Arc<Pace> {
        Arc::clone(&self.pace)
    }

    /// Whether all members that count have come as far.
    pub fn may_start(&self) -> bool {
        let members = self.pace.members();
        let own = members[self.index].frames;
        members
            .iter()
            .enumerate()
            .all(|(index, other)| index == self.index || !other.active || other.frames >= own)
    }

    /// Whether another member has finished more frames, so that the two show different moments.
    pub fn is_behind(&self) -> bool {
        let members = self.pace.members();
        let own = members[self.index];
        // Only by a few: a member that just started over has nobody to run after.
        let few = own.frames + 1..=own.frames + 4;
        own.active_once() && members.iter().any(|other| few.contains(&other.frames))
    }

    /// A frame is finished.
    pub fn finish_frame(&self) {
        self.pace.members()[self.index].frames += 1;
    }

    /// A run starts.
    pub fn restart(&self) {
        self.pace.members()[self.index].frames = 0;
    }

    /// Whether the others should wait for this member.
    pub fn set_active(&self, active: bool) {
        self.pace.members()[self.index].active = active;
    }

    /// The others need not wait any more.
    pub fn leave(&self) {
        self.set_active(false);
    }
}

impl Member {
    /// Whether it has come anywhere in its run.
    fn active_once(self) -> bool {
        self.frames > 0
    }
}
