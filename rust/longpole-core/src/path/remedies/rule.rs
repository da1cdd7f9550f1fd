//! Decides what limits a program, from the gains of its sides alone.

use super::Bounds;
use super::model::Side;
use crate::names::Names;

/// Minimum gain to report a side.
pub(super) const LEAST_GAIN: f64 = 0.05;

/// Two sides are reported if the second gains this share of the first. Of 300 simulated programs,
/// one in ten has two, and the best side is always among them.
const ALIKE: f64 = 0.8;

/// Host and kernels must shrink together if the best side gains less than this.
const MOST_ALONE: f64 = 0.15;

/// Minimum ratio of the gain of both to the best single gain.
const TOGETHER: f64 = 3.0;

/// The gain of each change as a share of the time; none below 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Gains {
    pub(super) sides: [f64; Side::ALL.len()],
    pub(super) kernels_and_host: f64,
}

/// What a verdict reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ruling {
    /// The sides that do something, largest gain first; empty if none gains much.
    pub(super) sides: Vec<Side>,
    /// Whether removing waits gains more than removing any other side.
    pub(super) waits_lead: bool,
    /// Whether only host and kernels together gain much.
    pub(super) nearly_balanced: bool,
}

impl Gains {
    fn side(&self, side: Side) -> f64 {
        self.sides[side as usize]
    }

    /// Returns the largest gain of a side that does something.
    fn best(&self) -> f64 {
        Side::WORK.iter().map(|&side| self.side(side)).fold(0.0, f64::max)
    }
}

/// Returns what a verdict reports.
pub(super) fn ruling(gains: &Gains) -> Ruling {
    let best = gains.best();
    let waits = gains.side(Side::Waits);
    let sides = named_sides(gains);
    Ruling {
        waits_lead: waits > best && waits >= LEAST_GAIN,
        nearly_balanced: !sides.is_empty()
            && best < MOST_ALONE
            && gains.kernels_and_host >= TOGETHER * best,
        sides,
    }
}

/// Returns the sides that limit the program regardless of missing records: `None` if the bounds of
/// the gains do not settle it, and an empty list if nothing can gain much. `named` are the sides by
/// the gains as timed.
pub(super) fn certain(bounds: &[Bounds], named: &[Side]) -> Option<Vec<Side>> {
    let (low, high) =
        (|side: Side| bounds[side as usize].low, |side: Side| bounds[side as usize].high);
    let highest = |left_out: &[Side]| {
        let others = Side::WORK.iter().filter(|side| !left_out.contains(side));
        others.map(|&side| high(side)).fold(0.0, f64::max)
    };
    if highest(&[]) < LEAST_GAIN {
        return Some(Vec::new());
    }
    let is_sure = |sides: &[Side]| {
        let least = sides.iter().map(|&side| low(side)).fold(1.0, f64::min);
        highest(sides) < least.max(LEAST_GAIN)
    };
    let best = Side::CHEAPEST_FIRST.into_iter().max_by(|&one, &two| low(one).total_cmp(&low(two)));
    let alone = named.first().copied().into_iter().chain(best).find(|&side| is_sure(&[side]));
    match alone {
        Some(side) if named.first() == Some(&side) => Some(named.to_vec()),
        Some(side) => Some(vec![side]),
        None => (named.len() > 1 && is_sure(named)).then(|| named.to_vec()),
    }
}

/// Returns the best side, and the second if it is similar. At equal gains, the one with less effort
/// comes first.
fn named_sides(gains: &Gains) -> Vec<Side> {
    let mut sides = Side::CHEAPEST_FIRST.to_vec();
    sides.sort_by(|&one, &two| gains.side(two).total_cmp(&gains.side(one)));
    let is_named =
        |side: &Side| gains.side(*side) >= LEAST_GAIN && gains.side(*side) >= ALIKE * gains.best();
    sides.into_iter().take(2).filter(is_named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(kernels: f64, host: f64, communication: f64, copies: f64) -> Gains {
        Gains { sides: [kernels, host, communication, copies, 0.0], ..Gains::default() }
    }

    #[test]
    fn the_side_that_gains_most_is_named() {
        assert_eq!(ruling(&gains(0.1, 0.31, 0.0, 0.02)).sides, [Side::Host]);
    }

    #[test]
    fn two_sides_that_gain_alike_are_both_named_the_cheaper_first() {
        assert_eq!(ruling(&gains(0.3, 0.3, 0.1, 0.0)).sides, [Side::Host, Side::Kernels]);
        assert_eq!(ruling(&gains(0.3, 0.2, 0.1, 0.0)).sides, [Side::Kernels]);
    }

    #[test]
    fn nothing_is_named_where_nothing_gains() {
        let ruling = ruling(&Gains { kernels_and_host: 0.67, ..gains(0.04, 0.02, 0.0, 0.0) });
        assert_eq!((ruling.sides.len(), ruling.nearly_balanced), (0, false));
    }

    #[test]
    fn host_and_kernels_that_gain_only_together_are_nearly_balanced() {
        let both = Gains { kernels_and_host: 0.95, ..gains(0.045, 0.12, 0.0, 0.0) };
        assert!(ruling(&both).nearly_balanced);
    }

    #[test]
    fn waits_lead_where_they_gain_more_than_every_side() {
        let mut waits = gains(0.2, 0.1, 0.0, 0.0);
        waits.sides[Side::Waits as usize] = 0.3;
        assert!(ruling(&waits).waits_lead);
        waits.sides[Side::Waits as usize] = 0.2;
        assert!(!ruling(&waits).waits_lead);
    }
}
