//! `rocblas-bench`: a header that begins with `transA,` and rows of values after it. Times are
//! microseconds.
//!
//! With norm checks there is a second column `us` for the CPU reference: the first one is the time,
//! the second is the field `us#2`.

use super::hipblaslt::{TRANSPOSITION, header_text};
use crate::extract::delimited::Header;
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::records::Measurement;

pub(super) const FORMAT: Format = Format {
    name: "rocblas",
    summary: "rocblas-bench",
    anchors: &["transA,"],
    reader: || Box::new(Table::default()),
};

/// The table after the last header.
#[derive(Default)]
struct Table {
    columns: Option<Columns>,
}

struct Columns {
    header: Header,
    time: usize,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        if let Some(text) = header_text(line.text) {
            self.columns = columns(text);
        } else if let Some(columns) = &self.columns {
            columns.read(line, found);
        }
        if self.columns.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

fn columns(text: &[u8]) -> Option<Columns> {
    let header = Header::parse(text, TRANSPOSITION)?;
    header.place("rocblas-Gflops")?;
    let time = header.place("us")?;
    Some(Columns { header, time })
}

impl Columns {
    fn read(&self, line: Line<'_>, found: &mut Found) {
        let Some(values) = self.header.values(line, found) else { return };
        if found.measured(&Measurement::new(line, &values[self.time], Unit::Microseconds)) {
            found.fields_but(self.header.names(), &values, &[self.time]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    const HEADER: &str = "transA,transB,M,N,K,alpha,lda,beta,ldb,ldc,rocblas-Gflops,us";

    #[test]
    fn a_row_is_read_by_the_names_above_it() {
        let text = format!("{HEADER}\nN,T,7680,8192,8192,1,8384,0,8384,8384, 10037.5, 102694\n");
        let found = extract(FORMAT, &text, End::Whole);
        assert_eq!(records(&found), [(String::new(), 102_694_000.0, "ok")]);
        assert_eq!(field(&found, 0, "K").as_deref(), Some("8192"));
        assert_eq!(field(&found, 0, "rocblas-Gflops").as_deref(), Some("10037.5"));
    }

    #[test]
    fn the_second_time_is_that_of_the_reference() {
        let text = format!(
            "{HEADER},CPU-Gflops,us,norm_error\nN,T,1,2,3,1,1,0,1,1, 5.5, 7, 0.1, 900, 0,\n"
        );
        let found = extract(FORMAT, &text, End::Whole);
        assert_eq!(records(&found), [(String::new(), 7_000.0, "ok")]);
        assert_eq!(field(&found, 0, "us#2").as_deref(), Some("900"));
    }

    #[test]
    fn a_row_cut_by_the_death_of_its_process_is_no_result() {
        let rows =
            ["N,T,7680,8192,8192,1,8384,0,8384,8384, 10037.5, 10", "N,T,7680,8192,8192,1,8384,0"];
        let [in_time, before_time] =
            rows.map(|row| extract(FORMAT, &format!("{HEADER}\n{row}"), End::Died));
        assert_eq!(records(&in_time)[0].2, "cut");
        assert_eq!(rejections(&before_time)[0].0, "truncated");
    }
}
