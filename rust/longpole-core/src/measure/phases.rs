//! How long the host and each device spent in each phase of a training step.
//!
//! Marks are annotations, operators and Python functions whose names mean a phase. Time of a thread
//! belongs to its innermost mark. Time outside marks is attributed by evidence that PyTorch records
//! without them: a thread waits for the backward pass that it handed to autograd threads, and the
//! operators that the backward pass differentiates are the forward pass.
//!
//! Limits: operators inside a backward pass that run the forward pass again (activation
//! checkpointing) count as backward.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::context_times::anchors;
use super::self_time::for_each_owned;
use crate::columns::columns;
use crate::error::Result;
use crate::graph::{limits, matching};
use crate::ids::{EventId, LaneId};
use crate::intervals::Spans;
use crate::link::{AutogradPair, BackwardLink, Belonging, Launches, autograd_pairs, main_threads};
use crate::names::Names;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables, WorkClass};
use crate::time::in_range;
use crate::vocabulary::{Phase, annotated_phase, frame_phase, operator_phase};

columns! {
    /// The time of a main thread in a phase within a window.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct HostPhase {
        /// The thread.
        pub lane: LaneId,
        /// The phase.
        pub phase: Phase,
        /// The time. That of all phases adds up to the window.
        pub duration_ns: i64,
    }
}

columns! {
    /// The time of a device with activities of a phase that [belong](Belonging) to a window.
    ///
    /// An instant with several activities counts once: as compute, else communication, else copy,
    /// and among these for the phase of the activity that started first. So the times of all phases
    /// add up to the busy time of the device.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DevicePhase {
        /// The device; `None` if the trace has no device numbers.
        pub device: Option<i64>,
        /// The phase in which the activities were launched; `None` if their launch is not known.
        pub phase: Option<Phase>,
        /// Number of activities.
        pub count: i64,
        /// Time with a compute kernel.
        pub compute_ns: i64,
        /// Time with a communication kernel and no compute kernel.
        pub communication_ns: i64,
        /// Time with a memcpy or memset and no kernel.
        pub copy_ns: i64,
    }
}

const N_PHASES: usize = Phase::ALL.len();

/// Returns the time of each main thread that launches in each phase, within the first time range,
/// in which the host work of a window begins, and that of each device with the activities that
/// belong to the window, the second time range.
///
/// # Errors
///
/// Returns an error if `data_load` is not a valid regular expression.
pub fn phase_times(
    tables: &Tables,
    (launches, nesting, links): (&Launches, &Nesting, &[BackwardLink]),
    data_load: &str,
    (host, window): ((i64, i64), (i64, i64)),
) -> Result<(Vec<HostPhase>, Vec<DevicePhase>)> {
    let belonging = Belonging::of(tables, launches, window, host);
    let anchors = anchors(launches, tables, nesting);
    let is_main = main_threads(tables);
    let marks = marks(tables, nesting, data_load)?;
    let threads = threads(tables, (nesting, links), &marks, &autograd_pairs(tables, &is_main));
    let hosts = launching(tables, &is_main, &anchors)
        .into_iter()
        .flat_map(|lane| host_phases(lane, &threads[lane.row()], in_range(host)))
        .collect();
    let phase_of = |work: EventId| {
        let anchor = EventId::from_column(anchors[work.row()])?;
        let thread = &threads[tables.events.lane(anchor).row()];
        Some(thread.phase_at(tables.events.start_ns(anchor)))
    };
    Ok((hosts, device_phases(tables, &belonging, phase_of)))
}

