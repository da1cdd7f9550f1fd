//! Checks that tables from a saved file are as valid as those of an event reader.
//!
//! Later stages index tables by the rows of others and add times without checks. The checks here
//! make that safe.

use super::{Column, EventKind, FlowTable, Tables, Values};
use crate::ids::NO_ROW;
use crate::names::Names;
use crate::time::MAX_TIME_NS;

impl Tables {
    /// Returns what is wrong with the tables, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let mut counts = self.phases.iter().map(|&(_, count)| count);
        if counts.try_fold(0_u64, u64::checked_add).is_none_or(|sum| sum > u64::from(NO_ROW)) {
            return Some("it counts more events than a trace has");
        }
        [self.fault_of_events(), self.fault_of_args(), self.fault_of_others()]
            .into_iter()
            .flatten()
            .next()
    }

    fn fault_of_events(&self) -> Option<&'static str> {
        let events = &self.events;
        if !are_even(&events.columns()) {
            return Some("its events have columns of different lengths");
        }
        let is_sound = events.kinds().iter().all(|&kind| usize::from(kind) < EventKind::ALL.len())
            && self.are_texts(events.categories())
            && self.are_texts(events.names())
            && events.lanes().all(|lane| (lane as usize) < self.lanes.len())
            && are_times(events.starts_ns().iter().copied());
        (!is_sound).then_some("an event has a value that none can have")
    }

    fn fault_of_args(&self) -> Option<&'static str> {
        let is_sound = self.args.iter().all(|(_, table)| {
            table.event.rows().is_sorted_by(|one, two| one < two)
                && table
                    .event
                    .rows()
                    .last()
                    .is_none_or(|event| (event as usize) < self.events.len())
                && table.columns.iter().all(|column| {
                    column.values.len() == table.event.len() && self.are_values(&column.values)
                })
        });
        (!is_sound).then_some("an argument has a value that none can have")
    }

    fn fault_of_others(&self) -> Option<&'static str> {
        let (counters, metadata) = (&self.counters, &self.metadata);
        let texts = [&counters.name, &counters.series, &counters.process];
        let statements = [&metadata.name, &metadata.process, &metadata.thread, &metadata.value];
        let is_sound = are_even(&counters.columns())
            && are_even(&metadata.columns())
            && texts
                .into_iter()
                .chain(statements)
                .all(|column| self.are_texts(column.iter().copied()))
            && are_times(counters.time_ns.iter().copied())
            && [&self.flows, &self.asyncs].into_iter().all(|flows| self.are_flows(flows));
        (!is_sound).then_some("a counter, arrow or name has a value that none can have")
    }

    fn are_flows(&self, flows: &FlowTable) -> bool {
        flows.is_even() && self.are_values(&flows.id) && are_times(flows.time_ns.iter())
    }

    fn are_values(&self, values: &Values) -> bool {
        match values {
            Values::Texts(texts) => self.are_texts(texts.rows()),
            Values::Integers(_) | Values::Floats(_) => true,
        }
    }

    fn are_texts(&self, mut column: impl Iterator<Item = u32>) -> bool {
        column.all(|text| text == NO_ROW || (text as usize) < self.strings.len())
    }
}

fn are_even(columns: &[(&str, Column<'_>)]) -> bool {
    columns.windows(2).all(|pair| pair[0].1.len() == pair[1].1.len())
}

fn are_times(mut times_ns: impl Iterator<Item = i64>) -> bool {
    times_ns.all(|time_ns| (-MAX_TIME_NS..=MAX_TIME_NS).contains(&time_ns))
}
