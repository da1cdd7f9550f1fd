//! nccl-tests and rccl-tests: a table of message sizes, each measured out of place and in place.
//! Times are microseconds. Each of the two measurements is a record.
//!
//! The columns are aligned with spaces and may be empty (`redop` and `root`, or the whole
//! out-of-place side when a trace is replayed), so a row is matched to its header from the right.
//! NCCL log lines between the rows are ignored.

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::{self, Number, Unit};
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "nccl",
    summary: "nccl-tests and rccl-tests",
    anchors: &["algbw", "Collective test starting:"],
    reader: || Box::new(Table::default()),
};

/// The open table, if any.
#[derive(Default)]
struct Table {
    collective: Option<Vec<u8>>,
    columns: Option<Columns>,
}

struct Columns {
    names: Vec<Vec<u8>>,
    /// Index of the first column of each side.
    sides: [usize; 2],
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii();
        if let Some(comment) = text.strip_prefix(b"#") {
            self.comment(comment.trim_ascii());
        } else if let Some(columns) = self.columns.as_ref().filter(|_| is_row(text)) {
            columns.read(Line { text, ..line }, self.collective.as_deref(), found);
        }
        if self.columns.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

impl Table {
    fn comment(&mut self, text: &[u8]) {
        if let Some(name) = text.strip_prefix(b"Collective test starting:") {
            self.collective = Some(name.trim_ascii().to_vec());
        } else if let Some(columns) = Columns::parse(text) {
            self.columns = Some(columns);
        } else if text.starts_with(b"Avg bus bandwidth") {
            self.columns = None;
        }
    }
}

impl Columns {
    fn parse(text: &[u8]) -> Option<Self> {
        let names: Vec<_> = tokens(text).map(<[u8]>::to_vec).collect();
        let mut times =
            names.iter().enumerate().filter(|(_, name)| *name == b"time").map(|(at, _)| at);
        let sides = [times.next()?, times.next()?];
        let is_table = text.starts_with(b"size") && names.iter().any(|name| name == b"algbw");
        (is_table && sides[0] >= 3).then_some(Self { names, sides })
    }

    fn read(&self, line: Line<'_>, collective: Option<&[u8]>, found: &mut Found) {
        let values: Vec<_> = tokens(line.text).collect();
        let Some(Row { described, sides }) = self.split(&values) else {
            return found.reject(line.place, line.text, Reason::WrongColumns);
        };
        let Ok(data_bytes) = numbers::bytes(described[0]) else {
            return found.reject(line.place, line.text, Reason::OutOfRange);
        };
        for (side, values) in sides {
            let names = self.side_names(side);
            let measurement = Measurement {
                operation: collective,
                data_bytes,
                failed: has_wrong_values(names, values),
                ..Measurement::new(line, values[0], Unit::Microseconds)
            };
            if found.measured(&measurement) {
                found.field(b"placement", side.name());
                self.describe(described, found);
                let fields = names.iter().zip(values).skip(1);
                fields.for_each(|(name, value)| found.field(name, value));
            }
        }
    }

    /// Splits a row; `None` if it has neither one side nor both.
    fn split<'v, 'a>(&self, values: &'v [&'a [u8]]) -> Option<Row<'v, 'a>> {
        let [first, second] = self.sides;
        let (first_width, second_width) = (second - first, self.names.len() - second);
        let n_described = |width: usize| {
            values.len().checked_sub(width).filter(|count| (3..=first).contains(count))
        };
        if let Some(count) = n_described(first_width + second_width) {
            let (described, sides) = values.split_at(count);
            let (out_of_place, in_place) = sides.split_at(first_width);
            let sides = vec![(Side::OutOfPlace, out_of_place), (Side::InPlace, in_place)];
            Some(Row { described, sides })
        } else {
            let (described, in_place) = values.split_at(n_described(second_width)?);
            Some(Row { described, sides: vec![(Side::InPlace, in_place)] })
        }
    }

    fn side_names(&self, side: Side) -> &[Vec<u8>] {
        match side {
            Side::OutOfPlace => &self.names[self.sides[0]..self.sides[1]],
            Side::InPlace => &self.names[self.sides[1]..],
        }
    }

