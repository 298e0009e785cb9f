//! What can be wrong with a scene, each on one line that says where, what was found and what would be right.

use std::fmt;

use crate::geometry::{MeshError, PolygonError};

/// Where a value came from: a file with line and column, or a command-line option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or the option as it was typed.
    pub source: String,
    /// Line and column, counted from 1; options have none.
    pub position: Option<(usize, usize)>,
    /// Path of the field, as in `liquids[0].shape.radius`; empty for the whole scene and for options.
    pub field: String,
}

impl Place {
    /// A command-line option, as it was typed.
    pub fn option(typed: &str) -> Self {
        Place { source: one_line(typed), position: None, field: String::new() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if self.field.is_empty() { Ok(()) } else { write!(f, ": {}", self.field) }
    }
}

/// What went wrong while a scene was read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SceneError {
    /// Neither a built-in scene nor a file.
    #[error("unknown scene `{name}`{}; give a path to a scene file or one of {known}", suggest(.nearest))]
    UnknownScene {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
        /// The built-in scenes.
        known: String,
    },
    /// The file could not be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// Something in the file, or in an option that changes it.
    #[error("{place}: {problem}")]
    At {
        /// Where.
        place: Box<Place>,
        /// What.
        problem: Box<Problem>,
    },
}

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The text is not well formed.
    #[error("found {found}, but expected {expected}")]
    Syntax {
        /// What is there.
        found: String,
        /// What should be there.
        expected: String,
    },
    /// A value of the wrong kind or out of range.
    #[error("{found} is not allowed; must be {allowed}")]
    Value {
        /// What was found.
        found: String,
        /// What would be right.
        allowed: String,
    },
    /// A name that means nothing here.
    #[error("unknown {kind} `{found}`{}; known are {known}", suggest(.nearest))]
    UnknownName {
        /// What kind of thing is named: field, shape, model, …
        kind: &'static str,
        /// The name.
        found: String,
        /// What may have been meant.
        nearest: Option<String>,
        /// All that is known.
        known: String,
    },
    /// A field that must be there is not.
    #[error("field `{0}` is missing")]
    Missing(String),
    /// A field given twice.
    #[error("field `{0}` is given twice; give it once")]
    Repeated(String),
    /// Nothing to simulate.
    #[error("no liquid; there must be an entry in `liquids` or `sources`, or in `smoke` or `smoke_sources`")]
    NoLiquid,
    /// A grid that would not fit in memory.
    #[error(
        "{cells} makes {count} cells, about {gigabytes:.1} GB, which is not allowed; must be at most {limit_gigabytes} GB{}",
        fits(.fitting)
    )]
    TooLarge {
        /// Cells along x that were asked for.
        cells: usize,
        /// Cells in all.
        count: u128,
        /// Their estimated memory.
        gigabytes: f64,
        /// The most that is allowed.
        limit_gigabytes: f64,
        /// Cells along x that would fit.
        fitting: Option<usize>,
    },
    /// A polygon that is none.
    #[error(transparent)]
    Polygon(#[from] PolygonError),
    /// A mesh that cannot be used.
    #[error("the mesh {path} {reason}")]
    Mesh {
        /// The mesh's file.
        path: String,
        /// What is wrong.
        reason: MeshError,
    },
    /// A mesh that cannot be read.
    #[error("cannot read the mesh {path}: {reason}")]
    MissingMesh {
        /// The mesh's file.
        path: String,
        /// Why not.
        reason: String,
    },
}

impl Problem {
    /// This problem at a place.
    pub(super) fn at(self, place: Place) -> SceneError {
        SceneError::At { place: Box::new(place), problem: Box::new(self) }
    }

    /// A name that is not among the known ones.
    pub(super) fn unknown_name(kind: &'static str, found: &str, known: &[&str]) -> Self {
        Problem::UnknownName {
            kind,
            found: one_line(found),
            nearest: nearest(found, known.iter().copied()),
            known: known.join(", "),
        }
    }
}

fn suggest(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn fits(fitting: &Option<usize>) -> String {
    match fitting {
        Some(cells) => format!("; {cells} cells along x would fit"),
        None => "; make the domain less long and thin".to_owned(),
    }
}

/// Text made fit for a message: on one line, without control characters, not too long.
pub(super) fn one_line(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut line: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| {
            let escape = c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
            if escape { c.escape_default().collect::<Vec<_>>() } else { vec![c] }
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

/// The known name that a wrong one was probably meant to be.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let wrong: Vec<char> = name.chars().take(64).collect();
    known
        .into_iter()
        .map(|candidate| (edits(&wrong, &candidate.chars().collect::<Vec<_>>()), candidate))
        .filter(|(edits, candidate)| *edits <= 1 + candidate.len() / 4)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate.to_owned())
}

/// How many letters must be added, removed or replaced to turn one word into the other.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(!letter.eq_ignore_ascii_case(other));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_recognised_and_far_ones_left_alone() {
        let known = ["gravity", "flip", "cfl", "dam_break"];
        assert_eq!(nearest("grvity", known).as_deref(), Some("gravity"));
        assert_eq!(nearest("dambreak", known).as_deref(), Some("dam_break"));
        assert_eq!(nearest("viscosity", known), None);
    }

    #[test]
    fn messages_stay_on_one_line() {
        assert_eq!(one_line("a\nb\u{7}"), "a\\nb\\u{7}");
        assert_eq!(one_line(&"x".repeat(500)).chars().count(), 121);
    }
}
