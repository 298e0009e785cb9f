// A cut through the domain: the whole picture in 2D, a slice with the layers on it in 3D.
#define_import_path glug::flat

#import glug::stage
#import glug::smoke

fn region_colour(number: u32) -> vec4<f32> {
    if number == stage::REGION_LIQUID {
        return vec4<f32>(0.05, 0.22, 0.62, 0.85);
    }
    if number == stage::REGION_SOLID {
        return vec4<f32>(0.16, 0.15, 0.14, 0.85);
    }
    if number >= stage::FIRST_BUBBLE {
        let tint = stage::tint(number);
        return vec4<f32>(tint.rgb, select(0.25, 0.85, tint.a > 0.0));
    }
    return vec4<f32>(0.8, 0.82, 0.84, 0.25);
}

// Colour of the ordinary cells around tiles; `wet` is how much of the place is liquid.
fn band_colour(x: vec3<f32>, wet: f32) -> vec4<f32> {
    let number = stage::role(x);
    let kind = number % stage::ROLE_GAS;
    // A cell shows as far as its own fluid reaches.
    let cover = select(1.0 - wet, wet, number < stage::ROLE_GAS);
    if kind == stage::ROLE_SURFACE {
        return vec4<f32>(0.956, 0.445, 0.054, 0.78 * cover);
    }
    if kind == stage::ROLE_WALL {
        return vec4<f32>(0.552, 0.162, 0.515, 0.78 * cover);
    }
    if kind == stage::ROLE_SEAM {
        return vec4<f32>(0.730, 0.855, 0.922, 0.78 * cover);
    }
    return vec4<f32>(0.0);
}

// The distance with its second derivatives smooth, so that no cell shows at any zoom. Only asked near the surface.
fn smooth_liquid(x: vec3<f32>) -> f32 {
    let size = look_cells();
    let place = x.xy / stage::look.size.w;
    let middle = floor(place - 0.5) + 0.5;
    let f = place - middle;
    let w0 = f * (-0.5 + f * (1.0 - 0.5 * f));
    let w1 = 1.0 + f * f * (-2.5 + 1.5 * f);
    let w2 = f * (0.5 + f * (2.0 - 1.5 * f));
    let w3 = f * f * (-0.5 + 0.5 * f);
    let w12 = w1 + w2;
    let p0 = (middle - 1.0) / size;
    let p3 = (middle + 2.0) / size;
    let p12 = (middle + w2 / w12) / size;
    let z = x.z / (stage::look.cells.z * stage::look.size.w);
    var sum = tap(p12.x, p0.y, z) * w12.x * w0.y + tap(p0.x, p12.y, z) * w0.x * w12.y
        + tap(p12.x, p12.y, z) * w12.x * w12.y + tap(p3.x, p12.y, z) * w3.x * w12.y
        + tap(p12.x, p3.y, z) * w12.x * w3.y;
    let weight = w12.x * w0.y + w0.x * w12.y + w12.x * w12.y + w3.x * w12.y + w12.x * w3.y;
    return sum / weight * stage::look.size.w;
}

fn look_cells() -> vec2<f32> {
    return stage::look.cells.xy;
}

fn tap(x: f32, y: f32, z: f32) -> f32 {
    return textureSampleLevel(stage::distance_texture, stage::soft, vec3<f32>(x, y, z), 0.0).r;
}

// Lines between cells, one pixel wide, where cells are large enough to tell apart.
fn grid_lines(x: vec3<f32>, pixel: f32) -> f32 {
    let cell = x.xy / stage::look.size.w;
    let off = abs(fract(cell + 0.5) - 0.5) * stage::look.size.w / pixel;
    let line = 1.0 - smoothstep(0.3, 1.1, min(off.x, off.y));
    return line * smoothstep(3.0, 9.0, stage::look.size.w / pixel);
}

fn velocity(x: vec3<f32>) -> vec4<f32> {
    return textureSampleLevel(stage::velocity_texture, stage::soft, x / (stage::look.cells.xyz * stage::look.size.w), 0.0);
}

