"""The critical path across ranks: each rank on it is opened again for its segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.traces.reading import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from longpole._core import JointSolution
    from longpole.traces.reading import Expanded

__all__ = ["PathRanks", "path_frame"]

_Row = tuple[Any, ...]
_BEFORE: Final = ("before_first_event", None, None, "none", "unknown", None)


@dataclass(frozen=True, slots=True)
class PathRanks:
    """The ranks of a path: their numbers and files, and how they are opened again."""

    numbers: Sequence[int]
    files: Sequence[str]
    expand: Callable[[Mapping[int, Stretch]], Mapping[int, Expanded]]

    def opened(self, legs: pl.DataFrame) -> Mapping[int, Expanded]:
        """Open every rank on the path once, for its hops and the names of its transfers."""
        import polars as pl

        stretches = {}
        for place in legs["place"].unique().sort():
            own = legs.filter(pl.col("place") == place)
            hops = own.filter(pl.col("kind") == "within").select("source", "target")
            events = own.filter(pl.col("kind") == "transfer")["target"]
            stretches[place] = Stretch(
                self.files[place], list(hops.iter_rows()), sorted(set(events.to_list()))
            )
        return self.expand(stretches)


def path_frame(
    legs: pl.DataFrame,
    ranks: PathRanks,
    solution: JointSolution,
    calls: pl.DataFrame,
    window_ns: tuple[int, int],
) -> pl.DataFrame:
    """Put the parts of a path together, so that they tile the window."""
    import polars as pl

    opened = ranks.opened(legs)
    expanded = _within(legs, opened, solution)
    rows: list[_Row] = []
    for number, leg in enumerate(legs.iter_rows(named=True)):
        rank = ranks.numbers[leg["place"]]
        if leg["kind"] == "transfer":
            rows.append((rank, leg["start_ns"], leg["end_ns"], *_transfer(leg, opened, calls)))
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


def _within(
    legs: pl.DataFrame, opened: Mapping[int, Expanded], solution: JointSolution
) -> dict[int, list[_Row]]:
    """Give the segments within ranks, on the common clock, by number of their leg."""
    import polars as pl

    found: dict[int, list[_Row]] = {}
    within = legs.with_row_index("leg").filter(pl.col("kind") == "within")
    for place, expanded in opened.items():
        numbers = within.filter(pl.col("place") == place)["leg"].to_list()
        for row in expanded.rows:
            times = (solution.common_ns(place, row[end]) for end in ("start_ns", "end_ns"))
            facts = (row[name] for name in ("kind", "event", "name", "evidence", "certainty"))
            found.setdefault(numbers[row["hop"]], []).append((*times, *facts, None))
    return found


def _transfer(leg: Mapping[str, Any], opened: Mapping[int, Expanded], calls: pl.DataFrame) -> _Row:
    """Name the time from the last arrival of a call; it may be waiting for an absent rank."""
    name = opened[leg["place"]].names[leg["target"]]
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
