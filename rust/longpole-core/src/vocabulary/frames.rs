//! Whether a Python function belongs to the program or to a library, derived from its frame name.
//!
//! PyTorch names frames `path(line): function`. The path is complete or relative to a folder of
//! `sys.path`. Built-in functions and modules have other forms.

/// Folders of libraries.
const LIBRARIES: [&str; 3] = ["torch", "site-packages", "dist-packages"];

/// Parts of the names of calls and annotations with which frameworks and the interpreter wrap
/// functions of the program.
const WRAPPERS: [&str; 4] =
    ["_call_impl", "<built-in function next>", "enumerate(DataLoader)", "ProfilerStep#"];

/// Whether a frame belongs to the program, not to a library.
pub fn is_own_frame(name: &str) -> bool {
    is_frame(name) && !folders(name).any(|folder| LIBRARIES.contains(&folder))
}

/// Whether a function or an annotation only wraps others: from PyTorch, a module, or the
/// interpreter.
pub fn is_wrapper_frame(name: &str) -> bool {
    let is_of_torch = if is_frame(name) {
        folders(name).any(|folder| folder == "torch")
    } else {
        name.split(|c: char| !(c.is_alphanumeric() || "_.".contains(c)))
            .any(|word| word.starts_with("torch."))
    };
    is_of_torch
        || name.starts_with("nn.Module")
        || WRAPPERS.iter().any(|wrapper| name.contains(wrapper))
}

/// Whether a name has the form `path(line): function`.
fn is_frame(name: &str) -> bool {
    name.contains("): ") && !name.starts_with('<') && !name.starts_with("nn.Module")
}

/// Returns the folders of the path in a frame name.
fn folders(name: &str) -> impl Iterator<Item = &str> {
    let path = name.split_once("): ").map_or(name, |(path, _)| path);
    let end = path.rfind(['/', '\\']).unwrap_or(0);
    path[..end].split(['/', '\\'])
}

/// The default regular expression for data-loading names.
pub const DATA_LOADING: &str = "(?i)data_?loader";

// Names with which PyTorch marks iterations and the events of its autograd engine.

/// Returns the number of an iteration, if the name is an iteration marker (`ProfilerStep#N`).
pub fn step_number(name: &str) -> Option<i64> {
    name.strip_prefix("ProfilerStep")?.trim_start().strip_prefix('#')?.trim().parse().ok()
}

/// Whether an operator is run by the autograd engine, which names its operators this way since
/// PyTorch 1.10.
pub fn is_engine_work(name: &str) -> bool {
    name.starts_with("autograd::engine::evaluate_function")
}

/// Whether an operator is a node of the backward graph: `AddBackward0`,
/// `torch::autograd::CopyBackwards`, `torch::autograd::AccumulateGrad`. Up to PyTorch 1.9, traces
/// contain these without the engine around them.
pub fn is_backward_node(name: &str) -> bool {
    let node = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    ["Backward", "Backwards", "AccumulateGrad"].iter().any(|end| node.ends_with(end))
}

/// Returns the name of a PyTorch module, if a Python function is a module call (`nn.Module:
/// Linear_3`, the fourth `Linear` to be called).
pub fn module_name(name: &str) -> Option<&str> {
    name.strip_prefix("nn.Module: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_program_are_told_from_those_of_libraries() {
        let own = ["train.py(7): step", "/home/me/pytorch/train.py(7): <module>", r"C:\a.py(1): f"];
        assert!(own.into_iter().all(is_own_frame));
        let foreign = [
            "torch/nn/modules/linear.py(114): forward",
            "/usr/lib/python3/dist-packages/yaml/loader.py(9): load",
            r"C:\venv\site-packages\torch\nn\linear.py(1): forward",
            "<built-in method mm of type object at 0x7f>",
            "<frozen importlib._bootstrap>(241): _call_with_frames_removed",
            "nn.Module: Linear_0",
            "aten::mm",
        ];
        assert!(!foreign.into_iter().any(is_own_frame));
    }

    #[test]
    fn only_what_is_of_torch_or_of_the_interpreter_wraps_functions() {
        let places = [
            "/home/user/pytorch/augment.py(3): augment",
            "train_torch.py(7): step",
            "/home/me/torch.py(7): step",
            "mytorch.py(1): f",
            "/usr/lib/python3/site-packages/transformers/trainer.py(9): train",
            "evaluate torch/numpy mix",
            "forward",
        ];
        assert_eq!(places.into_iter().find(|name| is_wrapper_frame(name)), None);
        let wrappers = [
            "torch/nn/modules/module.py(1501): _call_impl",
            "/opt/site-packages/torch/utils/data/dataloader.py(628): __next__",
            r"C:\venv\torch\nn\linear.py(1): forward",
            "nn.Module: Linear_0",
            "<built-in function next>",
            "<built-in method torch._C._nn.linear of PyCapsule>",
            "torch._dynamo.utils.timed",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "ProfilerStep#3",
        ];
        assert_eq!(wrappers.into_iter().find(|name| !is_wrapper_frame(name)), None);
    }

    #[test]
    fn a_step_is_known_by_its_number() {
        assert_eq!(step_number("ProfilerStep#12"), Some(12));
        assert_eq!(step_number("ProfilerStep # 3"), Some(3));
        for other in ["ProfilerStep", "ProfilerStep#x", "step#1", "ProfilerStep#1.5"] {
            assert_eq!(step_number(other), None);
        }
    }

    #[test]
    fn nodes_of_the_backward_graph_are_known_by_name() {
        assert!(is_engine_work("autograd::engine::evaluate_function: AddmmBackward0"));
        assert!(!is_engine_work("AddmmBackward0"));
        for name in [
            "CudnnConvolutionBackward",
            "ReluBackward1",
            "torch::autograd::AccumulateGrad",
            "torch::autograd::CopyBackwards",
        ] {
            assert!(is_backward_node(name), "{name}");
        }
        for name in ["aten::cudnn_convolution_backward", "aten::add", "BackwardHook: f", ""] {
            assert!(!is_backward_node(name), "{name}");
        }
    }
}
