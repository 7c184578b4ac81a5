//! What the service reads from files and sockets, for fuzz/ alone.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::mpsc::channel;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use crate::control::{Asked, Control, Shown};
use crate::machine::Moment;
use crate::overview::{Overview, Seen};
use crate::web::http::{Ender, Stream};
use crate::web::{From, Request};
use crate::{Config, Known, Message, Paused};

/// A name that would be a page or a metric of its own.
const HOSTILE: &str = "/dev/<script>\"\\\n{}'&%2F";

/// A client that has sent this, in pieces of so many bytes.
struct Client<'b>(&'b [u8], usize, Vec<u8>);

impl Read for Client<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.len().min(buffer.len()).min(self.1);
        let (piece, rest) = self.0.split_at(length);
        buffer[..length].copy_from_slice(piece);
        self.0 = rest;
        Ok(length)
    }
}

impl Write for Client<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.2.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Client<'_> {
    fn limit(&self, _time: Duration) -> io::Result<()> {
        Ok(())
    }

    fn end(&self) {}

    fn ender(&self) -> Option<Ender> {
        None
    }
}

/// What a client sends, with the size of its pieces in the first byte: each request is answered, and nothing of a name gets through.
pub fn request(bytes: &[u8]) {
    let Some((piece, sent)) = bytes.split_first() else { return };
    let (orders, ordered) = channel::<Asked>();
    // Nobody obeys: an order that is understood is answered by that.
    drop(ordered);
    let overview = Overview {
        disks: vec![seen()],
        refused: vec![HOSTILE.into()],
        untold: Some(HOSTILE.into()),
        ..Overview::default()
    };
    let control = Control {
        shown: Arc::new(RwLock::new(Arc::new(Shown::of(overview)))),
        orders,
        hosts: Arc::new(RwLock::new(vec!["a".into()])),
    };
    for from in [From::Control, From::Network] {
        let mut client = Client(sent, usize::from(*piece).max(1), Vec::new());
        let until = Instant::now() + Duration::from_secs(5);
        let response = match Request::read(&mut client, until) {
            Ok(request) => {
                assert!(request.body.len() <= 16 << 10);
                control.answer(&request, from)
            }
            Err(refused) => refused,
        };
        let text = String::from_utf8_lossy(&response.body);
        assert!(!response.kind.starts_with("text/html") || !text.contains("<script>"), "{text}");
        response.send(&mut client, false, until).expect("it takes what it is sent");
        let answer = String::from_utf8_lossy(&client.2);
        assert!(answer.starts_with("HTTP/1.1 ") && answer.contains("\r\n\r\n"), "{answer}");
    }
}

/// A configuration, and what it says of a disk.
pub fn config(text: &str) {
    let Ok(config) = Config::parse(text) else { return };
    let (wish, _) = config.of("wwn-1", std::path::Path::new("/dev/sda"));
    assert!(wish.verify_every.as_secs_f64() >= 86_400.0 && config.named().count() < 1 << 16);
    assert!((0..168).filter(|hour| wish.windows.is_open(hour * 60)).count() <= 168);
}

/// What is remembered, and what comes of it.
pub fn record(bytes: &[u8]) {
    let Ok(disks) = serde_json::from_slice::<BTreeMap<String, Known>>(bytes) else { return };
    for (identity, known) in disks {
        let paused = known.paused.as_ref().map(Paused::until);
        let facts = crate::Facts {
            now: Moment { unix_s: 1.8e9, minute: 600 },
            size: idlewise::Bytes(1 << 40),
            left: None,
            last: None,
            usual_mean_s: 1e-3,
            usual_max_s: 5e-2,
            on_battery: false,
            taken: None,
            retry: None,
            paused,
        };
        let (wish, _) = Config::default().of(&identity, std::path::Path::new("/dev/sda"));
        let (_, outlook) = crate::next(&identity, &wish, &known, &facts);
        assert!(!outlook.begins.is_nan(), "{known:?}");
    }
}

/// A message that waits.
pub fn message(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<Message>(bytes) else { return };
    let written = serde_json::to_vec(&message).expect("text and numbers");
    assert!(serde_json::from_slice::<Message>(&written).is_ok());
}

fn seen() -> Seen {
    Seen {
        device: HOSTILE.into(),
        identity: HOSTILE.into(),
        device_bytes: 1 << 30,
        state: "running",
        why: HOSTILE.into(),
        verified_bytes: 1,
        started_unix_s: Some(u64::MAX),
        completed_unix_s: Some(0),
        due_unix_s: f64::INFINITY,
        begins_unix_s: -1.0,
        expected_end_unix_s: Some([1e300, 0.0, f64::INFINITY]),
        standing: "behind",
        goal_mean_slowdown_s: 1e-3,
        goal_max_slowdown_s: 5e-2,
        foreground_slowdown_s: -1.0,
        slowdowns: (0..14).map(|place| u64::MAX >> place).collect(),
        shares: vec![0.5, f64::NAN, 2.0],
        bad_blocks: [(HOSTILE.to_string(), 1)].into_iter().collect(),
        acknowledged_blocks: 5,
        errors: vec![idlewise_linux::scrub::BadBlocks { lba: u64::MAX, blocks: 1, kind: HOSTILE.into() }],
        block_bytes: Some(512),
        hours_bytes_per_s: (0..168).map(|hour| (hour % 2 == 0).then_some(f64::from(hour))).collect(),
        ..Seen::default()
    }
}
