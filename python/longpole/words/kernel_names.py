"""Readable names of kernels: what a kernel does, its types and tiles, and its library.

Libraries name kernels for linkers: the operation is somewhere in the template arguments, or in one
of hundreds of codes. `kernel_label` puts it first: `mul f32`, `copy bf16 to f32`, `softmax f32`,
`gemm 128x64 bf16 (nvjet)`. Data and patterns use the original name.

Limits: only names in the form of a kernel are translated; all others are kept.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from longpole._core import kernel_family

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES: Final[Mapping[str, str]] = {
    "float": "f32",
    "double": "f64",
    "c10::BFloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "__hip_bfloat16": "bf16",
    "cutlass::bfloat16_t": "bf16",
    "c10::Half": "f16",
    "__half": "f16",
    "half": "f16",
    "cutlass::half_t": "f16",
    "c10::Float8_e4m3fn": "f8e4m3",
    "c10::Float8_e5m2": "f8e5m2",
    "int": "i32",
    "long": "i64",
    "short": "i16",
    "signed char": "i8",
    "unsigned char": "u8",
    "bool": "bool",
    "c10::complex<float>": "c64",
}
_TYPE: Final = "|".join(map(re.escape, sorted(_TYPES, key=len, reverse=True)))
_FIRST_TYPE: Final = re.compile(rf"<(?:(?:\(int\))?\d+, )*({_TYPE})\b(?!::)")
_CASTS: Final = "LoadWithCast<"
_LAMBDA: Final = re.compile(rf"[{{\[]lambda\s?\(({_TYPE})[,) ]")
_REDUCED: Final = re.compile(rf"\bReduceOp<({_TYPE})\b")
_NOISE: Final = re.compile(r"\(anonymous namespace\)::|<unnamed>::|^void ")
_RESULT: Final = re.compile(r"^(?:std::enable_if<.*?>::type|\w+) (?=[\w:]+[<(])")

# Functions of ATen that apply a functor to every element or reduce.
_GENERIC: Final = re.compile(
    r"(?:^|::)(?:vectorized_elementwise|unrolled_elementwise|elementwise|"
    r"legacy_elementwise|vectorized_templated_elementwise|index_elementwise|"
    r"_scatter_gather_elementwise|reduce|multi_tensor_apply|"
    r"distribution_elementwise_grid_stride)_kernel(?:_manual_unroll\w*|_helper)?$"
)
_CONVERSION: Final = re.compile(
    r"\b(bfloat16|float16|float8_\w+?|float32)(?:to(bfloat16|float16|float32))?_copy_kernel_cuda"
)
_WIDE: Final[Mapping[str, str]] = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
_FUNCTOR: Final = re.compile(
    rf"\b(?:CUDAFunctor(?:OnSelf|OnOther)?_(\w+)|(\w+?)(?:Functor|Ops|_functor))<(?:({_TYPE})\b)?"
)
_WRAPPING_FUNCTORS: Final = frozenset({"Binary", "AUnary", "BUnary", "Unary"})
_LIST_FUNCTOR: Final = re.compile(r"(?:Binary|Pointwise|Ternary|Unary)Op")
_LIST_OPERATION: Final = re.compile(r"\bstd::(plus|minus|multiplies|divides)\b")
_STANDARD: Final[Mapping[str, str]] = {
    "plus": "add",
    "minus": "sub",
    "multiplies": "mul",
    "divides": "div",
}
_IMPLEMENTATION: Final = re.compile(
    r"\b(?:launch_)?(\w+?)_(?:cuda_)?kernel(?:_cuda|_impl|_cuda_impl)?[(<]|\blaunch_(\w+?)_scalar\("
)
_ANY_FUNCTION: Final = re.compile(r"^<(?:\(int\))?\d+, (?:void )?(?:\w+::)*(\w+)[(<]")
_SKIPPED: Final = frozenset({"gpu_kernel", "elementwise", "gpu", "index", "reduce", "func"})
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SUFFIX: Final = re.compile(
    r"_(?:kernel_template|kernel|cuda|impl|vec|out|new|vectorized|tensor_scalar|scalar)$"
)
_PREFIX: Final = re.compile(r"^(?:launch|vectorized|direct|cu)_")
_BATCH_NORM: Final = re.compile(r"::bn_([fb]w)_")
_SAME: Final[Mapping[str, str]] = {"cat_array_batched": "cat", "arg_max": "argmax"}
_WRAPPER: Final = re.compile(r"(?:^|::)(?:Kernel2?|kernel|kentry|device_kernel|trampoline_kernel)$")

_NVJET_TYPES: Final[Mapping[str, str]] = {"t": "bf16", "h": "f16", "d": "f64"}
_NVJET: Final = re.compile(r"^nvjet_(?:sm\d+_)?([a-z]+)_(?:mma_)?(\d+x\d+)_")
_TILE: Final = re.compile(
    r"(?:tilesize|_MT|^MT|MT)(\d+x\d+)|(?:gemm|fprop|dgrad|wgrad|cudnn|gemm_\w+?)_(?:\w+?_)??(\d+x\d+)"
)
_ANY_TILE: Final = re.compile(r"(?<![0-9x])(\d{2,3}x\d{2,3})(?![0-9])")
# Kernels that read one or two elements at a time, because the dimensions allow no more.
_UNALIGNED: Final = re.compile(r"align[12](?!\d)")
_GEMM_TYPES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"bf16|BBS|bfloat16|_B_|_BS_BH|BFloat16|Bfloat16", "bf16"),
        (r"e4m3|F8|fp8|e5m2", "f8"),
        (r"(?<![a-z])f16|HHS|HSS|_H_|fp16|h884|h1688|hgemm|half|hcudnn", "f16"),
        (r"tf32|s1688(?!gemm_(?:bf16|f16))", "tf32"),
        (r"sgemm|(?<![a-z0-9])f32|_SB_|scudnn|float|ffma|simt_s", "f32"),
        (r"dgemm|d884|double|_DB_", "f64"),
    )
)
# Attention kernels of cuDNN with this name compute f16 or bf16.
_ANY_HALF: Final = re.compile(r"cudnn_generated_fort_native_sdpa_\w*_wgmma_f16_")
_LIBRARIES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"^nvjet", "nvjet"),
        (r"^(?:Custom_)?Cijk_", "Tensile"),
        (r"ck_tile", "ck_tile"),
        (r"(?:\b|\d)ck(?:::|\d)", "CK"),
        (r"cudnn", "cuDNN"),
        (r"xmma", "xmma"),
        (r"flash|Flash", "flash"),
        (r"cutlass", "CUTLASS"),
        (r"^triton_|_ogs_", "Triton"),
        (r"[Mm][Ii]open|^mlo|igemm_", "MIOpen"),
        (r"cublas|^(?:volta|turing|ampere|maxwell|pascal)_|gemv|splitKreduce", "cuBLAS"),
    )
)
_INDUCTOR: Final = re.compile(r"^(triton_(?:poi|red|per|for|tem|spl|unk)?_?fused_\w*?)(?:_\d+)?$")
_LONGEST: Final = 4096
_LENGTH: Final = re.compile(r"\d{1,4}")
_FUNCTION: Final = re.compile(
    r"(?:void |std::)|[\w:]+(?:<.*>|\(anonymous namespace\)::\w+.*|::\w+)\(", re.DOTALL
)
_OTHER: Final = re.compile(
    r"^(?:aten|autograd|torch|c10d?|prim|cuda[A-Z]|hip[A-Z])(?:::)?\w*\(|\): "
)
_BACKWARD: Final = re.compile(r"dgrad|bwd_data|BwdData|_bwd|Bwd|backward|bprop|dot_do_o|convert_dq")
_LOG_SOFTMAX: Final = re.compile(
    r"log_?soft|softmax_warp_\w+<(?:[\w:]+, )+(?:\(int\))?\d+, (?:true|\(bool\)1)"
)
_LIBRARY_OF_PARTS: Final = re.compile(r"\b(?:cub|rocprim|thrust)::")
_CODED: Final = re.compile(
    r"^(?:nvjet_|(?:Custom_)?Cijk_|_Z|(?:volta|turing|ampere|maxwell|pascal|sm\d+|cudnn|cutlass)_"
    r"(?=.*\d+x\d+)|fmha_|flash_)"
)


def family_of(name: str) -> str:
    """Return the family of a kernel by its name, or `other`.

    Examples
    --------
    >>> family_of("sgemm_128x64_nn"), family_of("my_kernel")
    ('gemm', 'other')
    """
    return kernel_family(name)


def kernel_label(name: str) -> str | None:
    """Return a short description of a kernel from its name; None if the name is readable.

    Examples
    --------
    >>> kernel_label("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NTT")
    'gemm 128x64 bf16 (nvjet)'
    >>> kernel_label(
    ...     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    ...     "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>)"
    ... )
    'add f32'
    >>> kernel_label("triton_poi_fused_add_mul_7"), kernel_label("aten::mm")
    ('triton_poi_fused_add_mul', None)
    """
    return _label(name[:_LONGEST])


@lru_cache(maxsize=4096)
def _label(name: str) -> str | None:
    inductor = _INDUCTOR.match(name)
    if inductor:
        return inductor[1]
    if not (_FUNCTION.match(name) or _CODED.match(name)) or _OTHER.search(name):
        return None
    function, arguments = _parts(name)
    if _GENERIC.search(function):
        return _applied(function, arguments)
    family = kernel_family(name)
    if family == "communication":
        return function.rpartition("::")[2] or None
    if family in {"gemm", "convolution", "attention"}:
        return _coded(family, name, function)
    return _described(family, function, arguments, name)


def _parts(name: str) -> tuple[str, str]:
    """Return the qualified name of a function, and its template arguments and parameters."""
    mangled = _mangled(name)
    if mangled is not None:
        return mangled
    clean = _NOISE.sub("", name)
    result = _RESULT.match(clean)
    clean = clean[result.end() :] if result else clean
    end = next((at for at, sign in enumerate(clean) if sign in "<("), len(clean))
    return clean[:end].strip(), clean[end:]


def _mangled(name: str) -> tuple[str, str] | None:
    """Parse a name mangled by the Itanium C++ ABI up to the end of its qualified name."""
    if not name.startswith("_Z"):
        return None
    place = 3 if name.startswith("_ZN") else 2
    parts = []
    while (length := _LENGTH.match(name, place)) is not None:
        place = length.end() + int(length[0])
        parts.append(name[length.end() : place])
    return ("::".join(parts), name[place:]) if all(parts) and parts else None


def _applied(function: str, arguments: str) -> str | None:
    """Return the operation that a function of ATen applies, and its type."""
    conversion = _CONVERSION.search(arguments)
    if conversion:
        return _copied(conversion[1], conversion[2], arguments)
    operation, dtype = _operation(arguments)
    if operation is None:
        return None
    if "reduce" in function:
        reduced = _REDUCED.search(arguments)
        dtype = _TYPES[reduced[1]] if reduced else ""
    if operation == "copy" and dtype and _CASTS in arguments:  # from a type it does not name
        return f"copy to {dtype}"
    if "multi_tensor_apply" in function:
        return f"{operation} of tensor lists {dtype}".strip()
    return f"{operation} {dtype}".strip()


def _copied(first: str, second: str | None, arguments: str) -> str:
    """Describe a converting copy: from one type to another, or from that of a lambda."""
    if second:
        return f"copy {_WIDE.get(first, 'f8')} to {_WIDE.get(second, 'f8')}"
    found = _LAMBDA.search(arguments)
    source, target = _TYPES[found[1]] if found else "", _WIDE.get(first, "f8")
    return f"copy {source} to {target}" if source and source != target else f"copy {target}"


def _operation(arguments: str) -> tuple[str | None, str]:
    """Return the applied operation, a functor or function of ATen's kernels, and its type."""
    of_elements = ""
    for on_self, other, of_functor in _FUNCTOR.findall(arguments):
        name = on_self or other
        if name in _WRAPPING_FUNCTORS:  # the types of elements; within, that of the arithmetic
            of_elements = of_elements or of_functor
            continue
        dtype = of_elements or of_functor
        operation = _LIST_OPERATION.search(arguments) if _LIST_FUNCTOR.match(name) else None
        return _STANDARD[operation[1]] if operation else _plain(name), _TYPES.get(dtype, "")
    for found in _IMPLEMENTATION.finditer(arguments):
        name = found[1] or found[2]
        if name in _SKIPPED or name.startswith("gpu_"):
            continue
        lambda_ = _LAMBDA.search(arguments, found.end())
        is_element = lambda_ is not None and not arguments.startswith(
            "{lambda(int)#1}", lambda_.start()
        )
        dtype = _TYPES[lambda_[1]] if lambda_ and is_element and lambda_[1] != "bool" else ""
        return _plain(name), dtype
    other = _ANY_FUNCTION.match(arguments)
    return (_plain(other[1]) if other else None), ""


