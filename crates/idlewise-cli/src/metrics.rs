//! `idlewise metrics`: what the daemon measures, for Prometheus, without a port.

use std::path::PathBuf;

use crate::control::{To, asked};
use crate::exit::Exit;
use crate::output;

/// Print the metrics of the daemon as Prometheus reads them, or write them into a file
///
/// For machines where no port is to be opened: the textfile collector of node_exporter reads what is in its folder. The file is replaced
/// as a whole.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write them into this file, such as /var/lib/prometheus/node-exporter/idlewise.prom
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    to: To,
}

/// Gets them and prints or writes them.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check(arguments.output.as_deref())?;
    let text = asked(&arguments.to, "/metrics")?;
    match &arguments.output {
        Some(path) if !output::is_stdout(path) => output::file(path, &text)?,
        _ => output::text(&text)?,
    }
    Ok(Exit::Clean)
}
