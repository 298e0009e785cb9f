//! `glug scenes` and `glug check`.

use super::args::SceneArguments;
use super::source;
use super::table::{Table, grouped};
use super::{Failure, print};
use crate::scene::{AnyScene, Scene};

/// What there is to say about a scene in a line or two.
struct Brief {
    name: String,
    dimension: usize,
    cells: String,
    count: usize,
    size: String,
    title: String,
    summary: String,
    figure: String,
    contents: String,
    frames: usize,
    fps: f64,
    solver: &'static str,
    model: &'static str,
}

impl Brief {
    fn of(scene: &AnyScene) -> Brief {
        match scene {
            AnyScene::TwoD(scene) => Brief::new(scene),
            AnyScene::ThreeD(scene) => Brief::new(scene),
        }
    }

    fn new<const D: usize>(scene: &Scene<D>) -> Brief {
        let setup = &scene.setup;
        let moving = setup.solids.iter().filter(|solid| solid.is_moving()).count();
        Brief {
            name: scene.name.clone(),
            dimension: D,
            cells: setup.grid.cells.map(|count| count.to_string()).join(" × "),
            count: setup.grid.cell_count(),
            size: setup.size.map(|length| length.to_string()).join(" × "),
            title: scene.title.clone(),
            summary: scene.summary.clone(),
            figure: scene.figure.clone().unwrap_or_default(),
            contents: format!(
                "liquids {}, solids {} (moving {moving}), sources {}, drains {}",
                setup.liquids.len(),
                setup.solids.len(),
                setup.sources.len(),
                setup.drains.len()
            ),
            frames: scene.frames,
            fps: scene.fps,
            solver: setup.params.model.solver().name(),
            model: setup.params.model.name(),
        }
    }
}

fn load(name: &str) -> Result<Brief, Failure> {
    let arguments =
        SceneArguments { scene: name.to_owned(), cells: None, model: None, set: Vec::new(), threads: None };
    Ok(Brief::of(&source::load(&arguments)?))
}

/// Prints the built-in scenes.
pub fn list() -> Result<(), Failure> {
    let mut table = Table::default();
    table.row(["NAME", "", "CELLS", "TITLE", "FIGURE"]);
    for name in source::names() {
        let brief = load(name)?;
        table.row([brief.name, format!("{}D", brief.dimension), brief.cells, brief.title, brief.figure]);
    }
    print(&table.to_string())
}

/// Prints what a valid scene holds.
pub fn check(name: &str) -> Result<(), Failure> {
    let brief = load(name)?;
    let mut table = Table::default();
    table
        .row(["scene".to_owned(), format!("{}: {}", brief.name, brief.title)])
        .row(["".to_owned(), brief.summary])
        .row(["domain".to_owned(), format!("{}D, {} m", brief.dimension, brief.size)])
        .row(["cells".to_owned(), format!("{} = {}", brief.cells, grouped(brief.count))])
        .row(["contents".to_owned(), brief.contents])
        .row(["solver".to_owned(), brief.solver.to_owned()])
        .row(["model".to_owned(), brief.model.to_owned()])
        .row(["frames".to_owned(), format!("{} at {} per second", brief.frames, brief.fps)]);
    if !brief.figure.is_empty() {
        table.row(["figure".to_owned(), brief.figure]);
    }
    print(&table.to_string())
}
