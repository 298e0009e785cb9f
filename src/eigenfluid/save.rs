//! A tank to bytes and back. What is found anew has the same bits, so a tank that was saved goes on as one that was not.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::bodies::{Body, Lead, Motions, Tank, TankParams};
use super::fluid::{Fluid, FluidParams};
use super::outline::{Form, Outline};
use super::space::Space;
use crate::archive::{ArchiveError, Reader, Writer};
use crate::math::{Real, Vector};

/// Waves along an axis, drawn modes and bodies that a file may ask for.
const MOST_WAVES: usize = 2048;
const MOST_DRAWN: usize = 4096;
const MOST_PANELS: usize = 4096;

/// All but the arrays.
#[derive(Serialize, Deserialize)]
struct Numbers {
    size: [Real; 2],
    highest: [usize; 2],
    eigenmodes: usize,
    drawn: usize,
    ahead: Real,
    fluid: FluidParams,
    tank: TankParams,
    bodies: Vec<SavedBody>,
}

#[derive(Serialize, Deserialize)]
struct SavedBody {
    form: Form,
    panels: usize,
    density: Real,
    friction: Real,
    restitution: Real,
    lead: Lead,
    position: [Real; 2],
    angle: Real,
    velocity: Motions,
    impulse: Motions,
    carried: Option<Motions>,
}

impl SavedBody {
    fn of(body: &Body) -> Self {
        SavedBody {
            form: body.outline.form.clone(),
            panels: body.outline.asked,
            density: body.density,
            friction: body.friction,
            restitution: body.restitution,
            lead: body.lead,
            position: body.position.into(),
            angle: body.angle,
            velocity: body.velocity,
            impulse: body.impulse,
            carried: body.carried,
        }
    }

    fn body(self) -> Result<Body, ArchiveError> {
        let numbers = [self.density, self.friction, self.restitution, self.angle];
        let motions = self.velocity.into_iter().chain(self.impulse).chain(self.carried.into_iter().flatten());
        let finite = numbers.into_iter().chain(self.position).chain(motions).all(Real::is_finite);
        ArchiveError::unless(
            finite && self.density > 0.0,
            "tank",
            "has a body with a number that cannot be",
        )?;
        ArchiveError::unless(self.panels <= MOST_PANELS, "tank", "has a body of too many panels")?;
        let outline = Outline::new(&self.form, self.panels)
            .map_err(|error| ArchiveError::invalid("tank", format!("has a body that is none: {error}")))?;
        Ok(Body {
            friction: self.friction,
            restitution: self.restitution,
            lead: self.lead,
            angle: self.angle,
            velocity: self.velocity,
            impulse: self.impulse,
            carried: self.carried,
            ..Body::new(Arc::new(outline), self.density, Vector::from(self.position))
        })
    }
}

impl Tank {
    /// Writes all that is needed to go on from here.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        let (fluid, space) = (&self.fluid, &self.fluid.space);
        let numbers = Numbers {
            size: space.basis().size(),
            highest: space.basis().highest(),
            eigenmodes: space.dimensions()[0],
            drawn: space.drawn().len(),
            ahead: fluid.ahead,
            fluid: fluid.params,
            tank: self.params,
            bodies: self.bodies.iter().map(SavedBody::of).collect(),
        };
        out.value("tank", &numbers)?;
        out.array("amplitudes", fluid.amplitudes())?;
        for (number, mode) in space.drawn().iter().enumerate() {
            out.array(&format!("drawn.{number}"), &mode.field)?;
        }
        Ok(())
    }

    /// Reads a tank.
    pub fn load(from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let numbers: Numbers = from.value("tank")?;
        let [x, y] = numbers.size;
        let sane = x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite() && numbers.ahead.is_finite();
        ArchiveError::unless(sane, "tank", "has a number that cannot be")?;
        let fits = numbers.highest.iter().all(|waves| (1..=MOST_WAVES).contains(waves));
        ArchiveError::unless(fits && numbers.drawn <= MOST_DRAWN, "tank", "has too many modes")?;
        let basis = Arc::new(Basis::new(numbers.size, numbers.highest));
        let count = basis.len();
        let mut array = |name: &str| {
            let values: Vec<Real> = from.array_of(name, count)?;
            let belongs =
                |(index, value): (usize, &Real)| value.is_finite() && (*value == 0.0 || basis.is_mode(index));
            let sane = values.iter().enumerate().all(belongs);
            ArchiveError::unless(sane, name, "has a number that cannot be")?;
            Ok::<_, ArchiveError>(values)
        };
        let amplitudes = array("amplitudes")?;
        let fields: Vec<Vec<Real>> =
            (0..numbers.drawn).map(|number| array(&format!("drawn.{number}"))).collect::<Result<_, _>>()?;
        let mut space = Space::smallest(Arc::clone(&basis), numbers.eigenmodes);
        space.restore(fields);
        let mut tank = Tank::new(Fluid::new(space, numbers.fluid), numbers.tank);
        (tank.fluid.amplitudes, tank.fluid.ahead) = (amplitudes, numbers.ahead);
        tank.bodies = numbers.bodies.into_iter().map(SavedBody::body).collect::<Result<_, _>>()?;
        Ok(tank)
    }
}
