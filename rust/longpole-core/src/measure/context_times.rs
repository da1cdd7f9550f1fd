//! The time of each calling context on its thread and on devices.
//!
//! A GPU activity counts for the context around its launch call. Activities launched by a backward
//! pass also count for the forward context whose gradient they compute. Durations are summed:
//! activities that run at the same time each count.

use std::collections::HashMap;

use super::Chosen;
use super::contexts::{Contexts, Frames, contexts};
use super::self_time::for_each_owned;
use crate::columns::columns;
use crate::error::Result;
use crate::ids::{EventId, NO_ROW};
use crate::link::{BackwardLink, Belonging, Launches, queued_tasks};
use crate::progress::Progress;
use crate::stack::Nesting;
use crate::tables::Tables;
use crate::time::in_range;

columns! {
    /// The time of a context within a window.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct ContextTime {
        /// Number of events that ran as its innermost frame.
        pub count: i64,
        /// Time of its thread in which nothing ran inside these events.
        pub own_ns: i64,
        /// Time of its thread in which no frame ran inside these events.
        pub self_ns: i64,
        /// Time of its thread including all frames inside.
        pub total_ns: i64,
        /// Number of GPU activities whose innermost frame it is.
        pub n_self: i64,
        /// Total duration of these activities.
        pub device_self_ns: i64,
        /// Number of GPU activities launched in it and in all frames inside.
        pub n_activities: i64,
        /// Total duration of these activities.
        pub device_ns: i64,
        /// Duration of the GPU activities of the backward pass whose forward operator has it as its
        /// innermost frame.
        pub backward_self_ns: i64,
        /// The same including all frames inside, without what is already in `device_ns`.
        pub backward_ns: i64,
    }
}

impl ContextTime {
    fn add_device_self(&mut self, ns: i64) {
        self.n_self += 1;
        self.device_self_ns += ns;
    }
}

/// GPU activities that count for no context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rest {
    /// Number of activities.
    pub count: i64,
    /// Total duration.
    pub duration_ns: i64,
}

/// The times of all contexts, and the remaining time on devices.
#[derive(Debug, Clone, Default)]
pub struct ContextTimes {
    /// The context tree.
    pub contexts: Contexts,
    /// The times of each context.
    pub times: Vec<ContextTime>,
    /// Activities launched outside all frames.
    pub outside: Rest,
    /// Activities without a known launch call.
    pub unlinked: Rest,
}

/// Returns the time of each context within a window, the second time range: on threads within the
/// first, in which the host work that belongs to the window begins, and on devices that of the
/// activities that [belong](Belonging) to it.
///
/// If `frames` includes operators, an activity of a backward pass counts for the operator that
/// launched it, and also as backward time of the forward operator. Otherwise it counts once: for
/// the frame that launched it, or as backward time if there is none. Self times, backward self
/// times (without operators as frames) and the rest add up to the time of all activities. Only the
/// `chosen` activities count.
///
/// # Errors
///
/// Returns an error if the pattern is not a valid regular expression, or if `progress` asks to
/// stop.
pub fn context_times(
    tables: &Tables,
    (launches, nesting, links): (&Launches, &Nesting, &[BackwardLink]),
    frames: &Frames<'_>,
    (host, window): ((i64, i64), (i64, i64)),
    chosen: &Chosen,
    progress: Progress<'_>,
) -> Result<ContextTimes> {
    let contexts = contexts(tables, nesting, frames, progress)?;
    let times = vec![ContextTime::default(); contexts.rows.len()];
    let mut found = ContextTimes { contexts, times, ..ContextTimes::default() };
    let belonging = Belonging::of(tables, launches, window, host);
    found.count(tables, nesting, in_range(host));
    let forward = forward_of(tables.events.len(), links, nesting);
    let owner = Owner {
        anchors: anchors(launches, tables, nesting),
        forward,
        twice: frames.operators,
        chosen,
    };
    found.add_devices(tables, &owner, &belonging);
    found.add_up();
    Ok(found)
}

