//! The CUTLASS profiler's CSV, printed after `CSV Results:` or written to a file. Times are
//! milliseconds.
//!
//! The same measurements may be in the stream as a report. They are then records of another format
//! as well, because the CSV may contain more of them. The header writes GB/s for values in GiB/s,
//! so the field is named GiB/s.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::cutlass_text::is_failure;
use crate::extract::delimited::{Header, Key};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::{self, Unit};
use crate::extract::records::Measurement;

pub(super) const FORMAT: Format = Format {
    name: "cutlass-csv",
    summary: "CUTLASS profiler, CSV",
    anchors: &[START],
    reader: || Box::new(Table { start: Finder::new(START), columns: None }),
};

/// Problems are numbered, and the next column is the name of the library that ran the operation.
const PROBLEM: Key = Key {
    name: "Problem",
    is_row: |values| match values {
        [problem, provider, ..] => {
            problem.iter().all(u8::is_ascii_digit)
                && provider.first().is_some_and(u8::is_ascii_alphabetic)
        }
        _ => false,
    },
};

/// Common part of all headers; tags may precede it.
const START: &str = "Problem,Provider,";

/// The table after the last header.
struct Table {
    start: Finder<'static>,
    columns: Option<Columns>,
}

struct Columns {
    header: Header,
    names: Vec<Vec<u8>>,
    operation: usize,
    time: usize,
    bytes: Option<usize>,
    status: Option<usize>,
    disposition: Option<usize>,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        if self.start.find(line.text).is_some() {
            self.columns = Columns::parse(line.text);
        } else if let Some(columns) = &self.columns {
            columns.read(line, found);
        }
        if self.columns.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

impl Columns {
    fn parse(line: &[u8]) -> Option<Self> {
        let header = Header::parse(line.trim_ascii(), PROBLEM)?;
        Some(Self {
            operation: header.place("Operation")?,
            time: header.place("Runtime")?,
            bytes: header.place("Bytes"),
            status: header.place("Status"),
            disposition: header.place("Disposition"),
            names: header.names().iter().map(|name| true_name(name)).collect(),
            header,
        })
    }

    fn read(&self, line: Line<'_>, found: &mut Found) {
        if let Some(values) = self.header.values(line, found) {
            self.record(line, &values, found);
        }
    }

    fn record(&self, line: Line<'_>, values: &[Cow<'_, [u8]>], found: &mut Found) {
        let value = |place: Option<usize>| place.map(|place| &*values[place]);
        let failed = is_failure(value(self.status), value(self.disposition));
        // An operation that was not run has an empty time.
        let time = match &*values[self.time] {
            b"" if failed => b"N/A",
            time => time,
        };
        let measurement = Measurement {
            operation: value(Some(self.operation)),
            data_bytes: value(self.bytes).and_then(|text| numbers::bytes(text).ok().flatten()),
            failed,
            ..Measurement::new(line, time, Unit::Milliseconds)
        };
        if found.measured(&measurement) {
            found.fields_but(&self.names, values, &[self.operation, self.time]);
        }
    }
}

fn true_name(name: &[u8]) -> Vec<u8> {
    if name == b"GB/s" { b"GiB/s".to_vec() } else { name.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;
    use crate::names::Names;

    const HEADER: &str = "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,Bytes,Flops,Runtime,GB/s,GFLOPs\n";

    fn table(rows: &str) -> crate::extract::Extraction {
        extract(FORMAT, &format!("CSV Results:\n\n{HEADER}{rows}"), End::Whole)
    }

    #[test]
    fn a_row_is_read_by_the_names_above_it() {
        let found = table(
            "1,CUTLASS,spgemm,s16832spgemm_f16,not_verified,success,8,9,10,1912602624,2,18.19,97.9245,483596\n",
        );
        assert_eq!(records(&found), [("s16832spgemm_f16".into(), 18_190_000.0, "ok")]);
        assert_eq!(found.records.data_bytes, [1_912_602_624]);
        assert_eq!(field(&found, 0, "GiB/s").as_deref(), Some("97.9245"));
        assert_eq!(field(&found, 0, "k").as_deref(), Some("10"));
    }

    #[test]
    fn what_failed_is_kept_and_not_selectable() {
        let found = table(
            "1,CUTLASS,gemm,a,incorrect,success,8,9,10,1,2,0.5,3,4\n1,CUTLASS,gemm,b,not_run,error,8,9,10,1,2,,,\n",
        );
        let statuses: Vec<_> = found.records.status.iter().map(|status| status.name()).collect();
        assert_eq!(statuses, ["failed", "failed"]);
    }

    #[test]
    fn tags_may_stand_in_front_and_a_new_header_counts_from_there() {
        let tagged = format!("cuda:{HEADER}").replace("cuda:", "Cuda,");
        let found = table(&format!(
            "1,CUTLASS,gemm,a,passed,success,8,9,10,1,2,0.5,3,4\n{tagged}12.8,1,CUTLASS,gemm,b,passed,success,8,9,10,1,2,0.25,3,4\n12.8,1,C,gemm\n12.8,1,CUTLASS,gemm,b,passed,success,8,9,10,1,2,0.5\n"
        ));
        assert_eq!(records(&found), [("a".into(), 5e5, "ok"), ("b".into(), 2.5e5, "ok")]);
        assert_eq!(field(&found, 1, "Cuda").as_deref(), Some("12.8"));
        assert_eq!(rejections(&found)[0].0, "wrong_columns");
    }
}
