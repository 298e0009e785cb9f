//! The materials of the stage: one type for everything that looks at the fields, one for particles and arrows.

use bevy::mesh::MeshVertexBufferLayoutRef;
use bevy::pbr::{MaterialPipeline, MaterialPipelineKey};
use bevy::prelude::*;
use bevy::render::render_resource::{
    AsBindGroup, CompareFunction, Face, RenderPipelineDescriptor, ShaderType, SpecializedMeshPipelineError,
};
use bevy::shader::{ShaderDefVal, ShaderRef, load_shader_library};

/// What a drawable on the stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The whole picture of a 2D scene.
    Flat,
    /// Layers on a slice through a 3D scene.
    Slice,
    /// The liquid's surface.
    Water,
    /// Where the cut plane opens the liquid.
    Cap,
    /// The floor around the tank.
    Ground,
    /// Opaque bodies.
    Solid,
    /// Containers and tank walls.
    Glass,
    /// Outlines of glass bodies: opaque, so that they are seen through the liquid around them.
    Rim,
    /// Tiles of the liquid.
    Tiles,
    /// Smoke in the tank: its far sides, from which rays are followed back to the eye.
    Smoke,
    /// Edges of the tank behind the liquid.
    FarEdge,
    /// Edges of the tank in front of the liquid: drawn after it, or it would bend them like those behind.
    NearEdge,
}

impl Part {
    fn definition(self) -> &'static str {
        match self {
            Part::Flat => "FLAT",
            Part::Slice => "SLICE",
            Part::Water => "WATER",
            Part::Cap => "CAP",
            Part::Ground => "GROUND",
            Part::Solid => "SOLID",
            Part::Glass => "GLASS",
            Part::Rim => "RIM",
            Part::Tiles => "TILES",
            Part::Smoke => "SMOKE",
            Part::FarEdge => "FAR_EDGE",
            Part::NearEdge => "NEAR_EDGE",
        }
    }
}

/// What pipelines differ by.
///
/// The steps are part of the program, not one of its numbers: software Vulkan takes a number that bounds a loop for a
/// reason to compile the program anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// What it draws.
    pub part: Part,
    /// Steps that a ray may take through the liquid.
    pub steps: u32,
    /// Whether there is smoke to be seen: without it, nothing asks for any.
    pub smoky: bool,
}

/// Farther from the eye than anything else, metres.
const BEHIND_ALL: f32 = -1e9;

/// Bubbles in a row of the texture of their colours.
pub const TINTS: usize = 256;

/// The numbers that the shaders see; `stage.wgsl` explains them.
#[derive(Clone, Copy, Debug, PartialEq, ShaderType)]
pub struct Look {
    /// Size of the domain, and the cell width, metres.
    pub size: Vec4,
    /// Cells along each axis, and the dimension.
    pub cells: Vec4,
    /// Corners of the solids' field.
    pub corners: Vec4,
    /// Place of the cut, and the fast speed last.
    pub cut: Vec4,
    /// Scales of pressure and divergence, time, dark theme.
    pub scales: Vec4,
    /// Layers, selected region, bubbles, open sides.
    pub layers: UVec4,
    /// A solid's own colour.
    pub colour: Vec4,
}

impl Default for Look {
    fn default() -> Self {
        Look {
            size: Vec4::ONE,
            cells: Vec4::ONE,
            corners: Vec4::ONE,
            cut: Vec4::ONE,
            scales: Vec4::ONE,
            layers: UVec4::ZERO,
            colour: Vec4::ONE,
        }
    }
}

/// A drawable that looks at the fields of a snapshot.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
#[bind_group_data(Kind)]
pub struct StageMaterial {
    /// Numbers.
    #[uniform(0)]
    pub look: Look,
    /// The liquid's signed distance.
    #[texture(1, dimension = "3d")]
    #[sampler(2)]
    pub distance: Handle<Image>,
    /// Regions.
    #[texture(3, dimension = "3d", sample_type = "u_int")]
    pub region: Handle<Image>,
    /// Velocity.
    #[texture(4, dimension = "3d")]
    pub velocity: Handle<Image>,
    /// Pressure and divergence.
    #[texture(5, dimension = "3d")]
    pub scalars: Handle<Image>,
    /// The solids' signed distance.
    #[texture(6, dimension = "3d")]
    pub solids: Handle<Image>,
    /// What cells are where there are tiles.
    #[texture(7, dimension = "3d", sample_type = "u_int")]
    pub roles: Handle<Image>,
    /// Colours of the bubbles, row after row; the fourth number is 0 for air that should not be tinted.
    #[texture(8, filterable = false)]
    pub tints: Handle<Image>,
    /// Smoke and the light in it.
    #[texture(9, dimension = "3d")]
    pub smoke: Handle<Image>,
    /// Which pipeline draws it.
    pub kind: Kind,
}

