//! Device and stream numbers in the names of Perfetto tracks.
//!
//! rocprofv3 writes `STREAM [" 0 "]`, `COMPUTE AGENT [4] QUEUE [0] GPU` and `COPY to AGENT [4]`,
//! longpole `device 0, stream 7`.

/// Returns the device and stream numbers in a name.
pub fn track_numbers(name: &str) -> (Option<i64>, Option<i64>) {
    let lower = name.to_ascii_lowercase();
    let first = |words: &[&str]| words.iter().find_map(|word| number_behind(&lower, word));
    (first(&["device", "agent", "gpu"]), first(&["stream", "queue"]))
}

/// Returns the number of a rocprofv3 agent, as in `Agent-4`.
pub fn agent_number(name: &str) -> Option<i64> {
    name.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().ok()
}

/// Returns the number after a word, with only brackets and spaces in between.
fn number_behind(text: &str, word: &str) -> Option<i64> {
    let (_, rest) = text.split_once(word)?;
    let digits = rest.trim_start_matches([' ', '[', '"', '#', ':', '-']);
    digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_name_devices_and_streams() {
        assert_eq!(track_numbers("device 0, stream 7"), (Some(0), Some(7)));
        assert_eq!(track_numbers("STREAM [\" 3 \"] "), (None, Some(3)));
        assert_eq!(track_numbers("COMPUTE AGENT [4] QUEUE [1] GPU"), (Some(4), Some(1)));
        assert_eq!(track_numbers("THREAD 1 (8215)"), (None, None));
        assert_eq!(agent_number("Agent-4"), Some(4));
    }
}
