//! One picture of one simulation: the things on its stage, kept up to date with the newest snapshot.

use std::sync::Arc;

use bevy::camera::RenderTarget;
use bevy::camera::visibility::{NoFrustumCulling, RenderLayers};
use bevy::core_pipeline::tonemapping::Tonemapping;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

use super::Eye;
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
pub struct Choices {
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
pub struct Workshop<'w, 's> {
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
    camera: Entity,
    layer: usize,
    textures: Textures,
    stage: Option<Arc<Scenery>>,
    things: Vec<Thing>,
    solids: Vec<(Entity, usize)>,
    marks: [(Entity, Handle<Mesh>, Handle<MarkMaterial>); 3],
    water: Option<(Entity, Handle<Mesh>)>,
    tiles: Option<(Entity, Handle<Mesh>)>,
    snapshot: Option<Arc<Snapshot>>,
    choices: Option<Choices>,
    eye: Option<Eye>,
    multisample: Msaa,
    steps: u32,
}

struct Thing {
    entity: Entity,
    material: Handle<StageMaterial>,
    part: Part,
    colour: Vec4,
}

impl Pane {
    /// An empty pane with a camera of its own; `index` tells panes apart.
    pub fn new(workshop: &mut Workshop, index: usize, multisample: Msaa, dark: bool) -> Self {
        let size = UVec2::new(64, 64);
        let image = workshop.images.add(target(size));
        let layer = index + 1;
        let camera = workshop
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
        let textures = Textures::new(&mut workshop.images);
        let marks = [(); 3].map(|()| {
            let mesh = workshop.meshes.reserve_handle();
            let material = workshop.marks.add(MarkMaterial { size: Vec4::ONE });
            let things = (Mesh3d(mesh.clone()), MeshMaterial3d(material.clone()), Visibility::Hidden);
            let entity = workshop.commands.spawn((things, RenderLayers::layer(layer), NoFrustumCulling)).id();
            (entity, mesh, material)
        });
        Pane {
            image,
            size,
            camera,
            layer,
            textures,
            stage: None,
            things: Vec::new(),
            solids: Vec::new(),
            marks,
            water: None,
            tiles: None,
            snapshot: None,
            choices: None,
            eye: None,
            multisample,
            steps: 0,
        }
    }

    /// Takes everything off the world again.
    pub fn close(self, workshop: &mut Workshop) {
        let marks = self.marks.iter().map(|mark| mark.0);
        let things = self.things.iter().map(|thing| thing.entity);
        for entity in marks.chain(things).chain([self.camera]) {
            workshop.commands.entity(entity).despawn();
        }
    }

    /// Makes the picture this large.
    pub fn resize(&mut self, size: UVec2, workshop: &mut Workshop) {
        let size = size.clamp(UVec2::splat(8), UVec2::splat(8192));
        if size != self.size {
            self.size = size;
            // Replacing the asset keeps its handle, which the camera and the panels hold.
            let _ = workshop.images.insert(self.image.id(), target(size));
            self.eye = None;
        }
    }

    /// Shows a simulation's liquid, and its tiles where they are wanted.
    pub fn show<'a>(
        &mut self,
        snapshot: &Arc<Snapshot>,
        tiles: impl Fn() -> Vec<&'a TileView>,
        choices: &Choices,
        eye: &Eye,
        workshop: &mut Workshop,
    ) {
        self.steps = choices.steps;
        let new_stage = !self.stage.as_ref().is_some_and(|stage| Arc::ptr_eq(stage, &snapshot.scenery));
        if new_stage {
            self.build(&snapshot.scenery, workshop);
        }
        let new_moment = new_stage || !self.snapshot.as_ref().is_some_and(|old| Arc::ptr_eq(old, snapshot));
        if new_moment {
            self.upload(snapshot, workshop);
        }
        if new_moment || self.choices != Some(*choices) {
            let wanted = choices.layers & (theme::TILES | theme::AFFINE) != 0;
            let tiles = if wanted { tiles() } else { Vec::new() };
            self.dress(snapshot, &tiles, choices, workshop);
            self.snapshot = Some(Arc::clone(snapshot));
            self.choices = Some(*choices);
        }
        if self.eye != Some(*eye) || new_stage {
            workshop.commands.entity(self.camera).insert((eye.transform(), eye.projection()));
            self.eye = Some(*eye);
        }
    }

