//! Shapes report true distances, motions true velocities.

use std::sync::Arc;

use glug::geometry::{
    Interpolation, Keyframes, Mesh, MeshError, Motion, Move, Placement, Polygon, Shape, Solid,
};
use glug::math::{Real, Vector, hash_unit};
use proptest::prelude::*;

const GEM: &str = include_str!("../../assets/gem.obj");

fn vector<const D: usize>(coordinates: &[Real]) -> Vector<D> {
    Vector::from_fn(|axis, _| coordinates[axis])
}

/// A reproducible point of the cube `[-2, 2]^D`.
fn point<const D: usize>(seed: u64) -> Vector<D> {
    Vector::from_fn(|axis, _| 4.0 * hash_unit(seed * 8 + axis as u64) as Real - 2.0)
}

fn up_to_unit(seed: u64) -> Real {
    hash_unit(seed ^ 0x5eed) as Real
}

/// Shapes whose distance is exact on both sides.
fn exact_shapes<const D: usize>() -> Vec<(&'static str, Shape<D>)> {
    let slanted = vector::<D>(&[0.6, 0.8, 0.3]);
    let low = vector::<D>(&[-0.7, -0.4, -0.5]);
    let high = vector::<D>(&[0.5, 0.6, 0.9]);
    let ball = Shape::Sphere { center: low * 0.3, radius: 0.8 };
    let mut shapes = vec![
        ("box", Shape::Box { min: low, max: high }),
        ("rounded box", Shape::RoundedBox { min: low, max: high, radius: 0.3 }),
        ("sphere", ball.clone()),
        ("capsule", Shape::Capsule { from: low, to: high, radius: 0.3 }),
        ("cylinder", Shape::cylinder(low, high, 0.5)),
        ("cone", Shape::cone(low, high, 0.7, 0.2)),
        ("pointed cone", Shape::cone(low, high, 0.0, 0.9)),
        ("torus", Shape::torus(low * 0.2, slanted, 0.8, 0.3)),
        ("half-space", Shape::half_space(low * 0.1, slanted)),
        ("inverted box", Shape::Box { min: low, max: high }.inverted()),
        (
            "placed box",
            Shape::Box { min: low, max: high }
                .rotated(if D == 2 { [0.0, 0.0, 1.0] } else { [1.0, 2.0, -1.0] }, 0.7, high)
                .scaled(1.3, low)
                .translated(slanted * 0.2),
        ),
    ];
    if D == 2 {
        let outline = [[-0.9, -0.8], [0.9, -0.7], [0.1, 0.0], [0.8, 0.9], [-0.8, 0.6], [-0.3, 0.1]];
        shapes.push(("polygon", Shape::Polygon(Arc::new(Polygon::new(&outline).expect("a fine polygon")))));
    } else {
        shapes.push(("mesh", Shape::Mesh(Arc::new(Mesh::from_obj(GEM).expect("a fine mesh")))));
    }
    shapes
}

/// Shapes whose distance may fall short of the truth.
fn compound_shapes<const D: usize>() -> Vec<(&'static str, Shape<D>)> {
    let ball = |x: Real, radius: Real| Shape::Sphere { center: vector::<D>(&[x, 0.1, 0.0]), radius };
    let block = || Shape::Box { min: Vector::repeat(-0.6), max: Vector::repeat(0.6) };
    vec![
        ("union", Shape::Union(vec![ball(0.5, 0.7), block()])),
        ("intersection", Shape::Intersection(vec![ball(0.5, 0.9), block()])),
        ("difference", Shape::Difference(Box::new(block()), vec![ball(0.5, 0.4), ball(-0.6, 0.3)])),
        ("inverted union", Shape::Union(vec![ball(0.5, 0.7), block()]).inverted()),
        (
            "scaled difference",
            Shape::Difference(Box::new(block()), vec![ball(0.5, 0.4)]).scaled(0.9, Vector::zeros()),
        ),
    ]
}

/// Points on the surface, found from the sign alone: by bisection between random points of opposite sign.
fn surface_points<const D: usize>(shape: &Shape<D>, count: u64) -> Vec<Vector<D>> {
    let mut found = Vec::new();
    for seed in 0..count {
        let (mut a, mut b) = (point::<D>(2 * seed + 1), point::<D>(2 * seed + 2));
        if (shape.distance(&a) < 0.0) == (shape.distance(&b) < 0.0) {
            continue;
        }
        for _ in 0..48 {
            let middle = (a + b) * 0.5;
            if (shape.distance(&middle) < 0.0) == (shape.distance(&a) < 0.0) {
                a = middle
            } else {
                b = middle
            }
        }
        found.push((a + b) * 0.5);
    }
    found
}

