"""The critical path across ranks: each rank on it is opened again for its segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole._core import expand_hops
from longpole.frames import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from longpole._core import JointSolution
    from longpole.trace import Trace

__all__ = ["PathRanks", "path_frame"]

_Row = tuple[Any, ...]
_BEFORE: Final = ("before_first_event", None, None, "none", "unknown", None)


@dataclass(frozen=True, slots=True)
class PathRanks:
    """The ranks of a path: their numbers, and how to open one by its place."""

    numbers: Sequence[int]
    open: Callable[[int], Trace]
    data_load: str | None

    def expanded(self, legs: pl.DataFrame, solution: JointSolution) -> dict[int, list[_Row]]:
        """Give the segments within ranks, on the common clock, by number of their leg."""
        import polars as pl

        found: dict[int, list[_Row]] = {}
        within = legs.with_row_index("leg").filter(pl.col("kind") == "within")
        for place in within["place"].unique().sort():
            of_rank = within.filter(pl.col("place") == place)
            hops = list(of_rank.select("source", "target").iter_rows())
            core = self.open(place).core
            segments = frame_of(expand_hops(core, hops, data_load=self.data_load))
            numbers = of_rank["leg"].to_list()
            for row in segments.iter_rows(named=True):
                times = (solution.common_ns(place, row[end]) for end in ("start_ns", "end_ns"))
                facts = (row[name] for name in ("kind", "event", "name", "evidence", "certainty"))
                found.setdefault(numbers[row["hop"]], []).append((*times, *facts, None))
        return found

    def event_name(self, place: int, event: int) -> str | None:
        """Name an event of a rank."""
        name = self.open(place).events["name"][event]
        return None if name is None else str(name)


def path_frame(
    legs: pl.DataFrame,
    ranks: PathRanks,
    solution: JointSolution,
    calls: pl.DataFrame,
    window_ns: tuple[int, int],
) -> pl.DataFrame:
    """Put the parts of a path together, so that they tile the window."""
    import polars as pl

    expanded = ranks.expanded(legs, solution)
    rows: list[_Row] = []
    for number, leg in enumerate(legs.iter_rows(named=True)):
        rank = ranks.numbers[leg["place"]]
        if leg["kind"] == "transfer":
            rows.append((rank, leg["start_ns"], leg["end_ns"], *_transfer(leg, ranks, calls)))
        else:
            rows += [(rank, *row) for row in expanded.get(number, [])]
    schema = {
        "rank": pl.Int64,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
        "kind": pl.String,
        "event": pl.UInt32,
        "name": pl.String,
        "evidence": pl.String,
        "certainty": pl.String,
        "call": pl.UInt32,
    }
    frame = pl.DataFrame(_tiled(rows, *window_ns), schema=schema, orient="row")
    return frame.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))


def _transfer(leg: Mapping[str, Any], ranks: PathRanks, calls: pl.DataFrame) -> _Row:
    """Name the time from the last arrival of a call; it may be waiting for an absent rank."""
    name = ranks.event_name(leg["place"], leg["target"])
    if calls["last"][leg["call"]] is None:
        return ("communication", leg["target"], name, "inferred", "doubtful", leg["call"])
    is_order = str(calls["matched_by"][leg["call"]]) == "order"
    known = ("inferred", "likely") if is_order else ("recorded", "certain")
    return ("transfer", leg["target"], name, *known, leg["call"])


def _tiled(rows: Sequence[_Row], start_ns: int, end_ns: int) -> list[_Row]:
    """Let segments follow each other without gaps; what is before the first has a name."""
    found: list[_Row] = []
    now = start_ns
    for row in rows:
        rank, start, end, *rest = row
        if not found and start > now:
            found.append((rank, now, start, *_BEFORE))
            now = start
        if end > now:
            found.append((rank, now, min(end, end_ns), *rest))
            now = min(end, end_ns)
    return found
