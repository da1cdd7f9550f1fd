//! Benchmarks of libraries for matrix products: hipBLASLt, rocBLAS, cuBLASLt and Composable Kernel.

use crate::extract::delimited::{Header, Key, Row};
use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::{Ending, Line, Place};
use crate::extract::numbers::Unit;
use crate::extract::pattern::built_in;
use crate::extract::records::Measurement;

pub(super) const HIPBLASLT: Format = Format {
    name: "hipblaslt",
    summary: "hipblaslt-bench",
    anchors: &["transA,"],
    reader: || Box::new(HipblasltTable::default()),
};

/// The table after the last header.
#[derive(Default)]
struct HipblasltTable {
    header: Option<HipblasltColumns>,
    waiting: Option<Waiting>,
}

struct HipblasltColumns {
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

impl Reader for HipblasltTable {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        if let Some(text) = header_text(line.text) {
            self.end(found);
            self.header = hipblaslt_columns(text);
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

impl HipblasltTable {
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

impl HipblasltColumns {
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
const TRANSPOSITION: Key = Key {
    name: "transA",
    is_row: |values| {
        values
            .first()
            .is_some_and(|text| matches!(&**text, b"N" | b"T" | b"C" | b"n" | b"t" | b"c"))
    },
};

/// Returns the header on a line, without its numeric prefix.
fn header_text(line: &[u8]) -> Option<&[u8]> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b" []:".contains(byte);
    let start = line.iter().position(|byte| !is_number(byte))?;
    let header = &line[start..];
    header.starts_with(b"transA,").then(|| header.trim_ascii_end())
}

fn hipblaslt_columns(text: &[u8]) -> Option<HipblasltColumns> {
    let header = Header::parse(text, TRANSPOSITION)?;
    header.place("hipblaslt-Gflops")?;
    let time = header.place("us")?;
    Some(HipblasltColumns { header, time })
}

fn read_row(columns: &HipblasltColumns, waiting: &Waiting, found: &mut Found) {
    let line = Line { text: &waiting.row, place: waiting.place };
    let Row::Values(values) = columns.header.row(line) else { return };
    let operation = Some(&waiting.solution_name[..]).filter(|name| !name.is_empty());
    let measurement = Measurement::new(line, &values[columns.time], Unit::Microseconds);
    if found.measured(&Measurement { operation, ..measurement }) {
        found.fields_but(columns.header.names(), &values, &[columns.time]);
        found.optional_field(b"solution_index", &waiting.solution_index);
    }
}

// `rocblas-bench`: a header that begins with `transA,` and rows of values after it. Times are
// microseconds.
//
// With norm checks there is a second column `us` for the CPU reference: the first one is the time,
// the second is the field `us#2`.

pub(super) const ROCBLAS: Format = Format {
    name: "rocblas",
    summary: "rocblas-bench",
    anchors: &["transA,"],
    reader: || Box::new(RocblasTable::default()),
};

/// The table after the last header.
#[derive(Default)]
struct RocblasTable {
    columns: Option<RocblasColumns>,
}

struct RocblasColumns {
    header: Header,
    time: usize,
}

impl Reader for RocblasTable {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        if let Some(text) = header_text(line.text) {
            self.columns = rocblas_columns(text);
        } else if let Some(columns) = &self.columns {
            columns.read(line, found);
        }
        if self.columns.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

fn rocblas_columns(text: &[u8]) -> Option<RocblasColumns> {
    let header = Header::parse(text, TRANSPOSITION)?;
    header.place("rocblas-Gflops")?;
    let time = header.place("us")?;
    Some(RocblasColumns { header, time })
}

impl RocblasColumns {
    fn read(&self, line: Line<'_>, found: &mut Found) {
        let Some(values) = self.header.values(line, found) else { return };
        if found.measured(&Measurement::new(line, &values[self.time], Unit::Microseconds)) {
            found.fields_but(self.header.names(), &values, &[self.time]);
        }
    }
}

// cublasLt's algorithms, as printed by NVIDIA's samples: a line for each, with the configuration,
// the status of the call, and the time of one call in milliseconds. An algorithm with a status
// other than 0 failed, regardless of its time.

pub(super) const CUBLASLT: Format = Format {
    name: "cublaslt",
    summary: "cublasLt algorithms, as NVIDIA's samples print them",
    anchors: &["algo={ Id="],
    reader: || built_in(CUBLASLT_PATTERN),
};

const CUBLASLT_PATTERN: &str = r"^(?:result +\d+ : )?algo=\{ (?P<operation>Id=[^}]*[^} ]) *\} status (?:0|(?P<failed>-?\d+)) time (?P<time_ms>\S+?)(?:ms)? workspace=(?P<workspace>-?\d+) mathMode=(?P<mathMode>\S+) waves=(?P<waves>\S+)";

// Composable Kernel's `ckProfiler`: `Perf: 1.2 ms, 108 TFlops, 79 GB/s, instance`, a line for each
// instance. Times are milliseconds. The line `Best Perf` repeats one of them and is ignored.

pub(super) const CK_PROFILER: Format = Format {
    name: "ckprofiler",
    summary: "Composable Kernel's ckProfiler",
    anchors: &["Perf: "],
    reader: || built_in(CK_PROFILER_PATTERN),
};

const CK_PROFILER_PATTERN: &str = r"^\s*Perf: +(?P<time_ms>\S+) ms,(?: (?P<TFlops>\S+) TFlops,)? (?P<GBps>\S+) GB/s, *(?P<operation>\S.*?)\s*$";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::End;
    use crate::extract::formats::testing::{extract, field, records, rejections};
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
            let found = extract(HIPBLASLT, &log(width, prefix, "24.54"), End::Whole);
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
        let found = extract(HIPBLASLT, &text, End::Whole);
        let expected =
            [("Cijk_Alik_Bljk_BBS".into(), 21_871_200.0, "ok"), (String::new(), 3_000.0, "ok")];
        assert_eq!(records(&found), expected);
        assert_eq!(field(&found, 0, "solution_index").as_deref(), Some("302128"));
        assert_eq!(field(&found, 1, "solution_index"), None);
    }

