//! Builds the calling context tree of host threads, in which every chain of enclosing frames occurs
//! once.
//!
//! Questions about operators, modules and Python functions differ only in which events count as
//! frames. Events whose chains have equal names share a context, so the tree stays small for
//! repetitive programs. Contexts are identified by names and, on request, by inputs.

use std::collections::HashMap;

use crate::error::Result;
use crate::graph;
use crate::ids::{EventId, InColumn, LaneId, NO_ROW, row_in_column};
use crate::progress::{Progress, report};
use crate::stack::{Nesting, encloses};
use crate::strings::Strings;
use crate::tables::{EventKind, Tables, argument_text_id};
use crate::vocabulary::module_name;

/// The kinds of events that count as frames.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // kinds that are chosen one by one
pub struct Frames<'a> {
    /// Ranges marked by the program.
    pub annotations: bool,
    /// A regular expression for the annotations that count; all of them if `None`.
    pub annotation_names: Option<&'a str>,
    /// Operators.
    pub operators: bool,
    /// Python functions.
    pub functions: bool,
    /// Module calls: Python functions with such a name, or the module that an operator records.
    pub modules: bool,
    /// Runtime API calls.
    pub calls: bool,
    /// Other events on threads.
    pub others: bool,
    /// Whether frames with different shapes or types of inputs are different.
    pub by_inputs: bool,
}

/// A chain of frames.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// The chain without its innermost frame.
    pub parent: Option<u32>,
    /// The thread.
    pub lane: LaneId,
    /// The first event of the thread that is its innermost frame.
    pub first: EventId,
    /// The name of that frame; [`NO_ROW`] for none.
    pub name: u32,
    /// Whether no other frame of the chain has this name (and these inputs, if they count).
    /// Addresses in names do not count.
    pub is_outermost: bool,
}

/// The chains of frames, each after its parent, and the chain of every event on a thread.
#[derive(Debug, Clone, Default)]
pub struct Contexts {
    /// All chains.
    pub rows: Vec<Context>,
    of_event: Vec<u32>,
    is_frame: Vec<bool>,
}

impl Contexts {
    /// Returns the row of the chain that ends with the event or, if the event is not a frame, of
    /// the chain around it.
    pub fn of(&self, event: EventId) -> Option<usize> {
        Some(self.of_event[event.row()]).filter(|&row| row != NO_ROW).map(|row| row as usize)
    }

    /// Whether the event itself is a frame.
    pub fn is_frame(&self, event: EventId) -> bool {
        self.is_frame[event.row()]
    }
}

/// Builds the chains of frames of all events on threads.
///
/// An event that is not a frame ends no chain: a Python function that begins in an operator and
/// ends after it takes nothing from the operator.
///
/// # Errors
///
/// Returns an error if the pattern is not a valid regular expression, or if `progress` asks to
/// stop.
pub fn contexts(
    tables: &Tables,
    nesting: &Nesting,
    frames: &Frames<'_>,
    progress: Progress<'_>,
) -> Result<Contexts> {
    report(progress, 0)?;
    let names = Names::of(tables, frames)?;
    let n_events = tables.events.len();
    let alike = if frames.functions && !frames.by_inputs {
        alike_names(&tables.strings)
    } else {
        HashMap::new()
    };
    let mut tree = Tree { alike, ..Tree::default() };
    let mut labels = Labels::of(tables, frames);
    let mut found = Contexts {
        of_event: vec![NO_ROW; n_events],
        is_frame: vec![false; n_events],
        ..Contexts::default()
    };
    let mut open = OpenFrames::default();
    for event in nesting.outside_in() {
        let Some(span) = tables.events.span(event) else { continue };
        let parent = nesting.parent(event).map_or(NO_ROW, |parent| found.of_event[parent.row()]);
        let around = open.around(tables.events.lane(event), span).unwrap_or(parent);
        let name = names.frame(event).filter(|&name| {
            // Nested operators all record the module in which they run.
            !(names.is_recorded(event)
                && around != NO_ROW
                && tree.rows[around as usize].name == name)
        });
        found.is_frame[event.row()] = name.is_some();
        found.of_event[event.row()] = match name {
            Some(name) => {
                let label = labels.number(name, || names.inputs(event));
                let row = tree.enter(open.enclosing(span), (name, label), event, tables);
                open.frames.push((row, span.1));
                row
            }
            None => around,
        };
    }
    found.rows = tree.rows;
    Ok(found)
}

/// The frames of a thread that have begun and may not have ended: their contexts and ends.
#[derive(Default)]
struct OpenFrames {
    lane: Option<LaneId>,
    frames: Vec<(u32, i64)>,
}

impl OpenFrames {
    /// Returns the context of the last frame to begin if it encloses the span. Frames that are over
    /// are closed, and all of them at a new thread.
    fn around(&mut self, lane: LaneId, (start, end): (i64, i64)) -> Option<u32> {
        if self.lane.replace(lane) != Some(lane) {
            self.frames.clear();
        }
        let is_over = |last: i64| last < start || (last == start && last < end);
        while self.frames.pop_if(|&mut (_, last)| is_over(last)).is_some() {}
        self.frames.last().filter(|&&(_, last)| encloses(last, (start, end))).map(|&(row, _)| row)
    }

