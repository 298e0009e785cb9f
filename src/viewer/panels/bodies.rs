//! Bodies: what a click puts in, how hands pull, the list of all, and the selected one's numbers.

use bevy_egui::egui::{self, RichText, Slider};

use super::meter::bar_ui;
use super::{Action, BodyRow, Data};
use crate::sim::{DENSITIES, Form, STRENGTHS};
use crate::viewer::theme;
use crate::viewer::ui_state::{HandState, UiState};

/// Densities to choose from, kg/m³.
const MATERIALS: [(&str, f64); 6] = [
    ("cork", 200.0),
    ("wood", 600.0),
    ("ice", 917.0),
    ("water", 1000.0),
    ("stone", 2500.0),
    ("iron", 7800.0),
];

/// The palette, the hand, and the list.
pub fn bodies_ui(ui: &mut egui::Ui, ui_state: &mut UiState, data: &Data, actions: &mut Vec<Action>) {
    palette_ui(ui, &mut ui_state.hands, actions);
    ui.separator();
    hand_ui(ui, &mut ui_state.hands);
    ui.separator();
    if data.bodies.is_empty() {
        ui.weak("No bodies here. Choose a shape above and click into the picture to put one in.");
        return;
    }
    list_ui(ui, ui_state, data, actions);
    if let Some(row) = data.bodies.iter().find(|row| Some(row.key) == ui_state.selected_body) {
        ui.separator();
        chosen_ui(ui, row, data.camera.dimension, actions);
    }
}

fn palette_ui(ui: &mut egui::Ui, hands: &mut HandState, actions: &mut Vec<Action>) {
    ui.horizontal(|ui| {
        ui.label(RichText::new("Put in").strong());
        for (form, name) in Form::ALL.into_iter().zip(["Ball", "Box", "Capsule", "Cup"]) {
            let chosen = hands.form == Some(form);
            let hint = "Then click into the picture, as often as you like; Escape puts it away";
            if ui.selectable_label(chosen, name).on_hover_text(hint).clicked() {
                actions.push(Action::Arm((!chosen).then_some(form)));
            }
        }
    });
    let [least, most] = DENSITIES;
    let density = Slider::new(&mut hands.density, least..=most).logarithmic(true).suffix(" kg/m³");
    ui.add(density.max_decimals(0)).on_hover_text("Its density; water has 1000");
    ui.horizontal_wrapped(|ui| {
        for (name, density) in MATERIALS {
            if ui.small_button(name).on_hover_text(format!("{density} kg/m³")).clicked() {
                hands.density = density;
            }
        }
    });
    let size = Slider::new(&mut hands.size, 0.08..=0.5).text("size").fixed_decimals(2);
    ui.add(size).on_hover_text("Its longest side, as a share of the domain's shortest");
}

fn hand_ui(ui: &mut egui::Ui, hands: &mut HandState) {
    ui.label(RichText::new("Hand").strong())
        .on_hover_text("Drag a body to pull it; let go to throw it; with Shift it stays held");
    let [least, most] = STRENGTHS;
    let strength = Slider::new(&mut hands.hold.strength, least..=most).logarithmic(true).suffix(" 1/s");
    ui.add(strength.text("strength").fixed_decimals(0))
        .on_hover_text("How fast what is held follows the pointer");
    ui.add(Slider::new(&mut hands.hold.damping, 0.1..=3.0).text("damping").fixed_decimals(1))
        .on_hover_text("1 comes to rest the soonest; less swings, more creeps");
    ui.checkbox(&mut hands.hold.steady, "Steady")
        .on_hover_text("Keeps what is held from turning; otherwise it hangs from where it is held");
}

fn list_ui(ui: &mut egui::Ui, ui_state: &UiState, data: &Data, actions: &mut Vec<Action>) {
    let two = data.panes.len() > 1;
    for row in data.bodies {
        let side = if two { ["L  ", "R  "][row.key.0.min(1)] } else { "" };
        let held = if row.report.pull.is_some() { "  (held)" } else { "" };
        let chosen = ui_state.selected_body == Some(row.key);
        let name = format!("{side}{}{held}", row.report.name);
        if ui.selectable_label(chosen, name).clicked() {
            actions.push(Action::SelectBody((!chosen).then_some(row.key)));
        }
    }
}

fn chosen_ui(ui: &mut egui::Ui, row: &BodyRow, dimension: usize, actions: &mut Vec<Action>) {
    let report = &row.report;
    // A metre of depth belongs to all numbers in 2D.
    let per = if dimension == 2 { "/m" } else { "" };
    ui.horizontal(|ui| {
        ui.label(RichText::new(&report.name).strong());
        if report.pull.is_some() && ui.small_button("Let go").on_hover_text("Ends the pull on it").clicked() {
            actions.push(Action::Release(report.id));
        }
        if ui.small_button("Take out").on_hover_text("Takes the body out (Delete)").clicked() {
            actions.push(Action::TakeOut);
        }
    });
    let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let vector = |v: &[f64]| v.iter().map(|v| format!("{v:.2}")).collect::<Vec<_>>().join(", ");
    let mut rows = vec![
        ("mass", format!("{} kg{per}", number(report.mass)), "What it weighs"),
        ("density", format!("{} kg/m³", number(report.mass / report.volume)), "Its mass over its volume"),
        ("speed", format!("{:.2} m/s", length(&report.velocity)), "Of its centre of mass"),
        ("velocity", format!("({}) m/s", vector(&report.velocity)), "Of its centre of mass"),
        ("spin", format!("{:.2} rad/s", length(&report.angular_velocity)), "How fast it turns"),
        ("liquid", format!("({}) N{per}", force(&report.force)), "The force of the liquid on it"),
    ];
    if let Some(pull) = &report.pull {
        rows.push(("hand", format!("({}) N{per}", force(&pull.force)), "The force of the hand on it"));
    }
    egui::Grid::new("body").num_columns(2).spacing([12.0, 3.0]).show(ui, |ui| {
        for (name, value, hint) in rows {
            ui.label(RichText::new(name).small()).on_hover_text(hint);
            ui.monospace(value);
            ui.end_row();
        }
    });
    ui.label(RichText::new(format!("under liquid: {:.0} %", 100.0 * report.submerged)).small());
    bar_ui(ui, report.submerged as f32, theme::LIQUID, 9.0)
        .on_hover_text("The share of its volume that is under liquid; the notch is all of it.");
}

/// With three digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn force(values: &[f64]) -> String {
    values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ")
}
