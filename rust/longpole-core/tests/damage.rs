//! Properties of reading that hold for any input: it ends, without a panic, in bounded memory, and
//! keeps every complete event.
//!
//! Seeded, and intended for release builds, because the counts are large.

#![allow(clippy::unwrap_used)] // in helpers of tests as in tests

mod traces;

use std::io::Read;
use std::ops::Range;
use std::time::Instant;

use longpole_core::diagnostics::Code;
use longpole_core::progress::silent;
use longpole_core::read::{Arguments, Options, read, read_bytes};
use longpole_core::tables::Tables;
use longpole_core::{link, stack};

use traces::{LAYOUTS, Pieces, Random, damaged, gzip, outcome, rewritten, trace};

/// Length of a trace that is truncated at every byte; the cost is quadratic.
const SHORT: usize = 32 << 10;

fn try_read(bytes: &[u8]) -> Option<Tables> {
    read_bytes(bytes, &Options::default()).ok()
}

/// Returns the number of events that end within the first `length` bytes.
fn whole(ends: &[usize], length: usize) -> u64 {
    ends.partition_point(|&end| end <= length) as u64
}

#[test]
fn a_cut_at_any_even_byte_keeps_every_whole_event() {
    cuts_keep_every_whole_event(SHORT, 2);
}

/// The other half, so that it can run on another core.
#[test]
fn a_cut_at_any_odd_byte_keeps_every_whole_event() {
    cuts_keep_every_whole_event(SHORT, 1);
}

#[test]
#[ignore = "minutes: part of `make test-long`"]
fn a_cut_at_any_byte_of_a_longer_trace_keeps_every_whole_event() {
    cuts_keep_every_whole_event(4 * SHORT, 1);
    cuts_keep_every_whole_event(4 * SHORT, 2);
}

fn cuts_keep_every_whole_event(n_bytes: usize, first: usize) {
    let (text, ends) = trace(n_bytes);
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
    gzip_cuts_keep_every_whole_event(2 * SHORT);
}

#[test]
#[ignore = "minutes: part of `make test-long`"]
fn a_cut_at_any_byte_of_a_longer_gzip_keeps_every_whole_event() {
    gzip_cuts_keep_every_whole_event(8 * SHORT);
}

fn gzip_cuts_keep_every_whole_event(n_bytes: usize) {
    let (text, ends) = trace(n_bytes);
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
                assert_eq!(tables.diagnostics.count(Code::CompressionTruncated), 1);
                before = tables.n_events();
            }
            None => assert!(delivered < 64, "nothing was read of {delivered} bytes"),
        }
    }
}

/// Returns the number of bytes that another decoder gets from the front of a gzip file.
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
    let mut random = Random::new(7);
    for _ in 0..500 {
        // Mostly near the end of a window of the reader, where errors are likely.
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
        let mut random = Random::new(seed);
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
        let mut random = Random::new(seed);
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

/// Predicted events must equal those that the scanner reads, on valid and damaged traces of every
/// layout, for any division into parts.
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
        let mut random = Random::new(seed);
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

/// Returns the resident memory of the process; 0 if the system does not report it.
fn resident_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0)
        << 10
}
