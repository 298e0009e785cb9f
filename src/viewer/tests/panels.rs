//! Panels, driven without a window or a graphics card.

use std::sync::Arc;

use bevy::prelude::{Vec2, Vec3};
use bevy_egui::egui::{self, Key};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::{bubble, small_snapshot, snapshot_of, tile};
use crate::realtime::Choice;
use crate::runner::Phase;
use crate::sim::{Model, ParamValue};
use crate::viewer::action::Action;
use crate::viewer::entities::History;
use crate::viewer::panels::{self, BodyRow, BubbleRow, Data, key_actions};
use crate::viewer::session::{Resolution, Shown};
use crate::viewer::stage::OrbitCamera;
use crate::viewer::theme;
use crate::viewer::ui_state::{LeftTab, RightTab, UiState};

/// What a test plays with.
struct Fixture {
    ui_state: UiState,
    resolution: Resolution,
    panes: Vec<Shown>,
    rows: Vec<BubbleRow>,
    bodies: Vec<BodyRow>,
    actions: Vec<Action>,
}

impl Fixture {
    fn new(panes: usize) -> Self {
        let mut snapshot = small_snapshot();
        snapshot.report.bubbles = vec![bubble(1), bubble(2)];
        let snapshot = Arc::new(snapshot);
        let shown = |_| {
            let mut shown = Shown::new(Model::default());
            shown.take(Arc::clone(&snapshot));
            shown.phase = Phase::Paused;
            shown
        };
        let mut history = History::default();
        (0..20).for_each(|k| history.push([k as f64, 1e-3, 5.0]));
        let rows = snapshot.report.bubbles.iter().map(|report| BubbleRow {
            key: (0, report.id),
            report: report.clone(),
            history: history.clone(),
            trapped: true,
        });
        Fixture {
            ui_state: UiState::default(),
            resolution: Resolution { keep_real_time: true, ..Resolution::default() },
            panes: (0..panes).map(shown).collect(),
            rows: rows.collect(),
            bodies: Vec::new(),
            actions: Vec::new(),
        }
    }

    fn harness(self) -> Harness<'static, Fixture> {
        self.harness_of([1400.0, 860.0])
    }

    fn harness_of(self, size: [f32; 2]) -> Harness<'static, Fixture> {
        let cards = panels::cards(None);
        let app = move |ui: &mut egui::Ui, fixture: &mut Fixture| {
            let data = Data {
                panes: &fixture.panes,
                pictures: &[],
                playing: false,
                speed: 1.0,
                scene: "dam_break",
                resolution: fixture.resolution,
                bubbles: &fixture.rows,
                bodies: &fixture.bodies,
                cards: &cards,
                camera: OrbitCamera::default(),
                frame_seconds: 0.016,
            };
            fixture.actions.extend(key_actions(ui.ctx(), &fixture.ui_state, &data));
            fixture.actions.extend(panels::show(ui, &mut fixture.ui_state, &data));
        };
        Harness::builder().with_size(size).build_ui_state(app, self)
    }
}

fn has(harness: &Harness<'_, Fixture>, wanted: impl Fn(&Action) -> bool) -> bool {
    harness.state().actions.iter().any(wanted)
}

#[test]
fn keys_do_what_the_sheet_says() {
    type Check = fn(&Action) -> bool;
    let keys: [(Key, Check); 10] = [
        (Key::Space, |a| matches!(a, Action::TogglePlay)),
        (Key::Period, |a| matches!(a, Action::Step)),
        (Key::R, |a| matches!(a, Action::Reset)),
        (Key::F, |a| matches!(a, Action::FrameAll)),
        (Key::B, |a| matches!(a, Action::CycleModel)),
        (Key::C, |a| matches!(a, Action::ToggleCompare)),
        (Key::H, |a| matches!(a, Action::ToggleHelp)),
        (Key::F12, |a| matches!(a, Action::Screenshot)),
        (Key::Num4, |a| matches!(a, Action::Layer(bit) if *bit == theme::PARTICLES)),
        (Key::Num9, |a| matches!(a, Action::Layer(bit) if *bit == theme::CUT)),
    ];
    for (key, check) in keys {
        let mut harness = Fixture::new(1).harness();
        harness.run_steps(2);
        harness.key_press(key);
        harness.run_steps(2);
        assert!(has(&harness, check), "{key:?} did nothing");
        assert_eq!(harness.state().actions.len(), 1, "{key:?} did more than one thing");
    }
}

