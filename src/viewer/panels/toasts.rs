//! Messages in the corner.

use bevy_egui::egui::{self, RichText};

use super::Action;
use crate::viewer::desk::Desk;
use crate::viewer::theme;

/// Draws the messages, newest at the bottom.
pub fn toasts_ui(ctx: &egui::Context, desk: &mut Desk, actions: &mut Vec<Action>) {
    desk.tidy();
    if desk.toasts.is_empty() {
        return;
    }
    let mut gone = None;
    egui::Area::new("toasts".into())
        .anchor(egui::Align2::CENTER_BOTTOM, egui::vec2(0.0, -54.0))
        .order(egui::Order::Foreground)
        .show(ctx, |ui| {
            for (index, toast) in desk.toasts.iter().enumerate() {
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
                        if toast.alarm && ui.small_button("✕").clicked() {
                            gone = Some(index);
                        }
                    });
                });
            }
        });
    if let Some(index) = gone {
        desk.toasts.remove(index);
    }
}
