//! Reads the events at the front of a stream into tables.

use super::collect::Collector;
use super::event::{Findings, Whereabouts};
use super::predicted::{RunEnd, learn, take_run};
use super::repaired::Repaired;
use super::stream::EventStream;
use crate::error::Result;
use crate::read::elements::Outcome;

/// If less than this is in the window, more is fetched.
const AHEAD_BYTES: usize = 4 << 10;

/// The state of reading events from bytes into tables.
pub(super) struct EventReader<'a> {
    pub(super) stream: EventStream<'a>,
    pub(super) collector: Collector,
    /// The collector's findings about the current element, by offset.
    pub(super) said: Findings,
    /// The index of the next element in the list.
    pub(super) position: u32,
    /// The writer of the repaired document, if any.
    pub(super) repaired: Option<Repaired<'a>>,
    /// Number of initial argument keys.
    pub(super) n_given_keys: usize,
    is_predicting: bool,
}

/// How reading whole events ended.
pub(super) struct WholeEnd {
    /// Whether the window contained nothing else.
    pub(super) is_whole: bool,
    /// Whether the last event has no comma after it.
    pub(super) is_behind_event: bool,
    /// The offset after the last event or its comma.
    pub(super) offset: u64,
}

impl<'a> EventReader<'a> {
    pub(super) fn new(stream: EventStream<'a>, collector: Collector, is_predicting: bool) -> Self {
        let n_given_keys = stream.scanner.argument_keys.len();
        Self {
            stream,
            collector,
            said: Vec::new(),
            position: 0,
            repaired: None,
            n_given_keys,
            is_predicting,
        }
    }

    /// Reads the events with a predicted text, up to `max_events` in total; `None` if the next one
    /// is not predicted.
    pub(super) fn take_predicted(&mut self, max_events: u64) -> Option<RunEnd> {
        if !self.is_predicting || self.repaired.is_some() {
            return None;
        }
        take_run(&mut self.stream, &mut self.collector, &mut self.position, max_events)
    }

    /// Fetches several events ahead if no diagnostics can occur on the way, so that an event rarely
    /// spans two windows and is scanned twice.
    pub(super) fn fetch_ahead(&mut self) -> Result<()> {
        let elements = &mut self.stream.elements;
        if elements.window.text().len() < AHEAD_BYTES && elements.window.is_on_file() {
            elements.more()?;
        }
        Ok(())
    }

    /// Reads whole events, each with its comma, up to anything else or the end of the window.
    pub(super) fn take_whole(&mut self, is_indent_taken: bool) -> Result<WholeEnd> {
        self.fetch_ahead()?;
        let mut is_indent_taken = is_indent_taken && self.stream.text().starts_with(b"{");
        let mut is_behind_event = false;
        loop {
            let offset = self.stream.elements.window.offset();
            let next = if std::mem::take(&mut is_indent_taken) {
                Some(b'{')
            } else {
                self.stream.next_separated()?
            };
            match next {
                Some(b',') if is_behind_event => {
                    self.stream.elements.window.consume(1);
                    is_behind_event = false;
                }
                Some(b'{') if !is_behind_event && self.take_event(&mut is_behind_event)? => {}
                _ => {
                    let is_whole = next.is_none() && !is_behind_event;
                    return Ok(WholeEnd { is_whole, is_behind_event, offset });
                }
            }
        }
    }

    /// Reads one whole event or several. Returns whether that was possible.
    fn take_event(&mut self, is_behind_event: &mut bool) -> Result<bool> {
        self.fetch_ahead()?;
        *is_behind_event = match self.take_predicted(u64::MAX) {
            Some(RunEnd::BehindEvent) => true,
            Some(RunEnd::BehindComma(_)) => false,
            None => {
                let offset = self.stream.elements.window.offset();
                let Outcome::Whole((), end) = self.stream.attempt_event()? else {
                    return Ok(false);
                };
                self.keep(Whereabouts { offset, position: self.position }, end)?;
                self.accept(end)?;
                self.next_position();
                true
            }
        };
        Ok(true)
    }

    /// Keeps the event in the draft, which ends at `end` in the window.
    pub(super) fn keep(&mut self, here: Whereabouts, end: usize) -> Result<()> {
        let EventStream { elements, scanner, predictor, .. } = &mut self.stream;
        let text = elements.window.text();
        let n_before = self.collector.tables.n_events;
        self.collector.add(scanner, text, here, &mut self.said);
        if let Some(repaired) = &mut self.repaired {
            let is_kept = self.collector.tables.n_events > n_before;
            return if is_kept { repaired.event(&text[..end], &self.said) } else { Ok(()) };
        }
        if !self.is_predicting {
            return Ok(());
        }
        if elements.findings.is_empty() && self.said.is_empty() {
            learn(predictor, &mut self.collector, scanner, &text[..end]);
        } else {
            predictor.forget();
        }
        Ok(())
    }

    /// Consumes the text up to `end` and keeps the findings about it.
    pub(super) fn accept(&mut self, end: usize) -> Result<()> {
        self.stream.elements.accept(end)?;
        if self.said.is_empty() {
            return Ok(());
        }
        for (code, offset) in std::mem::take(&mut self.said) {
            self.stream.elements.note(code, offset)?;
        }
        Ok(())
    }

    /// Advances the element index. The tables hold at most 2^32 elements; any further ones share
    /// the last index.
    pub(super) fn next_position(&mut self) {
        self.position = self.position.saturating_add(1);
    }
}
