//! Splits a stream into lines, passes them to the readers, and builds the tables.

use std::ops::Range;

use regex::bytes::{Regex, RegexSet, SetMatches};

use super::format::{Format, Interest, Reader};
use super::found::Found;
use super::lines::{self, Ending, Line, Place, Span};
use super::numbers::Unit;
use super::pattern::Pattern;
use super::records::{Extraction, Measurement, Reason};
use crate::ids::{NO_ROW, row_in_column};

/// Longer lines are skipped: no tool prints a row of a megabyte, but some print their progress
/// without ever ending the line.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Longer than any anchor.
const SEAM_BYTES: usize = 64;

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its process exited by itself: a last line without a line ending is complete.
    Whole,
    /// Its process was killed or crashed: a last line without a line ending may be incomplete.
    Died,
}

/// A row of a format that is read elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct ForeignRow<'a> {
    /// The name of the format.
    pub format: &'a str,
    /// Its position: the offset of its document.
    pub offset: u64,
    /// The operation.
    pub operation: &'a str,
    /// The time as printed.
    pub time: &'a str,
    /// The unit of the time, in a form that [`Unit::parse`] accepts.
    pub unit: &'a str,
    /// Whether the tool itself reports a failure.
    pub failed: bool,
    /// Its additional fields, as names and values.
    pub fields: &'a [(String, String)],
}

impl ForeignRow<'_> {
    fn place(&self) -> Place {
        Place { offset: self.offset, ending: Ending::Newline }
    }
}

/// Extracts records from one stream. The result does not depend on how the stream is divided into
/// chunks.
pub struct Extractor {
    names: Vec<String>,
    readers: Vec<Slot>,
    anchors: Anchors,
    every_line: bool,
    unfinished: Unfinished,
    offset: u64,
    found: Found,
}

impl Extractor {
    /// Creates an extractor for some formats and user-defined patterns.
    pub fn new(formats: &[Format], patterns: Vec<Pattern>) -> Self {
        let names = formats.iter().map(|format| format.name.to_owned());
        let names = names.chain((1..=patterns.len()).map(pattern_name)).collect();
        let anchors = if patterns.is_empty() { Anchors::of(formats) } else { Anchors::Everywhere };
        let mut readers = Vec::new();
        let mut first = 0;
        for format in formats {
            let anchors = first..first + format.anchors.len();
            first = anchors.end;
            readers.push(Slot { reader: (format.reader)(), anchors, interest: Interest::Anchors });
        }
        readers.extend(patterns.into_iter().map(Pattern::into_reader).map(|reader| Slot {
            reader,
            anchors: 0..0,
            interest: Interest::Anchors,
        }));
        Self {
            names,
            readers,
            anchors,
            every_line: false,
            unfinished: Unfinished::default(),
            offset: 0,
            found: Found::default(),
        }
    }

    /// Sets the maximum number of records; further ones are summarized by operation.
    #[must_use]
    pub fn keeping(mut self, max_records: usize) -> Self {
        self.found = Found::with_limit(max_records);
        self
    }

    /// Processes the next bytes of the stream.
    pub fn feed(&mut self, chunk: &[u8]) {
        let taken = self.feed_unfinished(chunk);
        let (whole, rest) = lines::split_unfinished(&chunk[taken..]);
        self.scan(whole, self.offset + taken as u64);
        self.offset += chunk.len() as u64;
        if !rest.is_empty() {
            self.unfinished.offset = self.offset - rest.len() as u64;
            self.unfinished.extend(rest, &self.anchors);
        }
    }

    /// Adds a row of a format that is read elsewhere. A row with another unit, or whose time is not
    /// a number, is rejected like any other.
    pub fn record(&mut self, row: &ForeignRow<'_>) {
        self.found.format = self.format(row.format);
        let line = Line { text: row.time.as_bytes(), place: row.place() };
        let Some(unit) = Unit::parse(row.unit.as_bytes()) else {
            return self.found.reject(line.place, line.text, Reason::UnknownUnit);
        };
        let measurement = Measurement::new(line, line.text, unit);
        let operation = Some(row.operation.as_bytes());
        let failed = row.failed;
        if self.found.measured(&Measurement { operation, failed, ..measurement }) {
            for (name, value) in row.fields {
                self.found.optional_field(name.as_bytes(), value.as_bytes());
            }
        }
    }

