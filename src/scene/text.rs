//! Text to a tree of values that remember where they stood.
//!
//! The syntax is RON. The `ron` crate hands out values without their places, and a message about a value that is well
//! formed but wrong needs its line and column, so the tree is read here.

use super::error::{Place, Problem, SceneError, one_line};

/// Nesting deeper than this is refused rather than risk the stack.
const DEEPEST: usize = 64;

/// A place in the text: line and column, counted from 1.
pub(super) type Position = (usize, usize);

/// A value and where it starts.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub position: Position,
    pub value: Value,
}

/// A value of the file.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A number, with the text it was written as.
    Number(f64, String),
    /// `"…"`.
    Text(String),
    /// `true` or `false`.
    Switch(bool),
    /// A bare word.
    Word(String),
    /// `[…]`.
    List(Vec<Node>),
    /// `(a, b)` or `name(a, b)`.
    Tuple(Option<String>, Vec<Node>),
    /// `(field: value)`, `name(field: value)` or `{field: value}`.
    Record(Option<String>, Vec<Entry>),
}

/// A field of a record.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: String,
    pub position: Position,
    pub node: Node,
}

impl Node {
    /// The value as a message shows it.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Number(_, text) => one_line(text),
            Value::Text(text) => one_line(&format!("\"{text}\"")),
            Value::Switch(on) => on.to_string(),
            Value::Word(word) => format!("`{}`", one_line(word)),
            Value::List(items) if items.is_empty() => "an empty list".to_owned(),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Tuple(None, items) if items.is_empty() => "()".to_owned(),
            Value::Tuple(None, items) => {
                one_line(&format!("({})", items.iter().map(Node::describe).collect::<Vec<_>>().join(", ")))
            }
            Value::Record(None, _) => "a record of named fields".to_owned(),
            Value::Tuple(Some(name), _) | Value::Record(Some(name), _) => format!("`{}(…)`", one_line(name)),
        }
    }
}

/// Reads the whole text.
pub(super) fn parse(file: &str, text: &str) -> Result<Node, SceneError> {
    let mut parser = Parser { file, rest: text, position: (1, 1), opened: Vec::new() };
    if let Some(rest) = parser.rest.strip_prefix('\u{feff}') {
        parser.rest = rest;
    }
    parser.skip_blank()?;
    while parser.rest.starts_with("#!") {
        parser.skip_attribute()?;
    }
    let root = parser.value()?;
    parser.skip_blank()?;
    if parser.peek().is_some() { Err(parser.unexpected("the end of the file")) } else { Ok(root) }
}

