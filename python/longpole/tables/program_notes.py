"""Finds habits and settings of a program that are visible without a critical path.

Each rule searches the steps of the verdict for one pattern with a single meaning, and reports
nothing if anything else could have caused it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from longpole.engine.question import Question
from longpole.engine.windows import choose_window
from longpole.errors import LongpoleError
from longpole.remedies.facts import Facts
from longpole.tables.device_times import device_times
from longpole.words.data import Row
from longpole.words.recording import options_for
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.recorded import OnThread
    from longpole.trace.trace import Trace

# A few launches that return after their kernel prove nothing, nor do very short kernels.
_FEWEST_LAUNCHES: Final = 10
_MOST_LAUNCHES: Final = 200
_LONG_KERNEL_NS: Final = 20_000
_LAUNCH: Final = re.compile(r"(?:cuda|cu|hip)\w*Launch")
"""Calls that the variables `CUDA_LAUNCH_BLOCKING` and `HIP_LAUNCH_BLOCKING` affect."""

# Anomaly mode checks the results of every backward node; a hook checks some of them.
_FEWEST_CHECKS: Final = 10
_CHECKED_NODES: Final = 0.5
_NODE: Final = "autograd::engine::evaluate_function"

_CELLS: Final = ("aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell", "aten::rnn_relu_cell")
_FEWEST_CELLS: Final = 8
"""Number of consecutive cells that shows a loop over a sequence."""

# After fewer steps, a backward pass may still follow; a few nodes cost very little.
_STEPS_WITHOUT_BACKWARD: Final = 3
_FEWEST_NODES: Final = 10
_CONVOLUTIONS: Final = ("aten::conv1d", "aten::conv2d", "aten::conv3d")
_TRAINING: Final = 5
"""Position of the argument of `aten::batch_norm` that selects batch statistics."""


class ProgramNote(Row):
    """A habit or setting of the program that costs time."""

    code: str
    count: int
    sentence: str
    """Sentence on what the trace shows."""
    advice: str
    event: int
    """The first event that shows it, a row of `Trace.events`."""


class Rule(NamedTuple):
    """A rule: how to find a habit, and what to do instead."""

    code: str
    seen_by: str
    advice: str
    find: Callable[[Trace, Facts], tuple[Sequence[int], str] | None]
    """Return the events that show the habit and a sentence, or None."""


def program_notes(trace: Trace) -> tuple[ProgramNote, ...]:
    """List habits and settings of the program that cost time, as far as the trace shows them.

    Inputs of operators are needed for `bias_before_batch_norm`; read the trace with the default
    arguments.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> program_notes(TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read())
    ()
    """
    if trace.window is None:
        return ()
    window = Question().core_window()
    try:
        core = trace.core.facts(window, step_name=None)
    except LongpoleError:
        return ()
    # The rules ask for events, not for gains.
    parts = cast("VerdictParts", {"unit": trace.scope(Question())[0]})
    facts = Facts(core, parts, options_for(trace.core), trace.device_properties)
    found = [(rule, rule.find(trace, facts)) for rule in RULES]
    return tuple(
        ProgramNote(
            code=rule.code,
            count=len(seen[0]),
            sentence=seen[1],
            advice=rule.advice,
            event=min(seen[0]),
        )
        for rule, seen in found
        if seen is not None and seen[0]
    )


def _data_parallel(trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find the copies of a model that one process runs on several GPUs."""
    calls = _marked(facts, "DataParallel.forward")
    window = choose_window(trace, whole=True)
    if not calls or window is None:
        return None
    n_devices = sum(device.whole.count > 0 for device in device_times(trace, window))
    if n_devices < 2:  # noqa: PLR2004
        return None
    told = f"`torch.nn.DataParallel` copies the model to {n_devices} GPUs in every forward pass"
    return [call.event for call in calls], told


