//! Nsight Compute's `--csv`: a row for each metric of each launch or, with `--page raw`, a row for
//! each launch and the units on a separate line.
//!
//! The duration has its own unit. Numbers use the locale of the user, such as `1,215.5`,
//! `27.595.520` and `65,77`. The decimal separator is determined from unambiguous values of the
//! same launch or an earlier one. Rows with advice have no metric and are ignored.

use std::borrow::Cow;

use memchr::memchr_iter;

use crate::extract::delimited::{Header, Key, fields};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::{Line, Place};
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "ncu",
    summary: "Nsight Compute, --csv",
    anchors: &["\"ID\",\""],
    reader: || Box::new(Table::default()),
};

/// Launches are numbered.
const ID: Key = Key {
    name: "ID",
    is_row: |values| {
        values.first().is_some_and(|id| !id.is_empty() && id.iter().all(u8::is_ascii_digit))
    },
};

/// The metrics used as the time of a launch, by priority.
const TIMES: [&str; 3] = ["Duration", "gpu__time_duration.sum", "gpu__time_duration.avg"];

/// Columns of every row that describe the launch.
const DESCRIPTIONS: [&str; 7] =
    ["Process ID", "Process Name", "Context", "Stream", "Block Size", "Grid Size", "Device"];

/// The table after the last header.
#[derive(Default)]
struct Table {
    columns: Option<Columns>,
    launch: Option<Launch>,
    has_decimal_comma: bool,
}

struct Columns {
    header: Header,
    kernel: usize,
    shape: Shape,
}

enum Shape {
    /// One row for each metric.
    Long { name: usize, unit: usize, value: usize },
    /// One row for each launch; the units come first.
    Wide { units: Vec<Vec<u8>> },
}

/// The values of a launch so far.
struct Launch {
    id: Vec<u8>,
    kernel: Vec<u8>,
    place: Place,
    metrics: Vec<Metric>,
    descriptions: Vec<(&'static str, Vec<u8>)>,
}

struct Metric {
    name: Vec<u8>,
    unit: Vec<u8>,
    value: Vec<u8>,
    place: Place,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii();
        if text.starts_with(b"\"ID\",\"") {
            self.end(found);
            self.columns = Columns::parse(text);
        } else if text.starts_with(b"\"") && self.columns.is_some() {
            self.row(Line { text, ..line }, found);
        }
        if self.columns.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }

    fn end(&mut self, found: &mut Found) {
        if let Some(launch) = self.launch.take() {
            launch.close(self.has_decimal_comma, found);
        }
    }
}

impl Table {
    fn row(&mut self, line: Line<'_>, found: &mut Found) {
        if !memchr_iter(b'"', line.text).count().is_multiple_of(2) {
            return found.reject(line.place, line.text, Reason::WrongColumns);
        }
        let values: Vec<_> = fields(line.text).collect();
        let Some(columns) = &mut self.columns else { return };
        let id = &values[0];
        if columns.take_units(&values) || !(ID.is_row)(&values) {
            return;
        }
        if self.launch.as_ref().is_none_or(|launch| launch.id != **id) {
            let next = columns.launch(&values, line.place);
            self.end(found);
            self.launch = Some(next);
        }
        self.metrics(&values, line.place);
    }

    /// Copies the metrics of a row to the launch.
    fn metrics(&mut self, values: &[Cow<'_, [u8]>], place: Place) {
        let (Some(columns), Some(launch)) = (&self.columns, &mut self.launch) else { return };
        for metric in columns.metrics(values, place) {
            if let Some(comma) = tells_decimal_comma(&metric.value) {
                self.has_decimal_comma = comma;
            }
            launch.metrics.push(metric);
        }
    }
}

impl Columns {
    fn parse(line: &[u8]) -> Option<Self> {
        let header = Header::parse(line, ID)?;
        let kernel = header.place("Kernel Name")?;
        let long = [
            header.place("Metric Name"),
            header.place("Metric Unit"),
            header.place("Metric Value"),
        ];
        let shape = match long {
            [Some(name), Some(unit), Some(value)] => Shape::Long { name, unit, value },
            _ => Shape::Wide { units: Vec::new() },
        };
        Some(Self { header, kernel, shape })
    }

