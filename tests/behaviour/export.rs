//! Files hold what they should, and are whole or absent.

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use glug::export::{
    AtomicFile, Picture, StatsWriter, SystemMeta, draw, probe_folder, write_obj, write_particles, write_ply,
    write_system,
};
use glug::geometry::{SurfaceMesh, extract_surface};
use glug::grid::Grid;
use glug::runner::{LinearSystem, RowKind};
use glug::sim::{FrameReport, Params};
use glug::snapshot::{Scenery, Snapshot, SolidField, Triangles, half_from_f32};

use crate::surface::field_of;

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn drop_of_liquid<const D: usize>() -> SurfaceMesh<D> {
    let (blocks, field) = field_of(Grid { cells: [16; D], dx: 0.1 }, |x: [f64; D]| {
        x.iter().map(|c| (c - 8.2).powi(2)).sum::<f64>().sqrt() - 4.0
    });
    extract_surface(&blocks, &field)
}

/// A file's header and the rest.
fn split_ply(bytes: &[u8]) -> (String, &[u8]) {
    let end = b"end_header\n";
    let at = bytes.windows(end.len()).position(|window| window == end).expect("a header") + end.len();
    (String::from_utf8(bytes[..at].to_vec()).expect("text"), &bytes[at..])
}

fn float(bytes: &[u8], index: usize) -> f32 {
    f32::from_le_bytes(bytes[index * 4..index * 4 + 4].try_into().expect("four bytes"))
}

#[test]
fn a_dropped_file_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liquid_0001.ply");
    fs::write(&path, "old").expect("written");
    let mut file = AtomicFile::create(&path).expect("created");
    file.write_all(b"half").expect("written");
    drop(file);
    assert_eq!(fs::read(&path).expect("there"), b"old");
    let mut file = AtomicFile::create(&path).expect("created");
    file.write_all(b"whole").expect("written");
    assert_eq!(fs::read(&path).expect("there"), b"old", "the name changes hands at the end only");
    file.commit().expect("committed");
    assert_eq!(fs::read(&path).expect("there"), b"whole");
    assert_eq!(names(folder.path()), ["liquid_0001.ply"]);
}

#[test]
fn probing_creates_folders_and_leaves_them_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder.path().join("a/b");
    probe_folder(&deep).expect("creatable");
    assert!(names(&deep).is_empty());
    fs::write(folder.path().join("file"), "").expect("written");
    assert!(probe_folder(&folder.path().join("file")).is_err(), "a file is not a folder");
}

#[test]
fn ply_holds_the_mesh() {
    let mesh = drop_of_liquid::<3>();
    let mut bytes = Vec::new();
    write_ply(&mesh, &mut bytes).expect("written");
    let (header, body) = split_ply(&bytes);
    assert!(header.starts_with("ply\nformat binary_little_endian 1.0\n"));
    assert!(header.contains(&format!("element vertex {}\n", mesh.positions.len())));
    assert!(header.contains(&format!("element face {}\n", mesh.elements.len())));
    assert_eq!(body.len(), mesh.positions.len() * 24 + mesh.elements.len() * 13);
    assert_eq!(float(body, 1), mesh.positions[0][1]);
    assert_eq!(float(body, 6 + 5), mesh.normals[1][2]);
}

#[test]
fn flat_ply_holds_edges() {
    let mesh = drop_of_liquid::<2>();
    let mut bytes = Vec::new();
    write_ply(&mesh, &mut bytes).expect("written");
    let (header, body) = split_ply(&bytes);
    assert!(header.contains(&format!("element edge {}\n", mesh.elements.len())));
    assert_eq!(body.len(), mesh.positions.len() * 24 + mesh.elements.len() * 8);
}

#[test]
fn obj_reads_back() {
    let mesh = drop_of_liquid::<3>();
    let mut bytes = Vec::new();
    write_obj(&mesh, &mut bytes).expect("written");
    let options = tobj::LoadOptions { single_index: true, ..Default::default() };
    let (models, _) = tobj::load_obj_buf(&mut &bytes[..], &options, |_| Err(tobj::LoadError::OpenFileFailed))
        .expect("a valid file");
    let read = &models[0].mesh;
    assert_eq!(read.positions.len(), mesh.positions.len() * 3);
    assert_eq!(read.indices.len(), mesh.elements.len() * 3);

    let mut bytes = Vec::new();
    let flat = drop_of_liquid::<2>();
    write_obj(&flat, &mut bytes).expect("written");
    let text = String::from_utf8(bytes).expect("text");
    let line = text.lines().find(|line| line.starts_with("l ")).expect("a polyline");
    let indices: Vec<&str> = line.split(' ').skip(1).collect();
    assert_eq!(indices.first(), indices.last(), "the curve is closed");
    assert_eq!(indices.len(), flat.positions.len() + 1);
}

#[test]
fn particles_are_in_metres() {
    let mut bytes = Vec::new();
    let about_to_vanish = [f32::NAN, 8.0];
    write_particles(&[about_to_vanish, [4.0, 8.0]], &[[0.0; 2], [1.0, -2.0]], 0.25, &mut bytes)
        .expect("written");
    let (header, body) = split_ply(&bytes);
    assert!(header.contains("element vertex 1\n"));
    let values: Vec<f32> = (0..6).map(|i| float(body, i)).collect();
    assert_eq!(values, [1.0, 2.0, 0.0, 1.0, -2.0, 0.0]);
}

