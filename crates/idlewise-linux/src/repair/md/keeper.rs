//! Who keeps an array whose members are repaired, and how its users are kept from writing meanwhile.

use std::fs::{self, File};
use std::ops::Range;

use super::suspended::{Suspended, Suspension};
use super::{Array, PAGE_BYTES, SECTOR, WINDOW};
use crate::content::Md;
use crate::device::{Device, mapper};
use crate::knobs::KnobLedger;
use crate::ledger::Ledger;
use crate::repair::RepairError;
use crate::repair::mirror::open_exclusively;

/// Who keeps the array, and how its users are kept from writing.
pub(super) enum Keeper {
    Md(Box<OfMd>),
    /// Device-mapper, which nobody has open while this is.
    Mapped {
        _open: File,
    },
}

pub(super) struct OfMd {
    pub array: Array,
    pub knobs: KnobLedger,
    suspensions: Ledger<Suspension>,
}

impl Keeper {
    pub(super) fn of(device: &Device, members: &Md) -> Result<Self, RepairError> {
        if !members.is_of_md() {
            let open = open_exclusively(device, true)?;
            // Some open it without claiming it, such as virtual machines.
            let others =
                mapper::open_count(device.disk_numbers()).map_err(|error| error.to_string()).and_then(|count| {
                    const OURS: u32 = 2;
                    if count > OURS { Err("others have it open: repair needs it to be unused".into()) } else { Ok(()) }
                });
            let problem = |problem| RepairError::Array { array: device.path.display().to_string(), problem };
            return others.map(|()| Self::Mapped { _open: open }).map_err(problem);
        }
        let array = Array::of_any_level(device.name())?;
        array.is_plain()?;
        let knobs = KnobLedger::begin().map_err(|error| array.unnoted(&error))?;
        let suspensions = Ledger::begin().map_err(|error| array.unnoted(&error))?;
        Ok(Self::Md(Box::new(OfMd { array, knobs, suspensions })))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Md(of) => &of.array.name,
            Self::Mapped { .. } => "device-mapper",
        }
    }

    /// Until what is returned is dropped, nobody writes to these bytes of the array.
    pub(super) fn hold_writes(&mut self, bytes: &Range<u64>) -> Result<Option<Suspended<'_>>, RepairError> {
        let Self::Md(of) = self else { return Ok(None) };
        of.array.is_idle()?;
        let suspended = Suspended::begin(&of.array.folder, bytes, &mut of.suspensions);
        suspended.map(Some).map_err(|error| of.array.problem(error.to_string()))
    }
}

impl Array {
    /// The whole windows around a range of bytes of its members' data.
    pub(super) fn windows(&self, range: &Range<u64>) -> Range<u64> {
        let unit = WINDOW.max(self.chunk) * SECTOR;
        range.start / unit * unit..range.end.next_multiple_of(unit).min(self.data.1 * SECTOR)
    }

    /// # Errors
    /// If md is at work on it.
    pub(super) fn is_idle(&self) -> Result<(), RepairError> {
        match self.read("sync_action")?.as_str() {
            "idle" => Ok(()),
            busy => Err(self.problem(format!("is busy ({busy})"))),
        }
    }

    /// # Errors
    /// If something of it is not looked at here: a member that replaces another one, or pages of another size.
    fn is_plain(&self) -> Result<(), RepairError> {
        for entry in fs::read_dir(&self.folder).map_err(|error| self.error("", &error))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let replaces = |state: String| state.split(',').any(|word| word == "replacement");
            if name.starts_with("dev-") && self.read(&format!("{name}/state")).is_ok_and(replaces) {
                return Err(self.problem(format!("{} is about to replace a member", name.trim_start_matches("dev-"))));
            }
        }
        match self.read("stripe_size") {
            Ok(size) if size != PAGE_BYTES.to_string() => Err(self.problem(format!("its pages are of {size} bytes"))),
            _ => Ok(()),
        }
    }
}
