//! Finds device clocks that disagree with the host's, from impossible timestamps.
//!
//! An activity cannot start before its launch call, and cannot end after a call that is known to
//! have waited for it. If several events of a device violate one of these, its timestamps are
//! shifted by the worst violation plus the usual latency. Inferred waits alone never shift a clock,
//! because the rules that infer them tolerate clock differences; they only refine a shift. An
//! offset of up to 3 us violates nothing and is not detected.
//!
//! Device clocks jump and drift. Where no single shift agrees with a recording, it is cut into
//! pieces (`pieces`), and each has a shift of its own.

mod known_waits;
mod pieces;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::graph::facts::{Asked, Facts};
use crate::graph::model::{ClockShift, ClockSlack, Clocks, limits};
use crate::ids::Order;
use crate::vocabulary::ApiRole;
use known_waits::known_waits;
pub(in crate::graph::rules) use known_waits::stays_on_device;
use pieces::Pieces;

/// Returns the devices whose clock is off, and by how much in each piece of the recording; and the
/// shift of each event.
pub(in crate::graph) fn shifts(facts: &Facts<'_>) -> (Vec<ClockShift>, Clocks) {
    let (pieces, mut evidence) = pieces_with_evidence(facts);
    let delays_ns = waits_between_devices(facts, &pieces);
    for (&(_, waiting), delays_ns) in &delays_ns {
        evidence[waiting].releases_ns.extend(delays_ns);
    }
    let alone: Vec<_> = evidence.iter().map(Evidence::shift).collect();
    let shift = |piece: usize| {
        let siblings = || {
            let devices = facts.streams.siblings_of(pieces.device(piece)).iter();
            devices.flat_map(|&device| pieces.of_device(device))
        };
        let usual_ns = |other: usize| evidence[other].usual_launch_ns(alone[other]);
        let is_sure = |&other: &usize| alone[other].is_none_or(|shift| !shift.by_launches);
        let shift_ns = match alone[piece] {
            Some(Shift { shift_ns, by_launches: true }) => {
                let usual_ns = siblings().filter(is_sure).filter_map(usual_ns).min();
                evidence[piece].shift_like_ns(usual_ns, shift_ns)
            }
            Some(Shift { shift_ns, .. }) => shift_ns,
            None => evidence[piece].shift_beside_ns(siblings().filter_map(usual_ns).min()?)?,
        };
        Some(shift_ns)
    };
    let mut shifts: Vec<_> = (0..pieces.len()).map(shift).collect();
    agree_on_syncs(&mut shifts, &evidence, facts, &pieces);
    agree_on_waits(&mut shifts, &evidence, &delays_ns);
    let is_shifted =
        |&piece: &usize| pieces.of_device(pieces.device(piece)).any(|it| shifts[it].is_some());
    let shift = |piece: usize| ClockShift {
        device: facts.streams.device_number(pieces.device(piece)),
        from_ns: pieces.begin_ns(piece),
        shift_ns: shifts[piece].unwrap_or(0),
    };
    let found: Vec<_> = (0..pieces.len()).filter(is_shifted).map(shift).collect();
    if found.is_empty() {
        return (found, Clocks::default());
    }
    let of_work = |work| shifts[pieces.of_work(work, facts)].unwrap_or(0);
    let clocks = facts.works().map(|work| (facts.timeline.event(work), of_work(work)));
    (found, Clocks::of(clocks, facts.tables.events.len()))
}

/// Returns the pieces of all devices with their evidence. If the evidence of two pieces that follow
/// each other shifts neither, no jump of the clock explains what contradicts there: the device is
/// one piece then.
fn pieces_with_evidence(facts: &Facts<'_>) -> (Pieces, Vec<Evidence>) {
    let pieces = Pieces::found(facts, &|_| true);
    let found = evidence(facts, &pieces);
    let is_shifted = |piece: usize| found[piece].shift().is_some();
    let is_cut_well = |device: usize| {
        let pieces: Vec<_> = pieces.of_device(device).collect();
        pieces.windows(2).all(|pair| pair.iter().any(|&piece| is_shifted(piece)))
    };
    if (0..facts.streams.n_devices()).all(is_cut_well) {
        return (pieces, found);
    }
    let pieces = Pieces::found(facts, &is_cut_well);
    let found = evidence(facts, &pieces);
    (pieces, found)
}

