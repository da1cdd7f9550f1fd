//! Autotuning output of Inductor and Triton.

use std::sync::LazyLock;

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::{Line, Place};
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};
use regex::bytes::Regex;

pub(super) const INDUCTOR: Format = Format {
    name: "inductor",
    summary: "torch.compile with max-autotune: AUTOTUNE tables",
    anchors: &["AUTOTUNE "],
    reader: || Box::new(Table::default()),
};

static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?-u)(?P<choice>\S+) (?P<time>[^\s%]+?) ?(?P<unit>ms|us|s) (?P<share>[\d.]+|nan|inf)%(?: +(?P<config>\S.*))?$").ok()
});

/// The open table, if any.
#[derive(Default)]
struct Table {
    problem: Option<Vec<u8>>,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii_end();
        if let Some(problem) = problem(text) {
            self.problem = Some(problem.to_vec());
        } else if let Some(problem) = &self.problem
            && !read(problem, Line { text, ..line }, found)
            && !is_description(text)
        {
            self.problem = None;
        }
        if self.problem.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

/// Returns the problem in a header. A log may add a prefix to each line.
fn problem(text: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(text, b"AUTOTUNE ")?;
    let problem = text[start + b"AUTOTUNE ".len()..].trim_ascii();
    (problem.ends_with(b")") && problem.contains(&b'(')).then_some(problem)
}

/// Adds the choice on a line. Returns whether there is one.
fn read(problem: &[u8], line: Line<'_>, found: &mut Found) -> bool {
    let Some(captures) = ROW.as_ref().and_then(|row| row.captures(line.text)) else {
        return false;
    };
    let group = |name: &str| captures.name(name).map_or(&b""[..], |group| group.as_bytes());
    let Some(unit) = Unit::parse(group("unit")) else {
        found.reject(line.place, line.text, Reason::UnknownUnit);
        return true;
    };
    let operation = [problem, b": ", group("choice")].concat();
    let measurement = Measurement::new(line, group("time"), unit);
    if found.measured(&Measurement { operation: Some(&operation), ..measurement }) {
        found.field(b"problem", problem);
        found.field(b"choice", group("choice"));
        found.optional_field(b"config", group("config"));
    }
    true
}

/// Whether a line is between the header and the choices.
fn is_description(text: &[u8]) -> bool {
    [&b"strides: "[..], b"dtypes: "].iter().any(|word| memchr::memmem::find(text, word).is_some())
}

// Triton's output with `TRITON_PRINT_AUTOTUNING=1`: how long it tuned a function and which
// configuration it chose, on one line or on four.
//
// The time is that of the tuning, not of the kernel, and the operation is named accordingly.

pub(super) const TRITON: Format = Format {
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
    use super::*;
    use crate::extract::End;
    use crate::extract::formats::testing::{extract, field, records, rejections};

    const LOG: &str = "\
Autotune Choices Stats:
{\"num_choices\": 3, \"best_kernel\": \"mm\", \"best_time\": 0.3848}
AUTOTUNE mm(64x32, 32x64)
strides: [32, 1], [64, 1]
dtypes: torch.bfloat16, torch.bfloat16
  mm 0.3848 ms 100.0%\u{20}
  triton_mm_16 0.6288 ms 61.2% ACC_TYPE='tl.float32', BLOCK_K=32, num_warps=4
  triton_mm_3 inf ms 0.0% BLOCK_K=512
  triton_mm_4 0.1.2 ms 61.2% BLOCK_K=512
SingleProcess AUTOTUNE benchmarking takes 0.7160 seconds and 2.7616 seconds precompiling for 20 choices
  not_a_choice 0.1 ms 100.0%
AUTOTUNE addmm(1x32, 1x256, 256x32)
  bias_addmm 0.0276s 100.0%
";

    #[test]
    fn a_choice_is_named_with_its_problem() {
        let found = extract(INDUCTOR, LOG, End::Whole);
        assert_eq!(
            records(&found).iter().map(|row| (&row.0[..], row.2)).collect::<Vec<_>>(),
            [
                ("mm(64x32, 32x64): mm", "ok"),
                ("mm(64x32, 32x64): triton_mm_16", "ok"),
                ("mm(64x32, 32x64): triton_mm_3", "inf"),
                ("addmm(1x32, 1x256, 256x32): bias_addmm", "ok"),
            ]
        );
        assert_eq!(found.records.time_ns[3..], [27_600_000.0]);
        assert_eq!(
            field(&found, 1, "config").as_deref(),
            Some("ACC_TYPE='tl.float32', BLOCK_K=32, num_warps=4")
        );
        assert_eq!(rejections(&found)[0].0, "not_a_number");
    }

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
        let found = extract(TRITON, log, End::Whole);
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
        assert_eq!(rejections(&extract(TRITON, log, End::Whole))[0].0, "missing_time");
    }
}
