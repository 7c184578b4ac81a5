//! `idlewise repair`: rewrite the unreadable blocks that a scrub has found.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use idlewise::Bytes;
use idlewise::report::Table;
use idlewise_linux::content::{self, Array, Found, Md};
use idlewise_linux::device::Device;
use idlewise_linux::repair::{
    Fate, Foreseen, Outcome, RepairLog, by_owner, check_array, check_cap, check_mirror, foreseen, from_mirror, left,
    of_the_medium, of_the_owner, through_array, through_members,
};
use idlewise_linux::scrub::{BadBlocks, Claim, StateFolder};
use serde::Serialize;

use crate::exit::Exit;
use crate::live::{Second, choose_verifier, open_device, stop_flag};
use crate::output::{self, say};

/// Rewrite the unreadable blocks that a scrub found, from a mirror, through md or by btrfs. Writes only with --allow-writes
///
/// With --mirror, neither device may be mounted or in use. With --md and a member of an array, md checks the 64 KiB or the chunk around each
/// of those blocks, and rewrites what it cannot read: of a mirror all of the 64 KiB, with parity the 4 KiB around it. So nothing is done
/// unless the rest of them is what the other members tell; of a RAID 6 that lacks members that is not known. With --md and the array itself, copies that most
/// others outvote are rewritten, and parities of RAID 6. What may be written is logged before and after.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub struct Arguments {
    /// Block device that was scrubbed
    device: PathBuf,

    /// Device that holds the same data at the same places
    #[arg(long, value_name = "DEVICE", group = "source")]
    mirror: Option<PathBuf>,

    /// Let the md array to which the device belongs rewrite them; or, on the array itself, put right what differs on its members, where it is
    /// known which of them is right
    #[arg(long, group = "source")]
    md: bool,

    /// On RAID 6, also have md rewrite data that both parities tell to be wrong. If such data were written since they went wrong, the error is in
    /// the parities, and right data are lost: what was there is kept in the log
    #[arg(long, requires = "md")]
    trust_parities: bool,

    /// Let the btrfs on the device rewrite them, where it has another copy. It is mounted, and checks the chunks around them: up to 1 GiB each
    #[arg(long, group = "source")]
    btrfs: bool,

    /// Really write. Without this option, show what would be done
    #[arg(long)]
    allow_writes: bool,

    /// Rewrite nothing if more blocks than this, as `scrub` counts them, would be
    #[arg(long, value_name = "COUNT", default_value_t = MAX_BLOCKS)]
    max_blocks: u64,

    /// Where to log what is written [default: beside the checkpoint]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Folder of the checkpoints [default: /var/lib/idlewise, or ~/.local/state/idlewise without root]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// What is rewritten without being told to.
pub const MAX_BLOCKS: u64 = 64;

