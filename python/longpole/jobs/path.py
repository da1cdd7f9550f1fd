"""The critical path across ranks: each rank on it is reopened to list its segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.jobs.reading import PathSection
from longpole.rows.frames import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from longpole._core import JointSolution
    from longpole.jobs.reading import Expanded

_COLUMNS: Final = (
    "rank",
    "start_ns",
    "end_ns",
    "kind",
    "event",
    "name",
    "evidence",
    "certainty",
    "call",
)


@dataclass(frozen=True, slots=True)
class PathRanks:
    """The ranks of a path: their numbers, their files, and how to reopen them."""

    numbers: Sequence[int]
    files: Sequence[str]
    expand: Callable[[Mapping[int, PathSection]], Mapping[int, Expanded]]

    def opened(self, legs: pl.DataFrame, solution: JointSolution) -> Mapping[int, Expanded]:
        """Open every rank on the path once, for its segments and the names of its transfers."""
        import polars as pl

        sections = {}
        for place in legs["place"].unique().sort():
            own = legs.filter(pl.col("place") == place)
            hops = own.filter(pl.col("kind") == "within").select("source", "target")
            events = own.filter(pl.col("kind") == "transfer")["target"]
            sections[place] = PathSection(
                self.files[place],
                list(hops.iter_rows()),
                sorted(set(events.to_list())),
                solution.clock(place),
            )
        return self.expand(sections)


def path_frame(
    legs: pl.DataFrame,
    ranks: PathRanks,
    solution: JointSolution,
    calls: pl.DataFrame,
    window_ns: tuple[int, int],
) -> pl.DataFrame:
    """Join the parts of a path so that they tile the window."""
    import polars as pl

    opened = ranks.opened(legs, solution)
    legs = legs.with_row_index("leg")
    parts = [_within(legs, place, expanded) for place, expanded in opened.items()]
    parts.append(_transfers(legs, opened, calls))
    numbers = pl.Series("rank", ranks.numbers, dtype=pl.Int64)
    frame = pl.concat(parts).sort("leg", maintain_order=True)
    frame = frame.with_columns(rank=numbers.gather(frame["place"])).select(_COLUMNS)
    return _tiled(frame, *window_ns)


def _within(legs: pl.DataFrame, place: int, expanded: Expanded) -> pl.DataFrame:
    """Return the segments within a rank, each with the number of its leg."""
    import polars as pl

    own = legs.filter(pl.col("kind") == "within", pl.col("place") == place)
    return expanded.segments.select(
        leg=own["leg"].gather(expanded.segments["hop"]),
        place=pl.lit(place, pl.UInt32),
        call=pl.lit(None, pl.UInt32),
        **{name: pl.col(name) for name in _COLUMNS[1:-1]},
    )


def _transfers(
    legs: pl.DataFrame, opened: Mapping[int, Expanded], calls: pl.DataFrame
) -> pl.DataFrame:
    """Return the segments from the last arrival of each call, which may wait for an absent rank."""
    import polars as pl

    named = [
        (place, event, name)
        for place, expanded in opened.items()
        for event, name in expanded.names.items()
    ]
    schema = {"place": pl.UInt32, "target": pl.UInt32, "name": pl.String}
    names = typed(pl.DataFrame(named, schema=schema, orient="row"))
    found = legs.filter(pl.col("kind") == "transfer").join(names, on=["place", "target"])
    found = found.with_columns(
        is_absent=calls["last"].is_null().gather(found["call"]),
        is_order=(calls["matched_by"].cast(pl.String) == "order").gather(found["call"]),
    )
    absent, order = pl.when("is_absent"), pl.col("is_absent") | pl.col("is_order")
    likely = pl.when("is_order").then(pl.lit("likely")).otherwise(pl.lit("certain"))
    words = {
        "kind": absent.then(pl.lit("communication")).otherwise(pl.lit("transfer")),
        "evidence": pl.when(order).then(pl.lit("inferred")).otherwise(pl.lit("recorded")),
        "certainty": absent.then(pl.lit("doubtful")).otherwise(likely),
    }
    facts = {name: value.cast(pl.Categorical) for name, value in words.items()}
    columns = ("leg", "place", "call", *_COLUMNS[1:-1])
    return found.with_columns(event=pl.col("target"), **facts).select(columns)


def _tiled(frame: pl.DataFrame, start_ns: int, end_ns: int) -> pl.DataFrame:
    """Remove the gaps between segments and name the time before the first one."""
    import polars as pl

    frame = frame.with_columns(pl.col("end_ns").clip(upper_bound=end_ns))
    before_ns = pl.col("end_ns").cum_max().shift(1).fill_null(start_ns).clip(lower_bound=start_ns)
    frame = frame.with_columns(before_ns=before_ns).filter(pl.col("end_ns") > pl.col("before_ns"))
    first_ns = max(int(frame["start_ns"][0]), start_ns) if frame.height else start_ns
    is_first = pl.int_range(pl.len()) == 0
    frame = frame.with_columns(
        start_ns=pl.when(is_first).then(first_ns).otherwise("before_ns")
    ).drop("before_ns")
    if first_ns > start_ns:
        opening = {
            "rank": frame["rank"][0],
            "start_ns": start_ns,
            "end_ns": first_ns,
            "kind": "before_first_event",
            "evidence": "none",
            "certainty": "unknown",
        }
        unknown = {name: opening.get(name) for name in _COLUMNS}
        frame = pl.concat([pl.DataFrame([unknown], schema=frame.schema), frame])
    return frame.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