def _coded(family: str, name: str, function: str) -> str:
    """Describe a product, convolution or attention by its tile, type and library."""
    nvjet = _NVJET.match(name)
    if nvjet:
        tile, dtype = nvjet[2], _NVJET_TYPES.get(nvjet[1][0], "")
    else:
        found = _TILE.search(name) or _ANY_TILE.search(name)
        tile = next(filter(None, found.groups()), "") if found else ""
        coded = name.partition("(")[0]
        dtype = next((kind for pattern, kind in _GEMM_TYPES if pattern.search(coded)), "")
        dtype = "" if _ANY_HALF.match(name) else dtype
    library = next((of for pattern, of in _LIBRARIES if pattern.search(name)), "")
    alignment = _UNALIGNED.search(name)
    what = [family, _part(family, name, function), tile, dtype, alignment[0] if alignment else ""]
    return " ".join([*filter(None, what), *([f"({library})"] if library else [])])


def _part(family: str, name: str, function: str) -> str:
    """Return which part of an operation a kernel computes, if it is not the whole."""
    if family == "gemm":
        parts = {"splitKreduce": "split-K sum", "gemv": "vector", "globalKernel": "epilogue"}
        found = next((words for part, words in parts.items() if part in function), "")
        return found or ("+ bias" if "_bias_" in name and name.startswith("nvjet") else "")
    if _BACKWARD.search(name):
        return "backward"
    return "weight gradient" if re.search(r"[Ww]grad|wrw|BwdWeight", name) else ""


