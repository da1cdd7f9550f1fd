//! The tables of a profile whose events have no categories. The names of processes and threads, and
//! arguments, identify the events.

use crate::strings::Strings;
use crate::tables::{ArgTables, EventTable, LaneTable, MetadataTable};
use crate::vocabulary::Vocabulary;

/// The tables of a profile.
pub(super) struct Profile<'a> {
    pub(super) strings: &'a mut Strings,
    pub(super) events: &'a mut EventTable,
    pub(super) lanes: &'a mut LaneTable,
    pub(super) args: &'a mut ArgTables,
    pub(super) metadata: &'a MetadataTable,
    pub(super) vocabulary: &'a Vocabulary,
}
