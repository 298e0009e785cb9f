//! Random scenes, written as scene files.
//!
//! A scene follows from its number alone. The model and the dimension go round with the number, so that any ten scenes in a
//! row have each model in 2D and in 3D; everything else is drawn.

use glug::sim::Model;

/// A sequence of numbers that follows from a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly from `low` to `high`.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.bits() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// From `low` to `high`, every power of ten as likely as the next.
    fn by_powers(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp().clamp(low, high)
    }

    /// A whole number from `low` to `high`.
    fn whole(&mut self, low: usize, high: usize) -> usize {
        low + (self.bits() % (high - low + 1) as u64) as usize
    }

    fn chance(&mut self, share: f64) -> bool {
        self.between(0.0, 1.0) < share
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.whole(0, of.len() - 1)]
    }
}

/// A point, or as many numbers as the scene has dimensions.
type Point = Vec<f64>;

/// A ball in which a shape has to fit.
#[derive(Clone)]
struct Ball {
    center: Point,
    radius: f64,
}

/// A number as a scene file shows it: five digits are plenty.
fn number(value: f64) -> String {
    if value == 0.0 {
        return "0.0".to_owned();
    }
    let digits = (4.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text } else { text + ".0" }
}

fn tuple(point: &[f64]) -> String {
    format!("({})", point.iter().map(|&x| number(x)).collect::<Vec<_>>().join(", "))
}

/// The text of a scene with a number. An attempt that the reader of scenes refuses (a shape may cut another away
/// altogether) is followed by the next.
pub fn write_scene(scene: u64, attempt: u64) -> String {
    let models = Model::ALL;
    let model = models[scene as usize % models.len()];
    let dimension = 2 + (scene as usize / models.len()) % 2;
    let mut random = Random::new(scene.wrapping_mul(0x1000).wrapping_add(attempt));
    // Neighbouring seeds begin alike.
    random.bits();
    let longest = random.by_powers(0.1, 10.0);
    let mut size: Point = (0..dimension).map(|_| longest * random.between(0.4, 1.0)).collect();
    size[random.pick(&[0, 1])] = longest;
    let cells = if dimension == 2 { random.whole(32, 96) } else { random.whole(16, 32) };
    // Along the longest side, whichever that is.
    let cells = ((cells as f64 * size[0] / longest).round() as usize).max(8);
    let gravity = match random.whole(0, 5) {
        0 => 0.0,
        1 => random.between(0.0, 2.0),
        2 => random.between(0.0, 100.0),
        _ => 9.81,
    };
    let speed = (2.0 * gravity * size[1]).sqrt().max(0.3) * random.between(0.2, 2.0);
    Writer { dx: size[0] / cells as f64, random, size, cells, gravity, speed, model }.write(scene)
}

struct Writer {
    random: Random,
    size: Point,
    cells: usize,
    dx: f64,
    gravity: f64,
    /// What counts as fast here, m/s.
    speed: f64,
    model: Model,
}

impl Writer {
    fn dimension(&self) -> usize {
        self.size.len()
    }

    /// A direction of unit length, or along an axis.
    fn direction(&mut self) -> Point {
        let dimension = self.dimension();
        if self.random.chance(0.3) {
            let (axis, sign) = (self.random.whole(0, dimension - 1), self.random.pick(&[-1.0, 1.0]));
            return (0..dimension).map(|k| if k == axis { sign } else { 0.0 }).collect();
        }
        loop {
            let point: Point = (0..dimension).map(|_| self.random.between(-1.0, 1.0)).collect();
            let length = point.iter().map(|x| x * x).sum::<f64>().sqrt();
            if (0.1..1.0).contains(&length) {
                return point.iter().map(|x| x / length).collect();
            }
        }
    }

    fn velocity(&mut self) -> Point {
        let speed = self.random.between(0.0, self.speed);
        self.direction().iter().map(|x| x * speed).collect()
    }

    /// A ball inside the domain, `least` to `most` of its shortest half side large.
    fn ball(&mut self, least: f64, most: f64) -> Ball {
        let half = 0.5 * self.size.iter().copied().fold(f64::INFINITY, f64::min);
        let radius = half * self.random.between(least, most);
        let center =
            self.size.clone().iter().map(|&length| self.random.between(radius, length - radius)).collect();
        Ball { center, radius }
    }

