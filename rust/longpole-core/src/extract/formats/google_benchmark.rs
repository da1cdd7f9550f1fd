//! Google Benchmark's table: a row for each run, with real time, CPU time, iterations, and
//! counters.
//!
//! Means and medians of repetitions are separate operations with their printed names; measures of
//! spread are ignored.

use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::records::Measurement;

pub(super) const FORMAT: Format = Format {
    name: "google-benchmark",
    summary: "Google Benchmark, console",
    anchors: &["CPU   Iterations"],
    reader: || Box::new(Table::default()),
};

static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?-u)^(?P<name>\S.*?) +(?:(?P<time>[^\s]+) (?P<unit>ns|us|ms|s) +(?P<cpu>[^\s]+ (?:ns|us|ms|s)) +(?P<iterations>\d+)(?: +(?P<counters>\S.*))?|(?P<failed>(?:ERROR OCCURRED|SKIPPED): .*))$",
    )
    .ok()
});

/// Whether there was a header.
#[derive(Default)]
struct Table {
    is_open: bool,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii_end();
        if text.starts_with(b"Benchmark ")
            && memchr::memmem::find(text, b"CPU   Iterations").is_some()
        {
            self.is_open = true;
        } else if self.is_open
            && let Some(row) = ROW.as_ref().and_then(|row| row.captures(text))
        {
            read(&row, Line { text, ..line }, found);
        }
        if self.is_open { Interest::EveryLine } else { Interest::Anchors }
    }
}

fn read(row: &Captures<'_>, line: Line<'_>, found: &mut Found) {
    let group = |name: &str| row.name(name).map(|group| group.as_bytes());
    let name = group("name").unwrap_or_default();
    if is_spread(name) {
        return;
    }
    let failed = group("failed");
    let unit = group("unit").and_then(Unit::parse).unwrap_or(Unit::Nanoseconds);
    let measurement = Measurement::new(line, group("time").unwrap_or(b"N/A"), unit);
    let operation = Some(name);
    if found.measured(&Measurement { operation, failed: failed.is_some(), ..measurement }) {
        for field in ["cpu", "iterations", "counters", "failed"] {
            found.optional_field(field.as_bytes(), group(field).unwrap_or_default());
        }
    }
}

/// Whether a row of this name contains a measure of spread or a fit instead of a time.
pub(super) fn is_spread(name: &[u8]) -> bool {
    [&b"_stddev"[..], b"_cv", b"_BigO", b"_RMS"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records};
    use super::*;
    use crate::extract::End;

    const TABLE: &str = "\
2026-01-05T10:00:00+00:00
Running ./bench
Load Average: 1.21, 0.98, 0.77
-----------------------------------------------------------------------------------
Benchmark                         Time             CPU   Iterations UserCounters...
-----------------------------------------------------------------------------------
BM_StringCopy/8                9.52 ns         9.51 ns     73559432 items_per_second=2.1M/s
BM_StringCopy/8_median      1.2e+03 us         1190 us            3
BM_StringCopy/8_stddev         0.01 ns         0.01 ns            3
BM_StringCopy/8_cv             0.12 %          0.12 %             3
BM_StringCopy_BigO             0.25 N          0.25 N
BM_Broken                  ERROR OCCURRED: 'no such file'
BM_Zero                        0.00 ns         0.00 ns            1
";

    #[test]
    fn a_run_is_a_record_and_a_spread_is_none() {
        let found = extract(FORMAT, TABLE, End::Whole);
        assert_eq!(
            records(&found).iter().map(|row| (&row.0[..], row.2)).collect::<Vec<_>>(),
            [
                ("BM_StringCopy/8", "ok"),
                ("BM_StringCopy/8_median", "ok"),
                ("BM_Broken", "failed"),
                ("BM_Zero", "zero"),
            ]
        );
        assert_eq!(found.records.time_ns[..2], [9.52, 1.2e6]);
        assert_eq!(field(&found, 0, "counters").as_deref(), Some("items_per_second=2.1M/s"));
    }
}