fn distance_never_exceeds_the_truth<const D: usize>() {
    for (name, shape) in exact_shapes::<D>().into_iter().chain(compound_shapes()) {
        let surface = surface_points(&shape, 30_000);
        assert!(surface.len() > 100, "{D}D {name}: only {} surface points", surface.len());
        for seed in 0..400 {
            let x = point::<D>(90_000 + seed);
            let claimed = shape.distance(&x).abs();
            let sampled = surface.iter().map(|s| (x - s).norm()).fold(Real::INFINITY, Real::min);
            assert!(
                claimed <= sampled + 1e-9,
                "{D}D {name} at {x:?}: claims {claimed}, surface at {sampled}"
            );
        }
    }
}

#[test]
fn distance_never_exceeds_the_truth_2d() {
    distance_never_exceeds_the_truth::<2>();
}

#[test]
fn distance_never_exceeds_the_truth_3d() {
    distance_never_exceeds_the_truth::<3>();
}

/// An exact distance has a surface point at that distance: stepping by it along its own gradient lands on the surface.
fn primitives_are_exact<const D: usize>() {
    for (name, shape) in exact_shapes::<D>() {
        let mut checked = 0;
        for seed in 0..2000 {
            let x = point::<D>(70_000 + seed);
            let distance = shape.distance(&x);
            let step = 1e-6;
            let gradient = Vector::<D>::from_fn(|axis, _| {
                let mut arm = Vector::<D>::zeros();
                arm[axis] = step;
                (shape.distance(&(x + arm)) - shape.distance(&(x - arm))) / (2.0 * step)
            });
            // On the medial axis the gradient is not defined and the difference quotient falls short of 1.
            if (gradient.norm() - 1.0).abs() > 1e-5 {
                continue;
            }
            checked += 1;
            let landed = shape.distance(&(x - gradient * distance)).abs();
            assert!(landed < 1e-4, "{D}D {name}: {landed:.2e} off the surface from {x:?} at {distance}");
        }
        assert!(checked > 1900, "{D}D {name}: only {checked} points could be checked");
    }
}

#[test]
fn primitives_are_exact_2d() {
    primitives_are_exact::<2>();
}

#[test]
fn primitives_are_exact_3d() {
    primitives_are_exact::<3>();
}

fn bounds_hold_the_shape<const D: usize>() {
    for (name, shape) in exact_shapes::<D>().into_iter().chain(compound_shapes()) {
        let [min, max] = shape.extent();
        let mut reach = [Vector::<D>::repeat(Real::INFINITY), Vector::<D>::repeat(Real::NEG_INFINITY)];
        for s in surface_points(&shape, 30_000) {
            assert!(
                (0..D).all(|a| s[a] >= min[a] - 1e-9 && s[a] <= max[a] + 1e-9),
                "{D}D {name}: {s:?} is outside"
            );
            reach = [reach[0].inf(&s), reach[1].sup(&s)];
        }
        if matches!(
            name,
            "box" | "rounded box" | "sphere" | "cylinder" | "cone" | "torus" | "mesh" | "polygon"
        ) {
            let slack = (reach[0] - min).max().max((max - reach[1]).max());
            assert!(slack < 0.25, "{D}D {name}: the bounds are {slack} too wide");
        }
    }
    let up = vector::<D>(&[0.0, 1.0, 0.0]);
    let pool = Shape::half_space(up * 0.3, up);
    assert!(pool.bounds().is_none());
    assert_eq!(pool.extent()[1][1], 0.3);
    let cut = Shape::Intersection(vec![pool, Shape::Box { min: Vector::zeros(), max: Vector::repeat(1.0) }]);
    assert_eq!(cut.bounds().expect("a finite shape")[1][1], 0.3);
}

#[test]
fn bounds_hold_the_shape_in_2d_and_3d() {
    bounds_hold_the_shape::<2>();
    bounds_hold_the_shape::<3>();
}

