//! Joins the tables of parts of the file, in file order.
//!
//! Strings, lanes, keys, sources and statements are numbered in order of first use. Each thread
//! reads its parts in file order and passes on what is new to it, so that new entries arrive in the
//! order in which a single thread would have found them.

use super::collect::Collector;
use super::part::Part;
use crate::ids::{InColumn, LaneId, StringId};
use crate::read::json::Keys;
use crate::tables::{FlowSource, FlowTable, Place, renamed};

/// For each entry passed on by a thread, its number in the joined tables.
#[derive(Default)]
pub(super) struct Numbers {
    texts: Vec<u32>,
    lanes: Vec<u32>,
    keys: Vec<usize>,
    flow_sources: Vec<u32>,
    async_sources: Vec<u32>,
    statements: Vec<usize>,
}

impl Numbers {
    /// Creates the numbers for a thread that knows the initial keys.
    pub(super) fn new(n_keys: usize) -> Self {
        Self { keys: (0..n_keys).collect(), ..Self::default() }
    }

    fn text(&self, id: StringId) -> StringId {
        StringId::from_row(self.texts[id.row()] as usize)
    }

    fn some_text(&self, text: u32) -> Option<StringId> {
        StringId::from_column(renamed(text, &self.texts))
    }
}

impl Collector {
    /// Appends a part whose elements follow `position` others. Returns false, without any change,
    /// if that is not possible.
    pub(super) fn join(
        &mut self,
        part: &Part,
        numbers: &mut Numbers,
        keys: &mut Keys,
        position: u32,
    ) -> bool {
        if !self.takes(part, numbers, keys, position) {
            return false;
        }
        self.number(part, numbers, keys);
        let rows = &part.rows;
        let row = self.tables.events.len();
        let first_row = crate::ids::row_in_column(row);
        self.tables.events.append(&rows.events, &numbers.texts, &numbers.lanes, position);
        self.tables.args.append(&rows.args, first_row, &numbers.texts, &numbers.keys);
        self.tables.flows.append(&rows.flows, &numbers.texts, &numbers.flow_sources, position);
        self.tables.asyncs.append(&rows.asyncs, &numbers.texts, &numbers.async_sources, position);
        self.tables.counters.append(&rows.counters, &numbers.texts, position);
        for &(statement, at) in &rows.statements {
            self.tables.metadata.repeat(numbers.statements[statement], at + position);
        }
        self.brackets.append(&rows.brackets, &numbers.texts, position, row);
        for (count, more) in self.tables.phases.0.iter_mut().zip(&part.phases.0) {
            *count += more;
        }
        self.tables.n_events += part.n_events;
        true
    }

    /// Whether joining gives the same result as reading with one thread.
    fn takes(&self, part: &Part, numbers: &Numbers, keys: &Keys, position: u32) -> bool {
        let known = |id: StringId| {
            let number = numbers.texts.get(id.row()).map(|&row| StringId::from_row(row as usize));
            number
                .or_else(|| self.tables.strings.lookup(&part.texts[id.row() - numbers.texts.len()]))
        };
        let n_new = part.keys.iter().filter(|key| keys.find(key.as_bytes()).is_none()).count();
        let elements_fit = position.checked_add(part.n_elements).is_some_and(|end| end < u32::MAX);
        elements_fit
            && keys.has_room(n_new)
            && self.tables.args.takes(&part.rows.args, known)
            && self.tables.flows.takes(&part.rows.flows)
            && self.tables.asyncs.takes(&part.rows.asyncs)
    }

    /// Numbers the new entries of a part.
    fn number(&mut self, part: &Part, numbers: &mut Numbers, keys: &mut Keys) {
        for text in &part.texts {
            numbers.texts.push(Some(self.tables.strings.intern(text)).in_column());
        }
        for place in &part.lanes {
            let lane: LaneId = self.tables.lanes.intern(Place {
                process: numbers.text(place.process),
                thread: numbers.text(place.thread),
                ..*place
            });
            numbers.lanes.push(Some(lane).in_column());
        }
        numbers.keys.extend(part.keys.iter().filter_map(|key| keys.row(key)));
        let flow_sources = number_sources(&mut self.tables.flows, &part.flow_sources, numbers);
        numbers.flow_sources.extend(flow_sources);
        let async_sources = number_sources(&mut self.tables.asyncs, &part.async_sources, numbers);
        numbers.async_sources.extend(async_sources);
        for &[name, process, thread, value] in &part.new_statements {
            let [process, thread] =
                [process, thread].map(|text| numbers.text(StringId::from_row(text as usize)));
            let (name, value) = (numbers.some_text(name), numbers.some_text(value));
            numbers.statements.push(self.tables.metadata.row(name, process, thread, value));
        }
    }
}

fn number_sources(table: &mut FlowTable, new: &[FlowSource], numbers: &Numbers) -> Vec<u32> {
    let own = |source: &FlowSource| FlowSource {
        category: source.category.map(|text| numbers.text(text)),
        name: source.name.map(|text| numbers.text(text)),
        process: numbers.text(source.process),
        thread: numbers.text(source.thread),
    };
    new.iter().map(|source| table.source_row(own(source))).collect()
}
