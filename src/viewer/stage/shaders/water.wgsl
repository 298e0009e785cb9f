// The liquid in 3D: its surface is a mesh, what is behind it is followed through the distance field.
#define_import_path glug::water

#import glug::stage
#import bevy_pbr::mesh_view_bindings as view_bindings

// What stands behind the liquid at a place, as drawn so far; the bare surroundings where the screen does not show it.
fn behind(from_: vec3<f32>, along: vec3<f32>) -> vec3<f32> {
    var far = 0.9 * stage::reach();
    if along.y < -1e-3 {
        far = min(far, -from_.y / along.y);
    }
    let x = from_ + along * max(far, 0.0);
    let clip = view_bindings::view.clip_from_world * vec4<f32>(x, 1.0);
    let plain = stage::surroundings(from_, along);
    if clip.w <= 0.0 {
        return plain;
    }
    let place = clip.xy / clip.w * vec2<f32>(0.5, -0.5) + 0.5;
    let edge = min(min(place.x, 1.0 - place.x), min(place.y, 1.0 - place.y));
    let seen = textureSampleLevel(
        view_bindings::view_transmission_texture, view_bindings::view_transmission_sampler,
        clamp(place, vec2<f32>(0.001), vec2<f32>(0.999)), 0.0
    ).rgb;
    return mix(plain, seen, smoothstep(0.0, 0.04, edge));
}

struct Crossing {
    at: vec3<f32>,
    normal: vec3<f32>,
}

// The surface between two places on different sides of it, with its normal towards the air.
fn crossing(a: vec3<f32>, b: vec3<f32>, da: f32, db: f32) -> Crossing {
    let share = clamp(da / (da - db), 0.0, 1.0);
    let at = mix(a, b, share);
    return Crossing(at, stage::liquid_normal(at));
}

fn bubble_tint(at: vec3<f32>, normal: vec3<f32>) -> vec4<f32> {
    let number = stage::region(at + normal * 0.8 * stage::look.size.w);
    if number < stage::FIRST_BUBBLE {
        return vec4<f32>(0.0);
    }
    let own = stage::tint(number);
    let chosen = number == stage::look.layers.y;
    if own.a == 0.0 || !(stage::shows(stage::LAYER_TINTS) || chosen) {
        return vec4<f32>(0.0);
    }
    return vec4<f32>(own.rgb, select(0.40, 0.85, chosen));
}

// Light that arrives through the liquid from a direction, starting just inside.
fn through(start: vec3<f32>, direction: vec3<f32>) -> vec3<f32> {
    let dx = stage::look.size.w;
    let absorb = vec3<f32>(5.4, 1.55, 0.80) / stage::reach();
    let scatter = select(vec3<f32>(0.030, 0.225, 0.37), vec3<f32>(0.012, 0.10, 0.175), stage::is_dark());
    var x = start;
    var along = direction;
    var wet = true;
    // A little colour comes with the surface itself, so that thin sheets and rims are seen.
    var left = exp(-absorb * 0.05 * stage::reach());
    var light = (1.0 - left) * scatter;
    var last = stage::liquid(x);
    var walls = 0;
    var free = false;
    for (var i = 0u; i < #{STEPS}u; i++) {
        let step = max(0.88 * abs(last), 0.45 * dx);
        var next = x + along * step;
        let span = stage::through_domain(x, along);
        let leaves = span.y <= step;
        if leaves {
            next = x + along * max(span.y, 0.0);
        }
        let now = stage::liquid(next);
        if wet {
            let passed = exp(-absorb * length(next - x));
            light += left * (1.0 - passed) * scatter * (0.65 + 0.5 * clamp(next.y / stage::look.size.y, 0.0, 1.0));
            left *= passed;
        }
        if leaves {
            x = next;
            break;
        }
        // The surface reaches a little into walls: a ray that starts there has to come out first.
        let wall = stage::solid(next);
        free = free || wall > 0.0;
        if free && wall < -0.2 * dx {
            x = next;
            break;
        }
        if (now > 0.0) == wet {
            let hit = crossing(x, next, last, now);
            if wet {
                let cosine = clamp(dot(along, hit.normal), 0.0, 1.0);
                let mirror = stage::mirrored_inside(cosine);
                let tint = bubble_tint(hit.at, hit.normal);
                let glow = tint.rgb * tint.a * (0.45 + 0.75 * pow(1.0 - cosine, 2.0));
                // What a bubble's wall mirrors is the water around it, and now and then the sky.
                let mirrored = mix(scatter * 1.4, stage::sky(reflect(along, -hit.normal)), 0.55);
                let rim = 0.22 * pow(1.0 - cosine, 3.0) * (0.6 + 0.4 * hit.normal.y);
                light += left * (mirror * mirrored + (1.0 - mirror) * (glow + rim));
                left *= (1.0 - mirror) * (1.0 - 0.75 * tint.a);
                let bent = refract(along, -hit.normal, stage::WATER);
                along = select(along, bent, dot(bent, bent) > 0.25);
                next = hit.at + hit.normal * 0.15 * dx + along * 0.1 * dx;
            } else {
                let cosine = clamp(-dot(along, hit.normal), 0.0, 1.0);
                let mirror = stage::schlick(cosine, 0.02);
                light += left * mirror * stage::sky(reflect(along, hit.normal));
                left *= 1.0 - mirror;
                along = refract(along, hit.normal, 1.0 / stage::WATER);
                next = hit.at - hit.normal * 0.15 * dx + along * 0.1 * dx;
            }
            wet = !wet;
            walls += 1;
            if walls > 7 || max(left.x, max(left.y, left.z)) < 0.03 {
                x = next;
                break;
            }
        }
        x = next;
        last = stage::liquid(x);
    }
    return light + left * behind(x, along);
}