/// The fields of `repair --json`.
#[derive(Serialize)]
struct Repaired {
    device: String,
    source: String,
    blocks: Vec<Outcome>,
    log: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    idlewise_linux::put_back_what_is_left();
    let device = open_device(&arguments.device)?;
    // The array itself, whose members a scrub has compared.
    let array = if arguments.md {
        let refused = |why| anyhow::anyhow!("{}: its members cannot be compared: {why}", device.path.display());
        Array::of(&device).map_err(refused)?.map(Arc::new)
    } else {
        None
    };
    let device = match &array {
        Some(array) => device.by_members(array.size, array.members.iter().map(|member| &member.device)),
        None => device,
    };
    let members = array.map(|array| Md::new(array, device.block));
    let states = StateFolder::choose(arguments.state_dir.clone());
    let name = device.path.display().to_string();
    let of = if arguments.btrfs || members.is_some() { of_the_owner } else { of_the_medium };
    let found = states.pass(&device)?.map(|pass| (of(pass.known_errors()), pass));
    let Some((bad, mut pass)) = found.filter(|(bad, _)| !bad.is_empty()) else {
        let what = if arguments.btrfs || members.is_some() {
            "a block that is unreadable or wrong"
        } else {
            "a block whose medium is unreadable"
        };
        say!("idlewise: {name}: no scrub has found {what}");
        return Ok(Exit::NothingToDo);
    };
    if arguments.allow_writes {
        check_cap(&bad, arguments.max_blocks)?;
    }
    let mirror = arguments.mirror.as_deref().map(open_device).transpose()?;
    let source = match &mirror {
        Some(mirror) => mirror.path.display().to_string(),
        None => if arguments.btrfs { "btrfs" } else { "md" }.into(),
    };
    let mut owner = None;
    match &mirror {
        Some(mirror) => check_mirror(&device, mirror, &bad)?,
        None if arguments.btrfs => owner = Some(btrfs_on(&device)?),
        None if members.is_some() => {}
        None => check_array(&device)?,
    }
    if !arguments.allow_writes {
        if let Some(members) = &members {
            let of = foreseen(members, device.block, &bad)
                .map_err(|why| anyhow::anyhow!("{name}: its members cannot be compared: {why}"))?;
            let does_it = if of.known > 0 || arguments.trust_parities && of.by_parities > 0 {
                "; --allow-writes does it"
            } else {
                ""
            };
            say!("idlewise: {name}: {}{does_it}", in_words(&of, arguments.trust_parities));
            return Ok(Exit::NothingToDo);
        }
        let count: u64 = bad.iter().map(|run| run.blocks).sum();
        let blocks = format!("{count} block{}", if count == 1 { "" } else { "s" });
        let would = match (&mirror, &owner) {
            (Some(_), _) => format!("{blocks} would be rewritten from {source}"),
            (None, Some(_)) => {
                format!("btrfs would check the chunks around {blocks}, and rewrite what it has another copy of")
            }
            (None, None) => format!("{blocks} would be rewritten from md, with up to 64 KiB or a chunk around each"),
        };
        say!("idlewise: {name}: {would}; --allow-writes does it");
        return Ok(Exit::NothingToDo);
    }
    let _claim = Claim::of(&device, &states)?;
    // No scrub may be at it, and what is repaired is taken off its list.
    let mut checkpoint = states.open(&device, pass.order, false)?;
    anyhow::ensure!(
        states.pass(&device)?.as_ref() == Some(&pass),
        "{name}: a scrub has been at it in the meantime: run this again"
    );
    let log_path = arguments.log.clone().unwrap_or_else(|| states.beside(&device, "repairs.jsonl"));
    // md must not be left with a check that ends nowhere.
    let stop = if mirror.is_none() { stop_flag(Second::IsIgnored)? } else { Arc::default() };
    let mut log = RepairLog::open(&log_path, &name)?;
    let blocks = match (&mirror, &mut owner, &members) {
        (Some(mirror), ..) => from_mirror(&device, mirror, &bad, &mut log)?,
        (_, Some(found), _) => by_owner(&device, found, &bad, &mut log, &stop)?,
        (.., Some(members)) => through_members(&device, members, &bad, arguments.trust_parities, &mut log, &stop)?,
        _ => {
            let mut chosen = choose_verifier(&device, Bytes(u64::from(device.block)), None)?;
            through_array(&device, &mut *chosen.verifier, &bad, &mut log, &stop)?
        }
    };
    // What this pass has not read again yet, it still will. What was wrong is so until its owner has said otherwise.
    let is_judged = owner.is_some() || members.is_some();
    let stays = |run: &BadBlocks| run.is_wrong() && !is_judged;
    let (wrong, others): (Vec<_>, Vec<_>) = pass.errors_before.iter().cloned().partition(stays);
    (pass.errors, pass.errors_before) = (left(&pass.errors, &blocks), left(&others, &blocks));
    pass.errors_before.extend(wrong);
    pass.errors_before.sort_by_key(|run| run.lba);
    let errors = pass.known_errors();
    checkpoint.replace(pass)?;
    let repaired = Repaired { device: name, source, blocks, log: log_path };
    repaired.print(&device, arguments.json)?;
    Ok(match errors.is_empty() {
        true => Exit::Clean,
        false if stop.load(Ordering::Relaxed) => Exit::Interrupted,
        false => Exit::ErrorsFound,
    })
}

/// What would be done with blocks that differ on the members of an array.
fn in_words(of: &Foreseen, trust_parities: bool) -> String {
    let by_parities = if trust_parities {
        "would be rewritten by both parities"
    } else {
        "would be left (only the parities tell what is right: --trust-parities has them rewritten)"
    };
    let counts = [
        (of.known, "would be put right"),
        (of.by_parities, by_parities),
        (of.unknown, "would be left (nobody knows what is right)"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> =
        counts.map(|(count, what)| format!("{count} block{} {what}", if count == 1 { "" } else { "s" })).collect();
    if words.is_empty() {
        "its members are the same again in all blocks that differed".into()
    } else {
        words.join(", ")
    }
}

/// The btrfs on a device, which must be there.
fn btrfs_on(device: &Device) -> anyhow::Result<Found> {
    let found = content::find(device, Some("btrfs"));
    let why =
        found.passed.first().map_or("no btrfs lies on it".into(), |(part, _, why)| format!("btrfs on {part}: {why}"));
    anyhow::ensure!(found.can_be_asked(), "{}: {why}", device.path.display());
    Ok(found)
}

impl Repaired {
    fn print(&self, device: &Device, json: bool) -> anyhow::Result<()> {
        if json {
            return output::json(self);
        }
        let mut table = Table::new(["blocks", "first", "at", "result"]);
        for one in &self.blocks {
            let at = Bytes(one.lba * u64::from(device.block));
            let result = match one.result {
                Fate::Repaired => "repaired",
                Fate::Readable => "can be read again, left alone",
                Fate::LeftAlone => "not its fault or not its data, left alone",
                Fate::Undecided => "nobody knows what is right, left alone",
                Fate::ByParities => "only the parities tell what is right, left alone",
                Fate::SourceUnreadable => "not redundant there, left alone",
                Fate::StillBad => "still bad: no good copy, or the medium takes none",
            };
            table.row([one.blocks.to_string(), one.lba.to_string(), at.to_string(), result.into()]);
        }
        let log = self.log.display();
        output::text(&format!("{} from {}\n\n{table}\nLogged in {log}\n", self.device, self.source))
    }
}
