"""Gradients that are filled with zeros before each backward pass, where they could be dropped.

With `set_to_none=True`, `zero_grad` launches nothing, and the backward pass keeps its first
gradient of a parameter instead of adding it to zeros.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, OnThread

# torch's names of the annotation around `zero_grad` of an optimizer, and of the operators in it
# that fill one gradient, or many at once.
_ZERO_GRAD: Final = "Optimizer.zero_grad#"
_ONE: Final = "aten::zero_"
_MANY: Final = "aten::_foreach_zero_"

# The node of the backward pass that adds to a gradient, and the operator that does it.
_ACCUMULATION: Final = "torch::autograd::AccumulateGrad"
_ADDITION: Final = "aten::add_"

# Lower and upper bound of the host time to drop a gradient, measured with H100s.
_DROP_NS: Final = (3_000, 5_000)


def _find(facts: Facts) -> Iterator[Found]:
    calls: dict[str, list[OnThread]] = defaultdict(list)
    for row in facts.annotations(_ZERO_GRAD):
        calls[facts.name(row.event)].append(row)
    filling = []
    for _, rows in sorted(calls.items()):
        works = facts.launched_in([row.time_range for row in rows])
        fills = [work for work in works if facts.name(work.outermost) in {_ONE, _MANY}]
        if fills:
            filling.append((rows, fills))
    for rows, fills in filling:
        # With several optimizers, it is unknown whose parameters a gradient belongs to.
        additions = _additions(facts, fills) if len(filling) == 1 else []
        yield _found(facts, rows, fills, additions)


def _additions(facts: Facts, fills: list[Activity]) -> list[Change]:
    """Return the time saved if the first gradient of each parameter is not added to zeros."""
    added = [row for row in facts.operators(_ADDITION) if _is_accumulation(facts, row)]
    if not added:
        return []
    # Later passes of one step add to the gradients of the first.
    kept = max(1 - len(fills) / len(added), 0.0) if _is_one_by_one(facts, fills) else 0.0
    time_ranges = [row.time_range for row in added]
    kernels = [work.event for work in facts.launched_in(time_ranges) if work.kind == "kernel"]
    return [
        Scale(by=kept, time_ranges=time_ranges),
        Scale(by=kept, kind="kernel", events=kernels),
        Scale(by=kept, kind="kernel_delay", events=kernels),
    ]


def _is_one_by_one(facts: Facts, fills: list[Activity]) -> bool:
    return all(facts.name(work.outermost) == _ONE for work in fills)


def _is_accumulation(facts: Facts, row: OnThread) -> bool:
    return any(name == _ACCUMULATION for _, _, name in facts.around(row.event))


def _found(
    facts: Facts, rows: list[OnThread], fills: list[Activity], additions: list[Change]
) -> Found:
    name = facts.name(rows[0].event)
    optimizer = name.removeprefix(_ZERO_GRAD).split(".")[0]
    events = [work.event for work in fills]
    gone = [Drop(events=events), Drop(kind="kernel_delay", events=events)]
    time_ranges = [row.time_range for row in rows]
    host_ns = sum(row.duration_ns for row in rows)
    least, most = (min(len(fills) * time_ns / max(host_ns, 1), 1.0) for time_ns in _DROP_NS)
    if not _is_one_by_one(facts, fills):
        least, most = 0.0, 1.0
    n_fills = max(round(facts.per_window(len(fills))), 1)
    return Found(
        careful=[Scale(by=most, time_ranges=time_ranges), *gone],
        hopeful=[Scale(by=least, time_ranges=time_ranges), *gone, *additions],
        advice=(
            f"Let {optimizer} drop gradients instead of filling them with zeros "
            "(`zero_grad(set_to_none=True)`)"
        ),
        evidence=(
            f"{count(n_fills, 'launch', 'launches')} {facts.each} "
            f"{'fills' if n_fills == 1 else 'fill'} gradients with zeros"
        ),
        name=name,
        events=facts.longest(fills),
    )


REMEDY: Final = Remedy(
    id="zero_grad_fills",
    side="host",
    effort="one_line",
    needs="operators and annotations of torch",
    seen_by="kernels or memsets of `zero_` inside `Optimizer.zero_grad#`",
    change="the fills, and the host time of `zero_grad` but for 5 us a gradient; at most but for "
    "3 us, with the first addition to each gradient",
    not_when="`set_to_none` is in use, as by default since torch 2.0, or other code reads "
    "gradients that no backward pass has set",
    is_measured=False,
    find=_find,
)
