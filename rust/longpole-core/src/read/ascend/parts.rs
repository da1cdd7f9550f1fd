//! The tables of a trace that are needed to identify its events.

use crate::strings::Strings;
use crate::tables::{ArgTables, EventTable, LaneTable, MetadataTable};

/// The tables of a trace, as built by its reader.
pub(in crate::read) struct Parts<'a> {
    pub(in crate::read) strings: &'a Strings,
    pub(in crate::read) events: &'a mut EventTable,
    pub(in crate::read) lanes: &'a mut LaneTable,
    pub(in crate::read) args: &'a ArgTables,
    pub(in crate::read) metadata: &'a MetadataTable,
}
