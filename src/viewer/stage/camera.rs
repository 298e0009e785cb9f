//! The camera that all panes share: an orbit in 3D, pan and zoom in 2D.

use bevy::camera::ScalingMode;
use bevy::prelude::*;

use crate::snapshot::Scenery;

/// Vertical field of view.
const FIELD_OF_VIEW: f32 = 0.60;
/// What a picture leaves free around the domain.
const MARGIN: f32 = 1.16;

/// Where the pictures are taken from.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct OrbitCamera {
    /// Looked at, metres.
    pub target: Vec3,
    /// Radians around the vertical; 0 looks along −z.
    pub yaw: f32,
    /// Radians above the horizon.
    pub pitch: f32,
    /// Metres to the target.
    pub distance: f32,
    /// Metres across the picture's height in 2D.
    pub height: f32,
    /// 2 or 3.
    pub dimension: usize,
}

impl Default for OrbitCamera {
    fn default() -> Self {
        OrbitCamera { target: Vec3::ZERO, yaw: 0.5, pitch: 0.28, distance: 3.0, height: 1.0, dimension: 2 }
    }
}

impl OrbitCamera {
    /// All of a stage, in a picture of an aspect (width over height).
    pub fn framing(stage: &Scenery, aspect: f32) -> Self {
        let size = Vec3::from(stage.size);
        let aspect = if aspect.is_finite() && aspect > 0.0 { aspect } else { 1.0 };
        let mut camera =
            OrbitCamera { target: size / 2.0, dimension: stage.dimension, ..OrbitCamera::default() };
        camera.height = MARGIN * size.y.max(size.x / aspect).max(1e-6);
        if stage.dimension == 2 {
            // The caption stands above.
            camera.target.y += 0.03 * camera.height;
        }
        if stage.dimension == 3 {
            camera.distance = 2.0 * size.length();
            // The farthest corner from the middle of the picture decides; with the distance, perspective changes a bit.
            for _ in 0..8 {
                let corners = (0..8).map(|corner| {
                    size * Vec3::new((corner & 1) as f32, (corner >> 1 & 1) as f32, (corner >> 2) as f32)
                });
                let places = corners.filter_map(|corner| camera.project(corner, aspect));
                let reach = places.map(|at| (at - 0.5).abs().max_element()).fold(0.0, f32::max);
                camera.distance *= (2.0 * reach * MARGIN).clamp(0.2, 5.0);
            }
        }
        camera
    }

    /// Drags the world around the target, in radians.
    pub fn orbit(&mut self, across: f32, up: f32) {
        self.yaw = (self.yaw - across) % std::f32::consts::TAU;
        self.pitch = (self.pitch + up).clamp(-0.12, 1.45);
    }

    /// Shifts the picture by a share of its height.
    pub fn pan(&mut self, across: f32, up: f32) {
        let height = self.visible_height();
        let rotation = self.rotation();
        self.target -= rotation * Vec3::new(across, -up, 0.0) * height;
    }

    /// Comes closer by a factor; in 2D the given place stays where it is.
    pub fn zoom(&mut self, factor: f32, about: Option<Vec3>) {
        let factor = factor.clamp(0.2, 5.0);
        self.distance = (self.distance * factor).clamp(1e-3, 1e4);
        let before = self.height;
        self.height = (self.height * factor).clamp(1e-5, 1e4);
        if let (Some(about), 2) = (about, self.dimension) {
            self.target = about + (self.target - about) * (self.height / before);
        }
    }

    fn visible_height(&self) -> f32 {
        if self.dimension == 2 { self.height } else { 2.0 * self.distance * (FIELD_OF_VIEW / 2.0).tan() }
    }

    fn rotation(&self) -> Quat {
        match self.dimension {
            2 => Quat::IDENTITY,
            _ => Quat::from_rotation_y(self.yaw) * Quat::from_rotation_x(-self.pitch),
        }
    }

    /// Where the camera stands.
    pub fn transform(&self) -> Transform {
        let rotation = self.rotation();
        let back = if self.dimension == 2 { 1.0 } else { self.distance };
        Transform { translation: self.target + rotation * Vec3::Z * back, rotation, scale: Vec3::ONE }
    }

