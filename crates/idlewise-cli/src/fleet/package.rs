//! The Python package does the work: it is told what to do in a line on its standard input, and tells how far it is on its standard output.
//! It ends when its standard input does.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::progress::Progress;

/// What is to be done. Times are in nanoseconds, sizes in bytes.
#[derive(Serialize)]
pub struct Job {
    pub version: &'static str,
    pub paths: Vec<String>,
    pub out: PathBuf,
    pub mean_slowdown: Option<u64>,
    pub max_slowdown: Option<u64>,
    pub finish_within: Option<u64>,
    pub capacity: u64,
    pub disk: String,
    pub engine: Option<String>,
    pub workers: Option<u32>,
    pub skip_bad_files: bool,
}

/// A line that it tells.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// The share that is done.
    Share(f64),
    /// It cannot be done, or not all of it.
    Error(String),
    /// What people should know.
    Note(String),
}

/// Has it done.
///
/// # Errors
/// What is in the way.
pub fn analyze(job: &Job) -> anyhow::Result<()> {
    // Of the environment that this command was installed into, where it was.
    let python = std::env::var_os("IDLEWISE_PYTHON").unwrap_or_else(|| "python3".into());
    let shown = python.to_string_lossy().into_owned();
    let mut command = Command::new(&python);
    // Not what lies in the present folder, which may be anybody's (-P, since Python 3.11); nor does any Python that this one begins.
    command.env("PYTHONSAFEPATH", "1");
    command.args(["-P", "-m", "idlewise.fleet"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().with_context(|| format!("{shown}: a fleet is analyzed by Python, which is needed"))?;
    let told = serde_json::to_string(job)? + "\n";
    // It may end before it has read anything; why, it says.
    let mut input = child.stdin.take().context("no input")?;
    let _ = input.write_all(told.as_bytes());
    let errors = child.stderr.take().map(|errors| std::thread::spawn(|| std::io::read_to_string(errors)));
    let progress = Progress::new("fleet");
    let mut problem = None;
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        match serde_json::from_str(&line?) {
            Ok(Told::Share(share)) => progress.share(share),
            Ok(Told::Error(error)) => problem = Some(error),
            Ok(Told::Note(note)) => crate::output::say!("idlewise: {note}"),
            // Whatever else is printed there.
            Err(_) => {}
        }
    }
    drop(progress);
    let status = child.wait()?;
    drop(input);
    let said = errors.and_then(|errors| errors.join().ok()?.ok()).unwrap_or_default();
    if let Some(problem) = problem {
        bail!("{problem}");
    }
    if status.success() {
        return Ok(());
    }
    if said.contains("No module named") {
        bail!(
            "{shown} has no package `idlewise` {}, which analyzes fleets: `pip install idlewise`, or name another Python by IDLEWISE_PYTHON",
            job.version
        );
    }
    if said.contains("Unknown option: -P") {
        bail!(
            "{shown} is older than Python 3.11, which the package `idlewise` needs: name another one by IDLEWISE_PYTHON"
        );
    }
    let last = said.lines().last().unwrap_or("without a word");
    bail!("{shown} -m idlewise.fleet: {status}: {last}")
}
