//! Smoke in winds that are given: where it goes, how exactly, and that none is lost.

use std::f64::consts::PI;

use glug::math::Vector;

use super::Windy;

/// A blob without any edge: `cos⁴` of the way from its middle.
fn blob<const D: usize>(x: &Vector<D>, middle: [f64; 3]) -> f64 {
    const RADIUS: f64 = 0.24;
    let away = (0..D).map(|k| (x[k] - middle[k]).powi(2)).sum::<f64>().sqrt() / RADIUS;
    if away < 1.0 { (0.5 * PI * away).cos().powi(4) } else { 0.0 }
}

/// A uniform wind carries a blob along; the mean error, and how far its middle is from where it should be, in cells.
fn blow<const D: usize>(cells: usize) -> [f64; 2] {
    let (from, speed) = ([0.32, 0.36, 0.4], [0.36, 0.24, 0.15]);
    let mut windy = Windy::<D>::new([cells; D], true, |x| [blob(x, from), 0.0]);
    windy.tank.set_velocity(|_, axis| speed[axis]);
    let steps = 3 * cells / 4;
    let (before, seconds) = (windy.totals(), 1.0);
    (0..steps).for_each(|_| windy.advance(seconds / steps as f64));
    let to = std::array::from_fn(|k| from[k] + speed[k] * seconds);
    let after = windy.totals();
    let lost = (after.mass / before.mass - 1.0).abs();
    assert!(lost < 1e-6, "{D}D, {cells} cells: {lost:.1e} of the smoke got lost");
    let off =
        (0..D).map(|k| (after.centroid[k] - before.centroid[k] - speed[k] * seconds).powi(2)).sum::<f64>();
    [windy.mean_error(|x| blob(x, to)), off.sqrt() * cells as f64]
}

fn a_smooth_blob_travels_to_second_order<const D: usize>(cells: usize) {
    let [[coarse, _], [fine, off]] = [cells, 2 * cells].map(blow::<D>);
    let order = (coarse / fine).log2();
    assert!(order > 1.8, "{D}D: errors {coarse:.2e} and {fine:.2e}, order {order:.2}");
    assert!(off < 0.01, "{D}D: the middle of the blob is off by {off:.3} cells");
}

#[test]
fn a_smooth_blob_travels_to_second_order_2d() {
    a_smooth_blob_travels_to_second_order::<2>(40);
}

#[test]
fn a_smooth_blob_travels_to_second_order_3d() {
    a_smooth_blob_travels_to_second_order::<3>(24);
}

/// Eddies in a closed box, without divergence on every cell: differences of a stream function.
fn stir<const D: usize>(windy: &mut Windy<D>, speed: f64) {
    let dx = windy.tank.blocks.grid().dx;
    let stream = |x: f64, y: f64| speed / PI * (PI * x).sin() * (2.0 * PI * y).sin();
    windy.tank.set_velocity(|x, axis| match axis {
        0 => (stream(x[0], x[1] + 0.5 * dx) - stream(x[0], x[1] - 0.5 * dx)) / dx,
        1 => -(stream(x[0] + 0.5 * dx, x[1]) - stream(x[0] - 0.5 * dx, x[1])) / dx,
        _ => 0.0,
    });
}

/// Sharp smoke, hot in one half and cold in the other, for many turns; steps so long that they have to be cut.
fn eddies_keep_smoke_and_its_bounds<const D: usize>(cells: usize, courant: f64, steps: usize) {
    let half = |x: &Vector<D>| [f64::from(x[0] < 0.4), if x[1] < 0.6 { 3.0 } else { -2.0 }];
    let mut windy = Windy::<D>::new([cells; D], false, half);
    stir(&mut windy, 1.0);
    let before = windy.totals();
    for _ in 0..steps {
        windy.advance(courant / cells as f64);
    }
    let (after, [density, heat]) = (windy.totals(), windy.extremes());
    // Hot and cold are more than their sum.
    let lost = [after.mass / before.mass - 1.0, (after.heat - before.heat) / 2.6];
    assert!(lost.iter().all(|lost| lost.abs() < 1e-6), "{D}D, Courant {courant}: {lost:?} got lost");
    let is_bounded =
        density[0] >= -1e-6 && density[1] <= 1.0 + 1e-5 && heat[0] >= -2.0001 && heat[1] <= 3.0001;
    assert!(is_bounded, "{D}D, Courant {courant}: {density:?}, {heat:?}");
    assert!(after.centroid[0] > before.centroid[0] + 0.1, "{D}D: it was stirred");
}

#[test]
fn eddies_keep_smoke_and_its_bounds_2d() {
    eddies_keep_smoke_and_its_bounds::<2>(48, 0.7, 300);
    eddies_keep_smoke_and_its_bounds::<2>(48, 3.7, 300);
}

#[test]
fn eddies_keep_smoke_and_its_bounds_3d() {
    eddies_keep_smoke_and_its_bounds::<3>(20, 0.7, 80);
    eddies_keep_smoke_and_its_bounds::<3>(20, 3.7, 40);
}

/// Air that is smoky everywhere stays as smoky, to the last bit, whatever it does.
#[test]
fn even_smoke_stays_even() {
    let mut windy = Windy::<2>::new([40; 2], false, |_| [0.3, -7.0]);
    stir(&mut windy, 1.0);
    (0..50).for_each(|_| windy.advance(0.05));
    assert_eq!(windy.extremes(), [[0.3; 2], [-7.0; 2]]);
}

/// Through open sides smoke leaves, and clear air comes in.
fn wind_blows_smoke_out<const D: usize>(cells: usize) {
    let mut windy = Windy::<D>::new([cells; D], true, |_| [1.0, 0.0]);
    windy.tank.set_velocity(|_, axis| [0.5, 0.0, 0.0][axis]);
    let mut mass = windy.totals().mass;
    for step in 1..=2 * cells {
        windy.advance(1.0 / cells as f64);
        let (now, gone) = (windy.totals().mass, 0.5 * step as f64 / cells as f64);
        assert!(now <= mass, "{D}D: smoke came in");
        // The front of the clear air is a few cells wide in the end.
        assert!(
            (now - (1.0 - gone)).abs() < 0.7 / cells as f64,
            "{D}D: {now:.4} kg are left, {:.4} should be",
            1.0 - gone
        );
        mass = now;
    }
    assert!(windy.extremes()[0][0] >= -1e-6, "{D}D: {:?}", windy.extremes());
}

#[test]
fn wind_blows_smoke_out_2d() {
    wind_blows_smoke_out::<2>(24);
}

#[test]
fn wind_blows_smoke_out_3d() {
    wind_blows_smoke_out::<3>(16);
}
