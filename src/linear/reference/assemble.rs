//! A system as an explicit sparse matrix: for export, for the reference preconditioners and for tests.

use std::collections::HashMap;

use sprs::{CsMat, TriMat};

use crate::grid::{SIDE, VOID, block_cells};
use crate::math::{Side, power};

use super::super::bodies::{Bodies, Face, Moments};
use super::super::coupling::Unknown;
use super::super::system::System;

/// A system as a matrix.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The symmetric matrix, row by row.
    pub matrix: CsMat<f64>,
    /// The cell (`slot · 8^D + local`) of each row; rows after these are the shared nodes in order
    /// (one without links has a zero row).
    pub cells: Vec<u32>,
}

/// Writes out the network of a system, without bodies: a row per unknown, in the order of the live slots and of the cells inside a
/// block, then a row per shared node. Slow and large next to the system itself.
pub fn assemble<const D: usize>(system: &System<'_, D>) -> Assembled {
    let cells = block_cells(D);
    let mut shared_links: Vec<(u32, u32, f32)> = (0..system.shared.len())
        .flat_map(|node| {
            system.shared.links(node).map(move |(cell, link, _)| (cell as u32, node as u32, link))
        })
        .collect();
    shared_links.sort_by_key(|&(cell, node, _)| (cell, node));
    let shared_of = |cell: usize| {
        let first = shared_links.partition_point(|&(c, _, _)| (c as usize) < cell);
        shared_links[first..].iter().take_while(move |&&(c, _, _)| c as usize == cell)
    };

    // Neighbours in the order of their cells, so that columns come out sorted within a block.
    let links_of = |slot: usize, local: usize| {
        let mut links = [(0usize, 0.0f32); 6];
        for axis in 0..D {
            let stride = power(SIDE, axis);
            let at = local / stride % SIDE;
            let low = match at {
                0 => system.blocks.beside(slot, axis, Side::Low) as usize * cells + local + 7 * stride,
                _ => slot * cells + local - stride,
            };
            let high = match at {
                7 => system.blocks.beside(slot, axis, Side::High) as usize * cells + local - 7 * stride,
                _ => slot * cells + local + stride,
            };
            links[2 * axis] = (low, system.link[axis][slot * cells + local]);
            links[2 * axis + 1] =
                (high, if high / cells == VOID as usize { 0.0 } else { system.link[axis][high] });
        }
        links
    };
    let mut row_of = vec![u32::MAX; system.blocks.slot_count() * cells];
    let mut rows = Vec::new();
    let mut diagonals = Vec::new();
    for &slot in system.live.as_slice() {
        for local in 0..cells {
            let cell = slot as usize * cells + local;
            let diagonal =
                links_of(slot as usize, local).iter().map(|&(_, link)| f64::from(link)).sum::<f64>()
                    + f64::from(system.ground[cell])
                    + shared_of(cell).map(|&(_, _, link)| f64::from(link)).sum::<f64>();
            if diagonal > 0.0 {
                row_of[cell] = rows.len() as u32;
                rows.push(cell as u32);
                diagonals.push(diagonal);
            }
        }
    }

    let size = rows.len() + system.shared.len();
    let (mut start, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut entries: Vec<(usize, f64)> = Vec::new();
    let mut finish = |entries: &mut Vec<(usize, f64)>| {
        entries.sort_by_key(|entry| entry.0);
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            columns.push(same[0].0);
            values.push(same.iter().map(|entry| entry.1).sum::<f64>());
        }
        entries.clear();
        start.push(columns.len());
    };
    for (row, &cell) in rows.iter().enumerate() {
        let cell = cell as usize;
        entries.push((row, diagonals[row]));
        for (other, link) in links_of(cell / cells, cell % cells) {
            if link > 0.0 {
                entries.push((row_of[other] as usize, -f64::from(link)));
            }
        }
        entries
            .extend(shared_of(cell).map(|&(_, node, link)| (rows.len() + node as usize, -f64::from(link))));
        finish(&mut entries);
    }
    for node in 0..system.shared.len() {
        let diagonal = system.shared.links(node).map(|(_, link, _)| f64::from(link)).sum::<f64>();
        entries.push((rows.len() + node, diagonal));
        entries.extend(
            system.shared.links(node).map(|(cell, link, _)| (row_of[cell] as usize, -f64::from(link))),
        );
        finish(&mut entries);
    }
    Assembled { matrix: CsMat::new((size, size), start, columns, values), cells: rows }
}

/// Writes out `L + Σ JᵀKJ`, with the couplings of the system and with `bodies` if there are any, rows as [`assemble`] has them.
/// Every body makes a dense block of the cells around it, so this is for small systems.
pub fn assemble_with_bodies<const D: usize>(
    system: &System<'_, D>,
    bodies: Option<&Bodies<'_>>,
) -> Assembled {
    let network = assemble(system);
    let size = network.matrix.rows();
    let mut matrix = TriMat::new((size, size));
    for (&value, (row, column)) in network.matrix.iter() {
        matrix.add_triplet(row, column, value);
    }
    let rows: HashMap<u32, usize> =
        network.cells.iter().enumerate().map(|(row, &cell)| (cell, row)).collect();
    if let Some(couplings) = system.couplings {
        let row = |unknown: Unknown| match unknown {
            Unknown::Cell(cell) => rows.get(&cell).copied(),
            Unknown::Shared(node) => {
                let is_linked = system.shared.links(node as usize).next().is_some();
                is_linked.then_some(network.cells.len() + node as usize)
            }
        };
        couplings.each_entry(row, |row, column, value| matrix.add_triplet(row, column, value));
    }
    for (body, bodies) in bodies.iter().flat_map(|bodies| bodies.list.iter().map(move |body| (body, bodies)))
    {
        let column_of = |face: Face| {
            let mut column = [[0.0; 4]; 3];
            column[face.axis] = face.force;
            (rows[&face.cell], column)
        };
        let faces: Vec<(usize, Moments)> = bodies.faces::<D>(body).map(column_of).collect();
        for (column, forces) in &faces {
            let field = body.response.apply::<D>(forces);
            for (row, weights) in &faces {
                let value =
                    field.iter().flatten().zip(weights.iter().flatten()).map(|(a, b)| a * b).sum::<f64>();
                matrix.add_triplet(*row, *column, value);
            }
        }
    }
    Assembled { matrix: symmetric(&matrix.to_csr()), cells: network.cells }
}

/// Makes a matrix that is symmetric but for rounding symmetric to the last bit.
fn symmetric(matrix: &CsMat<f64>) -> CsMat<f64> {
    let mut out = TriMat::new((matrix.rows(), matrix.cols()));
    for (&value, (row, column)) in matrix.iter() {
        let mirrored = matrix.get(column, row).copied().unwrap_or(0.0);
        out.add_triplet(row, column, 0.5 * (value + mirrored));
    }
    out.to_csr()
}
