//! A projection's linear system as MatrixMarket files, so that anyone can check a solve or race another solver.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::AtomicFile;
use crate::runner::LinearSystem;
use crate::sim::UnknownCounts;

/// How the system was solved.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SystemMeta {
    /// Unknowns by kind.
    pub unknowns: UnknownCounts,
    /// Relative residual asked for.
    pub tolerance: f64,
    /// Iterations it took.
    pub iterations: usize,
    /// Relative residual reached.
    pub relative_residual: f64,
    /// Wall time of building the preconditioner.
    pub seconds_setup: f64,
    /// Wall time of the iterations.
    pub seconds_solve: f64,
    /// Preconditioner.
    pub method: String,
    /// Threads used.
    pub threads: usize,
    /// Scene the system comes from.
    pub scene: String,
    /// Frame it comes from: its last substep.
    pub frame: usize,
}

/// Writes `A.mtx`, `b.mtx`, `x.mtx`, `rows.csv` and `meta.json` into a folder; returns their names.
pub fn write_system(
    folder: &Path,
    system: &LinearSystem,
    meta: &SystemMeta,
) -> io::Result<Vec<&'static str>> {
    let size = system.rhs.len();
    assert_eq!(system.solution.len(), size, "as many solutions as equations");
    assert_eq!(system.rows.len(), size, "every unknown stands for something");
    // All five are complete before the first takes its name.
    let files = ["A.mtx", "b.mtx", "x.mtx", "rows.csv", "meta.json"];
    let mut open = Vec::with_capacity(files.len());
    for name in files {
        open.push(AtomicFile::create(&folder.join(name))?);
    }
    let [matrix, rhs, solution, rows, about] = &mut open[..] else { unreachable!("five files") };
    write_matrix(matrix, size, &system.entries)?;
    write_vector(rhs, &system.rhs)?;
    write_vector(solution, &system.solution)?;
    writeln!(rows, "row,kind,i,j,k")?;
    for (row, (kind, [i, j, k])) in system.rows.iter().enumerate() {
        writeln!(rows, "{row},{},{i},{j},{k}", kind.name())?;
    }
    serde_json::to_writer_pretty(&mut *about, meta)?;
    writeln!(about)?;
    AtomicFile::commit_all(open)?;
    Ok(files.to_vec())
}

fn write_matrix(out: &mut impl Write, size: usize, entries: &[(u32, u32, f64)]) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix coordinate real symmetric")?;
    writeln!(out, "{size} {size} {}", entries.len())?;
    for &(row, column, value) in entries {
        debug_assert!(column <= row, "only the lower triangle is stored");
        writeln!(out, "{} {} {value:e}", row + 1, column + 1)?;
    }
    Ok(())
}

fn write_vector(out: &mut impl Write, values: &[f64]) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix array real general\n{} 1", values.len())?;
    for value in values {
        writeln!(out, "{value:e}")?;
    }
    Ok(())
}
