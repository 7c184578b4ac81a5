//! The documents: links lead somewhere, the book has every page, and the commands that they show exist.

mod common;

use std::path::PathBuf;

use common::{repository, run, stdout};

/// Every document for users and developers.
fn documents() -> Vec<PathBuf> {
    let folder = |folder: PathBuf| folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let all = folder(repository()).chain(folder(repository().join("docs")));
    all.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

/// Where the links `](...)` of a text lead.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut checked = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link} leads nowhere", document.display());
            if !part.is_empty() {
                let target = std::fs::read_to_string(&target).unwrap();
                let found = target.lines().any(|line| line.starts_with('#') && anchor(line) == part);
                assert!(found, "{}: {link} has no such heading", document.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked} links");
}

#[test]
fn the_book_has_every_page() {
    let summary = std::fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    for entry in repository().join("docs").read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let listed = links(&summary).contains(&name.as_str());
        assert!(listed || name == "SUMMARY.md" || !name.ends_with(".md"), "{name} is not in the book");
    }
}

/// The commands in a text that begin a line, with `sudo` before them or without.
fn commands(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let command = line.strip_prefix("sudo ").unwrap_or(line).strip_prefix("idlewise ")?;
        Some(command.split('#').next()?.split_whitespace().collect())
    })
}

#[test]
fn commands_that_are_shown_exist() {
    let mut checked = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for command in commands(&text) {
            let names = if command[0] == "trace" || command.starts_with(&["fleet", "plans"]) { 2 } else { 1 };
            let what = format!("{}: idlewise {}", document.display(), command.join(" "));
            let help = run(&[&command[..names.min(command.len())], &["--help"]].concat());
            assert!(help.status.success(), "{what}");
            let help = stdout(&help);
            for option in command.iter().filter(|word| word.starts_with("--")) {
                let name = option.split('=').next().unwrap();
                let listed = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == name);
                assert!(listed, "{what}: no {name}");
            }
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked} commands");
}
