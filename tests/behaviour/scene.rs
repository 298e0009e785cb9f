//! Scenes load, and what is wrong with them is said on one line.

use std::fs;
use std::path::{Path, PathBuf};

use glug::geometry::{JointKind, Motor, Move};
use glug::math::Vector;
use glug::scene::{AnyScene, Overrides, Scene, SceneError, library, load};
use glug::sim::{Model, SolverKind, params_table};
use proptest::prelude::*;

const FORMAT: &str = include_str!("../../docs/scene-format.md");

/// A folder with a scene file in `scenes/` and the shipped meshes in `assets/`.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::create_dir_all(folder.path().join("scenes")).expect("a folder for scenes");
        fs::create_dir_all(folder.path().join("assets")).expect("a folder for meshes");
        let gem = include_str!("../../assets/gem.obj");
        fs::write(folder.path().join("assets/gem.obj"), gem).expect("a mesh to refer to");
        Desk { folder }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a file to load");
        path
    }

    fn load(&self, text: impl AsRef<[u8]>) -> Result<AnyScene, SceneError> {
        self.load_with(text, &Overrides::default())
    }

    fn load_with(&self, text: impl AsRef<[u8]>, overrides: &Overrides) -> Result<AnyScene, SceneError> {
        load(path_text(&self.write("scenes/my.ron", text)), overrides)
    }

    /// The message for a bad scene, without the folder.
    fn complaint(&self, text: impl AsRef<[u8]>) -> String {
        let shown = String::from_utf8_lossy(text.as_ref()).into_owned();
        let error = self.load(text).expect_err(&format!("must be refused:\n{shown}"));
        self.shorten(&error)
    }

    fn shorten(&self, error: &SceneError) -> String {
        let message = error.to_string();
        assert!(!message.contains('\n'), "more than one line: {message:?}");
        message.replace(path_text(&self.folder.path().join("scenes/")), "")
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn two_d(scene: AnyScene) -> Scene<2> {
    match scene {
        AnyScene::TwoD(scene) => scene,
        AnyScene::ThreeD(scene) => panic!("{} is 3D", scene.name),
    }
}

fn three_d(scene: AnyScene) -> Scene<3> {
    match scene {
        AnyScene::ThreeD(scene) => scene,
        AnyScene::TwoD(scene) => panic!("{} is 2D", scene.name),
    }
}

fn built_in(name: &str) -> AnyScene {
    load(name, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_built_in_scene_loads_and_introduces_itself() {
    for scene in library() {
        let loaded = built_in(scene.name);
        assert_eq!(loaded.name(), scene.name);
        assert!(!loaded.title().is_empty() && !loaded.summary().is_empty(), "{} says nothing", scene.name);
        assert_eq!(scene.name.ends_with("_2d"), loaded.dimension() == 2, "{}", scene.name);
        assert!(!loaded.title().contains('\n') && !loaded.summary().contains('\n'));
    }
}

#[test]
fn every_scene_file_is_in_the_library_and_is_ron() {
    let mut files = 0;
    for entry in fs::read_dir("scenes").expect("the scenes of the repository") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain name").to_owned();
        assert!(library().iter().any(|scene| scene.name == name), "{name} is not built in");
        let loaded = load(path_text(&path), &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(format!("{loaded:?}"), format!("{:?}", built_in(&name)), "{name} differs from its file");
        files += 1;
    }
    assert_eq!(files, library().len());
    for scene in library() {
        ron::from_str::<ron::Value>(scene.text).unwrap_or_else(|error| panic!("{}: {error}", scene.name));
    }
}

fn starts_clear_of_solids<const D: usize>(scene: &Scene<D>) {
    let setup = &scene.setup;
    let (mut liquid, mut buried) = (0usize, 0usize);
    for flat in 0..setup.grid.cell_count() {
        let mut rest = flat;
        let center = Vector::<D>::from_fn(|axis, _| {
            let index = rest % setup.grid.cells[axis];
            rest /= setup.grid.cells[axis];
            (index as f64 + 0.5) * setup.grid.dx
        });
        if setup.liquids.iter().any(|body| body.shape.distance(&center) < 0.0) {
            liquid += 1;
            buried += usize::from(setup.solids.iter().any(|solid| solid.distance(&center, 0.0) < -1e-9));
        }
    }
    assert_eq!(buried, 0, "{}: {buried} of {liquid} liquid cells start inside solids", scene.name);
    let comes_later = !setup.sources.is_empty() || setup.has_smoke();
    assert!(liquid > 100 || comes_later, "{}: only {liquid} cells of liquid", scene.name);
}

#[test]
fn built_in_liquid_starts_clear_of_solids() {
    for scene in library() {
        match built_in(scene.name) {
            AnyScene::TwoD(scene) => starts_clear_of_solids(&scene),
            AnyScene::ThreeD(scene) => starts_clear_of_solids(&scene),
        }
    }
}

#[test]
fn the_measured_dam_break_covers_the_experiment() {
    let scene = two_d(built_in("dam_break_2d"));
    let a: f64 = 0.05715;
    let last_time = scene.frames as f64 / scene.fps;
    let (mut last_t, mut last_z) = (0.0f64, 0.0f64);
    for line in include_str!("../data/martin_moyce_1952.csv").lines() {
        if let Some((t, z)) = line.split_once(',')
            && let (Ok(t), Ok(z)) = (t.parse::<f64>(), z.parse::<f64>())
        {
            (last_t, last_z) = (last_t.max(t), last_z.max(z));
        }
    }
    assert!(last_t > 9.0, "the measurements are there");
    assert!(last_time * (2.0 * 9.81 / a).sqrt() > last_t);
    assert!(scene.setup.size[0] > last_z * a);
    assert!((scene.setup.grid.dx - a / 32.0).abs() < 1e-12, "32 cells across the column");
}

#[test]
fn the_splash_tank_has_the_published_proportions() {
    let scene = three_d(
        load("splash_tank", &Overrides { cells: Some(100), ..Default::default() }).expect("it loads"),
    );
    assert_eq!(scene.setup.grid.cells, [100, 70, 100]);
}

/// The ```ron blocks of the format's description, with the line each starts on.
fn documented_scenes() -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for (index, line) in FORMAT.lines().enumerate() {
        match (&mut block, line.trim()) {
            (None, "```ron") => block = Some((index + 1, String::new())),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some((_, text)), _) => *text += &format!("{line}\n"),
            (None, _) => {}
        }
    }
    blocks
}

#[test]
fn every_documented_example_loads() {
    let desk = Desk::new();
    let examples = documented_scenes();
    assert!(examples.len() >= 9, "found {} examples", examples.len());
    for (line, text) in examples {
        desk.load(&text).unwrap_or_else(|error| panic!("example at line {line}: {error}"));
        ron::from_str::<ron::Value>(&text).unwrap_or_else(|error| panic!("example at line {line}: {error}"));
    }
}

#[test]
fn the_description_names_every_parameter_shape_move_and_model() {
    let parameters = FORMAT.split("### Parameters").nth(1).expect("a part about parameters");
    for info in params_table() {
        let row = parameters.lines().find(|line| line.starts_with(&format!("| `{}` |", info.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not described", info.name));
        let default = info.default_value().to_string();
        for part in [info.summary, &info.kind.to_string(), default.as_str(), info.unit] {
            assert!(row.contains(part), "the row of {} lacks {part:?}", info.name);
        }
    }
    for model in Model::ALL {
        assert!(FORMAT.contains(&format!("`\"{}\"`", model.name())), "{} is not described", model.name());
    }
    let unknown = |scene: &str| Desk::new().complaint(scene);
    for message in [
        unknown(&scene_with("solids: [thing()]")),
        unknown(&scene_with("solids: [(shape: sphere(center: (0, 0), radius: 1), motion: thing())]")),
    ] {
        let known = message.split("known are ").nth(1).expect("a list of names");
        for name in known.split(", ") {
            assert!(FORMAT.contains(&format!("| `{name}` |")), "{name} is not described");
        }
    }
}

/// A good 2D scene with one more field, on line 5.
fn scene_with(field: &str) -> String {
    format!(
        "(\n    title: \"T\",\n    domain: (size: (1.0, 1.0), cells: 16),\n    liquids: [box(min: (0.0, 0.0), max: (0.5, 0.5))],\n    {field},\n)\n"
    )
}

/// A good 3D scene with one more field, on line 5.
fn space_with(field: &str) -> String {
    scene_with(field)
        .replace("(1.0, 1.0)", "(1.0, 1.0, 1.0)")
        .replace("min: (0.0, 0.0), max: (0.5, 0.5)", "min: (0.0, 0.0, 0.0), max: (0.5, 0.5, 0.5)")
}

#[test]
fn messages_name_the_place_the_field_the_value_and_what_is_allowed() {
    let desk = Desk::new();
    let zero = scene_with("fps: 30").replace("cells: 16", "cells: 0");
    assert_eq!(
        desk.complaint(zero),
        "my.ron:3:39: domain.cells: 0 is not allowed; must be a whole number from 4 to 4096"
    );
    assert_eq!(
        desk.complaint(scene_with("parameters: (flip: 1.5)")),
        "my.ron:5:24: parameters.flip: 1.5 is not allowed; must be a number from 0 to 1"
    );
    assert_eq!(
        desk.complaint(scene_with("frames: 1.5")),
        "my.ron:5:13: frames: 1.5 is not allowed; must be a whole number from 1 to 1000000"
    );
    assert_eq!(
        desk.complaint(scene_with("solids: [(shape: sphere(center: (0.5, NaN), radius: 1))]")),
        "my.ron:5:43: solids[0].shape.center[1]: NaN is not allowed; must be a number of metres from -1000000 to 1000000"
    );
    assert_eq!(
        desk.complaint(scene_with("solids: [(shpe: sphere(center: (0.5, 0.5), radius: 1))]")),
        "my.ron:5:15: solids[0]: unknown field `shpe` (did you mean `shape`?); known are name, shape, motion, from, until, sticky, slip, density, mass, velocity, spin, friction, restitution, fixed"
    );
    assert_eq!(
        desk.complaint(
            "(\n    title: \"T\",\n    domain: (size: (1.0, 1.0), cells: 16),\n    liquids: [box(min"
        ),
        "my.ron:4:22: found the end of the file with `(` of line 4, column 18 still open, but expected `,` or `)`"
    );
}

/// Bad scenes, each with words its message must contain.
fn bad_scenes() -> Vec<(String, Vec<&'static str>)> {
    let bad = |text: String, words: &[&'static str]| (text, words.to_vec());
    let good = scene_with("fps: 30");
    let solid = |shape: &str| scene_with(&format!("solids: [(shape: {shape})]"));
    let solid_3d = |shape: &str| space_with(&format!("solids: [(shape: {shape})]"));
    let moving = |motion: &str| {
        scene_with(&format!("solids: [(shape: sphere(center: (0.5, 0.5), radius: 0.1), motion: {motion})]"))
    };
    let tied = |joint: &str| {
        scene_with(&format!(
            "solids: [(name: \"raft\", shape: sphere(center: (0.5, 0.5), radius: 0.1), mass: 3)], joints: [{joint}]"
        ))
    };
    vec![
        bad(String::new(), &["my.ron:1:1", "end of the file", "a value"]),
        bad("hello".into(), &["1:1", "`hello`", "title, summary"]),
        bad("(title: \"T\"".into(), &["1:12", "still open"]),
        bad("(title: \"T".into(), &["1:9", "never ends"]),
        bad("/* nothing".into(), &["1:1", "comment that never ends"]),
        bad("(".repeat(500), &["1:65", "nested more than 64"]),
        bad(good.clone() + ")", &["7:1", "`)`", "the end of the file"]),
        bad(good.replace("title: \"T\",", ""), &["1:1", "field `title` is missing"]),
        bad(good.replace("title: \"T\"", "title: 3"), &["2:12", "title: 3", "a text in double quotes"]),
        bad(good.replace("title", "titel"), &["2:5", "unknown field `titel`", "did you mean `title`?"]),
        bad(scene_with("title: \"again\""), &["5:5", "`title` is given twice"]),
        bad(
            "(title: \"T\", domain: (size: (1, 1), cells: 8))".into(),
            &["1:1", "no liquid", "`liquids` or `sources`"],
        ),
        // The domain.
        bad(good.replace("size: (1.0, 1.0), ", ""), &["3:13", "domain: field `size` is missing"]),
        bad(good.replace("(1.0, 1.0)", "(1.0)"), &["3:20", "domain.size", "two numbers"]),
        bad(good.replace("(1.0, 1.0)", "(1, 1, 1, 1)"), &["domain.size: (1, 1, 1, 1)", "two numbers"]),
        bad(good.replace("(1.0, 1.0)", "\"big\""), &["domain.size: \"big\"", "two numbers"]),
        bad(good.replace("(1.0, 1.0)", "(0.0, 1.0)"), &["3:21", "domain.size[0]: 0.0", "above 0"]),
        bad(good.replace("(1.0, 1.0)", "(1.0, -1.0)"), &["3:26", "domain.size[1]: -1.0", "above 0"]),
        bad(good.replace("(1.0, 1.0)", "(inf, 1.0)"), &["domain.size[0]: inf", "above 0"]),
        bad(good.replace("(1.0, 1.0)", "(1.0, 1e999)"), &["domain.size[1]: 1e999", "above 0"]),
        bad(
            good.replace("(1.0, 1.0)", "(1.0, 0.01)"),
            &["domain.cells: 16, which leaves 1 cells along y", "400"],
        ),
        bad(
            good.replace("(1.0, 1.0)", "(0.001, 1000000)"),
            &["domain.cells: 16", "GB", "less long and thin"],
        ),
        bad(good.replace("cells: 16", "cells: 16.5"), &["domain.cells: 16.5", "whole number from 4 to 4096"]),
        bad(good.replace("cells: 16", "cells: -16"), &["domain.cells: -16", "whole number"]),
        bad(good.replace("cells: 16", "cells: 99999999999999999999"), &["domain.cells", "whole number"]),
        bad(good.replace("cells: 16", "cells: many"), &["domain.cells: `many`", "whole number"]),
        bad(
            space_with("fps: 30").replace("cells: 16", "cells: 1024"),
            &[
                "domain.cells: 1024",
                "1073741824 cells",
                "214.7 GB",
                "at most 4 GB",
                "271 cells along x would fit",
            ],
        ),
        bad(
            good.replace("cells: 16", "cells: 16, open: [up]"),
            &["3:50", "domain.open[0]: unknown side `up`", "top"],
        ),
        bad(good.replace("cells: 16", "cells: 16, open: [front]"), &["unknown side `front`"]),
        bad(good.replace("cells: 16", "cells: 16, open: top"), &["domain.open: `top`", "a list of sides"]),
        // Liquids, sources and drains.
        bad(
            good.replace("max: (0.5, 0.5)", "max: (1.5, 0.5)"),
            &["4:15", "liquids[0]: `box(…)` that reaches", "(1, 1)"],
        ),
        bad(
            good.replace("min: (0.0, 0.0), max: (0.5, 0.5)", "center: (5, 5), size: (1, 1)"),
            &["no part in the domain"],
        ),
        bad(good.replace("max: (0.5, 0.5)", "max: (0.0, 0.5)"), &["liquids[0].max", "above min, (0, 0)"]),
        bad(
            good.replace("min: (0.0, 0.0)", "min: (0.0, 0.0, 0.0)"),
            &["liquids[0].min: (0.0, 0.0, 0.0)", "two numbers (x, y)"],
        ),
        bad(good.replace("min: (0.0, 0.0), ", ""), &["liquids[0]: field `min` is missing"]),
        bad(good.replace("max: (0.5, 0.5)", "max: (0.5, 0.5), size: (1, 1)"), &["liquids[0]", "not both"]),
        bad(
            good.replace("[box(min: (0.0, 0.0), max: (0.5, 0.5))]", "7"),
            &["4:14", "liquids: 7", "a list of liquids"],
        ),
        bad(
            good.replace("[box(min: (0.0, 0.0), max: (0.5, 0.5))]", "[7]"),
            &["liquids[0]: 7", "shape, velocity, spin"],
        ),
        bad(
            good.replace(
                "[box(min: (0.0, 0.0), max: (0.5, 0.5))]",
                "[(shape: sphere(center: (0.5, 0.9), radius: 0.3))]",
            ),
            &["liquids[0].shape: `sphere(…)` that reaches"],
        ),
        bad(
            good.replace("[box(min: (0.0, 0.0), max: (0.5, 0.5))]", "[half_space(point: (0.0, -0.2))]"),
            &["liquids[0]: `half_space(…)` with no part in the domain"],
        ),
        bad(
            scene_with("sources: [(shape: sphere(center: (3, 3), radius: 0.1))]"),
            &["sources[0].shape", "no part"],
        ),
        bad(
            scene_with("drains: [sphere(center: (3, 3), radius: 0.1)]"),
            &["drains[0]", "no part in the domain"],
        ),
        bad(
            scene_with("drains: [(shape: sphere(center: (0.5, 0.5), radius: 0.1), from: 2, until: 1)]"),
            &["drains[0].until: 1", "later than `from`, 2"],
        ),
        // Solids that move by forces.
        bad(
            moving("glide(velocity: (1, 0)), density: 500"),
            &["solids[0].motion", "left out", "`density` or `mass` moves by forces"],
        ),
        bad(
            solid("sphere(center: (0.5, 0.5), radius: 0.1), density: 500, mass: 3"),
            &["solids[0].mass: 3", "left out"],
        ),
        bad(
            solid("sphere(center: (0.5, 0.5), radius: 0.1), density: 0"),
            &["solids[0].density: 0", "from 0.001"],
        ),
        bad(
            solid("sphere(center: (0.5, 0.5), radius: 0.1), velocity: (1, 0)"),
            &["solids[0].velocity", "come with `density` or `mass`"],
        ),
        bad(solid("half_space(point: (0, 0)), mass: 3"), &["solids[0].shape", "finite size"]),
        bad(
            solid(
                "intersection([sphere(center: (0.2, 0.2), radius: 0.1), sphere(center: (0.8, 0.8), radius: 0.1)]), mass: 3",
            ),
            &["solids[0].shape", "not empty"],
        ),
        bad(
            solid("sphere(center: (0.5, 0.5), radius: 0.1), mass: 3, fixed: [z]"),
            &["solids[0].fixed[0]", "unknown motion `z`", "x, y, spin"],
        ),
        bad(
            solid("sphere(center: (0.5, 0.5), radius: 0.1), mass: 3, restitution: 2"),
            &["restitution: 2", "from 0 to 1"],
        ),
        bad(
            solid(
                "sphere(center: (0.5, 0.5), radius: 0.1), mass: 3, spin: (degrees_per_second: 9, axis: (1, 0, 0))",
            ),
            &["solids[0].spin.axis", "everything turns about z"],
        ),
        // Joints.
        bad(tied("hinge(body: \"buoy\", at: (0.5, 0.5))"), &["joints[0].body", "density", "raft"]),
        bad(tied("hinge(body: \"raft\", to: \"raft\", at: (0.5, 0.5))"), &["joints[0].to", "another solid"]),
        bad(tied("hinge(body: \"raft\")"), &["joints[0]", "`at`"]),
        bad(tied("hinge(body: \"raft\", at: (0.5, 0.5), axis: (0, 0, 1))"), &["joints[0].axis", "in 2D"]),
        bad(
            tied("hinge(body: \"raft\", at: (0.5, 0.5), motor: (speed: 1))"),
            &["joints[0].motor", "`speed`"],
        ),
        bad(tied("rope(body: \"raft\")"), &["joints[0]", "`to_at`"]),
        bad(tied("spring(body: \"raft\", to_at: (0.5, 0.5))"), &["joints[0]", "`stiffness`"]),
        bad(tied("glue(body: \"raft\")"), &["joints[0]", "unknown joint `glue`", "hinge"]),
        bad(tied("(body: \"raft\")"), &["joints[0]", "name(…)"]),
        // Shapes.
        bad(solid("sphere(center: (0.5, 0.5), radius: 0)"), &["solids[0].shape.radius: 0", "above 0"]),
        bad(solid("sphere(center: (0.5, 0.5), radius: -1)"), &["solids[0].shape.radius: -1", "above 0"]),
        bad(
            solid("spere(center: (0.5, 0.5), radius: 1)"),
            &["unknown shape `spere`", "did you mean `sphere`?"],
        ),
        bad(solid("5"), &["solids[0].shape: 5", "a shape, name(…), out of box"]),
        bad(solid("sphere"), &["solids[0].shape", "center, radius"]),
        bad(
            solid("cylinder(from: (0, 0), to: (1, 1), radius: 1)"),
            &["solids[0].shape", "needs a 3D domain"],
        ),
        bad(solid("mesh(file: \"a.obj\")"), &["solids[0].shape", "needs a 3D domain"]),
        bad(solid("rounded_box(min: (0, 0), max: (1, 0.4), radius: 0.3)"), &["radius: 0.3", "from 0 to 0.2"]),
        bad(
            solid("half_space(point: (0, 0), normal: (0, 0))"),
            &["normal: (0, 0)", "a direction longer than zero"],
        ),
        bad(solid("polygon(points: [(0, 0), (1, 1)])"), &["5:38", "points", "at least 3 points, found 2"]),
        bad(solid("polygon(points: [(0, 0), (1, 1), (1, 0), (0, 1)])"), &["points", "must not touch itself"]),
        bad(solid("polygon(points: [(0, 0), (0, 0), (1, 0)])"), &["points 0 and 1 coincide"]),
        bad(solid("polygon(points: [(0, 0), (1, 0), (1, inf)])"), &["points[2][1]: inf"]),
        bad(solid("union([])"), &["solids[0].shape", "at least one shape"]),
        bad(solid("union(sphere(center: (0, 0), radius: 1))"), &["solids[0].shape", "at least one shape"]),
        bad(solid("inverted()"), &["solids[0].shape", "one shape"]),
        bad(
            solid("scale(factor: 0, center: (0, 0), shape: sphere(center: (0, 0), radius: 1))"),
            &["factor: 0", "from 0.000001"],
        ),
        bad(
            solid("scale(factor: -2, center: (0, 0), shape: sphere(center: (0, 0), radius: 1))"),
            &["factor: -2"],
        ),
        bad(
            solid(
                "rotate(degrees: 5, axis: (0, 0, 1), center: (0, 0), shape: sphere(center: (0, 0), radius: 1))",
            ),
            &["shape.axis", "in 2D everything turns about z"],
        ),
        bad(
            solid("rotate(degrees: 5, center: (0, 0), shape: rotate(degrees: x))"),
            &["shape.shape.degrees: `x`"],
        ),
        bad(solid_3d("polygon(points: [(0, 0), (1, 1), (0, 1)])"), &["needs a 2D domain"]),
        bad(solid_3d("cylinder(from: (0, 0, 0), to: (0, 0, 0), radius: 1)"), &["shape.to", "another point"]),
        bad(
            solid_3d("cone(from: (0, 0, 0), to: (0, 1, 0), from_radius: 0)"),
            &["from_radius: 0", "above 0 at one end"],
        ),
        bad(
            solid_3d("torus(center: (0, 0, 0), ring_radius: 1, tube_radius: 2)"),
            &["tube_radius: 2", "at most"],
        ),
        bad(
            solid_3d("mesh(file: \"nowhere.obj\")"),
            &["5:33", "shape.file", "cannot read the mesh \"nowhere.obj\""],
        ),
        bad(solid_3d("mesh(file: \"open.obj\")"), &["5:33", "\"open.obj\" is open: 3 edges"]),
        bad(solid_3d("mesh(file: \"fin.obj\")"), &["\"fin.obj\" is not a clean surface"]),
        bad(solid_3d("mesh(file: \"broken.obj\")"), &["\"broken.obj\" is not a readable OBJ"]),
        bad(solid_3d("mesh(file: \"my.ron\")"), &["the mesh \"my.ron\""]),
        bad(solid_3d("mesh(file: \"\")"), &["shape.file: \"\"", "a text"]),
        // Motion.
        bad(moving("fly()"), &["motion: unknown move `fly`", "glide, spin"]),
        bad(moving("5"), &["motion: 5", "a list of moves"]),
        bad(moving("glide(velocity: (1, inf))"), &["motion.velocity[1]: inf"]),
        bad(moving("[spin(degrees_per_second: 5)]"), &["motion[0]: field `center` is missing"]),
        bad(moving("swing(direction: (0, 0), amplitude: 1, frequency: 1)"), &["direction: (0, 0)"]),
        bad(moving("swing(direction: (1, 0), amplitude: 1, frequency: -1)"), &["frequency: -1", "hertz"]),
        bad(moving("keyframes(keys: [])"), &["keys: an empty list", "at least one key"]),
        bad(
            moving("keyframes(keys: [(time: 1), (time: 1)])"),
            &["keys[1].time: 1", "later than the key before it, at 1 s"],
        ),
        bad(moving("keyframes(keys: [(time: 1), (time: 0.5)])"), &["keys[1].time: 0.5", "later"]),
        bad(moving("keyframes(keys: [(time: -1)])"), &["keys[0].time: -1", "from 0"]),
        bad(moving("keyframes(keys: [(time: 1, degrees: 4)])"), &["motion: field `center` is missing"]),
        bad(
            moving("keyframes(interpolation: bumpy, keys: [(time: 1)])"),
            &["interpolation: `bumpy`", "smooth or linear"],
        ),
        // Parameters and the rest.
        bad(
            scene_with("parameters: (grvity: 1)"),
            &["5:18", "parameters: unknown parameter `grvity`", "did you mean `gravity`?"],
        ),
        bad(scene_with("parameters: (gravity: NaN)"), &["5:27", "parameters.gravity: NaN", "from 0 to 100"]),
        bad(
            scene_with("parameters: (gravity: \"strong\")"),
            &["parameters.gravity: \"strong\"", "from 0 to 100"],
        ),
        bad(scene_with("parameters: {reseed: 1}"), &["parameters.reseed: 1", "true or false"]),
        bad(scene_with("parameters: (sweeps: 2.5)"), &["parameters.sweeps: 2.5", "whole number from 1 to 8"]),
        bad(
            scene_with("parameters: (preconditioner: magic)"),
            &["parameters.preconditioner: `magic`", "one of multigrid"],
        ),
        bad(scene_with("parameters: 7"), &["parameters: 7", "gravity"]),
        bad(
            scene_with("model: \"free-surfac\""),
            &["5:12", "unknown model `free-surfac`", "did you mean `free-surface`?"],
        ),
        bad(
            scene_with("solver: \"gird\""),
            &["5:13", "solver: unknown solver `gird` (did you mean `grid`?); known are grid"],
        ),
        bad(scene_with("solver: 7"), &["5:13", "solver: 7", "the name of a solver"]),
        bad(
            scene_with("model: \"constraint\", parameters: (model: \"two-phase\")"),
            &["parameters.model", "`model` is given twice"],
        ),
        bad(scene_with("frames: 0"), &["5:13", "frames: 0", "from 1"]),
        bad(scene_with("fps: 0"), &["5:10", "fps: 0", "from 1 to 10000"]),
        bad(scene_with("fps: 1-2"), &["5:10", "`1-2`", "a number"]),
        bad(scene_with("summary: \"a\\qb\""), &["5:16", "unknown escape"]),
        bad(scene_with("figure: 3"), &["figure: 3", "a text in double quotes"]),
    ]
}

#[test]
fn everything_wrong_is_caught_with_place_and_remedy() {
    let desk = Desk::new();
    let tetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\n";
    desk.write("scenes/open.obj", tetrahedron);
    desk.write("scenes/fin.obj", format!("{tetrahedron}f 2 3 4\nv 1 1 1\nf 1 2 5\n"));
    desk.write("scenes/broken.obj", "v 0 0 zero\n");
    for (text, words) in bad_scenes() {
        let message = desk.complaint(&text);
        assert!(message.starts_with("my.ron:"), "no place: {message}");
        for word in words {
            assert!(message.contains(word), "{message:?} lacks {word:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let desk = Desk::new();
    let message = desk.complaint([b'(', b'\n', 0xff, 0xfe]);
    assert!(message.contains("cannot read") && message.contains("line 2 is not UTF-8"), "{message}");
    let no_file = load("nowhere/my.ron", &Overrides::default()).expect_err("no such file").to_string();
    assert!(no_file.starts_with("cannot read nowhere/my.ron: "), "{no_file}");
    let folder =
        load(path_text(desk.folder.path()), &Overrides::default()).expect_err("a folder").to_string();
    assert!(folder.contains("it is not a file"), "{folder}");
}

#[test]
fn unknown_scenes_come_with_a_suggestion() {
    let message = load("dambreak", &Overrides::default()).expect_err("no such scene").to_string();
    assert!(message.contains("unknown scene `dambreak` (did you mean `dam_break`?)"), "{message}");
    assert!(library().iter().all(|scene| message.contains(scene.name)), "{message}");
    let odd = load("a\nb", &Overrides::default()).expect_err("no such scene").to_string();
    assert!(!odd.contains('\n'), "{odd:?}");
}

#[test]
fn the_command_line_wins_over_the_file_and_complains_alike() {
    let desk = Desk::new();
    let text = scene_with("parameters: (flip: 0.5)");
    let set = |name: &str, value: &str| Overrides {
        set: vec![(name.to_owned(), value.to_owned())],
        ..Default::default()
    };
    let scene = two_d(desk.load_with(&text, &set("flip", "0.25")).expect("a good scene"));
    assert_eq!(scene.setup.params.flip, 0.25);
    let scene =
        desk.load_with(&text, &Overrides { cells: Some(32), ..Default::default() }).expect("a good scene");
    assert_eq!(scene.cells(), [32, 32]);
    let model = |name: &str| Overrides { model: Some(name.to_owned()), ..Default::default() };
    assert!(desk.load_with(&text, &model("free-surface")).is_ok());
    let scene = desk.load_with(&text, &set("model", "two-phase")).expect("the model is a parameter");
    assert_eq!((scene.params().model, scene.solver()), (Model::TwoPhase, SolverKind::Grid));
    let both = Overrides { set: set("model", "two-phase").set, ..model("constraint") };
    assert_eq!(desk.load_with(&text, &both).expect("`--model` comes last").params().model, Model::Constraint);

    let complaint =
        |overrides: &Overrides| desk.shorten(&desk.load_with(&text, overrides).expect_err("must be refused"));
    assert_eq!(complaint(&set("flip", "2")), "--set flip=2: 2 is not allowed; must be a number from 0 to 1");
    assert!(
        complaint(&set("flop", "2"))
            .starts_with("--set flop=2: unknown parameter `flop` (did you mean `flip`?)")
    );
    assert!(complaint(&set("flip", "a\nb")).contains("must be a number from 0 to 1"));
    assert!(
        complaint(&model("magic"))
            .starts_with("--model magic: unknown model `magic`; known are free-surface")
    );
    let cells = |cells: usize| complaint(&Overrides { cells: Some(cells), ..Default::default() });
    assert_eq!(cells(0), "--cells 0: 0 is not allowed; must be a whole number from 4 to 4096");
    let space = space_with("fps: 30");
    let large = desk
        .load_with(&space, &Overrides { cells: Some(4000), ..Default::default() })
        .expect_err("too large");
    let large = desk.shorten(&large);
    assert!(large.starts_with("--cells 4000: 4000 makes 64000000000 cells, about 12800.0 GB"), "{large}");
}

#[test]
fn fields_mean_what_they_say() {
    let desk = Desk::new();
    let scene = two_d(
        desk.load(
            r##"#![enable(implicit_some)]
            // Everything a little unusual.
            (
                title: "Quotes \" and \u{2019}", /* nested /* comments */ too */
                figure: Some(r#"raw "text""#),
                domain: (size: [2, 1_0e-1], cells: 20, open: [top, right,],),
                liquids: [(
                    shape: box(center: (1, 0.5), size: (0.5, 0.5)),
                    velocity: (1, -2),
                    spin: (degrees_per_second: 180, center: (1, 0.5)),
                )],
                sources: [(shape: sphere(center: (0.5, 0.5), radius: 0.1), velocity: (0, 1), from: 1, until: 2)],
                drains: [sphere(center: (0, 0), radius: 0.1)],
                solids: [
                    sphere(center: (0, 0), radius: 0.1),
                    (name: "wheel", shape: sphere(center: (1, 1), radius: 0.1), motion: [
                        spin(degrees_per_second: -90, center: (1, 1)),
                        glide(velocity: (1, 0), until: 3),
                    ]),
                ],
                parameters: {"flip": 0.5, reseed: false, preconditioner: "jacobi"},
                model: "free-surface",
                frames: 7,
                fps: 12.5,
            )"##,
        )
        .unwrap_or_else(|error| panic!("{error}")),
    );
    assert_eq!(scene.title, "Quotes \" and \u{2019}");
    assert_eq!(scene.figure.as_deref(), Some("raw \"text\""));
    assert_eq!((scene.name.as_str(), scene.frames, scene.fps), ("my", 7, 12.5));
    let setup = &scene.setup;
    assert_eq!((setup.size, setup.grid.cells), ([2.0, 1.0], [20, 10]));
    assert_eq!(setup.open, [[false, true], [false, true]]);
    let flow = setup.liquids[0].flow.at(&Vector::<2>::new(1.0, 1.0));
    assert!((flow - Vector::<2>::new(1.0 - 0.5 * std::f64::consts::PI, -2.0)).norm() < 1e-12, "{flow:?}");
    assert_eq!((setup.sources[0].from, setup.sources[0].until), (1.0, 2.0));
    assert_eq!(setup.drains[0].until, f64::INFINITY);
    assert_eq!((setup.solids[0].name.as_str(), setup.solids[1].name.as_str()), ("solid 1", "wheel"));
    assert!(!setup.solids[0].is_moving());
    let [Move::Spin { rate, .. }, Move::Glide { until, .. }] = &setup.solids[1].motion.moves[..] else {
        panic!("{:?}", setup.solids[1].motion);
    };
    assert!((rate + std::f64::consts::FRAC_PI_2).abs() < 1e-12);
    assert_eq!(*until, 3.0);
    assert_eq!((setup.params.flip, setup.params.reseed), (0.5, false));
}

#[test]
fn solids_with_density_or_mass_are_bodies() {
    let text = scene_with(
        "solids: [
            (shape: box(min: (0.1, 0.6), max: (0.3, 0.7)), density: 500, velocity: (1, -2), spin: (degrees_per_second: 90)),
            (shape: sphere(center: (0.7, 0.7), radius: 0.1), mass: 4, friction: 0.5, restitution: 0.25, fixed: [x, spin]),
        ]",
    );
    let Ok(AnyScene::TwoD(scene)) = Desk::new().load(text) else { panic!("a scene in 2D") };
    let [first, second] = [0, 1].map(|k| scene.setup.solids[k].body.as_deref().expect("a body"));
    assert!((first.material.mass - 10.0).abs() < 1e-12 && second.material.mass == 4.0);
    assert!((first.position() - Vector::<2>::new(0.2, 0.65)).norm() < 1e-12, "{:?}", first.position());
    assert_eq!(first.state().velocity[..3], [1.0, -2.0, std::f64::consts::FRAC_PI_2]);
    assert_eq!((first.material.friction, first.material.restitution), (0.3, 0.0));
    assert_eq!((second.material.friction, second.material.restitution), (0.5, 0.25));
    assert_eq!(second.material.fixed[..3], [true, false, true]);
}

#[test]
fn joints_tie_solids_by_name() {
    let text = scene_with(
        "solids: [
            (name: \"wheel\", shape: sphere(center: (0.5, 0.5), radius: 0.1), mass: 4),
            (name: \"post\", shape: box(min: (0.4, 0.0), max: (0.6, 0.3))),
        ],
        joints: [
            hinge(body: \"wheel\", to: \"post\", at: (0.5, 0.4), motor: (degrees_per_second: 180, torque: 3)),
            rope(body: wheel, to_at: (0.5, 0.9)),
        ]",
    );
    let Ok(AnyScene::TwoD(scene)) = Desk::new().load(text) else { panic!("a scene in 2D") };
    let [hinge, rope] = &scene.setup.joints[..] else { panic!("two joints") };
    let motor = Some(Motor { speed: std::f64::consts::PI, strength: 3.0 });
    assert_eq!((hinge.body, hinge.to, hinge.at), (0, Some(1), [Vector::from([0.5, 0.4]); 2]));
    assert_eq!(hinge.kind, JointKind::Hinge { axis: [0.0, 0.0, 1.0], motor });
    assert_eq!((rope.to, rope.at), (None, [Vector::from([0.5, 0.5]), Vector::from([0.5, 0.9])]));
    assert!(matches!(rope.kind, JointKind::Rope { length } if (length - 0.4).abs() < 1e-12));
}

#[test]
fn a_turned_ball_may_touch_the_walls() {
    // Its bounding box, turned by 45 degrees, reaches out of the domain; the ball does not.
    let ball = "rotate(degrees: 45, center: (0.5, 0.5), shape: sphere(center: (0.5, 0.5), radius: 0.5))";
    let text = scene_with("fps: 30").replace("box(min: (0.0, 0.0), max: (0.5, 0.5))", ball);
    Desk::new().load(text).unwrap_or_else(|error| panic!("{error}"));
}

/// Texts to damage: the built-in scenes and the documented examples.
fn good_texts() -> Vec<String> {
    let built_in = library().iter().map(|scene| scene.text.to_owned());
    built_in.chain(documented_scenes().into_iter().map(|(_, text)| text)).collect()
}

/// One way of damaging a text.
#[derive(Clone, Debug)]
enum Damage {
    Truncate(usize),
    Delete(usize, usize),
    Insert(usize, String),
    Repeat(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let token = prop::sample::select(vec![
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"",
        "\\",
        "-",
        "0",
        "1e308",
        "NaN",
        "inf",
        "-1",
        "999999999",
        "true",
        "None",
        "sphere",
        "r#\"",
        "//",
        "/*",
        "\u{0}",
        "\n",
        "é",
        "size:",
        "0.0000001",
    ]);
    prop_oneof![
        any::<usize>().prop_map(Damage::Truncate),
        (any::<usize>(), 1usize..12).prop_map(|(at, count)| Damage::Delete(at, count)),
        (any::<usize>(), token).prop_map(|(at, token)| Damage::Insert(at, token.to_owned())),
        (any::<usize>(), 1usize..40).prop_map(|(at, count)| Damage::Repeat(at, count)),
    ]
}

fn apply(damage: &Damage, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let place = |at: usize| at % (chars.len() + 1);
    match damage {
        Damage::Truncate(at) => chars.truncate(place(*at)),
        Damage::Delete(at, count) => {
            let start = place(*at);
            chars.drain(start..(start + count).min(chars.len()));
        }
        Damage::Insert(at, token) => {
            let start = place(*at);
            chars.splice(start..start, token.chars());
        }
        Damage::Repeat(at, count) => {
            let start = place(*at);
            let part: Vec<char> = chars[start..(start + count).min(chars.len())].to_vec();
            chars.splice(start..start, part);
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn damaged_files_load_or_complain_on_one_line(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let texts = good_texts();
        let text = damages.iter().fold(which.get(&texts).clone(), |text, damage| apply(damage, &text));
        if let Err(error) = Desk::new().load(&text) {
            let message = error.to_string();
            prop_assert!(!message.is_empty() && !message.contains('\n') && message.len() < 1500, "{message:?}");
        }
    }

    #[test]
    fn any_bytes_load_or_complain_on_one_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = Desk::new().load(&bytes) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
