//! Who else checks a disk: md's own check of an array on it, ZFS's of a pool, and the disk's self-test.

use super::sg::{Answer, Sg, ata_command};
use super::verify::nvme;
use super::{Device, zpool};

/// Who checks the disk that `device` lies on, at the moment; `None` also where it may not be asked.
pub fn who(device: &Device) -> Option<String> {
    device
        .place
        .arrays()
        .into_iter()
        .find_map(|array| {
            let action = array.action.filter(|action| action != "idle" && action != "frozen")?;
            Some(format!("{} is at work on it ({action})", array.name))
        })
        .or_else(|| {
            device.pools().iter().find_map(|(_, pool)| {
                Some(format!("ZFS is at work on its pool {} ({})", pool.name, zpool::at_work(&pool.name)?))
            })
        })
        .or_else(|| self_test(device).then(|| "it is running a self-test of its own".into()))
}

/// Whether the disk runs a self-test.
fn self_test(device: &Device) -> bool {
    if device.stacked().is_some() {
        return false;
    }
    if device.namespace().is_some() {
        return nvme::self_test(device).is_ok_and(|state| state != 0);
    }
    let Ok(disk) = Sg::open(device) else { return false };
    if device.vendor().as_deref() == Some("ATA") {
        return ata_self_test(&disk);
    }
    scsi_self_test(&disk)
}

/// SMART READ DATA: the upper half of byte 363 is 15 while a self-test runs (ATA8-ACS, section 7.53.6).
fn ata_self_test(disk: &Sg) -> bool {
    const SMART: u8 = 0xb0;
    const READ_DATA: u16 = 0xd0;
    /// SMART's key, in the middle and upper bytes of the address.
    const KEY: u64 = 0xc2_4f00;
    const STATUS: usize = 363;
    let mut data = [0; 512];
    let read = disk.command(&ata_command(SMART, READ_DATA, 1, KEY, true), &mut data);
    read == Ok(Answer::Good) && data[STATUS] >> 4 == 0xf
}

/// LOG SENSE, self-test results page: the lower half of the newest result is 15 while it runs (SPC-4, section 7.3.18).
fn scsi_self_test(disk: &Sg) -> bool {
    const LOG_SENSE: u8 = 0x4d;
    const SELF_TEST_RESULTS: u8 = 0x40 | 0x10;
    const NEWEST: usize = 8;
    let mut data = [0; 64];
    let cdb = [LOG_SENSE, 0, SELF_TEST_RESULTS, 0, 0, 0, 0, 0, data.len() as u8, 0];
    let read = disk.command(&cdb, &mut data);
    read == Ok(Answer::Good) && data[0] & 0x3f == 0x10 && data[NEWEST] & 0xf == 0xf
}
