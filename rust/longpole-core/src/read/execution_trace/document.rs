//! The frame of the document: header members and the list of nodes.

use std::sync::Arc;

use super::node::{self, Draft};
use super::options::Options;
use super::{archive, repair};
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{report, Progress};
use crate::read::json::{is_whitespace, Scan, Scanner, Span, Stop};
use crate::read::sniff;
use crate::read::window::{Window, MAX_ELEMENT_BYTES};
use crate::strings::{spelled_text, Strings};
use crate::tables::{ExecutionHeader, ExecutionNode, ExecutionTrace, NodeLayout};

/// Reads a document into nodes.
pub(super) fn read(
    window: Window<'_>,
    options: Options,
    progress: Progress<'_>,
) -> Result<ExecutionTrace> {
    let mut document = Document {
        window,
        options,
        progress,
        strings: Strings::default(),
        nodes: Vec::new(),
        header: ExecutionHeader::default(),
        diagnostics: Diagnostics::default(),
        findings: Vec::new(),
        has_list: false,
        is_cut: false,
        first_key: b"id".to_vec(),
    };
    archive::enter(&mut document.window, &mut document.diagnostics)?;
    document.whole()?;
    document.finish()
}

struct Document<'a> {
    window: Window<'a>,
    options: Options,
    progress: Progress<'a>,
    strings: Strings,
    nodes: Vec<ExecutionNode>,
    header: ExecutionHeader,
    diagnostics: Diagnostics,
    findings: Vec<(Code, usize)>,
    has_list: bool,
    is_cut: bool,
    /// The key that nodes begin with in this file.
    first_key: Vec<u8>,
}

/// What became of an element.
enum Outcome<T> {
    Whole(T, usize),
    Fault,
    Cut,
}

