//! Which streams a thread launched on lately: the best hint at the stream that a call
//! means and does not name.

use crate::ids::RowMap;

/// The streams a thread launched on so far.
#[derive(Debug, Clone, Default)]
pub(in crate::graph) struct Recent {
    /// The one launched on last at the end. A stream counts where it stands last: taking it out
    /// before would cost a pass over all streams for each launch.
    streams: Vec<usize>,
    /// Where each stream stands last.
    last: RowMap<usize, usize>,
}

/// As many places may be out of date as there are streams, and a few more.
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

    /// The one launched on last comes first.
    pub(in crate::graph) fn streams(&self) -> impl Iterator<Item = usize> + '_ {
        let places = self.streams.iter().enumerate().rev();
        places.filter(|&(place, stream)| self.last[stream] == place).map(|(_, &stream)| stream)
    }

    /// Keeps each stream once.
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
