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
/// An anchored line is shown to all readers, whosever anchor it holds: a reader that
/// asked for anchored lines only must do nothing on a line without one of its own.
/// So what is found cannot depend on which other formats are looked for. The one
/// exception is a last line without line end, of which the anchor may be missing.
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
