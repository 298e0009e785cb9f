//! Which edges of a lattice cube the surface's elements connect, for every pattern of inside corners.

use std::sync::LazyLock;

/// An edge of a cube: its low corner in bits 0–2 (one bit per axis), its axis above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge(u8);

impl Edge {
    fn between(a: usize, b: usize) -> Self {
        Edge((a & b) as u8 | ((a ^ b).trailing_zeros() as u8) << 3)
    }

    /// Low corner, one bit per axis.
    #[inline]
    pub fn corner(self) -> usize {
        (self.0 & 7) as usize
    }

    /// The axis it runs along.
    #[inline]
    pub fn axis(self) -> usize {
        (self.0 >> 3) as usize
    }

    fn id(self) -> usize {
        self.0 as usize
    }

    /// Whether one face of the cube holds both edges.
    fn shares_face_with(self, other: Edge) -> bool {
        (0..3).any(|axis| {
            axis != self.axis()
                && axis != other.axis()
                && (self.corner() >> axis) & 1 == (other.corner() >> axis) & 1
        })
    }
}

/// Elements by pattern; bit `c` of a pattern says that corner `c` is inside.
pub(super) struct Table {
    starts: Vec<usize>,
    edges: Vec<Edge>,
}

impl Table {
    /// The edges of the pattern's elements, D after D.
    #[inline]
    pub fn edges(&self, pattern: usize) -> &[Edge] {
        &self.edges[self.starts[pattern]..self.starts[pattern + 1]]
    }

    /// The table for D dimensions.
    pub fn get(dimension: usize) -> &'static Table {
        static SQUARES: LazyLock<Table> = LazyLock::new(|| Table::build(16, square_segments));
        static CUBES: LazyLock<Table> = LazyLock::new(|| Table::build(256, cube_triangles));
        if dimension == 2 { &SQUARES } else { &CUBES }
    }

    fn build(patterns: usize, elements: fn(usize) -> Vec<Edge>) -> Table {
        let mut table = Table { starts: vec![0], edges: Vec::new() };
        for pattern in 0..patterns {
            table.edges.extend(elements(pattern));
            table.starts.push(table.edges.len());
        }
        table
    }
}

/// Cuts every run of inside corners off a face whose corners are given in a circle: the edges where each run
/// starts and ends. Two inside corners on a diagonal are two runs: they stay separate.
fn cuts(circle: [usize; 4], pattern: usize) -> Vec<(Edge, Edge)> {
    let inside = |i: usize| pattern >> circle[i % 4] & 1 == 1;
    let starts = (0..4).filter(|&i| inside(i) && !inside(i + 3));
    let run = |start: usize| {
        let end = (start..start + 3).find(|&i| !inside(i + 1)).expect("a run that starts also ends");
        let enter = Edge::between(circle[(start + 3) % 4], circle[start]);
        (enter, Edge::between(circle[end % 4], circle[(end + 1) % 4]))
    };
    starts.map(run).collect()
}

/// 2D: segments with the liquid on their left.
fn square_segments(pattern: usize) -> Vec<Edge> {
    cuts([0, 1, 3, 2], pattern).into_iter().flat_map(|(enter, leave)| [leave, enter]).collect()
}

/// The corners of a cube's face, counter-clockwise seen from outside the cube.
fn face_circle(axis: usize, high: bool) -> [usize; 4] {
    let (u, v) = (1 << ((axis + 1) % 3), 1 << ((axis + 2) % 3));
    let base = if high { 1 << axis } else { 0 };
    if high { [base, base | u, base | u | v, base | v] } else { [base, base | v, base | u | v, base | u] }
}

/// 3D: triangles, counter-clockwise seen from outside the liquid.
fn cube_triangles(pattern: usize) -> Vec<Edge> {
    let mut next = [None; 24];
    for (axis, high) in (0..3).flat_map(|axis| [(axis, false), (axis, true)]) {
        for (enter, leave) in cuts(face_circle(axis, high), pattern) {
            next[enter.id()] = Some(leave);
        }
    }
    let mut triangles = Vec::new();
    for first in 0..next.len() {
        let mut polygon = Vec::new();
        let mut at = Edge(first as u8);
        while let Some(edge) = next[at.id()].take() {
            polygon.push(at);
            at = edge;
        }
        if !polygon.is_empty() {
            let closed = triangulate(&polygon, 0, polygon.len() - 1, &mut triangles);
            assert!(closed, "pattern {pattern} has no triangulation inside its cube");
        }
    }
    triangles
}

/// Triangulates the polygon's vertices `from..=to` with diagonals through the cube's interior only; a diagonal in
/// a face could meet the same diagonal of the next cube, and four triangles would share it.
fn triangulate(polygon: &[Edge], from: usize, to: usize, triangles: &mut Vec<Edge>) -> bool {
    if to - from < 2 {
        return true;
    }
    let count = polygon.len();
    let allowed =
        |a: usize, b: usize| b - a == 1 || b - a == count - 1 || !polygon[a].shares_face_with(polygon[b]);
    let before = triangles.len();
    for apex in from + 1..to {
        if allowed(from, apex) && allowed(apex, to) {
            triangles.extend([polygon[from], polygon[apex], polygon[to]]);
            if triangulate(polygon, from, apex, triangles) && triangulate(polygon, apex, to, triangles) {
                return true;
            }
            triangles.truncate(before);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_edge_of_every_pattern_is_used() {
        for (dimension, patterns) in [(2, 16), (3, 256)] {
            let table = Table::get(dimension);
            for pattern in 0..patterns {
                for corner in 0..1usize << dimension {
                    for axis in (0..dimension).filter(|axis| corner >> axis & 1 == 0) {
                        let other = corner | 1 << axis;
                        let cut = (pattern >> corner ^ pattern >> other) & 1 == 1;
                        let used = table.edges(pattern).contains(&Edge::between(corner, other));
                        assert_eq!(cut, used, "{dimension}D pattern {pattern} edge {corner}–{other}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_inside_corner_faces_away_from_it() {
        let axes: Vec<_> = Table::get(3).edges(1).iter().map(|edge| edge.axis()).collect();
        assert!([[0, 1, 2], [1, 2, 0], [2, 0, 1]].iter().any(|turn| axes == turn), "{axes:?}");
    }
}
