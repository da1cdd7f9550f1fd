//! One argument of the events without a category, such as all events of a device.

use crate::ids::{EventId, StringId};
use crate::strings::Strings;
use crate::tables::{ArgColumn, ArgTable, ArgTables, ArgValue};

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
