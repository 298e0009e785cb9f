//! Signed distance to a closed triangle mesh, read from Wavefront OBJ.

use std::collections::HashMap;

use nalgebra::Vector3;
use parry3d_f64::math::Vector as Vec3;
use parry3d_f64::query::PointQuery;
use parry3d_f64::shape::{TriMesh, TriMeshFlags};

use crate::math::Real;

/// A closed, oriented triangle mesh.
#[derive(Clone, Debug)]
pub struct Mesh {
    triangles: TriMesh,
}

/// Why a file or a list of triangles is not a usable mesh.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeshError {
    /// The text is not OBJ.
    #[error("is not a readable OBJ: {0}")]
    Unreadable(String),
    /// No triangles at all, or none with an area.
    #[error("has no faces")]
    Empty,
    /// A corner that is not a finite number.
    #[error("has a vertex, number {0}, that is not finite")]
    NotFinite(usize),
    /// A face that names a corner that is not there.
    #[error("has a face that uses vertex {found}, but only {count} vertices")]
    MissingVertex {
        /// Its index, counted from 1.
        found: usize,
        /// How many vertices there are.
        count: usize,
    },
    /// A face that cannot be cut into triangles from its first corner.
    #[error("has a face of {corners} corners at {at} that is not convex; cut it into triangles")]
    NotConvex {
        /// How many corners.
        corners: usize,
        /// The first of them.
        at: String,
    },
    /// A face whose corners lie on a line.
    #[error("has a face without area at {at}; remove it or merge its corners")]
    Sliver {
        /// One of its corners.
        at: String,
    },
    /// Edges with a face on one side only.
    #[error("is open: {count} edges have only one face, the first from {from} to {to}; close the holes")]
    Open {
        /// How many.
        count: usize,
        /// Where the first one starts.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// Edges with three faces or more, or whose two faces disagree about which side is out.
    #[error(
        "is not a clean surface: the edge from {from} to {to} is used {uses} times in one direction; every edge must join exactly two faces that turn the same way"
    )]
    NotManifold {
        /// Where the edge starts.
        from: String,
        /// Where it ends.
        to: String,
        /// How often it is used in that direction.
        uses: usize,
    },
    /// No volume.
    #[error("encloses no volume")]
    Flat,
}

impl Mesh {
    /// Reads a mesh from the text of an OBJ file. All its groups together must form closed surfaces.
    pub fn from_obj(text: &str) -> Result<Self, MeshError> {
        let options = tobj::LoadOptions { ignore_points: true, ignore_lines: true, ..Default::default() };
        let no_materials = |_: &std::path::Path| Ok((Vec::new(), Default::default()));
        let (models, _) = tobj::load_obj_buf(&mut text.as_bytes(), &options, no_materials)
            .map_err(|error| MeshError::Unreadable(error.to_string()))?;
        let (mut points, mut faces) = (Vec::new(), Vec::new());
        for tobj::Mesh { positions, indices, face_arities, .. } in models.iter().map(|model| &model.mesh) {
            let first = points.len() as u32;
            points.extend(positions.chunks_exact(3).map(|p| [p[0] as Real, p[1] as Real, p[2] as Real]));
            let mut rest = indices.as_slice();
            // A mesh of triangles alone has no list of arities.
            let arities = face_arities.iter().map(|&arity| arity as usize);
            let triangles =
                std::iter::repeat_n(3, if face_arities.is_empty() { indices.len() / 3 } else { 0 });
            for arity in arities.chain(triangles) {
                let (face, after) = rest.split_at_checked(arity).ok_or(MeshError::Empty)?;
                rest = after;
                let corners: Vec<u32> = face.iter().map(|corner| first + corner).collect();
                faces.extend(fan(&points, &corners)?);
            }
        }
        Mesh::new(&points, &faces)
    }

    /// A mesh from corners and triangles. Corners at the same place count as one; if the faces turn inwards the
    /// whole mesh is turned round.
    pub fn new(points: &[[Real; 3]], faces: &[[u32; 3]]) -> Result<Self, MeshError> {
        if let Some(bad) = points.iter().position(|point| point.iter().any(|c| !c.is_finite())) {
            return Err(MeshError::NotFinite(bad + 1));
        }
        let (points, mut faces) = weld(points, faces)?;
        if faces.is_empty() {
            return Err(MeshError::Empty);
        }
        check_closed(&points, &faces)?;
        check_areas(&points, &faces)?;
        let volume = signed_volume(&points, &faces);
        let size = points.iter().flatten().fold(0.0, |most: Real, c| most.max(c.abs()));
        if volume.abs() <= 1e-12 * size.powi(3) {
            return Err(MeshError::Flat);
        }
        if volume < 0.0 {
            faces.iter_mut().for_each(|face| face.swap(1, 2));
        }
        let corners = points.iter().map(|&[x, y, z]| Vec3::new(x, y, z)).collect();
        let triangles = TriMesh::with_flags(corners, faces, TriMeshFlags::ORIENTED)
            .map_err(|error| MeshError::Unreadable(error.to_string()))?;
        Ok(Mesh { triangles })
    }

    /// Signed distance, negative inside.
    pub fn distance(&self, [x, y, z]: [Real; 3]) -> Real {
        let point = Vec3::new(x, y, z);
        let nearest = self.triangles.project_local_point(point, false);
        let distance = (nearest.point - point).length();
        if nearest.is_inside { -distance } else { distance }
    }

