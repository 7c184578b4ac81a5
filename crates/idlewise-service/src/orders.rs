//! What is ordered, and what is shown of everything.

use std::collections::BTreeMap;
use std::path::Path;

use idlewise::report::printable::one_line;
use idlewise_linux::scrub::BadBlocks;

use crate::WhenBehind;
use crate::control::Order;
use crate::daemon::{Daemon, VERSION};
use crate::disk::Disk;
use crate::machine::Moment;
use crate::overview::{MISSING, Overview, Seen, word};
use crate::record::{Known, Paused};
use crate::told::{Level, say};
use crate::web::page;

/// No reason is longer, in characters.
const LONGEST: usize = 300;
/// A disk that was not seen for so long is missing.
const MISSING_S: f64 = 60.0;
/// The page shows what is verified of a disk in so many parts.
const PARTS: u64 = 250;

/// How many blocks there are of each kind.
fn by_kind(bad: &[BadBlocks]) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    bad.iter().for_each(|run| *kinds.entry(run.kind.clone()).or_default() += run.blocks);
    kinds
}

/// What somebody wrote, as others may see it.
fn shown(text: &str) -> String {
    one_line(text).chars().take(LONGEST).collect()
}

impl Daemon {
    /// Until when a disk is paused, in seconds since 1970.
    pub(crate) fn paused(&self, identity: &str) -> Option<f64> {
        let own = self.record.disks.get(identity).and_then(|known| known.paused.as_ref());
        [own, self.record.paused.as_ref()].into_iter().flatten().map(Paused::until).reduce(f64::max)
    }

    /// Forgets pauses that are over.
    pub(crate) fn end_pauses(&mut self, now: f64) {
        let own = self.record.disks.values_mut().map(|known| &mut known.paused);
        let over =
            own.chain([&mut self.record.paused]).filter(|paused| paused.as_ref().is_some_and(|is| is.is_over(now)));
        let mut any = false;
        over.for_each(|paused| {
            *paused = None;
            any = true;
        });
        if any {
            self.save();
        }
    }

    /// Does what is ordered, of one disk or of all; what was done, or why nothing was.
    pub(crate) fn obey(&mut self, order: &Order, disk: Option<&str>) -> Result<String, String> {
        if *order == Order::Reload {
            return self.reload().map(|()| "the configuration was read again".into());
        }
        let now = Moment::now().unix_s;
        let Some(name) = disk else {
            let done = match order {
                Order::Pause(until) => {
                    let (until_unix_s, why) = (until.until_unix_s, shown(&until.why));
                    let paused = Paused { since_unix_s: now, until_unix_s, why };
                    let done = format!("all disks are {}", page::in_words(&paused));
                    self.record.paused = Some(paused);
                    done
                }
                Order::Resume => {
                    self.record.paused = None;
                    let own = self.record.disks.values_mut().filter_map(|known| known.paused.take()).count();
                    let too = if own > 0 {
                        format!("; pauses of single disks that ended as well: {own}")
                    } else {
                        String::new()
                    };
                    format!("all disks go on{too}")
                }
                _ => return Err("say of which disk".into()),
            };
            return Ok(self.kept(done));
        };
        let is_meant = |(identity, disk): &(&String, &Disk)| {
            let path = disk.present.path.display().to_string();
            [identity.as_str(), &path, path.strip_prefix("/dev/").unwrap_or(&path)].contains(&name)
        };
        let is_forgotten = matches!(order, Order::Acknowledge) && !self.disks.iter().any(|one| is_meant(&one));
        if is_forgotten && self.forget(name) {
            return Ok(self.kept(format!("{name}: is not there, and is forgotten")));
        }
        let found = self.disks.iter().find(is_meant);
        if let (Some((identity, _)), Some(gone)) = (found, self.gone(name).filter(|_| *order == Order::Acknowledge)) {
            return Err(format!("two disks are called '{name}': {identity}, and {gone}, which is missing; say which"));
        }
        let (identity, disk) = found.ok_or_else(|| format!("no disk here is called '{name}'"))?;
        let (identity, bad, path) = (identity.clone(), disk.bad(), disk.present.path.display().to_string());
        let (is_paused, is_known) = (self.paused(&identity).is_some(), disk.pass.is_some());
        if *order == Order::Start && !is_paused {
            self.disks.get_mut(&identity).into_iter().for_each(Disk::try_at_once);
        }
        let known = self.record.disks.entry(identity).or_default();
        // Of a disk that may be another one since the machine was started, those that are shown.
        let bad = if is_known { bad } else { known.bad.clone() };
        let done = match order {
            Order::Pause(until) => {
                let (until_unix_s, why) = (until.until_unix_s, shown(&until.why));
                let paused = known.paused.insert(Paused { since_unix_s: now, until_unix_s, why });
                format!("{path}: is {}", page::in_words(paused))
            }
            Order::Resume if self.record.paused.is_some() => {
                return Err("all disks are paused: resume all of them".into());
            }
            Order::Resume => {
                known.paused = None;
                format!("{path}: goes on")
            }
            Order::Start if is_paused => return Err(format!("{path}: is paused; resume it first")),
            Order::Start => {
                known.wanted_unix_s = Some(now);
                format!("{path}: its next pass begins now, or goes on")
            }
            Order::Acknowledge => {
                let count: u64 = bad.iter().map(|run| run.blocks).sum();
                known.acknowledged = bad;
                format!("{path}: {count} bad blocks are acknowledged")
            }
            Order::Reload => return Err("the configuration is of all disks".into()),
        };
        Ok(self.kept(done))
    }

