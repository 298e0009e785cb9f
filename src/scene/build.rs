//! A whole scene from its tree of values.

use crate::geometry::{Body, MOST_MOTIONS, Material, Motion, Shape, Solid};
use crate::grid::Grid;
use crate::math::{Real, Vector};
use crate::sim::{
    AirSource, Drain, Flow, LiquidBody, Model, ParamError, ParamKind, ParamValue, Params, Setup, SmokeBody,
    SmokeSource, SolverKind, Source, param, params_table, set_param,
};

use super::assets::Assets;
use super::check::{CELLS, grid_for, point_inside, point_outside};
use super::error::{Place, Problem, SceneError, one_line};
use super::joints::read_joints;
use super::motions::read_motion;
use super::read::{Field, Range, Record};
use super::shapes::{is_shape, read_axis, read_shape, show};
use super::text::Value;
use super::{AnyScene, Overrides, Scene};

const FIELDS: &[&str] = &[
    "title",
    "summary",
    "figure",
    "domain",
    "liquids",
    "solids",
    "joints",
    "sources",
    "drains",
    "air_sources",
    "smoke",
    "smoke_sources",
    "parameters",
    "solver",
    "model",
    "frames",
    "fps",
];
const DOMAIN_FIELDS: &[&str] = &["size", "cells", "open", "sticky", "slip"];
const SIDES: [[&str; 2]; 3] = [["left", "right"], ["bottom", "top"], ["back", "front"]];

/// Checks and converts a scene; its dimension is the length of `domain.size`.
pub(super) fn build(
    name: &str,
    root: &Field<'_>,
    assets: &Assets,
    overrides: &Overrides,
) -> Result<AnyScene, SceneError> {
    let record = root.record(FIELDS)?;
    let domain = record.require("domain")?.record(DOMAIN_FIELDS)?;
    let size = domain.require("size")?;
    let allowed = "two numbers (x, y) for a 2D scene or three (x, y, z) for a 3D one";
    match size.tuple(allowed)?.len() {
        2 => Ok(AnyScene::TwoD(build_in(name, &record, &domain, assets, overrides)?)),
        3 => Ok(AnyScene::ThreeD(build_in(name, &record, &domain, assets, overrides)?)),
        _ => Err(size.reject(allowed)),
    }
}

fn build_in<const D: usize>(
    name: &str,
    record: &Record<'_>,
    domain: &Record<'_>,
    assets: &Assets,
    overrides: &Overrides,
) -> Result<Scene<D>, SceneError> {
    let size: Vector<D> = domain.require("size")?.vector(Range::LENGTH)?;
    let cells_field = domain.require("cells")?;
    let cells = cells_field.whole(CELLS.0, CELLS.1)?;
    let grid = match overrides.cells {
        None => grid_for(size.into(), cells).map_err(|problem| cells_field.fail(problem))?,
        Some(cells) => override_grid(size.into(), cells)
            .map_err(|problem| problem.at(Place::option(&format!("--cells {cells}"))))?,
    };
    let room = Room { size, dx: grid.dx, assets };

    let liquids = room.read_liquids(record)?;
    let sources = room.read_sources(record)?;
    let smoke = room.read_smoke(record)?;
    let smoke_sources = room.read_smoke_sources(record)?;
    if liquids.is_empty() && sources.is_empty() && smoke.is_empty() && smoke_sources.is_empty() {
        return Err(record.of.fail(Problem::NoLiquid));
    }
    let params = read_params(record, overrides)?;
    let carried = ["smoke", "smoke_sources"].into_iter().find_map(|field| record.get(field));
    if let Some(field) = carried.filter(|_| !params.model.has_gas()) {
        let carriers = Model::ALL.into_iter().filter(|model| model.has_gas()).map(Model::name);
        let carriers = carriers.collect::<Vec<_>>().join(" or ");
        return Err(field.reject_as(
            format!("smoke in the model {}, whose air weighs nothing,", params.model.name()),
            format!("in a scene of the model {carriers}"),
        ));
    }
    let solids = room.read_solids(record)?;
    let joints = read_joints(record, &solids)?;
    let setup = Setup {
        size: size.into(),
        grid,
        open: read_sides(domain, "open")?,
        sticky: read_sides(domain, "sticky")?,
        slip: read_sides(domain, "slip")?,
        liquids,
        sources,
        drains: room.read_drains(record)?,
        air_sources: room.read_air_sources(record)?,
        smoke,
        smoke_sources,
        solids,
        joints,
        params,
    };
    Ok(Scene {
        name: name.to_owned(),
        title: record.require("title")?.text()?,
        summary: record.get("summary").map_or(Ok(String::new()), |field| field.text())?,
        figure: record.get("figure").map_or(Ok(None), |field| field.optional_text())?,
        setup,
        frames: record.get("frames").map_or(Ok(150), |field| field.whole(1, 1_000_000))?,
        fps: record.number_or("fps", 30.0, Range::between(1.0, 10_000.0, ""))?,
        own_cells: cells,
    })
}

