//! An emulated disk, there until it is told to stop: for trying things by hand.

use std::ops::Range;

use clap::Parser;
use idlewise::{Bytes, Nanos};
use idlewise_testbed::{EmulatedDisk, Options, Timing};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Emulate a 15,000 rpm hard disk, or a solid-state drive, behind a loop device until interrupted. Needs root and FUSE.
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

    /// Choose the nearest of up to so many requests, as a hard disk with NCQ does; 1: first come first served
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    queue: usize,

    /// Read ahead into a cache and buffer a write, as hard disks do
    #[arg(long, conflicts_with_all = ["queue", "flash", "instant"])]
    cache: bool,

    /// Emulate a solid-state drive whose times are so many times as long as real ones
    #[arg(long, value_name = "TIMES", conflicts_with_all = ["queue", "instant"])]
    flash: Option<u64>,

    /// Serve at memory speed
    #[arg(long)]
    instant: bool,
}

fn blocks(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once(':').and_then(|(first, count)| Some((first.parse().ok()?, count.parse().ok()?)));
    let (first, count): (u64, u64) = parsed.ok_or("write FIRST:COUNT, such as 2048:8")?;
    Ok(first..first.saturating_add(count))
}

fn main() -> anyhow::Result<()> {
    let Arguments { size, bad, recovery, hang, queue, cache, flash, instant } = Arguments::parse();
    let timing = match flash {
        _ if instant => Timing::Instant,
        _ if cache => Timing::CachedHardDisk,
        Some(slower) => Timing::Flash { slower },
        None => Timing::HardDisk { queue },
    };
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let disk = EmulatedDisk::new(&Options { size, bad_blocks: bad, recovery, hang, timing, ..Options::default() })?;
    println!("{}", disk.path().display());
    signals.forever().next();
    Ok(())
}
