//! Play, pause, step, reset, speed, time.

use bevy_egui::egui::{self, RichText};

use super::{Action, Data, resolution};
use crate::runner::Phase;
use crate::viewer::theme;

/// The bar below the pictures.
pub fn transport_ui(ui: &mut egui::Ui, data: &Data, actions: &mut Vec<Action>) {
    ui.add_space(3.0);
    ui.horizontal(|ui| {
        let big =
            |text: &str| egui::Button::new(RichText::new(text).size(16.0)).min_size(egui::vec2(34.0, 26.0));
        if ui.add(big("⏮")).on_hover_text("Start again (R)").clicked() {
            actions.push(Action::Reset);
        }
        let (sign, hint) = if data.playing { ("⏸", "Pause (Space)") } else { ("▶", "Play (Space)") };
        if ui.add(big(sign)).on_hover_text(hint).clicked() {
            actions.push(Action::TogglePlay);
        }
        if ui.add(big("⏭")).on_hover_text("One frame (.)").clicked() {
            actions.push(Action::Step);
        }
        let (state, colour) = state_of(data);
        let colour = colour.unwrap_or(ui.visuals().text_color());
        ui.label(RichText::new(state).strong().color(colour));
        ui.separator();
        if let Some(snapshot) = data.panes.iter().find_map(|pane| pane.snapshot.as_ref()) {
            let report = &snapshot.report;
            ui.label(RichText::new(format!("{:.3} s", report.time)).monospace().size(15.0));
            ui.label(RichText::new(format!("frame {}", report.frame)).monospace().weak());
            ui.separator();
        }
        let mut speed = data.speed;
        let slider =
            egui::Slider::new(&mut speed, 0.05..=4.0).logarithmic(true).fixed_decimals(2).suffix("×");
        if ui.add(slider).on_hover_text("How fast time may pass; double-click for real time").changed() {
            actions.push(Action::Speed(speed));
        }
        if (speed - 1.0).abs() > 1e-6 && ui.small_button("1×").on_hover_text("Real time").clicked() {
            actions.push(Action::Speed(1.0));
        }
        ui.separator();
        pace_ui(ui, data);
        resolution::note_ui(ui, data, actions);
    });
    ui.add_space(3.0);
}

/// How much of real time the slowest simulation keeps up with.
fn pace_ui(ui: &mut egui::Ui, data: &Data) {
    let paces =
        data.panes.iter().filter_map(|pane| pane.snapshot.as_ref()).map(|s| s.pace).filter(|p| *p > 0.0);
    let pace = paces.fold(f64::INFINITY, f64::min);
    if !pace.is_finite() {
        return;
    }
    let text = match pace {
        pace if pace < 0.95 * data.speed.min(1.0) => {
            format!("{:.1}× slower than real time", 1.0 / pace.max(1e-6))
        }
        pace if pace > 1.05 => format!("{pace:.1}× real time"),
        pace if pace < 0.95 => format!("{pace:.2}× real time"),
        _ => "real time".to_owned(),
    };
    ui.label(RichText::new(text).weak()).on_hover_text(
        "When the solver is slower than the clock, simulated time slows down; the window does not.",
    );
}

fn state_of(data: &Data) -> (String, Option<egui::Color32>) {
    if data.panes.iter().any(|pane| matches!(pane.phase, Phase::Failed(_))) {
        return ("stopped".to_owned(), Some(theme::ALARM));
    }
    if data.panes.iter().any(|pane| pane.phase == Phase::Loading) {
        let doing = if data.resolution.is_measuring { "measuring…" } else { "loading…" };
        return (doing.to_owned(), None);
    }
    (if data.playing { "playing" } else { "paused" }.to_owned(), None)
}
