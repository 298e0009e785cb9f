//! Where a scene's meshes come from.

use std::path::{Component, Path, PathBuf};

/// Meshes that ship inside the program, by their path in the repository.
const EMBEDDED: &[(&str, &str)] = &[("assets/gem.obj", include_str!("../../assets/gem.obj"))];

/// Larger files are refused rather than read.
pub(super) const LARGEST_FILE: u64 = 256 << 20;

/// The files beside a scene.
pub(super) enum Assets {
    /// Of a built-in scene, as if it lay in `scenes/`.
    Embedded,
    /// Of a scene file in this folder.
    Folder(PathBuf),
}

impl Assets {
    /// The text of a file named relative to the scene, or why there is none.
    pub fn read(&self, name: &str) -> Result<String, String> {
        match self {
            Assets::Embedded => {
                let wanted = flatten(&Path::new("scenes").join(name));
                let found = EMBEDDED.iter().find(|(path, _)| Path::new(path) == wanted);
                found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such built-in file".to_owned())
            }
            Assets::Folder(folder) => read_text(&folder.join(name)),
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
