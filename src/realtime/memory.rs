//! What was measured before: a small file in the user's cache folder.
//!
//! Losing it costs a second of measuring, so whatever is wrong with it is no error: damaged or foreign files, and lines
//! that make no sense, are as good as none.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::choose::{Choice, resolutions};
use crate::export::AtomicFile;
use crate::scene::{Overrides, SceneSource};
use crate::sim::Model;

/// How the file says what it is.
const FORMAT: &str = "glug resolutions 1";
/// Scenes that are remembered; the oldest go first.
const MOST: usize = 200;
/// Larger files are not this one.
const MOST_BYTES: u64 = 1 << 20;
/// Machines change their ways: after this long it is measured anew.
const TRUSTED: Duration = Duration::from_secs(60 * 60 * 24 * 60);

/// What a resolution depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// All that decides how fast a scene goes: its content and changes (but the number of cells), the model, threads, how
    /// many simulations take turns on them, the program, and the processor.
    pub fn new(source: &SceneSource, model: Model, threads: usize, in_turns: usize) -> Self {
        let SceneSource { text, assets, overrides, .. } = source;
        let Overrides { set, .. } = overrides;
        let machine = (env!("CARGO_PKG_VERSION"), processor());
        let all = (text, assets, set, model.name(), threads, in_turns, machine);
        let bytes = serde_json::to_vec(&all).expect("plain texts and numbers serialise");
        Key(format!("{:032x}", xxh3_128(&bytes)))
    }
}

/// The file's place.
#[derive(Clone, Debug)]
pub struct Memory {
    path: PathBuf,
}

/// The whole file.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    key: String,
    /// For people.
    scene: String,
    own: usize,
    cells: usize,
    pace: f64,
    /// Seconds since 1970.
    written: u64,
}

impl Entry {
    fn choice(&self) -> Option<Choice> {
        let Entry { own, cells, pace, .. } = *self;
        let makes_sense = (1..=1 << 16).contains(&own)
            && resolutions(own).contains(&cells)
            && pace.is_finite()
            && pace > 0.0
            && now().abs_diff(self.written) < TRUSTED.as_secs();
        makes_sense.then_some(Choice { own, cells, pace })
    }
}

impl Memory {
    /// The file in the user's cache folder; `None` where there is no such folder.
    pub fn of_user() -> Option<Self> {
        cache_folder().map(|folder| Memory::at(folder.join("glug").join("resolutions.json")))
    }

    /// A file of that name.
    pub fn at(path: PathBuf) -> Self {
        Memory { path }
    }

    /// What was found before for a scene that asks for `own` cells.
    pub fn recall(&self, key: &Key, own: usize) -> Option<Choice> {
        let entries = self.entries();
        let found = entries.iter().rev().find(|entry| entry.key == key.0)?;
        found.choice().filter(|choice| choice.own == own)
    }

    /// Keeps what was found. Where that is not possible, it will be measured again.
    pub fn remember(&self, key: &Key, scene: &str, choice: &Choice) {
        let mut entries = self.entries();
        entries.retain(|entry| entry.key != key.0 && entry.choice().is_some());
        let Choice { own, cells, pace } = *choice;
        entries.push(Entry { key: key.0.clone(), scene: scene.to_owned(), own, cells, pace, written: now() });
        entries.drain(..entries.len().saturating_sub(MOST));
        let content = Content { format: FORMAT.to_owned(), entries };
        // Best effort: a full disk or a read-only home is no reason to stop.
        let _ = self.write(&content);
    }

    fn entries(&self) -> Vec<Entry> {
        let is_small = fs::metadata(&self.path).is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
        let text = if is_small { fs::read(&self.path).unwrap_or_default() } else { Vec::new() };
        let content: Option<Content> = serde_json::from_slice(&text).ok();
        content.filter(|content| content.format == FORMAT).map_or_else(Vec::new, |content| content.entries)
    }

    fn write(&self, content: &Content) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = AtomicFile::create(&self.path)?;
        serde_json::to_writer_pretty(&mut file, content)?;
        file.commit()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What the processor calls itself, where the system tells, and how many cores there are: homes are shared between
/// machines.
fn processor() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let told = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = told.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    format!("{} {cores} {name}", std::env::consts::ARCH)
}

