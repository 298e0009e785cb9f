//! The files of a run: checked before it starts, written frame by frame.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Failure;
use super::args::{ExportKind, RunArguments};
use crate::export::{AtomicFile, StatsWriter, draw, probe_folder, write_obj, write_particles, write_ply};
use crate::geometry::extract_surface;
use crate::runner::{AnyGrid, Frame, GridSolver, Outcome};
use crate::scene::AnyScene;
use crate::snapshot::{Scenery, Snapshot, Wanted, show_grid, solid_field};

/// Where a run writes, and what.
#[derive(Debug)]
pub struct Outputs {
    folder: Option<PathBuf>,
    kinds: Vec<ExportKind>,
    /// What stands still in pictures, if there are any.
    scenery: Option<Arc<Scenery>>,
    stats: Option<(PathBuf, StatsWriter)>,
    written: usize,
}

impl Outputs {
    /// Makes sure that everything can be written, and starts the statistics; those of frames up to `done` stay.
    pub fn prepare(arguments: &RunArguments, scene: &AnyScene, done: Option<usize>) -> Result<Self, Failure> {
        let mut kinds = arguments.export.clone();
        if arguments.out.is_some() && kinds.is_empty() {
            kinds.push(ExportKind::Ply);
        }
        if let Some(path) = &arguments.stats {
            if path.is_dir() || path.file_name().is_none() {
                return Err(Failure::Input(format!(
                    "--stats needs a file, not a folder: {}",
                    path.display()
                )));
            }
            prepare_folder(path.parent().unwrap_or(Path::new("")))?;
        }
        if let Some(folder) = &arguments.out {
            prepare_folder(folder)?;
        }
        let stats = match &arguments.stats {
            Some(path) => {
                let writer = match done {
                    None => StatsWriter::create(path),
                    Some(done) => StatsWriter::resume(path, done),
                };
                let writer = writer.map_err(|error| {
                    Failure::Input(format!("cannot write statistics: {error}: {}", path.display()))
                })?;
                Some((path.clone(), writer))
            }
            None => None,
        };
        let scenery = kinds.contains(&ExportKind::Png).then(|| Arc::new(Scenery::of(scene)));
        Ok(Outputs { folder: arguments.out.clone(), kinds, scenery, stats, written: 0 })
    }

    /// Writes what belongs to a frame; stops between two files, or inside a picture, when the stop flag is up.
    pub fn write(&mut self, frame: &Frame<'_>) -> io::Result<Outcome> {
        let outcome = match frame.solver.grid() {
            Some(AnyGrid::TwoD(grid)) => self.write_files(frame, grid)?,
            Some(AnyGrid::ThreeD(grid)) => self.write_files(frame, grid)?,
            None => Outcome::Finished,
        };
        if let (Outcome::Finished, Some((path, stats))) = (outcome, &mut self.stats) {
            stats.write(frame.report).map_err(|error| named(error, path))?;
        }
        Ok(outcome)
    }

    fn write_files<const D: usize>(
        &mut self,
        frame: &Frame<'_>,
        grid: &GridSolver<D>,
    ) -> io::Result<Outcome> {
        let Some(folder) = &self.folder else { return Ok(Outcome::Finished) };
        let simulation = &grid.simulation;
        let (blocks, surface) = (simulation.blocks(), simulation.surface());
        let particles = [simulation.particle_positions(), simulation.particle_velocities()];
        let wants_mesh = self.kinds.iter().any(|kind| matches!(kind, ExportKind::Ply | ExportKind::Obj));
        let mesh = wants_mesh.then(|| extract_surface(blocks, surface));
        let snapshot = self.scenery.as_ref().map(|scenery| snapshot(scenery, frame, grid));
        for kind in &self.kinds {
            if frame.stop.load(Ordering::Relaxed) {
                return Ok(Outcome::Stopped);
            }
            let path = folder.join(file_name(*kind, frame.report.frame));
            let write = || {
                let mut file = AtomicFile::create(&path)?;
                match (kind, &mesh, &snapshot) {
                    (ExportKind::Ply, Some(mesh), _) => write_ply(mesh, &mut file)?,
                    (ExportKind::Obj, Some(mesh), _) => write_obj(mesh, &mut file)?,
                    (ExportKind::Png, _, Some(snapshot)) => match draw(snapshot, frame.stop) {
                        Some(picture) => picture.write_png(&mut file)?,
                        None => return Ok(Outcome::Stopped),
                    },
                    _ => write_particles(particles[0], particles[1], blocks.grid().dx, &mut file)?,
                }
                file.flush()?;
                file.commit()?;
                Ok(Outcome::Finished)
            };
            if write().map_err(|error| named(error, &path))? == Outcome::Stopped {
                return Ok(Outcome::Stopped);
            }
            self.written += 1;
        }
        Ok(Outcome::Finished)
    }

    /// What was written, in words; nothing when nothing was asked for.
    pub fn summary(&self) -> Option<String> {
        let files = self.folder.as_ref().map(|folder| format!("{} in {}", self.written, folder.display()));
        let stats = self.stats.as_ref().map(|(path, _)| path.display().to_string());
        let parts: Vec<_> = files.into_iter().chain(stats).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// What a picture of a frame is drawn from: what the window would show.
fn snapshot<const D: usize>(scenery: &Arc<Scenery>, frame: &Frame<'_>, grid: &GridSolver<D>) -> Snapshot {
    let (report, params) = (frame.report.clone(), frame.solver.params().clone());
    let mut snapshot = Snapshot::new(Arc::clone(scenery), 0, report, params);
    snapshot.solids = Arc::new(solid_field(&grid.setup_now(), frame.report.time));
    show_grid(&grid.simulation, Wanted::default(), &mut snapshot);
    snapshot
}

/// Makes sure that a folder can be written to.
pub fn prepare_folder(folder: &Path) -> Result<(), Failure> {
    probe_folder(folder)
        .map_err(|error| Failure::Input(format!("cannot write into folder: {error}: {}", folder.display())))
}

fn file_name(kind: ExportKind, frame: usize) -> String {
    match kind {
        ExportKind::Ply => format!("liquid_{frame:04}.ply"),
        ExportKind::Obj => format!("liquid_{frame:04}.obj"),
        ExportKind::Particles => format!("particles_{frame:04}.ply"),
        ExportKind::Png => format!("picture_{frame:04}.png"),
    }
}

/// Adds the file that an error is about.
pub fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("could not write: {error}: {}", path.display()))
}
