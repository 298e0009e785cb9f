// Smoke in the air: a volume in 3D, a sheet over the page in 2D.
#define_import_path glug::smoke

#import glug::stage
#import bevy_pbr::mesh_view_bindings::view

// Colour of what a puff throws back of the light, with what it shines by itself.
fn puff_colour(puff: vec4<f32>) -> vec3<f32> {
    let dark = stage::is_dark();
    let sun = select(vec3<f32>(0.84, 0.80, 0.74), vec3<f32>(0.62, 0.61, 0.59), dark);
    let sky = select(vec3<f32>(0.085, 0.115, 0.165), vec3<f32>(0.040, 0.060, 0.100), dark);
    let lit = sun * puff.z + sky * puff.w;
    let hot = clamp(puff.y, 0.0, 1.0);
    let cold = clamp(-puff.y, 0.0, 1.0);
    let warm = lit * mix(vec3<f32>(1.0), vec3<f32>(1.0, 0.70, 0.44), hot) + vec3<f32>(0.55, 0.16, 0.03) * hot;
    return warm * mix(vec3<f32>(1.0), vec3<f32>(0.55, 0.78, 1.0), cold);
}

// What is seen of the smoke along the ray that leaves the tank at a place; `seed` is the place on the screen.
fn volume(at: vec3<f32>, seed: vec2<f32>) -> vec4<f32> {
    let from_ = view.world_position;
    let along = normalize(at - from_);
    // As wide as a pixel at a distance of one.
    let wide = max(length(fwidth(along)) * 0.7071, 1e-6);
    let dx = stage::look.size.w;
    var span = stage::through_domain(from_, along);
    let plane = (stage::look.cut.x - from_.z) / select(along.z, 1e-9, abs(along.z) < 1e-9);
    span.x = max(span.x, select(0.0, plane, along.z < 0.0));
    span.y = min(span.y, select(1e30, plane, along.z > 0.0));
    let step = max((span.y - span.x) / #{STEPS}.0, 0.9 * dx);
    // Rays beside each other begin with different shares of a step, so that steps do not show as stripes.
    let share = fract(52.9829189 * fract(dot(seed, vec2<f32>(0.06711056, 0.00583715))));
    let extinction = stage::SMOKE_DEPTH / stage::reach();
    var start = span.x;
    var end = span.x + max(share, 0.05) * step;
    var light = vec3<f32>(0.0);
    var left = 1.0;
    // How much of the pixel's ray no solid and no liquid has stopped: their outlines are as soft as others are.
    var open = 1.0;
    for (var i = 0u; i <= #{STEPS}u; i++) {
        if start >= span.y || left < 0.01 || open < 0.01 {
            break;
        }
        let half = 0.5 * (min(end, span.y) - start);
        let x = from_ + along * (start + half);
        // Glass lets smoke be seen behind it: then solids do not count.
        let wall = min(select(1e9, stage::solid(x), stage::look.colour.r > 0.5), stage::liquid(x));
        open = min(open, clamp(0.5 + wall / (wide * start), 0.0, 1.0));
        let puff = stage::smoke(x);
        // The way ends at the wall, not in the middle of the next step.
        let passed = exp(-extinction * stage::thickness(puff) * open * (half + clamp(wall, 0.0, half)));
        light += left * (1.0 - passed) * puff_colour(puff);
        left *= passed;
        start = end;
        end += step;
    }
    let cover = 1.0 - left;
    return vec4<f32>(stage::soft_clip(light / max(cover, 1e-4)), cover);
}

// Smoke in the plane with its second derivatives smooth (cubic B-splines), so that no cell shows at any zoom.
fn smooth_puff(x: vec3<f32>) -> vec4<f32> {
    let size = stage::look.cells.xy;
    let place = x.xy / stage::look.size.w - 0.5;
    let middle = floor(place);
    let f = place - middle;
    let g = 1.0 - f;
    let w0 = g * g * g / 6.0;
    let w1 = (4.0 + f * f * (3.0 * f - 6.0)) / 6.0;
    let w3 = f * f * f / 6.0;
    let low = w0 + w1;
    // Each sample lies between two cells and takes both with their weights.
    let a = (middle - 0.5 + w1 / low) / size;
    let b = (middle + 1.5 + w3 / (1.0 - low)) / size;
    return mix(
        mix(tap(b.x, b.y), tap(a.x, b.y), low.x),
        mix(tap(b.x, a.y), tap(a.x, a.y), low.x),
        low.y
    );
}

fn tap(x: f32, y: f32) -> vec4<f32> {
    return textureSampleLevel(stage::smoke_texture, stage::soft, vec3<f32>(x, y, 0.5), 0.0);
}

// The page with a sheet of smoke over it.
fn sheet(page: vec3<f32>, x: vec3<f32>) -> vec3<f32> {
    let puff = smooth_puff(x);
    let light = clamp(0.5 * (puff.z + puff.w), 0.0, 1.0);
    var ink = mix(vec3<f32>(0.085, 0.10, 0.125), vec3<f32>(0.29, 0.32, 0.365), light);
    var ember = vec3<f32>(0.66, 0.30, 0.13);
    var frost = vec3<f32>(0.16, 0.38, 0.66);
    if stage::is_dark() {
        ink = mix(vec3<f32>(0.11, 0.125, 0.15), vec3<f32>(0.52, 0.55, 0.60), light);
        ember = vec3<f32>(0.95, 0.42, 0.15);
        frost = vec3<f32>(0.25, 0.55, 0.95);
    }
    // By how hot the smoke itself is, so that its rims have the same hue.
    let warmth = 0.45 * clamp(puff.y / max(puff.x, 0.2), -1.0, 1.0);
    ink = mix(ink, ember * (0.35 + 0.75 * light), max(warmth, 0.0));
    ink = mix(ink, frost * (0.35 + 0.75 * light), max(-warmth, 0.0));
    return mix(page, ink, 0.96 * (1.0 - exp(-stage::SHEET_DEPTH * stage::thickness(puff))));
}
