//! Google Benchmark's `--benchmark_format=csv`. Each row contains its unit.

use std::borrow::Cow;

use super::google_benchmark::is_spread;
use crate::extract::delimited::{Header, Key};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "google-benchmark-csv",
    summary: "Google Benchmark, CSV",
    anchors: &[START],
    reader: || Box::new(Table::default()),
};

const START: &str = "name,iterations,real_time,cpu_time,time_unit";

/// Iterations are integers; a failed run has none.
const ITERATIONS: Key = Key {
    name: "iterations",
    is_row: |values| values.first().is_some_and(|value| value.iter().all(u8::is_ascii_digit)),
};

/// The table after the last header.
#[derive(Default)]
struct Table {
    columns: Option<Columns>,
}

struct Columns {
    header: Header,
    name: usize,
    time: usize,
    unit: usize,
    error: Option<usize>,
}

impl Reader for Table {
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
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    const TABLE: &str = "\
name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,error_message
\"BM_Copy/8\",73559432,9.52,9.51,ns,,2.1e+06,,,
\"BM_Copy/8_stddev\",3,0.5,0.5,ns,,,,,
\"BM_Broken\",,,,,,,,true,\"no such file\"
\"BM_Copy, long\",3,1.5,1.5,hours,,,,,
\"BM_Zero\",3,0,0,us,,,,,
";

    #[test]
    fn a_run_is_a_record() {
        let found = extract(FORMAT, TABLE, End::Whole);
        assert_eq!(
            records(&found).iter().map(|row| (&row.0[..], row.2)).collect::<Vec<_>>(),
            [("BM_Copy/8", "ok"), ("BM_Broken", "failed"), ("BM_Zero", "zero")]
        );
        assert_eq!(found.records.time_ns[..1], [9.52]);
        assert_eq!(field(&found, 0, "items_per_second").as_deref(), Some("2.1e+06"));
        assert_eq!(rejections(&found)[0].0, "unknown_unit");
    }
}
