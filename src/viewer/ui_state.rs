//! What the panels remember between two frames.

use std::time::{Duration, Instant};

use bevy::prelude::*;

use super::action::{BodyKey, BubbleKey};
use super::stage::DrawOptions;
use super::theme;
use crate::sim::{Form, Hold};

/// How long a message stays.
const LINGER: Duration = Duration::from_secs(5);

/// A message in the corner.
#[derive(Clone, Debug)]
pub struct Toast {
    /// What happened.
    pub text: String,
    /// Whether it went wrong: such a message stays until it is answered, and offers to reset.
    pub alarm: bool,
    /// Cells along x with which the scene would keep up: such a message stays until it is answered, too.
    pub offer: Option<usize>,
    /// When.
    pub born: Instant,
}

/// Which list the left panel shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftTab {
    /// The gallery.
    #[default]
    Scenes,
    /// The sliders.
    Parameters,
    /// The layers.
    Layers,
}

/// Which list the right panel shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RightTab {
    /// Meters, times, residuals.
    #[default]
    Statistics,
    /// The table of bubbles.
    Bubbles,
    /// Bodies: a palette, how hands pull, and a list.
    Bodies,
}

/// A body that follows the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grabbed {
    /// The pane that the pointer is in.
    pub pane: usize,
    /// Its number.
    pub body: usize,
    /// Where it was taken, metres.
    pub place: Vec3,
    /// Where the pointer's straight ray met the plane through that place: water bends what is seen.
    pub pointer: Vec3,
    /// The direction out of that plane.
    pub normal: Vec3,
}

/// What hands do, and what they put in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandState {
    /// How bodies are held.
    pub hold: Hold,
    /// What a click puts in, if anything.
    pub form: Option<Form>,
    /// Its longest side, as a share of the domain's shortest.
    pub size: f64,
    /// Its density, kg/m³.
    pub density: f64,
    /// What follows the pointer.
    pub grabbed: Option<Grabbed>,
}

impl Default for HandState {
    fn default() -> Self {
        HandState { hold: Hold::default(), form: None, size: 0.2, density: 600.0, grabbed: None }
    }
}

/// The state of the panels.
#[derive(Resource, Clone, Debug)]
pub struct UiState {
    /// Layers that are on.
    pub layers: u32,
    /// Place of the cut and the slice, as a share of the domain.
    pub cut: f32,
    /// Dark theme.
    pub dark: bool,
    /// Size of text and widgets.
    pub scale: f32,
    /// Whether the side panels are there.
    pub panels: bool,
    /// Whether the shortcut sheet is there.
    pub help: bool,
    /// The selected bubble.
    pub selected: Option<BubbleKey>,
    /// The selected body; then no bubble is.
    pub selected_body: Option<BodyKey>,
    /// What hands do.
    pub hands: HandState,
    /// Whether the table of bubbles has yet to scroll to it.
    pub reveal: bool,
    /// The left panel's list.
    pub left: LeftTab,
    /// The right panel's list.
    pub right: RightTab,
    /// Whether rare parameters are listed.
    pub advanced: bool,
    /// Cells along x while the slider is held.
    pub cells_draft: Option<usize>,
    /// Messages.
    pub toasts: Vec<Toast>,
    /// Steps a ray may take through the liquid.
    pub steps: u32,
    /// Pictures without panels: what `glug render` draws.
    pub bare: bool,
    /// Drawn without anyone waiting for it.
    pub offscreen: bool,
    /// Pixels of 3D pictures per pixel of the window, along a side.
    pub fineness: f32,
    /// Not even captions, labels and meters.
    pub plain: bool,
    /// Where the panes' pictures lie, in points; filled by the panels.
    pub pictures: Vec<Rect>,
}

impl Default for UiState {
    fn default() -> Self {
        UiState {
            layers: theme::FIRST_LAYERS,
            cut: 0.5,
            dark: false,
            scale: 1.0,
            panels: true,
            help: false,
            selected: None,
            selected_body: None,
            hands: HandState::default(),
            reveal: false,
            left: LeftTab::default(),
            right: RightTab::default(),
            advanced: false,
            cells_draft: None,
            toasts: Vec::new(),
            steps: 72,
            bare: false,
            offscreen: false,
            fineness: 1.0,
            plain: false,
            pictures: Vec::new(),
        }
    }
}

impl UiState {
    /// Selects a bubble, here and in the table.
    pub fn select(&mut self, bubble: Option<BubbleKey>) {
        self.selected = bubble;
        self.selected_body = None;
        self.reveal = bubble.is_some();
        if bubble.is_some() {
            self.right = RightTab::Bubbles;
        }
    }

    /// Selects a body, here and in the list.
    pub fn select_body(&mut self, body: Option<BodyKey>) {
        (self.selected, self.selected_body) = (None, body);
        if body.is_some() {
            self.right = RightTab::Bodies;
        }
    }

    /// Says something in passing.
    pub fn say(&mut self, text: impl Into<String>) {
        self.toasts.push(Toast { text: text.into(), alarm: false, offer: None, born: Instant::now() });
        // A storm of messages shows its end.
        let over = self.toasts.len().saturating_sub(5);
        self.toasts.drain(..over);
    }

    /// Says that something went wrong.
    pub fn alarm(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.toasts.retain(|toast| toast.text != text);
        self.toasts.push(Toast { text, alarm: true, offer: None, born: Instant::now() });
    }

    /// Offers a coarser resolution, quietly.
    pub fn offer(&mut self, cells: usize) {
        self.toasts.retain(|toast| toast.offer.is_none());
        let text = "This scene is too much for this machine in real time.".to_owned();
        self.toasts.push(Toast { text, alarm: false, offer: Some(cells), born: Instant::now() });
    }

    /// Takes away what the next start makes pointless.
    pub fn forget_troubles(&mut self) {
        self.toasts.retain(|toast| !toast.alarm && toast.offer.is_none());
    }

    /// Forgets messages that have been there long enough.
    pub fn tidy(&mut self) {
        self.toasts.retain(|toast| toast.alarm || toast.offer.is_some() || toast.born.elapsed() < LINGER);
    }

    /// What a pane's picture is made with.
    pub fn options(&self, pane: usize) -> DrawOptions {
        DrawOptions {
            layers: self.layers,
            // What stands in front of a slice would hide it.
            cut: (self.layers & (theme::CUT | theme::SLICE_LAYERS) != 0).then_some(self.cut),
            slice: self.cut,
            selected: self.selected.filter(|(of, _)| *of == pane).map(|(_, id)| id),
            dark: self.dark,
            steps: self.steps,
        }
    }
}
