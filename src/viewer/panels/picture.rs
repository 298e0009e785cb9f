//! The pictures of the simulations, with captions, labels, legends and meters; and the mouse on them.

use bevy::prelude::{Rect as Area, Vec2, Vec3};
use bevy_egui::egui::{self, Align2, Color32, CornerRadius, FontId, Pos2, Rect, Sense, Stroke, vec2};

use super::labels::labels_ui;
use super::meter::meters_ui;
use super::{Action, BubbleKey, Data};
use crate::runner::Phase;
use crate::snapshot::Snapshot;
use crate::viewer::session::Shown;
use crate::viewer::theme;
use crate::viewer::ui_state::UiState;

/// Height of the strip below a picture.
const STRIP: f32 = 30.0;
/// Between two pictures.
const GAP: f32 = 3.0;

/// All panes side by side, in what the panels leave free.
pub fn pictures_ui(ui: &mut egui::Ui, ui_state: &mut UiState, data: &Data, actions: &mut Vec<Action>) {
    let frame = egui::Frame::new().fill(theme::page(ui_state.dark));
    ui_state.pictures.clear();
    egui::CentralPanel::default().frame(frame).show(ui, |ui| {
        let all = ui.max_rect();
        let stage =
            data.panes.iter().find_map(|pane| pane.snapshot.as_ref()).map(|snapshot| &snapshot.scenery);
        let shape =
            stage.filter(|stage| stage.dimension == 2).map_or(1.0, |stage| stage.size[0] / stage.size[1]);
        for (pane, shown) in data.panes.iter().enumerate() {
            let whole = place(all, pane, data.panes.len(), shape);
            let strip = if whole.height() > 140.0 && !ui_state.plain { STRIP } else { 0.0 };
            let picture = Rect::from_min_max(whole.min, whole.max - vec2(0.0, strip));
            let corner = |at: Pos2| Vec2::new(at.x, at.y);
            ui_state.pictures.push(Area { min: corner(picture.min), max: corner(picture.max) });
            picture_ui(ui, picture, pane, shown, ui_state, data, actions);
            if strip > 0.0 {
                let strip = Rect::from_min_max(Pos2::new(whole.left(), picture.bottom()), whole.max);
                ui.painter().rect_filled(strip, 0.0, ui.visuals().panel_fill);
                let inner = strip.shrink2(vec2(10.0, 3.0));
                ui.scope_builder(egui::UiBuilder::new().max_rect(inner), |ui| meters_ui(ui, shown));
            }
        }
    });
}

/// The part of an area that belongs to a pane: side by side, or one above the other when the scene is so wide that
/// it is larger then.
fn place(all: Rect, pane: usize, count: usize, shape: f32) -> Rect {
    let share = |length: f32| ((length - GAP * (count - 1) as f32) / count as f32).max(1.0);
    let beside = vec2(share(all.width()), all.height().max(1.0));
    let below = vec2(all.width().max(1.0), share(all.height()));
    let height = |size: egui::Vec2| (size.y - STRIP).min(size.x / shape);
    if height(below) > height(beside) {
        Rect::from_min_size(all.min + vec2(0.0, (below.y + GAP) * pane as f32), below)
    } else {
        Rect::from_min_size(all.min + vec2((beside.x + GAP) * pane as f32, 0.0), beside)
    }
}

fn picture_ui(
    ui: &mut egui::Ui,
    rect: Rect,
    pane: usize,
    shown: &Shown,
    ui_state: &UiState,
    data: &Data,
    actions: &mut Vec<Action>,
) {
    if let Some(&texture) = data.pictures.get(pane).filter(|_| shown.snapshot.is_some()) {
        let whole = Rect::from_min_max(Pos2::ZERO, Pos2::new(1.0, 1.0));
        ui.painter().image(texture, rect, whole, Color32::WHITE);
    }
    if ui_state.plain {
        return;
    }
    let response = ui.interact(rect, ui.id().with(("picture", pane)), Sense::click_and_drag());
    let painter = ui.painter().with_clip_rect(rect);
    let mut labelled = Vec::new();
    if let Some(snapshot) = &shown.snapshot {
        if ui_state.layers & theme::OUTLINES != 0 {
            labelled = labels_ui(&painter, rect, pane, snapshot, ui_state, data);
        }
        legend(&painter, rect, snapshot, ui_state);
        if ui_state.layers & theme::BANDS != 0 && snapshot.cells.roles.is_some() {
            bands_legend(&painter, rect, ui_state);
        }
    }
    hands_ui(&painter, rect, pane, shown, ui_state, data);
    mouse(ui, &response, rect, pane, &labelled, ui_state, data, actions);
    caption(&painter, rect, shown, ui_state, data);
}