/// Returns how much further the timestamps of each device could be shifted before they contradict
/// its launches, or the calls that are known to have waited for it.
pub(in crate::graph) fn slacks(facts: &Facts<'_>) -> Vec<ClockSlack> {
    let slack = |(device, evidence): (usize, &Evidence)| {
        let quickest_ns = evidence.quickest_launches_ns.first();
        let latest_ns = evidence.latest_return_ns;
        let may_be = |ns: i64| ns.clamp(0, limits::CLOCK_TOLERANCE_NS);
        ClockSlack {
            device: facts.streams.device_number(device),
            earlier_ns: may_be(quickest_ns.saturating_sub(limits::QUICKEST_LAUNCH_NS)),
            later_ns: may_be((-limits::QUICKEST_RETURN_NS).saturating_sub(latest_ns)),
            doubt_ns: evidence.agreed_return.map_or(0, |agreed| doubt_ns(agreed.quickest_ns)),
        }
    };
    evidence(facts, &Pieces::whole(facts)).iter().enumerate().map(slack).collect()
}

/// Returns by how much a clock is probably off, for the return on which calls agree.
fn doubt_ns(agreed_return_ns: i64) -> i64 {
    let usual = limits::QUICKEST_RETURN_NS..=limits::SLOW_RETURN_NS;
    let is_usual = usual.contains(&agreed_return_ns);
    if is_usual { 0 } else { (agreed_return_ns - limits::USUAL_RETURN_NS).abs() }
}

/// Returns the evidence about the clock of each piece: its launches, and the calls known to have
/// waited for it.
fn evidence(facts: &Facts<'_>, pieces: &Pieces) -> Vec<Evidence> {
    let mut found = vec![Evidence::default(); pieces.len()];
    for work in facts.works() {
        if let Some(call) = facts.timeline.launcher(work) {
            let evidence = &mut found[pieces.of_work(work, facts)];
            let after_ns = facts.timeline.start_ns(work) - facts.timeline.start_ns(call);
            if is_idle_launch(work, call, facts) {
                evidence.idle_launches_ns.add(after_ns);
            }
            let usual_ns = if facts.is_in_graph(work) {
                facts.timeline.duration_ns(call) // graph nodes start after the call
            } else {
                0
            };
            evidence.launched(after_ns, usual_ns);
        }
    }
    for (work, call) in known_waits(facts) {
        let end_ns = facts.timeline.end_ns(call);
        let late_ns = facts.timeline.end_ns(work) - end_ns;
        let stream = &facts.streams.all[facts.streams.stream_of(work)];
        let n_too_late =
            stream.n_ending_after(work, end_ns, limits::LEAST_CLOCK_EVIDENCE, facts.timeline);
        found[pieces.of_work(work, facts)].returned(late_ns, n_too_late);
    }
    for device in 0..facts.streams.n_devices() {
        let mut near_ns = vec![Vec::new(); pieces.of_device(device).len()];
        let place = |work: Order| pieces.of_work(work, facts) - pieces.of_device(device).start;
        for (work, ns) in near_returns(device, facts) {
            near_ns[place(work)].push(ns);
        }
        for (piece, near_ns) in pieces.of_device(device).zip(near_ns) {
            found[piece].agreed_return = Agreed::of(near_ns);
        }
        for (work, ns) in probable_returns(device, facts) {
            let evidence = &mut found[pieces.of_work(work, facts)];
            if !evidence.has_known_return() {
                evidence.probable_returns.add(ns);
            }
        }
    }
    found
}

