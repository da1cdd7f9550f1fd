"""Batch norms with fixed statistics, which are one multiply-add of each element.

In inference they can be part of the convolution before them or of the elementwise operator after
them. Folding them by hand leaves the bias of the convolution, which eager mode of torch adds in
another pass over the result, so a compiler is needed to save a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import Sized, in_launch_order, replaced
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts

_NORMS: Final = ("aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm")
_CONVOLUTION: Final = "convolution"
_BIAS: Final = "aten::add_"
_BACKWARD: Final = "autograd::engine::evaluate_function"

# Position of the input that selects the statistics of the batch.
_TRAINING: Final = 5


class _Norm(NamedTuple):
    """A batch norm after a convolution, and the elementwise operator after it, if there is one."""

    norm: Sized
    after: Sized | None

    @property
    def fused_ns(self) -> int:
        """The time of one kernel for both, no shorter than the longer one."""
        return max(self.norm.duration_ns, self.after.duration_ns if self.after else 0)


def _find(facts: Facts) -> Iterator[Found]:
    rows = [row for operators in in_launch_order(facts) for row in _norms(operators)]
    norms_ns = sum(row.norm.duration_ns for row in rows)
    if not facts.is_worth(max(norms_ns, 1)) or facts.operators(_BACKWARD):
        return
    times: dict[int, float] = {}
    for row in rows:
        if row.after is not None:
            times.update(dict.fromkeys([*row.norm.events, *row.after.events], 0.0))
            times[row.after.events[0]] = row.fused_ns
    longest = max(rows, key=lambda row: row.norm.duration_ns).norm
    n_norms, n_before = (
        max(round(facts.per_window(len(it))), 1) if it else 0
        for it in (rows, [row for row in rows if row.after is not None])
    )
    time_ranges = [it for row in rows for it in _time_ranges(facts, row.norm)]
    yield Found(
        careful=replaced(times),
        hopeful=[
            Drop(kind="kernel", events=[event for row in rows for event in row.norm.events]),
            *([Drop(time_ranges=time_ranges)] if time_ranges else []),
        ],
        advice=(
            "Compile the model for inference (`torch.compile`, with `freezing`), which fuses or "
            "folds its batch norms"
        ),
        evidence=(
            f"{count(n_norms, 'batch norm')} {facts.each} with fixed statistics "
            f"{'follows a convolution' if n_norms == 1 else 'follow convolutions'}, "
            f"{n_before} of them before an elementwise operator, such as that of "
            f"{list(longest.tensors[0].shape)}"
        ),
        name=longest.name,
        events=facts.longest(kernel for row in rows for kernel in row.norm.kernels),
    )


def _norms(operators: list[Sized]) -> Iterator[_Norm]:
    """Yield the batch norms with fixed statistics after a convolution."""
    for place, norm in enumerate(operators):
        if norm.name not in _NORMS or norm.call is None or not norm.n_elements:
            continue
        before = [it.name for it in operators[max(place - 2, 0) : place]]
        before = before[:-1] if before[-1:] == [_BIAS] else before
        if norm.call.value(_TRAINING) is False and _CONVOLUTION in "".join(before[-1:]):
            later = (it for it in operators[place + 1 :] if it.turn >= norm.end)
            after = next(later, None)
            yield _Norm(norm, after if after is not None and _fuses(norm, after) else None)


def _fuses(norm: Sized, after: Sized) -> bool:
    """Whether an operator is elementwise over the result of a batch norm."""
    from longpole.flops import is_pointwise

    return is_pointwise(after.name) and after.n_elements == norm.n_elements


def _time_ranges(facts: Facts, norm: Sized) -> list[TimeRange]:
    """Return the time of a batch norm on its thread, with the operators that only call it."""
    if not norm.time_ranges:
        return []
    around = facts.around(norm.operator)
    names = [(event, name) for event, kind, name in around if kind == "operator"]
    outer = [event for event, name in names if "batch_norm" in name]
    return [facts.place(outer[-1]).time_range]


REMEDY: Final = Remedy(
    id="folded_batch_norm",
    side="kernels",
    effort="one_line",
    needs="shapes and values of inputs, which show that the statistics are fixed",
    seen_by="batch norms with fixed statistics after convolutions",
    change="each takes one kernel with the elementwise operator after it, as long as the longer; "
    "at most, none",
    not_when="statistics are those of the batch, or a backward pass follows",
    is_measured=False,
    find=_find,
)