#[test]
fn distances_agree_with_values_worked_by_hand() {
    let cone = Shape::<3>::cone(vector(&[0.0, 0.0, 0.0]), vector(&[0.0, 2.0, 0.0]), 1.0, 1.0);
    let cylinder = Shape::<3>::cylinder(vector(&[0.0, 0.0, 0.0]), vector(&[0.0, 2.0, 0.0]), 1.0);
    for seed in 0..500 {
        let x = point::<3>(seed);
        let gap = (cone.distance(&x) - cylinder.distance(&x)).abs();
        assert!(gap < 1e-12, "a cone of equal radii is a cylinder, {gap:.1e} apart at {x:?}");
    }
    let torus = Shape::<3>::torus(Vector::zeros(), vector(&[0.0, 0.0, 5.0]), 2.0, 0.5);
    assert!((torus.distance(&Vector::zeros()) - 1.5).abs() < 1e-12);
    let triangle =
        Shape::<2>::Polygon(Arc::new(Polygon::new(&[[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]]).unwrap()));
    assert!(
        (triangle.distance(&vector(&[1.0, 1.0])) + 1.0).abs() < 1e-12,
        "the inscribed circle has radius 1"
    );
    assert!((triangle.distance(&vector(&[-3.0, -4.0])) - 5.0).abs() < 1e-12);
}

#[test]
fn polygons_do_not_care_which_way_round_they_are_drawn() {
    let outline = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.4], [0.0, 1.0]];
    let mut reversed = outline;
    reversed.reverse();
    let (a, b) = (Polygon::new(&outline).unwrap(), Polygon::new(&reversed).unwrap());
    for seed in 0..1000 {
        let x = point::<2>(seed);
        assert!((a.distance(x[0], x[1]) - b.distance(x[0], x[1])).abs() < 1e-14);
    }
}

