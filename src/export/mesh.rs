//! Surface meshes as PLY and OBJ.

use std::io::{self, Write};

use crate::geometry::SurfaceMesh;

/// Writes a mesh as binary PLY: vertices with normals, then triangles (3D) or edges (2D). Metres, y up.
pub fn write_ply<const D: usize>(mesh: &SurfaceMesh<D>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "ply\nformat binary_little_endian 1.0\ncomment liquid surface, metres, y up")?;
    writeln!(out, "element vertex {}", mesh.positions.len())?;
    for name in ["x", "y", "z", "nx", "ny", "nz"] {
        writeln!(out, "property float {name}")?;
    }
    if D == 2 {
        writeln!(out, "element edge {}", mesh.elements.len())?;
        writeln!(out, "property int vertex1\nproperty int vertex2\nend_header")?;
    } else {
        writeln!(out, "element face {}", mesh.elements.len())?;
        writeln!(out, "property list uchar int vertex_indices\nend_header")?;
    }
    for (position, normal) in mesh.positions.iter().zip(&mesh.normals) {
        for value in padded(position).into_iter().chain(padded(normal)) {
            out.write_all(&value.to_le_bytes())?;
        }
    }
    for element in &mesh.elements {
        if D > 2 {
            out.write_all(&[D as u8])?;
        }
        for vertex in element {
            out.write_all(&vertex.to_le_bytes())?;
        }
    }
    Ok(())
}

/// Writes a mesh as OBJ: triangles with normals (3D) or closed polylines (2D). Metres, y up.
pub fn write_obj<const D: usize>(mesh: &SurfaceMesh<D>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# liquid surface, metres, y up")?;
    for position in &mesh.positions {
        let [x, y, z] = padded(position);
        writeln!(out, "v {x} {y} {z}")?;
    }
    if D == 2 {
        for contour in mesh.contours() {
            write!(out, "l")?;
            for vertex in contour.iter().chain(contour.first()) {
                write!(out, " {}", vertex + 1)?;
            }
            writeln!(out)?;
        }
        return Ok(());
    }
    for normal in &mesh.normals {
        let [x, y, z] = padded(normal);
        writeln!(out, "vn {x:.5} {y:.5} {z:.5}")?;
    }
    for element in &mesh.elements {
        write!(out, "f")?;
        for vertex in element {
            write!(out, " {0}//{0}", vertex + 1)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A vector with zeros for the missing axes.
pub(super) fn padded<const D: usize>(vector: &[f32; D]) -> [f32; 3] {
    std::array::from_fn(|axis| if axis < D { vector[axis] } else { 0.0 })
}
