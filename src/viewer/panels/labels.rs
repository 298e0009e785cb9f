//! The labels of bubbles in a picture.

use bevy::prelude::Vec3;
use bevy_egui::egui::{self, Color32, FontId, Rect, Stroke, vec2};

use super::bubbles::name_of;
use super::meter::volume_text;
use super::{BubbleKey, BubbleRow, Data};
use crate::snapshot::Snapshot;
use crate::viewer::theme;
use crate::viewer::ui_state::UiState;

/// Labels drawn at most: more would hide the picture.
const LABELS: usize = 8;
/// A bubble that holds less of the trapped air than this is not worth a label.
const LABEL_SHARE: f64 = 0.03;
/// Between a label and one that made way for it.
const GAP: f32 = 2.0;

/// Number and volume beside the selected bubble and the largest ones; returns where, the most important one first.
pub fn labels_ui(
    painter: &egui::Painter,
    rect: Rect,
    pane: usize,
    snapshot: &Snapshot,
    ui_state: &UiState,
    data: &Data,
) -> Vec<(Rect, BubbleKey)> {
    let is_chosen = |row: &BubbleRow| ui_state.selected == Some(row.key);
    let mut rows: Vec<&BubbleRow> =
        data.bubbles.iter().filter(|row| row.key.0 == pane && row.trapped).collect();
    rows.sort_by(|a, b| is_chosen(b).cmp(&is_chosen(a)).then(b.report.volume.total_cmp(&a.report.volume)));
    rows.truncate(LABELS);
    let least = LABEL_SHARE * snapshot.trapped_air()[0];
    let ink = if ui_state.dark { Color32::WHITE } else { Color32::from_gray(25) };
    let fill = if ui_state.dark { Color32::from_black_alpha(130) } else { Color32::from_white_alpha(170) };
    // The first is the most important one: it stays where it belongs, and others make way.
    let (mut places, mut texts) = (Vec::new(), Vec::new());
    for row in rows.into_iter().filter(|row| row.report.volume >= least || is_chosen(row)) {
        let Some(place) = place_of(row, rect, data) else { continue };
        let volume = volume_text(row.report.volume, snapshot.scenery.dimension);
        let text = format!("{}  {volume}", name_of(row.key.1));
        let font = FontId::proportional(if is_chosen(row) { 13.5 } else { 11.5 });
        let galley = painter.layout_no_wrap(text, font, ink);
        let wanted = Rect::from_center_size(place, galley.size() + vec2(10.0, 4.0));
        places.push((make_way(wanted, &places, rect), row.key));
        texts.push((galley, if is_chosen(row) { 2.0 } else { 1.0 }));
    }
    // Where there is no room to make way, it is drawn over the others.
    for (&(back, key), (galley, width)) in places.iter().zip(texts).rev() {
        painter.rect_filled(back, 6.0, fill);
        let stroke = Stroke::new(width, theme::bubble_colour(key.1));
        painter.rect_stroke(back, 6.0, stroke, egui::StrokeKind::Inside);
        painter.galley(back.center() - galley.size() / 2.0, galley, ink);
    }
    places
}

/// Where the label of a bubble belongs, in a picture.
fn place_of(row: &BubbleRow, rect: Rect, data: &Data) -> Option<egui::Pos2> {
    let aspect = rect.width() / rect.height().max(1.0);
    let at = |axis: usize| row.report.centroid.get(axis).copied().unwrap_or(0.0) as f32;
    let place = data.camera.project(Vec3::new(at(0), at(1), at(2)), aspect)?;
    let place = rect.min + vec2(place.x * rect.width(), place.y * rect.height());
    // In space the bubble itself is worth seeing: the label stands above it.
    let above = if data.camera.dimension == 3 { 0.62 * f64::cbrt(row.report.volume) as f32 } else { 0.0 };
    let top = data.camera.project(Vec3::new(at(0), at(1) + above, at(2)), aspect);
    let lift = top.map_or(0.0, |top| top.y * rect.height() - (place.y - rect.top()));
    Some(place + vec2(0.0, lift - if above > 0.0 { 8.0 } else { 0.0 }))
}

/// The nearest place above or below the `wanted` one where a label hides none that was placed before; that one if there is
/// none inside the picture.
fn make_way(wanted: Rect, placed: &[(Rect, BubbleKey)], picture: Rect) -> Rect {
    let is_free = |label: &Rect| placed.iter().all(|(other, _)| !label.expand(0.5 * GAP).intersects(*other));
    let beside = placed
        .iter()
        .flat_map(|(other, _)| [other.top() - GAP - wanted.bottom(), other.bottom() + GAP - wanted.top()]);
    let moved = beside.map(|way| wanted.translate(vec2(0.0, way)));
    let free = moved.filter(|label| is_free(label) && picture.contains_rect(*label));
    let way = |label: &Rect| (label.top() - wanted.top()).abs();
    match is_free(&wanted) {
        true => wanted,
        false => free.min_by(|a, b| way(a).total_cmp(&way(b))).unwrap_or(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_egui::egui::pos2;

    const PICTURE: Rect = Rect { min: pos2(0.0, 0.0), max: pos2(400.0, 300.0) };

    fn place_all(wanted: &[Rect], picture: Rect) -> Vec<Rect> {
        let mut placed = Vec::new();
        for (bubble, &wanted) in wanted.iter().enumerate() {
            placed.push((make_way(wanted, &placed, picture), (0, bubble as u64)));
        }
        placed.into_iter().map(|(label, _)| label).collect()
    }

    #[test]
    fn no_label_hides_another() {
        let label = |x: f32, y: f32| Rect::from_center_size(pos2(x, y), vec2(50.0, 18.0));
        let wanted: Vec<Rect> = (0..LABELS).map(|k| label(200.0 + 7.0 * k as f32, 150.0)).collect();
        let placed = place_all(&wanted, PICTURE);
        assert_eq!(placed[0], wanted[0], "the most important one stays");
        for (index, one) in placed.iter().enumerate() {
            assert!(PICTURE.contains_rect(*one) && one.center().x == wanted[index].center().x);
            assert!(placed[..index].iter().all(|other| !one.intersects(*other)), "{placed:?}");
        }
    }

    #[test]
    fn labels_stay_where_they_belong_if_they_can_and_inside_the_picture() {
        let label = |y: f32| Rect::from_center_size(pos2(200.0, y), vec2(50.0, 18.0));
        assert_eq!(place_all(&[label(100.0), label(140.0)], PICTURE), [label(100.0), label(140.0)]);
        let nearly = place_all(&[label(100.0), label(110.0)], PICTURE);
        assert_eq!(nearly[1], label(120.0), "down, where it is nearer");
        let at_the_top = place_all(&[label(15.0), label(10.0)], PICTURE);
        assert_eq!(at_the_top[1], label(35.0), "not out of the picture");
        let tiny = Rect::from_center_size(pos2(200.0, 10.0), vec2(60.0, 20.0));
        assert_eq!(place_all(&[label(10.0), label(10.0)], tiny)[1], label(10.0), "where there is no room");
    }
}
