"""Table `roofline`: how close kernels come to the limits of their device, and the lost time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, overload

import polars as pl

from longpole.devices.peaks import Peaks
from longpole.engine.windows import Window, window_of
from longpole.flops.inputs import shapes_in_words
from longpole.formats.convert.flame import path_of
from longpole.report.blocks import Column, Sentence, Table, Value, tabulated, without_empty_columns
from longpole.rows.frames import frame_schema
from longpole.rows.selection import sorted_by
from longpole.tables.activities import own_events
from longpole.tables.activity_sums import SHORT_NS
from longpole.tables.catalogue import MOST_ROWS, ask_by, table, view
from longpole.tables.closer_look import closer_look
from longpole.tables.device_peaks import (
    DevicePeaks,
    device_peaks,
    listed_peaks,
    peak_sentences,
    with_precision,
    with_roofs,
)
from longpole.tables.frame_times import flat_rows
from longpole.tables.launch_shapes import LaunchShape, launch_shapes
from longpole.tables.measured_work import MeasuredWork, measured_work, sum_of_known
from longpole.tables.mfu import Mfu, mfu
from longpole.tables.operator_work import shapes_hint, whole_sum, work_in_window
from longpole.tables.tensor_core_use import tensor_core_use
from longpole.tables.unmatched_graphs import unmatched_sentence
from longpole.words.data import HIDDEN, Data, computed
from longpole.words.wording import count, duration, share, short_name

if TYPE_CHECKING:
    from longpole.engine.critical_path.path import CriticalPath
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

_SHOWN: Final[dict[Column, Value]] = {
    Column("calls", "count"): "calls",
    Column("kernel time", "duration"): "kernel_ns",
    Column("TFLOP/s", "number"): "tflops",
    Column("GB/s", "number"): "gb_per_s",
    Column("FLOP/B", "number"): "intensity",
    Column("type"): "precision",
    Column("bound by"): "bound",
    Column("of roofline", "share"): "of_roof",
    Column("time lost", "duration"): "lost_ns",
    Column("on the path", "duration"): "path_ns",
}
_MEASURED: Final[dict[Column, Value]] = {
    Column("kernels", "count"): "n_kernels",
    Column("FLOPs by formula", "count"): "flops",
    Column("on CUDA cores", "count"): "cuda_core_flops",
    Column("tensor instructions", "count"): "tensor_core_insts",
    Column("bytes by formula", "count"): "n_bytes",
    Column("bytes moved", "count"): "dram_bytes",
}
_KEY: Final = ("device", "alike", "precision", "is_matrix")
_INPUTS: Final = ("alike", "name", "shapes", "dtypes")
_UNIT: Final = 1_000
_GIGA: Final = 1e9
_BOUNDS: Final = {
    **dict.fromkeys(("least_flops", "most_flops"), "flops"),
    **dict.fromkeys(("least_bytes", "most_bytes"), "n_bytes"),
}
"""Columns with bounds of others."""


class RooflineRow(LaunchShape):
    """All kernels of operators with the same inputs. Unknown values are null."""

    device: int | None
    name: str | None
    """Name of the operator; null for kernels without an operator or formula."""
    shapes: list[list[int] | None] | None
    dtypes: list[str] | None
    kernel: str | None
    """Name of the longest kernel."""
    calls: int | None
    n_kernels: int
    kernel_ns: int
    """Time of the kernels that belong to the window."""
    flops: int | None
    n_bytes: int | None
    least_flops: int | None
    """Lower bound, if the inputs do not determine the FLOPs, as of attention over sequences whose
    lengths are not recorded; null if `flops` is known."""
    most_flops: int | None
    """Upper bound; null if there is none."""
    least_bytes: int | None
    most_bytes: int | None
    precision: str | None
    tflops: float | None
    gb_per_s: float | None
    intensity: float | None
    """FLOPs per byte."""
    bound: Literal["compute", "memory"] | None
    roof_ns: int | None
    """Minimum time at the peaks of the device."""
    of_roof: float | None
    """`roof_ns` divided by `kernel_ns`; above 1 if data stayed in a cache."""
    lost_ns: int | None
    """`kernel_ns` minus `roof_ns`."""
    path_ns: int
    """Time of the kernels on the critical path; faster kernels cannot save more."""
    min_ns: int | None
    """Shortest time of the kernels of one call; null for kernels without an operator."""
    median_ns: float | None
    max_ns: int | None
    tensor_cores: Literal["used", "possible"] | None
    """`possible` for products that use no tensor or matrix cores by the name of their kernel,
    although type and sizes allow them; null if the name shows neither."""
    longest_event: int
    """Longest kernel of the call with most kernel time, to which the columns of the launch
    belong."""


@dataclass(frozen=True, slots=True)
class Roofline(Data):
    """The kernels of a window compared with the roofline, most lost time first.

    torch records no individual kernels while it reads performance counters: such a trace has no
    rows, only `measured`.
    """

    window: Window | None = field(metadata=HIDDEN)
    rows: Annotated[pl.DataFrame, RooflineRow]
    known_peaks: Mapping[int | None, Peaks] = field(metadata=HIDDEN)
    path_length_ns: int
    top: int = field(metadata=HIDDEN)
    measured: Annotated[pl.DataFrame, MeasuredWork]
    """The table by counter, if the trace has performance counters."""
    hint: str | None = field(default=None, metadata=HIDDEN)
    """What to record if shapes are missing."""
    unmatched: str | None = field(default=None, metadata=HIDDEN)
    """Launches of graphs without a capture, as a sentence."""
    mfu: float | None = None
    """Model FLOPs utilisation of the window, as in the table by type."""
    short_kernels: int = 0
    """Number of compute kernels shorter than 10 us."""
    short_ns: int = 0
    """Time of these."""
    look: str | None = None
    """Command that measures the longest kernel of the row with most kernel time; null if the vendor
    of the device is unknown."""

    @computed
    def kernel_ns(self) -> int:
        """Time of all compute kernels."""
        return sum(self.rows["kernel_ns"].to_list())

    @computed
    def known_ns(self) -> int:
        """Time of the kernels with known FLOPs."""
        return sum(self.rows.filter(pl.col("flops").is_not_null())["kernel_ns"].to_list())

    @computed
    def bounded_ns(self) -> int:
        """Time of the kernels with bounds of their FLOPs instead."""
        return sum(self.rows.filter(pl.col("least_flops").is_not_null())["kernel_ns"].to_list())

    @computed
    def peaks(self) -> tuple[DevicePeaks, ...]:
        """Peaks of the devices."""
        return listed_peaks(self.known_peaks)

    def records(self) -> list[Record]:
        """Return a row for each operator with the same inputs; shapes are strings."""
        return flat_rows(self.rows)

    def blocks(self) -> list[Block]:
        """Show where most time is lost, and what the figures are based on."""
        counted = _measured_table(self.measured, self.top)
        if self.rows.is_empty():
            return [Sentence("No kernel ran in it."), *counted]
        known = self.known_ns / self.kernel_ns if self.kernel_ns else 0.0
        missing = f" {self.hint}" if self.hint else self._missing()
        sentences: list[Block] = [
            Sentence(
                f"The formula is known for {share(known)} of the kernel time "
                f"({duration(self.kernel_ns)}); concurrent kernels each count in full.{missing}"
            ),
            *map(Sentence, self._bounded()),
            *([Sentence(self.unmatched)] if self.unmatched else []),
            *map(Sentence, peak_sentences(self.known_peaks)),
        ]
        if not self.known_peaks:
            sentences.append(
                Sentence(
                    "The peaks of the device are unknown, and so is the time lost: give --peak."
                )
            )
        if self.mfu is not None:
            sentences.append(
                Sentence(
                    f"MFU {share(self.mfu)}: the FLOPs of products, convolutions and attention over"
                    " those that the peak allows in the whole window; --by type has its parts."
                )
            )
        sentences += map(Sentence, self._of_kernels())
        listed = self.rows.filter(pl.col("flops").is_not_null())
        table = _table(listed, self.top)
        sentences += map(Sentence, _above_roof(listed))
        return [*([table] if table.rows else []), *sentences, *counted]

    def _of_kernels(self) -> list[str]:
        """Return sentences about short kernels, tensor cores, and a closer look."""
        told = []
        n_kernels = sum(self.rows["n_kernels"].to_list())
        if self.short_kernels:
            of_time = share(self.short_ns / max(self.kernel_ns, 1))
            told.append(
                f"{count(self.short_kernels)} of {count(n_kernels, 'kernel')} take less than 10 µs "
                f"each, together {of_time} of the kernel time."
            )
        unused = self.rows.filter(pl.col("tensor_cores") == "possible")
        if not unused.is_empty():
            longest = unused.sort("kernel_ns", descending=True, maintain_order=True)
            unused_ns = sum(unused["kernel_ns"].to_list())
            told.append(
                f"{count(unused.height, 'row')} could use tensor cores by type and sizes, but "
                f"{'does' if unused.height == 1 else 'do'} not by the names of the kernels "
                f"({duration(unused_ns)}): {_label(longest.row(0, named=True))}."
            )
        if self.look is not None:
            told.append(f"For a closer look at the kernel that takes most time: `{self.look}`")
        return told

    def _bounded(self) -> list[str]:
        """Return the operator with bounds that takes most time, as a sentence."""
        bounded = self.rows.filter(pl.col("least_flops").is_not_null())
        if bounded.is_empty():
            return []
        longest = bounded.sort("kernel_ns", descending=True, maintain_order=True).row(0, named=True)
        least, most = longest["least_flops"] / _GIGA, longest["most_flops"]
        known = self.bounded_ns / self.kernel_ns
        told = f"at least {least:.3g}" if most is None else f"{least:.3g} to {most / _GIGA:.3g}"
        sentence = (
            f"For {share(known)}, the inputs only bound it, because they lack lengths of sequences,"
            f" windows or chosen experts: {longest['name']} takes {told} GFLOP in "
            f"{duration(longest['kernel_ns'])}."
        )
        return [sentence]

    def _missing(self) -> str:
        """Return the kernel that takes most time and has no formula, as a sentence."""
        is_unknown = pl.col("flops").is_null() & pl.col("least_flops").is_null()
        unknown = self.rows.filter(is_unknown).sort("kernel_ns", descending=True)
        if unknown.is_empty():
            return ""
        name, kernel, kernel_ns = unknown.select("name", "kernel", "kernel_ns").row(0)
        return (
            f" The table leaves out the others, such as {short_name(name or kernel)} "
            f"({duration(kernel_ns)}); --json has them."
        )


@view(Roofline, needs_arguments=True)
def _by_operator(
    trace: Trace,
    window: Window | None = None,
    *,
    peaks: Peaks | None = None,
    peak: Mapping[str, float] | None = None,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int = MOST_ROWS,
) -> Roofline:
    known = device_peaks(trace, peaks, peak=peak)
    window = window_of(trace, window)
    if window is None:
        rows = pl.DataFrame(schema=frame_schema(RooflineRow))
        return Roofline(None, rows, known, 0, top, measured_work(trace))
    work, owners = work_in_window(trace, window, where)
    path = path_of(trace, window)
    on_path = _on_path(path, owners)
    joined = work.join(on_path, on="owner", how="left", maintain_order="left")
    rows = _grouped(with_precision(joined.with_columns(pl.col("path_ns").fill_null(0))))
    used = {device: known[device] for device in rows["device"].unique().sort() if device in known}
    # The condition selects kernels, but counters do not have the columns of kernels.
    measured = measured_work(trace, window, where=None if where is None else pl.lit(value=False))
    has_work = rows["flops"].count() + rows["least_flops"].count() > 0
    hint = None if has_work else shapes_hint(trace)
    shapes = launch_shapes(trace, rows["longest_event"]).rename({"event": "longest_event"})
    described = rows.join(shapes, on="longest_event", how="left", maintain_order="left")
    described = described.with_columns(tensor_core_use(described, known))
    found = _sorted(_rooflines(described, known), sort)
    used_flops = mfu(trace, window, peaks=peaks, peak=peak, where=where).mfu
    return Roofline(
        window,
        found,
        used,
        path.length_ns,
        top,
        measured,
        hint,
        unmatched_sentence(trace),
        used_flops,
        *_short(trace, window, owners),
        closer_look(trace, found),
    )


_BY: Final[Mapping[str, Callable[..., Roofline | Mfu | pl.DataFrame]]] = {
    "operator": _by_operator,
    "type": mfu,
    "counter": measured_work,
}


@overload
def roofline(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["operator"] = "operator",
    peaks: Peaks | None = None,
    peak: Mapping[str, float] | None = None,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> Roofline: ...
@overload
def roofline(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["type"],
    peaks: Peaks | None = None,
    peak: Mapping[str, float] | None = None,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> Mfu: ...
@overload
def roofline(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["counter"],
    peaks: Peaks | None = None,
    peak: Mapping[str, float] | None = None,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> pl.DataFrame: ...
@table(by=_BY)
def roofline(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["operator", "type", "counter"] = "operator",
    peaks: Peaks | None = None,
    peak: Mapping[str, float] | None = None,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> Roofline | Mfu | pl.DataFrame:
    """Compare the kernels of each operator with the roofline of their device.

    Communication kernels do not count. The minimum time of an operator is the longer of two: its
    FLOPs at the peak of its type, and its bytes at the peak of the memory, each input read and each
    output written once. Shapes and types are recorded with `record_shapes=True`.

    Parameters
    ----------
    by
        `"operator"` has a row for each operator with the same inputs, most lost time first;
        `"type"` one for each device and data type with the model FLOPs utilisation (MFU) of the
        window; `"counter"` one for each operator whose kernels have performance counters, with
        the FLOPs and bytes counted and by formula.
    peaks
        Peaks of the devices, instead of the table in `longpole.peaks`.
    peak
        Single peaks instead of those: TFLOP/s by type, and the memory bandwidth in GB/s, such as
        `{"bf16": 800, "bandwidth": 3350}`.
    where
        A condition on the columns of `activities`; for `by="counter"` on those of `counters`.
    top
        How many rows to show; the rows hold all.

    Raises
    ------
    ValueError
        `by` or the condition is invalid, the column to sort by is unknown, or a peak is of an
        unknown type or not positive.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> inputs = {"Input Dims": [[512, 512], [512, 512]], "Input type": ["float", "float"]}
    >>> builder = TraceBuilder().operator("aten::mm", (0, 9), **inputs)
    >>> trace = builder.launch("gemm", call=(1, 2), work=(2, 22)).read()
    >>> found = roofline(trace, peak={"fp32": 20, "bandwidth": 1000})
    >>> found.rows.select("flops", "n_bytes", "bound", "roof_ns").row(0)
    (268435456, 3145728, 'compute', 13422)
    >>> round(roofline(trace, by="type", peak={"fp32": 20}).mfu, 3)
    0.61
    """
    options = {"peaks": peaks, "peak": peak, "where": where, "sort": sort, "top": top}
    return ask_by(_BY, by, trace, window, **options)


def _sorted(rows: pl.DataFrame, column: str | None) -> pl.DataFrame:
    """Sort by a column or its printed title."""
    printed = {field: title.title for title, field in _SHOWN.items()}
    return sorted_by(rows, column, [printed.get(name, name) for name in rows.columns])


def roofline_shares(trace: Trace, window: Window) -> dict[str, float]:
    """Return how close the operators that launch a kernel come to the roofline, by its name.

    The share is the least possible time of these operators over that of all their kernels;
    operators without a formula or peak do not count.
    """
    known = device_peaks(trace, None)
    work, owners = work_in_window(trace, window)
    measured = with_roofs(with_precision(work), known)
    roofs = measured.select("owner", "kernel_ns", "roof_ns").drop_nulls()
    names = trace.events.select("event", pl.col("name").cast(pl.String))
    launched = owners.join(names, on="event").select("owner", "name").unique(maintain_order=True)
    return dict(
        launched.join(roofs, on="owner")
        .group_by("name")
        .agg(pl.col("roof_ns").sum() / pl.col("kernel_ns").sum())
        .rows()
    )


def _short(trace: Trace, window: Window, owners: pl.DataFrame) -> tuple[int, int]:
    """Return the number of the kernels that are short, and their time."""
    times = trace.events.select("event", "duration_ns")
    inside = owners.join(own_events(trace, window), on="event").join(times, on="event")
    short = inside.filter(pl.col("duration_ns") < SHORT_NS, pl.col("inside_ns") > 0)["inside_ns"]
    return short.len(), int(short.sum() or 0)


def _on_path(path: CriticalPath, owners: pl.DataFrame) -> pl.DataFrame:
    """Sum the time on the path of each owner's kernels."""
    segments = path.kernel_segments().join(owners, on="event")
    return segments.group_by("owner").agg(path_ns=pl.col("duration_ns").sum())


