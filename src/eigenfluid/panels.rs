//! Panels: straight pieces of a vortex sheet in a box, and the stream function that they make.
//!
//! A panel of length `L` and strength `γ` has the stream function `γ S` with its single-layer potential
//!
//! ```text
//! S(x, y) = −1/2π ∫ ln|x − s| ds = −1/2π [ x ln d_o + (L−x) ln d_e − L + y β ],   β = atan2(y L, x² + y² − x L)
//! ```
//!
//! in coordinates along it and to its left, with distances `d_o`, `d_e` from its ends. Walls are mirrors: images with
//! strengths of alternating sign in all directions. Rows of them along the shorter side add up to
//! `ln (cosh b − cos a)`; along the other side the rows decay exponentially, and a few are enough. An image counts as a
//! point unless it is near.
//!
//! Strengths are counter-clockwise; outlines run counter-clockwise too, with the normal to the right of the direction of
//! travel, which is out of the body.

use std::f64::consts::PI;

use macro_rules_attribute::apply;

use crate::math::{Real, Vector, simd};

/// Panel lengths beyond which a panel is its centre and a quadrupole. This and the next are the same for images, so that both
/// cancel on walls.
const MIDDLE: Real = 6.0;

/// Panel lengths beyond which a panel is a point.
const FAR: Real = 24.0;

/// Panel lengths from a panel's centre within which the rest of the box looks as it does from there.
const AT_CENTRE: Real = 1e-3;

/// A straight piece of an outline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Panel {
    /// Its middle, m.
    pub centre: Vector<2>,
    /// Unit vector along it.
    pub tangent: Vector<2>,
    /// m.
    pub length: Real,
}

impl Panel {
    /// From one point to another.
    pub fn between(start: Vector<2>, end: Vector<2>) -> Self {
        let along = end - start;
        Panel { centre: (start + end) * 0.5, tangent: along.normalize(), length: along.norm() }
    }

    /// Unit vector to its right: out of the body whose outline it is part of.
    pub fn normal(&self) -> Vector<2> {
        Vector::from([self.tangent[1], -self.tangent[0]])
    }

    /// Its potential `S` at a point, without walls.
    pub fn potential(&self, at: Vector<2>) -> Real {
        let (x, y) = self.local(at);
        let (length, end) = (self.length, self.length - x);
        let (from_start, from_end) = (x * x + y * y, end * end + y * y);
        let log = |factor: Real, squared: Real| if factor == 0.0 { 0.0 } else { 0.5 * factor * squared.ln() };
        let angle = (y * length).atan2(from_start - x * length);
        -(log(x, from_start) + log(end, from_end) - length + y * angle) / (2.0 * PI)
    }

    /// The velocity at a point with strength 1, without walls: the curl of [`Panel::potential`]. On the panel itself
    /// that of its left side.
    pub fn velocity(&self, at: Vector<2>) -> Vector<2> {
        let (x, y) = self.local(at);
        let (from_start, from_end) = (x * x + y * y, (self.length - x).powi(2) + y * y);
        let along = -(y * self.length).atan2(from_start - x * self.length) / (2.0 * PI);
        let across = 0.25 / PI * (from_start / from_end).ln();
        self.tangent * along - self.normal() * across
    }

    /// Its potential less that of all of it at its centre, for a point at that distance squared.
    fn more_than_point(&self, at: Vector<2>, squared: Real) -> Real {
        let length = self.length;
        if squared < (MIDDLE * length).powi(2) {
            self.potential(at) + length * squared.ln() / (4.0 * PI)
        } else if squared < (FAR * length).powi(2) {
            let along = (at - self.centre).dot(&self.tangent);
            // L³ cos 2θ / (48π d²).
            length.powi(3) * (2.0 * along * along - squared) / (48.0 * PI * squared * squared)
        } else {
            0.0
        }
    }

    /// The same of its velocity.
    fn velocity_more_than_point(&self, at: Vector<2>) -> Vector<2> {
        let arm = at - self.centre;
        let squared = arm.norm_squared();
        match squared < (FAR * self.length).powi(2) {
            true => {
                self.velocity(at) - Vector::from([-arm[1], arm[0]]) * (self.length / (2.0 * PI * squared))
            }
            false => Vector::zeros(),
        }
    }

