//! Reads the event list in parts with several threads.
//!
//! The calling thread divides the file before what looks like the start of an event (`cut`). For
//! this it reads and decompresses the file, unless every thread can fetch its parts from the file
//! itself. Threads read the parts, and the calling thread joins them in file order. While all
//! threads have enough parts, the calling thread keeps the next one and later reads it directly
//! into the tables, so that it needs no joining. A part is valid only if all parts before it are,
//! and if it ended without damage exactly where the next one begins: then it began where a single
//! thread would have begun an event. At the first invalid part, the threads stop, its bytes and all
//! after them are put back, and a single thread continues from there. Damage is therefore reported
//! and repaired in one place only. Of a part read by the calling thread, the events before the
//! damage count.
//!
//! Limits: eight parts of [`PART_BYTES`], or two for each thread plus two, are in progress at one
//! time. Their rows are in memory, and their bytes unless every thread fetches its own through a
//! window. After an invalid part, the next attempt comes after twice as many bytes as the last
//! time.

use std::collections::{BTreeMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use super::cut::{Cutter, separator};
use super::join::Numbers;
use super::part::{Part, PartReader, Piece};
use super::predicted::RunEnd;
use super::reader::EventReader;
use super::stream::EventStream;
use crate::error::Result;
use crate::read::Options;
use crate::read::window::Window;

/// The length of a part: long enough to be worth transferring, and short enough that all parts in
/// progress fit the caches.
const PART_BYTES: usize = 512 << 10;

/// A document with fewer parts is read by one thread.
const MIN_PARTS: usize = 8;

/// After this many consecutive parts, the next failure counts as the first.
const LONG_RUN: usize = 64;

/// Number of parts queued for each thread, so that it does not wait for the next one.
const PARTS_EACH: usize = 3;

/// Interval at which `progress` is called while waiting for threads.
const PATIENCE: Duration = Duration::from_millis(20);

/// When and how the list is read in parts.
pub(super) struct Parts<'a> {
    options: &'a Options,
    threads: usize,
    part_bytes: usize,
    /// The offset from which reading in parts is tried again.
    from: u64,
    n_failed: u32,
}

impl<'a> Parts<'a> {
    /// Returns `None` if only one thread, or only some events, are requested.
    pub(super) fn new(options: &'a Options) -> Option<Self> {
        let part_bytes = options.part_bytes.unwrap_or(PART_BYTES).max(1);
        let is_split = options.threads > 1 && options.max_events.is_none();
        is_split.then_some(Self {
            options,
            threads: options.threads,
            part_bytes,
            from: 0,
            n_failed: 0,
        })
    }

    /// Handles the end of a run of parts. After a long run, the next one starts soon.
    fn ended(&mut self, n_joined: usize, offset: u64) {
        if n_joined >= LONG_RUN {
            self.n_failed = 0;
        }
        self.failed(offset);
    }

    /// Doubles the delay after each failure, so that all attempts together cost less than one pass.
    fn failed(&mut self, offset: u64) {
        self.n_failed += 1;
        let parts = 1_u64 << self.n_failed.min(40);
        self.from = offset.saturating_add((self.part_bytes as u64).saturating_mul(parts));
    }

    fn parts_at_once(&self) -> usize {
        MIN_PARTS.max(2 * self.threads + 2)
    }
}

