//! One picture of one simulation: the drawables on its stage, kept up to date with the newest snapshot.

use std::sync::Arc;

use bevy::camera::RenderTarget;
use bevy::camera::visibility::{NoFrustumCulling, RenderLayers};
use bevy::core_pipeline::tonemapping::Tonemapping;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

use super::OrbitCamera;
use super::look::look_of;
use super::marks::Marks;
use super::material::{Kind, Look, MarkMaterial, Part, StageMaterial};
use super::tank;
use super::textures::{Textures, target};
use super::tiles::Tiles;
use crate::snapshot::{Scenery, Snapshot, TileView};
use crate::viewer::theme;

/// Axis that the cut plane is at right angles to; the shaders know it, too.
pub const CUT_AXIS: usize = 2;

/// What can be chosen about a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawOptions {
    /// Layers, a bit each.
    pub layers: u32,
    /// Place of the cut as a share of the domain, if it cuts.
    pub cut: Option<f32>,
    /// The slice that layers are drawn on, as a share of the domain.
    pub slice: f32,
    /// The selected bubble.
    pub selected: Option<u64>,
    /// Dark theme.
    pub dark: bool,
    /// Steps of a ray through the liquid.
    pub steps: u32,
}

/// Everything a pane may change.
#[derive(SystemParam)]
pub struct SceneAssets<'w, 's> {
    pub commands: Commands<'w, 's>,
    pub images: ResMut<'w, Assets<Image>>,
    pub meshes: ResMut<'w, Assets<Mesh>>,
    pub materials: ResMut<'w, Assets<StageMaterial>>,
    pub marks: ResMut<'w, Assets<MarkMaterial>>,
    pub cameras: Query<'w, 's, &'static mut Camera>,
}

/// One picture.
pub struct Pane {
    /// What it is drawn into.
    pub image: Handle<Image>,
    /// Pixels of that.
    pub size: UVec2,
    camera_entity: Entity,
    layer: usize,
    textures: Textures,
    stage: Option<Arc<Scenery>>,
    drawables: Vec<Drawable>,
    solids: Vec<(Entity, usize)>,
    marks: [(Entity, Handle<Mesh>, Handle<MarkMaterial>); 3],
    water: Option<(Entity, Handle<Mesh>)>,
    tiles: Option<(Entity, Handle<Mesh>)>,
    snapshot: Option<Arc<Snapshot>>,
    options: Option<DrawOptions>,
    camera: Option<OrbitCamera>,
    multisample: Msaa,
    steps: u32,
}

struct Drawable {
    entity: Entity,
    material: Handle<StageMaterial>,
    part: Part,
    colour: Vec4,
}

impl Pane {
    /// An empty pane with a camera of its own; `index` tells panes apart.
    pub fn new(assets: &mut SceneAssets, index: usize, multisample: Msaa, dark: bool) -> Self {
        let size = UVec2::new(64, 64);
        let image = assets.images.add(target(size));
        let layer = index + 1;
        let camera_entity = assets
            .commands
            .spawn((
                Camera3d::default(),
                Camera { order: -10 + index as isize, clear_color: clear_colour(dark), ..default() },
                RenderTarget::Image(image.clone().into()),
                RenderLayers::layer(layer),
                Tonemapping::None,
                multisample,
            ))
            .id();
        let textures = Textures::new(&mut assets.images);
        let marks = [(); 3].map(|()| {
            let mesh = assets.meshes.reserve_handle();
            let material = assets.marks.add(MarkMaterial { size: Vec4::ONE });
            let drawables = (Mesh3d(mesh.clone()), MeshMaterial3d(material.clone()), Visibility::Hidden);
            let entity =
                assets.commands.spawn((drawables, RenderLayers::layer(layer), NoFrustumCulling)).id();
            (entity, mesh, material)
        });
        Pane {
            image,
            size,
            camera_entity,
            layer,
            textures,
            stage: None,
            drawables: Vec::new(),
            solids: Vec::new(),
            marks,
            water: None,
            tiles: None,
            snapshot: None,
            options: None,
            camera: None,
            multisample,
            steps: 0,
        }
    }

    /// Takes everything off the world again.
    pub fn close(self, assets: &mut SceneAssets) {
        let marks = self.marks.iter().map(|mark| mark.0);
        let drawables = self.drawables.iter().map(|drawable| drawable.entity);
        for entity in marks.chain(drawables).chain([self.camera_entity]) {
            assets.commands.entity(entity).despawn();
        }
    }

    /// Makes the picture this large.
    pub fn resize(&mut self, size: UVec2, assets: &mut SceneAssets) {
        let size = size.clamp(UVec2::splat(8), UVec2::splat(8192));
        if size != self.size {
            self.size = size;
            // Replacing the asset keeps its handle, which the camera and the panels hold.
            let _ = assets.images.insert(self.image.id(), target(size));
            self.camera = None;
        }
    }

