//! Who loads data: the main thread, or workers it waits for.

use super::question::Question;
use crate::graph::Kind;

/// Who loads data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loader {
    /// The thread that launches work loads data itself.
    MainThread,
    /// Worker processes do.
    Workers,
    /// A loader that is none of torch's.
    Own,
}

impl Loader {
    /// Its name in data.
    pub fn name(self) -> &'static str {
        match self {
            Self::MainThread => "main_thread",
            Self::Workers => "workers",
            Self::Own => "own",
        }
    }
}

/// Who loads the data that the paths pass; none where they pass no loading.
pub(super) fn loader(question: &Question<'_>) -> Option<Loader> {
    question.time_on_path(|kind| kind == Kind::DataLoading).next()?;
    let strings = &question.tables.strings;
    let has = |part: &str| strings.iter().any(|name| name.contains(part));
    Some(if has("_MultiProcessingDataLoaderIter") {
        Loader::Workers
    } else if has("_SingleProcessDataLoaderIter") {
        Loader::MainThread
    } else {
        Loader::Own
    })
}
