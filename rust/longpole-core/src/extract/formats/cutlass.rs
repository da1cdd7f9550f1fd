//! The CUTLASS profiler's report: blocks of `Key: value`, one for each problem and operation. Times
//! are milliseconds, a mean over the timed iterations.
//!
//! Values printed as GB/s are GiB/s, so the field is named GiB/s.

use std::borrow::Cow;

use crate::extract::delimited::{Header, Key};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::{Ending, Line, Place};
use crate::extract::numbers;
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};
use memchr::memmem;
use memchr::memmem::Finder;

pub(super) const TEXT_FORMAT: Format = Format {
    name: "cutlass",
    summary: "CUTLASS profiler, report",
    anchors: &["Problem ID:"],
    reader: || Box::new(Report::default()),
};

/// Maximum number of lines in a block.
const MAX_LINES: usize = 256;

/// The open block, if any.
#[derive(Default)]
struct Report {
    block: Option<Block>,
}

struct Block {
    place: Place,
    /// Keys and values in order; `Arguments` may span several lines.
    lines: Vec<(Vec<u8>, Vec<u8>)>,
    is_continued: bool,
    n_lines: usize,
}

impl Reader for Report {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let is_start = line.text.trim_ascii_start().starts_with(b"Problem ID:");
        if is_start || is_end(line.text) {
            self.end(found);
        }
        if is_start {
            self.block = Some(Block::new(line.place));
        }
        let Some(block) = &mut self.block else { return Interest::Anchors };
        block.read(line);
        if !block.is_complete() {
            return Interest::EveryLine;
        }
        self.end(found);
        Interest::Anchors
    }

    fn end(&mut self, found: &mut Found) {
        if let Some(block) = self.block.take() {
            block.close(found);
        }
    }
}

impl Block {
    fn new(place: Place) -> Self {
        Self { place, lines: Vec::new(), is_continued: false, n_lines: 0 }
    }

    /// Reads a line. Keys are right-aligned, so a line without leading spaces is unrelated.
    fn read(&mut self, line: Line<'_>) {
        self.n_lines += 1;
        if !line.text.starts_with(b" ") {
            return;
        }
        let text = line.text.trim_ascii();
        let (text, goes_on) =
            text.strip_suffix(b"\\").map_or((text, false), |text| (text.trim_ascii_end(), true));
        if std::mem::replace(&mut self.is_continued, goes_on) {
            self.append(text);
        } else if let Some((key, value)) = key_and_value(text) {
            self.push(key, value, line.place.ending);
        } else {
            self.is_continued = false;
        }
    }

    /// Adds a value. A time that was cut off by a crash is kept as suspect; any other value that
    /// was cut off is dropped.
    fn push(&mut self, key: &[u8], value: &[u8], ending: Ending) {
        if key == b"Runtime" {
            self.place.ending = ending;
        } else if ending == Ending::Cut {
            return;
        }
        self.lines.push((key.to_vec(), value.to_vec()));
    }

    /// Whether the compute rate was read, which the profiler prints last.
    fn is_complete(&self) -> bool {
        self.n_lines == MAX_LINES || self.value("Math").is_some()
    }

    fn append(&mut self, more: &[u8]) {
        if let Some((_, value)) = self.lines.last_mut() {
            value.push(b' ');
            value.extend_from_slice(more);
        }
    }

    fn close(&self, found: &mut Found) {
        let operation = self.value("Operation");
        let failed = is_failure(self.value("Status"), self.value("Disposition"));
        let (time, unit) = match (self.value("Runtime"), failed) {
            (Some(runtime), _) => split_unit(runtime),
            (None, true) => (&b"N/A"[..], &b"ms"[..]),
            (None, false) => return self.reject(found, Reason::MissingTime),
        };
        let Some(unit) = Unit::parse(unit) else { return self.reject(found, Reason::UnknownUnit) };
        let data_bytes =
            self.value("Bytes").and_then(|text| numbers::bytes(split_unit(text).0).ok().flatten());
        let line = Line { text: operation.unwrap_or_default(), place: self.place };
        let measurement = Measurement::new(line, time, unit);
        if found.measured(&Measurement { operation, data_bytes, failed, ..measurement }) {
            self.fields(found);
        }
    }

    fn fields(&self, found: &mut Found) {
        for (key, value) in &self.lines {
            match &key[..] {
                b"Operation" | b"Runtime" | b"Bytes" => {}
                b"Arguments" => arguments(value).for_each(|(name, value)| found.field(name, value)),
                b"Memory" => found.field(b"GiB/s", split_unit(value).0),
                b"Math" => found.field(b"GFLOPs", split_unit(value).0),
                _ => found.field(key, value),
            }
        }
    }

    fn reject(&self, found: &mut Found, reason: Reason) {
        found.reject(self.place, self.value("Operation").unwrap_or_default(), reason);
    }

    fn value(&self, key: &str) -> Option<&[u8]> {
        let line = self.lines.iter().find(|(other, _)| other == key.as_bytes());
        line.map(|(_, value)| &value[..])
    }
}

