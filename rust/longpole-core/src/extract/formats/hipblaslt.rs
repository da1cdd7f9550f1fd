//! `hipblaslt-bench`: a header that begins with `transA,`, a row of values after it, and lines
//! about the measured solution. Times are microseconds.
//!
//! Versions differ in their columns (23, 34 and 48 were observed) and in the prefix of the header:
//! `[0]:`, `[0]` or none.

use crate::extract::delimited::{Header, Key, Row};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::{Ending, Line, Place};
use crate::extract::numbers::Unit;
use crate::extract::records::Measurement;

pub(super) const FORMAT: Format = Format {
    name: "hipblaslt",
    summary: "hipblaslt-bench",
    anchors: &["transA,"],
    reader: || Box::new(Table::default()),
};

/// The table after the last header.
#[derive(Default)]
struct Table {
    header: Option<Columns>,
    waiting: Option<Waiting>,
}

struct Columns {
    header: Header,
    time: usize,
}

/// A row, until its solution is known.
struct Waiting {
    row: Vec<u8>,
    place: Place,
    solution_name: Vec<u8>,
    solution_index: Vec<u8>,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        if let Some(text) = header_text(line.text) {
            self.end(found);
            self.header = columns(text);
        } else if self.header.is_some() {
            self.below_header(line, found);
        }
        if self.header.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }

    fn end(&mut self, found: &mut Found) {
        if let (Some(columns), Some(waiting)) = (&self.header, self.waiting.take()) {
            read_row(columns, &waiting, found);
        }
    }
}

impl Table {
    fn below_header(&mut self, line: Line<'_>, found: &mut Found) {
        let text = line.text.trim_ascii();
        if let Some(detail) = text.strip_prefix(b"--Solution ") {
            if let Some(waiting) = &mut self.waiting {
                waiting.learn(detail, line.place.ending);
            }
        } else if self.header.as_ref().is_some_and(|columns| columns.is_row(line, found)) {
            self.end(found);
            self.waiting = Some(Waiting::new(line));
        }
    }
}

impl Columns {
    /// Whether the line is a row; a row with the wrong number of columns is rejected here.
    fn is_row(&self, line: Line<'_>, found: &mut Found) -> bool {
        self.header.values(line, found).is_some()
    }
}

impl Waiting {
    fn new(line: Line<'_>) -> Self {
        Self {
            row: line.text.to_vec(),
            place: line.place,
            solution_name: Vec::new(),
            solution_index: Vec::new(),
        }
    }

    /// Reads a detail of the solution. A truncated name is ignored.
    fn learn(&mut self, detail: &[u8], ending: Ending) {
        if ending == Ending::Cut {
            return;
        }
        if let Some(name) = detail.strip_prefix(b"name:") {
            self.solution_name = name.trim_ascii().to_vec();
        } else if let Some(index) = detail.strip_prefix(b"index:") {
            self.solution_index = index.trim_ascii().to_vec();
        }
    }
}

/// Rows begin with the transposition of the first matrix.
pub(super) const TRANSPOSITION: Key = Key {
    name: "transA",
    is_row: |values| {
        values
            .first()
            .is_some_and(|text| matches!(&**text, b"N" | b"T" | b"C" | b"n" | b"t" | b"c"))
    },
};

/// Returns the header on a line, without its numeric prefix.
pub(super) fn header_text(line: &[u8]) -> Option<&[u8]> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b" []:".contains(byte);
    let start = line.iter().position(|byte| !is_number(byte))?;
    let header = &line[start..];
    header.starts_with(b"transA,").then(|| header.trim_ascii_end())
}

fn columns(text: &[u8]) -> Option<Columns> {
    let header = Header::parse(text, TRANSPOSITION)?;
    header.place("hipblaslt-Gflops")?;
    let time = header.place("us")?;
    Some(Columns { header, time })
}

fn read_row(columns: &Columns, waiting: &Waiting, found: &mut Found) {
    let line = Line { text: &waiting.row, place: waiting.place };
    let Row::Values(values) = columns.header.row(line) else { return };
    let operation = Some(&waiting.solution_name[..]).filter(|name| !name.is_empty());
    let measurement = Measurement::new(line, &values[columns.time], Unit::Microseconds);
    if found.measured(&Measurement { operation, ..measurement }) {
        found.fields_but(columns.header.names(), &values, &[columns.time]);
        found.optional_field(b"solution_index", &waiting.solution_index);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;
    use crate::names::Names;

    /// Returns a header of `width` columns in the old or the new form, and a row with time `us`.
    fn log(width: usize, prefix: &str, us: &str) -> String {
        let fill: Vec<_> = (0..width - 6).map(|number| format!("column_{number}")).collect();
        let values = vec!["7"; width - 6].join(", ");
        format!(
            "{prefix}transA,transB,m,{},hipblaslt-Gflops,us,norm_error_1\n    T,N,1024,{values}, 234.3, {us},0\n",
            fill.join(",")
        )
    }

    #[test]
    fn the_header_tells_the_columns_however_many() {
        for (width, prefix) in [(23, "[0]"), (34, "[0]:"), (48, "[12]:"), (23, "")] {
            let found = extract(FORMAT, &log(width, prefix, "24.54"), End::Whole);
            assert_eq!(records(&found), [(String::new(), 24_540.0, "ok")]);
            assert_eq!(field(&found, 0, "m").as_deref(), Some("1024"));
            assert_eq!(found.fields.record.len(), width - 1);
        }
    }

    #[test]
    fn the_solution_behind_the_row_names_it() {
        let text = log(34, "[0]:", "21871.2")
            + "    --Solution index: 302128\n    --Solution name:  Cijk_Alik_Bljk_BBS\nother\n"
            + &log(34, "[1]:", "3");
        let found = extract(FORMAT, &text, End::Whole);
        let expected =
            [("Cijk_Alik_Bljk_BBS".into(), 21_871_200.0, "ok"), (String::new(), 3_000.0, "ok")];
        assert_eq!(records(&found), expected);
        assert_eq!(field(&found, 0, "solution_index").as_deref(), Some("302128"));
        assert_eq!(field(&found, 1, "solution_index"), None);
    }

    #[test]
    fn infinitely_fast_is_a_time_of_zero_and_no_result() {
        assert_eq!(
            extract(FORMAT, &log(34, "[0]:", "0"), End::Whole).records.status[0].name(),
            "zero"
        );
    }

    #[test]
    fn a_row_of_another_width_is_rejected_and_a_log_line_is_not() {
        let text = log(34, "[0]:", "3") + "T," + &["7"; 30].join(",") + "\nhipBLASLt info: a, b\n";
        let found = extract(FORMAT, &text, End::Whole);
        assert_eq!(found.records.len(), 1);
        assert_eq!(rejections(&found)[0].0, "wrong_columns");
        assert_eq!(found.rejections.total(), 1);
    }
}
