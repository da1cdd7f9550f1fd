//! CSV files of rocprofv3, the older rocprof, and rocprof-compute: a row for each kernel dispatch,
//! whose time is end minus begin, or a row for each kernel with the mean (rocprof) or the median
//! (rocprof-compute) of its dispatches. All times are nanoseconds.
//!
//! Traces of API calls have the same timestamps but no kernel, and are ignored. Statistics of API
//! calls cannot be distinguished from those of kernels.

use std::borrow::Cow;

use crate::extract::delimited::{Header, Key};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "rocprof",
    summary: "rocprofv3, rocprof and rocprof-compute, CSV of kernels",
    anchors: ANCHORS,
    reader: || Box::new(Table::default()),
};

const ANCHORS: &[&str] = &["Start_Timestamp", "BeginNs", "AverageNs", "Median(ns)"];

/// The table layouts: the kernel column and the time columns.
const LAYOUTS: [(&str, Time); 4] = [
    ("Kernel_Name", Time::Between("Start_Timestamp", "End_Timestamp")),
    ("KernelName", Time::Between("BeginNs", "EndNs")),
    ("Name", Time::Of("AverageNs", "mean")),
    ("Kernel_Name", Time::Of("Median(ns)", "median")),
];

#[derive(Clone, Copy)]
enum Time {
    /// Begin and end columns.
    Between(&'static str, &'static str),
    /// The column of a statistic, and its name.
    Of(&'static str, &'static str),
}

/// The table after the last header.
#[derive(Default)]
struct Table {
    columns: Option<Columns>,
}

struct Columns {
    header: Header,
    kernel: usize,
    time: usize,
    end: Option<usize>,
    statistic: Option<&'static str>,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii();
        if ANCHORS.iter().any(|name| memchr::memmem::find(text, name.as_bytes()).is_some()) {
            self.columns = LAYOUTS.iter().find_map(|layout| Columns::parse(text, *layout));
        } else if let Some(columns) = &self.columns {
            columns.read(Line { text, ..line }, found);
        }
        if self.columns.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

impl Columns {
    fn parse(line: &[u8], (kernel, time): (&str, Time)) -> Option<Self> {
        let (name, end, statistic) = match time {
            Time::Between(begin, end) => (begin, Some(end), None),
            Time::Of(name, statistic) => (name, None, Some(statistic)),
        };
        let header = Header::parse(line, Key { name, is_row: is_time })?;
        Some(Self {
            kernel: header.place(kernel)?,
            time: header.place(name)?,
            end: end.map_or(Some(None), |end| header.place(end).map(Some))?,
            statistic,
            header,
        })
    }

    fn read(&self, line: Line<'_>, found: &mut Found) {
        if let Some(values) = self.header.values(line, found) {
            self.record(line, &values, found);
        }
    }

    fn record(&self, line: Line<'_>, values: &[Cow<'_, [u8]>], found: &mut Found) {
        let time = match self.end {
            Some(end) => difference(&values[self.time], &values[end]),
            None => Some(values[self.time].to_vec()),
        };
        let Some(time) = time else {
            return found.reject(line.place, line.text, Reason::NotANumber);
        };
        let operation = Some(&*values[self.kernel]);
        let measurement = Measurement::new(line, &time, Unit::Nanoseconds);
        if found.measured(&Measurement { operation, ..measurement }) {
            found.optional_field(b"statistic", self.statistic.unwrap_or_default().as_bytes());
            found.fields_but(self.header.names(), values, &[self.kernel]);
        }
    }
}

/// Whether the values are timestamps or times; other lines with commas are unrelated.
fn is_time(values: &[Cow<'_, [u8]>]) -> bool {
    values.first().is_some_and(|value| value.first().is_some_and(u8::is_ascii_digit))
}

/// Returns the difference of two timestamps, which are integers. Current timestamps do not fit a
/// double.
fn difference(begin: &[u8], end: &[u8]) -> Option<Vec<u8>> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    let (begin, end) = (i128::from(number(begin)?), i128::from(number(end)?));
    Some((end - begin).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    const TRACE: &str = r#""Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","Grid_Size_X"
"KERNEL_DISPATCH","Agent 4",1,"void add<float>(float*, int)",1,1551874061244694,1551874061255734,1024
"KERNEL_DISPATCH","Agent 4",1,"void add<float>(float*, int)",2,1700000000000000100,1700000000000000107,1024
"KERNEL_DISPATCH","Agent 4",1,"zero",3,15,15,1024
"KERNEL_DISPATCH","Agent 4",1,"back",4,15,12,1024
"KERNEL_DISPATCH","Agent 4",1,"odd",5,15,12x,1024
"KERNEL_DISPATCH","Agent 4",1,"short",6,15,27
"#;

    #[test]
    fn a_dispatch_takes_from_its_begin_to_its_end() {
        let found = extract(FORMAT, TRACE, End::Whole);
        let add = "void add<float>(float*, int)".to_owned();
        assert_eq!(
            records(&found),
            [
                (add.clone(), 11_040.0, "ok"),
                (add, 7.0, "ok"),
                ("zero".into(), 0.0, "zero"),
                ("back".into(), -3.0, "negative"),
            ]
        );
        let reasons: Vec<_> = rejections(&found).into_iter().map(|row| row.0).collect();
        assert_eq!(reasons, ["not_a_number", "wrong_columns"]);
        assert_eq!(field(&found, 0, "Start_Timestamp").as_deref(), Some("1551874061244694"));
    }

    #[test]
    fn a_statistic_is_named() {
        let stats = "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n\
            \"f(int, int)\",1000,517647434,517647.434000,42.56,510404,527365,2907.325924\n\n\
            Kernel_Name,Count,Sum(ns),Mean(ns),Median(ns),Pct\n\"f(int, int)\",3,33,11.0,10.5,100.0\n";
        let found = extract(FORMAT, stats, End::Whole);
        assert_eq!(
            records(&found),
            [("f(int, int)".into(), 517_647.434, "ok"), ("f(int, int)".into(), 10.5, "ok")]
        );
        let statistics = [0, 1].map(|record| field(&found, record, "statistic").unwrap());
        assert_eq!(statistics, ["mean", "median"]);
        assert_eq!(field(&found, 0, "MinNs").as_deref(), Some("510404"));
    }

    #[test]
    fn counters_and_older_tables_are_read_and_api_calls_are_not() {
        let tables = "Dispatch_ID,GPU_ID,Kernel_Name,Start_Timestamp,End_Timestamp,SQ_WAVES\n\
            0,4,\"vcopy(double*) [clone .kd]\",100,350,16.0\n\
            \"Index\",\"KernelName\",\"gpu-id\",\"BeginNs\",\"EndNs\"\n0,\"g\",0,5,9\n\
            \"Domain\",\"Function\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
        let found = extract(FORMAT, tables, End::Whole);
        assert_eq!(
            records(&found),
            [("vcopy(double*) [clone .kd]".into(), 250.0, "ok"), ("g".into(), 4.0, "ok")]
        );
        let calls = "\"Domain\",\"Function\",\"Start_Timestamp\",\"End_Timestamp\"\n\"HIP\",\"hipMalloc\",1,5\n";
        assert!(extract(FORMAT, calls, End::Whole).records.is_empty());
    }
}
