//! Finds what a GPU program waits for: reads the bytes of a trace and returns tables.
//!
//! ```
//! use longpole_core::{link, read};
//!
//! let trace = br#"{"traceEvents": [
//!     {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
//!      "ts": 10, "dur": 5, "args": {"correlation": 7}},
//!     {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
//!      "ts": 20, "dur": 40, "args": {"correlation": 7, "device": 0, "stream": 7}}
//! ]}"#;
//! let tables = read::read_bytes(trace, &read::Options::default())?;
//! let launches = link::launches(&tables, &longpole_core::progress::silent)?;
//!
//! let [call, kernel] = [0, 1].map(longpole_core::ids::EventId::from_row);
//! assert_eq!(launches.launcher(kernel), Some(call));
//! assert_eq!(tables.events.duration_ns(kernel), Some(40_000));
//! # Ok::<(), longpole_core::Error>(())
//! ```
//!
//! Each module uses only those before it in this list: [`vocabulary`], [`tables`], [`read`],
//! [`link`], [`stack`], [`graph`], [`path`], [`measure`], [`overhead`], [`workload`], [`ranks`],
//! [`mod@write`]. Two modules are independent of these: [`extract`] reads the output of benchmarks,
//! and [`alignment`] aligns the launches of two runs.

#![forbid(unsafe_code)]
#![deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
#![deny(clippy::unwrap_used, clippy::iter_over_hash_type)]

pub mod alignment;
pub mod columns;
pub mod diagnostics;
pub mod error;
pub mod extract;
pub mod graph;
pub mod ids;
pub mod intervals;
pub mod link;
pub mod measure;
pub mod names;
pub mod overhead;
pub mod path;
pub mod patterns;
pub mod progress;
pub mod ranks;
pub mod read;
pub mod stack;
pub mod strings;
pub mod tables;
pub mod time;
pub mod vocabulary;
pub mod workload;
pub mod write;

pub use error::{Error, Result};