/// Refines the shift of a clock: calls that wait for a device still seem to return slightly too
/// soon after its activities. In a process with several devices, such a call does not identify its
/// device, so only calls that return about when the activities of a device end are counted.
fn agree_on_syncs(
    shifts: &mut [Option<i64>],
    evidence: &[Evidence],
    facts: &Facts<'_>,
    pieces: &Pieces,
) {
    let mut quickest_ns = vec![Quickest::NONE; pieces.len()];
    for device in 0..facts.streams.n_devices() {
        for (work, ns) in returns_from_device(device, facts) {
            let piece = pieces.of_work(work, facts);
            let after_ns = shifts[piece].map(|shift_ns| ns - shift_ns);
            let usual = after_ns.filter(|&ns| ns >= -limits::UNEVEN_CLOCKS_NS);
            if let Some(ns) = usual {
                quickest_ns[piece].add(ns);
            }
        }
    }
    for (piece, quickest_ns) in quickest_ns.iter().enumerate() {
        let Some(shift_ns) = shifts[piece] else { continue };
        let by_ns = limits::USUAL_RETURN_NS.saturating_sub(quickest_ns.first());
        let is_early = quickest_ns.first() < limits::QUICKEST_RETURN_NS
            && quickest_ns.last() < limits::USUAL_RETURN_NS;
        if is_early && evidence[piece].may_move(shift_ns - by_ns) {
            shifts[piece] = Some(shift_ns - by_ns);
        }
    }
}

/// Returns the last activity of a device before each call that may have waited for it, and the time
/// from its end to the return of the call.
fn returns_from_device<'f>(
    device: usize,
    facts: &'f Facts<'_>,
) -> impl Iterator<Item = (Order, i64)> + 'f {
    let may_wait = move |&call: &Order| {
        facts.purpose(call) == ApiRole::DeviceSynchronize
            && facts.launching_threads[device].contains(&facts.timeline.lane(call))
    };
    facts.calls().filter(may_wait).filter_map(move |call| {
        let whole = facts.streams.whole_device(device);
        let work = whole.last_finished_before(facts.timeline.start_ns(call))?;
        Some((work, facts.timeline.end_ns(call) - facts.timeline.end_ns(work)))
    })
}

/// Returns the activities of a device that a long call may have waited for, and the time from the
/// end of each to the return of the call.
fn probable_returns<'f>(
    device: usize,
    facts: &'f Facts<'_>,
) -> impl Iterator<Item = (Order, i64)> + 'f {
    let may_wait = move |&call: &Order| {
        facts.timeline.duration_ns(call) >= limits::LONG_SYNC_NS
            && facts.launching_threads[device].contains(&facts.timeline.lane(call))
            && !facts.recorded.producers.contains_key(&call)
    };
    let lasts = move |call: Order| {
        let called_ns = facts.timeline.start_ns(call);
        let streams = facts.streams.of_device(device).iter();
        streams.filter_map(move |&it| facts.streams.all[it].last_finished_before(called_ns))
    };
    let awaited = move |call: Order| match facts.purpose(call) {
        ApiRole::DeviceSynchronize => {
            lasts(call).max_by_key(|&work| facts.timeline.end_ns(work)).into_iter().collect()
        }
        ApiRole::StreamSynchronize => lasts(call).collect(),
        _ => Vec::new(),
    };
    facts.calls().filter(may_wait).flat_map(move |call| {
        let after_ns = move |work| facts.timeline.end_ns(call) - facts.timeline.end_ns(work);
        awaited(call).into_iter().map(move |work| (work, after_ns(work)))
    })
}

/// Like [`probable_returns`] for returns near the end, with the calls that synchronize an event: any
/// activity submitted before may be what they waited for.
fn near_returns<'f>(
    device: usize,
    facts: &'f Facts<'_>,
) -> impl Iterator<Item = (Order, i64)> + 'f {
    let timeline = facts.timeline;
    let waits_for_event = move |&call: &Order| {
        facts.purpose(call) == ApiRole::EventSynchronize
            && timeline.duration_ns(call) >= limits::LONG_SYNC_NS
            && facts.launching_threads[device].contains(&timeline.lane(call))
            && !facts.recorded.producers.contains_key(&call)
    };
    let of_event = facts.calls().filter(waits_for_event).flat_map(move |call| {
        let (called_ns, end_ns) = (timeline.start_ns(call), timeline.end_ns(call));
        let (after_ns, until_ns) =
            (end_ns - limits::CLOCK_TOLERANCE_NS, end_ns + limits::CLOCK_TOLERANCE_NS);
        let near = facts.streams.ending_on_device(device, after_ns, until_ns);
        near.filter(move |&(_, work)| timeline.earliest_submission_ns(work) < called_ns)
            .map(move |(work_end_ns, work)| (work, end_ns - work_end_ns))
    });
    of_event.chain(probable_returns(device, facts)).filter(|&(_, ns)| is_near_zero(ns))
}

