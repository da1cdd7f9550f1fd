//! A saved trace is read as it was written, or rejected, for any change of its bytes.

#![allow(clippy::unwrap_used)] // in helpers of tests as in tests

use std::sync::Arc;

use longpole_core::error::ErrorKind;
use longpole_core::read::{Arguments, Options, read_bytes};
use longpole_core::tables::Tables;
use longpole_core::write::save;

const TRACE: &str = r#"{"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::\u00e9", "pid": 1, "tid": "main", "ts": 1, "dur": 9,
     "args": {"External id": 4, "Input Dims": [[2, 3]], "Sequence number": 5}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 40,
     "args": {"correlation": 7, "device": 0, "stream": 7, "bytes": 0.5}},
    {"ph": "s", "id": 7, "pid": 1, "tid": 1, "ts": 2, "cat": "ac2g"},
    {"ph": "b", "id": "0x1", "pid": 1, "tid": 1, "ts": 2, "cat": "async"},
    {"ph": "C", "name": "memory", "pid": 1, "ts": 3, "args": {"bytes": 12.5}},
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    {"ph": "X", "name": "no end", "pid": 1, "tid": 1, "ts": 4}
]}"#;

fn tables() -> Tables {
    read_bytes(TRACE.as_bytes(), &Options::default()).unwrap()
}

fn saved(tables: &Tables) -> Vec<u8> {
    let mut bytes = Vec::new();
    save(tables, &mut bytes).unwrap();
    bytes
}

fn refusal(bytes: &[u8], options: &Options) -> ErrorKind {
    read_bytes(bytes, options).map(|_| ()).unwrap_err().kind().clone()
}

#[test]
fn what_is_read_again_is_what_was_saved() {
    let bytes = saved(&tables());
    let again = read_bytes(&bytes, &Options::default()).unwrap();
    assert_eq!(saved(&again), bytes);
    assert_eq!(again.header, tables().header);
    assert_eq!(again.diagnostics, tables().diagnostics);
    assert_eq!(again.n_events(), 7);
}

#[test]
fn fewer_arguments_are_as_if_the_trace_had_been_read_so() {
    let ids = Options { arguments: Arguments::Ids, ..Options::default() };
    let narrow = read_bytes(&saved(&tables()), &ids).unwrap();
    let expected = read_bytes(TRACE.as_bytes(), &ids).unwrap();
    let keys = |tables: &Tables| {
        let tables = tables.args.iter();
        let keys = tables.map(|(_, table)| {
            let keys: Vec<_> = table.columns.iter().map(|column| column.key.clone()).collect();
            (table.events().collect::<Vec<_>>(), keys)
        });
        keys.collect::<Vec<_>>()
    };
    assert_eq!(keys(&narrow), keys(&expected));
    let more = Arguments::Named(vec!["custom".to_owned()]);
    let asked = Options { arguments: more, ..Options::default() };
    assert!(
        matches!(refusal(&saved(&tables()), &asked), ErrorKind::NotSaved(why) if why.contains("custom"))
    );
    assert!(matches!(refusal(&saved(&narrow), &Options::default()), ErrorKind::NotSaved(_)));
}

#[test]
fn every_cut_and_every_changed_byte_is_refused() {
    let bytes = saved(&tables());
    for length in 0..bytes.len() {
        assert!(read_bytes(&bytes[..length], &Options::default()).is_err(), "cut at {length}");
    }
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            assert!(read_bytes(&changed, &Options::default()).is_err(), "{flip:#x} at {at}");
        }
    }
    let longer = [&bytes[..], b" "].concat();
    assert!(matches!(refusal(&longer, &Options::default()), ErrorKind::DamagedSave(_)));
}

#[test]
fn another_version_is_named() {
    let bytes = changed_document(&saved(&tables()), b"\"version\":1", b"\"version\":2");
    assert_eq!(refusal(&bytes, &Options::default()), ErrorKind::OtherSave { version: 2 });
}

#[test]
fn values_that_no_reader_gives_are_refused() {
    let changes: [fn(&mut Tables); 5] = [
        |tables| Arc::make_mut(&mut tables.counters).name[0] = 99,
        |tables| Arc::make_mut(&mut tables.counters).time_ns[0] = i64::MAX,
        |tables| Arc::make_mut(&mut tables.metadata).count.clear(),
        |tables| Arc::make_mut(&mut tables.flows).phase.push(b's'),
        |tables| tables.phases.push((0, u64::MAX)),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut tables = tables();
        change(&mut tables);
        let kind = refusal(&saved(&tables), &Options::default());
        assert!(matches!(kind, ErrorKind::DamagedSave(_)), "{number}: {kind:?}");
    }
}

#[test]
fn what_a_saved_trace_cannot_do_is_an_error() {
    let bytes = saved(&tables());
    let limited = Options { max_events: Some(2), ..Options::default() };
    assert!(matches!(refusal(&bytes, &limited), ErrorKind::NotSaved(_)));
    let mut vocabulary = longpole_core::vocabulary::Vocabulary::default();
    vocabulary.add("kernels", "communication", "gemm").unwrap();
    let other = Options { vocabulary: Arc::new(vocabulary), ..Options::default() };
    assert!(matches!(refusal(&bytes, &other), ErrorKind::NotSaved(_)));
    let with_vocabulary = saved(&read_bytes(TRACE.as_bytes(), &other).unwrap());
    let again = read_bytes(&with_vocabulary, &Options::default()).unwrap();
    assert_eq!(again.vocabulary.additions(), other.vocabulary.additions());
    assert!(read_bytes(&with_vocabulary, &other).is_ok());
}

/// Returns the file with a part of its document replaced, and a correct checksum.
fn changed_document(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let at = bytes.windows(old.len()).position(|part| part == old).unwrap();
    let mut changed = bytes.to_vec();
    changed[at..at + old.len()].copy_from_slice(new);
    let start = 30 + "longpole.json".len() + 20;
    let size = usize::try_from(u64::from_le_bytes(bytes[start - 8..start].try_into().unwrap()));
    let crc = crc32fast::hash(&changed[start..start + size.unwrap()]);
    changed[14..18].copy_from_slice(&crc.to_le_bytes());
    changed
}
