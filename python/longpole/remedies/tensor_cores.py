"""float32 products and convolutions that do not use the tensor cores of the device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import (
    Sized,
    forms_of,
    in_shape,
    kernels_of_graphs,
    most_often,
    replaced,
    sized_kernels,
)
from longpole.words.matrix_units import is_float32_product, may_use_tf32, uses_tensor_cores
from longpole.words.wording import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.devices.peaks import Peaks
    from longpole.flops import Work
    from longpole.remedies.facts import Facts

_CONVOLUTION: Final = re.compile(r"convolution|conv\dd")

# Fraction of the tensor core peaks that products reach: lower bound with TF32, upper with 16 bit.
_OF_TF32: Final = 0.6
_OF_HALF: Final = 0.7

_FLOPS_OF_NS: Final = 1e3

# Products that reach less than this fraction of the vector peak are also limited by something else;
# this additional time remains.
_USUAL: Final = 0.7

# Fraction of the memory bandwidth that kernels reach, and the shortest kernel time.
_OF_BANDWIDTH: Final = 0.8
_SHORTEST_NS: Final = 3_000

# A cast from float32 to 16 bit reads 4 bytes of an element and writes 2.
_CAST_BYTES: Final = 6


class _Product(NamedTuple):
    row: Sized
    events: tuple[int, ...]
    vector_ns: int


def _find(facts: Facts) -> Iterator[Found]:
    peaks = facts.peaks
    if peaks is None or "tf32" not in peaks.matrix or not _has_tensor_cores(peaks):
        return
    kinds: dict[bool, list[Sized]] = {False: [], True: []}
    for row in (*sized_kernels(facts), *kernels_of_graphs(facts)):
        kinds[bool(_CONVOLUTION.search(row.name))].append(row)
    for is_convolution, rows in kinds.items():
        products = [found for row in rows if (found := _product(facts, row)) is not None]
        is_worth = products and facts.is_worth(sum(it.vector_ns for it in products))
        if is_worth and not any(_is_allowed(facts, row) for row in rows):
            yield _found(facts, peaks, products, is_convolution=is_convolution)


def _has_tensor_cores(peaks: Peaks) -> bool:
    """Whether the device rounds float32 products on request, as those of NVIDIA do."""
    return peaks.source.startswith("NVIDIA")


def _is_allowed(facts: Facts, row: Sized) -> bool:
    """Whether an operator that may use float32 uses tensor cores."""
    names = [facts.name(kernel.event) for kernel in row.kernels]
    if row.work is None:
        return any(map(may_use_tf32, names))
    return _is_float32(row.work) and any(map(uses_tensor_cores, names))


def _product(facts: Facts, row: Sized) -> _Product | None:
    kernels = [it for it in row.kernels if is_float32_product(facts.name(it.event))]
    if not kernels or (row.work is not None and not _is_float32(row.work)):
        return None
    events = tuple(kernel.event for kernel in kernels)
    return _Product(row, events, sum(kernel.duration_ns for kernel in kernels))


def _is_float32(work: Work) -> bool:
    return work.is_matrix and work.dtype == "float"


def _found(facts: Facts, peaks: Peaks, products: list[_Product], *, is_convolution: bool) -> Found:
    careful: dict[int, float] = {}
    hopeful: dict[int, float] = {}
    for product in products:
        least_ns, most_ns = _times(peaks, product)
        for event in product.events:
            part = facts.place(event).duration_ns or 0
            part_of = part / max(product.vector_ns, 1)
            careful[event], hopeful[event] = most_ns * part_of, least_ns * part_of
    vector_ns = sum(it.vector_ns for it in products)
    of_time = vector_ns / (facts.mean_ns * facts.n_windows)
    takes = f"for {share(of_time)} of the time" if of_time <= 1 else "several at a time"
    what = "convolutions" if is_convolution else "products"
    setting = "TF32"
    if facts.is_of_torch:
        of_products = '`torch.set_float32_matmul_precision("high")`'
        of_convolutions = "`torch.backends.cudnn.allow_tf32 = True`"
        setting = of_convolutions if is_convolution else of_products
    best = most_often(it.row for it in products)
    return Found(
        careful=replaced(careful),
        hopeful=replaced(hopeful),
        advice=f"Let float32 {what} use tensor cores ({setting}, or bfloat16)",
        evidence=f"{in_shape(best)} and its like run without them {takes}",
        name=best.name,
        events=facts.longest(kernel for it in products for kernel in it.row.kernels),
        forms=forms_of((it.row for it in products), "tf32"),
    )


def _times(peaks: Peaks, product: _Product) -> tuple[float, float]:
    """Return the bounds of a product's time on tensor cores: lower with 16 bit, upper with TF32."""
    now_ns = product.vector_ns
    vector, tf32 = (peak * _FLOPS_OF_NS for peak in (peaks.vector["fp32"], peaks.matrix["tf32"]))
    half = peaks.matrix.get("bf16", peaks.matrix["tf32"]) * _FLOPS_OF_NS
    work = product.row.work
    flops = now_ns * _USUAL * vector if work is None else work.flops
    moved_ns = float(_SHORTEST_NS)
    if work is not None and work.n_bytes is not None and peaks.bandwidth is not None:
        moved_ns = max(moved_ns, work.n_bytes / (_OF_BANDWIDTH * peaks.bandwidth))
    slower_ns = max(now_ns - flops / (_USUAL * vector), 0.0)
    most_ns = max(flops / (_OF_TF32 * tf32), moved_ns) + slower_ns
    least_ns = max(flops / (_OF_HALF * half), moved_ns / 2) + _cast_ns(peaks, product.row)
    return min(least_ns, now_ns), min(most_ns, now_ns)


def _cast_ns(peaks: Peaks, row: Sized) -> float:
    """Return the time to cast the smaller operand, the weight: autocast activations have 16 bit."""
    sizes = [tensor.stored * _CAST_BYTES for tensor in row.tensors if len(tensor.shape) > 1]
    if peaks.bandwidth is None or not sizes:
        return 0.0
    return min(sizes) / (_OF_BANDWIDTH * peaks.bandwidth)


REMEDY: Final = Remedy(
    id="tensor_cores",
    side="kernels",
    effort="one_line",
    needs="the device in the table of peaks; with recorded shapes the roofline holds, too",
    seen_by="products or convolutions of float32 in kernels of the vector units (`sgemm`, `ffma`)",
    change=(
        "at least the gain of TF32 at 60 % of its peak, without the time by which a product is "
        "slower than is usual for float32; at most that of 16 bit at 70 %, with a cast of the "
        "smaller operand; never faster than memory allows"
    ),
    not_when="a kernel of the same kind uses TF32 already, or the device cannot",
    find=_find,
)