fn override_grid<const D: usize>(size: [Real; D], cells: usize) -> Result<Grid<D>, Problem> {
    if (CELLS.0..=CELLS.1).contains(&cells) {
        return grid_for(size, cells);
    }
    let allowed = format!("a whole number from {} to {}", CELLS.0, CELLS.1);
    Err(Problem::Value { found: cells.to_string(), allowed })
}

/// Sides of the domain that a field lists.
fn read_sides<const D: usize>(domain: &Record<'_>, field: &str) -> Result<[[bool; 2]; D], SceneError> {
    let mut sides = [[false; 2]; D];
    let known = SIDES[..D].as_flattened();
    let allowed = format!("a list of sides out of {}", known.join(", "));
    for item in domain.list_or_empty(field, &allowed)? {
        let side = item.word(&format!("one of {}", known.join(", ")))?;
        match known.iter().position(|name| *name == side) {
            Some(index) => sides[index / 2][index % 2] = true,
            None => return Err(item.unknown("side", side, known)),
        }
    }
    Ok(sides)
}

/// The domain that liquids, sources and drains must fit.
struct Room<'a, const D: usize> {
    size: Vector<D>,
    dx: Real,
    assets: &'a Assets,
}

impl<const D: usize> Room<'_, D> {
    fn read_liquids(&self, record: &Record<'_>) -> Result<Vec<LiquidBody<D>>, SceneError> {
        let items = record.list_or_empty("liquids", "a list of liquids, [(shape: …), …] or [shape, …]")?;
        let read = |item: &Field<'_>| {
            if is_shape(item) {
                return Ok(LiquidBody { shape: self.read_inside(item)?, flow: Flow::rest() });
            }
            let liquid = item.record(&["shape", "velocity", "spin"])?;
            let mut flow = Flow::rest();
            flow.velocity = liquid.vector_or("velocity", flow.velocity, Range::SPEED)?;
            if let Some(spin) = liquid.get("spin") {
                let spin = spin.record(&["degrees_per_second", "axis", "center"])?;
                let rate = spin.require("degrees_per_second")?.number(Range::DEGREES)?.to_radians();
                let axis = nalgebra::Vector3::from(read_axis::<D>(&spin)?).normalize();
                flow.center = spin.require("center")?.vector(Range::POSITION)?;
                flow.spin = (axis * rate).into();
            }
            Ok(LiquidBody { shape: self.read_inside(&liquid.require("shape")?)?, flow })
        };
        items.iter().map(read).collect()
    }

    fn read_sources(&self, record: &Record<'_>) -> Result<Vec<Source<D>>, SceneError> {
        let items = record.list_or_empty("sources", "a list of sources, [(shape: …, velocity: …), …]")?;
        let read = |item: &Field<'_>| {
            let source = item.record(&["shape", "velocity", "from", "until"])?;
            let (from, until) = source.span()?;
            let velocity = source.vector_or("velocity", Vector::zeros(), Range::SPEED)?;
            Ok(Source { shape: self.read_inside(&source.require("shape")?)?, velocity, from, until })
        };
        items.iter().map(read).collect()
    }

    fn read_air_sources(&self, record: &Record<'_>) -> Result<Vec<AirSource<D>>, SceneError> {
        let allowed = "a list of air sources, [(shape: …, every: …), …]";
        let read = |item: &Field<'_>| {
            let source = item.record(&["shape", "rate", "every", "from", "until"])?;
            let (from, until) = source.span()?;
            Ok(AirSource {
                shape: self.read_inside(&source.require("shape")?)?,
                rate: source.number_or("rate", 0.0, Range::between(0.0, 1e6, "m³/s"))?,
                every: source.number_or("every", 1.0, Range::between(1e-3, 1e6, "s"))?,
                from,
                until,
            })
        };
        record.list_or_empty("air_sources", allowed)?.iter().map(read).collect()
    }

    fn read_smoke(&self, record: &Record<'_>) -> Result<Vec<SmokeBody<D>>, SceneError> {
        let items = record.list_or_empty("smoke", "a list of smoke, [(shape: …, density: …), …]")?;
        let read = |item: &Field<'_>| {
            let smoke = item.record(&["shape", "density", "heat"])?;
            Ok(SmokeBody {
                shape: self.read_inside(&smoke.require("shape")?)?,
                density: smoke.number_or("density", 0.0, Range::SMOKE)?,
                heat: smoke.number_or("heat", 0.0, Range::HEAT)?,
            })
        };
        items.iter().map(read).collect()
    }

    fn read_smoke_sources(&self, record: &Record<'_>) -> Result<Vec<SmokeSource<D>>, SceneError> {
        let allowed = "a list of smoke sources, [(shape: …, density: …), …]";
        let read = |item: &Field<'_>| {
            let source = item.record(&["shape", "density", "heat", "rate", "from", "until"])?;
            let (from, until) = source.span()?;
            Ok(SmokeSource {
                shape: self.read_inside(&source.require("shape")?)?,
                density: source.number_or("density", 0.0, Range::SMOKE)?,
                heat: source.get("heat").map(|heat| heat.number(Range::HEAT)).transpose()?,
                rate: source.number_or("rate", Real::INFINITY, Range::between(0.0, 1e6, " per second"))?,
                from,
                until,
            })
        };
        record.list_or_empty("smoke_sources", allowed)?.iter().map(read).collect()
    }

    fn read_drains(&self, record: &Record<'_>) -> Result<Vec<Drain<D>>, SceneError> {
        let items = record.list_or_empty("drains", "a list of drains, [(shape: …), …] or [shape, …]")?;
        let read = |item: &Field<'_>| {
            if is_shape(item) {
                return Ok(Drain { shape: self.read_touching(item)?, from: 0.0, until: Real::INFINITY });
            }
            let drain = item.record(&["shape", "from", "until"])?;
            let (from, until) = drain.span()?;
            Ok(Drain { shape: self.read_touching(&drain.require("shape")?)?, from, until })
        };
        items.iter().map(read).collect()
    }

    fn read_solids(&self, record: &Record<'_>) -> Result<Vec<Solid<D>>, SceneError> {
        let items = record.list_or_empty("solids", "a list of solids, [(shape: …), …] or [shape, …]")?;
        let read = |(index, item): (usize, &Field<'_>)| {
            let name = format!("solid {}", index + 1);
            if is_shape(item) {
                return Ok(Solid::new(name, read_shape(item, self.assets)?, Motion::default()));
            }
            let solid = item.record(SOLID_FIELDS)?;
            let (from, until) = solid.span()?;
            let name = solid.get("name").map_or(Ok(name), |field| field.text())?;
            let shape_field = solid.require("shape")?;
            let shape = read_shape(&shape_field, self.assets)?;
            let motion = solid.get("motion").map_or(Ok(Motion::default()), |field| read_motion(&field))?;
            let mut read = Solid { present: [from, until], ..Solid::new(name, shape, motion) };
            read.sticky = solid.get("sticky").map_or(Ok(false), |field| field.switch())?;
            read.slip = solid.get("slip").map_or(Ok(false), |field| field.switch())?;
            read.body = read_body(&solid, &read.shape, &shape_field)?;
            Ok(read)
        };
        items.iter().enumerate().map(read).collect()
    }

    /// A shape that must have a part in the domain.
    fn read_touching(&self, field: &Field<'_>) -> Result<Shape<D>, SceneError> {
        let shape = read_shape(field, self.assets)?;
        match point_inside(&shape, &self.size, self.dx) {
            Some(_) => Ok(shape),
            None => Err(field.reject_as(
                format!("{} with no part in the domain", field.node.describe()),
                format!("inside the domain, {} to {}", show(&Vector::<D>::zeros()), show(&self.size)),
            )),
        }
    }

    /// A shape that must lie in the domain, unless it goes on forever.
    fn read_inside(&self, field: &Field<'_>) -> Result<Shape<D>, SceneError> {
        let shape = self.read_touching(field)?;
        match point_outside(&shape, &self.size, self.dx) {
            None => Ok(shape),
            Some(point) => Err(field.reject_as(
                format!("{} that reaches {}", field.node.describe(), show(&point)),
                format!("inside the domain, {} to {}", show(&Vector::<D>::zeros()), show(&self.size)),
            )),
        }
    }
}

