//! The names of iterations of inference servers, and of their parts.
//!
//! vLLM and `SGLang` include the batch in the annotation of an iteration, TensorRT-LLM in an NVTX
//! range. For servers without annotations, Python functions mark iterations: those of vLLM,
//! `SGLang`, TensorRT-LLM and TGI that run one batch.
//!
//! Limits: running requests count as decoding, although they may include a chunk of a long prompt
//! if the name does not show it. With speculative decoding, tokens are those computed, not those
//! accepted.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::names::named;

named! {
    /// An inference server.
    Server {
        /// vLLM.
        Vllm "vLLM",
        /// `SGLang`.
        Sglang "SGLang",
        /// TensorRT-LLM.
        TensorRtLlm "TensorRT-LLM",
        /// Hugging Face Text Generation Inference.
        Tgi "TGI",
    }
}

named! {
    /// The kind of processing of the requests in an iteration.
    IterationKind {
        /// Computes the next token of each request.
        Decode "decode",
        /// Processes the prompts of requests.
        Prefill "prefill",
        /// Prefill for some requests, decode for others.
        Mixed "mixed",
    }
}

named! {
    /// Host work in an iteration other than running the model.
    HostPart {
        /// Selects tokens.
        Sampling "sampling",
        /// Converts tokens to text.
        Detokenizing "detokenizing",
    }
}

/// The content of an iteration name; `None` for what it does not contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Iteration {
    /// The server.
    pub server: Option<Server>,
    /// The kind of processing.
    pub kind: Option<IterationKind>,
    /// The number of requests.
    pub requests: Option<i64>,
    /// The number of prompt tokens.
    pub prefill_tokens: Option<i64>,
    /// The number of tokens of decoding requests.
    pub decode_tokens: Option<i64>,
}

/// Annotations of iterations. The groups `prefill` and `decode` are numbers of requests, those with
/// `_tokens` numbers of tokens. For `SGLang`, `mode` determines to which of the two `bs` and `toks`
/// refer.
const ANNOTATIONS: [(Server, &str); 4] = [
    (
        Server::Vllm,
        r"^execute_(?:\d+_)?context_(?<prefill>\d+)\((?:sq)?(?<prefill_tokens>\d+)[^)]*\)_generation_(?<decode>\d+)\((?:sq)?(?<decode_tokens>\d+)",
    ),
    (Server::Vllm, r"^execute_new_(?<prefill>\d+)_cached_(?<decode>\d+)"),
    (Server::Sglang, r"^step\[\s*(?<mode>[A-Z_]+) bs=(?<bs>\d+)(?: toks=(?<toks>\d+))?"),
    (
        Server::TensorRtLlm,
        r"^(?:\[Executor\] )?_forward_step(?: \d+)?: (?<prefill>\d+) ctx reqs, (?:(?<prefill_tokens>\d+) ctx tkns, )?(?<decode>\d+) gen reqs",
    ),
];

/// The prefixes of the names of annotations, and whether every name with the prefix marks an
/// iteration, even in an unknown form without further information.
const PREFIXES: [(Server, &str, bool); 4] = [
    (Server::Vllm, "execute_", true),
    (Server::Sglang, "step[", true),
    (Server::TensorRtLlm, "[Executor] _forward_step", false),
    (Server::TensorRtLlm, "_forward_step", false),
];

/// Python functions that run one batch: the end of the file path, and the function name.
const FRAMES: [(Server, &str, &str, Option<IterationKind>); 8] = [
    (Server::Vllm, "vllm/v1/worker/gpu_model_runner.py", "execute_model", None),
    (Server::Vllm, "vllm/v1/worker/gpu/model_runner.py", "execute_model", None),
    (Server::Vllm, "vllm/worker/model_runner.py", "execute_model", None),
    (Server::Sglang, "sglang/srt/managers/scheduler.py", "run_batch", None),
    (Server::Sglang, "sglang/srt/managers/scheduler.py", "_run_batch_inner", None),
    (Server::TensorRtLlm, "tensorrt_llm/_torch/pyexecutor/py_executor.py", "_forward_step", None),
    (Server::Tgi, "text_generation_server/server.py", "Prefill", Some(IterationKind::Prefill)),
    (Server::Tgi, "text_generation_server/server.py", "Decode", Some(IterationKind::Decode)),
];

