//! Sliders: unit, plain words, range, reset, and whether a change acts at once.

use bevy_egui::egui::{self, RichText};

use super::Action;
use crate::sim::{Level, ParamInfo, ParamKind, ParamValue, Params, params_table};

/// The list of parameters, with the values in use.
pub fn parameters_ui(
    ui: &mut egui::Ui,
    params: Option<&Params>,
    advanced: &mut bool,
    actions: &mut Vec<Action>,
) {
    let Some(params) = params else {
        ui.weak("No simulation yet.");
        return;
    };
    let is_basic = |info: &ParamInfo| info.level == Level::Basic && info.acts_in(params);
    for info in params_table().iter().filter(|info| is_basic(info)) {
        parameter_ui(ui, info, params, actions);
    }
    ui.add_space(6.0);
    ui.checkbox(advanced, "Solver settings")
        .on_hover_text("Tolerances and other things for people who tune solvers");
    if *advanced {
        let solver = params.model.solver();
        let is_rare =
            |info: &ParamInfo| info.level != Level::Picture && info.is_of(solver) && !is_basic(info);
        let rare: Vec<_> = params_table().iter().filter(|info| is_rare(info)).collect();
        for group in rare.chunk_by(|a, b| a.group == b.group) {
            ui.add_space(4.0);
            ui.weak(group[0].group.title());
            for &info in group {
                parameter_ui(ui, info, params, actions);
            }
        }
    }
}

fn parameter_ui(ui: &mut egui::Ui, info: &'static ParamInfo, params: &Params, actions: &mut Vec<Action>) {
    let value = (info.get)(params);
    let mut hint = format!("{}\nAllowed: {}. Default: {}.", info.summary, info.kind, info.default_value());
    let acts = info.acts_in(params);
    if !acts {
        let models: Vec<_> = info.models.iter().map(|model| model.title()).collect();
        hint += &format!("\nNot in use now. For: {}.", models.join(", "));
    }
    ui.horizontal(|ui| {
        let name = RichText::new(info.title).strong();
        ui.label(if acts { name } else { name.weak() }).on_hover_text(&hint);
        badge_ui(ui, info.live);
        if value != info.default_value() {
            let reset = ui.small_button("⟲").on_hover_text(format!("Back to {}", info.default_value()));
            if reset.clicked() {
                actions.push(Action::Set(info, info.default_value()));
            }
        }
    });
    // It can be changed all the same, before a model that looks at it is chosen.
    let widget = ui.scope(|ui| {
        if !acts {
            ui.multiply_opacity(0.5);
        }
        value_ui(ui, info, &value, &hint)
    });
    if let Some(changed) = widget.inner {
        actions.push(Action::Set(info, changed));
    }
    ui.add_space(3.0);
}

pub(super) fn badge_ui(ui: &mut egui::Ui, live: bool) {
    let (text, hint) = match live {
        true => ("live", "Acts on the next substep"),
        false => ("restarts", "Starts the scene again"),
    };
    let colour =
        if live { egui::Color32::from_rgb(38, 132, 80) } else { egui::Color32::from_rgb(186, 108, 20) };
    ui.label(RichText::new(text).small().color(colour)).on_hover_text(hint);
}

/// A widget for a value; the new value when it was changed.
fn value_ui(ui: &mut egui::Ui, info: &ParamInfo, value: &ParamValue, hint: &str) -> Option<ParamValue> {
    ui.spacing_mut().slider_width = (ui.available_width() - 90.0).clamp(60.0, 260.0);
    match (info.kind, value) {
        (ParamKind::Number { min, max }, ParamValue::Number(number)) => {
            let mut number = *number;
            // Ranges over many orders of magnitude are walked in steps of ratios, and so are tiny ones from zero.
            let wide = if min > 0.0 { max / min > 1000.0 } else { max <= 0.01 };
            let slider = egui::Slider::new(&mut number, min..=max)
                .logarithmic(wide)
                .smallest_positive(min.max(1e-10))
                .custom_formatter(|number, _| short(number))
                .suffix(unit(info));
            let response = ui.add(slider).on_hover_text(hint);
            let back = response.double_clicked().then(|| info.default_value());
            back.or(response.changed().then(|| ParamValue::Number(number.clamp(min, max))))
        }
        (ParamKind::Whole { min, max }, ParamValue::Number(number)) => {
            let mut number = *number as u32;
            let slider = egui::Slider::new(&mut number, min..=max).logarithmic(max > 500).suffix(unit(info));
            let response = ui.add(slider).on_hover_text(hint);
            let back = response.double_clicked().then(|| info.default_value());
            back.or(response.changed().then(|| ParamValue::Number(number.clamp(min, max).into())))
        }
        (ParamKind::Switch, ParamValue::Switch(on)) => {
            let mut on = *on;
            let words = if on { "on" } else { "off" };
            let changed = ui.checkbox(&mut on, words).on_hover_text(hint).changed();
            changed.then_some(ParamValue::Switch(on))
        }
        (ParamKind::Choice(names), ParamValue::Choice(name)) => {
            let mut chosen = *name;
            egui::ComboBox::from_id_salt(info.name).selected_text(chosen).show_ui(ui, |ui| {
                for one in names {
                    ui.selectable_value(&mut chosen, one, *one);
                }
            });
            (chosen != *name).then_some(ParamValue::Choice(chosen))
        }
        _ => None,
    }
}

fn unit(info: &ParamInfo) -> String {
    if info.unit.is_empty() { String::new() } else { format!(" {}", info.unit) }
}

/// A number in few characters.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        size if !(1e-3..1e5).contains(&size) => format!("{number:.1e}"),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}
