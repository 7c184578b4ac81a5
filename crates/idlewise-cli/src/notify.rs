//! `idlewise notify`: sends the messages of the daemon that wait.

mod ways;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use idlewise_linux::scrub::StateFolder;
use idlewise_service::{Config, Message, Notify, Outbox, outbox};

use ways::{Way, send, ways};

use crate::daemon::ConfigPath;
use crate::dates::unix_now;
use crate::exit::Exit;
use crate::output::{self, say};

/// What could not be sent is tried again after so long, then after twice as long, so often.
const AGAIN: Duration = Duration::from_secs(20);
const TRIES: u32 = 5;
/// How often it looks for messages that came meanwhile, and for those that are to be tried again.
const TICK: Duration = Duration::from_secs(1);
/// What could not be sent at all lies here: the newest of them.
const FAILED: &str = "failed";
const MOST_FAILED: usize = 20;

/// Send the messages of the daemon that wait, by what the configuration says. For a service manager such as systemd
///
/// A message that cannot be sent is tried again for five minutes, and then put aside into the folder `failed` beside the others, where the next
/// run tries it again. `--test` sends a test.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigPath,

    /// Folder in which the messages wait [default: /var/lib/idlewise/outbox]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,

    /// Send a message that says that messages arrive, and nothing else
    #[arg(long)]
    test: bool,
}

/// Sends them.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let config = Config::read(arguments.config.file()?)?;
    let notify = &config.notify;
    let spool = arguments.spool.clone().unwrap_or_else(|| outbox(StateFolder::choose(None).path()));
    let failed = spool.join(FAILED);
    if !notify.is_wanted() {
        if !arguments.test {
            put_all_aside(&spool, &failed)?;
        }
        bail!(
            "{}: nobody is to be told; a section such as [notify] mail = [\"root\"] says who is",
            arguments.config.file()?.display()
        );
    }
    if arguments.test {
        send(notify, &mut ways(notify), &mut Message::test(unix_now() as f64))?;
        output::text("a test was sent\n")?;
        return Ok(Exit::Clean);
    }
    let (mut is_none, mut are_sent) = (true, true);
    // Those that failed before are tried once.
    for (path, tries) in [(&spool, TRIES), (&failed, 1)] {
        let shown = || path.display().to_string();
        let Some(outbox) = Outbox::open(path).with_context(shown)? else { continue };
        let names = outbox.waiting().with_context(shown)?;
        is_none &= names.is_empty();
        if tries == 1 {
            for old in &names[..names.len().saturating_sub(MOST_FAILED)] {
                outbox.remove(old).with_context(|| path.join(old).display().to_string())?;
            }
        }
        let tried = HashMap::new();
        let mut delivery = Delivery { notify, outbox: &outbox, path, tries, tried, are_sent: true };
        delivery.run()?;
        are_sent &= delivery.are_sent;
    }
    if is_none {
        say!("idlewise: no messages wait");
        return Ok(Exit::NothingToDo);
    }
    Ok(if are_sent { Exit::Clean } else { Exit::CouldNotRun })
}

/// Has what waits wait for a configuration that says who is to be told: else systemd would start this again and again.
fn put_all_aside(spool: &Path, failed: &Path) -> anyhow::Result<()> {
    let Some(outbox) = Outbox::open(spool).with_context(|| spool.display().to_string())? else { return Ok(()) };
    for name in outbox.waiting().with_context(|| spool.display().to_string())? {
        let aside = Outbox::make(failed).with_context(|| failed.display().to_string())?;
        outbox.put_aside(&name, &aside).with_context(|| spool.join(&name).display().to_string())?;
    }
    Ok(())
}

/// The messages of one folder, and how often each was tried in this run.
struct Delivery<'a> {
    notify: &'a Notify,
    outbox: &'a Outbox,
    path: &'a Path,
    /// So often each is tried.
    tries: u32,
    tried: HashMap<OsString, Tried>,
    are_sent: bool,
}

struct Tried {
    times: u32,
    /// Not before.
    again: Instant,
}

impl Delivery<'_> {
    /// Sends all that wait, and those that come meanwhile: a message that has to wait for its next try holds up no other.
    fn run(&mut self) -> anyhow::Result<()> {
        loop {
            let mut names = self.outbox.waiting().with_context(|| self.path.display().to_string())?;
            names.retain(|name| self.tried.get(name).is_none_or(|tried| tried.times < self.tries));
            if names.is_empty() {
                return Ok(());
            }
            let (mut ways, mut waits) = (ways(self.notify), false);
            for name in names {
                if self.tried.get(&name).is_none_or(|tried| tried.again <= Instant::now()) {
                    self.deliver(&name, &mut ways)?;
                }
                waits |= self.tried.contains_key(&name);
            }
            if waits {
                std::thread::sleep(TICK);
            }
        }
    }

    /// Tries one.
    fn deliver(&mut self, name: &OsStr, ways: &mut [Way]) -> anyhow::Result<()> {
        let (outbox, path) = (self.outbox, self.path.join(name));
        let shown = || path.display().to_string();
        let mut message = match outbox.read(name) {
            Ok(message) => message,
            // Another run has sent it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                self.are_sent = false;
                self.tried.insert(name.into(), Tried { times: self.tries, again: Instant::now() });
                // It is no message. What else is in the way may be gone the next time.
                let is_none = matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof);
                say!("idlewise: {}: {error}{}", shown(), if is_none { ": thrown away" } else { "" });
                return if is_none { outbox.remove(name).with_context(shown) } else { Ok(()) };
            }
        };
        let before = message.sent.len();
        let Err(error) = send(self.notify, ways, &mut message) else {
            self.tried.remove(name);
            return outbox.remove(name).with_context(shown);
        };
        say!("idlewise: '{}' cannot be sent: {error:#}", message.subject);
        // Whoever was told is not told again, also by a later run.
        if message.sent.len() > before
            && let Err(error) = outbox.replace(name, &message)
        {
            say!("idlewise: {}: {error}: by {} it may be sent again", shown(), message.sent.join(" and "));
        }
        let tried = self.tried.entry(name.into()).or_insert(Tried { times: 0, again: Instant::now() });
        tried.again = Instant::now() + AGAIN * 2u32.pow(tried.times);
        tried.times += 1;
        if tried.times == self.tries {
            self.are_sent = false;
            if self.tries > 1 {
                let failed = Outbox::make(&self.path.join(FAILED)).with_context(shown)?;
                outbox.put_aside(name, &failed).with_context(shown)?;
            }
        }
        Ok(())
    }
}
