//! AITemplate's profilers: `OP:name,TIME:milliseconds,WS:bytes` on a separate line, or several of
//! these on one line, with a blank, comma or semicolon between them.
//!
//! The older profilers (norms, top-k and others) print two lines without a name, `TIME:` and then
//! `WS:`. The time is the sum of all timed iterations, as printed.

use memchr::{memchr_iter, memmem};

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::{Ending, Line, Place};
use crate::extract::numbers::{self, BadBytes, Unit};
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "aitemplate",
    summary: "AITemplate profilers: OP:..,TIME:..,WS:..",
    anchors: &["TIME:", "WS:"],
    reader: || Box::new(Lines::default()),
};

/// The time of the two-line form, until its workspace line follows.
#[derive(Default)]
struct Lines {
    waiting: Option<Waiting>,
}

struct Waiting {
    time: Vec<u8>,
    place: Place,
}

impl Reader for Lines {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let mut text = line.text.trim_ascii();
        while let Some((row, rest)) = first_of_several(text) {
            let place = Place { ending: Ending::Newline, ..line.place };
            self.row(Line { text: row, place }, found);
            text = rest;
        }
        self.row(Line { text, ..line }, found);
        Interest::Anchors
    }

    fn end(&mut self, found: &mut Found) {
        if let Some(Waiting { time, place }) = self.waiting.take() {
            let line = Line { text: &time, place };
            found.measured(&Measurement::new(line, &time, Unit::Milliseconds));
        }
    }
}

impl Lines {
    /// Reads a line with at most one row.
    fn row(&mut self, line: Line<'_>, found: &mut Found) {
        let text = line.text;
        if let Some(row) = find_row(text, line.place) {
            self.end(found);
            match row.and_then(|row| row.measurement(line)) {
                Ok(measurement) => _ = found.measured(&measurement),
                Err(reason) => found.reject(line.place, text, reason),
            }
        } else if let Some(time) = text.strip_prefix(b"TIME:") {
            self.end(found);
            self.time(time.trim_ascii(), line, found);
        } else if let Some(workspace) = text.strip_prefix(b"WS:") {
            self.workspace(workspace.trim_ascii(), line, found);
        }
    }

    /// Reads a line that begins with `TIME:` and may also contain the workspace.
    fn time(&mut self, time: &[u8], line: Line<'_>, found: &mut Found) {
        match split_at(time, b"WS:").or_else(|| split_at_blank(time, b"WS:")) {
            Some((time, workspace)) => read_pair(line, time, workspace, found),
            None => self.waiting = Some(Waiting { time: time.to_vec(), place: line.place }),
        }
    }

    /// Reads a line that begins with `WS:`. It is ignored without a time before it.
    fn workspace(&mut self, workspace: &[u8], line: Line<'_>, found: &mut Found) {
        if let Some(Waiting { time, place }) = self.waiting.take() {
            // The pair is complete only if both of its lines are.
            let place = Place { ending: line.place.ending, ..place };
            read_pair(Line { place, ..line }, &time, workspace, found);
        }
    }
}

/// Returns the first of several rows on a line, and the rest, if the row is complete and another
/// one follows. A row that follows without a separator is not split off: the number before it may
/// have been cut.
fn first_of_several(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if !text.starts_with(b"OP:") {
        return None;
    }
    memmem::find_iter(text, b"WS:").find_map(|at| {
        let values = text[at + 3..].trim_ascii_start();
        let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
        let after = &values[values.iter().take_while(|&byte| is_digit(byte)).count()..];
        let is_separator = |byte: &u8| byte.is_ascii_whitespace() || b",;".contains(byte);
        let n_separators = after.iter().take_while(|&byte| is_separator(byte)).count();
        let rest = &after[n_separators..];
        let is_split = n_separators > 0 && rest.starts_with(b"OP:");
        is_split.then(|| (&text[..text.len() - after.len()], rest))
    })
}

/// The parts of a named row.
struct Row<'a> {
    operation: &'a [u8],
    time: &'a [u8],
    workspace: &'a [u8],
}