impl Document<'_> {
    fn whole(&mut self) -> Result<()> {
        self.first_byte()?;
        self.window.consume(1);
        loop {
            match self.next_significant()? {
                None => return self.cut(Code::Truncated),
                Some(b'}') => return self.end(),
                Some(b'"') => self.member()?,
                Some(b',') => self.window.consume(1),
                Some(_) => self.skip_to_quote()?,
            }
            if self.is_cut {
                return Ok(());
            }
        }
    }

    fn first_byte(&mut self) -> Result<()> {
        while self.window.text().len() < 512 && self.more()? {}
        if let Some(fault) = self.window.compression_fault() {
            if self.window.text().is_empty() {
                return Err(Error::new(ErrorKind::Compression(fault), 0));
            }
        }
        if self.window.text().starts_with(b"\xef\xbb\xbf") {
            self.window.consume(3);
            self.note(Code::ByteOrderMark, 0)?;
        }
        match self.next_significant()? {
            Some(b'{') => Ok(()),
            Some(b'[') => Err(Error::new(ErrorKind::NoNodes, self.window.offset())),
            Some(_) => Err(sniff::unknown(self.window.text())),
            None => Err(Error::new(ErrorKind::Empty, 0)),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.window.consume(1);
        self.drain()
    }

    /// One member of the outermost object.
    fn member(&mut self) -> Result<()> {
        let key = self.attempt(|scanner| {
            let key = scanner.quoted()?;
            scanner.expect(b':')?;
            Ok(key)
        })?;
        let name = match key {
            Outcome::Whole(span, end) => {
                let name = spelled_text(span.of(self.window.text()));
                self.accept(end)?;
                name
            }
            Outcome::Cut => return self.cut(Code::Truncated),
            Outcome::Fault => return self.skip_to_quote(),
        };
        match name.as_str() {
            "nodes" => self.list(),
            "traceEvents" => Err(sniff::not_an_execution_trace(self.window.offset())),
            _ => self.field(name),
        }
    }

    fn field(&mut self, name: String) -> Result<()> {
        let value = self.attempt(|scanner| {
            scanner.peek_significant()?;
            let start = scanner.at;
            scanner.value()?;
            Ok(Span::new(start, scanner.at))
        })?;
        match value {
            Outcome::Whole(span, end) => {
                let text = String::from_utf8_lossy(span.of(self.window.text())).into_owned();
                self.header.keep(name, text);
                self.accept(end)
            }
            Outcome::Cut => self.cut(Code::Truncated),
            Outcome::Fault => self.skip_to_quote(),
        }
    }

    fn list(&mut self) -> Result<()> {
        if self.next_significant()? != Some(b'[') {
            return Err(Error::new(ErrorKind::NoNodes, self.window.offset()));
        }
        self.window.consume(1);
        self.has_list = true;
        let mut after_node = false;
        loop {
            match self.next_significant()? {
                // Behind a node nothing whole is missing that the file shows.
                None if after_node => return self.cut(Code::MissingEnd),
                None => return self.cut(Code::Truncated),
                Some(b',') => self.window.consume(1),
                Some(b']') => {
                    self.window.consume(1);
                    return Ok(());
                }
                Some(b'{') => {
                    self.node()?;
                    after_node = true;
                }
                Some(_) => self.skip_damage(Code::MalformedNode)?,
            }
            if self.is_cut {
                return Ok(());
            }
        }
    }

    fn node(&mut self) -> Result<()> {
        let offset = self.window.offset();
        self.remember_first_key();
        loop {
            self.findings.clear();
            let mut scanner = Scanner::new(self.window.text(), 0, &mut self.findings);
            match node::scan(&mut scanner, &mut self.strings) {
                Ok(draft) => {
                    let end = scanner.at;
                    self.accept(end)?;
                    return self.push(&draft, offset);
                }
                Err(Stop::Fault) => return self.damaged_node(),
                Err(Stop::NeedMore) if self.window.text().len() > MAX_ELEMENT_BYTES => {
                    return self.skip_damage(Code::NodeTooLarge)
                }
                Err(Stop::NeedMore) => {}
            }
            if !self.more()? {
                return self.damaged_end();
            }
        }
    }

    /// The file ends inside a node: or inside what looks like one because of a name.
    fn damaged_end(&mut self) -> Result<()> {
        match repair::end_of_node(self.window.text(), &self.first_key) {
            Some(_) => self.damaged_node(),
            None => self.cut(Code::Truncated),
        }
    }

    fn remember_first_key(&mut self) {
        if self.nodes.is_empty() {
            let inside = self.window.text().split(|&byte| byte == b'"').nth(1);
            self.first_key = inside.unwrap_or_default().to_vec();
        }
    }

    fn push(&mut self, draft: &Draft, offset: u64) -> Result<()> {
        if !draft.has_id || !draft.has_name {
            return self.note(Code::NodeWithoutId, offset);
        }
        if self.nodes.is_empty() || draft.layout == NodeLayout::Attributes {
            self.header.layout = draft.layout;
        }
        self.nodes.push(draft.node);
        Ok(())
    }

    /// A node that is not sound JSON: read with its name escaped, or skipped.
    fn damaged_node(&mut self) -> Result<()> {
        let offset = self.window.offset();
        let Some(end) = self.find_end()? else { return self.cut(Code::Truncated) };
        let fixed = repair::with_escaped_name(&self.window.text()[..end]);
        let draft = fixed.and_then(|mut text| {
            text.push(b' '); // numbers end at the byte behind them
            self.findings.clear();
            let mut scanner = Scanner::new(&text, 0, &mut self.findings);
            let draft = node::scan(&mut scanner, &mut self.strings).ok()?;
            (scanner.at + 1 == text.len()).then_some(draft)
        });
        self.findings.clear();
        self.window.consume(end);
        match draft {
            Some(draft) => {
                self.note(Code::UnescapedName, offset)?;
                self.push(&draft, offset)
            }
            None => self.note_skipped(Code::MalformedNode, offset, end as u64),
        }
    }

    /// The end of the damaged node at the front of the window.
    fn find_end(&mut self) -> Result<Option<usize>> {
        loop {
            if let Some(end) = repair::end_of_node(self.window.text(), &self.first_key) {
                return Ok(Some(end));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// Skips what is no node, up to the end of the next one that is.
    fn skip_damage(&mut self, code: Code) -> Result<()> {
        let start = self.window.offset();
        match self.find_end()? {
            Some(end) => self.window.consume(end),
            None => return self.cut(Code::Truncated),
        }
        self.note_skipped(code, start, self.window.offset() - start)
    }

    /// Skips damage in the header up to the next quotation mark.
    fn skip_to_quote(&mut self) -> Result<()> {
        let start = self.window.offset();
        self.window.consume(1);
        loop {
            let text = self.window.text();
            let at = memchr::memchr(b'"', text).unwrap_or(text.len());
            self.window.consume(at);
            if !self.window.text().is_empty() || !self.more()? {
                break;
            }
        }
        self.note_skipped(Code::MalformedHeader, start, self.window.offset() - start)
    }

    fn attempt<T>(&mut self, read: impl Fn(&mut Scanner<'_>) -> Scan<T>) -> Result<Outcome<T>> {
        loop {
            self.findings.clear();
            let mut scanner = Scanner::new(self.window.text(), 0, &mut self.findings);
            match read(&mut scanner) {
                Ok(value) => return Ok(Outcome::Whole(value, scanner.at)),
                Err(Stop::Fault) => return Ok(Outcome::Fault),
                Err(Stop::NeedMore) if self.window.text().len() > MAX_ELEMENT_BYTES => {
                    return Ok(Outcome::Fault)
                }
                Err(Stop::NeedMore) => {}
            }
            if !self.more()? {
                return Ok(Outcome::Cut);
            }
        }
    }

    fn accept(&mut self, end: usize) -> Result<()> {
        let offset = self.window.offset();
        self.window.consume(end);
        for (code, at) in std::mem::take(&mut self.findings) {
            self.note(code, offset + at as u64)?;
        }
        Ok(())
    }

    fn next_significant(&mut self) -> Result<Option<u8>> {
        loop {
            let text = self.window.text();
            let blank = text.iter().take_while(|&&byte| is_whitespace(byte)).count();
            let next = text.get(blank).copied();
            self.window.consume(blank);
            if next.is_some() || !self.more()? {
                return Ok(next);
            }
        }
    }

    fn more(&mut self) -> Result<bool> {
        report(self.progress, self.window.offset())?;
        let came = self.window.more(&mut self.diagnostics)?;
        let refused = self.diagnostics.iter().find(|row| row.code.is_refused_by_strict());
        match refused.filter(|_| self.options.strict) {
            Some(row) => Err(Error::new(ErrorKind::Strict(row.code), row.first_offset)),
            None => Ok(came),
        }
    }

    fn drain(&mut self) -> Result<()> {
        loop {
            let length = self.window.text().len();
            self.window.consume(length);
            if !self.more()? {
                return Ok(());
            }
        }
    }

    fn cut(&mut self, code: Code) -> Result<()> {
        self.drain()?;
        self.is_cut = true;
        let code = if self.window.is_limited() { Code::LimitReached } else { code };
        self.note(code, self.window.offset())
    }

    fn note(&mut self, code: Code, offset: u64) -> Result<()> {
        self.note_skipped(code, offset, 0)
    }

    fn note_skipped(&mut self, code: Code, offset: u64, bytes: u64) -> Result<()> {
        if self.options.strict && code.is_refused_by_strict() {
            return Err(Error::new(ErrorKind::Strict(code), offset));
        }
        self.diagnostics.add_skipped(code, offset, bytes);
        Ok(())
    }

    fn finish(mut self) -> Result<ExecutionTrace> {
        let offset = self.window.offset();
        if !self.has_list {
            let kind = if self.is_cut { ErrorKind::EndsBeforeNodes } else { ErrorKind::NoNodes };
            return Err(Error::new(kind, offset));
        }
        self.order_nodes()?;
        self.note_missing_parents()?;
        Ok(ExecutionTrace {
            strings: Arc::new(self.strings),
            nodes: Arc::new(self.nodes),
            header: Arc::new(self.header),
            diagnostics: self.diagnostics,
            bytes: offset,
        })
    }

    /// By id. Of several nodes with one id the first in the file is kept.
    fn order_nodes(&mut self) -> Result<()> {
        self.nodes.sort_by_key(|node| node.id);
        let before = self.nodes.len();
        self.nodes.dedup_by_key(|node| node.id);
        for _ in self.nodes.len()..before {
            self.note(Code::RepeatedNode, 0)?;
        }
        Ok(())
    }

    fn note_missing_parents(&mut self) -> Result<()> {
        let is_known = |id: i64| self.nodes.binary_search_by_key(&id, |node| node.id).is_ok();
        let missing = self.nodes.iter().filter(|node| !is_known(node.parent)).count();
        for _ in 0..missing {
            self.note(Code::MissingParent, 0)?;
        }
        Ok(())
    }
}
