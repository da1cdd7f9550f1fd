//! Reads the complete rows of a CSV file through a window.
//!
//! The first line contains the column names. A row is a line, or several if a quoted field contains
//! line breaks. An unclosed quote must not consume the rest of the file: a row ends after
//! [`MOST_LINES`] lines, and if it does not match the header, only its first line is skipped.
//!
//! Limits: if quotation marks inside a field are not doubled, which is reported, `csv-core` decides
//! how to read it.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::window::Window;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::Result;
use crate::progress::{Progress, report};

/// Maximum number of lines in a row.
const MOST_LINES: usize = 16;

/// Longer lines are skipped.
const MAX_LINE_BYTES: usize = 4 << 20;

/// A file, positioned at the next row.
pub(super) struct Rows<'a> {
    window: Window<'a>,
    progress: Progress<'a>,
    fields: Fields,
    n_columns: usize,
}

/// A row, and the offset at which it begins.
pub(super) struct Row<'a> {
    pub(super) offset: u64,
    /// Whether the file ends in it, without a line break.
    pub(super) is_last: bool,
    fields: &'a Fields,
}

impl Row<'_> {
    /// Returns the text of a field without surrounding white space; `None` if it is empty.
    pub(super) fn text(&self, column: Option<usize>) -> Option<&[u8]> {
        Some(self.fields.get(column?).trim_ascii()).filter(|text| !text.is_empty())
    }
}

/// Returns the column names of a header, in lower case without `_` and `-`.
pub(super) fn columns(line: &[u8]) -> Vec<String> {
    let mut fields = Fields::new(line.len());
    fields.begin();
    if !fields.add(line) || fields.end() == Ended::TooMany {
        return Vec::new();
    }
    (0..fields.n_ends).map(|column| plain(fields.get(column))).collect()
}

fn plain(name: &[u8]) -> String {
    let letters = name.iter().filter(|&byte| !matches!(byte, b'_' | b'-' | b' ' | b'\r'));
    letters.map(|byte| char::from(byte.to_ascii_lowercase())).collect()
}

/// Where a line ends.
#[derive(Clone, Copy)]
enum Line {
    /// After its line break.
    Whole(usize),
    /// At the end of the file.
    Last(usize),
    TooLong,
}

impl Line {
    /// Returns the start of the next line.
    fn end(self) -> usize {
        match self {
            Self::Whole(end) | Self::Last(end) => end,
            Self::TooLong => 0,
        }
    }
}

impl<'a> Rows<'a> {
    /// Returns the rows after the header of a file, and its columns.
    pub(super) fn of(
        mut window: Window<'a>,
        found: &mut Diagnostics,
        progress: Progress<'a>,
    ) -> Result<(Self, Vec<String>)> {
        while window.text().len() < BYTE_ORDER_MARK.len() && window.more(found)? {}
        if window.text().starts_with(BYTE_ORDER_MARK) {
            found.add(Code::ByteOrderMark, 0);
            window.consume(BYTE_ORDER_MARK.len());
        }
        let mut rows = Self { window, progress, fields: Fields::new(0), n_columns: 0 };
        rows.skip_blank_lines(found)?;
        let line = rows.line(0, found)?;
        if let Line::Last(end) = line {
            let code = rows.code_of_end();
            found.add(code, rows.window.offset() + end as u64);
        }
        let columns = columns(content(&rows.window.text()[..line.end()]));
        rows.window.consume(line.end());
        rows.n_columns = columns.len();
        rows.fields = Fields::new(columns.len());
        Ok((rows, columns))
    }

