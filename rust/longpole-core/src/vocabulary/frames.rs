//! Whose a Python function is, by the name of its frame.
//!
//! torch names frames `path(line): function`, with the path as it is or from a folder of
//! `sys.path` on; built-in functions and modules have names of another form.

/// Folders of what a program uses.
const LIBRARIES: [&str; 3] = ["torch", "site-packages", "dist-packages"];

/// Whether a frame is one of the program, not of what it uses.
pub fn is_own_frame(name: &str) -> bool {
    let is_frame = name.contains("): ") && !name.starts_with('<') && !name.starts_with("nn.Module");
    is_frame && !name.split(['/', '\\']).any(|folder| LIBRARIES.contains(&folder))
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
}
