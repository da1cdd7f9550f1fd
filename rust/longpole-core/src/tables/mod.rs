//! Columns. One file a table, one `Vec` or [`Packed`] a column, rows named by handles.
//!
//! The reader writes them once; what a later stage learns goes into a table of
//! its own, aligned by row or carrying the row's handle.

mod args;
pub mod chakra;
mod choice;
mod columns;
mod counters;
mod events;
mod execution;
mod flows;
mod header;
mod lanes;
mod metadata;
mod order;
mod packed;
mod sound;
mod work;

use std::sync::Arc;

pub(crate) use args::renamed;
pub use args::{ArgColumn, ArgTable, ArgTables, ArgValue, Values};
pub use choice::Arguments;
pub(crate) use columns::{Column, ColumnMut, of_shorts};
pub use counters::CounterTable;
pub use events::{EventRow, EventTable};
pub use execution::{
    ExecutionHeader, ExecutionNode, ExecutionTrace, NODE_IDS_BELOW, NodeLayout, NodeValues, Root,
    given,
};
pub use flows::{FlowSource, FlowTable};
pub use header::Header;
pub use lanes::{LaneTable, Place};
pub use metadata::MetadataTable;
pub use order::by_content;
pub(crate) use order::{argument, argument_text, argument_text_id, track};
pub use packed::Packed;

use crate::diagnostics::Diagnostics;
pub use crate::ids::NO_INTEGER;
use crate::strings::Strings;
use crate::vocabulary::ApiRole;
use crate::vocabulary::Vocabulary;
pub use crate::vocabulary::{EventKind, WorkClass};

/// All that one file holds.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Every name, category and text.
    pub strings: Arc<Strings>,
    /// What the names mean.
    pub vocabulary: Arc<Vocabulary>,
    /// What happened: complete events, paired begin/end events and instants.
    pub events: Arc<EventTable>,
    /// Where it happened.
    pub lanes: Arc<LaneTable>,
    /// Which arguments were asked for.
    pub arguments: Arguments,
    /// The arguments that were asked for, one table a category.
    pub args: Arc<ArgTables>,
    /// Arrows between events.
    pub flows: Arc<FlowTable>,
    /// Samples of counters.
    pub counters: Arc<CounterTable>,
    /// Asynchronous events (`b`, `n`, `e` and the older `S`, `T`, `p`, `F`): they
    /// have the same columns as arrows, and belong together by category and id.
    pub asyncs: Arc<FlowTable>,
    /// Names and labels of processes and threads.
    pub metadata: Arc<MetadataTable>,
    /// What the document says about itself.
    pub header: Arc<Header>,
    /// What was found wrong.
    pub diagnostics: Diagnostics,
    /// How many events of each phase (`ph`) were read, by the byte of the phase;
    /// what has no phase or a longer one is counted under 0.
    pub phases: Vec<(u8, u64)>,
    /// Bytes of the uncompressed document.
    pub bytes: u64,
}

impl Tables {
    /// The role that each text has as the name of a runtime API call, one row for each.
    pub fn roles(&self) -> Vec<ApiRole> {
        self.strings.iter().map(|name| self.vocabulary.role(name)).collect()
    }

    /// How many whole events of any phase the document held.
    pub fn n_events(&self) -> u64 {
        self.phases.iter().map(|&(_, count)| count).sum()
    }
}