#[test]
fn bad_polygons_are_refused() {
    for bad in [
        vec![[0.0, 0.0], [1.0, 0.0]],
        vec![[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
        vec![[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        vec![[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]],
        vec![[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [1.0, 0.0], [0.0, 2.0]],
    ] {
        assert!(Polygon::new(&bad).is_err(), "{bad:?} must be refused");
    }
}

const TETRAHEDRON: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";

#[test]
fn an_inside_out_mesh_is_turned_round() {
    let turned = TETRAHEDRON
        .replace("f 1 3 2", "f 1 2 3")
        .replace("f 1 2 4", "f 1 4 2")
        .replace("f 1 4 3", "f 1 3 4")
        .replace("f 2 3 4", "f 2 4 3");
    let (a, b) = (Mesh::from_obj(TETRAHEDRON).unwrap(), Mesh::from_obj(&turned).unwrap());
    assert!(a.distance([0.1, 0.1, 0.1]) < 0.0);
    assert_eq!(a.distance([0.1, 0.1, 0.1]), b.distance([0.1, 0.1, 0.1]));
    assert!((a.distance([-3.0, -4.0, 0.0]) - 5.0).abs() < 1e-12);
}

#[test]
fn broken_meshes_are_refused() {
    let open = TETRAHEDRON.replace("f 2 3 4\n", "");
    assert!(matches!(Mesh::from_obj(&open), Err(MeshError::Open { count: 3, .. })));
    let fin = format!("{TETRAHEDRON}v 1 1 1\nf 1 2 5\n");
    assert!(matches!(Mesh::from_obj(&fin), Err(MeshError::NotManifold { .. })));
    let twisted = TETRAHEDRON.replace("f 2 3 4", "f 2 4 3");
    assert!(matches!(Mesh::from_obj(&twisted), Err(MeshError::NotManifold { .. })));
    let flat = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 1 3 2\n";
    assert_eq!(Mesh::from_obj(flat).unwrap_err(), MeshError::Flat);
    assert_eq!(Mesh::from_obj("").unwrap_err(), MeshError::Empty);
    let arrow = "v 0 1 0\nv -1 -1 0\nv 0 0 0\nv 1 -1 0\nv 0 0 1\nf 2 3 4 1\n";
    assert!(matches!(Mesh::from_obj(arrow), Err(MeshError::NotConvex { corners: 4, .. })));
    let sliver = TETRAHEDRON.replace("f 1 3 2", "v 0.5 0 0\nf 1 3 5\nf 5 3 2\nf 1 5 2");
    assert!(matches!(Mesh::from_obj(&sliver), Err(MeshError::Sliver { .. })));
    for wild in ["f 0 1 2", "f -9 1 2", "f 1 2 99", "f 1 2 3 4 5 6 7", "f 1//9 2//9 3//9"] {
        assert!(Mesh::from_obj(&format!("{TETRAHEDRON}{wild}\n")).is_err(), "{wild} must be refused");
    }
    assert!(Mesh::from_obj("v 0 0\nf 1 2 3").is_err());
    assert!(Mesh::from_obj("v 0 0 0\nf 1 2 3").is_err());
    assert!(Mesh::from_obj(&TETRAHEDRON.replace("v 1 0 0", "v nan 0 0")).is_err());
}

fn moves<const D: usize>(seed: u64) -> Vec<Move<D>> {
    let r = |i: u64| up_to_unit(seed * 100 + i) * 2.0 - 1.0;
    let axis = |i: u64| if D == 2 { [0.0, 0.0, 1.0] } else { [r(i), r(i + 1), r(i + 2) + 1.5] };
    let v = |i: u64| Vector::<D>::from_fn(|axis, _| r(i + axis as u64));
    let keys: Vec<(Real, Placement<D>)> = (0..4)
        .map(|i| {
            (0.4 * i as Real + 0.1, Placement { translation: v(20 + 5 * i), angle: 4.0 * r(24 + 5 * i) })
        })
        .collect();
    vec![
        Move::Glide { velocity: v(1), from: 0.2, until: 1.1 },
        Move::Spin { axis: axis(5), center: v(8), rate: 3.0 * r(11), from: 0.0, until: Real::INFINITY },
        Move::Swing { amplitude: v(12), frequency: 1.7, phase: 0.2 },
        Move::Rock { axis: axis(15), center: v(18), angle: r(19), frequency: 0.9, phase: 0.6 },
        Move::Keyframes(Keyframes::new(axis(40), v(43), Interpolation::Smooth, &keys)),
        Move::Keyframes(Keyframes::new(axis(50), v(53), Interpolation::Linear, &keys)),
    ]
}

fn velocity_is_the_derivative<const D: usize>() {
    for seed in 0..20 {
        let list = moves::<D>(seed);
        let alone = list.iter().map(|entry| Motion::new(vec![entry.clone()]));
        for motion in alone.chain([Motion::new(list.clone())]) {
            // Times at which no script switches on, off or to the next key.
            for time in [0.05, 0.15, 0.33, 0.61, 0.87, 1.05, 1.21, 2.5] {
                let x_rest = point::<D>(seed + 7);
                let place = |time: Real| motion.pose(time).from_rest(&x_rest);
                let x = place(time);
                let back = motion.to_rest(&x, time);
                assert!((back - x_rest).norm() < 1e-12, "{D}D {motion:?} at {time}: to_rest is no inverse");
                let step = 1e-5;
                let difference = (place(time + step) - place(time - step)) / (2.0 * step);
                let error = (motion.velocity(&x, time) - difference).norm();
                assert!(
                    error < 1e-5 * (1.0 + difference.norm()),
                    "{D}D {motion:?} at {time}: velocity off by {error:.2e}"
                );
            }
        }
    }
}

#[test]
fn velocity_is_the_derivative_of_the_motion() {
    velocity_is_the_derivative::<2>();
    velocity_is_the_derivative::<3>();
}

#[test]
fn smooth_keys_start_and_end_at_rest_and_do_not_overshoot() {
    let place = |x: Real| Placement { translation: vector::<2>(&[x, 0.0]), angle: 0.0 };
    let keys =
        [(0.5, place(0.0)), (1.0, place(1.0)), (1.2, place(1.1)), (3.0, place(1.1)), (4.0, place(0.0))];
    let track = Keyframes::new([0.0, 0.0, 1.0], Vector::zeros(), Interpolation::Smooth, &keys);
    assert_eq!(track.sample(0.0).0, place(0.0));
    assert_eq!(track.sample(9.0).0, place(0.0));
    assert!(
        track.sample(0.5).1.translation.norm() < 1e-12
            && track.sample(4.0 - 1e-9).1.translation.norm() < 1e-6
    );
    assert!(track.sample(1.0).1.translation.x > 0.1, "it flows through a key between others");
    for i in 0..500 {
        let x = track.sample(i as Real * 0.01).0.translation.x;
        assert!((-1e-12..=1.1 + 1e-12).contains(&x), "overshoots to {x}");
    }
}

#[test]
fn a_posed_solid_agrees_with_the_solid() {
    let shape = Shape::<3>::Box { min: vector(&[-1.0, -0.5, -0.2]), max: vector(&[1.0, 0.5, 0.2]) };
    let solid = Solid::new("paddle", shape, Motion::new(moves(3)));
    assert!(solid.is_moving());
    for seed in 0..50 {
        let (x, time) = (point::<3>(seed), 3.0 * up_to_unit(seed));
        let posed = solid.at(time);
        assert_eq!(posed.distance(&x), solid.distance(&x, time));
        assert_eq!(posed.velocity(&x), solid.velocity(&x, time));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_text_is_a_mesh_or_an_error(cut in 0usize..200, place in 0usize..200, byte in 32u8..127) {
        let mut text = TETRAHEDRON.as_bytes().to_vec();
        let place = place % text.len();
        text[place] = byte;
        text.truncate(cut.min(text.len()));
        if let Err(error) = Mesh::from_obj(&String::from_utf8_lossy(&text)) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
