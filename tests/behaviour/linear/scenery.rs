//! Mazes, tubes and bubbly tanks: domains that are hard on coarse levels.

use glug::math::{flatten, hash_unit, mix, power, unflatten};

use super::domain::{Domain, Matter};

/// Where the surface cuts the way from one cell to the next: anywhere, often very near.
fn random_theta<const D: usize>(seed: u64) -> impl Fn([i32; D], [i32; D]) -> f32 {
    move |from, to| {
        let key = from.iter().chain(&to).fold(seed, |k, &c| mix(k ^ (c + 100) as u64));
        hash_unit(key).powi(2).max(0.01)
    }
}

/// A maze without loops and how its rooms hang together.
pub struct Maze<const D: usize> {
    rooms: usize,
    width: i32,
    wall: i32,
    offset: i32,
    /// The room through which each was entered, itself for the first one.
    entry: Vec<usize>,
    /// Rooms on the way from the first one.
    depth: Vec<usize>,
}

impl<const D: usize> Maze<D> {
    /// Digs through `rooms^D` rooms of `width^D` cells, always on from the newest room that has a way on.
    pub fn dig(rooms: usize, width: i32, wall: i32, offset: i32, seed: u64) -> Self {
        let count = power(rooms, D);
        let (mut entry, mut depth) = (vec![usize::MAX; count], vec![0; count]);
        let mut path = vec![0usize];
        entry[0] = 0;
        let mut random = mix(seed + 1);
        while let Some(&room) = path.last() {
            let at = unflatten::<D>(room, rooms);
            let ways: Vec<usize> = (0..2 * D)
                .filter_map(|way| {
                    let mut next = at;
                    let (axis, up) = (way / 2, way % 2 == 1);
                    if up && next[axis] + 1 < rooms {
                        next[axis] += 1;
                    } else if !up && next[axis] > 0 {
                        next[axis] -= 1;
                    } else {
                        return None;
                    }
                    Some(flatten(next, rooms)).filter(|&next| entry[next] == usize::MAX)
                })
                .collect();
            if ways.is_empty() {
                path.pop();
                continue;
            }
            random = mix(random);
            let next = ways[random as usize % ways.len()];
            entry[next] = room;
            depth[next] = depth[room] + 1;
            path.push(next);
        }
        Maze { rooms, width, wall, offset, entry, depth }
    }

