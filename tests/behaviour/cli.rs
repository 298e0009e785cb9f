//! The command from outside: exit codes, messages, files.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub fn glug(arguments: &[&str], folder: &Path) -> Output {
    command(arguments, folder).output().expect("glug starts")
}

pub fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_glug"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    // No window opens from here.
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_bench_compares_what_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let bench = |only: &str| {
        let state = ["bench", "--state", "pool_tiles_2d", "--cells", "96", "--frame", "1", "--json"];
        let done = glug(&[&state[..], &["--only", only]].concat(), folder.path());
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (code, found, _) = bench("reduced,16 to");
    let found: Vec<serde_json::Value> = serde_json::from_str(&found).expect("a list");
    let names: Vec<_> = found.iter().filter_map(|one| one["variant"].as_str()).collect();
    assert_eq!((code, names), (Some(0), vec!["tiles 32, reduced", "tiles 16 to 64"]));
    let (code, _, message) = bench("nonsense");
    assert!(code == Some(2) && message.contains("tiles 32, reduced"), "{message}");
}

#[test]
fn every_scene_tells_whether_it_keeps_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let bench = ["bench", "--scenes", "--cells", "64", "--frames", "2", "--threads", "2", "--only"];
    let done = glug(&[&bench[..], &["water_cooler,dam_break_2d", "--json"]].concat(), folder.path());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let found: Vec<serde_json::Value> = serde_json::from_slice(&done.stdout).expect("a list");
    let names: Vec<_> = found.iter().filter_map(|one| one["scene"].as_str()).collect();
    assert_eq!(names, ["water_cooler", "water_cooler_2d", "dam_break_2d"]);
    for scene in &found {
        let number = |name: &str| scene[name].as_f64().unwrap_or_else(|| panic!("{name} in {scene}"));
        assert_eq!((number("frames"), number("threads")), (2.0, 2.0));
        let factor = number("simulated_seconds") / number("seconds");
        assert!((number("real_time_factor") / factor - 1.0).abs() < 1e-9 && factor > 0.0);
        assert!((number("simulated_seconds") * number("fps") - 2.0).abs() < 1e-9);
        assert_eq!(number("substeps_per_frame"), number("substeps") / 2.0);
        assert!(number("particles") > 100.0 && number("unknowns") > 10.0 && number("liquid_cells") > 10.0);
        let stages = scene["seconds_per_substep"].as_object().expect("by stage");
        let sum: f64 =
            stages.iter().filter(|(name, _)| *name != "total").filter_map(|(_, s)| s.as_f64()).sum();
        let total = stages["total"].as_f64().expect("a number");
        assert!(stages["solve"].as_f64() > Some(0.0) && sum <= total, "{sum} of {total}");
        assert!(scene["picture"]["draw_seconds"].as_f64() > Some(0.0));
        let both = &scene["comparison"];
        assert_eq!(both.is_object(), scene["dimension"] == 2);
        if both.is_object() {
            assert_eq!((both["threads"].as_u64(), both["frames"].as_u64()), (Some(1), Some(2)));
            assert!(both["real_time_factor"].as_f64() > Some(0.0) && both["models"][0] != both["models"][1]);
        }
    }
    let done = glug(&[&bench[..], &["dam_break_2d"]].concat(), folder.path());
    let table = text(&done.stdout);
    for word in ["REAL TIME", "COMPARED", "dam_break_2d", "64 × ", "ms PER SUBSTEP", "advect"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    let done = glug(&[&bench[..], &["no_such_scene"]].concat(), folder.path());
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn a_run_in_real_time_chooses_its_cells_and_remembers_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    let file = cache.join("glug/resolutions.json");
    let run = |more: &[&str]| {
        let scene = ["run", "rising_bubbles", "--frames", "1", "--threads", "1", "--realtime"];
        let mut command = command(&[&scene[..], more].concat(), folder.path());
        let done =
            command.env("XDG_CACHE_HOME", &cache).env("LOCALAPPDATA", &cache).output().expect("glug starts");
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let lines = text(&done.stdout);
        let row =
            |name: &str| lines.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        (row("cells"), row("resolution"))
    };
    let (cells, words) = run(&["--cells", "16"]);
    assert!(cells.contains(" 16 × ") && words.is_empty(), "cells asked for win: {cells} {words}");
    assert!(!file.exists(), "and nothing is measured");
    // So much that no machine in sight does it in real time on one thread.
    let (cells, words) = run(&[]);
    let own = words.split(" of ").nth(1).and_then(|rest| rest.split(' ').next()).expect("the scene's own");
    let own: usize = own.parse().expect("a number");
    let chosen: usize = cells.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    assert!((24..own).contains(&chosen), "{cells} of {own}");
    assert!(words.contains(&format!("{chosen} of {own} cells")), "{words}");
    // What the file says is believed, until it cannot be read.
    let kept = fs::read_to_string(&file).expect("it is remembered");
    let other = if chosen == 32 { 40 } else { 32 };
    let said = kept.replace(&format!("\"cells\": {chosen}"), &format!("\"cells\": {other}"));
    fs::write(&file, said).expect("written");
    assert!(run(&[]).0.contains(&format!(" {other} × ")));
    fs::write(&file, "nonsense").expect("written");
    let (cells, _) = run(&[]);
    assert!(!cells.is_empty());
    assert_ne!(fs::read_to_string(&file).expect("a file"), "nonsense", "measured and remembered again");
}