/// Finds the frames of an activity.
struct Owner<'a> {
    anchors: Vec<u32>,
    forward: Vec<u32>,
    twice: bool,
    chosen: &'a Chosen,
}

/// Returns the call that launched each activity, or the event that enqueued it for another thread;
/// otherwise the operator with its external id.
pub(super) fn anchors(launches: &Launches, tables: &Tables, nesting: &Nesting) -> Vec<u32> {
    let mut anchors = launches.launchers().to_vec();
    debug_assert_eq!(anchors.len(), tables.events.len());
    let queued: HashMap<_, _> =
        queued_tasks(tables).iter().map(|task| (task.dequeue, task.enqueue)).collect();
    if !queued.is_empty() {
        for anchor in &mut anchors {
            let call = EventId::from_column(*anchor);
            let mut around = std::iter::successors(call, |&event| nesting.parent(event));
            if let Some(&enqueue) = around.find_map(|event| queued.get(&event)) {
                let operator = nesting.parent(enqueue).unwrap_or(enqueue);
                *anchor = crate::ids::row_in_column(operator.row());
            }
        }
    }
    for &(work, operator) in launches.operators_by_external_id() {
        anchors[work.row()] = crate::ids::row_in_column(operator.row());
    }
    anchors
}

/// Returns the forward operator of each event inside an operator of a backward pass.
fn forward_of(n_events: usize, links: &[BackwardLink], nesting: &Nesting) -> Vec<u32> {
    let mut forward = vec![NO_ROW; n_events];
    for link in links {
        forward[link.backward.row()] = crate::ids::row_in_column(link.forward.row());
    }
    if links.is_empty() {
        return forward;
    }
    for event in nesting.outside_in() {
        if let (NO_ROW, Some(parent)) = (forward[event.row()], nesting.parent(event)) {
            forward[event.row()] = forward[parent.row()];
        }
    }
    forward
}

/// Returns the part of a span within a window; `None` if they do not overlap.
fn inside(span: (i64, i64), window: (i64, i64)) -> Option<i64> {
    let (start, end) = (span.0.max(window.0), span.1.min(window.1));
    (start < end || (start == end && span.0 == span.1)).then_some(end - start)
}

impl ContextTimes {
    fn count(&mut self, tables: &Tables, nesting: &Nesting, window: (i64, i64)) {
        let (contexts, times) = (&self.contexts, &mut self.times);
        let ran = |event: &EventId| {
            let span = tables.events.span(*event);
            span.is_some_and(|span| inside(span, window).is_some())
        };
        let frames = nesting.outside_in().filter(|&event| contexts.is_frame(event));
        for event in frames.filter(ran) {
            if let Some(row) = contexts.of(event) {
                times[row].count += 1;
            }
        }
        let is_frame = |&event: &EventId| contexts.is_frame(event);
        let mut add = |event, span, add: fn(&mut ContextTime, i64)| {
            if let (Some(row), Some(ns)) = (contexts.of(event), inside(span, window)) {
                add(&mut times[row], ns);
            }
        };
        let frames = nesting.outside_in().filter(is_frame);
        for_each_owned(&tables.events, frames, |event, start, end| {
            add(event, (start, end), |time, ns| time.self_ns += ns);
        });
        for_each_owned(&tables.events, nesting.outside_in(), |event, start, end| {
            if contexts.is_frame(event) {
                add(event, (start, end), |time, ns| time.own_ns += ns);
            }
        });
    }

