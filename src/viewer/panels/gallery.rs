//! The scenes on offer, with pictures.

use bevy_egui::egui::{self, ColorImage, RichText, TextureHandle};

use super::Action;
use crate::scene::{self, Overrides, library};

macro_rules! thumbnails {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../../assets/thumbnails/", $name, ".png")))),*]
    };
}

/// Pictures of the built-in scenes, part of the program; made by `make pictures`.
const PICTURES: &[(&str, &[u8])] = thumbnails![
    "ball_and_hole_2d",
    "ball_in_circle_2d",
    "ball_in_circle_tiles_2d",
    "ball_in_circle_whole_2d",
    "bubble_tube",
    "bubble_tube_2d",
    "carbonated_glass",
    "cartesian_diver",
    "cartesian_diver_2d",
    "ceiling_drip_2d",
    "cork_and_bubbles",
    "cup_under_water",
    "cup_under_water_2d",
    "dam_break",
    "dam_break_2d",
    "diving_bell_2d",
    "duck_pond",
    "faucet",
    "floating_boxes",
    "floating_boxes_2d",
    "heavy_bubble_2d",
    "ice_in_a_glass",
    "light_bubble_2d",
    "moving_platform",
    "neutral_bubble",
    "neutral_bubble_2d",
    "paddle_smoke_2d",
    "paddle_wheel_2d",
    "piston_on_air",
    "pool_tiles_2d",
    "released_bubble",
    "released_bubble_2d",
    "released_heavy_bubble",
    "released_heavy_bubble_2d",
    "rising_bubble_2d",
    "rising_bubbles",
    "seesaw_2d",
    "sinking_bubbles",
    "splash_tank",
    "splash_tank_tiles",
    "stirred_smoke",
    "tilted_tank_2d",
    "vortex_box_2d",
    "wall_splash_2d",
    "wall_with_holes",
    "water_cooler",
    "water_cooler_2d",
];

/// A scene as the gallery shows it.
#[derive(Clone)]
pub struct Card {
    /// What to load it by.
    pub name: String,
    /// A few words.
    pub title: String,
    /// A sentence or two.
    pub summary: String,
    /// The published figure it follows.
    pub figure: Option<String>,
    /// `2D, 128 × 128`.
    pub size: String,
    /// Its picture, if there is one.
    pub picture: Option<TextureHandle>,
}

/// Cards of all built-in scenes; textures are made with the context, if there is one.
pub fn cards(ctx: Option<&egui::Context>) -> Vec<Card> {
    let card = |name: &'static str| {
        let scene = scene::load(name, &Overrides::default()).ok()?;
        let cells: Vec<_> = scene.cells().iter().map(usize::to_string).collect();
        let picture = PICTURES.iter().find(|(of, _)| *of == name).and_then(|(_, png)| decode(png));
        Some(Card {
            name: name.to_owned(),
            title: scene.title().to_owned(),
            summary: scene.summary().to_owned(),
            figure: scene.figure().map(str::to_owned),
            size: format!("{}D, {} cells", scene.dimension(), cells.join(" × ")),
            picture: ctx.zip(picture).map(|(ctx, image)| ctx.load_texture(name, image, Default::default())),
        })
    };
    library().iter().filter_map(|scene| card(scene.name)).collect()
}

fn decode(png: &[u8]) -> Option<ColorImage> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut pixels).ok()?;
    let size = [info.width as usize, info.height as usize];
    match info.color_type {
        png::ColorType::Rgb => Some(ColorImage::from_rgb(size, &pixels[..3 * size[0] * size[1]])),
        png::ColorType::Rgba => {
            Some(ColorImage::from_rgba_unmultiplied(size, &pixels[..4 * size[0] * size[1]]))
        }
        _ => None,
    }
}

/// The list of scenes; a click opens one.
pub fn gallery_ui(ui: &mut egui::Ui, cards: &[Card], current: &str, actions: &mut Vec<Action>) {
    for card in cards {
        let chosen = card.name == current;
        let visuals = ui.visuals();
        let fill = if chosen { visuals.selection.bg_fill } else { visuals.faint_bg_color };
        let frame = egui::Frame::new().fill(fill).corner_radius(6.0).inner_margin(7.0);
        let shown = frame.show(ui, |ui| {
            ui.set_width(ui.available_width());
            if let Some(picture) = &card.picture {
                let width = ui.available_width();
                let size = picture.size_vec2();
                ui.add(
                    egui::Image::new((picture.id(), egui::vec2(width, width * size.y / size.x.max(1.0))))
                        .corner_radius(4.0),
                );
            }
            ui.label(RichText::new(&card.title).strong());
            ui.label(RichText::new(&card.size).small().weak());
            ui.label(RichText::new(&card.summary).small());
            if let Some(figure) = &card.figure {
                ui.label(RichText::new(figure).small().italics());
            }
        });
        let response = ui.interact(shown.response.rect, ui.id().with(&card.name), egui::Sense::click());
        let response = response.on_hover_cursor(egui::CursorIcon::PointingHand);
        response.widget_info(|| {
            egui::WidgetInfo::labeled(egui::WidgetType::Button, true, format!("Open {}", card.title))
        });
        if response.clicked() {
            actions.push(Action::Load(card.name.clone()));
        }
        ui.add_space(2.0);
    }
}
