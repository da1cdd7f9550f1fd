//! The tables of a trace. One file for each table, one `Vec` or [`Packed`] for each column, handles
//! for rows.
//!
//! The reader writes the tables once. Later stages store their results in separate tables, aligned
//! by row or with the handle of the row.

mod args;
pub mod chakra;
mod choice;
mod columns;
mod counters;
mod events;
mod execution;
mod flows;
mod metadata;
mod order;
mod packed;
mod sound;

pub use crate::ids::NO_INTEGER;
pub use crate::vocabulary::{EventKind, WorkClass};
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
pub use metadata::{Header, LaneTable, MetadataTable, Place};
pub use order::by_content;
pub(crate) use order::{argument, argument_text, argument_text_id, track};
pub use packed::Packed;

use std::sync::Arc;

use crate::diagnostics::Diagnostics;
use crate::ids::StringId;
use crate::strings::Strings;
use crate::vocabulary::{ApiRole, Vocabulary};

/// The content of one file.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// All names, categories and other strings.
    pub strings: Arc<Strings>,
    /// The meaning of names.
    pub vocabulary: Arc<Vocabulary>,
    /// The events: complete events, paired begin/end events and instants.
    pub events: Arc<EventTable>,
    /// The lanes of the events.
    pub lanes: Arc<LaneTable>,
    /// Which arguments were requested.
    pub arguments: Arguments,
    /// The requested arguments, one table for each category.
    pub args: Arc<ArgTables>,
    /// Flow arrows between events.
    pub flows: Arc<FlowTable>,
    /// Samples of counters.
    pub counters: Arc<CounterTable>,
    /// Asynchronous events (`b`, `n`, `e` and the older `S`, `T`, `p`, `F`). They have the same
    /// columns as arrows, and belong together by category and id.
    pub asyncs: Arc<FlowTable>,
    /// Names and labels of processes and threads.
    pub metadata: Arc<MetadataTable>,
    /// The metadata of the document.
    pub header: Arc<Header>,
    /// The problems found.
    pub diagnostics: Diagnostics,
    /// The number of events of each phase (`ph`), by phase byte. Events with a missing or longer
    /// phase count as 0.
    pub phases: Vec<(u8, u64)>,
    /// Size of the uncompressed document in bytes.
    pub bytes: u64,
}

impl Tables {
    /// Returns the role of each string as the name of a runtime API call, one row for each string.
    pub fn roles(&self) -> Vec<ApiRole> {
        self.strings.iter().map(|name| self.vocabulary.role(name)).collect()
    }

    /// Returns the role of one name; [`roles`](Self::roles) is for those of many events.
    pub fn role(&self, name: StringId) -> ApiRole {
        self.vocabulary.role(self.strings.get(name))
    }

    /// Returns the number of complete events of any phase in the document.
    pub fn n_events(&self) -> u64 {
        self.phases.iter().map(|&(_, count)| count).sum()
    }
}
