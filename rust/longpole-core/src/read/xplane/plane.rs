//! The events of one plane as ids, and their conversion to rows when the plane ends.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::diagnostics::Code;
use crate::ids::{LaneId, StringId};
use crate::read::protobuf::{Field, Wire, fields};
use crate::read::rows::{Rows, kept_duration};
use crate::tables::{ArgValue, EventKind, EventRow, Place};
use crate::time::MAX_TIME_NS;

/// Maximum number of common values of an event type, which are copied to each event.
const MAX_STATS: usize = 256;

/// Values that describe a device, and Kineto's names for them.
const DEVICE_STATS: [(&str, &str); 6] = [
    ("gpu_device_name", "name"),
    ("device_type_string", "name"),
    ("memory_size", "totalGlobalMem"),
    ("core_count", "numSms"),
    ("compute_cap_major", "computeMajor"),
    ("compute_cap_minor", "computeMinor"),
];

/// A plane while it is read.
#[derive(Default)]
pub(super) struct Plane {
    name: Option<StringId>,
    lines: Vec<Line>,
    events: Vec<Event>,
    /// The values of all events, one after another.
    stats: Vec<Stat>,
    metadata: HashMap<u64, Metadata>,
    stat_names: HashMap<u64, StringId>,
    /// The values that describe the plane itself, such as the name of a device.
    own_stats: Vec<Stat>,
}

#[derive(Default)]
struct Line {
    id: u64,
    display_id: u64,
    name: Option<StringId>,
    display_name: Option<StringId>,
    timestamp_ns: i64,
}

struct Event {
    line: u32,
    /// The end of its values in the list of all values.
    end_of_stats: usize,
    metadata: u64,
    /// `None` if the event only counts how often something occurred.
    offset_ps: Option<i64>,
    duration_ps: i64,
}

/// What all events of a type have in common.
#[derive(Default)]
struct Metadata {
    name: Option<StringId>,
    display_name: Option<StringId>,
    stats: Vec<Stat>,
}

/// A value, and the id of its name.
#[derive(Clone, Copy)]
struct Stat {
    id: u64,
    value: StatValue,
}

#[derive(Clone, Copy)]
enum StatValue {
    Plain(ArgValue),
    /// The string with this id.
    Reference(u64),
    /// Bytes, or no value.
    Other,
}

/// Findings about the events of a plane, with counts.
type Said = Vec<(Code, u64)>;

impl Plane {
    /// Reads a field of the plane; `None` if it is not a valid message.
    pub(super) fn bytes(&mut self, field: Field, bytes: &[u8], rows: &mut Rows<'_>) -> Option<()> {
        match field {
            NAME => self.name = Some(rows.text(bytes)),
            EVENT_METADATA => {
                let (key, value) = entry(bytes)?;
                self.metadata.insert(key, metadata(value, rows)?);
            }
            STAT_METADATA => {
                let (key, value) = entry(bytes)?;
                self.stat_names.insert(key, name(value, rows)?);
            }
            STATS_OF_PLANE if self.own_stats.len() < MAX_STATS => {
                self.own_stats.push(stat(bytes, rows)?);
            }
            _ => {}
        }
        Some(())
    }

    pub(super) fn begin_line(&mut self) {
        self.lines.push(Line::default());
    }

    pub(super) fn number_of_line(&mut self, field: Field, number: u64) {
        let Some(line) = self.lines.last_mut() else { return };
        match field {
            ID => line.id = number,
            DISPLAY_ID => line.display_id = number,
            TIMESTAMP_NS => line.timestamp_ns = number.cast_signed(),
            _ => {}
        }
    }

    pub(super) fn text_of_line(
        &mut self,
        field: Field,
        bytes: &[u8],
        rows: &mut Rows<'_>,
    ) -> Option<()> {
        let line = self.lines.last_mut()?;
        match field {
            NAME => line.name = Some(rows.text(bytes)),
            DISPLAY_NAME_OF_LINE => line.display_name = Some(rows.text(bytes)),
            _ => {}
        }
        Some(())
    }

