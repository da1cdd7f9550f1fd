"""Products with 16 bits or fewer whose dimensions do not suit the tensor cores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import (
    Sized,
    in_shape,
    is_product,
    most_often,
    replaced,
    sized_kernels,
)
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.devices.peaks import Peaks
    from longpole.remedies.facts import Facts

# Kernels that read one or two elements at a time, according to their names.
_UNALIGNED: Final = re.compile(r"align[12](?!\d)")

_PRECISIONS: Final = {"c10::Half": "fp16", "c10::BFloat16": "bf16"}
_MULTIPLE: Final = 8

# Lower and upper bound of the part of the peak that padded products reach. A product with tiles for
# less than two waves of all multiprocessors may reach less.
_OF_PEAK: Final = (0.5, 0.75)
_OF_PEAK_IF_SMALL: Final = (0.3, 0.75)
_TILE: Final = 128 * 128
_WAVES: Final = 2
_OF_BANDWIDTH: Final = (0.6, 0.9)
_SHORTEST_NS: Final = 3_000
_FLOPS_OF_NS: Final = 1e3


class _Unaligned(NamedTuple):
    row: Sized
    most_ns: float
    least_ns: float


def _find(facts: Facts) -> Iterator[Found]:
    peaks = facts.peaks
    if peaks is None or peaks.bandwidth is None:
        return
    rows = [row for row in sized_kernels(facts) if is_product(row) and _is_unaligned(facts, row)]
    products = [found for row in rows if (found := _padded(facts, peaks, row)) is not None]
    if not facts.is_worth(max(sum(it.row.duration_ns for it in products), 1)):
        return
    careful = {
        kernel.event: it.most_ns * kernel.duration_ns / it.row.duration_ns
        for it in products
        for kernel in it.row.kernels
    }
    hopeful = {
        kernel.event: it.least_ns * kernel.duration_ns / it.row.duration_ns
        for it in products
        for kernel in it.row.kernels
    }
    longest = most_often(it.row for it in products)
    n_products = max(round(facts.per_window(len(products))), 1)
    yield Found(
        careful=replaced(careful),
        hopeful=replaced(hopeful),
        advice=f"Pad the dimensions of products to a multiple of {_MULTIPLE}",
        evidence=(
            f"{count(n_products, 'product')} {facts.each} "
            f"{'reads' if n_products == 1 else 'read'} one or two elements at a time, such as "
            f"{in_shape(longest)}"
        ),
        name=longest.name,
        events=facts.longest(kernel for it in products for kernel in it.row.kernels),
    )


def _is_unaligned(facts: Facts, row: Sized) -> bool:
    """Whether a kernel reads few elements at a time because of an odd dimension."""
    if not any(_UNALIGNED.search(facts.name(kernel.event)) for kernel in row.kernels):
        return False
    sizes = [size for tensor in row.tensors for size in tensor.shape[-2:]]
    return any(size % _MULTIPLE for size in sizes)


def _padded(facts: Facts, peaks: Peaks, row: Sized) -> _Unaligned | None:
    """Return the time of a product with padded dimensions; None if unknown."""
    work = row.work
    peak = None if work is None else peaks.matrix.get(_PRECISIONS.get(work.dtype, ""))
    if work is None or work.n_bytes is None or peak is None or peaks.bandwidth is None:
        return None
    of_peaks = _OF_PEAK if _is_large(facts, row) else _OF_PEAK_IF_SMALL
    times = [
        max(
            work.flops / (of_peak * peak * _FLOPS_OF_NS),
            work.n_bytes / (of_bandwidth * peaks.bandwidth),
            _SHORTEST_NS,
        )
        for of_peak, of_bandwidth in zip(of_peaks, _OF_BANDWIDTH, strict=True)
    ]
    most_ns, least_ns = (min(time_ns, row.duration_ns) for time_ns in times)
    return _Unaligned(row, most_ns, least_ns)


def _is_large(facts: Facts, row: Sized) -> bool:
    """Whether a product has enough tiles for all multiprocessors."""
    if facts.n_processors is None:
        return False
    n_inner = max(row.tensors[-1].shape[-2], 1)  # inner dimension of the right factor
    n_results = (row.work.flops if row.work else 0) / (2 * n_inner)
    return n_results >= _WAVES * facts.n_processors * _TILE


REMEDY: Final = Remedy(
    id="unaligned_products",
    side="kernels",
    effort="code",
    needs="recorded shapes, and the device in the table of peaks",
    seen_by=(
        "products of 16 bit in kernels for alignments of 1 or 2 elements, with a dimension that is "
        "not a multiple of 8"
    ),
    change=(
        "the products at 50 to 75 % of the peak of 16 bit, small ones at 30 % or more, and at no "
        "more than 60 to 90 % of the bandwidth of memory"
    ),
    not_when="the kernel reads 4 elements or more at a time",
    find=_find,
)
