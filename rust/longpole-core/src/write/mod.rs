//! Answers -> bytes that other programs read.

mod perfetto;
mod protobuf;

pub use perfetto::perfetto;
