//! Answers -> bytes that other programs read.

mod chakra;
mod et_plus;
mod perfetto;
mod protobuf;

pub use chakra::chakra;
pub use et_plus::{et_plus, Extent};
pub use perfetto::perfetto;