    /// A ball inside another.
    fn ball_in(&mut self, outer: &Ball, least: f64, most: f64) -> Ball {
        let radius = outer.radius * self.random.between(least, most);
        let shift = self.random.between(0.0, outer.radius - radius);
        let center = self.direction().iter().zip(&outer.center).map(|(x, c)| c + shift * x).collect();
        Ball { center, radius }
    }

    /// A ball that overlaps another and may reach out of it.
    fn ball_across(&mut self, other: &Ball) -> Ball {
        let radius = other.radius * self.random.between(0.3, 0.8);
        let shift = self.random.between(0.2, 1.0) * other.radius;
        let center = self.direction().iter().zip(&other.center).map(|(x, c)| c + shift * x).collect();
        Ball { center, radius }
    }

    fn along(ball: &Ball, direction: &[f64], distance: f64) -> String {
        tuple(&ball.center.iter().zip(direction).map(|(c, x)| c + distance * x).collect::<Vec<_>>())
    }

    /// `axis: …, ` in 3D, where turns need one.
    fn axis(&mut self) -> String {
        if self.dimension() == 2 { String::new() } else { format!("axis: {}, ", tuple(&self.direction())) }
    }

    /// Corners of a box in a ball, as half its sides.
    fn half_sides(&mut self, ball: &Ball) -> Point {
        let longest = ball.radius / (self.dimension() as f64).sqrt();
        (0..self.dimension()).map(|_| longest * self.random.between(0.25, 1.0)).collect()
    }

    /// A shape in a ball, of every kind; `depth` is how far it may be composed of others.
    fn shape(&mut self, ball: &Ball, depth: usize) -> String {
        let center = tuple(&ball.center);
        let radius = ball.radius;
        let kinds = if depth == 0 { 7 } else { 14 };
        match self.random.whole(0, kinds - 1) {
            0 => {
                let half = self.half_sides(ball);
                let size: Point = half.iter().map(|x| 2.0 * x).collect();
                format!("box(center: {center}, size: {})", tuple(&size))
            }
            1 => {
                let half = self.half_sides(ball);
                let least = half.iter().copied().fold(f64::INFINITY, f64::min);
                let (low, high): (Point, Point) =
                    ball.center.iter().zip(&half).map(|(c, x)| (c - x, c + x)).unzip();
                let round = number(0.9 * least * self.random.between(0.0, 1.0));
                format!("rounded_box(min: {}, max: {}, radius: {round})", tuple(&low), tuple(&high))
            }
            2 | 3 => format!("sphere(center: {center}, radius: {})", number(radius)),
            4 => {
                let (direction, thick) = (self.direction(), radius * self.random.between(0.1, 0.6));
                let [from, to] = [-1.0, 1.0].map(|end| Self::along(ball, &direction, end * (radius - thick)));
                format!("capsule(from: {from}, to: {to}, radius: {})", number(thick))
            }
            5 | 6 if self.dimension() == 2 => self.star(ball),
            5 => {
                let (direction, length) = (self.direction(), radius * self.random.between(0.3, 0.9));
                let [from, to] = [-1.0, 1.0].map(|end| Self::along(ball, &direction, end * length));
                let wide = (radius * radius - length * length).sqrt();
                if self.random.chance(0.5) {
                    return format!("cylinder(from: {from}, to: {to}, radius: {})", number(wide));
                }
                let point = number(wide * self.random.pick(&[0.0, 0.4]));
                format!("cone(from: {from}, to: {to}, from_radius: {}, to_radius: {point})", number(wide))
            }
            6 if self.random.chance(0.8) => {
                let tube = radius * self.random.between(0.15, 0.45);
                let (axis, ring, tube) = (tuple(&self.direction()), number(radius - tube), number(tube));
                format!("torus(center: {center}, axis: {axis}, ring_radius: {ring}, tube_radius: {tube})")
            }
            6 => {
                // The gem that comes with the program reaches a metre from its middle.
                let (factor, origin) = (number(radius), "(0.0, 0.0, 0.0)");
                let gem = format!(
                    "scale(factor: {factor}, center: {origin}, shape: mesh(file: \"../assets/gem.obj\"))"
                );
                format!("translate(by: {center}, shape: {gem})")
            }
            7 => {
                let count = self.random.whole(2, 3);
                let parts: Vec<String> = (0..count)
                    .map(|_| {
                        let part = self.ball_in(ball, 0.3, 0.8);
                        self.shape(&part, depth - 1)
                    })
                    .collect();
                format!("union([{}])", parts.join(", "))
            }
            8 => {
                let other = self.ball_across(ball);
                let (from, with) = (self.shape(ball, depth - 1), self.shape(&other, depth - 1));
                format!("intersection([{from}, {with}])")
            }
            9 | 10 => {
                let cut: Vec<String> = (0..self.random.whole(1, 3))
                    .map(|_| {
                        let part = self.ball_across(ball);
                        self.shape(&part, depth - 1)
                    })
                    .collect();
                format!("difference(from: {}, cut: [{}])", self.shape(ball, depth - 1), cut.join(", "))
            }
            11 => {
                let (degrees, axis) = (number(self.random.between(-180.0, 180.0)), self.axis());
                let shape = self.shape(ball, depth - 1);
                format!("rotate(degrees: {degrees}, {axis}center: {center}, shape: {shape})")
            }
            12 => {
                let factor = self.random.between(0.5, 1.0);
                let shape = self.shape(ball, depth - 1);
                format!("scale(factor: {}, center: {center}, shape: {shape})", number(factor))
            }
            _ => {
                let by: Point = ball.center.iter().map(|x| 0.5 * x).collect();
                let back = Ball { center: by.clone(), radius };
                format!("translate(by: {}, shape: {})", tuple(&by), self.shape(&back, depth - 1))
            }
        }
    }

