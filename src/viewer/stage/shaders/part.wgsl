// One entry point for all parts of the stage; the pipeline says which part it draws.
#import glug::stage
#import glug::flat
#import glug::water
#import glug::smoke
#import bevy_pbr::forward_io::VertexOutput
#import bevy_pbr::mesh_view_bindings::view

// An opaque body in the light of the stage.
fn opaque_body(x: vec3<f32>, mesh_normal: vec3<f32>) -> vec4<f32> {
    let towards = normalize(view.world_position - x);
    var normal = normalize(mesh_normal);
    let inner = dot(normal, towards) < 0.0;
    normal = select(normal, -normal, inner);
    let sun = normalize(stage::SUN);
    let lit = max(dot(normal, sun), 0.0) * stage::sunlight(x + normal * 1.5 * stage::look.size.w);
    let sky = mix(stage::sky(vec3<f32>(0.0, -1.0, 0.0)), stage::sky(vec3<f32>(0.0, 1.0, 0.0)), 0.5 + 0.5 * normal.y);
    let mirror = stage::schlick(dot(normal, towards), 0.04);
    var colour = stage::look.colour.rgb * (0.75 * lit + 0.62 * sky * stage::openness(x, normal));
    colour = mix(colour, stage::sky(reflect(-towards, normal)), 0.6 * mirror);
    return vec4<f32>(stage::soft_clip(select(colour, colour * 0.55, inner)), 1.0);
}

// Whether a place stands between the camera and the middle of the tank.
fn in_front(x: vec3<f32>) -> bool {
    let middle = 0.5 * stage::look.size.xyz;
    return dot(x - middle, view.world_position - middle) > 0.0;
}

@fragment
fn fragment(in: VertexOutput, @builtin(front_facing) front: bool) -> @location(0) vec4<f32> {
    let x = in.world_position.xyz;
    let pixel = max(length(fwidth(x)) * 0.7071, 1e-7);
#ifdef FLAT
    return flat::shade(x, pixel);
#endif
#ifdef SLICE
    // Right between two layers of cells, the one behind is shown, whatever the rounding.
    return flat::slice(x - vec3<f32>(0.0, 0.0, 0.01 * stage::look.size.w), pixel);
#endif
#ifdef TILES
    // Borders are as wide at any distance: one pixel and a half.
    let off = (1.0 - abs(in.uv)) / max(fwidth(in.uv), vec2<f32>(1e-6));
    var border = 1.0 - smoothstep(1.0, 2.0, min(off.x, off.y));
    // Seen from the front, tiles end where their cells do, which need not fill the box.
    if in.uv_b.x > 0.0 {
        if !stage::in_tile(x) {
            discard;
        }
        let a = vec3<f32>(1.5 * pixel, 0.0, 0.0);
        let b = vec3<f32>(0.0, 1.5 * pixel, 0.0);
        let whole = stage::in_tile(x + a) && stage::in_tile(x - a) && stage::in_tile(x + b) && stage::in_tile(x - b);
        border = select(1.0, 0.0, whole);
    }
    let body = in.color.rgb * select(1.0, 0.8, stage::is_dark());
    let line = in.color.rgb * select(0.45, 1.3, stage::is_dark());
    return vec4<f32>(mix(body, line, border), mix(in.uv_b.x, in.uv_b.y, border));
#endif
#ifdef WATER
    if stage::cut_away(x) {
        discard;
    }
    return water::shade(x, normalize(in.world_normal));
#endif
#ifdef CAP
    return water::cap(x, normalize(in.world_normal));
#endif
#ifdef SMOKE
    return smoke::volume(x, in.position.xy);
#endif
#ifdef GROUND
    return vec4<f32>(stage::soft_clip(stage::ground(x)), 1.0);
#endif
#ifdef SOLID
    if stage::cut_away(x) {
        discard;
    }
    return opaque_body(x, in.world_normal);
#endif
#ifdef FAR_EDGE
    if stage::cut_away(x) || in_front(x) {
        discard;
    }
    return opaque_body(x, in.world_normal);
#endif
#ifdef NEAR_EDGE
    if stage::cut_away(x) || !in_front(x) {
        discard;
    }
    return opaque_body(x, in.world_normal);
#endif
#ifdef RIM
    // Where the surface turns away from the eye, glass is thick along the ray.
    let facing = abs(dot(normalize(view.world_position - x), normalize(in.world_normal)));
    if facing > 0.27 || stage::cut_away(x) {
        discard;
    }
    let rim = select(vec3<f32>(0.86, 0.95, 0.94), vec3<f32>(0.42, 0.55, 0.55), stage::is_dark());
    return vec4<f32>(stage::soft_clip(rim * (1.0 - 0.9 * facing)), 1.0);
#endif
#ifdef GLASS
    if stage::cut_away(x) {
        discard;
    }
    let towards = normalize(view.world_position - x);
    var normal = normalize(in.world_normal);
    normal = select(normal, -normal, dot(normal, towards) < 0.0);
    let mirror = stage::schlick(dot(normal, towards), 0.035);
    let light = stage::sky(reflect(-towards, normal));
    // The thicker the glass along the ray, the greener.
    let edge = pow(1.0 - clamp(dot(normal, towards), 0.0, 1.0), 2.0);
    let body = mix(vec3<f32>(0.72, 0.86, 0.84), vec3<f32>(0.18, 0.36, 0.36), edge) * select(1.0, 0.35, stage::is_dark());
    let cover = clamp(stage::look.colour.a * (0.35 + 1.4 * edge) + mirror, 0.0, 1.0);
    return vec4<f32>(stage::soft_clip(mix(body, light, mirror / max(cover, 1e-3))), cover);
#endif
    return vec4<f32>(1.0, 0.0, 1.0, 1.0);
}
