"""The work of the kernels of XLA, from the HLO that XProf stores in `xplane.pb`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from longpole.flops.hlo import work_of_instruction
from longpole.formats.xplane.hlo import hlo_modules
from longpole.rows.frames import argument
from longpole.trace.kept import kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from longpole.flops import Work
    from longpole.flops.hlo import Instruction
    from longpole.formats.xplane.hlo import Module
    from longpole.trace.trace import Trace

_TIMELINE: Final = "xprof-json"
_FORMATS: Final = ("xplane", _TIMELINE)
_ENDS: Final = re.compile(r"(\.trace)?\.json(\.gz)?$")
_BUFFER: Final = "command_buffer"
_KERNEL: Final = {"event": pl.UInt32, "operator": pl.UInt32}


class HloWork(NamedTuple):
    """The instructions that ran as kernels."""

    kernels: pl.DataFrame
    """`event` of a kernel, `operator` (the number of its instruction) and `launch` (of its run)."""
    instructions: pl.DataFrame
    """`operator`, `name`, `shapes`, `dtypes`, `flops`, `n_bytes`, `dtype` and `is_matrix`."""


@kept
def hlo_work(trace: Trace) -> HloWork | None:
    """Return the work of the instructions of a trace; None without HLO.

    A kernel of a fusion has its name, and one of a library its instruction among its arguments. The
    kernels of a command buffer have only its name: fusions with equal code share a kernel, and the
    kernels of libraries belong to the library calls in the order of the schedule, if they are
    equally many and none overlapped another.
    """
    path = _profile_of(trace)
    modules = [] if path is None else hlo_modules(path)
    if not modules:
        return None
    known = _distinct(modules)
    kernels = pl.DataFrame(_joined(_kernels(trace), modules, known), schema=_KERNEL, orient="row")
    names = trace.events.select("event", "name")
    run = pl.int_range(pl.len(), dtype=pl.UInt32).over("operator", "name")
    numbered = kernels.sort("event").join(names, on="event").with_columns(launch=run)
    rows = [(number, *_row(it, work)) for number, it, work in known.values()]
    return HloWork(numbered.drop("name"), pl.DataFrame(rows, schema=_schema(), orient="row"))


def _profile_of(trace: Trace) -> Path | None:
    """Return the `xplane.pb` of a trace: itself, or the one that XProf wrote with a timeline."""
    path = trace.path
    if path is None or trace.format not in _FORMATS:
        return None
    if trace.format == _TIMELINE:
        path = path.with_name(_ENDS.sub(".xplane.pb", path.name))
    return path if path.is_file() else None


_Known = dict[tuple[str, str], tuple[int, "Instruction", "Work"]]


def _distinct(modules: Sequence[Module]) -> _Known:
    """Return instructions with known work by module and name; modules may have the same name."""
    found: _Known = {}
    differing = set()
    for module in modules:
        for instruction in module.instructions:
            key = module.name, instruction.name
            work = work_of_instruction(instruction)
            if work is None or (key in found and found[key][2] != work):
                differing.add(key)
            else:
                found.setdefault(key, (len(found), instruction, work))
    return {key: entry for key, entry in found.items() if key not in differing}


def _row(instruction: Instruction, work: Work) -> tuple[object, ...]:
    shapes = [list(shape.dimensions) for shape in instruction.operands]
    dtypes = [shape.dtype for shape in instruction.operands]
    name = instruction.op_name or instruction.name
    return name, shapes, dtypes, work.flops, work.n_bytes, work.dtype, work.is_matrix


def _schema() -> dict[str, pl.DataType | type[pl.DataType]]:
    return {
        "operator": pl.UInt32,
        "name": pl.String,
        "shapes": pl.List(pl.List(pl.Int64)),
        "dtypes": pl.List(pl.String),
        "flops": pl.Int64,
        "n_bytes": pl.Int64,
        "dtype": pl.String,
        "is_matrix": pl.Boolean,
    }


class _Kernel(NamedTuple):
    event: int
    name: str
    module: str
    hlo_op: str
    call: int | None
    start_ns: int
    end_ns: int


def _kernels(trace: Trace) -> list[_Kernel]:
    """List the kernels with a module, by launch and time."""
    arguments = trace.args(None, ["hlo_op", "hlo_module"])
    if arguments is None or not {"hlo_op", "hlo_module"} <= set(arguments.columns):
        return []
    op, module = (argument(arguments, name, pl.String) for name in ("hlo_op", "hlo_module"))
    named = arguments.select(pl.col("event").cast(pl.UInt32), hlo_op=op, hlo_module=module)
    events = trace.events.filter(pl.col("kind").cast(pl.String) == "kernel").select(
        "event", "start_ns", "duration_ns", name=pl.col("name").cast(pl.String)
    )
    calls = trace.launches.select("event", "call")
    rows = (
        events.join(named.drop_nulls(), on="event")
        .join(calls, on="event", how="left")
        .sort("call", "start_ns", "event")
        .with_columns(end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .select("event", "name", "hlo_module", "hlo_op", "call", "start_ns", "end_ns")
    )
    return [_Kernel(*row) for row in rows.iter_rows()]


def _joined(
    kernels: Sequence[_Kernel], modules: Sequence[Module], known: _Known
) -> Iterator[tuple[int, int]]:
    """Yield kernels and the number of their instruction."""
    by_kernel = {(module, _kernel_name(name)): it for (module, name), (it, *_) in known.items()}
    buffers: dict[tuple[str, int | None], list[_Kernel]] = {}
    for kernel in kernels:
        found = known.get((kernel.module, kernel.hlo_op))
        if found is not None:
            yield kernel.event, found[0]
        elif not kernel.hlo_op.startswith(_BUFFER):
            continue
        elif (number := by_kernel.get((kernel.module, kernel.name))) is not None:
            yield kernel.event, number
        else:
            buffers.setdefault((kernel.module, kernel.call), []).append(kernel)
    calls = {module.name: _library_calls(module, known) for module in modules}
    for (name, _), of_libraries in buffers.items():
        yield from _in_order(of_libraries, calls.get(name, []))


def _kernel_name(name: str) -> str:
    """Return the name of the kernel of a fusion.

    Examples
    --------
    >>> _kernel_name("loop_multiply_fusion.4")
    'loop_multiply_fusion_4'
    """
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _library_calls(module: Module, known: _Known) -> list[int | None]:
    """Return the numbers of the library calls of a module; None for those of unknown work."""
    entries = [
        known.get((module.name, it.name)) for it in module.instructions if it.is_library_call
    ]
    return [None if entry is None else entry[0] for entry in entries]


def _in_order(kernels: Sequence[_Kernel], calls: Sequence[int | None]) -> Iterable[tuple[int, int]]:
    pairs = pairwise(kernels)
    if len(kernels) != len(calls) or any(one.end_ns > other.start_ns for one, other in pairs):
        return []
    return [
        (kernel.event, call)
        for kernel, call in zip(kernels, calls, strict=True)
        if call is not None
    ]
