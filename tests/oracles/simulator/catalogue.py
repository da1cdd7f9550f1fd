"""Operators as PyTorch nests them, the kernels they launch, and how those are called.

Every function returns one frame. Names look as they do in traces of models on an H100; they are
put together from a few parts, so that a program has a hundred to a few hundred of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .program import (
    Busy,
    Call,
    Frame,
    Item,
    Launch,
    RecordEvent,
    Stream,
    Synchronize,
    WaitEvent,
    Work,
    annotation,
    operator,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TILES = ("64x64x64", "128x64x64", "128x128x64", "256x128x64", "128x256x64", "192x128x64")
_ELEMENTWISE_FUNCTORS = (
    "CUDAFunctor_add<TYPE>",
    "AUnaryFunctor<TYPE, TYPE, TYPE, at::native::binary_internal::MulFunctor<float> >",
    "BinaryFunctor<TYPE, TYPE, TYPE, at::native::binary_internal::MulFunctor<float> >",
    "GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda(TYPE)#1}",
    "silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(TYPE)#1}",
    "BUnaryFunctor<TYPE, TYPE, TYPE, at::native::binary_internal::DivFunctor<float> >",
    "CUDAFunctorOnSelf_add<TYPE>",
    "FillFunctor<TYPE>",
)
_TYPES = ("c10::BFloat16", "float")


def gemm_name(variant: int) -> str:
    """Return the name of a matrix multiplication: cuBLAS, cuBLASLt or CUTLASS."""
    tile = _TILES[variant % len(_TILES)]
    layout = ("tn", "nn", "nt")[variant // 6 % 3]
    if variant // 18 % 2:
        short = tile.rpartition("x")[0]
        kernel = f"cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_{short}_64x4_{layout}_align8"
        return f"void cutlass::Kernel2<{kernel}>({kernel}::Params)"
    return (
        f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_{layout}_n_tilesize{tile}"
        "_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
    )


def elementwise_name(variant: int) -> str:
    """Return the name of an elementwise kernel."""
    functor = _ELEMENTWISE_FUNCTORS[variant % len(_ELEMENTWISE_FUNCTORS)]
    scalar = _TYPES[variant // len(_ELEMENTWISE_FUNCTORS) % len(_TYPES)]
    functor = "at::native::" + functor.replace("TYPE", scalar)
    arrays = f"std::array<char*, {2 + variant % 2}ul>"
    return (
        f"void at::native::vectorized_elementwise_kernel<4, {functor}, {arrays} >"
        f"(int, {functor}, {arrays})"
    )


def launch(name: str, nominal_ns: int, stream: Stream, *, call: str = "cudaLaunchKernel") -> Launch:
    """Return the launch of one kernel."""
    by_driver = not call.startswith("cuda")
    return Launch(
        (Work("kernel", name, nominal_ns),),
        stream,
        name=call,
        category="cuda_driver" if by_driver else "cuda_runtime",
        rings_early=True,
    )


def view(name: str, inner: str = "aten::as_strided") -> Frame:
    """Return an operator that touches no data."""
    return operator(name, Busy(1_200), operator(inner, Busy(900)), Busy(500))


def linear(
    variant: int, kernel_ns: int, stream: Stream, sequence: int, shape: Sequence[int] = (512, 1_024)
) -> Frame:
    """Return `aten::linear`: a transposed view and a matrix multiplication with bias."""
    transpose = operator("aten::t", Busy(900), view("aten::transpose"), Busy(400))
    multiply = operator(
        "aten::addmm",
        Busy(6_000),
        launch(gemm_name(variant), kernel_ns, stream, call="cudaLaunchKernelExC"),
        Busy(2_000),
        sequence=sequence,
        args=_tensors([shape[-1:], shape, shape], 2),
    )
    return operator(
        "aten::linear", Busy(1_500), transpose, multiply, Busy(800), args=_tensors([shape, shape])
    )


def elementwise(
    name: str, variant: int, kernel_ns: int, stream: Stream, sequence: int | None = None
) -> Frame:
    """Return an operator that launches one elementwise kernel."""
    return operator(
        name,
        Busy(3_500),
        launch(elementwise_name(variant), kernel_ns, stream),
        Busy(1_500),
        sequence=sequence,
        args=_tensors([(64, 512), (64, 512)]),
    )


def layer_norm(kernel_ns: int, stream: Stream, sequence: int) -> Frame:
    """Return `aten::layer_norm` with what it allocates."""
    allocations = (operator("aten::empty", Busy(1_400)), operator("aten::empty", Busy(1_200)))
    kernel = (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
        "(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, "
        "float*, c10::BFloat16*)"
    )
    native = operator(
        "aten::native_layer_norm",
        Busy(2_500),
        *allocations,
        launch(kernel, kernel_ns, stream),
        Busy(1_500),
        sequence=sequence,
        args=_tensors([(64, 512, 768), (768,), (768,)]),
    )
    return operator("aten::layer_norm", Busy(1_000), native, Busy(600))


def flash_attention(kernel_ns: int, stream: Stream, sequence: int) -> Frame:
    """Return `aten::scaled_dot_product_attention` down to its kernel."""
    kernel = (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, "
        "false, cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, "
        "false, true, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)"
    )
    forward = operator(
        "aten::_flash_attention_forward",
        Busy(4_000),
        operator("aten::empty_like", Busy(1_000), operator("aten::empty_strided", Busy(1_500))),
        Call("cudaFuncSetAttribute", 900),
        launch(kernel, kernel_ns, stream, call="cuLaunchKernel"),
        Busy(2_000),
    )
    flash = operator(
        "aten::_scaled_dot_product_flash_attention", Busy(2_500), forward, sequence=sequence
    )
    return operator("aten::scaled_dot_product_attention", Busy(1_800), flash, Busy(700))


def zero(n_bytes: int, stream: Stream) -> Frame:
    """Return `aten::zero_` by memset."""
    work = Work("gpu_memset", "Memset (Device)", 1_500 + n_bytes // 1_500, {"bytes": n_bytes})
    fill = Launch((work,), stream, name="cudaMemsetAsync", nominal_ns=3_500)
    return operator("aten::zero_", Busy(1_500), fill, Busy(600))


def fused_optimizer(variant: int, kernel_ns: int, stream: Stream) -> Frame:
    """Return one `_foreach` operator of an optimizer."""
    functor = ("BinaryOpScalarFunctor", "PointwiseOpScalarFunctor", "UnaryOpFunctor")[variant % 3]
    depth = 1 + variant % 4
    kernel = (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
        f"namespace)::TensorListMetadata<{depth}>, at::native::(anonymous namespace)::{functor}"
        f"<float, {depth}, 1, 0>, std::multiplies<float>, float>(at::native::(anonymous namespace)"
        f"::TensorListMetadata<{depth}>, at::native::(anonymous namespace)::{functor}<float, "
        f"{depth}, 1, 0>, std::multiplies<float>, float)"
    )
    name = ("aten::_foreach_mul_", "aten::_foreach_addcdiv_", "aten::_foreach_sqrt")[variant % 3]
    return operator(name, Busy(9_000), launch(kernel, kernel_ns, stream), Busy(1_500))


def copy_to_device(n_bytes: int, stream: Stream, *, pinned: bool) -> Frame:
    """Return `aten::to`: from pinned memory the copy goes on while the host does, else it waits."""
    source = "Pinned" if pinned else "Pageable"
    work = Work(
        "gpu_memcpy",
        f"Memcpy HtoD ({source} -> Device)",
        1_200 + n_bytes // (25 if pinned else 9),
        {"bytes": n_bytes},
    )
    copy = Launch((work,), stream, name="cudaMemcpyAsync", nominal_ns=6_000, blocking=not pinned)
    after: tuple[Item, ...] = () if pinned else (Synchronize(stream=stream),)
    inner = operator("aten::copy_", Busy(3_000), copy, *after, Busy(900))
    outer = operator(
        "aten::_to_copy", Busy(1_500), operator("aten::empty_strided", Busy(1_800)), inner
    )
    return operator("aten::to", Busy(800), outer, Busy(400))


def item_to_host(stream: Stream) -> Frame:
    """Return `aten::item`: a copy of a few bytes that waits for all work before it."""
    work = Work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1_300, {"bytes": 4})
    copy = Launch((work,), stream, name="cudaMemcpyAsync", nominal_ns=7_000, blocking=True)
    inner = operator(
        "aten::_local_scalar_dense", Busy(2_500), copy, Synchronize(stream=stream), Busy(900)
    )
    return operator("aten::item", Busy(900), inner, Busy(400))


def all_reduce(
    n_elements: int,
    kernel_ns: int,
    *,
    after: Stream,
    stream: Stream,
    events: tuple[int, int],
    world_size: int,
) -> Frame:
    """Return a collective on a stream of its own, which begins after the work of another.

    The first event happens when it may begin, the second when it is done.
    """
    ready, done = events
    group = {
        "Collective name": "allreduce",
        "In msg nelems": n_elements,
        "Out msg nelems": n_elements,
        "Group size": world_size,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(world_size))),
    }
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    work = Work("kernel", name, kernel_ns, group)
    reduce = Launch((work,), stream, name="cudaLaunchKernelExC", nominal_ns=9_000)
    return operator(
        "record_param_comms",
        Busy(3_000),
        RecordEvent(ready, after),
        WaitEvent(ready, stream),
        annotation("nccl:all_reduce", Busy(1_500), reduce, Busy(900)),
        RecordEvent(done, stream),
        Busy(1_000),
        args=group,
    )


def _tensors(dims: Sequence[Sequence[int]], n_scalars: int = 0) -> dict[str, Any]:
    """Return the arguments that tell the shapes of tensors and scalars."""
    scalars: list[list[int]] = [[] for _ in range(n_scalars)]
    return {
        "Concrete Inputs": [""] * len(dims) + ["1"] * n_scalars,
        "Input type": ["c10::BFloat16"] * len(dims) + ["Scalar"] * n_scalars,
        "Input Strides": [_strides(shape) for shape in dims] + scalars,
        "Input Dims": [list(shape) for shape in dims] + scalars,
    }


def _strides(shape: Sequence[int]) -> list[int]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return strides