    /// Keeps what was done, and what to say of it.
    fn kept(&mut self, done: String) -> String {
        say(Level::Notice, &done);
        match self.save() {
            None => done,
            Some(error) => format!("{done}; a restart of the service would forget it, as it cannot be saved: {error}"),
        }
    }

    /// Forgets a disk that is not there; whether it was known.
    fn forget(&mut self, name: &str) -> bool {
        let found = self.gone(name).cloned();
        found.is_some_and(|identity| self.record.disks.remove(&identity).is_some())
    }

    /// The disk of this name that is not there.
    fn gone(&self, name: &str) -> Option<&String> {
        let is_meant = |(identity, known): &(&String, &Known)| {
            let names = [identity.as_str(), &known.device, known.device.strip_prefix("/dev/").unwrap_or_default()];
            !name.is_empty() && names.contains(&name) && !self.disks.contains_key(*identity)
        };
        self.record.disks.iter().find(is_meant).map(|(identity, _)| identity)
    }

    /// How everything stands.
    pub(crate) fn overview(&self, now: f64) -> Overview {
        let mut disks: Vec<_> = self.disks.iter().map(|(identity, disk)| self.seen(identity, disk, now)).collect();
        disks.extend(self.record.disks.iter().filter_map(|(identity, known)| self.missing(identity, known, now)));
        disks.sort_by(|a, b| a.device.cmp(&b.device));
        Overview {
            version: VERSION,
            unix_s: now,
            paused: self.record.paused.clone(),
            config: self.loaded.clone(),
            disks,
            refused: self.refused.clone(),
            untold: self.untold.clone(),
        }
    }

    /// A disk that was there.
    fn missing(&self, identity: &str, known: &Known, now: f64) -> Option<Seen> {
        let wish = self.config.of(identity, Path::new(&known.device)).0;
        // One that is looked for anew, such as after a restart of its bus, is not missing at once.
        let is_asked = self.finder.is_asking(Path::new(&known.device));
        let is_away = !self.disks.contains_key(identity) && !is_asked;
        let is_missing = is_away && !wish.ignore && now - known.seen_unix_s > MISSING_S;
        (is_missing && !known.device.is_empty()).then(|| {
            let last = known.passes.last().map(|done| done.completed_unix_s);
            let due_unix_s = last.map_or(known.since_unix_s, |last| last as f64) + wish.verify_every.as_secs_f64();
            Seen {
                device: known.device.clone(),
                identity: identity.into(),
                state: MISSING,
                why: format!("is not there any more since {}", page::date(known.seen_unix_s)),
                completed_unix_s: last,
                due_unix_s,
                standing: if now > due_unix_s { "overdue" } else { "unknown" },
                passes: known.passes.clone(),
                bad_blocks: by_kind(&known.bad),
                acknowledged_blocks: known.acknowledged_of(&known.bad),
                errors: known.bad.clone(),
                ..Seen::default()
            }
        })
    }

