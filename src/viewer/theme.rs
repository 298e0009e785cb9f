//! Colours, names and scales: one place for everything that must look the same in pictures, panels and legends.

use bevy::color::ColorToPacked;
use bevy::prelude::{Color, LinearRgba, Vec3, Vec4};
use bevy_egui::egui::{self, Color32, Stroke, Visuals};

use crate::sim::{Params, SolverKind};
use crate::snapshot::Scenery;

/// A layer that can be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its bit; the shaders know the same ones.
    pub bit: u32,
    /// The key that switches it.
    pub key: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub hint: &'static str,
    /// The solvers that have something to show there.
    pub solvers: &'static [SolverKind],
}

/// Bit of the bubbles' colours.
pub const COLOURS: u32 = 1;
/// Bit of the regions.
pub const REGIONS: u32 = 4;

/// Bit of the particles.
pub const PARTICLES: u32 = 8;
/// Bit of the arrows.
pub const ARROWS: u32 = 16;
/// Bit of the pressure slice.
pub const PRESSURE: u32 = 32;
/// Bit of the divergence slice.
pub const DIVERGENCE: u32 = 64;
/// Bit of the grid's lines.
pub const GRID: u32 = 128;
/// Bit of the cut.
pub const CUT: u32 = 256;
/// Bit of the tiles.
pub const TILES: u32 = 512;
/// Bit of the bands around tiles.
pub const BANDS: u32 = 1024;
/// Bit of the tiles' velocity fields.
pub const AFFINE: u32 = 2048;
/// Bit of the smoke.
pub const SMOKE: u32 = 4096;
/// Layers that only tiles have.
pub const TILE_LAYERS: u32 = TILES | BANDS | AFFINE;
/// Bit of the bubbles' labels.
pub const OUTLINES: u32 = 2;
/// Layers drawn on a slice in 3D.
pub const SLICE_LAYERS: u32 = REGIONS | PRESSURE | DIVERGENCE | GRID | TILE_LAYERS;
/// What is on at the start.
pub const FIRST_LAYERS: u32 = COLOURS | OUTLINES | SMOKE;

/// A layer of the grid solver.
const fn of_grid(bit: u32, key: &'static str, name: &'static str, hint: &'static str) -> Layer {
    Layer { bit, key, name, hint, solvers: &[SolverKind::Grid] }
}

/// All layers, in the order they are listed.
pub static LAYERS: [Layer; 13] = [
    of_grid(COLOURS, "1", "Bubble colours", "Every trapped bubble has a colour of its own, which it keeps."),
    of_grid(OUTLINES, "2", "Bubble labels", "Outlines with number and volume."),
    of_grid(REGIONS, "3", "Regions", "What the solver takes each cell for: liquid, air, solid, bubble."),
    of_grid(PARTICLES, "4", "Particles", "The particles that carry the liquid; warm colours are fast."),
    of_grid(ARROWS, "5", "Velocity", "Arrows along the flow."),
    of_grid(PRESSURE, "6", "Pressure", "Pressure in the liquid; on a cut in 3D."),
    of_grid(DIVERGENCE, "7", "Divergence", "Where the liquid expands (red) or shrinks (blue)."),
    of_grid(GRID, "8", "Grid", "Lines between cells, when they are large enough to see."),
    of_grid(CUT, "9", "Cutaway", "Takes the front of a 3D scene away; drag the slider or use Q and E."),
    of_grid(TILES, "0", "Tiles", "Boxes of fluid that the solver moves as one."),
    of_grid(
        BANDS,
        "N",
        "Bands",
        "The ordinary cells around tiles: at the surface, along walls, and between tiles.",
    ),
    of_grid(
        AFFINE,
        "A",
        "Affine field",
        "The velocity field of every tile: pins along the flow, and a square that turns and stretches with it.",
    ),
    of_grid(SMOKE, "S", "Smoke", "Smoke in the air; the hotter it is, the warmer its colour."),
];

/// The layers that a solver has something to show in.
pub fn layers_of(solver: SolverKind) -> impl Iterator<Item = &'static Layer> {
    LAYERS.iter().filter(move |layer| layer.solvers.contains(&solver))
}

fn linear(r: f32, g: f32, b: f32) -> Vec3 {
    let LinearRgba { red, green, blue, .. } = Color::srgb(r, g, b).to_linear();
    Vec3::new(red, green, blue)
}