// Colour of a field layer at a place, if one is on.
fn field_colour(x: vec3<f32>) -> vec4<f32> {
    // Reading a texture costs more than asking whether it is wanted.
    if !(stage::shows(stage::LAYER_PRESSURE) || stage::shows(stage::LAYER_DIVERGENCE)) {
        return vec4<f32>(0.0);
    }
    let values = textureSampleLevel(
        stage::scalar_texture, stage::soft, x / (stage::look.cells.xyz * stage::look.size.w), 0.0
    );
    if stage::shows(stage::LAYER_PRESSURE) {
        return vec4<f32>(stage::sequential(values.r / stage::look.scales.x), 1.0);
    }
    if stage::shows(stage::LAYER_DIVERGENCE) {
        return vec4<f32>(stage::diverging(values.g / stage::look.scales.y), 1.0);
    }
    return vec4<f32>(0.0);
}

// The bubble next to or around a place in the air, 0 if there is none.
fn bubble_near(x: vec3<f32>, towards_air: vec2<f32>) -> u32 {
    let here = stage::region(x);
    if here >= stage::FIRST_BUBBLE {
        return here;
    }
    let there = stage::region(x + vec3<f32>(towards_air * 0.8 * stage::look.size.w, 0.0));
    return select(0u, there, there >= stage::FIRST_BUBBLE);
}

fn picture(x: vec3<f32>, pixel: f32) -> vec3<f32> {
    let dx = stage::look.size.w;
    let dark = stage::is_dark();
    let height = clamp(x.y / stage::look.size.y, 0.0, 1.0);
    var air = mix(vec3<f32>(0.83, 0.86, 0.89), vec3<f32>(0.94, 0.955, 0.97), height);
    if dark {
        air = mix(vec3<f32>(0.020, 0.024, 0.032), vec3<f32>(0.034, 0.041, 0.053), height);
    }
    // Beyond the domain there is only the page.
    let out = max(max(-x.x, x.x - stage::look.size.x), max(-x.y, x.y - stage::look.size.y));
    var phi = stage::liquid(x);
    if abs(phi) < 1.5 * dx {
        phi = smooth_liquid(x);
    }
    // Far from the surface nobody asks which way it is.
    var towards_air = vec2<f32>(0.0, 1.0);
    if abs(phi) < 3.0 * dx {
        let h = 0.75 * dx;
        let slope = vec2<f32>(
            stage::liquid(x + vec3<f32>(h, 0.0, 0.0)) - stage::liquid(x - vec3<f32>(h, 0.0, 0.0)),
            stage::liquid(x + vec3<f32>(0.0, h, 0.0)) - stage::liquid(x - vec3<f32>(0.0, h, 0.0)),
        );
        towards_air = slope / max(length(slope), 1e-9);
    }

    // Air: plain, or tinted by its bubble with a darker hem.
    var colour = air;
    var number = 0u;
    if phi > -2.0 * pixel {
        number = bubble_near(x, towards_air);
    }
    if number != 0u {
        let own = stage::tint(number);
        let chosen = number == stage::look.layers.y;
        if own.a > 0.0 {
            let hem = exp(-max(phi, 0.0) / (2.5 * dx));
            var inner = air;
            if stage::shows(stage::LAYER_TINTS) {
                inner = mix(air, own.rgb, select(0.42, 0.62, dark) * (0.55 + 0.45 * hem));
            }
            if stage::shows(stage::LAYER_OUTLINES) || chosen {
                let width = select(2.2, 4.0, chosen) * pixel;
                let ring = 1.0 - smoothstep(0.5 * width, width, abs(phi - 0.6 * width));
                inner = mix(inner, own.rgb * select(0.62, 1.25, dark), ring * select(0.85, 1.0, chosen));
            }
            colour = inner;
        }
    }

#ifdef SMOKY
    colour = smoke::sheet(colour, x);
#endif

    // Liquid: deeper is darker, faster is brighter, a bright hem at the surface.
    let inside = clamp(0.5 - phi / pixel, 0.0, 1.0);
    if inside > 0.0 {
        let flow = velocity(x);
        let speed = length(flow.xy) / max(flow.w, 0.25) / stage::look.cut.w;
        let depth = clamp(-phi / dx, 0.0, 12.0);
        var body = mix(vec3<f32>(0.020, 0.165, 0.475), vec3<f32>(0.008, 0.075, 0.265), 1.0 - exp(-depth / 6.0));
        body = mix(body, vec3<f32>(0.045, 0.36, 0.70), smoothstep(0.05, 0.6, speed));
        body = mix(body, vec3<f32>(0.42, 0.78, 0.93), smoothstep(0.45, 1.25, speed));
        body = mix(body * 0.88, body * 1.12, height);
        let hem = exp(phi / max(1.1 * dx, 2.0 * pixel));
        // Light falls from above: surfaces that look up shine.
        let facing = clamp(0.35 + 0.65 * towards_air.y, 0.10, 1.0);
        body = mix(body, vec3<f32>(0.62, 0.87, 0.97), 0.55 * hem * facing);
        let line = 1.0 - smoothstep(0.6, 2.0, -phi / pixel);
        body = mix(body, vec3<f32>(0.80, 0.95, 1.0), 0.55 * line);
        colour = mix(colour, body, inside);
    }

    if inside > 0.0 {
        let layer = field_colour(x);
        colour = mix(colour, layer.rgb, layer.a * inside);
    }
    if stage::shows(stage::LAYER_REGIONS) {
        let own = region_colour(stage::region(x));
        colour = mix(colour, own.rgb, own.a);
    }
    if stage::shows(stage::LAYER_BANDS) {
        let own = band_colour(x, inside);
        colour = mix(colour, own.rgb, own.a);
    }
    if stage::shows(stage::LAYER_GRID) {
        colour = mix(colour, vec3<f32>(0.45, 0.5, 0.55), 0.35 * grid_lines(x, pixel));
    }

    // Solids lie on top, with a bevel.
    let to_solid = stage::solid(x);
    let solid_inside = clamp(0.5 - to_solid / pixel, 0.0, 1.0);
    if solid_inside > 0.0 {
        let into = smoothstep(0.0, 1.0, -to_solid / max(1.5 * dx, 3.0 * pixel));
        var body = mix(vec3<f32>(0.30, 0.31, 0.33), vec3<f32>(0.175, 0.182, 0.195), into);
        if dark {
            body = mix(vec3<f32>(0.22, 0.235, 0.26), vec3<f32>(0.105, 0.113, 0.128), into);
        }
        colour = mix(colour, body, solid_inside);
    }

    // The rim of the domain: dark where a side is closed, dashed where it is open.
    let page = stage::backdrop();
    let rim = 3.5 * pixel;
    if out > 0.0 {
        let closed = f32(closed_at(x));
        let edge = vec3<f32>(0.16, 0.175, 0.20);
        let wall = select(edge, vec3<f32>(0.30, 0.33, 0.38), dark);
        let cover = closed * (1.0 - smoothstep(rim - pixel, rim, out));
        return mix(page, wall, cover);
    }
    return colour;
}

