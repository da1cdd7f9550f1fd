//! Data dependencies: which node reads a storage that another node wrote.
//!
//! A tensor contains its storage id. In older traces storage ids are recycled addresses, so an id
//! alone does not identify a storage: a reader sees what was last written to that id, and a storage
//! on another device is a different one. Only nodes without children count, because the others read
//! and write through these.

use std::collections::HashMap;

use crate::ids::StringId;
use crate::strings::Strings;
use crate::tables::{ExecutionNode, ExecutionTrace};

/// A storage, as far as the file identifies it.
type Storage<'a> = (i64, &'a str);

/// Returns rows of writers and readers, sorted by reader, each pair once.
pub(super) fn reads_after_writes(trace: &ExecutionTrace) -> Vec<(usize, usize)> {
    let has_children = has_children(trace);
    let mut in_place = InPlace { strings: &trace.strings, known: HashMap::new() };
    let mut last_writer: HashMap<Storage<'_>, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (row, node) in trace.nodes.iter().enumerate().filter(|&(row, _)| !has_children[row]) {
        let read = tensors(trace.strings.get(node.inputs.values));
        let before = pairs.len();
        for (_, tensor) in &read {
            let writer = last_writer.get(&tensor.storage()).copied();
            pairs.extend(writer.filter(|&writer| writer != row).map(|writer| (writer, row)));
        }
        pairs[before..].sort_unstable();
        for tensor in written(node, trace, &read, &mut in_place) {
            last_writer.insert(tensor.storage(), row);
        }
    }
    pairs.dedup();
    pairs
}

fn has_children(trace: &ExecutionTrace) -> Vec<bool> {
    let mut has_children = vec![false; trace.nodes.len()];
    for row in 0..trace.nodes.len() {
        if let Some(parent) = trace.parent(row) {
            has_children[parent] = true;
        }
    }
    has_children
}

/// Returns the outputs, and the inputs that the schema marks as written.
fn written<'a>(
    node: &ExecutionNode,
    trace: &'a ExecutionTrace,
    read: &[(usize, Tensor<'a>)],
    in_place: &mut InPlace<'_>,
) -> Vec<Tensor<'a>> {
    let arguments = in_place.arguments(node.op_schema);
    let altered = read.iter().filter(|(place, _)| arguments.contains(place));
    let outputs = tensors(trace.strings.get(node.outputs.values));
    outputs
        .into_iter()
        .map(|(_, tensor)| tensor)
        .chain(altered.map(|&(_, tensor)| tensor))
        .collect()
}

/// The arguments that each schema marks as written, as in `Tensor(a!) self`.
struct InPlace<'a> {
    strings: &'a Strings,
    known: HashMap<StringId, Vec<usize>>,
}

impl InPlace<'_> {
    fn arguments(&mut self, schema: StringId) -> &[usize] {
        let strings = self.strings;
        self.known.entry(schema).or_insert_with(|| written_arguments(strings.get(schema)))
    }
}

fn written_arguments(schema: &str) -> Vec<usize> {
    let inside = schema.split("->").next().unwrap_or_default();
    let inside = inside.split_once('(').map_or("", |(_, inside)| inside);
    let arguments = inside.split(", ").filter(|argument| *argument != "*");
    arguments
        .enumerate()
        .filter(|(_, argument)| argument.contains("!)"))
        .map(|(place, _)| place)
        .collect()
}

/// A tensor: `[id, storage id, offset, elements, item size, device]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tensor<'a> {
    storage: i64,
    device: &'a str,
    /// Number of elements times their size.
    pub(super) bytes: i64,
}

impl<'a> Tensor<'a> {
    fn storage(self) -> Storage<'a> {
        (self.storage, self.device)
    }
}

/// Returns the tensors in a list of values, at any depth, with the index of the argument. A storage
/// id of 0 means none.
pub(super) fn tensors(values: &str) -> Vec<(usize, Tensor<'_>)> {
    let mut found = Vec::new();
    let (mut depth, mut argument, mut start) = (0_usize, 0, 0);
    let mut in_text = false;
    let bytes = values.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' => {
                depth += 1;
                start = at + 1;
            }
            b']' => {
                let inside = &values[start.min(at)..at];
                found.extend(tensor(inside).map(|tensor| (argument, tensor)));
                depth = depth.saturating_sub(1);
                start = at + 1;
            }
            b',' if depth == 1 => argument += 1,
            _ => {}
        }
        at += 1;
    }
    found
}

fn tensor(inside: &str) -> Option<Tensor<'_>> {
    let device = inside.strip_suffix('"')?;
    let (numbers, device) = device.split_once('"')?;
    let numbers = numbers.trim_end().strip_suffix(',')?;
    let numbers: Vec<i64> =
        numbers.split(',').map(|number| number.trim().parse()).collect::<Result<_, _>>().ok()?;
    let &[_, storage, _, elements, item, ..] = numbers.as_slice() else { return None };
    let bytes = elements.saturating_mul(item);
    (numbers.len() == 5 && storage != 0).then_some(Tensor { storage, device, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_found_at_any_depth() {
        let values = r#"[[1,2,0,4,4,"cpu"], [[3,5,0,9,4,"cuda:0"],[4,0,0,9,4,"cpu"]], "a]", 7]"#;
        let found = tensors(values);
        let cpu = Tensor { storage: 2, device: "cpu", bytes: 16 };
        let cuda = Tensor { storage: 5, device: "cuda:0", bytes: 36 };
        assert_eq!(found, [(0, cpu), (1, cuda)]);
    }

    #[test]
    fn a_schema_says_what_it_writes() {
        let schema = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)";
        assert_eq!(written_arguments(schema), [3]);
        assert_eq!(written_arguments("aten::mm(Tensor self) -> Tensor(a!)"), [] as [usize; 0]);
        assert_eq!(written_arguments(""), [] as [usize; 0]);
    }
}
