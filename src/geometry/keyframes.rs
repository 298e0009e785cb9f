//! Motion from key to key.

use crate::math::{Real, Vector};

/// Where a track is at one instant; also its rate of change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement<const D: usize> {
    /// Displacement from the rest pose, metres.
    pub translation: Vector<D>,
    /// Turn about the track's axis, radians.
    pub angle: Real,
}

/// How a track gets from one key to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// Straight, with jumps of velocity at the keys.
    Linear,
    /// Cubic: starts and ends at rest, flows through the keys between, never overshoots one.
    #[default]
    Smooth,
}

/// A track of keys. Before the first and after the last it stands still.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyframes<const D: usize> {
    /// What the keys' angles turn about; z in 2D.
    pub axis: [Real; 3],
    /// A point on the axis, in the rest pose.
    pub center: Vector<D>,
    /// How keys are joined.
    pub interpolation: Interpolation,
    times: Vec<Real>,
    places: Vec<Placement<D>>,
    slopes: Vec<Placement<D>>,
}

impl<const D: usize> Keyframes<D> {
    /// A track through keys `(time, place)`, whose times must increase.
    pub fn new(
        axis: [Real; 3],
        center: Vector<D>,
        interpolation: Interpolation,
        keys: &[(Real, Placement<D>)],
    ) -> Self {
        assert!(!keys.is_empty(), "a track needs at least one key");
        assert!(keys.windows(2).all(|pair| pair[0].0 < pair[1].0), "keys must be in order of time");
        let times: Vec<Real> = keys.iter().map(|key| key.0).collect();
        let places: Vec<Placement<D>> = keys.iter().map(|key| key.1).collect();
        let slopes = (0..keys.len())
            .map(|i| match (i.checked_sub(1), i + 1 < keys.len()) {
                (Some(before), true) => join_slopes(
                    &secant(&places[before], &places[i], times[i] - times[before]),
                    &secant(&places[i], &places[i + 1], times[i + 1] - times[i]),
                ),
                _ => Placement { translation: Vector::zeros(), angle: 0.0 },
            })
            .collect();
        Keyframes { axis, center, interpolation, times, places, slopes }
    }

    /// Place and rate of change at a time. On a key the rate is the one that follows it.
    pub fn sample(&self, time: Real) -> (Placement<D>, Placement<D>) {
        let still = Placement { translation: Vector::zeros(), angle: 0.0 };
        let next = self.times.partition_point(|&key| key <= time);
        if next == 0 {
            return (self.places[0], still);
        }
        if next == self.times.len() {
            return (self.places[next - 1], still);
        }
        let (a, b) = (&self.places[next - 1], &self.places[next]);
        let span = self.times[next] - self.times[next - 1];
        let s = (time - self.times[next - 1]) / span;
        match self.interpolation {
            Interpolation::Linear => (combine(&[(1.0 - s, a), (s, b)]), secant(a, b, span)),
            Interpolation::Smooth => {
                let (slope_a, slope_b) = (&self.slopes[next - 1], &self.slopes[next]);
                let rise = s * s * (3.0 - 2.0 * s);
                let place = combine(&[
                    (1.0 - rise, a),
                    (rise, b),
                    (span * s * (1.0 - s) * (1.0 - s), slope_a),
                    (span * s * s * (s - 1.0), slope_b),
                ]);
                let rise_rate = 6.0 * s * (1.0 - s) / span;
                let rate = combine(&[
                    (-rise_rate, a),
                    (rise_rate, b),
                    ((1.0 - s) * (1.0 - 3.0 * s), slope_a),
                    (s * (3.0 * s - 2.0), slope_b),
                ]);
                (place, rate)
            }
        }
    }
}

fn combine<const D: usize>(terms: &[(Real, &Placement<D>)]) -> Placement<D> {
    terms.iter().fold(Placement { translation: Vector::zeros(), angle: 0.0 }, |sum, (weight, place)| {
        Placement {
            translation: sum.translation + place.translation * *weight,
            angle: sum.angle + weight * place.angle,
        }
    })
}

fn secant<const D: usize>(a: &Placement<D>, b: &Placement<D>, span: Real) -> Placement<D> {
    combine(&[(-1.0 / span, a), (1.0 / span, b)])
}

/// The slope at a key from the secants beside it: their harmonic mean where they agree in sign, else zero. A cubic
/// with such slopes is monotone between keys (Fritsch and Butland 1984), which is what keeps it from overshooting.
fn join_slopes<const D: usize>(before: &Placement<D>, after: &Placement<D>) -> Placement<D> {
    let join = |a: Real, b: Real| if a * b > 0.0 { 2.0 * a * b / (a + b) } else { 0.0 };
    Placement {
        translation: before.translation.zip_map(&after.translation, join),
        angle: join(before.angle, after.angle),
    }
}