// Whether the side beyond which a place lies is closed.
fn closed_at(x: vec3<f32>) -> bool {
    let open = stage::look.layers.w;
    let left = x.x < 0.0 && (open & 1u) != 0u;
    let right = x.x > stage::look.size.x && (open & 2u) != 0u;
    let bottom = x.y < 0.0 && (open & 4u) != 0u;
    let top = x.y > stage::look.size.y && (open & 8u) != 0u;
    return !(left || right || bottom || top);
}

fn shade(x: vec3<f32>, pixel: f32) -> vec4<f32> {
    return vec4<f32>(stage::soft_clip(picture(vec3<f32>(x.xy, 0.5 * stage::look.size.w), pixel)), 1.0);
}

// The layers on a slice through a 3D scene.
fn slice(x: vec3<f32>, pixel: f32) -> vec4<f32> {
    let inside = clamp(0.5 - stage::liquid(x) / pixel, 0.0, 1.0);
    var colour = vec4<f32>(0.0);
    let layer = field_colour(x);
    colour = vec4<f32>(layer.rgb, layer.a * inside);
    if stage::shows(stage::LAYER_REGIONS) {
        let own = region_colour(stage::region(x));
        let cover = own.a + colour.a * (1.0 - own.a);
        colour = vec4<f32>(mix(colour.rgb, own.rgb, own.a / max(cover, 1e-6)), cover);
    }
    if stage::shows(stage::LAYER_BANDS) {
        let own = band_colour(x, inside);
        let cover = own.a + colour.a * (1.0 - own.a);
        colour = vec4<f32>(mix(colour.rgb, own.rgb, own.a / max(cover, 1e-6)), cover);
    }
    if stage::shows(stage::LAYER_GRID) {
        let line = 0.5 * grid_lines(x, pixel);
        colour = vec4<f32>(mix(colour.rgb, vec3<f32>(0.3, 0.34, 0.4), line), max(colour.a, line));
    }
    return colour;
}