/// Returns the phase that each event marks, if any.
fn marks(tables: &Tables, nesting: &Nesting, data_load: &str) -> Result<Vec<Option<Phase>>> {
    let (events, strings) = (&tables.events, &tables.strings);
    let loads = matching(data_load, tables)?;
    let mut known = vec![[None; 3]; strings.len()];
    let mut mark = |event| {
        let (column, meaning): (usize, fn(&str) -> Option<Phase>) = match events.kind(event) {
            EventKind::Annotation => (0, annotated_phase),
            EventKind::Operator => (1, operator_phase),
            EventKind::Python => (2, frame_phase),
            _ => return None,
        };
        let name = events.name(event)?;
        let phase = known[name.row()][column].get_or_insert_with(|| meaning(strings.get(name)));
        let may_load = events.kind(event) != EventKind::Operator && loads[name.row()];
        phase.or(may_load.then_some(Phase::DataLoading))
    };
    let mut marks = vec![None; events.len()];
    let mut is_backward = vec![false; events.len()];
    for event in nesting.outside_in() {
        let inside = nesting.parent(event).is_some_and(|parent| is_backward[parent.row()]);
        let marked = mark(event).filter(|&phase| !(inside && phase == Phase::Forward));
        marks[event.row()] = marked;
        is_backward[event.row()] = marked.map_or(inside, |phase| phase == Phase::Backward);
    }
    Ok(marks)
}

/// Returns the main threads of the processes that launch activities, or all if none launches any.
fn launching(tables: &Tables, is_main: &[bool], anchors: &[u32]) -> Vec<LaneId> {
    let process = |lane| tables.lanes.place(lane).process;
    let launch: HashSet<_> = anchors
        .iter()
        .filter_map(|&anchor| EventId::from_column(anchor))
        .map(|anchor| process(tables.events.lane(anchor)))
        .collect();
    let all = tables.lanes.ids().filter(|lane| is_main[lane.row()]);
    all.filter(|&lane| launch.is_empty() || launch.contains(&process(lane))).collect()
}

/// The time of a thread in each phase, and the evidence for the rest.
#[derive(Default)]
struct Thread {
    phases: [Spans; N_PHASES],
    /// Time in operators and calls outside marks.
    busy: Spans,
    /// Start times of operators and calls, sorted.
    starts: Vec<i64>,
    /// Operators of the forward pass, or those that may be.
    forward: Vec<(i64, i64)>,
    /// Phase of the time outside marks.
    otherwise: Option<Phase>,
}

impl Thread {
    fn phase_at(&self, time_ns: i64) -> Phase {
        let is_in = |spans: &Spans| spans.length_within_ns(time_ns, time_ns + 1) > 0;
        let found = Phase::ALL.iter().zip(&self.phases).find(|(_, spans)| is_in(spans));
        found.map_or(self.otherwise.unwrap_or(Phase::Other), |(&phase, _)| phase)
    }

    /// Adds time to a phase, where no other phase has it.
    fn add(&mut self, phase: Phase, spans: Vec<(i64, i64)>) {
        let left = self.phases.iter().fold(Spans::union_of(spans), |left, had| left.minus(had));
        let had = &mut self.phases[phase as usize];
        *had = had.union(&left);
    }
}

fn threads(
    tables: &Tables,
    (nesting, links): (&Nesting, &[BackwardLink]),
    marks: &[Option<Phase>],
    pairs: &[AutogradPair],
) -> Vec<Thread> {
    let mut threads = marked_threads(tables, nesting, marks);
    note_operators(tables, nesting, &mut threads);
    note_forward(tables, links, &mut threads);
    let waits = pairs.iter().map(|pair| {
        let [forward, backward] = [pair.forward, pair.backward].map(|lane| &threads[lane.row()]);
        (pair.forward, waits(forward, &backward.phases[Phase::Backward as usize]))
    });
    for (lane, waits) in waits.collect::<Vec<_>>() {
        threads[lane.row()].add(Phase::Backward, waits);
    }
    for thread in &mut threads {
        let runs = forward_runs(thread, links.is_empty());
        thread.add(Phase::Forward, runs);
    }
    for pair in pairs {
        threads[pair.backward.row()].otherwise = Some(Phase::Backward);
    }
    threads
}

/// Returns each thread with the time inside marks, which belongs to the mark that started last.
fn marked_threads(tables: &Tables, nesting: &Nesting, marks: &[Option<Phase>]) -> Vec<Thread> {
    let events = &tables.events;
    let mut spans = vec![<[Vec<(i64, i64)>; N_PHASES]>::default(); tables.lanes.len()];
    let marking = nesting.outside_in().filter(|event| marks[event.row()].is_some());
    for_each_owned(events, marking, |event, start, end| {
        if let Some(phase) = marks[event.row()] {
            spans[events.lane(event).row()][phase as usize].push((start, end));
        }
    });
    let thread = |spans: [Vec<(i64, i64)>; N_PHASES]| Thread {
        phases: spans.map(Spans::union_of),
        ..Thread::default()
    };
    spans.into_iter().map(thread).collect()
}

