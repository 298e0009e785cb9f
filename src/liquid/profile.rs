//! What a flat surface looks like to the surface's kernel.

use super::KERNEL_CELLS;

/// The relation `G` between height over a flat surface and distance to the particles' mean, both ways, in cells.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// `G` at evenly spaced heights from −R to R.
    displacement: Vec<f32>,
    /// Height at evenly spaced displacements from 0 to R.
    height: Vec<f32>,
}

impl Profile {
    const STEPS: usize = 512;

    /// For grids of that dimension.
    pub(super) fn new(dimension: usize) -> Self {
        // Mass of the kernel in a plane at distance t (in units of R): (1 − t²)^m up to a constant, with m = 4 in
        // 3D and 7/2 in 2D. Then G = R · ∫ −t (1−t²)^m / ∫ (1−t²)^m over t from −1 to −y.
        let m = if dimension == 3 { 4.0 } else { 3.5 };
        let fine = 64 * Self::STEPS;
        let step = 2.0 / fine as f64;
        let (mut mass, mut moment) = (0.0, 0.0);
        let mut exact = Vec::with_capacity(Self::STEPS + 1);
        exact.push(1.0);
        for i in 0..fine {
            let t = -1.0 + (i as f64 + 0.5) * step;
            let plane = (1.0 - t * t).powf(m);
            mass += plane;
            moment -= t * plane;
            if (i + 1) % 64 == 0 {
                exact.push(moment / mass);
            }
        }
        // `exact[i]` belongs to planes up to t = −1 + 2i/STEPS, that is to height y = −t.
        exact.reverse();
        let radius = KERNEL_CELLS as f64;
        let displacement = exact.iter().map(|g| (g * radius) as f32).collect();
        let mut height = Vec::with_capacity(Self::STEPS + 1);
        let mut i = 0;
        for k in 0..=Self::STEPS {
            let wanted = k as f64 / Self::STEPS as f64;
            while i + 1 < Self::STEPS && exact[i + 1] < wanted {
                i += 1;
            }
            let (low, high) = (exact[i], exact[i + 1]);
            let along = ((wanted - low) / (high - low)).clamp(0.0, 1.0);
            height.push((radius * (-1.0 + 2.0 * (i as f64 + along) / Self::STEPS as f64)) as f32);
        }
        Profile { displacement, height }
    }

    fn lookup(table: &[f32], place: f32) -> f32 {
        let place = place.clamp(0.0, Self::STEPS as f32 - 0.001);
        let low = place as usize;
        let along = place - low as f32;
        table[low] * (1.0 - along) + table[low + 1] * along
    }

    /// `G`: distance to the mean at a height.
    pub(super) fn displacement(&self, height: f32) -> f32 {
        Self::lookup(&self.displacement, (height / KERNEL_CELLS + 1.0) * (0.5 * Self::STEPS as f32))
    }

    /// The inverse of `G`: height at a distance to the mean.
    pub(super) fn height(&self, displacement: f32) -> f32 {
        Self::lookup(&self.height, displacement / KERNEL_CELLS * Self::STEPS as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_inverts_itself() {
        for dimension in [2, 3] {
            let profile = Profile::new(dimension);
            for k in -100..=120 {
                let height = k as f32 * 0.01;
                let back = profile.height(profile.displacement(height));
                assert!((back - height).abs() < 0.02, "{dimension}D: {height} came back as {back}");
            }
            let on_surface = profile.displacement(0.0);
            let expected =
                if dimension == 3 { 1.5 * 0.1 / (128.0 / 315.0) } else { 1.5 * (1.0 / 9.0) / 0.429_5 };
            assert!((on_surface - expected).abs() < 1e-3, "{dimension}D: {on_surface} against {expected}");
        }
    }
}