    /// Builds what stands still.
    fn build(&mut self, stage: &Arc<Scenery>, workshop: &mut Workshop) {
        for thing in self.things.drain(..) {
            workshop.commands.entity(thing.entity).despawn();
        }
        self.solids.clear();
        self.water = None;
        self.textures.forget_solids();
        self.stage = Some(Arc::clone(stage));
        // A flat picture smooths its own edges.
        let multisample = if stage.dimension == 2 { Msaa::Off } else { self.multisample };
        workshop.commands.entity(self.camera).insert(multisample);
        self.tiles = Some(self.add_later(Part::Tiles, workshop));
        if stage.dimension == 2 {
            self.add(Part::Flat, tank::mesh_of(&tank::page(stage)), Vec4::ONE, workshop);
            return;
        }
        self.add(Part::Ground, tank::mesh_of(&tank::ground(stage)), Vec4::ONE, workshop);
        self.water = Some(self.add_later(Part::Water, workshop));
        self.add(Part::Cap, tank::mesh_of(&tank::cross_section(stage, CUT_AXIS)), Vec4::ONE, workshop);
        self.add(Part::Slice, tank::mesh_of(&tank::cross_section(stage, CUT_AXIS)), Vec4::ONE, workshop);
        let walls = tank::tank_walls(stage);
        if !walls.corners.is_empty() {
            self.add(Part::Glass, tank::mesh_of(&walls), Vec4::new(1.0, 1.0, 1.0, 0.045), workshop);
        }
        for part in [Part::FarEdge, Part::NearEdge] {
            let colour = Vec4::new(0.24, 0.26, 0.29, 1.0);
            self.add(part, tank::mesh_of(&tank::tank_edges(stage)), colour, workshop);
        }
        for (index, solid) in stage.solids.iter().enumerate() {
            if solid.surface.corners.is_empty() {
                continue;
            }
            let mesh = tank::mesh_of(&solid.surface);
            let (part, colour) = match solid.glass {
                true => (Part::Glass, Vec4::new(1.0, 1.0, 1.0, 0.16)),
                false => (Part::Solid, theme::solid_colour(index)),
            };
            let entity = self.add(part, mesh, colour, workshop);
            self.solids.push((entity, index));
        }
    }

    fn add(&mut self, part: Part, mesh: Mesh, colour: Vec4, workshop: &mut Workshop) -> Entity {
        let mesh = workshop.meshes.add(mesh);
        self.add_mesh(part, mesh, colour, workshop)
    }

    /// A thing whose mesh comes with the snapshots.
    fn add_later(&mut self, part: Part, workshop: &mut Workshop) -> (Entity, Handle<Mesh>) {
        let mesh = workshop.meshes.reserve_handle();
        (self.add_mesh(part, mesh.clone(), Vec4::ONE, workshop), mesh)
    }

    fn add_mesh(&mut self, part: Part, mesh: Handle<Mesh>, colour: Vec4, workshop: &mut Workshop) -> Entity {
        let kind = Kind { part, steps: self.steps };
        let material = workshop.materials.add(self.textures.material(kind, Look { colour, ..default() }));
        let look = (Mesh3d(mesh), MeshMaterial3d(material.clone()), RenderLayers::layer(self.layer));
        let entity = workshop.commands.spawn((look, NoFrustumCulling, Transform::IDENTITY)).id();
        self.things.push(Thing { entity, material, part, colour });
        entity
    }

