// Particles and arrows: small triangles coloured by speed. Pins: pale ink with a dark hem.
#import bevy_pbr::forward_io::Vertex
#import bevy_pbr::mesh_functions
#import bevy_pbr::mesh_view_bindings::view
#import bevy_pbr::view_transformations::position_world_to_clip

// Radius of a particle in metres, how opaque marks are, and 1 for marks in ink.
@group(#{MATERIAL_BIND_GROUP}) @binding(0) var<uniform> size: vec4<f32>;

struct Mark {
    @builtin(position) position: vec4<f32>,
    @location(0) corner: vec2<f32>,
    @location(1) speed: f32,
}

// Corners of a triangle around a disc of radius 1; the fourth is for marks that bring their own corners.
const CORNERS: array<vec2<f32>, 4> = array<vec2<f32>, 4>(
    vec2<f32>(0.0, 2.0), vec2<f32>(-1.732, -1.0), vec2<f32>(1.732, -1.0), vec2<f32>(0.0, 0.0)
);

@vertex
fn vertex(in: Vertex) -> Mark {
    var corners = CORNERS;
    let corner = corners[i32(in.uv.x + 0.5)];
    let world = mesh_functions::get_world_from_local(in.instance_index);
    let centre = (world * vec4<f32>(in.position, 1.0)).xyz;
    let right = view.world_from_view[0].xyz;
    let up = view.world_from_view[1].xyz;
    let x = centre + (right * corner.x + up * corner.y) * size.x;
    return Mark(position_world_to_clip(x), corner, in.uv.y);
}

@fragment
fn fragment(mark: Mark) -> @location(0) vec4<f32> {
    let off = dot(mark.corner, mark.corner);
    if off > 1.0 {
        discard;
    }
    let t = clamp(mark.speed, 0.0, 1.0);
    let slow = vec3<f32>(0.03, 0.13, 0.50);
    let middle = vec3<f32>(0.10, 0.55, 0.80);
    let fast = vec3<f32>(1.0, 0.87, 0.48);
    var colour = mix(mix(slow, middle, smoothstep(0.0, 0.45, t)), fast, smoothstep(0.35, 1.0, t));
    // Round, lit from above.
    colour *= 1.0 - 0.35 * off + 0.25 * mark.corner.y * (1.0 - off);
    // In ink, what would be the speed tells the hem from the body.
    let ink = mix(vec3<f32>(1.0, 0.98, 0.93), vec3<f32>(0.02, 0.025, 0.04), t);
    return vec4<f32>(mix(colour, ink, size.z), size.y);
}