const SOLID_FIELDS: &[&str] = &[
    "name",
    "shape",
    "motion",
    "from",
    "until",
    "sticky",
    "slip",
    "density",
    "mass",
    "velocity",
    "spin",
    "friction",
    "restitution",
    "fixed",
];
/// Those that only make sense for a solid with `density` or `mass`.
const BODY_FIELDS: &[&str] = &["velocity", "spin", "friction", "restitution", "fixed"];

/// What a solid moves by, if it has a density or a mass.
fn read_body<const D: usize>(
    solid: &Record<'_>,
    shape: &Shape<D>,
    shape_field: &Field<'_>,
) -> Result<Option<Box<Body<D>>>, SceneError> {
    const HEAVY: Range = Range::between(1e-6, 1e9, " of kilograms");
    let (density, mass) = (solid.get("density"), solid.get("mass"));
    let weight = match (&density, &mass) {
        (None, None) => {
            let lost = BODY_FIELDS.iter().find_map(|name| solid.get(name));
            let allowed = "left out, or come with `density` or `mass`, which make a solid move by forces";
            return lost.map_or(Ok(None), |field| Err(field.reject(allowed)));
        }
        (Some(_), Some(mass)) => return Err(mass.reject("left out: the solid has a `density` already")),
        (Some(density), None) => density.number(Range::between(1e-3, 1e6, " of kg/m³"))?,
        (None, Some(mass)) => mass.number(HEAVY)?,
    };
    if let Some(motion) = solid.get("motion") {
        return Err(
            motion.reject("left out: a solid with `density` or `mass` moves by forces, not by a script")
        );
    }
    let moments = shape.moments().filter(|moments| moments.volume > 0.0);
    let Some(moments) = moments else {
        return Err(
            shape_field.reject("a shape of finite size that is not empty, for a solid that moves by forces")
        );
    };
    let mut velocity = [0.0; MOST_MOTIONS];
    let speed: Vector<D> = solid.vector_or("velocity", Vector::zeros(), Range::SPEED)?;
    velocity[..D].copy_from_slice(speed.as_slice());
    if let Some(spin) = solid.get("spin") {
        let spin = spin.record(&["degrees_per_second", "axis"])?;
        let rate = spin.require("degrees_per_second")?.number(Range::DEGREES)?.to_radians();
        let axis = nalgebra::Vector3::from(read_axis::<D>(&spin)?).normalize() * rate;
        match D {
            2 => velocity[2] = axis[2],
            _ => velocity[3..].copy_from_slice(axis.as_slice()),
        }
    }
    let material = Material {
        mass: if density.is_some() { weight * moments.volume } else { weight },
        friction: solid.number_or("friction", 0.3, Range::between(0.0, 10.0, ""))?,
        restitution: solid.number_or("restitution", 0.0, Range::between(0.0, 1.0, ""))?,
        fixed: read_fixed::<D>(solid)?,
    };
    Ok(Body::new(shape, material, velocity).map(Box::new))
}

