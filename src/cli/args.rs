//! What may be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Liquids with bubbles: an interactive viewer and a headless solver.
#[derive(Debug, Parser)]
#[command(name = "glug", version, about, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do; without it, the viewer opens.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate a scene without a window.
    Run(RunArguments),
    /// Write the linear system of a projection as MatrixMarket, with its solution.
    System(SystemArguments),
    /// Measure speed and memory on fixed scenes, or how fast every scene goes.
    Bench(BenchArguments),
    /// List the built-in scenes.
    Scenes,
    /// Validate a scene file.
    Check {
        /// Built-in name or path of the scene.
        scene: String,
    },
    /// Open the viewer on a scene.
    View(ViewArguments),
    /// Render the viewer's picture without a window.
    Render(RenderArguments),
    /// Simulate, draw and measure what the paper's figures show, as a page.
    Figures(FiguresArguments),
}

/// What a picture shows.
#[derive(Debug, Default, Args)]
pub struct ShownArguments {
    /// Built-in name or path of the scene; without it, the default scene as a comparison of two models.
    pub scene: Option<String>,
    /// Cells along x.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub cells: Option<usize>,
    /// How air is treated.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// A second model, side by side with the first.
    #[arg(long, value_name = "MODEL")]
    pub compare: Option<String>,
    /// Change a parameter; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// Arguments of `view`.
#[derive(Debug, Default, Args)]
pub struct ViewArguments {
    #[command(flatten)]
    pub shown: ShownArguments,
    /// Threads of the simulations together; all cores but one unless told.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Measure the window for so many seconds, print the figures, and close it.
    #[arg(long, value_name = "S", value_parser = positive, allow_negative_numbers = true)]
    pub measure: Option<f64>,
}

/// Arguments of `render`.
#[derive(Debug, Args)]
pub struct RenderArguments {
    #[command(flatten)]
    pub shown: ShownArguments,
    /// Threads of the simulations; all cores unless told.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// A video (FILE.mp4, needs ffmpeg), a picture of the last frame (FILE.png), or a folder for a picture per frame.
    #[arg(long, value_name = "FILE|DIR")]
    pub out: PathBuf,
    /// Frames to simulate; the scene's own count unless told.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub frames: Option<usize>,
    /// Width and height in pixels.
    #[arg(long, value_name = "WxH", value_parser = size, default_value = "1280x720")]
    pub size: (u32, u32),
    /// Dark background.
    #[arg(long)]
    pub dark: bool,
    /// What to draw: bubble-colours, bubble-labels, regions, particles, velocity, pressure, divergence, grid, cutaway,
    /// tiles, bands, affine-field, smoke; the first two and smoke unless told.
    #[arg(long, value_name = "LAYER,…", value_delimiter = ',')]
    pub layers: Vec<String>,
    /// Place of the cut and the slices in 3D, 0 to 1 from back to front.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.5")]
    pub cut: f32,
    /// Draw the panels as well.
    #[arg(long)]
    pub panels: bool,
    /// The picture alone: no captions, no meters.
    #[arg(long, conflicts_with = "panels")]
    pub plain: bool,
    /// No progress bar.
    #[arg(long)]
    pub quiet: bool,
}

/// Arguments of `figures`.
#[derive(Debug, Args)]
pub struct FiguresArguments {
    /// Folder for `figures.md` and its folder of pictures.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only these parts: numbers of figures, `released`, `speed`.
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Threads of the simulations; all cores unless told.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

/// Which scene, and what to change in it.
#[derive(Debug, Args)]
pub struct SceneArguments {
    /// Built-in name or path of the scene.
    pub scene: String,
    /// Cells along x.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub cells: Option<usize>,
    /// How air is treated: free-surface, constraint, two-phase, affine-bubbles or affine-tiles.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Change a parameter; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Threads of the simulation; all cores unless told.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Built-in name or path of the scene; left out with --resume.
    #[arg(required_unless_present = "resume")]
    pub scene: Option<String>,
    /// Cells along x.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub cells: Option<usize>,
    /// How air is treated: free-surface, constraint, two-phase, affine-bubbles or affine-tiles.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Change a parameter; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Threads of the simulation; all cores unless told.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Frames to simulate, counted from the start of the scene; the scene's own count unless told.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub frames: Option<usize>,
    /// Frames per simulated second.
    #[arg(long, value_name = "F", value_parser = positive, allow_negative_numbers = true)]
    pub fps: Option<f64>,
    /// Choose the number of cells so that the simulation keeps up with the clock on this machine: by a short measurement,
    /// which is remembered; never finer than the scene's own. --cells wins.
    #[arg(long, conflicts_with = "resume")]
    pub realtime: bool,
    /// Write a checkpoint into the folder of --out every N frames: checkpoint_0020.glug holds scene and state.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, requires = "out")]
    pub checkpoint_every: Option<usize>,
    /// Keep the newest K checkpoints only.
    #[arg(long, value_name = "K", value_parser = whole, allow_negative_numbers = true, requires = "checkpoint_every")]
    pub keep_checkpoints: Option<usize>,
    /// Go on from a checkpoint, or from the newest one in a folder, instead of starting a scene: gives the same as the
    /// run that was never interrupted. --frames still counts from the start of the scene; --model and --set change live
    /// parameters.
    #[arg(long, value_name = "FILE|DIR")]
    pub resume: Option<PathBuf>,
    /// Write statistics here: JSON Lines, one object per frame. With --resume, lines of the file up to the checkpoint
    /// stay.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Write exported files into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What to write every frame; `ply` when only --out is given.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', requires = "out")]
    pub export: Vec<ExportKind>,
    /// No progress bar, no closing table.
    #[arg(long)]
    pub quiet: bool,
}

/// A kind of file written every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportKind {
    /// Surface mesh, binary PLY.
    Ply,
    /// Surface mesh, OBJ.
    Obj,
    /// Particles with velocities, binary PLY.
    Particles,
    /// A picture.
    Png,
}

/// Arguments of `system`.
#[derive(Debug, Args)]
pub struct SystemArguments {
    #[command(flatten)]
    pub scene: SceneArguments,
    /// The frame whose last projection is written.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub frame: usize,
    /// Folder to write into.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// What the JSON of `bench --scenes` holds.
const SCENES_JSON: &str = "\
JSON of --scenes: a list, one object per scene.
  scene, dimension, model, cells_xyz, threads
  frames                  measured frames: those of the scene, or as many as fit into 5 seconds; exactly --frames N if given
  fps                     frames per simulated second
  substeps, substeps_per_frame
  simulated_seconds, seconds
                          simulated time and wall time of those frames
  real_time_factor        simulated_seconds / seconds: 1 keeps up with the clock
  seconds_per_substep     wall time: total, and one entry per stage
  particles, liquid_cells, unknowns
                          at the last frame
  picture                 a snapshot for the window: pause_seconds the simulation waits, draw_seconds beside it
  comparison              2D: two models at once, as in the window (models, threads of each, frames, seconds,
                          real_time_factor); null in 3D";

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_long_help = SCENES_JSON)]
pub struct BenchArguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Instead of the fixed scenes: the real-time factor of every built-in scene on this machine, its time per substep by
    /// stage, and in 2D that of two models side by side.
    #[arg(long, group = "chosen", conflicts_with = "state")]
    pub scenes: bool,
    /// With --scenes: measure exactly so many frames of each, however long that takes.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, requires = "scenes")]
    pub frames: Option<usize>,
    /// Instead of the fixed scenes: run this one, then do one substep of it with every model and preconditioner.
    #[arg(long, group = "chosen", value_name = "SCENE")]
    pub state: Option<String>,
    /// With --state or --scenes: cells along x.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, requires = "chosen")]
    pub cells: Option<usize>,
    /// With --state: the frame after which to compare.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true, default_value_t = 5)]
    pub frame: usize,
    /// With --state or --scenes: change a parameter; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "chosen")]
    pub set: Vec<String>,
    /// With --state or --scenes: only the ways or scenes whose name contains one of these texts, separated by commas.
    #[arg(long, value_name = "TEXT", requires = "chosen", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Threads of the simulation; all cores unless told.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

fn whole(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number >= 1)
        .ok_or_else(|| "must be a whole number from 1 on".to_owned())
}

/// Every thread has a stack of its own: far too many would take the machine down.
fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=512).contains(number));
    number.ok_or_else(|| "must be a whole number from 1 to 512".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "must be a number above 0".to_owned())
}

fn share(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

/// Videos want even numbers, and graphics cards have an end.
fn size(text: &str) -> Result<(u32, u32), String> {
    let number =
        |text: &str| text.parse().ok().filter(|n: &u32| (16..=8192).contains(n) && n.is_multiple_of(2));
    text.split_once('x')
        .and_then(|(width, height)| number(width).zip(number(height)))
        .ok_or_else(|| "must be two even numbers from 16 to 8192, for example 1280x720".to_owned())
}
