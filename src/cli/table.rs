//! Text tables.

/// Rows of cells, printed in columns as wide as their widest cell.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns that hold numbers are aligned right.
    numbers: Vec<usize>,
}

impl Table {
    /// A table whose given columns are aligned right.
    pub fn with_numbers(numbers: &[usize]) -> Self {
        Table { rows: Vec::new(), numbers: numbers.to_vec() }
    }

    /// Appends a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let gap = " ".repeat(widths[column] - cell.chars().count());
                line += &if self.numbers.contains(&column) { gap + cell } else { cell.clone() + &gap };
                line += "  ";
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A count with thin groups of three digits: `12 345 678`.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Bytes in a unit that keeps the number short.
pub fn bytes(count: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB"];
    let step = (0..3).find(|&step| count < 1024f64.powi(step + 1)).unwrap_or(3);
    let decimals = usize::from(step > 0);
    format!("{:.decimals$} {}", count / 1024f64.powi(step), units[step as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::with_numbers(&[1]);
        table.row(["a", "1"]).row(["long", "1000"]);
        assert_eq!(table.to_string(), "a        1\nlong  1000\n");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1 234 567".into())
        );
        assert_eq!((bytes(12.0), bytes(3.5 * 1024.0 * 1024.0)), ("12 B".into(), "3.5 MiB".into()));
    }
}