    /// A polygon whose corners go round a point.
    fn star(&mut self, ball: &Ball) -> String {
        let count = self.random.whole(3, 9);
        let points: Vec<String> = (0..count)
            .map(|k| {
                let share = k as f64 + self.random.between(-0.3, 0.3);
                let angle = std::f64::consts::TAU * share / count as f64;
                let length = ball.radius * self.random.between(0.35, 1.0);
                tuple(&[ball.center[0] + length * angle.cos(), ball.center[1] + length * angle.sin()])
            })
            .collect();
        format!("polygon(points: [{}])", points.join(", "))
    }

    /// A pool over the whole floor, or a column beside a wall; and how much of the domain's height it fills.
    fn pool(&mut self) -> (String, f64) {
        let (low, mut high) = (vec![0.0; self.dimension()], self.size.clone());
        if self.random.chance(0.4) {
            for axis in (0..self.dimension()).filter(|&axis| axis != 1) {
                high[axis] *= self.random.between(0.2, 0.9);
            }
        }
        high[1] *= match self.random.whole(0, 6) {
            0 => 1.0,
            1 => 0.97,
            _ => self.random.between(0.1, 0.95),
        };
        (format!("box(min: {}, max: {})", tuple(&low), tuple(&high)), high[1] / self.size[1])
    }

    /// Somewhere for liquid to be at the start.
    fn body(&mut self) -> String {
        match self.random.whole(0, 9) {
            // A pool with holes: the bubbles.
            0..=3 => {
                let (pool, filled) = self.pool();
                let holes: Vec<String> = (0..self.random.whole(1, 6))
                    .map(|_| {
                        let mut hole = self.ball(0.05, 0.6);
                        hole.center[1] *= filled;
                        self.shape(&hole, 1)
                    })
                    .collect();
                format!("difference(from: {pool}, cut: [{}])", holes.join(", "))
            }
            4 | 5 => self.pool().0,
            6 => {
                let (point, direction) = (self.ball(0.1, 0.3).center, self.direction());
                format!("half_space(point: {}, normal: {})", tuple(&point), tuple(&direction))
            }
            7 => {
                let hole = self.ball(0.3, 0.95);
                format!("inverted({})", self.shape(&hole, 1))
            }
            _ => {
                let ball = self.ball(0.2, 0.95);
                self.shape(&ball, 2)
            }
        }
    }

    fn liquid(&mut self) -> String {
        let shape = self.body();
        if self.random.chance(0.35) {
            return shape;
        }
        let mut text = format!("(shape: {shape}, velocity: {}", tuple(&self.velocity()));
        if self.random.chance(0.3) {
            let (axis, center) = (self.axis(), tuple(&self.ball(0.1, 0.3).center));
            let largest = self.size.iter().copied().fold(0.0, f64::max);
            let rate = number(self.random.between(-1.0, 1.0) * 2.0 * (self.speed / largest).to_degrees());
            text += &format!(", spin: (degrees_per_second: {rate}, {axis}center: {center})");
        }
        text + ")"
    }

    /// `from: …, until: …` within some frames, or nothing.
    fn span(&mut self, frame: f64) -> String {
        if self.random.chance(0.6) {
            return String::new();
        }
        let from = frame * self.random.between(0.0, 6.0);
        let until = from + frame * self.random.between(0.5, 8.0);
        format!(", from: {}, until: {}", number(from), number(until))
    }

