//! A format: its name, the anchors that must be on every line that starts a record, and a reader
//! for such lines.

use super::found::Found;
use super::lines::Line;

/// An output format of a tool, and how to read it.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name on the command line and in the column `format`.
    pub name: &'static str,
    /// The tool that prints it.
    pub summary: &'static str,
    /// A line that begins a record or table of this format contains one of these strings.
    pub(super) anchors: &'static [&'static str],
    pub(super) reader: fn() -> Box<dyn Reader>,
}

/// Reads the lines of one format.
///
/// A reader sees the lines with one of its anchors, and every line if it requested this. The result
/// therefore does not depend on which other formats are searched. The only exception is a last line
/// without a line ending, whose anchor may be missing: all readers see it.
pub(super) trait Reader: Send {
    /// Reads a line.
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest;

    /// Called at the end of the stream, to add the records that are still open.
    fn end(&mut self, _found: &mut Found) {}
}

/// Which lines a reader needs to see next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Lines with an anchor.
    Anchors,
    /// All lines, because a block or a table is open.
    EveryLine,
}