    /// Reads the line of units after a wide header. Its first field is empty.
    fn take_units(&mut self, values: &[Cow<'_, [u8]>]) -> bool {
        match &mut self.shape {
            Shape::Wide { units } if values[0].is_empty() => {
                *units = values.iter().map(|unit| unit.to_vec()).collect();
                true
            }
            _ => false,
        }
    }

    fn launch(&self, values: &[Cow<'_, [u8]>], place: Place) -> Launch {
        let value =
            |column: usize| values.get(column).map_or_else(Vec::new, |value| value.to_vec());
        let descriptions =
            DESCRIPTIONS.iter().filter_map(|name| Some((*name, value(self.header.place(name)?))));
        Launch {
            id: value(0),
            kernel: value(self.kernel),
            place,
            metrics: Vec::new(),
            descriptions: descriptions.collect(),
        }
    }

    /// Returns the metrics of a row, which may be shorter than its header; missing values are
    /// empty.
    fn metrics(&self, values: &[Cow<'_, [u8]>], place: Place) -> Vec<Metric> {
        let value =
            |column: usize| values.get(column).map_or_else(Vec::new, |value| value.to_vec());
        match &self.shape {
            Shape::Long { name, unit, value: at } => {
                let metric =
                    Metric { name: value(*name), unit: value(*unit), value: value(*at), place };
                if metric.name.is_empty() { Vec::new() } else { vec![metric] }
            }
            Shape::Wide { units } => {
                let names = self.header.names().iter().enumerate();
                let metrics = names.filter(|(_, name)| memchr::memmem::find(name, b"__").is_some());
                let unit = |column: usize| units.get(column).cloned().unwrap_or_default();
                metrics
                    .map(|(at, name)| Metric {
                        name: name.clone(),
                        unit: unit(at),
                        value: value(at),
                        place,
                    })
                    .collect()
            }
        }
    }
}

impl Launch {
    fn close(&self, has_decimal_comma: bool, found: &mut Found) {
        let time = TIMES
            .iter()
            .find_map(|name| self.metrics.iter().find(|metric| metric.name == name.as_bytes()));
        let (text, unit, place) = match time {
            Some(metric) => (&metric.value[..], &metric.unit[..], metric.place),
            None => (&b"n/a"[..], &b"ns"[..], self.place),
        };
        let Some(unit) = Unit::parse(unit) else {
            return found.reject(place, &self.kernel, Reason::UnknownUnit);
        };
        let plain = without_thousands(text, has_decimal_comma);
        let line = Line { text: &self.kernel, place: Place { offset: self.place.offset, ..place } };
        let measurement = Measurement::new(line, &plain, unit);
        if found.measured(&Measurement { operation: Some(&self.kernel), ..measurement }) {
            self.fields(found);
        }
    }

    fn fields(&self, found: &mut Found) {
        found.field(b"ID", &self.id);
        for (name, value) in &self.descriptions {
            found.optional_field(name.as_bytes(), value);
        }
        for metric in &self.metrics {
            let unit = [b" [", &metric.unit[..], b"]"].concat();
            let name =
                [&metric.name[..], if metric.unit.is_empty() { b"" } else { &unit }].concat();
            found.field(&name, &metric.value);
        }
    }
}

/// Whether the decimal separator is a comma, if this number is unambiguous.
fn tells_decimal_comma(text: &[u8]) -> Option<bool> {
    let last = text.iter().rposition(|byte| b",.".contains(byte))?;
    let sign = text[last];
    let is_numeric = text.iter().all(|byte| byte.is_ascii_digit() || b",.-".contains(byte));
    let n_signs = memchr_iter(sign, text).count();
    let has_other = memchr_iter(if sign == b',' { b'.' } else { b',' }, text).count() > 0;
    let is_group = text.len() - last - 1 == 3;
    let is_decimal = match (n_signs, has_other, is_group) {
        (1, true, _) | (1, false, false) => true,
        (1, false, true) => return None,
        _ => false,
    };
    is_numeric.then_some(is_decimal == (sign == b','))
}

/// Returns the number with a decimal point and without thousands separators.
fn without_thousands(text: &[u8], has_decimal_comma: bool) -> Vec<u8> {
    let (decimal, thousands) = if has_decimal_comma { (b',', b'.') } else { (b'.', b',') };
    let digits = text.iter().filter(|byte| **byte != thousands);
    digits.map(|&byte| if byte == decimal { b'.' } else { byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::{End, Extraction};
    use crate::names::Names;

    const LONG: &str = r#"==PROF== Connected to process 371693
2208 2048 5608 0 358.15 141.59
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"
"#;

    fn metric(id: u32, kernel: &str, name: &str, unit: &str, value: &str) -> String {
        format!(
            "\"{id}\",\"371693\",\"cublaslt_gemm\",\"127.0.0.1\",\"{kernel}\",\"1\",\"7\",\"(384, 1, 1)\",\"(9, 32, 1)\",\"0\",\"10.0\",\"GPU Speed Of Light Throughput\",\"{name}\",\"{unit}\",\"{value}\",\n"
        )
    }

    fn long(rows: &[String]) -> Extraction {
        extract(FORMAT, &(LONG.to_owned() + &rows.concat()), End::Whole)
    }

    #[test]
    fn the_metrics_of_a_launch_are_one_record() {
        let advice = r#""0","371693","cublaslt_gemm","127.0.0.1","f<a, b>","1","7","(1, 1, 1)","(9, 32, 1)","0","10.0","SpeedOfLight","","","","SOLBottleneck","OPT","This kernel, as ""run"", is small","global","90.1","more"
"#;
        let found = long(&[
            metric(0, "f<a, b>", "DRAM Frequency", "hz", "1,215,000,000.00"),
            metric(0, "f<a, b>", "Duration", "ns", "406240"),
            advice.into(),
            "==PROF== Profiling next\n".into(),
            metric(1, "g", "Duration", "us", "1,406.5"),
        ]);
        assert_eq!(
            records(&found),
            [("f<a, b>".into(), 406_240.0, "ok"), ("g".into(), 1_406_500.0, "ok")]
        );
        assert_eq!(field(&found, 0, "DRAM Frequency [hz]").as_deref(), Some("1,215,000,000.00"));
        assert_eq!(field(&found, 0, "Grid Size").as_deref(), Some("(9, 32, 1)"));
        assert_eq!(found.rejections.total(), 0);
    }

    #[test]
    fn the_decimal_sign_is_told_by_numbers_that_leave_no_choice() {
        let found = long(&[
            metric(0, "f", "Duration", "nsecond", "27.595"),
            metric(0, "f", "L2 Hit Rate", "%", "65,77"),
            metric(1, "f", "Duration", "nsecond", "27.595.520"),
            metric(2, "f", "Duration", "usecond", "1,406"),
        ]);
        let times: Vec<_> = records(&found).iter().map(|record| record.1).collect();
        assert_eq!(times, [27_595.0, 27_595_520.0, 1_406.0]);
        let alone = long(&[metric(0, "f", "Duration", "us", "1,406")]);
        assert_eq!(records(&alone), [("f".into(), 1_406_000.0, "ok")]);
    }

    #[test]
    fn a_launch_without_a_duration_is_a_record_without_a_time() {
        let found = long(&[
            metric(0, "f", "L2 Hit Rate", "%", "65.77"),
            metric(1, "f", "Duration", "cycle", "8"),
        ]);
        assert_eq!((found.records.status[0].name(), found.records.len()), ("missing", 1));
        assert_eq!(rejections(&found), [("unknown_unit", "f".into())]);
    }

    #[test]
    fn a_wide_table_has_its_units_below_the_header() {
        let text = "\"ID\",\"Kernel Name\",\"Grid Size\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\
            \"\",\"\",\"\",\"msecond\",\"Mbyte\"\n\"0\",\"gemm\",\"(1, 1, 1)\",\"1.5\",\"3.25\"\n";
        let found = extract(FORMAT, text, End::Whole);
        assert_eq!(records(&found), [("gemm".into(), 1_500_000.0, "ok")]);
        assert_eq!(field(&found, 0, "dram__bytes.sum [Mbyte]").as_deref(), Some("3.25"));
    }

    #[test]
    fn a_cut_row_is_no_result() {
        let row = metric(0, "f", "Duration", "ns", "406240");
        let cut = LONG.to_owned() + &row[..row.len() - 6];
        let found = extract(FORMAT, &cut, End::Whole);
        assert_eq!((found.records.len(), rejections(&found)[0].0), (0, "truncated"));
        let suspect = LONG.to_owned() + &row[..row.len() - 2];
        assert_eq!(records(&extract(FORMAT, &suspect, End::Died))[0].2, "cut");
    }
}
