//! A page as Markdown: the same sections, without drawings.

use std::fmt::Write;

use idlewise::report::Page;

/// As Markdown.
pub fn markdown(page: &Page) -> String {
    let mut text = format!("# {}\n\n{}\n", page.title, page.lead);
    let mut add = |args: std::fmt::Arguments| text.write_fmt(args).expect("memory takes it");
    for section in &page.sections {
        add(format_args!("\n## {}\n", section.heading));
        if !section.text.is_empty() {
            add(format_args!("\n{}\n", section.text));
        }
        for (index, (name, note)) in section.notes.iter().enumerate() {
            add(format_args!("{}- **{name}**: {note}\n", if index == 0 { "\n" } else { "" }));
        }
        let Some(columns) = section.table.rows.first().map(Vec::len) else { continue };
        let blank = vec![String::new(); columns];
        let head = if section.table.head.is_empty() { &blank } else { &section.table.head };
        let rule = vec!["---".to_string(); columns];
        add(format_args!("\n"));
        for row in [head, &rule].into_iter().chain(&section.table.rows) {
            add(format_args!("| {} |\n", row.join(" | ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use idlewise::report::{Section, Table};

    #[test]
    fn markdown_has_every_section_note_and_row() {
        let section = Section {
            heading: "H".into(),
            text: "T".into(),
            notes: vec![("n".into(), "note".into()), ("m".into(), "more".into())],
            table: Table::of_pairs([("a", "1".into())]),
            ..Section::default()
        };
        let page = Page { title: "P".into(), lead: "L".into(), sections: vec![section] };
        let expected = "# P\n\nL\n\n## H\n\nT\n\n- **n**: note\n- **m**: more\n\n|  |  |\n| --- | --- |\n| a | 1 |\n";
        assert_eq!(markdown(&page), expected);
    }
}
