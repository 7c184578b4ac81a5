//! `idlewise notify`: sends the messages of the daemon that wait.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use idlewise_linux::scrub::StateFolder;
use idlewise_service::{Config, Message, Notify, Outbox, SENDMAIL, outbox};

use crate::daemon::ConfigPath;
use crate::dates::{date, unix_now};
use crate::exit::Exit;
use crate::output::{self, say};

/// Whoever sends has so long for a message.
const PATIENCE: Duration = Duration::from_secs(60);
/// What could not be sent is tried again after so long, then after twice as long, so often.
const AGAIN: Duration = Duration::from_secs(20);
const TRIES: u32 = 5;
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
    if !notify.is_wanted() {
        bail!(
            "{}: nobody is to be told; a section such as [notify] mail = [\"root\"] says who is",
            arguments.config.file()?.display()
        );
    }
    if arguments.test {
        send(notify, &Message::test(unix_now() as f64), &mut Vec::new())?;
        output::text("a test was sent\n")?;
        return Ok(Exit::Clean);
    }
    let spool = arguments.spool.clone().unwrap_or_else(|| outbox(StateFolder::choose(None).path()));
    let failed = spool.join(FAILED);
    let (mut is_none, mut are_sent) = (true, true);
    // Those that failed before are tried once.
    for (path, tries) in [(&spool, TRIES), (&failed, 1)] {
        let shown = || path.display().to_string();
        let Some(outbox) = Outbox::open(path).with_context(shown)? else { continue };
        let mut names = outbox.waiting().with_context(shown)?;
        if tries == 1 {
            for old in names.drain(..names.len().saturating_sub(MOST_FAILED)) {
                outbox.remove(&old).with_context(|| path.join(&old).display().to_string())?;
            }
        }
        for name in names {
            is_none = false;
            are_sent &= deliver(notify, (&outbox, path), &name, tries)?;
        }
    }
    if is_none {
        say!("idlewise: no messages wait");
        return Ok(Exit::NothingToDo);
    }
    Ok(if are_sent { Exit::Clean } else { Exit::CouldNotRun })
}

/// Sends one that waits in an outbox, and tries again for a while; whether it was sent.
fn deliver(notify: &Notify, (outbox, path): (&Outbox, &Path), name: &OsStr, tries: u32) -> anyhow::Result<bool> {
    let shown = || path.join(name).display().to_string();
    let message = match outbox.read(name) {
        Ok(message) => message,
        // Another run has sent it.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        // It is no message. What else is in the way may be gone the next time.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            say!("idlewise: {}: {error}: thrown away", shown());
            outbox.remove(name).with_context(shown)?;
            return Ok(false);
        }
        Err(error) => {
            say!("idlewise: {}: {error}", shown());
            return Ok(false);
        }
    };
    let mut sent = Vec::new();
    for attempt in 0..tries {
        match send(notify, &message, &mut sent) {
            Ok(()) => {
                outbox.remove(name).with_context(shown)?;
                return Ok(true);
            }
            Err(error) => say!("idlewise: '{}' cannot be sent: {error:#}", message.subject),
        }
        if attempt + 1 < tries {
            std::thread::sleep(AGAIN * 2u32.pow(attempt));
        }
    }
    if tries > 1 {
        let failed = Outbox::make(&path.join(FAILED)).with_context(shown)?;
        outbox.put_aside(name, &failed).with_context(shown)?;
    }
    Ok(false)
}

/// Sends a message in one way.
type Send = fn(&Notify, &Message) -> anyhow::Result<()>;

/// Sends it by each way by which it was not sent yet.
fn send(notify: &Notify, message: &Message, sent: &mut Vec<&'static str>) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    let ways: [(&'static str, bool, Send); 3] = [
        ("mail", !notify.mail.is_empty(), mail),
        ("command", !notify.command.is_empty(), command),
        ("webhook", notify.webhook.is_some(), webhook),
    ];
    for (way, is_wanted, send) in ways {
        if !is_wanted || sent.contains(&way) {
            continue;
        }
        match send(notify, message) {
            Ok(()) => sent.push(way),
            Err(error) => problems.push(format!("{way}: {error:#}")),
        }
    }
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("; ")) }
}

/// This machine.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn mail(notify: &Notify, message: &Message) -> anyhow::Result<()> {
    let one_line = |text: &str| text.replace(char::is_control, " ");
    let text = format!(
        "To: {}\nSubject: idlewise on {}: {}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\
         Content-Transfer-Encoding: 8bit\n\n{}\nSince: {}\nSent before: {} times\n",
        notify.mail.join(", "),
        one_line(&host()),
        one_line(&message.subject),
        message.text,
        date(message.first_unix_s as u64).unwrap_or_default(),
        message.before
    );
    handed_to(Command::new(SENDMAIL).args(["-t", "-i"]), text.as_bytes())
}

fn command(notify: &Notify, message: &Message) -> anyhow::Result<()> {
    let Some((program, arguments)) = notify.command.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, value) in [
        ("DEVICE", message.device.clone()),
        ("DEVICEINFO", message.identity.clone()),
        ("FAILTYPE", format!("{:?}", message.kind)),
        ("SUBJECT", message.subject.clone()),
        ("MESSAGE", message.subject.clone()),
        ("FULLMESSAGE", message.text.clone()),
        ("TFIRST", date(message.first_unix_s as u64).unwrap_or_default()),
        ("TFIRSTEPOCH", (message.first_unix_s as u64).to_string()),
        ("PREVCNT", message.before.to_string()),
    ] {
        command.env(format!("IDLEWISE_{name}"), value);
    }
    handed_to(&mut command, message.text.as_bytes())
}

fn webhook(notify: &Notify, message: &Message) -> anyhow::Result<()> {
    let Some(webhook) = &notify.webhook else { return Ok(()) };
    let file = webhook.url_file.display();
    let url = std::fs::read_to_string(&webhook.url_file).with_context(|| file.to_string())?;
    let url = url.trim();
    let is_address = ["http://", "https://"].iter().any(|begin| url.starts_with(begin));
    if !is_address
        || url.contains(|letter: char| letter.is_control() || letter.is_whitespace() || letter == '"' || letter == '\\')
    {
        bail!("{file}: it holds no address such as https://chat.example.org/hook");
    }
    let body = serde_json::json!({
        "text": format!("{}: {}", host(), message.subject), "host": host(), "kind": message.kind, "device": message.device, "identity": message.identity,
        "message": message.text, "unix_s": message.unix_s, "first_unix_s": message.first_unix_s, "before": message.before,
    });
    // Whoever knows the address may post there, and the list of processes shows what a command is given.
    let quoted = body.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let config = format!(
        "url = \"{url}\"\nproto = \"=http,https\"\nsilent\nshow-error\nfail\nmax-time = 30\noutput = /dev/null\n\
         header = \"Content-Type: application/json\"\ndata-raw = \"{quoted}\"\n"
    );
    handed_to(Command::new("curl").args(["--disable", "--config", "-"]), config.as_bytes())
}

/// Runs a command that reads this; an error where it fails, or takes too long.
fn handed_to(command: &mut Command, text: &[u8]) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().with_context(|| program.clone())?;
    let (mut input, text) = (child.stdin.take(), text.to_vec());
    // Whoever does not read it must not hold up what counts the time.
    let writing = std::thread::spawn(move || input.as_mut().map_or(Ok(()), |input| input.write_all(&text)));
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("{program}: {status}");
            }
            // It may not want to read all of it.
            let written = writing.join().unwrap_or(Ok(()));
            return written.or_else(|error| {
                if error.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.into()) }
            });
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("{program}: it does not end within {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