    /// The room a cell belongs to (a passage belongs to the room it leads to), if it is not wall.
    fn room(&self, cell: [i32; D]) -> Option<usize> {
        let pitch = self.width + self.wall;
        let at = cell.map(|c| c - self.offset);
        if at.iter().any(|&c| c < 0 || c >= pitch * self.rooms as i32) {
            return None;
        }
        let room = flatten(at.map(|c| (c / pitch) as usize), self.rooms);
        let mut walls = (0..D).filter(|&a| at[a] % pitch >= self.width);
        match (walls.next(), walls.next()) {
            (None, _) => Some(room),
            (Some(axis), None) => {
                let mut next = unflatten::<D>(room, self.rooms);
                next[axis] += 1;
                if next[axis] == self.rooms {
                    return None;
                }
                let next = flatten(next, self.rooms);
                if self.entry[next] == room {
                    Some(next)
                } else if self.entry[room] == next {
                    Some(room)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// Fills the maze: every `period`-th room on the way from the start is a bubble (none if 0); the deepest room is open
    /// to the ground unless the maze is `closed`.
    pub fn fill(&self, period: usize, closed: bool, seed: u64) -> Domain<D> {
        let mut number = vec![usize::MAX; self.entry.len()];
        let mut count = 0;
        for (room, &depth) in self.depth.iter().enumerate() {
            if period > 0 && depth % period == period - 1 {
                number[room] = count;
                count += 1;
            }
        }
        let deepest = (0..self.depth.len()).max_by_key(|&room| self.depth[room]).expect("a room");
        let side = (self.width + self.wall) * self.rooms as i32 + self.offset;
        let mut domain = Domain::build(
            [side as usize; D],
            |cell| match self.room(cell) {
                None => Matter::Closed,
                Some(room) if room == deepest && !closed => Matter::Ground,
                Some(room) if number[room] != usize::MAX => Matter::Shared(number[room]),
                Some(_) => Matter::Full,
            },
            |_, _| 1.0,
            random_theta(seed),
        );
        domain.drop_rhs();
        // A piston at the start.
        for cell in domain.cells() {
            if self.room(cell) == Some(0) && cell[0] == self.offset {
                let here = domain.index(cell);
                domain.rhs[here] += 1.0;
            }
        }
        domain
    }
}

/// A tube that winds through a square or cube, `width` wide; slugs of `slug` cells between bubbles of `gap` cells
/// (none if 0). The far end is open unless `closed`.
pub fn tube<const D: usize>(
    n: i32,
    width: i32,
    slug: i32,
    gap: i32,
    offset: i32,
    closed: bool,
    seed: u64,
) -> Domain<D> {
    let pitch = width + 2;
    let lanes = n / pitch;
    // Lane number and place along the tube of a cell.
    let place = move |cell: [i32; D]| -> Option<i32> {
        let at = cell.map(|c| c - offset);
        if at.iter().any(|&c| c < 0 || c >= n) {
            return None;
        }
        // Lanes run along x; they are ordered along y, then z, there and back.
        let (mut lane, mut wall) = (0, None);
        for axis in (1..D).rev() {
            let (l, inside) = (at[axis] / pitch, at[axis] % pitch < width);
            if l >= lanes {
                return None;
            }
            if !inside {
                if wall.is_some() {
                    return None;
                }
                wall = Some(axis);
            }
            let backwards = axis < D - 1 && at[D - 1] / pitch % 2 == 1;
            let snake = if backwards { lanes - 1 - l } else { l };
            lane = lane * lanes + snake;
        }
        let along = |lane: i32| if lane % 2 == 0 { at[0] } else { n - 1 - at[0] };
        match wall {
            None => Some(lane * n + along(lane)),
            // A turn: between this lane and the next one, at its far end.
            Some(axis) => {
                let l = at[axis] / pitch;
                if l + 1 >= lanes {
                    return None;
                }
                let backwards = axis < D - 1 && at[D - 1] / pitch % 2 == 1;
                let first = if backwards { lane - 1 } else { lane };
                let turns_here = if axis == D - 1 && D == 3 {
                    // From plane to plane only at the last lane of the plane.
                    let y = at[1] / pitch;
                    let last = if at[2] / pitch % 2 == 1 { 0 } else { lanes - 1 };
                    y == last
                } else {
                    true
                };
                (turns_here && along(first) >= n - width).then_some(first * n + n - 1)
            }
        }
    };
    let length = lanes.pow(D as u32 - 1) * n;
    let mut domain = Domain::build(
        [(n + offset) as usize; D],
        |cell| match place(cell) {
            None => Matter::Closed,
            Some(s) if s >= length - width => {
                if closed {
                    Matter::Full
                } else {
                    Matter::Ground
                }
            }
            Some(s) if gap > 0 && s % (slug + gap) >= slug => Matter::Shared((s / (slug + gap)) as usize),
            Some(_) => Matter::Full,
        },
        |_, _| 1.0,
        random_theta(seed),
    );
    domain.drop_rhs();
    for cell in domain.cells() {
        if place(cell) == Some(0) {
            let here = domain.index(cell);
            domain.rhs[here] += 1.0;
        }
    }
    domain
}

/// How the bubbles of a tank lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pack {
    /// Anywhere; where two overlap they share the cells between them.
    Overlapping,
    /// At least two cells apart.
    Apart,
    /// As `Apart`, but with a single layer of cells between many of them.
    Touching,
}

/// A tank with `count` round bubbles of radii between two bounds (in cells), open to the ground above or closed.
pub fn bubbly_tank<const D: usize>(
    n: i32,
    count: usize,
    radii: [f64; 2],
    pack: Pack,
    closed: bool,
    offset: i32,
    seed: u64,
) -> Domain<D> {
    let side = f64::from(n);
    let unit = |k: usize, i: usize| f64::from(hash_unit(mix(seed ^ (k * 8 + i) as u64)));
    let top = if closed { side } else { 0.8 * side };
    let mut balls: Vec<([f64; D], f64)> = Vec::new();
    let gap = match pack {
        Pack::Overlapping => f64::NEG_INFINITY,
        Pack::Apart => 2.5,
        Pack::Touching => 1.0,
    };
    for k in 0..count * 40 {
        if balls.len() == count {
            break;
        }
        let radius = radii[0] + (radii[1] - radii[0]) * unit(k, 3).powi(2);
        let centre: [f64; D] = std::array::from_fn(|a| {
            let high = if a == 1 { top } else { side };
            unit(k, a) * high
        });
        let distance = |other: &[f64; D]| (0..D).map(|a| (other[a] - centre[a]).powi(2)).sum::<f64>().sqrt();
        if centre[1] + radius < top - 2.0 && balls.iter().all(|(c, r)| distance(c) > r + radius + gap) {
            balls.push((centre, radius));
        }
    }
    // The nearest balls of each cell, listed by coarse cubes, so that thousands of balls stay quick.
    let cube = 8.0f64.max(2.0 * radii[1]);
    let cubes = (side / cube) as usize + 1;
    let mut near = vec![Vec::new(); power(cubes, D)];
    let cube_of = |x: f64| ((x / cube).max(0.0) as usize).min(cubes - 1);
    for (k, (centre, _)) in balls.iter().enumerate() {
        for i in 0..power(3, D) {
            let d = unflatten::<D>(i, 3);
            let at: [i64; D] = std::array::from_fn(|a| cube_of(centre[a]) as i64 + d[a] as i64 - 1);
            if at.iter().all(|&c| c >= 0 && (c as usize) < cubes) {
                near[flatten(at.map(|c| c as usize), cubes)].push(k);
            }
        }
    }
    let surface = |cell: [i32; D]| -> (f64, Option<usize>) {
        let x = cell.map(|c| f64::from(c - offset) + 0.5);
        let height = top - 0.03 * side * (1.0 + (9.0 * x[0] / side).sin());
        let mut level = (if closed { -side } else { x[1] - height }, None);
        for &k in &near[flatten(x.map(cube_of), cubes)] {
            let (centre, radius) = balls[k];
            let inside = radius - (0..D).map(|a| (x[a] - centre[a]).powi(2)).sum::<f64>().sqrt();
            if inside > level.0 {
                level = (inside, Some(k));
            }
        }
        level
    };
    let mut domain = Domain::build(
        [(n + offset) as usize; D],
        |cell| {
            if cell.iter().any(|&c| c < offset) {
                return Matter::Closed;
            }
            match surface(cell) {
                (level, _) if level < 0.0 => Matter::Full,
                (_, None) => Matter::Ground,
                (_, Some(k)) => Matter::Shared(k),
            }
        },
        |axis, face| if face[axis] <= offset { 0.0 } else { 1.0 },
        |from, to| {
            let (a, b) = (surface(from).0, surface(to).0);
            (a / (a - b)).clamp(0.01, 1.0) as f32
        },
    );
    domain.drop_rhs();
    domain
}
