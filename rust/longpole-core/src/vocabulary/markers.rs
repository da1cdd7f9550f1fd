//! Names with which PyTorch marks iterations and the events of its autograd engine.

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