/// The motions that a body does not have.
fn read_fixed<const D: usize>(solid: &Record<'_>) -> Result<[bool; MOST_MOTIONS], SceneError> {
    let known: &[&str] = if D == 2 { &["x", "y", "spin"] } else { &["x", "y", "z", "spin"] };
    let allowed = format!("a list of motions out of {}", known.join(", "));
    let mut fixed = [false; MOST_MOTIONS];
    for item in solid.list_or_empty("fixed", &allowed)? {
        let motion = item.word(&format!("one of {}", known.join(", ")))?;
        match known.iter().position(|name| *name == motion) {
            Some(axis) if axis < D => fixed[axis] = true,
            Some(_) => fixed[D..].fill(true),
            None => return Err(item.unknown("motion", motion, known)),
        }
    }
    Ok(fixed)
}

fn read_params(record: &Record<'_>, overrides: &Overrides) -> Result<Params, SceneError> {
    let solver = match record.get("solver") {
        None => SolverKind::default(),
        Some(field) => {
            let name = field.word("the name of a solver")?;
            SolverKind::from_name(name).ok_or_else(|| field.unknown("solver", name, SolverKind::NAMES))?
        }
    };
    let mut params = Params::default();
    let names: Vec<_> = solver.models().map(Model::name).collect();
    let known = |name: &str| Model::from_name(name).filter(|model| model.solver() == solver);
    let model = record.get("model");
    if let Some(field) = &model {
        let name = field.word("the name of a model")?;
        params.model = known(name).ok_or_else(|| field.unknown("model", name, &names))?;
    }
    if let Some(field) = record.get("parameters") {
        let given = field.record_of("parameter", &parameter_names(solver))?;
        for name in given.names() {
            assign_field(&mut params, name, &given.require(name)?)?;
        }
        if let Some(again) = given.get("model").filter(|_| model.is_some()) {
            return Err(again.fail(Problem::Repeated("model".to_owned())));
        }
    }
    for (name, text) in &overrides.set {
        assign_option(&mut params, name, text)?;
    }
    // Panes that are compared differ by it: it comes last.
    if let Some(name) = &overrides.model {
        params.model = known(name).ok_or_else(|| {
            Problem::unknown_name("model", name, &names).at(Place::option(&format!("--model {name}")))
        })?;
    }
    Ok(params)
}

