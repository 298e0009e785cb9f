//! The viewer from outside: a real window on a virtual screen, driven by keys; rendering without one; and what is said
//! when something is missing. What needs Xvfb, xdotool, ffmpeg or Vulkan is skipped where that is missing.

#![cfg(all(feature = "viewer", target_os = "linux"))]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A virtual screen that picks a free number for itself.
fn screen() -> Option<(Running, String)> {
    // Without `-noreset` it starts anew when its last guest leaves, as the one does that only looks whether it is there, and
    // turns away whoever comes meanwhile.
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take()?).read_line(&mut line).ok()?;
    Some((Running(server), format!(":{}", line.trim())))
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
        std::thread::sleep(Duration::from_millis(900));
    }

    /// The window's own screenshot, by its key.
    fn shot(&mut self) -> Shot {
        self.shots += 1;
        let path = self.folder.path().join(format!("glug-{:03}.png", self.shots));
        self.xdotool(&["key", "F12"]);
        let start = Instant::now();
        loop {
            if let Some(shot) = Shot::read(&path) {
                // The message about the picture must not be in the next one.
                std::thread::sleep(Duration::from_millis(6000));
                return shot;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "no screenshot at {}", path.display());
            std::thread::sleep(Duration::from_millis(100));
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

    /// The share of pixels in the middle that differ.
    fn differs(&self, other: &Shot) -> f64 {
        let (mut changed, mut all) = (0, 0);
        for y in self.height / 8..self.height * 7 / 8 {
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

/// Whether this process was told to ignore Ctrl-C, as shells tell what they start in the background. What it starts is told
/// the same.
fn ignores_interrupts() -> bool {
    const SIGINT: u32 = 2;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> (SIGINT - 1) & 1 == 1)
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
    let folder = tempfile::tempdir().expect("a folder");
    let size = ["--size", "320x200", "--quiet"];
    for (scene, cells, fps) in [("ball_in_circle_2d", "48", "60/1"), ("dam_break", "16", "30/1")] {
        let mut arguments = vec!["render", scene, "--cells", cells, "--frames", "6", "--out", "clip.mp4"];
        arguments.extend(size);
        let done = glug(&arguments, folder.path()).output().expect("it starts");
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        if message.contains("ffmpeg is missing") || message.contains("Vulkan") {
            eprintln!("skipped: {message}");
            return;
        }
        assert!(done.status.success(), "{message}");
        let probe = Command::new("ffprobe")
            .args(["-v", "error", "-count_frames", "-select_streams", "v:0", "-of", "csv=p=0"])
            .args(["-show_entries", "stream=width,height,r_frame_rate,nb_read_frames", "clip.mp4"])
            .current_dir(folder.path())
            .output()
            .expect("ffprobe comes with ffmpeg");
        assert_eq!(String::from_utf8_lossy(&probe.stdout).trim(), format!("320,200,{fps},6"), "{scene}");
    }
}

#[test]
fn the_window_opens_plays_and_obeys() {
    let Some((_server, display)) = screen() else {
        eprintln!("no Xvfb: the window is not tested");
        return;
    };
    if Command::new("xdotool").arg("version").stdout(Stdio::null()).status().is_err() {
        eprintln!("no xdotool: the window is not tested");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let window = Command::new(env!("CARGO_BIN_EXE_glug"))
        .args(["view", "ball_in_circle_2d", "--cells", "64", "--compare", "free-surface", "--threads", "1"])
        .env("DISPLAY", &display)
        .env_remove("WAYLAND_DISPLAY")
        .env("XDG_RUNTIME_DIR", folder.path())
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut window = Running(window);
    let mut stage = Stage { display, folder, shots: 0 };
    let start = Instant::now();
    let id = loop {
        let id = stage.xdotool(&["search", "--name", "^Glug$"]);
        if let Some(first) = id.lines().next().filter(|line| !line.is_empty()) {
            break first.to_owned();
        }
        if let Ok(Some(status)) = window.0.try_wait() {
            let lines = window.0.stderr.take().map(|pipe| BufReader::new(pipe).lines());
            let text: Vec<_> = lines.into_iter().flatten().map_while(Result::ok).collect();
            if text.iter().any(|line| line.contains("Vulkan")) {
                eprintln!("no Vulkan device: the window is not tested");
                return;
            }
            panic!("the window ended with {status}: {}", text.join("\n"));
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no window");
        std::thread::sleep(Duration::from_millis(100));
    };
    std::thread::sleep(Duration::from_secs(4));
    stage.xdotool(&["windowfocus", &id]);
    stage.xdotool(&["mousemove", "640", "760"]);

    let playing = stage.shot();
    assert!(playing.water() > 0.02, "liquid is seen: {:.3}", playing.water());
    assert!(stage.shot().differs(&playing) > 0.002, "it plays");

    stage.key("space");
    let paused = stage.shot();
    assert!(stage.shot().differs(&paused) < 0.001, "Space pauses");
    for _ in 0..6 {
        stage.key("period");
    }
    let stepped = stage.shot();
    assert!(stepped.differs(&paused) > 0.001, "a full stop steps");
    stage.key("r");
    let reset = stage.shot();
    assert!(reset.differs(&stepped) > 0.005, "R starts again");
    stage.key("h");
    let help = stage.shot();
    assert!(help.differs(&reset) > 0.02, "H shows the keys");
    stage.key("h");
    stage.key("c");
    std::thread::sleep(Duration::from_secs(1));
    let single = stage.shot();
    assert!(single.differs(&reset) > 0.02, "C shows one pane");
    stage.key("8");
    assert!(stage.shot().differs(&single) > 0.01, "8 shows the grid");

    // Small and large again, without harm.
    stage.xdotool(&["windowsize", &id, "200", "150"]);
    std::thread::sleep(Duration::from_secs(2));
    stage.xdotool(&["windowsize", &id, "1000", "700"]);
    std::thread::sleep(Duration::from_secs(2));
    assert!(window.0.try_wait().is_ok_and(|status| status.is_none()), "the window is still there");

    // Ctrl-C in its terminal ends it as it ends every command.
    if ignores_interrupts() {
        eprintln!("in the background: Ctrl-C is not tested");
        return;
    }
    let interrupt = format!("kill -INT {}", window.0.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().is_ok_and(|status| status.success()));
    let start = Instant::now();
    let code = loop {
        if let Some(status) = window.0.try_wait().expect("it is ours") {
            break status.code();
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it goes on after Ctrl-C");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(code, Some(130));
}
