//! The viewer from outside: a real window on a virtual screen, driven by keys; rendering without one; and what is said
//! when something is missing. Where Xvfb, xdotool, ffmpeg or Vulkan are missing these tests fail, unless told to skip by
//! name: `GLUG_SKIP=window,video cargo test`.

#![cfg(all(feature = "viewer", target_os = "linux"))]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use x11rb::protocol::xproto::{ClientMessageEvent, ConnectionExt, EventMask};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the tests of that name are to be skipped.
fn told_to_skip(name: &str) -> bool {
    let skipped = std::env::var("GLUG_SKIP").is_ok_and(|names| names.split(',').any(|one| one == name));
    if skipped {
        eprintln!("GLUG_SKIP: {name} is not tested");
    }
    skipped
}

/// What to do about a tool that is missing.
fn missing(tool: &str, name: &str) -> String {
    format!("{tool} is missing: `make test` installs it on Debian, GLUG_SKIP={name} skips the test")
}

/// A virtual screen that picks a free number for itself.
fn screen() -> (Running, String) {
    // Without `-noreset` it starts anew when its last guest leaves, as the one does that only looks whether it is there, and
    // turns away whoever comes meanwhile.
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", missing("Xvfb", "window")));
    let mut line = String::new();
    let number = server.stdout.take().map(|pipe| BufReader::new(pipe).read_line(&mut line));
    assert!(matches!(number, Some(Ok(1..))), "Xvfb names no display");
    (Running(server), format!(":{}", line.trim()))
}

struct Stage {
    display: String,
    folder: tempfile::TempDir,
    shots: usize,
}

impl Stage {
    fn xdotool(&self, arguments: &[&str]) -> String {
        let output = Command::new("xdotool").args(arguments).env("DISPLAY", &self.display).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    }

    fn key(&self, key: &str) {
        self.xdotool(&["key", key]);
    }

    /// Asks the window to close, as a window manager does when its cross is clicked.
    fn click_cross(&self, id: &str) {
        let (server, _) = x11rb::connect(Some(&self.display)).expect("the screen is there");
        let atom = |name: &str| {
            let cookie = server.intern_atom(false, name.as_bytes()).expect("the screen listens");
            cookie.reply().expect("it has names").atom
        };
        let window = id.parse().expect("xdotool gives numbers");
        let message =
            ClientMessageEvent::new(32, window, atom("WM_PROTOCOLS"), [atom("WM_DELETE_WINDOW"), 0, 0, 0, 0]);
        let sent =
            server.send_event(false, window, EventMask::NO_EVENT, message).expect("the screen listens");
        sent.check().expect("the window is there");
    }

