//! Parameters that are one of a few names.

use crate::linear::PreconditionerKind;

/// Gives an enum the names it has in scene files, on the command line and in the statistics.
macro_rules! named {
    ($type:ident { $($variant:ident = $name:literal,)* }) => {
        impl $type {
            /// Every value, in the order they are offered.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];
            /// The names of all values, in the same order.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The name in scene files, on the command line and in the statistics.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }

            /// The value of that name.
            pub fn from_name(name: &str) -> Option<$type> {
                $type::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

/// The method that a scene is simulated with. Each has models, parameters and layers of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SolverKind {
    /// Particles and a sparse grid, with one pressure solve per substep.
    #[default]
    Grid,
}

named! { SolverKind {
    Grid = "grid",
} }

impl SolverKind {
    /// Its models, the default one first.
    pub fn models(self) -> impl Iterator<Item = Model> + Clone {
        Model::ALL.into_iter().filter(move |model| model.solver() == self)
    }
}

/// How air is treated by the pressure solve (CBAR §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// All air is a free surface at zero pressure: bubbles collapse.
    #[default]
    FreeSurface,
    /// Every closed region of air keeps its volume through one shared pressure: bubbles glug, rise, push and hold.
    Constraint,
    /// Air is a second fluid with a density: the reference, and the only one for heavy air.
    TwoPhase,
    /// Air is a second fluid with a density, and the inside of a bubble moves as one affine field without divergence, or
    /// in tiles of that kind (CBAR §5).
    AffineBubbles,
    /// The deep liquid moves in tiles, each one an affine field without divergence (CBAR §6); `bubbles` says how air is
    /// treated.
    AffineTiles,
}

named! { Model {
    FreeSurface = "free-surface",
    Constraint = "constraint",
    TwoPhase = "two-phase",
    AffineBubbles = "affine-bubbles",
    AffineTiles = "affine-tiles",
} }

impl Model {
    /// The solver that it is a model of.
    pub const fn solver(self) -> SolverKind {
        match self {
            Model::FreeSurface
            | Model::Constraint
            | Model::TwoPhase
            | Model::AffineBubbles
            | Model::AffineTiles => SolverKind::Grid,
        }
    }

    /// The model behind it in the list of its solver, or the first one: what it is compared with first.
    pub fn next(self) -> Model {
        self.solver().models().cycle().skip_while(|one| *one != self).nth(1).unwrap_or(self)
    }

    /// Whether air is a fluid with a density.
    pub const fn has_gas(self) -> bool {
        matches!(self, Model::TwoPhase | Model::AffineBubbles)
    }

    /// What it is called on screen.
    pub const fn title(self) -> &'static str {
        match self {
            Model::FreeSurface => "Free surface",
            Model::Constraint => "Constraint bubbles",
            Model::TwoPhase => "Two phase",
            Model::AffineBubbles => "Affine bubbles",
            Model::AffineTiles => "Affine tiles",
        }
    }

    /// What it does, for people who do not solve equations.
    pub const fn summary(self) -> &'static str {
        match self {
            Model::FreeSurface => "Air is nothing: trapped bubbles collapse.",
            Model::Constraint => "Trapped air keeps its volume: bubbles push back and rise.",
            Model::TwoPhase => "Air is a fluid of its own, of any density: the reference, and slow.",
            Model::AffineBubbles => "Large bubbles move as whole bodies of air.",
            Model::AffineTiles => "Deep water is solved in large tiles.",
        }
    }
}

/// What happens to the air when the model is about something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bubbles {
    /// All air is a free surface.
    FreeSurface,
    /// Closed air keeps its volume.
    #[default]
    Constraint,
}

named! { Bubbles {
    FreeSurface = "free-surface",
    Constraint = "constraint",
} }

/// What solids are on the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WallCells {
    /// Cells are cut where solids cut them (FVF §2).
    #[default]
    Cut,
    /// A cell is solid or not: the way of old, to compare with.
    Voxel,
}

named! { WallCells {
    Cut = "cut",
    Voxel = "voxel",
} }

named! { PreconditionerKind {
    Multigrid = "multigrid",
    Jacobi = "jacobi",
    IncompleteCholesky = "incomplete-cholesky",
    BubblePalindrome = "algorithm-1",
    MinimalResiduals = "minres",
} }

impl PreconditionerKind {
    /// The name of the method in the statistics: a solve that fell back to the diagonal says so.
    pub const fn method(self, fallback: bool) -> &'static str {
        if fallback { "multigrid+jacobi" } else { self.name() }
    }
}
