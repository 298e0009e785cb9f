//! Checkpoints of a run: written every so many frames, and gone on from.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::Failure;
use super::outputs::named;
use crate::archive::{ArchiveError, Writer};
use crate::checkpoint::{CheckpointError, Header};
use crate::export::{AtomicFile, remove_strays};
use crate::runner::{Frame, GridSolver, Solver};
use crate::scene::{AnyScene, SceneSource};
use crate::sim::{Simulation, param, set_param};

/// How the names of checkpoints begin and end; between is the frame.
const NAME: [&str; 2] = ["checkpoint_", ".glug"];

/// When and where checkpoints are written.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// Frames from one to the next.
    every: usize,
    /// How many of the newest ones stay.
    keep: Option<usize>,
    dimension: usize,
    scene: SceneSource,
    frames: usize,
    fps: f64,
}

impl Checkpoints {
    /// For a run of a scene over `frames` frames. What a killed run left unfinished in the folder is removed.
    pub fn new(
        folder: &Path,
        every: usize,
        keep: Option<usize>,
        dimension: usize,
        scene: SceneSource,
        frames: usize,
        fps: f64,
    ) -> Self {
        remove_strays(folder, NAME[0]);
        Checkpoints { folder: folder.to_owned(), every, keep, dimension, scene, frames, fps }
    }

    /// Writes a checkpoint if one is due after this frame.
    pub fn write(&self, frame: &Frame<'_>) -> io::Result<()> {
        let number = frame.report.frame;
        if !number.is_multiple_of(self.every) {
            return Ok(());
        }
        let path = self.folder.join(file_name(number));
        let header = Header::new(self.scene.clone(), self.dimension, number, self.frames, self.fps);
        let write = || {
            let mut file = AtomicFile::create(&path)?;
            let mut out = Writer::begin(&mut file)?;
            header.write(&mut out)?;
            frame.solver.save(&mut out)?;
            out.finish()?;
            Ok(file.commit_synced()?)
        };
        write().map_err(|error: ArchiveError| match error {
            ArchiveError::Io(error) => named(error, &path),
            other => named(io::Error::other(other.to_string()), &path),
        })?;
        self.remove_old(number);
        Ok(())
    }

    /// Removes all but the newest checkpoints up to a frame.
    fn remove_old(&self, newest: usize) {
        let Some(keep) = self.keep else { return };
        let mut older = list(&self.folder);
        older.retain(|(frame, _)| *frame <= newest);
        for (_, path) in older.iter().rev().skip(keep) {
            // One too many does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

/// The name of the checkpoint after a frame.
fn file_name(frame: usize) -> String {
    format!("{}{frame:04}{}", NAME[0], NAME[1])
}

/// The checkpoints in a folder with their frames, oldest first.
fn list(folder: &Path) -> Vec<(usize, PathBuf)> {
    let frame = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix(NAME[0])?.strip_suffix(NAME[1])?.parse().ok()
    };
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<(usize, PathBuf)> = files.filter_map(|path| Some((frame(&path)?, path))).collect();
    found.sort();
    found
}

/// A checkpoint that is being read: its header, its scene, and the file.
pub struct Resumed {
    /// What it says about itself.
    pub header: Header,
    /// The scene.
    pub scene: AnyScene,
    path: PathBuf,
}

/// Reads the head of a checkpoint, or of the newest one in a folder.
pub fn open(path: &Path) -> Result<Resumed, Failure> {
    let path = if path.is_dir() {
        let newest = list(path).pop().map(|(_, path)| path);
        newest.ok_or_else(|| Failure::Input(format!("no checkpoint in this folder: {}", path.display())))?
    } else {
        path.to_owned()
    };
    let mut file = BufReader::new(File::open(&path).map_err(|error| Failure::Input(refusal(&error, &path)))?);
    let (header, scene, _) =
        Header::read(&mut file).map_err(|error| Failure::Input(refusal(&error, &path)))?;
    Ok(Resumed { header, scene, path })
}

impl Resumed {
    /// Reads the simulation, and changes live parameters of it; says why if that cannot be.
    pub fn load(&self, set: &[(String, String)]) -> Result<Box<dyn Solver>, String> {
        let mut solver = self.read().map_err(|error| refusal(&error, &self.path))?;
        let params = solver.params_mut();
        for (name, value) in set {
            let change = |reason: String| format!("--set {name}={value}: {reason}");
            if !param(name).map_err(|error| change(error.to_string()))?.live {
                let reason = "it acts only when a scene starts, and --resume goes on with one that runs";
                return Err(change(reason.to_owned()));
            }
            set_param(params, name, value).map_err(|error| change(error.to_string()))?;
        }
        Ok(solver)
    }

    fn read(&self) -> Result<Box<dyn Solver>, CheckpointError> {
        let file = File::open(&self.path).map_err(ArchiveError::Io)?;
        let mut file = BufReader::with_capacity(1 << 18, file);
        let (_, scene, mut from) = Header::read(&mut file)?;
        let solver: Box<dyn Solver> = match scene {
            AnyScene::TwoD(scene) => {
                let simulation = Simulation::load_from(&scene.setup, &mut from)?;
                Box::new(GridSolver::of(scene.setup, simulation))
            }
            AnyScene::ThreeD(scene) => {
                let simulation = Simulation::load_from(&scene.setup, &mut from)?;
                Box::new(GridSolver::of(scene.setup, simulation))
            }
        };
        from.finish()?;
        Ok(solver)
    }
}

/// Why a checkpoint cannot be gone on from.
fn refusal(reason: &dyn std::error::Error, path: &Path) -> String {
    format!("cannot resume: {reason}: {}", path.display())
}
