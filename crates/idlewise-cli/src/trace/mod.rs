//! `idlewise trace`: look into traces, and make others of them.

mod convert;
mod cut;
mod formats;
mod head;
mod info;
mod stats;
mod synth;

use clap::Subcommand;

use crate::exit::Exit;

/// Look into traces; convert, cut, merge or make them
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Info(info::Arguments),
    Stats(stats::Arguments),
    Head(head::Arguments),
    Convert(convert::Arguments),
    Cut(cut::Arguments),
    Merge(convert::MergeArguments),
    Synth(synth::Arguments),
    Formats(formats::Arguments),
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        Command::Info(arguments) => info::run(arguments),
        Command::Stats(arguments) => stats::run(arguments),
        Command::Head(arguments) => head::run(arguments),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Cut(arguments) => cut::run(arguments),
        Command::Merge(arguments) => convert::run_merge(arguments),
        Command::Synth(arguments) => synth::run(arguments),
        Command::Formats(arguments) => formats::run(arguments),
    }
}