/// Notes when operators and calls run outside marks, and when any starts.
fn note_operators(tables: &Tables, nesting: &Nesting, threads: &mut [Thread]) {
    let events = &tables.events;
    let mut spans = vec![Vec::new(); threads.len()];
    for event in nesting.outside_in() {
        if events.kind(event) == EventKind::Operator || events.kind(event).is_call() {
            let lane = events.lane(event).row();
            threads[lane].starts.push(events.start_ns(event));
            spans[lane].extend(events.span(event));
        }
    }
    for (thread, spans) in threads.iter_mut().zip(spans) {
        let all = Spans::union_of(spans);
        thread.busy = thread.phases.iter().fold(all, |left, had| left.minus(had));
    }
}

/// Notes the operators of the forward pass: those that the backward pass differentiates. Without
/// such links, it can be any operator outside marks.
fn note_forward(tables: &Tables, links: &[BackwardLink], threads: &mut [Thread]) {
    let events = &tables.events;
    let linked: BTreeSet<_> = links.iter().map(|link| link.forward).collect();
    let may_be: Box<dyn Iterator<Item = EventId>> = if links.is_empty() {
        Box::new(events.ids().filter(|&event| events.kind(event) == EventKind::Operator))
    } else {
        Box::new(linked.into_iter())
    };
    for event in may_be {
        let thread = &mut threads[events.lane(event).row()];
        let phase = thread.phase_at(events.start_ns(event));
        if matches!(phase, Phase::Other | Phase::Forward) {
            thread.forward.extend(events.span(event));
        }
    }
}

/// Returns the time in which a thread waits for the backward passes of another one, and runs
/// nothing itself. The backward operators between two starts on the waiting thread are one pass.
fn waits(thread: &Thread, backward: &Spans) -> Vec<(i64, i64)> {
    let mut passes: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for &(start, end) in backward.as_slice() {
        let before = thread.starts.partition_point(|&other| other <= start);
        let pass = passes.entry(before).or_insert((start, end));
        pass.1 = pass.1.max(end);
    }
    let ran = thread.phases.iter().fold(thread.busy.clone(), |all, spans| all.union(spans));
    let wait = |(before, (start, end)): (usize, (i64, i64))| {
        let next = thread.starts.get(before).copied().unwrap_or(i64::MAX);
        (handed_over(&ran, start), end.min(next))
    };
    Spans::union_of(passes.into_iter().map(wait)).minus(&thread.busy).as_slice().to_vec()
}

/// Returns when a thread handed a backward pass over that began at `start`: at the end of what it
/// ran last, if that is near.
fn handed_over(ran: &Spans, start: i64) -> i64 {
    let ended = ran.as_slice().partition_point(|span| span.1 <= start);
    let runs = ran.as_slice().get(ended).is_some_and(|span| span.0 <= start);
    let last = ran.as_slice()[..ended].last().map(|span| span.1);
    let near = |last: &i64| !runs && start.saturating_sub(*last) <= limits::THREAD_START_NS;
    last.filter(near).unwrap_or(start)
}

/// Consecutive operators: start, end and number.
type Operators = (i64, i64, usize);

/// Returns the runs of forward operators with no mark of another phase between them.
fn forward_runs(thread: &Thread, only_before_backward: bool) -> Vec<(i64, i64)> {
    let others = Phase::ALL.iter().zip(&thread.phases);
    let mut marks: Vec<_> = others
        .filter(|(phase, _)| **phase != Phase::Forward)
        .flat_map(|(&phase, spans)| spans.as_slice().iter().map(move |&(start, _)| (start, phase)))
        .collect();
    marks.sort_unstable();
    let mut runs: BTreeMap<usize, Operators> = BTreeMap::new();
    for &(start, end) in &thread.forward {
        let next = marks.partition_point(|&(mark, _)| mark <= start);
        let run = runs.entry(next).or_insert((start, end, 0));
        *run = (run.0.min(start), run.1.max(end), run.2 + 1);
    }
    let runs = if only_before_backward { before_backward(runs, &marks) } else { runs };
    runs.into_values().map(|(start, end, _)| (start, end)).collect()
}

