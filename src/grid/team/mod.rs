//! A team of threads for many short passes over blocks.
//!
//! A thread pool puts threads to sleep behind a parallel section, and wakes them before the next. That takes longer than many a
//! pass over the blocks of a grid. A team stays awake from one pass to the next: its members spin for a moment, then give way
//! to others, and sleep when nothing has come for long.
//!
//! The thread that calls [`lead`] leads: what it does between two passes needs no agreement with anybody. A pass is cut into
//! parts, and each member is given neighbouring ones, the same ones in every pass of that length, so that blocks stay in the
//! caches of one core. Who is done helps the others, and the leader waits for nobody who has not begun: a thread that the
//! system does not run holds nothing up.

use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::hint::spin_loop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use rayon::prelude::*;

/// The most members a team has: one bit each says who is asleep.
const MOST_MEMBERS: usize = 64;
/// The most parts of a pass for each member. Others can take them over: blocks near the surface take longer than others, and
/// lie side by side.
const PARTS_EACH: usize = 16;
/// Turns of waiting after which a member looks whether others need help; a microsecond or some.
const TURNS_TO_HELP: u32 = 64;
/// Turns of waiting after which a member gives way to other threads of the system.
const TURNS_TO_YIELD: u32 = 256;
/// Turns of waiting after which a member sleeps; about a millisecond.
const TURNS_TO_SLEEP: u32 = 2048;

/// Calls `body` with ranges that make up `0..count`, side by side if there are more than `grain`, the least that is worth a
/// thread's while. Who gets which range, and how many there are, is not to change what comes out.
pub fn share(count: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    if count <= grain {
        return body(0..count);
    }
    match ROLE.with_borrow(Role::clone) {
        Role::Leads(team) => team.pass(count, grain, body),
        Role::None if rayon::current_num_threads() > 1 => {
            let grains = (0..count.div_ceil(grain)).into_par_iter();
            grains.for_each(|at| body(at * grain..count.min((at + 1) * grain)));
        }
        Role::None | Role::IsBusy => body(0..count),
    }
}

/// Runs `body` with the threads of the current pool as a team: until it returns, [`share`] costs a microsecond or two.
///
/// `body` must not use the pool other than through [`share`]: a thread that waits within such a piece of work may join the team
/// meanwhile, and leaves only when `body` returns.
pub fn lead<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    // More threads than cores would only take turns.
    lead_some(rayon::current_num_threads().min(cores), body)
}

/// [`lead`] for a team of so many threads, the caller included.
fn lead_some<R: Send>(members: usize, body: impl FnOnce() -> R + Send) -> R {
    let members = members.min(MOST_MEMBERS);
    if members < 2 || !matches!(ROLE.with_borrow(Role::clone), Role::None) {
        return alone(body);
    }
    let spare = SPARE.take().filter(|team| team.seats.len() == members);
    let team = spare.unwrap_or_else(|| Arc::new(Team::new(members)));
    team.begin();
    let leader = Arc::clone(&team);
    let (result, ()) = rayon::join(
        || {
            let _leading = Leading::of(leader);
            body()
        },
        || team.host(members - 1),
    );
    SPARE.set(Some(team));
    result
}

/// Runs `body` on this thread alone, unless it leads a team already: for what is too little to form one.
pub fn alone<R>(body: impl FnOnce() -> R) -> R {
    let has_role = !matches!(ROLE.with_borrow(Role::clone), Role::None);
    let _role = (!has_role).then(|| Playing::the(Role::IsBusy));
    body()
}

thread_local! {
    static ROLE: RefCell<Role> = const { RefCell::new(Role::None) };
    /// The last team that was led from this thread, for the next time.
    static SPARE: Cell<Option<Arc<Team>>> = const { Cell::new(None) };
}

/// What a thread does in a team.
#[derive(Clone)]
enum Role {
    None,
    /// Shares passes with its team.
    Leads(Arc<Team>),
    /// Works on a part, or waits for one: what is shared there, it does by itself.
    IsBusy,
}

/// A thread has a role as long as this lives.
struct Playing(Role);

impl Playing {
    fn the(role: Role) -> Playing {
        Playing(ROLE.replace(role))
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        ROLE.set(std::mem::replace(&mut self.0, Role::None));
    }
}

/// A thread leads a team as long as this lives.
struct Leading {
    team: Arc<Team>,
    _role: Playing,
}

impl Leading {
    fn of(team: Arc<Team>) -> Leading {
        let _role = Playing::the(Role::Leads(Arc::clone(&team)));
        Leading { team, _role }
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        // In one order with what those who are about to sleep do: see `Team::sleep`.
        self.team.is_over.store(true, Ordering::SeqCst);
        self.team.wake(MOST_MEMBERS);
    }
}

