//! Sources of air: what a scene may say about them.

use std::fs;

use glug::scene::{AnyScene, Overrides, load};

/// The message for a scene with that list of air sources, or what it loaded.
fn load_with(air_sources: &str) -> Result<AnyScene, String> {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("fizz.ron");
    let text = format!(
        "(\n title: \"Fizz\",\n domain: (size: (1.0, 1.0), cells: 32),\n \
         liquids: [box(min: (0.0, 0.0), max: (1.0, 0.6))],\n air_sources: {air_sources},\n)"
    );
    fs::write(&path, text).expect("a scene to load");
    let name = path.to_str().expect("temporary folders have plain names");
    load(name, &Overrides::default()).map_err(|error| error.to_string())
}

#[test]
fn an_air_source_has_defaults() {
    let Ok(AnyScene::TwoD(scene)) = load_with("[(shape: sphere(center: (0.5, 0.2), radius: 0.1))]") else {
        panic!("it loads");
    };
    let source = &scene.setup.air_sources[0];
    assert_eq!((source.rate, source.every, source.from, source.until), (0.0, 1.0, 0.0, f64::INFINITY));
    assert!(
        source.is_due(0.01, 0.01) && !source.is_due(0.02, 0.01),
        "one at the start, and then a second of none"
    );
    assert!(source.is_due(1.005, 0.01) && !source.is_due(1.5, 0.01));
}

#[test]
fn a_bad_air_source_is_refused_by_name() {
    let ball = "sphere(center: (0.5, 0.2), radius: 0.1)";
    let cases = [
        ("[()]".to_owned(), "shape"),
        (format!("[(shape: {ball}, rate: -1.0)]"), "rate"),
        (format!("[(shape: {ball}, every: 0.0)]"), "every"),
        (format!("[(shape: {ball}, every: inf)]"), "every"),
        (format!("[(shape: {ball}, from: 2.0, until: 1.0)]"), "until"),
        (format!("[(shape: {ball}, speed: 1.0)]"), "speed"),
        (format!("(shape: {ball})"), "air_sources"),
        ("[(shape: sphere(center: (0.5, 0.02), radius: 0.1))]".to_owned(), "shape"),
        ("[(shape: sphere(center: (5.0, 0.2), radius: 0.1))]".to_owned(), "shape"),
    ];
    for (list, word) in cases {
        let message = load_with(&list).expect_err(&list);
        assert!(!message.contains('\n') && message.contains("fizz.ron:"), "{list}: {message}");
        assert!(message.contains("air_sources") && message.contains(word), "{list}: {message}");
    }
}
