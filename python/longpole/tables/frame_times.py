"""Times of frames of one kind: the common form of the operator, module and function tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

import polars as pl

from longpole.engine.question import Question
from longpole.errors import WindowError
from longpole.remedies.limits import sides_of
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.rows.frames import frame_schema
from longpole.rows.selection import sorted_by
from longpole.tables.unmatched_graphs import unmatched_sentence
from longpole.trace.captures import has_captured_graphs
from longpole.words.data import HIDDEN, Data, Row
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.engine.windows import Window
    from longpole.report.blocks import Block, Cell
    from longpole.report.document import Record
    from longpole.trace.contexts import ContextTimes
    from longpole.trace.trace import Trace

_FIGURES: Final = (
    ("count", Column("calls", "count")),
    ("self_ns", Column("host self", "duration")),
    ("total_ns", Column("host total", "duration")),
    ("n_activities", Column("GPU activities", "count")),
    ("device_self_ns", Column("device self", "duration")),
    ("device_ns", Column("device total", "duration")),
    ("backward_ns", Column("backward", "duration")),
)


class FrameRow(Row):
    """All frames with the same name."""

    row: Literal["frame", "outside", "unlinked"]
    """`outside`: GPU activities launched outside all such frames; `unlinked`: GPU activities
    without a launch call in the trace."""
    name: str | None
    count: int | None
    """Number of calls."""
    self_ns: int | None
    """Time on its threads excluding the frames inside it."""
    total_ns: int | None
    """Time including the frames inside; a frame inside another of the same name counts once."""
    n_activities: int
    device_self_ns: int
    """Time of the GPU activities that it launched itself. Concurrent activities each count in
    full."""
    device_ns: int
    """Time including the GPU activities of the frames inside."""
    backward_ns: int | None
    """Device time of its backward pass."""
    backward_self_ns: NotRequired[int | None]
    """Backward time excluding the frames inside."""
    shapes: NotRequired[list[list[int] | None] | None]
    strides: NotRequired[list[list[int] | None] | None]
    dtypes: NotRequired[list[str] | None]
    share_of_device: float | None
    """Share of the time of all GPU activities, not of the window."""


@dataclass(frozen=True, slots=True)
class FrameTimes(Data):
    """Times of frames of one kind in a window, one row per name."""

    noun: str = field(metadata=HIDDEN)
    rows: Annotated[pl.DataFrame, FrameRow]
    device_ns: int
    """Time of all GPU activities, the base of the shares."""
    top: int = field(metadata=HIDDEN)
    hint: str | None = field(default=None, metadata=HIDDEN)
    """Reason why there may be fewer rows than expected."""
    is_tree: bool = field(default=False, metadata=HIDDEN)
    """Whether names are paths, shown as a tree."""
    is_sorted: bool = field(default=False, metadata=HIDDEN)
    """Whether rows are sorted on request: in a tree, siblings then have this order."""
    by_host: bool = field(default=False, metadata=HIDDEN)
    """Whether host time comes first because the host limits the window."""
    has_graphs: bool = field(default=False, metadata=HIDDEN)
    """Whether some rows are frames that captured a graph."""

    def sorted_by(self, column: str | None) -> FrameTimes:
        """Sort the rows by a column; rows without a frame stay last.

        Raises
        ------
        ValueError
        The column does not exist.
        """
        if column is None or self.rows.is_empty():
            return self
        printed = {name: figure.title for name, figure in _FIGURES}
        printed |= {"name": self.noun, "share_of_device": _share_column(self.rows).title}
        titles = [printed.get(name, name) for name in self.rows.columns]
        ordered = sorted_by(self.rows, column, titles).sort(
            pl.col("row") != "frame", maintain_order=True
        )
        return replace(self, rows=ordered, is_sorted=True, by_host=False)

    def records(self) -> list[Record]:
        """Return a row for each name; shapes are strings."""
        return flat_rows(self.rows)

    def blocks(self) -> list[Block]:
        """Show the rows with most time, and those without a frame."""
        frames = self.rows.filter(pl.col("row") == "frame")
        rest = self.rows.filter(pl.col("row") != "frame", pl.col("n_activities") > 0)
        first = self._first_of_tree(frames) if self.is_tree else frames.head(self.top)
        shown = pl.concat([first, rest])
        hints: list[Block] = [] if self.hint is None else [Sentence(self.hint)]
        if shown.is_empty():
            return [Sentence(f"No {self.noun} ran in it."), *hints]
        more = frames.height > first.height
        title = f"{self.noun} ({first.height} of {count(frames.height)})" if more else self.noun
        figures = [(name, column) for name, column in _FIGURES if name in shown.columns]
        figures.append(("share_of_device", _share_column(shown)))
        columns = [Column(title, "name"), *(column for _, column in figures)]
        names = [_label(row, self.noun, self.is_tree) for row in shown.iter_rows(named=True)]
        cells = shown.select(name for name, _ in figures).rows()
        rows: list[list[Cell]] = [[name, *row] for name, row in zip(names, cells, strict=True)]
        return [Table(columns, rows), *self._why_by_host(), *self._launched_before(), *hints]

    def _why_by_host(self) -> list[Block]:
        """Explain the order if it is not that of device time."""
        if not self.by_host or self.rows["device_self_ns"].sum() == 0:
            return []
        told = (
            "Sorted by host self time, because the host limits this window; --sort device_self "
            "sorts by device time."
        )
        return [Notes([told])]

    def _launched_before(self) -> list[Block]:
        """Explain the columns if GPU activities were launched before the window."""
        before = self.rows.filter(pl.col("count") == 0, pl.col("n_activities") > 0)
        if before.is_empty():
            return []
        graphs = ", or ran while a graph was captured that launched them" if self.has_graphs else ""
        told = (
            f"Rows with 0 calls launched their GPU activities before{graphs}. Host columns count "
            "the host work that belongs to the window, device columns the time on devices in it."
        )
        return [Notes([told])]

    def _first_of_tree(self, frames: pl.DataFrame) -> pl.DataFrame:
        """Return the first rows of a tree: in the requested order, else by total device time."""
        order = pl.int_range(pl.len()) if self.is_sorted else -pl.col("device_ns")
        ranks = dict(frames.select("name", order.alias("rank")).iter_rows())
        return _with_parents(frames, self.top, ranks)


def with_graphs(times: FrameTimes, trace: Trace) -> FrameTimes:
    """Add what the answer says about graphs, if the trace launches some."""
    hints = [hint for hint in (times.hint, unmatched_sentence(trace)) if hint is not None]
    has_graphs = has_captured_graphs(trace) and trace.graph_nodes["captured_call"].count() > 0
    return replace(times, hint=" ".join(hints) or None, has_graphs=has_graphs)


def no_rows() -> pl.DataFrame:
    """Return the rows for a trace without a window."""
    return pl.DataFrame(schema=frame_schema(FrameRow))


def flat_rows(rows: pl.DataFrame) -> list[Record]:
    """Return rows for spreadsheets: lists become JSON in one cell.

    Examples
    --------
    >>> flat_rows(pl.DataFrame({"name": ["mm"], "shapes": [[[2, 3], None]]}))
    [{'name': 'mm', 'shapes': '[[2, 3], null]'}]
    """
    return [
        {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}
        for row in rows.iter_rows(named=True)
    ]


def rest_rows(times: ContextTimes) -> pl.DataFrame:
    """Return the GPU activities without a frame: one row per reason."""
    rests = {"outside": times.outside, "unlinked": times.unlinked}
    return pl.DataFrame(
        {
            "row": list(rests),
            "n_activities": [rest.count for rest in rests.values()],
            "device_self_ns": [rest.duration_ns for rest in rests.values()],
            "device_ns": [rest.duration_ns for rest in rests.values()],
        },
        schema_overrides=dict.fromkeys(("n_activities", "device_self_ns", "device_ns"), pl.Int64),
    )


def host_limits(trace: Trace, window: Window) -> bool:
    """Whether the verdict about a window says that the host limits it."""
    try:
        limit = trace.answer(Question(between=window.span)).limit
    except WindowError:
        return False
    return sides_of(limit)[:1] == ("host",)


def with_shares(
    rows: pl.DataFrame, times: ContextTimes, own: pl.Expr, *, by_host: bool = False
) -> tuple[pl.DataFrame, int]:
    """Add the rows without a frame, and `share_of_device`: `own` as a share of all device time.

    Sorted by device time, then by host time; the other way round with `by_host`. Ties are sorted by
    name.
    """
    frames = rows.with_columns(row=pl.lit("frame"))
    joined = pl.concat([frames, rest_rows(times)], how="diagonal_relaxed")
    device_ns = int(joined.select(own.fill_null(0).sum()).item() or 0)
    share = own / device_ns if device_ns else pl.lit(None, pl.Float64)
    times_ns = [-pl.col("self_ns"), -own] if by_host else [-own, -pl.col("self_ns")]
    order = [pl.col("row") != "frame", *times_ns, pl.col("name")]
    first = ["row", "name"]
    others = [name for name in joined.columns if name not in first]
    ranked = joined.sort(*order, nulls_last=True, maintain_order=True)
    return ranked.select(*first, *others, share_of_device=share), device_ns


def _share_column(shown: pl.DataFrame) -> Column:
    """Describe the share column; backward time counts too if it is a column."""
    counts_backward = "backward_self_ns" in shown.columns
    with_backward = ", with backward" if counts_backward else ""
    return Column(f"self share of device time{with_backward}", "share")


def _with_parents(frames: pl.DataFrame, top: int, ranks: Mapping[str, int]) -> pl.DataFrame:
    """Return the first rows and their ancestors, parents first, siblings by rank."""
    shown = {part for name in frames["name"].head(top) for part in _prefixes(name)}
    order = {name: [(ranks.get(part, 0), part) for part in _prefixes(name)] for name in shown}
    ordered = sorted(shown, key=lambda name: order[name])
    places = pl.DataFrame({"name": ordered}, schema={"name": pl.String})
    return places.join(frames, on="name", how="inner", maintain_order="left").select(frames.columns)


def _prefixes(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[: length + 1]) for length in range(len(parts))]


def _label(row: dict[str, Any], noun: str, is_tree: bool) -> str:  # noqa: FBT001
    if row["row"] == "outside":
        return f"(launched outside any {noun})"
    if row["row"] == "unlinked":
        return "(launching call not in the trace)"
    shapes = row.get("shapes")
    name = row["name"] or "(no name)"
    if is_tree:
        return "· " * name.count("/") + name.rpartition("/")[2]
    return f"{name} {_shown(shapes, row['dtypes'])}" if shapes is not None else name


def _shown(shapes: list[list[int] | None], dtypes: list[str]) -> str:
    tensors = [
        f"{(dtype or '?').removeprefix('c10::')}{shape}".replace(" ", "")
        for shape, dtype in zip(shapes, dtypes, strict=True)
        if shape
    ]
    return ", ".join(tensors)
