//! The arguments of events, one table for each category and one column for each key.
//!
//! Kinds of events have different arguments, so most cells of a single table would be empty. A
//! column starts as integers and widens to floats or strings when a value requires it.
//!
//! One file, because tables, columns and values use the same rules for joining and widening.

use super::packed::{float_of, of_float};
use super::{Column, Packed};
use crate::ids::{EventId, InColumn, NO_INTEGER, NO_ROW, StringId, row_in_column};
use crate::strings::Strings;

/// The value of one argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArgValue {
    /// An integer that fits 64 bits.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string, or a list in JSON notation.
    Text(StringId),
}

/// The values of one argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Integers.
    Integers(Packed),
    /// Floats, as [`Packed::floats`] reads them.
    Floats(Packed),
    /// Handles of strings.
    Texts(Packed),
}

/// Number of rows that are packed together.
const BATCH: usize = 1024;

/// One argument of the events of one category.
///
/// The type is the narrowest that holds all values in the file: integers become floats if there is
/// a number with a decimal point, and strings if there is a string.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgColumn {
    /// The key in the file.
    pub key: String,
    /// The values, one for each row of the table.
    pub values: Values,
}

/// The arguments of the events of one category, one row for each event with arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgTable {
    /// The events, in row order.
    pub event: Packed,
    /// The arguments, in order of first use.
    pub columns: Vec<ArgColumn>,
    /// The column of each key number of the reader.
    column_of_key: Vec<u32>,
    /// Whether the rows are left unpacked, because they are appended to another table.
    is_part: bool,
    /// Empty columns for reuse.
    spare: Vec<ArgColumn>,
}

/// All argument tables, in order of the first use of their category.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgTables {
    tables: Vec<(Option<StringId>, ArgTable)>,
    table_of_category: Vec<u32>,
    is_part: bool,
    /// Empty tables for reuse.
    spare: Vec<ArgTable>,
}

impl ArgTables {
    /// Returns the arguments of the events of `category`, if any were kept.
    pub fn of(&self, category: Option<StringId>) -> Option<&ArgTable> {
        let slot = slot(category);
        let row = *self.table_of_category.get(slot).filter(|&&row| row != NO_ROW)?;
        Some(&self.tables[row as usize].1)
    }

    /// Returns every category with its arguments.
    pub fn iter(&self) -> impl Iterator<Item = (Option<StringId>, &ArgTable)> {
        self.tables.iter().map(|(category, table)| (*category, table))
    }

    /// Creates the tables for a part of the file, whose rows are left unpacked.
    pub(crate) fn of_part() -> Self {
        Self { is_part: true, ..Self::default() }
    }

