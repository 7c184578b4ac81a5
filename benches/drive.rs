//! Claim: a request of the foreground tells a shared driver of its arrival in under 50 ns with 8 threads, without a lock; beside it a
//! driver behind a mutex. The time is that of a processor: threads that wait for one count no less than those that have it.
//! `cargo bench -p idlewise --bench drive`.

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use idlewise::drive::{self, Driver};
use idlewise::policy::Waiting;
use idlewise::{Bytes, Nanos};

const THREADS: usize = 8;
const REQUESTS: u64 = 2_000_000;

fn policy() -> Waiting {
    Waiting { idle_wait: Nanos::from_millis(10), request_size: Bytes::from_kib(1024) }
}

/// Processor time of one call of `each` by so many threads at once.
fn measured<S: Sync>(shared: &S, each: impl Fn(&S) + Sync) -> f64 {
    let barrier = Arc::new(Barrier::new(THREADS + 1));
    let processors = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let elapsed = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let (barrier, each) = (barrier.clone(), &each);
            scope.spawn(move || {
                barrier.wait();
                (0..REQUESTS).for_each(|_| each(shared));
                barrier.wait();
            });
        }
        barrier.wait();
        let began = Instant::now();
        barrier.wait();
        began.elapsed()
    });
    elapsed.as_secs_f64() * 1e9 * processors as f64 / (REQUESTS as f64 * THREADS as f64)
}

fn main() {
    println!("{THREADS} threads, {} processors", std::thread::available_parallelism().map_or(1, usize::from));
    let clock = measured(&Instant::now(), |began| {
        std::hint::black_box(began.elapsed());
    });
    println!("reading the clock                      {clock:7.1} ns");

    let (foreground, mut worker) = drive::shared(policy());
    let arrivals = measured(&foreground, |foreground| {
        std::hint::black_box(foreground.arrived());
    });
    println!("shared driver, an arrival              {arrivals:7.1} ns, of which the clock {clock:.1}");
    drop((foreground, worker.ask()));

    let (foreground, mut worker) = drive::shared(policy());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let both = std::thread::scope(|scope| {
        // Somebody takes what they tell, as a worker that waits does.
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::black_box(worker.ask());
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let both = measured(&foreground, |foreground| drop(foreground.request()));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        both
    });
    println!("shared driver, arrival and completion  {both:7.1} ns");

    let began = Instant::now();
    let locked = Mutex::new(Driver::new(policy(), Nanos::ZERO));
    let both = measured(&locked, |locked| {
        let arrival = Nanos::from(began.elapsed());
        locked.lock().expect("nobody panics").arrived(arrival);
        let now = Nanos::from(began.elapsed());
        locked.lock().expect("nobody panics").completed(now, arrival);
    });
    println!("driver behind a mutex, both            {both:7.1} ns");
}
