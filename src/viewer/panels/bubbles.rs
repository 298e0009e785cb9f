//! The table of bubbles and the plots of the selected one.

use bevy_egui::egui::{self, RichText, Sense};
use egui_extras::{Column, TableBuilder};
use egui_plot::{HLine, Line, Plot, PlotPoints};

use super::meter::{drift_text, volume_text};
use super::{Action, BubbleRow, Data};
use crate::bubbles::number;
use crate::viewer::theme;
use crate::viewer::ui_state::UiState;

/// All bubbles, those trapped first; a click selects one here and in the picture.
pub fn bubbles_ui(ui: &mut egui::Ui, ui_state: &mut UiState, data: &Data, actions: &mut Vec<Action>) {
    if data.bubbles.is_empty() {
        ui.weak("No bubbles here. Trapped air appears in this list with a number, a colour and its volume.");
        return;
    }
    let mut rows: Vec<&BubbleRow> = data.bubbles.iter().collect();
    rows.sort_by(|a, b| {
        let order = |row: &BubbleRow| (!row.trapped, row.key.0);
        order(a).cmp(&order(b)).then(b.report.volume.total_cmp(&a.report.volume))
    });
    let place = rows.iter().position(|row| Some(row.key) == ui_state.selected);
    let chosen = place.map(|place| rows[place]);
    let reveal = place.filter(|_| std::mem::take(&mut ui_state.reveal));
    let plots = if chosen.is_some() { 290.0 } else { 0.0 };
    let height = (ui.available_height() - plots).max(80.0);
    let dimension = data.camera.dimension;
    let two = data.panes.len() > 1;
    ui.push_id("bubble table", |ui| {
        // Text that can be marked would keep clicks from its row.
        ui.style_mut().interaction.selectable_labels = false;
        let table = TableBuilder::new(ui)
            .striped(true)
            .sense(Sense::click())
            .max_scroll_height(height)
            .min_scrolled_height(height.min(160.0))
            .column(Column::exact(if two { 58.0 } else { 46.0 }))
            .column(Column::auto().at_least(64.0))
            .column(Column::auto().at_least(58.0))
            .column(Column::remainder());
        let table = match reveal {
            Some(row) => table.scroll_to_row(row, None),
            None => table,
        };
        let table = table.header(18.0, |mut header| {
            for (name, hint) in [
                ("bubble", "Its number, for as long as it lives; specks have none"),
                ("volume", "Measured now"),
                ("drift", "Against what it should be"),
                ("pressure", "Above the outside air"),
            ] {
                header.col(|ui| {
                    ui.label(RichText::new(name).small().strong()).on_hover_text(hint);
                });
            }
        });
        table.body(|body| {
            body.rows(19.0, rows.len(), |mut line| {
                let row = rows[line.index()];
                line.set_selected(ui_state.selected == Some(row.key));
                line.col(|ui| {
                    let side = if two { ["L", "R"][row.key.0.min(1)] } else { "" };
                    ui.horizontal(|ui| {
                        dot_ui(ui, theme::bubble_colour(row.key.1), 4.0);
                        ui.label(format!("{side}{}", name_of(row.key.1)));
                    });
                });
                line.col(|ui| {
                    let words = if row.report.open {
                        "open".into()
                    } else {
                        volume_text(row.report.volume, dimension)
                    };
                    ui.monospace(words);
                });
                line.col(|ui| {
                    let words = match row.report.open {
                        true => String::new(),
                        false => drift_text(row.report.volume, row.report.rest_volume),
                    };
                    ui.monospace(words);
                });
                line.col(|ui| {
                    ui.monospace(format!("{:.0} Pa", row.report.pressure));
                });
                if line.response().clicked() {
                    let same = ui_state.selected == Some(row.key);
                    actions.push(Action::Select((!same).then_some(row.key)));
                }
            });
        });
    });
    if let Some(row) = chosen {
        chosen_ui(ui, row, dimension);
    }
}

/// What a bubble is called: its number, or a dash.
pub(super) fn name_of(id: u64) -> String {
    number(id).map_or_else(|| "–".into(), |number| number.to_string())
}

/// A bubble's colour; the font has no sign for it.
fn dot_ui(ui: &mut egui::Ui, colour: egui::Color32, radius: f32) {
    let (rect, _) = ui.allocate_exact_size(egui::Vec2::splat(2.0 * radius + 2.0), Sense::hover());
    ui.painter().circle_filled(rect.center(), radius, colour);
}

fn chosen_ui(ui: &mut egui::Ui, row: &BubbleRow, dimension: usize) {
    let report = &row.report;
    ui.separator();
    ui.horizontal(|ui| {
        dot_ui(ui, theme::bubble_colour(row.key.1), 6.0);
        let title = match number(row.key.1) {
            Some(number) => format!("Bubble {number}"),
            None if report.void => "A hole that is being closed".into(),
            None => "A speck".into(),
        };
        ui.label(RichText::new(title).strong());
        let speed = report.velocity.iter().map(|v| v * v).sum::<f64>().sqrt();
        ui.weak(format!("{speed:.2} m/s"));
        ui.weak(if report.constrained { "volume kept" } else { "free to collapse" });
    });
    let colour = theme::bubble_colour(row.key.1);
    let (scale, unit) = match dimension {
        2 => (1e4, "cm²"),
        _ if report.volume < 1e-3 => (1e6, "ml"),
        _ => (1e3, "l"),
    };
    plot_ui(ui, ("volume", row.key), unit, row, 1, scale, colour, Some(report.rest_volume * scale));
    plot_ui(ui, ("pressure", row.key), "Pa", row, 2, 1.0, colour, None);
}

#[allow(clippy::too_many_arguments, reason = "two calls, side by side")]
fn plot_ui(
    ui: &mut egui::Ui,
    id: (&str, (usize, u64)),
    unit: &str,
    row: &BubbleRow,
    column: usize,
    scale: f64,
    colour: egui::Color32,
    wanted: Option<f64>,
) {
    ui.label(RichText::new(format!("{} ({unit}) over time", id.0)).small());
    let points: PlotPoints<'_> =
        row.history.moments.iter().map(|moment| [moment[0], scale * moment[column]]).collect();
    Plot::new(id)
        .height(96.0)
        .allow_scroll(false)
        .allow_zoom(false)
        .allow_drag(false)
        .show_x(false)
        .include_y(0.0)
        .x_axis_formatter(|mark, _| format!("{:.1} s", mark.value))
        .show(ui, |plot| {
            plot.line(Line::new(id.0, points).color(colour).width(2.0));
            if let Some(wanted) = wanted.filter(|wanted| *wanted > 0.0) {
                plot.hline(HLine::new("wanted", wanted).color(egui::Color32::GRAY).width(1.0));
            }
        });
}
