//! Inductor's autotuning tables: `AUTOTUNE mm(64x32, 32x64)`, then a line for each choice, with its
//! time and its speed relative to the fastest. The older form uses seconds, the newer one
//! milliseconds; both contain the unit.
//!
//! Choices have the same names in every table, so the operation name combines the problem and the
//! choice.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::extract::format::{Format, Interest, Reader};
use crate::extract::found::Found;
use crate::extract::lines::Line;
use crate::extract::numbers::Unit;
use crate::extract::records::{Measurement, Reason};

pub(super) const FORMAT: Format = Format {
    name: "inductor",
    summary: "torch.compile with max-autotune: AUTOTUNE tables",
    anchors: &["AUTOTUNE "],
    reader: || Box::new(Table::default()),
};

static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?-u)(?P<choice>\S+) (?P<time>[^\s%]+?) ?(?P<unit>ms|us|s) (?P<share>[\d.]+|nan|inf)%(?: +(?P<config>\S.*))?$").ok()
});

/// The open table, if any.
#[derive(Default)]
struct Table {
    problem: Option<Vec<u8>>,
}

impl Reader for Table {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        let text = line.text.trim_ascii_end();
        if let Some(problem) = problem(text) {
            self.problem = Some(problem.to_vec());
        } else if let Some(problem) = &self.problem
            && !read(problem, Line { text, ..line }, found)
            && !is_description(text)
        {
            self.problem = None;
        }
        if self.problem.is_some() { Interest::EveryLine } else { Interest::Anchors }
    }
}

/// Returns the problem in a header. A log may add a prefix to each line.
fn problem(text: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(text, b"AUTOTUNE ")?;
    let problem = text[start + b"AUTOTUNE ".len()..].trim_ascii();
    (problem.ends_with(b")") && problem.contains(&b'(')).then_some(problem)
}

/// Adds the choice on a line. Returns whether there is one.
fn read(problem: &[u8], line: Line<'_>, found: &mut Found) -> bool {
    let Some(captures) = ROW.as_ref().and_then(|row| row.captures(line.text)) else {
        return false;
    };
    let group = |name: &str| captures.name(name).map_or(&b""[..], |group| group.as_bytes());
    let Some(unit) = Unit::parse(group("unit")) else {
        found.reject(line.place, line.text, Reason::UnknownUnit);
        return true;
    };
    let operation = [problem, b": ", group("choice")].concat();
    let measurement = Measurement::new(line, group("time"), unit);
    if found.measured(&Measurement { operation: Some(&operation), ..measurement }) {
        found.field(b"problem", problem);
        found.field(b"choice", group("choice"));
        found.optional_field(b"config", group("config"));
    }
    true
}

/// Whether a line is between the header and the choices.
fn is_description(text: &[u8]) -> bool {
    [&b"strides: "[..], b"dtypes: "].iter().any(|word| memchr::memmem::find(text, word).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    const LOG: &str = "\
Autotune Choices Stats:
{\"num_choices\": 3, \"best_kernel\": \"mm\", \"best_time\": 0.3848}
AUTOTUNE mm(64x32, 32x64)
strides: [32, 1], [64, 1]
dtypes: torch.bfloat16, torch.bfloat16
  mm 0.3848 ms 100.0%\u{20}
  triton_mm_16 0.6288 ms 61.2% ACC_TYPE='tl.float32', BLOCK_K=32, num_warps=4
  triton_mm_3 inf ms 0.0% BLOCK_K=512
  triton_mm_4 0.1.2 ms 61.2% BLOCK_K=512
SingleProcess AUTOTUNE benchmarking takes 0.7160 seconds and 2.7616 seconds precompiling for 20 choices
  not_a_choice 0.1 ms 100.0%
AUTOTUNE addmm(1x32, 1x256, 256x32)
  bias_addmm 0.0276s 100.0%
";

    #[test]
    fn a_choice_is_named_with_its_problem() {
        let found = extract(FORMAT, LOG, End::Whole);
        assert_eq!(
            records(&found).iter().map(|row| (&row.0[..], row.2)).collect::<Vec<_>>(),
            [
                ("mm(64x32, 32x64): mm", "ok"),
                ("mm(64x32, 32x64): triton_mm_16", "ok"),
                ("mm(64x32, 32x64): triton_mm_3", "inf"),
                ("addmm(1x32, 1x256, 256x32): bias_addmm", "ok"),
            ]
        );
        assert_eq!(found.records.time_ns[3..], [27_600_000.0]);
        assert_eq!(
            field(&found, 1, "config").as_deref(),
            Some("ACC_TYPE='tl.float32', BLOCK_K=32, num_warps=4")
        );
        assert_eq!(rejections(&found)[0].0, "not_a_number");
    }
}
