use glug::scene::*;
use glug::sim::*;
use std::sync::atomic::AtomicBool;
fn main() {
    let AnyScene::TwoD(sc) = load("/tmp/dam2.ron", &Overrides::default()).unwrap() else { panic!() };
    let mut sim = Simulation::new(&sc.setup).unwrap();
    let stop = AtomicBool::new(false);
    for f in 1..=58 {
        sim.advance_frame(1.0 / 30.0, &stop).unwrap();
        if f < 57 {
            continue;
        }
        let st = sim.state();
        println!("frame {f}");
        for y in (0..4).rev() {
            for x in 44..58 {
                let (slot, l) = st.blocks.locate([x, y]);
                let n = st.sorter.ranges.of_cells(slot as usize, l, l).len();
                print!(
                    "{:3}/{:+.2}/{:?}/{:+.2},{:+.2} ",
                    n,
                    st.surface.block(slot as usize)[l] * 64.0,
                    st.projection.label.block(slot as usize)[l] as u8,
                    st.velocity[0].block(slot as usize)[l],
                    st.velocity[1].block(slot as usize)[l]
                );
            }
            println!();
        }
        let (slot, _) = st.blocks.locate([50, 0]);
        for x in 48..53 {
            let (s, l) = st.blocks.locate([x, 0]);
            for i in st.sorter.ranges.of_cells(s as usize, l, l) {
                print!("({:.2},{:.2}) ", st.particles.position[i][0], st.particles.position[i][1]);
            }
            println!();
        }
        let _ = slot;
    }
}
