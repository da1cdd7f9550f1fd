//! The phases of a training step, by the names that PyTorch and users give to parts of a program.
//!
//! Names of annotations are free: they are compared word by word, and a name with the words of two
//! phases, such as `forward_backward`, is none.

use super::frames::{is_backward_node, is_engine_work, module_name};
use crate::names::named;

named! {
    /// A phase of a training step.
    Phase {
        /// Waits for or prepares the next batch.
        DataLoading "data_loading",
        /// Runs the model and its loss.
        Forward "forward",
        /// Computes gradients.
        Backward "backward",
        /// Updates parameters.
        Optimizer "optimizer",
        /// Resets gradients.
        ZeroGrad "zero_grad",
        /// In no known phase.
        Other "other",
    }
}

/// Prefixes of operators with which PyTorch up to 1.9 marks parts of the program. Later versions
/// write annotations.
const MARKS: [&str; 2] = ["Optimizer.", "DistributedDataParallel."];

/// Returns the phase that an annotation marks.
pub fn annotated_phase(name: &str) -> Option<Phase> {
    let words = || name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let has = |known: &[&str]| {
        words().any(|word| known.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    let zeroes = has(&["zerograd"]) || (has(&["zero"]) && has(&["grad", "grads"]));
    let loads = has(&["dataload", "dataloading", "dataloader"])
        || (has(&["data"]) && has(&["load", "loading", "loader"]))
        || (has(&["batch"]) && has(&["load", "next", "fetch", "get"]));
    let is_short = words().count() <= 2;
    let marked = [
        (Phase::ZeroGrad, zeroes),
        (Phase::Optimizer, !zeroes && has(&["optimizer", "optimiser", "optim"])),
        (Phase::Forward, has(&["forward"]) || (is_short && has(&["fwd"]))),
        (Phase::Backward, has(&["backward"]) || (is_short && has(&["bwd"]))),
        (Phase::DataLoading, loads),
    ];
    let mut marked = marked.into_iter().filter(|&(_, is_marked)| is_marked);
    marked.next().filter(|_| marked.next().is_none()).map(|(phase, _)| phase)
}

/// Returns the phase that an operator belongs to: those of the autograd engine, and marks of old
/// versions of PyTorch.
pub fn operator_phase(name: &str) -> Option<Phase> {
    if is_engine_work(name) || is_backward_node(name) {
        Some(Phase::Backward)
    } else if name.starts_with("enumerate(DataLoader)#") {
        Some(Phase::DataLoading)
    } else {
        annotated_phase(name).filter(|_| MARKS.iter().any(|mark| name.starts_with(mark)))
    }
}

/// Returns the phase that a Python function runs: calls of modules, and functions of PyTorch and of
/// optimizers.
pub fn frame_phase(name: &str) -> Option<Phase> {
    if module_name(name).is_some() {
        return Some(Phase::Forward);
    }
    if name.starts_with("<built-in method run_backward") {
        return Some(Phase::Backward);
    }
    let (path, function) = name.rsplit_once("): ")?;
    let is_in = |folders: &[&str]| path.split(['/', '\\']).any(|part| folders.contains(&part));
    match function {
        "zero_grad" => Some(Phase::ZeroGrad),
        "step" if is_in(&["optim", "optimizers"]) && !path.contains("lr_scheduler") => {
            Some(Phase::Optimizer)
        }
        "backward" | "_engine_run_backward" if is_in(&["torch"]) => Some(Phase::Backward),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_known_by_their_words() {
        let known = [
            ("Optimizer.step#AdamW.step", Phase::Optimizer),
            ("Optimizer.zero_grad#AdamW.zero_grad", Phase::ZeroGrad),
            ("## forward ##", Phase::Forward),
            ("DistributedDataParallel.forward", Phase::Forward),
            ("loss.backward", Phase::Backward),
            ("bwd", Phase::Backward),
            ("## data_load ##", Phase::DataLoading),
            ("## load_batch ##", Phase::DataLoading),
        ];
        for (name, phase) in known {
            assert_eq!(annotated_phase(name), Some(phase), "{name}");
        }
        for other in [
            "ProfilerStep#3",
            "forward_backward",
            "## all2all_data:lengths ##",
            "## alltoall_fwd_single ##",
            "fast-forwarded",
            "train_step",
        ] {
            assert_eq!(annotated_phase(other), None, "{other}");
        }
    }

    #[test]
    fn operators_mark_only_what_torch_names_so() {
        let backward = "autograd::engine::evaluate_function: AddmmBackward0";
        assert_eq!(operator_phase(backward), Some(Phase::Backward));
        assert_eq!(operator_phase("Optimizer.step#SGD.step"), Some(Phase::Optimizer));
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        assert_eq!(operator_phase(loader), Some(Phase::DataLoading));
        for other in ["aten::_fused_adamw_", "mylib::forward", "aten::backward_hook"] {
            assert_eq!(operator_phase(other), None, "{other}");
        }
    }

    #[test]
    fn functions_are_known_by_name_and_folder() {
        let known = [
            ("nn.Module: Linear_3", Phase::Forward),
            ("torch/optim/adamw.py(221): step", Phase::Optimizer),
            ("/opt/apex/optimizers/fused_adam.py(90): step", Phase::Optimizer),
            ("torch/optim/optimizer.py(900): zero_grad", Phase::ZeroGrad),
            ("torch/_tensor.py(576): backward", Phase::Backward),
            ("torch/autograd/graph.py(860): _engine_run_backward", Phase::Backward),
            ("<built-in method run_backward of torch._C._EngineBase>", Phase::Backward),
        ];
        for (name, phase) in known {
            assert_eq!(frame_phase(name), Some(phase), "{name}");
        }
        for other in [
            "torch/optim/lr_scheduler.py(170): step",
            "torch/optim/adam.py(953): <genexpr>",
            "train.py(9): step",
            "train.py(30): backward",
            "train.py(1): <module>",
        ] {
            assert_eq!(frame_phase(other), None, "{other}");
        }
    }
}