fn assign_field(params: &mut Params, name: &str, field: &Field<'_>) -> Result<(), SceneError> {
    let Ok(info) = param(name) else {
        return Err(field.unknown("parameter", name, &parameter_names(params.model.solver())));
    };
    let allowed = info.kind.to_string();
    let value = match (&field.node.value, info.kind) {
        (Value::Number(number, _), ParamKind::Choice(names)) => {
            match names.iter().find(|choice| **choice == number.to_string()) {
                Some(choice) => ParamValue::Choice(choice),
                None => return Err(field.reject(allowed)),
            }
        }
        (Value::Number(number, _), _) => ParamValue::Number(*number),
        (Value::Switch(on), _) => ParamValue::Switch(*on),
        (Value::Word(word) | Value::Text(word), ParamKind::Choice(names)) => {
            match names.iter().find(|choice| *choice == word) {
                Some(choice) => ParamValue::Choice(choice),
                None => return Err(field.reject(allowed)),
            }
        }
        _ => return Err(field.reject(allowed)),
    };
    info.assign(params, &value).map_err(|_| field.reject(allowed))
}

fn assign_option(params: &mut Params, name: &str, text: &str) -> Result<(), SceneError> {
    let known = parameter_names(params.model.solver());
    set_param(params, name, text).map_err(|error| {
        let problem = match error {
            ParamError::Unknown { name, .. } => Problem::unknown_name("parameter", &name, &known),
            ParamError::Invalid { allowed, .. } => {
                Problem::Value { found: one_line(text), allowed: allowed.to_string() }
            }
        };
        problem.at(Place::option(&format!("--set {name}={text}")))
    })
}

/// The parameters that a solver looks at.
fn parameter_names(solver: SolverKind) -> Vec<&'static str> {
    params_table().iter().filter(|info| info.is_of(solver)).map(|info| info.name).collect()
}
