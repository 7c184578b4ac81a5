//! The files of a package that come from the command's own definition: a manual page for each subcommand, completions for
//! shells.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use clap_complete::{Generator, Shell};
use clap_mangen::Man;
use idlewise::policy::POLICIES;

use crate::examples;
use crate::exit::Exit;
use crate::made::VERSION;
use crate::output;

/// Write the manual pages and the completions into a folder, for those who make packages.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder, which is made.
    folder: PathBuf,
    /// The date of the release, such as 2026-01-31.
    date: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Arguments { folder, date } = arguments;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    write(folder, date)?;
    Ok(Exit::Clean)
}

fn write(folder: &Path, date: &str) -> anyhow::Result<()> {
    let mut command = crate::command().disable_help_subcommand(true);
    command.build();
    pages(command, folder, date)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let mut command = with_policies(crate::Arguments::command());
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "idlewise", &mut text);
        output::bytes(&folder.join(shell.file_name("idlewise")), &text)?;
    }
    Ok(())
}

/// The same, with the names that `--policy` may have: when a command is run they come from a table that programs can add to.
fn with_policies(command: clap::Command) -> clap::Command {
    let names = || PossibleValuesParser::new(POLICIES.iter().map(|entry| entry.name));
    let open = |arg: &clap::Arg| arg.get_long() == Some("policy") && arg.get_possible_values().is_empty();
    let named = |arg: clap::Arg| if open(&arg) { arg.value_parser(names()) } else { arg };
    command.mut_args(named).mut_subcommands(with_policies)
}

/// The page of a command, and those of its subcommands.
fn pages(command: clap::Command, folder: &Path, date: &str) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below.clone(), folder, date)?;
    }
    let page = Man::new(command).date(date).source(format!("idlewise {}", *VERSION)).manual("idlewise");
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    // Breaks around an empty line, which is a break itself, are what mandoc warns of.
    let text = String::from_utf8_lossy(&text).replace(".br\n\n.br\n", ".sp\n");
    let text = with_examples(&text).replace(".SH EXTRA\nExit codes:", ".SH \"EXIT STATUS\"\nExit codes:");
    output::file(&path, &text)
}

/// The examples in a section of their own (man-pages(7)), each command above what it does.
fn with_examples(page: &str) -> String {
    let Some((before, after)) = page.split_once(examples::TITLE) else { return page.into() };
    // Nothing else is in the section that they are in, unless something was said before them.
    let before = before.trim_end().strip_suffix(".SH EXTRA").unwrap_or(before.trim_end());
    let (lines, rest) = after.split_once("\n.SH ").map_or((after, ""), |(lines, rest)| (lines, rest));
    let mut section = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('.')) {
        let command = line.starts_with("idlewise ");
        section += &if command { format!(".TP\n\\fB{line}\\fR\n") } else { format!("{line}\n") };
    }
    let rest = if rest.is_empty() { String::new() } else { format!(".SH {rest}") };
    format!("{}\n.SH EXAMPLES\n{section}{rest}", before.trim_end())
}