    /// Low and high corner.
    pub fn bounds(&self) -> [[Real; 3]; 2] {
        let bounds = self.triangles.local_aabb();
        [bounds.mins.into(), bounds.maxs.into()]
    }

    /// The corners of all triangles, counter-clockwise seen from outside.
    pub fn corners(&self) -> Vec<[Vector3<Real>; 3]> {
        let points = self.triangles.vertices();
        let corner = |index: u32| {
            let point = points[index as usize];
            Vector3::new(point.x, point.y, point.z)
        };
        self.triangles.indices().iter().map(|face| face.map(corner)).collect()
    }

    /// All its corners, each once.
    pub fn points(&self) -> Vec<Vector3<Real>> {
        self.triangles.vertices().iter().map(|point| Vector3::new(point.x, point.y, point.z)).collect()
    }

    /// How many triangles there are.
    pub fn triangle_count(&self) -> usize {
        self.triangles.num_triangles()
    }
}

/// Cuts a convex face into triangles.
fn fan(points: &[[Real; 3]], corners: &[u32]) -> Result<Vec<[u32; 3]>, MeshError> {
    if let Some(&bad) = corners.iter().find(|&&corner| corner as usize >= points.len()) {
        return Err(MeshError::MissingVertex { found: bad as usize + 1, count: points.len() });
    }
    let triangles: Vec<[u32; 3]> =
        corners.windows(2).skip(1).map(|pair| [corners[0], pair[0], pair[1]]).collect();
    let areas: Vec<Vector3<Real>> = triangles.iter().map(|&triangle| vector_area(points, triangle)).collect();
    let whole: Vector3<Real> = areas.iter().sum();
    if areas.iter().any(|area| area.dot(&whole) < 0.0) {
        return Err(MeshError::NotConvex { corners: corners.len(), at: place(points, corners[0]) });
    }
    Ok(triangles)
}

/// Normal of a triangle, as long as the triangle is large.
fn vector_area(points: &[[Real; 3]], triangle: [u32; 3]) -> Vector3<Real> {
    let [a, b, c] = triangle.map(|corner| Vector3::from(points[corner as usize]));
    (b - a).cross(&(c - a)) * 0.5
}

/// Triangles that are all but a line have no normal to tell inside from outside by.
fn check_areas(points: &[[Real; 3]], faces: &[[u32; 3]]) -> Result<(), MeshError> {
    for &face in faces {
        let [a, b, c] = face.map(|corner| Vector3::from(points[corner as usize]));
        let longest = (b - a).norm_squared().max((c - b).norm_squared()).max((a - c).norm_squared());
        if vector_area(points, face).norm() <= 1e-6 * longest {
            return Err(MeshError::Sliver { at: place(points, face[0]) });
        }
    }
    Ok(())
}

/// A corner as messages show it.
fn place(points: &[[Real; 3]], corner: u32) -> String {
    let [x, y, z] = points[corner as usize];
    format!("({x}, {y}, {z})")
}

type Welded = (Vec<[Real; 3]>, Vec<[u32; 3]>);

/// Joins corners at exactly the same place and drops faces that collapse by it.
fn weld(points: &[[Real; 3]], faces: &[[u32; 3]]) -> Result<Welded, MeshError> {
    let mut known: HashMap<[u64; 3], u32> = HashMap::new();
    let mut welded = Vec::new();
    let mut welded_of = Vec::with_capacity(points.len());
    for point in points {
        // Adding zero turns -0.0 into 0.0, so that both have the same bits.
        let index = *known.entry(point.map(|c| (c + 0.0).to_bits())).or_insert_with(|| {
            welded.push(*point);
            welded.len() as u32 - 1
        });
        welded_of.push(index);
    }
    let mut kept = Vec::with_capacity(faces.len());
    for face in faces {
        if let Some(&bad) = face.iter().find(|&&corner| corner as usize >= points.len()) {
            return Err(MeshError::MissingVertex { found: bad as usize + 1, count: points.len() });
        }
        let face = face.map(|corner| welded_of[corner as usize]);
        if face[0] != face[1] && face[1] != face[2] && face[2] != face[0] {
            kept.push(face);
        }
    }
    Ok((welded, kept))
}

/// Every edge must be used once in each direction.
fn check_closed(points: &[[Real; 3]], faces: &[[u32; 3]]) -> Result<(), MeshError> {
    let mut uses: HashMap<(u32, u32), usize> = HashMap::new();
    let edges = || faces.iter().flat_map(|face| (0..3).map(|i| (face[i], face[(i + 1) % 3])));
    for edge in edges() {
        *uses.entry(edge).or_default() += 1;
    }
    if let Some((from, to)) = edges().find(|edge| uses[edge] > 1) {
        return Err(MeshError::NotManifold {
            from: place(points, from),
            to: place(points, to),
            uses: uses[&(from, to)],
        });
    }
    let mut open = edges().filter(|&(from, to)| !uses.contains_key(&(to, from)));
    match open.next() {
        Some((from, to)) => {
            Err(MeshError::Open { count: 1 + open.count(), from: place(points, from), to: place(points, to) })
        }
        None => Ok(()),
    }
}

fn signed_volume(points: &[[Real; 3]], faces: &[[u32; 3]]) -> Real {
    faces
        .iter()
        .map(|face| {
            let [a, b, c] = face.map(|corner| Vector3::from(points[corner as usize]));
            a.dot(&b.cross(&c)) / 6.0
        })
        .sum()
}
