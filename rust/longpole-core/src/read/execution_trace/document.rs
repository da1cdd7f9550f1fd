//! The document: header members and the list of nodes.

use std::sync::Arc;

use super::node;
use super::node::Draft;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::read::elements::{Elements, Outcome};
use crate::read::json::{Scanner, significant};
use crate::read::sniff;
use crate::read::window::Window;
use crate::strings::{Strings, spelled_text};
use crate::tables::{ExecutionHeader, ExecutionNode, ExecutionTrace, NodeLayout};

/// Reads a document into nodes.
pub(super) fn read(
    window: Window<'_>,
    options: Options,
    progress: Progress<'_>,
) -> Result<ExecutionTrace> {
    let mut document = Document {
        elements: Elements::new(window, Diagnostics::default(), progress, options.strict),
        strings: Strings::default(),
        nodes: Vec::new(),
        header: ExecutionHeader::default(),
        has_list: false,
        is_cut: false,
        first_key: b"id".to_vec(),
    };
    enter(&mut document.elements.window, &mut document.elements.diagnostics)?;
    document.whole()?;
    document.finish()
}

struct Document<'a> {
    elements: Elements<'a>,
    strings: Strings,
    nodes: Vec<ExecutionNode>,
    header: ExecutionHeader,
    has_list: bool,
    is_cut: bool,
    /// The first key of nodes in this file.
    first_key: Vec<u8>,
}