    /// Reads an event of the last line; `None` if it is not a valid message.
    pub(super) fn event(&mut self, bytes: &[u8], rows: &mut Rows<'_>) -> Option<()> {
        let n_before = self.stats.len();
        let line = u32::try_from(self.lines.len() - 1).ok()?;
        let mut event =
            Event { line, end_of_stats: 0, metadata: 0, offset_ps: Some(0), duration_ps: 0 };
        let stats = &mut self.stats;
        let taken = fields(bytes, |field, wire| {
            match (field, wire) {
                (METADATA_ID, _) => event.metadata = wire.number()?,
                (OFFSET_PS, _) => event.offset_ps = Some(wire.number()?.cast_signed()),
                (DURATION_PS, _) => event.duration_ps = wire.number()?.cast_signed(),
                (N_OCCURRENCES, _) => event.offset_ps = None,
                (STATS_OF_EVENT, Wire::Bytes(bytes)) => stats.push(stat(bytes, rows)?),
                _ => {}
            }
            Some(())
        });
        if taken.is_none() {
            self.stats.truncate(n_before);
            return None;
        }
        event.end_of_stats = self.stats.len();
        self.events.push(event);
        Some(())
    }

    /// Returns the properties of the device of the plane, with the names that Kineto uses.
    pub(super) fn device(&self, rows: &Rows<'_>) -> Option<Value> {
        let strings = &rows.tables.strings;
        let (_, number) = strings.get(self.name?).strip_prefix("/device:")?.rsplit_once(':')?;
        let mut found = Map::from_iter([("id".to_owned(), number.parse::<u32>().ok()?.into())]);
        for stat in &self.own_stats {
            let known = self.stat_names.get(&stat.id).map(|&name| strings.get(name));
            let property = DEVICE_STATS.iter().find(|(name, _)| known == Some(name));
            let Some(&(_, property)) = property else { continue };
            let value = match stat.value {
                StatValue::Plain(ArgValue::Integer(number)) => Value::from(number),
                StatValue::Plain(ArgValue::Text(text)) => Value::from(strings.get(text)),
                StatValue::Reference(id) => match self.stat_names.get(&id) {
                    Some(&text) => Value::from(strings.get(text)),
                    None => continue,
                },
                _ => continue,
            };
            found.insert(property.to_owned(), value);
        }
        (found.len() > 1).then_some(Value::Object(found))
    }

    /// Turns the events into rows. Returns the findings.
    pub(super) fn finish(self, rows: &mut Rows<'_>) -> Said {
        let process =
            self.name.map_or(String::new(), |name| rows.tables.strings.get(name).to_owned());
        if !self.events.is_empty() {
            rows.statement("process_name", &process, "0", &process);
        }
        let lanes = self.lanes(&process, rows);
        let (mut n_without_time, mut n_bad, mut n_beyond, mut first) = (0, 0, 0, 0);
        let (mut n_negative, mut n_huge) = (0, 0);
        for event in &self.events {
            let stats = &self.stats[first..event.end_of_stats];
            first = event.end_of_stats;
            let line = &self.lines[event.line as usize];
            let Some(offset_ps) = event.offset_ps else {
                n_without_time += 1;
                continue;
            };
            let Some(start_ns) = start_ns(line.timestamp_ns, offset_ps) else {
                n_bad += 1;
                continue;
            };
            if rows.is_full() {
                n_beyond += 1;
                break;
            }
            let fault = self.row(event, stats, (start_ns, lanes[event.line as usize]), rows);
            n_negative += u64::from(fault == Some(Code::NegativeDuration));
            n_huge += u64::from(fault == Some(Code::HugeDuration));
        }
        let said = [
            (Code::MissingTimestamp, n_without_time),
            (Code::BadTimestamp, n_bad),
            (Code::LimitReached, n_beyond),
            (Code::NegativeDuration, n_negative),
            (Code::HugeDuration, n_huge),
            (Code::InvalidUtf8, rows.take_altered()),
        ];
        said.into_iter().filter(|&(_, count)| count > 0).collect()
    }

