//! Several threads must read the same as one, for any division of the file into parts.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // in helpers of tests as in tests

mod traces;

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use longpole_core::progress::silent;
use longpole_core::read::{Arguments, Options, read, read_bytes, read_path};
use longpole_core::tables::Tables;

use traces::{LAYOUTS, Pieces, Random, damaged, gzip, outcome, rewritten, trace};

fn assert_same(bytes: &[u8], options: &Options, part_bytes: usize, what: &str) {
    let one = outcome(read_bytes(bytes, options));
    for threads in [2, 7] {
        let several = Options { threads, part_bytes: Some(part_bytes), ..options.clone() };
        for found in [read_bytes(bytes, &several), read_file(bytes, &several)] {
            let found = outcome(found);
            let differs = found.lines().zip(one.lines()).find(|(found, one)| found != one);
            assert_eq!(differs, None, "{what}, {threads} threads, parts of {part_bytes}");
            assert_eq!(found.len(), one.len(), "{what}");
        }
    }
}

/// Returns what is read from the bytes in a file, from which threads fetch parts themselves.
fn read_file(bytes: &[u8], options: &Options) -> longpole_core::Result<Tables> {
    thread_local!(static PATH: PathBuf = {
        let (process, thread) = (std::process::id(), std::thread::current().id());
        std::env::temp_dir().join(format!("longpole-threads-{process}-{thread:?}.json"))
    });
    PATH.with(|path| {
        std::fs::write(path, bytes).unwrap();
        let found = read_path(path, options, &silent);
        std::fs::remove_file(path).unwrap();
        found
    })
}

#[test]
fn a_cut_at_any_byte_is_the_same_to_several_threads() {
    let text = trace(4_000).0;
    for cut in 0..=text.len() {
        assert_same(&text[..cut], &Options::default(), 100 + cut % 700, &format!("cut at {cut}"));
    }
}

#[test]
fn damage_is_the_same_to_several_threads() {
    damage_is_the_same(0..3_000);
}

#[test]
#[ignore = "minutes: part of `make test-long`"]
fn much_damage_is_the_same_to_several_threads() {
    for first in (0..100_000).step_by(5_000) {
        damage_is_the_same(first..first + 5_000);
        let _ = writeln!(std::io::stderr(), "{} damaged traces are the same", first + 5_000);
    }
}

fn damage_is_the_same(seeds_of_damage: Range<u64>) {
    let kineto = trace(9_000).0;
    let mut seeds: Vec<_> = LAYOUTS.iter().map(|layout| rewritten(&kineto, layout)).collect();
    seeds.extend([kineto, trace(3_000).0, odd_trace(200), mixed_trace(150)]);
    for seed in seeds_of_damage {
        let mut random = Random::new(seed);
        let mut bytes = damaged(&seeds, &mut random);
        if seed % 5 == 0 {
            bytes = gzip(&bytes);
        }
        if seed % 15 == 0 {
            bytes = damaged(&[bytes], &mut random);
        }
        let arguments = if seed % 2 == 0 { Arguments::Ids } else { Arguments::Default };
        let max_bytes = (seed % 7 == 0).then(|| random.below(9_000) as u64);
        let max_events = (seed % 11 == 0).then(|| random.below(60) as u64);
        let options = Options {
            arguments,
            strict: seed % 3 == 0,
            max_bytes,
            max_events,
            ..Options::default()
        };
        assert_same(&bytes, &options, 1 + random.below(900), &format!("seed {seed}"));
    }
}

#[test]
fn sound_layouts_are_the_same_to_several_threads_however_they_come() {
    let kineto = trace(30_000).0;
    for (row, layout) in LAYOUTS.iter().enumerate() {
        let bytes = rewritten(&kineto, layout);
        for part_bytes in [150, 331, 1_000, 2_500] {
            assert_same(&bytes, &Options::default(), part_bytes, &format!("layout {row}"));
        }
        let one = outcome(read_bytes(&bytes, &Options::default()));
        let several = Options { threads: 3, part_bytes: Some(700), ..Options::default() };
        let mut random = Random::new(row as u64);
        let pieces = Pieces { bytes: &bytes, random: &mut random };
        assert!(outcome(read(pieces, &several, &silent)) == one, "layout {row} in pieces");
    }
}