impl Document<'_> {
    fn whole(&mut self) -> Result<()> {
        self.first_byte()?;
        self.elements.window.consume(1);
        loop {
            match self.elements.next_significant()? {
                None => return self.cut(Code::Truncated),
                Some(b'}') => return self.end(),
                Some(b'"') => self.member()?,
                Some(b',') => self.elements.window.consume(1),
                Some(_) => self.skip_to_quote()?,
            }
            if self.is_cut {
                return Ok(());
            }
        }
    }

    fn first_byte(&mut self) -> Result<()> {
        while self.elements.window.text().len() < 512 && self.elements.more()? {}
        if let Some(fault) = self.elements.window.compression_fault()
            && self.elements.window.text().is_empty()
        {
            return Err(Error::new(fault, 0));
        }
        self.elements.skip_byte_order_mark()?;
        match self.elements.next_significant()? {
            Some(b'{') => Ok(()),
            Some(b'[') => Err(Error::new(ErrorKind::NoNodes, self.elements.window.offset())),
            Some(_) => Err(sniff::unknown(self.elements.window.text())),
            None => Err(Error::new(ErrorKind::Empty, 0)),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.elements.window.consume(1);
        self.elements.drain()
    }

    /// Reads one member of the outermost object.
    fn member(&mut self) -> Result<()> {
        let key = self.elements.attempt_key()?;
        let name = match key {
            Outcome::Whole(span, end) => {
                let name = spelled_text(span.of(self.elements.window.text()));
                self.elements.accept(end)?;
                name
            }
            Outcome::Cut => return self.cut(Code::Truncated),
            Outcome::Fault(..) | Outcome::TooLarge => return self.skip_to_quote(),
        };
        match name.as_str() {
            "nodes" => self.list(),
            "traceEvents" => Err(sniff::not_an_execution_trace(self.elements.window.offset())),
            _ => self.field(name),
        }
    }

    fn field(&mut self, name: String) -> Result<()> {
        let value = self.elements.attempt_value()?;
        match value {
            Outcome::Whole(span, end) => {
                let text =
                    String::from_utf8_lossy(span.of(self.elements.window.text())).into_owned();
                self.header.keep(name, text);
                self.elements.accept(end)
            }
            Outcome::Cut => self.cut(Code::Truncated),
            Outcome::Fault(..) | Outcome::TooLarge => self.skip_to_quote(),
        }
    }

    fn list(&mut self) -> Result<()> {
        if self.elements.next_significant()? != Some(b'[') {
            return Err(Error::new(ErrorKind::NoNodes, self.elements.window.offset()));
        }
        self.elements.window.consume(1);
        self.has_list = true;
        let mut after_node = false;
        loop {
            match self.elements.next_significant()? {
                // The file ends after a complete node, so only the end of the document is missing.
                None if after_node => return self.cut(Code::MissingEnd),
                None => return self.cut(Code::Truncated),
                Some(b',') => self.elements.window.consume(1),
                Some(b']') => {
                    self.elements.window.consume(1);
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
        let offset = self.elements.window.offset();
        self.remember_first_key();
        let strings = &mut self.strings;
        match self.elements.attempt(|scanner| node::scan(scanner, strings))? {
            Outcome::Whole(draft, end) => {
                self.elements.accept(end)?;
                self.push(&draft, offset)
            }
            Outcome::Fault(..) => self.damaged_node(),
            Outcome::TooLarge => self.skip_damage(Code::NodeTooLarge),
            Outcome::Cut => self.damaged_end(),
        }
    }

    /// Handles the end of the file inside a node, or inside what looks like one because of an
    /// unescaped name.
    fn damaged_end(&mut self) -> Result<()> {
        match end_of_node(self.elements.window.text(), &self.first_key) {
            Some(_) => self.damaged_node(),
            None => self.cut(Code::Truncated),
        }
    }

    fn remember_first_key(&mut self) {
        if self.nodes.is_empty() {
            let inside = self.elements.window.text().split(|&byte| byte == b'"').nth(1);
            self.first_key = inside.unwrap_or_default().to_vec();
        }
    }

    fn push(&mut self, draft: &Draft, offset: u64) -> Result<()> {
        if !draft.has_id || !draft.has_name {
            return self.elements.note(Code::NodeWithoutId, offset);
        }
        if self.nodes.is_empty() || draft.layout == NodeLayout::Attributes {
            self.header.layout = draft.layout;
        }
        self.nodes.push(draft.node);
        Ok(())
    }

    /// Handles a node that is not valid JSON: reads it with its name escaped, or skips it.
    fn damaged_node(&mut self) -> Result<()> {
        let offset = self.elements.window.offset();
        let Some(end) = self.find_end()? else { return self.cut(Code::Truncated) };
        let fixed = with_escaped_name(&self.elements.window.text()[..end]);
        let draft = fixed.and_then(|mut text| {
            text.push(b' '); // a number ends at the byte after it
            self.elements.findings.clear();
            let mut scanner = Scanner::new(&text, 0, &mut self.elements.findings);
            let draft = node::scan(&mut scanner, &mut self.strings).ok()?;
            (scanner.at + 1 == text.len()).then_some(draft)
        });
        self.elements.findings.clear();
        self.elements.window.consume(end);
        match draft {
            Some(draft) => {
                self.elements.note(Code::UnescapedName, offset)?;
                self.push(&draft, offset)
            }
            None => self.elements.note_skipped(Code::MalformedNode, offset, end as u64),
        }
    }

    /// Returns the end of the damaged node at the front of the window.
    fn find_end(&mut self) -> Result<Option<usize>> {
        loop {
            if let Some(end) = end_of_node(self.elements.window.text(), &self.first_key) {
                return Ok(Some(end));
            }
            if !self.elements.more()? {
                return Ok(None);
            }
        }
    }

    /// Skips text that is not a node, up to the end of the next node.
    fn skip_damage(&mut self, code: Code) -> Result<()> {
        let start = self.elements.window.offset();
        match self.find_end()? {
            Some(end) => self.elements.window.consume(end),
            None => return self.cut(Code::Truncated),
        }
        self.elements.note_skipped(code, start, self.elements.window.offset() - start)
    }

    /// Skips damage in the header up to the next quotation mark.
    fn skip_to_quote(&mut self) -> Result<()> {
        let start = self.elements.window.offset();
        self.elements.window.consume(1);
        loop {
            let text = self.elements.window.text();
            let at = memchr::memchr(b'"', text).unwrap_or(text.len());
            self.elements.window.consume(at);
            if !self.elements.window.text().is_empty() || !self.elements.more()? {
                break;
            }
        }
        self.elements.note_skipped(
            Code::MalformedHeader,
            start,
            self.elements.window.offset() - start,
        )
    }

    fn cut(&mut self, code: Code) -> Result<()> {
        self.is_cut = true;
        self.elements.cut_as(code)
    }

    fn finish(mut self) -> Result<ExecutionTrace> {
        let offset = self.elements.window.offset();
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
            diagnostics: self.elements.diagnostics,
            bytes: offset,
        })
    }

    /// Sorts the nodes by id. Of several nodes with one id, the first in the file is kept.
    fn order_nodes(&mut self) -> Result<()> {
        self.nodes.sort_by_key(|node| node.id);
        let before = self.nodes.len();
        self.nodes.dedup_by_key(|node| node.id);
        for _ in self.nodes.len()..before {
            self.elements.note(Code::RepeatedNode, 0)?;
        }
        Ok(())
    }

    fn note_missing_parents(&mut self) -> Result<()> {
        let is_known = |id: i64| self.nodes.binary_search_by_key(&id, |node| node.id).is_ok();
        let missing = self.nodes.iter().filter(|node| !is_known(node.parent)).count();
        for _ in 0..missing {
            self.elements.note(Code::MissingParent, 0)?;
        }
        Ok(())
    }
}

/// Options for reading an execution trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Return the first loss or repair as an error, and require JSON as in RFC 8259.
    pub strict: bool,
    /// Stop after this many bytes of the uncompressed file.
    pub max_bytes: Option<u64>,
}

