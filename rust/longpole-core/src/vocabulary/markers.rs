//! Names by which torch marks iterations and the work of its autograd engine.

/// The number of an iteration, where a name is the marker of one (`ProfilerStep#N`).
pub fn step_number(name: &str) -> Option<i64> {
    name.strip_prefix("ProfilerStep")?.trim_start().strip_prefix('#')?.trim().parse().ok()
}

/// Whether an operator is a node of the backward graph, which the autograd engine runs.
///
/// The engine names its work itself since torch 1.10. Before, only the names of the nodes
/// are known: `AddBackward0`, `torch::autograd::CopyBackwards`, `torch::autograd::AccumulateGrad`.
pub fn is_backward_node(name: &str) -> bool {
    const ENGINE: &str = "autograd::engine::evaluate_function";
    let node = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    name.starts_with(ENGINE)
        || ["Backward", "Backwards", "AccumulateGrad"].iter().any(|end| node.ends_with(end))
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
    fn nodes_of_the_backward_graph_are_known_in_old_and_new_traces() {
        for name in [
            "autograd::engine::evaluate_function: AddmmBackward0",
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
