//! Who loads data: the main thread, or workers it waits for.

use super::question::Question;
use crate::graph::Kind;
use crate::names::named;

named! {
    /// Who loads data.
    Loader {
        /// The thread that launches work loads data itself.
        MainThread "main_thread",
        /// Worker processes do.
        Workers "workers",
        /// A loader that is none of torch's.
        Own "own",
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
