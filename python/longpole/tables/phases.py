"""Table `phases`: host and GPU time of data loading, forward, backward and optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.report.blocks import Column, Sentence, Value, tabulated, without_empty_columns
from longpole.rows.frames import frame_of, frame_schema, typed
from longpole.tables.catalogue import table
from longpole.words.data import Data, Row
from longpole.words.recording import options_for
from longpole.words.wording import share

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

_PHASES: Final = ("data_loading", "forward", "backward", "optimizer", "zero_grad", "other")
_UNLINKED: Final = "unlinked"
_TIMES: Final = ("compute_ns", "communication_ns", "copy_ns")
_LEAST_KNOWN: Final = 0.5
_MARKS: Final = "`forward`, `backward`, `optimizer` or `data_load`"
_LABELS: Final = {"data_loading": "data loading", "unlinked": "(launching call not in the trace)"}
_COLUMNS: Final[dict[Column, Value]] = {
    Column("phase"): lambda row: _LABELS.get(row["phase"], row["phase"]),
    Column("host", "duration"): "host_ns",
    Column("host share", "share"): "host_share",
    Column("GPU", "duration"): "device_ns",
    Column("GPU share", "share"): "device_share",
    Column("communication", "duration"): lambda row: row["communication_ns"] or None,
    Column("copies", "duration"): lambda row: row["copy_ns"] or None,
}


class PhaseRow(Row):
    """A phase of the step."""

    phase: Literal[
        "data_loading", "forward", "backward", "optimizer", "zero_grad", "other", "unlinked"
    ]
    """`other`: in no phase that is known; `unlinked`: GPU activities whose launch is not in the
    trace."""
    host_ns: int | None
    """Time of the main threads in the phase; null if no thread was recorded."""
    host_share: float | None
    """Share of the window: of one window for each main thread."""
    device_ns: int
    """Busy time of the devices with activities launched in the phase: the sum of the next three."""
    device_share: float | None
    """As a share of one window for each device."""
    compute_ns: int
    """Time with a compute kernel."""
    communication_ns: int
    """Time in which communication but no compute kernel ran (exposed)."""
    copy_ns: int
    """Time in which copies but no kernels ran (exposed)."""
    count: int
    """Number of GPU activities."""


@dataclass(frozen=True, slots=True)
class Phases(Data):
    """The phases of a step, in its order, then unlinked GPU activities, if there are any."""

    rows: Annotated[pl.DataFrame, PhaseRow]
    hint: str | None
    """What to record, if more than half of the host time is in no known phase."""

    def records(self) -> list[Record]:
        """Return a row for each phase."""
        return self.rows.to_dicts()

    def blocks(self) -> list[Block]:
        """Show each phase, and what to record if most of the time is in none."""
        hints: list[Block] = [Sentence(self.hint)] if self.hint else []
        return [without_empty_columns(tabulated(self.rows.to_dicts(), _COLUMNS)), *hints]


@table(Phases)
def phases(trace: Trace, window: Window | None = None) -> Phases:
    """Split a step into its phases: what data loading, forward, backward and the optimizer cost.

    Host time is that of the main thread of each process that launches GPU activities: the thread
    that runs the steps. It is the time in which the host work of a step begins, from the end of the
    previous mark to that of its own. Each moment belongs to the innermost mark around it, so the
    phases of the host sum to that, once for each such thread. Marks are

    - annotations and operators of PyTorch: `enumerate(DataLoader)#`, `Optimizer.step#`,
      `Optimizer.zero_grad#`, `DistributedDataParallel.forward`, `autograd::engine::`;
    - annotations of the program with the word `forward`, `backward`, `optimizer`, `zero_grad` or
      `data_load` in their names;
    - Python functions: calls of `nn.Module`, `backward`, and `step` and `zero_grad` of optimizers;
    - names of data-loading functions, as for the critical path (`data_loading` in a vocabulary).

    Outside marks, time in which the thread waits for autograd threads is backward, and time from
    the first to the last operator that a backward pass differentiates is forward. If the trace does
    not link these, the operators before a backward pass are forward. What remains is `other`. A
    forward pass that runs again inside the backward pass counts as backward.

    A GPU activity belongs to the phase that its launch call ran in, on any thread; calls of
    autograd threads are backward. Each moment in which a device is busy counts once: as compute,
    else communication, else copy, as in `breakdown`, and among several activities for the phase of
    the one that started first. A step has the activities that were launched in it, whole.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().step(1, (0, 100)).annotation("Optimizer.step#SGD.step", (60, 80))
    >>> trace = builder.launch("sgd", call=(65, 70), work=(72, 92)).read()
    >>> rows = phases(trace).rows.filter(phase="optimizer")
    >>> rows.select("host_ns", "host_share", "device_ns", "device_share").row(0)
    (20000, 0.2, 20000, 0.2)
    """
    window = window_of(trace, window)
    if window is None:
        return Phases(typed(pl.DataFrame(schema=frame_schema(PhaseRow))), None)
    hosts, devices = map(frame_of, trace.core.phase_times(window.span, window.on_host.span))
    names = [*_PHASES, *([_UNLINKED] if devices["phase"].null_count() else [])]
    found = (
        pl.DataFrame({"phase": names})
        .join(_host(hosts), on="phase", how="left", maintain_order="left")
        .join(_device(devices), on="phase", how="left", maintain_order="left")
        .with_columns(pl.col(*_TIMES, "count").fill_null(0))
        .with_columns(device_ns=pl.sum_horizontal(_TIMES))
        .with_columns(
            host_share=_share("host_ns", window.on_host, hosts["lane"].n_unique()),
            device_share=_share("device_ns", window, devices["device"].n_unique()),
        )
    )
    rows = typed(found.select(*frame_schema(PhaseRow)))
    return Phases(rows, _hint(trace, rows))


def _host(hosts: pl.DataFrame) -> pl.DataFrame:
    phase = pl.col("phase").cast(pl.String)
    return hosts.group_by(phase).agg(host_ns=pl.col("duration_ns").sum())


def _device(devices: pl.DataFrame) -> pl.DataFrame:
    phase = pl.col("phase").cast(pl.String).fill_null(_UNLINKED)
    return devices.group_by(phase).agg(pl.col(*_TIMES, "count").sum())


def _share(column: str, window: Window, n_wholes: int) -> pl.Expr:
    whole_ns = window.duration_ns * n_wholes
    return pl.col(column) / whole_ns if whole_ns else pl.lit(None, pl.Float64)


def _hint(trace: Trace, rows: pl.DataFrame) -> str | None:
    """Return what to record if most of the host time is in no known phase."""
    other = rows.filter(phase="other")["host_share"].item()
    if other is None or other <= _LEAST_KNOWN:
        return None
    options, has_stack = options_for(trace.core), (trace.events["kind"] == "python").any()
    stack = f"record with {options.stack}" if options.stack and not has_stack else ""
    mark = f"mark phases with {options.ranges}, named {_MARKS}" if options.ranges else ""
    advice = " or ".join(filter(None, [stack, mark]))
    told = f"{share(other)} of the host time is in no known phase"
    return f"{told}: {advice}." if advice else f"{told}."