    /// Adds the descriptive fields. Count and type are always present. If one of the others is
    /// empty, the remaining value is the root if it is a number, otherwise the operation.
    fn describe(&self, values: &[&[u8]], found: &mut Found) {
        let names = &self.names[..self.sides[0]];
        for (column, value) in values.iter().enumerate().skip(1) {
            let is_sure = column < 3 || values.len() == names.len();
            let name: &[u8] = match numbers::plain(value) {
                _ if is_sure => &names[column],
                Some(_) => b"root",
                None => b"redop",
            };
            found.field(name, value);
        }
    }
}

/// The values of a row: those that describe the message, and those of each side.
struct Row<'v, 'a> {
    described: &'v [&'a [u8]],
    sides: Vec<(Side, &'v [&'a [u8]])>,
}

#[derive(Clone, Copy)]
enum Side {
    OutOfPlace,
    InPlace,
}

impl Side {
    fn name(self) -> &'static [u8] {
        match self {
            Self::OutOfPlace => b"out_of_place",
            Self::InPlace => b"in_place",
        }
    }
}

/// Whether a row begins with two integers, the size and the count.
fn is_row(text: &[u8]) -> bool {
    let is_integer = |token: &[u8]| token.iter().all(u8::is_ascii_digit);
    text.first().is_some_and(u8::is_ascii_digit) && {
        let mut tokens = tokens(text);
        tokens.next().is_some_and(is_integer) && tokens.next().is_some_and(is_integer)
    }
}

/// Whether the check found wrong values; `N/A` means that nothing was checked.
fn has_wrong_values(names: &[Vec<u8>], values: &[&[u8]]) -> bool {
    let wrong = names.iter().zip(values).find(|(name, _)| *name == b"#wrong");
    wrong.is_some_and(|(_, value)| {
        !matches!(numbers::plain(value), Some(Number::Value(0.0) | Number::Missing))
    })
}

fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::{End, Extraction};
    use crate::names::Names;

    const HEADER: &str = "\
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
";

    fn table(rows: &str) -> Extraction {
        extract(FORMAT, &(HEADER.to_owned() + rows), End::Whole)
    }

    #[test]
    fn a_row_is_two_records() {
        let found = table(
            "  8589934592    2147483648     float     sum      -1    63896  134.44  235.26    N/A    63959  134.30  235.03      0\n",
        );
        let name = "all_reduce_perf".to_owned();
        assert_eq!(
            records(&found),
            [(name.clone(), 63_896_000.0, "ok"), (name, 63_959_000.0, "ok")]
        );
        assert_eq!(found.records.data_bytes, [8_589_934_592; 2]);
        let names = ["placement", "type", "redop", "root", "busbw"];
        let values = ["in_place", "float", "sum", "-1", "235.03"];
        assert_eq!(names.map(|name| field(&found, 1, name).unwrap()), values);
    }

    #[test]
    fn blank_columns_are_seen() {
        let found = table(
            "1024 256 float -1 5.1 0.2 0.3 0 5.2 0.2 0.3 0\n1024 256 float 5.1 0.2 0.3 0 5.2 0.2 0.3 0\n2048 512 float sum 0 6.5 0.2 0.3 0\n",
        );
        assert_eq!(
            records(&found).iter().map(|record| record.1).collect::<Vec<_>>(),
            [5100.0, 5200.0, 5100.0, 5200.0, 6500.0]
        );
        assert_eq!(
            (field(&found, 0, "root").unwrap(), field(&found, 0, "redop")),
            ("-1".into(), None)
        );
        assert_eq!(field(&found, 4, "placement").as_deref(), Some("in_place"));
    }

    #[test]
    fn an_older_header_has_no_root_and_an_error() {
        let text = "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n\
            1024 256 float sum 1.2e+06 134.44 235.26 1e-06 63959 134.30 235.03 N/A\n";
        assert_eq!(records(&extract(FORMAT, text, End::Whole))[0], (String::new(), 1.2e9, "ok"));
    }

    #[test]
    fn log_lines_between_rows_are_passed_over_and_wrong_values_fail() {
        let found = table(
            "node1:3442:3442 [0] NCCL INFO Channel 00/02 : 0 1\n1024 256 float sum -1 5.1 0.2 0.3 7 N/A 0.2 0.3 0\n4096 1024 float node1:3442 [0] NCCL\n# Out of bounds values : 7 FAILED\n# Avg bus bandwidth    : 68.4\n1024 256 rows\n",
        );
        let statuses: Vec<_> = found.records.status.iter().map(|status| status.name()).collect();
        assert_eq!(statuses, ["failed", "missing"]);
        assert_eq!(rejections(&found).len(), 1);
        assert_eq!(rejections(&found)[0].0, "wrong_columns");
    }
}
