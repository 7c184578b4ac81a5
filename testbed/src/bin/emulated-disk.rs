//! An emulated hard disk, there until it is told to stop: for trying things by hand.

use std::ops::Range;

use clap::Parser;
use idlewise::{Bytes, Nanos};
use idlewise_testbed::{EmulatedDisk, Options};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Emulate a 15,000 rpm hard disk behind a loop device until interrupted. Needs root and FUSE.
#[derive(Parser)]
struct Arguments {
    /// Size of the disk
    #[arg(long, default_value = "8GiB")]
    size: Bytes,

    /// Unreadable 512-byte blocks, FIRST:COUNT; may be given several times
    #[arg(long, value_name = "FIRST:COUNT", value_parser = blocks)]
    bad: Vec<Range<u64>>,

    /// How long a read of unreadable blocks takes to fail
    #[arg(long, value_name = "TIME", default_value = "0s")]
    recovery: Nanos,

    /// A 512-byte block whose reads are never answered
    #[arg(long, value_name = "BLOCK")]
    hang: Option<u64>,

    /// Serve at memory speed, without the mechanics
    #[arg(long)]
    instant: bool,
}

fn blocks(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once(':').and_then(|(first, count)| Some((first.parse().ok()?, count.parse().ok()?)));
    let (first, count): (u64, u64) = parsed.ok_or("write FIRST:COUNT, such as 2048:8")?;
    Ok(first..first.saturating_add(count))
}

fn main() -> anyhow::Result<()> {
    let Arguments { size, bad, recovery, hang, instant } = Arguments::parse();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let disk = EmulatedDisk::new(&Options { size, bad_blocks: bad, recovery, hang, timing: !instant })?;
    println!("{}", disk.path().display());
    signals.forever().next();
    Ok(())
}