    /// Removes all tables but keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.table_of_category.clear();
        // The next table is most likely the same as the first one.
        for (_, mut table) in self.tables.drain(..).rev() {
            table.clear();
            self.spare.push(table);
        }
    }

    /// Finishes the tables: pads every column to the length of its table. Nothing can be added
    /// afterwards.
    pub(crate) fn finish(&mut self) {
        self.tables.shrink_to_fit();
        for (_, table) in &mut self.tables {
            table.event.finish();
            table.columns.shrink_to_fit();
            for column in &mut table.columns {
                column.values.pad(table.event.len());
                column.values.packed_mut().finish();
            }
        }
    }

    /// Returns the arguments that `keeps` accepts, as if the others had not been requested from the
    /// reader.
    #[must_use]
    pub(crate) fn narrowed(self, keeps: impl Fn(&str) -> bool) -> Self {
        let mut narrowed = Self::default();
        for (category, mut table) in self.tables {
            table.columns.retain(|column| keeps(&column.key));
            table.drop_empty_rows();
            if !table.columns.is_empty() {
                *narrowed.of_mut(category) = table;
            }
        }
        narrowed
    }

    /// Removes the arguments of events that are not kept, and updates the event handles of the
    /// others.
    pub(crate) fn retain_events(&mut self, is_kept: &[bool]) {
        let mut numbers = Vec::with_capacity(is_kept.len());
        let mut n_kept = 0;
        for &is_kept in is_kept {
            numbers.push(if is_kept { n_kept } else { NO_ROW });
            n_kept += u32::from(is_kept);
        }
        for (_, table) in &mut self.tables {
            let is_kept: Vec<_> = table.event.rows().map(|row| is_kept[row as usize]).collect();
            table.event.retain(&is_kept);
            table.event = table.event.rows().map(|row| numbers[row as usize]).collect();
            for column in &mut table.columns {
                column.values.packed_mut().retain(&is_kept);
            }
        }
    }

    /// Whether appending the tables of a later part of the file gives the same result as pushing
    /// their values. `known` maps strings to those of this table, if known.
    pub(crate) fn takes(&self, later: &Self, known: impl Fn(StringId) -> Option<StringId>) -> bool {
        later.iter().all(|(category, later)| {
            let own = match category {
                None => self.of(None),
                Some(category) => known(category).and_then(|category| self.of(Some(category))),
            };
            own.is_none_or(|own| own.takes(later))
        })
    }

    /// Appends tables accepted by [`takes`](Self::takes): a part with events from `row` on. `texts`
    /// and `keys` are the numbers of its strings and keys in this table.
    pub(crate) fn append(&mut self, later: &Self, row: u32, texts: &[u32], keys: &[usize]) {
        for (category, later) in later.iter() {
            let category = category.and_then(|category| {
                StringId::from_column(renamed(Some(category).in_column(), texts))
            });
            self.of_mut(category).append(later, row, texts, keys);
        }
    }

    pub(crate) fn of_mut(&mut self, category: Option<StringId>) -> &mut ArgTable {
        let slot = slot(category);
        if slot >= self.table_of_category.len() {
            self.table_of_category.resize(slot + 1, NO_ROW);
        }
        if self.table_of_category[slot] == NO_ROW {
            self.table_of_category[slot] = row_in_column(self.tables.len());
            let new = || ArgTable { is_part: self.is_part, ..ArgTable::default() };
            let table = self.spare.pop().unwrap_or_else(new);
            self.tables.push((category, table));
        }
        &mut self.tables[self.table_of_category[slot] as usize].1
    }
}

/// Returns the slot of a category. Events without a category have slot 0.
fn slot(category: Option<StringId>) -> usize {
    category.map_or(0, |id| id.row() + 1)
}

impl ArgTable {
    /// Returns the row of the arguments of an event.
    pub fn row_of(&self, event: EventId) -> Option<usize> {
        self.event.find(Some(event).in_column().into())
    }

