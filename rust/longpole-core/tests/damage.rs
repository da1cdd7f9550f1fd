//! What must hold of reading whatever the bytes are: it ends, without a panic,
//! in bounded memory, and keeps every event that is whole.
//!
//! Seeded, and meant for release builds: the counts are large.

#![allow(clippy::unwrap_used)] // in helpers of tests as in tests

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::ops::Range;
use std::time::Instant;

use longpole_core::diagnostics::Code;
use longpole_core::progress::silent;
use longpole_core::read::{read, read_bytes, Arguments, Options};
use longpole_core::tables::Tables;
use longpole_core::{link, stack};

/// A trace as Kineto writes it, and where in it each event ends.
fn trace(bytes: usize) -> (Vec<u8>, Vec<usize>) {
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

fn event(text: &mut String, number: usize) {
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

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn try_read(bytes: &[u8]) -> Option<Tables> {
    read_bytes(bytes, &Options::default()).ok()
}

/// How many events end within the first `length` bytes.
fn whole(ends: &[usize], length: usize) -> u64 {
    ends.partition_point(|&end| end <= length) as u64
}

#[test]
fn a_cut_at_any_even_byte_keeps_every_whole_event() {
    cuts_keep_every_whole_event(2);
}

/// The other half, for another core.
#[test]
fn a_cut_at_any_odd_byte_keeps_every_whole_event() {
    cuts_keep_every_whole_event(1);
}

fn cuts_keep_every_whole_event(first: usize) {
    let (text, ends) = trace(128 << 10);
    let key = b"\"traceEvents\": [";
    let list = text.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    let body_end = text.len() - 1;
    for cut in (first..body_end).step_by(2) {
        let Some(tables) = try_read(&text[..cut]) else {
            assert!(cut < list, "nothing was read of {cut} bytes");
            continue;
        };
        assert_eq!(tables.n_events(), whole(&ends, cut), "cut at {cut}");
        let named = tables
            .diagnostics
            .iter()
            .find(|row| matches!(row.code, Code::Truncated | Code::MissingEnd));
        let offset = named.map(|row| row.first_offset);
        assert!(tables.diagnostics.is_recovered() || cut + 1 == body_end, "cut at {cut}");
        assert!(offset.is_none_or(|offset| offset == cut as u64), "cut at {cut}, named {offset:?}");
    }
}

#[test]
fn a_cut_at_any_byte_of_gzip_keeps_every_whole_event() {
    let (text, ends) = trace(256 << 10);
    let packed = gzip(&text);
    let mut before = 0;
    for cut in 10..packed.len() {
        let delivered = inflated_length(&packed[..cut]);
        match try_read(&packed[..cut]) {
            Some(tables) => {
                assert_eq!(tables.bytes, delivered, "cut at {cut}");
                assert_eq!(
                    tables.n_events(),
                    whole(&ends, usize::try_from(tables.bytes).unwrap()),
                    "cut at {cut}"
                );
                assert!(tables.n_events() >= before);
                assert_eq!(tables.diagnostics.count(Code::GzipTruncated), 1);
                before = tables.n_events();
            }
            None => assert!(delivered < 64, "nothing was read of {delivered} bytes"),
        }
    }
}

/// What another decoder gets out of the front of a gzip file.
fn inflated_length(packed: &[u8]) -> u64 {
    let mut decoder = flate2::bufread::DeflateDecoder::new(&packed[10..]);
    let (mut buffer, mut length) = ([0; 4096], 0);
    while let Ok(count @ 1..) = decoder.read(&mut buffer) {
        length += count as u64;
    }
    length
}

#[test]
fn random_cuts_of_a_large_trace_keep_every_whole_event() {
    let (text, ends) = trace(8 << 20);
    let mut random = Random(7);
    for _ in 0..500 {
        // Mostly near the end of a window of the reader, where mistakes would be.
        let cut = if random.below(2) == 0 {
            random.below(text.len())
        } else {
            ((1 + random.below(7)) << 20) + random.below(400) - 200
        };
        let cut = cut.clamp(64, text.len() - 1);
        let tables = try_read(&text[..cut]).unwrap();
        assert_eq!(tables.n_events(), whole(&ends, cut), "cut at {cut}");
    }
}

#[test]
fn damaged_traces_do_no_harm() {
    damage_does_no_harm(0..10_000);
}

#[test]
#[ignore = "minutes: part of `make test-long`"]
fn a_hundred_thousand_damaged_traces_do_no_harm() {
    damage_does_no_harm(0..100_000);
}

fn damage_does_no_harm(seeds_of_damage: Range<u64>) {
    let seeds: Vec<_> = [2_000, 6_000].map(|bytes| trace(bytes).0).into_iter().collect();
    let packed: Vec<_> = seeds.iter().map(|seed| gzip(seed)).collect();
    let memory = resident_bytes();
    let started = Instant::now();
    for seed in seeds_of_damage {
        let mut random = Random(seed);
        let sources = if seed % 8 == 0 { &packed } else { &seeds };
        let bytes = damaged(sources, &mut random);
        let one = Instant::now();
        if let Some(tables) = try_read(&bytes) {
            let nesting = stack::nesting(&tables, &silent).unwrap();
            let launches = link::launches(&tables, &silent).unwrap();
            assert_eq!(nesting.parents().len(), launches.launchers().len());
            assert!(tables.n_events() <= bytes.len() as u64 * 300);
        }
        assert!(one.elapsed().as_secs() < 5, "seed {seed} takes {:?}", one.elapsed());
    }
    let grown = resident_bytes().saturating_sub(memory);
    assert!(grown < 300 << 20, "{grown} bytes more after {:?}", started.elapsed());
}

#[test]
fn reading_in_pieces_gives_what_reading_at_once_gives() {
    let seeds = [trace(3_000).0];
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let bytes = if seed % 4 == 0 { seeds[0].clone() } else { damaged(&seeds, &mut random) };
        let bytes = if seed % 3 == 0 { gzip(&bytes) } else { bytes };
        let pieces = Pieces { bytes: &bytes, random: &mut random };
        let at_once = read_bytes(&bytes, &Options::default());
        let in_pieces = read(pieces, &Options::default(), &silent);
        let (at_once, in_pieces) = (outcome(at_once), outcome(in_pieces));
        let differs = at_once.lines().zip(in_pieces.lines()).find(|(one, two)| one != two);
        assert_eq!(differs, None, "seed {seed}");
    }
}

/// What is predicted must be what the scanner would have read, on sound and damaged traces of
/// every layout, however they come.
#[test]
fn predicted_events_are_those_that_the_scanner_reads() {
    prediction_changes_nothing(0..2_000);
}

#[test]
#[ignore = "minutes: part of `make test-long`"]
fn predicted_events_are_those_that_the_scanner_reads_in_many_traces() {
    prediction_changes_nothing(0..30_000);
}

fn prediction_changes_nothing(seeds_of_damage: Range<u64>) {
    let kineto = trace(12_000).0;
    let mut seeds: Vec<_> = LAYOUTS.iter().map(|layout| rewritten(&kineto, layout)).collect();
    seeds.extend([kineto, trace(3_000).0]);
    for seed in seeds_of_damage {
        let mut random = Random(seed);
        let bytes = damaged(&seeds, &mut random);
        for arguments in [Arguments::Ids, Arguments::Default] {
            let predicting = Options { arguments, ..Options::default() };
            let scanning = Options { scan_all: true, ..predicting.clone() };
            let pieces = Pieces { bytes: &bytes, random: &mut random };
            let predicted = outcome(read(pieces, &predicting, &silent));
            let scanned = outcome(read_bytes(&bytes, &scanning));
            let differs = predicted.lines().zip(scanned.lines()).find(|(one, two)| one != two);
            assert_eq!(differs, None, "seed {seed}");
        }
    }
}

/// What stands between the tokens of a trace: each writer has its own.
const LAYOUTS: &[&[(&str, &str)]] = &[
    &[("\n", "")],
    &[("\n", "\r\n")],
    &[("\n  {", "{"), ("\n", "\n\t")],
    &[("\"dur\"", "\"d\\u0075r\""), ("\"pid\": 0", "\"pid\": \"0\"")],
    &[("\"correlation\": ", "\"correlation\": -"), ("6.125", "6.12345678901234567890")],
    &[("\"tid\": 42", "\"tid\": 42, \"id\": \"x\""), ("\"cbid\": 211", "\"cbid\": 007")],
];

fn rewritten(text: &[u8], layout: &[(&str, &str)]) -> Vec<u8> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    layout.iter().fold(text, |text, (from, to)| text.replace(from, to)).into_bytes()
}

/// All that one can see of a reading, as text.
fn outcome(result: longpole_core::Result<Tables>) -> String {
    match result {
        Err(error) => format!("{error:?}"),
        Ok(tables) => format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            tables.strings.iter().collect::<Vec<_>>(),
            tables.events,
            tables.args,
            flow_columns(&tables),
            tables.header,
            tables.diagnostics,
            tables.bytes
        ),
    }
}

/// The arrows without the index that finds their sources.
fn flow_columns(tables: &Tables) -> String {
    let flows = &tables.flows;
    let sources: Vec<_> = (0..flows.len()).map(|row| flows.source(row)).collect();
    format!("{:?} {:?} {:?} {:?} {sources:?}", flows.phase, flows.id, flows.time_ns, flows.position)
}

/// A reader that gives a few bytes at a time.
struct Pieces<'a> {
    bytes: &'a [u8],
    random: &'a mut Random,
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
fn damaged(sources: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
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
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
        let mut value = self.0;
        value ^= value >> 32;
        value = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
        value ^= value >> 29;
        usize::try_from(value % limit.max(1) as u64).unwrap()
    }
}

/// What the process holds in memory; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0)
        << 10
}