/// A bubble's colour: soft, and different from its neighbours' numbers.
pub fn bubble_srgb(id: u64) -> [f32; 3] {
    // Steps of the golden ratio around the circle of hues never come back to the same place.
    let hue = (id as f64 * 0.618_033_988_75 + 0.08).fract() as f32;
    let level = 0.5 + 0.08 * ((id % 3) as f32 - 1.0);
    let channel = |shift: f32| {
        let angle = (hue + shift) * std::f32::consts::TAU;
        (level + 0.16 + 0.30 * angle.cos()).clamp(0.0, 1.0)
    };
    [channel(0.0), channel(-1.0 / 3.0), channel(1.0 / 3.0)]
}

/// A colour per bubble, in linear channels for shaders.
pub fn bubble_linear(id: u64) -> Vec3 {
    let [r, g, b] = bubble_srgb(id);
    linear(r, g, b)
}

/// A colour per bubble, for panels.
pub fn bubble_colour(id: u64) -> Color32 {
    let [r, g, b] = bubble_srgb(id).map(|channel| (channel * 255.0) as u8);
    Color32::from_rgb(r, g, b)
}

/// Colours of opaque bodies: fired clay, brass, slate.
pub fn solid_colour(index: usize) -> Vec4 {
    let colours = [[0.76, 0.50, 0.38], [0.78, 0.68, 0.45], [0.45, 0.52, 0.58], [0.62, 0.58, 0.66]];
    let [r, g, b] = colours[index % colours.len()];
    linear(r, g, b).extend(1.0)
}

/// The page behind everything; the shaders know the same colour.
pub fn backdrop(dark: bool) -> Color {
    if dark { Color::linear_rgb(0.0196, 0.0232, 0.0296) } else { Color::linear_rgb(0.775, 0.812, 0.845) }
}

/// The page as panels see it.
pub fn page(dark: bool) -> Color32 {
    let [r, g, b] = backdrop(dark).to_srgba().to_u8_array_no_alpha();
    Color32::from_rgb(r, g, b)
}

/// The ends of the scales for pressure (Pa) and divergence (1/s): they stay while the scene does.
pub fn scales(stage: &Scenery, params: &Params) -> [f32; 2] {
    let column = params.density as f32 * params.gravity.max(0.1) as f32 * stage.size[1];
    [round_up(column), 1.0]
}

/// The next of 1, 2, 5, 10, 20, …
pub fn round_up(value: f32) -> f32 {
    let power = 10f32.powf(value.max(1e-30).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= value * 0.999);
    step.unwrap_or(10.0) * power
}

/// The pressure scale, as in the shaders.
pub fn sequential(value: f32) -> Color32 {
    let stops = [[0.267, 0.005, 0.329], [0.190, 0.407, 0.556], [0.208, 0.719, 0.473], [0.993, 0.906, 0.144]];
    let smooth = |low: f32, high: f32| {
        let t = ((value - low) / (high - low)).clamp(0.0, 1.0);
        t * t * (3.0 - 2.0 * t)
    };
    let mix =
        |a: [f32; 3], b: [f32; 3], t: f32| std::array::from_fn::<f32, 3, _>(|k| a[k] + (b[k] - a[k]) * t);
    let low = mix(stops[0], stops[1], smooth(0.0, 0.34));
    let high = mix(stops[2], stops[3], smooth(0.64, 1.0));
    colour(mix(low, high, smooth(0.28, 0.70)))
}

/// The divergence scale, as in the shaders; −1 to 1.
pub fn diverging(value: f32) -> Color32 {
    let end = if value > 0.0 { [0.74, 0.13, 0.16] } else { [0.13, 0.32, 0.68] };
    let share = value.abs().min(1.0).sqrt();
    colour(std::array::from_fn(|k| [0.93, 0.93, 0.92][k] + (end[k] - [0.93, 0.93, 0.92][k]) * share))
}

fn colour(channels: [f32; 3]) -> Color32 {
    let [r, g, b] = channels.map(|channel| (channel.clamp(0.0, 1.0) * 255.0).round() as u8);
    Color32::from_rgb(r, g, b)
}

/// What ordinary cells around tiles are called, and their colours; the shaders know the same ones.
pub const BANDS_LEGEND: [(&str, Color32); 3] = [
    ("at the surface", Color32::from_rgb(250, 178, 66)),
    ("along walls", Color32::from_rgb(196, 112, 190)),
    ("between tiles", Color32::from_rgb(222, 238, 246)),
];

