//! Outlines of bodies: panels about the centre of mass, and what coupling needs to know of the inside.

use std::f64::consts::PI;

use nalgebra::{DMatrix, DVector};

use super::elimination::Elimination;
use super::panels::Panel;
use crate::geometry::{Polygon, PolygonError};
use crate::math::{Real, Vector};

/// Finer panels per panel for the flow inside of a turning body.
const FINER: usize = 4;

/// Rays from the centre to points inside of a body, and how far out they are.
const RAYS: usize = 8;
const REACHES: [Real; 2] = [0.5, 0.9];

/// Corners sharper than this make panels of both sides coincide.
const SHARPEST: Real = 20.0;

/// What a body looks like.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Form {
    /// A disc.
    Disc {
        /// m.
        radius: Real,
    },
    /// A rectangle.
    Rectangle {
        /// m.
        size: [Real; 2],
    },
    /// All points that are no further than `radius` from a straight line along x.
    Capsule {
        /// Length of the line, m.
        length: Real,
        /// m.
        radius: Real,
    },
    /// A polygon by its corners, in either orientation.
    Polygon(Vec<[Real; 2]>),
}

/// Why a form is no body.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FormError {
    /// A length is not above zero.
    #[error("lengths of a body must be above 0 and finite, found {0}")]
    Length(Real),
    /// The corners are no polygon.
    #[error(transparent)]
    Polygon(#[from] PolygonError),
    /// A corner is too sharp.
    #[error("the corner at point {corner} has {degrees:.0}°; at least {SHARPEST:.0}° are needed")]
    Sharp {
        /// Its number among the points.
        corner: usize,
        /// Its angle.
        degrees: Real,
    },
}

/// An outline with its panels, in the body's own coordinates: the centre of mass is at 0.
#[derive(Clone, Debug)]
pub struct Outline {
    /// What it is the outline of.
    pub form: Form,
    /// About how many panels were asked for.
    pub(super) asked: usize,
    /// Counter-clockwise.
    pub panels: Vec<Panel>,
    /// m².
    pub area: Real,
    /// `∫ |x|² dA`, m⁴.
    pub second_moment: Real,
    /// Where its coordinates start in those of the form.
    pub centre: Vector<2>,
    /// The furthest point from the centre, m.
    pub reach: Real,
    /// Corners of its core, counter-clockwise: a point for a disc, two for a capsule. The body is all that is no further than
    /// `rounding` from what they enclose.
    pub core: Vec<Vector<2>>,
    /// m.
    pub rounding: Real,
    /// `∂h/∂n` by panel, of the harmonic `h` inside that is `−|x|²/2` on the outline.
    pub(super) spin: Vec<Real>,
    /// Points inside, and weights `w` with `Σ w ψ = ∫ x × u dA` for the flow of `ψ`.
    pub(super) inside: Vec<(Vector<2>, Real)>,
}

