//! HTTP/1.1, as far as control, metrics and a page need it: one request a connection, in bounded memory and time.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No request has more bytes before its body, or in it.
const LONGEST_HEAD: usize = 8 << 10;
const LONGEST_BODY: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// What a client sends that is not wanted is read for so long, so that it can read the answer.
const LINGER: Duration = Duration::from_millis(500);
/// What is written after its time has to find room within this.
const AT_ONCE: Duration = Duration::from_millis(1);

/// A connection.
pub trait Stream: Read + Write {
    /// Reading and writing fail after so long.
    ///
    /// # Errors
    /// What the system says.
    fn limit(&self, time: Duration) -> io::Result<()>;
    /// Nothing more is written.
    fn end(&self);
    /// Ends it, from any thread, whatever is read or written at the moment; nothing where it cannot be done.
    fn ender(&self) -> Option<Ender>;
}

/// Ends a connection, from any thread.
pub type Ender = Box<dyn FnOnce() + Send>;

impl Stream for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }

    fn ender(&self) -> Option<Ender> {
        let again = self.try_clone().ok()?;
        Some(Box::new(move || _ = again.shutdown(Shutdown::Both)))
    }
}

impl Stream for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }

    fn ender(&self) -> Option<Ender> {
        let again = self.try_clone().ok()?;
        Some(Box::new(move || _ = again.shutdown(Shutdown::Both)))
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// The parts of its path, each without its percent signs; what is behind a question mark is passed over.
    pub path: Vec<String>,
    /// Of whom it is asked.
    pub host: Option<String>,
    /// What is sent with it.
    pub body: Vec<u8>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The media type.
    pub kind: &'static str,
    /// The content, which many may be reading at the same time.
    pub body: Arc<[u8]>,
}

impl Response {
    /// A page, or whatever is well.
    pub fn ok(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, kind, body: body.into().into() }
    }

    /// What is wrong, as a line of text.
    pub fn error(status: u16, problem: impl std::fmt::Display) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{problem}\n").into_bytes().into() }
    }

    /// Sends it until then, without its content where only the head is wanted, and ends the connection.
    ///
    /// # Errors
    /// If whoever asked does not take it.
    pub fn send(&self, to: &mut impl Stream, head_only: bool, until: Instant) -> io::Result<()> {
        let Self { status, kind, body } = self;
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            409 => "Conflict",
            413 => "Content Too Large",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            503 => "Service Unavailable",
            _ => "Error",
        };
        let allow = if *status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'\r\n{allow}\r\n",
            body.len()
        );
        let body = if head_only { &[][..] } else { body };
        let mut parts = [IoSlice::new(head.as_bytes()), IoSlice::new(body)];
        let mut rest = &mut parts[..if body.is_empty() { 1 } else { 2 }];
        while !rest.is_empty() {
            // At least what finds room at once.
            to.limit(left(until).unwrap_or(AT_ONCE))?;
            match to.write_vectored(rest)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => IoSlice::advance_slices(&mut rest, sent),
            }
        }
        to.end();
        Ok(())
    }
}

/// Reads what still comes behind an answer: who is hung up on while it sends does not read it.
pub fn linger(from: &mut impl Stream) {
    let until = Instant::now() + LINGER;
    let mut rest = [0; 1024];
    while let Some(left) = left(until)
        && from.limit(left).is_ok()
        && matches!(from.read(&mut rest), Ok(1..))
    {}
}

/// The time until then.
fn left(until: Instant) -> Option<Duration> {
    until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

impl Request {
    /// Reads one, until then.
    ///
    /// # Errors
    /// What to answer, if it is none.
    pub fn read(from: &mut impl Stream, until: Instant) -> Result<Self, Response> {
        let mut bytes = Vec::new();
        loop {
            if let Some((mut request, head, length)) = Self::parse(&bytes)? {
                while bytes.len() - head < length {
                    more(from, &mut bytes, head + length, until)?;
                }
                request.body = bytes[head..head + length].to_vec();
                return Ok(request);
            }
            if bytes.len() >= LONGEST_HEAD {
                return Err(Response::error(431, "the head of a request has at most 8 KiB"));
            }
            more(from, &mut bytes, LONGEST_HEAD, until)?;
        }
    }

    /// What its head says, how long that is, and how long its body; nothing where it is not all there.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize, usize)>, Response> {
        let wrong = |problem: &str| Response::error(400, problem);
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Response::error(431, format!("a request has at most {MOST_HEADERS} headers")));
            }
            Err(error) => return Err(wrong(&format!("this is no request of HTTP/1.1: {error}"))),
        };
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(wrong("it asks for nothing"));
        };
        let of = |name: &str| {
            let found = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            found.map(|header| String::from_utf8_lossy(header.value).trim().to_string()).collect::<Vec<_>>()
        };
        if !of("transfer-encoding").is_empty() {
            return Err(Response::error(501, "a body is sent with its Content-Length"));
        }
        let length = match &of("content-length")[..] {
            [] => 0,
            // Digits alone: a sign would be taken by others for something else.
            [length] if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().unwrap_or(usize::MAX)
            }
            _ => return Err(wrong("it has one Content-Length, of digits")),
        };
        if length > LONGEST_BODY {
            return Err(Response::error(413, "the body of a request has at most 16 KiB"));
        }
        let host = match &of("host")[..] {
            [] => None,
            [host] => Some(host.clone()),
            _ => return Err(wrong("it has one Host")),
        };
        let path = target.split('?').next().unwrap_or_default();
        let parts = path.strip_prefix('/').ok_or_else(|| wrong("its path begins with '/'"))?.split('/');
        let path = parts.map(unescaped).collect::<Option<Vec<_>>>();
        let path = path.ok_or_else(|| wrong("a percent sign in its path is not followed by two digits of UTF-8"))?;
        Ok(Some((Self { method: method.into(), path, host, body: Vec::new() }, head, length)))
    }
}

