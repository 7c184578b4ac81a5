//! A drive's read cache, switched off for a while: a setting of the drive until it loses power, nothing on the medium.

use std::path::PathBuf;

use idlewise::report::printable::one_line;
use serde::{Deserialize, Serialize};

use super::Device;
use super::sg::{Answer, Sg, ata_command};
use super::verify::Fault;
use crate::ledger::{Ledger, Undo};

const MODE_SENSE_10: u8 = 0x5a;
const MODE_SELECT_10: u8 = 0x55;
const CACHING_PAGE: u8 = 0x08;
/// Of the caching page's third byte (SBC-3, section 6.5.5).
const READ_CACHE_DISABLED: u8 = 0x01;
/// SET FEATURES and what it sets (ACS-3, section 7.45).
const SET_FEATURES: u8 = 0xef;
const READ_LOOK_AHEAD_OFF: u16 = 0x55;
const READ_LOOK_AHEAD_ON: u16 = 0xaa;

/// A read cache that is off until this is dropped.
pub struct ReadCache {
    disk: Sg,
    before: Setting,
    ledger: Ledger<Before>,
}

/// How a drive was: put back by whoever comes next, if this process is killed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Before {
    path: PathBuf,
    identity: String,
    setting: Setting,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Setting {
    /// Data of MODE SELECT.
    Scsi(Vec<u8>),
    /// Whether it looks ahead.
    Ata(bool),
}

impl Setting {
    fn put_back(&self, disk: &Sg) -> Result<(), Fault> {
        match self {
            Self::Scsi(before) => select(disk, &mut before.clone()),
            Self::Ata(true) => look_ahead(disk, READ_LOOK_AHEAD_ON),
            Self::Ata(false) => Ok(()),
        }
    }
}

impl Undo for Before {
    const END: &'static str = "cache";

    fn undo(&self) -> bool {
        // One that is gone has lost its power, and the setting with it.
        let device = Device::open(&self.path).ok().filter(|device| device.identity == self.identity);
        device.is_none_or(|device| Sg::open(&device).and_then(|disk| self.setting.put_back(&disk)).is_ok())
    }
}

impl ReadCache {
    /// Switches the read cache of a drive off.
    ///
    /// # Errors
    /// A fault if the drive has no such switch, it may not be used, or how it was cannot be written down.
    pub fn switch_off(device: &Device) -> Result<Self, Fault> {
        if let Some(reason) = device.stacked() {
            return Err(Fault::Refused(reason));
        }
        let disk = Sg::open(device)?;
        let is_ata = device.vendor().as_deref() == Some("ATA");
        let before = if is_ata { Setting::Ata(looks_ahead(&disk)?) } else { Setting::Scsi(caching_page(&disk)?) };
        let note = Before { path: device.path.clone(), identity: device.identity.clone(), setting: before.clone() };
        let noted = Ledger::begin().and_then(|mut ledger| ledger.add(note).map(|()| ledger));
        let ledger = noted.map_err(|error| Fault::Refused(format!("how it was cannot be written down: {error}")))?;
        // From here on it is put back, whatever happens.
        let cache = Self { disk, before, ledger };
        match &cache.before {
            Setting::Ata(_) => look_ahead(&cache.disk, READ_LOOK_AHEAD_OFF)?,
            Setting::Scsi(before) => {
                let mut off = before.clone();
                off[8 + 2] |= READ_CACHE_DISABLED;
                select(&cache.disk, &mut off)?;
            }
        }
        Ok(cache)
    }
}

impl Drop for ReadCache {
    fn drop(&mut self) {
        match self.before.put_back(&self.disk) {
            // What is noted twice is put back twice.
            Ok(()) => drop(self.ledger.clear()),
            Err(fault) => {
                let fault = one_line(&fault.to_string()).into_owned();
                eprintln!("idlewise: the drive's read cache stays off until it loses power: {fault}");
            }
        }
    }
}

/// The caching page as MODE SELECT takes it: without block descriptors, lengths cleared.
fn caching_page(disk: &Sg) -> Result<Vec<u8>, Fault> {
    const WITHOUT_BLOCK_DESCRIPTORS: u8 = 0x08;
    let mut data = [0; 64];
    let cdb = [MODE_SENSE_10, WITHOUT_BLOCK_DESCRIPTORS, CACHING_PAGE, 0, 0, 0, 0, 0, data.len() as u8, 0];
    good(disk.command(&cdb, &mut data)?)?;
    let page = 8 + usize::from(u16::from_be_bytes([data[6], data[7]]));
    let strange = || Fault::Refused("the drive has no caching page".into());
    let length = usize::from(*data.get(page + 1).ok_or_else(strange)?);
    let body = data.get(page..page + 2 + length).filter(|body| body[0] & 0x3f == CACHING_PAGE && length >= 10);
    let mut list = vec![0; 8];
    list.extend(body.ok_or_else(strange)?);
    // "Parameters saveable" has no meaning on the way back.
    list[8] &= 0x3f;
    Ok(list)
}

fn select(disk: &Sg, list: &mut [u8]) -> Result<(), Fault> {
    const PAGE_FORMAT: u8 = 0x10;
    good(disk.send(&[MODE_SELECT_10, PAGE_FORMAT, 0, 0, 0, 0, 0, 0, list.len() as u8, 0], list)?)
}

fn look_ahead(disk: &Sg, setting: u16) -> Result<(), Fault> {
    good(disk.command(&ata_command(SET_FEATURES, setting, 0, 0, false), &mut [])?)
}

/// Whether read look-ahead is on: bit 6 of word 85 of IDENTIFY DEVICE.
fn looks_ahead(disk: &Sg) -> Result<bool, Fault> {
    const IDENTIFY: u8 = 0xec;
    let mut data = [0; 512];
    good(disk.command(&ata_command(IDENTIFY, 0, 1, 0, true), &mut data)?)?;
    Ok(data[2 * 85] & 0x40 != 0)
}

fn good(answer: Answer) -> Result<(), Fault> {
    match answer {
        Answer::Good => Ok(()),
        Answer::Sense(_) => Err(Fault::Refused("the drive does not let it be switched".into())),
    }
}