/// Corrects the remaining difference between the clocks of two devices of a process: activities
/// that one device waited for on the other seem to end too late. If neither clock was shifted
/// before, most such waits must agree.
fn agree_on_waits(
    shifts: &mut [Option<i64>],
    evidence: &[Evidence],
    delays_ns: &BTreeMap<(usize, usize), Vec<i64>>,
) {
    for (&(awaited, waiting), delays_ns) in delays_ns {
        let moved_ns = shifts[waiting].unwrap_or(0) - shifts[awaited].unwrap_or(0);
        let delays_ns = || delays_ns.iter().map(|&ns| ns + moved_ns);
        let was_moved = shifts[waiting].is_some() || shifts[awaited].is_some();
        if !was_moved && !are_mostly_early(delays_ns()) {
            continue;
        }
        let reach_ns =
            if was_moved { limits::UNEVEN_CLOCKS_NS } else { limits::CLOCK_TOLERANCE_NS };
        let by_ns =
            limits::QUICKEST_RELEASE_NS - Quickest::later_than(-reach_ns, delays_ns()).last();
        if by_ns > 0 {
            move_apart(shifts, evidence, (awaited, waiting), by_ns);
        }
    }
}

/// Shifts the clock of a waiting device forward and that of the awaited device back, by `by_ns` in
/// total. Each is shifted until the calls known to have waited for it return as soon as usual, the
/// waiting device first. Without such calls, only the device that was shifted before is shifted, or
/// each by half.
fn move_apart(
    shifts: &mut [Option<i64>],
    evidence: &[Evidence],
    (awaited, waiting): (usize, usize),
    by_ns: i64,
) {
    let room_ns = |piece: usize| evidence[piece].room_ahead_ns(shifts[piece].unwrap_or(0));
    let ahead_ns = match (room_ns(waiting), room_ns(awaited)) {
        (Some(room_ns), _) => room_ns.clamp(0, by_ns),
        (None, Some(room_ns)) => by_ns - (-room_ns).clamp(0, by_ns),
        (None, None) => match (shifts[waiting], shifts[awaited]) {
            (None, Some(_)) => 0,
            (Some(_), None) => by_ns,
            _ => by_ns / 2,
        },
    };
    let back_ns = by_ns - ahead_ns;
    let mut move_by = |piece: usize, ns: i64| {
        let shift_ns = shifts[piece].unwrap_or(0) + ns;
        if ns != 0 && evidence[piece].may_move(shift_ns) {
            shifts[piece] = Some(shift_ns);
        }
    };
    move_by(waiting, ahead_ns);
    move_by(awaited, -back_ns);
}

/// Whether most starts close to the end of the awaited activity are too early to have waited for
/// it.
fn are_mostly_early(delays_ns: impl Iterator<Item = i64>) -> bool {
    let near_ns = delays_ns.filter(|&ns| is_near_zero(ns));
    let (early, late): (Vec<_>, Vec<_>) = near_ns.partition(|&ns| ns < limits::QUICKEST_RELEASE_NS);
    early.len() >= limits::LEAST_CLOCK_EVIDENCE && early.len() > late.len()
}

fn is_near_zero(ns: i64) -> bool {
    ns.abs() <= limits::CLOCK_TOLERANCE_NS
}

/// For each pair of pieces of two devices of a process, returns the times from an end in the first
/// to a start in the second that its thread made wait for it.
fn waits_between_devices(facts: &Facts<'_>, pieces: &Pieces) -> BTreeMap<(usize, usize), Vec<i64>> {
    let mut delays_ns: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for work in facts.works() {
        let waiting = facts.streams.device_of(work);
        for &awaited in facts.paired_on_devices(work).into_iter().flatten() {
            let device = facts.streams.device_of(awaited);
            if device != waiting {
                let after_ns = facts.timeline.start_ns(work) - facts.timeline.end_ns(awaited);
                let pair = (pieces.of_work(awaited, facts), pieces.of_work(work, facts));
                delays_ns.entry(pair).or_default().push(after_ns);
            }
        }
    }
    delays_ns
}

