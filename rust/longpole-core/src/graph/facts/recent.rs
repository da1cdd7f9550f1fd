//! The streams that a thread launched on most recently. They are the best evidence for the stream
//! of a call that does not name one.

use crate::ids::RowMap;

/// The streams that a thread has launched on so far.
#[derive(Debug, Clone, Default)]
pub(in crate::graph) struct Recent {
    /// In order of launch, latest last. Only the last occurrence of a stream counts: removing
    /// earlier ones would cost a pass over all streams for each launch.
    streams: Vec<usize>,
    /// Index of the last occurrence of each stream.
    last: RowMap<usize, usize>,
}

/// Number of outdated entries allowed beyond the number of streams.
const FEW: usize = 16;

impl Recent {
    pub(in crate::graph) fn launched_on(&mut self, stream: usize) {
        if self.streams.last() == Some(&stream) {
            return;
        }
        if self.streams.len() >= 2 * self.last.len() + FEW {
            self.tidy();
        }
        self.last.insert(stream, self.streams.len());
        self.streams.push(stream);
    }

    /// Returns the streams, latest launch first.
    pub(in crate::graph) fn streams(&self) -> impl Iterator<Item = usize> + '_ {
        let places = self.streams.iter().enumerate().rev();
        places.filter(|&(place, stream)| self.last[stream] == place).map(|(_, &stream)| stream)
    }

    /// Removes outdated entries.
    fn tidy(&mut self) {
        let mut streams: Vec<_> = self.streams().collect();
        streams.reverse();
        self.last = streams.iter().enumerate().map(|(place, &stream)| (stream, place)).collect();
        self.streams = streams;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_is_given_once_the_last_first() {
        let mut recent = Recent::default();
        for round in 0..100 {
            for stream in [7, 8, 7, 9 + round % 2] {
                recent.launched_on(stream);
            }
        }
        assert_eq!(recent.streams().collect::<Vec<_>>(), [10, 7, 8, 9]);
        assert!(recent.streams.len() < 40);
    }
}
