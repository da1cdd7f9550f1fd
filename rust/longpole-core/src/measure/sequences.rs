//! Numbers the sequences of values in groups of rows, so that equal sequences get equal numbers.
//!
//! Each group walks through a tree of all sequences, one step for each of its rows; its final node
//! is its number. Nothing is copied, and no two sequences are compared.

use std::collections::HashMap;

/// The root of the tree: no value seen yet.
const ROOT: u32 = 0;

/// Returns the sequence number of each group. Rows of different groups may be interleaved.
///
/// ```
/// use longpole_core::measure::sequences;
/// // The groups 0 and 2 both have the values 5, 6.
/// let numbers = sequences([(0, 5), (1, 5), (0, 6), (2, 5), (2, 6)], 3);
/// assert!(numbers[0] == numbers[2] && numbers[0] != numbers[1]);
/// ```
pub fn sequences(rows: impl IntoIterator<Item = (u32, u32)>, n_groups: usize) -> Vec<u32> {
    let mut node = vec![ROOT; n_groups];
    let mut steps: HashMap<(u32, u32), u32> = HashMap::new();
    for (group, value) in rows {
        if let Some(node) = node.get_mut(group as usize) {
            let next = crate::ids::row_in_column(steps.len()) + 1;
            *node = *steps.entry((*node, value)).or_insert(next);
        }
    }
    node
}