/// Tab hides the panels; it used to leave a button with the keyboard as well, and every other key was lost.
#[test]
fn keys_are_heard_after_tab_and_after_a_click_on_a_button() {
    let mut harness = Fixture::new(1).harness();
    harness.run_steps(2);
    for _ in 0..3 {
        harness.key_press(Key::Tab);
        harness.run_steps(2);
    }
    harness.get_by_label("⏮").click();
    harness.run_steps(2);
    harness.state_mut().actions.clear();
    harness.key_press(Key::Space);
    harness.run_steps(2);
    let found: Vec<_> = harness.state().actions.iter().collect();
    assert!(matches!(found[..], [Action::TogglePlay]), "Space plays, and nothing else");
}

#[test]
fn a_click_on_a_scene_opens_it() {
    let mut harness = Fixture::new(2).harness();
    harness.run_steps(2);
    harness.get_by_label("Open Splash tank").click();
    harness.run_steps(2);
    assert!(has(&harness, |action| matches!(action, Action::Load(name) if name == "splash_tank")));
}

#[test]
fn the_transport_plays_steps_and_resets() {
    let mut harness = Fixture::new(1).harness();
    harness.run_steps(2);
    for label in ["▶", "⏭", "⏮"] {
        harness.get_by_label(label).click();
        harness.run_steps(2);
    }
    let found: Vec<_> = harness.state().actions.iter().collect();
    assert!(matches!(found[..], [Action::TogglePlay, Action::Step, Action::Reset]));
}

#[test]
fn parameters_say_whether_they_act_at_once_and_go_back() {
    let mut fixture = Fixture::new(1);
    fixture.ui_state.left = LeftTab::Parameters;
    let snapshot = fixture.panes[0].snapshot.take().expect("a snapshot");
    let mut snapshot = Arc::unwrap_or_clone(snapshot);
    snapshot.params.gravity = 1.62;
    fixture.panes[0].take(Arc::new(snapshot));
    let mut harness = fixture.harness();
    harness.run_steps(2);
    assert!(harness.query_all_by_label("live").count() >= 5);
    assert_eq!(harness.query_all_by_label("restarts").count(), 2, "the resolution, and seeds per axis");
    harness.get_by_label("⟲").click();
    harness.run_steps(2);
    let back = |action: &Action| matches!(action, Action::Set(info, ParamValue::Number(g)) if info.name == "gravity" && *g == 9.81);
    assert!(has(&harness, back));
}

/// The number of cells that the scene of a fixture asks for; its pictures have 32.
fn own_cells(fixture: &Fixture) -> usize {
    fixture.panes[0].snapshot.as_ref().expect("a snapshot").scenery.own_cells
}

#[test]
fn a_resolution_is_asked_for_on_a_slider_and_taken_back() {
    for panes in [1, 2] {
        let mut fixture = Fixture::new(panes);
        fixture.ui_state.left = LeftTab::Parameters;
        let own = own_cells(&fixture);
        let mut harness = fixture.harness();
        harness.run_steps(2);
        assert!(harness.query_by_label(&format!("32 × 32 cells · scene's own: {own}")).is_some());
        assert_eq!(harness.query_all_by_label("⟲").count(), 0, "nothing was asked for");
        let slider = harness.get_by_role_and_label(egui::accesskit::Role::Slider, "Resolution").rect();
        let at = egui::pos2(slider.left() + 2.0, slider.center().y);
        click_at(&mut harness, at);
        let asked: Vec<_> = harness
            .state()
            .actions
            .iter()
            .filter_map(|action| if let Action::Cells(cells) = action { Some(*cells) } else { None })
            .collect();
        assert_eq!(asked, [Some(16)], "once, when the slider is let go");
        harness.state_mut().resolution.asked = Some(16);
        harness.run_steps(2);
        assert!(harness.query_by_label("Chosen by hand.").is_some());
        harness.get_by_label("⟲").click();
        harness.run_steps(2);
        assert!(has(&harness, |action| matches!(action, Action::Cells(None))));
        harness.get_by_label("Keep real time").click();
        harness.run_steps(2);
        assert!(has(&harness, |action| matches!(action, Action::KeepRealTime(false))));
    }
}

#[test]
fn a_resolution_that_was_chosen_is_said_with_the_way_back() {
    let mut fixture = Fixture::new(1);
    let own = own_cells(&fixture);
    fixture.resolution.chosen = Some(Choice { own, cells: 32, pace: 1.4 });
    fixture.ui_state.left = LeftTab::Parameters;
    let mut harness = fixture.harness();
    harness.run_steps(2);
    let words = format!("{own} → 32 cells, to keep real time");
    assert!(harness.query_by_label(&words).is_some(), "below the pictures");
    assert!(harness.query_by_label(&(words + ".")).is_some(), "beside the slider");
    harness.get_by_label(&format!("{own} cells")).click();
    harness.run_steps(2);
    assert!(has(&harness, |action| matches!(action, Action::Cells(Some(cells)) if *cells == own)));
    harness.get_by_label("Measure again").click();
    harness.run_steps(2);
    assert!(has(&harness, |action| matches!(action, Action::MeasureAgain)));
    harness.state_mut().resolution.is_measuring = true;
    harness.state_mut().panes[0].phase = Phase::Loading;
    harness.run_steps(2);
    assert!(harness.query_by_label("measuring…").is_some());
}

