//! `glug run --checkpoint-every` and `glug run --resume`, from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use glug::sim::Model;
use serde_json::Value;

use crate::cli::{command, files, glug, text};

/// Runs in a folder, and expects success.
fn run(folder: &Path, arguments: &[&str]) {
    let done = glug(&[&["run", "--quiet"], arguments].concat(), folder);
    assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", text(&done.stderr));
}

/// Statistics without what a clock has measured.
fn statistics(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("statistics");
    let line = |line: &str| {
        let mut report: Value = serde_json::from_str(line).expect("an object per line");
        report.as_object_mut().expect("an object").remove("seconds");
        for solve in report["solve"].as_array_mut().expect("a list") {
            solve.as_object_mut().expect("an object").remove("seconds");
        }
        report
    };
    text.lines().map(line).collect()
}

fn checkpoints(folder: &Path) -> Vec<String> {
    files(folder).into_iter().filter(|name| name.contains("checkpoint")).collect()
}

/// Both folders have the same meshes, byte for byte, and at least so many.
fn assert_same_meshes(what: &str, one: &Path, other: &Path, count: usize) {
    let meshes =
        |folder: &Path| files(folder).into_iter().filter(|name| name.ends_with(".ply")).collect::<Vec<_>>();
    let names = meshes(one);
    assert_eq!((names.len(), &names), (count, &meshes(other)), "{what}");
    for name in names {
        let [a, b] = [one, other].map(|folder| fs::read(folder.join(&name)).expect("a mesh"));
        assert!(a == b, "{what}: {name} differs");
    }
}

fn resumed_runs_are_like_uninterrupted_ones(scene: &str, cells: &str) {
    for model in Model::ALL {
        let what = format!("{scene}, {}", model.name());
        let folder = tempfile::tempdir().expect("a folder");
        let own =
            ["--cells", cells, "--model", model.name(), "--set", "tile_size=8", "--set", "surface_band=2"];
        let whole = ["--frames", "6", "--threads", "1", "--out", "whole", "--stats", "whole.jsonl"];
        run(folder.path(), &[&[scene], &own[..], &whole[..]].concat());
        // Interrupted after frame 4, with a checkpoint of frame 3: what came after that is done again.
        let first = ["--frames", "4", "--threads", "1", "--out", "parts", "--stats", "parts.jsonl"];
        run(folder.path(), &[&[scene], &own[..], &first[..], &["--checkpoint-every", "3"]].concat());
        assert_eq!(checkpoints(&folder.path().join("parts")), ["checkpoint_0003.glug"], "{what}");
        let then = ["--frames", "6", "--threads", "2", "--out", "parts", "--stats", "parts.jsonl"];
        run(folder.path(), &[&["--resume", "parts/checkpoint_0003.glug"], &then[..]].concat());
        let [one, other] = ["whole.jsonl", "parts.jsonl"].map(|name| statistics(&folder.path().join(name)));
        assert_eq!(one.len(), 6, "{what}");
        assert_eq!(one, other, "{what}");
        assert_same_meshes(&what, &folder.path().join("whole"), &folder.path().join("parts"), 6);
    }
}

#[test]
fn resumed_runs_are_like_uninterrupted_ones_2d() {
    resumed_runs_are_like_uninterrupted_ones("dam_break_2d", "64");
}

#[test]
fn resumed_runs_are_like_uninterrupted_ones_3d() {
    resumed_runs_are_like_uninterrupted_ones("dam_break", "24");
}

const SCENE: &str = r#"(
    title: "A cup",
    domain: (size: (1.0, 1.0), cells: 24),
    liquids: [box(min: (0.0, 0.0), max: (0.5, 0.5))],
    frames: 4,
)"#;

/// A folder with a scene of a file, and the checkpoint of its second frame.
fn cup() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("cup.ron"), SCENE).expect("a scene");
    run(folder.path(), &["cup.ron", "--frames", "2", "--checkpoint-every", "2", "--out", "out"]);
    let path = folder.path().join("out/checkpoint_0002.glug");
    (folder, path)
}

#[test]
fn a_checkpoint_is_enough_when_its_scene_is_gone() {
    let (folder, _) = cup();
    run(folder.path(), &["cup.ron", "--frames", "3", "--out", "whole"]);
    fs::remove_file(folder.path().join("cup.ron")).expect("it was there");
    run(folder.path(), &["--resume", "out/checkpoint_0002.glug", "--frames", "3", "--out", "out"]);
    assert_same_meshes("cup", &folder.path().join("whole"), &folder.path().join("out"), 3);
}

#[test]
fn the_newest_checkpoints_are_kept_and_found() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("cup.ron"), SCENE).expect("a scene");
    // What a killed process left behind; process 0 is nobody's.
    fs::create_dir(folder.path().join("out")).expect("a folder");
    fs::write(folder.path().join("out/.checkpoint_0001.glug.partial-0"), "half").expect("a file");
    let every = ["--checkpoint-every", "1", "--keep-checkpoints", "2", "--out", "out"];
    run(folder.path(), &[&["cup.ron"], &every[..]].concat());
    let names = checkpoints(&folder.path().join("out"));
    assert_eq!(names, ["checkpoint_0003.glug", "checkpoint_0004.glug"]);
    run(folder.path(), &["--resume", "out", "--frames", "6", "--set", "gravity=1", "--stats", "more.jsonl"]);
    let more = statistics(&folder.path().join("more.jsonl"));
    assert_eq!(more.iter().map(|report| report["frame"].as_u64()).collect::<Vec<_>>(), [Some(5), Some(6)]);
}

