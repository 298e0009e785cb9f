//! The panels: plain functions from what is known to what should be done. They know nothing of the renderer.

mod bodies;
mod bubbles;
mod gallery;
mod help;
mod keys;
mod labels;
mod layers;
mod meter;
mod parameters;
mod picture;
mod resolution;
mod statistics;
mod toasts;
mod transport;

use bevy_egui::egui::{self, Panel, RichText};

pub use gallery::{Card, cards};
pub use keys::key_actions;

use super::action::{Action, BodyKey, BubbleKey};
use super::entities::History;
use super::session::{Resolution, Shown};
use super::stage::OrbitCamera;
use super::theme;
use super::ui_state::{LeftTab, RightTab, UiState};
use crate::sim::{BodyReport, BubbleReport, SolverKind};
#[cfg(doc)]
use crate::snapshot::Snapshot;

/// Below this width, side panels would leave nothing of the pictures.
const NARROW: f32 = 760.0;

/// A bubble with its past.
#[derive(Clone, Debug)]
pub struct BubbleRow {
    /// Which.
    pub key: BubbleKey,
    /// As it was last seen.
    pub report: BubbleReport,
    /// Volume and pressure over time.
    pub history: History,
    /// Whether it is a bubble to people, see [`Snapshot::is_trapped`].
    pub trapped: bool,
}

/// A body.
#[derive(Clone, Debug)]
pub struct BodyRow {
    /// Which.
    pub key: BodyKey,
    /// As it was last seen.
    pub report: BodyReport,
}

/// Everything the panels look at.
pub struct Data<'a> {
    /// The panes, left to right.
    pub panes: &'a [Shown],
    /// Their pictures.
    pub pictures: &'a [egui::TextureId],
    /// Whether time goes on.
    pub playing: bool,
    /// How fast at most.
    pub speed: f64,
    /// The scene asked for.
    pub scene: &'a str,
    /// How its number of cells came about.
    pub resolution: Resolution,
    /// All bubbles of all panes.
    pub bubbles: &'a [BubbleRow],
    /// All bodies of all panes, by pane and number.
    pub bodies: &'a [BodyRow],
    /// The scenes on offer.
    pub cards: &'a [Card],
    /// Where pictures are taken from.
    pub camera: OrbitCamera,
    /// Seconds between the last frames of the window.
    pub frame_seconds: f32,
}

impl Data<'_> {
    /// Whether any simulation has tiles to show.
    fn has_tiles(&self) -> bool {
        let mut snapshots = self.panes.iter().filter_map(|pane| pane.snapshot.as_ref());
        snapshots.any(|snapshot| !snapshot.tiles.is_empty())
    }

    /// Whether there is smoke in any simulation.
    fn has_smoke(&self) -> bool {
        let mut snapshots = self.panes.iter().filter_map(|pane| pane.snapshot.as_ref());
        snapshots.any(|snapshot| snapshot.cells.smoke.is_some())
    }

    /// The solver in use.
    fn solver(&self) -> SolverKind {
        self.panes.first().map_or(SolverKind::default(), |pane| pane.model.solver())
    }

    /// The layers that there is something to see in.
    fn layers(&self) -> impl Iterator<Item = &'static theme::Layer> {
        let nothing_in = [(self.has_tiles(), theme::TILE_LAYERS), (self.has_smoke(), theme::SMOKE)]
            .into_iter()
            .filter(|(is_there, _)| !is_there)
            .fold(0, |bits, (_, layers)| bits | layers);
        theme::layers_of(self.solver()).filter(move |layer| layer.bit & nothing_in == 0)
    }
}

/// Draws everything; says what should be done.
pub fn show(ui: &mut egui::Ui, ui_state: &mut UiState, data: &Data) -> Vec<Action> {
    let mut actions = Vec::new();
    if ui_state.bare {
        picture::pictures_ui(ui, ui_state, data, &mut actions);
        return actions;
    }
    let width = ui.available_width();
    let height = ui.available_height();
    if height > 120.0 {
        Panel::top("title").show(ui, |ui| title_ui(ui, ui_state, data, &mut actions));
    }
    if height > 90.0 {
        Panel::bottom("transport").show(ui, |ui| transport::transport_ui(ui, data, &mut actions));
    }
    if ui_state.panels && width > NARROW && height > 260.0 {
        let most = (width * 0.3).max(180.0);
        Panel::left("left")
            .resizable(true)
            .default_size(270.0_f32.min(most))
            .size_range(180.0..=most)
            .show(ui, |ui| left_ui(ui, ui_state, data, &mut actions));
        Panel::right("right")
            .resizable(true)
            .default_size(300.0_f32.min(most))
            .size_range(180.0..=most)
            .show(ui, |ui| right_ui(ui, ui_state, data, &mut actions));
    }
    picture::pictures_ui(ui, ui_state, data, &mut actions);
    toasts::toasts_ui(ui.ctx(), ui_state, &mut actions);
    if ui_state.help {
        help::help_ui(ui.ctx(), &mut ui_state.help, data.layers());
    }
    actions
}

