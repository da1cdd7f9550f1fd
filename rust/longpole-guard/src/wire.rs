//! The messages between the runner and the guard.
//!
//! Both directions are a sequence of frames: one byte for the type, the length of the body as a
//! little-endian `u32`, and the body. Fields in a body end with a NUL byte, which neither arguments
//! nor environment variables can contain, so no escaping is needed.
//!
//! | to the guard | body |
//! |---|---|
//! | `r` run | number, limit (ms, empty for none), grace (ms), drain (ms), folder (may be empty), count of arguments, arguments, `NAME=value` for each variable |
//! | `c` cancel | number |
//!
//! | from the guard | body |
//! |---|---|
//! | `s` started | process number |
//! | `o`, `e` output | bytes of standard output, of standard error |
//! | `f` failed to start | number of the system's error, its text |
//! | `x` ended | `name=value` fields of [`Report`] |

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use crate::tree::Process;

/// The type of a frame to the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    /// The job runs.
    Started = b's',
    /// Bytes of the job's standard output.
    Output = b'o',
    /// Bytes of the job's standard error.
    ErrorOutput = b'e',
    /// The system could not start it.
    Failed = b'f',
    /// It has ended, and no process of it is left.
    Ended = b'x',
}

/// A request of the runner.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Run a job. The runner requests the next one when this one has ended.
    Run(Order),
    /// End the job with this number, if it still runs.
    Cancel(u64),
}

/// One job to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// Chosen by the runner, to detect a cancel that arrives too late.
    pub number: u64,
    /// Time limit.
    pub limit: Option<Duration>,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Time for remaining processes to print after the job has ended.
    pub drain: Duration,
    /// The folder to start in; by default that of the guard.
    pub folder: Option<OsString>,
    /// The program and its arguments.
    pub arguments: Vec<OsString>,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// How a job ended.
#[derive(Debug, Default)]
pub struct Report {
    /// Its exit status, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The reason why it was stopped, if it was: `limit` or `cancel`.
    pub stopped: Option<&'static str>,
    /// Whether SIGKILL was needed.
    pub forced: bool,
    /// Time from the start to the end of the job's own process.
    pub wall: Duration,
    /// Processes that were alive when the job had ended by itself; they were then killed.
    pub strays: Vec<Process>,
    /// Processes that SIGKILL did not end.
    pub unkillable: Vec<Process>,
}

/// Requests as they arrive, in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

const HEADER_BYTES: usize = 5;

impl Inbox {
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete request.
    pub(crate) fn next(&mut self) -> io::Result<Option<Request>> {
        let Some((&[kind, a, b, c, d], rest)) = self.bytes.split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if rest.len() < length {
            return Ok(None);
        }
        let request = parse(kind, &rest[..length]).ok_or_else(malformed)?;
        self.bytes.drain(..HEADER_BYTES + length);
        Ok(Some(request))
    }
}

/// Begins a frame at the end of `bytes`; its body follows.
pub(crate) fn begin_frame(bytes: &mut Vec<u8>, event: Event) {
    bytes.extend_from_slice(&[event as u8, 0, 0, 0, 0]);
}

/// Writes the length of the frame that begins at `start` and ends with `bytes`.
pub(crate) fn end_frame(bytes: &mut [u8], start: usize) {
    let body = bytes.len() - start - HEADER_BYTES;
    let length = u32::try_from(body).expect("frames are cut well below 4 GiB");
    bytes[start + 1..start + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
}

impl Report {
    /// Returns the body of the last frame of a job.
    pub(crate) fn to_body(&self) -> Vec<u8> {
        let mut fields = vec![format!("wall_ns={}", self.wall.as_nanos())];
        fields.extend(self.exit_code.map(|code| format!("exit_code={code}")));
        fields.extend(self.signal.map(|number| format!("signal={number}")));
        fields.extend(self.stopped.map(|why| format!("stopped={why}")));
        fields.extend(self.forced.then(|| "forced=1".to_owned()));
        fields.extend(self.strays.iter().map(|process| format!("stray={process}")));
        fields.extend(self.unkillable.iter().map(|process| format!("unkillable={process}")));
        (fields.join("\0") + "\0").into_bytes()
    }
}

fn parse(kind: u8, body: &[u8]) -> Option<Request> {
    let mut fields = body.strip_suffix(b"\0")?.split(|&byte| byte == 0);
    match kind {
        b'r' => parse_order(&mut fields).map(Request::Run),
        b'c' => number(fields.next()?).map(Request::Cancel),
        _ => None,
    }
}

fn parse_order<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<Order> {
    Some(Order {
        number: number(fields.next()?)?,
        limit: match fields.next()? {
            b"" => None,
            field => Some(milliseconds(field)?),
        },
        grace: milliseconds(fields.next()?)?,
        drain: milliseconds(fields.next()?)?,
        folder: Some(fields.next()?).filter(|field| !field.is_empty()).map(text),
        arguments: {
            let count = usize::try_from(number(fields.next()?)?).ok()?;
            let arguments: Vec<_> = fields.take(count).map(text).collect();
            (arguments.len() == count && count > 0).then_some(arguments)?
        },
        environment: fields.map(variable).collect::<Option<_>>()?,
    })
}

fn variable(field: &[u8]) -> Option<(OsString, OsString)> {
    let middle = field.iter().position(|&byte| byte == b'=')?;
    Some((text(&field[..middle]), text(&field[middle + 1..])))
}

fn text(field: &[u8]) -> OsString {
    OsString::from_vec(field.to_vec())
}

fn milliseconds(field: &[u8]) -> Option<Duration> {
    number(field).map(Duration::from_millis)
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the runner sent a request that is none")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, fields: &[&str]) -> Vec<u8> {
        let body: Vec<u8> = fields.iter().flat_map(|field| field.bytes().chain([0])).collect();
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        [&[kind][..], &length, &body].concat()
    }

    #[test]
    fn a_request_that_comes_byte_by_byte_is_the_same_request() {
        let bytes = frame(b'r', &["7", "2000", "500", "300", "", "2", "prog", "", "A=b=c"]);
        let mut inbox = Inbox::default();
        for byte in &bytes[..bytes.len() - 1] {
            inbox.extend(&[*byte]);
            assert_eq!(inbox.next().unwrap(), None);
        }
        inbox.extend(&bytes[bytes.len() - 1..]);

        let Some(Request::Run(order)) = inbox.next().unwrap() else { panic!("no order") };
        assert_eq!(order.limit, Some(Duration::from_secs(2)));
        assert_eq!(order.arguments, ["prog", ""]);
        assert_eq!(order.environment, [("A".into(), "b=c".into())]);
        assert_eq!(inbox.next().unwrap(), None);
    }

    #[test]
    fn an_order_may_have_no_limit() {
        let mut inbox = Inbox::default();
        inbox.extend(&frame(b'r', &["7", "", "500", "300", "/", "1", "prog"]));
        let Some(Request::Run(order)) = inbox.next().unwrap() else { panic!("no order") };
        assert_eq!((order.limit, order.folder), (None, Some("/".into())));
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        for frame in [frame(b'?', &["7"]), frame(b'r', &["7", "", "5", "3", "", "9", "prog"])] {
            let mut inbox = Inbox::default();
            inbox.extend(&frame);
            assert!(inbox.next().is_err());
        }
    }
}
