use glug::geometry::*;
use glug::grid::*;
use glug::math::*;
use glug::sim::*;
use std::sync::atomic::AtomicBool;
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let a = 0.05715;
    let size = [15.0 * a, 2.5 * a];
    let mut params = Params::default();
    for s in std::env::args().skip(2) {
        let (k, v) = s.split_once('=').unwrap();
        set_param(&mut params, k, v).unwrap();
    }
    let setup = Setup::<2> {
        size,
        grid: Grid::covering(size, n * 15),
        open: [[false; 2], [false, true]],
        liquids: vec![LiquidBody {
            shape: Shape::Box { min: Vector::zeros(), max: Vector::<2>::new(a, 2.0 * a) },
            flow: Flow::rest(),
        }],
        sources: vec![],
        drains: vec![],
        solids: vec![],
        params,
    };
    let mut sim = Simulation::new(&setup).unwrap();
    let stop = AtomicBool::new(false);
    let data: Vec<(f64, f64)> = std::fs::read_to_string("/work/shared/data/martin_moyce_1952.csv")
        .unwrap()
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with('T'))
        .map(|l| {
            let (t, z) = l.split_once(',').unwrap();
            (t.parse().unwrap(), z.parse().unwrap())
        })
        .collect();
    let mut last = (0.0, 1.0);
    let mut k = 0;
    let mut v0 = 0.0;
    while k < data.len() {
        let r = sim.advance_frame(0.002, &stop).unwrap().unwrap();
        if v0 == 0.0 {
            v0 = r.liquid.volume;
        }
        let mut sf: f64 = 0.0;
        for &slot in sim.blocks().slots().as_slice() {
            let f = sim.blocks().first_cell(slot as usize);
            if f[1] != 0 {
                continue;
            }
            let b = sim.surface().block(slot as usize);
            for y in 0..2 {
                for x in 0..8 {
                    if b[y * 8 + x] <= 0.0 {
                        let nx = if x < 7 { b[y * 8 + x + 1] } else { 1e9 };
                        let th = if nx > 0.0 && nx < 1e8 {
                            (b[y * 8 + x] / (b[y * 8 + x] - nx)) as f64
                        } else {
                            0.5
                        };
                        sf = sf.max((f[0] as f64 + x as f64 + 0.5 + th) * r.dx);
                    }
                }
            }
        }
        let now = (
            r.time * (2.0 * 9.81 / a).sqrt(),
            if std::env::var("SF").is_ok() { sf / a } else { r.liquid.front / a },
        );
        while k < data.len() && data[k].0 <= now.0 {
            let z = last.1 + (now.1 - last.1) * (data[k].0 - last.0) / (now.0 - last.0);
            println!(
                "T {:.3} Z exp {:.3} sim {:.3} dev {:+.1}% vol {:.4}",
                data[k].0,
                data[k].1,
                z,
                100.0 * (z / data[k].1 - 1.0),
                r.liquid.volume / v0
            );
            k += 1;
        }
        last = now;
    }
}
