//! Sizes that matter, with times. `cargo test --release --no-default-features linear::large -- --ignored --nocapture`

use glug::linear::{Solver, SolverParams};

use super::domain::tank;
use super::scenery::{Pack, bubbly_tank};

fn in_pool<T: Send>(threads: usize, body: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool").install(body)
}

fn time_tank(n: usize, bubbles: usize) {
    let mut domain = tank::<3>(n, bubbles, 0);
    domain.drop_rhs();
    for tolerance in [1e-5, 1e-8] {
        for threads in [1, 2] {
            let params = SolverParams { tolerance, warm_start: false, ..Default::default() };
            let mut solver = Solver::new();
            let mut best = (f64::INFINITY, f64::INFINITY);
            let mut last = None;
            for _ in 0..9 {
                let info = in_pool(threads, || domain.solve(&mut solver, &params));
                if info.seconds_setup + info.seconds_solve < best.0 + best.1 {
                    best = (info.seconds_setup, info.seconds_solve);
                }
                last = Some(info);
            }
            let info = last.expect("solved");
            let cells = domain.live.len() * 512;
            println!(
                "{n}^3 {bubbles} shared, {threads} threads, {tolerance:e}: {} it, residual {:.2e}, setup {:.1} ms, \
                 solve {:.1} ms, {:.2} M unknowns/s, {:.1} bytes per cell, {:?}",
                info.iterations,
                info.relative_residual,
                best.0 * 1e3,
                best.1 * 1e3,
                info.levels[0] as f64 / (best.0 + best.1) * 1e-6,
                solver.bytes() as f64 / cells as f64,
                info.nodes_per_level()
            );
            assert!(info.converged);
        }
    }
}

#[test]
#[ignore = "timing"]
fn tank_64() {
    time_tank(64, 0);
    time_tank(64, 8);
}

#[test]
#[ignore = "timing"]
fn tank_96() {
    time_tank(96, 0);
}

#[test]
#[ignore = "timing"]
fn tank_128() {
    time_tank(128, 0);
    time_tank(128, 8);
}

#[test]
#[ignore = "timing"]
fn tank_160() {
    time_tank(160, 0);
}

#[test]
#[ignore = "for a profiler: one thread, many solves"]
fn profile_128() {
    let mut domain = tank::<3>(128, 0, 0);
    domain.drop_rhs();
    let params = SolverParams { warm_start: false, ..Default::default() };
    let mut solver = Solver::new();
    in_pool(1, || {
        for _ in 0..20 {
            domain.solve(&mut solver, &params);
        }
    });
}

/// Time of a solve with shared nodes over that with their values given, both on two threads.
fn compare_with_grounds(count: usize, radius: f64) {
    let make = || bubbly_tank::<3>(128, count, [radius, radius], Pack::Apart, false, 4, 1);
    let (mut shared, mut grounded) = (make(), make().grounded());
    let params = SolverParams { warm_start: false, ..Default::default() };
    let (mut solver, mut other) = (Solver::new(), Solver::new());
    // Set-up and solve, with shared nodes and without; the ratio of the sums.
    let mut times: [Vec<f64>; 5] = Default::default();
    let mut iterations = (0, 0);
    in_pool(2, || {
        for _ in 0..9 {
            let (a, b) = (shared.solve(&mut solver, &params), grounded.solve(&mut other, &params));
            let both = [a.seconds_setup, a.seconds_solve, b.seconds_setup, b.seconds_solve];
            let ratio = (both[0] + both[1]) / (both[2] + both[3]);
            both.into_iter().chain([ratio]).zip(&mut times).for_each(|(time, list)| list.push(time));
            iterations = (a.iterations, b.iterations);
        }
    });
    let [setup, solve, setup_grounded, solve_grounded, ratio] = times.map(|mut list| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    });
    println!(
        "{count} bubbles of radius {radius}, {} links: set-up {:.1} and {:.1} ms, solve {:.1} and {:.1} ms, \
         iterations {} and {}, ratio {ratio:.3}",
        (0..shared.shared.len()).map(|node| shared.shared.links(node).count()).sum::<usize>(),
        1e3 * setup,
        1e3 * setup_grounded,
        1e3 * solve,
        1e3 * solve_grounded,
        iterations.0,
        iterations.1,
    );
}

#[test]
#[ignore = "timing"]
fn shared_nodes_cost_little() {
    compare_with_grounds(1, 40.0);
    compare_with_grounds(12, 12.0);
    compare_with_grounds(500, 4.0);
}
