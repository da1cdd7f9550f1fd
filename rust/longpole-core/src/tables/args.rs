//! The arguments of events, one table for each category and one column for each key.
//!
//! Kinds of events have different arguments, and most cells of one wide table would be empty. A
//! column starts as integers and widens to floating point or text when a value asks for it.

use super::{Column, ColumnMut};
use crate::ids::{row_in_column, EventId, InColumn, StringId, NO_INTEGER, NO_ROW};
use crate::strings::Strings;

/// The value of one argument, as the reader appends it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArgValue {
    /// An integer that fits 64 bits.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A text, or a list as the file spells it.
    Text(StringId),
}

/// The values of one argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Integers that all fit 32 bits, as most ids do; [`NO_SHORT`] for none.
    Shorts(Vec<i32>),
    /// [`NO_INTEGER`] for none.
    Integers(Vec<i64>),
    /// NaN for none.
    Floats(Vec<f64>),
    /// [`NO_ROW`] for none.
    Texts(Vec<u32>),
}

/// Stands for "none" among [`Values::Shorts`].
pub const NO_SHORT: i32 = i32::MIN;

/// One argument of the events of one category.
///
/// The type is the narrowest that holds every value of the file: integers
/// become floats when a number with a point turns up, and texts when a text does.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgColumn {
    /// The key in the file.
    pub key: String,
    /// One value a row of the table.
    pub values: Values,
}

/// The arguments of the events of one category: a row for each event that has any.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgTable {
    /// The events.
    pub event: Vec<u32>,
    /// The arguments, in order of first use.
    pub columns: Vec<ArgColumn>,
    /// Which column holds the key with a number given by the reader.
    column_of_key: Vec<u32>,
}

/// Every table of arguments, in order of the first use of its category.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgTables {
    tables: Vec<(Option<StringId>, ArgTable)>,
    table_of_category: Vec<u32>,
}

impl ArgTables {
    /// The arguments of the events of `category`, if any were kept.
    pub fn of(&self, category: Option<StringId>) -> Option<&ArgTable> {
        let slot = slot(category);
        let row = *self.table_of_category.get(slot).filter(|&&row| row != NO_ROW)?;
        Some(&self.tables[row as usize].1)
    }

    /// Every category with its arguments.
    pub fn iter(&self) -> impl Iterator<Item = (Option<StringId>, &ArgTable)> {
        self.tables.iter().map(|(category, table)| (*category, table))
    }

    /// Makes every column as long as its table.
    pub(crate) fn pad(&mut self) {
        for (_, table) in &mut self.tables {
            for column in &mut table.columns {
                column.values.pad(table.event.len());
            }
        }
    }

    /// The same arguments without those that `keeps` leaves out, as a reader that was not asked
    /// for them would have made them.
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

    /// Whether appending the tables of a later part of the file gives what pushing their values
    /// would give. `known` is which text each is here, if it is known.
    pub(crate) fn takes(&self, later: &Self, known: impl Fn(StringId) -> Option<StringId>) -> bool {
        later.iter().all(|(category, later)| {
            let own = match category {
                None => self.of(None),
                Some(category) => known(category).and_then(|category| self.of(Some(category))),
            };
            own.is_none_or(|own| own.takes(later))
        })
    }

    /// Appends what [`takes`](Self::takes) lets through: a part with events from `row` on, whose
    /// texts and keys have these numbers here.
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
            self.tables.push((category, ArgTable::default()));
        }
        &mut self.tables[self.table_of_category[slot] as usize].1
    }
}

/// Events without a category have slot 0.
fn slot(category: Option<StringId>) -> usize {
    category.map_or(0, |id| id.row() + 1)
}

impl ArgTable {
    fn drop_empty_rows(&mut self) {
        let is_kept: Vec<_> = (0..self.event.len())
            .map(|row| !self.columns.iter().all(|column| column.values.is_none(row)))
            .collect();
        if is_kept.contains(&false) {
            retain(&mut self.event, &is_kept);
            self.columns.iter_mut().for_each(|column| column.values.retain(&is_kept));
        }
    }

    /// Sets an argument of `event`, which is the last or a new last row. A key
    /// that is there already takes the later value, as JSON readers do.
    pub(crate) fn push(
        &mut self,
        event: EventId,
        key_number: usize,
        key: &str,
        value: ArgValue,
        strings: &mut Strings,
    ) {
        let event = Some(event).in_column();
        if self.event.last() != Some(&event) {
            self.event.push(event);
        }
        let row = self.event.len() - 1;
        let column = self.column(key_number, key, value);
        self.columns[column].values.set(row, Some(value), strings);
    }

    fn column(&mut self, key_number: usize, key: &str, first: ArgValue) -> usize {
        self.column_like(key_number, key, || match first {
            ArgValue::Integer(_) => Values::Shorts(Vec::new()),
            ArgValue::Float(_) => Values::Floats(Vec::new()),
            ArgValue::Text(_) => Values::Texts(Vec::new()),
        })
    }

