//! Which streams a thread launched on lately: the best hint at the stream that a call
//! means and does not name.

/// The streams a thread launched on so far.
#[derive(Debug, Clone, Default)]
pub(in crate::graph) struct Recent {
    /// Each once, the one launched on last at the end.
    streams: Vec<usize>,
}

impl Recent {
    pub(in crate::graph) fn launched_on(&mut self, stream: usize) {
        if self.streams.last() != Some(&stream) {
            self.streams.retain(|&other| other != stream);
            self.streams.push(stream);
        }
    }

    /// The one launched on last comes first.
    pub(in crate::graph) fn streams(&self) -> impl Iterator<Item = usize> + '_ {
        self.streams.iter().rev().copied()
    }
}
