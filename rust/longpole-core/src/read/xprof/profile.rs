//! The tables that are interpreted.

use crate::ids::StringId;
use crate::strings::Strings;
use crate::tables::{ArgTables, ArgValue, EventTable, LaneTable, MetadataTable};
use crate::vocabulary::Vocabulary;

/// The tables of a profile as its reader made them.
pub(in crate::read) struct Profile<'a> {
    pub(in crate::read) strings: &'a mut Strings,
    pub(in crate::read) events: &'a mut EventTable,
    pub(in crate::read) lanes: &'a mut LaneTable,
    pub(in crate::read) args: &'a mut ArgTables,
    pub(in crate::read) metadata: &'a MetadataTable,
    pub(in crate::read) vocabulary: &'a Vocabulary,
}

/// The text of a value, if it is one.
pub(super) fn text(value: Option<ArgValue>) -> Option<StringId> {
    match value? {
        ArgValue::Text(text) => Some(text),
        _ => None,
    }
}
