//! The flood fill against a plain search, on rooms of which only some blocks are stored.

use std::collections::HashMap;

use glug::bubbles::{Measure, NO_COMPONENT};
use glug::geometry::{Label, Settled};
use glug::grid::VOID;
use rayon::ThreadPoolBuilder;

use super::naive::Room;

fn the_fill_finds_what_a_search_finds<const D: usize>(seeds: std::ops::Range<u64>) {
    let (mut unstored, mut many, mut open) = (0, 0, 0);
    for seed in seeds {
        let room = Room::<D>::random(seed);
        let components = room.fill();
        let (of, list) = room.search(false);
        assert_eq!(components.len(), list.len(), "{D}D seed {seed}: as many components");
        // The same cells belong together: a component found the naive way and one of the fill name each other.
        let mut component_of = HashMap::new();
        for (cell, index) in room.cells() {
            let component = components.of[index];
            let label = room.label[index];
            assert_eq!(
                component == NO_COMPONENT,
                label == Label::Solid,
                "{D}D seed {seed}: {cell:?} is {label:?}"
            );
            if let Some(&naive) = of.get(&cell) {
                let known = *component_of.entry(naive).or_insert(component);
                assert_eq!(
                    known, component,
                    "{D}D seed {seed}: {cell:?} in another component than its neighbours"
                );
            }
        }
        let mut named: Vec<u32> = component_of.values().copied().collect();
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), component_of.len(), "{D}D seed {seed}: one component each");
        for (&naive, &component) in &component_of {
            let (expected, found) = (&list[naive], &components.list[component as usize]);
            assert_eq!(found.phase, expected.phase, "{D}D seed {seed}");
            assert_eq!(found.open, expected.open, "{D}D seed {seed}: {expected:?}");
            assert_eq!(found.far_cells, expected.far_cells, "{D}D seed {seed}: {expected:?}");
        }
        let grid = room.blocks.grid();
        unstored += grid.all_blocks().filter(|&coords| room.blocks.slot_at(coords) == VOID).count();
        many += list.len();
        open += list.iter().filter(|naive| naive.open).count();
    }
    assert!(
        unstored > 10 && many > 100 && open > 0,
        "{D}D: {unstored} blocks out, {many} components, {open} open"
    );
}

#[test]
fn the_fill_finds_what_a_search_finds_2d() {
    the_fill_finds_what_a_search_finds::<2>(0..24);
}

#[test]
fn the_fill_finds_what_a_search_finds_3d() {
    the_fill_finds_what_a_search_finds::<3>(0..5);
}

/// Components that touch hang together, and nothing else does: the container of liquid and air (a combined region).
fn basins_are_what_a_search_through_both_phases_finds<const D: usize>(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let room = Room::<D>::random(seed);
        let components = room.fill();
        let measure = room.measure(&components);
        let (of, _) = room.search(true);
        let (mut basin_of, mut naive_of) = (HashMap::new(), HashMap::new());
        for (cell, index) in room.cells() {
            let (Some(&naive), component) = (of.get(&cell), components.of[index]) else { continue };
            let basin = measure.basin[component as usize];
            assert_eq!(*basin_of.entry(naive).or_insert(basin), basin, "{D}D seed {seed}: {cell:?}");
            assert_eq!(*naive_of.entry(basin).or_insert(naive), naive, "{D}D seed {seed}: {cell:?}");
        }
        // A container without liquid is one air component.
        for basin in naive_of.keys() {
            let inside = (0..components.len()).filter(|&component| measure.basin[component] == *basin);
            let phases: Vec<Label> = inside.map(|component| components.list[component].phase).collect();
            let dry = !phases.contains(&Label::Liquid);
            assert!(!dry || phases.len() == 1, "{D}D seed {seed}: {phases:?} in one dry container");
        }
    }
}

#[test]
fn basins_are_what_a_search_through_both_phases_finds_2d() {
    basins_are_what_a_search_through_both_phases_finds::<2>(0..12);
}

#[test]
fn basins_are_what_a_search_through_both_phases_finds_3d() {
    basins_are_what_a_search_through_both_phases_finds::<3>(0..3);
}

fn threads_do_not_change_the_fill<const D: usize>() {
    for seed in 0..4 {
        let room = Room::<D>::random(seed);
        let run = |threads: usize| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| {
                let components = room.fill();
                let measure = room.measure(&components);
                let of: Vec<u32> = room.cells().iter().map(|&(_, index)| components.of[index]).collect();
                let volumes: Vec<u64> = measure.extent.iter().map(|extent| extent.volume.to_bits()).collect();
                (of, components.list.clone(), volumes, measure.basin.clone())
            })
        };
        let one = run(1);
        for threads in [2, 3] {
            assert!(run(threads) == one, "{D}D seed {seed}: {threads} threads found something else");
        }
    }
}

#[test]
fn threads_do_not_change_the_fill_2d() {
    threads_do_not_change_the_fill::<2>();
}

#[test]
fn threads_do_not_change_the_fill_3d() {
    threads_do_not_change_the_fill::<3>();
}

/// How much air there is does not depend on which blocks of it are stored.
fn volumes_do_not_depend_on_what_is_stored<const D: usize>() {
    for seed in 0..6 {
        let [some, all] = [false, true].map(|all| {
            let room = Room::<D>::stored(seed, all);
            let components = room.fill();
            let measure = room.measure(&components);
            (room, components, measure)
        });
        assert!(
            some.0.blocks.slots().len() < all.0.blocks.slots().len(),
            "{D}D seed {seed}: something is left out"
        );
        let everywhere: HashMap<[i32; D], usize> = all.0.cells().into_iter().collect();
        for (cell, index) in some.0.cells() {
            let (component, same) = (some.1.of[index], all.1.of[everywhere[&cell]]);
            assert_eq!(component == NO_COMPONENT, same == NO_COMPONENT, "{D}D seed {seed}: {cell:?}");
            if component != NO_COMPONENT {
                let volume = |measure: &Measure<D>, component: u32| measure.extent[component as usize].volume;
                let (found, expected) = (volume(&some.2, component), volume(&all.2, same));
                // Cells where two sides of the domain meet look a quarter smaller than they are if they are stored.
                let edges: usize =
                    if D == 2 { 4 } else { some.0.blocks.grid().cells.iter().sum::<usize>() * 4 };
                let slack = 0.25 * edges as f64 + 1e-6 * expected;
                assert!((found - expected).abs() <= slack, "{D}D seed {seed}: {found} cells, not {expected}");
            }
        }
    }
}

#[test]
fn volumes_do_not_depend_on_what_is_stored_2d() {
    volumes_do_not_depend_on_what_is_stored::<2>();
}

#[test]
fn volumes_do_not_depend_on_what_is_stored_3d() {
    volumes_do_not_depend_on_what_is_stored::<3>();
}

/// One set of memory, many rooms: nothing of an earlier fill shows in a later one.
#[test]
fn a_fill_leaves_nothing_behind() {
    let (first, second) = (Room::<2>::random(1), Room::<2>::random(2));
    let fresh = second.fill();
    let mut used = first.fill();
    used.fill(
        &second.blocks,
        &second.boundary,
        &second.walls,
        &second.label,
        &Settled::default(),
        &second.far,
    );
    assert_eq!(used.list, fresh.list);
    assert!(second.cells().iter().all(|&(_, index)| used.of[index] == fresh.of[index]));
}