/// Returns, of the runs before each backward pass, the one with most operators. Gradients may be
/// reset between the two.
fn before_backward(
    runs: BTreeMap<usize, Operators>,
    marks: &[(i64, Phase)],
) -> BTreeMap<usize, Operators> {
    let mut most: BTreeMap<usize, Operators> = BTreeMap::new();
    for (next, run) in runs {
        let resets = marks[next..].iter().take_while(|mark| mark.1 == Phase::ZeroGrad).count();
        if marks.get(next + resets).is_some_and(|mark| mark.1 == Phase::Backward) {
            let kept = most.entry(next + resets).or_insert(run);
            *kept = if run.2 > kept.2 { run } else { *kept };
        }
    }
    most
}

fn host_phases(
    lane: LaneId,
    thread: &Thread,
    (start, end): (i64, i64),
) -> impl Iterator<Item = HostPhase> {
    let known: Vec<_> =
        thread.phases.iter().map(|spans| spans.length_within_ns(start, end)).collect();
    let other_ns = end - start - known.iter().sum::<i64>();
    Phase::ALL.iter().zip(known).map(move |(&phase, known_ns)| {
        let duration_ns = if phase == Phase::Other { other_ns } else { known_ns };
        HostPhase { lane, phase, duration_ns }
    })
}

/// The activities of a device by class: start, end and phase, where the last phase is none.
type Work = [Vec<(i64, i64, usize)>; WorkClass::ALL.len()];

fn device_phases(
    tables: &Tables,
    belonging: &Belonging<'_>,
    phase_of: impl Fn(EventId) -> Option<Phase>,
) -> Vec<DevicePhase> {
    let events = &tables.events;
    let class_of = tables.work_classes();
    let mut devices: BTreeMap<Option<i64>, Work> = BTreeMap::new();
    for event in events.ids() {
        if let (Some(class), Some((start, end))) = (class_of(event), belonging.span(event)) {
            let device = tables.lanes.place(events.lane(event)).device;
            let phase = phase_of(event).map_or(N_PHASES, |phase| phase as usize);
            devices.entry(device).or_default()[class as usize].push((start, end, phase));
        }
    }
    devices.into_iter().flat_map(|(device, work)| by_phase(device, work)).collect()
}

fn by_phase(device: Option<i64>, work: Work) -> Vec<DevicePhase> {
    let phases = Phase::ALL.iter().copied().map(Some).chain([None]);
    let mut rows: Vec<_> = phases
        .map(|phase| DevicePhase {
            device,
            phase,
            count: 0,
            compute_ns: 0,
            communication_ns: 0,
            copy_ns: 0,
        })
        .collect();
    let mut covered = Spans::default();
    for (mut spans, class) in work.into_iter().zip(WorkClass::ALL) {
        spans.sort_unstable();
        let mut of_phase: [Vec<(i64, i64)>; N_PHASES + 1] = Default::default();
        let mut now = i64::MIN;
        for (start, end, phase) in spans {
            of_phase[phase].push((start.max(now), end));
            now = now.max(end);
            rows[phase].count += 1;
        }
        let of_phase = of_phase.map(Spans::union_of);
        for (row, spans) in rows.iter_mut().zip(&of_phase) {
            *row.time_of(*class) = spans.minus(&covered).length_ns();
        }
        covered = of_phase.iter().fold(covered, |all, spans| all.union(spans));
    }
    rows.retain(|row| row.count > 0);
    rows
}

impl DevicePhase {
    fn time_of(&mut self, class: WorkClass) -> &mut i64 {
        match class {
            WorkClass::Compute => &mut self.compute_ns,
            WorkClass::Communication => &mut self.communication_ns,
            WorkClass::Copy => &mut self.copy_ns,
        }
    }
}
