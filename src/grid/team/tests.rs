//! Teams of many sizes, and members that are late, asleep or fail.

use super::*;
use std::sync::Barrier;
use std::time::Duration;

use rayon::ThreadPoolBuilder;

/// Runs `body` as the leader of a team, in a pool that has so many threads.
fn with_team(threads: usize, members: usize, body: impl FnOnce() + Send) {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| lead_some(members, body));
}

/// Waits until that many threads have joined, so that a test does not pass for want of members.
fn wait_for_members(count: usize) {
    let Role::Leads(team) = ROLE.with_borrow(Role::clone) else {
        return assert!(count < 2, "no team");
    };
    while team.joined() < count {
        thread::yield_now();
    }
}

/// Adds 1 to every entry, a hundred times; the entries of a pass are those of the one before, shifted by one.
fn passes_follow_each_other(threads: usize, members: usize, count: usize) {
    with_team(threads, members, || {
        wait_for_members(members.min(threads));
        let values: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        for pass in 0..1000 {
            share(count, 1, &|range| {
                for at in range {
                    let before = values[(at + 1) % count].load(Ordering::Relaxed);
                    assert!(before == pass || before == pass + 1, "pass {pass} met a {before}");
                    values[at].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        assert!(values.iter().all(|value| value.load(Ordering::Relaxed) == 1000));
    });
}

#[test]
fn every_part_of_every_pass_is_done_once() {
    for (threads, members) in [(1, 1), (2, 2), (3, 3), (5, 5), (3, 8), (16, 16)] {
        for count in [1, 2, 7, 500] {
            passes_follow_each_other(threads, members, count);
        }
    }
}

#[test]
fn a_team_is_as_large_as_its_pool() {
    with_team(4, 4, || wait_for_members(4));
}

#[test]
fn members_that_do_not_come_are_not_waited_for() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let (is_done, sum, start) = (AtomicBool::new(false), AtomicU64::new(0), Barrier::new(2));
    let (is_done, start) = (&is_done, &start);
    // The other thread of the pool is taken until the passes are over.
    pool.in_place_scope(|scope| {
        scope.spawn(move |_| {
            start.wait();
            while !is_done.load(Ordering::Acquire) {
                thread::yield_now();
            }
        });
        let sum = &sum;
        scope.spawn(move |_| {
            start.wait();
            lead_some(2, || {
                for _ in 0..10 {
                    share(100, 1, &|range| {
                        sum.fetch_add(range.len() as u64, Ordering::Relaxed);
                    });
                }
            });
            is_done.store(true, Ordering::Release);
        });
    });
    assert_eq!(sum.into_inner(), 1000);
}

#[test]
fn a_panic_in_any_part_ends_the_pass_and_reaches_the_leader() {
    with_team(4, 4, || {
        wait_for_members(4);
        for bad in 0..64 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                share(64, 1, &|range| assert!(!range.contains(&bad), "part of {bad}"));
            }));
            let reason = caught.expect_err("a panic is passed on");
            assert_eq!(reason.downcast_ref::<String>(), Some(&format!("part of {bad}")));
            // The team goes on.
            let sum = AtomicUsize::new(0);
            share(64, 1, &|range| {
                sum.fetch_add(range.len(), Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 64);
        }
    });
}

#[test]
fn a_panic_of_the_leader_lets_the_pool_go() {
    let pool = ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
    let caught = catch_unwind(AssertUnwindSafe(|| {
        pool.install(|| {
            lead_some(3, || {
                wait_for_members(3);
                panic!("no more");
            });
        });
    }));
    assert!(caught.is_err());
    // All threads of the pool are free again.
    assert_eq!(pool.broadcast(|thread| thread.index()).len(), 3);
}

#[test]
fn those_who_fell_asleep_are_woken() {
    with_team(4, 4, || {
        wait_for_members(4);
        let Role::Leads(team) = ROLE.with_borrow(Role::clone) else { panic!("no leader") };
        while team.asleep.load(Ordering::SeqCst).count_ones() < 3 {
            thread::sleep(Duration::from_millis(1));
        }
        // Passes wake two each, and those others; a slow pass gives them time to come.
        let threads = Mutex::new(std::collections::HashSet::new());
        for _ in 0..20 {
            share(16, 1, &|_| {
                threads.lock().expect("no panic").insert(thread::current().id());
                thread::sleep(Duration::from_millis(2));
            });
        }
        assert_eq!(threads.into_inner().expect("no panic").len(), 4);
    });
}

#[test]
fn what_is_shared_inside_of_a_part_or_of_a_team_inside_a_team_is_done() {
    with_team(3, 3, || {
        wait_for_members(3);
        let sum = AtomicUsize::new(0);
        share(30, 1, &|range| {
            lead_some(3, || {
                share(10 * range.len(), 1, &|inner| {
                    sum.fetch_add(inner.len(), Ordering::Relaxed);
                });
            });
        });
        lead_some(3, || {
            share(30, 1, &|range| {
                sum.fetch_add(range.len(), Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 330);
    });
}

#[test]
fn what_the_leader_shares_through_its_pool_is_done_all_the_same() {
    with_team(3, 3, || {
        wait_for_members(3);
        let sum: usize = (0..1000).into_par_iter().map(|i| i % 10).sum();
        assert_eq!(sum, 4500);
    });
}
