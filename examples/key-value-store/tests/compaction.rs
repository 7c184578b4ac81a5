//! A compaction at a pace does what the store's own does, and never while a read is under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use idlewise::drive;
use idlewise::policy::{Policy, Waiting};
use idlewise::{Bytes, Nanos};
use idlewise_key_value_store::pace::Pace;
use idlewise_key_value_store::store::{self, Store};

const PROFILES: u64 = 100;
const EVENTS: u64 = 2_000;
const STEP: Bytes = Bytes::from_kib(64);

#[test]
fn a_paced_compaction_does_what_the_stores_own_does() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    folders.iter().for_each(|folder| Store::fill(folder.path(), PROFILES, EVENTS).unwrap());
    let own = Store::open(folders[0].path(), None).unwrap();
    let before = own.events().unwrap();
    own.compact().unwrap();

    let policy: Box<dyn Policy> = Box::new(Waiting { idle_wait: Nanos::from_millis(1), request_size: STEP });
    let (foreground, worker) = drive::shared(policy);
    let pace = Pace::new(worker, &store::events(folders[1].path()));
    let paced = Store::open(folders[1].path(), Some((foreground.clone(), pace.clone()))).unwrap();
    assert!(paced.runs() > 1);
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        let request = foreground.request();
        threads.spawn(|| {
            paced.compact().unwrap();
            done.store(true, Ordering::SeqCst);
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!done.load(Ordering::SeqCst) && paced.runs() > 1, "it did not wait");
        drop(request);
    });

    assert_eq!((own.runs(), paced.runs()), (0, 0));
    let [own, paced] = [own, paced].map(|store| (store.events().unwrap(), store.get(7).unwrap()));
    assert!(own == paced && own.0 == before && own.1.is_some());
    // Every entry that is kept was in a step.
    let measured = pace.measured();
    let merged: usize = before.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!(measured.worked.0 >= merged as u64 && measured.steps > 20, "{measured:?}");
}
