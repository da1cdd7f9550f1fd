"""Reads PyTorch execution traces, and links them to the Kineto trace of the same run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from longpole._core import link_execution_trace as link_core
from longpole._core import read_execution_trace as read_core
from longpole.formats.read import read_trace
from longpole.rows.frames import frame_of
from longpole.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO, TypeAlias

    import polars as pl

    from longpole._core import ExecutionTrace as CoreExecutionTrace
    from longpole._core import LinkedTrace as CoreLinkedTrace

    Source: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO

Method = Literal["record_function_id", "thread_order", "external_id"]
"""How the nodes of an execution trace were matched to events of a Kineto trace."""


def read_execution_trace(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    strict: bool = False,
    max_bytes: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> ExecutionTrace:
    """Read an execution trace, as written by PyTorch's `ExecutionTraceObserver`.

    Schemas 1.0.1 to 1.1.1 are read: plain JSON, gzip, or the first file of a tar archive. ET+
    files, written by Chakra's linker and longpole, are read too. From a damaged file all complete
    nodes are read, and `ExecutionTrace.diagnostics` says what was lost.

    Parameters
    ----------
    source
        A path, the bytes themselves, or a binary file object.
    strict
        Raise on the first loss or repair.
    max_bytes
        Stop after this many bytes of the uncompressed file.
    progress
        Called periodically with the number of bytes read. If it raises, reading ends.

    Raises
    ------
    TraceError
        The source is not an execution trace, or is not well-formed (with `strict`).
    OSError
        The file cannot be opened or read.

    Examples
    --------
    >>> text = b'{"schema": "1.0.1", "nodes": [{"id": 2, "name": "aten::mm", "parent": 1}]}'
    >>> read_execution_trace(text).nodes.select("node", "name", "parent").row(0)
    (2, 'aten::mm', 1)
    """
    core = read_core(source, strict=strict, max_bytes=max_bytes, progress=progress)
    return ExecutionTrace(core)


class ExecutionTrace:
    """The nodes of one execution trace: operators with their tensors, without times."""

    def __init__(self, core: CoreExecutionTrace) -> None:
        self._core = core

    def __len__(self) -> int:
        return len(self._core)

    @property
    def core(self) -> CoreExecutionTrace:
        """The nodes as an object of the compiled core."""
        return self._core

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """One row for each node, in order of the ids.

        Columns: `node` (the id), `name`, `parent` (an id; the process is its own), `rf_id`
        (record function), `fw_parent`, `seq_id` (autograd), `scope`, `tid`, `fw_tid` (small
        numbers of the file's own), `op_schema`, and `values`, `shapes`, `types` and `strides`
        of the inputs and outputs as JSON text. Numbers missing in the file are null.
        """
        return frame_of(self._core.nodes())

    @cached_property
    def diagnostics(self) -> pl.DataFrame:
        """Findings of reading, with the columns of `Trace.diagnostics`."""
        return frame_of(self._core.diagnostics())

    @property
    def status(self) -> Literal["ok", "recovered"]:
        """`recovered` if something in the file was lost or altered."""
        return "recovered" if self._core.is_recovered else "ok"

    @property
    def schema(self) -> str:
        """Version of the format, such as `1.1.1-chakra.0.0.4`."""
        return self._core.schema

    @property
    def pid(self) -> int | None:
        """Id of the process that wrote it."""
        return self._core.pid


def link_execution_trace(
    execution: ExecutionTrace | Source,
    trace: Trace | Source,
    *,
    iteration: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> LinkedTrace:
    """Add the times of a Kineto trace to the execution trace of the same run.

    Nodes are found by record function id; if the files share none, by the order of names on each
    thread; else by External id. Files with different names are rejected.

    Parameters
    ----------
    execution, trace
        The two files, or the results of reading them.
    iteration
        Index of the matching iteration to use, from 0, if nodes are found by the order of names;
        the one of median length by default. `LinkedTrace.iterations` lists them.
    progress
        Called periodically. If it raises, linking ends.

    Raises
    ------
    PairError
        The two files do not belong together; the message has the numbers.
    WindowError
        The iteration does not exist.
    TraceError
        One of the files could not be read.

    Examples
    --------
    >>> linked = link_execution_trace("et.json", "kineto.json")  # doctest: +SKIP
    >>> linked.method  # doctest: +SKIP
    'record_function_id'
    """
    given = [execution, trace.path if isinstance(trace, Trace) else trace]
    inputs = [Path(each) for each in given if isinstance(each, str | os.PathLike)]
    if not isinstance(execution, ExecutionTrace):
        execution = read_execution_trace(execution)
    if not isinstance(trace, Trace):
        trace = read_trace(trace)
    core = link_core(execution.core, trace.core, iteration=iteration, progress=progress)
    return LinkedTrace(core, trace, inputs)


@dataclass(frozen=True)
class Deviation:
    """Time span in which a replay and the run differ most.

    Attributes
    ----------
    row
        Row in `nodes` of the node at which the span ends, or in which, if that is the last one.
    start_ns, end_ns
        The span in the run, relative to the first start of all nodes.
    missing_ns
        How much longer it took in the run; negative if the replay took longer.
    """

    row: int
    start_ns: int
    end_ns: int
    missing_ns: int


@dataclass(frozen=True)
class Replay:
    """A run as explained by its dependencies alone.

    Attributes
    ----------
    makespan_ns
        End of the last node, if every node starts as soon as its dependencies have ended and its
        thread or stream is free.
    measured_ns
        Duration of the run.
    stuck
        Nodes that never run because they wait for each other.
    resources
        One row for each thread and stream: `kind`, `lane` (row in `Trace.lanes`; of a Chakra
        graph its `tid` or `stream`), `n_nodes`,
        `busy_ns`, `end_ns`, `measured_end_ns` and `error`.
    deviation
        The span that explains most of the error; None if nothing was measured.
    """

    makespan_ns: int
    measured_ns: int | None
    stuck: int
    resources: pl.DataFrame
    deviation: Deviation | None

    @property
    def error(self) -> float | None:
        """Replayed time divided by the measured time, minus 1."""
        return self.makespan_ns / self.measured_ns - 1 if self.measured_ns else None


class LinkedTrace:
    """An execution trace with times and dependencies."""

    def __init__(self, core: CoreLinkedTrace, trace: Trace, inputs: Sequence[Path] = ()) -> None:
        self._core = core
        self.trace = trace
        self.inputs = tuple(inputs)

    @property
    def core(self) -> CoreLinkedTrace:
        """The nodes as an object of the compiled core."""
        return self._core

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """One row for each node, in order of the ids.

        Columns: `node` (the id; nodes of the execution trace keep theirs), `kind` (`operator`,
        `gap`, `after_wait` or `device`), `name`, `operator` (the node itself, the operator that
        launched it, that waited, or that follows the gap), `event` (row in `Trace.events`),
        `process`, `thread`, `device`, `stream`, `start_ns`, `duration_ns`, `self_ns` (time in which
        no nested event ran),
        `work_ns` (the same up to the first wait, and 0 for ranges that only contain operators) and
        `blocked_ns`. Nodes that are not in the trace have no times.
        """
        return frame_of(self._core.nodes())

    @cached_property
    def dependencies(self) -> pl.DataFrame:
        """One row for each dependency.

        Columns: `node`, `depends_on`, `kind` (`control`, `program_order`, `data`, `launch`,
        `stream_order`, `event_wait`, `sync`, `queue_full`, `thread_handoff`), `after` (the source
        must have ended, `end`, or only have begun, `start`), `evidence`, and the events that
        justify it: `event` (the blocking call of a sync) and `source_event`.
        """
        return frame_of(self._core.dependencies())

    @cached_property
    def unlinked(self) -> pl.DataFrame:
        """Nodes without an event (`node`), GPU activities without a node (`event`): `reason`."""
        return frame_of(self._core.unlinked())

    @cached_property
    def iterations(self) -> pl.DataFrame:
        """Matching iterations of the trace, if nodes were found by the order of names.

        Columns: `iteration`, `start_ns`, `duration_ns`, `n_nodes`, `chosen`.
        """
        return frame_of(self._core.iterations()).with_row_index("iteration")

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """One row for each communication with other ranks.

        Columns: `node`, `event`, `collective` (`all_reduce`, ..., `send`, `recv`, or `unknown`),
        `group` (process group), `group_size`, `sequence` (number in the group), `bytes`
        (contributed by the rank), `peer` (of a send or receive), `start_ns`, `duration_ns`. Values
        missing in the files are null.
        """
        return frame_of(self._core.collectives())

    @property
    def method(self) -> Method:
        """How the nodes were matched."""
        return self._core.method

    @property
    def n_linked(self) -> int:
        """Number of nodes of the execution trace that were found in the Kineto trace."""
        return self._core.n_linked

    @property
    def pids_differ(self) -> bool:
        """Whether the two files have different process ids, as with containers."""
        return self._core.pids_differ

    @property
    def dropped(self) -> dict[str, int]:
        """Number of dependencies left out, by reason."""
        return dict(self._core.dropped)

    def replay(self, *, gaps: bool = True) -> Replay:
        """Run the nodes with their measured durations, as a simulator would.

        Parameters
        ----------
        gaps
            Whether to include the time of threads between operators.
        """
        return replay_of(self._core.replay(gaps))


def replay_of(
    parts: tuple[
        int,
        int | None,
        int,
        list[tuple[str, int, int, int, int, int | None]],
        tuple[int, int, int, int] | None,
    ],
) -> Replay:
    """Return a replay from the values that the core returns."""
    import polars as pl

    makespan_ns, measured_ns, stuck, rows, deviation = parts

    schema = {
        "kind": pl.String,
        "lane": pl.Int64,
        "n_nodes": pl.Int64,
        "busy_ns": pl.Int64,
        "end_ns": pl.Int64,
        "measured_end_ns": pl.Int64,
    }
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame = frame.with_columns(error=pl.col("end_ns") / pl.col("measured_end_ns") - 1)
    differs = Deviation(*deviation) if deviation else None
    return Replay(makespan_ns, measured_ns, stuck, frame, differs)
