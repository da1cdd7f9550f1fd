//! What loads data, by the names of Python functions and annotations.
//!
//! torch names its frames `torch/utils/data/dataloader.py(...)` and its annotations
//! `enumerate(DataLoader)#...`; a loader of one's own is usually called so too.

/// The regular expression that finds them.
pub const DATA_LOADING: &str = "(?i)data_?loader";
