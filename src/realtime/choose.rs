//! From timings to a number of cells.
//!
//! A coarse run goes far enough into the scene to see it at its busiest. Finer ones run for its first frames only: how
//! many times longer those took is how many times longer all of it will take. Between what was measured, cost grows
//! like `cells^(D+1)`: cells in space, and substeps that get shorter with them.

/// Coarser than this, scenes lose what they are about.
const LEAST: usize = 24;
/// Resolutions on offer are multiples of this: whole blocks of the grid.
const APART: usize = 8;
/// How much of the clock the simulation may take: the rest is for the picture and for what is yet to come.
const SHARE: f64 = 0.8;
/// The same where the pace was seen in the run itself.
const SHARE_SEEN: f64 = 0.9;
/// Measurements besides the coarse one, at most.
const MOST_PROBES: usize = 3;

/// What is known before anything is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// 2 or 3.
    pub dimension: usize,
    /// Cells along x that the scene asks for: the finest on offer.
    pub own: usize,
    /// Simulated seconds per frame.
    pub frame_seconds: f64,
    /// How many simulations of this kind take turns on the same threads; 1 where each has its own.
    pub in_turns: usize,
}

/// A resolution that keeps up with the clock, as far as there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Cells along x that the scene asks for.
    pub own: usize,
    /// Cells along x that were chosen, `own` at most.
    pub cells: usize,
    /// Simulated seconds per wall second to be expected in the busier half of the scene.
    pub pace: f64,
}

impl Choice {
    /// Whether real time is to be expected.
    pub fn keeps_up(&self) -> bool {
        self.pace >= 1.0
    }
}

/// The numbers of cells that are offered for a scene, coarsest first; its own comes last.
pub fn resolutions(own: usize) -> Vec<usize> {
    (LEAST..own).filter(|cells| cells.is_multiple_of(APART)).chain([own]).collect()
}

/// What to offer when a simulation goes at `pace` times real time: the finest resolution that should keep up, or the
/// coarsest there is; `None` when it runs at that already.
pub fn coarser(dimension: usize, own: usize, cells: usize, pace: f64) -> Option<usize> {
    let below: Vec<_> = resolutions(own).into_iter().filter(|&one| one < cells).collect();
    let load = |one: usize| (one as f64 / cells as f64).powi(dimension as i32 + 1) / pace.max(1e-9);
    below.iter().rev().find(|&&one| load(one) <= SHARE_SEEN).or(below.first()).copied()
}

/// Finds the finest resolution that keeps up. `measure` runs the scene with so many cells for a short while (longer for
/// the first time it is asked) and returns the wall seconds that each frame took, the one it was cut short in included.
pub fn choose<E>(
    limits: &Limits,
    mut measure: impl FnMut(usize) -> Result<Vec<f64>, E>,
) -> Result<Choice, E> {
    let Limits { dimension, own, frame_seconds, in_turns } = *limits;
    let offered = resolutions(own);
    let growth = dimension as f64 + 1.0;
    // A third of the cells along each axis costs a fiftieth; never finer than what is asked about.
    let coarse = offered.iter().copied().rfind(|&cells| cells <= (own / 3).max(LEAST)).unwrap_or(own);
    let profile = measure(coarse)?;
    let coarse_load = in_turns as f64 * busy_mean(&profile) / frame_seconds;
    let mut known = vec![(coarse, coarse_load)];
    // Where to go on from: what was measured last, and how cost grows from there.
    let mut from = (coarse, coarse_load, growth);
    for _ in 0..MOST_PROBES {
        let next = next_to_try(&offered, &known, from);
        if known.iter().any(|&(cells, _)| cells == next) {
            break;
        }
        let load = coarse_load * ratio(&measure(next)?, &profile);
        known.push((next, load));
        let measured = (load / coarse_load).ln() / (next as f64 / coarse as f64).ln();
        let plausible = if measured.is_finite() { measured.clamp(1.0, growth + 1.0) } else { growth };
        from = (next, load, plausible);
    }
    let good = known.iter().filter(|(_, load)| *load <= SHARE).max_by_key(|(cells, _)| *cells);
    let &(cells, load) = good.or(known.iter().min_by_key(|(cells, _)| *cells)).unwrap_or(&(own, 1.0));
    Ok(Choice { own, cells, pace: 1.0 / load.max(1e-9) })
}

/// The finest resolution that should keep up, going by the last measurement, and not contradicting any of them.
fn next_to_try(offered: &[usize], known: &[(usize, f64)], (cells, load, growth): (usize, f64, f64)) -> usize {
    let good = known.iter().filter(|(_, load)| *load <= SHARE).map(|(cells, _)| *cells).max();
    let bad = known.iter().filter(|(_, load)| *load > SHARE).map(|(cells, _)| *cells).min();
    let expected = |one: usize| load * (one as f64 / cells as f64).powf(growth);
    let fits = |one: &&usize| expected(**one) <= SHARE && bad.is_none_or(|bad| **one < bad);
    let best = offered.iter().rev().find(fits).copied().max(good).unwrap_or(offered[0]);
    if known.len() > 1 || best > cells {
        return best;
    }
    // How cost grows has not been seen yet, and what does not grow at all may be most of it.
    let finer = offered.iter().copied().find(|&one| one > cells);
    finer.filter(|&one| load * one as f64 / cells as f64 <= SHARE).unwrap_or(best)
}