/// A required timestamp shift.
#[derive(Clone, Copy)]
struct Shift {
    shift_ns: i64,
    /// Whether only launches support the shift; launch latencies vary more than others.
    by_launches: bool,
}

/// Whether a launch found its stream empty, without a recent wait call for that stream.
fn is_idle_launch(work: Order, call: Order, facts: &Facts<'_>) -> bool {
    let timeline = facts.timeline;
    let was_over = |before: Order| timeline.end_ns(before) <= timeline.start_ns(call);
    facts.asked[work.row()] != Asked::JustNow
        && !facts.is_in_graph(work)
        && facts.streams.before_on_stream(work).is_none_or(was_over)
}

/// The evidence about the clock of a device in one piece of the recording.
#[derive(Clone)]
struct Evidence {
    /// The shortest times from the start of a launch call to the start of its activity.
    quickest_launches_ns: Quickest,
    n_too_quick: usize,
    /// The same for activities that had nothing else to wait for.
    idle_launches_ns: Quickest,
    /// The times from activities of other devices to starts that their thread made wait for them.
    releases_ns: Vec<i64>,
    /// The latest end of an activity after the return of the call that waited for it.
    latest_return_ns: i64,
    n_too_late: usize,
    probable_returns: Returns,
    /// The quickest of several returns, known or probable, that are alike.
    agreed_return: Option<Agreed>,
}

/// The return latencies of calls that may have waited for a device.
#[derive(Clone)]
struct Returns {
    quickest_ns: i64,
    n_early: usize,
    n_late: usize,
}

impl Returns {
    const NONE: Self = Self { quickest_ns: i64::MAX, n_early: 0, n_late: 0 };

    fn add(&mut self, after_ns: i64) {
        if is_near_zero(after_ns) {
            self.quickest_ns = self.quickest_ns.min(after_ns);
            self.n_early += usize::from(after_ns < 0);
            self.n_late += usize::from(after_ns >= 0);
        }
    }
}

/// The returns on which most calls that may have waited agree: those of calls that waited differ by
/// little, others by anything.
#[derive(Clone, Copy)]
struct Agreed {
    quickest_ns: i64,
    n_calls: usize,
}

impl Agreed {
    fn of(mut returns_ns: Vec<i64>) -> Option<Self> {
        returns_ns.sort_unstable();
        let n_alike = |first: usize| {
            let until_ns = returns_ns[first] + limits::ALIKE_RETURNS_NS;
            returns_ns.partition_point(|&ns| ns <= until_ns) - first
        };
        let counts = (0..returns_ns.len()).map(|first| (n_alike(first), Reverse(first)));
        let (n_calls, Reverse(first)) = counts.max()?;
        let is_enough = n_calls >= limits::LEAST_CLOCK_EVIDENCE && 2 * n_calls > returns_ns.len();
        is_enough.then(|| Self { quickest_ns: returns_ns[first], n_calls })
    }
}

/// The shortest latencies, in ascending order.
#[derive(Clone, Copy)]
struct Quickest([i64; limits::LEAST_CLOCK_EVIDENCE]);

impl Quickest {
    const NONE: Self = Self([i64::MAX; limits::LEAST_CLOCK_EVIDENCE]);

    /// Collects the shortest latencies, without those too short for the clocks to explain.
    fn later_than(least_ns: i64, delays_ns: impl Iterator<Item = i64>) -> Self {
        let mut found = Self::NONE;
        delays_ns.filter(|&ns| ns >= least_ns).for_each(|ns| found.add(ns));
        found
    }

    fn add(&mut self, after_ns: i64) {
        let place = self.0.partition_point(|&ns| ns <= after_ns);
        if place < self.0.len() {
            self.0[place..].rotate_right(1);
            self.0[place] = after_ns;
        }
    }

    fn first(&self) -> i64 {
        self.0[0]
    }

    fn last(&self) -> i64 {
        self.0[self.0.len() - 1]
    }

