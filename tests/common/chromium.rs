//! A page in Chromium, by its DevTools protocol over a pipe.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A page; the browser ends with it.
pub struct Page {
    browser: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    number: u64,
    /// What happened that nobody has waited for.
    events: VecDeque<Value>,
    /// Everything that it has asked for.
    pub asked: Vec<String>,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

impl Page {
    /// An empty one; `None`, said aloud, where there is no browser.
    pub fn open(folder: &Path) -> Option<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"command -v chromium > /dev/null && exec chromium "$@" 3<&0 4>&1 0</dev/null 1>&2"#, "sh"]);
        shell.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        shell.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        shell.args(["--disable-dev-shm-usage", "--remote-debugging-pipe"]);
        shell.arg(format!("--user-data-dir={}", folder.join("profile").display()));
        let piped = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut browser = piped.spawn().unwrap();
        let (to, from) = (browser.stdin.take().unwrap(), BufReader::new(browser.stdout.take().unwrap()));
        let mut page = Self { browser, to, from, session: None, number: 0, events: VecDeque::new(), asked: Vec::new() };
        let Some(target) = page.try_ask("Target.createTarget", json!({"url": "about:blank"})) else {
            eprintln!("SKIPPED: it needs chromium");
            return None;
        };
        let attached = page.ask("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        page.session = attached["sessionId"].as_str().map(String::from);
        for events in ["Page.enable", "Network.enable"] {
            page.ask(events, json!({}));
        }
        Some(page)
    }

    /// The answer to a command.
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.try_ask(method, parameters).unwrap_or_else(|| panic!("{method}: the browser has ended"))
    }

    fn try_ask(&mut self, method: &str, parameters: Value) -> Option<Value> {
        self.number += 1;
        let mut command = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{command}\0").as_bytes()).ok()?;
        loop {
            let message = self.message()?;
            if message["id"] == self.number {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return Some(message["result"].clone());
            }
            self.events.push_back(message);
        }
    }

    fn message(&mut self) -> Option<Value> {
        let mut text = Vec::new();
        self.from.read_until(0, &mut text).ok().filter(|count| *count > 0)?;
        text.pop();
        let message: Value = serde_json::from_slice(&text).unwrap();
        if message["method"] == "Network.requestWillBeSent" {
            self.asked.push(message["params"]["request"]["url"].as_str().unwrap().into());
        }
        Some(message)
    }

    /// Loads an address.
    pub fn load(&mut self, address: &str) {
        self.events.clear();
        self.ask("Page.navigate", json!({"url": address}));
        loop {
            let event = self.events.pop_front().or_else(|| self.message()).expect("the browser goes on");
            if event["method"] == "Page.loadEventFired" {
                return;
            }
        }
    }

    /// As on a screen of this width, light or dark.
    pub fn shown(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", features);
    }

    /// What a script gives; a promise is waited for.
    pub fn run(&mut self, script: &str) -> Value {
        let how = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", how);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }
}
