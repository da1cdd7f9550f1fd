//! The tables of a profile whose events have no categories. The names of processes and threads, and
//! arguments, identify the events.

use crate::ids::StringId;
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

/// A metadata statement about a process or a thread.
pub(super) struct Statement<'a> {
    pub(super) process: StringId,
    pub(super) thread: StringId,
    pub(super) value: &'a str,
}

pub(super) fn statements<'a>(
    metadata: &'a MetadataTable,
    strings: &'a Strings,
    name: &str,
) -> impl Iterator<Item = Statement<'a>> {
    let name = strings.lookup(name);
    let is_named =
        move |&row: &usize| name.is_some() && StringId::from_column(metadata.name[row]) == name;
    (0..metadata.len()).filter(is_named).filter_map(move |row| {
        Some(Statement {
            process: StringId::from_column(metadata.process[row])?,
            thread: StringId::from_column(metadata.thread[row])?,
            value: strings.get(StringId::from_column(metadata.value[row])?),
        })
    })
}
