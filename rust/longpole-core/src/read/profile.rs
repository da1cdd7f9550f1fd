//! The tables of a profile whose events have no categories. The names of processes and threads, and
//! arguments, identify the events.

use crate::ids::{EventId, StringId};
use crate::strings::Strings;
use crate::tables::{
    ArgColumn, ArgTable, ArgTables, ArgValue, EventTable, LaneTable, MetadataTable,
};
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

// One argument of the events without a category, such as all events of a device.

/// The values of one argument, by event.
pub(super) struct Column<'a> {
    table: &'a ArgTable,
    column: &'a ArgColumn,
}

impl<'a> Column<'a> {
    pub(super) fn of(key: &str, args: &'a ArgTables) -> Option<Self> {
        let table = args.of(None)?;
        let column = table.column(key)?;
        Some(Self { table, column })
    }

    fn value(&self, event: EventId) -> Option<ArgValue> {
        self.column.values.get(self.table.row_of(event)?)
    }

    pub(super) fn text(&self, event: EventId) -> Option<StringId> {
        text(self.value(event)?)
    }

    /// Returns an integer, written as a number or a string.
    pub(super) fn integer(&self, event: EventId, strings: &Strings) -> Option<i64> {
        integer(self.value(event)?, strings)
    }
}

/// Returns the string of a value, if it is one.
pub(super) fn text(value: ArgValue) -> Option<StringId> {
    match value {
        ArgValue::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns an integer, written as a number or a string.
pub(super) fn integer(value: ArgValue, strings: &Strings) -> Option<i64> {
    match value {
        ArgValue::Integer(number) => Some(number),
        ArgValue::Text(text) => strings.get(text).trim().parse().ok(),
        ArgValue::Float(_) => None,
    }
}
