//! `idlewise trace cut`: a part of a trace, or its sessions.

use idlewise::Nanos;
use idlewise::trace::{Columns, Provenance};

use super::convert::{Parts, both_helps};
use crate::exit::{Exit, UsageError};
use crate::input::TraceArguments;
use crate::output::{self, say};
use crate::trace_file::OutArguments;

/// Cut a part out of a trace, or split it where it has holes
#[derive(clap::Args)]
#[command(after_help = both_helps())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,

    #[command(flatten)]
    out: OutArguments,

    /// Leave out what arrives earlier, counted from the first arrival
    #[arg(long, value_name = "TIME", default_value = "0")]
    from: Nanos,

    /// Leave out what arrives at this time or later
    #[arg(long, value_name = "TIME")]
    until: Option<Nanos>,

    /// Start a new file, with a number before its ending, wherever no request arrives for longer than this
    #[arg(long, value_name = "TIME")]
    at_gaps: Option<Nanos>,

    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

/// Where the cutting is.
struct Cutter {
    parts: Parts,
    part: usize,
    /// First arrival of the part.
    begin: Option<Nanos>,
    last: Nanos,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Arguments { input, out, from, until, at_gaps, json } = arguments;
    let (from, until, longest) = (*from, until.unwrap_or(Nanos(u64::MAX)), at_gaps.unwrap_or(Nanos(u64::MAX)));
    if from >= until {
        return Err(UsageError(format!("--from {} is not before --until {}", from.exact(), until.exact())).into());
    }
    let target = out.target()?;
    out.check_parts(at_gaps.is_some())?;
    output::check_all(&input.traces, &[Some(&out.out)])?;
    let begin = |_: &Provenance| {
        Ok(Cutter {
            parts: Parts::new(out.out.clone(), target, &input.traces),
            part: 1,
            begin: None,
            last: Nanos::ZERO,
        })
    };
    let take = |cutter: &mut Cutter, mut columns: Columns, provenance: &Provenance| {
        columns.retain(|request| request.arrival >= from && request.arrival < until);
        while !columns.is_empty() {
            let length = cutter.until_gap(&columns, longest);
            let rest = columns.split_off(length);
            if !columns.is_empty() {
                let path =
                    if at_gaps.is_some() { cutter.parts.part_path(&cutter.part.to_string()) } else { out.out.clone() };
                cutter.write(path, columns, provenance)?;
            }
            if !rest.is_empty() {
                cutter.parts.finish_open()?;
                cutter.part += 1;
                cutter.begin = None;
            }
            columns = rest;
        }
        Ok(())
    };
    let (cutter, _) = input.read.stream(&input.traces, input.read.options(), begin, take)?;
    if cutter.begin.is_none() {
        say!("idlewise: {}: no request arrives in that time", input.name());
        return Ok(Exit::NothingToDo);
    }
    cutter.parts.finish()?.report(*json)
}

impl Cutter {
    /// How many of these requests come before the first gap.
    fn until_gap(&self, columns: &Columns, longest: Nanos) -> usize {
        let mut last = self.begin.map(|_| self.last);
        for (index, &arrival) in columns.arrival.iter().enumerate() {
            if last.is_some_and(|last| arrival.since(last) > longest) {
                return index;
            }
            last = Some(arrival);
        }
        columns.len()
    }

    /// Each part begins at time zero, and its origin says where it was.
    fn write(&mut self, path: std::path::PathBuf, mut columns: Columns, provenance: &Provenance) -> anyhow::Result<()> {
        self.last = columns.arrival[columns.len() - 1];
        let begin = *self.begin.get_or_insert(columns.arrival[0]);
        columns.arrival.iter_mut().for_each(|arrival| *arrival = arrival.since(begin));
        let origin = Nanos(provenance.origin.0.saturating_add(begin.0));
        self.parts.write(path, &columns, &Provenance { origin, ..provenance.clone() })
    }
}