/// Reads some more bytes, up to so many in all.
fn more(from: &mut impl Stream, bytes: &mut Vec<u8>, most: usize, until: Instant) -> Result<(), Response> {
    let late = || Response::error(408, "the request was not there in time");
    let left = left(until).ok_or_else(late)?;
    let mut buffer = [0; 4096];
    let room = (most - bytes.len()).min(buffer.len());
    let read = from.limit(left).and_then(|()| from.read(&mut buffer[..room]));
    match read {
        Ok(0) => Err(Response::error(400, "the request ends too soon")),
        Ok(read) => {
            bytes.extend_from_slice(&buffer[..read]);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(_) => Err(late()),
    }
}

/// A part of a path without its percent signs.
fn unescaped(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'%' {
            let digits = behind.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

/// A part of a path as it is sent.
pub fn escaped(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    part.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of bytes that a client sends, in pieces.
    fn read(sent: &[u8], piece: usize) -> Result<Request, u16> {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        let sent = sent.to_vec();
        let sender = std::thread::spawn(move || {
            for piece in sent.chunks(piece) {
                if client.write_all(piece).is_err() {
                    break;
                }
            }
            client
        });
        let read = Request::read(&mut server, Instant::now() + Duration::from_secs(5)).map_err(|answer| answer.status);
        drop(server);
        sender.join().unwrap();
        read
    }

    #[test]
    fn a_request_is_read_in_whatever_pieces_it_comes() {
        let sent =
            b"POST /v1/disks/%2Fdev%2Fsda/pause?x=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbodymore";
        for piece in [1, 7, 1000] {
            let request = read(sent, piece).unwrap();
            let path = ["v1", "disks", "/dev/sda", "pause"].map(String::from).to_vec();
            let host = Some("localhost".into());
            assert_eq!(request, Request { method: "POST".into(), path, host, body: b"body".to_vec() });
        }
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n", 3).unwrap().path, [""]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let head = |more: &str| format!("GET / HTTP/1.1\r\n{more}\r\n").into_bytes();
        let long = head(&format!("A: {}\r\n", "x".repeat(9000)));
        let many = head(&"A: b\r\n".repeat(65));
        for (sent, status) in [
            (b"\x16\x03\x01\x00\xa5\x01\r\n\r\n".to_vec(), 400),
            (b"GET x HTTP/1.1\r\n\r\n".to_vec(), 400),
            (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n".to_vec(), 400),
            (b"GET /%zz HTTP/1.1\r\n\r\n".to_vec(), 400),
            (b"GET /%ff HTTP/1.1\r\n\r\n".to_vec(), 400),
            (head("Content-Length: +4\r\n"), 400),
            (head("Content-Length: 4\r\nContent-Length: 5\r\n"), 400),
            (head("Host: a\r\nHost: b\r\n"), 400),
            (head("Transfer-Encoding: chunked\r\n"), 501),
            (head("Content-Length: 99999\r\n"), 413),
            (head("Content-Length: 99999999999999999999999\r\n"), 413),
            (long, 431),
            (many, 431),
        ] {
            assert_eq!(read(&sent, 4096), Err(status), "{}", String::from_utf8_lossy(&sent[..sent.len().min(60)]));
        }
    }

    #[test]
    fn who_is_slow_is_not_waited_for() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        client.write_all(b"GET / HT").unwrap();
        let began = Instant::now();
        let answer = Request::read(&mut server, began + Duration::from_millis(100)).unwrap_err();
        assert!(answer.status == 408 && began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn names_come_through() {
        for name in ["wwn-0x5000", "/dev/sda", "ä /%?#", ""] {
            assert_eq!(unescaped(&escaped(name)).as_deref(), Some(name));
        }
    }
}
