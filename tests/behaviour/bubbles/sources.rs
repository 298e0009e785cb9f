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
    assert!(source.is_due(0.01, 0.01), "one at the start");
    let due = (2..=250).filter(|&step| source.is_due(step as f64 * 0.01, 0.01)).collect::<Vec<i32>>();
    assert_eq!(due, [101, 201], "and then one a second, in the step that begins with it");
}

/// However the steps fall: times that add up with rounding release neither twice nor never.
#[test]
fn every_bubble_is_due_once() {
    let text = "[(shape: sphere(center: (0.5, 0.2), radius: 0.1), every: 0.1, from: 0.3, until: 2.25)]";
    let Ok(AnyScene::TwoD(scene)) = load_with(text) else { panic!("it loads") };
    for dt in [1.0 / 30.0, 0.01, 0.1 / 3.0, 0.1, 0.0625, 0.0999] {
        let (mut time, mut count) = (0.0, 0);
        while time < 3.0 {
            time += dt;
            count += scene.setup.air_sources[0].is_due(time, dt) as usize;
        }
        // At 0.3, 0.4, … 2.2 seconds, if the step that releases the last one ends before the source does.
        assert!((19..=20).contains(&count), "{count} bubbles with steps of {dt} s");
    }
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
