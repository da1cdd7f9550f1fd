//! Comma-separated rows after a header.
//!
//! Columns are found by name, because tools add, drop and reorder columns between versions, and
//! repeat names.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr_iter};

use super::found::Found;
use super::lines::{Ending, Line};
use super::records::Reason;

/// Maximum number of columns in a header.
const MAX_COLUMNS: usize = 4096;

/// The names of the columns. Repeated names are numbered: `us`, `us#2`.
#[derive(Debug)]
pub(super) struct Header {
    names: Vec<Vec<u8>>,
    key_column: usize,
    is_row: fn(&[Cow<'_, [u8]>]) -> bool,
}

/// Distinguishes a row from other lines with commas.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// A column that every header has.
    pub(super) name: &'static str,
    /// Whether the values in this column and those after it may belong to a row.
    pub(super) is_row: fn(&[Cow<'_, [u8]>]) -> bool,
}

impl Header {
    /// Parses the header in `line`; `None` if it has too many columns or no key column.
    pub(super) fn parse(line: &[u8], key: Key) -> Option<Self> {
        let mut uses: HashMap<Vec<u8>, usize> = HashMap::new();
        let names: Vec<_> = fields(line)
            .take(MAX_COLUMNS + 1)
            .map(|name| {
                let name = name.trim_ascii().to_vec();
                let count = uses.entry(name.clone()).or_default();
                *count += 1;
                if *count == 1 { name } else { numbered(&name, *count) }
            })
            .collect();
        let key_column = names.iter().position(|name| name == key.name.as_bytes())?;
        (names.len() <= MAX_COLUMNS).then_some(Self { names, key_column, is_row: key.is_row })
    }

    /// Returns the index of a column.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name.as_bytes())
    }

    /// Returns the names.
    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Classifies a line after this header.
    pub(super) fn row<'a>(&self, line: Line<'a>) -> Row<'a> {
        let text = line.text.trim_ascii();
        // Most unrelated lines are recognized without parsing their fields.
        let width = memchr_iter(b',', text).count() + 1;
        if width < self.least_width(line.place.ending) {
            return Row::Foreign;
        }
        let mut values: Vec<_> = fields(text).take(MAX_COLUMNS + 1).map(trimmed).collect();
        if !values.get(self.key_column..).is_some_and(self.is_row) {
            return Row::Foreign;
        }
        // A trailing comma does not add a value.
        if values.len() == self.names.len() + 1
            && values.last().is_some_and(|value| value.is_empty())
        {
            values.pop();
        }
        if values.len() == self.names.len() { Row::Values(values) } else { Row::Ragged }
    }

    /// Returns the values of a line that is a row of this table. A row with missing values is
    /// rejected.
    pub(super) fn values<'a>(
        &self,
        line: Line<'a>,
        found: &mut Found,
    ) -> Option<Vec<Cow<'a, [u8]>>> {
        match self.row(line) {
            Row::Values(values) => return Some(values),
            Row::Ragged => found.reject(line.place, line.text, Reason::WrongColumns),
            Row::Foreign => {}
        }
        None
    }

    /// Returns the minimum number of fields of a line that may be an incomplete row: three of four,
    /// or two if the text ends there. Other lines are unrelated.
    fn least_width(&self, ending: Ending) -> usize {
        match ending {
            Ending::Newline => self.names.len() - self.names.len() / 4,
            Ending::Missing | Ending::Cut => 2,
        }
    }
}

/// The classification of a line after a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Row<'a> {
    /// A value for each column, without surrounding spaces.
    Values(Vec<Cow<'a, [u8]>>),
    /// Similar to a row, but with another number of columns.
    Ragged,
    /// Something else.
    Foreign,
}

/// Returns the fields of a line, split at commas. A quoted field may contain commas and doubled
/// quotes.
pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let (field, behind) = match text {
            [b'"', quoted @ ..] => split_quoted(quoted),
            _ => split_plain(text),
        };
        rest = behind;
        Some(field)
    })
}

fn split_plain(text: &[u8]) -> (Cow<'_, [u8]>, Option<&[u8]>) {
    match memchr(b',', text) {
        Some(comma) => (Cow::Borrowed(&text[..comma]), Some(&text[comma + 1..])),
        None => (Cow::Borrowed(text), None),
    }
}

/// Returns the field up to its closing quote; text between that and the next comma is ignored.
fn split_quoted(text: &[u8]) -> (Cow<'_, [u8]>, Option<&[u8]>) {
    let mut field = Cow::Borrowed(&text[..0]);
    let mut rest = text;
    loop {
        let Some(quote) = memchr(b'"', rest) else { return (joined(field, rest), None) };
        field = joined(field, &rest[..quote]);
        rest = &rest[quote + 1..];
        if rest.first() != Some(&b'"') {
            return (field, memchr(b',', rest).map(|comma| &rest[comma + 1..]));
        }
        field = joined(field, b"\"");
        rest = &rest[1..];
    }
}

fn joined<'a>(field: Cow<'a, [u8]>, more: &'a [u8]) -> Cow<'a, [u8]> {
    if field.is_empty() {
        return Cow::Borrowed(more);
    }
    let mut field = field.into_owned();
    field.extend_from_slice(more);
    Cow::Owned(field)
}

fn trimmed(field: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match field {
        Cow::Borrowed(field) => Cow::Borrowed(field.trim_ascii()),
        Cow::Owned(field) => Cow::Owned(field.trim_ascii().to_vec()),
    }
}

fn numbered(name: &[u8], number: usize) -> Vec<u8> {
    [name, b"#", number.to_string().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::super::lines::Place;
    use super::*;

    const KEY: Key = Key { name: "m", is_row: |values| values[0].iter().all(u8::is_ascii_digit) };

    fn split(line: &str) -> Vec<String> {
        fields(line.as_bytes()).map(|field| String::from_utf8_lossy(&field).into_owned()).collect()
    }

    #[test]
    fn quotes_keep_commas_and_quotes_together() {
        assert_eq!(
            split(r#""0","f<a, b>","say ""no""",,"x""#),
            ["0", "f<a, b>", r#"say "no""#, "", "x"]
        );
        assert_eq!(split("a,b,"), ["a", "b", ""]);
        assert_eq!(split(r#""cut, he"#), ["cut, he"]);
    }

    #[test]
    fn a_repeated_name_is_numbered() {
        let header = Header::parse(b"m,us,CPU-us,us", KEY).unwrap();
        assert_eq!((header.place("us"), header.place("us#2")), (Some(1), Some(3)));
    }

    #[test]
    fn a_row_has_the_columns_of_its_header() {
        let header = Header::parse(b"m,n,k,us", KEY).unwrap();
        let place = Place { offset: 0, ending: Ending::Newline };
        let row = |text: &'static str| header.row(Line { text: text.as_bytes(), place });
        assert!(matches!(row("  1,2,3, 4.5"), Row::Values(values) if *values[3] == *b"4.5"));
        assert!(matches!(row("1,2,3,4.5,"), Row::Values(values) if values.len() == 4));
        assert_eq!(
            [row("1,2,3"), row("1"), row("a,2,3,4")],
            [Row::Ragged, Row::Foreign, Row::Foreign]
        );
    }
}
