//! Messages in the corner.

use bevy_egui::egui::{self, RichText};

use super::Action;
use crate::viewer::theme;
use crate::viewer::ui_state::UiState;

/// Draws the messages, newest at the bottom.
pub fn toasts_ui(ctx: &egui::Context, ui_state: &mut UiState, actions: &mut Vec<Action>) {
    ui_state.tidy();
    if ui_state.toasts.is_empty() {
        return;
    }
    let mut gone = None;
    egui::Area::new("toasts".into())
        .anchor(egui::Align2::CENTER_BOTTOM, egui::vec2(0.0, -54.0))
        .order(egui::Order::Foreground)
        .show(ctx, |ui| {
            for (index, toast) in ui_state.toasts.iter().enumerate() {
                egui::Frame::window(ui.style()).show(ui, |ui| {
                    ui.set_max_width(460.0);
                    ui.horizontal_wrapped(|ui| {
                        if toast.alarm {
                            ui.label(RichText::new("⚠").color(theme::ALARM).size(16.0));
                        }
                        ui.label(&toast.text);
                        if toast.alarm && ui.button("Reset").clicked() {
                            actions.push(Action::Reset);
                            gone = Some(index);
                        }
                        if let Some(cells) = toast.offer {
                            let button = ui.button(format!("Restart with {cells} cells"));
                            let hint =
                                "Fewer cells along x: the scene starts again and keeps up with the clock";
                            if button.on_hover_text(hint).clicked() {
                                actions.push(Action::Coarser(cells));
                                gone = Some(index);
                            }
                        }
                        let stays = toast.alarm || toast.offer.is_some();
                        if stays && ui.small_button("✕").on_hover_text("Leave it as it is").clicked() {
                            gone = Some(index);
                        }
                    });
                });
            }
        });
    if let Some(index) = gone {
        ui_state.toasts.remove(index);
    }
}
