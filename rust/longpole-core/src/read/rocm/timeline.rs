//! Assigns kinds, times and lanes to the events of `rocprof`'s `results.json` (versions 1 and 2).
//!
//! The file has the Chrome trace-event format, without categories. The names of processes, which
//! may have a numeric prefix, identify the events:
//!
//! | process | events become |
//! |---|---|
//! | `CPU HIP API` | runtime API calls |
//! | `CPU HSA API` | driver API calls |
//! | `Markers and Ranges` | annotations |
//! | `COPY` | memcpys and memsets |
//! | `GPU0` | kernels; barrier packets do not count as GPU activities |
//!
//! `ts` and `dur` are whole microseconds; `BeginNs` and `EndNs` contain the exact times. A HIP call
//! and the activity that it launched have the same `Index` in some versions. In others, an arrow
//! with category `DataFlow` leads from inside the call to the start of the activity.
//!
//! Limits: if a number occurs twice, or an activity would begin before its call, the numbers are
//! not those of launches, and only arrows link activities.

use std::collections::{BTreeMap, HashMap};

use super::activities::name_of_copy;
use crate::ids::{EventId, StringId};
use crate::read::profile;
use crate::read::profile::{Column, Profile, statements};
use crate::strings::Strings;
use crate::tables::{ArgTables, ArgValue, EventTable, FlowTable, LaneTable, MetadataTable, Place};
use crate::vocabulary::EventKind;

/// The content of a process of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Hip,
    Hsa,
    Markers,
    Copies,
    Device(i64),
}

impl Section {
    fn of_name(name: &str) -> Option<Self> {
        let digits = name.trim_start_matches(|letter: char| letter.is_ascii_digit());
        match digits.strip_prefix(' ').unwrap_or(name) {
            "CPU HIP API" => Some(Self::Hip),
            "CPU HSA API" => Some(Self::Hsa),
            "Markers and Ranges" => Some(Self::Markers),
            "COPY" => Some(Self::Copies),
            name => Some(Self::Device(name.strip_prefix("GPU")?.parse().ok()?)),
        }
    }

    /// Whether only rocprof writes such a process.
    fn is_telling(self) -> bool {
        matches!(self, Self::Hip | Self::Hsa)
    }

    fn kind(self, name: &str) -> EventKind {
        match self {
            Self::Hip => EventKind::Runtime,
            Self::Hsa => EventKind::Driver,
            Self::Markers => EventKind::Annotation,
            Self::Copies if name.contains("Fill") => EventKind::Fill,
            Self::Copies => EventKind::Copy,
            Self::Device(_) if name == "<barrier packet>" => EventKind::DeviceTask,
            Self::Device(_) => EventKind::Kernel,
        }
    }
}

type Sections = HashMap<StringId, Section>;

/// Interprets the events of such a file. Returns false for other traces, which stay unchanged.
pub(in crate::read) fn interpret(mut profile: Profile<'_>, flows: &FlowTable) -> bool {
    let sections = sections(profile.metadata, profile.strings);
    if !sections.values().any(|section| section.is_telling()) {
        return false;
    }
    let profile = &mut profile;
    let events: Vec<_> = profile
        .events
        .ids()
        .filter(|&event| profile.events.category(event).is_none())
        .filter_map(|event| {
            let process = profile.lanes.place(profile.events.lane(event)).process;
            Some((event, *sections.get(&process)?))
        })
        .collect();
    // The ends of arrows are at the times as written.
    let arrows = arrows(&events, profile, flows);
    assign_times(&events, profile);
    assign_correlations(&events, arrows, profile);
    profile.events.reopen_lanes();
    profile.events.reopen_names();
    let numbers = Numbers::of(profile.args);
    for &(event, section) in &events {
        let name = profile.events.name(event).map_or("", |name| profile.strings.get(name));
        let kind = section.kind(name);
        let copy = (kind == EventKind::Copy).then(|| kineto_name(name)).flatten();
        profile.events.assign_kind(event, kind);
        if let Some(name) = copy {
            let name = profile.strings.intern(&name);
            profile.events.assign_name(event, name);
        }
        let own = profile.lanes.place(profile.events.lane(event));
        let place = numbers.place(event, section, own, profile.strings);
        let lane = profile.lanes.intern(place);
        profile.events.assign_lane(event, lane);
    }
    profile.events.finish();
    true
}