#[test]
fn a_coarser_resolution_is_offered_until_it_is_answered() {
    for (button, accepted) in [("Restart with 24 cells", true), ("✕", false)] {
        let mut fixture = Fixture::new(2);
        fixture.ui_state.offer(40);
        fixture.ui_state.offer(24);
        let mut harness = fixture.harness();
        harness.run_steps(2);
        assert_eq!(harness.state().ui_state.toasts.len(), 1, "the last offer");
        harness.get_by_label(button).click();
        harness.run_steps(2);
        assert_eq!(has(&harness, |action| matches!(action, Action::Coarser(24))), accepted);
        assert!(harness.state().ui_state.toasts.is_empty());
        assert_eq!(harness.state().actions.len(), usize::from(accepted), "nothing else happens");
    }
}

#[test]
fn a_failure_is_said_and_offers_to_reset() {
    let mut fixture = Fixture::new(2);
    fixture.panes[1].phase = Phase::Failed("velocities became non-finite".into());
    fixture.ui_state.alarm("Free surface stopped: velocities became non-finite");
    let mut harness = fixture.harness();
    harness.run_steps(2);
    assert!(harness.query_by_label("stopped").is_some());
    harness.get_by_label("Reset").click();
    harness.run_steps(2);
    assert!(has(&harness, |action| matches!(action, Action::Reset)));
    assert!(harness.state().ui_state.toasts.is_empty());
}

#[test]
fn the_bubble_table_lists_and_plots() {
    let mut fixture = Fixture::new(1);
    fixture.ui_state.right = RightTab::Bubbles;
    fixture.ui_state.selected = Some((0, 2));
    let mut harness = fixture.harness();
    harness.run_steps(3);
    assert!(harness.query_by_label("Bubble 2").is_some());
    assert!(harness.query_by_label("volume kept").is_some());
    assert!(harness.query_by_label("Bubbles (2)").is_some());
}

#[test]
fn a_click_in_the_table_selects_a_bubble() {
    let mut fixture = Fixture::new(1);
    fixture.ui_state.right = RightTab::Bubbles;
    let mut harness = fixture.harness();
    harness.run_steps(3);
    let row = harness.get_by_label("2").rect();
    click_at(&mut harness, row.center());
    assert!(has(&harness, |action| matches!(action, Action::Select(Some((0, 2))))));
}

fn click_at(harness: &mut Harness<'_, Fixture>, pos: egui::Pos2) {
    let button = |pressed| egui::Event::PointerButton {
        pos,
        button: egui::PointerButton::Primary,
        pressed,
        modifiers: egui::Modifiers::NONE,
    };
    for event in [egui::Event::PointerMoved(pos), button(true), button(false)] {
        harness.event(event);
        harness.run_steps(1);
    }
    harness.run_steps(2);
}

/// Clicks where bubble 2 is written, or so far beside it, in shares of the picture's height.
fn click_near_label(beside: f32) -> Harness<'static, Fixture> {
    let mut harness = Fixture::new(1).harness();
    harness.run_steps(3);
    let picture = harness.state().ui_state.pictures[0];
    let place = OrbitCamera::default()
        .project(Vec3::new(0.5, 0.5, 0.0), picture.width() / picture.height())
        .expect("in front of the camera");
    let at = picture.min + (place - Vec2::new(beside, 0.0)) * picture.size();
    click_at(&mut harness, egui::pos2(at.x - 2.0, at.y + 2.0));
    harness
}

#[test]
fn a_click_in_a_picture_asks_for_what_is_there() {
    let label = click_near_label(0.0);
    assert!(has(&label, |action| matches!(action, Action::Select(Some((0, 2))))), "the larger one is on top");
    let beside = click_near_label(0.3);
    assert!(has(&beside, |action| matches!(action, Action::Pick(0, at) if at.x > 0.0 && at.x < 1.0)));
}

#[test]
fn tiles_are_offered_where_there_are_any() {
    for count in [0, 3] {
        let mut fixture = Fixture::new(1);
        fixture.ui_state.left = LeftTab::Layers;
        fixture.ui_state.help = true;
        let mut snapshot = Arc::unwrap_or_clone(fixture.panes[0].snapshot.take().expect("a snapshot"));
        snapshot.tiles = (0..count).map(tile).collect();
        fixture.panes[0].take(Arc::new(snapshot));
        let mut harness = fixture.harness();
        harness.run_steps(2);
        let layers = [
            ("Tiles", Key::Num0, theme::TILES),
            ("Bands", Key::N, theme::BANDS),
            ("Affine field", Key::A, theme::AFFINE),
        ];
        for (name, key, layer) in layers {
            let places = harness.query_all_by_label(name).count();
            assert_eq!(places, if count > 0 { 2 } else { 0 }, "{name}: in the list and on the sheet of keys");
            harness.key_press(key);
            harness.run_steps(2);
            let switched = has(&harness, |action| matches!(action, Action::Layer(bit) if *bit == layer));
            assert_eq!(switched, count > 0, "{name}");
        }
    }
}