/// Returns the row on a line that looks like one, or the reason why it is invalid.
fn find_row(text: &[u8], place: Place) -> Option<Result<Row<'_>, Reason>> {
    let start = if text.starts_with(b"OP:") { 0 } else { memmem::find(text, b"OP:")? };
    match split_at(&text[start + 3..], b"TIME:") {
        Some(_) if start > 0 => Some(Err(Reason::ExtraText)),
        Some((operation, values)) => Some(split_values(operation, values)),
        // The row may have been truncated before its time.
        None if start == 0 && place.ending != Ending::Newline => Some(Err(Reason::MissingTime)),
        None => None,
    }
}

fn split_values<'a>(operation: &'a [u8], values: &'a [u8]) -> Result<Row<'a>, Reason> {
    let (time, workspace) = split_at(values, b"WS:").ok_or(Reason::MissingWorkspace)?;
    Ok(Row { operation, time, workspace })
}

impl<'a> Row<'a> {
    fn measurement(&self, line: Line<'a>) -> Result<Measurement<'a>, Reason> {
        let workspace_bytes = parse_workspace(self.workspace)?;
        let measurement = Measurement::new(line, self.time, Unit::Milliseconds);
        Ok(Measurement { operation: Some(self.operation), workspace_bytes, ..measurement })
    }
}

fn read_pair(line: Line<'_>, time: &[u8], workspace: &[u8], found: &mut Found) {
    match parse_workspace(workspace) {
        Ok(workspace_bytes) => {
            let measurement = Measurement::new(line, time, Unit::Milliseconds);
            found.measured(&Measurement { workspace_bytes, ..measurement });
        }
        Err(reason) => found.reject(line.place, line.text, reason),
    }
}

fn parse_workspace(text: &[u8]) -> Result<Option<i64>, Reason> {
    numbers::bytes(text).map_err(|error| match error {
        BadBytes::NotANumber if text.iter().any(|byte| !is_in_number(*byte)) => Reason::ExtraText,
        BadBytes::NotANumber => Reason::BadWorkspace,
        BadBytes::OutOfRange => Reason::OutOfRange,
    })
}

fn is_in_number(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.".contains(&byte)
}

/// Returns the text before the comma in front of `name`, and the text after `name`, without
/// surrounding spaces. The name of an operation may contain commas.
fn split_at<'a>(text: &'a [u8], name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    memchr_iter(b',', text).find_map(|comma| {
        let behind = text[comma + 1..].trim_ascii_start().strip_prefix(name)?;
        Some((text[..comma].trim_ascii(), behind.trim_ascii()))
    })
}