/// Drags pull bodies, or turn or shift the view; scrolling zooms; a click selects a body or a bubble, or puts a body in.
#[allow(clippy::too_many_arguments, reason = "one call")]
fn mouse(
    ui: &egui::Ui,
    response: &egui::Response,
    rect: Rect,
    pane: usize,
    labelled: &[(Rect, BubbleKey)],
    ui_state: &UiState,
    data: &Data,
    actions: &mut Vec<Action>,
) {
    let height = rect.height().max(1.0);
    let share =
        |at: Pos2| Vec2::new((at.x - rect.left()) / rect.width().max(1.0), (at.y - rect.top()) / height);
    let drag = response.drag_delta() / height;
    let shift = ui.input(|input| input.modifiers.shift);
    let (pressed, down, pointer) = ui.input(|input| {
        let pointer = &input.pointer;
        (pointer.primary_pressed(), pointer.primary_down(), pointer.latest_pos())
    });
    if ui_state.hands.grabbed.is_some_and(|grabbed| grabbed.pane == pane) {
        ui.ctx().set_cursor_icon(egui::CursorIcon::Grabbing);
        actions.extend(pointer.map(|at| Action::Pull(share(at))));
        if !down {
            actions.push(Action::LetGo { keep: shift });
        }
        return clicked(response, pane, labelled, &share, actions);
    }
    if ui_state.hands.form.is_some() {
        if response.hovered() {
            ui.ctx().set_cursor_icon(egui::CursorIcon::Crosshair);
        }
        if let Some(at) = response.interact_pointer_pos().filter(|_| response.clicked()) {
            return actions.push(Action::PutIn(share(at)));
        }
    } else if pressed && response.contains_pointer() {
        actions.extend(pointer.map(|at| Action::Grab(pane, share(at))));
    }
    let turn = data.camera.dimension == 3 && response.dragged_by(egui::PointerButton::Primary) && !shift;
    if turn {
        actions.push(Action::Orbit(3.2 * drag.x, 3.2 * drag.y));
    } else if drag != egui::Vec2::ZERO {
        actions.push(Action::Pan(drag.x, drag.y));
    }
    if let Some(at) = response.hover_pos() {
        let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
        let factor = (-scroll * 0.0022).exp() / pinch;
        if (factor - 1.0).abs() > 1e-4 {
            actions.push(Action::Zoom(factor, pane, share(at)));
        }
    }
    clicked(response, pane, labelled, &share, actions);
}

/// A click selects, two show everything.
fn clicked(
    response: &egui::Response,
    pane: usize,
    labelled: &[(Rect, BubbleKey)],
    share: &dyn Fn(Pos2) -> Vec2,
    actions: &mut Vec<Action>,
) {
    if response.double_clicked() {
        actions.push(Action::FrameAll);
    } else if let Some(at) = response.interact_pointer_pos().filter(|_| response.clicked()) {
        // More important ones come first.
        let label = labelled.iter().find(|(label, _)| label.contains(at));
        actions.push(match label {
            Some((_, bubble)) => Action::Select(Some(*bubble)),
            None => Action::Pick(pane, share(at)),
        });
    }
}