    fn column_like(&mut self, key_number: usize, key: &str, new: impl Fn() -> Values) -> usize {
        if key_number >= self.column_of_key.len() {
            self.column_of_key.resize(key_number + 1, NO_ROW);
        }
        if self.column_of_key[key_number] == NO_ROW {
            self.column_of_key[key_number] = row_in_column(self.columns.len());
            self.columns.push(ArgColumn { key: key.to_owned(), values: new() });
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
        self.event.extend(later.event.iter().map(|&event| event + row));
        for (number, column) in later.columns_by_key() {
            let later = &later.columns[column];
            let own = self.column_like(keys[number], &later.key, || later.values.empty());
            let own = &mut self.columns[own].values;
            own.pad(n_before);
            own.append(&later.values, texts);
        }
    }

    /// The number of the key of each column, and the column, in order of first use.
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
    /// The value in a row as an integer, where it is one.
    pub fn integer(&self, row: usize) -> Option<i64> {
        match self.values.get(row) {
            Some(ArgValue::Integer(value)) => Some(value),
            _ => None,
        }
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::Shorts(Vec::new())
    }
}

impl Values {
    /// Appends a value, or none.
    pub(crate) fn push(&mut self, value: Option<ArgValue>, strings: &mut Strings) {
        self.set(self.len(), value, strings);
    }

    /// Sets the value of a row, which is the last or a new one; rows in between get none.
    fn set(&mut self, row: usize, value: Option<ArgValue>, strings: &mut Strings) {
        let Some(value) = value else { return self.pad(row + 1) };
        self.widen(value, strings);
        match self {
            Self::Shorts(values) => set(values, row, value.short().unwrap_or(NO_SHORT), NO_SHORT),
            Self::Integers(values) => {
                let integer = value.integer();
                strings.is_order_bound |= integer == NO_INTEGER;
                set(values, row, integer, NO_INTEGER);
            }
            Self::Floats(values) => set(values, row, value.float(), f64::NAN),
            Self::Texts(values) => set(values, row, value.text(strings).in_column(), NO_ROW),
        }
    }

    /// No values, in a column of the same type.
    fn empty(&self) -> Self {
        match self {
            Self::Shorts(_) => Self::Shorts(Vec::new()),
            Self::Integers(_) => Self::Integers(Vec::new()),
            Self::Floats(_) => Self::Floats(Vec::new()),
            Self::Texts(_) => Self::Texts(Vec::new()),
        }
    }

    /// Adds rows without a value up to `length`.
    fn pad(&mut self, length: usize) {
        match self {
            Self::Shorts(values) => values.resize(length, NO_SHORT),
            Self::Integers(values) => values.resize(length, NO_INTEGER),
            Self::Floats(values) => values.resize(length, f64::NAN),
            Self::Texts(values) => values.resize(length, NO_ROW),
        }
    }

    /// Makes room for a value of a wider type.
    fn widen(&mut self, value: ArgValue, strings: &mut Strings) {
        let is_wide_enough = match (&*self, value) {
            (Self::Shorts(_), ArgValue::Integer(_)) => value.short().is_some(),
            (Self::Shorts(_) | Self::Integers(_), ArgValue::Float(_) | ArgValue::Text(_))
            | (Self::Floats(_), ArgValue::Text(_)) => false,
            _ => true,
        };
        if is_wide_enough {
            return;
        }
        *self = match value {
            ArgValue::Integer(_) => self.as_integers(),
            ArgValue::Float(_) => self.as_floats(),
            ArgValue::Text(_) => {
                let mut text = |value: ArgValue| value.text(strings);
                let texts = self.iter().map(|value| value.and_then(&mut text).in_column());
                Self::Texts(texts.collect())
            }
        };
    }

    fn as_integers(&self) -> Self {
        Self::Integers(
            self.iter().map(|value| value.map_or(NO_INTEGER, ArgValue::integer)).collect(),
        )
    }

    fn as_floats(&self) -> Self {
        Self::Floats(self.iter().map(|value| value.map_or(f64::NAN, ArgValue::float)).collect())
    }