impl Parts<'_> {
    /// Reads as many valid parts as possible, starting with the event at the front of the window;
    /// `None` if no part was valid.
    pub(super) fn take(&mut self, events: &mut EventReader<'_>) -> Result<Option<RunEnd>> {
        let window = &events.stream.elements.window;
        let (here, at_hand) = (window.offset(), window.text().len() as u64);
        if here < self.from {
            return Ok(None);
        }
        let outcome = self.take_from(here, events);
        // When more bytes are fetched depends on what is in the window, and so does the order of
        // diagnostics.
        events.stream.elements.window.bring_back(here + at_hand);
        outcome
    }

    fn take_from(&mut self, here: u64, events: &mut EventReader<'_>) -> Result<Option<RunEnd>> {
        let Some(separator) = separator(events.stream.text(), &events.stream.indent) else {
            self.failed(here);
            return Ok(None);
        };
        let window = &events.stream.elements.window;
        let mut cutter = Cutter::new(&separator, self.part_bytes, window);
        let mut first = VecDeque::new();
        while first.len() < MIN_PARTS {
            events.stream.elements.report(here)?;
            match cutter.next(&mut events.stream.elements.window) {
                Some(piece) => first.push_back(piece),
                None => break,
            }
        }
        if first.len() < MIN_PARTS {
            self.failed(cutter.offset);
            cutter.put_back(first.into_iter(), &mut events.stream.elements.window);
            return Ok(None);
        }
        let n_before = events.position;
        let is_behind_event = std::thread::scope(|scope| {
            let mut crew = Crew::start(scope, self, &events.stream, first);
            crew.numbers.resize_with(self.threads, || Numbers::new(events.n_given_keys));
            let outcome = crew.work(events, &mut cutter);
            self.ended(crew.n_joined, cutter.offset);
            let is_behind_event = crew.is_behind_event;
            cutter.put_back(crew.end().into_iter(), &mut events.stream.elements.window);
            outcome.map(|()| is_behind_event)
        })?;
        let offset = events.stream.elements.window.offset();
        let end =
            if is_behind_event { RunEnd::BehindEvent } else { RunEnd::BehindComma(offset - 1) };
        Ok((events.position > n_before).then_some(end))
    }
}

/// The threads, and the parts they are reading.
struct Crew<'scope> {
    jobs: Sender<(usize, Piece)>,
    done: Receiver<Done>,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
    stop: Arc<AtomicBool>,
    /// For each thread, the numbers of its entries in the joined tables.
    numbers: Vec<Numbers>,
    /// Parts not yet assigned to a thread.
    waiting: VecDeque<Piece>,
    /// Parts that were read, by position in the file.
    back: BTreeMap<usize, Done>,
    /// Parts that the calling thread reads.
    kept: BTreeMap<usize, Piece>,
    /// Number of parts that threads are reading.
    n_out: usize,
    /// Whether the last event read has no comma after it.
    is_behind_event: bool,
    n_sent: usize,
    n_joined: usize,
    n_at_once: usize,
    /// The offset of the part to be joined next.
    offset: u64,
}

/// A part that was read, and the thread that read it.
struct Done {
    place: usize,
    piece: Piece,
    thread: usize,
    part: Option<Part>,
}