    /// Returns the offset of the next row.
    pub(super) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Reads the next row that matches the header. Rows before it that do not match are counted.
    pub(super) fn next(&mut self, found: &mut Diagnostics) -> Result<Option<Row<'_>>> {
        loop {
            self.skip_blank_lines(found)?;
            let offset = self.window.offset();
            let first = self.line(0, found)?;
            let end = match first {
                Line::Last(0) => {
                    self.note_limit(found);
                    return Ok(None);
                }
                Line::TooLong => {
                    let skipped = self.skip_line(found)?;
                    found.add_skipped(Code::EventTooLarge, offset, skipped);
                    continue;
                }
                // Its last digits may be beyond the limit.
                Line::Last(_) if self.window.is_limited() => None,
                Line::Whole(_) | Line::Last(_) => self.row(first, found)?,
            };
            let Some(line) = end else {
                let code = match first {
                    Line::Last(_) => self.code_of_end(),
                    _ => Code::MalformedEvent,
                };
                found.add_skipped(code, offset, first.end() as u64);
                self.window.consume(first.end());
                continue;
            };
            if !self.fields.are_escaped(&self.window.text()[..line.end()]) {
                found.add(Code::UnescapedName, offset);
            }
            self.window.consume(line.end());
            let is_last = matches!(line, Line::Last(_));
            return Ok(Some(Row { offset, is_last, fields: &self.fields }));
        }
    }

    /// Reads the row that begins with a line. Returns its last line, or `None` if it is incomplete.
    fn row(&mut self, first: Line, found: &mut Diagnostics) -> Result<Option<Line>> {
        self.fields.begin();
        let (mut begin, mut line) = (0, first);
        for _ in 0..MOST_LINES {
            if matches!(line, Line::TooLong) || line.end() == begin {
                return Ok(None);
            }
            if !self.fields.add(content(&self.window.text()[begin..line.end()])) {
                return Ok(None);
            }
            match self.fields.end() {
                Ended::Row => {
                    return Ok((self.fields.n_ends == self.n_columns).then_some(line));
                }
                Ended::TooMany => return Ok(None),
                Ended::InsideQuotes => {}
            }
            begin = line.end();
            line = self.line(begin, found)?;
        }
        Ok(None)
    }

    /// Returns the line at a position of the window, which is fetched if needed.
    fn line(&mut self, begin: usize, found: &mut Diagnostics) -> Result<Line> {
        let mut searched = begin;
        loop {
            let text = self.window.text();
            if let Some(place) = memchr::memchr(b'\n', &text[searched..]) {
                return Ok(Line::Whole(searched + place + 1));
            }
            if text.len() - begin > MAX_LINE_BYTES {
                return Ok(Line::TooLong);
            }
            searched = text.len();
            if !self.more(found)? {
                return Ok(Line::Last(self.window.text().len()));
            }
        }
    }

    fn more(&mut self, found: &mut Diagnostics) -> Result<bool> {
        report(self.progress, self.window.offset())?;
        self.window.more(found)
    }

    fn skip_blank_lines(&mut self, found: &mut Diagnostics) -> Result<()> {
        loop {
            let text = self.window.text();
            let n_blank = text.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n')).count();
            let is_blank = n_blank == text.len();
            self.window.consume(n_blank);
            if !is_blank || !self.more(found)? {
                return Ok(());
            }
        }
    }

    /// Skips a line that is too long. Returns its length.
    fn skip_line(&mut self, found: &mut Diagnostics) -> Result<u64> {
        let begin = self.window.offset();
        loop {
            let text = self.window.text();
            let end = memchr::memchr(b'\n', text);
            self.window.consume(end.unwrap_or(text.len()));
            if end.is_some() || !self.more(found)? {
                return Ok(self.window.offset() - begin);
            }
        }
    }

    /// Returns the reason why the text ends before a line does.
    fn code_of_end(&self) -> Code {
        if self.window.is_limited() { Code::LimitReached } else { Code::Truncated }
    }

    fn note_limit(&self, found: &mut Diagnostics) {
        if self.window.is_limited() && found.count(Code::LimitReached) == 0 {
            found.add(Code::LimitReached, self.window.offset());
        }
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns a line without its line break.
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The fields of a row while it is read.
struct Fields {
    reader: Reader,
    text: Vec<u8>,
    n_text: usize,
    ends: Vec<usize>,
    n_ends: usize,
}

/// How a line of a row ended.
#[derive(PartialEq)]
enum Ended {
    Row,
    InsideQuotes,
    TooMany,
}

impl Fields {
    /// Has room for one field more than the header, to detect rows that are too long.
    fn new(n_columns: usize) -> Self {
        let reader = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
        Self { reader, text: Vec::new(), n_text: 0, ends: vec![0; n_columns + 1], n_ends: 0 }
    }

    fn begin(&mut self) {
        self.reader.reset();
        (self.n_text, self.n_ends) = (0, 0);
    }

    /// Adds a part of the row. Returns false if it has too many fields.
    fn add(&mut self, mut part: &[u8]) -> bool {
        while !part.is_empty() {
            let (result, n_read) = self.feed(part);
            part = &part[n_read..];
            if result == ReadRecordResult::OutputEndsFull {
                return false;
            }
        }
        true
    }

    /// Ends a line.
    fn end(&mut self) -> Ended {
        match self.feed(b"\n").0 {
            ReadRecordResult::Record => Ended::Row,
            ReadRecordResult::OutputEndsFull => Ended::TooMany,
            _ => Ended::InsideQuotes,
        }
    }

    fn feed(&mut self, part: &[u8]) -> (ReadRecordResult, usize) {
        let needed = self.n_text + part.len() + 1;
        if self.text.len() < needed {
            self.text.resize(needed.max(self.text.len() * 2), 0);
        }
        let text = &mut self.text[self.n_text..];
        let ends = &mut self.ends[self.n_ends..];
        let (result, n_read, n_text, n_ends) = self.reader.read_record(part, text, ends);
        self.n_text += n_text;
        self.n_ends += n_ends;
        (result, n_read)
    }

    /// Whether the quotation marks inside fields are doubled in the text, as required.
    fn are_escaped(&self, row: &[u8]) -> bool {
        let has_marks = |field: &&[u8]| field.contains(&b'"');
        if !has_marks(&&self.text[..self.n_text]) {
            return true;
        }
        (0..self.n_ends).map(|column| self.get(column)).filter(has_marks).all(|field| {
            let doubled: Vec<u8> =
                field.split(|&byte| byte == b'"').collect::<Vec<_>>().join(&b"\"\""[..]);
            let parts = doubled.split(|&byte| byte == b'\n');
            parts.into_iter().all(|part| memchr::memmem::find(row, part).is_some())
        })
    }

    fn get(&self, column: usize) -> &[u8] {
        let begin = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[column]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;

    type Read = (Vec<Vec<String>>, Vec<(&'static str, u64, u64)>);

    /// Returns the rows of a text, and the findings: name, count and first offset of each.
    fn read(text: &[u8]) -> Read {
        let window = Window::new(Box::new(text), None).unwrap();
        let mut found = Diagnostics::default();
        let (mut rows, columns) = Rows::of(window, &mut found, &silent).unwrap();
        let mut all = Vec::new();
        while let Some(row) = rows.next(&mut found).unwrap() {
            let field = |column| String::from_utf8_lossy(row.text(Some(column)).unwrap_or(b""));
            all.push((0..columns.len()).map(|column| field(column).into_owned()).collect());
        }
        let found = found.iter().map(|row| (row.code.name(), row.count, row.first_offset));
        (all, found.collect())
    }

    fn rows_of(text: &str) -> Vec<Vec<String>> {
        read(text.as_bytes()).0
    }

    #[test]
    fn quotes_hold_commas_and_line_breaks_and_columns_have_plain_names() {
        assert_eq!(
            columns(b"\"Kernel_Name\",gpu-id,LDS_Block_Size\r"),
            ["kernelname", "gpuid", "ldsblocksize"]
        );
        let text = "a,b\r\n\"f<int, 2>\",1\r\n\n\"two\nlines \"\"x\"\"\",2\n";
        assert_eq!(rows_of(text), [["f<int, 2>", "1"], ["two\nlines \"x\"", "2"]]);
        assert!(read(text.as_bytes()).1.is_empty());
    }

    #[test]
    fn a_quote_that_is_left_open_costs_its_own_line() {
        let lines = "x,y\n".repeat(100);
        let (rows, found) = read(format!("a,b\nx,y\n\"open,2\n{lines}").as_bytes());
        assert_eq!(rows.len(), 101);
        assert_eq!(found, [("malformed_event", 1, 8)]);
    }

    #[test]
    fn quotation_marks_that_are_not_doubled_are_noted() {
        let (rows, found) = read(b"a,b\n\"say \"hi\"\",1\n\"say \"\"hi\"\"\",2\n");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1], ["say \"hi\"", "2"]);
        assert_eq!(found, [("unescaped_name", 1, 4)]);
    }

    #[test]
    fn rows_that_do_not_fit_the_header_are_counted_where_they_stand() {
        let (rows, found) = read(b"a,b\n1\n1,2,3,4\n1,2,3\n5,6\n7");
        assert_eq!(rows, [["5", "6"]]);
        assert_eq!(found, [("malformed_event", 3, 4), ("truncated", 1, 24)]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_in_bounded_memory() {
        let long = std::io::Read::take(std::io::repeat(b'x'), 3 * MAX_LINE_BYTES as u64);
        let text = std::io::Read::chain(&b"a,b\n"[..], long);
        let text = std::io::Read::chain(text, &b"\n1,2\n"[..]);
        let window = Window::new(Box::new(text), None).unwrap();
        let mut found = Diagnostics::default();
        let (mut rows, _) = Rows::of(window, &mut found, &silent).unwrap();
        let row = rows.next(&mut found).unwrap().unwrap();
        assert_eq!(row.text(Some(1)), Some(&b"2"[..]));
        assert_eq!(found.count(Code::EventTooLarge), 1);
    }
}
