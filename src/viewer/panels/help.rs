//! The sheet of keys.

use bevy_egui::egui::{self, RichText};

use crate::viewer::theme::Layer;

const KEYS: [(&str, &str); 17] = [
    ("Space", "play or pause"),
    (".", "one frame"),
    ("R", "start again"),
    ("B", "next model, mid-run"),
    ("C", "compare two models side by side"),
    ("F", "show everything"),
    ("drag", "turn (3D) or shift (2D) the view"),
    ("right drag", "shift the view"),
    ("scroll", "closer, farther"),
    ("click", "select a body or a bubble"),
    ("drag a body", "pull it; let go to throw it"),
    ("… Shift", "while letting go: it stays held"),
    ("Delete", "take the selected body out"),
    ("Q  E", "move the cut and the slice"),
    ("T", "light or dark"),
    ("Tab", "side panels"),
    ("F12", "save a picture of the window"),
];

/// The sheet, with the layers there are; closes with its button, `H`, `?` or Escape.
pub fn help_ui(ctx: &egui::Context, open: &mut bool, layers: impl Iterator<Item = &'static Layer>) {
    egui::Window::new("Keys")
        .open(open)
        .collapsible(false)
        .resizable(false)
        .anchor(egui::Align2::CENTER_CENTER, egui::Vec2::ZERO)
        .show(ctx, |ui| {
            egui::Grid::new("keys").num_columns(4).spacing([14.0, 5.0]).show(ui, |ui| {
                let layers = layers.map(|layer| (layer.key, layer.name));
                let mut layers = layers.map(Some).chain(std::iter::repeat(None));
                for (key, meaning) in KEYS {
                    ui.label(RichText::new(key).monospace().strong());
                    ui.label(meaning);
                    if let Some((key, name)) = layers.next().flatten() {
                        ui.label(RichText::new(key).monospace().strong());
                        ui.label(name);
                    }
                    ui.end_row();
                }
            });
            ui.add_space(4.0);
            ui.weak("H or ? closes this sheet.");
        });
}