/// Whether the profiler reports that an operation failed, was not run, or gave a wrong result.
/// Skipped verification is not a failure.
fn is_failure(status: Option<&[u8]>, disposition: Option<&[u8]>) -> bool {
    let is_one_of =
        |text: &[u8], good: &[&[u8]]| good.iter().any(|good| text.eq_ignore_ascii_case(good));
    status.is_some_and(|status| !is_one_of(status, &[b"success"]))
        || disposition
            .is_some_and(|text| !is_one_of(text, &[b"passed", b"not_verified", b"not verified"]))
}

fn is_end(line: &[u8]) -> bool {
    line.starts_with(b"====") || line.starts_with(b"CSV Results:")
}

fn key_and_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memmem::find(text, b":")?;
    let (key, value) = (&text[..colon], text[colon + 1..].trim_ascii());
    let is_in_key = |byte: &u8| byte.is_ascii_alphanumeric() || b" _/".contains(byte);
    (!value.is_empty() && key.iter().all(is_in_key)).then_some((key, value))
}

/// Returns the number and the unit in `6.73655  ms`.
fn split_unit(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii())
}

/// Returns the pairs in `--m=3456 --n=4096`.
fn arguments(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(u8::is_ascii_whitespace).filter_map(|argument| {
        let argument = argument.strip_prefix(b"--")?;
        let equals = memchr::memchr(b'=', argument)?;
        Some((&argument[..equals], &argument[equals + 1..]))
    })
}

// The CUTLASS profiler's CSV, printed after `CSV Results:` or written to a file. Times are
// milliseconds.
//
// The same measurements may be in the stream as a report. They are then records of another format
// as well, because the CSV may contain more of them. The header writes GB/s for values in GiB/s,
// so the field is named GiB/s.

pub(super) const CSV_FORMAT: Format = Format {
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
    use super::*;
    use crate::extract::End;
    use crate::extract::formats::testing::{extract, field, records, rejections};
    use crate::names::Names;

    const BLOCK: &str = "
=============================
  Problem ID: 1

        Provider: CUTLASS
   OperationKind: gemm
       Operation: cutlass_simt_sgemm_128x128_8x2_nn_align1

          Status: Success
    Verification: ON
     Disposition: Passed

reference_device: Passed
          cuBLAS: Passed

       Arguments: --m=3456 --n=4096 --k=4096 --A=f32:column --alpha=1  \\
                  --batch_count=1 --op_class=simt --max_cc=1024

           Bytes: 180355072  bytes
           FLOPs: 115992428544  flops

         Runtime: 6.73655  ms
          Memory: 24.934 GiB/s

            Math: 17218.4 GFLOP/s
";

    #[test]
    fn a_block_is_one_record() {
        let found = extract(TEXT_FORMAT, BLOCK, End::Whole);
        let operation = "cutlass_simt_sgemm_128x128_8x2_nn_align1".to_owned();
        assert_eq!(records(&found), [(operation, 6_736_550.0, "ok")]);
        assert_eq!(found.records.data_bytes, [180_355_072]);
        let names = ["k", "A", "max_cc", "GiB/s", "GFLOPs", "cuBLAS", "Disposition"];
        let values = ["4096", "f32:column", "1024", "24.934", "17218.4", "Passed", "Passed"];
        assert_eq!(names.map(|name| field(&found, 0, name).unwrap()), values);
    }

    #[test]
    fn an_operation_that_failed_its_check_is_not_selectable() {
        for (good, bad) in
            [("Disposition: Passed", "Disposition: Incorrect"), ("Success", "Error: internal")]
        {
            let found = extract(TEXT_FORMAT, &BLOCK.replace(good, bad), End::Whole);
            assert_eq!(found.records.status[0].name(), "failed");
        }
        let unverified = BLOCK.replace("Disposition: Passed", "Disposition: Not verified");
        assert_eq!(extract(TEXT_FORMAT, &unverified, End::Whole).records.status[0].name(), "ok");
    }

    #[test]
    fn a_failure_without_a_time_is_a_record_all_the_same() {
        let text =
            BLOCK.replace("Passed", "Not run").replace("         Runtime: 6.73655  ms\n", "");
        let found = extract(TEXT_FORMAT, &text, End::Whole);
        assert_eq!(found.records.status[0].name(), "failed");
        assert!(found.records.time_ns[0].is_nan());
    }

    #[test]
    fn a_block_that_ends_too_early_is_rejected_and_blocks_do_not_mix() {
        let cut = &BLOCK[..BLOCK.find("         Runtime").unwrap()];
        let found = extract(TEXT_FORMAT, &(cut.to_owned() + BLOCK), End::Whole);
        assert_eq!((found.records.len(), rejections(&found)[0].0), (1, "missing_time"));
    }

    #[test]
    fn a_death_within_the_time_makes_it_suspect() {
        let cut = &BLOCK[..BLOCK.find("6.73655").unwrap() + 4];
        assert_eq!(records(&extract(TEXT_FORMAT, &format!("{cut} ms"), End::Died))[0].2, "cut");
        let later = &BLOCK[..BLOCK.find("24.934").unwrap() + 3];
        let found = extract(TEXT_FORMAT, later, End::Died);
        assert_eq!((records(&found)[0].2, field(&found, 0, "GiB/s")), ("ok", None));
    }

    const HEADER: &str = "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,Bytes,Flops,Runtime,GB/s,GFLOPs\n";

    fn table(rows: &str) -> crate::extract::Extraction {
        extract(CSV_FORMAT, &format!("CSV Results:\n\n{HEADER}{rows}"), End::Whole)
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
