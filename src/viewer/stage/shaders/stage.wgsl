// What every part of the stage shares: its bindings, the fields, the light.
#define_import_path glug::stage

struct Look {
    // Size of the domain in metres, and the cell width.
    size: vec4<f32>,
    // Cells along each axis, and the dimension.
    cells: vec4<f32>,
    // Corners of the solids' distance field along each axis.
    corners: vec4<f32>,
    // Where the cut takes away what has a larger z, metres, beyond everything if it does not cut; the speed that counts
    // as fast comes last.
    cut: vec4<f32>,
    // Ends of the scales of pressure (hundreds of Pa) and divergence (1/s), simulated seconds, dark theme.
    scales: vec4<f32>,
    // Layers as bits, the selected region, how many bubbles there are, and one more bit set.
    layers: vec4<u32>,
    // A solid's own colour.
    colour: vec4<f32>,
}

@group(#{MATERIAL_BIND_GROUP}) @binding(0) var<uniform> look: Look;
@group(#{MATERIAL_BIND_GROUP}) @binding(1) var distance_texture: texture_3d<f32>;
@group(#{MATERIAL_BIND_GROUP}) @binding(2) var soft: sampler;
@group(#{MATERIAL_BIND_GROUP}) @binding(3) var region_texture: texture_3d<u32>;
@group(#{MATERIAL_BIND_GROUP}) @binding(4) var velocity_texture: texture_3d<f32>;
@group(#{MATERIAL_BIND_GROUP}) @binding(5) var scalar_texture: texture_3d<f32>;
@group(#{MATERIAL_BIND_GROUP}) @binding(6) var solid_texture: texture_3d<f32>;
@group(#{MATERIAL_BIND_GROUP}) @binding(7) var role_texture: texture_3d<u32>;
// Colours of the bubbles, row after row; the fourth number is 0 for air that should not be tinted.
@group(#{MATERIAL_BIND_GROUP}) @binding(8) var tint_texture: texture_2d<f32>;
// Smoke: density and heat as shares of the full ones, and the shares of the sun's and the sky's light that arrive.
@group(#{MATERIAL_BIND_GROUP}) @binding(9) var smoke_texture: texture_3d<f32>;

const LAYER_TINTS: u32 = 1u;
const LAYER_OUTLINES: u32 = 2u;
const LAYER_REGIONS: u32 = 4u;
const LAYER_PRESSURE: u32 = 32u;
const LAYER_DIVERGENCE: u32 = 64u;
const LAYER_GRID: u32 = 128u;
const LAYER_BANDS: u32 = 1024u;

const REGION_AIR: u32 = 0u;
const REGION_LIQUID: u32 = 1u;
const REGION_SOLID: u32 = 2u;
const FIRST_BUBBLE: u32 = 3u;
// Bubbles in a row of the texture of their colours.
const TINTS: i32 = 256;

const ROLE_TILE: u32 = 1u;
const ROLE_SURFACE: u32 = 2u;
const ROLE_WALL: u32 = 3u;
const ROLE_SEAM: u32 = 4u;
const ROLE_GAS: u32 = 8u;

const SUN: vec3<f32> = vec3<f32>(-0.36, 0.86, 0.36);
const WATER: f32 = 1.333;
// Extinction by smoke of full density: along the longest side of the domain in 3D, through the page in 2D.
const SMOKE_DEPTH: f32 = 6.5;
const SHEET_DEPTH: f32 = 2.8;
// Heat can be seen without smoke, but hardly: it hides this share of what as much smoke does.
const SHIMMER: f32 = 0.12;

fn shows(layer: u32) -> bool {
    return (look.layers.x & layer) != 0u;
}

fn is_dark() -> bool {
    return look.scales.w > 0.5;
}

// Largest length of the domain: what thickness is measured against.
fn reach() -> f32 {
    return max(look.size.x, max(look.size.y, look.size.z));
}

// Signed distance to the liquid in metres, negative inside.
fn liquid(x: vec3<f32>) -> f32 {
    return textureSampleLevel(distance_texture, soft, x / (look.cells.xyz * look.size.w), 0.0).r * look.size.w;
}

fn liquid_normal(x: vec3<f32>) -> vec3<f32> {
    let h = 0.7 * look.size.w;
    return normalize(vec3<f32>(
        liquid(x + vec3<f32>(h, 0.0, 0.0)) - liquid(x - vec3<f32>(h, 0.0, 0.0)),
        liquid(x + vec3<f32>(0.0, h, 0.0)) - liquid(x - vec3<f32>(0.0, h, 0.0)),
        liquid(x + vec3<f32>(0.0, 0.0, h)) - liquid(x - vec3<f32>(0.0, 0.0, h)),
    ) + vec3<f32>(0.0, 1e-9, 0.0));
}

// Signed distance to the nearest solid in metres.
fn solid(x: vec3<f32>) -> f32 {
    // Samples sit at corners: half a texel in from the texture's edge.
    let at = clamp(x / max(look.size.xyz, vec3<f32>(1e-9)), vec3<f32>(0.0), vec3<f32>(1.0));
    let place = (at * (look.corners.xyz - 1.0) + 0.5) / look.corners.xyz;
    return textureSampleLevel(solid_texture, soft, place, 0.0).r * look.size.w;
}

fn solid_normal(x: vec3<f32>) -> vec3<f32> {
    let h = 1.2 * look.size.w;
    return normalize(vec3<f32>(
        solid(x + vec3<f32>(h, 0.0, 0.0)) - solid(x - vec3<f32>(h, 0.0, 0.0)),
        solid(x + vec3<f32>(0.0, h, 0.0)) - solid(x - vec3<f32>(0.0, h, 0.0)),
        solid(x + vec3<f32>(0.0, 0.0, h)) - solid(x - vec3<f32>(0.0, 0.0, h)),
    ) + vec3<f32>(0.0, 1e-9, 0.0));
}

fn smoke(x: vec3<f32>) -> vec4<f32> {
    return textureSampleLevel(smoke_texture, soft, x / (look.cells.xyz * look.size.w), 0.0);
}

// How much a puff of smoke hides, as a share of full density.
fn thickness(puff: vec4<f32>) -> f32 {
    return max(puff.x, 0.0) + SHIMMER * abs(puff.y);
}

fn region(x: vec3<f32>) -> u32 {
    let cell = vec3<i32>(floor(x / look.size.w));
    let last = vec3<i32>(look.cells.xyz) - 1;
    return textureLoad(region_texture, clamp(cell, vec3<i32>(0), last), 0).r;
}

// Whether a place lies in a tile.
fn in_tile(x: vec3<f32>) -> bool {
    return role(x) % ROLE_GAS == ROLE_TILE;
}

fn role(x: vec3<f32>) -> u32 {
    let cell = vec3<i32>(floor(x / look.size.w));
    let last = vec3<i32>(look.cells.xyz) - 1;
    return textureLoad(role_texture, clamp(cell, vec3<i32>(0), last), 0).r;
}

fn tint(number: u32) -> vec4<f32> {
    let place = i32(number - FIRST_BUBBLE);
    return textureLoad(tint_texture, vec2<i32>(place % TINTS, place / TINTS), 0);
}

// Whether the cut has taken a place away.
fn cut_away(x: vec3<f32>) -> bool {
    // Nothing else is asked: on a branch that hangs on numbers alone, software Vulkan compiles the shader anew in every
    // frame, and keeps all that it has compiled.
    return x.z > look.cut.x;
}

// Where a ray enters and leaves the domain.
fn through_domain(from_: vec3<f32>, along: vec3<f32>) -> vec2<f32> {
    let inverse = 1.0 / (along + vec3<f32>(1e-9));
    let a = -from_ * inverse;
    let b = (look.size.xyz - from_) * inverse;
    let low = min(a, b);
    let high = max(a, b);
    return vec2<f32>(max(max(low.x, low.y), max(low.z, 0.0)), min(high.x, min(high.y, high.z)));
}

// Light that comes from a direction: a bright studio with a window and a softbox.
fn sky(along: vec3<f32>) -> vec3<f32> {
    let height = clamp(along.y, -1.0, 1.0);
    var below = vec3<f32>(0.50, 0.53, 0.56);
    var horizon = vec3<f32>(0.80, 0.85, 0.90);
    var zenith = vec3<f32>(0.30, 0.50, 0.78);
    if is_dark() {
        below = vec3<f32>(0.030, 0.034, 0.042);
        horizon = vec3<f32>(0.16, 0.20, 0.26);
        zenith = vec3<f32>(0.05, 0.10, 0.20);
    }
    var light = mix(horizon, zenith, smoothstep(0.0, 0.75, height));
    light = mix(light, below, smoothstep(0.02, -0.25, height));
    let sun = normalize(SUN);
    let facing = max(dot(along, sun), 0.0);
    light += vec3<f32>(1.0, 0.95, 0.86) * (0.55 * pow(facing, 14.0) + 3.0 * pow(facing, 900.0));
    // A tall window to the right.
    let side = normalize(vec3<f32>(0.86, 0.30, 0.42));
    light += vec3<f32>(0.85, 0.92, 1.0) * 0.5 * smoothstep(0.90, 0.97, dot(along, side));
    return light;
}

fn backdrop() -> vec3<f32> {
    if is_dark() {
        return vec3<f32>(0.0196, 0.0232, 0.0296);
    }
    return vec3<f32>(0.775, 0.812, 0.845);
}

// How much sunlight arrives at a place: through liquid it is tinted, smoke dims it, solids stop it.
fn sunlight(from_: vec3<f32>) -> vec3<f32> {
    let sun = normalize(SUN);
    let span = through_domain(from_, sun);
    if span.y <= span.x {
        return vec3<f32>(1.0);
    }
    var t = span.x + 0.5 * look.size.w;
    var wet = 0.0;
    var clear = 1.0;
#ifdef SMOKY
    var hazy = 0.0;
#endif
    let leap = (span.y - span.x) / 20.0;
    for (var i = 0; i < 28; i++) {
        if t > span.y || clear < 0.02 {
            break;
        }
        let x = from_ + sun * t;
        var to_solid = solid(x);
        var to_liquid = liquid(x);
        if cut_away(x) {
            // What is not there casts no shadow.
            to_solid = leap;
            to_liquid = leap;
        }
        clear = min(clear, clamp(0.5 + 12.0 * to_solid / (t - span.x + 0.25 * reach()), 0.0, 1.0));
        let step = clamp(min(abs(to_liquid), abs(to_solid)), 0.8 * look.size.w, leap * 2.0);
#ifdef SMOKY
        hazy += step * select(thickness(smoke(x)), 0.0, cut_away(x));
#endif
        // Partly inside: a soft edge as wide as a cell.
        wet += step * clamp(0.5 - to_liquid / (2.0 * look.size.w), 0.0, 1.0);
        t += step;
    }
    let amount = wet / reach();
    var through = exp(-vec3<f32>(4.2, 1.9, 1.1) * amount) * (1.0 - 0.30 * smoothstep(0.0, 0.03, amount));
#ifdef SMOKY
    // Most light goes on forward.
    through *= mix(0.25, 1.0, exp(-0.5 * SMOKE_DEPTH * hazy / reach()));
#endif
    return through * mix(0.12, 1.0, smoothstep(0.0, 1.0, clear));
}

// How open a place is to the sky.
fn openness(x: vec3<f32>, normal: vec3<f32>) -> f32 {
    let h = 0.06 * reach();
    let near = solid(x + normal * h) / h;
    return clamp(0.45 + 0.55 * near, 0.30, 1.0);
}

fn schlick(cosine: f32, base: f32) -> f32 {
    return base + (1.0 - base) * pow(clamp(1.0 - cosine, 0.0, 1.0), 5.0);
}

// The share of light that the surface between water and air mirrors, seen from inside the water.
fn mirrored_inside(cosine: f32) -> f32 {
    let sine2 = WATER * WATER * (1.0 - cosine * cosine);
    if sine2 >= 1.0 {
        return 1.0;
    }
    let out = sqrt(1.0 - sine2);
    let s = (WATER * cosine - out) / (WATER * cosine + out);
    let p = (cosine - WATER * out) / (cosine + WATER * out);
    return 0.5 * (s * s + p * p);
}

// The ground at a place: pale tiles that fade into the backdrop.
fn ground(x: vec3<f32>) -> vec3<f32> {
    let around = vec2<f32>(x.x - 0.5 * look.size.x, x.z - 0.5 * look.size.z);
    let away = length(around) / reach();
    let tile = reach() / 8.0;
    let off = abs(fract(around / tile + 0.5) - 0.5) * tile;
    let width = reach() * (0.0012 + 0.0016 * away);
    let seam = 1.0 - smoothstep(width * 0.4, width * 1.6, min(off.x, off.y));
    var colour = vec3<f32>(0.80, 0.815, 0.83);
    var line = vec3<f32>(0.66, 0.69, 0.72);
    if is_dark() {
        colour = vec3<f32>(0.055, 0.062, 0.075);
        line = vec3<f32>(0.11, 0.125, 0.15);
    }
    let plain = mix(colour, line, seam * (1.0 - smoothstep(0.7, 2.2, away)) * 0.8);
    let light = sunlight(vec3<f32>(x.x, 0.001 * reach(), x.z));
    // A dark hem where the tank stands on the ground.
    let hem = vec2<f32>(abs(around.x) - 0.5 * look.size.x, abs(around.y) - 0.5 * look.size.z);
    let out = length(max(hem, vec2<f32>(0.0)));
    let contact = mix(0.80, 1.0, smoothstep(0.0, 0.10 * reach(), out));
    let lit = plain * (0.36 + 0.64 * light) * contact;
    return mix(lit, backdrop(), smoothstep(1.1, 3.2, away));
}

// What is seen along a ray when nothing stands in its way.
fn surroundings(from_: vec3<f32>, along: vec3<f32>) -> vec3<f32> {
    if along.y < -1e-4 && from_.y > -1e-3 * reach() {
        return ground(from_ - along * (from_.y / along.y));
    }
    return mix(backdrop(), sky(along), 0.35);
}

fn soft_clip(colour: vec3<f32>) -> vec3<f32> {
    // Linear up to 0.8, then bending so that highlights keep their hue.
    let over = max(colour - 0.8, vec3<f32>(0.0));
    return min(colour, vec3<f32>(0.8)) + 0.2 * (1.0 - exp(-over / 0.2));
}

// Dark violet over blue and green to yellow.
fn sequential(value: f32) -> vec3<f32> {
    let t = clamp(value, 0.0, 1.0);
    let c0 = vec3<f32>(0.267, 0.005, 0.329);
    let c1 = vec3<f32>(0.190, 0.407, 0.556);
    let c2 = vec3<f32>(0.208, 0.719, 0.473);
    let c3 = vec3<f32>(0.993, 0.906, 0.144);
    let low = mix(c0, c1, smoothstep(0.0, 0.34, t));
    let high = mix(c2, c3, smoothstep(0.64, 1.0, t));
    let srgb = mix(low, high, smoothstep(0.28, 0.70, t));
    return pow(srgb, vec3<f32>(2.2));
}

// Blue below zero, red above, pale between.
fn diverging(value: f32) -> vec3<f32> {
    let t = clamp(value, -1.0, 1.0);
    let pale = vec3<f32>(0.93, 0.93, 0.92);
    let srgb = select(
        mix(pale, vec3<f32>(0.13, 0.32, 0.68), sqrt(-min(t, 0.0))),
        mix(pale, vec3<f32>(0.74, 0.13, 0.16), sqrt(max(t, 0.0))),
        t > 0.0,
    );
    return pow(srgb, vec3<f32>(2.2));
}
