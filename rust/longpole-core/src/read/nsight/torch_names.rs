//! Parses the text that PyTorch writes into NVTX ranges:
//! `aten::mm, seq = 3, op_id = 12, sizes = [[2, 3]]`.
//!
//! Limits: under `emit_nvtx` a user range has the same form as an operator. Operators are
//! identified by their names: those with a namespace (`aten::mm`) and those of the autograd engine.

use crate::vocabulary::{is_backward_node, is_engine_work};

/// The operator with which PyTorch records a collective.
const COLLECTIVE_RECORD: &str = "record_param_comms";

/// A name written by PyTorch, and the values after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TorchName {
    pub(super) name: String,
    /// The number of the call, counted by PyTorch.
    pub(super) id: i64,
    pub(super) sequence: Option<i64>,
    pub(super) sizes: Option<String>,
    pub(super) is_operator: bool,
}

impl TorchName {
    /// Parses the text of a range, if PyTorch wrote it.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (front, behind) = text.split_once(", op_id = ")?;
        let (id, behind) = leading_number(behind)?;
        let (name, sequence) = match front.rsplit_once(", seq = ") {
            Some((name, digits)) => (name, Some(digits.parse().ok()?)),
            None => (front, None),
        };
        Some(Self {
            name: name.to_owned(),
            id,
            sequence,
            sizes: sizes_of(behind).ok()?,
            is_operator: is_of_namespace(name)
                || is_engine_work(name)
                || is_backward_node(name)
                || name == COLLECTIVE_RECORD,
        })
    }
}

/// Whether a name is that of an operator in a namespace, unlike `FSDP::pre_forward (layer.1)`.
fn is_of_namespace(name: &str) -> bool {
    name.contains("::")
        && name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && !name.contains(char::is_whitespace)
}

/// Returns the number at the front, and the text after it.
fn leading_number(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Returns the shapes of the inputs, if any; an error if the text is something else.
fn sizes_of(text: &str) -> Result<Option<String>, ()> {
    if text.is_empty() || text.starts_with(", input_op_ids = ") {
        return Ok(None);
    }
    let sizes = text.strip_prefix(", sizes = ").ok_or(())?;
    Ok(sizes.split(", input_op_ids = ").next().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_told_by_its_name_and_numbers() {
        let text = "aten::mm, seq = 3, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(4,0)]";
        let name = TorchName::of(text).unwrap();
        assert_eq!((name.name.as_str(), name.id, name.sequence), ("aten::mm", 12, Some(3)));
        assert_eq!(name.sizes.as_deref(), Some("[[2, 3], []]"));
        assert!(name.is_operator);
        assert!(TorchName::of("AddmmBackward0, seq = 3, op_id = 7").unwrap().is_operator);
    }

    #[test]
    fn a_range_of_the_user_is_no_operator() {
        for text in ["forward, op_id = 5", "FSDP::pre_forward (layer.1), op_id = 5"] {
            assert!(!TorchName::of(text).unwrap().is_operator, "{text}");
        }
        for text in ["forward", "step, op_id = x", "a, op_id = 5 and more", ""] {
            assert_eq!(TorchName::of(text), None, "{text}");
        }
    }
}