    /// Returns the context of the frame around the span of another, and closes the frames that it
    /// crosses.
    fn enclosing(&mut self, span: (i64, i64)) -> u32 {
        while self.frames.pop_if(|&mut (_, last)| !encloses(last, span)).is_some() {}
        self.frames.last().map_or(NO_ROW, |&(row, _)| row)
    }
}

/// Numbers the distinct frames of a chain: by name and, if they count, by inputs.
struct Labels {
    n_names: u32,
    /// The numbers of names with inputs.
    known: Option<HashMap<(u32, [u32; 2]), u32>>,
}

impl Labels {
    fn of(tables: &Tables, frames: &Frames<'_>) -> Self {
        let n_names = row_in_column(tables.strings.len());
        Self { n_names, known: frames.by_inputs.then(HashMap::new) }
    }

    fn number(&mut self, name: u32, inputs: impl FnOnce() -> [u32; 2]) -> u32 {
        let Some(known) = &mut self.known else {
            // A missing name sorts after all names.
            return name.min(self.n_names);
        };
        let next = row_in_column(known.len());
        *known.entry((name, inputs())).or_insert(next)
    }
}

#[derive(Default)]
struct Tree {
    rows: Vec<Context>,
    known: HashMap<(u32, LaneId, u32), u32>,
    /// The chain of the previous event, and how often each label occurs in it.
    open: Vec<u32>,
    n_open: Vec<u32>,
    /// Labels that count as another one in this: see [`alike_names`].
    alike: HashMap<u32, u32>,
    /// The label of each row.
    label: Vec<u32>,
    /// The row that was entered after each row the last time. Programs repeat themselves, so this
    /// mostly avoids a search.
    next: Vec<u32>,
    last: u32,
}

impl Tree {
    fn enter(
        &mut self,
        around: u32,
        (name, label): (u32, u32),
        first: EventId,
        tables: &Tables,
    ) -> u32 {
        self.leave_to(around);
        let lane = tables.events.lane(first);
        let known = self.next_time(around, lane, label);
        let known = known.or_else(|| self.known.get(&(around, lane, label)).copied());
        let row = known.unwrap_or_else(|| self.add(around, lane, (name, label), first));
        if let Some(next) = self.next.get_mut(self.last as usize) {
            *next = row;
        }
        self.last = row;
        self.open.push(row);
        let counted = self.counted(label);
        self.n_open[counted] += 1;
        row
    }

    fn counted(&self, label: u32) -> usize {
        self.alike.get(&label).copied().unwrap_or(label) as usize
    }

    /// Returns the row that followed the last row the last time, if it is the requested one.
    fn next_time(&self, around: u32, lane: LaneId, label: u32) -> Option<u32> {
        let next = *self.next.get(self.last as usize)?;
        let row = self.rows.get(next as usize)?;
        let is_same = row.parent.unwrap_or(NO_ROW) == around && row.lane == lane;
        (is_same && self.label[next as usize] == label).then_some(next)
    }

    fn add(&mut self, around: u32, lane: LaneId, (name, label): (u32, u32), first: EventId) -> u32 {
        let (row, counted) = (row_in_column(self.rows.len()), self.counted(label));
        if self.n_open.len() <= counted {
            self.n_open.resize(counted + 1, 0);
        }
        let is_outermost = self.n_open[counted] == 0;
        let parent = (around != NO_ROW).then_some(around);
        self.rows.push(Context { parent, lane, first, name, is_outermost });
        self.label.push(label);
        self.next.push(NO_ROW);
        self.known.insert((around, lane, label), row);
        row
    }

    /// Closes the frames inside `around`. Events come outermost first, so `around` is still open.
    fn leave_to(&mut self, around: u32) {
        while let Some(&last) = self.open.last().filter(|&&last| last != around) {
            self.open.pop();
            let counted = self.counted(self.label[last as usize]);
            self.n_open[counted] -= 1;
        }
    }
}

/// Returns the names that differ from an earlier one only in the addresses of objects, such as
/// `<function f at 0x7f12>`, with that one. They name the same function.
fn alike_names(strings: &Strings) -> HashMap<u32, u32> {
    let mut first: HashMap<String, u32> = HashMap::new();
    let mut found = HashMap::new();
    for (row, name) in strings.iter().enumerate() {
        let Some(plain) = without_addresses(name) else { continue };
        let row = row_in_column(row);
        let earliest = *first.entry(plain).or_insert(row);
        if earliest != row {
            found.insert(row, earliest);
        }
    }
    found
}

fn without_addresses(name: &str) -> Option<String> {
    let (before, after) = name.split_once(" at 0x")?;
    let is_digit = |it: char| it.is_ascii_digit() || ('a'..='f').contains(&it);
    let rest = after.split(" at 0x").map(|part| part.trim_start_matches(is_digit));
    Some(rest.fold(before.to_owned(), |plain, part| plain + part))
}

/// The argument of operators with the module in which they ran.
const MODULE_PATH: &str = "Module Hierarchy";