impl From<&StageMaterial> for Kind {
    fn from(material: &StageMaterial) -> Self {
        material.kind
    }
}

impl Material for StageMaterial {
    fn fragment_shader() -> ShaderRef {
        "embedded://glug/viewer/stage/shaders/part.wgsl".into()
    }

    fn alpha_mode(&self) -> AlphaMode {
        match self.kind.part {
            Part::Slice | Part::Glass | Part::Tiles | Part::Smoke | Part::NearEdge => AlphaMode::Blend,
            _ => AlphaMode::Opaque,
        }
    }

    fn depth_bias(&self) -> f32 {
        // Of all that is drawn over other things smoke comes first, wherever it is seen from.
        if self.kind.part == Part::Smoke { BEHIND_ALL } else { 0.0 }
    }

    fn reads_view_transmission_texture(&self) -> bool {
        matches!(self.kind.part, Part::Water | Part::Cap)
    }

    fn enable_prepass() -> bool {
        false
    }

    fn enable_shadows() -> bool {
        false
    }

    fn specialize(
        _: &MaterialPipeline,
        descriptor: &mut RenderPipelineDescriptor,
        _: &MeshVertexBufferLayoutRef,
        key: MaterialPipelineKey<Self>,
    ) -> Result<(), SpecializedMeshPipelineError> {
        let Kind { part, steps, smoky } = key.bind_group_data;
        if let Some(fragment) = &mut descriptor.fragment {
            fragment.shader_defs.push(part.definition().into());
            fragment.shader_defs.push(ShaderDefVal::UInt("STEPS".into(), steps));
            if smoky {
                fragment.shader_defs.push("SMOKY".into());
            }
        }
        // Solids are seen from inside where the cut opens them; panes of glass from both sides.
        descriptor.primitive.cull_mode = match part {
            Part::Water => Some(Face::Back),
            // The eye may be among the smoke.
            Part::Smoke => Some(Face::Front),
            _ => None,
        };
        if matches!(part, Part::Tiles | Part::Smoke) {
            draw_over(descriptor);
        }
        Ok(())
    }
}

/// Particles or arrows.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
pub struct MarkMaterial {
    /// Radius of a particle in metres, how opaque marks are, and 1 for marks in ink, which have no speed.
    #[uniform(0)]
    pub size: Vec4,
}

impl Material for MarkMaterial {
    fn vertex_shader() -> ShaderRef {
        "embedded://glug/viewer/stage/shaders/marks.wgsl".into()
    }

    fn fragment_shader() -> ShaderRef {
        "embedded://glug/viewer/stage/shaders/marks.wgsl".into()
    }

    fn alpha_mode(&self) -> AlphaMode {
        AlphaMode::Blend
    }

    fn enable_prepass() -> bool {
        false
    }

    fn enable_shadows() -> bool {
        false
    }

    fn specialize(
        _: &MaterialPipeline,
        descriptor: &mut RenderPipelineDescriptor,
        _: &MeshVertexBufferLayoutRef,
        _: MaterialPipelineKey<Self>,
    ) -> Result<(), SpecializedMeshPipelineError> {
        descriptor.primitive.cull_mode = None;
        draw_over(descriptor);
        Ok(())
    }
}

/// Draws a drawable over what is there already: the water's surface would hide what is inside it.
fn draw_over(descriptor: &mut RenderPipelineDescriptor) {
    if let Some(depth) = &mut descriptor.depth_stencil {
        depth.depth_compare = Some(CompareFunction::Always);
        depth.depth_write_enabled = Some(false);
    }
}

/// Brings the materials and their shaders, which are part of the program.
pub struct MaterialsPlugin;

impl Plugin for MaterialsPlugin {
    fn build(&self, app: &mut App) {
        load_shader_library!(app, "shaders/stage.wgsl");
        load_shader_library!(app, "shaders/flat.wgsl");
        load_shader_library!(app, "shaders/water.wgsl");
        load_shader_library!(app, "shaders/smoke.wgsl");
        bevy::asset::embedded_asset!(app, "shaders/part.wgsl");
        bevy::asset::embedded_asset!(app, "shaders/marks.wgsl");
        app.add_plugins((
            MaterialPlugin::<StageMaterial>::default(),
            MaterialPlugin::<MarkMaterial>::default(),
        ));
    }
}