/// The bodies that are pulled, with where to; the selected one; and how large one will be that a click puts in.
fn hands_ui(
    painter: &egui::Painter,
    rect: Rect,
    pane: usize,
    shown: &Shown,
    ui_state: &UiState,
    data: &Data,
) {
    let Some(snapshot) = &shown.snapshot else { return };
    let ink = if ui_state.dark { Color32::WHITE } else { Color32::from_gray(25) };
    let place = |x: &[f64]| {
        let at = |axis: usize| x.get(axis).copied().unwrap_or(0.0) as f32;
        let aspect = rect.width() / rect.height().max(1.0);
        let at = data.camera.project(Vec3::new(at(0), at(1), at(2)), aspect)?;
        Some(rect.min + vec2(at.x * rect.width(), at.y * rect.height()))
    };
    for row in data.bodies.iter().filter(|row| row.key.0 == pane) {
        if let Some(pull) = &row.report.pull
            && let (Some(from), Some(to)) = (place(&pull.at), place(&pull.target))
        {
            painter.line_segment([from, to], Stroke::new(2.5, theme::HAND));
            painter.circle_filled(from, 4.0, theme::HAND);
            painter.circle_stroke(to, 6.0, Stroke::new(2.0, theme::HAND));
        }
        if ui_state.selected_body == Some(row.key)
            && let Some(at) = place(&row.report.position)
        {
            let text = painter.layout_no_wrap(row.report.name.clone(), FontId::proportional(12.5), ink);
            let back = Rect::from_center_size(at, text.size() + vec2(10.0, 4.0));
            let fill =
                if ui_state.dark { Color32::from_black_alpha(130) } else { Color32::from_white_alpha(170) };
            painter.rect_filled(back, 6.0, fill);
            painter.rect_stroke(back, 6.0, Stroke::new(2.0, theme::HAND), egui::StrokeKind::Inside);
            painter.galley(back.center() - text.size() / 2.0, text, ink);
        }
    }
    let pointer = painter.ctx().pointer_latest_pos().filter(|at| rect.contains(*at));
    if let (Some(_), Some(at), 2) = (ui_state.hands.form, pointer, data.camera.dimension) {
        let stage = &snapshot.scenery;
        let metres = ui_state.hands.size as f32 * stage.size[0].min(stage.size[1]);
        let radius = 0.5 * metres / data.camera.height * rect.height();
        painter.circle_stroke(at, radius, Stroke::new(1.5, theme::HAND));
    }
}

