//! How far an owner's scrub has come, kept for the next run.

use std::io;
use std::path::PathBuf;

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::{Kind, Standing};
use crate::device::Device;
use crate::files::{Folder, read_file};
use crate::scrub::StateFolder;

const VERSION: u32 = 1;

/// Where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Version of the format.
    version: u32,
    /// Which scrubber, of which device.
    scrubber: String,
    identity: String,
    /// The byte at which it goes on, by the scrubber's own measure.
    pub done: u64,
    /// What it has counted until there.
    pub wrong: u64,
}

impl Place {
    /// The beginning.
    pub fn beginning(kind: &Kind, device: &Device) -> Self {
        let (scrubber, identity) = (kind.name.into(), device.identity.clone());
        Self { version: VERSION, scrubber, identity, done: 0, wrong: 0 }
    }

    /// Where the last run was ended; the beginning where there was none, or it was another scrubber or device.
    ///
    /// # Errors
    /// If what is kept is damaged or cannot be read.
    pub fn kept(kind: &Kind, device: &Device, states: &StateFolder) -> io::Result<Self> {
        let (path, beginning) = (Self::path(device, states), Self::beginning(kind, device));
        let text = match read_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(beginning),
            other => other?,
        };
        let damaged = |error| io::Error::other(format!("{}: damaged: {error}; remove it", path.display()));
        let kept: Self = serde_json::from_slice(&text).map_err(damaged)?;
        let same = |other: &Self| {
            (other.version, &*other.scrubber, &*other.identity) == (VERSION, kind.name, &*device.identity)
        };
        Ok(if same(&kept) { kept } else { beginning })
    }

    /// The same scrub, this far.
    #[must_use]
    pub fn at(self, standing: &Standing) -> Self {
        Self { done: standing.place.0, wrong: standing.wrong_in_place, ..self }
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
    use super::super::SCRUBBERS;
    use super::*;

    #[test]
    fn a_place_is_kept_for_the_same_scrubber_alone() {
        let folder = tempfile::tempdir().unwrap();
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(1 << 20).unwrap();
        let device = Device::open_any(image.path()).unwrap();
        let states = StateFolder::choose(Some(folder.path().into()));
        let [gate, steps] = ["md-gate", "md-steps"].map(|name| SCRUBBERS.get(name).unwrap());
        let kept = Place { done: 4096, wrong: 8, ..Place::beginning(gate, &device) };
        kept.keep(&device, &states).unwrap();
        assert_eq!(Place::kept(gate, &device, &states).unwrap(), kept);
        assert_eq!(Place::kept(steps, &device, &states).unwrap(), Place::beginning(steps, &device));
        std::fs::write(Place::path(&device, &states), "{").unwrap();
        assert!(Place::kept(gate, &device, &states).unwrap_err().to_string().contains("damaged"));
        Place::forget(&device, &states).unwrap();
        Place::forget(&device, &states).unwrap();
        assert_eq!(Place::kept(gate, &device, &states).unwrap().done, 0);
    }
}
