//! Setting up the kernel's side through configfs: a user-space backstore, shown to this machine
//! as a SCSI disk by the loopback transport.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use crate::disk::{BLOCK, wwn};

const CONFIG: &str = "/sys/kernel/config/target";

pub struct Target {
    name: String,
    backstore: PathBuf,
}

impl Target {
    /// Make and enable the backstore; its UIO device then exists.
    pub fn new(name: &str, bytes: u64) -> Result<Target> {
        let backstore = Path::new(CONFIG).join("core/user_0").join(name);
        fs::create_dir_all(&backstore)?;
        let control = format!("dev_config=fault-disk/{name},dev_size={bytes},hw_block_size={BLOCK}");
        put(&backstore.join("control"), &control)?;
        // A hanging command shall hang, not be failed by the target core after 30 seconds.
        put(&backstore.join("attrib/cmd_time_out"), "0")?;
        put(&backstore.join("enable"), "1")?;
        // Tell us when the kernel aborts a command. Known from Linux 5.9 on.
        put(&backstore.join("attrib/tmr_notification"), "1")?;
        Ok(Target { name: name.into(), backstore })
    }

    /// The UIO device by which commands arrive.
    pub fn uio(&self) -> Result<PathBuf> {
        let wanted = format!("tcm-user/0/{0}/fault-disk/{0}", self.name);
        for entry in fs::read_dir("/sys/class/uio")? {
            let entry = entry?;
            if fs::read_to_string(entry.path().join("name"))?.trim() == wanted {
                return Ok(Path::new("/dev").join(entry.file_name()));
            }
        }
        Err(Error::new(ErrorKind::NotFound, "no UIO device for the backstore"))
    }

    /// Plug the disk in. Returns once /dev/sdX is usable. Commands must be served meanwhile.
    pub fn attach(&self) -> Result<String> {
        let port = format!("naa.{:016x}", wwn(&self.name) ^ 1);
        let initiator = format!("naa.{:016x}", wwn(&self.name) ^ 2);
        let group = Path::new(CONFIG).join("loopback").join(port).join("tpgt_1");
        fs::create_dir_all(&group)?;
        put(&group.join("nexus"), &initiator)?;
        fs::create_dir(group.join("lun/lun_0"))?;
        symlink(&self.backstore, group.join("lun/lun_0/disk"))?;

        // "HOST:CHANNEL:TARGET"
        let address = fs::read_to_string(group.join("address"))?;
        let blocks = format!("/sys/class/scsi_device/{}:0/device/block", address.trim());
        for _ in 0..500 {
            if let Some(Ok(entry)) = fs::read_dir(&blocks).ok().and_then(|mut list| list.next()) {
                let device = format!("/dev/{}", entry.file_name().to_string_lossy());
                // Opening waits for the kernel's own look at the partition table.
                if fs::File::open(&device).is_ok() {
                    return Ok(device);
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(Error::new(ErrorKind::TimedOut, format!("no disk under {blocks}")))
    }
}

/// Write a configfs attribute, naming it in the error.
fn put(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))
}