/// The scale of the field that is shown.
fn legend(painter: &egui::Painter, rect: Rect, snapshot: &Snapshot, ui_state: &UiState) {
    let [pressure, divergence] = theme::scales(&snapshot.scenery, &snapshot.params);
    type Scale = (&'static str, [String; 3], fn(f32, bool) -> Color32);
    let smoke = snapshot.cells.smoke.as_ref().filter(|smoke| smoke.full_density > 0.0);
    let scale: Scale = if ui_state.layers & theme::PRESSURE != 0 {
        let words = |share: f32| format!("{}", (share * pressure).round());
        ("pressure, Pa", [words(0.0), words(0.5), words(1.0)], |t, _| theme::sequential(t))
    } else if ui_state.layers & theme::DIVERGENCE != 0 {
        let words = |share: f32| format!("{:+.1}", share * divergence);
        ("divergence, 1/s", [words(-1.0), "0".into(), words(1.0)], |t, _| theme::diverging(2.0 * t - 1.0))
    } else if let Some(smoke) =
        smoke.filter(|_| ui_state.layers & theme::SMOKE != 0 && snapshot.scenery.dimension == 2)
    {
        // In space the light in the smoke says more than its density.
        let words = |share: f32| format!("{}", (share * smoke.full_density * 1e4).round() / 1e4);
        ("smoke, kg/m³", [words(0.0), words(0.5), words(1.0)], theme::smoke)
    } else {
        return;
    };
    let (title, marks, colour) = scale;
    let size = vec2(150.0_f32.min(rect.width() * 0.6), 10.0);
    let bar = Rect::from_min_size(Pos2::new(rect.right() - size.x - 18.0, rect.bottom() - 34.0), size);
    let ink = if ui_state.dark { Color32::from_gray(225) } else { Color32::from_gray(30) };
    let back = bar.expand2(vec2(12.0, 20.0));
    let fill = if ui_state.dark { Color32::from_black_alpha(140) } else { Color32::from_white_alpha(190) };
    painter.rect_filled(back, 6.0, fill);
    const PARTS: usize = 48;
    for part in 0..PARTS {
        let x = |k: usize| bar.left() + bar.width() * k as f32 / PARTS as f32;
        let piece =
            Rect::from_min_max(Pos2::new(x(part), bar.top()), Pos2::new(x(part + 1) + 0.5, bar.bottom()));
        painter.rect_filled(
            piece,
            CornerRadius::ZERO,
            colour((part as f32 + 0.5) / PARTS as f32, ui_state.dark),
        );
    }
    painter.text(
        bar.center_top() - vec2(0.0, 3.0),
        Align2::CENTER_BOTTOM,
        title,
        FontId::proportional(11.0),
        ink,
    );
    let anchors = [Align2::LEFT_TOP, Align2::CENTER_TOP, Align2::RIGHT_TOP];
    for ((k, mark), anchor) in marks.into_iter().enumerate().zip(anchors) {
        let x = bar.left() + bar.width() * k as f32 / 2.0;
        painter.text(Pos2::new(x, bar.bottom() + 2.0), anchor, mark, FontId::monospace(10.5), ink);
    }
}

/// What the colours of the bands mean.
fn bands_legend(painter: &egui::Painter, rect: Rect, ui_state: &UiState) {
    let ink = if ui_state.dark { Color32::from_gray(225) } else { Color32::from_gray(30) };
    let fill = if ui_state.dark { Color32::from_black_alpha(140) } else { Color32::from_white_alpha(190) };
    let row = 17.0;
    let size = vec2(128.0, row * (theme::BANDS_LEGEND.len() + 1) as f32 + 10.0);
    // The scale of a field lies to the right.
    let back = Rect::from_min_size(Pos2::new(rect.left() + 14.0, rect.bottom() - size.y - 12.0), size);
    painter.rect_filled(back, 6.0, fill);
    let at = |line: usize| back.min + vec2(10.0, 5.0 + row * (line as f32 + 0.5));
    painter.text(at(0), Align2::LEFT_CENTER, "ordinary cells", FontId::proportional(11.0), ink);
    for (line, (words, colour)) in theme::BANDS_LEGEND.into_iter().enumerate() {
        let at = at(line + 1);
        painter.rect_filled(Rect::from_center_size(at + vec2(6.0, 0.0), vec2(12.0, 12.0)), 2.0, colour);
        painter.text(at + vec2(18.0, 0.0), Align2::LEFT_CENTER, words, FontId::proportional(11.0), ink);
    }
}

/// The model's name, and what the simulation says.
fn caption(painter: &egui::Painter, rect: Rect, shown: &Shown, ui_state: &UiState, data: &Data) {
    if rect.width() < 120.0 || rect.height() < 80.0 {
        return;
    }
    let ink = if ui_state.dark { Color32::from_gray(238) } else { Color32::from_gray(24) };
    let size = (rect.width() / 26.0).clamp(14.0, 26.0).round();
    let at = rect.min + vec2(14.0, 10.0);
    let name = shown.model.title().to_owned();
    let title = painter.layout_no_wrap(name, FontId::proportional(size), ink);
    let hint = shown.model.summary();
    let below = painter.layout(
        hint.to_owned(),
        FontId::proportional(size * 0.58),
        ink.gamma_multiply(0.85),
        (rect.width() - 28.0).max(40.0),
    );
    let below_at = at + vec2(0.0, title.size().y + 1.0);
    painter.galley(at, title, ink);
    painter.galley(below_at, below, ink);
    if ui_state.bare
        && let Some(snapshot) = &shown.snapshot
    {
        let time = format!("{:.2} s", snapshot.report.time);
        let at = rect.right_top() + vec2(-14.0, 12.0);
        painter.text(at, Align2::RIGHT_TOP, time, FontId::proportional(size * 0.75), ink);
    }
    let message = match &shown.phase {
        Phase::Failed(message) => Some((format!("stopped: {message}"), theme::ALARM)),
        Phase::Loading if shown.snapshot.is_none() => Some((format!("loading {}…", data.scene), ink)),
        _ => None,
    };
    if let Some((text, colour)) = message {
        let galley = painter.layout(text, FontId::proportional(14.0), colour, rect.width() * 0.8);
        let at = rect.center() - galley.size() / 2.0;
        let fill =
            if ui_state.dark { Color32::from_black_alpha(170) } else { Color32::from_white_alpha(210) };
        painter.rect_filled(Rect::from_min_size(at, galley.size()).expand(8.0), 6.0, fill);
        painter.galley(at, galley, colour);
    }
}