    /// Returns the lane of each line; also records the names of lines.
    fn lanes(&self, process: &str, rows: &mut Rows<'_>) -> Vec<LaneId> {
        let lanes = self.lines.iter().map(|line| {
            let number = if line.display_id == 0 { line.id } else { line.display_id };
            let thread = number.cast_signed().to_string();
            if let Some(name) = line.display_name.or(line.name) {
                let name = rows.tables.strings.get(name).to_owned();
                rows.statement("thread_name", process, &thread, &name);
            }
            let (process, thread) =
                (rows.tables.strings.intern(process), rows.tables.strings.intern(&thread));
            rows.tables.lanes.intern(Place { process, thread, device: None, stream: None })
        });
        lanes.collect()
    }

    fn row(
        &self,
        event: &Event,
        stats: &[Stat],
        (start_ns, lane): (i64, LaneId),
        rows: &mut Rows<'_>,
    ) -> Option<Code> {
        let metadata = self.metadata.get(&event.metadata);
        let common = metadata.map_or(&[][..], |it| &it.stats);
        let mut name = metadata.and_then(|it| it.display_name.or(it.name));
        let mut correlation = None;
        let mut others = Vec::new();
        for stat in common.iter().chain(stats) {
            let Some(&key) = self.stat_names.get(&stat.id) else { continue };
            let value = match stat.value {
                StatValue::Plain(value) => value,
                StatValue::Reference(id) => match self.stat_names.get(&id) {
                    Some(&text) => ArgValue::Text(text),
                    None => continue,
                },
                StatValue::Other => continue,
            };
            match (rows.tables.strings.get(key), value) {
                ("correlation_id", ArgValue::Integer(number)) => correlation = Some(number),
                ("step_name", ArgValue::Text(text)) => name = Some(text),
                _ => others.push((key, value)),
            }
        }
        let duration_ns = rounded_ns(event.duration_ps.into()).map_or(i128::MAX, i128::from);
        let (duration_ns, fault) = kept_duration(start_ns, duration_ns);
        let id = rows.event(
            b'X',
            EventRow {
                kind: EventKind::Other,
                category: None,
                name,
                lane,
                start_ns,
                duration_ns,
                correlation,
                external_id: None,
                position: 0,
            },
        );
        for (key, value) in others {
            let key = rows.tables.strings.get(key).to_owned();
            rows.argument(id, None, &key, value);
        }
        fault
    }
}

