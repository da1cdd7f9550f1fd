//! An argument of the events without category, as all those of a device are.

use crate::ids::{EventId, StringId};
use crate::strings::Strings;
use crate::tables::{ArgColumn, ArgTable, ArgTables, ArgValue};

/// The values of one argument, found by event.
pub(in crate::read) struct Column<'a> {
    table: &'a ArgTable,
    column: &'a ArgColumn,
}

impl<'a> Column<'a> {
    pub(in crate::read) fn of(key: &str, args: &'a ArgTables) -> Option<Self> {
        let table = args.of(None)?;
        let column = table.column(key)?;
        Some(Self { table, column })
    }

    fn value(&self, event: EventId) -> Option<ArgValue> {
        self.column.values.get(self.table.row_of(event)?)
    }

    pub(super) fn text(&self, event: EventId) -> Option<StringId> {
        match self.value(event)? {
            ArgValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An integer, written as such or as a text.
    pub(in crate::read) fn integer(&self, event: EventId, strings: &Strings) -> Option<i64> {
        match self.value(event)? {
            ArgValue::Integer(number) => Some(number),
            ArgValue::Text(text) => strings.get(text).trim().parse().ok(),
            ArgValue::Float(_) => None,
        }
    }
}
