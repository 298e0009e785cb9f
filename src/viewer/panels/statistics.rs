//! What the solver did: times by stage, iterations, residuals, unknowns, volumes.

use bevy_egui::egui::{self, Color32, RichText, Sense};
use egui_plot::{Legend, Line, Plot, PlotPoints};

use super::Data;
use super::meter::{SMOKE_HINT, bar_ui, drift_text, mass_text, volume_text};
use crate::runner::Phase;
use crate::sim::FrameReport;
use crate::snapshot::Snapshot;
use crate::viewer::entities::History;
use crate::viewer::session::Shown;
use crate::viewer::theme;

/// All panes' statistics, one below the other.
pub fn statistics_ui(ui: &mut egui::Ui, data: &Data) {
    for (index, shown) in data.panes.iter().enumerate() {
        if data.panes.len() > 1 {
            ui.label(RichText::new(shown.model.title()).strong().size(15.0));
        }
        pane_ui(ui, shown, index);
        if index + 1 < data.panes.len() {
            ui.separator();
        }
    }
    if data.frame_seconds > 0.0 {
        ui.separator();
        ui.weak(format!("window: {:.1} ms per frame", 1000.0 * data.frame_seconds));
    }
}

fn pane_ui(ui: &mut egui::Ui, shown: &Shown, index: usize) {
    if let Phase::Failed(message) = &shown.phase {
        ui.colored_label(theme::ALARM, message);
    }
    let Some(snapshot) = &shown.snapshot else {
        ui.weak("No simulation yet.");
        return;
    };
    let report = &snapshot.report;
    if snapshot.has_liquid() {
        volumes_ui(ui, shown, snapshot);
    }
    if let Some(smoke) = &report.smoke {
        ui.horizontal(|ui| {
            ui.colored_label(theme::SMOKE_INK, "Smoke");
            ui.monospace(mass_text(smoke.mass));
            ui.weak(drift_text(smoke.mass, shown.first_smoke));
        });
        bar_ui(ui, (smoke.mass / shown.first_smoke.max(1e-30)) as f32, theme::SMOKE_INK, 9.0)
            .on_hover_text(SMOKE_HINT);
    }
    volume_plot_ui(ui, shown, index);
    stages_ui(ui, report);
    numbers_ui(ui, snapshot);
    for warning in &report.warnings {
        ui.colored_label(theme::ALARM, warning);
    }
}

/// Liquid and trapped air against what they should be.
fn volumes_ui(ui: &mut egui::Ui, shown: &Shown, snapshot: &Snapshot) {
    let (liquid, dimension) = (snapshot.report.liquid.volume, snapshot.scenery.dimension);
    ui.horizontal(|ui| {
        ui.colored_label(theme::LIQUID, "Liquid");
        ui.monospace(volume_text(liquid, dimension));
        ui.weak(drift_text(liquid, snapshot.start_volume));
    });
    bar_ui(ui, (liquid / snapshot.start_volume.max(1e-30)) as f32, theme::LIQUID, 9.0)
        .on_hover_text("Volume of the liquid; the notch is what there was at the start.");
    let [air, rest] = snapshot.trapped_air();
    let reference = if rest > 0.0 { rest } else { shown.most_air };
    if reference > 0.0 {
        ui.horizontal(|ui| {
            ui.colored_label(theme::AIR, "Trapped air");
            ui.monospace(volume_text(air, dimension));
            ui.weak(drift_text(air, reference));
        });
        bar_ui(ui, (air / reference) as f32, theme::AIR, 9.0)
            .on_hover_text("All air that cannot escape; the notch is what it should be.");
    }
}

fn volume_plot_ui(ui: &mut egui::Ui, shown: &Shown, index: usize) {
    let Some(snapshot) = &shown.snapshot else { return };
    let start = snapshot.start_volume.max(1e-30);
    let most = shown.most_air.max(1e-30);
    let series = |history: &History, column: usize, scale: f64| -> PlotPoints<'_> {
        history.moments.iter().map(|moment| [moment[0], 100.0 * moment[column] / scale]).collect()
    };
    Plot::new(("volumes", index))
        .height(96.0)
        .allow_scroll(false)
        .allow_zoom(false)
        .allow_drag(false)
        .include_y(0.0)
        .include_y(110.0)
        .show_x(false)
        .y_axis_formatter(|mark, _| format!("{:.0} %", mark.value))
        .x_axis_formatter(|mark, _| format!("{:.1} s", mark.value))
        .legend(Legend::default().background_alpha(0.5))
        .show(ui, |plot| {
            let mut line =
                |name: &str, points, colour| plot.line(Line::new(name, points).color(colour).width(1.8));
            if snapshot.has_liquid() {
                line("liquid", series(&shown.history, 1, start), theme::LIQUID);
            }
            if shown.most_air > 0.0 {
                line("trapped air", series(&shown.history, 2, most), theme::AIR);
            }
            if shown.first_smoke > 0.0 {
                line("smoke", series(&shown.smoke_history, 1, shown.first_smoke), theme::SMOKE_INK);
            }
        });
}