/// Determines which events are frames, by kind and name.
struct Names<'a> {
    tables: &'a Tables,
    frames: &'a Frames<'a>,
    is_module: Vec<bool>,
    is_asked: Option<Vec<bool>>,
    has_recorded: bool,
}

impl<'a> Names<'a> {
    fn of(tables: &'a Tables, frames: &'a Frames<'a>) -> Result<Self> {
        let matching = |names| graph::matching(names, tables);
        let is_asked = frames.annotation_names.map(matching).transpose()?;
        let is_module = tables.strings.matching(|name| module_name(name).is_some());
        let has_recorded = tables
            .args
            .iter()
            .any(|(_, table)| table.columns.iter().any(|column| column.key == MODULE_PATH));
        Ok(Self { tables, frames, is_module, is_asked, has_recorded })
    }

    /// Returns the name of the frame, if the event is one; [`NO_ROW`] for a frame without a name.
    fn frame(&self, event: EventId) -> Option<u32> {
        let (events, frames) = (&self.tables.events, self.frames);
        let id = events.name(event);
        let is = |flags: &[bool]| id.is_some_and(|id| flags[id.row()]);
        let is_frame = match events.kind(event) {
            EventKind::Annotation => frames.annotations && self.is_asked.as_deref().is_none_or(is),
            EventKind::Operator if self.is_recorded(event) => return self.recorded_module(event),
            EventKind::Operator => frames.operators,
            EventKind::Python => frames.functions || (frames.modules && is(&self.is_module)),
            EventKind::Runtime | EventKind::Driver => frames.calls,
            kind => frames.others && kind.is_on_thread(),
        };
        is_frame.then(|| id.in_column())
    }

    /// Whether the event counts for the module that it records.
    fn is_recorded(&self, event: EventId) -> bool {
        let is_operator = self.tables.events.kind(event) == EventKind::Operator;
        self.frames.modules && !self.frames.operators && is_operator
    }

    fn recorded_module(&self, event: EventId) -> Option<u32> {
        if !self.has_recorded {
            return None;
        }
        let path = argument_text_id(event, MODULE_PATH, self.tables)?;
        (!self.tables.strings.get(path).is_empty()).then(|| Some(path).in_column())
    }

    fn inputs(&self, event: EventId) -> [u32; 2] {
        if !self.frames.by_inputs {
            return [NO_ROW; 2];
        }
        let text = |keys: [&str; 2]| {
            keys.iter().find_map(|key| argument_text_id(event, key, self.tables)).in_column()
        };
        [text(["Input Dims", "Input dims"]), text(["Input type", "Input types"])]
    }
}

// The event that was running on a thread at given times, such as when memory was allocated.

/// For each point (a lane row and a time in ns), returns the event that was open: the last event of
/// the lane to begin, or the innermost event around it that had not ended. An event that ends at
/// the point counts as open.
///
/// Points may be in any order; each event is visited once.
pub fn running_at(
    tables: &Tables,
    nesting: &Nesting,
    points: &[(u32, i64)],
) -> Vec<Option<EventId>> {
    let events = &tables.events;
    let begins = |event: EventId| (row_in_column(events.lane(event).row()), events.start_ns(event));
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&point| points[point]);
    let mut begun = nesting.outside_in().peekable();
    let mut open: Vec<EventId> = Vec::new();
    let mut found = vec![None; points.len()];
    for point in order {
        while let Some(event) = begun.next_if(|&event| begins(event) <= points[point]) {
            while open.last().is_some_and(|&last| nesting.parent(event) != Some(last)) {
                open.pop();
            }
            open.push(event);
        }
        let (lane, time_ns) = points[point];
        let is_over = |event: EventId| {
            begins(event).0 != lane || events.end_ns(event).is_none_or(|end| end < time_ns)
        };
        while open.last().is_some_and(|&last| is_over(last)) {
            open.pop();
        }
        found[point] = open.last().copied();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};
    use crate::stack::nesting;

    #[test]
    fn the_innermost_event_that_has_not_ended_runs() {
        let row = |tid: i64, ts: i64, dur: i64| {
            format!(
                r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":{tid},"ts":{ts},"dur":{dur}}}"#
            )
        };
        let rows = [row(1, 0, 100), row(1, 10, 20), row(1, 12, 2), row(2, 5, 10)];
        let tables =
            read_bytes(format!("[{}]", rows.join(",")).as_bytes(), &Options::default()).unwrap();
        let nesting = nesting(&tables, &silent).unwrap();
        let lane = |event| row_in_column(tables.events.lane(EventId::from_row(event)).row());
        let (one, two) = (lane(0), lane(3));
        let points = [(one, 13), (one, 50), (two, 4), (two, 15), (one, 20), (one, 101), (two, 16)];
        let points = points.map(|(lane, us)| (lane, us * 1000));
        let found: Vec<_> = running_at(&tables, &nesting, &points)
            .into_iter()
            .map(|event| event.map(EventId::row))
            .collect();
        let expected = [Some(2), Some(0), None, Some(3), Some(1), None, None];
        assert_eq!(found, expected);
    }
}