#[test]
fn bad_checkpoints_and_options_are_refused_in_one_line() {
    let (folder, path) = cup();
    let whole = fs::read(&path).expect("a checkpoint");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
    write("cut.glug", &whole[..whole.len() / 2]);
    write("foreign.glug", SCENE.as_bytes());
    let change = |place: usize, by: u8| {
        let mut bytes = whole.clone();
        bytes[place] ^= by;
        bytes
    };
    write("newer.glug", &change(9, 1));
    write("damaged.glug", &change(whole.len() / 2, 16));
    write("stats.jsonl", b"{\"frame\":1}\n{\"frame\":2}\n{\"frame\":3}\n");
    let refused = |arguments: &[&str], words: &[&str]| {
        let done = glug(&[&["run"], arguments].concat(), folder.path());
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{arguments:?}: {message}");
    };
    refused(&["--resume", "cut.glug", "--frames", "5"], &["cut off", "cut.glug"]);
    refused(&["--resume", "foreign.glug"], &["no checkpoint of Glug", "foreign.glug"]);
    refused(&["--resume", "newer.glug"], &["newer version", "newer.glug"]);
    refused(
        &["--resume", "damaged.glug", "--frames", "5", "--stats", "stats.jsonl"],
        &["checksum", "damaged.glug"],
    );
    refused(&["--resume", "missing.glug"], &["missing.glug"]);
    refused(&["--resume", "."], &["no checkpoint in this folder"]);
    let good = path.to_str().expect("a plain name");
    refused(&["cup.ron", "--resume", good], &["leave out `cup.ron`"]);
    refused(&["--resume", good, "--cells", "32"], &["--cells"]);
    refused(&["--resume", good, "--fps", "60"], &["--fps"]);
    refused(&["--resume", good, "--frames", "2"], &["nothing is left", "frame 2"]);
    refused(&["--resume", good, "--frames", "3", "--set", "seeds_per_axis=3"], &["seeds_per_axis", "starts"]);
    refused(&["--resume", good, "--frames", "3", "--set", "gravity=heavy"], &["gravity"]);
    refused(&["--resume", good, "--frames", "3", "--model", "best"], &["model"]);
    refused(&["cup.ron", "--checkpoint-every", "2"], &["--out"]);
    refused(&["cup.ron", "--checkpoint-every", "0", "--out", "out"], &["--checkpoint-every"]);
    // Nothing was touched on the way.
    let stats = fs::read_to_string(folder.path().join("stats.jsonl")).expect("a file");
    assert_eq!(stats.lines().count(), 3);
    run(folder.path(), &["--resume", good, "--frames", "3", "--stats", "stats.jsonl"]);
    let stats = fs::read_to_string(folder.path().join("stats.jsonl")).expect("a file");
    assert!(stats.starts_with("{\"frame\":1}\n{\"frame\":2}\n{\"frame\":3,"), "{stats}");
}

/// Runs that are killed at any moment leave whole checkpoints only, and the newest goes on.
fn killed_runs_can_be_resumed(kills: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let all = ["--checkpoint-every", "1", "--out", "out", "--export", "particles", "--threads", "1"];
    let mut done = 0;
    for kill in 0..kills {
        let start = if done == 0 { vec!["dam_break_2d", "--cells", "64"] } else { vec!["--resume", "out"] };
        let arguments = [&["run", "--quiet"], &start[..], &all[..], &["--frames", "100000"]].concat();
        let mut child = command(&arguments, folder.path()).spawn().expect("glug starts");
        // Between nothing at all and several frames.
        let millis = 30 + glug::math::mix(kill) % 400;
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let names = checkpoints(&folder.path().join("out"));
        let newest = names.iter().rfind(|name| name.starts_with("checkpoint_"));
        let Some(newest) = newest else { continue };
        done = newest.trim_start_matches("checkpoint_").trim_end_matches(".glug").parse().expect("a frame");
        let next = (done + 1).to_string();
        run(folder.path(), &["--resume", "out", "--frames", &next, "--stats", "next.jsonl"]);
    }
    assert!(done > 0, "{kills} kills, and no checkpoint was written before any of them");
    // The next run cleans up.
    let end = (done + 2).to_string();
    run(folder.path(), &[&["--resume", "out"], &all[..], &["--frames", &end]].concat());
    let strays: Vec<_> =
        checkpoints(&folder.path().join("out")).into_iter().filter(|n| n.starts_with('.')).collect();
    assert!(strays.is_empty(), "{strays:?}");
    // All of that is one run.
    run(
        folder.path(),
        &["dam_break_2d", "--cells", "64", "--frames", &end, "--out", "whole", "--export", "particles"],
    );
    for name in files(&folder.path().join("whole")) {
        let [a, b] =
            ["whole", "out"].map(|own| fs::read(folder.path().join(own).join(&name)).expect("particles"));
        assert!(a == b, "{name} differs after {kills} kills");
    }
}

#[test]
fn killed_runs_can_be_resumed_a_few_times() {
    killed_runs_can_be_resumed(6);
}

#[test]
#[ignore = "a minute"]
fn killed_runs_can_be_resumed_fifty_times() {
    killed_runs_can_be_resumed(50);
}
