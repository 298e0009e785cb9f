use glug::pressure::Label;
use glug::scene::*;
use glug::sim::*;
use std::sync::atomic::AtomicBool;
fn main() {
    let which = std::env::args().nth(1).unwrap();
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let AnyScene::TwoD(sc) = load(&which, &Overrides::default()).unwrap() else { panic!() };
    let mut sim = Simulation::new(&sc.setup).unwrap();
    let stop = AtomicBool::new(false);
    let mut shown = 0;
    let top = sim.particle_positions().iter().map(|p| p[1]).fold(0f32, f32::max) as i32 - 2;
    for f in 1..=n {
        sim.advance_frame(1.0 / sc.fps, &stop).unwrap();
        let st = sim.state();
        for y in 0..top {
            for x in 0..st.blocks.grid().cells[0] as i32 {
                let (slot, l) = st.blocks.locate([x, y]);
                if slot == 0 {
                    continue;
                }
                if st.projection.label.block(slot as usize)[l] == Label::Air && shown < 12 {
                    shown += 1;
                    let np = st.sorter.ranges.of_cells(slot as usize, l, l).len();
                    let x0 = glug::math::Vector::<2>::new(
                        (x as f64 + 0.5) * st.blocks.grid().dx,
                        (y as f64 + 0.5) * st.blocks.grid().dx,
                    );
                    println!(
                        "f{f} cell {x},{y} phi {:.2} wall {:.2} n {np} open {:.2} {:.2}",
                        st.surface.block(slot as usize)[l] as f64 / st.blocks.grid().dx,
                        st.walls.distance(&x0, 0.0) / st.blocks.grid().dx,
                        st.boundary.open[0].block(slot as usize)[l],
                        st.boundary.open[1].block(slot as usize)[l]
                    );
                    for dy in (-1..2).rev() {
                        for dx in -1..2 {
                            let (s2, l2) = st.blocks.locate([x + dx, y + dy]);
                            print!(
                                "  [{} p{} phi {:.2}]",
                                st.projection.label.block(s2 as usize)[l2] as u8,
                                st.sorter.ranges.of_cells(s2 as usize, l2, l2).len(),
                                st.surface.block(s2 as usize)[l2] as f64 / st.blocks.grid().dx
                            );
                        }
                        println!();
                    }
                }
            }
        }
    }
}
