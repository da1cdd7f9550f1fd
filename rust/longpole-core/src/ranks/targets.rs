//! The targets of each node, stored in one column.

/// The targets of each node.
pub(super) struct Targets {
    first: Vec<u32>,
    targets: Vec<u32>,
}

impl Targets {
    /// Builds the targets from pairs of a node and its target. `pairs` is iterated twice, with the
    /// same result: the pairs are counted first, then stored, because there are too many to collect
    /// and sort.
    pub(super) fn of<I: Iterator<Item = (usize, u32)>>(n: usize, pairs: impl Fn() -> I) -> Self {
        // Counts are shifted by two, so that filling a node moves the start of the next one.
        let mut first = vec![0_u32; n + 2];
        for (source, _) in pairs() {
            first[source + 2] += 1;
        }
        for place in 2..first.len() {
            first[place] += first[place - 1];
        }
        let mut targets = vec![0; first[n + 1] as usize];
        for (source, target) in pairs() {
            targets[first[source + 1] as usize] = target;
            first[source + 1] += 1;
        }
        Self { first, targets }
    }

    pub(super) fn of_node(&self, node: usize) -> &[u32] {
        &self.targets[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Targets;

    #[test]
    fn targets_stand_with_their_node_in_the_order_given() {
        let pairs = [(2, 3), (0, 1), (2, 4), (0, 2), (2, 0)];
        let found = Targets::of(5, || pairs.into_iter());
        let rows: Vec<_> = (0..5).map(|node| found.of_node(node).to_vec()).collect();
        assert_eq!(rows, [vec![1, 2], vec![], vec![3, 4, 0], vec![], vec![]]);
    }
}
