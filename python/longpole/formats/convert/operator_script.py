"""Writes a script that runs one operator of a trace alone, with its recorded inputs.

The script turns a kernel on the critical path into a program that can be tuned and timed. Traces do
not contain the values of tensors, so the script uses random values. It lists everything else that
was not recorded.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.flops.dtypes import python_name
from longpole.flops.inputs import INPUT_ARGUMENTS, item_at, json_list
from longpole.formats.convert.execution_trace import link_execution_trace, read_execution_trace
from longpole.trace.stacks import subtree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.trace.trace import Trace

_ASSUMED: Final = "float32"
_UNKNOWN: Final = "NOT_RECORDED"
_DEFAULTED: Final = ": the default is taken"
_LIST: Final = "the tensors of its list"
_ARGUMENT: Final = "the value of its argument"
_OF_SIZES: Final = frozenset(
    {
        *("as_strided", "view", "_unsafe_view", "_reshape_alias", "reshape", "expand", "permute"),
        *("repeat", "tile", "unflatten", "roll", "flip", "new_empty", "new_zeros", "new_full"),
        *("empty", "empty_strided", "zeros", "ones", "full", "rand", "randn"),
    }
)
"""Operators with arguments that are lists of numbers without a default."""

FUNCTIONS: Final = '''def tensor(recorded, device):
    """Make a tensor of the recorded shape, strides and type, with values of its own."""
    import torch

    shape, strides, dtype = recorded.shape, recorded.strides, getattr(torch, recorded.dtype)
    if strides is None:
        strides = torch.empty(shape, device="meta").stride()
    n_stored = 1 + sum((size - 1) * step for size, step in zip(shape, strides))
    if 0 in shape:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        stored = torch.randn(n_stored, dtype=wide, device=device).to(dtype)
    else:
        stored = torch.zeros(n_stored, dtype=dtype, device=device)
    return stored.as_strided(shape, strides)


def made(value, device):
    """Make one input."""
    if isinstance(value, Tensor):
        return tensor(value, device)
    if isinstance(value, list):
        return [made(each, device) for each in value]
    return value


def is_needed(argument, value):
    """Whether an argument was not recorded, and the operator has no default for it."""
    if value is not NOT_RECORDED or argument.has_default_value():
        return False
    return not str(argument.type).startswith("Optional")


def resolved(operator, overload, inputs):
    """Return the overload of an operator that takes inputs, and these by position and by name."""
    import torch

    namespace, name = operator.split("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    failures = []
    for overload in [overload] if overload else packet.overloads():
        call = getattr(packet, overload)
        arguments = call._schema.arguments
        if len(arguments) < len(inputs):
            continue
        needed = [it.name for it, value in zip(arguments, inputs) if is_needed(it, value)]
        if needed:
            failures.append(f"{overload}: not recorded, and without a default: {', '.join(needed)}")
            continue
        pairs = [(it, value) for it, value in zip(arguments, inputs) if value is not NOT_RECORDED]
        if len(pairs) < len(inputs):  # what was not recorded has its default
            positional, named = [], {it.name: value for it, value in pairs}
        else:
            positional = [value for it, value in pairs if not it.kwarg_only]
            named = {it.name: value for it, value in pairs if it.kwarg_only}
        try:
            call(*positional, **named)
        except (RuntimeError, TypeError, ValueError) as error:
            failures.append(f"{overload}: {error}")
        else:
            return call, positional, named
    raise SystemExit("no overload takes these inputs:\\n" + "\\n".join(failures))


def operator(operator, overload, inputs):
    """Return a function that runs an operator with inputs."""
    call, positional, named = resolved(operator, overload, inputs)
    return lambda: call(*positional, **named)
'''
"""Functions that a script creates inputs and finds operators with."""

_SCRIPT: Final = '''"""{doc}
"""

import argparse
from collections import namedtuple

Tensor = namedtuple("Tensor", "shape strides dtype")
NOT_RECORDED = "not recorded"

OPERATOR = {operator!r}
OVERLOAD = {overload!r}
DEVICE = {device!r}
INPUTS = [
{inputs}]
NOT_RECORDED_INPUTS = [
{missing}]


{functions}


def main():
    """Time the operator with the clock of longpole."""
    try:
        import torch

        from longpole.bench import CpuClock, TorchClock, measure
    except ImportError as error:
        raise SystemExit(f"the script needs torch and longpole: {{error}}\\n"
                         "hint: pip install 'longpole[torch]'") from error

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = DEVICE if DEVICE == "cpu" or torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=usual)
    parser.add_argument("--cache", default="hot", choices=["hot", "cold"])
    options = parser.parse_args()
    torch.manual_seed(0)
    with torch.no_grad():
        inputs = [made(each, options.device) for each in INPUTS]
        run = operator(OPERATOR, OVERLOAD, inputs)
        is_cpu = options.device == "cpu"
        clock = CpuClock() if is_cpu else TorchClock(options.cache)
        timing = measure(run, key=OPERATOR, clock=clock)
    summary = timing.summarise()
    if summary is None:
        raise SystemExit(f"{{OPERATOR}}: {{timing.outcome}}, {{timing.message}}")
    threads = f", {{torch.get_num_threads()}} threads" if is_cpu else ""
    print(f"{{OPERATOR}} on {{options.device}}{{threads}}: {{summary.median_ns / 1e3:.2f}} us "
          f"(median of {{len(timing.samples_ns)}} samples)")
    print({recorded!r})
    print("not recorded:", *NOT_RECORDED_INPUTS, sep="\\n- ")


if __name__ == "__main__":
    main()
'''


@dataclass(frozen=True, slots=True)
class OperatorScript:
    """A script, and which inputs of the operator were not recorded."""

    text: str
    operator: str
    event: int
    """Row of the operator in `Trace.events`."""
    inputs: tuple[str, ...]
    """Inputs as written in the script."""
    not_recorded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Call:
    """The known parts of a call: its inputs as code, the overload, and what was not recorded."""

    inputs: list[str]
    missing: list[str]
    overload: str = ""
    devices: frozenset[str] = frozenset()


def operator_script(
    trace: Trace, event: int, *, source: str = "the trace", execution: str | None = None
) -> OperatorScript:
    """Write a script that runs an operator alone, with its recorded inputs.

    Parameters
    ----------
    trace
        The trace, read with the default `args`.
    event
        A row of `trace.events`: an operator, or a GPU activity launched by one.
    source
        Name of the trace in the script.
    execution
        The file of the execution trace of the same run, which has values of scalars and types
        of lists.

    Raises
    ------
    ValueError
        The event is not an operator or launched by one, or its inputs were not recorded.
    """
    row = _operator_of(trace, event)
    operator = int(row["event"])
    call = _linked(trace, operator, execution) if execution else None
    call = call or _recorded(trace, operator)
    if call is not None and (needed := _needed(row["name"], call)):
        message = (
            f"{row['name']} (event {operator}) cannot run alone, because it needs what was not "
            f"recorded: {'; '.join(needed)}; the execution trace of the run may have it (--et)"
        )
        raise ValueError(message)
    if call is None:
        message = (
            f"the inputs of {row['name']} (event {operator}) were not recorded with shapes and "
            "types: record with record_shapes=True, or give the execution trace of the run"
        )
        raise ValueError(message)
    missing = [*call.missing, "the values of tensors: floating-point ones are random, others zero"]
    on_device_ns = _on_device_ns(trace, operator)
    text = _SCRIPT.format(
        functions=FUNCTIONS.rstrip(),
        missing="".join(f"    {each!r},\n" for each in missing),
        doc=_quoted(
            f"Run {row['name']} alone, as {source} recorded it (event {operator}).\n\n"
            "Not recorded:\n" + "\n".join(f"- {each}" for each in missing)
        ),
        operator=row["name"],
        overload=call.overload,
        device="cuda" if on_device_ns or "cuda" in call.devices else "cpu",
        inputs="".join(f"    {each},\n" for each in call.inputs),
        recorded=_recorded_time(row["duration_ns"], on_device_ns),
    )
    return OperatorScript(text, row["name"], operator, tuple(call.inputs), tuple(missing))


def _needed(name: str, call: _Call) -> list[str]:
    """Return the inputs without which an operator cannot run: lists of tensors, and its sizes."""
    needs_sizes = name.partition("::")[2].rstrip("_") in _OF_SIZES
    return [
        each.removesuffix(_DEFAULTED)
        for each in call.missing
        if _LIST in each or (needs_sizes and _ARGUMENT in each)
    ]


def _quoted(text: str) -> str:
    """Quote a string from a trace so that it cannot end the Python string and run as code."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _operator_of(trace: Trace, event: int) -> dict[str, Any]:
    """Return the operator: the event itself, or the one that launched it."""
    import polars as pl

    from longpole.trace import sweeps

    if not 0 <= event < trace.events.height:
        message = f"the trace has no event {event}; events are 0 to {trace.events.height - 1}"
        raise ValueError(message)
    launched = sweeps.activities(trace).filter(pl.col("event") == event)
    owner = launched["operator"][0] if launched.height else event
    if owner is None:
        message = f"no operator is known that launched event {event}"
        raise ValueError(message)
    row = trace.events.row(int(owner), named=True)
    if "::" not in str(row["name"]):
        message = f"event {event} ({row['name']}) is not a torch operator"
        raise ValueError(message)
    return {**row, "event": int(owner)}


