//! Triton's output with `TRITON_PRINT_AUTOTUNING=1`: how long it tuned a function and which
//! configuration it chose, on one line or on four.
//!
//! The time is that of the tuning, not of the kernel, and the operation is named accordingly.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::{Line, Place};
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "triton",
    summary: "Triton with TRITON_PRINT_AUTOTUNING=1",
    anchors: &[START],
    reader: || Box::new(Message::default()),
};

const START: &str = "Triton autotuning for function ";

/// Maximum number of lines in the message.
const MAX_LINES: usize = 4;

static MESSAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?s-u)^(?P<name>[^\s,]+),?\s(?:with key as (?P<key>.*?),\s)?finished after (?P<time>\S+)s[;,]\s*(?:key info: .*?, )?best config selected: (?P<config>.*?);",
    )
    .ok()
});

/// The open message, if any.
#[derive(Default)]
struct Message {
    text: Vec<u8>,
    place: Option<Place>,
    n_lines: usize,
}

impl Reader for Message {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        if let Some(start) = memchr::memmem::find(line.text, START.as_bytes()) {
            self.end(found);
            *self = Self { text: Vec::new(), place: Some(line.place), n_lines: 0 };
            self.take(Line { text: &line.text[start + START.len()..], ..line }, found);
        } else if self.place.is_some() {
            self.take(line, found);
        }
        if self.place.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }

    fn end(&mut self, found: &mut Found) {
        if let Some(place) = self.place.take() {
            found.reject(place, &self.text, Reason::MissingTime);
        }
    }
}

impl Message {
    fn take(&mut self, line: Line<'_>, found: &mut Found) {
        self.text.extend_from_slice(line.text);
        self.text.push(b'\n');
        self.n_lines += 1;
        if self.read(line, found) {
            self.place = None;
        } else if self.n_lines == MAX_LINES {
            self.end(found);
        }
    }

    fn read(&self, line: Line<'_>, found: &mut Found) -> bool {
        let Some(place) = self.place else { return false };
        let Some(captures) = MESSAGE.as_ref().and_then(|it| it.captures(&self.text)) else {
            return false;
        };
        let group = |name: &str| captures.name(name).map_or(&b""[..], |group| group.as_bytes());
        let operation = [b"autotuning of ", group("name")].concat();
        let place = Place { ending: line.place.ending, ..place };
        let measurement =
            Measurement::new(Line { text: &self.text, place }, group("time"), Unit::Seconds);
        if found.measured(&Measurement { operation: Some(&operation), ..measurement }) {
            found.optional_field(b"key", group("key"));
            found.field(b"config", group("config"));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    #[test]
    fn a_message_stands_on_one_line_or_on_four() {
        let log = "\
Triton autotuning for function matmul_kernel finished after 3.97s; best config selected: BLOCK_N: 64, num_warps: 4;
Autotuning kernel softmax with config BLOCK: 64
Triton autotuning for function softmax,
with key as (4096, 'torch.float16'),
finished after 0.41s,
best config selected: BLOCK: 128, num_warps: 8;
";
        let found = extract(FORMAT, log, End::Whole);
        assert_eq!(
            records(&found),
            [
                ("autotuning of matmul_kernel".into(), 3.97e9, "ok"),
                ("autotuning of softmax".into(), 4.1e8, "ok")
            ]
        );
        assert_eq!(field(&found, 1, "key").as_deref(), Some("(4096, 'torch.float16')"));
        assert_eq!(field(&found, 1, "config").as_deref(), Some("BLOCK: 128, num_warps: 8"));
    }

    #[test]
    fn a_message_that_does_not_end_is_none() {
        let log = "Triton autotuning for function f,\nwith key as (1),\nnoise\nfinished\nlater\n";
        assert_eq!(rejections(&extract(FORMAT, log, End::Whole))[0].0, "missing_time");
    }
}