    /// Counts text that was read elsewhere and is invalid.
    pub fn reject(&mut self, format: &str, offset: u64, text: &[u8], reason: Reason) {
        self.found.format = self.format(format);
        self.found.reject(Place { offset, ending: Ending::Newline }, text, reason);
    }

    /// Returns the index of a format among the names, to which it is added if it is new.
    fn format(&mut self, name: &str) -> u32 {
        let known = self.names.iter().position(|other| other == name);
        row_in_column(known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        }))
    }

    /// Returns the tables at the end of the stream.
    pub fn finish(mut self, end: End) -> Extraction {
        let is_unterminated = !matches!(self.unfinished.text.last(), None | Some(b'\r'));
        let ending = match end {
            _ if !is_unterminated => Ending::Newline,
            End::Whole => Ending::Missing,
            End::Died => Ending::Cut,
        };
        if !self.unfinished.text.is_empty() {
            self.show_unfinished(ending);
        }
        for (slot, format) in self.readers.iter_mut().zip(0..) {
            self.found.format = format;
            slot.reader.end(&mut self.found);
        }
        self.found.into_extraction(self.names, self.offset, is_unterminated)
    }

    /// Completes the line that the last chunk left open. Returns the number of bytes used.
    fn feed_unfinished(&mut self, chunk: &[u8]) -> usize {
        if self.unfinished.text.is_empty() {
            return 0;
        }
        if self.unfinished.text.ends_with(b"\r") && !chunk.is_empty() {
            self.show_unfinished(Ending::Newline);
            return usize::from(chunk.starts_with(b"\n"));
        }
        let Some((end, next)) = lines::first_end(chunk) else {
            self.unfinished.extend(chunk, &self.anchors);
            return chunk.len();
        };
        self.unfinished.extend(&chunk[..end], &self.anchors);
        self.show_unfinished(Ending::Newline);
        next
    }

    fn show_unfinished(&mut self, ending: Ending) {
        let Unfinished { text, offset, too_long } = std::mem::take(&mut self.unfinished);
        let place = Place { offset, ending };
        let text = text.strip_suffix(b"\r").unwrap_or(&text);
        match too_long {
            Some(LongLine { may_hold_row: true }) => self.reject_long(place),
            Some(LongLine { may_hold_row: false }) => {}
            // The anchor may be missing because the stream ended early.
            None => {
                let whose =
                    if ending == Ending::Newline { self.anchors.on(text) } else { Whose::All };
                self.show(Line { text, place }, &whose);
            }
        }
    }

    /// Passes the relevant lines of `text`, which consists of complete lines, to the readers.
    fn scan(&mut self, text: &[u8], offset: u64) {
        let mut at = 0;
        let mut anchor = self.anchors.find(text, at);
        while let Some(hit) = if self.every_line { (at < text.len()).then_some(at) } else { anchor }
        {
            let Span { start, end, next } = lines::around(text, at, hit);
            let is_anchored = anchor.is_some_and(|anchor| anchor < next);
            let place = Place { offset: offset + start as u64, ending: Ending::Newline };
            let line = Line { text: &text[start..end], place };
            let whose = if is_anchored { self.anchors.on(line.text) } else { Whose::None };
            self.show(line, &whose);
            at = next;
            if is_anchored {
                anchor = self.anchors.find(text, at);
            }
        }
    }

    /// Passes a line to the readers that have an anchor on it, and to those that requested every
    /// line.
    fn show(&mut self, line: Line<'_>, whose: &Whose) {
        if line.text.len() > MAX_LINE_BYTES {
            if !matches!(whose, Whose::None) {
                self.reject_long(line.place);
            }
            return;
        }
        self.every_line = false;
        for (slot, format) in self.readers.iter_mut().zip(0..) {
            if slot.interest == Interest::EveryLine || whose.is(&slot.anchors) {
                self.found.format = format;
                slot.interest = slot.reader.line(line, &mut self.found);
            }
            self.every_line |= slot.interest == Interest::EveryLine;
        }
    }

    fn reject_long(&mut self, place: Place) {
        self.found.format = NO_ROW;
        self.found.reject(Place { ending: Ending::Newline, ..place }, b"", Reason::LineTooLong);
    }
}

