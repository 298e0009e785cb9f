//! Bars that compare a volume with what it should be.

use bevy_egui::egui::{self, Color32, RichText, Sense, Stroke};

use crate::viewer::session::Shown;
use crate::viewer::theme;

/// What the bar of smoke says.
pub const SMOKE_HINT: &str = "Mass of the smoke; the notch is what there was at the start.";

/// A volume in words: litres or cubic metres in space, square centimetres in the plane.
pub fn volume_text(volume: f64, dimension: usize) -> String {
    let (value, unit) = match dimension {
        2 => (volume * 1e4, "cm²"),
        _ if volume < 1e-3 => (volume * 1e6, "ml"),
        _ if volume >= 10.0 => (volume, "m³"),
        _ => (volume * 1e3, "l"),
    };
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0} {unit}"),
        size if size >= 1.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.2} {unit}"),
    }
}

/// A mass in words; in the plane it is that of one metre of depth.
pub fn mass_text(mass: f64) -> String {
    match mass.abs() {
        size if size >= 1.0 => format!("{mass:.2} kg"),
        size if size >= 1e-3 || size == 0.0 => format!("{:.1} g", 1e3 * mass),
        _ => format!("{:.1} mg", 1e6 * mass),
    }
}

/// How far a volume or a mass is off, in percent.
pub fn drift_text(now: f64, then: f64) -> String {
    if then <= 0.0 {
        return String::new();
    }
    let drift = 100.0 * (now / then - 1.0);
    // Not minus nothing.
    let drift = if drift.abs() < 0.005 { 0.0 } else { drift };
    format!("{drift:+.2} %")
}

/// A bar filled to a share of its reference, which a notch marks.
pub fn bar_ui(ui: &mut egui::Ui, share: f32, colour: Color32, height: f32) -> egui::Response {
    // The reference stands at four fifths, so that too much can be seen as well.
    const NOTCH: f32 = 0.8;
    let (rect, response) = ui.allocate_exact_size(egui::vec2(ui.available_width(), height), Sense::hover());
    let painter = ui.painter();
    let back = ui.visuals().extreme_bg_color;
    painter.rect_filled(rect, height / 2.0, back);
    let share = if share.is_finite() { share } else { 0.0 };
    let width = rect.width() * (share * NOTCH).clamp(0.0, 1.0);
    let filled = egui::Rect::from_min_size(rect.min, egui::vec2(width, height));
    painter.rect_filled(filled, height / 2.0, colour);
    let x = rect.left() + NOTCH * rect.width();
    let stroke = Stroke::new(1.5, ui.visuals().strong_text_color());
    painter.vline(x, rect.top() - 2.0..=rect.bottom() + 2.0, stroke);
    painter.rect_stroke(
        rect,
        height / 2.0,
        ui.visuals().widgets.noninteractive.bg_stroke,
        egui::StrokeKind::Inside,
    );
    response
}

/// The meters below a picture: trapped air against what it should be, liquid against the start; smoke where there is some.
pub fn meters_ui(ui: &mut egui::Ui, shown: &Shown) {
    let Some(snapshot) = &shown.snapshot else { return };
    let dimension = snapshot.scenery.dimension;
    let [air, rest] = snapshot.trapped_air();
    let reference = if rest > 0.0 { rest } else { shown.most_air };
    ui.horizontal(|ui| {
        let width = ui.available_width();
        if let Some(smoke) = snapshot.report.smoke.as_ref().filter(|_| !snapshot.has_liquid()) {
            ui.label(RichText::new("smoke").color(theme::SMOKE_INK).strong());
            ui.scope(|ui| {
                ui.set_width((width * 0.30).max(40.0));
                bar_ui(ui, (smoke.mass / shown.first_smoke.max(1e-30)) as f32, theme::SMOKE_INK, 11.0)
                    .on_hover_text(SMOKE_HINT);
            });
            ui.label(RichText::new(mass_text(smoke.mass)).monospace());
            if width > 420.0 {
                ui.label(RichText::new(drift_text(smoke.mass, shown.first_smoke)).monospace().weak());
            }
            return;
        }
        if reference > 0.0 {
            ui.label(RichText::new("trapped air").color(theme::AIR).strong());
            ui.scope(|ui| {
                ui.set_width((width * 0.30).max(40.0));
                bar_ui(ui, (air / reference) as f32, theme::AIR, 11.0)
                    .on_hover_text("All air that cannot escape; the notch is what it should be.");
            });
            ui.label(RichText::new(volume_text(air, dimension)).monospace());
            if width > 420.0 {
                ui.label(RichText::new(drift_text(air, reference)).monospace().weak());
            }
        } else {
            ui.label(RichText::new("no trapped air").weak());
        }
        if width > 560.0 {
            ui.separator();
            let liquid = snapshot.report.liquid.volume;
            ui.label(RichText::new("liquid").color(theme::LIQUID).strong());
            ui.label(RichText::new(volume_text(liquid, dimension)).monospace());
            ui.label(RichText::new(drift_text(liquid, snapshot.start_volume)).monospace().weak());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_read_well() {
        assert_eq!(mass_text(2.5), "2.50 kg");
        assert_eq!(mass_text(0.035), "35.0 g");
        assert_eq!(mass_text(0.0), "0.0 g");
        assert_eq!(mass_text(4.2e-6), "4.2 mg");
    }

    #[test]
    fn volumes_read_well() {
        assert_eq!(volume_text(0.0123, 2), "123 cm²");
        assert_eq!(volume_text(0.0005, 3), "500 ml");
        assert_eq!(volume_text(0.0123, 3), "12.3 l");
        assert_eq!(volume_text(112.8, 3), "113 m³");
        assert_eq!(drift_text(1.01, 1.0), "+1.00 %");
        assert_eq!(drift_text(0.9999999, 1.0), "+0.00 %");
        assert_eq!(drift_text(1.0, 0.0), "");
    }
}