    fn add_devices(&mut self, tables: &Tables, owner: &Owner<'_>, belonging: &Belonging<'_>) {
        let events = &tables.events;
        let mut common = HashMap::new();
        let counts = |event: &EventId| owner.chosen.holds(*event);
        for work in events.ids().filter(|&event| events.kind(event).is_device_work()).filter(counts)
        {
            let Some(ns) = belonging.time_ns(work) else { continue };
            let anchor = EventId::from_column(owner.anchors[work.row()]);
            let Some(anchor) = anchor else {
                self.unlinked.add(ns);
                continue;
            };
            let forward = EventId::from_column(owner.forward[anchor.row()]);
            let forward = forward.and_then(|event| self.contexts.of(event));
            match (self.contexts.of(anchor), forward) {
                (None, None) => self.outside.add(ns),
                (Some(direct), Some(forward)) if owner.twice => {
                    self.times[direct].add_device_self(ns);
                    self.times[forward].backward_self_ns += ns;
                    *common.entry((direct, forward)).or_insert(0) += ns;
                }
                (None, Some(forward)) => {
                    self.times[forward].backward_self_ns += ns;
                    self.times[forward].backward_ns += ns;
                }
                (Some(direct), _) => self.times[direct].add_device_self(ns),
            }
        }
        for ((direct, forward), ns) in sorted(common) {
            self.add_backward(direct, forward, ns);
        }
    }

    /// Adds backward time to the contexts around the forward operator, up to those that launched
    /// the activity themselves.
    fn add_backward(&mut self, direct: usize, forward: usize, ns: i64) {
        self.times[forward].backward_ns += ns;
        if let Some(both) = self.common(direct, forward) {
            self.times[both].backward_ns -= ns;
        }
    }

    /// Returns the innermost context that contains both. A parent has the smaller row number.
    fn common(&self, one: usize, two: usize) -> Option<usize> {
        let (mut one, mut two) = (one, two);
        let rows = &self.contexts.rows;
        if rows[one].lane != rows[two].lane {
            return None;
        }
        while one != two {
            let (small, large) = (one.min(two), one.max(two));
            (one, two) = (small, rows[large].parent? as usize);
        }
        Some(one)
    }

    /// Adds to each context the times of the frames inside it, which come after it.
    fn add_up(&mut self) {
        for row in (0..self.times.len()).rev() {
            let time = &mut self.times[row];
            time.total_ns += time.self_ns;
            time.n_activities += time.n_self;
            time.device_ns += time.device_self_ns;
            let time = *time;
            let Some(parent) = self.contexts.rows[row].parent else { continue };
            let around = &mut self.times[parent as usize];
            around.total_ns += time.total_ns;
            around.n_activities += time.n_activities;
            around.device_ns += time.device_ns;
            around.backward_ns += time.backward_ns;
        }
    }
}

impl Rest {
    fn add(&mut self, ns: i64) {
        self.count += 1;
        self.duration_ns += ns;
    }
}