fn wait(turns: u32) {
    if turns < TURNS_TO_YIELD { spin_loop() } else { thread::yield_now() }
}

/// What a pass does with one part.
type Body<'a> = dyn Fn(usize) + Sync + 'a;

/// The threads of a team.
struct Team {
    /// The leader's first.
    seats: Box<[Seat]>,
    leader: Totals,
    /// How many are taken.
    joined: AtomicUsize,
    /// The body of the pass at hand.
    body: UnsafeCell<Option<&'static Body<'static>>>,
    /// One bit for each member that sleeps.
    asleep: AtomicU64,
    /// Whether the leader has left.
    is_over: AtomicBool,
    has_panicked: AtomicBool,
    /// What the first part that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// What the leader counts.
#[derive(Default)]
struct Totals {
    /// Parts of all passes so far.
    parts: AtomicU64,
    /// Those that the leader has done.
    own: AtomicU64,
}

/// What a member has to do and has done.
#[derive(Default)]
struct Seat {
    share: Share,
    done: Done,
    thread: Mutex<Option<Thread>>,
}

/// Parts of the pass at hand that nobody has taken yet: the next one in the upper half, the end in the lower. On a cache line of
/// its own, as is [`Done`]: the leader reads the one while others write to the other.
#[derive(Default)]
#[repr(align(128))]
struct Share(AtomicU64);

/// Parts done by a member since the team was formed, of its own share or another's.
#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU64);

impl Share {
    fn pack(next: usize, end: usize) -> u64 {
        (next as u64) << 32 | end as u64
    }

    /// Takes the next part, if one is left.
    fn take(&self) -> Option<usize> {
        let mut packed = self.0.load(Ordering::Relaxed);
        loop {
            let (next, end) = ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize);
            if next == end {
                return None;
            }
            // Acquire: see `Leader::publish`. What was loaded may be of a pass before: then this takes a part of the one at hand.
            let without = Share::pack(next + 1, end);
            match self.0.compare_exchange_weak(packed, without, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(next),
                Err(now) => packed = now,
            }
        }
    }
}

// SAFETY: everything is atomic or locked but for `body`. The leader writes it when every part is done; who reads it has taken a
// part after that, which synchronises with the leader's publication of it, and has not counted it as done.
unsafe impl Sync for Team {}
// SAFETY: as above; the body itself may be called from any thread.
unsafe impl Send for Team {}

impl Team {
    fn new(members: usize) -> Team {
        Team {
            seats: (0..members).map(|_| Seat::default()).collect(),
            leader: Totals::default(),
            joined: AtomicUsize::new(1),
            body: UnsafeCell::new(None),
            asleep: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            has_panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
        }
    }

    /// Makes a team of nobody but the leader. Whoever was in it has left.
    fn begin(&self) {
        for seat in &self.seats {
            seat.done.0.store(0, Ordering::Relaxed);
        }
        for total in [&self.leader.parts, &self.leader.own] {
            total.store(0, Ordering::Relaxed);
        }
        self.has_panicked.store(false, Ordering::Relaxed);
        self.asleep.store(0, Ordering::Relaxed);
        self.joined.store(1, Ordering::Relaxed);
        // Release, as all of this comes before the first member; and what invites it synchronises anyway.
        self.is_over.store(false, Ordering::Release);
    }

    fn pass(&self, count: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
        let members = self.joined().min(count / grain);
        if members < 2 {
            return body(0..count);
        }
        let each = (count / members / grain.div_ceil(2)).clamp(1, PARTS_EACH);
        let parts = members * each;
        self.publish(members, each, &|part| body(part * count / parts..(part + 1) * count / parts));
        if self.has_panicked.swap(false, Ordering::Relaxed) {
            let reason = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
            resume_unwind(reason.expect("the first to panic left its reason"));
        }
    }