    /// Returns all events with arguments, in row order.
    pub fn events(&self) -> impl Iterator<Item = EventId> + '_ {
        self.event.rows().filter_map(EventId::from_column)
    }

    /// Returns the column of a key.
    pub fn column(&self, key: &str) -> Option<&ArgColumn> {
        self.columns.iter().find(|column| column.key == key)
    }

    /// Adds a column to all rows, unless there is one with that key.
    pub(crate) fn add_column(&mut self, key: &str, values: Values) {
        if self.column(key).is_none() {
            self.columns.push(ArgColumn { key: key.to_owned(), values });
        }
    }

    fn clear(&mut self) {
        self.event.clear();
        self.column_of_key.clear();
        for mut column in self.columns.drain(..).rev() {
            column.key.clear();
            column.values.packed_mut().clear();
            self.spare.push(column);
        }
    }

    fn drop_empty_rows(&mut self) {
        let is_kept: Vec<_> = (0..self.event.len())
            .map(|row| !self.columns.iter().all(|column| column.values.get(row).is_none()))
            .collect();
        if is_kept.contains(&false) {
            self.event.retain(&is_kept);
            for column in &mut self.columns {
                column.values.packed_mut().retain(&is_kept);
            }
        }
    }

    /// Sets an argument of `event`, which must be the last event or a later one. If the key already
    /// has a value, it is replaced, as in JSON readers.
    pub(crate) fn push(
        &mut self,
        event: EventId,
        key_number: usize,
        key: &str,
        value: ArgValue,
        strings: &mut Strings,
    ) {
        let last = self.event.last();
        let row = if last == Some(Some(event).in_column().into()) {
            self.event.len() - 1
        } else {
            self.add_row(event)
        };
        self.set(row, key_number, key, value, strings);
    }

    /// Adds a row for an event, which must come after all events that have one. Returns the row.
    pub(crate) fn add_row(&mut self, event: EventId) -> usize {
        let row = self.event.len();
        if !self.is_part && row.is_multiple_of(BATCH) {
            self.seal();
        }
        self.event.push(Some(event).in_column().into());
        row
    }

    /// Sets an argument of the last row.
    #[inline]
    pub(crate) fn set(
        &mut self,
        row: usize,
        key_number: usize,
        key: &str,
        value: ArgValue,
        strings: &mut Strings,
    ) {
        let column = self.column_for(key_number, key, value);
        self.columns[column].values.set(row, Some(value), strings);
    }

    /// Packs the rows so far.
    fn seal(&mut self) {
        self.event.seal();
        self.columns.iter_mut().for_each(|column| column.values.packed_mut().seal());
    }

    #[inline]
    fn column_for(&mut self, key_number: usize, key: &str, first: ArgValue) -> usize {
        self.column_like(key_number, key, || match first {
            ArgValue::Integer(_) => Values::Integers,
            ArgValue::Float(_) => Values::Floats,
            ArgValue::Text(_) => Values::Texts,
        })
    }

    #[inline]
    fn column_like(
        &mut self,
        key_number: usize,
        key: &str,
        of: impl Fn() -> fn(Packed) -> Values,
    ) -> usize {
        if key_number >= self.column_of_key.len() {
            self.column_of_key.resize(key_number + 1, NO_ROW);
        }
        if self.column_of_key[key_number] == NO_ROW {
            self.column_of_key[key_number] = row_in_column(self.columns.len());
            let mut column = self.spare.pop().unwrap_or_default();
            column.key.push_str(key);
            column.values = of()(std::mem::take(column.values.packed_mut()));
            self.columns.push(column);
        }
        self.column_of_key[key_number] as usize
    }

    fn takes(&self, later: &Self) -> bool {
        later.columns.iter().all(|later| {
            let own = self.columns.iter().find(|own| own.key == later.key);
            own.is_none_or(|own| own.values.takes(&later.values))
        })
    }

    fn append(&mut self, later: &Self, row: u32, texts: &[u32], keys: &[usize]) {
        let n_before = self.event.len();
        self.event.append_shifted(&later.event, row);
        for (number, column) in later.columns_by_key() {
            let later = &later.columns[column];
            let own = self.column_like(keys[number], &later.key, || later.values.kind());
            let own = &mut self.columns[own].values;
            own.pad(n_before);
            own.append(&later.values, texts);
        }
        self.seal();
    }

    /// Returns each column with the number of its key, in order of first use.
    fn columns_by_key(&self) -> Vec<(usize, usize)> {
        let columns =
            self.column_of_key.iter().enumerate().filter(|&(_, &column)| column != NO_ROW);
        let mut found: Vec<_> =
            columns.map(|(number, &column)| (number, column as usize)).collect();
        found.sort_unstable_by_key(|&(_, column)| column);
        found
    }
}

impl ArgColumn {
    /// Returns the value in a row, if it is an integer.
    pub fn integer(&self, row: usize) -> Option<i64> {
        match self.values.get(row) {
            Some(ArgValue::Integer(value)) => Some(value),
            _ => None,
        }
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::Integers(Packed::default())
    }
}

impl Values {
    /// Appends a value, or null.
    pub(crate) fn push(&mut self, value: Option<ArgValue>, strings: &mut Strings) {
        self.set(self.len(), value, strings);
    }

    /// Creates an empty column for values like this one.
    pub(crate) fn like(value: ArgValue) -> Self {
        match value {
            ArgValue::Integer(_) => Self::Integers(Packed::default()),
            ArgValue::Float(_) => Self::Floats(Packed::default()),
            ArgValue::Text(_) => Self::Texts(Packed::default()),
        }
    }

    /// Sets the value of a new row; rows in between are null.
    pub(crate) fn put(&mut self, row: usize, value: ArgValue, strings: &mut Strings) {
        self.set(row, Some(value), strings);
    }

