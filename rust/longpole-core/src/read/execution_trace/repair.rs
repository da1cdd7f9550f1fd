//! Repairs nodes that are not valid JSON.
//!
//! PyTorch writes names without escapes. The name of a damaged node is assumed to end at the first
//! quotation mark after which the next member of a node begins.

use crate::read::json::significant;

/// Members that may follow the name of a node.
const FOLLOWING: [&[u8]; 6] = [b"ctrl_deps", b"parent", b"id", b"rf_id", b"inputs", b"attrs"];

/// Returns the end of the node at the front of `text`, found by what follows it: the next node,
/// which begins with the key `first_key`, or the end of the list. `None` if the text contains
/// neither.
pub(super) fn end_of_node(text: &[u8], first_key: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'}', text)
        .map(|at| at + 1)
        .find(|&end| begins_behind(&text[end..], first_key))
}

/// Whether a node has just ended, and another one or the end of the list follows.
fn begins_behind(text: &[u8], first_key: &[u8]) -> bool {
    let rest = significant(text);
    if let Some(rest) = rest.strip_prefix(b",") {
        let inside = significant(rest).strip_prefix(b"{").map(significant);
        return inside.and_then(|inside| key(inside)).is_some_and(|(key, _)| key == first_key);
    }
    rest.strip_prefix(b"]").map(significant).is_some_and(ends_list)
}

/// Whether the text after a bracket can follow the list of nodes.
fn ends_list(rest: &[u8]) -> bool {
    match rest.strip_prefix(b",") {
        Some(rest) => key(significant(rest)).is_some_and(|(key, _)| key.ends_with(b"_ts")),
        None => rest.strip_prefix(b"}").is_some_and(|rest| significant(rest).is_empty()),
    }
}

/// Returns the key at the front of `text`, and the text after its colon.
fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = text.strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', inside)?;
    let rest = significant(&inside[end + 1..]).strip_prefix(b":")?;
    Some((&inside[..end], rest))
}

/// Returns the node with its name escaped; `None` if the name is not the problem.
pub(super) fn with_escaped_name(node: &[u8]) -> Option<Vec<u8>> {
    let start = start_of_name(node)?;
    let length = memchr::memchr_iter(b'"', &node[start..]).find(|&at| {
        let rest = significant(&node[start + at + 1..]).strip_prefix(b",");
        rest.and_then(|rest| key(significant(rest)))
            .is_some_and(|(key, _)| FOLLOWING.contains(&key))
    })?;
    let name = &node[start..start + length];
    let mut fixed = node[..start].to_vec();
    let mut escaped = false;
    for &byte in name {
        if byte == b'"' && !escaped {
            fixed.push(b'\\');
        }
        escaped = byte == b'\\' && !escaped;
        fixed.push(byte);
    }
    fixed.extend(&node[start + length..]);
    Some(fixed)
}

fn start_of_name(node: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(node, b"\"name\"")?;
    let rest = significant(&node[at + 6..]).strip_prefix(b":")?;
    let inside = significant(rest).strip_prefix(b"\"")?;
    Some(node.len() - inside.len())
}