    fn motion(&mut self, ball: &Ball, frame: f64) -> String {
        let (center, span, axis) = (tuple(&ball.center), self.span(frame), self.axis());
        let period = frame * self.random.between(4.0, 30.0);
        let angular = number((self.random.between(-1.0, 1.0) * self.speed / ball.radius).to_degrees());
        let reach = 0.1 * self.speed * period;
        match self.random.whole(0, 4) {
            0 => format!("glide(velocity: {}{span})", tuple(&self.velocity())),
            1 => format!("spin(degrees_per_second: {angular}, {axis}center: {center}{span})"),
            2 => format!(
                "swing(direction: {}, amplitude: {}, frequency: {}, phase: {})",
                tuple(&self.direction()),
                number(reach),
                number((1.0 / period).min(1000.0)),
                number(self.random.between(0.0, 1.0))
            ),
            3 => format!(
                "rock(degrees: {}, {axis}center: {center}, frequency: {})",
                number((reach / ball.radius).to_degrees()),
                number((1.0 / period).min(1000.0))
            ),
            _ => {
                let linear = self.random.pick(&["smooth", "linear"]);
                let keys: Vec<String> = (0..3)
                    .map(|k| {
                        let by: Point = self.direction().iter().map(|x| 0.5 * reach * x).collect();
                        let degrees = number(self.random.between(-45.0, 45.0));
                        let time = number(k as f64 * 0.5 * period);
                        format!("(time: {time}, move: {}, degrees: {degrees})", tuple(&by))
                    })
                    .collect();
                format!(
                    "keyframes(interpolation: {linear}, {axis}center: {center}, keys: [{}])",
                    keys.join(", ")
                )
            }
        }
    }

    fn solid(&mut self, frame: f64) -> String {
        if self.random.chance(0.25) {
            // A container.
            let least = self.size.iter().copied().fold(f64::INFINITY, f64::min);
            let center: Point = self.size.iter().map(|length| 0.5 * length).collect();
            let ball = Ball { center, radius: 0.5 * least * self.random.between(0.9, 1.6) };
            return format!("inverted({})", self.shape(&ball, 1));
        }
        let ball = self.ball(0.1, 0.6);
        let shape = self.shape(&ball, 2);
        match self.random.whole(0, 2) {
            0 => shape,
            1 => format!("(shape: {shape}{})", self.span(frame)),
            _ => format!("(shape: {shape}, motion: {}{})", self.motion(&ball, frame), self.span(frame)),
        }
    }

    fn source(&mut self, frame: f64) -> String {
        let ball = self.ball(0.1, 0.3);
        let (shape, velocity) = (self.shape(&ball, 1), tuple(&self.velocity()));
        format!("(shape: {shape}, velocity: {velocity}{})", self.span(frame))
    }

    fn drain(&mut self, frame: f64) -> String {
        let ball = self.ball(0.1, 0.5);
        format!("(shape: {}{})", self.shape(&ball, 1), self.span(frame))
    }

    fn air_source(&mut self, frame: f64) -> String {
        let ball = self.ball(0.1, 0.35);
        let volume = ball.radius.powi(self.dimension() as i32);
        let rate = number(volume / frame * self.random.pick(&[0.0, 0.05, 0.3]));
        let every = number((frame * self.random.between(0.5, 6.0)).max(1e-3));
        format!("(shape: {}, rate: {rate}, every: {every}{})", self.shape(&ball, 0), self.span(frame))
    }