    /// Pads the column with nulls to `length`. Nothing can be added afterwards.
    pub(crate) fn padded(mut self, length: usize) -> Self {
        self.pad(length);
        self.packed_mut().finish();
        self
    }

    /// Sets the value of a row, which is the last or a new one; rows in between are null.
    #[inline]
    fn set(&mut self, row: usize, value: Option<ArgValue>, strings: &mut Strings) {
        let Some(value) = value else { return self.pad(row + 1) };
        match (&mut *self, value) {
            (Self::Integers(values), ArgValue::Integer(value)) => {
                strings.is_order_bound |= value == NO_INTEGER;
                values.set(row, value);
            }
            (Self::Texts(values), ArgValue::Text(text)) => values.set(row, code(text)),
            _ => self.set_other(row, value, strings),
        }
    }

    /// Sets a value if the old, the new or the resulting type is a float.
    fn set_other(&mut self, row: usize, value: ArgValue, strings: &mut Strings) {
        self.widen(value, strings);
        match self {
            Self::Integers(_) => {}
            Self::Floats(values) => values.set(row, of_float(value.float())),
            Self::Texts(values) => values.set(row, code(value.text(strings))),
        }
    }

    /// Returns the packed values, of any type.
    pub fn packed(&self) -> &Packed {
        match self {
            Self::Integers(values) | Self::Floats(values) | Self::Texts(values) => values,
        }
    }

    pub(crate) fn packed_mut(&mut self) -> &mut Packed {
        match self {
            Self::Integers(values) | Self::Floats(values) | Self::Texts(values) => values,
        }
    }

    /// Creates a column of floats; NaN is null.
    pub(crate) fn of_floats(values: &[f64]) -> Self {
        Self::Floats(values.iter().copied().map(of_float).collect())
    }

    /// Returns the constructor of a column of the same type.
    fn kind(&self) -> fn(Packed) -> Self {
        match self {
            Self::Integers(_) => Self::Integers,
            Self::Floats(_) => Self::Floats,
            Self::Texts(_) => Self::Texts,
        }
    }

    /// Adds nulls up to `length`.
    fn pad(&mut self, length: usize) {
        self.packed_mut().pad(length);
    }

    /// Widens the column for a value of a wider type.
    fn widen(&mut self, value: ArgValue, strings: &mut Strings) {
        match (&*self, value) {
            (Self::Integers(_), ArgValue::Float(_)) => *self = self.as_floats(),
            (Self::Integers(_) | Self::Floats(_), ArgValue::Text(_)) => {
                let mut text = |value: ArgValue| value.text(strings);
                let texts =
                    self.iter().map(|value| value.map_or(NO_INTEGER, |value| code(text(value))));
                *self = Self::Texts(unfinished(texts));
            }
            _ => {}
        }
    }

    fn as_floats(&self) -> Self {
        let floats = self.iter().map(|value| value.map_or(f64::NAN, ArgValue::float));
        Self::Floats(unfinished(floats.map(of_float)))
    }

