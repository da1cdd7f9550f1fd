"""Forward work repeated in the backward pass: activation checkpointing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.remedies.recorded import OnThread
from longpole.remedies.rooflines import in_words
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

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

# A user function can call one of these operators in its backward pass; a checkpoint calls several.
_LEAST_IN_NODE: Final = 2

# Shorter gaps, in ns, are those between two operators of any layer.
_LEAST_GAP_NS: Final = 8_000


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
    spans = _spans(facts, rows, _repeats(facts, again))
    time_ranges = _repeated(facts, again, set())
    longer = _repeated(facts, again, _names(facts, spans))
    kernels = _kernels(facts, time_ranges)
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
            Drop(kind="kernel", events=[work.event for work in _kernels(facts, longer)]),
            Drop(time_ranges=[*longer, *_between_layers(facts, spans)]),
        ],
        advice="Keep the activations of some layers, without a checkpoint, if memory allows",
        evidence=(
            f"{count(n_kernels, 'kernel')} of the forward pass run again backward each "
            f"{facts.unit}, such as those of {in_words(facts, first.event)}"
        ),
        name=facts.name(first.event),
        events=facts.longest(kernels),
    )


def _kernels(facts: Facts, time_ranges: list[TimeRange]) -> list[Activity]:
    return [work for work in facts.launched_in(time_ranges) if work.kind == "kernel"]


def _repeated(
    facts: Facts, again: dict[int, list[OnThread]], of_forward: set[str]
) -> list[TimeRange]:
    """Return the time in which nodes run the forward pass again.

    A node first does that, and then, after Python has left the checkpoint, its own part of the
    backward pass. That begins with the operator after those found; at most, with the first one of
    a name that the forward pass does not have.
    """
    time_ranges = []
    for node, rows in again.items():
        place = facts.place(node)
        last_ns = max(row.end_ns for row in rows)
        after = facts.names_in([(place.lane, last_ns, place.end_ns)])
        own = [row for row in after if row.kind == "operator" and row.name not in of_forward]
        starts_ns = [facts.place(row.first).start_ns for row in own]
        time_ranges.append((place.lane, place.start_ns, min(starts_ns, default=last_ns)))
    return time_ranges


def _repeats(facts: Facts, again: dict[int, list[OnThread]]) -> set[tuple[str, str]]:
    return {_alike(facts, row) for found in again.values() for row in found}


def _spans(
    facts: Facts, rows: list[tuple[OnThread, int | None]], repeated: set[tuple[str, str]]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the start and end of the repeated forward pass on each thread in each window."""
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for row, node in rows:
        if node is None and _alike(facts, row) in repeated:
            place = row.lane, row.window
            start_ns, end_ns = spans.get(place, (row.start_ns, row.end_ns))
            spans[place] = min(start_ns, row.start_ns), max(end_ns, row.end_ns)
    return spans


def _names(facts: Facts, spans: dict[tuple[int, int], tuple[int, int]]) -> set[str]:
    """Return the names of all operators of the forward pass."""
    time_ranges = [(lane, *span) for (lane, _), span in spans.items()]
    return {row.name for row in facts.names_in(time_ranges) if row.kind == "operator"}


def _between_layers(facts: Facts, spans: dict[tuple[int, int], tuple[int, int]]) -> list[TimeRange]:
    """Return the gaps of the forward pass, in which a checkpoint saves what it needs."""
    return [
        gap.time_range
        for gap in facts.gaps(_LEAST_GAP_NS)
        if (span := spans.get((gap.lane, gap.window)))
        and span[0] <= gap.start_ns
        and gap.end_ns <= span[1]
    ]


def _forward(facts: Facts) -> list[OnThread]:
    """List the forward operators, including earlier ones that launched kernels of the windows."""
    rows = {row.event: row for row in facts.operators(*_FORWARD)}
    begin_ns = min((start_ns for start_ns, _ in facts.windows), default=0)
    for kernel in facts.kernels:
        if kernel.operator is None or kernel.operator in rows:
            continue
        if facts.place(kernel.operator).start_ns >= begin_ns:
            continue
        around = [event for event, _, _ in facts.around(kernel.operator)]
        for event in (kernel.operator, *around):
            if event not in rows and facts.name(event) in _FORWARD:
                place = facts.place(event)
                rows[event] = OnThread(
                    event, place.lane, place.start_ns, place.end_ns, kernel.window
                )
    return sorted(
        (row for row in rows.values() if facts.name(row.event) in _FORWARD),
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
    "it begins its own part; at most, also all that follows with names of the forward pass, and "
    "the gaps between its operators",
    not_when="the activations of all layers do not fit into memory: then it holds for some layers",
    find=_find,
)
