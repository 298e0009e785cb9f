//! A room of `src/` uses the rooms before it, never those behind it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms in order. `linear` and `geometry` stand side by side: neither knows the other.
const ROOMS: [&str; 22] = [
    "archive",
    "math",
    "grid",
    "linear",
    "geometry",
    "eigenfluid",
    "liquid",
    "gas",
    "smoke",
    "bubbles",
    "tiles",
    "viscosity",
    "pressure",
    "sim",
    "scene",
    "checkpoint",
    "snapshot",
    "runner",
    "export",
    "realtime",
    "viewer",
    "cli",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The text with line comments cut off: a comment may mention any room.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Rooms named right behind `crate::`, alone or in a group `crate::{a, b::{c}}`.
fn rooms_used(text: &str) -> BTreeSet<String> {
    let word = |text: &str| {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let mut used = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            used.insert(word(rest));
            continue;
        };
        used.insert(word(group));
        let mut depth = 0;
        for (place, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    used.insert(word(&group[place + 1..]));
                }
                _ => {}
            }
        }
    }
    used
}

fn may_use(room: &str, other: &str) -> bool {
    let place = |name: &str| ROOMS.iter().position(|room| *room == name);
    match (place(room), place(other)) {
        _ if (room, other) == ("geometry", "linear") => false,
        (Some(own), Some(other)) => other <= own,
        _ => true,
    }
}

#[test]
fn rooms_use_only_rooms_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut wrong, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    sources(&src, &mut files);
    for file in files {
        let inside = file.strip_prefix(&src).expect("a file below src");
        let mut parts = inside.components();
        let room = parts.next().and_then(|part| part.as_os_str().to_str()).unwrap_or("").to_owned();
        if parts.next().is_none() {
            continue; // lib.rs and main.rs see everything.
        }
        assert!(ROOMS.contains(&room.as_str()), "`{room}` has no place in the order of rooms");
        let text = without_comments(&fs::read_to_string(&file).expect("a source"));
        for other in rooms_used(&text) {
            if !may_use(&room, &other) {
                wrong.push(format!("{} uses `{other}`", inside.display()));
            }
            seen.insert(other);
        }
    }
    assert!(seen.len() > 5, "found the uses: {seen:?}");
    assert!(wrong.is_empty(), "rooms used from the wrong side:\n{}", wrong.join("\n"));
}

#[test]
fn every_way_to_name_a_room_is_seen() {
    let text =
        "use crate::{grid::{Blocks, Field}, sim::State};\nlet x = crate::math::power(2, 3); use crate::cli;";
    let used = rooms_used(text);
    for room in ["grid", "sim", "math", "cli"] {
        assert!(used.contains(room), "{room} in {used:?}");
    }
    assert!(!used.contains("Field") && !used.contains("Blocks"), "{used:?}");
    assert!(!may_use("linear", "geometry") && !may_use("geometry", "linear") && may_use("sim", "linear"));
}