    /// Returns all values; `None` for null.
    pub fn iter(&self) -> impl Iterator<Item = Option<ArgValue>> + '_ {
        self.packed().iter().map(|packed| self.value(packed))
    }

    /// Whether appending `later` gives the same result as pushing its values.
    ///
    /// A number in a string column becomes a string when it is pushed, in file order of strings.
    /// That order is unknown when appending.
    pub(super) fn takes(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Texts(_), Self::Texts(_)) => true,
            (Self::Texts(_), _) | (_, Self::Texts(_)) => {
                self.is_empty() || later.iter().all(|value| value.is_none())
            }
            _ => true,
        }
    }

    /// Appends a column accepted by [`takes`](Self::takes); `texts` are the numbers of its strings
    /// in this table.
    pub(super) fn append(&mut self, later: &Self, texts: &[u32]) {
        match (&*self, later) {
            (Self::Integers(_), Self::Floats(_)) => *self = self.as_floats(),
            (_, Self::Texts(_)) if self.is_empty() => *self = Self::Texts(Packed::default()),
            _ => {}
        }
        match (&mut *self, later) {
            (Self::Integers(values), Self::Integers(later))
            | (Self::Floats(values), Self::Floats(later)) => values.append(later),
            (Self::Floats(values), Self::Integers(later)) => {
                let floats = later.iter().map(|value| match value {
                    NO_INTEGER => NO_INTEGER,
                    value => of_float(ArgValue::Integer(value).float()),
                });
                values.append(&unfinished(floats));
            }
            (Self::Texts(values), Self::Texts(later)) => values.append_renumbered(later, texts),
            _ => self.pad(self.len() + later.len()),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.packed().len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.packed().is_empty()
    }

    /// Returns the values as a column.
    pub(crate) fn column(&self) -> Column<'_> {
        match self {
            Self::Integers(values) => Column::PackedNumbers(values),
            Self::Floats(values) => Column::PackedFloats(values),
            Self::Texts(values) => Column::PackedRows(values),
        }
    }

    /// Returns the value in a row; `None` for null.
    pub fn get(&self, row: usize) -> Option<ArgValue> {
        self.value(self.packed().get(row)?)
    }

    #[inline]
    fn value(&self, packed: i64) -> Option<ArgValue> {
        (packed != NO_INTEGER).then(|| match self {
            Self::Integers(_) => ArgValue::Integer(packed),
            Self::Floats(_) => ArgValue::Float(float_of(packed)),
            Self::Texts(_) => ArgValue::Text(text_of(packed)),
        })
    }
}

/// Returns a string as a packed integer.
fn code(text: StringId) -> i64 {
    Some(text).in_column().into()
}

/// Returns the string of a packed integer.
fn text_of(packed: i64) -> StringId {
    StringId::from_row(usize::try_from(packed).unwrap_or(usize::MAX))
}

/// Creates a column to which values can be added.
fn unfinished(values: impl Iterator<Item = i64>) -> Packed {
    let mut column = Packed::default();
    for value in values {
        column.push(value);
        column.seal();
    }
    column
}

impl ArgValue {
    /// Returns the value as a float; NaN for a string. Integers above 2^53 are rounded.
    #[allow(clippy::cast_precision_loss)]
    fn float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
            Self::Text(_) => f64::NAN,
        }
    }

    fn text(self, strings: &mut Strings) -> StringId {
        if let Self::Text(text) = self {
            return text;
        }
        strings.is_order_bound = true;
        match self {
            Self::Text(text) => text,
            Self::Integer(value) => strings.intern(&value.to_string()),
            Self::Float(value) => strings.intern(&value.to_string()),
        }
    }
}

/// Returns the number of a string from a later part of the file in this table.
pub(crate) fn renamed(text: u32, texts: &[u32]) -> u32 {
    if text == NO_ROW { NO_ROW } else { texts[text as usize] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_takes_the_type_that_holds_every_value() {
        let mut strings = Strings::default();
        let mut table = ArgTable::default();
        let text = strings.intern("7, 1, 1");
        for (row, value) in [ArgValue::Integer(4), ArgValue::Float(0.5), ArgValue::Text(text)]
            .into_iter()
            .enumerate()
        {
            table.push(EventId::from_row(row * 2), 0, "grid", value, &mut strings);
        }
        let Values::Texts(values) = &table.columns[0].values else { panic!("no texts") };
        let texts: Vec<_> =
            values.rows().map(|id| strings.get(StringId::from_column(id).unwrap())).collect();
        assert_eq!(texts, ["4", "0.5", "7, 1, 1"]);
        assert_eq!(table.event.rows().collect::<Vec<_>>(), [0, 2, 4]);
    }

    #[test]
    fn rows_before_the_first_value_have_none_and_the_later_value_of_a_row_counts() {
        let mut strings = Strings::default();
        let mut table = ArgTable::default();
        for (row, key, value) in [(0, 0, 1), (1, 1, 2), (1, 1, 3)] {
            table.push(EventId::from_row(row), key, "key", ArgValue::Integer(value), &mut strings);
        }
        let values: Vec<_> = table.columns[1].values.iter().collect();
        assert_eq!(values, [None, Some(ArgValue::Integer(3))]);
    }
}
