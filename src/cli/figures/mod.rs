//! `glug figures`: what the paper's figures show, simulated, drawn and measured, as a page.

mod list;
mod page;
mod relief;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::args::{BenchArguments, FiguresArguments};
use super::outputs::prepare_folder;
use super::progress::Progress;
use super::view::{layers, write_whole};
use super::{Failure, print, source, stairs, thread_count, variants};
use crate::export::Picture;
use crate::runner::{SolverError, start_solver};
use crate::scene::{AnyScene, Overrides};
use crate::sim::FrameReport;
use crate::snapshot::Snapshot;
use crate::viewer::{OffscreenSetup, OffscreenViewer, UiState, find_adapter};
use list::{Against, BANDS, BANDS_AT, BANDS_OF, FIGURES, Figure, Panel, RELEASED, RELEASED_CELLS, SPEEDS};
use page::Page;

/// Pixels of a picture: flat scenes, and scenes in space.
const SIZES: [(u32, u32); 2] = [(420, 420), (560, 400)];

/// What a simulation showed of itself, frame by frame.
struct Course {
    moments: Vec<Moment>,
    last: FrameReport,
    iterations: usize,
}

/// A frame, as far as it is compared.
struct Moment {
    time: f64,
    heights: Vec<f32>,
    /// Trapped air that touches no wall: how much, and its centroid in cells.
    floating: f64,
    centroid: Vec<f64>,
    /// Trapped air that the model keeps, over what it should be.
    air: Option<f64>,
}

impl Course {
    fn new() -> Self {
        Course { moments: Vec::new(), last: FrameReport::default(), iterations: 0 }
    }

    fn add(&mut self, snapshot: &Snapshot) {
        let report = &snapshot.report;
        let trapped = || report.bubbles.iter().filter(|bubble| snapshot.is_trapped(bubble));
        let kept = || trapped().filter(|bubble| bubble.constrained);
        let (air, rest): (f64, f64) =
            (kept().map(|bubble| bubble.volume).sum(), kept().map(|bubble| bubble.rest_volume).sum());
        let floating = || trapped().filter(|bubble| !bubble.touches_solid);
        let whole: f64 = floating().map(|bubble| bubble.volume).sum();
        let mean =
            |axis: usize| floating().map(|b| b.volume * b.centroid[axis]).sum::<f64>() / whole / report.dx;
        self.moments.push(Moment {
            time: report.time,
            heights: snapshot.column_heights(),
            floating: whole,
            centroid: (0..report.cells_xyz.len()).map(mean).collect(),
            air: (rest > 0.0).then_some(air / rest),
        });
        let most = report.solve.iter().map(|solve| solve.iterations).max();
        self.iterations = self.iterations.max(most.unwrap_or(0));
        self.last = report.clone();
    }

    /// Mean difference of the heights of columns, in cells, over all frames.
    fn heights_off(&self, other: &Course) -> f64 {
        let pairs = self.moments.iter().zip(&other.moments);
        let off =
            pairs.flat_map(|(a, b)| a.heights.iter().zip(&b.heights)).map(|(a, b)| f64::from((a - b).abs()));
        let (sum, count) = off.fold((0.0, 0usize), |(sum, count), off| (sum + off, count + 1));
        sum / count.max(1) as f64
    }

    /// Whether at least half of the air that floated at first does so now: crumbs do not count.
    fn floats(&self, moment: &Moment) -> bool {
        moment.floating > 0.0 && moment.floating >= 0.5 * self.moments[0].floating
    }

    /// Largest distance of the centroids of floating air in the first second, in cells.
    fn centroids_off(&self, other: &Course) -> Option<f64> {
        let pairs = self.moments.iter().zip(&other.moments).filter(|(a, _)| a.time < 1.0 + 1e-6);
        let pairs = pairs.filter(|(a, b)| self.floats(a) && other.floats(b));
        let squares = |(a, b): (&Moment, &Moment)| -> f64 {
            a.centroid.iter().zip(&b.centroid).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        pairs.map(squares).map(f64::sqrt).reduce(f64::max)
    }
}

/// Makes the page and its pictures.
pub fn figures(arguments: &FiguresArguments, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    find_adapter().map_err(|missing| Failure::Input(missing.to_string()))?;
    let folder = arguments.out.join("figures");
    prepare_folder(&folder)?;
    let wanted = |number: &str| arguments.only.is_empty() || arguments.only.iter().any(|one| one == number);
    let threads = thread_count(arguments.threads);
    let mut page = Page::default();
    for figure in FIGURES.iter().filter(|figure| wanted(figure.number)) {
        let courses = figure
            .panels
            .iter()
            .map(|panel| run(panel, threads, &folder.join(format!("{}.png", panel.file)), stop))
            .collect::<Result<Vec<_>, _>>()?;
        page.figure(figure, &rows(figure, &courses));
    }
    if wanted("16") {
        bands(&mut page, threads, &folder.join("bands.png"), stop)?;
    }
    if wanted("released") {
        page.released(&released(threads, stop)?);
    }
    if wanted("stairs") {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Failure::Work(error.to_string()))?;
        page.stairs(&pool.install(|| stairs::compare(stop))?);
    }
    if wanted("speed") {
        for (number, scene, cells) in SPEEDS {
            let asked = BenchArguments {
                scenes: false,
                frames: None,
                json: false,
                state: Some(scene.to_owned()),
                cells: Some(cells),
                frame: 5,
                set: Vec::new(),
                only: Vec::new(),
                threads: Some(threads),
            };
            page.speed(number, scene, cells, &variants::variants(scene, &asked, stop)?);
        }
    }
    let path = arguments.out.join("figures.md");
    let text = page.finish();
    write_whole(&path, |file| file.write_all(text.as_bytes()))?;
    print(&format!("The page is {}\n", path.display()))
}

