//! The names of Python functions and annotations that load data.
//!
//! PyTorch names its frames `torch/utils/data/dataloader.py(...)` and its annotations
//! `enumerate(DataLoader)#...`; custom loaders usually have similar names.

/// The default regular expression for data-loading names.
pub const DATA_LOADING: &str = "(?i)data_?loader";