fn pattern_name(number: usize) -> String {
    if number == 1 { "regex".into() } else { format!("regex#{number}") }
}

/// A reader, and the lines that it last requested.
struct Slot {
    reader: Box<dyn Reader>,
    /// The indices of its anchors. A user-defined pattern has none, and sees all lines.
    anchors: Range<usize>,
    interest: Interest,
}

/// Which readers see a line.
enum Whose {
    /// The readers with an anchor on it.
    Anchors(SetMatches),
    All,
    None,
}

impl Whose {
    fn is(&self, anchors: &Range<usize>) -> bool {
        match self {
            Self::Anchors(found) => {
                anchors.is_empty() || anchors.clone().any(|at| found.matched(at))
            }
            Self::All => true,
            Self::None => false,
        }
    }
}

/// What a line must contain to be passed to a reader.
enum Anchors {
    /// Short strings, which the regex engine finds several bytes at a time; and, if there are
    /// several formats, a set that identifies the anchors on a line.
    Texts(Regex, Option<RegexSet>),
    /// User-defined patterns may match anything.
    Everywhere,
    /// There are no readers.
    Nowhere,
}

impl Anchors {
    fn of(formats: &[Format]) -> Self {
        let texts: Vec<_> = formats
            .iter()
            .flat_map(|format| format.anchors)
            .map(|text| regex::escape(text))
            .collect();
        if texts.is_empty() {
            return Self::Nowhere;
        }
        let Ok(any) = Regex::new(&texts.join("|")) else { return Self::Everywhere };
        let each = if formats.len() > 1 { RegexSet::new(&texts).ok() } else { None };
        Self::Texts(any, each)
    }

    /// Returns the readers whose anchors are on a line.
    fn on(&self, line: &[u8]) -> Whose {
        match self {
            Self::Texts(_, Some(each)) if line.len() <= MAX_LINE_BYTES => {
                let found = each.matches(line);
                if found.matched_any() { Whose::Anchors(found) } else { Whose::None }
            }
            _ if self.find(line, 0).is_some() => Whose::All,
            _ => Whose::None,
        }
    }

    /// Returns the first match at or after `at`.
    fn find(&self, text: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::Texts(any, _) => any.find_at(text, at).map(|found| found.start()),
            Self::Everywhere => (at < text.len()).then_some(at),
            Self::Nowhere => None,
        }
    }
}

/// The start of a line whose end has not arrived yet.
#[derive(Default)]
struct Unfinished {
    text: Vec<u8>,
    offset: u64,
    too_long: Option<LongLine>,
}

/// A line that is too long, of which only the last bytes are kept.
struct LongLine {
    may_hold_row: bool,
}

