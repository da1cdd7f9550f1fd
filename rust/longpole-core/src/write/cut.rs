//! Copies a trace without some of its events, byte for byte, as a stream.
//!
//! This makes it possible to extract one step from a file of gigabytes. Everything outside the
//! event list is kept, and the kept events are copied unchanged.
//!
//! Limits: the text must be valid JSON, which is known because it was read before. Only brackets
//! and quotation marks are parsed.

/// The state of copying a trace, and which of its events are left out.
#[derive(Debug, Clone)]
pub struct Cut {
    is_kept: Vec<bool>,
    position: usize,
    state: State,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// The last string at the depth of the document members, without quotation marks.
    key: Vec<u8>,
    n_written: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside the event list.
    Around,
    /// Between two events of the list, which is at this depth.
    Between(usize),
    /// Inside an event, at this depth; `true` if it is kept.
    Inside(usize, bool),
}

/// Longer than any relevant key.
const LONGEST_KEY: usize = 32;

impl Cut {
    /// Creates a copier that keeps the events whose flag is true; events beyond the list are left
    /// out.
    pub fn new(is_kept: Vec<bool>) -> Self {
        Self {
            is_kept,
            position: 0,
            state: State::Around,
            depth: 0,
            in_text: false,
            is_escaped: false,
            key: Vec::new(),
            n_written: 0,
        }
    }

    /// Returns the number of events written.
    pub fn n_written(&self) -> usize {
        self.n_written
    }

    /// Processes the next part of the document and returns the kept text.
    pub fn feed(&mut self, text: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(text.len() / 4);
        for &byte in text {
            self.take(byte, &mut kept);
        }
        kept
    }

    fn take(&mut self, byte: u8, kept: &mut Vec<u8>) {
        if self.in_text {
            self.take_text(byte);
        } else {
            if self.ends_value(byte) {
                self.end_event();
            }
            if let State::Between(depth) = self.state
                && self.begins_event(byte, depth, kept)
            {
                return;
            }
            self.take_mark(byte);
        }
        if matches!(self.state, State::Around | State::Inside(_, true)) {
            kept.push(byte);
        }
        if let State::Inside(depth, _) = self.state {
            if !self.in_text && self.depth == depth && matches!(byte, b'}' | b']' | b'"') {
                self.end_event();
            }
        } else if byte == b'[' && self.is_list() {
            self.state = State::Between(self.depth);
        }
    }

    fn take_text(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.is_escaped;
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        self.in_text = !ends;
        let is_key = self.depth == 1 && self.state == State::Around;
        if is_key && !ends && self.key.len() < LONGEST_KEY {
            self.key.push(byte);
        }
    }

    fn take_mark(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_text = true;
                if self.depth == 1 {
                    self.key.clear();
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether the bracket that was just read opens the event list.
    fn is_list(&self) -> bool {
        let is_member = self.depth == 2 && self.key == b"traceEvents";
        self.state == State::Around && !self.in_text && (self.depth == 1 || is_member)
    }

    /// Whether a number or a word, which has no closing bracket, has ended.
    fn ends_value(&self, byte: u8) -> bool {
        let is_over = matches!(byte, b',' | b']') || byte.is_ascii_whitespace();
        matches!(self.state, State::Inside(depth, _) if depth == self.depth) && is_over
    }

    /// Processes a byte between events; returns true if it is left out.
    fn begins_event(&mut self, byte: u8, depth: usize, kept: &mut Vec<u8>) -> bool {
        if byte == b',' || byte.is_ascii_whitespace() {
            return true;
        }
        if byte == b']' {
            kept.push(b'\n');
            self.state = State::Around;
            // A list that follows is not an event list.
            self.key.clear();
            return false;
        }
        let is_kept = self.is_kept.get(self.position).copied().unwrap_or(false);
        if is_kept {
            kept.extend_from_slice(if self.n_written == 0 { b"\n" } else { b",\n" });
            self.n_written += 1;
        }
        self.position += 1;
        self.state = State::Inside(depth, is_kept);
        false
    }

    fn end_event(&mut self) {
        if let State::Inside(depth, _) = self.state {
            self.state = State::Between(depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, is_kept: &[bool]) -> String {
        let mut cut = Cut::new(is_kept.to_vec());
        String::from_utf8(cut.feed(text.as_bytes())).unwrap()
    }

    #[test]
    fn what_stands_around_is_kept_and_events_are_chosen() {
        let text = r#"{"a":[1,"traceEvents"],"traceEvents":[{"n":"a]\"}{"}, {"x":[{}]} ,3,{"y":1}],"z":[]}"#;
        assert_eq!(
            cut(text, &[true, false, false, true]),
            "{\"a\":[1,\"traceEvents\"],\"traceEvents\":[\n{\"n\":\"a]\\\"}{\"},\n{\"y\":1}\n],\"z\":[]}"
        );
        assert_eq!(
            cut(text, &[false, true, true, false]),
            "{\"a\":[1,\"traceEvents\"],\"traceEvents\":[\n{\"x\":[{}]},\n3\n],\"z\":[]}"
        );
    }

    #[test]
    fn a_bare_list_is_a_list_of_events() {
        assert_eq!(cut(r#" [{"a":1},{"b":"["}] "#, &[false, true]), " [\n{\"b\":\"[\"}\n] ");
        assert_eq!(cut("[]", &[]), "[\n]");
    }

    #[test]
    fn parts_of_any_length_give_the_same() {
        let text =
            r#"{"traceEvents": [{"a": "\\\""}, {"b": [1, {"c": "}"}]}, {"d": 2}], "e": "[{"}"#;
        let whole = cut(text, &[true, false, true]);
        for length in 1..9 {
            let mut cut = Cut::new(vec![true, false, true]);
            let parts: Vec<_> =
                text.as_bytes().chunks(length).flat_map(|part| cut.feed(part)).collect();
            assert_eq!(String::from_utf8(parts).unwrap(), whole);
            assert_eq!(cut.n_written(), 2);
        }
    }
}