    /// Shows a simulation's liquid, and its tiles where they are wanted.
    pub fn show<'a>(
        &mut self,
        snapshot: &Arc<Snapshot>,
        tiles: impl Fn() -> Vec<&'a TileView>,
        options: &DrawOptions,
        camera: &OrbitCamera,
        assets: &mut SceneAssets,
    ) {
        self.steps = options.steps;
        let new_stage = !self.stage.as_ref().is_some_and(|stage| Arc::ptr_eq(stage, &snapshot.scenery));
        if new_stage {
            self.build(snapshot, assets);
        }
        let new_moment = new_stage || !self.snapshot.as_ref().is_some_and(|old| Arc::ptr_eq(old, snapshot));
        if new_moment {
            self.upload(snapshot, assets);
        }
        if new_moment || self.options != Some(*options) {
            let wanted = options.layers & (theme::TILES | theme::AFFINE) != 0;
            let tiles = if wanted { tiles() } else { Vec::new() };
            self.dress(snapshot, &tiles, options, assets);
            self.snapshot = Some(Arc::clone(snapshot));
            self.options = Some(*options);
        }
        if self.camera != Some(*camera) || new_stage {
            assets.commands.entity(self.camera_entity).insert((camera.transform(), camera.projection()));
            self.camera = Some(*camera);
        }
    }

    /// Builds what stands still.
    fn build(&mut self, snapshot: &Snapshot, assets: &mut SceneAssets) {
        let stage = &snapshot.scenery;
        for drawable in self.drawables.drain(..) {
            assets.commands.entity(drawable.entity).despawn();
        }
        self.solids.clear();
        self.water = None;
        self.textures.forget_solids();
        self.stage = Some(Arc::clone(stage));
        // A flat picture smooths its own edges.
        let multisample = if stage.dimension == 2 { Msaa::Off } else { self.multisample };
        assets.commands.entity(self.camera_entity).insert(multisample);
        self.tiles = Some(self.add_later(Part::Tiles, assets));
        if stage.dimension == 2 {
            self.add(Part::Flat, tank::mesh_of(&tank::page(stage)), Vec4::ONE, assets);
            return;
        }
        self.add(Part::Ground, tank::mesh_of(&tank::ground(stage)), Vec4::ONE, assets);
        self.water = Some(self.add_later(Part::Water, assets));
        self.add(Part::Cap, tank::mesh_of(&tank::cross_section(stage, CUT_AXIS)), Vec4::ONE, assets);
        self.add(Part::Slice, tank::mesh_of(&tank::cross_section(stage, CUT_AXIS)), Vec4::ONE, assets);
        if snapshot.cells.smoke.is_some() {
            // Rays stop at solids, unless some of them are glass: the field does not tell which.
            let stops = !stage.solids.iter().any(|solid| solid.glass);
            let colour = Vec4::new(stops as u8 as f32, 0.0, 0.0, 0.0);
            self.add(Part::Smoke, tank::mesh_of(&tank::whole(stage)), colour, assets);
        }
        let walls = tank::tank_walls(stage);
        if !walls.corners.is_empty() {
            self.add(Part::Glass, tank::mesh_of(&walls), Vec4::new(1.0, 1.0, 1.0, 0.045), assets);
        }
        for part in [Part::FarEdge, Part::NearEdge] {
            let colour = Vec4::new(0.24, 0.26, 0.29, 1.0);
            self.add(part, tank::mesh_of(&tank::tank_edges(stage)), colour, assets);
        }
        for (index, solid) in stage.solids.iter().enumerate() {
            if solid.surface.corners.is_empty() {
                continue;
            }
            let parts: &[(Part, Vec4)] = match solid.glass {
                true => &[(Part::Glass, Vec4::new(1.0, 1.0, 1.0, 0.16)), (Part::Rim, Vec4::ONE)],
                false => &[(Part::Solid, theme::solid_colour(index))],
            };
            let mesh = assets.meshes.add(tank::mesh_of(&solid.surface));
            for &(part, colour) in parts {
                let entity = self.add_mesh(part, mesh.clone(), colour, assets);
                self.solids.push((entity, index));
            }
        }
    }

    fn add(&mut self, part: Part, mesh: Mesh, colour: Vec4, assets: &mut SceneAssets) -> Entity {
        let mesh = assets.meshes.add(mesh);
        self.add_mesh(part, mesh, colour, assets)
    }

    /// A drawable whose mesh comes with the snapshots.
    fn add_later(&mut self, part: Part, assets: &mut SceneAssets) -> (Entity, Handle<Mesh>) {
        let mesh = assets.meshes.reserve_handle();
        (self.add_mesh(part, mesh.clone(), Vec4::ONE, assets), mesh)
    }

    fn add_mesh(&mut self, part: Part, mesh: Handle<Mesh>, colour: Vec4, assets: &mut SceneAssets) -> Entity {
        let kind = Kind { part, steps: self.steps, smoky: false };
        let material = assets.materials.add(self.textures.material(kind, Look { colour, ..default() }));
        let look = (Mesh3d(mesh), MeshMaterial3d(material.clone()), RenderLayers::layer(self.layer));
        let entity = assets.commands.spawn((look, NoFrustumCulling, Transform::IDENTITY)).id();
        self.drawables.push(Drawable { entity, material, part, colour });
        entity
    }

    /// Hands the snapshot's arrays to the renderer.
    fn upload(&mut self, snapshot: &Snapshot, assets: &mut SceneAssets) {
        self.textures.fill(snapshot, &mut assets.images);
        if let Some((entity, mesh)) = &self.water {
            let wet = !snapshot.surface.corners.is_empty();
            if wet {
                let _ = assets.meshes.insert(mesh.id(), tank::mesh_of(&snapshot.surface));
            }
            show_if(assets, *entity, wet);
        }
        for (entity, index) in &self.solids {
            let pose = &snapshot.poses[*index];
            let rotation = Quat::from_mat3(&Mat3::from_cols_array_2d(&pose.rotation));
            let place = Transform { translation: pose.translation.into(), rotation, scale: Vec3::ONE };
            assets.commands.entity(*entity).insert(place);
            show_if(assets, *entity, pose.present);
        }
    }

    /// Applies the options to everything on the stage.
    fn dress(
        &mut self,
        snapshot: &Snapshot,
        tiles: &[&TileView],
        options: &DrawOptions,
        assets: &mut SceneAssets,
    ) {
        let look = look_of(snapshot, options);
        let size = Vec3::from(snapshot.scenery.size);
        let smoky = options.layers & theme::SMOKE != 0 && snapshot.cells.smoke.is_some();
        for drawable in &self.drawables {
            let kind = Kind { part: drawable.part, steps: self.steps, smoky };
            let own = self.textures.material(kind, Look { colour: drawable.colour, ..look });
            let _ = assets.materials.insert(drawable.material.id(), own);
            let (shown, at) = match drawable.part {
                Part::Cap => (options.cut.is_some(), options.cut.unwrap_or(0.0)),
                Part::Smoke => (smoky, 0.0),
                Part::Slice => (options.layers & theme::SLICE_LAYERS != 0, options.slice),
                _ => continue,
            };
            let mut place = Vec3::ZERO;
            place[CUT_AXIS] = at * size[CUT_AXIS];
            assets.commands.entity(drawable.entity).insert(Transform::from_translation(place));
            show_if(assets, drawable.entity, shown);
        }
        // Right between two layers of cells, the one behind is shown, whatever the rounding; the shader does the same.
        let slice = options.slice * size[CUT_AXIS] - 0.01 * snapshot.scenery.dx;
        if let Some((entity, mesh)) = &self.tiles {
            let on = options.layers & theme::TILES != 0;
            let boxes = if on { Tiles::of(&snapshot.scenery, tiles, slice) } else { Tiles::default() };
            show_if(assets, *entity, !boxes.is_empty());
            if !boxes.is_empty() {
                let _ = assets.meshes.insert(mesh.id(), boxes.into_mesh());
            }
        }
        let cut = options.cut.map(|cut| cut * size[CUT_AXIS]);
        let particles = || Marks::particles(snapshot, cut);
        let arrows = || Marks::arrows(snapshot, slice);
        let pins = || Marks::pins(snapshot, tiles, slice);
        let kinds: [(u32, &dyn Fn() -> Marks, f32); 3] =
            [(theme::PARTICLES, &particles, 0.0), (theme::ARROWS, &arrows, 0.0), (theme::AFFINE, &pins, 1.0)];
        for ((entity, mesh, material), (layer, marks, ink)) in self.marks.iter().zip(kinds) {
            let marks = if options.layers & layer != 0 { marks() } else { Marks::default() };
            show_if(assets, *entity, !marks.is_empty());
            if !marks.is_empty() {
                let _ = assets.meshes.insert(mesh.id(), marks.into_mesh());
                let size = Vec4::new(0.28 * snapshot.scenery.dx, 0.9, ink, 0.0);
                let _ = assets.marks.insert(material.id(), MarkMaterial { size });
            }
        }
        // Changed in place: a camera that is put in anew has no size until its picture gets another one.
        if self.options.is_some_and(|old| old.dark != options.dark)
            && let Ok(mut camera) = assets.cameras.get_mut(self.camera_entity)
        {
            camera.clear_color = clear_colour(options.dark);
        }
    }
}

fn clear_colour(dark: bool) -> ClearColorConfig {
    ClearColorConfig::Custom(theme::backdrop(dark))
}

fn show_if(assets: &mut SceneAssets, entity: Entity, shown: bool) {
    let visibility = if shown { Visibility::Inherited } else { Visibility::Hidden };
    assets.commands.entity(entity).insert(visibility);
}