    /// Parameters, each left at its default as often as not.
    fn parameters(&mut self) -> String {
        let mut list = vec![format!("gravity: {}", number(self.gravity))];
        let random = &mut self.random;
        let mut add = |random: &mut Random, name: &str, value: String| {
            if random.chance(0.5) {
                list.push(format!("{name}: {value}"));
            }
        };
        let tolerance = random.by_powers(1e-7, 1e-2);
        let lightest = if random.chance(0.5) { 0.01 } else { 1.0 };
        let numbers = [
            ("density", random.by_powers(1.0, 20000.0)),
            ("flip", random.between(0.0, 1.0)),
            ("cfl", random.between(0.25, 3.75)),
            ("jitter", random.between(0.0, 1.0)),
            ("volume_correction", random.between(0.0, 20.0)),
            ("bubble_correction", random.between(0.0, 120.0)),
            ("tolerance", tolerance),
        ];
        for (name, value) in numbers {
            add(random, name, if value < 1e-3 { format!("{value:.2e}") } else { number(value) });
        }
        let floor = random.pick(&["0.0", "1e-12", "1e-7", "1e-4"]);
        add(random, "tolerance_floor", floor.to_owned());
        let wholes =
            [("min_substeps", 1, 6), ("seeds_per_axis", 2, 3), ("sweeps", 1, 8), ("wall_band", 1, 6)];
        for (name, low, high) in wholes {
            let value = random.whole(low, high).to_string();
            add(random, name, value);
        }
        for name in ["surface_band", "bubble_band"] {
            let value = random.pick(&[1, 1, 2, 2, 3, 4, 6, 9]).to_string();
            add(random, name, value);
        }
        for name in ["tile_size", "bubble_tile_size"] {
            let value = random.pick(&["whole", "8", "8", "16", "32", "64"]).to_owned();
            add(random, name, value);
        }
        let deep = random.pick(&["8", "16", "32", "64"]).to_owned();
        add(random, "tile_size_deep", deep);
        let closed = random.pick(&["free-surface", "constraint"]).to_owned();
        add(random, "bubbles", closed);
        for name in ["reseed", "warm_start", "affine_liquid", "reduced_advection"] {
            let on = random.chance(0.5).to_string();
            add(random, name, on);
        }
        // Air as light as it comes is what solvers find hard.
        if self.model.has_gas() {
            let density = random.by_powers(lightest, 20000.0).min(random.by_powers(lightest, 20000.0));
            list.push(format!("air_density: {}", number(density)));
        }
        // Drawn last, as all that came later: the scenes of before stay what they were.
        if self.random.chance(0.5) {
            list.push(format!("narrow_band: {}", self.random.pick(&["full", "6", "8", "12"])));
        }
        if self.random.chance(0.3) {
            list.push("walls_let_go: true".to_owned());
            if self.random.chance(0.3) {
                list.push(format!("suction: {}", number(self.random.by_powers(1.0, 1e4))));
            }
        }
        if self.random.chance(0.1) {
            list.push("walls: voxel".to_owned());
        }
        list.join(", ")
    }

    fn list(&mut self, name: &str, count: usize, item: impl Fn(&mut Self) -> String) -> String {
        let items: Vec<String> = (0..count).map(|_| format!("        {},\n", item(self))).collect();
        if items.is_empty() { String::new() } else { format!("    {name}: [\n{}    ],\n", items.concat()) }
    }

    fn write(mut self, scene: u64) -> String {
        // As many cells go by in a frame as in common scenes, or now and then as the clock wants it.
        let fps = match self.random.whole(0, 9) {
            0 => 30.0,
            _ => (self.speed / (self.dx * self.random.between(1.0, 8.0))).clamp(1.0, 10_000.0),
        };
        let frame = 1.0 / fps;
        let dimension = self.dimension();
        let mut sides = vec!["left", "right", "bottom", "top", "back", "front"];
        sides.truncate(2 * dimension);
        let often = self.random.pick(&[0.0, 0.0, 0.3, 0.6]);
        sides.retain(|&side| {
            let share = if side == "top" { often } else { 0.3 * often };
            self.random.chance(share)
        });
        let liquids = self.random.whole(1, 4);
        let [solids, sources, drains, air_sources] = [0.5, 0.3, 0.25, 0.3]
            .map(|share| if self.random.chance(share) { self.random.whole(1, 3) } else { 0 });
        let mut text = format!("// Random scene {scene}.\n(\n    title: \"Random {scene}\",\n");
        let (size, cells, open) = (tuple(&self.size), self.cells, sides.join(", "));
        text += &format!("    domain: (size: {size}, cells: {cells}, open: [{open}]),\n");
        text += &self.list("liquids", liquids, Self::liquid);
        text += &self.list("solids", solids, |writer| writer.solid(frame));
        text += &self.list("sources", sources, |writer| writer.source(frame));
        text += &self.list("drains", drains, |writer| writer.drain(frame));
        text += &self.list("air_sources", air_sources, |writer| writer.air_source(frame));
        let (parameters, model) = (self.parameters(), self.model.name());
        text += &format!("    parameters: ({parameters}),\n    model: \"{model}\",\n");
        text + &format!("    frames: {},\n    fps: {},\n)\n", super::FRAMES, number(fps))
    }
}
