//! What is asked of the service while it runs, over HTTP: how everything stands, and orders.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::machine::Moment;
use crate::overview::Overview;
use crate::web::{From, Request, Response, metrics, page};

const JSON: &str = "application/json";
/// The service answers an order after its look at the disks.
const PATIENCE: Duration = Duration::from_secs(60);

/// An order.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Verify nothing of these disks until then, or until they are resumed.
    Pause(Until),
    /// Go on.
    Resume,
    /// Begin a pass now.
    Start,
    /// The bad blocks that are known now are known to somebody.
    Acknowledge,
    /// Read the configuration again.
    Reload,
}

/// How long a pause lasts, and why it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Until {
    /// In seconds since 1970; else until somebody resumes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_unix_s: Option<f64>,
    /// For whoever looks.
    pub why: String,
}

/// An order for a disk, or for all where none is named, and where its answer goes: what was done, or why nothing was.
pub struct Asked {
    /// What.
    pub order: Order,
    /// Of which disk.
    pub disk: Option<String>,
    /// The answer.
    pub answer: Sender<Result<String, String>>,
}

/// How everything stood at a look, and what was shown of that: it is made once, however many ask.
#[derive(Default)]
pub struct Shown {
    overview: Overview,
    made: Mutex<BTreeMap<Vec<String>, Response>>,
}

impl Shown {
    /// Of this look.
    pub fn of(overview: Overview) -> Self {
        Self { overview, made: Mutex::default() }
    }

    /// What is at a path.
    fn at(&self, path: &[String]) -> Response {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(response) = made.get(path) {
            return response.clone();
        }
        let response = self.make(path);
        // What is not there may be asked for by any name.
        if response.status == 200 {
            made.insert(path.to_vec(), response.clone());
        }
        response
    }

    fn make(&self, path: &[String]) -> Response {
        let overview = &self.overview;
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        match &parts[..] {
            [""] => page::all(overview),
            ["disks", name] => page::one(overview, name),
            ["style.css"] => Response::ok("text/css", page::STYLE),
            ["live.js"] => Response::ok("text/javascript", page::SCRIPT),
            ["metrics"] => Response::ok(metrics::KIND, metrics::text(overview)),
            ["v1", "status"] => json(overview),
            ["v1", "disks", name] => match overview.disks.iter().find(|disk| disk.is_called(name)) {
                Some(disk) => json(disk),
                None => unknown(name),
            },
            _ => Response::error(404, "there is nothing here"),
        }
    }
}

/// What answers requests.
#[derive(Clone)]
pub struct Control {
    /// How everything stands.
    pub shown: Arc<RwLock<Arc<Shown>>>,
    /// Where orders go.
    pub orders: Sender<Asked>,
    /// Names of this machine that requests from the network may be sent to.
    pub hosts: Arc<RwLock<Vec<String>>>,
}