    /// Has `each` parts done for each member, and returns when all are.
    fn publish(&self, members: usize, each: usize, body: &Body<'_>) {
        let parts = self.leader.parts.load(Ordering::Relaxed) + (members * each) as u64;
        self.leader.parts.store(parts, Ordering::Relaxed);
        // SAFETY: only the lifetime changes. Nobody reads the body but who has taken a part, and below all parts are done before
        // this borrow ends: `work_on` returns whatever happens in it.
        let lasting = unsafe { std::mem::transmute::<&Body<'_>, &'static Body<'static>>(body) };
        // SAFETY: all parts of the pass before are done, and none of this one can be taken yet.
        unsafe { *self.body.get() = Some(lasting) };
        // The leader's own share comes last: the others have a way to go.
        for member in (0..members).rev() {
            // Release: who takes a part sees the body, and what the leader wrote before.
            let share = Share::pack(member * each, (member + 1) * each);
            self.seats[member].share.0.store(share, Ordering::Release);
        }
        if self.asleep.load(Ordering::Relaxed) != 0 {
            self.wake(2);
        }
        let _role = Playing::the(Role::IsBusy);
        let mut own = self.leader.own.load(Ordering::Relaxed) + self.work_off(0);
        let mut turns = 0;
        while own + self.done() < parts {
            if turns == TURNS_TO_HELP {
                own += self.help(0);
            }
            wait(turns);
            turns = turns.saturating_add(1);
        }
        self.leader.own.store(own, Ordering::Relaxed);
    }

    /// Has threads of the pool join, so many if they are free: the first to come leaves half of the others to the next.
    fn host(&self, members: usize) {
        match members {
            0 => {}
            _ if self.is_over.load(Ordering::Acquire) => {}
            1 => self.serve(),
            _ => {
                let (some, others) = (members / 2, members - 1 - members / 2);
                rayon::join(|| rayon::join(|| self.serve(), || self.host(some)), || self.host(others));
            }
        }
    }

    /// Members so far.
    fn joined(&self) -> usize {
        self.joined.load(Ordering::Acquire)
    }

    /// Parts done by all but the leader.
    fn done(&self) -> u64 {
        // Acquire: the leader sees what members wrote.
        self.seats[1..self.joined()].iter().map(|seat| seat.done.0.load(Ordering::Acquire)).sum()
    }

    /// Works on what is left of a member's share. Returns how many parts that was.
    fn work_off(&self, seat: usize) -> u64 {
        let mut count = 0;
        while let Some(part) = self.seats[seat].share.take() {
            self.work_on(part);
            count += 1;
        }
        count
    }

    /// Works on what is left of the others' shares.
    fn help(&self, seat: usize) -> u64 {
        let joined = self.joined();
        (1..joined).map(|step| self.work_off((seat + step) % joined)).sum()
    }

    /// Works on a part that was just taken. After a panic nothing more is done.
    fn work_on(&self, part: usize) {
        if self.has_panicked.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: the leader does not write to the body before this part counts as done.
        let body = unsafe { *self.body.get() }.expect("where there are parts there is a body");
        if let Err(reason) = catch_unwind(AssertUnwindSafe(|| body(part))) {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                *first = Some(reason);
            } else {
                // What dropping it runs could panic as well, and nobody would catch that.
                std::mem::forget(reason);
            }
            self.has_panicked.store(true, Ordering::Relaxed);
        }
    }

    /// Joins, and works on parts until the leader leaves.
    fn serve(&self) {
        // A leader that waits for its pool may come here itself: it must not wait for its own passes.
        if !matches!(ROLE.with_borrow(Role::clone), Role::None) {
            return;
        }
        let _role = Playing::the(Role::IsBusy);
        let taken = self.joined.fetch_update(Ordering::AcqRel, Ordering::Acquire, |joined| {
            (joined < self.seats.len()).then_some(joined + 1)
        });
        let Ok(seat) = taken else { return };
        let (mut total, mut turns) = (0, 0);
        while !self.is_over.load(Ordering::Acquire) {
            let mut done = self.work_off(seat);
            if done == 0 && turns == TURNS_TO_HELP {
                done = self.help(seat);
            }
            if done > 0 {
                total += done;
                // Release: the leader sees what was written.
                self.seats[seat].done.0.store(total, Ordering::Release);
                turns = 0;
            } else if turns < TURNS_TO_SLEEP {
                wait(turns);
                turns += 1;
            } else {
                self.sleep(seat);
                turns = 0;
            }
        }
    }

    /// Sleeps until woken. Who falls asleep while a pass is published may sleep through it: others then do its share.
    fn sleep(&self, seat: usize) {
        let bit = 1 << seat;
        *self.seats[seat].thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        self.asleep.fetch_or(bit, Ordering::SeqCst);
        // Either this sees that the leader has left, or the leader sees the bit.
        while self.asleep.load(Ordering::SeqCst) & bit != 0 && !self.is_over.load(Ordering::SeqCst) {
            thread::park();
        }
        self.wake(2);
    }

    /// Wakes some of those who sleep.
    fn wake(&self, count: usize) {
        for _ in 0..count {
            let asleep = self.asleep.load(Ordering::SeqCst);
            let bit = asleep & asleep.wrapping_neg();
            if bit == 0 {
                return;
            }
            // Who clears the bit wakes its owner.
            if self.asleep.fetch_and(!bit, Ordering::SeqCst) & bit != 0 {
                let sleeper = &self.seats[bit.trailing_zeros() as usize].thread;
                let sleeper = sleeper.lock().unwrap_or_else(PoisonError::into_inner);
                sleeper.as_ref().expect("who sleeps has said who it is").unpark();
            }
        }
    }
}

#[cfg(test)]
mod tests;
