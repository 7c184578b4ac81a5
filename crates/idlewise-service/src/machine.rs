//! What the machine tells: the time, its disks, and whether it runs on its battery.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use idlewise::Bytes;
use idlewise_linux::device::{Device, Marks, Named};
use idlewise_linux::scrub::is_claimed;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::Config;

/// A moment, as the machine's clock shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since 1970.
    pub unix_s: f64,
    /// The minute of the week where the machine is, from Monday 00:00 on.
    pub minute: u32,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::of(since.as_secs_f64(), &TimeZone::system())
    }

    /// In a time zone.
    pub fn of(unix_s: f64, zone: &TimeZone) -> Self {
        // What is beyond the calendar is a Monday like others.
        let local = Timestamp::from_second(unix_s as i64).map(|time| time.to_zoned(zone.clone()));
        let minute = local.map_or(0, |local| {
            let day = u32::from(local.weekday().to_monday_zero_offset().unsigned_abs());
            (day * 24 + u32::from(local.hour().unsigned_abs())) * 60 + u32::from(local.minute().unsigned_abs())
        });
        Self { unix_s, minute }
    }
}

/// A disk that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    /// Where.
    pub path: PathBuf,
    /// Which one.
    pub identity: String,
    /// What tells it from others that are called so.
    pub marks: Marks,
    /// Whether there may be any.
    pub named: Named,
    /// Its size.
    pub size: Bytes,
    /// The mean slowdown where none is wished, in seconds.
    pub usual_mean_s: f64,
    /// The largest.
    pub usual_max_s: f64,
}

/// The disks of the machine, and the devices that are named, each open; and why one cannot be looked after.
pub fn present(config: &Config) -> Vec<Result<(Present, Device), String>> {
    let mut seen = BTreeMap::new();
    let mut once = |found: (Present, Device)| match seen.insert(found.0.identity.clone(), found.0.path.clone()) {
        Some(first) => Err(twin(&found.0, &first)),
        None => Ok(found),
    };
    paths(config).iter().map(|path| of(path).and_then(&mut once)).collect()
}

/// Where they are, each once, whatever links were named.
pub fn paths(config: &Config) -> Vec<PathBuf> {
    let mut paths = Device::all();
    paths.extend(config.named().map(Path::to_path_buf));
    paths.sort();
    paths.dedup();
    paths
}

/// Why a disk is not looked after that has the identity of another.
pub fn twin(present: &Present, first: &Path) -> String {
    let Present { path, identity, .. } = present;
    let (path, first) = (path.display(), first.display());
    format!(
        "{path}: cannot be told from {first}: both say that they are {identity}, as two paths to one disk do; only the first is looked after"
    )
}

/// What is at a path.
///
/// # Errors
/// Why that cannot be looked after.
pub fn of(path: &Path) -> Result<(Present, Device), String> {
    let device = Device::open(path).map_err(|error| error.to_string())?;
    if let Some(why) = device.hidden_by_a_cache() {
        return Err(why);
    }
    let usual = device.kind().goal();
    let (usual_mean_s, usual_max_s) = (usual.mean_slowdown.as_secs_f64(), usual.max_slowdown.as_secs_f64());
    let (identity, size, marks) = (device.identity.clone(), device.size, device.marks.clone());
    Ok((Present { path: path.into(), identity, marks, named: device.named, size, usual_mean_s, usual_max_s }, device))
}

/// What a device shares with others, of which one is read at a time.
#[derive(Default)]
pub struct Shared {
    /// Its disks and those below, its drive, arrays and pools, in words.
    pub names: Vec<String>,
    /// The numbers of those disks.
    pub disks: BTreeSet<(u32, u32)>,
}

/// What a device shares. To find pools, their labels are read from it, so nothing is asked of one that sleeps where that is not to be woken up:
/// nothing is told then.
pub fn shares(path: &Path, wakes: bool) -> Option<Shared> {
    let Ok(device) = Device::open(path) else { return Some(Shared::default()) };
    if !wakes && device.is_asleep() {
        return None;
    }
    let disks = device.disks();
    // While another reads one of them, the labels of pools are not read: for that scrub they would be the foreground.
    let is_read = disks.iter().copied().any(is_claimed);
    let mut names = if is_read { Vec::new() } else { device.arrays() };
    names.extend(device.shared_drive());
    names.extend(disks.iter().map(|(major, minor)| format!("disk {major}:{minor}")));
    Some(Shared { names, disks })
}

/// Whether the machine runs on its battery: it has one of its own that is being discharged, and nothing feeds it.
pub fn on_battery(folder: &Path) -> bool {
    let supplies = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let read = |path: PathBuf| fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default();
    let (batteries, others): (Vec<_>, Vec<_>) = supplies.partition(|supply| read(supply.join("type")) == "Battery");
    // Such as that of a mouse.
    let is_own = |supply: &&PathBuf| read(supply.join("scope")) != "Device" && read(supply.join("present")) != "0";
    let is_discharged = batteries.iter().filter(is_own).any(|supply| read(supply.join("status")) == "Discharging");
    let feeds = |supply: &PathBuf| {
        ["Mains", "USB", "Wireless"].contains(&&*read(supply.join("type"))) && read(supply.join("online")) == "1"
    };
    is_discharged && !others.iter().any(feeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_the_week_is_the_clocks_on_the_wall() {
        // 2026-11-25 was a Wednesday; 14:50 UTC.
        let at = |unix_s, zone: &TimeZone| Moment::of(unix_s, zone).minute;
        let wednesday = 1_795_618_200.0;
        assert_eq!(at(wednesday, &TimeZone::UTC), (2 * 24 + 14) * 60 + 50);
        assert_eq!(at(wednesday, &TimeZone::fixed(jiff::tz::offset(10))), (3 * 24) * 60 + 50);
        // In autumn the hour from 2 to 3 comes twice in Berlin.
        if let Ok(berlin) = TimeZone::get("Europe/Berlin") {
            let first = at(1_792_888_200.0, &berlin);
            assert_eq!(
                (first, at(1_792_888_200.0 + 3600.0, &berlin)),
                ((6 * 24 + 2) * 60 + 30, (6 * 24 + 2) * 60 + 30)
            );
        }
        assert_eq!(at(1e300, &TimeZone::UTC), 0);
    }

    #[test]
    fn a_battery_is_used_where_the_mains_are_off() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!on_battery(folder.path()) && !on_battery(Path::new("/nowhere")));
        let supply = |name: &str, files: &[(&str, &str)]| {
            let folder = folder.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(file, text)| fs::write(folder.join(file), format!("{text}\n")).unwrap());
        };
        // A USB-C port that feeds nobody, and the battery of a mouse.
        supply("ucsi", &[("type", "USB"), ("online", "0")]);
        supply("mouse", &[("type", "Battery"), ("scope", "Device"), ("status", "Discharging")]);
        assert!(!on_battery(folder.path()));
        supply("BAT0", &[("type", "Battery"), ("status", "Full")]);
        supply("AC", &[("type", "Mains"), ("online", "1")]);
        assert!(!on_battery(folder.path()));
        supply("AC", &[("online", "0")]);
        supply("BAT0", &[("status", "Discharging")]);
        assert!(on_battery(folder.path()));
        supply("ucsi", &[("online", "1")]);
        assert!(!on_battery(folder.path()));
    }
}