def _grouped(work: pl.DataFrame) -> pl.DataFrame:
    """Group operators with the same inputs."""
    sums = ("n_kernels", "kernel_ns", "path_ns")
    named = work.select(*_INPUTS).unique("alike", maintain_order=True)
    grouped = (
        work.with_columns(other=pl.when(pl.col("name").is_null()).then(pl.col("kernel")))
        .sort("kernel_ns", "event", descending=[True, False])
        .group_by(*_KEY, "other", maintain_order=True)
        .agg(
            pl.col("kernel").first(),
            *(pl.col(name).sum().alias(name) for name in sums),
            longest_event=pl.col("event").first(),
            **_of_calls(),
            calls=_calls(),
            flops=sum_of_known("flops"),
            n_bytes=sum_of_known("n_bytes"),
            **{bound: _sum_of_bounds(bound, exact) for bound, exact in _BOUNDS.items()},
        )
    )
    return grouped.join(named, on="alike", how="left", nulls_equal=True, maintain_order="left")


def _sum_of_bounds(bound: str, exact: str) -> pl.Expr:
    """Return the sum of a bound, or of the exact values of calls that have one; null if all do."""
    least = f"least_{bound.partition('_')[2]}"
    known = pl.coalesce(bound, exact)
    is_bounded = pl.col(exact).has_nulls() & pl.col(least).is_not_null().any()
    return pl.when(is_bounded & ~known.has_nulls()).then(whole_sum(known))


