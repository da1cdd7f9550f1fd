//! Tracks, with the process, thread, device and stream of each.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::fields::{
    COUNTER, DESCRIPTION, IS_INCREMENTAL, NAME_OF_TRACK, PARENT, PID, PROCESS, PROCESS_NAME,
    STATIC_NAME, THREAD, THREAD_NAME, TID, UNIT_MULTIPLIER, UUID,
};
use crate::ids::StringId;
use crate::read::protobuf::{Wire, fields};
use crate::read::rows::Rows;
use crate::vocabulary::track_numbers;

/// Maximum depth of nested tracks.
const MAX_DEPTH: usize = 64;

/// The tracks of a trace, in order of first use.
#[derive(Default)]
pub(super) struct Tracks {
    all: Vec<Track>,
    row_of: HashMap<u64, usize>,
}

/// A track, as last described.
#[derive(Debug, Clone, Default)]
pub(super) struct Track {
    uuid: u64,
    parent: Option<u64>,
    pub(super) name: Option<StringId>,
    process: Option<i64>,
    process_name: Option<StringId>,
    thread: Option<i64>,
    thread_name: Option<StringId>,
    /// The place from longpole's own description.
    own: Option<Standing>,
    /// The series of samples from longpole's own description.
    pub(super) series: Option<StringId>,
    /// The factor for samples of a counter, and whether samples are increments.
    pub(super) unit: i64,
    pub(super) is_incremental: bool,
    /// The sum of the samples so far.
    pub(super) value: f64,
}

/// The process, thread, device and stream of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) process: StringId,
    pub(super) thread: StringId,
    pub(super) device: Option<i64>,
    pub(super) stream: Option<i64>,
    /// Whether longpole described the track this way, for events of any kind.
    pub(super) is_own: bool,
}

