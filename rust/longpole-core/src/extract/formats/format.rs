//! What a format is: a name, what must stand on every line that can begin something of
//! it, and a reader that is shown such lines.

use crate::extract::found::Found;
use crate::extract::lines::Line;

/// What a tool prints, and how it is read.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name on the command line and in the column `format`.
    pub name: &'static str,
    /// What prints it.
    pub summary: &'static str,
    /// A line that begins something of this format holds one of these.
    pub(in crate::extract) anchors: &'static [&'static str],
    pub(in crate::extract) reader: fn() -> Box<dyn Reader>,
}

/// Reads the lines of one format.
///
/// A line is shown to the readers that have an anchor on it and to those that asked for
/// every line, so what is found cannot depend on which other formats are looked for. The
/// one exception is a last line without line end, of which the anchor may be missing: it is
/// shown to all.
pub(in crate::extract) trait Reader: Send {
    /// Looks at a line.
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest;

    /// The stream has ended: hands over what was still open.
    fn end(&mut self, _found: &mut Found) {}
}

/// Which lines a reader must be shown next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::extract) enum Interest {
    /// Those with an anchor.
    Anchors,
    /// All of them: a block or a table is open.
    EveryLine,
}
