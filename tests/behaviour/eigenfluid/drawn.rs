//! Drawn modes.

use std::sync::Arc;

use glug::eigenfluid::{Basis, Fluid, FluidParams, Space, Stroke, StrokeError};
use glug::math::Vector;

use super::fluid::dot;

fn jet(y: f64) -> Stroke<2> {
    let points = (0..=20).map(|i| Vector::from([0.2 + 0.6 * i as f64 / 20.0, y])).collect();
    Stroke { points, radius: 0.015 }
}

/// The paper's point: 64 eigenmodes hold little of a jet, one mode more holds all of it.
#[test]
fn a_drawn_jet_is_held_by_one_mode_more() {
    let basis = Arc::new(Basis::new([1.0, 1.0], [63; 2]));
    let mut space = Space::smallest(Arc::clone(&basis), 64);
    let jet = space.field_of(&jet(0.5)).expect("a mode");
    let held = |space: &Space<2>| {
        let mut field = jet.field.clone();
        space.project(&mut field);
        dot(&field, &field)
    };
    let plain = held(&space);
    space.add(jet.clone());
    let enriched = held(&space);
    assert!((0.36..0.42).contains(&plain), "eigenmodes hold {plain:.3} of a jet");
    assert!((enriched - 1.0).abs() < 1e-12, "with the jet's own mode {enriched:.14}");
    assert_eq!(space.dimensions(), [64, 1]);
}

#[test]
fn drawing_what_is_there_adds_nothing() {
    let basis = Arc::new(Basis::new([1.0, 1.0], [31; 2]));
    let mut space = Space::smallest(Arc::clone(&basis), 64);
    let mut eigenmode = vec![0.0; basis.len()];
    eigenmode[basis.index([2, 3], 0).expect("a mode")] = 3.0;
    space.add(space.mode_of(eigenmode).expect("a mode"));
    assert_eq!(space.dimensions(), [64, 0]);
    let jet = space.field_of(&jet(0.4)).expect("a mode");
    space.add(jet.clone());
    space.add(jet);
    assert_eq!(space.dimensions(), [64, 1]);
    space.remove(2);
    assert_eq!(space.dimensions(), [64, 1]);
    space.remove(1);
    assert_eq!(space.dimensions(), [64, 0]);
}

fn enriched() -> Fluid<2> {
    let basis = Arc::new(Basis::new([1.0, 1.0], [31; 2]));
    let mut space = Space::smallest(basis, 64);
    for y in [0.3, 0.5, 0.52] {
        space.add(space.field_of(&jet(y)).expect("a mode"));
    }
    Fluid::new(space, FluidParams::default())
}

#[test]
fn projecting_twice_is_projecting_once_and_orthogonal() {
    let space = enriched().space;
    let mut once = super::fluid::random(space.basis(), 4);
    let before = once.clone();
    space.project(&mut once);
    let mut twice = once.clone();
    space.project(&mut twice);
    let rest: Vec<f64> = before.iter().zip(&once).map(|(a, b)| a - b).collect();
    let again: Vec<f64> = twice.iter().zip(&once).map(|(a, b)| a - b).collect();
    let norm = dot(&before, &before);
    assert!(dot(&rest, &once).abs() < 1e-14 * norm, "{:.1e}", dot(&rest, &once));
    assert!(dot(&again, &again).sqrt() < 1e-14 * norm.sqrt());
    assert_eq!(space.dimensions(), [64, 3]);
}

#[test]
fn a_fluid_with_drawn_modes_keeps_its_energy() {
    let mut fluid = enriched();
    fluid.excite(0, 1.0);
    fluid.excite(2, -0.7);
    assert!((fluid.strength(0) - 1.0).abs() < 0.3, "{}", fluid.strength(0));
    let start = fluid.energy();
    let steps: usize = (0..100).map(|_| fluid.advance(0.02)).sum();
    let change = (fluid.energy() / start - 1.0).abs();
    assert!(change < 1e-12, "{change:.1e} in {steps} steps");
}

/// In a space of modes, viscosity damps energy at the rate `2 ν ⟨r, Λ r⟩ / |r|²`, for drawn modes as for others.
#[test]
fn drawn_modes_are_damped_by_their_own_viscosity() {
    let mut space = enriched().space;
    let mut field = space.drawn()[0].field.clone();
    let basis = Arc::new(space.basis().clone());
    let weighted = |field: &[f64]| {
        field.iter().enumerate().map(|(index, a)| a * a * basis.eigenvalue(index)).sum::<f64>()
    };
    // What of it lies outside of the eigenmodes is damped on its own.
    let outside = Space::smallest(Arc::clone(&basis), 64);
    let mut share = field.clone();
    outside.project(&mut share);
    field.iter_mut().zip(&share).for_each(|(field, share)| *field -= share);
    let (before, rate, s) = (dot(&field, &field), 2.0 * weighted(&field), 1e-9);
    space.diffuse(&mut field, s);
    let lost = (before - dot(&field, &field)) / s;
    assert!((lost / rate - 1.0).abs() < 1e-5, "{lost} in place of {rate}");
    // The same for any way to cut the time.
    let (mut at_once, mut in_parts) = (field.clone(), field);
    space.diffuse(&mut at_once, 1e-3);
    (0..10).for_each(|_| space.diffuse(&mut in_parts, 1e-4));
    let difference: Vec<f64> = at_once.iter().zip(&in_parts).map(|(a, b)| a - b).collect();
    assert!(dot(&difference, &difference).sqrt() < 1e-13);
    space.remove(0);
    assert_eq!(space.dimensions(), [64, 2]);
}

#[test]
fn what_is_no_stroke_is_refused() {
    let space = Space::<2>::whole(Arc::new(Basis::new([1.0, 1.0], [8; 2])));
    let point = Vector::from([0.4, 0.4]);
    let stroke = |points: &[Vector<2>], radius| space.field_of(&Stroke { points: points.to_vec(), radius });
    assert_eq!(stroke(&[], 0.1), Err(StrokeError::Nothing));
    assert_eq!(stroke(&[point], 0.1), Err(StrokeError::Nothing));
    assert_eq!(stroke(&[point, point], 0.1), Err(StrokeError::Nothing));
    assert_eq!(stroke(&[point, point * f64::NAN], 0.1), Err(StrokeError::NonFinite));
    assert_eq!(stroke(&[point, point * 1.5], 0.0), Err(StrokeError::Radius(0.0)));
    assert_eq!(stroke(&[point, point * 1.5], f64::INFINITY), Err(StrokeError::NonFinite));
    assert!(stroke(&[point, point * 1.5], 0.1).is_ok());
}
