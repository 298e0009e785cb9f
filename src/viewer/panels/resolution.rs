//! How many cells there are, who decided that, and the ways to change it.

use bevy_egui::egui::{self, RichText};

use super::parameters::badge_ui;
use super::{Action, Data};
use crate::snapshot::Scenery;

/// The fewest cells on the slider.
const FEWEST: usize = 16;
/// Numbers on the slider are multiples of this: whole blocks of the grid.
const APART: usize = 8;
/// The most cells on the slider.
const MOST: usize = 1024;

fn scenery<'a>(data: &'a Data) -> Option<&'a Scenery> {
    data.panes.iter().find_map(|pane| pane.snapshot.as_ref()).map(|snapshot| &*snapshot.scenery)
}

/// The number of cells along x, the grid that follows from it, and the switch that lets the machine decide.
pub fn resolution_ui(ui: &mut egui::Ui, draft: &mut Option<usize>, data: &Data, actions: &mut Vec<Action>) {
    let Some(scenery) = scenery(data) else { return };
    let (cells, own) = (scenery.cells[0], scenery.own_cells);
    let name = ui
        .horizontal(|ui| {
            let name = ui.label(RichText::new("Resolution").strong()).on_hover_text("Cells along x");
            badge_ui(ui, false);
            if data.resolution.asked.is_some() {
                let hint = match data.resolution.keep_real_time {
                    true => "Back to what keeps real time".to_owned(),
                    false => format!("Back to the scene's own: {own}"),
                };
                if ui.small_button("⟲").on_hover_text(hint).clicked() {
                    actions.push(Action::Cells(None));
                }
            }
            name
        })
        .inner;
    let mut wanted = draft.unwrap_or(cells);
    let most = ((if scenery.dimension == 2 { 4 } else { 2 }) * own).clamp(64, MOST).max(cells);
    let slider = ui
        .scope(|ui| {
            ui.spacing_mut().slider_width = (ui.available_width() - 90.0).clamp(60.0, 260.0);
            ui.add(
                egui::Slider::new(&mut wanted, FEWEST.min(cells)..=most)
                    .step_by(APART as f64)
                    .logarithmic(true)
                    .suffix(" cells"),
            )
        })
        .inner
        .labelled_by(name.id)
        .on_hover_text("Cells along x. The scene starts again when the slider is let go.");
    if slider.changed() {
        *draft = Some(wanted);
    }
    if !slider.is_pointer_button_down_on()
        && !slider.dragged()
        && !slider.has_focus()
        && let Some(wanted) = draft.take()
        && wanted != cells
    {
        actions.push(Action::Cells(Some(wanted)));
    }
    let size = scenery.cells[..scenery.dimension.max(1)].iter().map(usize::to_string);
    ui.weak(format!("{} cells · scene's own: {own}", size.collect::<Vec<_>>().join(" × ")));
    let mut keep = data.resolution.keep_real_time;
    let hint = "Scenes open at the finest resolution, up to their own, that keeps up with the clock on this machine. \
        It is measured once, and never changes in the middle of a run.";
    if ui.checkbox(&mut keep, "Keep real time").on_hover_text(hint).changed() {
        actions.push(Action::KeepRealTime(keep));
    }
    if let Some(text) = in_words(data, cells, own) {
        ui.weak(text);
    }
    if data.resolution.chosen.is_some() {
        let button = ui.small_button("Measure again");
        if button.on_hover_text("If this machine was busy when it was measured. Starts again.").clicked() {
            actions.push(Action::MeasureAgain);
        }
    }
    ui.add_space(6.0);
    ui.separator();
}

/// In the bar below the pictures: that there are fewer cells than the scene asks for, and the way back.
pub fn note_ui(ui: &mut egui::Ui, data: &Data, actions: &mut Vec<Action>) {
    let Some(scenery) = scenery(data) else { return };
    let (cells, own) = (scenery.cells[0], scenery.own_cells);
    if data.resolution.is_measuring || data.resolution.chosen.is_none() || cells == own {
        return;
    }
    ui.separator();
    ui.label(RichText::new(format!("{own} → {cells} cells, to keep real time")).weak());
    let button = ui.small_button(format!("{own} cells"));
    if button.on_hover_text("The scene's own resolution; starts again").clicked() {
        actions.push(Action::Cells(Some(own)));
    }
}

/// Who decided.
fn in_words(data: &Data, cells: usize, own: usize) -> Option<String> {
    let resolution = &data.resolution;
    if resolution.is_measuring {
        return Some("Measuring what this machine can do…".to_owned());
    }
    if resolution.asked.is_some() {
        return Some("Chosen by hand.".to_owned());
    }
    let choice = resolution.chosen?;
    Some(match choice.keeps_up() {
        true if cells == own => "The scene's own resolution keeps up.".to_owned(),
        true => format!("{own} → {cells} cells, to keep real time."),
        false => format!("{own} → {cells} cells: the coarsest, and still slower than real time."),
    })
}