#[test]
fn a_run_writes_its_files_and_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = glug(
        &[
            "run",
            "dam_break",
            "--cells",
            "16",
            "--frames",
            "2",
            "--stats",
            "s/stats.jsonl",
            "--out",
            "out",
            "--export",
            "ply,obj,particles",
            "--threads",
            "2",
        ],
        folder.path(),
    );
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let expected = [1, 2].map(|n| format!("liquid_000{n}.obj")).into_iter();
    let expected = expected.chain(
        ["liquid", "particles"].into_iter().flat_map(|kind| [1, 2].map(|n| format!("{kind}_000{n}.ply"))),
    );
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(files(&folder.path().join("out")), expected);
    let stats = fs::read_to_string(folder.path().join("s/stats.jsonl")).expect("statistics");
    assert_eq!(stats.lines().count(), 2);
    let table = text(&done.stdout);
    for row in ["frames", "simulated", "wall time", "per substep", "particles", "unknowns", "volume drift"] {
        assert!(table.contains(row), "{row} in\n{table}");
    }
    assert!(table.contains("6 in out"), "{table}");
}

#[test]
fn flat_scenes_run_quietly() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = glug(
        &["run", "dam_break_2d", "--cells", "32", "--frames", "1", "--out", "o", "--quiet"],
        folder.path(),
    );
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(done.stdout.is_empty() && done.stderr.is_empty());
    assert_eq!(files(&folder.path().join("o")), ["liquid_0001.ply"], "--out alone exports ply");
}

#[test]
fn bad_input_is_one_line_and_exit_code_two() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "").expect("written");
    let cases: [&[&str]; 23] = [
        &[],
        &["view"],
        &["view", "dam_break", "--model", "no-such-model"],
        &["render", "dam_break", "--out", "x.mp4", "--size", "1x1"],
        &["frobnicate"],
        &["run"],
        &["run", "no_such_scene"],
        &["run", "dam_break", "--frames", "0"],
        &["run", "dam_break", "--fps", "-1"],
        &["run", "dam_break", "--fps", "nan"],
        &["run", "dam_break", "--threads", "0"],
        &["run", "dam_break", "--export", "ply"],
        &["run", "dam_break", "--out", "out", "--export", "ply,stl"],
        &["run", "dam_break", "--out", "file"],
        &["run", "dam_break", "--stats", "file/stats.jsonl", "--out", "out"],
        &["run", "dam_break", "--stats", ".", "--out", "out"],
        &["run", "dam_break", "--set", "gravity=lots", "--out", "out"],
        &["check", "no_such_scene"],
        &["run", "no_such_scene", "--realtime"],
        &["run", "--resume", "file", "--realtime"],
        &["bench", "--scenes", "--state", "dam_break"],
        &["bench", "--frames", "3"],
        &["bench", "--cells", "32"],
    ];
    for arguments in cases {
        let done = glug(arguments, folder.path());
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.starts_with("glug: ") && message.lines().count() == 1, "{arguments:?}: {message}");
        assert!(done.stdout.is_empty(), "{arguments:?}");
        assert_eq!(files(folder.path()), ["file"], "{arguments:?} writes nothing");
    }
}

