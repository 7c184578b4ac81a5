//! What the operator wishes for each disk: /etc/idlewise/idlewise.toml (docs/service.md). Without that file each disk of the machine is
//! verified every 14 days.

mod notify;
mod pattern;

pub use notify::{Notify, SENDMAIL, Webhook};

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use idlewise::Nanos;
use idlewise::order::Name;
use idlewise::schedule::Windows;
use idlewise_linux::files::leads_to;
use serde::Deserialize;

use pattern::matches;

/// Bytes of a configuration, which has a section for each kind of disk: parsing takes a thousand times as many.
const LARGEST: u64 = 256 << 10;

/// What is wished for a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Whether it is left alone.
    pub ignore: bool,
    /// Each pass is over so long after the one before.
    pub verify_every: Nanos,
    /// The mean slowdown that others may suffer; that of the kind of disk where none is given.
    pub mean_slowdown: Option<Nanos>,
    /// The largest.
    pub max_slowdown: Option<Nanos>,
    /// What is done where a pass will not be over in time.
    pub when_behind: WhenBehind,
    /// The mean slowdown that may be spent then.
    pub spend_up_to: Option<Nanos>,
    /// When disks are read.
    pub windows: Windows,
    /// In which order.
    pub order: String,
    /// What is done while the machine runs on its battery.
    pub on_battery: OnBattery,
    /// What is done while it sleeps.
    pub sleeping: Sleeping,
}

/// What is done where a pass will not be over in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenBehind {
    /// It is told.
    #[default]
    Say,
    /// The mean slowdown is raised; and where the deadline has passed, the windows are open.
    Spend,
}

/// What is done while the machine runs on its battery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBattery {
    /// Nothing is read.
    #[default]
    Pause,
    /// As else.
    Run,
}

/// What is done with a disk that has stopped spinning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sleeping {
    /// It is left asleep as long as its pass can still end in time.
    #[default]
    Skip,
    /// As else.
    Wake,
}

/// What is wished, disk by disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    defaults: Section,
    disks: Vec<Section>,
    web: Web,
    /// Who is told.
    pub notify: Notify,
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
    /// Something in it is not known or not possible; with the line.
    #[error("{path}: {problem}")]
    Wrong {
        /// The file.
        path: String,
        /// What, where, and what would be right.
        problem: String,
    },
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    defaults: Section,
    disk: Vec<Section>,
    web: Web,
    notify: Notify,
}

/// `[web]`: the page.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Web {
    hosts: Vec<String>,
}

/// `[defaults]` or a `[[disk]]`: what it does not say is as before.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Section {
    r#match: Option<String>,
    /// Where that leads, if it is the path of something that is there.
    #[serde(skip)]
    leads_to: Option<PathBuf>,
    ignore: Option<bool>,
    #[serde(deserialize_with = "a_day_at_least")]
    verify_every: Option<Nanos>,
    #[serde(deserialize_with = "above_zero")]
    mean_slowdown: Option<Nanos>,
    #[serde(deserialize_with = "above_zero")]
    max_slowdown: Option<Nanos>,
    when_behind: Option<WhenBehind>,
    #[serde(deserialize_with = "above_zero")]
    spend_up_to: Option<Nanos>,
    #[serde(deserialize_with = "windows")]
    windows: Option<Windows>,
    #[serde(deserialize_with = "order")]
    order: Option<String>,
    on_battery: Option<OnBattery>,
    sleeping: Option<Sleeping>,
}

impl Section {
    /// The whole path that it names, if it is no pattern.
    fn path(&self) -> Option<&str> {
        self.r#match.as_deref().filter(|path| path.starts_with('/') && !path.contains(['*', '?']))
    }
}

/// Where it is and what is wrong, in a line.
fn in_a_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = before.map(|before| {
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {}, column {column}: ", before.matches('\n').count() + 1)
    });
    place.unwrap_or_default() + &error.message().trim_end().replace('\n', "; ")
}

fn above_zero<'de, D: serde::Deserializer<'de>>(text: D) -> Result<Option<Nanos>, D::Error> {
    let time = Nanos::deserialize(text)?;
    if time == Nanos::ZERO { Err(serde::de::Error::custom("it must be above 0")) } else { Ok(Some(time)) }
}

/// A pass cannot be planned by the hours of the week if it is to begin many times in one.
fn a_day_at_least<'de, D: serde::Deserializer<'de>>(text: D) -> Result<Option<Nanos>, D::Error> {
    const SHORTEST: Nanos = Nanos::from_secs(24 * 3600);
    let time = Nanos::deserialize(text)?;
    if time < SHORTEST { Err(serde::de::Error::custom("it must be 1d or more")) } else { Ok(Some(time)) }
}

fn windows<'de, D: serde::Deserializer<'de>>(texts: D) -> Result<Option<Windows>, D::Error> {
    let texts = Vec::<String>::deserialize(texts)?;
    Windows::new(&texts).map(Some).map_err(serde::de::Error::custom)
}

