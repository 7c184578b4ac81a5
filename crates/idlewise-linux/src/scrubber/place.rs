//! How far an owner's scrub has come, kept for the next run.

use std::io;
use std::path::PathBuf;

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::{Kind, SoFar, Standing};
use crate::device::{Device, Marks};
use crate::files::Folder;
use crate::scrub::{AccountSoFar, StateFolder};

const VERSION: u32 = 5;
/// Without places that could not be read, and without accounts.
const OLDER: [u32; 2] = [3, 4];

/// Where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Version of the format.
    version: u32,
    /// Which scrubber, of which device.
    scrubber: String,
    identity: String,
    marks: Marks,
    /// Which file system or array it is.
    of: String,
    /// The byte at which it goes on, by the scrubber's own measure.
    pub done: u64,
    /// What it has counted until there.
    pub wrong: u64,
    /// What its owner has passed over until there, beside those.
    pub skipped: u64,
    /// Places that could not be read.
    #[serde(default)]
    pub unread: Vec<Unread>,
    /// How the accounts of its disks stand.
    #[serde(default)]
    pub accounts: Vec<AccountSoFar>,
}

/// A part of a member of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unread {
    /// The member's number in the array.
    pub member: u32,
    /// Its first byte there.
    pub byte: u64,
    /// How long it is.
    pub bytes: u64,
}

impl Unread {
    /// How much several are.
    pub fn bytes(places: &[Self]) -> u64 {
        places.iter().fold(0, |all, place| place.bytes.saturating_add(all))
    }
}

impl Place {
    /// The beginning.
    ///
    /// # Errors
    /// Why it is not known what the device holds.
    pub fn beginning(kind: &Kind, device: &Device) -> io::Result<Self> {
        Ok(Self {
            version: VERSION,
            scrubber: kind.name.into(),
            identity: device.identity.clone(),
            marks: device.marks.clone(),
            of: (kind.of)(device)?,
            done: 0,
            wrong: 0,
            skipped: 0,
            unread: Vec::new(),
            accounts: Vec::new(),
        })
    }

    /// Where the last run was ended; this beginning where there was none, or it was another scrubber, device, file system or array.
    ///
    /// # Errors
    /// If what is kept is damaged or cannot be read, or the folder is another user's.
    pub fn kept(self, device: &Device, states: &StateFolder) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let path = Self::path(device, states);
        let Some(folder) = Folder::own_if_there(states.path())? else { return Ok(self) };
        let text = match folder.read(path.file_name().unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self),
            other => other?,
        };
        let damaged = |error| io::Error::other(format!("{}: damaged: {error}; remove it", path.display()));
        let version = serde_json::from_slice::<Version>(&text).map_err(damaged)?.version;
        if version != VERSION && !OLDER.contains(&version) {
            return Ok(self);
        }
        let kept = Self { version: VERSION, ..serde_json::from_slice(&text).map_err(damaged)? };
        let names = |place: &Self| (place.scrubber.clone(), place.identity.clone(), place.of.clone());
        let same = names(&kept) == names(&self) && self.marks.other_than(&kept.marks, device.named).is_none();
        Ok(if same { kept } else { self })
    }

    /// The same scrub, this far.
    #[must_use]
    pub fn at(self, so_far: &SoFar) -> Self {
        let Standing { place, wrong_in_place, skipped, .. } = so_far.standing;
        let unread = so_far.unread.clone();
        let skipped = skipped.0.saturating_sub(Unread::bytes(&unread));
        let accounts = so_far.disks.iter().filter_map(|disk| disk.account.as_ref());
        let accounts = accounts.map(AccountSoFar::from).collect();
        Self { done: place.0, wrong: wrong_in_place, skipped, unread, accounts, ..self }
    }

    /// Keeps it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, device: &Device, states: &StateFolder) -> io::Result<()> {
        let path = Self::path(device, states);
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Folder::own(states.path())?.replace(name, &serde_json::to_vec(self)?, Mode::from_raw_mode(0o600), true)
    }

    /// Forgets it: the scrub is over.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget(device: &Device, states: &StateFolder) -> io::Result<()> {
        let path = Self::path(device, states);
        // Of what is not there a file system that is read-only says only that it is read-only.
        if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        std::fs::remove_file(path)
    }

    /// The file.
    fn path(device: &Device, states: &StateFolder) -> PathBuf {
        states.beside(device, "owner-scrub")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_for_the_same_scrubber_alone() {
        let folder = tempfile::tempdir().unwrap();
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(1 << 20).unwrap();
        let device = Device::open_any(image.path()).unwrap();
        let states = StateFolder::choose(Some(folder.path().into()));
        // Of whatever the image holds.
        let place = |scrubber: &str, of: &str| Place {
            version: VERSION,
            scrubber: scrubber.into(),
            identity: device.identity.clone(),
            marks: Marks { boot_id: "now".into(), ..device.marks.clone() },
            of: of.into(),
            done: 0,
            wrong: 0,
            skipped: 0,
            unread: Vec::new(),
            accounts: Vec::new(),
        };
        let [gate, steps, other] =
            [("md-gate", "a"), ("md-steps", "a"), ("md-gate", "b")].map(|(by, of)| place(by, of));
        let kept = Place {
            done: 4096,
            wrong: 8,
            skipped: 512,
            unread: vec![Unread { member: 1, byte: 4096, bytes: 8192 }],
            accounts: vec![AccountSoFar { balance_s: -0.25, ..AccountSoFar::default() }],
            ..gate.clone()
        };
        kept.keep(&device, &states).unwrap();
        assert_eq!(gate.clone().kept(&device, &states).unwrap(), kept);
        for of_another in [steps, other] {
            assert_eq!(of_another.clone().kept(&device, &states).unwrap(), of_another);
        }
        let elsewhere = Place { marks: Marks { start_bytes: 512, ..kept.marks.clone() }, ..kept.clone() };
        elsewhere.keep(&device, &states).unwrap();
        assert_eq!(gate.clone().kept(&device, &states).unwrap(), gate, "another partition was called so then");
        std::fs::write(Place::path(&device, &states), r#"{"version":1,"done":9}"#).unwrap();
        assert_eq!(gate.clone().kept(&device, &states).unwrap(), gate);
        std::fs::write(Place::path(&device, &states), "{").unwrap();
        assert!(gate.clone().kept(&device, &states).unwrap_err().to_string().contains("damaged"));
        Place::forget(&device, &states).unwrap();
        Place::forget(&device, &states).unwrap();
        assert_eq!(gate.kept(&device, &states).unwrap().done, 0);
    }
}
