//! Properties that hold for every input, as functions of bytes: a fuzzer calls one of [`TARGETS`]
//! with generated inputs, and a panic is a failure.
//!
//! The binary `fuzz` generates inputs by mutation alone and only needs a stable toolchain. In
//! `libfuzzer/` the same functions are targets of cargo-fuzz, which is guided by coverage.

#![forbid(unsafe_code)]

mod binary;
mod databases;
mod graphs;
mod mutation;
mod reading;
mod seeds;
mod text;
mod writing;

pub use mutation::{Random, mutated};

/// A part of longpole that reads untrusted bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of the target.
    pub name: &'static str,
    /// Panics if a property does not hold for the bytes.
    pub check: fn(&[u8]),
    /// Returns the initial inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "scanner", check: reading::scanner, seeds: seeds::values },
    Target { name: "reader", check: reading::reader, seeds: seeds::traces },
    Target { name: "gzip", check: reading::gzip, seeds: seeds::packed_traces },
    Target { name: "database", check: databases::database, seeds: databases::seeds },
    Target { name: "rocprof", check: databases::rocprof, seeds: databases::documents },
    Target { name: "csv", check: databases::rocprof, seeds: databases::csv },
    Target { name: "zstd", check: reading::zstd, seeds: binary::zstd },
    Target { name: "xz", check: reading::xz, seeds: binary::xz },
    Target { name: "perfetto", check: reading::binary, seeds: writing::packets },
    Target { name: "xplane", check: reading::binary, seeds: binary::planes },
    Target { name: "written", check: writing::written, seeds: writing::inputs },
    Target { name: "extract", check: text::extract, seeds: seeds::logs },
    Target { name: "graph", check: graphs::graph, seeds: seeds::tables },
];

/// Returns the target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_inputs_of_every_target_hold() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            for number in 0..300 {
                let mut random = Random::new(number);
                (target.check)(&mutated(&seeds, &mut random));
            }
        }
    }
}