    /// Returns the shortest time, if there are enough times and they are similar.
    fn agreed(&self) -> Option<i64> {
        let last_ns = self.last();
        let are_alike = last_ns != i64::MAX && last_ns - self.0[0] <= limits::ALIKE_LAUNCHES_NS;
        are_alike.then_some(self.0[0])
    }
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            quickest_launches_ns: Quickest::NONE,
            n_too_quick: 0,
            idle_launches_ns: Quickest::NONE,
            releases_ns: Vec::new(),
            latest_return_ns: i64::MIN,
            n_too_late: 0,
            probable_returns: Returns::NONE,
            agreed_return: None,
        }
    }
}

impl Evidence {
    /// Adds a launch: the time from the start of its call to the start of its activity, and how
    /// much of that is usual for reasons other than the launch.
    fn launched(&mut self, after_ns: i64, usual_ns: i64) {
        self.n_too_quick += usize::from(after_ns < limits::QUICKEST_LAUNCH_NS);
        self.quickest_launches_ns.add(after_ns - usual_ns);
    }

    /// Returns the usual latency of a launch of this device with nothing else to wait for, after
    /// the timestamps are shifted.
    fn usual_launch_ns(&self, shift: Option<Shift>) -> Option<i64> {
        Some(self.idle_launches_ns.agreed()? + shift.map_or(0, |shift| shift.shift_ns))
    }

    /// Returns the shift that makes launches as fast as on another device of the process, if it is
    /// close to the shift that the launches alone suggest.
    fn shift_like_ns(&self, usual_ns: Option<i64>, by_launches_ns: i64) -> i64 {
        let like = || Some(usual_ns? - self.idle_launches_ns.agreed()?);
        like().filter(|&shift_ns| is_near(shift_ns, by_launches_ns)).unwrap_or(by_launches_ns)
    }

    /// Returns the shift if all launches seem later than those of another device of the process,
    /// and there is no other evidence.
    fn shift_beside_ns(&self, usual_ns: i64) -> Option<i64> {
        let shift_ns = usual_ns - self.idle_launches_ns.agreed()?;
        let quickest_ns = self.quickest_launches_ns.first().saturating_add(shift_ns);
        let is_ahead = shift_ns <= -limits::LATE_LAUNCHES_NS;
        (is_ahead && quickest_ns >= limits::QUICKEST_LAUNCH_NS).then_some(shift_ns)
    }

    /// Whether activities, shifted by this much, still start after their call and end before the
    /// return of a call that waited for them.
    fn may_move(&self, shift_ns: i64) -> bool {
        let quickest_ns = self.quickest_launches_ns.first().saturating_add(shift_ns);
        let latest_ns = self.latest_return_ns.saturating_add(shift_ns);
        quickest_ns >= limits::QUICKEST_LAUNCH_NS && latest_ns <= 0
    }

    /// Whether a call is known to have waited for the device.
    fn has_known_return(&self) -> bool {
        self.latest_return_ns != i64::MIN
    }

    /// Returns how much further forward the shifted timestamps could move until the calls that are
    /// known to have waited return as soon as usual.
    fn room_ahead_ns(&self, shift_ns: i64) -> Option<i64> {
        self.has_known_return().then(|| -self.latest_return_ns - shift_ns - limits::USUAL_RETURN_NS)
    }

    /// Adds a wait, and the number of its activities that ended too late.
    fn returned(&mut self, late_ns: i64, n_too_late: usize) {
        self.latest_return_ns = self.latest_return_ns.max(late_ns);
        self.n_too_late += n_too_late;
    }