impl Unfinished {
    fn extend(&mut self, more: &[u8], anchors: &Anchors) {
        self.text.extend_from_slice(more);
        // One byte may be a CR that is not part of the line.
        if self.text.len() <= MAX_LINE_BYTES + 1 && self.too_long.is_none() {
            return;
        }
        let before = matches!(self.too_long, Some(LongLine { may_hold_row: true }));
        let may_hold_row = before || anchors.find(&self.text, 0).is_some();
        self.too_long = Some(LongLine { may_hold_row });
        self.text.drain(..self.text.len().saturating_sub(SEAM_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::super::FORMATS;
    use super::super::formats::testing::{records, rejections};
    use super::*;

    fn extract(chunks: &[&[u8]]) -> Extraction {
        let mut extractor = Extractor::new(FORMATS, Vec::new());
        for chunk in chunks {
            extractor.feed(chunk);
        }
        extractor.finish(End::Whole)
    }

    const LOG: &str = " 10%\r100%\rOP:a,TIME:1.250,WS:0\r\n\nTIME:2\r\nnoise\rWS:8\n\
        transA,transB,M,rocblas-Gflops,us\r\nN,T,7680, 10037.5, 102694\r\nOP:b,TIME:1.2.3,WS:0\nOP:c,TIME:3,WS:1";

    fn fields(found: &Extraction) -> impl PartialEq + std::fmt::Debug {
        (
            records(found),
            rejections(found),
            found.records.offset.clone(),
            found.rejections.offset.clone(),
        )
    }

    #[test]
    fn chunks_make_no_difference() {
        let whole = extract(&[LOG.as_bytes()]);
        assert_eq!(whole.records.len(), 4);
        for cut in 0..LOG.len() {
            let (head, tail) = LOG.as_bytes().split_at(cut);
            assert_eq!(fields(&extract(&[head, tail])), fields(&whole), "cut at {cut}");
        }
        let bytes: Vec<_> = LOG.as_bytes().chunks(1).collect();
        assert_eq!(fields(&extract(&bytes)), fields(&whole));
    }

    #[test]
    fn a_giant_line_is_told_only_if_a_row_may_be_lost() {
        let noise = vec![b'y'; MAX_LINE_BYTES + 1];
        let hidden = [&noise[..], b"OP:a,TIME:1,WS:0", &noise].concat();
        for (line, n_rejected) in [(&noise, 0), (&hidden, 1)] {
            let text = [line, &b"\nOP:a,TIME:1.25,WS:0\n"[..]].concat();
            for chunk_bytes in [text.len(), 70_001, MAX_LINE_BYTES, MAX_LINE_BYTES + 9] {
                let found = extract(&text.chunks(chunk_bytes).collect::<Vec<_>>());
                assert_eq!((found.records.len(), found.rejections.total()), (1, n_rejected));
            }
        }
    }

    #[test]
    fn rows_beyond_the_limit_are_summarised_and_the_fastest_of_them_is_known() {
        let mut extractor = Extractor::new(FORMATS, Vec::new()).keeping(2);
        for time in ["5", "4", "3", "1", "0", "2"] {
            extractor.feed(format!("OP:a,TIME:{time},WS:{time}\n").as_bytes());
        }
        let found = extractor.finish(End::Whole);
        let [omitted] = &found.omitted[..] else { panic!("one operation") };
        let fastest = omitted.fastest.as_ref().unwrap();
        assert_eq!((found.records.len(), omitted.count, omitted.selectable), (2, 4, 3));
        assert_eq!((fastest.time_ns, fastest.workspace_bytes), (1e6, Some(1)));
        assert_eq!((omitted.operation.as_deref(), omitted.last_ns), (Some("a"), 2e6));
    }

    #[test]
    fn names_without_end_share_a_summary() {
        let mut extractor = Extractor::new(FORMATS, Vec::new()).keeping(1);
        for number in 0..20_000 {
            extractor.feed(format!("OP:op{number},TIME:{},WS:0\n", 30_000 - number).as_bytes());
        }
        let found = extractor.finish(End::Whole);
        let rest = found.omitted.iter().find(|row| row.is_rest).unwrap();
        let total: u64 = found.omitted.iter().map(|row| row.count).sum();
        assert_eq!((found.records.len(), total, found.omitted.len()), (1, 19_999, 10_001));
        assert_eq!(rest.fastest.as_ref().unwrap().printed_time, "10001");
    }

    #[test]
    fn without_a_format_there_is_nothing_to_find() {
        let mut extractor = Extractor::new(&[], Vec::new());
        extractor.feed(LOG.as_bytes());
        assert!(extractor.finish(End::Died).records.is_empty());
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        let found = extract(&[b"caf\xe9 \xff\xfe\x00\nOP:caf\xe9,TIME:1.25,WS:0\n\xc3"]);
        assert_eq!(records(&found), [("caf\u{fffd}".into(), 1_250_000.0, "ok")]);
        assert!(found.is_unterminated);
    }
}
