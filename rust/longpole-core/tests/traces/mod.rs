//! Traces to read, sound and damaged, and all that one can see of a reading.

#![allow(dead_code)] // each test takes what it needs

use std::fmt::Write as _;
use std::io::{Read, Write as _};

use longpole_core::tables::{FlowTable, Tables};

/// A trace as Kineto writes it, and where in it each event ends.
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
        3 => write!(text, "  {{\n    \"ph\": \"s\", \"id\": {id}, \"pid\": 41, \"tid\": 41, \"ts\": {start}, \"cat\": \"ac2g\"\n  }}"),
        _ => write!(text, "  {{\n    \"ph\": \"B\", \"name\": \"b\u{e9}\", \"pid\": 41, \"tid\": 42, \"ts\": {start}\n  }}"),
    };
    written.unwrap();
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What stands between the tokens of a trace: each writer has its own.
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

/// All that one can see of a reading, as text.
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

/// The arrows without the index that finds their sources.
fn flow_columns(flows: &FlowTable) -> String {
    let sources: Vec<_> = (0..flows.len()).map(|row| flows.source(row)).collect();
    format!("{:?} {:?} {:?} {:?} {sources:?}", flows.phase, flows.id, flows.time_ns, flows.position)
}

/// What is said of processes and threads, without the index that finds it again.
fn metadata_columns(tables: &Tables) -> String {
    let said = &tables.metadata;
    let texts = [&said.name, &said.process, &said.thread, &said.value];
    format!("{texts:?} {:?} {:?}", said.count, said.last_position)
}

/// A reader that gives a few bytes at a time.
pub(crate) struct Pieces<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) random: &'a mut Random,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = if self.random.below(2) == 0 { 3 } else { 700 };
        let wish = 1 + self.random.below(most);
        let length = wish.min(buffer.len()).min(self.bytes.len());
        buffer[..length].copy_from_slice(&self.bytes[..length]);
        self.bytes = &self.bytes[length..];
        Ok(length)
    }
}

/// One to four changes to one of the sources.
pub(crate) fn damaged(sources: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const TOKENS: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\\",
        b"\\u",
        b"\\ud800",
        b"null",
        b"NaN",
        b"-inf",
        b"\0\0\0\0",
        b"\xff\xff",
        b"\xef\xbb\xbf",
        b"\"ph\":\"X\"",
        b"{\"ph\":",
        b"1e999",
        b"-9223372036854775808",
        b"99999999999999999999",
        b"0.-05",
        b"\n",
        b"\"args\":",
        b"\"traceEvents\":[",
        b"\x1f\x8b\x08",
    ];
    let mut bytes = sources[random.below(sources.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len().max(1)).min(bytes.len());
        let length = random.below(64).min(bytes.len() - at);
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied())),
            2 => drop(bytes.drain(at..at + length)),
            3 => bytes.truncate(at),
            4 => {
                let copy = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len().max(1)).min(bytes.len());
                drop(bytes.splice(to..to, copy));
            }
            5 => {
                let other = &sources[random.below(sources.len())];
                let from = random.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            6 => bytes[at..at + length].fill(0),
            _ => drop(
                bytes.splice(at..at + length, TOKENS[random.below(TOKENS.len())].iter().copied()),
            ),
        }
    }
    bytes
}

/// xorshift64* (Vigna 2016): enough to choose where to damage.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
        let mut value = self.0;
        value ^= value >> 32;
        value = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
        value ^= value >> 29;
        usize::try_from(value % limit.max(1) as u64).unwrap()
    }
}