impl<'scope> Crew<'scope> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        parts: &Parts<'env>,
        stream: &EventStream<'_>,
        waiting: VecDeque<Piece>,
    ) -> Self {
        let offset = waiting.front().map_or(0, |piece| piece.offset);
        let (jobs, taken) = channel();
        let (give, done) = channel();
        let (taken, stop) = (Arc::new(Mutex::new(taken)), Arc::new(AtomicBool::new(false)));
        let threads = (1..parts.threads).map_while(|thread| {
            let (taken, give, stop) = (Arc::clone(&taken), give.clone(), Arc::clone(&stop));
            let (options, indent) = (parts.options, stream.indent.clone());
            let file = stream.elements.window.file();
            let read = move || {
                let window = file.map(|(file, _)| Window::on_file(file));
                let reader = PartReader::new(options, indent, window);
                read_parts(thread, &taken, &give, &stop, reader);
            };
            Builder::new().name("longpole-read".to_owned()).spawn_scoped(scope, read).ok()
        });
        Self {
            jobs,
            done,
            threads: threads.collect(),
            stop,
            numbers: Vec::new(),
            waiting,
            back: BTreeMap::new(),
            kept: BTreeMap::new(),
            offset,
            n_out: 0,
            is_behind_event: false,
            n_sent: 0,
            n_joined: 0,
            n_at_once: parts.parts_at_once(),
        }
    }

    /// Reads and joins parts up to the end of the file, or to an invalid part.
    fn work(&mut self, events: &mut EventReader<'_>, cutter: &mut Cutter) -> Result<()> {
        if self.threads.is_empty() {
            return Ok(());
        }
        loop {
            self.send(events, cutter);
            if self.n_joined == self.n_sent {
                return Ok(());
            }
            if let Some(piece) = self.kept.remove(&self.n_joined) {
                if !self.read_kept(piece, events, cutter)? {
                    return Ok(());
                }
            } else if let Some(done) = self.back.remove(&self.n_joined) {
                if let Err(done) = self.join(done, events, cutter) {
                    self.back.insert(done.place, *done);
                    return Ok(());
                }
            } else {
                self.receive(events)?;
            }
        }
    }

    /// Assigns parts to threads, and keeps those that no thread can read soon.
    fn send(&mut self, events: &mut EventReader<'_>, cutter: &mut Cutter) {
        while self.n_sent - self.n_joined < self.n_at_once {
            while let Ok(done) = self.done.try_recv() {
                self.take_back(done);
            }
            let window = &mut events.stream.elements.window;
            let piece = self.waiting.pop_front().or_else(|| cutter.next(window));
            let Some(piece) = piece else { return };
            if self.n_out >= PARTS_EACH * self.threads.len() {
                self.kept.insert(self.n_sent, piece);
            } else if let Err(refused) = self.jobs.send((self.n_sent, piece)) {
                return self.waiting.push_front(refused.0.1);
            } else {
                self.n_out += 1;
            }
            self.n_sent += 1;
        }
    }

    fn take_back(&mut self, done: Done) {
        self.n_out -= 1;
        self.back.insert(done.place, done);
    }

    /// Reads a part directly into the joined tables. Returns whether it was whole; if not, the
    /// unread text is put back.
    fn read_kept(
        &mut self,
        mut piece: Piece,
        events: &mut EventReader<'_>,
        cutter: &mut Cutter,
    ) -> Result<bool> {
        // Earlier diagnostics must not make a strict reader stop when it fetches more bytes.
        let mut said = std::mem::take(&mut events.stream.elements.diagnostics);
        let end = events.take_piece(&mut piece);
        said.append(&events.stream.elements.diagnostics);
        events.stream.elements.diagnostics = said;
        let end = end?;
        if end.is_whole {
            self.offset = piece.end();
            self.n_joined += 1;
            cutter.take_back(piece.bytes, piece.rows);
            return Ok(true);
        }
        self.is_behind_event = end.is_behind_event;
        let n_read = usize::try_from(end.offset - piece.offset).unwrap_or(piece.length);
        piece.bytes.drain(..n_read.min(piece.bytes.len()));
        (piece.offset, piece.length) = (end.offset, piece.length - n_read);
        self.kept.insert(self.n_joined, piece);
        Ok(false)
    }

    /// Waits for a part that was read.
    fn receive(&mut self, events: &EventReader<'_>) -> Result<()> {
        loop {
            events.stream.elements.report(self.offset)?;
            match self.done.recv_timeout(PATIENCE) {
                Ok(done) => {
                    self.take_back(done);
                    return Ok(());
                }
                Err(_) if self.threads.iter().any(ScopedJoinHandle::is_finished) => {
                    self.raise_panic();
                }
                Err(_) => {}
            }
        }
    }

    /// Appends the next part, or returns it if it is invalid.
    fn join(
        &mut self,
        mut done: Done,
        events: &mut EventReader<'_>,
        cutter: &mut Cutter,
    ) -> std::result::Result<(), Box<Done>> {
        let Some(mut part) = done.part.take() else { return Err(Box::new(done)) };
        let (n_elements, diagnostics) = (part.n_elements, std::mem::take(&mut part.diagnostics));
        let indent = std::mem::take(&mut part.indent);
        let keys = &mut events.stream.scanner.argument_keys;
        let numbers = &mut self.numbers[done.thread];
        if !events.collector.join(&part, numbers, keys, events.position) {
            return Err(Box::new(done));
        }
        events.position += n_elements;
        events.stream.elements.diagnostics.append(&diagnostics);
        events.stream.indent = indent;
        part.rows.clear();
        self.offset = done.piece.end();
        self.n_joined += 1;
        cutter.take_back(done.piece.bytes, part.rows);
        Ok(())
    }

    /// Stops the threads and returns the parts that were not joined, in file order.
    fn end(mut self) -> VecDeque<Piece> {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.jobs);
        self.back.extend(self.done.iter().map(|done| (done.place, done)));
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
        self.kept.extend(self.back.into_values().map(|done| (done.place, done.piece)));
        self.kept.into_values().chain(self.waiting).collect()
    }

    /// Raises the panic of a thread: one that has ended while parts are still expected has
    /// panicked.
    fn raise_panic(&mut self) {
        for thread in self.threads.extract_if(.., |thread| thread.is_finished()) {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    }
}

