//! Which nodes hang on each node, behind each other in one column.

/// Which nodes hang on each.
pub(super) struct Targets {
    first: Vec<u32>,
    targets: Vec<u32>,
}

impl Targets {
    pub(super) fn of(mut pairs: Vec<(u32, u32)>, n: usize) -> Self {
        pairs.sort_unstable();
        let mut first = vec![0; n + 1];
        for &(source, _) in &pairs {
            first[source as usize + 1] += 1;
        }
        for node in 0..n {
            first[node + 1] += first[node];
        }
        Self { first, targets: pairs.into_iter().map(|(_, target)| target).collect() }
    }

    pub(super) fn of_node(&self, node: usize) -> &[u32] {
        &self.targets[self.first[node] as usize..self.first[node + 1] as usize]
    }
}