    /// The window's own screenshot, by its key.
    fn shot(&mut self) -> Shot {
        self.shots += 1;
        let path = self.folder.path().join(format!("glug-{:03}.png", self.shots));
        self.key("F12");
        let start = Instant::now();
        loop {
            if let Some(shot) = Shot::read(&path) {
                return shot;
            }
            assert!(start.elapsed() < PATIENCE, "no screenshot at {}", path.display());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Takes screenshots until one is as it should be. A busy machine may take its time.
    fn shot_where(&mut self, claim: &str, holds: impl Fn(&Shot) -> bool) -> Shot {
        let start = Instant::now();
        loop {
            let shot = self.shot();
            if holds(&shot) {
                return shot;
            }
            assert!(start.elapsed() < PATIENCE, "{claim}: not after {} screenshots", self.shots);
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// A screenshot that the next one does not differ from.
    fn shot_at_rest(&mut self, claim: &str) -> Shot {
        let start = Instant::now();
        let mut last = self.shot();
        loop {
            std::thread::sleep(Duration::from_secs(2));
            let next = self.shot();
            let differs = next.differs(&last);
            if differs < 0.001 {
                return next;
            }
            assert!(start.elapsed() < PATIENCE, "{claim}: {differs:.4} of the picture still changes");
            last = next;
        }
    }
}

struct Shot {
    width: usize,
    height: usize,
    channels: usize,
    bytes: Vec<u8>,
}

impl Shot {
    fn read(path: &Path) -> Option<Self> {
        let mut reader =
            png::Decoder::new(BufReader::new(std::fs::File::open(path).ok()?)).read_info().ok()?;
        let mut bytes = vec![0; reader.output_buffer_size()?];
        let info = reader.next_frame(&mut bytes).ok()?;
        let channels = info.color_type.samples();
        Some(Shot { width: info.width as usize, height: info.height as usize, channels, bytes })
    }

    fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = self.channels * (y * self.width + x);
        [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2]]
    }

    /// The share of the middle of the window that looks like water.
    fn water(&self) -> f64 {
        let (mut wet, mut all) = (0, 0);
        for y in self.height / 6..self.height * 5 / 6 {
            for x in self.width / 3..self.width * 2 / 3 {
                let [r, _, b] = self.pixel(x, y);
                wet += (b as i32 - r as i32 > 60) as usize;
                all += 1;
            }
        }
        wet as f64 / all as f64
    }

    /// The middle of what is grey like a solid in the left half, or in the right one. The tank's sides are grey, too, but thin.
    fn body(&self, side: usize) -> Option<[f64; 2]> {
        const THIN: usize = 6;
        let is_grey = |x: usize, y: usize| {
            let pixel = self.pixel(x, y);
            let [least, most] =
                [pixel.iter().min(), pixel.iter().max()].map(|value| value.copied().unwrap_or(0));
            most - least <= 14 && (90..150).contains(&most)
        };
        let (mut sum, mut count) = ([0.0; 2], 0.0);
        let half = self.width / 2;
        for y in self.height / 5..self.height * 17 / 20 {
            for x in half * side + half / 6..half * side + half * 5 / 6 {
                let around = [(x - THIN, y), (x + THIN, y), (x, y - THIN), (x, y + THIN)];
                if is_grey(x, y) && around.into_iter().all(|(x, y)| is_grey(x, y)) {
                    sum = [sum[0] + x as f64, sum[1] + y as f64];
                    count += 1.0;
                }
            }
        }
        (count > 300.0).then(|| sum.map(|sum| sum / count))
    }

    /// The share of pixels in the middle that differ, above the place where messages about screenshots appear.
    fn differs(&self, other: &Shot) -> f64 {
        let (mut changed, mut all) = (0, 0);
        for y in self.height / 8..self.height * 3 / 4 {
            for x in self.width / 4..self.width * 3 / 4 {
                let (a, b) = (self.pixel(x, y), other.pixel(x, y));
                changed += (0..3).any(|k| a[k].abs_diff(b[k]) > 12) as usize;
                all += 1;
            }
        }
        changed as f64 / all as f64
    }
}

fn glug(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_glug"));
    command.args(arguments).current_dir(folder).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

#[test]
fn without_a_display_it_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    for (display, word) in [("", "DISPLAY"), (":987", "no server")] {
        let done = glug(&[], folder.path()).env("DISPLAY", display).output().expect("it starts");
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert!(message.contains(word) && message.contains("glug render"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn without_a_vulkan_driver_it_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut render = glug(&["render", "dam_break", "--cells", "16", "--out", "x.png"], folder.path());
    let none = folder.path().join("no_driver.json");
    let done =
        render.env("VK_DRIVER_FILES", &none).env("VK_ICD_FILENAMES", &none).output().expect("it starts");
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{message}");
    assert!(message.contains("mesa-vulkan-drivers") && message.contains("glug run"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn rendering_without_a_display_makes_a_video() {
    if told_to_skip("video") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let size = ["--size", "320x200", "--quiet"];
    for (scene, cells, fps) in [("ball_in_circle_2d", "48", "60/1"), ("dam_break", "16", "30/1")] {
        let mut arguments = vec!["render", scene, "--cells", cells, "--frames", "6", "--out", "clip.mp4"];
        arguments.extend(size);
        let done = glug(&arguments, folder.path()).output().expect("it starts");
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            done.status.success(),
            "{message}\n({})",
            missing("ffmpeg or Vulkan, if that is it,", "video")
        );
        let probe = Command::new("ffprobe")
            .args(["-v", "error", "-count_frames", "-select_streams", "v:0", "-of", "csv=p=0"])
            .args(["-show_entries", "stream=width,height,r_frame_rate,nb_read_frames", "clip.mp4"])
            .current_dir(folder.path())
            .output()
            .expect("ffprobe comes with ffmpeg");
        assert_eq!(String::from_utf8_lossy(&probe.stdout).trim(), format!("320,200,{fps},6"), "{scene}");
    }
}

/// A window and what it has said.
struct Window {
    process: Running,
    said: std::path::PathBuf,
    id: String,
}

impl Window {
    /// Opens a window and waits until it is there.
    fn open(stage: &Stage, arguments: &[&str]) -> Self {
        let said = stage.folder.path().join("said.txt");
        let file = File::create(&said).expect("a file");
        // Shells tell what they start in the background to ignore Ctrl-C, and so would the window.
        let process = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_glug"), "view"])
            .args(arguments)
            .env("DISPLAY", &stage.display)
            .env_remove("WAYLAND_DISPLAY")
            .env("XDG_RUNTIME_DIR", stage.folder.path())
            .env("XDG_CACHE_HOME", stage.folder.path())
            .env("MESA_SHADER_CACHE_DISABLE", "true")
            .current_dir(stage.folder.path())
            .stderr(file)
            .spawn()
            .expect("the program starts");
        let mut window = Window { process: Running(process), said, id: String::new() };
        let start = Instant::now();
        while window.id.is_empty() {
            if let Some(status) = window.ended() {
                let vulkan = missing("Vulkan, if that is it,", "window");
                panic!("the window ended with {status}: {} ({vulkan})", window.said());
            }
            assert!(start.elapsed() < PATIENCE, "no window: {}", window.said());
            std::thread::sleep(Duration::from_millis(100));
            let found = stage.xdotool(&["search", "--name", "^Glug$"]);
            window.id = found.lines().next().unwrap_or_default().to_owned();
        }
        window
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.process.0.try_wait().expect("it is ours")
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Ctrl-C in its terminal.
    fn interrupt(&self) {
        let interrupt = format!("kill -INT {}", self.process.0.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().is_ok_and(|status| status.success()));
    }

    /// Waits for its end: it must return `code`, and not be ended by a signal, and say nothing about it.
    fn ends_with(mut self, code: i32) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it goes on: {}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(status.code(), Some(code), "{status}: {}", self.said());
        assert!(!self.said().contains("panicked"), "{}", self.said());
    }
}

fn has_xdotool() {
    let version = Command::new("xdotool").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(version.is_ok(), "{}", missing("xdotool", "window"));
}

#[test]
fn the_window_opens_plays_and_obeys() {
    if told_to_skip("window") {
        return;
    }
    has_xdotool();
    let (_server, display) = screen();
    let mut stage = Stage { display, folder: tempfile::tempdir().expect("a folder"), shots: 0 };
    let scene = ["ball_in_circle_2d", "--cells", "64", "--compare", "free-surface", "--threads", "1"];
    let mut window = Window::open(&stage, &scene);
    let id = window.id.clone();
    std::thread::sleep(Duration::from_secs(2));
    stage.xdotool(&["windowfocus", &id]);
    stage.xdotool(&["mousemove", "640", "760"]);

    let playing = stage.shot_where("liquid is seen", |shot| shot.water() > 0.02);
    stage.shot_where("it plays", |shot| shot.differs(&playing) > 0.002);

    stage.key("space");
    let paused = stage.shot_at_rest("Space pauses");
    for _ in 0..6 {
        stage.key("period");
        std::thread::sleep(Duration::from_millis(200));
    }
    stage.shot_where("a full stop steps", |shot| shot.differs(&paused) > 0.001);
    let stepped = stage.shot_at_rest("and no further");
    stage.key("r");
    stage.shot_where("R starts again", |shot| shot.differs(&stepped) > 0.005);
    let reset = stage.shot_at_rest("and waits");
    stage.key("h");
    stage.shot_where("H shows the keys", |shot| shot.differs(&reset) > 0.02);
    stage.key("h");
    stage.shot_where("H hides them", |shot| shot.differs(&reset) < 0.001);
    stage.key("c");
    stage.shot_where("C shows one pane", |shot| shot.differs(&reset) > 0.02);
    let single = stage.shot_at_rest("one pane at rest");
    stage.key("8");
    stage.shot_where("8 shows the grid", |shot| shot.differs(&single) > 0.01);

    // Small and large again, without harm.
    stage.xdotool(&["windowsize", &id, "200", "150"]);
    std::thread::sleep(Duration::from_secs(2));
    stage.xdotool(&["windowsize", &id, "1000", "700"]);
    std::thread::sleep(Duration::from_secs(2));
    assert!(window.ended().is_none(), "the window is still there");

    // Ctrl-C in its terminal ends it as it ends every command.
    window.interrupt();
    window.ends_with(130);
}

/// A window once ended by a signal after Ctrl-C: exit handlers freed what the driver was compiling shaders with. It does so
/// when its cache is empty, as on a fresh machine, and after the first frame of another size.
#[test]
fn the_window_ends_well_at_any_moment() {
    if told_to_skip("window") {
        return;
    }
    has_xdotool();
    let (_server, display) = screen();
    let stage = Stage { display, folder: tempfile::tempdir().expect("a folder"), shots: 0 };
    let scenes = [["dam_break", "--cells", "24"], ["ball_in_circle_2d", "--cells", "64"]];
    for (round, wait) in [0, 300, 1500, 0, 300, 1500].into_iter().enumerate() {
        let window = Window::open(&stage, &scenes[round % 2]);
        std::thread::sleep(Duration::from_millis(wait));
        let size = [["windowsize", &window.id, "200", "150"], ["windowsize", &window.id, "1000", "700"]];
        size.iter().for_each(|size| drop(stage.xdotool(size)));
        if round < 4 {
            window.interrupt();
            window.ends_with(130);
        } else {
            stage.click_cross(&window.id);
            window.ends_with(0);
        }
    }
}

/// A light box floats in each pane of a comparison. What the mouse does to one of them happens to the other as well: both go
/// under water, and come up again when the button is let go.
#[test]
fn a_body_pulled_under_water_comes_up_again_in_both_panes() {
    if told_to_skip("window") {
        return;
    }
    has_xdotool();
    let (_server, display) = screen();
    let mut stage = Stage { display, folder: tempfile::tempdir().expect("a folder"), shots: 0 };
    let scene = r#"(
        title: "A box afloat",
        domain: (size: (1.0, 1.0), cells: 32, open: [top]),
        liquids: [box(min: (0.0, 0.0), max: (1.0, 0.6))],
        solids: [(name: "box", shape: box(center: (0.5, 0.65), size: (0.24, 0.2)), density: 400.0)],
    )"#;
    std::fs::write(stage.folder.path().join("afloat.ron"), scene).expect("a file");
    let arguments = ["afloat.ron", "--model", "constraint", "--compare", "free-surface", "--threads", "1"];
    let mut window = Window::open(&stage, &arguments);
    let id = window.id.clone();
    stage.xdotool(&["windowsize", &id, "1000", "700", "windowmove", &id, "0", "0", "windowfocus", &id]);
    std::thread::sleep(Duration::from_secs(2));
    stage.key("Tab");
    let sides = |shot: &Shot| [0, 1].map(|side| shot.body(side));
    // Out of the way of the bodies, and without a body selected.
    stage.xdotool(&["mousemove", "500", "690"]);
    let floating = stage.shot_where("two boxes are seen", |shot| sides(shot).iter().all(Option::is_some));
    std::thread::sleep(Duration::from_secs(3));
    let [x, y] = stage.shot().body(0).expect("it floats");
    let depth = 0.22 * floating.height as f64;
    let place = |value: f64| (value.round() as i64).to_string();
    stage.xdotool(&["mousemove", &place(x), &place(y)]);
    stage.xdotool(&["mousedown", "1"]);
    for step in 1..=10 {
        let down = place(y + depth * f64::from(step) / 10.0);
        stage.xdotool(&["mousemove", &place(x), &down]);
        std::thread::sleep(Duration::from_millis(120));
    }
    stage.shot_where("both boxes go under water", |shot| {
        sides(shot).iter().all(|at| at.is_some_and(|at| at[1] > y + 0.7 * depth))
    });
    stage.xdotool(&["mouseup", "1"]);
    stage.shot_where("both come up again", |shot| {
        sides(shot).iter().all(|at| at.is_some_and(|at| at[1] < y + 0.3 * depth))
    });
    assert!(window.ended().is_none(), "the window is still there");
    window.interrupt();
    window.ends_with(130);
}