fn title_ui(ui: &mut egui::Ui, ui_state: &mut UiState, data: &Data, actions: &mut Vec<Action>) {
    ui.add_space(2.0);
    ui.horizontal(|ui| {
        ui.label(RichText::new("glug").strong().size(19.0).color(theme::LIQUID));
        ui.separator();
        let title =
            data.panes.iter().find_map(|pane| pane.snapshot.as_ref()).map(|s| s.scenery.title.clone());
        ui.label(RichText::new(title.unwrap_or_else(|| data.scene.to_owned())).size(15.0));
        ui.separator();
        models_ui(ui, data, actions);
        let compare = data.panes.len() > 1;
        let button = ui.selectable_label(compare, "Compare");
        if button.on_hover_text("Two models side by side, same scene, same clock (C)").clicked() {
            actions.push(Action::ToggleCompare);
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if ui.button("?").on_hover_text("Keys (H)").clicked() {
                actions.push(Action::ToggleHelp);
            }
            let theme = if ui_state.dark { "☀" } else { "🌙" };
            if ui.button(theme).on_hover_text("Light or dark (T)").clicked() {
                actions.push(Action::ToggleDark);
            }
            let mut scale = ui_state.scale;
            ui.menu_button("Aa", |ui| {
                for size in [0.8, 1.0, 1.25, 1.5, 2.0] {
                    ui.selectable_value(&mut scale, size, format!("{:.0} %", size * 100.0));
                }
            })
            .response
            .on_hover_text("Size of text and widgets");
            if scale != ui_state.scale {
                actions.push(Action::Scale(scale));
            }
            if ui.selectable_label(ui_state.panels, "Panels").on_hover_text("Side panels (Tab)").clicked() {
                actions.push(Action::TogglePanels);
            }
        });
    });
    ui.add_space(2.0);
}

/// The model of each pane, to be changed while it runs.
fn models_ui(ui: &mut egui::Ui, data: &Data, actions: &mut Vec<Action>) {
    for (pane, shown) in data.panes.iter().enumerate() {
        let mut model = shown.model;
        egui::ComboBox::from_id_salt(("model", pane)).selected_text(model.title()).show_ui(ui, |ui| {
            for one in shown.models() {
                ui.selectable_value(&mut model, one, one.title()).on_hover_text(one.summary());
            }
        });
        if model != shown.model {
            actions.push(Action::Model(pane, model));
        }
        if pane + 1 < data.panes.len() {
            ui.label("against");
        }
    }
}

fn left_ui(ui: &mut egui::Ui, ui_state: &mut UiState, data: &Data, actions: &mut Vec<Action>) {
    ui.add_space(4.0);
    ui.horizontal(|ui| {
        for (tab, name) in
            [(LeftTab::Scenes, "Scenes"), (LeftTab::Parameters, "Parameters"), (LeftTab::Layers, "Layers")]
        {
            ui.selectable_value(&mut ui_state.left, tab, RichText::new(name).strong());
        }
    });
    ui.separator();
    egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| match ui_state.left {
        LeftTab::Scenes => gallery::gallery_ui(ui, data.cards, data.scene, actions),
        LeftTab::Parameters => {
            resolution::resolution_ui(ui, &mut ui_state.cells_draft, data, actions);
            let params = data.panes.iter().find_map(|pane| pane.snapshot.as_ref()).map(|s| &s.params);
            parameters::parameters_ui(ui, params, &mut ui_state.advanced, actions);
        }
        LeftTab::Layers => layers::layers_ui(ui, ui_state, data, actions),
    });
}

fn right_ui(ui: &mut egui::Ui, ui_state: &mut UiState, data: &Data, actions: &mut Vec<Action>) {
    ui.add_space(4.0);
    ui.horizontal(|ui| {
        let trapped = data.bubbles.iter().filter(|row| row.trapped).count();
        for (tab, name) in [
            (RightTab::Statistics, "Statistics".to_owned()),
            (RightTab::Bubbles, format!("Bubbles ({trapped})")),
            (RightTab::Bodies, "Bodies".to_owned()),
        ] {
            ui.selectable_value(&mut ui_state.right, tab, RichText::new(name).strong());
        }
    });
    ui.separator();
    match ui_state.right {
        RightTab::Statistics => {
            egui::ScrollArea::vertical()
                .auto_shrink(false)
                .show(ui, |ui| statistics::statistics_ui(ui, data));
        }
        RightTab::Bubbles => bubbles::bubbles_ui(ui, ui_state, data, actions),
        RightTab::Bodies => {
            egui::ScrollArea::vertical()
                .auto_shrink(false)
                .show(ui, |ui| bodies::bodies_ui(ui, ui_state, data, actions));
        }
    }
}