/// Functions inside an iteration that determine its kind.
const KIND_FRAMES: [(&str, IterationKind); 4] = [
    ("forward_decode", IterationKind::Decode),
    ("forward_extend", IterationKind::Prefill),
    ("forward_split_prefill", IterationKind::Prefill),
    ("process_batch_result_decode", IterationKind::Decode),
];

/// Parts of the host work, by the name of an annotation, function or module.
const HOST_PARTS: [(HostPart, &str); 2] = [
    (
        HostPart::Sampling,
        r"(?:^(?:gpu_model_runner: )?[Ss]ample$|\): _?sample(?:_tokens|_async)?$|^nn\.Module: Sampler_)",
    ),
    (
        HostPart::Detokenizing,
        r"(?:\): _?(?:detokenize|decode_stream|batch_decode)\w*$|detokenizer\w*\.py\()",
    ),
];

/// Parses an annotation that marks a server iteration.
pub fn annotated_iteration(name: &str) -> Option<Iteration> {
    static PATTERNS: LazyLock<Vec<(Server, Regex)>> = LazyLock::new(|| compiled(&ANNOTATIONS));
    let (server, _, is_enough) =
        *PREFIXES.iter().find(|(_, prefix, _)| name.starts_with(prefix))?;
    let found = PATTERNS.iter().find_map(|(server, pattern)| {
        pattern.captures(name).map(|captures| said(*server, &captures))
    });
    found.or_else(|| is_enough.then(|| Iteration { server: Some(server), ..Iteration::default() }))
}

/// Parses a Python function that runs a server iteration.
pub fn framed_iteration(name: &str) -> Option<Iteration> {
    let (path, function) = frame_of(name)?;
    let is_of = |file: &str| path == file || path.ends_with(&format!("/{file}"));
    let (server, _, _, kind) =
        FRAMES.iter().find(|(_, file, named, _)| *named == function && is_of(file))?;
    Some(Iteration { server: Some(*server), kind: *kind, ..Iteration::default() })
}

/// Returns the kind of the iteration in which a Python function runs, if the function determines
/// it.
pub fn kind_of_frame(name: &str) -> Option<IterationKind> {
    let (_, function) = frame_of(name)?;
    KIND_FRAMES.iter().find(|(named, _)| *named == function).map(|(_, kind)| *kind)
}

/// Returns the part of the host work with this name.
pub fn host_part(name: &str) -> Option<HostPart> {
    static PATTERNS: LazyLock<Vec<(HostPart, Regex)>> = LazyLock::new(|| compiled(&HOST_PARTS));
    PATTERNS.iter().find(|(_, pattern)| pattern.is_match(name)).map(|(part, _)| *part)
}

/// Returns the path and the function of a frame, `path(line): function`.
fn frame_of(name: &str) -> Option<(&str, &str)> {
    let (place, function) = name.rsplit_once("): ")?;
    Some((place.rsplit_once('(')?.0, function))
}

fn compiled<T: Copy>(patterns: &[(T, &str)]) -> Vec<(T, Regex)> {
    let compile = |(of, pattern): &(T, &str)| Regex::new(pattern).ok().map(|regex| (*of, regex));
    patterns.iter().filter_map(compile).collect()
}

fn said(server: Server, captures: &Captures<'_>) -> Iteration {
    let number = |name: &str| captures.name(name).and_then(|text| text.as_str().parse().ok());
    let known = Iteration { server: Some(server), ..Iteration::default() };
    if let Some(mode) = captures.name("mode") {
        return of_mode(mode.as_str(), number("bs"), number("toks"), known);
    }
    let (prefill, decode) = (number("prefill").unwrap_or(0), number("decode").unwrap_or(0));
    let kind = match (prefill > 0, decode > 0) {
        (true, true) => Some(IterationKind::Mixed),
        (true, false) => Some(IterationKind::Prefill),
        (false, true) => Some(IterationKind::Decode),
        (false, false) => None,
    };
    let (prefill_tokens, decode_tokens) = (number("prefill_tokens"), number("decode_tokens"));
    Iteration { kind, requests: Some(prefill + decode), prefill_tokens, decode_tokens, ..known }
}

