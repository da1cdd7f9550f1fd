//! Extracts records from the text output of profilers.
//!
//! Kernel authors read the output of hundreds of profiler runs, in a different format for each
//! tool, several in one stream, with unrelated lines in between. This module searches for all
//! formats in one pass: a search for the few bytes that every row or header must contain skips
//! everything else, and only the lines around a match are parsed.
//!
//! Bytes arrive in chunks of any size. Rows that cannot be read are counted with their position and
//! the reason. Values are never guessed: a number truncated by a crash, a zero, an infinity or a
//! failed check stays in the table and is marked, but is not [selectable](Status::is_selectable).
//! Memory is bounded: rows beyond a limit are counted and [summarized](Omitted) by operation.
//!
//! ```
//! use longpole_core::extract::{End, Extractor, FORMATS};
//! use longpole_core::names::Names;
//!
//! let mut extractor = Extractor::new(FORMATS, Vec::new());
//! extractor.feed(b"warming up\nOP:gemm_64x64,TI");
//! extractor.feed(b"ME:9.5e-05,WS:1024\nOP:gemm_128x64,TIME:nan,WS:0\n");
//! let found = extractor.finish(End::Whole);
//!
//! assert_eq!(found.records.time_ns[0], 95.0);
//! assert_eq!(found.records.workspace_bytes[0], 1024);
//! assert_eq!(found.records.status.iter().map(|status| status.name()).collect::<Vec<_>>(), ["ok", "nan"]);
//! ```

mod delimited;
mod format;
mod formats;
mod found;
mod lines;
mod numbers;
mod omitted;
mod pattern;
mod records;
mod stream;
pub mod tunable;

pub use format::Format;
pub use formats::{FORMATS, format};
pub use numbers::Unit;
pub use omitted::{Fastest, Omitted};
pub use pattern::{Pattern, PatternError};
pub use records::{
    Extraction, FieldTable, Reason, RecordTable, RejectionTable, Status, UNKNOWN_BYTES,
};
pub use stream::{End, Extractor, ForeignRow};
