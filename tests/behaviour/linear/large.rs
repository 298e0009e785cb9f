//! Sizes that matter, with times. `cargo test --release --no-default-features linear::large -- --ignored --nocapture`

use glug::linear::{Solver, SolverParams};

use super::domain::tank;

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