struct Parser<'a> {
    file: &'a str,
    rest: &'a str,
    position: Position,
    /// Brackets that are still open, with their places.
    opened: Vec<(char, Position)>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.position =
            if c == '\n' { (self.position.0 + 1, 1) } else { (self.position.0, self.position.1 + 1) };
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.bump();
        }
        there
    }

    fn error_at(&self, position: Position, found: String, expected: &str) -> SceneError {
        let place = Place { source: self.file.to_owned(), position: Some(position), field: String::new() };
        Problem::Syntax { found, expected: expected.to_owned() }.at(place)
    }

    fn unexpected(&self, expected: &str) -> SceneError {
        let found = match self.peek() {
            Some(c) => format!("`{}`", one_line(&c.to_string())),
            None => match self.opened.last() {
                Some((bracket, (line, column))) => {
                    format!("the end of the file with `{bracket}` of line {line}, column {column} still open")
                }
                None => "the end of the file".to_owned(),
            },
        };
        self.error_at(self.position, found, expected)
    }

    fn skip_blank(&mut self) -> Result<(), SceneError> {
        loop {
            if self.rest.starts_with("//") {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.bump();
                }
            } else if self.rest.starts_with("/*") {
                self.skip_block_comment()?;
            } else if self.peek().is_some_and(char::is_whitespace) {
                self.bump();
            } else {
                return Ok(());
            }
        }
    }

    /// Skips a `/* … */`, which may hold others.
    fn skip_block_comment(&mut self) -> Result<(), SceneError> {
        let start = self.position;
        let mut depth = 0usize;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.bump();
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.bump();
            }
            if self.bump().is_none() {
                return Err(self.error_at(
                    start,
                    "a comment that never ends".to_owned(),
                    "`*/` somewhere after it",
                ));
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Skips a `#![…]`: the extensions of RON that it turns on are always on here.
    fn skip_attribute(&mut self) -> Result<(), SceneError> {
        let start = self.position;
        while let Some(c) = self.bump() {
            if c == ']' {
                return self.skip_blank();
            }
        }
        Err(self.error_at(start, "an attribute that never ends".to_owned(), "`]` somewhere after it"))
    }

    fn value(&mut self) -> Result<Node, SceneError> {
        self.skip_blank()?;
        let position = self.position;
        let value = match self.peek() {
            Some('"') => Value::Text(self.text()?),
            Some('r') if self.rest.starts_with("r\"") || self.rest.starts_with("r#") => {
                Value::Text(self.raw_text()?)
            }
            Some('[') => Value::List(self.list()?),
            Some('(') => self.parenthesis(None)?,
            Some('{') => self.map()?,
            Some(c) if c.is_ascii_digit() || matches!(c, '+' | '-' | '.') => self.number()?,
            Some(c) if c.is_alphabetic() || c == '_' => {
                let word = self.word();
                self.skip_blank()?;
                match word.as_str() {
                    "true" => Value::Switch(true),
                    "false" => Value::Switch(false),
                    "inf" => Value::Number(f64::INFINITY, word),
                    "NaN" => Value::Number(f64::NAN, word),
                    _ if self.peek() == Some('(') => self.parenthesis(Some(word))?,
                    _ => Value::Word(word),
                }
            }
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { position, value })
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
            word.push(c);
            self.bump();
        }
        word
    }

    fn number(&mut self) -> Result<Value, SceneError> {
        let position = self.position;
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'))
        {
            text.push(c);
            self.bump();
        }
        let digits = text.replace('_', "");
        // `from_str` also takes `-infinity` and `-nan`; RON's own spellings among those are `-inf` and `-NaN`.
        let spelled = !digits.contains(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E'))
            || matches!(digits.trim_start_matches(['+', '-']), "inf" | "NaN");
        match digits.parse() {
            Ok(number) if spelled => Ok(Value::Number(number, text)),
            _ => Err(self.error_at(position, format!("`{}`", one_line(&text)), "a number")),
        }
    }

    fn text(&mut self) -> Result<String, SceneError> {
        let start = self.position;
        let mut text = String::new();
        self.bump();
        loop {
            let position = self.position;
            match self.bump() {
                None => {
                    return Err(self.error_at(start, "a text that never ends".to_owned(), "a closing `\"`"));
                }
                Some('"') => return Ok(text),
                Some('\\') => {
                    let escaped = match self.bump() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('r') => '\r',
                        Some('0') => '\0',
                        Some(c @ ('"' | '\\' | '\'')) => c,
                        Some('u') => self.unicode_escape(position)?,
                        _ => {
                            let expected = r#"one of \n \t \r \0 \" \\ \u{…}"#;
                            return Err(self.error_at(position, "an unknown escape".to_owned(), expected));
                        }
                    };
                    text.push(escaped);
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn unicode_escape(&mut self, position: Position) -> Result<char, SceneError> {
        let mut digits = String::new();
        if self.eat('{') {
            while let Some(c) = self.peek().filter(|c| c.is_ascii_hexdigit() && digits.len() < 6) {
                digits.push(c);
                self.bump();
            }
        }
        u32::from_str_radix(&digits, 16)
            .ok()
            .and_then(char::from_u32)
            .filter(|_| self.eat('}'))
            .ok_or_else(|| self.error_at(position, "a bad character code".to_owned(), r"one like \u{2019}"))
    }

    /// `r"…"` or `r#"…"#` with any number of `#`.
    fn raw_text(&mut self) -> Result<String, SceneError> {
        let start = self.position;
        self.bump();
        let mut fence = "\"".to_owned();
        while self.eat('#') {
            fence.push('#');
        }
        if !self.eat('"') {
            return Err(self.unexpected("`\"`"));
        }
        let mut text = String::new();
        while !self.rest.starts_with(&fence) {
            match self.bump() {
                Some(c) => text.push(c),
                None => {
                    return Err(self.error_at(start, "a text that never ends".to_owned(), "a closing quote"));
                }
            }
        }
        for _ in 0..fence.len() {
            self.bump();
        }
        Ok(text)
    }

    fn open(&mut self) -> Result<(), SceneError> {
        let position = self.position;
        if self.opened.len() == DEEPEST {
            let found = format!("brackets nested more than {DEEPEST} deep");
            return Err(self.error_at(position, found, "a flatter structure"));
        }
        let bracket = self.bump().unwrap_or(' ');
        self.opened.push((bracket, position));
        Ok(())
    }

    /// After an item: true when the bracket closed, false when another item follows.
    fn closes(&mut self, close: char, after_item: bool) -> Result<bool, SceneError> {
        self.skip_blank()?;
        let comma = after_item && self.eat(',');
        self.skip_blank()?;
        if self.eat(close) {
            self.opened.pop();
            return Ok(true);
        }
        if after_item && !comma {
            return Err(self.unexpected(&format!("`,` or `{close}`")));
        }
        Ok(false)
    }

    fn list(&mut self) -> Result<Vec<Node>, SceneError> {
        self.open()?;
        let mut items = Vec::new();
        while !self.closes(']', !items.is_empty())? {
            items.push(self.value()?);
        }
        Ok(items)
    }

    /// `(a, b)` or `(field: value)`, told apart by what follows the first word.
    fn parenthesis(&mut self, name: Option<String>) -> Result<Value, SceneError> {
        self.open()?;
        let (mut items, mut entries) = (Vec::new(), Vec::new());
        while !self.closes(')', !(items.is_empty() && entries.is_empty()))? {
            let node = self.value()?;
            self.skip_blank()?;
            let starts_field = matches!(node.value, Value::Word(_)) && self.peek() == Some(':');
            match node.value {
                Value::Word(field) if starts_field && items.is_empty() => {
                    self.bump();
                    let value = self.value()?;
                    entries.push(Entry { name: field, position: node.position, node: value });
                }
                _ if entries.is_empty() && !starts_field => items.push(node),
                _ => {
                    let expected =
                        "either values or `field: value` pairs between these parentheses, not both";
                    return Err(self.error_at(node.position, node.describe(), expected));
                }
            }
        }
        Ok(if entries.is_empty() { Value::Tuple(name, items) } else { Value::Record(name, entries) })
    }

    /// `{field: value}`; a field may be quoted.
    fn map(&mut self) -> Result<Value, SceneError> {
        self.open()?;
        let mut entries = Vec::new();
        while !self.closes('}', !entries.is_empty())? {
            let key = self.value()?;
            let (Value::Word(name) | Value::Text(name)) = key.value else {
                return Err(self.error_at(key.position, key.describe(), "the name of a field"));
            };
            self.skip_blank()?;
            if !self.eat(':') {
                return Err(self.unexpected("`:`"));
            }
            let node = self.value()?;
            entries.push(Entry { name, position: key.position, node });
        }
        Ok(Value::Record(None, entries))
    }
}