def _described(family: str, function: str, arguments: str, name: str) -> str | None:
    """Return the name of a function as words, with its type."""
    first = _FIRST_TYPE.match(arguments)
    dtype = _TYPES[first[1]] if first and not _LIBRARY_OF_PARTS.search(function) else ""
    batch_norm = _BATCH_NORM.search(function)
    if _WRAPPER.search(function):
        return _wrapped(arguments, name)
    if batch_norm:
        what = "batch_norm" if batch_norm[1] == "fw" else "batch_norm backward"
    elif family == "softmax":
        is_log = "Log" in arguments.partition("(")[0] or _LOG_SOFTMAX.search(name)
        what = "log_softmax" if is_log else "softmax"
        what += " backward" if "ackward" in name else ""
    else:
        what = _plain(function.rpartition("::")[2])
    return f"{what} {dtype}".strip() or None


def _wrapped(arguments: str, name: str) -> str | None:
    """Return what a wrapper runs, the first of its template arguments, and its library."""
    mangled = re.search(r"NS_(\d{1,3})", arguments)
    plain = re.search(r"[<:]([A-Za-z_]\w+)[<>,]", arguments)
    if mangled:
        what = arguments[mangled.end() : mangled.end() + int(mangled[1])]
    elif plain:
        what = plain[1]
    else:
        return None
    library = next((of for pattern, of in _LIBRARIES if pattern.search(name)), "")
    return f"{_plain(what)} ({library})" if library else _plain(what)


def _plain(name: str) -> str:
    """Return an identifier in lower case, without parts that only mark it as a kernel."""
    words = _WORDS.sub("_", name).lower().strip("_")
    words = _PREFIX.sub("", words)
    while (shorter := _SUFFIX.sub("", words)) != words:
        words = shorter
    return next((same for begin, same in _SAME.items() if words.startswith(begin)), words)