/// The mean of the slower half of the frames. The first one, which also finds its memory, does not count.
fn busy_mean(frames: &[f64]) -> f64 {
    let mut frames = frames[usize::from(frames.len() > 2)..].to_vec();
    frames.sort_by(f64::total_cmp);
    let busy = &frames[frames.len() / 2..];
    busy.iter().sum::<f64>() / busy.len().max(1) as f64
}

/// How many times as long the first frames took.
fn ratio(frames: &[f64], reference: &[f64]) -> f64 {
    let count = frames.len().min(reference.len());
    let skipped = usize::from(count > 2);
    let sum = |frames: &[f64]| frames[skipped..count].iter().sum::<f64>();
    sum(frames) / sum(reference).max(1e-9)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const FRAME: f64 = 1.0 / 30.0;

    /// A scene that gets busier for a second and calms down: how much more a frame costs.
    fn activity(frame: usize) -> f64 {
        1.0 + 2.0 * (1.0 - (frame as f64 / 15.0 - 1.0).abs()).max(0.0)
    }

    /// A machine: what a frame costs that is neither calm nor busy, by the number of cells.
    fn timings(limits: Limits, budget: f64, cost: impl Fn(usize) -> f64, asked: &mut Vec<usize>) -> Choice {
        let measure = |cells: usize| {
            asked.push(cells);
            let (mut spent, mut frames) = (0.0, Vec::new());
            while spent < budget && frames.len() < 60 {
                let frame = (cost(cells) * activity(frames.len())).min(budget);
                spent += frame;
                frames.push(frame);
            }
            Ok::<_, Infallible>(frames)
        };
        choose(&limits, measure).unwrap_or_else(|never| match never {})
    }

    fn limits(dimension: usize, own: usize) -> Limits {
        Limits { dimension, own, frame_seconds: FRAME, in_turns: 1 }
    }

    #[test]
    fn the_finest_resolution_that_keeps_up_is_found() {
        // What a frame of the finest resolution costs, in frames of the clock.
        for (dimension, own) in [(3, 64), (3, 96), (2, 128), (2, 512), (3, 100)] {
            for slow in [0.01, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0] {
                let cost = |cells: usize| FRAME * slow * (cells as f64 / own as f64).powi(dimension + 1);
                let mut asked = Vec::new();
                let choice = timings(limits(dimension as usize, own), 0.5, cost, &mut asked);
                assert!(asked.len() <= 1 + MOST_PROBES, "{asked:?}");
                // Twice the calm cost is about the busier half.
                let load = |cells: usize| 2.0 * cost(cells) / FRAME;
                let finer = resolutions(own).into_iter().find(|&cells| cells > choice.cells);
                let coarsest = choice.cells == resolutions(own)[0];
                assert!(load(choice.cells) < 1.0 || coarsest, "{dimension}D {own}, {slow}: {choice:?}");
                assert!(
                    finer.is_none_or(|finer| load(finer) > 0.6),
                    "{dimension}D {own}, {slow}: {choice:?}"
                );
                assert_eq!(choice.keeps_up(), load(choice.cells) < 1.0, "{choice:?}");
            }
        }
    }

    #[test]
    fn overhead_that_does_not_grow_is_noticed() {
        // Extrapolated from the coarse run alone, 64 cells would look 50 times as expensive as 24.
        let cost = |cells: usize| FRAME * (0.2 + 0.15 * (cells as f64 / 64.0).powi(4));
        let choice = timings(limits(3, 64), 0.5, cost, &mut Vec::new());
        assert!(choice.cells >= 56, "{choice:?}");
    }

    #[test]
    fn two_that_take_turns_get_half_the_clock_each() {
        let cost = |cells: usize| FRAME * 0.3 * (cells as f64 / 64.0).powi(4);
        let alone = timings(limits(3, 64), 0.5, cost, &mut Vec::new());
        let both = timings(Limits { in_turns: 2, ..limits(3, 64) }, 0.5, cost, &mut Vec::new());
        assert_eq!(alone.cells, 64);
        assert!(both.cells < 64 && both.cells >= 48, "{both:?}");
    }

    #[test]
    fn a_frame_that_never_ends_leads_to_the_coarsest() {
        let choice = timings(limits(3, 64), 0.5, |_| 1e6, &mut Vec::new());
        assert_eq!(choice.cells, 24);
        assert!(!choice.keeps_up());
    }

    #[test]
    fn errors_end_the_search() {
        assert_eq!(choose(&limits(3, 64), |_| Err("no liquid")), Err("no liquid"));
    }

    #[test]
    fn resolutions_are_whole_blocks_up_to_the_scenes_own() {
        assert_eq!(resolutions(64), [24, 32, 40, 48, 56, 64]);
        assert_eq!(resolutions(50), [24, 32, 40, 48, 50]);
        assert_eq!((resolutions(24), resolutions(10)), (vec![24], vec![10]));
    }

    #[test]
    fn what_is_offered_is_coarser_and_goes_with_the_lag() {
        assert_eq!(coarser(3, 64, 64, 0.7), Some(56));
        assert_eq!(coarser(3, 64, 64, 0.25), Some(40));
        assert_eq!(coarser(3, 64, 64, 0.001), Some(24), "the coarsest is all there is");
        assert_eq!(coarser(3, 64, 24, 0.1), None);
        assert_eq!(coarser(2, 64, 200, 0.9), Some(64), "finer than the scene's own by hand");
    }
}
