//! Whose data a scrub reads: who is asked what they should be, and what is said of it.

use clap::builder::{PossibleValue, PossibleValuesParser};
use idlewise::Bytes;
use idlewise::report::printable::one_line;
use idlewise_linux::content::{self, ALLOCATION, Array, Found, Md, OWNERS};
use idlewise_linux::device::Device;
use idlewise_linux::scrub::ContentSoFar;
use serde::Serialize;

use super::bar::Bar;
use crate::exit::UsageError;

/// All that are found on the device.
pub const AUTO: &str = "auto";
const NONE: &str = "none";
/// The one way to verify that brings the data here.
const READ: &str = "read";

/// What `--content` takes.
pub fn names() -> PossibleValuesParser {
    let owners = OWNERS.iter().map(|owner| PossibleValue::new(owner.name).help(super::sentence(owner.about)));
    let auto = PossibleValue::new(AUTO).help("All below that are found on the device");
    [auto, PossibleValue::new(NONE).help("Only read")].into_iter().chain(owners).collect::<Vec<_>>().into()
}

/// The owners of a device by `--content`, with `--verifier` as it was given.
///
/// # Errors
/// If an owner was named that cannot be asked, or the way to verify brings no data.
pub fn find(device: &Device, name: &str, verifier: Option<&str>) -> Result<Found, UsageError> {
    let device_name = device.path.display();
    let named = name != AUTO;
    let reads = verifier.is_none_or(|verifier| verifier == READ);
    if name == NONE {
        return Ok(Found::default());
    }
    // Of what is not brought here it can still be told what is free, and what lies where.
    let name = if name == AUTO && !reads { ALLOCATION } else { name };
    if !reads && name != ALLOCATION {
        return Err(UsageError(format!(
            "--content {name} takes --verifier {READ}: the other ways to verify bring no data here"
        )));
    }
    let found = content::find(device, Some(name).filter(|name| *name != AUTO));
    if named && !found.can_be_asked() {
        let why =
            found.passed.first().map_or(String::new(), |(part, owner, why)| format!(": {owner} on {part}: {why}"));
        return Err(UsageError(format!("{device_name}: no {name} on it can be asked{why}")));
    }
    Ok(found)
}

/// With which verifier the owners' data are read.
pub fn verifier<'a>(found: &Found, verifier: Option<&'a str>) -> Option<&'a str> {
    if found.judges() { Some(READ) } else { verifier }
}

/// The array that a device is, if its members are to be compared; or why they cannot be.
///
/// # Errors
/// The same where nothing else was asked for.
pub fn array(device: &Device, name: &str, verifier: Option<&str>) -> Result<Result<Option<Array>, String>, UsageError> {
    if ![AUTO, Md::NAME].contains(&name) || verifier.is_some() {
        return Ok(Ok(None));
    }
    let refused = |why: &str| Err(UsageError(format!("{}: {why}", device.path.display())));
    match Array::of(device) {
        Ok(None) if name == Md::NAME => refused("is no md array with redundancy; name the array, such as /dev/md0"),
        Err(why) if name == Md::NAME => refused(&format!("its members cannot be compared: {why}")),
        other => Ok(other),
    }
}

/// Says who is asked, and who is not.
pub fn say(device: &Device, found: &Found, bar: &Bar) {
    let (owners, covered) = found.judging();
    if !owners.is_empty() {
        let owners = owners.join(", ");
        match device.is_by_members() {
            true => bar.say("reads all members of the array together, and compares them"),
            false => bar.say(&format!("compares what it reads with the checksums of {owners}, on {covered} of it")),
        }
    }
    NotAsked::of(device, found).iter().for_each(|one| bar.say(&one.line()));
}

/// An owner that could not be asked from the beginning, as in `--json`.
#[derive(Serialize)]
pub struct NotAsked {
    /// Such as `btrfs`.
    owner: &'static str,
    /// The partition that is its own; absent where that is the whole device.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    /// Such as that it is not mounted.
    why: String,
}

impl NotAsked {
    /// Of the owners of a device.
    pub fn of(device: &Device, found: &Found) -> Vec<Self> {
        let of = |(part, owner, why): &(String, &'static str, String)| Self {
            owner,
            partition: Some(part).filter(|part| **part != device.name()).cloned(),
            why: why.clone(),
        };
        found.passed.iter().map(of).collect()
    }