def _recorded_time(duration_ns: int, on_device_ns: int) -> str:
    """Describe the recorded time; the device time comes first, since the script measures it."""
    on_thread = f"{duration_ns / 1e3:.2f} us on its thread"
    on_gpu = f"{on_device_ns / 1e3:.2f} us on the GPU, " if on_device_ns else ""
    return f"in the trace it took {on_gpu}{on_thread}"


def _on_device_ns(trace: Trace, operator: int) -> int:
    """Sum the GPU activities launched by an operator, including its nested operators."""
    import polars as pl

    from longpole.trace import sweeps

    nested = subtree(trace, operator)["event"]
    launched = sweeps.activities(trace).filter(pl.col("operator").is_in(nested.implode()))
    return int(trace.events["duration_ns"].gather(launched["event"]).sum())


def recorded_inputs(trace: Trace, operators: Sequence[int]) -> dict[int, list[str]]:
    """Return the recorded inputs of operators as code; operators without any are left out."""
    return {event: call.inputs for event, call in _all_recorded(trace, operators).items()}


def _recorded(trace: Trace, operator: int) -> _Call | None:
    """Read the inputs that the trace itself recorded."""
    return _all_recorded(trace, [operator]).get(operator)


def _all_recorded(trace: Trace, operators: Sequence[int]) -> dict[int, _Call]:
    """Read the inputs of operators that the trace itself recorded."""
    import polars as pl

    calls: dict[int, _Call] = {}
    for category in ("cpu_op", "Operator"):
        found = trace.args(category, INPUT_ARGUMENTS)
        if found is None:
            continue
        for named in found.filter(pl.col("event").is_in(operators)).iter_rows(named=True):
            row = {name: value for name, value in named.items() if value}
            dims = row.get("Input Dims", row.get("Input dims"))
            # Some versions of torch record shapes without types, which are not sufficient.
            if dims is not None and (json_list(row.get("Input type")) or dims == "[]"):
                calls[named["event"]] = _of_kineto(row, json_list(dims))
    return calls


