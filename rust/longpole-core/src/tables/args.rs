use super::NO_INTEGER;
use crate::ids::{row_in_column, EventId, InColumn, StringId, NO_ROW};
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
    /// [`NO_INTEGER`] for none.
    Integers(Vec<i64>),
    /// NaN for none.
    Floats(Vec<f64>),
    /// [`NO_ROW`] for none.
    Texts(Vec<u32>),
}

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
        let slot = self.slot(category);
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
                match &mut column.values {
                    Values::Integers(values) => values.resize(table.event.len(), NO_INTEGER),
                    Values::Floats(values) => values.resize(table.event.len(), f64::NAN),
                    Values::Texts(values) => values.resize(table.event.len(), NO_ROW),
                }
            }
        }
    }

    pub(crate) fn of_mut(&mut self, category: Option<StringId>) -> &mut ArgTable {
        let slot = self.slot(category);
        if slot >= self.table_of_category.len() {
            self.table_of_category.resize(slot + 1, NO_ROW);
        }
        if self.table_of_category[slot] == NO_ROW {
            self.table_of_category[slot] = row_in_column(self.tables.len());
            self.tables.push((category, ArgTable::default()));
        }
        &mut self.tables[self.table_of_category[slot] as usize].1
    }

    /// Events without a category have slot 0.
    #[allow(clippy::unused_self)] // reads as a question to the table
    fn slot(&self, category: Option<StringId>) -> usize {
        category.map_or(0, |id| id.row() + 1)
    }
}

impl ArgTable {
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
        self.columns[column].set(row, value, strings);
    }

    fn column(&mut self, key_number: usize, key: &str, first: ArgValue) -> usize {
        if key_number >= self.column_of_key.len() {
            self.column_of_key.resize(key_number + 1, NO_ROW);
        }
        if self.column_of_key[key_number] == NO_ROW {
            self.column_of_key[key_number] = row_in_column(self.columns.len());
            let values = match first {
                ArgValue::Integer(_) => Values::Integers(Vec::new()),
                ArgValue::Float(_) => Values::Floats(Vec::new()),
                ArgValue::Text(_) => Values::Texts(Vec::new()),
            };
            self.columns.push(ArgColumn { key: key.to_owned(), values });
        }
        self.column_of_key[key_number] as usize
    }
}

impl ArgColumn {
    fn set(&mut self, row: usize, value: ArgValue, strings: &mut Strings) {
        self.widen(value, strings);
        match &mut self.values {
            Values::Integers(values) => {
                if let ArgValue::Integer(value) = value {
                    set(values, row, value, NO_INTEGER);
                }
            }
            Values::Floats(values) => {
                let value = match value {
                    ArgValue::Float(value) => value,
                    ArgValue::Integer(value) => float(value),
                    ArgValue::Text(_) => f64::NAN,
                };
                set(values, row, value, f64::NAN);
            }
            Values::Texts(values) => {
                let text = match value {
                    ArgValue::Text(text) => text,
                    ArgValue::Integer(value) => strings.intern(&value.to_string()),
                    ArgValue::Float(value) => strings.intern(&value.to_string()),
                };
                set(values, row, Some(text).in_column(), NO_ROW);
            }
        }
    }

    /// Makes room for a value of a wider type.
    fn widen(&mut self, value: ArgValue, strings: &mut Strings) {
        let wider = match (&self.values, value) {
            (Values::Integers(values), ArgValue::Float(_)) => Values::Floats(
                values
                    .iter()
                    .map(|&value| if value == NO_INTEGER { f64::NAN } else { float(value) })
                    .collect(),
            ),
            (Values::Integers(values), ArgValue::Text(_)) => Values::Texts(
                values
                    .iter()
                    .map(|&value| {
                        (value != NO_INTEGER)
                            .then(|| strings.intern(&value.to_string()))
                            .in_column()
                    })
                    .collect(),
            ),
            (Values::Floats(values), ArgValue::Text(_)) => Values::Texts(
                values
                    .iter()
                    .map(|value| {
                        (!value.is_nan()).then(|| strings.intern(&value.to_string())).in_column()
                    })
                    .collect(),
            ),
            _ => return,
        };
        self.values = wider;
    }

    /// The value in a row as an integer, where it is one.
    pub fn integer(&self, row: usize) -> Option<i64> {
        match &self.values {
            Values::Integers(values) => {
                values.get(row).copied().filter(|&value| value != NO_INTEGER)
            }
            _ => None,
        }
    }
}

fn set<T: Copy>(values: &mut Vec<T>, row: usize, value: T, none: T) {
    if values.len() <= row {
        values.resize(row, none);
        values.push(value);
    } else {
        values[row] = value;
    }
}

/// Integers above 2^53 round: they came into a column of floats.
#[allow(clippy::cast_precision_loss)]
fn float(value: i64) -> f64 {
    value as f64
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
        assert_eq!(table.columns[1].values, Values::Integers(vec![NO_INTEGER, 3]));
    }
}