    #[test]
    fn infinitely_fast_is_a_time_of_zero_and_no_result() {
        assert_eq!(
            extract(HIPBLASLT, &log(34, "[0]:", "0"), End::Whole).records.status[0].name(),
            "zero"
        );
    }

    #[test]
    fn a_row_of_another_width_is_rejected_and_a_log_line_is_not() {
        let text = log(34, "[0]:", "3") + "T," + &["7"; 30].join(",") + "\nhipBLASLt info: a, b\n";
        let found = extract(HIPBLASLT, &text, End::Whole);
        assert_eq!(found.records.len(), 1);
        assert_eq!(rejections(&found)[0].0, "wrong_columns");
        assert_eq!(found.rejections.total(), 1);
    }

    const HEADER: &str = "transA,transB,M,N,K,alpha,lda,beta,ldb,ldc,rocblas-Gflops,us";

    #[test]
    fn a_row_is_read_by_the_names_above_it() {
        let text = format!("{HEADER}\nN,T,7680,8192,8192,1,8384,0,8384,8384, 10037.5, 102694\n");
        let found = extract(ROCBLAS, &text, End::Whole);
        assert_eq!(records(&found), [(String::new(), 102_694_000.0, "ok")]);
        assert_eq!(field(&found, 0, "K").as_deref(), Some("8192"));
        assert_eq!(field(&found, 0, "rocblas-Gflops").as_deref(), Some("10037.5"));
    }

    #[test]
    fn the_second_time_is_that_of_the_reference() {
        let text = format!(
            "{HEADER},CPU-Gflops,us,norm_error\nN,T,1,2,3,1,1,0,1,1, 5.5, 7, 0.1, 900, 0,\n"
        );
        let found = extract(ROCBLAS, &text, End::Whole);
        assert_eq!(records(&found), [(String::new(), 7_000.0, "ok")]);
        assert_eq!(field(&found, 0, "us#2").as_deref(), Some("900"));
    }

    #[test]
    fn a_row_cut_by_the_death_of_its_process_is_no_result() {
        let rows =
            ["N,T,7680,8192,8192,1,8384,0,8384,8384, 10037.5, 10", "N,T,7680,8192,8192,1,8384,0"];
        let [in_time, before_time] =
            rows.map(|row| extract(ROCBLAS, &format!("{HEADER}\n{row}"), End::Died));
        assert_eq!(records(&in_time)[0].2, "cut");
        assert_eq!(rejections(&before_time)[0].0, "truncated");
    }

    const LOG: &str = "\
result 000 : algo={ Id=6, tileIdx=20 (128x128) splitK=1 reduc=0 swizzle=0 custom=0 stages=15} status 0 time 0.031744 workspace=0 mathMode=0 waves=0.592593
algo={ Id=0, tileIdx=5 (16x128) splitK=3 reduc=2 swizzle=1 custom=0 } status 15 time 0.000000 workspace=1024 mathMode=1 waves=1.5
algo={ Id=1, tileIdx=5 (16x128) splitK=3 reduc=2 swizzle=1 custom=0 } status 0 time 0.5ms workspace=1024 mathMode=1 waves=1.5
";

    #[test]
    fn an_algorithm_that_failed_is_no_result() {
        let found = extract(CUBLASLT, LOG, End::Whole);
        let times: Vec<_> = records(&found).into_iter().map(|row| (row.1, row.2)).collect();
        assert_eq!(times, [(31_744.0, "ok"), (0.0, "failed"), (500_000.0, "ok")]);
        assert_eq!(found.records.workspace_bytes, [0, 1024, 1024]);
        assert_eq!(
            records(&found)[1].0,
            "Id=0, tileIdx=5 (16x128) splitK=3 reduc=2 swizzle=1 custom=0"
        );
        assert_eq!(field(&found, 0, "waves").as_deref(), Some("0.592593"));
    }

    const CK_PROFILER_LOG: &str = "\
a_m_k: dim 2, lengths {3840, 4096}, strides {4096, 1}
found 2 instances
Perf:     1.1933 ms, 107.977 TFlops, 79.0848 GB/s, DeviceGemmXdl<256, 128, 128, 4> Default
DeviceGemmXdl<64> does not support this problem
Perf: 2.5 ms, 79.0848 GB/s, DeviceReduce<256>
Perf: slow ms, 1 TFlops, 2 GB/s, DeviceGemmXdl<512>
Best Perf for datatype = f16 M = 3840 : 1.1933 ms, 107.977 TFlops, 79.0848 GB/s, DeviceGemmXdl
Best Perf: 1.1933 ms, 107.977 TFlops, 79.0848 GB/s
";

    #[test]
    fn each_instance_is_a_record_and_the_best_is_not_one_more() {
        let found = extract(CK_PROFILER, CK_PROFILER_LOG, End::Whole);
        assert_eq!(
            records(&found),
            [
                ("DeviceGemmXdl<256, 128, 128, 4> Default".into(), 1_193_300.0, "ok"),
                ("DeviceReduce<256>".into(), 2_500_000.0, "ok")
            ]
        );
        assert_eq!(field(&found, 0, "TFlops").as_deref(), Some("107.977"));
        assert_eq!(rejections(&found)[0].0, "not_a_number");
    }
}