def _of_kineto(row: dict[str, Any], dims: list[Any]) -> _Call:
    types, strides, values = (
        json_list(row.get(name)) for name in ("Input type", "Input Strides", "Concrete Inputs")
    )
    inputs, missing = [], []
    has_values = any(values)
    for place, shape in enumerate(dims):
        type_, text = item_at(types, place) or "", item_at(values, place) or ""
        steps = item_at(strides, place)
        if not (type_ or shape or text or has_values):
            # None, or a list of numbers: only the values tell them apart.
            code, lacks = _UNKNOWN, [_ARGUMENT + _DEFAULTED]
        else:
            code, lacks = _kineto_input(type_, text, shape, steps)
        inputs.append(code)
        missing += [f"input {place}: {each}" for each in lacks]
    return _Call(inputs, missing)


def _kineto_input(type_: str, text: str, shape: Any, steps: Any) -> tuple[str, list[str]]:
    """Convert an input to code; also return what was not recorded."""
    if type_ == "TensorList" and not shape:
        return _UNKNOWN, [_LIST]
    if type_ == "TensorList" or (shape and isinstance(shape[0], list)):
        parts = [_tensor(one, item_at(steps, place), _ASSUMED) for place, one in enumerate(shape)]
        return f"[{', '.join(parts)}]", [f"the types in its list: {_ASSUMED} is assumed"]
    if (dtype := python_name(type_)) is not None:
        lacks = [] if steps is not None else ["strides: contiguous is assumed"]
        return _tensor(shape, steps, dtype), lacks
    if not type_ and not shape and not text:
        return "None", []
    value = _literal(text)
    if value is None:
        return _UNKNOWN, [f"the value of its {type_ or 'argument'}: the default is taken"]
    return value, []


