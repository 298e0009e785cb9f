//! A system with bodies as an ordinary sparse matrix, bodies multiplied out.

use std::collections::HashMap;

use sprs::TriMat;

use super::super::assemble::{Assembled, assemble};
use super::super::system::System;
use super::body::{Bodies, BodyFace, Moments};

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
    let row_of = |face: &BodyFace| rows[&face.cell];
    for body in bodies.list {
        let faces: Vec<(usize, Moments)> = (0..D)
            .flat_map(|axis| {
                let range = body.faces[axis] as usize..body.faces[axis + 1] as usize;
                bodies.faces[range].iter().map(move |face| {
                    let sign = if face.ahead { 1.0 } else { -1.0 };
                    let mut column = [[0.0; 4]; 3];
                    column[axis][0] = sign;
                    (0..D).for_each(|k| column[axis][k + 1] = 0.5 * sign * f64::from(face.twice[k]));
                    (row_of(face), column)
                })
            })
            .collect();
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
