//! What XProf says of GPU activities in one text each, as arguments of their own.
//!
//! | argument | from |
//! |---|---|
//! | `bytes`, `src kind`, `dst kind` | `memcpy_details`: `kind_src:pageable kind_dst:device size:64 ...` |
//! | `bytes` | `Memset_details` |
//! | `grid`, `block`, `registers per thread`, `shared memory` | `kernel_details`: `regs:32 ... grid:1,1,1` |

use super::{Profile, text};
use crate::strings::Strings;
use crate::tables::{ArgTable, ArgValue, Values};
use crate::vocabulary::xprof_detail;

/// A new argument: its name, and how it is found in the texts of a memcpy, memset or kernel.
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

/// Adds the arguments to the GPU activities that have such a text.
pub(super) fn add(profile: &mut Profile<'_>) {
    let Some(table) = profile.args.of(None) else { return };
    let columns: Vec<_> = DETAILS.iter().map(|key| table.column(key)).collect();
    if columns.iter().all(Option::is_none) {
        return;
    }
    let rows: Vec<_> = table
        .events()
        .enumerate()
        .filter(|&(_, event)| profile.events.kind(event).is_device_work())
        .map(|(row, _)| {
            let value =
                |place: usize| columns[place].and_then(|column| text(column.values.get(row)));
            (row, [value(0), value(1), value(2)])
        })
        .collect();
    let n_rows = table.event.len();
    let made: Vec<_> = RULES
        .iter()
        .filter_map(|&(key, rule)| {
            let mut values: Option<Values> = None;
            for &(row, details) in &rows {
                let texts = details.map(|text| text.map_or("", |text| profile.strings.get(text)));
                let texts = texts.map(str::to_owned);
                let value = rule(texts.each_ref().map(String::as_str), profile.strings);
                let Some(value) = value else { continue };
                values.get_or_insert_with(|| Values::like(value)).put(row, value, profile.strings);
            }
            values.map(|values| (key, values.padded(n_rows)))
        })
        .collect();
    let table: &mut ArgTable = profile.args.of_mut(None);
    for (key, values) in made {
        table.add_column(key, values);
    }
}

fn number(details: &str, key: &str) -> Option<ArgValue> {
    xprof_detail(details, key)?.parse().ok().map(ArgValue::Integer)
}

fn word(details: &str, key: &str, strings: &mut Strings) -> Option<ArgValue> {
    xprof_detail(details, key).map(|word| ArgValue::Text(strings.intern(word)))
}

/// Numbers with commas between them, as the list that other profilers write.
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