fn sections(metadata: &MetadataTable, strings: &Strings) -> Sections {
    statements(metadata, strings, "process_name")
        .filter_map(|it| Some((it.process, Section::of_name(it.value)?)))
        .collect()
}

/// Returns Kineto's name for `CopyHostToDevice`; `None` for other names, such as `async-copy3`.
fn kineto_name(name: &str) -> Option<String> {
    let (from, to) = name.strip_prefix("Copy")?.split_once("To")?;
    Some(name_of_copy(&format!("{from}_TO_{to}")))
}

/// Replaces whole microseconds by the exact times, on the time axis of the file: the origin of `ts`
/// may differ from that of `BeginNs`.
fn assign_times(events: &[(EventId, Section)], profile: &mut Profile<'_>) {
    let [begins, ends] = ["BeginNs", "EndNs"].map(|key| profile::Column::of(key, profile.args));
    let (Some(begins), Some(ends)) = (begins, ends) else { return };
    let mut shift_ns = None;
    for &(event, _) in events {
        let span = [&begins, &ends].map(|column| column.integer(event, profile.strings));
        let [Some(begin_ns), Some(end_ns)] = span else { continue };
        let written_ns = profile.events.start_ns(event);
        let shift_ns = *shift_ns.get_or_insert_with(|| {
            (begin_ns.saturating_sub(written_ns)).div_euclid(1000).saturating_mul(1000)
        });
        let start_ns = begin_ns.saturating_sub(shift_ns);
        let is_same = (start_ns.saturating_sub(written_ns)).saturating_abs() <= MOST_ROUNDED_NS;
        if is_same && end_ns >= begin_ns {
            profile.events.assign_span(event, start_ns, end_ns.saturating_sub(shift_ns));
        }
    }
}

/// Maximum difference between `ts` and the exact start from rounding, including that of the origin
/// of `ts`.
const MOST_ROUNDED_NS: i64 = 2_000;

/// Assigns correlation ids to HIP calls and activities with the same `Index`, or otherwise to those
/// connected by arrows.
fn assign_correlations(
    events: &[(EventId, Section)],
    arrows: Vec<(EventId, i64)>,
    profile: &mut Profile<'_>,
) {
    let pairs =
        pairs(events, profile.args, profile.strings, |event| profile.events.start_ns(event));
    for (event, index) in pairs.filter(|pairs| !pairs.is_empty()).unwrap_or(arrows) {
        profile.events.assign_correlation(event, index);
    }
}

/// The category of arrows from calls to the activities that they launched.
const DATA_FLOW: &str = "DataFlow";

/// Returns the calls and activities connected by arrows, each with a common number.
fn arrows(
    events: &[(EventId, Section)],
    profile: &Profile<'_>,
    flows: &FlowTable,
) -> Vec<(EventId, i64)> {
    let Some(category) = profile.strings.lookup(DATA_FLOW) else { return Vec::new() };
    let tracks = Tracks::of(events, profile.events, profile.lanes);
    let mut calls = HashMap::new();
    let mut ends = Vec::new();
    for row in 0..flows.len() {
        let source = flows.source(row);
        let Some(ArgValue::Integer(id)) = flows.id.get(row) else { continue };
        if source.category != Some(category) {
            continue;
        }
        let track = (source.process, source.thread);
        if flows.phase[row] == b's' {
            calls.extend(tracks.around(track, flows.time_ns(row)).map(|call| (id, call)));
        } else {
            ends.extend(tracks.from(track, flows.time_ns(row)).map(|activity| (id, activity)));
        }
    }
    let mut found = Vec::new();
    for (id, activity) in ends {
        let Some(&call) = calls.get(&id) else { continue };
        if profile.events.start_ns(activity) >= profile.events.start_ns(call) {
            let number = i64::try_from(call.row() + 1).unwrap_or(i64::MAX);
            found.extend([(call, number), (activity, number)]);
        }
    }
    found
}

/// The events of each track, by start.
struct Tracks<'a> {
    events: &'a EventTable,
    of_track: BTreeMap<(StringId, StringId), Vec<(i64, EventId)>>,
}

impl<'a> Tracks<'a> {
    fn of(rows: &[(EventId, Section)], events: &'a EventTable, lanes: &LaneTable) -> Self {
        let mut of_track: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for &(event, section) in rows {
            if !matches!(section, Section::Hsa | Section::Markers) {
                let place = lanes.place(events.lane(event));
                let start = (events.start_ns(event), event);
                of_track.entry((place.process, place.thread)).or_default().push(start);
            }
        }
        for rows in of_track.values_mut() {
            rows.sort_unstable();
        }
        Self { events, of_track }
    }