    /// Returns the required shift. If it would violate the other fact, it is the nearest that
    /// violates neither; without one, the clock is not off by a constant and stays unchanged.
    fn shift(&self) -> Option<Shift> {
        let quickest_ns = self.quickest_launches_ns.first();
        let by_returns_ns = self.by_returns_ns();
        if self.n_too_quick >= limits::LEAST_CLOCK_EVIDENCE {
            let by_launches_ns = limits::USUAL_LAUNCH_NS - quickest_ns;
            let returns_ns = self.latest_return_ns.saturating_add(by_launches_ns);
            let by_launches = !is_near(by_returns_ns, by_launches_ns);
            let shift_ns = if by_launches { by_launches_ns } else { by_returns_ns };
            let agrees = returns_ns <= limits::USUAL_LAUNCH_NS;
            return agrees.then_some(Shift { shift_ns, by_launches });
        }
        if self.n_too_quick > 0 {
            return self.behind_by_returns(limits::USUAL_LAUNCH_NS - quickest_ns);
        }
        let agrees = quickest_ns.saturating_add(by_returns_ns) >= 0;
        let is_told = self.n_too_late > 0 || self.returns_early();
        let is_ahead = self.n_too_late >= limits::LEAST_CLOCK_EVIDENCE
            || self.many_return_early()
            || (is_told
                && (self.launches_confirm(by_returns_ns) || self.releases_confirm(by_returns_ns)));
        let nearest_ns = by_returns_ns.max(limits::QUICKEST_LAUNCH_NS.saturating_sub(quickest_ns));
        let keeps_returns = self.latest_return_ns.saturating_add(nearest_ns) <= 0;
        let shift_ns = if agrees { by_returns_ns } else { nearest_ns };
        (is_ahead && (agrees || (self.has_known_return() && keeps_returns && nearest_ns < 0)))
            .then_some(Shift { shift_ns, by_launches: false })
    }

    /// Returns the required shift if one or two launches came too soon, and calls that waited
    /// return late by the same time.
    fn behind_by_returns(&self, by_launches_ns: i64) -> Option<Shift> {
        let shift_ns = self.by_returns_ns();
        is_near(shift_ns, by_launches_ns).then_some(Shift { shift_ns, by_launches: false })
    }

    /// Returns the shift that makes the fastest return take the usual time: of known waits,
    /// otherwise of calls that may have waited.
    fn by_returns_ns(&self) -> i64 {
        let probable_ns = -self.probable_returns.quickest_ns;
        let latest_ns = if self.has_known_return() { self.latest_return_ns } else { probable_ns };
        let agreed_ns = self.agreed_return.map(|agreed| agreed.quickest_ns);
        let may_be = |&ns: &i64| !self.has_known_return() || ns <= -latest_ns;
        let latest_ns = agreed_ns.filter(may_be).map_or(latest_ns, |ns| -ns);
        -latest_ns.saturating_add(limits::USUAL_RETURN_NS)
    }

    /// Whether calls that may have waited for the device agree that they returned before its
    /// activities ended, or most of them do and no call is known to have waited for it.
    fn returns_early(&self) -> bool {
        let Returns { n_early, n_late, .. } = self.probable_returns;
        self.agreed_return.is_some_and(|agreed| agreed.quickest_ns < 0)
            || (!self.has_known_return() && n_early > n_late)
    }

    /// Whether enough calls agree on an early return that no other evidence is needed.
    fn many_return_early(&self) -> bool {
        self.agreed_return.is_some_and(|agreed| {
            agreed.quickest_ns < 0 && agreed.n_calls >= limits::MANY_ALIKE_RETURNS
        })
    }

    /// Whether a shift makes several launches as fast as usual, that is, they seem late by the
    /// offset of the clock.
    fn launches_confirm(&self, shift_ns: i64) -> bool {
        self.quickest_launches_ns
            .0
            .iter()
            .all(|ns| ns.saturating_add(shift_ns) <= limits::QUICK_LAUNCH_NS)
    }

    /// Whether a shift makes several starts that waited for another device as soon as usual: more
    /// than before it, and more than would then be too soon.
    fn releases_confirm(&self, shift_ns: i64) -> bool {
        let n_in = |range: std::ops::Range<i64>, shift_ns: i64| {
            self.releases_ns.iter().filter(|&&ns| range.contains(&(ns + shift_ns))).count()
        };
        let usual = limits::QUICKEST_RELEASE_NS..limits::USUAL_RELEASE_NS;
        let n_usual = n_in(usual.clone(), shift_ns);
        let too_soon = -limits::CLOCK_TOLERANCE_NS..limits::QUICKEST_RELEASE_NS;
        n_usual >= limits::LEAST_CLOCK_EVIDENCE
            && n_usual > n_in(usual, 0).max(n_in(too_soon, shift_ns))
    }
}

