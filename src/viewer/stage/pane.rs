//! One picture of one simulation: the things on its stage, kept up to date with the newest snapshot.

use std::sync::Arc;

use bevy::asset::RenderAssetUsages;
use bevy::camera::RenderTarget;
use bevy::camera::visibility::{NoFrustumCulling, RenderLayers};
use bevy::core_pipeline::tonemapping::Tonemapping;
use bevy::ecs::system::SystemParam;
use bevy::image::{ImageAddressMode, ImageFilterMode, ImageSampler, ImageSamplerDescriptor};
use bevy::prelude::*;
use bevy::render::render_resource::{Extent3d, TextureDimension, TextureFormat, TextureUsages};

use super::Eye;
use super::marks::Marks;
use super::material::{Look, MarkMaterial, Part, StageMaterial};
use super::tank;
use crate::runner::{Snapshot, SolidField, Stage};
use crate::viewer::theme;

/// Axis that the cut plane is at right angles to.
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
    stage: Option<Arc<Stage>>,
    things: Vec<Thing>,
    solids: Vec<(Entity, usize)>,
    marks: [(Entity, Handle<Mesh>, Handle<MarkMaterial>); 2],
    water: Option<(Entity, Handle<Mesh>)>,
    snapshot: Option<Arc<Snapshot>>,
    choices: Option<Choices>,
    solid_field: Option<Arc<SolidField>>,
    eye: Option<Eye>,
    multisample: Msaa,
}

struct Textures {
    distance: Handle<Image>,
    region: Handle<Image>,
    velocity: Handle<Image>,
    scalars: Handle<Image>,
    solids: Handle<Image>,
}

struct Thing {
    entity: Entity,
    material: Handle<StageMaterial>,
    part: Part,
    colour: Vec4,
}

