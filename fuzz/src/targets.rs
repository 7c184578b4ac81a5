//! One program holds several targets; the environment variable `TARGET` says which one runs.

use std::sync::OnceLock;

/// Takes any bytes.
pub type Run = Box<dyn Fn(&[u8]) + Send + Sync>;

static CHOSEN: OnceLock<Run> = OnceLock::new();

/// Chooses among targets by name; prints the names where none is asked for.
pub fn begin(targets: Vec<(&'static str, Run)>) {
    let Ok(wanted) = std::env::var("TARGET") else {
        targets.iter().for_each(|(name, _)| println!("{name}"));
        std::process::exit(0);
    };
    let found = targets.into_iter().find(|(name, _)| *name == wanted);
    let _ = CHOSEN.set(found.expect("TARGET names a target").1);
    // Work that is spread over threads stays on this one: the same input takes the same way each time.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("there is no pool yet");
    pass_over_parquet();
}

/// Runs the one that was chosen.
pub fn run(bytes: &[u8]) {
    CHOSEN.get().expect("chosen at the beginning")(bytes);
}

/// The reader of Parquet panics on damaged files, which the library catches; every other panic is a finding.
fn pass_over_parquet() {
    let finding = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let foreign = |file: &str| file.contains("/parquet-") || file.contains("/arrow-");
        if !panic.location().is_some_and(|at| foreign(at.file())) {
            finding(panic);
        }
    }));
}
