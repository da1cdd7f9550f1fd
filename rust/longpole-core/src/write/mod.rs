//! Writes results in formats of other programs.

mod chakra;
mod cut;
mod document;
mod et_plus;
mod merged;
mod nesting;
mod perfetto;
mod protobuf;
mod saved;
mod whole;

pub use chakra::chakra;
pub use cut::Cut;
pub use document::document;
pub use et_plus::et_plus;
pub use merged::{MergedRank, MergedSegment, merged_path, merged_rank};
pub use perfetto::perfetto;
pub use perfetto::{Counter, counter_tracks};
pub use saved::save;
pub use whole::whole;
