//! The command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use idlewise::Nanos;

/// A SCSI disk with chosen faults, served from user space to the kernel that it runs on. Needs root, and the modules
/// target_core_user and tcm_loop.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// Name of the disk, and its serial number
    #[arg(long)]
    pub name: String,

    /// Where its data are; made if missing
    #[arg(long)]
    pub file: PathBuf,

    /// Its size in MiB where the file is new
    #[arg(long, default_value_t = 64)]
    pub size: u64,

    /// Blocks that cannot be read, FIRST-LAST or one; writing a block heals it
    #[arg(long, value_delimiter = ',', value_parser = range)]
    pub bad: Vec<RangeInclusive<u64>>,

    /// A SATA disk behind a SCSI translation layer
    #[arg(long)]
    pub ata: bool,

    /// VERIFY(16) is an unknown command; given twice, VERIFY(10) as well
    #[arg(long, action = clap::ArgAction::Count)]
    pub no_verify: u8,

    /// Most blocks in one VERIFY
    #[arg(long)]
    pub longest: Option<u64>,

    /// Every READ or VERIFY of this block is answered with these bytes of sense data, in hexadecimal: BLOCK:BYTES
    #[arg(long, value_parser = sense)]
    pub sense: Option<(u64, Vec<u8>)>,

    /// Sense data in descriptor format
    #[arg(long)]
    pub descriptor_sense: bool,

    /// A command that touches this block gets no answer until it is aborted
    #[arg(long)]
    pub hang: Option<u64>,

    /// After so many more commands once it is ready, every command fails: NOT READY
    #[arg(long)]
    pub fail_all_after: Option<u64>,

    /// Every so many commands, one is aborted
    #[arg(long)]
    pub abort_every: Option<u64>,

    /// Blocks come from the medium in so much time; from the cache, once it has them, in none
    #[arg(long, value_parser = time)]
    pub cache: Option<Duration>,

    /// A self-test runs as long as this file exists
    #[arg(long)]
    pub self_test: Option<PathBuf>,

    /// It sleeps as long as this file exists, which a command that needs the medium removes
    #[arg(long)]
    pub asleep: Option<PathBuf>,

    /// A line for each command goes there: opcode (85/xx for ATA), first block, blocks
    #[arg(long)]
    pub log: Option<PathBuf>,
}

fn range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse().map_err(|_| format!("{text} is no block"));
    Ok(number(first)?..=number(last)?)
}

fn sense(text: &str) -> Result<(u64, Vec<u8>), String> {
    let (block, hex) = text.split_once(':').ok_or("it is BLOCK:BYTES")?;
    let bytes =
        (0..hex.len()).step_by(2).map(|at| hex.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok()));
    let bytes = bytes.collect::<Option<Vec<_>>>().ok_or_else(|| format!("{hex} are no bytes"))?;
    Ok((block.parse().map_err(|_| format!("{block} is no block"))?, bytes))
}

fn time(text: &str) -> Result<Duration, String> {
    text.parse::<Nanos>().map(|time| Duration::from_nanos(time.0)).map_err(|error| error.to_string())
}
