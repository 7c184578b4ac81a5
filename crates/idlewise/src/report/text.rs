//! Tables of text, as printed on a terminal and set in a page.

use std::fmt;

use super::printable::one_line;

/// Characters between two columns.
const GAP: usize = 2;

/// A table whose first column is names, aligned left; the others are aligned right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Column titles; empty for a table without a head.
    pub head: Vec<String>,
    /// Rows of cells, each as long as the others.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these column titles.
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(String::from).into(), rows: Vec::new() }
    }

    /// A table of names and values, without a head.
    pub fn of_pairs<const N: usize>(pairs: [(&str, String); N]) -> Self {
        let rows = pairs.into_iter().map(|(name, value)| vec![name.into(), value]).collect();
        Self { head: Vec::new(), rows }
    }

    /// The same with rows for columns.
    pub fn turned(&self) -> Self {
        let line = |at: usize| {
            let cells = std::iter::once(&self.head).chain(&self.rows).filter_map(|line| line.get(at));
            cells.cloned().collect::<Vec<_>>()
        };
        Self { head: line(0), rows: (1..self.head.len()).map(line).collect() }
    }

    /// The same in parts that are no wider than `width`, one above the other, each with the names. A column that is too wide alone is
    /// a part of its own.
    pub fn folded(&self, width: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let part = |from: usize, to: usize| {
            let kept = |line: &Vec<String>| {
                let others = line.get(from..to.min(line.len())).unwrap_or_default();
                line.iter().take(1).chain(others).cloned().collect::<Vec<_>>()
            };
            Self { head: kept(&self.head), rows: self.rows.iter().map(kept).collect() }
        };
        let widths = self.widths();
        let (mut parts, mut from) = (Vec::new(), 1);
        while from < columns || parts.is_empty() {
            let of = |column: usize| GAP + widths.get(column).unwrap_or(&0);
            let (mut to, mut taken) = (from + 1, of(0) - GAP + of(from));
            while to < columns && taken + of(to) <= width {
                taken += of(to);
                to += 1;
            }
            parts.push(part(from, to).to_string());
            from = to;
        }
        parts.join("\n")
    }

    /// The names, if there are any, and the rows.
    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        (!self.head.is_empty()).then_some(&self.head).into_iter().chain(&self.rows)
    }

    /// Characters of each column, as shown: what is in a cell stays in it.
    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for line in self.lines() {
            widths.resize(widths.len().max(line.len()), 0);
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(one_line(cell).chars().count());
            }
        }
        widths
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for line in self.lines() {
            let mut text = String::new();
            for (column, cell) in line.iter().enumerate() {
                let cell = one_line(cell);
                // The formatter takes no more than 65,535.
                let blanks = " ".repeat(widths[column] - cell.chars().count());
                text += &if column == 0 { format!("{cell}{blanks}") } else { format!("{:GAP$}{blanks}{cell}", "") };
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_left_numbers_right() {
        let mut table = Table::new(["policy", "slowdown"]);
        table.row(["waiting".into(), "1 ms".into()]);
        table.row(["cfq-idle".into(), "0.123 ms".into()]);
        assert_eq!(table.to_string(), "policy    slowdown\nwaiting       1 ms\ncfq-idle  0.123 ms\n");
        assert_eq!(table.turned().to_string(), "policy    waiting  cfq-idle\nslowdown     1 ms  0.123 ms\n");
        assert_eq!(table.folded(80), table.to_string());
        assert_eq!(
            table.turned().folded(20),
            "policy    waiting\nslowdown     1 ms\n\npolicy    cfq-idle\nslowdown  0.123 ms\n"
        );
        assert_eq!(Table::default().folded(80), "");
        let mut hostile = Table::new(["name"]);
        hostile.row(["a\nb\u{1b}[2J".into()]);
        assert_eq!(hostile.to_string(), "name\na\\nb\\u{1b}[2J\n");
        assert_eq!(Table::of_pairs([("a", "1".into())]).to_string(), "a  1\n");
        let long = "n".repeat(70_000);
        assert_eq!(Table::of_pairs([(&long, "1".into()), ("a", "2".into())]).to_string().lines().count(), 2);
    }
}
