//! Smoke in scene files.

use glug::scene::{AnyScene, Overrides, load};
use glug::sim::Model;

/// A scene of a box of air with these fields.
fn load_with(fields: &str, model: &str) -> Result<AnyScene, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("smoky.ron");
    let text = format!(
        "(title: \"smoky\",\n domain: (size: (1.0, 1.0), cells: 16),\n {fields},\n model: \"{model}\",\n)"
    );
    std::fs::write(&path, text).expect("a scene file");
    load(path.to_str().expect("a plain path"), &Overrides::default()).map_err(|error| error.to_string())
}

const BALL: &str = "sphere(center: (0.5, 0.5), radius: 0.2)";

#[test]
fn smoke_and_its_sources_are_read() {
    let fields = format!(
        "smoke: [(shape: {BALL}, density: 0.5, heat: -4)],\n smoke_sources: [(shape: {BALL}, heat: 9, rate: 3, from: 1, until: 2), (shape: {BALL})]"
    );
    let Ok(AnyScene::TwoD(scene)) = load_with(&fields, "two-phase") else { panic!("a scene in 2D") };
    let (smoke, sources) = (&scene.setup.smoke[0], &scene.setup.smoke_sources);
    assert_eq!((smoke.density, smoke.heat), (0.5, -4.0));
    assert_eq!((sources[0].density, sources[0].heat, sources[0].rate), (0.0, Some(9.0), 3.0));
    assert_eq!((sources[0].from, sources[0].until), (1.0, 2.0));
    assert_eq!((sources[1].heat, sources[1].rate), (None, f64::INFINITY));
    assert_eq!(scene.setup.full_smoke(), Some([0.5, 9.0]));
}

#[test]
fn what_is_wrong_with_smoke_is_said() {
    for (fields, words) in [
        (format!("smoke: {BALL}"), ["smoke", "a list"]),
        ("smoke: [(density: 1)]".to_owned(), ["smoke[0]", "`shape` is missing"]),
        (format!("smoke: [(shape: {BALL}, density: -1)]"), ["smoke[0].density", "from 0"]),
        (format!("smoke: [(shape: {BALL}, heat: 1e9)]"), ["smoke[0].heat", "kelvins"]),
        (format!("smoke: [(shape: {BALL}, rate: 1)]"), ["unknown field `rate`", "density"]),
        (
            "smoke: [(shape: sphere(center: (3, 3), radius: 1))]".to_owned(),
            ["smoke[0].shape", "inside the domain"],
        ),
        (
            format!("smoke_sources: [(shape: {BALL}, from: 2, until: 1)]"),
            ["smoke_sources[0].until", "later than"],
        ),
        (format!("smoke_sources: [(shape: {BALL}, rate: -1)]"), ["smoke_sources[0].rate", "from 0"]),
        ("frames: 3".to_owned(), ["no liquid", "`smoke`"]),
    ] {
        let message = load_with(&fields, "two-phase").expect_err("not allowed");
        assert!(words.iter().all(|word| message.contains(word)), "{fields}: {message}");
    }
}

/// In models whose air weighs nothing it could not move.
#[test]
fn smoke_asks_for_air_that_has_mass() {
    for model in Model::ALL {
        for fields in [format!("smoke: [(shape: {BALL})]"), format!("smoke_sources: [(shape: {BALL})]")] {
            let loaded = load_with(&fields, model.name());
            assert_eq!(loaded.is_ok(), model.has_gas(), "{}", model.name());
            if let Err(message) = loaded {
                assert!(message.contains("two-phase or affine-bubbles"), "{message}");
                assert_eq!(message.lines().count(), 1, "{message}");
            }
        }
    }
}