    fn iter(&self) -> impl Iterator<Item = Option<ArgValue>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Whether appending `later` gives what pushing its values would give.
    ///
    /// A number that stands among texts is a text from when it was pushed, in the order of the
    /// texts of the file, which those who append cannot know.
    pub(super) fn takes(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Texts(_), Self::Texts(_)) => true,
            (Self::Texts(_), _) | (_, Self::Texts(_)) => {
                self.is_empty() || later.iter().all(|value| value.is_none())
            }
            _ => true,
        }
    }

    /// Appends what [`takes`](Self::takes) lets through; `texts` says which text each is here.
    pub(super) fn append(&mut self, later: &Self, texts: &[u32]) {
        match (&*self, later) {
            (Self::Shorts(_), Self::Integers(_)) => *self = self.as_integers(),
            (Self::Shorts(_) | Self::Integers(_), Self::Floats(_)) => *self = self.as_floats(),
            (_, Self::Texts(_)) if self.is_empty() => *self = Self::Texts(Vec::new()),
            _ => {}
        }
        match (&mut *self, later) {
            (Self::Shorts(values), Self::Shorts(later)) => values.extend_from_slice(later),
            (Self::Integers(values), Self::Integers(later)) => values.extend_from_slice(later),
            (Self::Floats(values), Self::Floats(later)) => values.extend_from_slice(later),
            (Self::Texts(values), Self::Texts(later)) => {
                values.extend(later.iter().map(|&text| renamed(text, texts)));
            }
            (Self::Integers(values), later) => {
                values
                    .extend(later.iter().map(|value| value.map_or(NO_INTEGER, ArgValue::integer)));
            }
            (Self::Floats(values), later) => {
                values.extend(later.iter().map(|value| value.map_or(f64::NAN, ArgValue::float)));
            }
            _ => self.pad(self.len() + later.len()),
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Shorts(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as a column.
    pub(crate) fn column(&self) -> Column<'_> {
        match self {
            Self::Shorts(values) => Column::Shorts(values),
            Self::Integers(values) => Column::Integers(values),
            Self::Floats(values) => Column::Floats(values),
            Self::Texts(values) => Column::Rows(values),
        }
    }

    /// The values as a column, to be filled.
    pub(crate) fn column_mut(&mut self) -> ColumnMut<'_> {
        match self {
            Self::Shorts(values) => ColumnMut::Shorts(values),
            Self::Integers(values) => ColumnMut::Integers(values),
            Self::Floats(values) => ColumnMut::Floats(values),
            Self::Texts(values) => ColumnMut::Rows(values),
        }
    }

    /// Whether a row has no value.
    fn is_none(&self, row: usize) -> bool {
        self.get(row).is_none()
    }

    /// Keeps the rows that are true.
    fn retain(&mut self, is_kept: &[bool]) {
        match self {
            Self::Shorts(values) => retain(values, is_kept),
            Self::Integers(values) => retain(values, is_kept),
            Self::Floats(values) => retain(values, is_kept),
            Self::Texts(values) => retain(values, is_kept),
        }
    }

    /// The value in a row, if it has one.
    pub fn get(&self, row: usize) -> Option<ArgValue> {
        match self {
            Self::Shorts(values) => {
                let value = *values.get(row).filter(|&&value| value != NO_SHORT)?;
                Some(ArgValue::Integer(value.into()))
            }
            Self::Integers(values) => {
                values.get(row).copied().filter(|&value| value != NO_INTEGER).map(ArgValue::Integer)
            }
            Self::Floats(values) => {
                values.get(row).copied().filter(|value| !value.is_nan()).map(ArgValue::Float)
            }
            Self::Texts(values) => StringId::from_column(*values.get(row)?).map(ArgValue::Text),
        }
    }
}

impl ArgValue {
    fn short(self) -> Option<i32> {
        match self {
            Self::Integer(value) => i32::try_from(value).ok().filter(|&value| value != NO_SHORT),
            Self::Float(_) | Self::Text(_) => None,
        }
    }

    fn integer(self) -> i64 {
        match self {
            Self::Integer(value) => value,
            Self::Float(_) | Self::Text(_) => NO_INTEGER,
        }
    }

    /// Integers above 2^53 round: they came into a column of floats.
    #[allow(clippy::cast_precision_loss)]
    fn float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
            Self::Text(_) => f64::NAN,
        }
    }

    #[allow(clippy::unnecessary_wraps)] // the column takes an option
    fn text(self, strings: &mut Strings) -> Option<StringId> {
        if let Self::Text(text) = self {
            return Some(text);
        }
        strings.is_order_bound = true;
        Some(match self {
            Self::Text(text) => text,
            Self::Integer(value) => strings.intern(&value.to_string()),
            Self::Float(value) => strings.intern(&value.to_string()),
        })
    }
}

/// A text of a later part of the file as it is numbered here.
pub(crate) fn renamed(text: u32, texts: &[u32]) -> u32 {
    if text == NO_ROW {
        NO_ROW
    } else {
        texts[text as usize]
    }
}

fn retain<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let mut kept = is_kept.iter();
    values.retain(|_| kept.next().copied().unwrap_or(false));
}

fn set<T: Copy>(values: &mut Vec<T>, row: usize, value: T, none: T) {
    if values.len() <= row {
        values.resize(row, none);
        values.push(value);
    } else {
        values[row] = value;
    }
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
            values.iter().map(|&id| strings.get(StringId::from_column(id).unwrap())).collect();
        assert_eq!((texts, table.event), (vec!["4", "0.5", "7, 1, 1"], vec![0, 2, 4]));
    }

    #[test]
    fn rows_before_the_first_value_have_none_and_the_later_value_of_a_row_counts() {
        let mut strings = Strings::default();
        let mut table = ArgTable::default();
        for (row, key, value) in [(0, 0, 1), (1, 1, 2), (1, 1, 3)] {
            table.push(EventId::from_row(row), key, "key", ArgValue::Integer(value), &mut strings);
        }
        assert_eq!(table.columns[1].values, Values::Shorts(vec![NO_SHORT, 3]));
    }
}
