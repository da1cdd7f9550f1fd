//! The formats, one file each, and the table of them.
//!
//! A format is what must stand on every line that can begin something of it (its
//! anchors) and a reader that is shown such lines. Another format is another
//! file and another entry of [`FORMATS`].

mod aitemplate;
mod cutlass_csv;
mod cutlass_text;
mod hipblaslt;
mod nccl;
mod ncu;
mod rocblas;

use super::lines::Line;
use super::records::Found;

/// Every format, in the order in which they are listed to users.
pub const FORMATS: &[Format] = &[
    aitemplate::FORMAT,
    cutlass_text::FORMAT,
    cutlass_csv::FORMAT,
    hipblaslt::FORMAT,
    rocblas::FORMAT,
    ncu::FORMAT,
    nccl::FORMAT,
];

/// The format of that name.
pub fn format(name: &str) -> Option<Format> {
    FORMATS.iter().find(|format| format.name == name).copied()
}

/// What a tool prints, and how it is read.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name on the command line and in the column `format`.
    pub name: &'static str,
    /// What prints it.
    pub summary: &'static str,
    /// A line that begins something of this format holds one of these.
    pub(super) anchors: &'static [&'static str],
    pub(super) reader: fn() -> Box<dyn Reader>,
}

/// Reads the lines of one format.
///
/// An anchored line is shown to all readers, whosever anchor it holds: a reader that
/// asked for anchored lines only must do nothing on a line without one of its own.
/// So what is found cannot depend on which other formats are looked for. The one
/// exception is a last line without line end, of which the anchor may be missing.
pub(super) trait Reader: Send {
    /// Looks at a line.
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest;

    /// The stream has ended: hands over what was still open.
    fn end(&mut self, _found: &mut Found) {}
}

/// Which lines a reader must be shown next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Those with an anchor.
    Anchors,
    /// All of them: a block or a table is open.
    EveryLine,
}

#[cfg(test)]
pub(super) mod testing {
    use super::super::stream::{End, Extractor};
    use super::super::Extraction;
    use super::Format;

    /// What one format finds in `text`.
    pub(in super::super) fn extract(format: Format, text: &str, end: End) -> Extraction {
        let mut extractor = Extractor::new(&[format], Vec::new());
        extractor.feed(text.as_bytes());
        extractor.finish(end)
    }

    /// Operation, time in ns (NaN: none) and status of every record.
    pub(in super::super) fn records(found: &Extraction) -> Vec<(String, f64, &'static str)> {
        (0..found.records.len())
            .map(|row| {
                let records = &found.records;
                (
                    text(found, records.operation[row]),
                    records.time_ns[row],
                    records.status[row].name(),
                )
            })
            .collect()
    }

    /// Reason and excerpt of every rejected row.
    pub(in super::super) fn rejections(found: &Extraction) -> Vec<(&'static str, String)> {
        let rejections = &found.rejections;
        let reasons = rejections.reason.iter().map(|reason| reason.name());
        reasons.zip(rejections.excerpt.iter().map(|&excerpt| text(found, excerpt))).collect()
    }

    /// The value of the first field of that name of a record.
    pub(in super::super) fn field(found: &Extraction, record: u32, name: &str) -> Option<String> {
        let fields = &found.fields;
        (0..fields.record.len())
            .find(|&row| fields.record[row] == record && text(found, fields.name[row]) == name)
            .map(|row| text(found, fields.value[row]))
    }

    fn text(found: &Extraction, code: u32) -> String {
        crate::ids::StringId::from_column(code)
            .map_or_else(String::new, |id| found.strings.get(id).into())
    }
}
