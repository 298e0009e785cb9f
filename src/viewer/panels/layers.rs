//! What is drawn, with its keys.

use bevy_egui::egui;

use super::{Action, Data};
use crate::viewer::theme;
use crate::viewer::ui_state::UiState;

/// The list of layers and the cut.
pub fn layers_ui(ui: &mut egui::Ui, ui_state: &UiState, data: &Data, actions: &mut Vec<Action>) {
    let space = data.camera.dimension == 3;
    for layer in data.layers().filter(|layer| space || layer.bit != theme::CUT) {
        let mut on = ui_state.layers & layer.bit != 0;
        ui.horizontal(|ui| {
            ui.add_sized([12.0, 14.0], egui::Label::new(egui::RichText::new(layer.key).weak()));
            if ui.checkbox(&mut on, layer.name).on_hover_text(layer.hint).changed() {
                actions.push(Action::Layer(layer.bit));
            }
        });
    }
    if space {
        ui.add_space(6.0);
        let mut cut = ui_state.cut;
        let slider = egui::Slider::new(&mut cut, 0.0..=1.0).text("cut and slice").fixed_decimals(2);
        if ui.add(slider).on_hover_text("Where the cut and the slices are, back to front (Q, E)").changed() {
            actions.push(Action::Cut(cut));
        }
    }
}