impl Pane {
    /// An empty pane with a camera of its own; `index` tells panes apart.
    pub fn new(workshop: &mut Workshop, index: usize, multisample: Msaa) -> Self {
        let size = UVec2::new(64, 64);
        let image = workshop.images.add(target(size));
        let layer = index + 1;
        let camera = workshop
            .commands
            .spawn((
                Camera3d::default(),
                Camera { order: -10 + index as isize, ..default() },
                RenderTarget::Image(image.clone().into()),
                RenderLayers::layer(layer),
                Tonemapping::None,
                multisample,
            ))
            .id();
        let textures = Textures {
            distance: workshop.images.add(volume([1; 3], vec![0; 2], TextureFormat::R16Float)),
            region: workshop.images.add(volume([1; 3], vec![0; 1], TextureFormat::R8Uint)),
            velocity: workshop.images.add(volume([1; 3], vec![0; 8], TextureFormat::Rgba16Float)),
            scalars: workshop.images.add(volume([1; 3], vec![0; 4], TextureFormat::Rg16Float)),
            solids: workshop.images.add(volume([1; 3], vec![0; 2], TextureFormat::R16Float)),
        };
        let marks = [0, 1].map(|_| {
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
            snapshot: None,
            choices: None,
            solid_field: None,
            eye: None,
            multisample,
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

    /// Shows a snapshot.
    pub fn show(&mut self, snapshot: &Arc<Snapshot>, choices: &Choices, eye: &Eye, workshop: &mut Workshop) {
        let new_stage = !self.stage.as_ref().is_some_and(|stage| Arc::ptr_eq(stage, &snapshot.stage));
        if new_stage {
            self.build(&snapshot.stage, workshop);
        }
        let new_moment = new_stage || !self.snapshot.as_ref().is_some_and(|old| Arc::ptr_eq(old, snapshot));
        if new_moment {
            self.upload(snapshot, workshop);
        }
        if new_moment || self.choices != Some(*choices) {
            self.dress(snapshot, choices, workshop);
            self.snapshot = Some(Arc::clone(snapshot));
            self.choices = Some(*choices);
        }
        if self.eye != Some(*eye) || new_stage {
            workshop.commands.entity(self.camera).insert((eye.transform(), eye.projection()));
            self.eye = Some(*eye);
        }
    }

    /// Builds what stands still.
    fn build(&mut self, stage: &Arc<Stage>, workshop: &mut Workshop) {
        for thing in self.things.drain(..) {
            workshop.commands.entity(thing.entity).despawn();
        }
        self.solids.clear();
        self.water = None;
        self.solid_field = None;
        self.stage = Some(Arc::clone(stage));
        // A flat picture smooths its own edges.
        let multisample = if stage.dimension == 2 { Msaa::Off } else { self.multisample };
        workshop.commands.entity(self.camera).insert(multisample);
        if stage.dimension == 2 {
            self.add(Part::Flat, tank::mesh_of(&tank::page(stage)), Vec4::ONE, workshop);
            return;
        }
        self.add(Part::Ground, tank::mesh_of(&tank::ground(stage)), Vec4::ONE, workshop);
        let water = workshop.meshes.reserve_handle();
        let entity = self.add_mesh(Part::Water, water.clone(), Vec4::ONE, workshop);
        self.water = Some((entity, water));
        self.add(Part::Cap, tank::mesh_of(&tank::cross_section(stage, CUT_AXIS)), Vec4::ONE, workshop);
        self.add(Part::Slice, tank::mesh_of(&tank::cross_section(stage, CUT_AXIS)), Vec4::ONE, workshop);
        let walls = tank::tank_walls(stage);
        if !walls.corners.is_empty() {
            self.add(Part::Glass, tank::mesh_of(&walls), Vec4::new(1.0, 1.0, 1.0, 0.045), workshop);
        }
        self.add(
            Part::Solid,
            tank::mesh_of(&tank::tank_edges(stage)),
            Vec4::new(0.24, 0.26, 0.29, 1.0),
            workshop,
        );
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

    fn add_mesh(&mut self, part: Part, mesh: Handle<Mesh>, colour: Vec4, workshop: &mut Workshop) -> Entity {
        let material = workshop.materials.add(self.material(part, Look { colour, ..default() }));
        let look = (Mesh3d(mesh), MeshMaterial3d(material.clone()), RenderLayers::layer(self.layer));
        let entity = workshop.commands.spawn((look, NoFrustumCulling, Transform::IDENTITY)).id();
        self.things.push(Thing { entity, material, part, colour });
        entity
    }

    fn material(&self, part: Part, look: Look) -> StageMaterial {
        let Textures { distance, region, velocity, scalars, solids } = &self.textures;
        StageMaterial {
            look,
            distance: distance.clone(),
            region: region.clone(),
            velocity: velocity.clone(),
            scalars: scalars.clone(),
            solids: solids.clone(),
            part,
        }
    }

    /// Hands the snapshot's arrays to the renderer.
    fn upload(&mut self, snapshot: &Snapshot, workshop: &mut Workshop) {
        let cells = &snapshot.cells;
        let mut put = |handle: &Handle<Image>, size: [usize; 3], data: Vec<u8>, format: TextureFormat| {
            let _ = workshop.images.insert(handle.id(), volume(size, data, format));
        };
        let textures = &self.textures;
        put(&textures.distance, cells.cells, bytes(&cells.distance), TextureFormat::R16Float);
        put(&textures.region, cells.cells, cells.region.clone(), TextureFormat::R8Uint);
        if let Some(velocity) = &cells.velocity {
            put(&textures.velocity, cells.cells, bytes(velocity), TextureFormat::Rgba16Float);
        }
        if let Some(scalars) = &cells.scalars {
            put(&textures.scalars, cells.cells, bytes(scalars), TextureFormat::Rg16Float);
        }
        if !self.solid_field.as_ref().is_some_and(|old| Arc::ptr_eq(old, &snapshot.solids)) {
            let field = &snapshot.solids;
            put(&textures.solids, field.corners, bytes(&field.distance), TextureFormat::R16Float);
            self.solid_field = Some(Arc::clone(field));
        }
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
    fn dress(&mut self, snapshot: &Snapshot, choices: &Choices, workshop: &mut Workshop) {
        let look = look_of(snapshot, choices);
        let size = Vec3::from(snapshot.stage.size);
        for thing in &self.things {
            let own = self.material(thing.part, Look { colour: thing.colour, ..look });
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
        let arrows = || Marks::arrows(snapshot, choices.slice * size[CUT_AXIS]);
        let kinds: [(u32, &dyn Fn() -> Marks); 2] =
            [(theme::PARTICLES, &|| Marks::particles(snapshot)), (theme::ARROWS, &arrows)];
        for ((entity, mesh, material), (layer, marks)) in self.marks.iter().zip(kinds) {
            let marks = if choices.layers & layer != 0 { marks() } else { Marks::default() };
            show_if(workshop, *entity, !marks.is_empty());
            if !marks.is_empty() {
                let _ = workshop.meshes.insert(mesh.id(), marks.into_mesh());
                let size = Vec4::new(0.28 * snapshot.stage.dx, 0.9, 0.0, 0.0);
                let _ = workshop.marks.insert(material.id(), MarkMaterial { size });
            }
        }
        let page = theme::backdrop(choices.dark);
        let camera = Camera {
            order: -10 + self.layer as isize - 1,
            clear_color: ClearColorConfig::Custom(page),
            ..default()
        };
        if self.choices.is_none_or(|old| old.dark != choices.dark) {
            workshop.commands.entity(self.camera).insert(camera);
        }
    }
}

fn show_if(workshop: &mut Workshop, entity: Entity, shown: bool) {
    let visibility = if shown { Visibility::Inherited } else { Visibility::Hidden };
    workshop.commands.entity(entity).insert(visibility);
}

fn look_of(snapshot: &Snapshot, choices: &Choices) -> Look {
    let stage = &snapshot.stage;
    let three = |values: [usize; 3], fourth: f32| {
        Vec4::new(values[0] as f32, values[1] as f32, values[2] as f32, fourth)
    };
    let size = Vec3::from(stage.size);
    let cut = choices.cut.unwrap_or(1.0) * size[CUT_AXIS];
    let open = stage.open.iter().take(2).flatten().enumerate();
    let open = open.map(|(bit, &open)| (open as u32) << bit).sum();
    let selected = choices.selected.and_then(|id| snapshot.region_of(id)).unwrap_or(0);
    let [pressure, divergence] = theme::scales(stage, &snapshot.params);
    let mut look = Look {
        size: size.extend(stage.dx),
        cells: three(snapshot.cells.cells, stage.dimension as f32),
        corners: three(snapshot.solids.corners, choices.steps as f32),
        cut: Vec4::new(CUT_AXIS as f32, cut, choices.cut.is_some() as u8 as f32, stage.speed),
        // The shader counts pressure in hundreds of pascals.
        scales: Vec4::new(
            pressure / 100.0,
            divergence,
            snapshot.report.time as f32,
            choices.dark as u8 as f32,
        ),
        layers: UVec4::new(choices.layers, selected as u32, snapshot.report.bubbles.len() as u32, open),
        ..Look::default()
    };
    for (tint, bubble) in look.tints.iter_mut().zip(&snapshot.report.bubbles) {
        *tint = theme::bubble_linear(bubble.id).extend(snapshot.is_trapped(bubble) as u8 as f32);
    }
    look
}

fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

/// A texture that a camera draws into and panels show.
fn target(size: UVec2) -> Image {
    let mut image = Image::new_target_texture(size.x, size.y, TextureFormat::Rgba8UnormSrgb, None);
    image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    image
}

fn volume(size: [usize; 3], data: Vec<u8>, format: TextureFormat) -> Image {
    let [width, height, depth_or_array_layers] = size.map(|side| side as u32);
    let size = Extent3d { width, height, depth_or_array_layers };
    let mut image = Image::new(size, TextureDimension::D3, data, format, RenderAssetUsages::RENDER_WORLD);
    let filter =
        if format == TextureFormat::R8Uint { ImageFilterMode::Nearest } else { ImageFilterMode::Linear };
    image.sampler = ImageSampler::Descriptor(ImageSamplerDescriptor {
        mag_filter: filter,
        min_filter: filter,
        address_mode_u: ImageAddressMode::ClampToEdge,
        address_mode_v: ImageAddressMode::ClampToEdge,
        address_mode_w: ImageAddressMode::ClampToEdge,
        ..default()
    });
    image
}