/// Where the platform wants what can be made again.
fn cache_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = |inside: &str| named("HOME").map(|home| home.join(Path::new(inside)));
    if cfg!(windows) {
        named("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        named("XDG_CACHE_HOME").or_else(|| home("Library/Caches"))
    } else {
        named("XDG_CACHE_HOME").or_else(|| home(".cache"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str, set: &[(&str, &str)], cells: Option<usize>) -> SceneSource {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        SceneSource {
            name: "pool".to_owned(),
            file: "pool.ron".to_owned(),
            text: text.to_owned(),
            assets: vec![("duck.obj".to_owned(), "v 0 0 0".to_owned())],
            overrides: Overrides { cells, model: None, set },
        }
    }

    fn key(scene: &str) -> Key {
        Key::new(&source(scene, &[], None), Model::default(), 2, 1)
    }

    const FOUND: Choice = Choice { own: 64, cells: 48, pace: 1.3 };

    #[test]
    fn what_is_remembered_is_recalled_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = Memory::at(folder.path().join("deep/down/resolutions.json"));
        assert_eq!(memory.recall(&key("a"), 64), None, "there is no file yet");
        memory.remember(&key("a"), "a", &FOUND);
        memory.remember(&key("b"), "b", &Choice { cells: 32, ..FOUND });
        memory.remember(&key("a"), "a", &Choice { cells: 40, ..FOUND });
        assert_eq!(memory.recall(&key("a"), 64), Some(Choice { cells: 40, ..FOUND }), "the later one");
        assert_eq!(memory.recall(&key("b"), 64), Some(Choice { cells: 32, ..FOUND }));
        assert_eq!(memory.recall(&key("c"), 64), None);
        assert_eq!(memory.recall(&key("b"), 96), None, "the scene asks for something else by now");
        let names = fs::read_dir(folder.path().join("deep/down")).expect("a folder").count();
        assert_eq!(names, 1, "nothing half-written stays");
    }

    #[test]
    fn a_key_is_all_that_decides_about_speed() {
        let same = source("scene", &[("cfl", "2")], Some(32));
        let of = |source: &SceneSource, model, threads, turns| Key::new(source, model, threads, turns);
        let one = of(&same, Model::FreeSurface, 2, 1);
        assert_eq!(
            one,
            of(&source("scene", &[("cfl", "2")], None), Model::FreeSurface, 2, 1),
            "cells are the question"
        );
        let mut other_mesh = same.clone();
        other_mesh.assets[0].1 += "v 1 0 0";
        for other in [
            of(&source("scene ", &[("cfl", "2")], None), Model::FreeSurface, 2, 1),
            of(&source("scene", &[("cfl", "3")], None), Model::FreeSurface, 2, 1),
            of(&other_mesh, Model::FreeSurface, 2, 1),
            of(&same, Model::Constraint, 2, 1),
            of(&same, Model::FreeSurface, 3, 1),
            of(&same, Model::FreeSurface, 2, 2),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn damage_is_as_good_as_no_file_and_heals() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("resolutions.json");
        let memory = Memory::at(path.clone());
        memory.remember(&key("a"), "a", &FOUND);
        let whole = fs::read_to_string(&path).expect("a file");
        let damaged = [
            String::new(),
            "\u{0}\u{1}".to_owned(),
            whole[..whole.len() / 2].to_owned(),
            whole.replace(FORMAT, "glug resolutions 2"),
            whole.replace("48", "49"),
            whole.replace("48", "4800"),
            whole.replace("64", "0"),
            whole.replace("1.3", "-1.3"),
            whole.replace("\"cells\"", "\"cell\""),
            "[1, 2, 3]".to_owned(),
        ];
        for text in damaged {
            fs::write(&path, &text).expect("written");
            assert_eq!(memory.recall(&key("a"), 64), None, "{text}");
            memory.remember(&key("a"), "a", &FOUND);
            assert_eq!(memory.recall(&key("a"), 64), Some(FOUND), "after {text}");
        }
        fs::remove_file(&path).expect("removed");
        fs::create_dir(&path).expect("a folder in its place");
        memory.remember(&key("a"), "a", &FOUND);
        assert_eq!(memory.recall(&key("a"), 64), None);
    }

    #[test]
    fn old_findings_and_too_many_of_them_are_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("resolutions.json");
        let memory = Memory::at(path.clone());
        for number in 0..MOST + 3 {
            memory.remember(&key(&number.to_string()), "some", &FOUND);
        }
        assert_eq!(memory.recall(&key("2"), 64), None);
        assert_eq!(memory.recall(&key("3"), 64), Some(FOUND));
        let text = fs::read_to_string(&path).expect("a file");
        let mut content: Content = serde_json::from_str(&text).expect("as it was written");
        content.entries.iter_mut().for_each(|entry| entry.written -= 2 * TRUSTED.as_secs());
        fs::write(&path, serde_json::to_string(&content).expect("plain numbers")).expect("written");
        assert_eq!(memory.recall(&key("3"), 64), None);
    }
}