/// Reads parts until there are no more, or until stopped.
fn read_parts(
    thread: usize,
    jobs: &Mutex<Receiver<(usize, Piece)>>,
    done: &Sender<Done>,
    stop: &AtomicBool,
    mut reader: PartReader,
) {
    loop {
        let job = jobs.lock().map_or(None, |jobs| jobs.recv().ok());
        let Some((place, mut piece)) = job else { return };
        let part = if stop.load(Ordering::Relaxed) { None } else { reader.read(&mut piece) };
        if done.send(Done { place, piece, thread, part }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::collect::Collector;
    use super::super::event::EventScanner;
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::progress::silent;
    use crate::read::elements::Elements;

    /// Returns the number of leading events in `text` that are read in parts, and the offset of the
    /// comma after them.
    fn joined(text: &str) -> (u64, Option<u64>) {
        let options = Options { threads: 3, part_bytes: Some(300), ..Options::default() };
        let window = Window::new(Box::new(text.as_bytes()), None).unwrap();
        let mut elements = Elements::new(window, Diagnostics::default(), &silent, false);
        while elements.more().unwrap() {}
        let scanner = EventScanner::new(options.arguments.keys());
        let collector = Collector::new(Arc::clone(&options.vocabulary));
        let mut events = EventReader::new(EventStream::new(elements, scanner), collector, true);
        let end = Parts::new(&options).unwrap().take(&mut events).unwrap();
        let comma = end.map(|end| match end {
            RunEnd::BehindComma(offset) => offset,
            RunEnd::BehindEvent => panic!("no comma"),
        });
        (events.collector.tables.n_events, comma)
    }

    fn event(number: usize) -> String {
        format!(r#"{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{number},"dur":1}}"#)
    }

    #[test]
    fn all_but_the_last_event_is_read_by_threads() {
        let text = (0..500).map(event).collect::<Vec<_>>().join(",");
        let (n_joined, end) = joined(&text);
        assert_eq!((n_joined, end), (499, text.rfind(",{").map(|at| at as u64)));
    }

    #[test]
    fn threads_end_before_the_part_that_is_damaged() {
        let events: Vec<_> = (0..500).map(event).collect();
        let text = events.join(",").replace(r#""ts":300,"#, r#""ts":300"#);
        let damage = text.find(r#""ts":300"#).unwrap() as u64;
        let (n_joined, end) = joined(&text);
        assert!((280..=300).contains(&n_joined), "{n_joined}");
        assert!(end.is_some_and(|end| damage - 400 < end && end < damage), "{end:?}");
    }

    #[test]
    fn a_short_list_is_left_to_one_thread() {
        let text = (0..20).map(event).collect::<Vec<_>>().join(",");
        assert_eq!(joined(&text), (0, None));
    }
}
