//! Scene files in, checked [`Setup`]s out.
//!
//! A scene is a RON file (`docs/scene-format.md` has every field). Reading goes from text to a tree of values that
//! remember their place, and from there to the setup; whatever is wrong is said on one line with file, line, column,
//! field, the value found and what is allowed.

mod assets;
mod build;
mod check;
mod error;
mod joints;
mod library;
mod motions;
mod read;
mod shapes;
mod text;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sim::{Params, Setup, SolverKind};

use assets::{Assets, Shelf};
use error::{nearest, one_line};

pub use error::{Place, Problem, SceneError};
pub use library::{BuiltIn, library, opening_scene};

/// A scene in `D` dimensions.
#[derive(Clone, Debug)]
pub struct Scene<const D: usize> {
    /// The built-in name, or the file's name without its ending.
    pub name: String,
    /// A few words for a menu.
    pub title: String,
    /// What there is to see, in a sentence or two; may be empty.
    pub summary: String,
    /// The published figure it follows.
    pub figure: Option<String>,
    /// What the simulation starts from.
    pub setup: Setup<D>,
    /// Frames a run lasts unless told otherwise.
    pub frames: usize,
    /// Frames per simulated second.
    pub fps: f64,
    /// Cells along x that the scene file asks for, whatever was asked for instead.
    pub own_cells: usize,
}

/// A scene of either dimension.
///
/// ```
/// use glug::scene::{AnyScene, Overrides, load};
///
/// let overrides = Overrides { cells: Some(32), ..Overrides::default() };
/// let scene = load("dam_break", &overrides)?;
/// assert_eq!(scene.params().model.name(), "free-surface");
/// let AnyScene::ThreeD(scene) = scene else { panic!("a scene in space") };
/// assert_eq!(scene.setup.grid.cells[0], 32);
/// assert!(load("dam_brake", &overrides).is_err());
/// # Ok::<(), glug::scene::SceneError>(())
/// ```
#[derive(Clone, Debug)]
pub enum AnyScene {
    /// In the plane.
    TwoD(Scene<2>),
    /// In space.
    ThreeD(Scene<3>),
}

/// Takes the same expression from a scene of either dimension.
macro_rules! either {
    ($any:expr, $scene:ident => $value:expr) => {
        match $any {
            AnyScene::TwoD($scene) => $value,
            AnyScene::ThreeD($scene) => $value,
        }
    };
}

impl AnyScene {
    /// 2 or 3.
    pub fn dimension(&self) -> usize {
        match self {
            AnyScene::TwoD(_) => 2,
            AnyScene::ThreeD(_) => 3,
        }
    }

    /// The built-in name, or the file's name without its ending.
    pub fn name(&self) -> &str {
        either!(self, scene => &scene.name)
    }

    /// A few words for a menu.
    pub fn title(&self) -> &str {
        either!(self, scene => &scene.title)
    }

    /// What there is to see.
    pub fn summary(&self) -> &str {
        either!(self, scene => &scene.summary)
    }

    /// The published figure it follows.
    pub fn figure(&self) -> Option<&str> {
        either!(self, scene => scene.figure.as_deref())
    }

    /// Cells along each axis.
    pub fn cells(&self) -> &[usize] {
        either!(self, scene => &scene.setup.grid.cells)
    }

    /// Frames a run lasts unless told otherwise.
    pub fn frames(&self) -> usize {
        either!(self, scene => scene.frames)
    }

    /// Frames per simulated second.
    pub fn fps(&self) -> f64 {
        either!(self, scene => scene.fps)
    }

    /// Cells along x that the scene file asks for, whatever was asked for instead.
    pub fn own_cells(&self) -> usize {
        either!(self, scene => scene.own_cells)
    }

    /// The solver that it is for.
    pub fn solver(&self) -> SolverKind {
        self.params().model.solver()
    }

    /// Parameters at the start.
    pub fn params(&self) -> &Params {
        either!(self, scene => &scene.setup.params)
    }
}

/// What the command line changes about a scene.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// `--cells`: cells along x.
    pub cells: Option<usize>,
    /// `--model`.
    pub model: Option<String>,
    /// `--set name=value`, in the order given.
    pub set: Vec<(String, String)>,
}

/// All that a scene is read from: enough to read it again when its files have changed, or are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SceneSource {
    /// The built-in name, or the file's name without its ending.
    pub name: String,
    /// How messages call its file.
    pub file: String,
    /// The scene file.
    pub text: String,
    /// The files it refers to: names and texts.
    pub assets: Vec<(String, String)>,
    /// What the command line changed.
    pub overrides: Overrides,
}

impl SceneSource {
    /// Reads the scene again.
    pub fn scene(&self) -> Result<AnyScene, SceneError> {
        let assets = Assets::new(Shelf::Kept(self.assets.clone()));
        read_scene(&self.name, &self.file, &self.text, &assets, &self.overrides)
    }
}

/// Loads a built-in scene by its name or a scene file by its path.
pub fn load(name_or_path: &str, overrides: &Overrides) -> Result<AnyScene, SceneError> {
    load_with_source(name_or_path, overrides).map(|(scene, _)| scene)
}

/// Loads a scene like [`load`], and returns all that it was read from.
pub fn load_with_source(
    name_or_path: &str,
    overrides: &Overrides,
) -> Result<(AnyScene, SceneSource), SceneError> {
    if let Some(scene) = library().iter().find(|scene| scene.name == name_or_path) {
        let (name, file) = (scene.name.to_owned(), format!("{}.ron", scene.name));
        return read_with_source(name, file, scene.text.to_owned(), Shelf::Embedded, overrides);
    }
    let path = Path::new(name_or_path);
    let looks_like_path = name_or_path.contains(['/', '\\']) || path.extension().is_some() || path.exists();
    if !looks_like_path {
        let names = || library().iter().map(|scene| scene.name);
        return Err(SceneError::UnknownScene {
            name: one_line(name_or_path),
            nearest: nearest(name_or_path, names()),
            known: names().collect::<Vec<_>>().join(", "),
        });
    }
    let file = one_line(name_or_path);
    let text = assets::read_text(path)
        .map_err(|reason| SceneError::Unreadable { path: file.clone(), reason: one_line(&reason) })?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    read_with_source(name, file, text, Shelf::Folder(folder), overrides)
}

fn read_with_source(
    name: String,
    file: String,
    text: String,
    shelf: Shelf,
    overrides: &Overrides,
) -> Result<(AnyScene, SceneSource), SceneError> {
    let assets = Assets::new(shelf);
    let scene = read_scene(&name, &file, &text, &assets, overrides)?;
    let assets = assets.into_read();
    Ok((scene, SceneSource { name, file, text, assets, overrides: overrides.clone() }))
}

fn read_scene(
    name: &str,
    file: &str,
    text: &str,
    assets: &Assets,
    overrides: &Overrides,
) -> Result<AnyScene, SceneError> {
    let root = text::parse(file, text)?;
    build::build(name, &read::Field { file, path: String::new(), node: &root }, assets, overrides)
}
