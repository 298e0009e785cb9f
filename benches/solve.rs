//! The linear solver alone, set-up and solution, on tanks with and without shared nodes, several sizes and threads.

#[allow(dead_code, reason = "tests need more of it")]
#[path = "../tests/behaviour/linear/domain.rs"]
mod domain;
#[allow(dead_code, reason = "tests need more of it")]
#[path = "../tests/behaviour/linear/scenery.rs"]
mod scenery;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use domain::{Domain, tank};
use glug::linear::{Solver, SolverParams};
use rayon::ThreadPoolBuilder;
use scenery::{Pack, bubbly_tank};

fn measure(criterion: &mut Criterion, name: &str, mut domain: Domain<3>, tolerance: f64, threads: usize) {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let params = SolverParams { tolerance, warm_start: false, ..Default::default() };
    let mut solver = Solver::new();
    let info = pool.install(|| domain.solve(&mut solver, &params));
    assert!(info.converged, "{name}: {info:?}");
    let mut group = criterion.benchmark_group(format!("{name}/{tolerance:e}"));
    group.throughput(Throughput::Elements(info.levels[0] as u64));
    group.bench_function(format!("{threads} threads"), |bencher| {
        bencher.iter_custom(|count| {
            let solve = || {
                let info = pool.install(|| domain.solve(&mut solver, &params));
                Duration::from_secs_f64(info.seconds_setup + info.seconds_solve)
            };
            std::iter::repeat_with(solve).take(count as usize).sum()
        });
    });
    group.finish();
}

/// Boxes of water with a dropped right-hand side, some with bubbles.
fn tanks(criterion: &mut Criterion) {
    for (cells, bubbles) in [(64, 0), (64, 8), (96, 0), (128, 0), (128, 8), (160, 0)] {
        for tolerance in [1e-5, 1e-8] {
            for threads in [1, 2] {
                let mut domain = tank::<3>(cells, bubbles, 0);
                domain.drop_rhs();
                measure(criterion, &format!("tank_{cells}_{bubbles}_bubbles"), domain, tolerance, threads);
            }
        }
    }
}

/// How the solve scales with threads, as far as there are cores.
fn threads(criterion: &mut Criterion) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for (cells, bubbles) in [(64, 0), (64, 8), (128, 8)] {
        for threads in [1, 2, 4, 8, 16, 32, 64].into_iter().filter(|&threads| threads <= cores) {
            let mut domain = tank::<3>(cells, bubbles, 0);
            domain.drop_rhs();
            measure(criterion, &format!("threads/tank_{cells}_{bubbles}_bubbles"), domain, 1e-5, threads);
        }
    }
}

/// A domain's cells with every shared node held at zero.
fn grounded(mut domain: Domain<3>) -> Domain<3> {
    for node in 0..domain.shared.len() {
        for (cell, link, area) in domain.shared.links(node) {
            domain.ground[cell] += link;
            domain.area[cell] += area;
        }
    }
    domain.shared.clear();
    domain.shared_rhs.clear();
    domain.shared_x.clear();
    domain
}

/// What bubbles' shared nodes cost: the same tanks with the values of these nodes given.
fn shared_nodes(criterion: &mut Criterion) {
    for (count, radius) in [(1, 40.0), (12, 12.0), (500, 4.0)] {
        let make = || bubbly_tank::<3>(128, count, [radius, radius], Pack::Apart, false, 4, 1);
        let tolerance = SolverParams::default().tolerance;
        measure(criterion, &format!("{count}_bubbles_shared"), make(), tolerance, 2);
        measure(criterion, &format!("{count}_bubbles_grounded"), grounded(make()), tolerance, 2);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = tanks, threads, shared_nodes
}
criterion_main!(benches);
