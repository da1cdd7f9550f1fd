"""float32 work that autocast would run in 16 bit: products, convolutions, and what is between."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import replaced
from longpole.words.kernel_names import family_of, kernel_label
from longpole.words.matrix_units import may_use_tf32, uses_tensor_cores
from longpole.words.wording import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.devices.peaks import Peaks
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

_PRODUCTS: Final = frozenset(("gemm", "convolution"))
_FLOAT32: Final = re.compile(r"\bf32\b")
_HALF: Final = re.compile(r"\b(?:bf16|f16)\b")
_SUM: Final = "split-K sum"

# Products and convolutions on the vector units take at least half of their time, and at most this
# fraction of the vector peak becomes this fraction of the peak of 16 bit.
_CAREFUL: Final = 0.5
_OF_VECTOR: Final = 0.7
_OF_HALF: Final = 0.7

# At most, kernels that move data move half of the bytes, and products of TF32 take half as long.
_OF_BYTES: Final = 0.5

# Products must take this share of the windows; if 16 bit products take more than this fraction of
# their time, the program uses 16 bit already.
_LEAST: Final = 0.1
_MOST_IN_HALF: Final = 0.1


def _find(facts: Facts) -> Iterator[Found]:
    peaks, half = facts.peaks, _half_peak(facts.peaks)
    if peaks is None or half is None or facts.gains_less("kernels", _LEAST, at_most=True):
        return
    steps = [step.time_range for step in facts.annotations("Optimizer.step#")]
    of_optimizer = {work.event for work in facts.launched_in(steps)}
    works = [it for it in facts.kernels if it.kind == "kernel" and it.event not in of_optimizer]
    products = [it for it in works if _is_product(facts, it)]
    wide = [it for it in products if _is_float32(facts, it)]
    in_half = [it for it in products if _HALF.search(_label(facts.name(it.event)))]
    wide_ns = _total_ns(wide)
    if not facts.is_worth(wide_ns, _LEAST) or _total_ns(in_half) > _MOST_IN_HALF * wide_ns:
        return
    factor = min(_OF_VECTOR * peaks.vector["fp32"] / (_OF_HALF * half), _CAREFUL)
    vector = [it for it in wide if not _is_tf32(facts, it)]
    moving = [it for it in works if it not in products and _is_float32(facts, it)]
    hopeful = {it.event: it.duration_ns * _OF_BYTES for it in (*wide, *moving)}
    hopeful |= {it.event: it.duration_ns * factor for it in vector}
    takes = "float32 products and convolutions take"
    others = f", other float32 kernels {_part(works, moving)}" if moving else ""
    yield Found(
        careful=replaced({it.event: it.duration_ns * _CAREFUL for it in vector}),
        hopeful=replaced(hopeful),
        advice=f"Compute in 16 bit where accuracy allows ({_how(facts, peaks)})",
        evidence=f"{takes} {_part(works, wide)} of the kernel time{others}",
        events=facts.longest(wide),
    )


def _half_peak(peaks: Peaks | None) -> float | None:
    """Return the peak of 16 bit products; None if unknown, or no higher than that of float32."""
    if peaks is None or not peaks.vector.get("fp32"):
        return None
    half = peaks.matrix.get("bf16", peaks.matrix.get("fp16"))
    return half if half is not None and half > 2 * peaks.vector["fp32"] else None


def _how(facts: Facts, peaks: Peaks) -> str:
    """Return how to run in the type that the device has tensor cores for."""
    if not facts.is_of_torch:
        return "bfloat16" if "bf16" in peaks.matrix else "float16"
    if "bf16" in peaks.matrix:
        return "`torch.autocast` with bfloat16"
    return "`torch.autocast` with float16, and a `GradScaler` in training"


def _is_product(facts: Facts, work: Activity) -> bool:
    name = facts.name(work.event)
    return family_of(name) in _PRODUCTS and _SUM not in _label(name)


def _label(name: str) -> str:
    return kernel_label(name) or name


def _is_float32(facts: Facts, work: Activity) -> bool:
    name = facts.name(work.event)
    is_of_float = _FLOAT32.search(_label(name)) is not None
    return _is_tf32(facts, work) or (is_of_float and not uses_tensor_cores(name))


def _is_tf32(facts: Facts, work: Activity) -> bool:
    peaks, name = facts.peaks, facts.name(work.event)
    has_tf32 = peaks is not None and "tf32" in peaks.matrix
    return has_tf32 and _HALF.search(_label(name)) is None and may_use_tf32(name)


def _total_ns(works: list[Activity]) -> int:
    return sum(work.duration_ns for work in works)


def _part(works: list[Activity], some: list[Activity]) -> str:
    return share(_total_ns(some) / max(_total_ns(works), 1))


REMEDY: Final = Remedy(
    id="mixed_precision",
    side="kernels",
    effort="code",
    needs="the names of kernels, and the device in the table of peaks",
    seen_by="float32 products and convolutions for a tenth of the time, nearly none of 16 bit",
    change=(
        "products and convolutions on the vector units take half of their time; at most, the same "
        "share of the peak of 16 bit, and all other float32 kernels, with those of TF32, half"
    ),
    not_when="products of 16 bit run already, or the device computes these no faster",
    find=_find,
)
