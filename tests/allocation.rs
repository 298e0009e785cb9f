//! A substep in a steady state asks for no memory: counted by an allocator of its own, hence a program of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use glug::geometry::Shape;
use glug::grid::Grid;
use glug::liquid;
use glug::math::Vector;
use glug::scene::{AnyScene, Overrides, load};
use glug::sim::{Flow, LiquidBody, Params, Scratch, Setup, StageTimes, State, StepLength, prepare, substep};
use rayon::ThreadPoolBuilder;

struct Counting;

static WATCHING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Counts an allocation, and remembers where the first came from.
fn note() {
    if WATCHING.load(Ordering::Relaxed) && COUNT.fetch_add(1, Ordering::Relaxed) == 0 {
        // Looking around asks for memory, too.
        WATCHING.store(false, Ordering::Relaxed);
        let place = Backtrace::force_capture().to_string();
        if let Ok(mut first) = FIRST.lock() {
            *first = Some(place);
        }
        WATCHING.store(true, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs `warm` substeps, then watches as many more as `counted`.
fn count_allocations<const D: usize>(
    name: &str,
    setup: &Setup<D>,
    threads: usize,
    warm: usize,
    counted: usize,
) {
    let params = &setup.params;
    let mut state = State::new(setup);
    let layout =
        liquid::Layout { per_axis: params.seeds_per_axis as usize, jitter: params.jitter as f32, salt: 0 };
    for body in &setup.liquids {
        let at_rest = |_: &Vector<D>| Vector::zeros();
        liquid::seed(&mut state.particles, &setup.grid, &body.shape, &state.walls, &layout, at_rest, |_| {
            false
        });
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    COUNT.store(0, Ordering::Relaxed);
    pool.install(|| {
        let (mut scratch, mut times, stop) = (Scratch::new(), StageTimes::default(), AtomicBool::new(false));
        prepare(&mut state, params, &mut scratch).expect("it starts");
        let length = StepLength { dt: 1.0 / 60.0, longest: 1.0 / 60.0 };
        for step in 0..warm + counted {
            WATCHING.store(step >= warm, Ordering::Relaxed);
            substep(&mut state, params, &mut scratch, &mut times, length, &stop).expect("it goes on");
        }
        WATCHING.store(false, Ordering::Relaxed);
    });
    let first = FIRST.lock().expect("nobody panicked while counting").take().unwrap_or_default();
    let count = COUNT.load(Ordering::Relaxed);
    assert_eq!(count, 0, "{name}, {threads} threads: allocations in {counted} substeps; the first:\n{first}");
}

/// Half a box of still water.
fn pool<const D: usize>(cells: usize) -> Setup<D> {
    let size = [1.0; D];
    let mut max = Vector::repeat(1.0);
    max[1] = 0.47;
    Setup {
        size,
        grid: Grid::covering(size, cells),
        open: [[false; 2]; D],
        sticky: [[false; 2]; D],
        slip: [[false; 2]; D],
        liquids: vec![LiquidBody { shape: Shape::Box { min: Vector::zeros(), max }, flow: Flow::rest() }],
        sources: Vec::new(),
        drains: Vec::new(),
        air_sources: Vec::new(),
        smoke: Vec::new(),
        smoke_sources: Vec::new(),
        solids: Vec::new(),
        joints: Vec::new(),
        params: Params::default(),
    }
}

/// One test, because the count is everyone's.
#[test]
fn a_steady_substep_asks_for_no_memory() {
    let Ok(AnyScene::TwoD(tilted)) = load("tilted_tank_2d", &Overrides::default()) else {
        panic!("tilted_tank_2d is a scene in two dimensions");
    };
    for threads in [1, 2] {
        count_allocations("tilted tank", &tilted.setup, threads, 60, 60);
        count_allocations("pool in 2D", &pool::<2>(48), threads, 60, 60);
        count_allocations("pool in 3D", &pool::<3>(24), threads, 40, 20);
    }
}