fn order<'de, D: serde::Deserializer<'de>>(text: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(text)?;
    let known = Name::known(&text).is_some();
    if known { Ok(Some(text)) } else { Err(serde::de::Error::custom(format!("no order is called '{text}'"))) }
}

impl Config {
    /// Reads the file; without one, nothing special is wished.
    ///
    /// # Errors
    /// [`ConfigError`] if it is there and cannot be used.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = || path.display().to_string();
        let mut text = String::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(ConfigError::Io(name(), error)),
            Ok(length) if length as u64 > LARGEST => {
                Err(ConfigError::Wrong { path: name(), problem: "is larger than 256 KiB".into() })
            }
            Ok(_) => Self::parse(&text).map_err(|problem| ConfigError::Wrong { path: name(), problem }),
        }
    }

    /// Of a text in TOML.
    ///
    /// # Errors
    /// What is wrong, with the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        idlewise::small::check(text)?;
        let File { defaults, disk, web, notify } = toml::from_str(text).map_err(|error| in_a_line(text, &error))?;
        if defaults.r#match.is_some() || defaults.ignore.is_some() {
            return Err("[defaults] has no 'match' and no 'ignore': they belong into a [[disk]]".into());
        }
        for (disk, number) in disk.iter().zip(1..) {
            if disk.r#match.is_none() {
                return Err(format!(
                    "[[disk]] number {number} has no 'match': say which disks it is of, such as match = \"/dev/sda\""
                ));
            }
        }
        notify.check()?;
        let mut config = Self { defaults, disks: disk, web, notify };
        config.follow_links();
        for section in &config.disks {
            let of = section.r#match.as_deref().unwrap_or_default();
            config.with(Some(section)).check().map_err(|problem| format!("the disks of '{of}': {problem}"))?;
        }
        config.with(None).check()?;
        Ok(config)
    }

    /// What is wished for a disk: the first section that matches its identity or path counts, then the defaults. And which one that was.
    pub fn of(&self, identity: &str, path: &Path) -> (Wish, Option<&str>) {
        let (here, path) = (path, path.to_string_lossy());
        let fits = |section: &&Section| {
            let pattern = section.r#match.as_deref().unwrap_or_default();
            matches(pattern.as_bytes(), identity.as_bytes())
                || matches(pattern.as_bytes(), path.as_bytes())
                || section.leads_to.as_deref() == Some(here)
        };
        let section = self.disks.iter().find(fits);
        (self.with(section), section.and_then(|section| section.r#match.as_deref()))
    }

    /// Looks where the paths lead that are named: a link, such as one of /dev/disk/by-id, means what it leads to now.
    pub fn follow_links(&mut self) {
        for section in &mut self.disks {
            section.leads_to = section.path().and_then(|path| leads_to(Path::new(path)));
        }
    }

    /// Sections that name a device by its whole path where there is none, in words.
    pub fn nowhere(&self) -> Vec<String> {
        let named = self.disks.iter().filter(|section| section.ignore != Some(true) && section.leads_to.is_none());
        named
            .filter_map(Section::path)
            .map(|path| format!("{path}: a [[disk]] names it, and it is not there"))
            .collect()
    }

    /// Names under which browsers may ask for the page, beside those of the machine itself.
    pub fn hosts(&self) -> &[String] {
        &self.web.hosts
    }

    /// Where devices are that are named by their whole path: they are looked after though they may be no disks, such as an array.
    pub fn named(&self) -> impl Iterator<Item = &Path> {
        self.disks
            .iter()
            .filter(|section| section.ignore != Some(true))
            .filter_map(|section| section.leads_to.as_deref())
    }

    fn with(&self, section: Option<&Section>) -> Wish {
        const DEFAULT: Nanos = Nanos::from_secs(14 * 24 * 3600);
        /// Copies the field of the disk's own section, or that of the defaults.
        fn first<T: Clone>(
            section: Option<&Section>,
            defaults: &Section,
            field: fn(&Section) -> &Option<T>,
        ) -> Option<T> {
            section.and_then(|section| field(section).clone()).or_else(|| field(defaults).clone())
        }
        let defaults = &self.defaults;
        Wish {
            ignore: section.and_then(|section| section.ignore).unwrap_or(false),
            verify_every: first(section, defaults, |of| &of.verify_every).unwrap_or(DEFAULT),
            mean_slowdown: first(section, defaults, |of| &of.mean_slowdown),
            max_slowdown: first(section, defaults, |of| &of.max_slowdown),
            when_behind: first(section, defaults, |of| &of.when_behind).unwrap_or_default(),
            spend_up_to: first(section, defaults, |of| &of.spend_up_to),
            windows: first(section, defaults, |of| &of.windows).unwrap_or_default(),
            order: first(section, defaults, |of| &of.order).unwrap_or_else(|| "staggered".into()),
            on_battery: first(section, defaults, |of| &of.on_battery).unwrap_or_default(),
            sleeping: first(section, defaults, |of| &of.sleeping).unwrap_or_default(),
        }
    }
}

impl Wish {
    fn check(&self) -> Result<(), String> {
        let Self { mean_slowdown: mean, max_slowdown: max, spend_up_to: spend, .. } = *self;
        let above =
            |above: Option<Nanos>, below: Option<Nanos>| above.zip(below).is_some_and(|(above, below)| above > below);
        match () {
            () if above(mean, max) => Err("mean_slowdown is above max_slowdown".into()),
            () if above(mean, spend) => Err("mean_slowdown is above spend_up_to".into()),
            () if above(spend, max) => Err("spend_up_to is above max_slowdown".into()),
            () if self.when_behind == WhenBehind::Spend && spend.is_none() => {
                Err("when_behind = \"spend\" needs spend_up_to, the mean slowdown that may be spent, such as \"3ms\""
                    .into())
            }
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_section_that_matches_counts() {
        let config = Config::parse(
            "[defaults]\nverify_every = \"30d\"\nmean_slowdown = \"2ms\"\nwindows = [\"Sat,Sun\"]\n\
             [[disk]]\nmatch = \"wwn-0x5*\"\nignore = true\n\
             [[disk]]\nmatch = \"/dev/nvme?n1\"\nmean_slowdown = \"200us\"\nwindows = []\nwhen_behind = \"spend\"\nspend_up_to = \"1ms\"\n\
             [[disk]]\nmatch = \"*\"\norder = \"sequential\"\non_battery = \"run\"\n",
        )
        .unwrap();
        let of = |identity: &str, path: &str| config.of(identity, Path::new(path));
        let (wish, by) = of("wwn-0x5000c500", "/dev/sda");
        assert!(wish.ignore && by == Some("wwn-0x5*"));
        let (wish, _) = of("nvme-x", "/dev/nvme0n1");
        assert_eq!(
            (wish.mean_slowdown, wish.windows.is_always(), wish.when_behind),
            (Some(Nanos(200_000)), true, WhenBehind::Spend)
        );
        assert_eq!((wish.verify_every, &*wish.order), (Nanos::from_secs(30 * 86_400), "staggered"));
        let (wish, _) = of("x", "/dev/sdb");
        assert_eq!((&*wish.order, wish.on_battery, wish.windows.is_open(0)), ("sequential", OnBattery::Run, false));
        assert_eq!(config.named().count(), 0);
        let nothing = Config::default();
        let (wish, by) = nothing.of("x", Path::new("/dev/sda"));
        assert_eq!((wish.verify_every, by), (Nanos::from_secs(14 * 86_400), None));
    }

    #[test]
    fn a_link_means_what_it_leads_to_now() {
        let folder = tempfile::tempdir().unwrap();
        let [link, one, two] = ["link", "one", "two"].map(|name| folder.path().canonicalize().unwrap().join(name));
        [&one, &two].iter().for_each(|file| std::fs::write(file, "").unwrap());
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let mut config = Config::parse(&format!("[[disk]]\nmatch = \"{}\"\n", link.display())).unwrap();
        let is_meant = |config: &Config, path: &Path| config.of("x", path).1.is_some();
        assert!(is_meant(&config, &one) && !is_meant(&config, &two) && config.named().eq([&one]));
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&two, &link).unwrap();
        config.follow_links();
        assert!(is_meant(&config, &two) && !is_meant(&config, &one) && config.named().eq([&two]));
        std::fs::remove_file(&link).unwrap();
        config.follow_links();
        assert!(config.named().count() == 0 && config.nowhere()[0].contains("and it is not there"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, problem) in [
            ("[defaults]\nmean_slowdwn = \"2ms\"\n", "line 2"),
            ("[defaults]\nmean_slowdown = \"2\"\n", "line 2"),
            ("[defaults]\nmean_slowdown = \"0\"\n", "it must be above 0"),
            ("[defaults]\nverify_every = \"2h\"\n", "it must be 1d or more"),
            ("[defaults]\nwindows = [\"Mox\"]\n", "'mox' is no day of the week"),
            ("[defaults]\norder = \"x\"\n", "no order is called 'x'"),
            ("[defaults]\nignore = true\n", "[defaults] has no 'match'"),
            ("[[disk]]\nignore = true\n", "number 1 has no 'match'"),
            ("[defaults]\nwhen_behind = \"spend\"\n", "needs spend_up_to"),
            ("[defaults]\nmean_slowdown = \"2ms\"\nmax_slowdown = \"1ms\"\n", "mean_slowdown is above max_slowdown"),
            (
                "[defaults]\nmean_slowdown = \"5ms\"\n[[disk]]\nmatch = \"a\"\nspend_up_to = \"3ms\"\n",
                "the disks of 'a': mean_slowdown is above",
            ),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    /// Those of a plan are refused in the same way.
    #[test]
    fn tables_without_end_are_refused() {
        let text = "a=[[".to_string() + &"[a]\na={".repeat(30_000);
        assert_eq!(Config::parse(&text).unwrap_err(), "more than 80 tables and lists in each other");
    }
}
