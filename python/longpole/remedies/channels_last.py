"""Conversions between NCHW and NHWC around convolutions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Scale
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import (
    Sized,
    forms_of,
    in_shape,
    most_often,
    replaced,
    sized_kernels,
)
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

_CONVOLUTION: Final = re.compile(r"convolution")
_CONVERSION: Final = re.compile(r"nchw_?(to|2)_?nhwc|nhwc_?(to|2)_?nchw", re.IGNORECASE)

_NORM: Final = re.compile(r"batch_norm")

# Number of passes of a batch norm over its images, and the lower and upper bound of the fraction of
# the memory bandwidth that it reaches.
_PASSES: Final = 5
_OF_BANDWIDTH: Final = (0.3, 0.6)

# Fraction of the conversions that remain: of inputs with few channels, and around operators other
# than convolutions.
_STAYS: Final = 0.1

_IMAGE: Final = 4


def _find(facts: Facts) -> Iterator[Found]:
    rows = [row for row in sized_kernels(facts) if _CONVOLUTION.search(row.name)]
    converting = [row for row in rows if not _is_channels_last(row) and _conversions(facts, row)]
    kernels = [kernel for row in converting for kernel in _conversions(facts, row)]
    if not facts.is_worth(max(sum(kernel.duration_ns for kernel in kernels), 1)):
        return
    events = [kernel.event for kernel in kernels]
    longest = most_often(converting)
    least, most = (replaced(_normalizing(facts, of_bandwidth)) for of_bandwidth in _OF_BANDWIDTH)
    yield Found(
        careful=[Scale(by=_STAYS, kind="kernel", events=events), *least],
        hopeful=[Drop(kind="kernel", events=events), *most],
        advice=(
            "Keep images and the model in channels_last (`.to(memory_format=torch.channels_last)`)"
        ),
        evidence=(
            f"{count(max(round(facts.per_window(len(kernels))), 1), 'kernel')} "
            f"{facts.each} only convert between NCHW and NHWC around convolutions, such "
            f"as {in_shape(longest)}"
        ),
        name=longest.name,
        events=facts.longest(kernels),
        forms=forms_of([*converting, *_norms(facts)], "channels_last"),
    )


def _normalizing(facts: Facts, of_bandwidth: float) -> dict[int, float]:
    """Return the time of batch norm kernels at a fraction of the memory bandwidth.

    They are far slower in NCHW: channels_last made them 3.3 times as fast on an H100.
    """
    if facts.peaks is None or facts.peaks.bandwidth is None:
        return {}
    times: dict[int, float] = {}
    for row in _norms(facts):
        images = [tensor for tensor in row.tensors if len(tensor.shape) == _IMAGE]
        n_bytes = _PASSES * max(tensor.stored * (tensor.item_bytes or 0) for tensor in images)
        least_ns = n_bytes / (of_bandwidth * facts.peaks.bandwidth)
        by = min(least_ns / max(row.duration_ns, 1), 1.0)
        times.update({kernel.event: by * kernel.duration_ns for kernel in row.kernels})
    return times


def _norms(facts: Facts) -> list[Sized]:
    """List the batch norms of images that are not stored pixel by pixel."""
    return [
        row
        for row in sized_kernels(facts)
        if _NORM.search(row.name)
        and any(len(tensor.shape) == _IMAGE for tensor in row.tensors)
        and not _is_channels_last(row)
    ]


def _conversions(facts: Facts, row: Sized) -> list[Activity]:
    return [kernel for kernel in row.kernels if _CONVERSION.search(facts.name(kernel.event))]


def _is_channels_last(row: Sized) -> bool:
    """Whether the input images of a convolution are already stored pixel by pixel."""
    images = [tensor for tensor in row.tensors if len(tensor.shape) == _IMAGE][:1]
    return any(
        tensor.strides is not None and tensor.strides[1] == 1 and tensor.shape[1] > 1
        for tensor in images
    )


REMEDY: Final = Remedy(
    id="channels_last",
    side="kernels",
    effort="one_line",
    needs="kernels linked to their operators",
    seen_by="kernels that convert between NCHW and NHWC inside convolutions",
    change="the conversions are gone, of which a tenth of the time may stay, and batch norms reach "
    "30 to 60 % of the bandwidth of memory",
    not_when="the images are channels_last already",
    find=_find,
)
