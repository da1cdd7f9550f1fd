//! The effect of several what-ifs on the latency of each edge.
//!
//! A what-if is a lane. Most edges change in no lane, and many change alike: a row holds the effect
//! in all lanes, and each edge stores the number of its row.

use std::collections::HashMap;

use super::changes;
use super::changes::{Change, Effect, REMOVED, Ratio};
use super::chosen::EdgesOf;
use crate::error::Result;
use crate::graph::{Edge, Graph, Kind, Role};
use crate::names::Names;
use crate::tables::Tables;

/// The time of a node in each lane.
pub(in crate::path) type Times<const LANES: usize> = [f64; LANES];

/// Row 0: no change.
const KEPT: u32 = 0;

/// Larger times cannot be rounded by adding [`ROUNDING`].
const MOST_ROUNDED_NS: i64 = 1 << 51;

/// A sum with this constant has no fractional digits. It rounds half to even, as [`changes::Ratio::of`]
/// does.
const ROUNDING: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// The effect on a latency in one lane: multiply, then add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Cell {
    factor: Ratio,
    /// [`REMOVED`] if the edge is removed.
    added_ns: i64,
}

impl Cell {
    const KEPT: Self = Self { factor: changes::Ratio::ONE, added_ns: 0 };

    /// Returns the cell after one more effect. Removed edges stay removed.
    fn after(self, effect: Effect) -> Self {
        match effect {
            _ if self.added_ns == REMOVED => self,
            Effect::RemoveWait => Self { factor: changes::Ratio::ZERO, added_ns: REMOVED },
            Effect::Scale(by) => {
                Self { factor: self.factor.times(by), added_ns: by.of(self.added_ns) }
            }
            Effect::Replace(length_ns) => {
                Self { factor: changes::Ratio::ZERO, added_ns: length_ns }
            }
            Effect::Insert(more_ns) => {
                Self { added_ns: self.added_ns.saturating_add(more_ns), ..self }
            }
        }
    }

    /// Returns the cell with its factor limited to at most `by`.
    fn at_most(self, by: Ratio) -> Self {
        let is_less = self.added_ns == REMOVED || self.factor.as_f64() <= by.as_f64();
        if is_less { self } else { Self { factor: by, ..self } }
    }

    fn of(self, latency_ns: i64) -> i64 {
        match self.added_ns {
            REMOVED => REMOVED,
            added_ns => self.factor.of(latency_ns).saturating_add(added_ns),
        }
    }
}

/// The effect on a latency in each lane.
#[derive(Debug, Clone)]
struct Row<const LANES: usize> {
    cells: [Cell; LANES],
    is_kept: bool,
    /// Whether rounding in floating point is exact for the products of a time with all factors.
    is_exact: bool,
    factors: Times<LANES>,
    added_ns: Times<LANES>,
}

impl<const LANES: usize> Row<LANES> {
    fn of(cells: [Cell; LANES]) -> Self {
        let added_ns = |cell: Cell| match cell.added_ns {
            REMOVED => f64::NEG_INFINITY,
            added_ns => float(added_ns),
        };
        Self {
            is_kept: cells == [Cell::KEPT; LANES],
            is_exact: cells.iter().all(|cell| cell.factor.is_exact_as_f64()),
            factors: cells.map(|cell| cell.factor.as_f64()),
            added_ns: cells.map(added_ns),
            cells,
        }
    }

    /// Returns the latency in each lane; negative infinity if the edge is removed.
    #[inline]
    fn latencies(&self, latency_ns: i64) -> Times<LANES> {
        let whole = float(latency_ns);
        if self.is_kept {
            return [whole; LANES];
        }
        let mut latencies = self.added_ns;
        if self.is_exact && latency_ns.abs() < MOST_ROUNDED_NS {
            for (latency, factor) in latencies.iter_mut().zip(self.factors) {
                *latency += (whole * factor + ROUNDING) - ROUNDING;
            }
        } else {
            for (latency, cell) in latencies.iter_mut().zip(self.cells) {
                *latency += float(cell.factor.of(latency_ns));
            }
        }
        latencies
    }
}

/// The effect on the latency of each edge in each lane.
pub(in crate::path) struct Rows<const LANES: usize> {
    known: Vec<Row<LANES>>,
    number_of: HashMap<[Cell; LANES], u32>,
    /// The row of each edge.
    of_edge: Vec<u32>,
}

impl<const LANES: usize> Default for Rows<LANES> {
    fn default() -> Self {
        let kept = [Cell::KEPT; LANES];
        Self {
            known: vec![Row::of(kept)],
            number_of: HashMap::from([(kept, KEPT)]),
            of_edge: Vec::new(),
        }
    }
}

impl<const LANES: usize> Rows<LANES> {
    /// Computes the effects of the changes of each lane, replacing earlier results.
    ///
    /// # Errors
    ///
    /// Returns an error if a pattern is not a valid regular expression.
    pub(in crate::path) fn find(
        &mut self,
        lanes: &[&[Change]],
        graph: &Graph,
        edges_of: &EdgesOf<'_>,
        tables: &Tables,
    ) -> Result<()> {
        self.known.truncate(1);
        self.number_of.retain(|_, number| *number == KEPT);
        self.of_edge.clear();
        self.find_plain(lanes, graph);
        for (lane, changes) in lanes.iter().enumerate() {
            for change in changes.iter().filter(|change| !change.is_plain()) {
                let chosen = edges_of.chosen(change, tables)?;
                self.change(&chosen, lane, |cell| cell.after(change.effect));
            }
        }
        Ok(())
    }

