// One entry point for all parts of the stage; the pipeline says which part it draws.
#import glug::stage
#import glug::flat
#import glug::water
#import bevy_pbr::forward_io::VertexOutput
#import bevy_pbr::mesh_view_bindings::view

fn cut_away(x: vec3<f32>) -> bool {
    let axis = i32(stage::look.cut.x);
    return stage::look.cut.z > 0.5 && x[axis] > stage::look.cut.y;
}

@fragment
fn fragment(in: VertexOutput, @builtin(front_facing) front: bool) -> @location(0) vec4<f32> {
    let x = in.world_position.xyz;
    let pixel = max(length(fwidth(x)) * 0.7071, 1e-7);
#ifdef FLAT
    return flat::shade(x, pixel);
#endif
#ifdef SLICE
    return flat::slice(x, pixel);
#endif
#ifdef WATER
    if cut_away(x) {
        discard;
    }
    return water::shade(x, normalize(in.world_normal));
#endif
#ifdef CAP
    return water::cap(x, normalize(in.world_normal));
#endif
#ifdef GROUND
    return vec4<f32>(stage::soft_clip(stage::ground(x)), 1.0);
#endif
#ifdef SOLID
    if cut_away(x) {
        discard;
    }
    let towards = normalize(view.world_position - x);
    var normal = normalize(in.world_normal);
    let inner = dot(normal, towards) < 0.0;
    normal = select(normal, -normal, inner);
    let sun = normalize(stage::SUN);
    let lit = max(dot(normal, sun), 0.0) * stage::sunlight(x + normal * 1.5 * stage::look.size.w);
    let sky = mix(stage::sky(vec3<f32>(0.0, -1.0, 0.0)), stage::sky(vec3<f32>(0.0, 1.0, 0.0)), 0.5 + 0.5 * normal.y);
    let mirror = stage::schlick(dot(normal, towards), 0.04);
    var colour = stage::look.colour.rgb * (0.75 * lit + 0.62 * sky * stage::openness(x, normal));
    colour = mix(colour, stage::sky(reflect(-towards, normal)), 0.6 * mirror);
    return vec4<f32>(stage::soft_clip(select(colour, colour * 0.55, inner)), 1.0);
#endif
#ifdef GLASS
    if cut_away(x) {
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
