//! Measuring a scene: short runs at several resolutions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::choose::{Choice, Limits, choose};
use super::memory::{Key, Memory};
use crate::runner::{SolverError, start_solver};
use crate::scene::{Overrides, SceneError, load, load_with_source};
use crate::sim::{Model, Params};

/// Wall seconds of the coarse run, which has to see the scene at its busiest.
const COARSE_SECONDS: f64 = 0.6;
/// Wall seconds of each finer one.
const FINE_SECONDS: f64 = 0.35;

/// What to find a resolution for.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Built-in name or path of the scene.
    pub scene: String,
    /// Changes to it; the number of cells is what is asked for.
    pub overrides: Overrides,
    /// The models that are to keep up side by side; none for the scene's own.
    pub models: Vec<Model>,
    /// Threads of each simulation.
    pub threads: usize,
    /// Whether the simulations take turns on the same threads.
    pub in_turns: bool,
    /// Whether to measure even where the answer is remembered: the machine may have been busy then.
    pub anew: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum KeepUpError {
    /// The scene cannot be read.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// It cannot be simulated at a resolution that was tried.
    #[error(transparent)]
    Simulation(#[from] SolverError),
    /// No threads.
    #[error("could not start threads to measure on: {0}")]
    Threads(#[from] ThreadPoolBuildError),
    /// The stop flag was raised.
    #[error("stopped")]
    Stopped,
}

/// The finest resolution at which all models of the question keep up, remembered or measured; what is measured is
/// remembered.
pub fn keep_up(
    question: &Question,
    memory: Option<&Memory>,
    stop: &AtomicBool,
) -> Result<Choice, KeepUpError> {
    let Question { scene: name, threads, .. } = question;
    let overrides = Overrides { cells: None, ..question.overrides.clone() };
    let (scene, source) = load_with_source(name, &overrides)?;
    let own_model = [scene.params().model];
    let models = if question.models.is_empty() { &own_model[..] } else { &question.models };
    let in_turns = if question.in_turns { models.len() } else { 1 };
    let own = scene.own_cells();
    let limits = Limits { dimension: scene.dimension(), own, frame_seconds: 1.0 / scene.fps(), in_turns };
    let mut pool = None;
    let mut all: Option<Choice> = None;
    for &model in models {
        let key = Key::new(&source, model, *threads, in_turns);
        let known = memory.filter(|_| !question.anew).and_then(|memory| memory.recall(&key, own));
        let choice = match known {
            Some(choice) => choice,
            None => {
                let pool = match &mut pool {
                    Some(pool) => pool,
                    none => none.insert(ThreadPoolBuilder::new().num_threads((*threads).max(1)).build()?),
                };
                let mut budget = COARSE_SECONDS;
                let choice = choose(&limits, |cells| {
                    let overrides = Overrides { cells: Some(cells), ..overrides.clone() };
                    let budget = std::mem::replace(&mut budget, FINE_SECONDS);
                    measure(name, &overrides, model, pool, budget, stop)
                })?;
                if let Some(memory) = memory {
                    memory.remember(&key, scene.name(), &choice);
                }
                choice
            }
        };
        all = Some(match all {
            Some(other)
                if other.cells < choice.cells || other.cells == choice.cells && other.pace < choice.pace =>
            {
                other
            }
            _ => choice,
        });
    }
    all.ok_or(KeepUpError::Stopped)
}

/// The wall seconds that each frame of a scene took, until time is up.
fn measure(
    name: &str,
    overrides: &Overrides,
    model: Model,
    pool: &ThreadPool,
    budget: f64,
    stop: &AtomicBool,
) -> Result<Vec<f64>, KeepUpError> {
    let scene = load(name, overrides)?;
    let params = Params { model, ..scene.params().clone() };
    pool.install(|| {
        let mut solver = start_solver(&scene, params)?;
        let end = Instant::now() + Duration::from_secs_f64(budget);
        let time_is_up = AtomicBool::new(false);
        let mut frames = Vec::new();
        while frames.len() < scene.frames() && Instant::now() < end {
            let start = Instant::now();
            solver.advance_frame(1.0 / scene.fps(), &time_is_up, &mut |_| {
                let over = Instant::now() >= end || stop.load(Ordering::Relaxed);
                time_is_up.fetch_or(over, Ordering::Relaxed);
            })?;
            if stop.load(Ordering::Relaxed) {
                return Err(KeepUpError::Stopped);
            }
            frames.push(start.elapsed().as_secs_f64());
        }
        Ok(frames)
    })
}

/// A question that is being answered on a thread of its own. Dropping it ends that soon.
#[derive(Debug)]
pub struct Search {
    answer: Arc<OnceLock<Option<Choice>>>,
    stop: Arc<AtomicBool>,
}

impl Search {
    /// Starts to look for an answer.
    pub fn start(question: Question, memory: Option<Memory>) -> std::io::Result<Self> {
        let search = Search { answer: Arc::default(), stop: Arc::default() };
        let (answer, stop) = (Arc::clone(&search.answer), Arc::clone(&search.stop));
        std::thread::Builder::new().name("glug-measure".into()).spawn(move || {
            // Where that fails the scene's own resolution is as good as any, and loading it will say what is wrong.
            let found = catch_unwind(AssertUnwindSafe(|| keep_up(&question, memory.as_ref(), &stop)));
            answer.get_or_init(|| found.ok().and_then(Result::ok));
        })?;
        Ok(search)
    }

    /// Remembers, on a thread of its own, that a resolution turned out to be right for all models of the question.
    pub fn settle(question: Question, memory: Memory, choice: Choice) {
        let keep = move || {
            let overrides = Overrides { cells: None, ..question.overrides };
            let Ok((scene, source)) = load_with_source(&question.scene, &overrides) else { return };
            let in_turns = if question.in_turns { question.models.len() } else { 1 };
            for model in question.models {
                memory.remember(&Key::new(&source, model, question.threads, in_turns), scene.name(), &choice);
            }
        };
        // Without a thread it will be measured, and offered, once more.
        let _ = std::thread::Builder::new().name("glug-remember".into()).spawn(keep);
    }

    /// The answer, when it is there; inside, `None` if there is none to be had.
    pub fn poll(&self) -> Option<Option<Choice>> {
        self.answer.get().copied()
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