    fn seen(&self, identity: &str, disk: &Disk, now: f64) -> Seen {
        let none = Known::default();
        let known = self.record.disks.get(identity).unwrap_or(&none);
        let wish = self.wish(identity, disk);
        let pass = disk.pass.as_ref();
        let (state, why) = disk.state(now);
        let paused = known.paused.as_ref().or(self.record.paused.as_ref()).filter(|_| state == "paused");
        let why = paused.map_or(why, page::in_words);
        let outlook = disk.last.as_ref().map(|(_, outlook)| *outlook);
        let ends = outlook.and_then(|outlook| outlook.rest).filter(|rest| rest.expected_s.is_finite());
        let goes_on = pass.is_some_and(|pass| !pass.over()) || disk.worker.is_some();
        // Of a disk that may be another one since the machine was started, what was known before.
        let errors = if pass.is_some() { disk.bad() } else { known.bad.clone() };
        let usual = wish.mean_slowdown.map_or(disk.present.usual_mean_s, |mean| mean.as_secs_f64());
        Seen {
            device: disk.present.path.display().to_string(),
            identity: identity.into(),
            device_bytes: disk.present.size.0,
            state,
            why,
            verified_bytes: pass.map_or(0, |pass| pass.verified().0),
            started_unix_s: pass.map(|pass| pass.started_unix_s),
            completed_unix_s: pass.and_then(|pass| pass.completed_unix_s),
            due_unix_s: outlook.map_or(0.0, |outlook| outlook.deadline),
            begins_unix_s: outlook.map_or(0.0, |outlook| outlook.begins),
            expected_end_unix_s: ends
                .filter(|_| goes_on)
                .map(|rest| [rest.expected_s, rest.early_s, rest.late_s].map(|seconds| now + seconds)),
            standing: outlook.map_or("unknown", |outlook| word(outlook.standing)),
            goal_mean_slowdown_s: disk.worker.as_ref().map_or(usual, |worker| worker.mean_s),
            most_mean_slowdown_s: match wish.when_behind {
                WhenBehind::Spend => wish.spend_up_to.map_or(0.0, |most| most.as_secs_f64()),
                WhenBehind::Say => 0.0,
            },
            goal_max_slowdown_s: disk
                .worker
                .as_ref()
                .map_or(wish.max_slowdown, |worker| worker.wished.max_slowdown)
                .map_or(disk.present.usual_max_s, |max| max.as_secs_f64()),
            run: disk.run.clone(),
            foreground_requests: disk.so_far.0.requests,
            foreground_slowdown_s: disk.so_far.0.slowdown_s,
            slowdowns: disk.so_far.1.counts().to_vec(),
            last_day: known.recent.of_the_last(24, now),
            last_week: known.recent.of_the_last(168, now),
            verified_since_start_bytes: disk.so_far.2.0,
            shares: pass.map(|pass| pass.shares(PARTS)).unwrap_or_default(),
            bad_blocks: by_kind(&errors),
            acknowledged_blocks: known.acknowledged_of(&errors),
            errors,
            is_known: pass.is_some(),
            scrubs: disk.worker.is_some()
                && disk.is_live
                && disk.run.as_ref().is_some_and(|run| run.verified_bytes > 0 && run.failure.is_none()),
            foreground_allowed_s: disk.allowed_s,
            not_compared: disk.not_compared().map(|(bytes, why)| (bytes, one_line(&why).into_owned())),
            block_bytes: pass.map(|pass| pass.block_bytes),
            paused: known.paused.clone(),
            hours_bytes_per_s: known.week.hours().iter().map(|hour| (hour.weight > 0.0).then_some(hour.rate)).collect(),
            passes: known.passes.clone(),
        }
    }
}
