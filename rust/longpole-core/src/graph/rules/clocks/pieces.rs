//! Cuts a recording where the clock of a device jumps.
//!
//! Each activity bounds the shift of its timestamps: it cannot start before its launch call begins,
//! and cannot end after the return of a call that is known to have waited for it. Where no shift is
//! within the bounds of all activities so far, the clock has jumped. It did so after the last
//! activity whose bound allows only the shift from before, and before the first whose bound allows
//! only the shift from after; between these, at the gap of a stream that the jump explains best.
//!
//! If a clock goes back, activities from before and after a jump have the same timestamps. Streams run
//! in order, so an activity counts as no earlier than those before it on its stream.
//!
//! A jump that contradicts no bound is not found.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

use super::known_waits::known_waits;
use crate::graph::facts::Facts;
use crate::graph::model::limits;
use crate::ids::{Order, row_in_column};

/// The parts of a recording in which the clock of a device has one offset, of all devices.
pub(super) struct Pieces {
    /// For each device, the number of its first piece; then the number of all pieces.
    first: Vec<usize>,
    device_of: Vec<usize>,
    /// For each piece but the first of a device, the recorded start of its first activity.
    from_ns: Vec<Option<i64>>,
    /// For each event, the number of its piece within the device; empty if no clock jumps.
    of_event: Vec<u32>,
}

impl Pieces {
    /// Returns one piece for each device.
    pub(super) fn whole(facts: &Facts<'_>) -> Self {
        let n_devices = facts.streams.n_devices();
        Self {
            first: (0..=n_devices).collect(),
            device_of: (0..n_devices).collect(),
            from_ns: vec![None; n_devices],
            of_event: Vec::new(),
        }
    }

    /// Finds the pieces in the timestamps of a trace, for the devices that may be cut.
    pub(super) fn found(facts: &Facts<'_>, may_be_cut: &dyn Fn(usize) -> bool) -> Self {
        let devices = bounds(facts);
        let jumps = devices
            .iter()
            .enumerate()
            .map(|(device, bounds)| if may_be_cut(device) { jumps(bounds) } else { Vec::new() });
        let jumps: Vec<_> = jumps.collect();
        let mut found = Self::whole(facts);
        if jumps.iter().all(Vec::is_empty) {
            return found;
        }
        found = Self { of_event: vec![0; facts.timeline.len()], ..found };
        (found.first, found.device_of, found.from_ns) = (vec![0], Vec::new(), Vec::new());
        for (device, (bounds, jumps)) in devices.iter().zip(&jumps).enumerate() {
            found.device_of.extend(std::iter::repeat_n(device, jumps.len() + 1));
            found.first.push(found.device_of.len());
            let from_ns = |&place: &usize| Some(bounds[place].start_ns);
            found.from_ns.extend([None].into_iter().chain(jumps.iter().map(from_ns)));
            for (place, it) in bounds.iter().enumerate().skip(jumps.first().copied().unwrap_or(0)) {
                let piece = jumps.partition_point(|&jump| jump <= place);
                found.of_event[it.work.row()] = row_in_column(piece);
            }
        }
        found
    }

    pub(super) fn len(&self) -> usize {
        self.device_of.len()
    }

    pub(super) fn device(&self, piece: usize) -> usize {
        self.device_of[piece]
    }

    pub(super) fn of_device(&self, device: usize) -> Range<usize> {
        self.first[device]..self.first[device + 1]
    }

    /// Returns the device time from which a piece counts; `None` for the first of a device.
    pub(super) fn begin_ns(&self, piece: usize) -> Option<i64> {
        self.from_ns[piece]
    }

    /// Returns the piece of an activity.
    pub(super) fn of_work(&self, work: Order, facts: &Facts<'_>) -> usize {
        let first = self.first[facts.streams.device_of(work)];
        first + self.of_event.get(work.row()).map_or(0, |&piece| piece as usize)
    }
}

/// The shifts that an activity allows.
#[derive(Clone, Copy)]
struct Bounds {
    work: Order,
    start_ns: i64,
    /// The latest start on its stream so far.
    latest_ns: i64,
    /// The time from the end of its predecessor on the stream.
    gap_ns: i64,
    least_ns: Option<i64>,
    most_ns: Option<i64>,
}