fn sorted(pairs: HashMap<(usize, usize), i64>) -> Vec<((usize, usize), i64)> {
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{backward_links, launches};
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};
    use crate::stack::nesting;

    /// Events as `(category, name, thread, start, end, args)` in us.
    type Row = (&'static str, &'static str, i64, i64, i64, &'static str);

    fn times(rows: &[Row], frames: &Frames<'_>) -> (Vec<(String, ContextTime)>, ContextTimes) {
        let events: Vec<_> = rows
            .iter()
            .map(|(category, name, thread, start, end, args)| {
                format!(
                    r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":{thread},
                    "ts":{start},"dur":{},"args":{{{args}}}}}"#,
                    end - start
                )
            })
            .collect();
        let text = format!("[{}]", events.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let nesting = nesting(&tables, &silent).unwrap();
        let launches = launches(&tables, &silent).unwrap();
        let (links, whole) = (backward_links(&tables), (0, 1_000_000));
        let stages = (&launches, &nesting, links.as_slice());
        let found =
            context_times(&tables, stages, frames, (whole, whole), &Chosen::All, &silent).unwrap();
        let name = |row: &crate::measure::Context| {
            let id = crate::ids::StringId::from_column(row.name).unwrap();
            tables.strings.get(id).to_owned()
        };
        let names = found.contexts.rows.iter().map(name);
        (names.zip(found.times.iter().copied()).collect(), found)
    }

    const OPERATORS: Frames<'_> = Frames {
        annotations: false,
        annotation_names: None,
        operators: true,
        functions: false,
        modules: false,
        calls: false,
        others: false,
        by_inputs: false,
    };
    const TRAINING: [Row; 10] = [
        ("python_function", "nn.Module: Linear_0", 1, 0, 50, ""),
        ("cpu_op", "aten::linear", 1, 0, 40, r#""Sequence number":7,"Fwd thread id":0"#),
        ("cpu_op", "aten::addmm", 1, 5, 30, r#""Sequence number":7,"Fwd thread id":0"#),
        ("cuda_runtime", "cudaLaunchKernel", 1, 10, 12, r#""correlation":1"#),
        ("kernel", "gemm", 9, 20, 60, r#""correlation":1,"device":0,"stream":7"#),
        ("cpu_op", "AddmmBackward0", 2, 100, 140, r#""Sequence number":7,"Fwd thread id":1"#),
        ("cuda_runtime", "cudaLaunchKernel", 2, 110, 112, r#""correlation":2"#),
        ("kernel", "gemm_nt", 9, 120, 170, r#""correlation":2,"device":0,"stream":7"#),
        ("cuda_runtime", "cudaLaunchKernel", 1, 60, 62, r#""correlation":3"#),
        ("kernel", "fill", 9, 65, 66, r#""correlation":3,"device":0,"stream":7"#),
    ];

    #[test]
    fn a_backward_pass_counts_for_the_forward_operators_around_and_for_its_own() {
        let (rows, found) = times(&TRAINING, &OPERATORS);
        let shown: Vec<_> = rows
            .iter()
            .map(|(name, time)| {
                let figures = [time.device_self_ns, time.device_ns, time.backward_ns];
                (name.as_str(), figures.map(|ns| ns / 1000))
            })
            .collect();
        let expected = [
            ("aten::linear", [0, 40, 50]),
            ("aten::addmm", [40, 40, 50]),
            ("AddmmBackward0", [50, 50, 0]),
        ];
        assert_eq!(shown, expected);
        assert_eq!((found.outside.count, found.outside.duration_ns), (1, 1000));
    }

    #[test]
    fn a_module_takes_its_backward_pass_once() {
        let frames = Frames { operators: false, modules: true, ..OPERATORS };
        let (rows, found) = times(&TRAINING, &frames);
        let [(name, time)] = &rows[..] else { panic!("one module") };
        assert_eq!(name, "nn.Module: Linear_0");
        assert_eq!((time.device_ns, time.backward_ns), (40_000, 50_000));
        assert_eq!((time.self_ns, time.own_ns, found.outside.duration_ns), (50_000, 10_000, 1000));
    }

    #[test]
    fn what_runs_inside_its_own_kind_is_no_outermost_frame() {
        let rows = [
            ("cpu_op", "aten::to", 1, 0, 40, ""),
            ("cpu_op", "aten::_to_copy", 1, 5, 30, ""),
            ("cpu_op", "aten::to", 1, 10, 20, ""),
            ("cpu_op", "aten::to", 1, 50, 60, ""),
        ];
        let (_, found) = times(&rows, &OPERATORS);
        let outermost: Vec<_> = found.contexts.rows.iter().map(|row| row.is_outermost).collect();
        assert_eq!(outermost, [true, true, false]);
        assert_eq!((found.times[0].count, found.times[0].total_ns), (2, 50_000));
    }

    #[test]
    fn operators_inside_one_another_count_for_the_module_that_they_record() {
        const PATH: &str = r#""Module Hierarchy":"TOP(Net).fc(Linear)""#;
        let rows =
            [("cpu_op", "aten::linear", 1, 0, 40, PATH), ("cpu_op", "aten::addmm", 1, 5, 30, PATH)];
        let (rows, _) = times(&rows, &Frames { operators: false, modules: true, ..OPERATORS });
        let [(name, time)] = &rows[..] else { panic!("one module") };
        assert_eq!((name.as_str(), time.count, time.self_ns), ("TOP(Net).fc(Linear)", 1, 40_000));
    }
}