impl Tracks {
    /// Returns the row of a track, which may not be described yet.
    pub(super) fn row(&mut self, uuid: u64) -> usize {
        *self.row_of.entry(uuid).or_insert_with(|| {
            self.all.push(Track { uuid, unit: 1, ..Track::default() });
            self.all.len() - 1
        })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get_mut(&mut self, row: usize) -> &mut Track {
        &mut self.all[row]
    }

    /// Reads a description; `None` if it is not a valid message.
    pub(super) fn describe(&mut self, bytes: &[u8], rows: &mut Rows<'_>) -> Option<()> {
        let mut found = Track { unit: 1, ..Track::default() };
        fields(bytes, |field, wire| {
            match (field, wire) {
                (UUID, _) => found.uuid = wire.number()?,
                (PARENT, _) => found.parent = wire.number(),
                (NAME_OF_TRACK | STATIC_NAME, Wire::Bytes(name)) => {
                    found.name = Some(rows.text(name));
                }
                (DESCRIPTION, Wire::Bytes(bytes)) => described(bytes, &mut found, rows),
                (PROCESS, Wire::Bytes(bytes)) => process(bytes, &mut found, rows)?,
                (THREAD, Wire::Bytes(bytes)) => thread(bytes, &mut found, rows)?,
                (COUNTER, Wire::Bytes(bytes)) => counter(bytes, &mut found)?,
                _ => {}
            }
            Some(())
        })?;
        self.replace(found);
        Some(())
    }

    /// Sets the process and thread of all events of a sequence.
    pub(super) fn describe_sequence(
        &mut self,
        uuid: u64,
        (of_process, of_thread): (Option<&[u8]>, Option<&[u8]>),
        rows: &mut Rows<'_>,
    ) -> Option<()> {
        let row = self.row(uuid);
        let mut found = self.all[row].clone();
        of_process.map_or(Some(()), |bytes| process(bytes, &mut found, rows))?;
        of_thread.map_or(Some(()), |bytes| thread(bytes, &mut found, rows))?;
        self.replace(found);
        Some(())
    }

    /// Replaces a description; the last one counts.
    fn replace(&mut self, found: Track) {
        let row = self.row(found.uuid);
        self.all[row] = found;
    }

    /// Returns the place of every track; also records the names of processes and threads.
    pub(super) fn standing(&self, rows: &mut Rows<'_>) -> Vec<Standing> {
        let mut stated = HashSet::new();
        // In longpole's own files, the names of processes and threads are recorded as in the
        // original trace.
        let is_ours = self.all.iter().any(|track| track.own.is_some());
        let standings = (0..self.all.len()).map(|row| {
            let own = self.all[row].own;
            let standing = own.unwrap_or_else(|| self.standing_of(row, rows));
            if !is_ours {
                self.state(row, standing, rows, &mut stated);
            }
            standing
        });
        standings.collect()
    }

    fn standing_of(&self, row: usize, rows: &mut Rows<'_>) -> Standing {
        let track = &self.all[row];
        let process = self.around(track).find_map(|track| track.process);
        let process = process.map_or(String::new(), |number| number.to_string());
        let thread = match (track.thread, track.name, track.process) {
            (Some(number), ..) => number.to_string(),
            (None, Some(name), None) => rows.tables.strings.get(name).to_owned(),
            (None, None, None) => format!("track {}", track.uuid),
            (None, _, Some(_)) => String::new(),
        };
        let own = track.name.or(track.thread_name);
        let (device, stream) =
            own.map_or((None, None), |name| track_numbers(rows.tables.strings.get(name)));
        let around = self.around(track).skip(1).find_map(|track| track.name.or(track.process_name));
        let of_around = around.and_then(|name| track_numbers(rows.tables.strings.get(name)).0);
        let (process, thread) =
            (rows.tables.strings.intern(&process), rows.tables.strings.intern(&thread));
        Standing { process, thread, device: device.or(of_around), stream, is_own: false }
    }

    /// Returns a track and the tracks that contain it.
    fn around<'a>(&'a self, track: &'a Track) -> impl Iterator<Item = &'a Track> {
        let outer = |track: &&'a Track| Some(&self.all[*self.row_of.get(&track.parent?)?]);
        std::iter::successors(Some(track), outer).take(MAX_DEPTH)
    }

    fn state(
        &self,
        row: usize,
        standing: Standing,
        rows: &mut Rows<'_>,
        stated: &mut HashSet<(StringId, StringId, &'static str)>,
    ) {
        let track = &self.all[row];
        let text = |id: StringId, rows: &Rows<'_>| rows.tables.strings.get(id).to_owned();
        let process = track.process.and(track.process_name.or(track.name));
        let thread = if track.thread.is_some() { track.thread_name } else { track.name };
        let thread = thread.filter(|_| track.process.is_none() || track.thread.is_some());
        for (what, value) in [("process_name", process), ("thread_name", thread)] {
            let of_thread = if what == "process_name" { None } else { Some(standing.thread) };
            let key = (standing.process, of_thread.unwrap_or(standing.process), what);
            let Some(value) = value.filter(|_| stated.insert(key)) else { continue };
            let (process, value) = (text(standing.process, rows), text(value, rows));
            let thread = of_thread.map_or_else(|| "0".to_owned(), |thread| text(thread, rows));
            rows.statement(what, &process, &thread, &value);
        }
    }
}

/// Reads a description that longpole wrote; others are for display.
fn described(bytes: &[u8], track: &mut Track, rows: &mut Rows<'_>) {
    let Ok(Value::Object(own)) = serde_json::from_slice(bytes) else { return };
    let text = |name: &str, rows: &mut Rows<'_>| {
        own.get(name).and_then(Value::as_str).map(|text| rows.tables.strings.intern(text))
    };
    let number = |name: &str| own.get(name).and_then(Value::as_i64);
    let (process, thread) = (text("process", rows), text("thread", rows));
    track.own = process.zip(thread).map(|(process, thread)| Standing {
        process,
        thread,
        device: number("device"),
        stream: number("stream"),
        is_own: true,
    });
    track.series = text("series", rows);
}

fn process(bytes: &[u8], track: &mut Track, rows: &mut Rows<'_>) -> Option<()> {
    fields(bytes, |field, wire| {
        match (field, wire) {
            (PID, _) => track.process = wire.number().map(u64::cast_signed),
            (PROCESS_NAME, Wire::Bytes(name)) => track.process_name = Some(rows.text(name)),
            _ => {}
        }
        Some(())
    })
}

fn thread(bytes: &[u8], track: &mut Track, rows: &mut Rows<'_>) -> Option<()> {
    fields(bytes, |field, wire| {
        match (field, wire) {
            (PID, _) => track.process = wire.number().map(u64::cast_signed),
            (TID, _) => track.thread = wire.number().map(u64::cast_signed),
            (THREAD_NAME, Wire::Bytes(name)) => track.thread_name = Some(rows.text(name)),
            _ => {}
        }
        Some(())
    })
}

fn counter(bytes: &[u8], track: &mut Track) -> Option<()> {
    fields(bytes, |field, wire| {
        match field {
            UNIT_MULTIPLIER => track.unit = wire.number()?.cast_signed(),
            IS_INCREMENTAL => track.is_incremental = wire.number()? != 0,
            _ => {}
        }
        Some(())
    })
}
