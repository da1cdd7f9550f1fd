//! Descriptive statistics: mean, standard deviation, extremes and quartiles.
//!
//! They are needed for every name, stream and cause, so quartiles are found without sorting.

use std::collections::HashMap;

/// Descriptive statistics of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; NaN for a single value.
    pub std: f64,
    /// The minimum.
    pub min: i64,
    /// The three quartiles, with linear interpolation.
    pub quartiles: [f64; 3],
    /// The maximum.
    pub max: i64,
}

/// Returns the statistics of `values`, which are reordered; `None` if there are no values.
#[allow(clippy::cast_precision_loss)] // figures for people
pub fn spread(values: &mut [i64]) -> Option<Spread> {
    let (&min, &max) = (values.iter().min()?, values.iter().max()?);
    let count = values.len() as f64;
    let sum: i128 = values.iter().map(|&value| i128::from(value)).sum();
    let mean = sum as f64 / count;
    let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
    let std = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { f64::NAN };
    let quartiles = [1, 2, 3].map(|quarter| quartile(values, quarter));
    Some(Spread { mean, std, min, quartiles, max })
}

/// Returns the quartile with the given number.
#[allow(clippy::cast_precision_loss)]
fn quartile(values: &mut [i64], quarter: usize) -> f64 {
    let place = quarter * (values.len() - 1);
    let (below, part) = (place / 4, (place % 4) as f64 / 4.0);
    let (_, &mut low, above) = values.select_nth_unstable(below);
    match above.iter().min() {
        Some(&high) if part > 0.0 => low as f64 + (high as f64 - low as f64) * part,
        _ => low as f64,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        let found = spread(&mut [9, 1, 4, 2]).unwrap();
        assert_eq!((found.min, found.max, found.mean), (1, 9, 4.0));
        assert_eq!(format!("{:?}", found.quartiles), "[1.75, 3.0, 5.25]");
        assert!((found.std - 3.559_026).abs() < 1e-6);
    }

    #[test]
    fn a_single_value_has_no_deviation_and_no_value_has_no_figures() {
        let found = spread(&mut [7]).unwrap();
        assert_eq!(format!("{:?} {:?}", found.quartiles, found.std), "[7.0, 7.0, 7.0] NaN");
        assert_eq!(spread(&mut []), None);
    }
}
