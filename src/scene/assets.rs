//! Where a scene's meshes come from.

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};

/// Meshes that ship inside the program, by their path in the repository.
const EMBEDDED: &[(&str, &str)] = &[
    ("assets/gem.obj", include_str!("../../assets/gem.obj")),
    ("assets/duck.obj", include_str!("../../assets/duck.obj")),
];

/// Larger files are refused rather than read.
pub(super) const LARGEST_FILE: u64 = 256 << 20;

/// Where the files beside a scene are.
pub(super) enum Shelf {
    /// Of a built-in scene, as if it lay in `scenes/`.
    Embedded,
    /// Of a scene file in this folder.
    Folder(PathBuf),
    /// Kept with the scene: names and texts.
    Kept(Vec<(String, String)>),
}

/// The files beside a scene, and which of them were read.
pub(super) struct Assets {
    shelf: Shelf,
    read: RefCell<Vec<(String, String)>>,
}

impl Assets {
    pub fn new(shelf: Shelf) -> Self {
        Assets { shelf, read: RefCell::default() }
    }

    /// Names and texts of the files that were read.
    pub fn into_read(self) -> Vec<(String, String)> {
        self.read.into_inner()
    }

    /// The text of a file named relative to the scene, or why there is none.
    pub fn read(&self, name: &str) -> Result<String, String> {
        let text = self.shelf.read(name)?;
        let mut read = self.read.borrow_mut();
        if read.iter().all(|(known, _)| known != name) {
            read.push((name.to_owned(), text.clone()));
        }
        Ok(text)
    }
}

impl Shelf {
    fn read(&self, name: &str) -> Result<String, String> {
        match self {
            Shelf::Embedded => {
                let wanted = flatten(&Path::new("scenes").join(name));
                let found = EMBEDDED.iter().find(|(path, _)| Path::new(path) == wanted);
                found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such built-in file".to_owned())
            }
            Shelf::Folder(folder) => read_text(&folder.join(name)),
            Shelf::Kept(files) => {
                let found = files.iter().find(|(known, _)| known == name);
                found.map(|(_, text)| text.clone()).ok_or_else(|| "it was not kept".to_owned())
            }
        }
    }
}

/// Reads a text file of sane size.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a file".to_owned());
    }
    if about.len() > LARGEST_FILE {
        return Err(format!("it has {} bytes, but at most {LARGEST_FILE} are allowed", about.len()));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count();
        format!("line {line} is not UTF-8 text")
    })
}

/// Resolves `.` and `..` without looking at the disk.
fn flatten(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                flat.pop();
            }
            Component::CurDir => {}
            part => flat.push(part),
        }
    }
    flat
}