/// A bar cut into the stages of a frame.
fn stages_ui(ui: &mut egui::Ui, report: &FrameReport) {
    let total = report.seconds.total;
    ui.horizontal(|ui| {
        ui.label(RichText::new("A frame takes").strong());
        ui.monospace(format!("{:.1} ms", 1000.0 * total));
        ui.weak(format!("in {} substeps", report.substeps));
    });
    if total <= 0.0 {
        return;
    }
    let mut stages: Vec<_> = report.seconds.stages.iter().collect();
    stages.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (rect, _) = ui.allocate_exact_size(egui::vec2(ui.available_width(), 14.0), Sense::hover());
    let mut x = rect.left();
    for (index, (stage, seconds)) in stages.iter().enumerate() {
        let width = rect.width() * (seconds / total) as f32;
        let part = egui::Rect::from_min_size(egui::pos2(x, rect.top()), egui::vec2(width, rect.height()));
        ui.painter().rect_filled(part, 0.0, stage_colour(index));
        let id = ui.id().with(("stage", stage.name()));
        ui.interact(part, id, Sense::hover()).on_hover_text(format!("{stage}: {:.2} ms", 1000.0 * seconds));
        x += width;
    }
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        for (index, (stage, seconds)) in stages.iter().enumerate().take(5) {
            // One text, so that a mark does not stay behind at the end of a line.
            let mut text = egui::text::LayoutJob::default();
            for part in [
                RichText::new("■ ").color(stage_colour(index)),
                RichText::new(format!("{stage} {:.1}", 1000.0 * seconds)),
            ] {
                part.small().append_to(
                    &mut text,
                    ui.style(),
                    egui::FontSelection::Default,
                    egui::Align::Center,
                );
            }
            ui.add(egui::Label::new(text).extend());
            ui.add_space(4.0);
        }
    });
}

fn stage_colour(index: usize) -> Color32 {
    let colours = [0x2f6fb5, 0x4fa3a5, 0x8fbf6b, 0xe0b04a, 0xd9784f, 0xa85c86, 0x7a6fb0, 0x8a8f98];
    let [_, r, g, b] = u32::to_be_bytes(colours[index.min(colours.len() - 1)]);
    Color32::from_rgb(r, g, b)
}

fn numbers_ui(ui: &mut egui::Ui, snapshot: &Snapshot) {
    let report = &snapshot.report;
    let grid = egui::Grid::new(("numbers", report.model)).num_columns(2).spacing([12.0, 3.0]);
    // Wide enough for every name, so that rows that come later do not shift the others.
    grid.min_col_width(112.0).show(ui, |ui| {
        let mut row = |name: &str, value: String, hint: &str| {
            ui.label(name).on_hover_text(hint);
            ui.label(RichText::new(value).monospace());
            ui.end_row();
        };
        if let Some(solve) = report.solve.last() {
            row("Iterations", solve.iterations.to_string(), "Of the last pressure solve");
            row(
                "Residual",
                format!("{:.1e}", solve.relative_residual),
                "What the solve left, relative to the start",
            );
        }
        let unknowns = &report.unknowns;
        row(
            "Unknowns",
            unknowns.pressure.to_string(),
            "One pressure per cell of liquid, and of air that has mass",
        );
        if unknowns.bubble > 0 {
            row("Bubble unknowns", unknowns.bubble.to_string(), "One pressure per bubble");
        }
        if report.tiles.count > 0 {
            row("Tiles", report.tiles.count.to_string(), "Parts of the liquid that move as a whole");
        }
        row(
            "Divergence",
            format!("{:.1e}", report.divergence.max),
            "Largest relative volume change in a substep",
        );
        if snapshot.has_liquid() {
            row("Particles", report.particles.to_string(), "That carry the liquid");
            row("Top speed", format!("{:.2} m/s", report.liquid.max_speed), "Of the fastest particle");
        }
        if let Some(smoke) = &report.smoke {
            row("Densest smoke", format!("{:.3} kg/m³", smoke.max_density), "Of all cells");
        }
        let cells: Vec<_> = report.cells_xyz.iter().map(usize::to_string).collect();
        row("Grid", cells.join(" × "), "Cells");
        row(
            "Picture data",
            format!("{:.1} + {:.1} ms", 1000.0 * snapshot.pause_seconds, 1000.0 * snapshot.draw_seconds),
            "What the solver waits to be copied + meshing and packing beside it",
        );
    });
}
