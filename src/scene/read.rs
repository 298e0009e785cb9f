//! From the tree of values to checked Rust values, with messages that say where and what.

use crate::math::{Real, Vector};

use super::error::{Place, Problem, SceneError};
use super::text::{Entry, Node, Position, Value};

/// Which numbers are allowed.
#[derive(Clone, Copy)]
pub(super) struct Range {
    min: Real,
    max: Real,
    /// Whether `min` itself is allowed.
    with_min: bool,
    unit: &'static str,
}

impl Range {
    pub const POSITION: Range = Range::between(-1e6, 1e6, " of metres");
    pub const LENGTH: Range = Range { min: 0.0, max: 1e6, with_min: false, unit: " of metres" };
    pub const RADIUS: Range = Range::between(0.0, 1e6, " of metres");
    pub const SPEED: Range = Range::between(-1e4, 1e4, " of metres per second");
    pub const TIME: Range = Range::between(0.0, 1e6, " of seconds");
    pub const DEGREES: Range = Range::between(-1e6, 1e6, " of degrees");
    pub const FREQUENCY: Range = Range::between(0.0, 1000.0, " of hertz");
    pub const SMOKE: Range = Range::between(0.0, 1e4, " of kg/m³");
    pub const HEAT: Range = Range::between(-1e4, 1e4, " of kelvins");
    pub const PLAIN: Range = Range::between(-1e6, 1e6, "");

    pub const fn between(min: Real, max: Real, unit: &'static str) -> Range {
        Range { min, max, with_min: true, unit }
    }

    fn contains(&self, number: Real) -> bool {
        number.is_finite()
            && number <= self.max
            && (number > self.min || (self.with_min && number == self.min))
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Range { min, max, with_min, unit } = self;
        match with_min {
            true => write!(f, "a number{unit} from {min} to {max}"),
            false => write!(f, "a number{unit} above {min} and up to {max}"),
        }
    }
}

/// A value with its path and file, so that it can complain.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub file: &'a str,
    pub path: String,
    pub node: &'a Node,
}

impl<'a> Field<'a> {
    pub fn place(&self) -> Place {
        self.place_of(self.node.position)
    }

    fn place_of(&self, position: Position) -> Place {
        Place { source: self.file.to_owned(), position: Some(position), field: self.path.clone() }
    }

    /// This value is not allowed; `allowed` would be.
    pub fn reject(&self, allowed: impl Into<String>) -> SceneError {
        self.reject_as(self.node.describe(), allowed)
    }

    /// Like [`Self::reject`], with other words for what was found.
    pub fn reject_as(&self, found: impl Into<String>, allowed: impl Into<String>) -> SceneError {
        self.fail(Problem::Value { found: found.into(), allowed: allowed.into() })
    }

    /// This names something unknown.
    pub fn unknown(&self, kind: &'static str, found: &str, known: &[&str]) -> SceneError {
        self.fail(Problem::unknown_name(kind, found, known))
    }

    /// This is where the problem is.
    pub fn fail(&self, problem: Problem) -> SceneError {
        problem.at(self.place())
    }

    fn child(&self, path: String, node: &'a Node) -> Field<'a> {
        Field { file: self.file, path, node }
    }

    pub fn number(&self, range: Range) -> Result<Real, SceneError> {
        match self.node.value {
            Value::Number(number, _) if range.contains(number) => Ok(number),
            _ => Err(self.reject(range.to_string())),
        }
    }

    pub fn whole(&self, min: usize, max: usize) -> Result<usize, SceneError> {
        match self.node.value {
            Value::Number(number, _)
                if number.fract() == 0.0 && (min as Real..=max as Real).contains(&number) =>
            {
                Ok(number as usize)
            }
            _ => Err(self.reject(format!("a whole number from {min} to {max}"))),
        }
    }

    /// A text, or `None`, or `Some("a text")`.
    pub fn optional_text(&self) -> Result<Option<String>, SceneError> {
        match &self.node.value {
            Value::Word(word) if word == "None" => Ok(None),
            Value::Tuple(Some(name), items) if name == "Some" && items.len() == 1 => {
                self.child(self.path.clone(), &items[0]).text().map(Some)
            }
            _ => self.text().map(Some),
        }
    }

    pub fn text(&self) -> Result<String, SceneError> {
        match &self.node.value {
            Value::Text(text) if !text.trim().is_empty() => Ok(text.clone()),
            _ => Err(self.reject("a text in double quotes")),
        }
    }

    /// `true` or `false`.
    pub fn switch(&self) -> Result<bool, SceneError> {
        match self.node.value {
            Value::Switch(on) => Ok(on),
            _ => Err(self.reject("true or false")),
        }
    }

    /// A name, quoted or bare.
    pub fn word(&self, allowed: &str) -> Result<&'a str, SceneError> {
        match &self.node.value {
            Value::Word(word) | Value::Text(word) => Ok(word),
            _ => Err(self.reject(allowed)),
        }
    }

