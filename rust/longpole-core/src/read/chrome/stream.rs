//! The list of events as a stream: the element at its front, and how the writer indents.

use super::event::EventScanner;
use crate::error::Result;
use crate::read::elements::{Elements, Outcome};

/// More white space than this before an event is not taken for its indent.
pub(super) const MAX_INDENT: usize = 64;

/// The elements of a document, and what reading events takes.
pub(super) struct EventStream<'a> {
    pub(super) elements: Elements<'a>,
    pub(super) scanner: EventScanner,
    /// The white space before the last event, as far as it holds a line break.
    pub(super) indent: Vec<u8>,
}

impl<'a> EventStream<'a> {
    pub(super) fn new(elements: Elements<'a>, scanner: EventScanner) -> Self {
        Self { elements, scanner, indent: Vec::new() }
    }

    /// What is at hand.
    pub(super) fn text(&self) -> &[u8] {
        self.elements.window.text()
    }

    /// Tries to read an event at the front of the window.
    pub(super) fn attempt_event(&mut self) -> Result<Outcome<()>> {
        let events = &mut self.scanner;
        self.elements.attempt(|scanner| events.scan(scanner))
    }

    /// The next byte that is no white space, left at the front of the window; keeps how the
    /// writer indents events.
    pub(super) fn next_separated(&mut self) -> Result<Option<u8>> {
        let indent = self.indent.len();
        // Asked first: to compare nothing costs more than to compare a line break.
        let is_indented = indent == 0 || self.text().starts_with(&self.indent);
        if is_indented && self.text().get(indent) == Some(&b'{') {
            self.elements.window.consume(indent);
            return Ok(Some(b'{'));
        }
        // An indent that the window cuts through is looked at whole, or what is kept
        // would depend on where windows end.
        while self.elements.blank_length() == self.text().len()
            && self.text().len() <= MAX_INDENT
            && self.elements.more()?
        {}
        let blank = self.elements.blank_length();
        if self.text().get(blank) == Some(&b'{') && blank <= MAX_INDENT {
            self.indent = self.text()[..blank].to_vec();
        }
        self.elements.next_significant()
    }
}