/// Whether a shift is as close to one suggested by launches as launch latencies vary. Returns from
/// waits and waits between devices vary less and are preferred then.
fn is_near(shift_ns: i64, by_launches_ns: i64) -> bool {
    let apart_ns = shift_ns.saturating_sub(by_launches_ns);
    let near_ns = limits::QUICK_LAUNCH_NS - limits::USUAL_LAUNCH_NS;
    (-limits::USUAL_LAUNCH_NS..=near_ns).contains(&apart_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_000;

    fn shift_of(launched_ns: &[i64], late_ns: &[i64]) -> Option<i64> {
        shift_beside(launched_ns, late_ns, &[])
    }

    fn shift_beside(launched_ns: &[i64], late_ns: &[i64], probable_ns: &[i64]) -> Option<i64> {
        let mut evidence = Evidence::default();
        for &ns in launched_ns {
            evidence.launched(ns, 0);
        }
        for &ns in late_ns {
            evidence.returned(ns, usize::from(ns > 0));
        }
        for &ns in probable_ns {
            evidence.probable_returns.add(ns);
        }
        evidence.shift().map(|shift| shift.shift_ns)
    }

    #[test]
    fn a_clock_is_moved_on_three_events_and_not_on_two() {
        assert_eq!(shift_of(&[-20 * US, -15 * US, 9 * US], &[]), None);
        assert_eq!(shift_of(&[-20 * US, -15 * US, 0], &[]), Some(24 * US));
        assert_eq!(shift_of(&[34 * US], &[30 * US, 1, 2]), Some(-32 * US));
    }

    #[test]
    fn launches_that_all_seem_late_confirm_a_clock_that_is_ahead() {
        assert_eq!(shift_of(&[50 * US], &[30 * US]), None);
        assert_eq!(shift_of(&[39 * US, 90 * US, 35 * US, 40 * US], &[30 * US]), Some(-32 * US));
        assert_eq!(shift_of(&[39 * US, 90 * US, 35 * US, 70 * US], &[30 * US]), None);
    }

    #[test]
    fn a_clock_that_is_right_is_not_moved() {
        assert_eq!(shift_of(&[2 * US, 3 * US, 9 * US], &[-US, -4 * US, 0]), None);
    }

    #[test]
    fn a_clock_that_is_behind_and_ahead_is_not_off_by_one_number() {
        assert_eq!(shift_of(&[-US, -US, -US], &[US, US, US]), None);
    }

    #[test]
    fn calls_that_probably_waited_tell_of_a_clock_that_launches_confirm() {
        let late = [9 * US, 10 * US, 11 * US];
        assert_eq!(shift_beside(&late, &[], &[-3 * US, -2 * US, 9 * US]), Some(-5 * US));
        assert_eq!(shift_beside(&late, &[], &[-3 * US, 2 * US, 9 * US]), None);
        assert_eq!(shift_beside(&late, &[-US], &[-3 * US, -2 * US]), None);
        assert_eq!(shift_beside(&[9 * US, 10 * US, 40 * US], &[], &[-3 * US, -2 * US]), None);
    }

    #[test]
    fn a_shift_that_launches_do_not_allow_is_as_small_as_the_returns_need() {
        let late = [4_300, 4_900, 4_600];
        assert_eq!(shift_of(&[6 * US, 7 * US, 9 * US], &late), Some(-5 * US));
        assert_eq!(shift_of(&[5 * US, 7 * US, 9 * US], &late), None);
    }

    #[test]
    fn many_calls_that_agree_on_an_early_return_need_no_launches() {
        let shift = |n_calls: i64| {
            let mut evidence = Evidence::default();
            evidence.launched(40 * US, 0);
            evidence.returned(-9 * US, 0);
            let early = (0..n_calls).map(|call| -2 * US + call * 100);
            evidence.agreed_return = Agreed::of(early.chain([7 * US, 9 * US]).collect());
            evidence.shift().map(|shift| shift.shift_ns)
        };
        assert_eq!((shift(4), shift(5)), (None, Some(-4 * US)));
        assert_eq!(shift(2), None);
    }

    #[test]
    fn calls_that_probably_waited_confirm_a_launch_that_came_too_soon() {
        let launched = [-US, 20 * US, 30 * US];
        assert_eq!(shift_beside(&launched, &[], &[6 * US, 9 * US]), Some(4 * US));
        assert_eq!(shift_beside(&launched, &[], &[2 * US, 9 * US]), None);
        assert_eq!(shift_of(&launched, &[]), None);
    }
}