/// What the table below a figure's pictures says, a row per panel.
fn rows(figure: &Figure, courses: &[Course]) -> Vec<Vec<String>> {
    courses
        .iter()
        .enumerate()
        .map(|(index, course)| {
            let first = &courses[index / figure.columns * figure.columns];
            let cells: Vec<_> = course.last.cells_xyz.iter().map(usize::to_string).collect();
            let unknowns = course.last.unknowns.pressure + course.last.unknowns.bubble;
            let air = course.moments.last().and_then(|moment| moment.air);
            let mut row = vec![
                figure.panels[index].caption.to_owned(),
                cells.join(" × "),
                super::table::grouped(unknowns),
                course.last.tiles.count.to_string(),
                course.iterations.to_string(),
                air.map_or("none kept".to_owned(), |air| format!("{:.1} %", 100.0 * air)),
            ];
            let is_first = std::ptr::eq(first, course);
            match figure.against {
                Against::Nothing => {}
                _ if is_first => row.push("–".to_owned()),
                Against::Heights => row.push(format!("{:.2}", course.heights_off(first))),
                Against::Centroids => {
                    row.push(course.centroids_off(first).map_or("–".to_owned(), |off| format!("{off:.2}")))
                }
            }
            row
        })
        .collect()
}

/// Simulates a panel, draws a frame of it, and returns its course.
fn run(panel: &Panel, threads: usize, path: &Path, stop: &AtomicBool) -> Result<Course, Failure> {
    let scene = load(panel.scene, panel.cells, panel.model, panel.set)?;
    let names: Vec<String> = panel.layers.iter().map(|layer| (*layer).to_owned()).collect();
    let ui_state =
        UiState { bare: true, plain: true, layers: layers(&names, scene.solver())?, ..UiState::default() };
    let size = SIZES[scene.dimension() - 2];
    let models = vec![scene.params().model];
    let setup = OffscreenSetup { scene, models, size, ui_state, threads };
    follow(panel.file, setup, panel.frames, stop, |frame, viewer| {
        if frame == panel.drawn.unwrap_or(panel.frames) {
            write_small(&viewer.picture()?, path)?;
        }
        Ok(())
    })
}

/// Simulates `frames` frames and returns their course; `each` may look at every one.
fn follow(
    name: &str,
    setup: OffscreenSetup,
    frames: usize,
    stop: &AtomicBool,
    mut each: impl FnMut(usize, &mut OffscreenViewer) -> Result<(), Failure>,
) -> Result<Course, Failure> {
    let bar = Progress::new(name, frames, false);
    let mut viewer = OffscreenViewer::open(setup)?;
    let mut course = Course::new();
    for frame in 1..=frames {
        if !viewer.advance(stop)? {
            return Err(Failure::Stopped(frame - 1));
        }
        course.add(&viewer.moment(0).expect("a pane per model"));
        each(frame, &mut viewer)?;
        bar.tick();
    }
    bar.finish();
    Ok(course)
}

fn load(scene: &str, cells: usize, model: Option<&str>, set: &[&str]) -> Result<AnyScene, Failure> {
    let set: Vec<String> = set.iter().map(|change| (*change).to_owned()).collect();
    let overrides =
        Overrides { cells: Some(cells), model: model.map(str::to_owned), set: source::changes(&set)? };
    source::load_named(scene, &overrides)
}