def _gloo(_trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find gradients of a GPU that are reduced on the CPU."""
    if not _marked(facts, "DistributedDataParallel.forward") or not facts.kernels:
        return None
    if any(kernel.kind == "communication" for kernel in facts.kernels):
        return None
    calls = _marked(facts, "gloo:all_reduce", "gloo:allreduce")
    told = (
        f"{count(len(calls), 'collective')} of gloo: gradients of a GPU are reduced on the CPU, and"
        " no collective runs on the GPU"
    )
    return [call.event for call in calls], told


def _bias_before_norm(_trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find convolutions that add a bias which the batch norm after them subtracts again."""
    norms: dict[int, list[OnThread]] = {}
    for norm in facts.operators("aten::batch_norm"):
        norms.setdefault(norm.lane, []).append(norm)
    for rows in norms.values():
        rows.sort(key=lambda row: row.start_ns)
    found = []
    for convolution in _outermost(facts.operators(*_CONVOLUTIONS)) if norms else ():
        rows = norms.get(convolution.lane, [])
        at = bisect_left(rows, convolution.end_ns, key=lambda row: row.start_ns)
        if at < len(rows) and _is_subtracted(facts, convolution, rows[at]):
            found.append(convolution.event)
    per_step = max(round(facts.per_window(len(found))), 1)
    told = f"{count(per_step, 'convolution')} a step add a bias, which the batch norm subtracts"
    return found, told


def _outermost(rows: Sequence[OnThread]) -> list[OnThread]:
    """Leave out operators inside another of the list, as autocast nests them."""
    kept: dict[int, OnThread] = {}
    found = []
    for row in sorted(rows, key=lambda row: (row.lane, row.start_ns, -row.end_ns)):
        outer = kept.get(row.lane)
        if outer is None or row.end_ns > outer.end_ns:
            kept[row.lane] = row
            found.append(row)
    return found


def _is_subtracted(facts: Facts, convolution: OnThread, norm: OnThread) -> bool:
    """Whether a batch norm in training normalises exactly the result of a convolution with bias."""
    shapes, normalised = _shapes(facts, convolution), _shapes(facts, norm)
    if len(shapes) < 3 or len(shapes[2]) != 1 or not normalised:  # noqa: PLR2004
        return False
    image, channels = normalised[0], shapes[2][0]
    if image[:2] != [*shapes[0][:1], channels] or not _is_training(facts, norm):
        return False
    between = facts.names_in([(convolution.lane, convolution.end_ns, norm.start_ns)])
    # The batch norm counts its batches (`aten::add_`) before it normalises.
    return {row.name for row in between if row.kind == "operator"} <= {"aten::add_"}


def _is_training(facts: Facts, norm: OnThread) -> bool:
    values = _list_of(facts, norm, "Concrete Inputs")
    return len(values) > _TRAINING and values[_TRAINING] == "True"


def _shapes(facts: Facts, operator: OnThread) -> list[list[int]]:
    """Return the input shapes of an operator; empty if not recorded."""
    shapes = _list_of(facts, operator, "Input Dims")
    return [shape if isinstance(shape, list) else [] for shape in shapes]


def _list_of(facts: Facts, operator: OnThread, key: str) -> list[Any]:
    try:
        values = json.loads(facts.text(operator.event, key) or "[]")
    except (ValueError, RecursionError):
        return []
    return values if isinstance(values, list) else []


def _lazy_loading(_trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find kernels that are loaded while steps run."""
    calls = facts.calls("load_module")
    total_ns = sum(call.duration_ns for call in calls)
    if not facts.is_worth(max(total_ns, 1), 0.001):
        return None
    told = f"{count(len(calls), 'call')} load kernels while steps run, {duration(total_ns)} in all"
    return [call.event for call in calls], told


def _launch_blocking(_trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find launches that all return only when their kernel has ended."""
    kernels = sorted(facts.long_kernels(_LONG_KERNEL_NS), key=lambda it: -it.duration_ns)
    launched = (it for it in kernels if _LAUNCH.match(facts.name(it.call)))
    calls = [(it, facts.place(it.call or 0)) for it in islice(launched, _MOST_LAUNCHES)]
    waited = [
        kernel.call
        for kernel, call in calls
        if call.duration_ns is not None
        and call.start_ns + call.duration_ns >= kernel.start_ns + kernel.duration_ns
    ]
    if len(waited) < _FEWEST_LAUNCHES or len(waited) < len(calls):
        return None
    told = f"all of {count(len(calls), 'launch', 'launches')} returned after the end of the kernel"
    return [call for call in waited if call is not None], told


def _anomaly(_trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find a check for NaN after most nodes of the backward pass."""
    checks = [
        row.event
        for row in facts.operators("aten::isnan")
        if _parent(facts, row.event).startswith(_NODE)
    ]
    if len(checks) < _FEWEST_CHECKS or len(checks) < _CHECKED_NODES * len(facts.operators(_NODE)):
        return None
    return checks, f"{count(len(checks), 'result')} of the backward pass are checked for NaN"


def _unused_graph(trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find operators that prepare a backward pass, which no step has.

    Torch numbers the nodes of a backward pass: an operator has the number of the next node of its
    thread, which grows only if a node is created.
    """
    is_step = facts.parts["unit"] == "step" and facts.n_windows >= _STEPS_WITHOUT_BACKWARD
    if not is_step or len(trace.core.backward_links()) or _trains(facts):
        return None
    numbered: dict[int, dict[int, dict[int, int]]] = {}
    for row in facts.operators():
        if row.window < _STEPS_WITHOUT_BACKWARD:
            number = facts.number(row.event, "Sequence number")
            if number is not None:
                lanes = numbered.setdefault(row.window, {})
                lanes.setdefault(row.lane, {}).setdefault(number, row.event)
    # The operators with the last number of a thread may have created no node.
    nodes = [
        [numbers[number] for numbers in lanes.values() for number in sorted(numbers)[:-1]]
        for lanes in numbered.values()
    ]
    fewest = min(map(len, nodes), default=0) if len(nodes) == _STEPS_WITHOUT_BACKWARD else 0
    # A backward pass that was not recorded launches its kernels from a thread of its own.
    if fewest < _FEWEST_NODES or not facts.launch_lanes <= set(numbered[0]):
        return None
    told = f"operators create {count(fewest, 'node')} of a backward pass a step, which has none"
    return [event for events in nodes for event in events], told


def _recurrent_cells(_trace: Trace, facts: Facts) -> tuple[Sequence[int], str] | None:
    """Find recurrent cells that a loop applies to a sequence, with no other GPU work between."""
    cells = sorted(facts.operators(*_CELLS), key=lambda row: (row.lane, row.start_ns))
    found: list[int] = []
    run: list[OnThread] = []
    for cell in cells:
        if not run or not _is_next_cell(facts, run[-1], cell):
            found += _of_loop(facts, run)
            run = []
        run.append(cell)
    found += _of_loop(facts, run)
    per_step = max(round(facts.per_window(len(found))), 1)
    name = facts.name(found[0]) if found else ""
    return found, f"a loop calls {name} {count(per_step, 'time')} a step"


def _is_next_cell(facts: Facts, last: OnThread, cell: OnThread) -> bool:
    """Whether a cell is like the previous one and follows it, with no launch between."""
    same = [(row.lane, row.window, facts.name(row.event)) for row in (last, cell)]
    shapes = [_shapes(facts, row) for row in (last, cell)]
    if same[0] != same[1] or shapes[0] != shapes[1]:
        return False
    return not facts.launched_in([(cell.lane, last.end_ns, cell.start_ns)])


def _of_loop(facts: Facts, run: Sequence[OnThread]) -> list[int]:
    """Return the cells of a loop on the GPU; none if they are too few."""
    if len(run) < _FEWEST_CELLS or not facts.launched_in([run[0].time_range]):
        return []
    return [cell.event for cell in run]


def _trains(facts: Facts) -> bool:
    """Whether there is a backward pass, or an optimizer, which follows one."""
    return bool(facts.operators(_NODE) or facts.annotations("Optimizer."))


def _parent(facts: Facts, event: int) -> str:
    """Return the operator directly around an event."""
    return next((name for _, kind, name in facts.around(event)[1:] if kind == "operator"), "")


def _marked(facts: Facts, *names: str) -> list[OnThread]:
    """List the ranges with these names, which torch records as annotations or operators."""
    return [*facts.annotations(*names), *facts.operators(*names)]


RULES: Final = (
    Rule(
        "data_parallel",
        "`DataParallel.forward` on two or more GPUs",
        "use `DistributedDataParallel`, one process for each GPU",
        _data_parallel,
    ),
    Rule(
        "gloo_on_gpu",
        "`DistributedDataParallel` on a GPU with all-reduces of gloo and none on the GPU",
        'use the backend of the device: `init_process_group("nccl")`',
        _gloo,
    ),
    Rule(
        "bias_before_batch_norm",
        "a convolution with a bias, then a batch norm in training (recorded shapes)",
        "create the convolution with `bias=False`",
        _bias_before_norm,
    ),
    Rule(
        "recurrent_cells",
        "8 or more LSTM, GRU or RNN cells in a row, with no other GPU work between",
        "run the whole sequence in one call of `torch.nn.LSTM`, `GRU` or `RNN`",
        _recurrent_cells,
    ),
    Rule(
        "lazy_loading",
        "calls that load modules in at least 0.1 % of the time of the steps",
        "run all code paths before the loop, or set `CUDA_MODULE_LOADING=EAGER`",
        _lazy_loading,
    ),
    Rule(
        "launch_blocking",
        "every launch of a long kernel returns after the end of the kernel",
        "unset `CUDA_LAUNCH_BLOCKING` (or `HIP_LAUNCH_BLOCKING`); if it is not set, the profiler "
        "runs one kernel at a time",
        _launch_blocking,
    ),
    Rule(
        "anomaly_mode",
        "`aten::isnan` after at least half of the nodes of the backward pass",
        "turn off `torch.autograd.set_detect_anomaly`",
        _anomaly,
    ),
    Rule(
        "unused_graph",
        "sequence numbers that grow in every step, no backward pass and no optimizer",
        "run inference inside `torch.inference_mode()` or `torch.no_grad()`",
        _unused_graph,
    ),
)
"""The rules, in the order of the list."""