    /// Hands the snapshot's arrays to the renderer.
    fn upload(&mut self, snapshot: &Snapshot, workshop: &mut Workshop) {
        self.textures.fill(snapshot, &mut workshop.images);
        if let Some((entity, mesh)) = &self.water {
            let wet = !snapshot.surface.corners.is_empty();
            if wet {
                let _ = workshop.meshes.insert(mesh.id(), tank::mesh_of(&snapshot.surface));
            }
            show_if(workshop, *entity, wet);
        }
        for (entity, index) in &self.solids {
            let pose = &snapshot.poses[*index];
            let rotation = Quat::from_mat3(&Mat3::from_cols_array_2d(&pose.rotation));
            let place = Transform { translation: pose.translation.into(), rotation, scale: Vec3::ONE };
            workshop.commands.entity(*entity).insert(place);
            show_if(workshop, *entity, pose.present);
        }
    }

    /// Applies the choices to everything on the stage.
    fn dress(
        &mut self,
        snapshot: &Snapshot,
        tiles: &[&TileView],
        choices: &Choices,
        workshop: &mut Workshop,
    ) {
        let look = look_of(snapshot, choices);
        let size = Vec3::from(snapshot.scenery.size);
        for thing in &self.things {
            let kind = Kind { part: thing.part, steps: self.steps };
            let own = self.textures.material(kind, Look { colour: thing.colour, ..look });
            let _ = workshop.materials.insert(thing.material.id(), own);
            let (shown, at) = match thing.part {
                Part::Cap => (choices.cut.is_some(), choices.cut.unwrap_or(0.0)),
                Part::Slice => (choices.layers & theme::SLICE_LAYERS != 0, choices.slice),
                _ => continue,
            };
            let mut place = Vec3::ZERO;
            place[CUT_AXIS] = at * size[CUT_AXIS];
            workshop.commands.entity(thing.entity).insert(Transform::from_translation(place));
            show_if(workshop, thing.entity, shown);
        }
        // Right between two layers of cells, the one behind is shown, whatever the rounding; the shader does the same.
        let slice = choices.slice * size[CUT_AXIS] - 0.01 * snapshot.scenery.dx;
        if let Some((entity, mesh)) = &self.tiles {
            let on = choices.layers & theme::TILES != 0;
            let boxes = if on { Tiles::of(&snapshot.scenery, tiles, slice) } else { Tiles::default() };
            show_if(workshop, *entity, !boxes.is_empty());
            if !boxes.is_empty() {
                let _ = workshop.meshes.insert(mesh.id(), boxes.into_mesh());
            }
        }
        let cut = choices.cut.map(|cut| cut * size[CUT_AXIS]);
        let particles = || Marks::particles(snapshot, cut);
        let arrows = || Marks::arrows(snapshot, slice);
        let pins = || Marks::pins(snapshot, tiles, slice);
        let kinds: [(u32, &dyn Fn() -> Marks, f32); 3] =
            [(theme::PARTICLES, &particles, 0.0), (theme::ARROWS, &arrows, 0.0), (theme::AFFINE, &pins, 1.0)];
        for ((entity, mesh, material), (layer, marks, ink)) in self.marks.iter().zip(kinds) {
            let marks = if choices.layers & layer != 0 { marks() } else { Marks::default() };
            show_if(workshop, *entity, !marks.is_empty());
            if !marks.is_empty() {
                let _ = workshop.meshes.insert(mesh.id(), marks.into_mesh());
                let size = Vec4::new(0.28 * snapshot.scenery.dx, 0.9, ink, 0.0);
                let _ = workshop.marks.insert(material.id(), MarkMaterial { size });
            }
        }
        // Changed in place: a camera that is put in anew has no size until its picture gets another one.
        if self.choices.is_some_and(|old| old.dark != choices.dark)
            && let Ok(mut camera) = workshop.cameras.get_mut(self.camera)
        {
            camera.clear_color = clear_colour(choices.dark);
        }
    }
}

fn clear_colour(dark: bool) -> ClearColorConfig {
    ClearColorConfig::Custom(theme::backdrop(dark))
}

fn show_if(workshop: &mut Workshop, entity: Entity, shown: bool) {
    let visibility = if shown { Visibility::Inherited } else { Visibility::Hidden };
    workshop.commands.entity(entity).insert(visibility);
}