    /// For people.
    pub fn line(&self) -> String {
        let part = self.partition.as_ref().map_or(String::new(), |part| format!(" on {}", one_line(part)));
        format!("{}{part} is not asked about its data: {}", self.owner, one_line(&self.why))
    }
}

/// What the owners said, as in `--json`.
#[derive(Serialize)]
pub struct Content {
    /// Who was asked: `btrfs`, `md`, or `allocation` of ext4 and XFS.
    owners: Vec<String>,
    /// Bytes that were compared with a checksum, or on all members of an array.
    judged_bytes: u64,
    /// Bytes that were read, and that nothing uses.
    free_bytes: u64,
    /// Bytes that were not read, as nothing uses them (`--skip-free`).
    skipped_bytes: u64,
    /// Bytes that were read and neither compared nor free: no checksum is kept of them, or nobody could be asked.
    unjudged_bytes: u64,
    /// Places that differed at one look and not at the next: they were being written.
    transient: u64,
    /// Bytes that were read while an owner could not be asked: they were not compared.
    unasked_bytes: u64,
    /// Why not, the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    unasked: Option<String>,
    /// Bytes that were read while their file system was not mounted: they were not compared. That is an error where it was mounted at another
    /// time of this pass, or in the one before.
    unmounted_bytes: u64,
    /// How much was not compared though it should have been, and why.
    #[serde(skip)]
    silent: Option<(Bytes, String)>,
}

impl Content {
    /// Of a pass that has verified so much.
    pub fn new(so_far: &ContentSoFar, verified: Bytes) -> Self {
        let ContentSoFar { owners, judged_bytes, free_bytes, skipped_bytes, transient, unasked, unasked_bytes, .. } =
            so_far.clone();
        let known = judged_bytes.saturating_add(free_bytes).saturating_add(skipped_bytes);
        let unjudged_bytes = verified.0.saturating_sub(known);
        let silent = so_far.silent().map(|(bytes, why)| (bytes, why.to_string()));
        Self {
            owners,
            judged_bytes,
            free_bytes,
            skipped_bytes,
            unjudged_bytes,
            transient,
            unasked_bytes,
            unasked,
            unmounted_bytes: so_far.unmounted_bytes(),
            silent,
        }
    }

    /// Whether anything was compared.
    pub fn has_judged(&self) -> bool {
        self.judged_bytes > 0
    }

    /// Whether all that was read, and is used, was compared.
    pub fn is_whole(&self) -> bool {
        self.unjudged_bytes == 0 && self.silent.is_none()
    }

    /// How much was not compared as who could tell was silent at times, if any, and why.
    pub fn silent(&self) -> Option<(Bytes, &str)> {
        self.silent.as_ref().map(|(bytes, why)| (*bytes, why.as_str()))
    }

    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let judging: Vec<_> = self.owners.iter().filter(|owner| *owner != ALLOCATION).map(String::as_str).collect();
        let owners = judging.join(", ");
        let [judged, free, rest] = [self.judged_bytes, self.free_bytes, self.unjudged_bytes].map(Bytes);
        let mut lines = match &judging[..] {
            [Md::NAME] => {
                vec![format!("compared on all members: {judged} of each; not compared: {rest}")]
            }
            [] => Vec::new(),
            _ => vec![format!(
                "compared with the checksums of {owners}: {judged}; free space: {free}; not compared: {rest}"
            )],
        };
        if let Some(why) = &self.unasked {
            let bytes = Bytes(self.unasked_bytes);
            lines.push(format!("of this, {bytes} were read while {owners} could not be asked: {}", one_line(why)));
        }
        if self.unmounted_bytes > 0 {
            lines.push(format!(
                "of this, {} were read while the file system was not mounted",
                Bytes(self.unmounted_bytes)
            ));
        }
        lines.extend(self.skipped());
        if self.transient > 0 {
            let places = if self.transient == 1 { "place was" } else { "places were" };
            lines.push(format!("{} {places} written while being compared, and right later", self.transient));
        }
        lines
    }

    /// What `--skip-free` has passed over, for people.
    pub fn skipped(&self) -> Option<String> {
        (self.skipped_bytes > 0).then(|| format!("not read, as nothing uses it: {}", Bytes(self.skipped_bytes)))
    }
}
