//! The liquid's surface as a mesh: triangles in 3D, line segments in 2D, from a signed distance at cell centres.
//!
//! Marching cubes on the lattice of cell centres. Three choices make the mesh closed and manifold for any field:
//! a face with two inside corners on a diagonal always separates them, seen from either side; no diagonal of a
//! polygon lies in a face of its cube (see `table`); a vertex belongs to its lattice edge alone.
//!
//! At the domain's walls the lattice gets one more layer that repeats the outermost cells, placed at the wall, and
//! everything beyond is air: the mesh ends flush with the wall and meets it at a sharp contact line.

mod extract;
mod lattice;
mod table;

pub use extract::{extract_surface, mesh_distance};

/// A closed surface: triangles in 3D, segments in 2D.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SurfaceMesh<const D: usize> {
    /// Vertices, metres.
    pub positions: Vec<[f32; D]>,
    /// Unit normals at the vertices, pointing out of the liquid.
    pub normals: Vec<[f32; D]>,
    /// Vertices of each triangle, counter-clockwise seen from the air; of each segment, liquid to the left.
    pub elements: Vec<[u32; D]>,
}

impl<const D: usize> SurfaceMesh<D> {
    /// Whether there is nothing to see.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The corners of an element in double precision.
    fn corners(&self, element: &[u32; D]) -> [[f64; D]; D] {
        element.map(|vertex| self.positions[vertex as usize].map(f64::from))
    }

    /// Enclosed volume, m³ (m² in 2D), by the divergence theorem.
    pub fn volume(&self) -> f64 {
        let signed = self.elements.iter().map(|element| {
            let corners = self.corners(element);
            match D {
                2 => (corners[0][0] * corners[1][1] - corners[0][1] * corners[1][0]) / 2.0,
                _ => dot(&corners[0], &cross(&corners[1], &corners[2])) / 6.0,
            }
        });
        signed.sum()
    }

    /// Area of the surface, m² (length in 2D, m).
    pub fn area(&self) -> f64 {
        let measures = self.elements.iter().map(|element| {
            let corners = self.corners(element);
            let along: [f64; D] = difference(&corners[1], &corners[0]);
            match D {
                2 => dot(&along, &along).sqrt(),
                _ => {
                    let normal = cross(&along, &difference(&corners[2], &corners[0]));
                    dot(&normal, &normal).sqrt() / 2.0
                }
            }
        });
        measures.sum()
    }

    /// The closed curves of a 2D surface: vertices in order, the first not repeated at the end.
    pub fn contours(&self) -> Vec<Vec<u32>> {
        assert_eq!(D, 2, "only curves have an order");
        let mut next = vec![u32::MAX; self.positions.len()];
        for element in &self.elements {
            next[element[0] as usize] = element[1];
        }
        let mut contours = Vec::new();
        for start in 0..next.len() {
            let mut contour = Vec::new();
            let mut vertex = start as u32;
            while next[vertex as usize] != u32::MAX {
                contour.push(vertex);
                vertex = std::mem::replace(&mut next[vertex as usize], u32::MAX);
            }
            if !contour.is_empty() {
                contours.push(contour);
            }
        }
        contours
    }
}

fn difference<const D: usize>(a: &[f64; D], b: &[f64; D]) -> [f64; D] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn dot<const D: usize>(a: &[f64; D], b: &[f64; D]) -> f64 {
    (0..D).map(|axis| a[axis] * b[axis]).sum()
}

/// The cross product; only for D = 3.
fn cross<const D: usize>(a: &[f64; D], b: &[f64; D]) -> [f64; D] {
    std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % D, (axis + 2) % D);
        a[next] * b[last] - a[last] * b[next]
    })
}
