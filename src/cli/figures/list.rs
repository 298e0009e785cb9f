//! Which figures there are, and what is simulated for each.

/// One picture of one simulation.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Name of the picture's file.
    pub file: &'static str,
    /// What stands below it.
    pub caption: &'static str,
    /// Built-in scene.
    pub scene: &'static str,
    /// Cells along x.
    pub cells: usize,
    /// Frames that are simulated and measured.
    pub frames: usize,
    /// The frame that is drawn, if it is not the last.
    pub drawn: Option<usize>,
    /// The model, if it is not the scene's own.
    pub model: Option<&'static str>,
    /// Parameters to change.
    pub set: &'static [&'static str],
    /// Layers to draw.
    pub layers: &'static [&'static str],
}

/// How the panels of a figure are held against its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Not at all.
    Nothing,
    /// Mean difference of the columns' heights over the run, in cells.
    Heights,
    /// Largest distance between the centroids of the trapped air that touches no wall over the first second, in cells.
    Centroids,
}

/// A figure.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its number in the paper.
    pub number: &'static str,
    /// A few words.
    pub title: &'static str,
    /// What there is to see.
    pub words: &'static str,
    /// Pictures side by side.
    pub columns: usize,
    /// The pictures.
    pub panels: &'static [Panel],
    /// How they are compared, each row of panels with the first of that row.
    pub against: Against,
}

const PLAIN: Panel = Panel {
    file: "",
    caption: "",
    scene: "",
    cells: 0,
    frames: 0,
    drawn: None,
    model: None,
    set: &[],
    layers: &["bubble-colours", "bubble-labels"],
};
const COOLER: Panel = Panel { scene: "water_cooler", cells: 40, frames: 40, ..PLAIN };
const LIGHT: Panel = Panel { scene: "light_bubble_2d", cells: 128, frames: 10, ..PLAIN };
const NEUTRAL: Panel = Panel { scene: "neutral_bubble_2d", cells: 128, frames: 60, drawn: Some(12), ..PLAIN };
const HEAVY: Panel = Panel { scene: "heavy_bubble_2d", cells: 128, frames: 30, drawn: Some(18), ..PLAIN };
const RISING: Panel = Panel { scene: "rising_bubbles", cells: 40, frames: 12, ..PLAIN };
const SINKING: Panel = Panel {
    scene: "sinking_bubbles",
    cells: 64,
    frames: 30,
    drawn: Some(16),
    layers: &["bubble-colours", "cutaway"],
    ..PLAIN
};
const POOL: Panel =
    Panel { scene: "pool_tiles_2d", cells: 128, frames: 24, layers: &["bubble-colours", "tiles"], ..PLAIN };
const BALL: Panel = Panel { cells: 128, frames: 30, layers: &["bubble-colours", "tiles"], ..PLAIN };
const SPLASH: Panel = Panel { scene: "splash_tank_tiles", cells: 64, frames: 30, ..PLAIN };