impl Control {
    /// The answer to a request.
    pub fn answer(&self, request: &Request, from: From) -> Response {
        if from == From::Network && !self.is_for_us(request.host.as_deref()) {
            let problem = "this name is none of this machine's: [web] hosts in the configuration lists them";
            return Response::error(421, problem);
        }
        let parts: Vec<&str> = request.path.iter().map(String::as_str).collect();
        match (&*request.method, &parts[..]) {
            ("GET" | "HEAD", _) => {
                let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner).clone();
                shown.at(&request.path)
            }
            ("POST", _) if from == From::Network => {
                Response::error(403, "orders are taken on the socket for control only")
            }
            ("POST", ["v1", order]) => self.order(order, None, &request.body),
            ("POST", ["v1", "disks", name, order]) => self.order(order, Some(name), &request.body),
            ("POST", _) => Response::error(404, "there is nothing here"),
            _ => Response::error(405, "what is here can be got, and on the socket for control some of it posted to"),
        }
    }

    /// Whoever makes a browser here ask another name for this machine's address may be a stranger's page.
    fn is_for_us(&self, host: Option<&str>) -> bool {
        let Some(host) = host else { return false };
        let split = match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map(|(name, port)| (name, port.strip_prefix(':').or(Some(port)))),
            None => host.split_once(':').or(Some((host, ""))).map(|(name, port)| (name, Some(port))),
        };
        let Some((name, Some(port))) = split else { return false };
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        let hosts = self.hosts.read().unwrap_or_else(PoisonError::into_inner);
        let known = ["127.0.0.1", "::1", "localhost"].into_iter().chain(hosts.iter().map(String::as_str));
        known.into_iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn order(&self, order: &str, disk: Option<&str>, body: &[u8]) -> Response {
        // A later time is no date.
        let last = Timestamp::MAX.as_second() as f64;
        let order = match (order, disk) {
            ("pause", _) if body.is_empty() => Order::Pause(Until::default()),
            ("pause", _) => match serde_json::from_slice::<Until>(body) {
                Ok(until) if until.until_unix_s.is_some_and(|until| until <= Moment::now().unix_s) => {
                    return Response::error(400, "the pause would be over: until_unix_s is not later than now");
                }
                Ok(until) if until.until_unix_s.is_some_and(|until| until > last) => {
                    return Response::error(400, "until_unix_s is later than the year 9999; leave it out for no end");
                }
                Ok(until) => Order::Pause(until),
                Err(error) => return Response::error(400, format!("the body of a pause: {error}")),
            },
            ("resume", _) => Order::Resume,
            ("start", Some(_)) => Order::Start,
            ("acknowledge", Some(_)) => Order::Acknowledge,
            ("reload", None) => Order::Reload,
            _ => return Response::error(404, "there is no such order"),
        };
        let (answer, answers) = channel();
        let asked = Asked { order, disk: disk.map(String::from), answer };
        let answered = self.orders.send(asked).ok().and_then(|()| answers.recv_timeout(PATIENCE).ok());
        match answered {
            Some(Ok(done)) => json(&serde_json::json!({ "done": done })),
            Some(Err(why)) => Response::error(409, why),
            None => Response::error(503, "the service does not answer"),
        }
    }
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec_pretty(value) {
        Ok(body) => Response::ok(JSON, body),
        Err(error) => Response::error(500, error),
    }
}

fn unknown(name: &str) -> Response {
    Response::error(404, format!("no disk here is called '{name}': idlewise status lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> Control {
        let (orders, _) = channel();
        Control { shown: Arc::default(), orders, hosts: Arc::new(RwLock::new(vec!["store1".into()])) }
    }

    #[test]
    fn only_names_of_this_machine_are_answered_to() {
        let control = control();
        let is_for_us = |host: &str| control.is_for_us(Some(host));
        for host in ["localhost", "localhost:80", "127.0.0.1:9927", "[::1]", "[::1]:9927", "Store1:1"] {
            assert!(is_for_us(host), "{host}");
        }
        for host in ["", "evil", "localhost.evil", "[localhost", "[127.0.0.1]evil.com", "localhost:80.evil", "[::2]"] {
            assert!(!is_for_us(host), "{host}");
        }
        assert!(!control.is_for_us(None));
    }

    #[test]
    fn the_network_gives_no_orders() {
        let post = |path: &[&str]| Request {
            method: "POST".into(),
            path: path.iter().map(ToString::to_string).collect(),
            host: Some("localhost".into()),
            ..Request::default()
        };
        let status = |request: &Request, from| control().answer(request, from).status;
        assert_eq!(status(&post(&["v1", "pause"]), From::Network), 403);
        // Nobody is there to obey.
        assert_eq!(status(&post(&["v1", "pause"]), From::Control), 503);
        assert_eq!(status(&post(&["v1", "start"]), From::Control), 404);
        assert_eq!(status(&post(&["v1", "disks", "a", "reload"]), From::Control), 404);
    }
}