/// Figure 16: the surface from above, for bands wide enough and too thin.
fn bands(page: &mut Page, threads: usize, path: &Path, stop: &AtomicBool) -> Result<(), Failure> {
    let (scene, cells, frames) = BANDS_OF;
    let mut courses = Vec::new();
    let mut maps = Vec::new();
    for (caption, model, set) in BANDS {
        let scene = load(scene, cells, Some(model), set)?;
        let models = vec![scene.params().model];
        let ui_state = UiState { bare: true, plain: true, ..UiState::default() };
        let setup = OffscreenSetup { scene, models, size: (64, 64), ui_state, threads };
        let course = follow(caption, setup, frames, stop, |_, _| Ok(()))?;
        maps.push(relief::relief(&course.moments[BANDS_AT - 1].heights, course.last.cells_xyz[0], 3));
        courses.push(course);
    }
    write_small(&beside(&maps, 12), path)?;
    let off: Vec<f64> = courses.iter().map(|course| course.heights_off(&courses[0])).collect();
    page.bands(&off);
    Ok(())
}

/// Writes a picture that is drawn once and loaded often.
fn write_small(picture: &Picture, path: &Path) -> Result<(), Failure> {
    write_whole(path, |file| picture.write_small_png(file))
}

/// Pictures of the same height side by side on white.
fn beside(pictures: &[Picture], gap: usize) -> Picture {
    let height = pictures.iter().map(|picture| picture.height).max().unwrap_or(0);
    let width = pictures.iter().map(|picture| picture.width + gap).sum::<usize>().saturating_sub(gap);
    let mut rgb = vec![255; 3 * width * height];
    let mut left = 0;
    for picture in pictures {
        for (y, line) in picture.rgb.chunks_exact(3 * picture.width).enumerate() {
            let at = 3 * (y * width + left);
            rgb[at..at + line.len()].copy_from_slice(line);
        }
        left += picture.width + gap;
    }
    Picture { width, height, rgb }
}

/// First accelerations over g: scene, model, measured, in theory.
fn released(
    threads: usize,
    stop: &AtomicBool,
) -> Result<Vec<(&'static str, &'static str, f64, f64)>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Failure::Work(error.to_string()))?;
    let mut found = Vec::new();
    for (scene, models, theory) in RELEASED {
        for &model in models {
            let cells = RELEASED_CELLS[usize::from(!scene.ends_with("_2d"))];
            let loaded = load(scene, cells, Some(model), &["tolerance=1e-9"])?;
            let gravity = loaded.params().gravity;
            let report = pool.install(|| first_frame(&loaded, stop));
            let report =
                report.map_err(|error| Failure::Work(error.to_string()))?.ok_or(Failure::Stopped(0))?;
            let rise = report.bubbles.first().map_or(f64::NAN, |bubble| bubble.velocity[1]);
            found.push((scene, model, rise / report.time / gravity, theory));
        }
    }
    Ok(found)
}

/// A frame of a millisecond.
fn first_frame(scene: &AnyScene, stop: &AtomicBool) -> Result<Option<FrameReport>, SolverError> {
    start_solver(scene, scene.params().clone())?.advance_frame(1e-3, stop, &mut |_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::library;

    #[test]
    fn every_panel_can_be_simulated() {
        let mut files = Vec::new();
        for panel in FIGURES.iter().flat_map(|figure| figure.panels) {
            let scene = load(panel.scene, panel.cells, panel.model, panel.set);
            let solver = scene.unwrap_or_else(|_| panic!("{panel:?}")).solver();
            let names: Vec<String> = panel.layers.iter().map(|layer| (*layer).to_owned()).collect();
            assert!(layers(&names, solver).is_ok(), "{panel:?}");
            assert!(!files.contains(&panel.file), "{} is drawn once", panel.file);
            files.push(panel.file);
        }
        let known = |name: &str| library().iter().any(|scene| scene.name == name);
        assert!(
            RELEASED.iter().all(|(scene, ..)| known(scene))
                && SPEEDS.iter().all(|(_, scene, _)| known(scene))
        );
    }

    #[test]
    fn crumbs_do_not_count_as_the_bubble() {
        let course = |places: [(f64, f64); 3]| {
            let moment = |(k, (floating, x)): (usize, (f64, f64))| Moment {
                time: 0.1 * k as f64,
                heights: vec![x as f32],
                floating,
                centroid: vec![x, 0.0],
                air: None,
            };
            let moments = places.into_iter().enumerate().map(moment).collect();
            Course { moments, last: FrameReport::default(), iterations: 0 }
        };
        let a = course([(1.0, 0.0), (0.9, 1.0), (0.01, 50.0)]);
        let b = course([(1.0, 0.0), (0.9, 1.5), (0.8, 2.0)]);
        assert_eq!(a.centroids_off(&b), Some(0.5));
        assert!((a.heights_off(&b) - 48.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn pictures_stand_beside_each_other() {
        let one = |shade: u8| Picture { width: 2, height: 2, rgb: vec![shade; 12] };
        let both = beside(&[one(10), one(20)], 1);
        assert_eq!((both.width, both.height), (5, 2));
        assert_eq!(both.rgb[..15], [10, 10, 10, 10, 10, 10, 255, 255, 255, 20, 20, 20, 20, 20, 20]);
    }
}