def _calls() -> pl.Expr:
    """Count operators; the number of calls is unknown for kernels without an operator."""
    n_operators = pl.col("operator").count().cast(pl.Int64)
    return pl.when(n_operators > 0).then(n_operators)


def _of_calls() -> dict[str, pl.Expr]:
    """Describe the kernel times of the calls; null for kernels without an operator."""
    time, is_known = pl.col("kernel_ns"), pl.col("operator").count() > 0
    figures = {"min_ns": time.min(), "median_ns": time.median(), "max_ns": time.max()}
    return {name: pl.when(is_known).then(figure) for name, figure in figures.items()}


def _rooflines(rows: pl.DataFrame, peaks: Mapping[int | None, Peaks]) -> pl.DataFrame:
    """Compare with the minimum time. TFLOP/s are FLOPs a picosecond, GB/s bytes a nanosecond."""
    kernel_ns = pl.col("kernel_ns")
    return (
        with_roofs(rows, peaks)
        .with_columns(
            tflops=pl.col("flops") / kernel_ns / _UNIT,
            gb_per_s=pl.col("n_bytes") / kernel_ns,
            intensity=pl.when(pl.col("n_bytes") > 0).then(pl.col("flops") / pl.col("n_bytes")),
            roof_ns=pl.col("roof_ns").round().cast(pl.Int64),
        )
        .with_columns(
            of_roof=pl.col("roof_ns") / kernel_ns,
            lost_ns=(kernel_ns - pl.col("roof_ns")).clip(lower_bound=0),
        )
        .sort(
            -pl.col("lost_ns").fill_null(0),
            -kernel_ns,
            "name",
            shapes_in_words(),
            "kernel",
            "device",
            nulls_last=True,
        )
        .select(*frame_schema(RooflineRow))
    )


