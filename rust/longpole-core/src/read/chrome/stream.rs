//! The event list as a stream: the element at its front, and the indentation of the writer.

use super::event::EventScanner;
use super::shapes::Predictor;
use crate::error::Result;
use crate::read::elements::{Elements, Outcome};

/// More white space than this before an event does not count as its indent.
pub(super) const MAX_INDENT: usize = 64;

/// The elements of a document, and the state of reading events.
pub(super) struct EventStream<'a> {
    pub(super) elements: Elements<'a>,
    pub(super) scanner: EventScanner,
    pub(super) predictor: Predictor,
    /// The white space before the last event, if it contains a line break.
    pub(super) indent: Vec<u8>,
}

impl<'a> EventStream<'a> {
    pub(super) fn new(elements: Elements<'a>, scanner: EventScanner) -> Self {
        Self { elements, scanner, predictor: Predictor::default(), indent: Vec::new() }
    }

    /// Returns the text in the window.
    pub(super) fn text(&self) -> &[u8] {
        self.elements.window.text()
    }

    /// Tries to read an event at the front of the window.
    pub(super) fn attempt_event(&mut self) -> Result<Outcome<()>> {
        let events = &mut self.scanner;
        self.elements.attempt(|scanner| events.scan(scanner))
    }

    /// Moves the window to the next byte that is not white space, returns that byte, and remembers
    /// the indentation of events.
    pub(super) fn next_separated(&mut self) -> Result<Option<u8>> {
        let indent = self.indent.len();
        // Checked first, because comparing an empty indent costs more than comparing a line break.
        let is_indented = indent == 0 || self.text().starts_with(&self.indent);
        if is_indented && self.text().get(indent) == Some(&b'{') {
            self.elements.window.consume(indent);
            return Ok(Some(b'{'));
        }
        // An indent that spans two windows is read completely, so that the result does not depend
        // on window boundaries.
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
