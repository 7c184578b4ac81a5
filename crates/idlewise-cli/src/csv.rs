//! Tables as CSV (RFC 4180): times in seconds, sizes in bytes, nothing for what is not known.

/// A table whose cells are quoted where they must be.
pub fn csv(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    std::iter::once(head).chain(rows).map(|cells| line(&cells)).collect()
}

/// A number, or nothing.
pub fn cell(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_cell_is_quoted() {
        let rows = [vec!["a,\"b\"".to_string(), cell(Some(0.5))], vec!["c".into(), cell(None)]];
        assert_eq!(csv(&["name", "x"], rows.into_iter()), "name,x\n\"a,\"\"b\"\"\",0.5\nc,\n");
    }
}
