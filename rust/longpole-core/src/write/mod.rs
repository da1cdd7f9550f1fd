//! Answers -> bytes that other programs read.

mod chakra;
mod counter_tracks;
mod cut;
mod et_plus;
mod merged;
mod perfetto;
mod perfetto_fields;
mod protobuf;
mod saved;

pub use chakra::chakra;
pub use counter_tracks::{counter_tracks, Counter};
pub use cut::Cut;
pub use et_plus::{et_plus, Extent};
pub use merged::{merged_path, merged_rank, MergedRank, MergedSegment};
pub use perfetto::perfetto;
pub use saved::save;
