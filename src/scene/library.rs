//! The scenes that ship inside the program.

/// A built-in scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// What to call it by.
    pub name: &'static str,
    /// Its scene file.
    pub text: &'static str,
}

/// The built-in scene that is opened when none is asked for, as a comparison of two models.
pub fn opening_scene() -> &'static str {
    "water_cooler_2d"
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltIn { name: $name, text: include_str!(concat!("../../scenes/", $name, ".ron")) }),*]
    };
}

/// All built-in scenes, in the order they are offered; the first is the default.
pub fn library() -> &'static [BuiltIn] {
    const LIBRARY: &[BuiltIn] = built_in![
        "dam_break",
        "water_cooler",
        "rising_bubbles",
        "carbonated_glass",
        "bubble_tube",
        "wall_with_holes",
        "moving_platform",
        "released_bubble",
        "splash_tank",
        "splash_tank_tiles",
        "faucet",
        "floating_boxes",
        "piston_on_air",
        "duck_pond",
        "cup_under_water",
        "cartesian_diver",
        "cork_and_bubbles",
        "ice_in_a_glass",
        "neutral_bubble",
        "sinking_bubbles",
        "released_heavy_bubble",
        "stirred_smoke",
        "water_cooler_2d",
        "rising_bubble_2d",
        "bubble_tube_2d",
        "diving_bell_2d",
        "floating_boxes_2d",
        "cup_under_water_2d",
        "cartesian_diver_2d",
        "paddle_wheel_2d",
        "seesaw_2d",
        "ball_and_hole_2d",
        "wall_splash_2d",
        "ceiling_drip_2d",
        "light_bubble_2d",
        "neutral_bubble_2d",
        "heavy_bubble_2d",
        "released_bubble_2d",
        "released_heavy_bubble_2d",
        "paddle_smoke_2d",
        "dam_break_2d",
        "pool_tiles_2d",
        "ball_in_circle_2d",
        "ball_in_circle_whole_2d",
        "ball_in_circle_tiles_2d",
        "tilted_tank_2d",
        "vortex_box_2d",
    ];
    LIBRARY
}