// Reads the first file of a tar archive.

const BLOCK: usize = 512;

/// Moves the window to the content of the first file, if the window is on a tar archive.
pub(super) fn enter(window: &mut Window<'_>, diagnostics: &mut Diagnostics) -> Result<()> {
    loop {
        while window.text().len() < BLOCK && window.more(diagnostics)? {}
        let text = window.text();
        if text.get(257..262) != Some(b"ustar") {
            return Ok(());
        }
        let is_file = matches!(text[156], b'0' | 0);
        let size = octal(&text[124..136]);
        window.consume(BLOCK);
        if is_file {
            return Ok(());
        }
        skip(window, size.next_multiple_of(BLOCK), diagnostics)?;
    }
}

fn octal(digits: &[u8]) -> usize {
    let digits = digits.iter().filter(|byte| (b'0'..=b'7').contains(byte));
    digits.fold(0, |size, digit| size.saturating_mul(8) + usize::from(digit - b'0'))
}

fn skip(window: &mut Window<'_>, mut count: usize, diagnostics: &mut Diagnostics) -> Result<()> {
    while count > 0 {
        let step = window.text().len().min(count);
        window.consume(step);
        count -= step;
        if count > 0 && !window.more(diagnostics)? {
            break;
        }
    }
    Ok(())
}

// Repairs nodes that are not valid JSON.
//
// PyTorch writes names without escapes. The name of a damaged node is assumed to end at the first
// quotation mark after which the next member of a node begins.

/// Members that may follow the name of a node.
const FOLLOWING: [&[u8]; 6] = [b"ctrl_deps", b"parent", b"id", b"rf_id", b"inputs", b"attrs"];

/// Returns the end of the node at the front of `text`, found by what follows it: the next node,
/// which begins with the key `first_key`, or the end of the list. `None` if the text contains
/// neither.
fn end_of_node(text: &[u8], first_key: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'}', text)
        .map(|at| at + 1)
        .find(|&end| begins_behind(&text[end..], first_key))
}

/// Whether a node has just ended, and another one or the end of the list follows.
fn begins_behind(text: &[u8], first_key: &[u8]) -> bool {
    let rest = significant(text);
    if let Some(rest) = rest.strip_prefix(b",") {
        let inside = significant(rest).strip_prefix(b"{").map(significant);
        return inside.and_then(|inside| key(inside)).is_some_and(|(key, _)| key == first_key);
    }
    rest.strip_prefix(b"]").map(significant).is_some_and(ends_list)
}

/// Whether the text after a bracket can follow the list of nodes.
fn ends_list(rest: &[u8]) -> bool {
    match rest.strip_prefix(b",") {
        Some(rest) => key(significant(rest)).is_some_and(|(key, _)| key.ends_with(b"_ts")),
        None => rest.strip_prefix(b"}").is_some_and(|rest| significant(rest).is_empty()),
    }
}

/// Returns the key at the front of `text`, and the text after its colon.
fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = text.strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', inside)?;
    let rest = significant(&inside[end + 1..]).strip_prefix(b":")?;
    Some((&inside[..end], rest))
}

/// Returns the node with its name escaped; `None` if the name is not the problem.
fn with_escaped_name(node: &[u8]) -> Option<Vec<u8>> {
    let start = start_of_name(node)?;
    let length = memchr::memchr_iter(b'"', &node[start..]).find(|&at| {
        let rest = significant(&node[start + at + 1..]).strip_prefix(b",");
        rest.and_then(|rest| key(significant(rest)))
            .is_some_and(|(key, _)| FOLLOWING.contains(&key))
    })?;
    let name = &node[start..start + length];
    let mut fixed = node[..start].to_vec();
    let mut escaped = false;
    for &byte in name {
        if byte == b'"' && !escaped {
            fixed.push(b'\\');
        }
        escaped = byte == b'\\' && !escaped;
        fixed.push(byte);
    }
    fixed.extend(&node[start + length..]);
    Some(fixed)
}

fn start_of_name(node: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(node, b"\"name\"")?;
    let rest = significant(&node[at + 6..]).strip_prefix(b":")?;
    let inside = significant(rest).strip_prefix(b"\"")?;
    Some(node.len() - inside.len())
}