def _linked(trace: Trace, operator: int, execution: str) -> _Call | None:
    """Return the inputs from the node of the execution trace; None if it has no inputs."""
    import polars as pl

    nodes = read_execution_trace(execution)
    linked = link_execution_trace(nodes, trace).nodes
    own = linked.filter((pl.col("event") == operator) & (pl.col("kind") == "operator"))
    found = nodes.nodes.join(own.select("node"), on="node", how="semi")
    if found.is_empty():
        message = (
            f"the execution trace has no node for event {operator}: choose an operator of the "
            "iteration that it holds, or leave it out"
        )
        raise ValueError(message)
    return _of_node(found.row(0, named=True))


def _of_node(row: dict[str, Any]) -> _Call:
    values, shapes, types, strides = (
        json_list(row[f"input_{name}"]) for name in ("values", "shapes", "types", "strides")
    )
    inputs, missing, devices = [], [], set()
    for place, type_ in enumerate(types):
        value = item_at(values, place)
        steps = item_at(strides, place)
        inputs.append(_node_input(type_, value, item_at(shapes, place), steps))
        devices |= set(_devices(value))
        if "Tensor(" in type_ and steps is None:
            missing.append(f"input {place}: strides: contiguous is assumed")
        if inputs[-1] == _UNKNOWN:
            missing.append(f"input {place}: its {type_}: the default is taken")
    return _Call(inputs, missing, _overload(row["op_schema"] or ""), frozenset(devices))


def _node_input(type_: str, value: Any, shape: Any, steps: Any) -> str:
    if type_.startswith("Tensor("):
        name = type_.removeprefix("Tensor(").removesuffix(")")
        if (dtype := python_name(name)) is not None:
            return _tensor(shape, steps, dtype)
        return "None" if "nullptr" in name else _UNKNOWN
    if type_.startswith("GenericList["):
        parts = list(_list_types(type_))
        codes = [
            _node_input(part, item_at(value, place), item_at(shape, place), item_at(steps, place))
            for place, part in enumerate(parts)
        ]
        return _UNKNOWN if _UNKNOWN in codes else f"[{', '.join(codes)}]"
    if type_ == "None":
        return "None"
    if isinstance(value, int | float | bool) or type_ == "String":
        return repr(value)
    return _UNKNOWN


def _list_types(text: str) -> Iterator[str]:
    """Yield the types in a list; commas inside brackets belong to one type."""
    inner, depth, start = text.removeprefix("GenericList[").removesuffix("]"), 0, 0
    for place, character in enumerate(inner):
        depth += (character in "[(<") - (character in "])>")
        if character == "," and not depth:
            yield inner[start:place].strip()
            start = place + 1
    if inner:
        yield inner[start:].strip()


def _devices(value: Any) -> Iterator[str]:
    """Yield the device types of tensors: `[id, storage, offset, size, itemsize, "cuda:0"]`."""
    if isinstance(value, list):
        if value and isinstance(value[-1], str):
            yield value[-1].partition(":")[0]
        else:
            for each in value:
                yield from _devices(each)


def _overload(schema: str) -> str:
    """Return the overload of a schema; `default` if it has none."""
    name = schema.partition("(")[0].partition("::")[2]
    if not name:
        return ""
    return name.partition(".")[2] or "default"


def _tensor(shape: Any, steps: Any, dtype: str) -> str:
    """Convert a tensor to code."""
    sizes = tuple(int(size) for size in shape or ())
    known = isinstance(steps, list) and len(steps) == len(sizes)
    strides = tuple(int(step) for step in steps) if known else None
    return f"Tensor({sizes!r}, {strides!r}, {dtype!r})"


def _literal(text: str) -> str | None:
    """Return a string as code if it is a plain value, else None."""
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