    fn local(&self, at: Vector<2>) -> (Real, Real) {
        let arm = at - self.centre;
        // On the panel, 0 and not −0: that is its left side.
        (arm.dot(&self.tangent) + 0.5 * self.length, 0.0 - arm.dot(&self.normal()))
    }

    /// Its mirror image at a wall across `axis`, at the box' low or high end.
    pub(super) fn mirrored(&self, axis: usize, wall: Real) -> Self {
        let mut image = *self;
        image.centre[axis] = 2.0 * wall - image.centre[axis];
        image.tangent[axis] = -image.tangent[axis];
        image
    }
}

/// The walls of a box, as mirrors.
#[derive(Clone, Debug)]
pub(super) struct Walls {
    size: [Real; 2],
    /// The axis of the shorter side.
    short: usize,
    /// `π` over the shorter side.
    wave: Real,
    /// By how much rows of images decay, for each row that counts.
    rows: Vec<Real>,
}

/// What the images of a point need of it.
#[derive(Clone, Copy, Debug)]
struct Mirrored {
    sine: Real,
    cosine: Real,
    grows: Real,
    decays: Real,
}

/// Sources in a box: panels, as lists of what kernels read of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    pub panels: Vec<Panel>,
    sine: Vec<Real>,
    cosine: Vec<Real>,
    grows: Vec<Real>,
    decays: Vec<Real>,
    /// Images near enough to be panels: source, sign, panel.
    images: Vec<(usize, Real, Panel)>,
}

impl Walls {
    pub fn new(size: [Real; 2]) -> Self {
        let short = if size[0] <= size[1] { 0 } else { 1 };
        let ratio = size[1 - short] / size[short];
        // A row further out counts e^−2πr times as much; ten digits are enough.
        let count = (10.0 * std::f64::consts::LN_10 / (2.0 * PI * ratio)).ceil() as usize;
        let rows = (1..=count.max(1)).map(|j| (2.0 * PI * ratio * j as Real).exp()).collect();
        Walls { size, short, wave: PI / size[short], rows }
    }

    fn mirrored(&self, at: Vector<2>) -> Mirrored {
        let (sine, cosine) = (self.wave * at[self.short]).sin_cos();
        let grows = (self.wave * at[1 - self.short]).exp();
        Mirrored { sine, cosine, grows, decays: 1.0 / grows }
    }

    /// Lays panels out for the kernels.
    pub fn place(&self, sources: &mut Sources) {
        let Sources { panels, sine, cosine, grows, decays, images } = sources;
        for list in [&mut *sine, &mut *cosine, &mut *grows, &mut *decays] {
            list.clear();
        }
        images.clear();
        for (number, panel) in panels.iter().enumerate() {
            let at = self.mirrored(panel.centre);
            sine.push(at.sine);
            cosine.push(at.cosine);
            grows.push(at.grows);
            decays.push(at.decays);
            // Within twice that distance of a wall: points that are as near to it may be near to the image.
            let near = |axis: usize| {
                [0.0, self.size[axis]]
                    .into_iter()
                    .find(|wall| (panel.centre[axis] - wall).abs() < FAR * panel.length)
            };
            let walls = [near(0), near(1)];
            for axis in 0..2 {
                if let Some(wall) = walls[axis] {
                    images.push((number, -1.0, panel.mirrored(axis, wall)));
                }
            }
            if let [Some(first), Some(second)] = walls {
                images.push((number, 1.0, panel.mirrored(0, first).mirrored(1, second)));
            }
        }
    }

    /// The stream function at a point of all panels with strength 1, walls included.
    pub fn influence(&self, at: Vector<2>, sources: &Sources, row: &mut [Real]) {
        let Sources { panels, images, .. } = sources;
        let row = &mut row[..panels.len()];
        self.products(at, sources, row);
        for (number, (value, panel)) in row.iter_mut().zip(panels).enumerate() {
            let squared = (at - panel.centre).norm_squared();
            *value = if squared < (AT_CENTRE * panel.length).powi(2) {
                let product = self.own_product(number, sources);
                panel.potential(at) - panel.length * product.ln() / (4.0 * PI)
            } else {
                panel.more_than_point(at, squared) - panel.length * value.ln() / (4.0 * PI)
            };
        }
        for (number, sign, image) in images {
            row[*number] += sign * image.more_than_point(at, (at - image.centre).norm_squared());
        }
    }

