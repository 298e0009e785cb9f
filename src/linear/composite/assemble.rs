//! A system with bodies as an ordinary sparse matrix, bodies multiplied out.

use std::collections::HashMap;

use sprs::TriMat;

use super::super::assemble::{Assembled, assemble};
use super::super::system::System;
use super::body::{Bodies, Face, Moments};

/// Writes out `L + Σ JᵀKJ`, rows as [`assemble`] has them. Every body makes a dense block of the cells around it, so this
/// is for small systems.
pub fn assemble_with_bodies<const D: usize>(system: &System<'_, D>, bodies: &Bodies<'_>) -> Assembled {
    let network = assemble(system);
    let size = network.matrix.rows();
    let mut matrix = TriMat::new((size, size));
    for (&value, (row, column)) in network.matrix.iter() {
        matrix.add_triplet(row, column, value);
    }
    let rows: HashMap<u32, usize> =
        network.cells.iter().enumerate().map(|(row, &cell)| (cell, row)).collect();
    for body in bodies.list {
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
fn symmetric(matrix: &sprs::CsMat<f64>) -> sprs::CsMat<f64> {
    let mut out = TriMat::new((matrix.rows(), matrix.cols()));
    for (&value, (row, column)) in matrix.iter() {
        let mirrored = matrix.get(column, row).copied().unwrap_or(0.0);
        out.add_triplet(row, column, 0.5 * (value + mirrored));
    }
    out.to_csr()
}
