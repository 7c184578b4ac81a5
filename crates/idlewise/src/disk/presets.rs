//! Disk models that come with the library, from what is published of the drives.

use super::DiskModel;

/// A model that goes by a short name.
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The kind of drive, and where its times come from.
    pub about: &'static str,
    toml: &'static str,
}

/// All of them, the default first. Each file says how its times were derived.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "15k",
        about: "hard disk, 15,000 rpm: Hitachi Ultrastar 15K450, as measured in DSN 2012 (the default)",
        toml: include_str!("presets/15k.toml"),
    },
    Preset {
        name: "nearline",
        about: "hard disk, 7,200 rpm: Seagate Constellation ES.3, from its product manual",
        toml: include_str!("presets/nearline.toml"),
    },
    Preset {
        name: "sata-ssd",
        about: "solid-state drive, SATA: Samsung 870 EVO, from the rates that its maker states",
        toml: include_str!("presets/sata-ssd.toml"),
    },
    Preset {
        name: "nvme",
        about: "solid-state drive, NVMe: Samsung 980 PRO, from the rates that its maker states",
        toml: include_str!("presets/nvme.toml"),
    },
];

impl Preset {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The model.
    pub fn model(&self) -> DiskModel {
        DiskModel::from_toml(self.toml).expect("the disk models that come with the library are valid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Rate};

    #[test]
    fn every_preset_is_a_whole_model() {
        for preset in PRESETS {
            let model = Preset::named(preset.name).unwrap().model();
            assert!(preset.about.contains(&model.name), "{}", preset.name);
            assert!(model.read.is_some() && model.write.is_some(), "{}", preset.name);
        }
        assert_eq!(Preset::named("15k").unwrap().model(), DiskModel::ultrastar_15k450());
        assert!(Preset::named("floppy").is_none());
    }

    /// The published numbers that the files derive theirs from.
    #[test]
    fn small_requests_take_what_their_makers_state() {
        for (name, reads, writes) in [("sata-ssd", 13_000.0, 36_000.0), ("nvme", 22_000.0, 60_000.0)] {
            let model = Preset::named(name).unwrap().model();
            for (access, rate) in [(model.read.unwrap(), reads), (model.write.unwrap(), writes)] {
                let found = 1e9 / access.time(Bytes::from_kib(4)).0 as f64;
                assert!((found / rate - 1.0).abs() < 0.03, "{name}: {found} for {rate}");
            }
            let large = model.read.unwrap().time(Bytes(4 << 20));
            assert!(model.verify_time(Bytes(4 << 20)).0.abs_diff(large.0) < large.0 / 100, "{name}");
        }
        let nearline = Preset::named("nearline").unwrap().model();
        let rotation = 60.0 / 7_200.0;
        for size in [Bytes::from_kib(64), Bytes(4 << 20)] {
            let transfer = Rate(175_000_000).time_for(size).as_secs_f64();
            assert!((nearline.verify_time(size).as_secs_f64() - rotation - transfer).abs() < 5e-5, "{size}");
        }
    }
}
