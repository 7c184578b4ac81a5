//! The ways by which a message is sent: mail, a command, a webhook.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use idlewise_service::{Message, Notify, SENDMAIL};

use crate::dates::date;

/// Whoever sends has so long for a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a message in one way.
type Send = fn(&Notify, &Message) -> anyhow::Result<()>;

/// A way, by which nobody is told more until the next round once it took all of its time.
pub struct Way {
    /// Its name in the configuration.
    pub name: &'static str,
    send: Send,
    hangs: bool,
}

/// Those that are configured.
pub fn ways(notify: &Notify) -> Vec<Way> {
    let all: [(_, _, Send); 3] = [
        ("mail", !notify.mail.is_empty(), mail),
        ("command", !notify.command.is_empty(), command),
        ("webhook", notify.webhook.is_some(), webhook),
    ];
    let wanted = all.into_iter().filter(|(_, is_wanted, _)| *is_wanted);
    wanted.map(|(name, _, send)| Way { name, send, hangs: false }).collect()
}

/// Sends it by each way by which it was not sent yet. What was sent is noted in the message.
pub fn send(notify: &Notify, ways: &mut [Way], message: &mut Message) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    for way in ways {
        if message.sent.iter().any(|sent| sent == way.name) {
            continue;
        }
        if way.hangs {
            problems.push(format!("{}: it took too long for the message before", way.name));
            continue;
        }
        let began = Instant::now();
        match (way.send)(notify, message) {
            Ok(()) => message.sent.push(way.name.into()),
            Err(error) => problems.push(format!("{}: {error:#}", way.name)),
        }
        way.hangs = began.elapsed() > PATIENCE;
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
