//! What snapshots say of bubbles: pictures and report count them by one list.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use glug::runner::Run;
use glug::scene::{Overrides, load};
use glug::snapshot::{Scenery, Snapshot, Wanted, region};

/// A full tank with so many round holes along each axis, eight cells apart.
fn sieve(columns: usize, rows: usize, frames: usize) -> Snapshot {
    let (dx, apart) = (0.01, 0.08);
    let size = [columns, rows].map(|count| count as f64 * apart);
    let hole = |k: usize| {
        let [x, y] = [k % columns, k / columns].map(|place| (place as f64 + 0.5) * apart);
        format!("sphere(center: ({x}, {y}), radius: {})", 2.5 * dx)
    };
    let holes: Vec<_> = (0..columns * rows).map(hole).collect();
    let text = format!(
        "(title: \"Sieve\", model: \"constraint\", domain: (size: ({0}, {1}), cells: {2}), liquids: [difference(\
         from: box(min: (0, 0), max: ({0}, {1})), cut: [{3}])])",
        size[0],
        size[1],
        columns * 8,
        holes.join(", ")
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sieve.ron");
    std::fs::write(&path, text).expect("a file");
    let scene =
        load(&path.to_string_lossy(), &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    let scenery = Arc::new(Scenery::of(&scene));
    let mut run = Run::new(&scene, scenery, scene.params().clone(), 1).expect("it starts");
    for _ in 0..frames {
        assert!(run.advance(&AtomicBool::new(false), &mut |_| ()).expect("it goes on"));
    }
    run.snapshot(Wanted::default(), 1.0)
}

/// With one byte per cell, all bubbles from the 253rd on were one in the picture.
#[test]
fn every_cell_of_hundreds_of_bubbles_names_its_own() {
    for frames in [0, 2] {
        let snapshot = sieve(20, 16, frames);
        let bubbles = &snapshot.report.bubbles;
        assert!(bubbles.len() > 300, "{} bubbles", bubbles.len());
        let (cells, dx) = (&snapshot.cells, f64::from(snapshot.scenery.dx));
        let mut found = vec![([0.0; 2], 0.0); bubbles.len()];
        for (cell, &number) in cells.region.iter().enumerate() {
            if let Some(bubble) = region::bubble(number) {
                let (place, count) = &mut found[bubble.get()];
                let at = [cell % cells.cells[0], cell / cells.cells[0]];
                (0..2).for_each(|axis| place[axis] += (at[axis] as f64 + 0.5) * dx);
                *count += 1.0;
            }
        }
        for (bubble, (sum, count)) in bubbles.iter().zip(found) {
            assert!(count > 0.0, "bubble {} has no cells", bubble.id);
            for axis in 0..2 {
                let off = (sum[axis] / count - bubble.centroid[axis]).abs();
                assert!(off < dx, "frame {frames}, bubble {}: its cells lie {off} m beside it", bubble.id);
            }
            let centre = [bubble.centroid[0] as f32, bubble.centroid[1] as f32, 0.0];
            assert_eq!(snapshot.bubble_at(centre).map(|found| found.id), Some(bubble.id));
            let number = snapshot.region_of(bubble.id).expect("it has a number");
            assert_eq!(cells.region[snapshot.cell_at(centre).expect("inside")], number);
        }
    }
}

#[test]
fn numbers_of_bubbles_never_wrap_around() {
    use glug::bubbles::BubbleIndex;
    let last = usize::from(u16::MAX - region::FIRST_BUBBLE);
    for place in [0, 251, 252, 300, last] {
        let number = region::of_bubble(BubbleIndex::new(place)).expect("a number");
        assert_eq!(region::bubble(number), Some(BubbleIndex::new(place)));
    }
    assert_eq!(region::of_bubble(BubbleIndex::new(last + 1)), None);
    assert_eq!([region::AIR, region::LIQUID, region::SOLID].map(region::bubble), [None; 3]);
}

/// A sketch is all that a picture needs: the simulation may be anywhere by the time it is finished.
#[test]
fn a_sketch_finished_later_is_the_picture_of_its_moment() {
    for (name, cells) in [("water_cooler_2d", 32), ("dam_break", 24), ("moving_platform", 24)] {
        let overrides = Overrides { cells: Some(cells), ..Overrides::default() };
        let scene = load(name, &overrides).unwrap_or_else(|error| panic!("{error}"));
        let scenery = Arc::new(Scenery::of(&scene));
        let mut run = Run::new(&scene, scenery, scene.params().clone(), 1).expect("it starts");
        let advance = |run: &mut Run| {
            assert!(run.advance(&AtomicBool::new(false), &mut |_| ()).expect("it goes on"));
        };
        (0..3).for_each(|_| advance(&mut run));
        let wanted = Wanted { velocity: true, scalars: true, particles: true, roles: true };
        let at_once = run.snapshot(wanted, 1.0);
        let sketch = run.sketch(wanted, 1.0);
        (0..2).for_each(|_| advance(&mut run));
        let later = sketch.finish();
        assert_eq!(at_once.surface, later.surface, "{name}");
        assert_eq!(at_once.solids, later.solids, "{name}");
        assert_eq!((&at_once.particles, &at_once.poses), (&later.particles, &later.poses), "{name}");
        let (one, other) = (&at_once.cells, &later.cells);
        assert_eq!((&one.distance, &one.region), (&other.distance, &other.region), "{name}");
        assert_eq!((&one.velocity, &one.scalars), (&other.velocity, &other.scalars), "{name}");
        assert_eq!(one.distance.len(), scene.cells().iter().product::<usize>(), "{name}");
        assert_ne!(later.cells.distance, run.snapshot(wanted, 1.0).cells.distance, "{name}: it went on");
    }
}
