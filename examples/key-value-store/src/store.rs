//! The store: two trees in one folder. Profiles are read at random, events are compacted.

use std::path::Path;
use std::sync::Arc;

use idlewise::drive::Foreground;
use lsm_tree::compaction::Leveled;
use lsm_tree::compaction::filter::Factory;
use lsm_tree::config::PinningPolicy;
use lsm_tree::{AbstractTree, AnyTree, Config, SeqNo, SequenceNumberCounter};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::pace::Pace;

/// Bytes of every value.
const VALUE: usize = 1_000;
/// Tables of events that wait to be merged.
const TABLES: u64 = 8;

/// An open store.
pub struct Store {
    profiles: AnyTree,
    events: AnyTree,
    /// Reads are told, where a pace is set.
    foreground: Option<Foreground>,
    pace: Option<Pace>,
}

impl Store {
    /// Opens the store in `folder`. With a pace its compaction keeps to it; without one it compacts as fast as it can.
    pub fn open(folder: &Path, paced: Option<(Foreground, Pace)>) -> lsm_tree::Result<Self> {
        let (foreground, pace) = paced.unzip();
        let filter = pace.clone().map(|pace| Arc::new(pace) as Arc<dyn Factory>);
        Ok(Self {
            profiles: open(&folder.join("profiles"), None)?,
            events: open(&events(folder), filter)?,
            foreground,
            pace,
        })
    }

    /// The value of a profile.
    pub fn get(&self, profile: u64) -> lsm_tree::Result<Option<lsm_tree::Slice>> {
        let _request = self.foreground.as_ref().map(Foreground::request);
        self.profiles.get(profile.to_be_bytes(), SeqNo::MAX)
    }

    /// Merges the tables of events into one run, as the store's own strategy says: how many bytes they had.
    pub fn compact(&self) -> lsm_tree::Result<u64> {
        let bytes = self.events.disk_space();
        let outdated = self.events.get_highest_persisted_seqno().map_or(0, |newest| newest + 1);
        let compact = || self.events.compact(Arc::new(Leveled::default()), outdated);
        self.pace.as_ref().map_or_else(compact, |pace| pace.run(compact))?;
        Ok(bytes)
    }

    /// How many runs of events wait to be merged.
    pub fn runs(&self) -> usize {
        self.events.l0_run_count()
    }

    /// All events in order.
    pub fn events(&self) -> lsm_tree::Result<Vec<lsm_tree::KvPair>> {
        self.events.iter(SeqNo::MAX, None).map(lsm_tree::Guard::into_inner).collect()
    }

    /// Fills a new store with so many profiles, and events in tables that overlap, some of them overwritten.
    pub fn fill(folder: &Path, profiles: u64, events: u64) -> lsm_tree::Result<()> {
        let store = Self::open(folder, None)?;
        let mut random = Pcg64::seed_from_u64(1);
        let mut value = || {
            let mut bytes = [0; VALUE];
            random.fill(&mut bytes[..]);
            bytes
        };
        for profile in 0..profiles {
            store.profiles.insert(profile.to_be_bytes(), value(), profile);
        }
        store.profiles.flush_active_memtable(0)?;
        let mut keys = Pcg64::seed_from_u64(2);
        for number in 0..events {
            store.events.insert(keys.random_range(0..4 * events).to_be_bytes(), value(), number);
            if (number + 1) % events.div_ceil(TABLES) == 0 || number + 1 == events {
                store.events.flush_active_memtable(0)?;
            }
        }
        Ok(())
    }
}

/// Where the events are.
pub fn events(folder: &Path) -> std::path::PathBuf {
    folder.join("events")
}

fn open(folder: &Path, filter: Option<Arc<dyn Factory>>) -> lsm_tree::Result<AnyTree> {
    let counter = SequenceNumberCounter::default();
    let tree = Config::new(folder, counter.clone(), SequenceNumberCounter::default())
        // Indexes stay in memory, so that every read is one of a block of data.
        .index_block_partitioning_policy(PinningPolicy::all(false))
        .filter_block_partitioning_policy(PinningPolicy::all(false))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .with_compaction_filter_factory(filter)
        .open()?;
    counter.set(tree.get_highest_seqno().map_or(0, |newest| newest + 1));
    Ok(tree)
}
