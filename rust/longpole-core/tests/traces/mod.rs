//! Valid and damaged traces to read, and a complete dump of the result.

#![allow(dead_code, unused_imports)] // each test takes what it needs

use std::fmt::Write as _;

use longpole_core::tables::{FlowTable, Tables};

#[path = "../../../longpole-fuzz/src/mutation.rs"]
#[allow(unreachable_pub)] // it is of a library there
mod mutation;

pub(crate) use mutation::{Pieces, Random, gzip, mutated as damaged};

/// Returns a trace as written by Kineto, and the position at which each event ends.
pub(crate) fn trace(bytes: usize) -> (Vec<u8>, Vec<usize>) {
    let mut text = String::from("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n");
    let (mut ends, mut number) = (Vec::new(), 0);
    while text.len() < bytes {
        if number > 0 {
            text.push_str(",\n");
        }
        event(&mut text, number);
        ends.push(text.len());
        number += 1;
    }
    text.push_str("\n  ],\n  \"traceName\": \"run.json\"\n}\n");
    (text.into_bytes(), ends)
}

pub(crate) fn event(text: &mut String, number: usize) {
    let (start, id) = (1000 + number * 7, number / 3 + 1);
    let written = match number % 5 {
        0 => write!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op{}\", \"pid\": 41, \"tid\": 41,\n    \
             \"ts\": {start}.250, \"dur\": 6.125,\n    \"args\": {{\n      \"External id\": {id}, \"Input Dims\": [[{number}, 4], []]\n    }}\n  }}",
            number % 17
        ),
        1 => write!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 41, \"tid\": 41,\n    \
             \"ts\": {start}, \"dur\": 2,\n    \"args\": {{\n      \"External id\": {id}, \"cbid\": 211, \"correlation\": {id}\n    }}\n  }}"
        ),
        2 => write!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void gemm<\\\"{}\\\">\", \"pid\": 0, \"tid\": 7,\n    \
             \"ts\": {start}, \"dur\": 31.001,\n    \"args\": {{\n      \"device\": 0, \"stream\": 7, \"correlation\": {id}\n    }}\n  }}",
            number % 11
        ),
        3 => write!(
            text,
            "  {{\n    \"ph\": \"s\", \"id\": {id}, \"pid\": 41, \"tid\": 41, \"ts\": {start}, \"cat\": \"ac2g\"\n  }}"
        ),
        _ => write!(
            text,
            "  {{\n    \"ph\": \"B\", \"name\": \"b\u{e9}\", \"pid\": 41, \"tid\": 42, \"ts\": {start}\n  }}"
        ),
    };
    written.unwrap();
}

/// Text between the tokens of a trace, which differs between writers.
pub(crate) const LAYOUTS: &[&[(&str, &str)]] = &[
    &[("\n", "")],
    &[("\n", "\r\n")],
    &[("\n  {", "{"), ("\n", "\n\t")],
    &[("\"dur\"", "\"d\\u0075r\""), ("\"pid\": 0", "\"pid\": \"0\"")],
    &[("\"correlation\": ", "\"correlation\": -"), ("6.125", "6.12345678901234567890")],
    &[("\"tid\": 42", "\"tid\": 42, \"id\": \"x\""), ("\"cbid\": 211", "\"cbid\": 007")],
];

pub(crate) fn rewritten(text: &[u8], layout: &[(&str, &str)]) -> Vec<u8> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    layout.iter().fold(text, |text, (from, to)| text.replace(from, to)).into_bytes()
}

/// Returns everything visible in the result of reading, as text.
pub(crate) fn outcome(result: longpole_core::Result<Tables>) -> String {
    match result {
        Err(error) => format!("{error:?}"),
        Ok(tables) => format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            tables.strings.iter().collect::<Vec<_>>(),
            tables.events,
            tables.lanes.places(),
            tables.args,
            flow_columns(&tables.flows),
            flow_columns(&tables.asyncs),
            tables.counters,
            metadata_columns(&tables),
            tables.header,
            tables.diagnostics,
            tables.phases,
            tables.bytes
        ),
    }
}

/// Returns the arrows without the index of their sources.
fn flow_columns(flows: &FlowTable) -> String {
    let sources: Vec<_> = (0..flows.len()).map(|row| flows.source(row)).collect();
    format!("{:?} {:?} {:?} {:?} {sources:?}", flows.phase, flows.id, flows.time_ns, flows.position)
}

/// Returns the metadata of processes and threads, without its index.
fn metadata_columns(tables: &Tables) -> String {
    let said = &tables.metadata;
    let texts = [&said.name, &said.process, &said.thread, &said.value];
    format!("{texts:?} {:?} {:?}", said.count, said.last_position)
}
