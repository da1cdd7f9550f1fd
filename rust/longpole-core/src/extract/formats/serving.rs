//! The block that the serving benchmarks of vLLM and `SGLang` print: `Key (unit):  value` after
//! `Serving Benchmark Result` or `Offline Throughput Benchmark Result`. Each mean, median and
//! percentile of a latency is a record. The duration is also a record, with counts and throughputs
//! as its fields.

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::pattern::built_in;
use crate::extract::records::Measurement;

pub(super) const FORMAT: Format = Format {
    name: "serving",
    summary: "vLLM's and SGLang's serving benchmarks, text",
    anchors: &[START],
    reader: || Box::new(Block::default()),
};

const START: &str = "Benchmark Result ==";

/// Maximum number of lines in a block.
const MAX_LINES: usize = 128;

/// The open block, if any.
#[derive(Default)]
struct Block {
    n_lines_left: usize,
    /// Values printed before the duration, to which they belong.
    before: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether the last record is the duration.
    is_described: bool,
    has_failed: bool,
}

impl Reader for Block {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii();
        if memchr::memmem::find(text, START.as_bytes()).is_some() {
            *self = Self { n_lines_left: MAX_LINES, ..Self::default() };
        } else if text.starts_with(b"======") {
            self.n_lines_left = 0;
        } else if self.n_lines_left > 0 {
            self.n_lines_left -= 1;
            self.read(Line { text, ..line }, found);
        }
        if self.n_lines_left > 0 { Interest::EveryLine } else { Interest::Anchors }
    }
}

impl Block {
    fn read(&mut self, line: Line<'_>, found: &mut Found) {
        let Some((name, unit, value)) = split(line.text) else { return };
        if name == b"Successful requests" && value == b"0" {
            self.has_failed = true;
        }
        match Unit::parse(unit) {
            Some(_) if name.starts_with(b"Std ") => {}
            Some(unit) => self.record(name, value, unit, line, found),
            None if self.is_described => found.field(name, value),
            None => self.before.push((name.to_vec(), value.to_vec())),
        }
    }

    fn record(&mut self, name: &[u8], value: &[u8], unit: Unit, line: Line<'_>, found: &mut Found) {
        let measurement = Measurement::new(line, value, unit);
        let (operation, failed) = (Some(name), self.has_failed);
        self.is_described = found.measured(&Measurement { operation, failed, ..measurement })
            && name == b"Benchmark duration";
        if self.is_described {
            self.before.drain(..).for_each(|(name, value)| found.field(&name, &value));
        }
    }
}

/// Returns name, unit and value of `Mean TTFT (ms):   95.50`. Text after the value is ignored.
fn split(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let colon = memchr::memchr(b':', text)?;
    let value = text[colon + 1..].split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    let (name, unit) = match text[..colon].strip_suffix(b")") {
        Some(name) => {
            let open = memchr::memrchr(b'(', name)?;
            (name[..open].trim_ascii(), &name[open + 1..])
        }
        None => (&text[..colon], &b""[..]),
    };
    Some((name, unit, value))
}

// Latencies of a batch, one line each: `vllm bench latency`, and `bench_one_batch` of `SGLang`,
// which adds the throughput. Times are seconds; operations have the printed names.

pub(super) const LATENCY_FORMAT: Format = Format {
    name: "serving-latency",
    summary: "vllm bench latency and SGLang's bench_one_batch, text",
    anchors: &["latency: "],
    reader: || built_in(PATTERN),
};

const PATTERN: &str = r"^(?P<operation>Avg latency|\d+% percentile latency|(?:Prefill|Decode \d+|Decode|Total)\.(?: +Batch size: \d+,)? +(?:median )?latency): +(?P<time_s>\S+) (?:seconds|s, (?:median )?throughput: +(?P<throughput>\S+) token/s)\s*$";

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    const BLOCK: &str = "\
Mean TTFT (ms):                          1.0
============ Serving Benchmark Result ============
Backend:                                 sglang
Successful requests:                     500       \n\
Benchmark duration (s):                  277.20    \n\
Total generated tokens (retokenized):    119503    \n\
Output token throughput (tok/s):         431.10    \n\
---------------Time to First Token----------------
Mean TTFT (ms):                          95.50     \n\
Median TTFT (ms):                        69.14     \n\
Std TTFT (ms):                           9.14     \n\
P99 TTFT (ms):                           nan
-----Time per Output Token (excl. 1st token)------
Median TPOT (ms):                        fast
==================================================
Median ITL (ms):                         1.0
";

    #[test]
    fn latencies_are_records_and_throughputs_describe_the_run() {
        let found = extract(FORMAT, BLOCK, End::Whole);
        assert_eq!(
            records(&found)[..3],
            [
                ("Benchmark duration".into(), 277.2e9, "ok"),
                ("Mean TTFT".into(), 95.5e6, "ok"),
                ("Median TTFT".into(), 69.14e6, "ok"),
            ]
        );
        assert_eq!((records(&found)[3].2, found.records.len()), ("nan", 4));
        assert_eq!(rejections(&found)[0].0, "not_a_number");
        let names = ["Backend", "Successful requests", "Output token throughput"];
        let values = ["sglang", "500", "431.10"];
        assert_eq!(names.map(|name| field(&found, 0, name).unwrap()), values);
    }

    #[test]
    fn a_run_without_an_answered_request_failed() {
        let found = extract(FORMAT, &BLOCK.replace(" 500 ", " 0 "), End::Whole);
        assert_eq!(records(&found).iter().filter(|row| row.2 == "ok").count(), 0);
    }

    const LOG: &str = "\
Avg latency: 1.0815 seconds
50% percentile latency: 1.08 seconds
Prefill. latency: 0.04937 s, throughput:  20742.54 token/s
Decode 0. Batch size: 1, latency: 0.00500 s, throughput:    200.00 token/s
Decode.  median latency: 0.00000 s, median throughput:    200.00 token/s
network latency: 5 seconds
";

    #[test]
    fn a_latency_is_named_as_it_is_printed() {
        let found = extract(LATENCY_FORMAT, LOG, End::Whole);
        assert_eq!(
            records(&found),
            [
                ("Avg latency".into(), 1_081_500_000.0, "ok"),
                ("50% percentile latency".into(), 1_080_000_000.0, "ok"),
                ("Prefill. latency".into(), 49_370_000.0, "ok"),
                ("Decode 0. Batch size: 1, latency".into(), 5_000_000.0, "ok"),
                ("Decode.  median latency".into(), 0.0, "zero"),
            ]
        );
        assert_eq!(field(&found, 2, "throughput").as_deref(), Some("20742.54"));
    }
}