/// The ink of smoke over the page in 2D, for shares of the full density.
pub fn smoke(share: f32, dark: bool) -> Color32 {
    let [page, ink] = if dark {
        [[0.20, 0.22, 0.25], [0.55, 0.57, 0.60]]
    } else {
        [[0.95, 0.96, 0.98], [0.42, 0.44, 0.48]]
    };
    let cover = 1.0 - (-2.8 * share.max(0.0)).exp();
    colour(std::array::from_fn(|k| page[k] + (ink[k] - page[k]) * cover))
}

/// The colour of smoke in meters and plots.
pub const SMOKE_INK: Color32 = Color32::from_rgb(128, 134, 148);
/// The colour of liquid in meters and plots.
pub const LIQUID: Color32 = Color32::from_rgb(52, 132, 214);
/// The colour of trapped air in meters and plots.
pub const AIR: Color32 = Color32::from_rgb(235, 156, 62);
/// What hands hold.
pub const HAND: Color32 = Color32::from_rgb(180, 72, 196);
/// Something went wrong.
pub const ALARM: Color32 = Color32::from_rgb(214, 69, 65);

/// The panels' look.
pub fn apply(ctx: &egui::Context, dark: bool) {
    let theme = if dark { egui::Theme::Dark } else { egui::Theme::Light };
    let mut visuals = if dark { Visuals::dark() } else { Visuals::light() };
    // The font is thin: pale text would be unreadable on a projector.
    let ink = if dark { Color32::from_gray(222) } else { Color32::from_gray(22) };
    visuals.override_text_color = Some(ink);
    visuals.weak_text_color = Some(if dark { Color32::from_gray(165) } else { Color32::from_gray(92) });
    let accent = Color32::from_rgb(38, 120, 205);
    let [panel, faint, line] = if dark {
        [Color32::from_rgb(30, 33, 39), Color32::from_rgb(38, 42, 49), Color32::from_gray(58)]
    } else {
        [Color32::from_rgb(247, 248, 250), Color32::from_rgb(236, 239, 243), Color32::from_gray(208)]
    };
    visuals.panel_fill = panel;
    visuals.window_fill = panel;
    visuals.faint_bg_color = faint;
    visuals.extreme_bg_color = if dark { Color32::from_rgb(20, 22, 27) } else { Color32::WHITE };
    visuals.widgets.noninteractive.bg_stroke = Stroke::new(1.0, line);
    visuals.selection.bg_fill = if dark { accent } else { Color32::from_rgb(190, 217, 246) };
    visuals.selection.stroke =
        Stroke::new(1.0, if dark { Color32::WHITE } else { Color32::from_rgb(12, 62, 120) });
    visuals.hyperlink_color = accent;
    visuals.slider_trailing_fill = true;
    ctx.set_theme(theme);
    ctx.set_visuals_of(theme, visuals);
    ctx.all_styles_mut(|style| {
        style.text_styles.insert(egui::TextStyle::Small, egui::FontId::proportional(11.0));
        style.text_styles.insert(egui::TextStyle::Body, egui::FontId::proportional(13.5));
        style.spacing.item_spacing = egui::vec2(7.0, 6.0);
        style.spacing.button_padding = egui::vec2(8.0, 4.0);
        style.spacing.slider_width = 120.0;
        style.interaction.tooltip_delay = 0.35;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        assert_eq!([0.9, 1.0, 1.1, 3.0, 6867.0].map(round_up), [1.0, 1.0, 2.0, 5.0, 10_000.0]);
    }

    #[test]
    fn neighbouring_bubbles_have_different_colours() {
        for id in 0..200 {
            let (a, b) = (bubble_srgb(id), bubble_srgb(id + 1));
            let apart: f32 = (0..3).map(|k| (a[k] - b[k]).abs()).sum();
            assert!(apart > 0.2, "{id}: {a:?} {b:?}");
        }
    }

    #[test]
    fn every_layer_has_a_bit_and_a_key_of_its_own() {
        for (k, layer) in LAYERS.iter().enumerate() {
            assert!(egui::Key::from_name(layer.key).is_some(), "{} is a key", layer.key);
            let twin = LAYERS[..k].iter().find(|one| one.bit == layer.bit || one.key == layer.key);
            assert_eq!(twin, None, "{}", layer.name);
        }
    }
}