/// Returns a trace with everything that depends on earlier text: begin and end events, counters,
/// asynchronous events, repeated statements, findings, late keys, and columns that change from
/// integers to floats.
fn odd_trace(n_events: usize) -> Vec<u8> {
    let mut text = String::from("{\"traceEvents\": [");
    for number in 0..n_events {
        let comma = if number == 0 { "" } else { "," };
        let (ts, wide) = (number * 3, (1_usize << 62) + number);
        let event = match number % 9 {
            0 => format!(
                r#""ph":"B","name":"b{}","pid":1,"tid":{},"ts":{ts}"#,
                number % 7,
                number % 4
            ),
            1 => format!(r#""ph":"E","pid":1,"tid":{},"ts":{ts}"#, number % 4),
            2 => format!(
                r#""ph":"C","name":"c","pid":{},"ts":{ts},"args":{{"s{}":{number}.5}}"#,
                number % 3,
                number % 5
            ),
            3 => format!(
                r#""ph":"b","cat":"a","id":"0x{number:x}","name":"n","pid":1,"tid":2,"ts":{ts}"#
            ),
            4 => format!(
                r#""ph":"M","name":"thread_name","pid":{},"tid":1,"args":{{"name":"t{}"}}"#,
                number % 5,
                number % 11
            ),
            5 => format!(
                r#""ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":0,"dur":1,"args":{{"stream":{},"bytes":{number}}}"#,
                number % 3
            ),
            6 if number > n_events / 2 => format!(
                r#""ph":"X","cat":"kernel","name":"k\u00e9","pid":0,"tid":7,"ts":{ts},"dur":1,"args":{{"bytes":{number}.25,"grid":[{number}]}}"#
            ),
            7 => format!(
                r#""ph":"X","cat":"cpu_op","pid":1,"tid":1,"ts":{ts},"dur":-1,"args":{{"Ev Idx":{wide},"External id":"{number}x"}}"#
            ),
            _ => format!(
                r#""ph":"X","cat":"cpu_op","name":"o","pid":"{}","tid":1,"ts":{ts},"dur":2,"args":{{"Ev Idx":{number},"key{number}":null}}"#,
                number % 6
            ),
        };
        write!(text, "{comma}\n{{{event}}}").unwrap();
    }
    (text + "],\"distributedInfo\": {\"rank\": 3}}").into_bytes()
}

/// Returns columns in which numbers and strings alternate, so that the order of strings depends on
/// all earlier text, and with the integer that represents null.
fn mixed_trace(n_events: usize) -> Vec<u8> {
    let events = (0..n_events).map(|number| {
        let value = match number {
            70.. if number % 13 == 0 => "\"seven\"".to_owned(),
            50.. if number % 7 == 0 => format!("{number}.5"),
            20.. if number % 5 == 0 => i64::MIN.to_string(),
            _ => number.to_string(),
        };
        format!(r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":{number},"dur":1,"args":{{"Rank":{value},"Seq":{}}}}}"#, number * (1 << 40))
    });
    format!("[{}]", events.collect::<Vec<_>>().join(", ")).into_bytes()
}

#[test]
fn what_depends_on_the_order_is_the_same_to_several_threads() {
    for (name, bytes) in [("odd", odd_trace(900)), ("mixed", mixed_trace(900))] {
        for part_bytes in [90, 400, 1_777, 5_000] {
            assert_same(&bytes, &Options::default(), part_bytes, name);
            let packed = gzip(&bytes);
            assert_same(&packed, &Options::default(), part_bytes, name);
        }
    }
}

#[test]
fn the_limit_on_keys_falls_on_the_same_key() {
    let events = (0..6_000).map(|number| {
        format!(
            r#"{{"ph":"C","name":"n","pid":1,"ts":{number},"args":{{"key{number}":1,"key{}":2}}}}"#,
            number / 2
        )
    });
    let text = format!("[{}]", events.collect::<Vec<_>>().join(",\n"));
    for part_bytes in [2_000, 30_000] {
        assert_same(text.as_bytes(), &Options::default(), part_bytes, "keys");
    }
}

#[test]
fn gzip_that_is_cut_or_corrupt_is_the_same_to_several_threads() {
    let text = trace(6_000).0;
    let mut packed = gzip(&text);
    packed.extend(gzip(&odd_trace(50)));
    for cut in (18..packed.len()).step_by(3) {
        assert_same(&packed[..cut], &Options::default(), 300, &format!("cut at {cut}"));
        let mut corrupt = packed.clone();
        corrupt[cut] ^= 1 << (cut % 8);
        assert_same(&corrupt, &Options::default(), 300, &format!("corrupt at {cut}"));
    }
}

#[test]
fn a_limit_of_bytes_ends_reading_of_gzip() {
    let packed = gzip(&trace(60_000).0);
    for max_bytes in [0, 1, 1_000, 59_000] {
        let options = Options { max_bytes: Some(max_bytes), ..Options::default() };
        assert_same(&packed, &options, 500, &format!("{max_bytes} bytes"));
    }
}

#[test]
fn the_caller_can_stop_while_threads_read() {
    let text = trace(3 << 20).0;
    let asked = Cell::new(0);
    let stop = |_: u64| {
        asked.set(asked.get() + 1);
        if asked.get() < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = Options { threads: 3, part_bytes: Some(4_000), ..Options::default() };
    let error = read(&text[..], &options, &stop).unwrap_err();
    assert!(matches!(error.kind(), longpole_core::error::ErrorKind::Cancelled));
}

// Recorded traces, if available.

/// Largest file that every run reads: a file has up to twenty times the text.
const SMALL_BYTES: usize = 32_000;

#[test]
fn small_recorded_traces_are_the_same_to_several_threads() {
    are_the_same(|n_bytes| n_bytes <= SMALL_BYTES);
}

#[test]
#[ignore = "minutes"]
fn large_recorded_traces_are_the_same_to_several_threads() {
    are_the_same(|n_bytes| n_bytes > SMALL_BYTES);
}

fn are_the_same(is_chosen: impl Fn(usize) -> bool) {
    let files = recorded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    if files.is_empty() {
        let _ = writeln!(std::io::stderr(), "skipped: no recorded traces beside the repository");
        return;
    }
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        if !is_chosen(bytes.len()) {
            continue;
        }
        let part_bytes = if bytes.len() > 500_000 { 100_000 } else { 2_000 };
        for arguments in [Arguments::Ids, Arguments::Default] {
            for strict in [false, true] {
                let options =
                    Options { arguments: arguments.clone(), strict, ..Options::default() };
                assert_same(&bytes, &options, part_bytes, &file.display().to_string());
            }
        }
    }
}

fn recorded(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.join("data"), folder.join("corpus")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if [".json", ".json.gz"].iter().any(|suffix| name.ends_with(suffix)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