/// Returns an entry of a map.
fn entry(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut key, mut value) = (0, &[][..]);
    fields(bytes, |field, wire| {
        match (field, wire) {
            (KEY, _) => key = wire.number()?,
            (VALUE, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
        Some(())
    })?;
    Some((key, value))
}

fn metadata(bytes: &[u8], rows: &mut Rows<'_>) -> Option<Metadata> {
    let mut found = Metadata::default();
    fields(bytes, |field, wire| {
        match (field, wire) {
            (NAME, Wire::Bytes(name)) => found.name = Some(rows.text(name)),
            (DISPLAY_NAME, Wire::Bytes(name)) => found.display_name = Some(rows.text(name)),
            (STATS_OF_METADATA, Wire::Bytes(bytes)) => found.stats.push(stat(bytes, rows)?),
            _ => {}
        }
        (found.stats.len() <= MAX_STATS).then_some(())
    })?;
    Some(found)
}

fn name(bytes: &[u8], rows: &mut Rows<'_>) -> Option<StringId> {
    let mut found = &[][..];
    fields(bytes, |field, wire| {
        if let (NAME, Wire::Bytes(name)) = (field, wire) {
            found = name;
        }
        Some(())
    })?;
    Some(rows.text(found))
}

fn stat(bytes: &[u8], rows: &mut Rows<'_>) -> Option<Stat> {
    let mut found = Stat { id: 0, value: StatValue::Other };
    fields(bytes, |field, wire| {
        match (field, wire) {
            (STAT_ID, _) => found.id = wire.number()?,
            (DOUBLE, Wire::Eight(bits)) => {
                found.value = StatValue::Plain(ArgValue::Float(f64::from_bits(bits)));
            }
            (INTEGER | UNSIGNED, _) => {
                found.value = StatValue::Plain(integer(field, wire.number()?, rows));
            }
            (TEXT, Wire::Bytes(text)) => {
                found.value = StatValue::Plain(ArgValue::Text(rows.text(text)));
            }
            (REFERENCE, _) => found.value = StatValue::Reference(wire.number()?),
            _ => {}
        }
        Some(())
    })?;
    Some(found)
}

/// Returns an integer as an argument. Integers above 63 bits are kept as text, as in JSON.
fn integer(field: Field, value: u64, rows: &mut Rows<'_>) -> ArgValue {
    if field == UNSIGNED && i64::try_from(value).is_err() {
        return ArgValue::Text(rows.tables.strings.intern(&value.to_string()));
    }
    ArgValue::Integer(value.cast_signed())
}

/// Returns the start of an event; `None` if it is out of range.
fn start_ns(line_ns: i64, offset_ps: i64) -> Option<i64> {
    rounded_ns(i128::from(line_ns) * 1000 + i128::from(offset_ps))
}

/// Converts picoseconds to nanoseconds, rounding half to even.
fn rounded_ns(time_ps: i128) -> Option<i64> {
    let (whole, rest) = (time_ps.div_euclid(1000), time_ps.rem_euclid(1000));
    let is_up = rest > 500 || (rest == 500 && whole % 2 != 0);
    let rounded = i64::try_from(whole + i128::from(is_up)).ok()?;
    (-MAX_TIME_NS..=MAX_TIME_NS).contains(&rounded).then_some(rounded)
}

// XSpace
pub(super) const PLANES: Field = 1;
pub(super) const HOST_NAMES: Field = 4;
// XPlane, XLine, XEventMetadata, XStatMetadata
pub(super) const ID: Field = 1;
pub(super) const NAME: Field = 2;
// XPlane
pub(super) const LINES: Field = 3;
pub(super) const EVENT_METADATA: Field = 4;
pub(super) const STAT_METADATA: Field = 5;
pub(super) const STATS_OF_PLANE: Field = 6;
// Entries of the two maps
pub(super) const KEY: Field = 1;
pub(super) const VALUE: Field = 2;
// XLine
pub(super) const TIMESTAMP_NS: Field = 3;
pub(super) const EVENTS: Field = 4;
pub(super) const DISPLAY_ID: Field = 10;
pub(super) const DISPLAY_NAME_OF_LINE: Field = 11;
// XEvent
pub(super) const METADATA_ID: Field = 1;
pub(super) const OFFSET_PS: Field = 2;
pub(super) const DURATION_PS: Field = 3;
pub(super) const STATS_OF_EVENT: Field = 4;
pub(super) const N_OCCURRENCES: Field = 5;
// XEventMetadata
pub(super) const DISPLAY_NAME: Field = 4;
pub(super) const STATS_OF_METADATA: Field = 5;
// XStat
pub(super) const STAT_ID: Field = 1;
pub(super) const DOUBLE: Field = 2;
pub(super) const UNSIGNED: Field = 3;
pub(super) const INTEGER: Field = 4;
pub(super) const TEXT: Field = 5;
pub(super) const REFERENCE: Field = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_round_half_to_even() {
        let cases = [(1_499, 1), (1_500, 2), (2_500, 2), (2_501, 3), (-1_500, -2), (-501, -1)];
        for (ps, ns) in cases {
            assert_eq!(rounded_ns(ps), Some(ns), "{ps}");
        }
        assert_eq!(start_ns(i64::MAX, 0), None);
    }
}
