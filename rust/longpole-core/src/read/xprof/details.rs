//! Splits the details that XProf stores as one string per GPU activity into separate arguments.
//!
//! | argument | from |
//! |---|---|
//! | `bytes`, `src kind`, `dst kind` | `memcpy_details`: `kind_src:pageable kind_dst:device size:64 ...` |
//! | `bytes` | `Memset_details` |
//! | `grid`, `block`, `registers per thread`, `shared memory` | `kernel_details`: `regs:32 ... grid:1,1,1` |

use std::collections::{HashMap, HashSet};

use crate::ids::StringId;
use crate::read::profile::{Profile, statements, text};
use crate::strings::Strings;
use crate::tables::{ArgValue, MetadataTable, Place, Values};
use crate::vocabulary::{Line, Plane, xprof_detail};

/// A new argument: its name, and how it is extracted from the strings of a memcpy, memset or
/// kernel.
type Rule = (&'static str, fn([&str; 3], &mut Strings) -> Option<ArgValue>);

const DETAILS: [&str; 3] = ["memcpy_details", "Memset_details", "kernel_details"];

const RULES: &[Rule] = &[
    ("bytes", |[copy, fill, _], _| {
        number(copy, "size").or_else(|| number(fill, "size")).or_else(|| number(fill, "num_bytes"))
    }),
    ("src kind", |[copy, ..], strings| word(copy, "kind_src", strings)),
    ("dst kind", |[copy, ..], strings| word(copy, "kind_dst", strings)),
    ("grid", |[.., kernel], strings| list(kernel, "grid", strings)),
    ("block", |[.., kernel], strings| list(kernel, "block", strings)),
    ("registers per thread", |[.., kernel], _| number(kernel, "regs")),
    ("shared memory", |[.., kernel], _| shared_memory(kernel)),
];

/// The strings of an activity: of a memcpy, a memset and a kernel.
type Texts = [Option<StringId>; 3];

/// Adds the arguments to GPU activities with such a string. Most strings repeat, and each distinct
/// one is parsed once.
pub(super) fn add(profile: &mut Profile<'_>) {
    let rows = rows(profile);
    let n_rows = profile.args.of(None).map_or(0, |table| table.event.len());
    let mut known: HashMap<Texts, Vec<Option<ArgValue>>> = HashMap::new();
    let mut made: Vec<Option<Values>> = vec![None; RULES.len()];
    for (row, texts) in rows {
        let strings = &mut *profile.strings;
        let values = known.entry(texts).or_insert_with(|| taken_apart(texts, strings));
        for (column, value) in made.iter_mut().zip(values) {
            let Some(value) = *value else { continue };
            column.get_or_insert_with(|| Values::like(value)).put(row, value, strings);
        }
    }
    for (&(key, _), values) in RULES.iter().zip(made) {
        if let Some(values) = values {
            profile.args.of_mut(None).add_column(key, values.padded(n_rows));
        }
    }
}

/// Returns the rows of the arguments of GPU activities, with their strings.
fn rows(profile: &Profile<'_>) -> Vec<(usize, Texts)> {
    let Some(table) = profile.args.of(None) else { return Vec::new() };
    let columns = DETAILS.map(|key| table.column(key));
    let rows = table.events().enumerate();
    rows.filter(|&(_, event)| profile.events.kind(event).is_device_work())
        .map(|(row, _)| (row, columns.map(|column| text(column?.values.get(row)?))))
        .filter(|(_, texts)| texts.iter().any(Option::is_some))
        .collect()
}

fn taken_apart(texts: Texts, strings: &mut Strings) -> Vec<Option<ArgValue>> {
    let texts = texts.map(|text| text.map_or(String::new(), |it| strings.get(it).to_owned()));
    let texts = texts.each_ref().map(String::as_str);
    RULES.iter().map(|(_, rule)| rule(texts, strings)).collect()
}

fn number(details: &str, key: &str) -> Option<ArgValue> {
    xprof_detail(details, key)?.parse().ok().map(ArgValue::Integer)
}

fn word(details: &str, key: &str, strings: &mut Strings) -> Option<ArgValue> {
    xprof_detail(details, key).map(|word| ArgValue::Text(strings.intern(word)))
}

/// Returns numbers separated by commas, in the list format of other profilers.
fn list(details: &str, key: &str, strings: &mut Strings) -> Option<ArgValue> {
    let numbers = xprof_detail(details, key)?.split(',').map(|number| number.parse::<u64>().ok());
    let numbers: Option<Vec<_>> = numbers.collect();
    Some(ArgValue::Text(strings.intern(&format!("{:?}", numbers?))))
}

fn shared_memory(kernel: &str) -> Option<ArgValue> {
    let bytes = |key| xprof_detail(kernel, key)?.parse::<i64>().ok();
    let sum = bytes("static_shared")?.checked_add(bytes("dynamic_shared")?)?;
    Some(ArgValue::Integer(sum))
}

/// The planes of one profile.
pub(super) struct Planes {
    of_process: HashMap<StringId, Plane>,
    lines: HashMap<(StringId, StringId), Line>,
    /// The planes with streams, whose activities are repeated on other lines.
    with_streams: HashSet<StringId>,
}

impl Planes {
    /// Finds the planes; `None` if no process is a plane.
    pub(super) fn of(metadata: &MetadataTable, strings: &Strings) -> Option<Self> {
        let of_process: HashMap<_, _> = statements(metadata, strings, "process_name")
            .filter_map(|statement| Some((statement.process, Plane::of_name(statement.value)?)))
            .collect();
        if of_process.is_empty() {
            return None;
        }
        let lines: HashMap<_, _> = statements(metadata, strings, "thread_name")
            .map(|it| ((it.process, it.thread), Line::of_name(it.value)))
            .collect();
        let is_stream = |line: &Line| matches!(line, Line::Stream(_));
        let streams = lines.iter().filter(|(_, line)| is_stream(line));
        let with_streams = streams.map(|(&(process, _), _)| process).collect();
        Some(Self { of_process, lines, with_streams })
    }

    pub(super) fn of_process(&self, process: StringId) -> Option<Plane> {
        self.of_process.get(&process).copied()
    }

    /// Returns the device line of a track.
    pub(super) fn line(&self, place: Place) -> Line {
        let line = self.lines.get(&(place.process, place.thread)).copied();
        match line.unwrap_or(Line::Unknown) {
            Line::Operations if self.with_streams.contains(&place.process) => Line::Repeated,
            line => line,
        }
    }
}