/// Like [`split_at`], with spaces instead of the comma.
fn split_at_blank<'a>(text: &'a [u8], name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let blank = text.iter().position(u8::is_ascii_whitespace)?;
    let behind = text[blank..].trim_ascii_start().strip_prefix(name)?;
    Some((&text[..blank], behind.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, records, rejections};
    use super::*;
    use crate::extract::{End, Extraction};
    use crate::names::Names;

    fn whole(text: &str) -> Extraction {
        extract(FORMAT, text, End::Whole)
    }

    fn only(text: &str) -> (String, f64, &'static str, i64) {
        let found = whole(text);
        let [(operation, time_ns, status)] = &records(&found)[..] else {
            panic!("{text:?}: {found:?}")
        };
        (operation.clone(), *time_ns, status, found.records.workspace_bytes[0])
    }

    fn reason(text: &str) -> &'static str {
        let found = whole(text);
        assert_eq!((found.records.len(), found.rejections.total()), (0, 1), "{text:?}");
        found.rejections.reason[0].name()
    }

    #[test]
    fn a_row_is_read_exactly() {
        let row = "OP:cutlass_h16816gemm_64x64_tn,TIME:0.0123,WS:1048576\n";
        assert_eq!(only(row), ("cutlass_h16816gemm_64x64_tn".into(), 12_300.0, "ok", 1_048_576));
        assert_eq!(only("OP:a,TIME:9.5e-05,WS:0\n"), ("a".into(), 95.0, "ok", 0));
        assert_eq!(only("OP:a,TIME:1.23457e+06,WS:0\r\n"), ("a".into(), 1.234_57e12, "ok", 0));
    }

    #[test]
    fn a_name_may_hold_anything() {
        for name in ["gemm-v2.1", "cutlass::gemm<128,64>", "a, b", ""] {
            assert_eq!(only(&format!("OP:{name}, TIME:1.5, WS:0\n")).0, name);
        }
    }

    #[test]
    fn a_time_that_is_none_wins_nothing() {
        let found =
            whole("OP:a,TIME:0,WS:0\nOP:b,TIME:-1,WS:0\nOP:c,TIME:inf,WS:0\nOP:d,TIME:nan,WS:0\n");
        let statuses: Vec<_> = found.records.status.iter().map(|status| status.name()).collect();
        assert_eq!(statuses, ["zero", "negative", "inf", "nan"]);
        assert!(!found.records.status.iter().any(|status| status.is_selectable()));
    }

    #[test]
    fn a_bad_row_costs_itself_only() {
        let found = whole("OP:a,TIME:1.2.3,WS:0\nOP:b,TIME:3.0,WS:0\n");
        assert_eq!(records(&found), [("b".into(), 3e6, "ok")]);
        assert_eq!(rejections(&found), [("not_a_number", "OP:a,TIME:1.2.3,WS:0".into())]);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(reason("OP:a,TIME:1,5,WS:0\n"), "not_a_number");
        assert_eq!(reason("TIME:1,5\nWS:4\n"), "not_a_number");
        assert_eq!(reason("OP:a,TIME:1.5,WS:12.5KB\n"), "extra_text");
        assert_eq!(reason("OP:a,TIME:1.5,WS:1.5\n"), "bad_workspace");
        assert_eq!(reason("OP:a,TIME:1.5,WS:18446744073709551616\n"), "out_of_range");
        assert_eq!(reason("OP:a,TIME:1.5,W\n"), "missing_workspace");
        assert_eq!(reason("fooOP:a,TIME:1.5,WS:0\n"), "extra_text");
        assert_eq!(reason("OP:a,TIME:1.5,WS:0OP:b,TIME:1.5,WS:0\n"), "extra_text");
    }

    #[test]
    fn several_rows_may_stand_on_one_line() {
        let found = whole("OP:a,TIME:1.5,WS:0 OP:b, TIME:2,WS:1, OP:c,TIME:0.5,WS:7\n");
        let rows = [("a", 1.5e6), ("b", 2e6), ("c", 5e5)];
        assert_eq!(records(&found), rows.map(|(name, ns)| (name.into(), ns, "ok")));
        assert_eq!(found.records.workspace_bytes, [0, 1, 7]);
        let died = extract(FORMAT, "OP:a,TIME:1.5,WS:0 OP:b,TIME:2,WS:1", End::Died);
        let statuses: Vec<_> = died.records.status.iter().map(|status| status.name()).collect();
        assert_eq!(statuses, ["ok", "cut"]);
    }

    #[test]
    fn a_negative_workspace_is_unknown() {
        assert_eq!(only("OP:a,TIME:1.5,WS:-1\n").3, crate::extract::UNKNOWN_BYTES);
    }

    #[test]
    fn time_and_workspace_may_stand_on_two_lines() {
        assert_eq!(only("TIME:1.5\nWS:4\n"), (String::new(), 1.5e6, "ok", 4));
        assert_eq!(only("BUILDTIME:7\nTIME:1.5\nnoise\nWS:4\n"), (String::new(), 1.5e6, "ok", 4));
        assert_eq!(only("TIME:1.5\n").3, crate::extract::UNKNOWN_BYTES);
    }

    #[test]
    fn the_last_line_of_a_dead_process_is_suspect() {
        let died = extract(FORMAT, "OP:a,TIME:1.25,WS:0\nOP:b,TIME:0.7,WS:10", End::Died);
        assert_eq!(records(&died), [("a".into(), 1.25e6, "ok"), ("b".into(), 7e5, "cut")]);
        assert_eq!(records(&extract(FORMAT, "TIME:1.5\nWS:10", End::Died))[0].2, "cut");
        assert_eq!(only("OP:b,TIME:0.7,WS:10").2, "ok");
        for row in ["OP:b,TIME:0.7,W", "OP:b,TIME:0.7", "OP:b,T", "OP:b"] {
            assert_eq!(reason(row), "truncated", "{row}");
        }
    }
}