    /// The items of a list.
    pub fn list(&self, allowed: &str) -> Result<Vec<Field<'a>>, SceneError> {
        match &self.node.value {
            Value::List(items) => Ok(self.items(items)),
            _ => Err(self.reject(allowed)),
        }
    }

    fn items(&self, items: &'a [Node]) -> Vec<Field<'a>> {
        let name = |i: usize| format!("{}[{i}]", self.path);
        items.iter().enumerate().map(|(i, item)| self.child(name(i), item)).collect()
    }

    /// The items of `(…)` or `[…]` without names.
    pub fn tuple(&self, allowed: &str) -> Result<Vec<Field<'a>>, SceneError> {
        match &self.node.value {
            Value::List(items) | Value::Tuple(None, items) => Ok(self.items(items)),
            _ => Err(self.reject(allowed)),
        }
    }

    /// `D` numbers.
    pub fn vector<const D: usize>(&self, range: Range) -> Result<Vector<D>, SceneError> {
        let allowed = if D == 2 { "two numbers (x, y)" } else { "three numbers (x, y, z)" };
        let items = self.tuple(allowed)?;
        if items.len() != D {
            return Err(self.reject(allowed));
        }
        let mut vector = Vector::<D>::zeros();
        for (entry, item) in vector.iter_mut().zip(&items) {
            *entry = item.number(range)?;
        }
        Ok(vector)
    }

    /// `D` numbers that are not all zero.
    pub fn direction<const D: usize>(&self) -> Result<Vector<D>, SceneError> {
        let vector: Vector<D> = self.vector(Range::PLAIN)?;
        if vector.norm() < 1e-9 { Err(self.reject("a direction longer than zero")) } else { Ok(vector) }
    }

    /// The fields of `(field: value)` or `name(field: value)`, all of which must be known.
    pub fn record(&self, known: &[&'static str]) -> Result<Record<'a>, SceneError> {
        self.record_of("field", known)
    }

    /// Like [`Self::record`], with another word for its fields.
    pub fn record_of(&self, kind: &'static str, known: &[&'static str]) -> Result<Record<'a>, SceneError> {
        let entries: &'a [Entry] = match &self.node.value {
            Value::Record(_, entries) => entries,
            Value::Tuple(_, items) if items.is_empty() => &[],
            _ => {
                return Err(
                    self.reject(format!("named fields, (field: value, …), out of {}", known.join(", ")))
                );
            }
        };
        for (i, entry) in entries.iter().enumerate() {
            let place = self.place_of(entry.position);
            if !known.contains(&entry.name.as_str()) {
                return Err(Problem::unknown_name(kind, &entry.name, known).at(place));
            }
            if entries[..i].iter().any(|earlier| earlier.name == entry.name) {
                return Err(Problem::Repeated(entry.name.clone()).at(place));
            }
        }
        Ok(Record { of: self.clone(), entries })
    }

    /// The name before the parenthesis, or the bare word: `sphere` of `sphere(…)`.
    pub fn name(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Tuple(Some(name), _) | Value::Record(Some(name), _) | Value::Word(name) => Some(name),
            _ => None,
        }
    }

    /// The one value in `name(value)`.
    pub fn only(&self, allowed: &str) -> Result<Field<'a>, SceneError> {
        match &self.node.value {
            Value::Tuple(_, items) if items.len() == 1 => Ok(self.child(self.path.clone(), &items[0])),
            _ => Err(self.reject(allowed)),
        }
    }
}

/// The fields of a record.
pub(super) struct Record<'a> {
    /// The record itself.
    pub of: Field<'a>,
    entries: &'a [Entry],
}

impl<'a> Record<'a> {
    /// A field that may be left out.
    pub fn get(&self, name: &str) -> Option<Field<'a>> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        let path = if self.of.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.of.path) };
        Some(self.of.child(path, &entry.node))
    }

    /// A field that must be there.
    pub fn require(&self, name: &str) -> Result<Field<'a>, SceneError> {
        self.get(name).ok_or_else(|| self.of.fail(Problem::Missing(name.to_owned())))
    }

    /// A number that may be left out.
    pub fn number_or(&self, name: &str, default: Real, range: Range) -> Result<Real, SceneError> {
        self.get(name).map_or(Ok(default), |field| field.number(range))
    }

    /// A vector that may be left out.
    pub fn vector_or<const D: usize>(
        &self,
        name: &str,
        default: Vector<D>,
        range: Range,
    ) -> Result<Vector<D>, SceneError> {
        self.get(name).map_or(Ok(default), |field| field.vector(range))
    }

    /// The items of a list that may be left out.
    pub fn list_or_empty(&self, name: &str, allowed: &str) -> Result<Vec<Field<'a>>, SceneError> {
        self.get(name).map_or(Ok(Vec::new()), |field| field.list(allowed))
    }

    /// `from` and `until`, in seconds: from the start and without end where left out.
    pub fn span(&self) -> Result<(Real, Real), SceneError> {
        let from = self.number_or("from", 0.0, Range::TIME)?;
        match self.get("until") {
            None => Ok((from, Real::INFINITY)),
            Some(field) => {
                let until = field.number(Range::TIME)?;
                if until > from {
                    Ok((from, until))
                } else {
                    Err(field.reject(format!("later than `from`, {from}")))
                }
            }
        }
    }

    /// Names of the fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }
}
