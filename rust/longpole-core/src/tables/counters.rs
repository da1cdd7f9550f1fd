//! Samples of counters (`C` events), which have a time and no duration.

use super::args::renamed;
use super::columns::columns;
use crate::ids::{InColumn, StringId};

/// Samples of counters (`C`): one row for each series of each sample, in file order.
#[derive(Debug, Clone, Default)]
pub struct CounterTable {
    /// The counter.
    pub name: Vec<u32>,
    /// The series within the counter.
    pub series: Vec<u32>,
    /// The process of the counter.
    pub process: Vec<u32>,
    /// The time of the sample.
    pub time_ns: Vec<i64>,
    /// The value, NaN if the file has no number.
    pub value: Vec<f64>,
    /// The index in the event list.
    pub position: Vec<u32>,
}

columns! {
    CounterTable:
    name Rows,
    series Rows,
    process Rows,
    time_ns Integers,
    value Floats,
    position Rows,
}

impl CounterTable {
    pub(crate) fn push(
        &mut self,
        name: Option<StringId>,
        series: StringId,
        process: StringId,
        time_ns: i64,
        value: f64,
        position: u32,
    ) {
        self.name.push(name.in_column());
        self.series.push(Some(series).in_column());
        self.process.push(Some(process).in_column());
        self.time_ns.push(time_ns);
        self.value.push(value);
        self.position.push(position);
    }

    /// Appends the samples of a later part of the file. `texts` are the numbers of its strings in
    /// this table; `position` elements precede it.
    pub(crate) fn append(&mut self, later: &Self, texts: &[u32], position: u32) {
        self.name.extend(later.name.iter().map(|&text| renamed(text, texts)));
        self.series.extend(later.series.iter().map(|&text| renamed(text, texts)));
        self.process.extend(later.process.iter().map(|&text| renamed(text, texts)));
        self.time_ns.extend_from_slice(&later.time_ns);
        self.value.extend_from_slice(&later.value);
        self.position.extend(later.position.iter().map(|&place| place + position));
    }

    /// Removes the samples that are not kept.
    pub(crate) fn retain(&mut self, is_kept: &[bool]) {
        for column in self.columns_mut() {
            column.1.retain(is_kept);
        }
    }

    /// Removes all samples but keeps the capacity.
    pub(crate) fn clear(&mut self) {
        let columns = [&mut self.name, &mut self.series, &mut self.process, &mut self.position];
        columns.into_iter().for_each(Vec::clear);
        self.time_ns.clear();
        self.value.clear();
    }
}