/// Returns the bounds of the activities of each device, in the order in which it ran them.
fn bounds(facts: &Facts<'_>) -> Vec<Vec<Bounds>> {
    let timeline = facts.timeline;
    let mut most_ns: HashMap<Order, i64> = HashMap::new();
    for (work, call) in known_waits(facts) {
        let ns = timeline.end_ns(call) - timeline.end_ns(work);
        most_ns.entry(work).and_modify(|most| *most = ns.min(*most)).or_insert(ns);
    }
    let mut devices = vec![Vec::new(); facts.streams.n_devices()];
    for (number, stream) in facts.streams.all.iter().enumerate() {
        let device = &mut devices[facts.streams.device_of_stream(number)];
        let (mut latest_ns, mut before) = (i64::MIN, None);
        for work in stream.submitted_after(i64::MIN) {
            let start_ns = timeline.start_ns(work);
            let called_ns = timeline.launcher(work).map(|call| timeline.start_ns(call));
            latest_ns = start_ns.max(latest_ns);
            device.push(Bounds {
                work,
                start_ns,
                latest_ns,
                gap_ns: before.map_or(0, |before| start_ns - timeline.end_ns(before)),
                least_ns: called_ns.map(|ns| ns + limits::QUICKEST_LAUNCH_NS - start_ns),
                most_ns: most_ns.get(&work).copied(),
            });
            before = Some(work);
        }
    }
    for device in &mut devices {
        device.sort_by_key(|it| it.latest_ns);
    }
    devices
}

/// Returns the places of the first activities after each jump; none if there are too many for a
/// clock.
fn jumps(bounds: &[Bounds]) -> Vec<usize> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    while let Some((first, last)) = first_jump(&bounds[from..]) {
        found.push((from + first, from + last));
        from += last;
        if found.len() > limits::MOST_CLOCK_JUMPS {
            return Vec::new();
        }
    }
    let ends = found[..].iter().skip(1).map(|jump| jump.0).chain([bounds.len()]);
    let starts = [0].into_iter().chain(found.iter().map(|jump| jump.1));
    let pieces = starts.zip(&found).zip(ends);
    let place = |((start, &(first, last)), end): ((usize, &(usize, usize)), usize)| {
        let jump_ns = level_ns(&bounds[start..first]) - level_ns(&bounds[last..end.max(last)]);
        located(bounds, first..=last, jump_ns)
    };
    pieces.map(place).collect()
}

/// Returns the first place that may come first after the first jump, and the last.
fn first_jump(bounds: &[Bounds]) -> Option<(usize, usize)> {
    let (mut least, mut most) = (Tightest::NONE, Tightest::NONE);
    for (place, it) in bounds.iter().enumerate() {
        it.least_ns.into_iter().for_each(|ns| least.add(-ns, place));
        it.most_ns.into_iter().for_each(|ns| most.add(ns, place));
        let sides = Sides { least_ns: least.third_ns().map(|ns| -ns), most_ns: most.third_ns() };
        if sides.by_ns().is_some_and(|ns| ns > limits::UNEVEN_CLOCKS_NS) {
            return sides.jump(&bounds[..=place], [&least, &most]);
        }
    }
    None
}

/// Returns the shift in the middle of what most of some activities allow.
fn level_ns(bounds: &[Bounds]) -> i64 {
    let (mut least, mut most) = (Tightest::NONE, Tightest::NONE);
    for it in bounds {
        it.least_ns.into_iter().for_each(|ns| least.add(-ns, 0));
        it.most_ns.into_iter().for_each(|ns| most.add(ns, 0));
    }
    match (least.loosest_ns(), most.loosest_ns()) {
        (Some(least_ns), Some(most_ns)) => i64::midpoint(most_ns, -least_ns),
        (Some(least_ns), None) => limits::USUAL_RETURN_NS - least_ns,
        (None, Some(most_ns)) => most_ns - limits::USUAL_RETURN_NS,
        (None, None) => 0,
    }
}

/// Returns the activity before which a clock jumped ahead by `jump_ns`.
fn located(bounds: &[Bounds], places: RangeInclusive<usize>, jump_ns: i64) -> usize {
    let apart_ns = |place: &usize| (bounds[*place].gap_ns - jump_ns).abs();
    let nearest = places.clone().min_by_key(apart_ns);
    let exact = nearest.filter(|place| apart_ns(place) <= jump_ns.abs() / 2);
    // Otherwise, it jumped during an activity, or while the device was idle.
    let widest = || places.clone().max_by_key(|&place| (bounds[place].gap_ns, Reverse(place)));
    exact.or_else(widest).unwrap_or(*places.end())
}

/// The three tightest bounds of one kind, each with its place: a jump needs as many on either side.
struct Tightest([(i64, usize); limits::LEAST_CLOCK_EVIDENCE]);

impl Tightest {
    const NONE: Self = Self([(i64::MAX, 0); limits::LEAST_CLOCK_EVIDENCE]);

    fn add(&mut self, ns: i64, place: usize) {
        let behind = self.0.partition_point(|&(other_ns, _)| other_ns <= ns);
        if behind < self.0.len() {
            self.0[behind..].rotate_right(1);
            self.0[behind] = (ns, place);
        }
    }