#[test]
fn statistics_are_one_object_per_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stats.jsonl");
    let mut stats = StatsWriter::create(&path).expect("created");
    for frame in 1..=3 {
        stats.write(&FrameReport { frame, ..FrameReport::default() }).expect("written");
        let text = fs::read_to_string(&path).expect("there");
        assert_eq!(text.lines().count(), frame, "lines arrive at once");
        assert!(text.ends_with('\n'));
    }
    for (line, frame) in fs::read_to_string(&path).expect("there").lines().zip(1..) {
        let value: serde_json::Value = serde_json::from_str(line).expect("an object");
        assert_eq!(value["frame"], frame);
        for key in [
            "time",
            "substeps",
            "solver",
            "model",
            "cells_xyz",
            "dx",
            "seconds",
            "particles",
            "cells",
            "unknowns",
        ] {
            assert!(!value[key].is_null(), "{key} is there");
        }
    }
}

#[test]
fn linear_systems_are_matrix_market() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = LinearSystem {
        entries: vec![(0, 0, 4.0), (1, 0, -1.0 / 3.0), (1, 1, 4.0)],
        rhs: vec![1.0, 0.1 + 0.2],
        solution: vec![0.25, 1e-300],
        rows: vec![(RowKind::Pressure, [3, 4, -1]), (RowKind::Bubble, [-1; 3])],
        ..LinearSystem::default()
    };
    write_system(folder.path(), &system, &SystemMeta::default()).expect("written");
    assert_eq!(names(folder.path()), ["A.mtx", "b.mtx", "meta.json", "rows.csv", "x.mtx"]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("there");
    let matrix = read("A.mtx");
    let lines: Vec<&str> = matrix.lines().collect();
    assert_eq!(lines[..2], ["%%MatrixMarket matrix coordinate real symmetric", "2 2 3"]);
    let value: f64 = lines[3].split(' ').nth(2).expect("three columns").parse().expect("a number");
    assert_eq!(value, -1.0 / 3.0, "numbers survive to the last bit");
    let rhs = read("b.mtx");
    assert!(rhs.starts_with("%%MatrixMarket matrix array real general\n2 1\n"));
    assert_eq!(rhs.lines().last().expect("a number").parse(), Ok(0.1 + 0.2));
    assert_eq!(read("rows.csv"), "row,kind,i,j,k\n0,pressure,3,4,-1\n1,bubble,-1,-1,-1\n");
    let meta: serde_json::Value = serde_json::from_str(&read("meta.json")).expect("an object");
    for key in ["unknowns", "tolerance", "iterations", "seconds_setup", "seconds_solve", "method", "threads"]
    {
        assert!(!meta[key].is_null(), "{key} is there");
    }
}

/// A tank of 16 cells a side, filled up to a level in cells: what any solver might show.
fn filled<const D: usize>(level: f64) -> Snapshot {
    const CELLS: usize = 16;
    let dx = 1.0 / CELLS as f32;
    let per_axis = |value: f32| std::array::from_fn(|axis| if axis < D { value } else { 0.0 });
    let cells = std::array::from_fn(|axis| if axis < D { CELLS } else { 1 });
    let scenery = Scenery {
        dimension: D,
        size: per_axis(1.0),
        cells,
        dx,
        open: [[false; 2]; 3],
        speed: 1.0,
        ..Scenery::default()
    };
    let mut snapshot = Snapshot::new(Arc::new(scenery), 1, FrameReport::default(), Params::default());
    let height = |index: usize| (index / CELLS % CELLS) as f32 + 0.5 - level as f32;
    snapshot.cells.cells = cells;
    snapshot.cells.distance = (0..CELLS.pow(D as u32)).map(|index| half_from_f32(height(index))).collect();
    snapshot.solids = Arc::new(SolidField { corners: [1; 3], distance: vec![half_from_f32(24.0)] });
    if D == 3 {
        let grid = Grid::covering([1.0; D], CELLS);
        let (blocks, surface) = field_of(grid, |x: [f64; D]| (x[1] - level) * f64::from(dx));
        snapshot.surface = Triangles::from(&extract_surface(&blocks, &surface));
    }
    snapshot
}

fn picture_shows_liquid<const D: usize>() {
    let draw_level = |level: f64| {
        let snapshot = filled::<D>(level);
        assert!(draw(&snapshot, &AtomicBool::new(true)).is_none(), "{D}D: a raised flag stops it");
        draw(&snapshot, &AtomicBool::new(false)).expect("nobody stops it")
    };
    let blue = |picture: &Picture| {
        let bluish = |pixel: &&[u8]| i32::from(pixel[2]) - i32::from(pixel[0]) > 40;
        picture.rgb.chunks_exact(3).filter(bluish).count()
    };
    let (dry, low, high) = (draw_level(-1.0), draw_level(4.0), draw_level(12.0));
    assert!(blue(&dry) < blue(&low) && blue(&low) < blue(&high), "{D}D: more liquid is more blue");
    let mut bytes = Vec::new();
    high.write_png(&mut bytes).expect("written");
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().expect("a valid file");
    let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
    reader.next_frame(&mut pixels).expect("a picture");
    assert_eq!(pixels, high.rgb);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    assert!(pool.install(|| draw_level(12.0)) == high, "{D}D: the same for any number of threads");
}

#[test]
fn picture_shows_liquid_2d() {
    picture_shows_liquid::<2>();
}

#[test]
fn picture_shows_liquid_3d() {
    picture_shows_liquid::<3>();
}