// Where the liquid lies against a side of the tank or a container's wall, the wall is what is seen.
fn against_glass(at: vec3<f32>, normal: vec3<f32>) -> vec3<f32> {
    let near = 0.04 * stage::look.size.w;
    let low = vec3<f32>(at < vec3<f32>(near));
    let high = vec3<f32>(at > stage::look.size.xyz - near);
    let side = high - low;
    if dot(side, side) > 0.5 {
        return normalize(side);
    }
    let gap = stage::solid(at) / stage::look.size.w;
    if gap > 1.4 {
        return normal;
    }
    // Thin gaps between liquid and wall are the grid's, not the water's; a surface that ends at the wall is.
    let wall = -stage::solid_normal(at);
    return select(normal, wall, gap < 0.5 || dot(normal, wall) > 0.25);
}

fn shade(at: vec3<f32>, mesh_normal: vec3<f32>) -> vec4<f32> {
    let along = normalize(at - view_bindings::view.world_position);
    let surface_normal = against_glass(at, mesh_normal);
    let normal = select(surface_normal, -surface_normal, dot(surface_normal, along) > 0.0);
    let cosine = clamp(-dot(along, normal), 0.0, 1.0);
    let mirror = stage::schlick(cosine, 0.02);
    let mirrored = reflect(along, normal);
    let bent = refract(along, normal, 1.0 / stage::WATER);
    // The outermost cells hold noise that nobody sees behind glass: rays start behind them.
    let glass = dot(surface_normal - mesh_normal, surface_normal - mesh_normal) > 1e-6;
    let depth = select(0.2, 1.0, glass) * stage::look.size.w;
    let inner = through(at - normal * depth, bent);
    let sun = normalize(stage::SUN);
    let glint = pow(max(dot(mirrored, sun), 0.0), 600.0) * 2.5;
    var outer = stage::sky(mirrored);
    if mirrored.y < 0.0 {
        outer = stage::surroundings(at, mirrored);
    }
    return vec4<f32>(stage::soft_clip(mix(inner, outer, mirror) + glint), 1.0);
}

// The cut face: liquid only, seen into from the plane.
fn cap(at: vec3<f32>, plane_normal: vec3<f32>) -> vec4<f32> {
    if stage::liquid(at) > 0.0 {
        discard;
    }
    let along = normalize(at - view_bindings::view.world_position);
    let inner = through(at, along);
    return vec4<f32>(stage::soft_clip(inner * 0.94 + vec3<f32>(0.0, 0.010, 0.016)), 1.0);
}
