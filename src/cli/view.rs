//! `glug view`, plain `glug`, and `glug render`.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::{RenderArguments, ShownArguments, ViewArguments};
use super::outputs::prepare_folder;
use super::progress::Progress;
use super::{FRAMES, Failure, conclude, print, source, thread_count};
use crate::export::{AtomicFile, Picture, Video, exit_cleanly};
use crate::realtime::Memory;
use crate::scene::{AnyScene, Overrides};
use crate::sim::{Model, SolverKind};
use crate::viewer::{self, OffscreenError, OffscreenSetup, OffscreenViewer, Opening, UiState, ViewError};

impl From<OffscreenError> for Failure {
    fn from(error: OffscreenError) -> Self {
        match error {
            OffscreenError::Missing(_) => Failure::Input(error.to_string()),
            _ => Failure::Work(error.to_string()),
        }
    }
}

impl From<ViewError> for Failure {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Missing(_) => Failure::Input(error.to_string()),
            ViewError::Interrupted => Failure::Closed,
            ViewError::Threads(_) | ViewError::Window => Failure::Work(error.to_string()),
        }
    }
}

fn model(name: &str, solver: SolverKind) -> Result<Model, Failure> {
    let known = || solver.models().map(Model::name).collect::<Vec<_>>().join(", ");
    Model::from_name(name)
        .filter(|model| model.solver() == solver)
        .ok_or_else(|| Failure::Input(format!("unknown model `{name}`; models are {}", known())))
}

/// What the arguments ask for, checked before anything opens: the scene's name, how it is changed, the scene itself,
/// and the models to show.
fn shown(arguments: &ShownArguments) -> Result<(String, Overrides, AnyScene, Vec<Model>), Failure> {
    let ShownArguments { scene, cells, model: first, compare, set } = arguments;
    let name = scene.clone().unwrap_or_else(|| viewer::default_scene().to_owned());
    let overrides = Overrides { cells: *cells, model: None, set: source::changes(set)? };
    let loaded = source::load_named(&name, &overrides)?;
    let models = if first.is_none() && compare.is_none() && scene.is_none() {
        viewer::default_models()
    } else {
        let model = |name: &str| model(name, loaded.solver());
        let mut models = vec![first.as_deref().map_or(Ok(loaded.params().model), model)?];
        models.extend(compare.as_deref().map(model).transpose()?);
        // Not every scene goes with every model.
        for model in models.iter().filter(|model| **model != loaded.params().model) {
            let overrides = Overrides { model: Some(model.name().to_owned()), ..overrides.clone() };
            source::load_named(&name, &overrides)?;
        }
        models
    };
    Ok((name, overrides, loaded, models))
}

/// Without a desktop session, a Vulkan layer that asks the desktop which card it prefers fills the screen with
/// complaints. It can be told not to ask.
pub fn hush_drivers() {
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        // SAFETY: called first thing in the program, before any other thread exists.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}

/// The bits of layers, by their names.
pub fn layers(names: &[String], solver: SolverKind) -> Result<u32, Failure> {
    let known: Vec<_> = viewer::layer_names(solver).collect();
    let bit = |name: &String| {
        let found = known.iter().find(|(known, _)| known == name).map(|(_, bit)| *bit);
        let all = || known.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| Failure::Input(format!("unknown layer `{name}`; layers are {}", all())))
    };
    names.iter().map(bit).try_fold(0, |bits, bit| Ok(bits | bit?))
}

/// Opens the window.
pub fn view(arguments: &ViewArguments) -> Result<(), Failure> {
    // Bad input is said on the command line, before a window opens.
    let (scene, overrides, _, models) = shown(&arguments.shown)?;
    let opening = Opening {
        scene,
        overrides,
        models,
        threads: arguments.threads,
        keep_real_time: true,
        memory: Memory::of_user(),
    };
    Ok(viewer::view(&opening, arguments.measure, leave)?)
}