#[test]
fn help_and_version_are_not_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [["--help"], ["--version"]] {
        let done = glug(&arguments, folder.path());
        assert_eq!(done.status.code(), Some(0));
        assert!(text(&done.stdout).contains("glug") && done.stderr.is_empty());
    }
}

#[test]
fn scenes_are_listed_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = glug(&["scenes"], folder.path());
    assert_eq!(done.status.code(), Some(0));
    let listed = text(&done.stdout);
    assert!(listed.contains("dam_break") && listed.contains("3D") && listed.contains("2D"), "{listed}");
    let done = glug(&["check", "dam_break"], folder.path());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let told = text(&done.stdout);
    let solver: Vec<_> = told.lines().filter(|line| line.starts_with("solver")).collect();
    assert!(
        told.contains("domain") && matches!(solver[..], [line] if line.trim_end().ends_with("grid")),
        "{told}"
    );
}

#[test]
fn the_system_of_a_frame_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = glug(
        &["system", "dam_break", "--cells", "16", "--frame", "2", "--out", "sys", "--threads", "1"],
        folder.path(),
    );
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let expected = ["A.mtx", "b.mtx", "meta.json", "rows.csv", "x.mtx"];
    assert_eq!(files(&folder.path().join("sys")), expected);
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = command(&["scenes"], folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("glug starts");
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut message).expect("text");
    let status = child.wait().expect("glug ends");
    assert!(status.success() && message.is_empty(), "{status}: {message}");
}

/// Also covers `kill`: both signals take the same way.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_whole_files_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let mut child = command(
        &[
            "run",
            "dam_break",
            "--frames",
            "100000",
            "--cells",
            "24",
            "--out",
            "out",
            "--stats",
            "stats.jsonl",
        ],
        folder.path(),
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("glug starts");
    let patience = Instant::now();
    while files(&out).len() < 3 && patience.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let interrupted = Instant::now();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
    let mut message = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut message).expect("text");
    let status = child.wait().expect("glug ends");
    assert_eq!(status.code(), Some(130), "{message}");
    assert!(interrupted.elapsed() < Duration::from_millis(1500), "{:?}", interrupted.elapsed());
    let stats = fs::read_to_string(folder.path().join("stats.jsonl")).expect("statistics");
    assert!(stats.ends_with('\n') && stats.lines().count() >= 2);
    let frames = stats.lines().count();
    assert!(message.contains(&format!("stopped after frame {frames}")), "{message} {frames}");
    for name in files(&out) {
        assert!(name.starts_with("liquid_"), "{name} is a leftover");
        let bytes = fs::read(out.join(&name)).expect("readable");
        let header = text(&bytes[..bytes.len().min(400)]);
        let count = |element: &str| -> usize {
            let line = header.lines().find_map(|line| line.strip_prefix(element)).expect("a count");
            line.trim().parse().expect("a number")
        };
        let body = count("element vertex") * 24 + count("element face") * 13;
        let head = header.find("end_header\n").expect("a header") + "end_header\n".len();
        assert_eq!(bytes.len(), head + body, "{name} is whole");
    }
}

/// A hang-up once ended runs under `nohup`: the handler of Ctrl-C took it over as well.
#[cfg(unix)]
#[test]
fn a_hang_up_that_is_ignored_stays_so_and_an_interrupt_still_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let deaf = format!(
        "trap '' HUP; exec '{}' run dam_break --frames 100000 --cells 16 --out out",
        env!("CARGO_BIN_EXE_glug")
    );
    let mut child = Command::new("sh")
        .args(["-c", &deaf])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell starts");
    let send = |signal: &str| {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill starts").success(), "{signal}");
    };
    let wait_for = |frames: usize| {
        let patience = Instant::now();
        while files(&out).len() < frames && patience.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(files(&out).len() >= frames, "it goes on");
    };
    wait_for(2);
    let before = files(&out).len();
    send("-HUP");
    wait_for(before + 3);
    send("-INT");
    assert_eq!(child.wait().expect("glug ends").code(), Some(130));
}