    fn third_ns(&self) -> Option<i64> {
        let (ns, _) = self.0[self.0.len() - 1];
        (ns != i64::MAX).then_some(ns)
    }

    /// Returns the third, or the last of fewer.
    fn loosest_ns(&self) -> Option<i64> {
        self.0.iter().rev().map(|&(ns, _)| ns).find(|&ns| ns != i64::MAX)
    }

    /// Returns the second place of three in order: one of them may be wrong.
    fn middle(&self) -> usize {
        let mut places = self.0.map(|(_, place)| place);
        places.sort_unstable();
        places[places.len() / 2]
    }
}

/// The largest shift that the activities on one side of a jump need, and the smallest that those on
/// the other side allow.
#[derive(Clone, Copy)]
struct Sides {
    least_ns: Option<i64>,
    most_ns: Option<i64>,
}

impl Sides {
    /// Returns how far these are apart.
    fn by_ns(self) -> Option<i64> {
        Some(self.least_ns? - self.most_ns?)
    }

    /// Returns the first place that may come first after the jump, and the last: after the last
    /// activity that came before it for certain, and not after the first that came after it.
    fn jump(self, bounds: &[Bounds], [least, most]: [&Tightest; 2]) -> Option<(usize, usize)> {
        let needs_more = |it: &Bounds| it.least_ns.is_some_and(|ns| Some(ns) > self.most_ns);
        let needs_less = |it: &Bounds| it.most_ns.is_some_and(|ns| Some(ns) < self.least_ns);
        match least.middle().cmp(&most.middle()) {
            Ordering::Less => between(bounds, most.middle(), needs_more, needs_less),
            Ordering::Greater => between(bounds, least.middle(), needs_less, needs_more),
            Ordering::Equal => None,
        }
    }
}

fn between(
    bounds: &[Bounds],
    latest: usize,
    is_before: impl Fn(&Bounds) -> bool,
    is_after: impl Fn(&Bounds) -> bool,
) -> Option<(usize, usize)> {
    let first = bounds[..latest].iter().rposition(is_before)? + 1;
    let last = first + bounds[first..=latest].iter().position(is_after)?;
    Some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_000;

    /// Runs one activity each 100 us, 3 us after its call, with a wait that returns 2 us after it;
    /// the clock is ahead by `ahead_us` at each.
    fn ahead(ahead_us: &[i64]) -> Vec<Bounds> {
        let bounds = |(place, us): (usize, &i64)| Bounds {
            work: Order::from_row(place),
            start_ns: row_in_column(place).into(),
            latest_ns: row_in_column(place).into(),
            gap_ns: 50 * US + (us - ahead_us[place.saturating_sub(1)]) * US,
            least_ns: Some(-(us + 2) * US),
            most_ns: Some((2 - us) * US),
        };
        ahead_us.iter().enumerate().map(bounds).collect()
    }

    #[test]
    fn a_clock_is_cut_where_it_jumps() {
        assert_eq!(jumps(&ahead(&[0, 0, 0, 0, 14, 14, 14, 14])), [4]);
        assert_eq!(jumps(&ahead(&[0, 0, 0, -14, -14, -14])), [3]);
        assert_eq!(jumps(&ahead(&[40, 40, 40, 70, 70, 70, 0, 0, 0, 0])), [3, 6]);
    }

    #[test]
    fn a_clock_that_is_off_by_one_number_is_not_cut() {
        assert_eq!(jumps(&ahead(&[14; 9])), [0_usize; 0]);
        assert_eq!(jumps(&ahead(&[0, 3, -3, 0, 3, -3, 0, 3])), [0_usize; 0]);
    }

    #[test]
    fn one_or_two_wrong_timestamps_are_no_jump() {
        assert_eq!(jumps(&ahead(&[0, 0, 0, 500, 0, 0, -500, 0, 0])), [0_usize; 0]);
        assert_eq!(jumps(&ahead(&[0, 0, 0, 0, 0, 14, 14])), [0_usize; 0]);
    }

    #[test]
    fn a_clock_that_seems_to_jump_all_the_time_is_not_cut() {
        let steps: Vec<_> = (0..70).flat_map(|step| [100 * step; 3]).collect();
        assert_eq!(jumps(&ahead(&steps)), [0_usize; 0]);
        assert_eq!(jumps(&ahead(&steps[..30])).len(), 9);
    }

    #[test]
    fn a_jump_between_two_waits_lies_at_the_gap_that_it_explains() {
        let mut bounds = ahead(&[0, 0, 0, 14, 14, 14, 14, 14, 14]);
        for (it, gap_us) in bounds[3..6].iter_mut().zip([1, 15, 1]) {
            *it = Bounds { least_ns: Some(-900 * US), most_ns: None, gap_ns: gap_us * US, ..*it };
        }
        assert_eq!(jumps(&bounds), [4]);
    }
}
