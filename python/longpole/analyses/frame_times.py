"""What frames of one kind took: the form of the answers about operators, modules and functions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

import polars as pl

from longpole.data import Data, Hidden, Row
from longpole.errors import WindowError
from longpole.frames import frame_schema
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.selection import sorted_by
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.contexts import ContextTimes
    from longpole.report.blocks import Block, Cell
    from longpole.report.document import Record
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = [
    "FrameRow",
    "FrameTimes",
    "flat_rows",
    "host_limits",
    "no_rows",
    "rest_rows",
    "with_shares",
]

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
    """The frames of one name."""

    row: Literal["frame", "outside", "unlinked"]
    """`outside`: GPU activities launched outside all such frames; `unlinked`: GPU activities
    without a launch call in the trace."""
    name: str | None
    count: int | None
    """Number of calls."""
    self_ns: int | None
    """Time on its threads without the frames inside it."""
    total_ns: int | None
    """The time including the frames inside; a frame inside another of the same name counts once."""
    n_activities: int
    device_self_ns: int
    """Time of the GPU activities that it launched itself; concurrent activities each count in
    full."""
    device_ns: int
    """Time including the GPU activities of the frames inside."""
    backward_ns: int | None
    """Device time of the backward pass that it causes."""
    backward_self_ns: NotRequired[int | None]
    """That time without the frames inside."""
    shapes: NotRequired[list[list[int] | None] | None]
    strides: NotRequired[list[list[int] | None] | None]
    dtypes: NotRequired[list[str] | None]
    share_of_device: float | None
    """Share of the time of all GPU activities, not of the window."""


@dataclass(frozen=True, slots=True)
class FrameTimes(Data):
    """What frames of one kind took in a window, a row a name."""

    noun: Hidden[str]
    rows: Annotated[pl.DataFrame, FrameRow]
    device_ns: int
    """The time of all GPU activities: what shares are shares of."""
    top: Hidden[int]
    hint: Hidden[str | None] = None
    """Why there may be less than expected."""
    is_tree: Hidden[bool] = False
    """Whether names are paths, shown as a tree."""
    is_sorted: Hidden[bool] = False
    """Whether the order of the rows was asked for: a tree has it among siblings."""
    by_host: Hidden[bool] = False
    """Whether the most time on the host comes first, because the host limits the window."""

    def sorted_by(self, column: str | None) -> FrameTimes:
        """Put the rows into the order of a column; those of no frame stay the last.

        Raises
        ------
        ValueError
            There is no such column.
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
        """Give a row for each name; shapes are texts."""
        return flat_rows(self.rows)

    def blocks(self) -> list[Block]:
        """Show the rows that took most, and those of no frame."""
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
        """Explain the order where it is not that of device time."""
        if not self.by_host or self.rows["device_self_ns"].sum() == 0:
            return []
        told = (
            "Sorted by host self time, because the host limits this window; --sort device_self "
            "sorts by device time."
        )
        return [Notes([told])]

    def _launched_before(self) -> list[Block]:
        """Say what the columns count where GPU activities were launched before the window."""
        before = self.rows.filter(pl.col("count") == 0, pl.col("n_activities") > 0)
        if before.is_empty():
            return []
        told = (
            "Rows with 0 calls launched their GPU activities before the window. Host columns count "
            "the time on threads in the window, device columns the time on devices in it."
        )
        return [Notes([told])]

    def _first_of_tree(self, frames: pl.DataFrame) -> pl.DataFrame:
        """Take the first rows of a tree: in the order asked for, else by total device time."""
        order = pl.int_range(pl.len()) if self.is_sorted else -pl.col("device_ns")
        ranks = dict(frames.select("name", order.alias("rank")).iter_rows())
        return _with_parents(frames, self.top, ranks)


def no_rows() -> pl.DataFrame:
    """Return the rows of a trace without a window, in which nothing ran."""
    return pl.DataFrame(schema=frame_schema(FrameRow))


def flat_rows(rows: pl.DataFrame) -> list[Record]:
    """Give rows for spreadsheets, which put a list into one cell, as JSON.

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
    """Give the GPU activities of no frame: one row for each reason."""
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
    """Whether the verdict about a window names the host before anything else."""
    try:
        verdict = trace.verdict(between=(window.start_ns, window.end_ns))
    except WindowError:
        return False
    return verdict.sides[:1] == ("host",)


def with_shares(
    rows: pl.DataFrame, times: ContextTimes, own: pl.Expr, *, by_host: bool = False
) -> tuple[pl.DataFrame, int]:
    """Add the rows of no frame and `share_of_device`, the part of all device time that `own` is.

    The most device time comes first, then the most time on the host, or the other way round with
    `by_host`; ties go by name.
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
    """Say what the shares are shares of; where it is a column, backward time counts, too."""
    counts_backward = "backward_self_ns" in shown.columns
    with_backward = ", with backward" if counts_backward else ""
    return Column(f"self share of device time{with_backward}", "share")


def _with_parents(frames: pl.DataFrame, top: int, ranks: Mapping[str, int]) -> pl.DataFrame:
    """Take the first rows and those around them, parents first, siblings by their ranks."""
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
