//! Google Benchmark's table: a row for each run, with real time, CPU time, iterations, and
//! counters.
//!
//! Means and medians of repetitions are separate operations with their printed names; measures of
//! spread are ignored.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::extract::delimited::{Header, Key};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};
use regex::bytes::{Captures, Regex};

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
fn is_spread(name: &[u8]) -> bool {
    [&b"_stddev"[..], b"_cv", b"_BigO", b"_RMS"].iter().any(|end| name.ends_with(end))
}

// Google Benchmark's `--benchmark_format=csv`. Each row contains its unit.

pub(super) const CSV_FORMAT: Format = Format {
    name: "google-benchmark-csv",
    summary: "Google Benchmark, CSV",
    anchors: &[START],
    reader: || Box::new(CsvTable::default()),
};

const START: &str = "name,iterations,real_time,cpu_time,time_unit";

/// Iterations are integers; a failed run has none.
const ITERATIONS: Key = Key {
    name: "iterations",
    is_row: |values| values.first().is_some_and(|value| value.iter().all(u8::is_ascii_digit)),
};

/// The table after the last header.
#[derive(Default)]
struct CsvTable {
    columns: Option<Columns>,
}

struct Columns {
    header: Header,
    name: usize,
    time: usize,
    unit: usize,
    error: Option<usize>,
}

impl Reader for CsvTable {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        if line.text.starts_with(START.as_bytes()) {
            self.columns = Columns::parse(line.text);
        } else if let Some(columns) = &self.columns {
            columns.read(line, found);
        }
        if self.columns.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

impl Columns {
    fn parse(line: &[u8]) -> Option<Self> {
        let header = Header::parse(line.trim_ascii(), ITERATIONS)?;
        Some(Self {
            name: header.place("name")?,
            time: header.place("real_time")?,
            unit: header.place("time_unit")?,
            error: header.place("error_occurred"),
            header,
        })
    }

    fn read(&self, line: Line<'_>, found: &mut Found) {
        let values = self.header.values(line, found);
        if let Some(values) = values.filter(|values| !is_spread(&values[self.name])) {
            self.record(line, &values, found);
        }
    }

    fn record(&self, line: Line<'_>, values: &[Cow<'_, [u8]>], found: &mut Found) {
        let failed = self.error.is_some_and(|column| *values[column] == *b"true");
        let (time, unit) = match (&*values[self.time], Unit::parse(&values[self.unit])) {
            (b"", _) if failed => (&b"N/A"[..], Unit::Nanoseconds),
            (time, Some(unit)) => (time, unit),
            (_, None) => return found.reject(line.place, line.text, Reason::UnknownUnit),
        };
        let measurement = Measurement::new(line, time, unit);
        let operation = Some(&*values[self.name]);
        if found.measured(&Measurement { operation, failed, ..measurement }) {
            found.fields_but(self.header.names(), values, &[self.name, self.time, self.unit]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records};
    use super::*;
    use crate::extract::End;
    use crate::extract::formats::testing::rejections;

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

    const CSV_TABLE: &str = "\
name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,error_message
\"BM_Copy/8\",73559432,9.52,9.51,ns,,2.1e+06,,,
\"BM_Copy/8_stddev\",3,0.5,0.5,ns,,,,,
\"BM_Broken\",,,,,,,,true,\"no such file\"
\"BM_Copy, long\",3,1.5,1.5,hours,,,,,
\"BM_Zero\",3,0,0,us,,,,,
";

    #[test]
    fn a_run_is_a_record() {
        let found = extract(CSV_FORMAT, CSV_TABLE, End::Whole);
        assert_eq!(
            records(&found).iter().map(|row| (&row.0[..], row.2)).collect::<Vec<_>>(),
            [("BM_Copy/8", "ok"), ("BM_Broken", "failed"), ("BM_Zero", "zero")]
        );
        assert_eq!(found.records.time_ns[..1], [9.52]);
        assert_eq!(field(&found, 0, "items_per_second").as_deref(), Some("2.1e+06"));
        assert_eq!(rejections(&found)[0].0, "unknown_unit");
    }
}
