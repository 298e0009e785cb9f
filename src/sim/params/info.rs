//! A row of the parameter table, and the values it takes.

use super::{Model, Params, SolverKind};

/// A parameter's value, whatever its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number.
    Number(f64),
    /// A switch.
    Switch(bool),
    /// One of a fixed set of names.
    Choice(&'static str),
}

impl std::fmt::Display for ParamValue {
    /// Writes the value as `--set` reads it; numbers come back with all their bits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamValue::Number(number) => write!(f, "{number}"),
            ParamValue::Switch(on) => write!(f, "{on}"),
            ParamValue::Choice(name) => write!(f, "{name}"),
        }
    }
}

/// What values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number between two bounds, inclusive.
    Number {
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },
    /// A whole number between two bounds, inclusive.
    Whole {
        /// Smallest allowed.
        min: u32,
        /// Largest allowed.
        max: u32,
    },
    /// `true` or `false`.
    Switch,
    /// One of these names.
    Choice(&'static [&'static str]),
}

impl std::fmt::Display for ParamKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamKind::Number { min, max } => write!(f, "a number from {min} to {max}"),
            ParamKind::Whole { min, max } => write!(f, "a whole number from {min} to {max}"),
            ParamKind::Switch => write!(f, "true or false"),
            ParamKind::Choice(names) => write!(f, "one of {}", names.join(", ")),
        }
    }
}

/// What a parameter is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Matter and forces.
    Physics,
    /// How liquid moves in a substep.
    Motion,
    /// The particles that carry the liquid.
    Particles,
    /// What air carries.
    Smoke,
    /// Volumes that are kept.
    Volume,
    /// The pressure solve.
    Pressure,
    /// Parts of the fluids that move as a whole.
    Tiles,
}

impl Group {
    /// What it is called on screen.
    pub const fn title(self) -> &'static str {
        match self {
            Group::Physics => "Physics",
            Group::Motion => "Motion",
            Group::Particles => "Particles",
            Group::Smoke => "Smoke",
            Group::Volume => "Volume",
            Group::Pressure => "Pressure solve",
            Group::Tiles => "Tiles",
        }
    }
}

/// Whom a parameter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Chosen for each picture by itself, to compare.
    Picture,
    /// What artists reach for.
    Basic,
    /// For people who tune solvers.
    Advanced,
}

/// A row of the parameter table.
pub struct ParamInfo {
    /// The name in scene files, in the statistics and with `--set`.
    pub name: &'static str,
    /// The name on screen.
    pub title: &'static str,
    /// SI unit, empty for plain numbers.
    pub unit: &'static str,
    /// What it does, in plain words.
    pub summary: &'static str,
    /// What is allowed.
    pub kind: ParamKind,
    /// Takes effect on the next substep; otherwise only when the scene restarts.
    pub live: bool,
    /// What it is about.
    pub group: Group,
    /// Whom it is for.
    pub level: Level,
    /// The models that look at it.
    pub models: &'static [Model],
    /// What else must hold for the models to look at it.
    pub(super) condition: fn(&Params) -> bool,
    /// Reads the value.
    pub get: fn(&Params) -> ParamValue,
    pub(super) set: fn(&mut Params, &ParamValue),
}

/// Why a parameter could not be set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// No such name.
    #[error("unknown parameter `{name}`; parameters are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A value of the wrong kind or out of range.
    #[error("parameter `{name}` is {found}, but must be {allowed}")]
    Invalid {
        /// Which parameter.
        name: &'static str,
        /// What was given.
        found: String,
        /// What would be right.
        allowed: ParamKind,
    },
}

impl ParamInfo {
    /// Sets this parameter from a value, if it is allowed.
    pub fn assign(&self, params: &mut Params, value: &ParamValue) -> Result<(), ParamError> {
        let fits = match (self.kind, value) {
            (ParamKind::Number { min, max }, ParamValue::Number(n)) => {
                n.is_finite() && (min..=max).contains(n)
            }
            (ParamKind::Whole { min, max }, ParamValue::Number(n)) => {
                n.fract() == 0.0 && (min as f64..=max as f64).contains(n)
            }
            (ParamKind::Switch, ParamValue::Switch(_)) => true,
            (ParamKind::Choice(names), ParamValue::Choice(name)) => names.contains(name),
            _ => false,
        };
        if !fits {
            return Err(self.reject(value.to_string()));
        }
        (self.set)(params, value);
        Ok(())
    }

    /// Whether the model in use looks at it.
    pub fn acts_in(&self, params: &Params) -> bool {
        self.models.contains(&params.model) && (self.condition)(params)
    }

    /// Whether a model of that solver looks at it.
    pub fn is_of(&self, solver: SolverKind) -> bool {
        self.models.iter().any(|model| model.solver() == solver)
    }

    /// The default value.
    pub fn default_value(&self) -> ParamValue {
        (self.get)(&Params::default())
    }

    /// Reads a value of this parameter's kind from text; ranges are left to [`Self::assign`].
    pub fn parse(&self, text: &str) -> Result<ParamValue, ParamError> {
        let text = text.trim();
        let parsed = match self.kind {
            ParamKind::Number { .. } | ParamKind::Whole { .. } => text.parse().ok().map(ParamValue::Number),
            ParamKind::Switch => text.parse().ok().map(ParamValue::Switch),
            ParamKind::Choice(names) => {
                names.iter().find(|name| **name == text).map(|name| ParamValue::Choice(name))
            }
        };
        parsed.ok_or_else(|| self.reject(format!("`{text}`")))
    }

    fn reject(&self, found: String) -> ParamError {
        ParamError::Invalid { name: self.name, found, allowed: self.kind }
    }
}