/// Ends the process from within the window.
fn leave(done: Result<(), ViewError>) -> ! {
    let code = conclude(done.map_err(Failure::from));
    exit_cleanly(code.into(), || ())
}

/// Where pictures go.
enum Sink<'a> {
    Video(Box<Video>),
    /// Only the last one.
    Single(&'a Path),
    Folder(&'a Path),
}

/// Renders without a window.
pub fn render(arguments: &RenderArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let (_, _, scene, models) = shown(&arguments.shown)?;
    let (fps, name) = (scene.fps(), scene.name().to_owned());
    let frames = arguments.frames.unwrap_or(scene.frames());
    viewer::find_adapter().map_err(|missing| Failure::Input(missing.to_string()))?;
    let mut sink = sink(arguments, fps)?;
    let bare = !arguments.panels;
    let mut ui_state = UiState {
        dark: arguments.dark,
        bare,
        plain: arguments.plain,
        cut: arguments.cut,
        ..UiState::default()
    };
    if !arguments.layers.is_empty() {
        ui_state.layers = layers(&arguments.layers, scene.solver())?;
    }
    let threads = thread_count(arguments.threads);
    let mut viewer =
        OffscreenViewer::open(OffscreenSetup { scene, models, size: arguments.size, ui_state, threads })?;
    let bar = Progress::new(&name, frames, arguments.quiet);
    let mut last = None;
    for frame in 1..=frames {
        if !viewer.advance(stop)? {
            return Err(Failure::Stopped(frame - 1));
        }
        let wanted = !matches!(sink, Sink::Single(_)) || frame == frames;
        if wanted {
            let picture = viewer.picture()?;
            match &mut sink {
                Sink::Video(video) => {
                    video.add(&picture).map_err(|error| unwritten(&error, &arguments.out))?
                }
                Sink::Folder(folder) => write(&picture, &folder.join(format!("picture_{frame:04}.png")))?,
                Sink::Single(_) => last = Some(picture),
            }
        }
        FRAMES.store(frame, Ordering::Relaxed);
        bar.tick();
    }
    bar.finish();
    match (sink, last) {
        (Sink::Video(video), _) => video.finish().map_err(|error| unwritten(&error, &arguments.out))?,
        (Sink::Single(path), Some(picture)) => write(&picture, path)?,
        _ => {}
    }
    if arguments.quiet {
        return Ok(());
    }
    print(&format!("{frames} frames in {}\n", arguments.out.display()))
}

fn sink<'a>(arguments: &'a RenderArguments, fps: f64) -> Result<Sink<'a>, Failure> {
    let (out, (width, height)) = (&arguments.out, arguments.size);
    let ending = out.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if !matches!(ending.as_deref(), Some("mp4" | "png")) {
        prepare_folder(out)?;
        return Ok(Sink::Folder(out));
    }
    if out.is_dir() {
        return Err(Failure::Input(format!("--out names a folder like a file: {}", out.display())));
    }
    prepare_folder(out.parent().unwrap_or(Path::new("")))?;
    if ending.as_deref() == Some("png") {
        return Ok(Sink::Single(out));
    }
    let video = Video::create(out, [width as usize, height as usize], fps);
    video.map(|video| Sink::Video(Box::new(video))).map_err(|error| Failure::Input(error.to_string()))
}

/// Writes a picture, whole or not at all.
fn write(picture: &Picture, path: &Path) -> Result<(), Failure> {
    write_whole(path, |file| picture.write_png(file))
}

/// Writes a file, whole or not at all.
pub fn write_whole(path: &Path, content: impl Fn(&mut AtomicFile) -> io::Result<()>) -> Result<(), Failure> {
    let whole = || {
        let mut file = AtomicFile::create(path)?;
        content(&mut file)?;
        file.commit()
    };
    whole().map_err(|error| unwritten(&error, path))
}

fn unwritten(error: &io::Error, path: &Path) -> Failure {
    Failure::Work(format!("could not write: {error}: {}", path.display()))
}
