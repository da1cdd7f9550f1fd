//! The Markdown output of `NVBench`: a table for each benchmark and device after `# Benchmark
//! Results`, with a row for each combination of axis values. Each cell contains its unit.
//!
//! The time is the mean on the GPU, or on the CPU if nothing ran on a GPU. The columns before the
//! samples identify a row and are part of the operation name.

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "nvbench",
    summary: "NVBench, Markdown",
    anchors: &["# Benchmark Results"],
    reader: || Box::new(Results::default()),
};

/// The columns used as the time, by priority.
const TIMES: [&[u8]; 2] = [b"GPU Time", b"CPU Time"];

/// The state after the start of the results.
#[derive(Default)]
struct Results {
    has_begun: bool,
    benchmark: Vec<u8>,
    device: Vec<u8>,
    columns: Option<Columns>,
}

struct Columns {
    names: Vec<Vec<u8>>,
    n_axes: usize,
    time: usize,
}

impl Reader for Results {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii();
        if text == b"# Benchmark Results" {
            *self = Self { has_begun: true, ..Self::default() };
        } else if self.has_begun {
            self.read(Line { text, ..line }, found);
        }
        if self.has_begun { Interest::EveryLine } else { Interest::Anchors }
    }
}

impl Results {
    fn read(&mut self, line: Line<'_>, found: &mut Found) {
        if let Some(name) = line.text.strip_prefix(b"### ") {
            self.device = name.to_vec();
        } else if let Some(name) = line.text.strip_prefix(b"## ") {
            self.benchmark = name.to_vec();
        } else if line.text.starts_with(b"|") {
            self.row(line, found);
        } else {
            self.columns = None;
        }
    }

    fn row(&mut self, line: Line<'_>, found: &mut Found) {
        let values = cells(line.text);
        let Some(columns) = &self.columns else {
            self.columns = Columns::of(&values);
            return;
        };
        if line.text.starts_with(b"|-") {
            return;
        }
        if values.len() != columns.names.len() || !line.text.ends_with(b"|") {
            return found.reject(line.place, line.text, Reason::WrongColumns);
        }
        self.record(columns, &values, line, found);
    }

    fn record(&self, columns: &Columns, values: &[&[u8]], line: Line<'_>, found: &mut Found) {
        let Some((time, unit)) = time(values[columns.time]) else {
            return found.reject(line.place, line.text, Reason::UnknownUnit);
        };
        let operation = self.operation(columns, values);
        let measurement = Measurement::new(line, time, unit);
        if found.measured(&Measurement { operation: Some(&operation), ..measurement }) {
            found.field(b"statistic", b"mean");
            found.optional_field(b"device", &self.device);
            for (name, value) in columns.names.iter().zip(values) {
                found.optional_field(name, value);
            }
        }
    }

    /// Builds an operation name such as `copy [T=I32 Elements=2^20]`.
    fn operation(&self, columns: &Columns, values: &[&[u8]]) -> Vec<u8> {
        let axes: Vec<_> = columns.names.iter().zip(values).take(columns.n_axes).collect();
        if axes.is_empty() {
            return self.benchmark.clone();
        }
        let axes: Vec<_> =
            axes.iter().map(|(name, value)| [&name[..], b"=", value].concat()).collect();
        [&self.benchmark[..], b" [", &axes.join(&b' '), b"]"].concat()
    }
}

impl Columns {
    fn of(names: &[&[u8]]) -> Option<Self> {
        let place = |wanted: &[u8]| names.iter().position(|name| *name == wanted);
        let time = TIMES.iter().find_map(|name| place(name))?;
        let n_axes = place(b"Samples")?;
        Some(Self { n_axes, time, names: names.iter().map(|name| name.to_vec()).collect() })
    }
}

/// Returns the cells of a row, between the first and the last bar.
fn cells(text: &[u8]) -> Vec<&[u8]> {
    let inner = text.strip_prefix(b"|").unwrap_or(text);
    let inner = inner.strip_suffix(b"|").unwrap_or(inner);
    inner.split(|&byte| byte == b'|').map(<[u8]>::trim_ascii).collect()
}

/// Returns the number and the unit of a cell. A skipped state has none.
fn time(cell: &[u8]) -> Option<(&[u8], Unit)> {
    if cell.is_empty() {
        return Some((b"N/A", Unit::Seconds));
    }
    let blank = cell.iter().position(|&byte| byte == b' ')?;
    Some((&cell[..blank], Unit::parse(cell[blank..].trim_ascii())?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    const RESULTS: &str = "\
| T | Samples | GPU Time |
| before | 1x | 1 us |
# Benchmark Results

## copy

### [0] NVIDIA A30

|  T  | Elements | Samples |  CPU Time  | Noise |  GPU Time  | Noise | GlobalMem BW | Samples | Batch GPU |
|-----|----------|---------|------------|-------|------------|-------|--------------|---------|-----------|
| I32 |   2^20   |   1232x | 120.645 us | 4.12% | 112.431 us | 4.12% | 374.514 GB/s |   1300x | 100.5 us  |
| I32 |   2^21   |         |            |       |            |       |              |         |           |
| I32 |   2^22   |   1232x | 120.645 us | 4.12% |   0.000 us | 4.12% | 374.514 GB/s |   1300x | 100.5 us  |
| I32 |   2^23   |   1232x | 120.645 us | 4.12% |    3 h     | 4.12% | 374.514 GB/s |   1300x | 100.5 us  |
| I32 |   2^24   |   1232x | 120.6

## host

| Samples | CPU Time  | Noise |
|---------|-----------|-------|
|     10x | 1.500 ms  | 0.10% |
";

    #[test]
    fn a_point_of_the_axes_is_an_operation() {
        let found = extract(FORMAT, RESULTS, End::Whole);
        assert_eq!(
            records(&found).iter().map(|row| (&row.0[..], row.2)).collect::<Vec<_>>(),
            [
                ("copy [T=I32 Elements=2^20]", "ok"),
                ("copy [T=I32 Elements=2^21]", "missing"),
                ("copy [T=I32 Elements=2^22]", "zero"),
                ("host", "ok")
            ]
        );
        assert_eq!((found.records.time_ns[0], found.records.time_ns[3]), (112_431.0, 1.5e6));
        let names = ["device", "statistic", "GlobalMem BW", "Batch GPU"];
        let values = ["[0] NVIDIA A30", "mean", "374.514 GB/s", "100.5 us"];
        assert_eq!(names.map(|name| field(&found, 0, name).unwrap()), values);
        let reasons: Vec<_> = rejections(&found).into_iter().map(|row| row.0).collect();
        assert_eq!(reasons, ["unknown_unit", "wrong_columns"]);
    }
}
