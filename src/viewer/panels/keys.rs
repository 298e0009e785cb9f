//! From keys to actions.

use bevy_egui::egui::{self, Key};

use super::{Action, Data};
use crate::viewer::ui_state::UiState;

/// What the keys pressed since the last frame ask for; nothing while text is being typed.
pub fn key_actions(ctx: &egui::Context, ui_state: &UiState, data: &Data) -> Vec<Action> {
    if ctx.text_edit_focused() {
        return Vec::new();
    }
    // A button that was clicked, or that Tab went to, would take Space for itself and keep all other keys from us.
    ctx.memory_mut(|memory| {
        if let Some(widget) = memory.focused() {
            memory.surrender_focus(widget);
        }
    });
    let mut actions = Vec::new();
    ctx.input_mut(|input| {
        // Keys with a modifier belong to someone else, but `?` needs shift on most keyboards.
        let mut pressed = |key: Key| {
            input.consume_key(egui::Modifiers::NONE, key) || input.consume_key(egui::Modifiers::SHIFT, key)
        };
        let plain = [
            (Key::Space, Action::TogglePlay),
            (Key::Period, Action::Step),
            (Key::R, Action::Reset),
            (Key::F, Action::FrameAll),
            (Key::B, Action::CycleModel),
            (Key::C, Action::ToggleCompare),
            (Key::H, Action::ToggleHelp),
            (Key::Questionmark, Action::ToggleHelp),
            (Key::T, Action::ToggleDark),
            (Key::Tab, Action::TogglePanels),
            (Key::F12, Action::Screenshot),
            (Key::Q, Action::Cut((ui_state.cut - 0.02).max(0.0))),
            (Key::E, Action::Cut((ui_state.cut + 0.02).min(1.0))),
            (Key::Delete, Action::TakeOut),
            (
                Key::Escape,
                match ui_state.hands.form {
                    _ if ui_state.help => Action::ToggleHelp,
                    Some(_) => Action::Arm(None),
                    None => Action::Select(None),
                },
            ),
        ];
        for (key, action) in plain {
            if pressed(key) {
                actions.push(action);
            }
        }
        for layer in data.layers() {
            if Key::from_name(layer.key).is_some_and(&mut pressed) {
                actions.push(Action::Layer(layer.bit));
            }
        }
    });
    actions
}