    /// Applies the changes that select by kind only: the effect on an edge follows from its kind
    /// and role.
    fn find_plain(&mut self, lanes: &[&[Change]], graph: &Graph) {
        let cell = |kind: Kind, role: Role, changes: &[Change]| {
            let is_meant = |change: &&Change| match change.effect {
                Effect::RemoveWait => role.waits() == Some(change.kind.unwrap_or(Kind::SyncReturn)),
                _ => change.kind.map_or(kind.is_work(), |of| of == kind),
            };
            let plain = changes.iter().filter(|change| change.is_plain());
            plain.filter(is_meant).fold(Cell::KEPT, |cell, change| cell.after(change.effect))
        };
        let mut of_words = Vec::with_capacity(Kind::ALL.len() * Role::ALL.len());
        for &kind in Kind::ALL {
            for &role in Role::ALL {
                let mut cells = [Cell::KEPT; LANES];
                for (of_lane, changes) in cells.iter_mut().zip(lanes) {
                    *of_lane = cell(kind, role, changes);
                }
                of_words.push(self.number(cells));
            }
        }
        let edges = graph.edges.as_slice().iter();
        let of_edge =
            |edge: &Edge| of_words[edge.kind as usize * Role::ALL.len() + edge.role as usize];
        self.of_edge.extend(edges.map(of_edge));
    }

    /// Applies an effect to some edges in a lane.
    fn change(&mut self, edges: &[u32], lane: usize, after: impl Fn(Cell) -> Cell) {
        let mut last = None;
        for &edge in edges {
            let before = self.of_edge[edge as usize];
            let row = match last {
                Some((known, row)) if known == before => row,
                _ => {
                    let mut cells = self.known[before as usize].cells;
                    cells[lane] = after(cells[lane]);
                    self.number(cells)
                }
            };
            last = Some((before, row));
            self.of_edge[edge as usize] = row;
        }
    }

    /// Limits the factor of an edge to at most `by` in a lane.
    pub(in crate::path) fn at_most(&mut self, edge: u32, lane: usize, by: Ratio) {
        self.change(&[edge], lane, |cell| cell.at_most(by));
    }

    fn number(&mut self, cells: [Cell; LANES]) -> u32 {
        *self.number_of.entry(cells).or_insert_with(|| {
            self.known.push(Row::of(cells));
            crate::ids::row_in_column(self.known.len() - 1)
        })
    }

    /// Returns the latency of an edge in each lane, and whether it is the same in all lanes.
    #[inline]
    pub(in crate::path) fn latencies(&self, edge: usize, latency_ns: i64) -> (Times<LANES>, bool) {
        let row = &self.known[self.of_edge[edge] as usize];
        (row.latencies(latency_ns), row.is_kept)
    }
}

impl Rows<1> {
    /// Returns the latencies of a single what-if, [`REMOVED`] for removed edges. The part of a
    /// latency that has passed by `from_ns` is kept.
    pub(super) fn latencies_ns(
        &self,
        latencies_ns: &[i64],
        graph: &Graph,
        from_ns: Option<i64>,
    ) -> Vec<i64> {
        let from_ns = from_ns.unwrap_or(i64::MIN);
        let changed_ns = |(number, edge): (usize, &Edge)| {
            let (row, whole_ns) =
                (&self.known[self.of_edge[number] as usize], latencies_ns[number]);
            if row.is_kept || graph.nodes.time_ns(edge.target) <= from_ns {
                return whole_ns;
            }
            let passed_ns = edge.passed_ns(whole_ns, from_ns, &graph.nodes);
            match row.cells[0].of(whole_ns - passed_ns) {
                REMOVED => REMOVED,
                left_ns => passed_ns.saturating_add(left_ns),
            }
        };
        graph.edges.as_slice().iter().enumerate().map(changed_ns).collect()
    }
}

#[allow(clippy::cast_precision_loss)] // exact below 2^53
pub(in crate::path) fn float(time_ns: i64) -> f64 {
    time_ns as f64
}

#[allow(clippy::cast_possible_truncation)] // a sum of integers
pub(in crate::path) fn integer(time_ns: f64) -> i64 {
    time_ns as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_has_its_own_effect() {
        let scale =
            |numerator, denominator| Effect::Scale(Ratio::new(numerator, denominator).unwrap());
        let effects =
            [scale(1, 1), scale(1, 2), scale(2, 7), Effect::RemoveWait, Effect::Insert(5)];
        let row = Row::of(effects.map(|effect| Cell::KEPT.after(effect)));
        assert_eq!(row.latencies(7).map(integer), [7, 4, 2, i64::MIN, 12]);
    }

    #[test]
    fn a_latency_is_rounded_as_its_ratio_rounds_it() {
        for (numerator, denominator) in [(0, 1), (1, 2), (1, 3), (3, 2), (29, 100)] {
            let ratio = Ratio::new(numerator, denominator).unwrap();
            let row = Row::of([Cell::KEPT.after(Effect::Scale(ratio))]);
            for latency_ns in (-9..10).chain([1_000_000_007, (1 << 51) + 1]) {
                assert_eq!(
                    integer(row.latencies(latency_ns)[0]),
                    ratio.of(latency_ns),
                    "{ratio:?} {latency_ns}"
                );
            }
        }
    }

    #[test]
    fn effects_follow_each_other() {
        let half = Effect::Scale(Ratio::HALF);
        let after = |effects: &[Effect]| {
            effects.iter().fold(Cell::KEPT, |cell, effect| cell.after(*effect)).of(100)
        };
        assert_eq!(after(&[half, half]), 25);
        assert_eq!(after(&[Effect::Replace(30), Effect::Insert(4)]), 34);
        assert_eq!(after(&[Effect::Insert(4), half]), 52);
        assert_eq!(after(&[Effect::RemoveWait, Effect::Insert(4)]), REMOVED);
    }
}
