//! A target a subcommand: from the bytes of its files through the reader to what it computes, as the command calls the library.
#![no_main]

use idlewise_fuzz::targets::{self, Run};
use idlewise_fuzz::{Result, Unstructured, commands};
use libfuzzer_sys::fuzz_target;

/// Runs a command on options and files made of these bytes; an error where they are too few.
type Command = fn(Unstructured) -> Result<()>;

const TARGETS: [(&str, Command); 9] = [
    ("idle", commands::idle::run),
    ("trace", commands::trace::run),
    ("simulate", commands::simulate::run),
    ("compare", commands::compare::run),
    ("explore", commands::explore::run),
    ("tune", commands::tune::run),
    ("reliability", commands::reliability::run),
    ("sample", commands::sample::run),
    ("replay", commands::replay::run),
];

fuzz_target!(init: targets::begin(all()), |bytes: &[u8]| targets::run(bytes));

fn all() -> Vec<(&'static str, Run)> {
    let target = |(name, run): (_, Command)| {
        (name, Box::new(move |bytes: &[u8]| run(Unstructured::new(bytes)).unwrap_or_default()) as Run)
    };
    TARGETS.into_iter().map(target).collect()
}