    /// How it projects.
    pub fn projection(&self) -> Projection {
        if self.dimension == 2 {
            Projection::Orthographic(OrthographicProjection {
                near: 0.0,
                far: 2.0,
                scaling_mode: ScalingMode::FixedVertical { viewport_height: self.height },
                ..OrthographicProjection::default_3d()
            })
        } else {
            let near = 0.01 * self.distance;
            Projection::Perspective(PerspectiveProjection {
                fov: FIELD_OF_VIEW,
                near,
                far: 1000.0 * self.distance,
                ..default()
            })
        }
    }

    /// Where a place appears, as shares of the picture from its upper left corner; nothing behind the camera.
    pub fn project(&self, place: Vec3, aspect: f32) -> Option<Vec2> {
        let pose = self.transform();
        let local = pose.rotation.inverse() * (place - pose.translation);
        let half = match self.dimension {
            2 => self.height / 2.0,
            _ => -local.z * (FIELD_OF_VIEW / 2.0).tan(),
        };
        (half > 0.0).then(|| Vec2::new(0.5 + 0.5 * local.x / (half * aspect), 0.5 - 0.5 * local.y / half))
    }

    /// The ray through a place in the picture: from where, and the unit direction.
    pub fn ray(&self, at: Vec2, aspect: f32) -> (Vec3, Vec3) {
        let pose = self.transform();
        let plane = Vec2::new((at.x - 0.5) * 2.0 * aspect, (0.5 - at.y) * 2.0);
        if self.dimension == 2 {
            let offset = plane * self.height / 2.0;
            return (pose.translation + offset.extend(0.0), Vec3::NEG_Z);
        }
        let half = (FIELD_OF_VIEW / 2.0).tan();
        let local = Vec3::new(plane.x * half, plane.y * half, -1.0).normalize();
        (pose.translation, pose.rotation * local)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(dimension: usize) -> Scenery {
        let size = if dimension == 2 { [2.0, 1.0, 0.0] } else { [1.0, 0.7, 1.0] };
        Scenery { dimension, size, ..Scenery::default() }
    }

    #[test]
    fn framing_shows_the_whole_domain() {
        for (dimension, aspect) in [(2, 0.5), (2, 3.0), (3, 0.7), (3, 1.8)] {
            let stage = stage(dimension);
            let camera = OrbitCamera::framing(&stage, aspect);
            let size = Vec3::from(stage.size);
            for corner in 0..8 {
                let place =
                    Vec3::new((corner & 1) as f32, (corner >> 1 & 1) as f32, (corner >> 2) as f32) * size;
                let at = camera.project(place, aspect).expect("in front of the camera");
                assert!(
                    at.cmpgt(Vec2::splat(-0.02)).all() && at.cmplt(Vec2::splat(1.02)).all(),
                    "{at} {aspect}"
                );
            }
        }
    }

    #[test]
    fn a_ray_goes_through_the_place_it_was_asked_for() {
        for dimension in [2, 3] {
            let mut camera = OrbitCamera::framing(&stage(dimension), 1.3);
            camera.orbit(0.4, 0.2);
            camera.zoom(0.8, None);
            let place = Vec3::new(0.3, 0.6, if dimension == 2 { 0.0 } else { 0.2 });
            let at = camera.project(place, 1.3).expect("in front of the camera");
            let (from, along) = camera.ray(at, 1.3);
            let nearest = from + along * (place - from).dot(along);
            assert!(nearest.distance(place) < 1e-4, "{nearest} instead of {place}");
        }
    }

    #[test]
    fn zooming_in_2d_keeps_the_place_under_the_pointer() {
        let mut camera = OrbitCamera::framing(&stage(2), 1.5);
        let place = Vec3::new(0.4, 0.3, 0.0);
        let before = camera.project(place, 1.5);
        camera.zoom(0.5, Some(place));
        let after = camera.project(place, 1.5);
        assert!(before.zip(after).is_some_and(|(a, b)| a.distance(b) < 1e-5), "{before:?} {after:?}");
    }
}