    /// Returns the last event to start by a time, if the time is inside it.
    fn around(&self, track: (StringId, StringId), at_ns: i64) -> Option<EventId> {
        let rows = self.of_track.get(&track)?;
        let n_before = rows.partition_point(|&(start_ns, _)| start_ns <= at_ns);
        let (_, event) = *rows.get(n_before.checked_sub(1)?)?;
        let (_, end_ns) = self.events.span(event)?;
        (at_ns <= end_ns).then_some(event)
    }

    /// Returns the first event to start at a time, or within the microsecond of rounding.
    fn from(&self, track: (StringId, StringId), at_ns: i64) -> Option<EventId> {
        let rows = self.of_track.get(&track)?;
        let first = rows.partition_point(|&(start_ns, _)| start_ns < at_ns - MOST_ROUNDED_NS / 2);
        let within = rows[first..].iter().take_while(|row| row.0 <= at_ns + MOST_ROUNDED_NS / 2);
        within.min_by_key(|row| (row.0 - at_ns).abs()).map(|&(_, event)| event)
    }
}

/// Returns the calls and activities with their numbers; `None` if these are not launch numbers.
fn pairs(
    events: &[(EventId, Section)],
    args: &ArgTables,
    strings: &Strings,
    start_ns: impl Fn(EventId) -> i64,
) -> Option<Vec<(EventId, i64)>> {
    let (index, device) =
        (profile::Column::of("Index", args)?, profile::Column::of("dev-id", args)?);
    let (mut calls, mut activities) = (HashMap::new(), Vec::new());
    for &(event, section) in events {
        let Some(number) = index.integer(event, strings).filter(|&it| it >= 0) else { continue };
        match section {
            Section::Hip if calls.insert(number, event).is_some() => return None,
            Section::Hip | Section::Hsa | Section::Markers => {}
            // Other events number HSA dispatches and copies.
            Section::Copies | Section::Device(_) if device.integer(event, strings).is_none() => {}
            Section::Copies | Section::Device(_) => activities.push((event, number)),
        }
    }
    let mut found = Vec::new();
    for (activity, number) in activities {
        let Some(&call) = calls.get(&number) else { continue };
        if start_ns(activity) < start_ns(call) {
            return None;
        }
        found.extend([(call, number), (activity, number)]);
    }
    Some(found)
}

/// The arguments with the places of events.
struct Numbers<'a> {
    process: Option<Column<'a>>,
    device: Option<Column<'a>>,
    stream: Option<Column<'a>>,
}

impl<'a> Numbers<'a> {
    fn of(args: &'a ArgTables) -> Self {
        let column = |key| profile::Column::of(key, args);
        Self { process: column("pid"), device: column("dev-id"), stream: column("stream-id") }
    }

    /// Returns the thread of the program, or the stream of the device.
    fn place(&self, event: EventId, section: Section, own: Place, strings: &mut Strings) -> Place {
        let number =
            |column: &Option<Column<'_>>, strings| column.as_ref()?.integer(event, strings);
        let device = match section {
            Section::Hip | Section::Hsa | Section::Markers => {
                // Some versions repeat the number of the section there.
                let program = number(&self.process, strings).map(|it| it.to_string());
                let program = program.filter(|it| it != strings.get(own.process));
                let process = strings.intern(program.as_deref().unwrap_or(""));
                return Place { process, device: None, stream: None, ..own };
            }
            Section::Copies => number(&self.device, strings),
            Section::Device(device) => Some(device),
        };
        let of_track = strings.get(own.thread).parse().ok();
        Place { device, stream: number(&self.stream, strings).or(of_track), ..own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_name_with_or_without_a_number() {
        assert_eq!(Section::of_name("0 CPU HIP API"), Some(Section::Hip));
        assert_eq!(Section::of_name("CPU HSA API"), Some(Section::Hsa));
        assert_eq!(Section::of_name("12 GPU3"), Some(Section::Device(3)));
        assert_eq!(Section::of_name("GPU"), None);
        assert_eq!(Section::of_name("python"), None);
    }

    #[test]
    fn a_copy_has_the_name_that_kineto_gives_it() {
        assert_eq!(kineto_name("CopyHostToDevice").as_deref(), Some("Memcpy HtoD"));
        assert_eq!(kineto_name("async-copy3"), None);
    }
}
