//! One HTML page that needs no network, reads well in light and dark, and prints.

use std::sync::OnceLock;

use askama::Template;

use super::Table;
use super::printable::lines;

/// A page of sections.
#[derive(Clone, Debug, Default, Template)]
#[template(path = "page.html")]
pub struct Page {
    /// Title.
    pub title: String,
    /// What the page says, in a sentence or two.
    pub lead: String,
    /// Its parts.
    pub sections: Vec<Section>,
}

static MADE_BY: OnceLock<String> = OnceLock::new();

/// Sets the last line of every page of this process, which says what made it; the first call counts.
pub fn made_by(line: &str) {
    MADE_BY.get_or_init(|| line.to_owned());
}

/// A heading with a text, notes, a table and drawings, each of which may be empty.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// Plain words.
    pub text: String,
    /// What is to be said of each of several things: a name and a sentence.
    pub notes: Vec<(String, String)>,
    /// Numbers.
    pub table: Table,
    /// A long table, to be sorted and searched.
    pub listing: Listing,
    /// Names and SVG drawings, set as they are; several are set beside each other.
    pub drawings: Vec<(String, String)>,
}

/// A table that a reader sorts by its columns, and searches.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Names of the columns.
    pub head: Vec<String>,
    /// Cells, as many in each row.
    pub rows: Vec<Vec<Cell>>,
}

/// What is shown, and the number by which it is sorted; by its text where there is none.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// The number behind it.
    pub number: Option<f64>,
}

impl Page {
    /// Whether any of its tables is to be sorted.
    fn has_listing(&self) -> bool {
        self.sections.iter().any(|section| !section.listing.rows.is_empty())
    }

    /// What made it: this library, where nobody has said more.
    fn made_by(&self) -> &str {
        MADE_BY.get().map_or(concat!("idlewise ", env!("CARGO_PKG_VERSION")), String::as_str)
    }

    /// The page's HTML.
    pub fn html(&self) -> String {
        let html = self.render().expect("rendering into memory does not fail");
        lines(&html).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_nothing_is_fetched() {
        let table = Table::of_pairs([("a<b", "1 & 2".into())]);
        let section = Section {
            heading: "<h>".into(),
            text: "t\u{1b}[2J".into(),
            notes: vec![("a".into(), "b".into())],
            table,
            drawings: vec![(String::new(), "<svg></svg>".into())],
            ..Section::default()
        };
        let html = Page { title: "T".into(), lead: "L".into(), sections: vec![section] }.html();
        assert!(html.contains("&#60;h&#62;") && html.contains("a&#60;b") && html.contains("<svg></svg>"), "{html}");
        assert!(html.contains("t\\u{1b}[2J") && !html.contains('\u{1b}'), "{html}");
        assert!(html.contains(concat!("<footer>idlewise ", env!("CARGO_PKG_VERSION"))), "{html}");
        assert!(!html.contains("http") && !html.contains("<script"), "{html}");
    }
}