/// Interprets numbers by the forward mode of `SGLang`. A decoding request has one token.
fn of_mode(mode: &str, requests: Option<i64>, tokens: Option<i64>, known: Iteration) -> Iteration {
    let known = Iteration { requests, ..known };
    match mode {
        "DECODE" => Iteration {
            kind: Some(IterationKind::Decode),
            prefill_tokens: Some(0),
            decode_tokens: requests,
            ..known
        },
        "EXTEND" | "SPLIT_PREFILL" => Iteration {
            kind: Some(IterationKind::Prefill),
            prefill_tokens: tokens,
            decode_tokens: Some(0),
            ..known
        },
        "MIXED" => Iteration { kind: Some(IterationKind::Mixed), ..known },
        "TARGET_VERIFY" => Iteration { kind: Some(IterationKind::Decode), ..known },
        _ => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_by(name: &str) -> (Option<IterationKind>, [Option<i64>; 3]) {
        let found = annotated_iteration(name).unwrap();
        (found.kind, [found.requests, found.prefill_tokens, found.decode_tokens])
    }

    #[test]
    fn servers_name_annotations_after_the_batch() {
        use IterationKind::{Decode, Mixed, Prefill};
        let cases = [
            ("execute_context_0(0)_generation_32(32)", Some(Decode), [32, 0, 32]),
            ("execute_context_2(6144)_generation_3(3)", Some(Mixed), [5, 6144, 3]),
            (
                "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
                Some(Decode),
                [32, 0, 32],
            ),
            ("step[DECODE bs=32]", Some(Decode), [32, 0, 32]),
            ("step[EXTEND bs=2 toks=107]", Some(Prefill), [2, 107, 0]),
            (
                "[Executor] _forward_step 7: 1 ctx reqs, 90 ctx tkns, 0 gen reqs",
                Some(Prefill),
                [1, 90, -1],
            ),
        ];
        for (name, kind, [requests, prefill, decode]) in cases {
            let decode = (decode >= 0).then_some(decode);
            assert_eq!(said_by(name), (kind, [Some(requests), Some(prefill), decode]), "{name}");
        }
    }

    #[test]
    fn what_a_name_does_not_say_is_not_known() {
        let decode = Some(IterationKind::Decode);
        assert_eq!(said_by("execute_new_0_cached_4"), (decode, [Some(4), None, None]));
        assert_eq!(
            said_by("_forward_step: 0 ctx reqs, 4 gen reqs"),
            (decode, [Some(4), None, None])
        );
        let mixed = Some(IterationKind::Mixed);
        assert_eq!(said_by("step[MIXED bs=2]"), (mixed, [Some(2), None, None]));
        assert_eq!(said_by("step[TARGET_VERIFY bs=2]"), (decode, [Some(2), None, None]));
        assert_eq!(said_by("execute_context_0(0)_generation_0(0)").0, None);
        assert_eq!(said_by("execute_something"), (None, [None; 3]));
        for other in ["_forward_step", "forward", "capture_32_DECODE", "steps", "ProfilerStep#3"] {
            assert_eq!(annotated_iteration(other), None, "{other}");
        }
    }

    #[test]
    fn functions_mark_iterations_where_nothing_is_annotated() {
        let server = |name| framed_iteration(name).and_then(|found| found.server);
        assert_eq!(
            server("vllm/v1/worker/gpu_model_runner.py(3380): execute_model"),
            Some(Server::Vllm)
        );
        let batch = "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py(29): run_batch";
        assert_eq!(server(batch), Some(Server::Sglang));
        assert_eq!(server("mysglang/srt/managers/scheduler.py(29): run_batch"), None);
        assert_eq!(server("train.py(3): execute_model"), None);
        let prefill = framed_iteration("text_generation_server/server.py(90): Prefill").unwrap();
        assert_eq!(prefill.kind, Some(IterationKind::Prefill));
        let frame = "sglang/srt/model_executor/model_runner.py(9): forward_decode";
        assert_eq!(kind_of_frame(frame), Some(IterationKind::Decode));
    }

    #[test]
    fn parts_of_the_host_work_are_known_by_name() {
        for name in [
            "gpu_model_runner: sample",
            "vllm/v1/worker/gpu_model_runner.py(2): _sample",
            "nn.Module: Sampler_0",
        ] {
            assert_eq!(host_part(name), Some(HostPart::Sampling), "{name}");
        }
        let frame = "vllm/v1/engine/detokenizer.py(9): update";
        assert_eq!(host_part(frame), Some(HostPart::Detokenizing));
        assert_eq!(host_part("torch/utils/data/sampler.py(9): __iter__"), None);
    }
}