def _table(rows: pl.DataFrame, top: int) -> Table:
    title = f"operator ({top} of {count(rows.height)})" if rows.height > top else "operator"
    first: dict[Column, Value] = {Column(title, "name"): _label}
    return without_empty_columns(tabulated(rows.head(top).iter_rows(named=True), first | _SHOWN))


def _above_roof(rows: pl.DataFrame) -> list[str]:
    """Explain the largest share above 100 % of each limit, also of a row that is not shown."""
    told = {
        "memory": "of the memory bandwidth: part of the data was in a cache.",
        "compute": "of the compute peak, more than a device can: the peak, the shapes or the"
        " recorded times are wrong.",
    }
    above = rows.filter(pl.col("of_roof") > 1).sort("of_roof", descending=True, maintain_order=True)
    worst = above.unique("bound", keep="first", maintain_order=True).rows(named=True)
    return [f"{_label(row)} reaches {share(row['of_roof'])} {told[row['bound']]}" for row in worst]


def _measured_table(measured: pl.DataFrame, top: int) -> list[Block]:
    """Show the performance counters next to the formulas."""
    if measured.is_empty():
        return []
    title = f"counted in ({top} of {count(measured.height)})"
    first: dict[Column, Value] = {
        Column(title if measured.height > top else "counted in", "name"): _counted_in
    }
    note = "Counters of CUDA cores do not count what tensor cores compute."
    table = tabulated(measured.head(top).iter_rows(named=True), first | _MEASURED)
    return [table, Sentence(note)]


def _counted_in(row: dict[str, Any]) -> str:
    """Return the operator; for a kernel counted on its own, its name and its operator."""
    if row["name"] is None:
        return f"(unknown operator): {row['kernel']}"
    return f"{row['name']}: {row['kernel']}" if row["shapes"] is None else _label(row)


def _label(row: dict[str, Any]) -> str:
    if row["name"] is None:
        return str(row["kernel"])
    sizes = "x".join(str(shape).replace(" ", "") for shape in row["shapes"] or () if shape)
    return f"{row['name']} {sizes}"