/// All figures with pictures, in the paper's order.
pub const FIGURES: &[Figure] = &[
    Figure {
        number: "1",
        title: "Water cooler",
        words: "Without air in the solve the bottle empties at once. With one unknown per bubble it glugs.",
        columns: 2,
        panels: &[
            Panel { file: "cooler_free", caption: "free surface", model: Some("free-surface"), ..COOLER },
            Panel {
                file: "cooler_constraint",
                caption: "constraint bubbles",
                model: Some("constraint"),
                ..COOLER
            },
        ],
        against: Against::Nothing,
    },
    Figure {
        number: "6",
        title: "A light bubble",
        words: "Air of 1 kg/m³ in water of 1000 kg/m³: giving it a mass and a momentum changes little.",
        columns: 3,
        panels: &[
            Panel { file: "light_two_phase", caption: "two-phase", model: Some("two-phase"), ..LIGHT },
            Panel {
                file: "light_constraint",
                caption: "constraint bubbles",
                model: Some("constraint"),
                ..LIGHT
            },
            Panel { file: "light_affine", caption: "affine bubbles", model: Some("affine-bubbles"), ..LIGHT },
        ],
        against: Against::Centroids,
    },
    Figure {
        number: "8",
        title: "Neutral and heavy bubbles",
        words: "Above, a bubble as dense as the water around it; below, one ten times denser. Constraint bubbles weigh \
                nothing and rise. With a mass the neutral one stays and the heavy one sinks.",
        columns: 3,
        panels: &[
            Panel {
                file: "neutral_two_phase",
                caption: "neutral, two-phase",
                model: Some("two-phase"),
                ..NEUTRAL
            },
            Panel {
                file: "neutral_affine",
                caption: "neutral, affine bubbles",
                model: Some("affine-bubbles"),
                ..NEUTRAL
            },
            Panel {
                file: "neutral_constraint",
                caption: "neutral, constraint bubbles",
                model: Some("constraint"),
                ..NEUTRAL
            },
            Panel { file: "heavy_two_phase", caption: "heavy, two-phase", model: Some("two-phase"), ..HEAVY },
            Panel {
                file: "heavy_affine",
                caption: "heavy, affine bubbles",
                model: Some("affine-bubbles"),
                ..HEAVY
            },
            Panel {
                file: "heavy_constraint",
                caption: "heavy, constraint bubbles",
                model: Some("constraint"),
                ..HEAVY
            },
        ],
        against: Against::Centroids,
    },
    Figure {
        number: "10",
        title: "Rising bubbles",
        words: "Many bubbles with a volume each. With a free surface they are gone.",
        columns: 2,
        panels: &[
            Panel {
                file: "rising_constraint",
                caption: "constraint bubbles",
                model: Some("constraint"),
                ..RISING
            },
            Panel { file: "rising_free", caption: "free surface", model: Some("free-surface"), ..RISING },
        ],
        against: Against::Nothing,
    },
    Figure {
        number: "11",
        title: "A sinking bubble",
        words: "A ball ten times denser than the water falls into a pool of its kind.",
        columns: 2,
        panels: &[
            Panel { file: "sinking_two_phase", caption: "two-phase", model: Some("two-phase"), ..SINKING },
            Panel {
                file: "sinking_affine",
                caption: "affine bubbles",
                model: Some("affine-bubbles"),
                ..SINKING
            },
        ],
        against: Against::Centroids,
    },
    Figure {
        number: "12",
        title: "One region and many",
        words: "The deep water as a single affine region, and divided into tiles, square ones and others.",
        columns: 2,
        panels: &[
            Panel { file: "pool_whole", caption: "one region", set: &["tile_size=whole"], ..POOL },
            Panel { file: "pool_tiles", caption: "tiles of 16 cells", ..POOL },
        ],
        against: Against::Nothing,
    },
    Figure {
        number: "13",
        title: "A ball in a circle",
        words: "A disc of liquid has fallen onto a round wall. A single region is too stiff to follow; tiles are not.",
        columns: 3,
        panels: &[
            Panel {
                file: "ball_uniform",
                caption: "every cell for itself",
                scene: "ball_in_circle_2d",
                ..BALL
            },
            Panel { file: "ball_whole", caption: "one region", scene: "ball_in_circle_whole_2d", ..BALL },
            Panel {
                file: "ball_tiles",
                caption: "tiles of 8 cells",
                scene: "ball_in_circle_tiles_2d",
                ..BALL
            },
        ],
        against: Against::Heights,
    },
    Figure {
        number: "14",
        title: "Splash tank",
        words: "Two balls of water have fallen into a pool: with every cell for itself, in tiles, and the tiles cut open.",
        columns: 3,
        panels: &[
            Panel {
                file: "splash_uniform",
                caption: "every cell for itself",
                model: Some("free-surface"),
                ..SPLASH
            },
            Panel { file: "splash_tiles", caption: "tiles of 16 cells", ..SPLASH },
            Panel {
                file: "splash_cut",
                caption: "the same, cut open",
                layers: &["bubble-colours", "tiles", "bands"],
                ..SPLASH
            },
        ],
        against: Against::Heights,
    },
];

/// The bands of figure 16: caption, model, and parameters.
pub const BANDS: [(&str, &str, &[&str]); 3] = [
    ("every cell for itself", "free-surface", &[]),
    ("band of 9 cells", "affine-tiles", &["surface_band=9"]),
    ("band of 3 cells", "affine-tiles", &["surface_band=3"]),
];
/// Their scene, cells and frames.
pub const BANDS_OF: (&str, usize, usize) = ("splash_tank_tiles", 96, 30);
/// The frame that is drawn.
pub const BANDS_AT: usize = 12;

/// Balls let go at rest: scene, models, and what theory says without walls, over g, upwards.
pub const RELEASED: [(&str, &[&str], f64); 4] = [
    ("released_bubble_2d", &["constraint", "two-phase", "affine-bubbles"], 1.0),
    ("released_bubble", &["constraint", "two-phase", "affine-bubbles"], 2.0),
    ("released_heavy_bubble_2d", &["two-phase", "affine-bubbles"], -9.0 / 11.0),
    ("released_heavy_bubble", &["two-phase", "affine-bubbles"], -6.0 / 7.0),
];
/// Cells along x in 2D and in 3D.
pub const RELEASED_CELLS: [usize; 2] = [128, 64];

/// States on which models and preconditioners are timed: figure, scene, cells.
pub const SPEEDS: [(&str, &str, usize); 2] = [("14", "splash_tank", 128), ("11", "sinking_bubbles", 64)];
