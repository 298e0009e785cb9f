//! Checkpoints: a simulation with the scene it came from, so that one file is enough to go on.
//!
//! A checkpoint is an archive (`archive`) that begins with a [`Header`]; behind it comes what the solver writes.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveError, Reader, Writer};
use crate::scene::{AnyScene, SceneError, SceneSource};
use crate::sim::SolverKind;

/// What a checkpoint says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of Glug that wrote it.
    pub glug: String,
    /// Whose state it is.
    pub solver: String,
    /// 2 or 3.
    pub dimension: usize,
    /// Frames that are done.
    pub frame: usize,
    /// Frames that the run was to have.
    pub frames: usize,
    /// Frames per simulated second.
    pub fps: f64,
    /// What the scene is read from.
    pub scene: SceneSource,
}

/// Why a checkpoint is of no use.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file is not right.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Another solver wrote it.
    #[error("it is a state of the solver `{0}`, which this version of Glug does not have")]
    UnknownSolver(String),
    /// The scene in it has another dimension than the state.
    #[error("it has a scene in {scene} dimensions with a state in {state}")]
    Dimension {
        /// The scene's.
        scene: usize,
        /// The state's.
        state: usize,
    },
    /// The scene in it is not understood.
    #[error("the scene in it cannot be read: {0}")]
    Scene(#[from] SceneError),
}

impl Header {
    /// The header for a frame of a run of a scene.
    pub fn new(scene: SceneSource, dimension: usize, frame: usize, frames: usize, fps: f64) -> Self {
        let (glug, solver) = (env!("CARGO_PKG_VERSION").to_owned(), SolverKind::Grid.name().to_owned());
        Header { glug, solver, dimension, frame, frames, fps, scene }
    }

    /// Writes the header; it comes before all else.
    pub fn write(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.value("header", self)
    }

    /// Begins to read a checkpoint: its header and its scene. What comes next is the solver's.
    pub fn read(from: &mut dyn Read) -> Result<(Self, AnyScene, Reader<'_>), CheckpointError> {
        let mut from = Reader::begin(from)?;
        let header: Header = from.value("header")?;
        if SolverKind::from_name(&header.solver).is_none() {
            return Err(CheckpointError::UnknownSolver(header.solver));
        }
        let is_sane = header.fps.is_finite() && header.fps > 0.0;
        ArchiveError::unless(is_sane, "header", "has a frame rate that cannot be")?;
        let scene = header.scene.scene()?;
        if scene.dimension() != header.dimension {
            return Err(CheckpointError::Dimension { scene: scene.dimension(), state: header.dimension });
        }
        Ok((header, scene, from))
    }
}
