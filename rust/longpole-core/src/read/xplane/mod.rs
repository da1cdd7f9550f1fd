//! Reads `xplane.pb`, XProf's own format: planes, their lines, and events on them.
//!
//! The names of events and values come after the events of their plane. The events of one plane are
//! therefore kept as ids (`plane`) until the plane ends, and then become rows. Their kinds are
//! determined as for the trace viewer's JSON, from the names of planes and lines ([`xprof`]).
//!
//! Times in the file are picoseconds. They are rounded to nanoseconds, half to even: the start as
//! the sum of the line's time and the event's offset, and the duration separately, as in the trace
//! viewer's JSON.
//!
//! Limits: byte values (HLO modules) are skipped, and so are events without a time, which count how
//! often something occurred.

mod plane;

use self::plane::Plane;
use self::plane::{EVENTS, HOST_NAMES, LINES, PLANES};
use super::Options;
use super::elements::Elements;
use super::profile::Profile;
use super::protobuf::{Messages, Next, fields, variable};
use super::rows::Rows;
use super::window::Window;
use super::xprof;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::tables::{Header, Tables};

/// Reads a profile into tables.
pub(super) fn read(
    window: Window<'_>,
    diagnostics: Diagnostics,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut messages = Messages::new(Elements::new(window, diagnostics, progress, options.strict));
    let mut rows = Rows::new(options);
    let mut header = Header { format: "xplane", ..Header::default() };
    let mut n_planes = 0_u64;
    let mut devices = Vec::new();
    loop {
        match messages.next()? {
            Next::End | Next::Stop => break,
            Next::Number(..) => {}
            Next::Bytes(PLANES, length) => {
                n_planes += 1;
                messages.enter(length);
                if !plane(&mut messages, &mut rows, &mut devices)? {
                    break;
                }
            }
            Next::Bytes(field, length) => {
                let Some(bytes) = messages.fetch(length)? else { continue };
                if field == HOST_NAMES {
                    let text = String::from_utf8_lossy(&messages.elements.window.text()[..bytes]);
                    let text = serde_json::Value::from(text).to_string();
                    header.fields.push(("hostnames".to_owned(), text));
                }
                messages.elements.window.consume(bytes);
            }
        }
    }
    let bytes = messages.offset();
    if n_planes == 0 {
        return Err(Error::new(ErrorKind::NoEvents, bytes));
    }
    header.fields.push(("profiler".to_owned(), "\"xprof\"".to_owned()));
    if !devices.is_empty() {
        let devices = serde_json::Value::Array(devices).to_string();
        header.fields.push(("deviceProperties".to_owned(), devices));
    }
    header.compression = messages.elements.window.compression();
    let n_unknown = xprof::interpret(Profile {
        strings: &mut rows.tables.strings,
        events: &mut rows.tables.events,
        lanes: &mut rows.tables.lanes,
        args: &mut rows.tables.args,
        metadata: &rows.tables.metadata,
        vocabulary: &options.vocabulary,
    });
    for _ in 0..n_unknown.unwrap_or(0) {
        messages.elements.note(Code::UnknownDeviceLine, 0)?;
    }
    Ok(rows.finish(header, messages.elements.diagnostics, bytes))
}

/// Reads the plane that was entered. Returns false if reading cannot continue after it.
fn plane(
    messages: &mut Messages<'_>,
    rows: &mut Rows<'_>,
    devices: &mut Vec<serde_json::Value>,
) -> Result<bool> {
    let mut plane = Plane::default();
    let is_sound = loop {
        let offset = messages.offset();
        match messages.next()? {
            Next::End => break true,
            Next::Stop => break false,
            Next::Number(..) => {}
            Next::Bytes(LINES, length) => {
                messages.enter(length);
                plane.begin_line();
                if !line(messages, &mut plane, rows)? {
                    break false;
                }
            }
            Next::Bytes(field, length) => {
                let Some(bytes) = messages.fetch(length)? else { continue };
                if plane.bytes(field, &messages.elements.window.text()[..bytes], rows).is_none() {
                    messages.elements.note_skipped(Code::MalformedMessage, offset, length)?;
                }
                messages.elements.window.consume(bytes);
            }
        }
    };
    devices.extend(plane.device(rows));
    for (code, n_times) in plane.finish(rows) {
        for _ in 0..n_times {
            messages.elements.note(code, messages.offset())?;
        }
    }
    Ok(is_sound)
}

/// Reads the line that was entered. Returns false if reading cannot continue after it.
fn line(messages: &mut Messages<'_>, plane: &mut Plane, rows: &mut Rows<'_>) -> Result<bool> {
    loop {
        let offset = messages.offset();
        match messages.next()? {
            Next::End => return Ok(true),
            Next::Stop => return Ok(false),
            Next::Number(field, number) => plane.number_of_line(field, number),
            Next::Bytes(field, length) => {
                let Some(bytes) = messages.fetch(length)? else { continue };
                let text = &messages.elements.window.text()[..bytes];
                let taken = match field {
                    EVENTS => plane.event(text, rows),
                    _ => plane.text_of_line(field, text, rows),
                };
                if taken.is_none() {
                    messages.elements.note_skipped(Code::MalformedMessage, offset, length)?;
                }
                messages.elements.window.consume(bytes);
            }
        }
    }
}

/// Whether a file begins like a profile: with a plane, whose id or name comes first.
pub(super) fn is_xplane(head: &[u8]) -> bool {
    let Some(rest) = head.strip_prefix(b"\x0a") else { return false };
    let Some((length @ 1.., n_bytes)) = variable(rest) else { return false };
    let end = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(n_bytes).min(rest.len());
    let mut name = None;
    // A truncated plane is not an error here.
    let _ = fields(&rest[n_bytes..end], |field, wire| match field {
        plane::ID if wire.bytes().is_none() => Some(()),
        plane::NAME => {
            name = wire.bytes();
            None
        }
        _ => None,
    });
    let is_text =
        |name: &[u8]| std::str::from_utf8(name).is_ok_and(|it| !it.contains(char::is_control));
    name.is_some_and(|name| !name.is_empty() && is_text(name))
}
