//! Metadata of processes and threads, by the name of the statement.

use crate::ids::StringId;
use crate::strings::Strings;
use crate::tables::MetadataTable;

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