#[test]
fn every_model_is_offered_with_the_parameters_it_looks_at() {
    for model in Model::ALL {
        let mut fixture = Fixture::new(1);
        fixture.ui_state.left = LeftTab::Parameters;
        let mut snapshot = Arc::unwrap_or_clone(fixture.panes[0].snapshot.take().expect("a snapshot"));
        snapshot.params.model = model;
        fixture.panes[0].take(Arc::new(snapshot));
        let mut harness = fixture.harness();
        harness.run_steps(2);
        let shown = |label: &str| harness.query_by_label(label).is_some();
        assert_eq!(shown("Air density"), model.has_gas(), "{}", model.name());
        assert_eq!(shown("Surface band"), model == Model::AffineTiles, "{}", model.name());
        for name in ["Bubble band", "Bubble tile size", "Affine liquid"] {
            assert_eq!(shown(name), model == Model::AffineBubbles, "{name} in {}", model.name());
        }
    }
}

#[test]
fn layers_switch_and_help_opens() {
    let mut fixture = Fixture::new(1);
    fixture.ui_state.left = LeftTab::Layers;
    fixture.ui_state.help = true;
    let mut harness = fixture.harness();
    harness.run_steps(2);
    assert!(harness.query_by_label("one frame").is_some(), "the sheet of keys");
    harness.state_mut().ui_state.help = false;
    harness.run_steps(2);
    harness.get_by_label("Pressure").click();
    harness.run_steps(2);
    assert!(has(&harness, |action| matches!(action, Action::Layer(bit) if *bit == theme::PRESSURE)));
}

#[test]
fn a_tiny_window_does_no_harm() {
    for size in [[200.0, 150.0], [1.0, 1.0], [64.0, 2000.0], [3000.0, 40.0]] {
        for panes in [0, 1, 2] {
            let mut harness = Fixture::new(panes).harness_of(size);
            harness.run_steps(3);
        }
    }
}

/// A closed box of smoke, without any liquid.
fn smoky() -> Fixture {
    let mut fixture = Fixture::new(1);
    fixture.rows.clear();
    fixture.panes[0].take(Arc::new(snapshot_of("paddle_smoke_2d")));
    fixture
}

#[test]
fn smoke_is_offered_where_there_is_any() {
    for (mut fixture, count) in [(Fixture::new(1), 0), (smoky(), 2)] {
        fixture.ui_state.left = LeftTab::Layers;
        fixture.ui_state.help = true;
        // Its number is listed on the right under the same name.
        fixture.ui_state.right = RightTab::Bodies;
        let mut harness = fixture.harness();
        harness.run_steps(2);
        assert_eq!(
            harness.query_all_by_label("Smoke").count(),
            count,
            "in the list and on the sheet of keys"
        );
        harness.key_press(Key::S);
        harness.run_steps(2);
        let switched = has(&harness, |action| matches!(action, Action::Layer(bit) if *bit == theme::SMOKE));
        assert_eq!(switched, count > 0);
    }
}

#[test]
fn without_liquid_the_statistics_are_about_smoke() {
    for (mut fixture, is_smoke) in [(Fixture::new(1), false), (smoky(), true)] {
        fixture.ui_state.right = RightTab::Statistics;
        let mut harness = fixture.harness();
        harness.run_steps(2);
        let shown = |label: &str| harness.query_all_by_label(label).next().is_some();
        for of_smoke in ["Smoke", "smoke", "Densest smoke"] {
            assert_eq!(shown(of_smoke), is_smoke, "{of_smoke}");
        }
        for of_liquid in ["Liquid", "Particles", "Top speed"] {
            assert_eq!(shown(of_liquid), !is_smoke, "{of_liquid}");
        }
    }
}

#[test]
fn smoke_goes_on_in_models_whose_air_has_mass() {
    let shown = &smoky().panes[0];
    assert_eq!(shown.models().collect::<Vec<_>>(), [Model::TwoPhase, Model::AffineBubbles]);
    assert_eq!((shown.model, shown.next_model()), (Model::TwoPhase, Model::AffineBubbles));
    let liquid = &Fixture::new(1).panes[0];
    assert!(liquid.models().eq(liquid.model.solver().models()));
    assert_eq!(liquid.next_model(), liquid.model.next());
}
