//! The textures of a pane: fields of the newest snapshot, and the picture itself.

use std::sync::Arc;

use bevy::asset::RenderAssetUsages;
use bevy::image::{ImageAddressMode, ImageFilterMode, ImageSampler, ImageSamplerDescriptor};
use bevy::prelude::*;
use bevy::render::render_resource::{Extent3d, TextureDimension, TextureFormat, TextureUsages};

use super::material::{Kind, Look, StageMaterial, TINTS};
use crate::snapshot::{Snapshot, SolidField};
use crate::viewer::theme;

/// The fields that materials look at.
pub struct Textures {
    distance: Handle<Image>,
    region: Handle<Image>,
    velocity: Handle<Image>,
    scalars: Handle<Image>,
    solids: Handle<Image>,
    roles: Handle<Image>,
    tints: Handle<Image>,
    smoke: Handle<Image>,
    has_roles: bool,
    has_smoke: bool,
    /// What `solids` holds: it stays for as long as nothing moves.
    solid_field: Option<Arc<SolidField>>,
}

impl Textures {
    /// Empty ones.
    pub fn new(images: &mut Assets<Image>) -> Self {
        let mut add =
            |bytes: usize, format: TextureFormat| images.add(volume([1; 3], vec![0; bytes], format));
        Textures {
            distance: add(2, TextureFormat::R16Float),
            region: add(2, TextureFormat::R16Uint),
            velocity: add(8, TextureFormat::Rgba16Float),
            scalars: add(4, TextureFormat::Rg16Float),
            solids: add(2, TextureFormat::R16Float),
            roles: add(1, TextureFormat::R8Uint),
            smoke: add(8, TextureFormat::Rgba16Float),
            tints: images.add(tints(&[])),
            has_roles: false,
            has_smoke: false,
            solid_field: None,
        }
    }

    /// Another stage comes, with other solids.
    pub fn forget_solids(&mut self) {
        self.solid_field = None;
    }

    /// Hands the snapshot's arrays to the renderer.
    pub fn fill(&mut self, snapshot: &Snapshot, images: &mut Assets<Image>) {
        let cells = &snapshot.cells;
        let mut put = |handle: &Handle<Image>, size: [usize; 3], data: Vec<u8>, format: TextureFormat| {
            let _ = images.insert(handle.id(), volume(size, data, format));
        };
        put(&self.distance, cells.cells, bytes(&cells.distance), TextureFormat::R16Float);
        put(&self.region, cells.cells, bytes(&cells.region), TextureFormat::R16Uint);
        if let Some(velocity) = &cells.velocity {
            put(&self.velocity, cells.cells, bytes(velocity), TextureFormat::Rgba16Float);
        }
        if let Some(scalars) = &cells.scalars {
            put(&self.scalars, cells.cells, bytes(scalars), TextureFormat::Rg16Float);
        }
        // Old ones must not be taken for those of this moment.
        if cells.roles.is_some() || self.has_roles {
            let nothing = || ([1; 3], vec![0]);
            let (size, roles) = cells.roles.clone().map_or_else(nothing, |roles| (cells.cells, roles));
            put(&self.roles, size, roles, TextureFormat::R8Uint);
            self.has_roles = cells.roles.is_some();
        }
        if let Some(smoke) = &cells.smoke {
            put(&self.smoke, cells.cells, bytes(&smoke.appearance), TextureFormat::Rgba16Float);
        } else if self.has_smoke {
            put(&self.smoke, [1; 3], vec![0; 8], TextureFormat::Rgba16Float);
        }
        self.has_smoke = cells.smoke.is_some();
        if !self.solid_field.as_ref().is_some_and(|old| Arc::ptr_eq(old, &snapshot.solids)) {
            let field = &snapshot.solids;
            put(&self.solids, field.corners, bytes(&field.distance), TextureFormat::R16Float);
            self.solid_field = Some(Arc::clone(field));
        }
        let colours = snapshot.report.bubbles.iter().map(|bubble| {
            theme::bubble_linear(bubble.id).extend(snapshot.is_trapped(bubble) as u8 as f32).to_array()
        });
        let _ = images.insert(self.tints.id(), tints(&colours.collect::<Vec<_>>()));
    }

    /// A material that looks at them.
    pub fn material(&self, kind: Kind, look: Look) -> StageMaterial {
        let Textures { distance, region, velocity, scalars, solids, roles, tints, smoke, .. } = self;
        StageMaterial {
            look,
            distance: distance.clone(),
            region: region.clone(),
            velocity: velocity.clone(),
            scalars: scalars.clone(),
            solids: solids.clone(),
            roles: roles.clone(),
            tints: tints.clone(),
            smoke: smoke.clone(),
            kind,
        }
    }
}

fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

/// The colours of all bubbles, in rows of [`TINTS`].
fn tints(colours: &[[f32; 4]]) -> Image {
    let rows = colours.len().div_ceil(TINTS).max(1);
    let mut data = bytes(colours);
    data.resize(rows * TINTS * size_of::<[f32; 4]>(), 0);
    let size = Extent3d { width: TINTS as u32, height: rows as u32, depth_or_array_layers: 1 };
    let format = TextureFormat::Rgba32Float;
    Image::new(size, TextureDimension::D2, data, format, RenderAssetUsages::RENDER_WORLD)
}

/// A texture that a camera draws into and panels show.
pub fn target(size: UVec2) -> Image {
    let mut image = Image::new_target_texture(size.x, size.y, TextureFormat::Rgba8UnormSrgb, None);
    image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    image
}

fn volume(size: [usize; 3], data: Vec<u8>, format: TextureFormat) -> Image {
    let [width, height, depth_or_array_layers] = size.map(|side| side as u32);
    let size = Extent3d { width, height, depth_or_array_layers };
    let mut image = Image::new(size, TextureDimension::D3, data, format, RenderAssetUsages::RENDER_WORLD);
    let is_number = matches!(format, TextureFormat::R8Uint | TextureFormat::R16Uint);
    let filter = if is_number { ImageFilterMode::Nearest } else { ImageFilterMode::Linear };
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