impl Outline {
    /// The outline of a form with about `panels` panels.
    pub fn new(form: &Form, panels: usize) -> Result<Self, FormError> {
        let positive = |length: Real| match length > 0.0 && length.is_finite() {
            true => Ok(length),
            false => Err(FormError::Length(length)),
        };
        match form {
            Form::Disc { radius } => {
                let radius = positive(*radius)?;
                Ok(Outline::of(form, panels, &round(panels.max(6), radius), vec![Vector::zeros()], radius))
            }
            Form::Rectangle { size } => {
                let [x, y] = [0.5 * positive(size[0])?, 0.5 * positive(size[1])?];
                let corners = [[-x, -y], [x, -y], [x, y], [-x, y]].map(Vector::from);
                Ok(Outline::of(form, panels, &corners, corners.to_vec(), 0.0))
            }
            Form::Capsule { length, radius } => {
                let (half, radius) = (0.5 * positive(*length)?, positive(*radius)?);
                let round_panels = (PI * radius / (4.0 * half + 2.0 * PI * radius) * panels as Real) as usize;
                let ends = round(2 * round_panels.max(4), radius);
                // The right half first, from the bottom up; both ends have a panel's end there.
                let pieces = ends.len() / 2;
                let turned = |i: usize| {
                    let (sine, cosine) = (-0.5 * PI + PI * i as Real / pieces as Real).sin_cos();
                    Vector::from([cosine, sine]) * ends[0].norm()
                };
                let right = (0..=pieces).map(|i| turned(i) + Vector::from([half, 0.0]));
                let left = (0..=pieces).map(|i| -turned(i) - Vector::from([half, 0.0]));
                let corners: Vec<Vector<2>> = right.chain(left).collect();
                let core = vec![Vector::from([-half, 0.0]), Vector::from([half, 0.0])];
                Ok(Outline::of(form, panels, &corners, core, radius))
            }
            Form::Polygon(points) => {
                let polygon = Polygon::new(points)?;
                let mut corners: Vec<Vector<2>> =
                    polygon.points().iter().map(|point| Vector::from([point.x, point.y])).collect();
                let count = corners.len();
                for corner in 0..count {
                    let arm = |other: usize| corners[other % count] - corners[corner];
                    let degrees = arm(corner + 1).angle(&arm(corner + count - 1)).to_degrees();
                    if degrees < SHARPEST {
                        return Err(FormError::Sharp { corner, degrees });
                    }
                }
                if signed_area(&corners) < 0.0 {
                    corners.reverse();
                }
                Ok(Outline::of(form, panels, &corners, corners.clone(), 0.0))
            }
        }
    }

    fn of(form: &Form, asked: usize, corners: &[Vector<2>], core: Vec<Vector<2>>, rounding: Real) -> Self {
        let panels = divide(corners, asked);
        let moment = |power: [i32; 2]| moment(&panels, power);
        let area = moment([0, 0]);
        let centre = Vector::from([moment([1, 0]), moment([0, 1])]) / area;
        let panels: Vec<Panel> =
            panels.iter().map(|panel| Panel { centre: panel.centre - centre, ..*panel }).collect();
        let end = |panel: &Panel| (panel.centre + panel.tangent * (0.5 * panel.length)).norm();
        Outline {
            form: form.clone(),
            asked,
            area,
            second_moment: self::moment(&panels, [2, 0]) + self::moment(&panels, [0, 2]),
            centre,
            reach: panels.iter().map(end).fold(0.0, Real::max),
            core: core.iter().map(|corner| corner - centre).collect(),
            rounding,
            spin: spin_of(&panels),
            inside: points_inside(&panels),
            panels,
        }
    }
}

fn signed_area(corners: &[Vector<2>]) -> Real {
    let next = corners.iter().cycle().skip(1);
    corners.iter().zip(next).map(|(a, b)| 0.5 * a.perp(b)).sum()
}

/// A regular polygon with the area of a disc.
fn round(count: usize, radius: Real) -> Vec<Vector<2>> {
    let angle = 2.0 * PI / count as Real;
    let corner_radius = radius * (angle / angle.sin()).sqrt();
    let corner = |i: usize| {
        let (sine, cosine) = (angle * i as Real).sin_cos();
        Vector::from([cosine, sine]) * corner_radius
    };
    (0..count).map(corner).collect()
}

/// Cuts the sides of a polygon into about `count` pieces of about the same length.
fn divide(corners: &[Vector<2>], count: usize) -> Vec<Panel> {
    let sides: Vec<[Vector<2>; 2]> =
        (0..corners.len()).map(|i| [corners[i], corners[(i + 1) % corners.len()]]).collect();
    let whole: Real = sides.iter().map(|[a, b]| (b - a).norm()).sum();
    let mut panels = Vec::new();
    for [start, end] in sides {
        let along = end - start;
        let pieces = (along.norm() / whole * count as Real).round().max(1.0);
        for piece in 0..pieces as usize {
            let at = |number: usize| start + along * (number as Real / pieces);
            panels.push(Panel::between(at(piece), at(piece + 1)));
        }
    }
    panels
}