    /// Products over all images of what their logarithms are taken of, the sources' own among them.
    fn products(&self, at: Vector<2>, sources: &Sources, row: &mut [Real]) {
        image_products(&self.mirrored(at), &self.rows, sources, row);
    }

    /// The same for a source at its own centre, divided by the square of the distance to it.
    fn own_product(&self, own: usize, sources: &Sources) -> Real {
        let [sine, cosine] = [sources.sine[own], sources.cosine[own]];
        let [grows, decays] = [sources.grows[own], sources.decays[own]];
        let (same, across) = (1.0, cosine * cosine - sine * sine);
        let mirror = 0.5 * (grows * grows + decays * decays);
        let mut product = 0.5 * self.wave * self.wave / (1.0 - across) * (mirror - across) / (mirror - same);
        for &row in &self.rows {
            for (up, down) in [(row, 1.0 / row), (1.0 / row, row)] {
                let near = 0.5 * (up + down);
                let far = 0.5 * (grows * grows * up + decays * decays * down);
                product *= (near - same) * (far - across) / ((near - across) * (far - same));
            }
        }
        product
    }

    /// The velocity of all panels at a point.
    pub fn velocity(&self, at: Vector<2>, sources: &Sources, strengths: &[Real]) -> Vector<2> {
        let point = self.mirrored(at);
        let mut velocity = Vector::<2>::zeros();
        for (number, (panel, &strength)) in sources.panels.iter().zip(strengths).enumerate() {
            let arm = at - panel.centre;
            // The gradient of the logarithms of all images as points, the panel itself among them.
            let mut slope = [0.0; 2];
            let cosines = point.cosine * sources.cosine[number];
            let sines = point.sine * sources.sine[number];
            let (across, along) = (point.sine * sources.cosine[number], point.cosine * sources.sine[number]);
            for row in
                self.rows.iter().rev().map(|row| 1.0 / row).chain([1.0]).chain(self.rows.iter().copied())
            {
                for (sign, other) in [(1.0, sources.decays[number]), (-1.0, sources.grows[number])] {
                    let up = point.grows * other * row;
                    let down = 1.0 / up;
                    let (cosh, sinh) = (0.5 * (up + down), 0.5 * (up - down));
                    let near = sign * self.wave / (cosh - (cosines + sines));
                    let far = -sign * self.wave / (cosh - (cosines - sines));
                    slope[self.short] += near * (across - along) + far * (across + along);
                    slope[1 - self.short] += (near + far) * sinh;
                }
            }
            if arm.norm_squared() < (AT_CENTRE * panel.length).powi(2) {
                velocity += panel.velocity(at) * strength;
            } else {
                let points = Vector::from([slope[1], -slope[0]]) * (-panel.length / (4.0 * PI));
                velocity += (points + panel.velocity_more_than_point(at)) * strength;
            }
        }
        for (number, sign, image) in &sources.images {
            velocity += image.velocity_more_than_point(at) * (sign * strengths[*number]);
        }
        velocity
    }
}

#[apply(simd)]
fn image_products(point: &Mirrored, rows: &[Real], sources: &Sources, products: &mut [Real]) {
    let count = products.len();
    let (sine, cosine) = (&sources.sine[..count], &sources.cosine[..count]);
    let (grows, decays) = (&sources.grows[..count], &sources.decays[..count]);
    for i in 0..count {
        let (cosines, sines) = (point.cosine * cosine[i], point.sine * sine[i]);
        let (same, across) = (cosines + sines, cosines - sines);
        let (up, down) = (point.grows * decays[i], point.decays * grows[i]);
        let (mirror_up, mirror_down) = (point.grows * grows[i], point.decays * decays[i]);
        let (near, far) = (0.5 * (up + down), 0.5 * (mirror_up + mirror_down));
        let mut product = (near - same) * (far - across) / ((near - across) * (far - same));
        for &row in rows {
            let inverse = 1.0 / row;
            for (plus, minus) in [(row, inverse), (inverse, row)] {
                let near = 0.5 * (up * plus + down * minus);
                let far = 0.5 * (mirror_up * plus + mirror_down * minus);
                product *= (near - same) * (far - across) / ((near - across) * (far - same));
            }
        }
        products[i] = product;
    }
}
