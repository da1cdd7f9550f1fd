"""An optimizer that updates its parameters one by one.

Every parameter has its own operators and kernels. With `foreach=True` or `fused=True`, one launch
updates about thirty tensors, and a fused kernel reads and writes each of them once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Scale
from longpole.remedies.model import Form, Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, OnThread

# torch's names of the annotation around a step of an optimizer, and of the operators that update
# many tensors at once.
_STEP: Final = "Optimizer.step#"
_AT_ONCE: Final = ("_foreach_", "_fused_", "aten::_foreach", "aten::_fused")

# The operator that changes each parameter, of Adam and its like, and of others.
_UPDATING: Final = ("aten::addcdiv_", "aten::add_")

# With fewer launches in a step of the optimizer there is no loop over parameters to save.
_LEAST_LAUNCHES: Final = 40

# Number of tensors of a launch of `_fused_` or `_foreach_`; a loop launches at least three kernels
# for each.
_TENSORS_OF_LAUNCH: Final = 30
_KERNELS_OF_TENSOR: Final = 3

# Most kernels of a loop read and write what the previous kernel did: one pass over memory remains.
_ONE_PASS: Final = 1 / 3

# The part of the step outside its loop takes at most this share of its host time.
_REST_OF_HOST: Final = 0.1


def _find(facts: Facts) -> Iterator[Found]:
    steps: dict[str, list[OnThread]] = defaultdict(list)
    for step in facts.annotations(_STEP):
        steps[facts.name(step.event)].append(step)
    for name, rows in sorted(steps.items()):
        time_ranges = [row.time_range for row in rows]
        works = facts.launched_in(time_ranges)
        if len(works) < _LEAST_LAUNCHES * len(rows) or _is_at_once(facts, rows):
            continue
        yield _found(facts, name, rows, works)


def _is_at_once(facts: Facts, rows: list[OnThread]) -> bool:
    names = facts.names_in([row.time_range for row in rows])
    return any(row.kind == "operator" and any(of in row.name for of in _AT_ONCE) for row in names)


def _found(facts: Facts, name: str, rows: list[OnThread], works: list[Activity]) -> Found:
    optimizer = name.removeprefix(_STEP).split(".")[0]
    kept = max(len(works) // (_TENSORS_OF_LAUNCH * _KERNELS_OF_TENSOR), 1)
    kernels = [row.event for row in works]
    host = max(1 / _TENSORS_OF_LAUNCH, kept / len(works))
    time_ranges = [row.time_range for row in rows]
    delays = Scale(by=kept / len(works), kind="kernel_delay", events=kernels)
    launched = {work.event for work in facts.kernels if work.call is not None}
    n_of_loop = len(launched.intersection(kernels))
    return Found(
        careful=[Scale(by=_REST_OF_HOST, time_ranges=time_ranges), delays],
        hopeful=[
            Scale(by=host, time_ranges=time_ranges),
            delays,
            Scale(by=_ONE_PASS, kind="kernel", events=kernels),
        ],
        advice=f"Let {optimizer} update all tensors at once (`fused=True` or `foreach=True`)",
        evidence=(
            f"{facts.per_window(n_of_loop):,.0f} of "
            f"{count(round(facts.per_window(len(launched))), 'launch', 'launches')} {facts.each} "
            "are its loop"
        ),
        name=name,
        events=facts.longest(rows),
        forms=_forms(facts, optimizer, rows, kernels),
    )


def _forms(facts: Facts, optimizer: str, rows: list[OnThread], kernels: list[int]) -> list[Form]:
    """Return a step that a script can time: one parameter for each operator that updates one."""
    first = rows[0]
    for name in _UPDATING:
        updating = [
            row.event
            for row in facts.operators(name)
            if row.lane == first.lane
            and first.start_ns <= row.start_ns < first.end_ns
            and facts.name(row.event) == name
            and facts.called(row.event) is not None
        ]
        if updating:
            return [
                Form(
                    how="fused_optimizer",
                    operators=updating,
                    events=kernels,
                    time_ranges=[row.time_range for row in rows],
                    detail=optimizer,
                )
            ]
    return []


REMEDY: Final = Remedy(
    id="optimizer_loop",
    side="host",
    effort="one_line",
    needs="operators and annotations of torch",
    seen_by=(
        "operators for each parameter inside `Optimizer.step#`, none of them `_foreach_` or "
        "`_fused_`"
    ),
    change="host time and launches of the step to a thirtieth, kernels to one pass over memory",
    not_when="`foreach` or `fused` is in use, or the step has fewer than 40 launches",
    find=_find,
)