/// `∫ x^p y^q dA`, by the divergence theorem; exact for powers up to 4 together.
fn moment(panels: &[Panel], [p, q]: [i32; 2]) -> Real {
    let node = 0.6f64.sqrt();
    let mut sum = 0.0;
    for panel in panels {
        for (place, weight) in [(-node, 5.0 / 18.0), (0.0, 8.0 / 18.0), (node, 5.0 / 18.0)] {
            let x = panel.centre + panel.tangent * (0.5 * panel.length * place);
            sum += weight * panel.length * x[0].powi(p) * x[1].powi(q) * x.dot(&panel.normal());
        }
    }
    sum / (p + q + 2) as Real
}

/// The flux `∂h/∂n` of the harmonic function that is `−|x|²/2` on the outline: from a single layer on finer panels.
fn spin_of(panels: &[Panel]) -> Vec<Real> {
    let fine: Vec<Panel> = panels
        .iter()
        .flat_map(|panel| {
            let step = panel.tangent * (panel.length / FINER as Real);
            let start = panel.centre - panel.tangent * (0.5 * panel.length);
            (0..FINER).map(move |i| Panel::between(start + step * i as Real, start + step * (i + 1) as Real))
        })
        .collect();
    let count = fine.len();
    let mut system = Elimination::default();
    system.clear(count + 1, 1);
    for (i, at) in fine.iter().enumerate() {
        let row = system.row_mut(i);
        row.iter_mut().zip(&fine).for_each(|(value, panel)| *value = panel.potential(at.centre));
        (row[count], row[count + 1]) = (1.0, -0.5 * at.centre.norm_squared());
    }
    system.row_mut(count).iter_mut().zip(&fine).for_each(|(value, panel)| *value = panel.length);
    // Outlines have been checked; a singular matrix would be one that was not.
    let solved = system.solve();
    debug_assert!(solved, "an outline encloses something");
    let layer: Vec<Real> = system.solution(0).collect();
    // The curl of the potential along the outline is minus its slope across it; a panel at its own centre gives the jump.
    let flux = |at: &Panel| -> Real {
        let velocity = |(panel, strength): (&Panel, &Real)| panel.velocity(at.centre) * *strength;
        -fine.iter().zip(&layer).map(velocity).sum::<Vector<2>>().dot(&at.tangent)
    };
    let mut spin: Vec<Real> = fine
        .chunks_exact(FINER)
        .map(|pieces| pieces.iter().map(flux).sum::<Real>() / FINER as Real)
        .collect();
    let whole: Real = panels.iter().map(|panel| panel.length).sum();
    let surplus: Real =
        spin.iter().zip(panels).map(|(spin, panel)| spin * panel.length).sum::<Real>() / whole;
    spin.iter_mut().for_each(|value| *value -= surplus);
    spin
}

/// Points inside, with the smallest weights that give `∫ x × u dA = −∫ x · ∇ψ dA` exactly for polynomials up to degree 4.
fn points_inside(panels: &[Panel]) -> Vec<(Vector<2>, Real)> {
    let mut points = vec![Vector::zeros()];
    for ray in 0..RAYS {
        // Ends of panels rather than centres: on a disc these are as symmetric as it is.
        let panel = &panels[ray * panels.len() / RAYS];
        let start = panel.centre - panel.tangent * (0.5 * panel.length);
        points.extend(REACHES.map(|reach| start * reach));
    }
    let scale = panels.iter().map(|panel| panel.centre.norm()).fold(0.0, Real::max);
    let powers: Vec<[i32; 2]> =
        (0..=4).flat_map(|degree| (0..=degree).map(move |p| [p, degree - p])).collect();
    let matrix = DMatrix::from_fn(powers.len(), points.len(), |row, column| {
        let x: Vector<2> = points[column] / scale;
        x[0].powi(powers[row][0]) * x[1].powi(powers[row][1])
    });
    let sides = DVector::from_fn(powers.len(), |row, _| {
        let degree: i32 = powers[row].iter().sum();
        -degree as Real * moment(panels, powers[row]) / scale.powi(degree)
    });
    // Where symmetry makes some conditions the same, the rest of the singular values is rounding.
    let weights =
        matrix.svd(true, true).solve(&sides, 1e-10).unwrap_or_else(|_| DVector::zeros(points.len()));
    points.into_iter().zip(weights.iter().copied()).collect()
}
