"""Forward work repeated in the backward pass: activation checkpointing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import in_words
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts, OnThread

__all__ = ["REMEDY"]

_NODE: Final = "autograd::engine::evaluate_function"

# Operators that no backward formula calls.
_FORWARD: Final = (
    "aten::linear",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::layer_norm",
    "aten::rms_norm",
    "aten::batch_norm",
    "aten::group_norm",
    "aten::scaled_dot_product_attention",
    "aten::softmax",
    "aten::embedding",
)

# A user function may call one of them in its backward pass; a checkpoint calls several.
_LEAST_IN_NODE: Final = 2

# Shorter gaps, in ns, are those between two operators of any layer.
_LEAST_GAP_NS: Final = 20_000


def _find(facts: Facts) -> Iterator[Found]:
    if not facts.operators(_NODE):
        return
    rows = [(row, _node(facts, row.event)) for row in _forward(facts)]
    forward = {_alike(facts, row) for row, node in rows if node is None}
    of_node: dict[int, list[OnThread]] = defaultdict(list)
    for row, node in rows:
        if node is not None and _alike(facts, row) in forward:
            of_node[node].append(row)
    again = {node: rows for node, rows in of_node.items() if len(rows) >= _LEAST_IN_NODE}
    if not again:
        return
    time_ranges = _repeated(facts, again)
    works = facts.launched_in(time_ranges)
    kernels = [work for work in works if work.kind == "kernel"]
    if not kernels or not facts.is_worth(sum(work.duration_ns for work in kernels)):
        return
    n_kernels = max(round(facts.per_window(len(kernels))), 1)
    first = max((row for rows in again.values() for row in rows), key=lambda row: row.duration_ns)
    yield Found(
        careful=[
            Drop(kind="kernel", events=[work.event for work in kernels]),
            Drop(time_ranges=time_ranges),
        ],
        hopeful=[
            Drop(kind="kernel", events=[work.event for work in kernels]),
            Drop(time_ranges=[*time_ranges, *_between_layers(facts, rows, again)]),
        ],
        advice="Keep the activations of some layers, without a checkpoint, if memory allows",
        evidence=(
            f"{count(n_kernels, 'kernel')} of the forward pass run again backward each "
            f"{facts.parts['unit']}, such as those of {in_words(facts, first.event)}"
        ),
        name=facts.name(first.event),
        events=facts.longest(kernels),
    )


def _repeated(facts: Facts, again: dict[int, list[OnThread]]) -> list[TimeRange]:
    """Return the time in which nodes run the forward pass again.

    A node first does that, and then, after Python has left the checkpoint, its own part of the
    backward pass, which begins with its next operator.
    """
    time_ranges = []
    for node, rows in again.items():
        place = facts.place(node)
        last_ns = max(row.end_ns for row in rows)
        after = facts.names_in([(place.lane, last_ns, place.end_ns)])
        starts_ns = [facts.place(row.first).start_ns for row in after if row.kind == "operator"]
        time_ranges.append((place.lane, place.start_ns, min(starts_ns, default=last_ns)))
    return time_ranges


def _between_layers(
    facts: Facts, rows: list[tuple[OnThread, int | None]], again: dict[int, list[OnThread]]
) -> list[TimeRange]:
    """Return the gaps of the forward pass, in which a checkpoint saves what it needs."""
    repeated = {_alike(facts, row) for found in again.values() for row in found}
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for row, node in rows:
        if node is None and _alike(facts, row) in repeated:
            place = row.lane, row.window
            start_ns, end_ns = spans.get(place, (row.start_ns, row.end_ns))
            spans[place] = min(start_ns, row.start_ns), max(end_ns, row.end_ns)
    return [
        gap.time_range
        for gap in facts.gaps(_LEAST_GAP_NS)
        if (span := spans.get((gap.lane, gap.window)))
        and span[0] <= gap.start_ns
        and gap.end_ns <= span[1]
    ]


def _forward(facts: Facts) -> list[OnThread]:
    rows = facts.operators(*_FORWARD)
    return sorted(
        (row for row in rows if facts.name(row.event) in _FORWARD),
        key=lambda row: (row.lane, row.start_ns),
    )


def _node(facts: Facts, event: int) -> int | None:
    """Return the innermost backward node around an operator; None in a forward pass."""
    around = facts.around(event)
    return next((it for it, _, name in around if name.startswith(_NODE)), None)


def _alike(facts: Facts, row: OnThread) -> tuple[str, str]:
    return facts.name(row.event), facts.text(row.event, "Input Dims") or ""


REMEDY: Final = Remedy(
    id="recomputation",
    side="kernels",
    effort="code",
    needs="operators of torch, forward and backward",
    seen_by=(
        "two operators or more that only forward passes call, such as `linear`, inside one node of "
        "the backward pass, with the inputs that they have in the forward pass"
    ),
    change="what these operators launch, and what the host does from the start of the node until "
    "it begins its own part; at most, the gaps between operators of the forward pass as well",
    not_when="the activations of all layers do not fit into memory: then it holds for some layers",
    find=_find,
)
