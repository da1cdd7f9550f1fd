"""Launches and operators of each step, in order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from longpole.diffs.stacks import mixed

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from longpole.diffs.sides import Side


@dataclass(frozen=True, slots=True)
class Sequence:
    """The events of one step, in order, with a key for each round of matching.

    The first key is the strictest: stack, shape and name.
    """

    events: NDArray[np.int64]
    keys: tuple[NDArray[np.uint64], ...]
    classes: NDArray[np.uint64]
    """Class of each event: a kernel never replaces a copy."""
    calls: NDArray[np.int64]
    """The launching call, or for operators the operator itself."""
    side: Side

    def name(self, place: int) -> str:
        """Return the name of an event."""
        return str(self.side.events["name"][int(self.events[place])])

    def operators_around(self, place: int) -> list[str]:
        """Return the names of the operators around a launch, innermost first."""
        events = self.side.events
        names = []
        row: int | None = int(self.calls[place])
        while row is not None:
            if events["kind"][row] == "operator":
                names.append(str(events["name"][row]))
            row = events["parent"][row]
        return names


def activities(side: Side) -> list[Sequence]:
    """Return the GPU activities of each step, in launch order."""
    launches = side.trace.launches.select("event", "call", "work_class").drop_nulls("call")
    known = launches.hstack(
        side.at(launches["event"], kind="kind", start_ns="start_ns", stream="stream")
    )
    known = known.hstack(side.at(launches["call"], call_ns="start_ns", call_lane="lane"))
    order = ["row", "place", "call_ns", "stream", "start_ns", "event"]
    return _sequences(side, known, order, call="call", by="call_ns")


def operators(side: Side) -> list[Sequence]:
    """Return the operators of each step in start order, thread by thread."""
    import polars as pl

    events = side.work.filter(pl.col("kind") == "operator")["event"].drop_nulls().unique()
    known = side.at(events, kind="kind", start_ns="start_ns", call_lane="lane")
    known = known.with_columns(event=events, call=events)
    return _sequences(
        side, known, ["row", "place", "start_ns", "event"], call="call", by="start_ns"
    )


def _sequences(
    side: Side, known: pl.DataFrame, order: list[str], *, call: str, by: str
) -> list[Sequence]:
    """Split events into steps, with threads in the order of their starts."""
    import numpy as np
    import polars as pl

    rows = side.rows_at(known[by].to_numpy())
    known = known.with_columns(row=pl.Series(rows)).filter(pl.col("row") >= 0)
    first = known.group_by("row", "call_lane").agg(first_ns=pl.col(by).min())
    place = pl.col("first_ns").rank("ordinal").over("row")
    first = first.sort("row", "first_ns", "call_lane").with_columns(place=place)
    ordered = known.join(first, on=["row", "call_lane"]).sort(order)
    events = ordered["event"].to_numpy().astype(np.int64)
    classes = _class_keys(ordered)
    calls = ordered[call].to_numpy().astype(np.int64)
    keys = _keys(side, events, calls, classes)
    borders = np.searchsorted(ordered["row"].to_numpy(), np.arange(side.n_steps + 1))
    return [
        Sequence(
            events[start:end],
            tuple(key[start:end] for key in keys),
            classes[start:end],
            calls[start:end],
            side,
        )
        for start, end in pairwise(borders)
    ]


def _keys(
    side: Side,
    events: NDArray[np.int64],
    calls: NDArray[np.int64],
    kind: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], ...]:
    """Return the keys of the rounds, strictest first.

    An event with another name counts as the same only if its operator launched the same number of
    activities.
    """
    import numpy as np

    keys = side.keys
    name, stack, operators = keys.name[events], keys.stack[calls], keys.operators[calls]
    parents = side.events["parent"].fill_null(0).to_numpy()
    shape = np.where(keys.shape[calls] == 0, keys.shape[parents[calls]], keys.shape[calls])
    place = mixed(kind, *_places_in_call(np.where(events == calls, calls, parents[calls])))
    return (
        mixed(stack, shape, name),
        mixed(operators, shape, name),
        mixed(operators, name),
        mixed(stack, shape, place),
        mixed(operators, place),
        mixed(name, kind),
    )


def _class_keys(events: pl.DataFrame) -> NDArray[np.uint64]:
    """Return a key of the type of each event (kernel, memcpy and so on)."""
    import numpy as np
    import polars as pl

    columns = [name for name in ("kind", "work_class") if name in events.columns]
    text = pl.concat_str(pl.col(name).cast(pl.String) for name in columns)
    each = events.select(columns).unique().with_columns(key=text.hash(seed=3))
    joined = events.select(columns).join(each, on=columns, how="left", maintain_order="left")
    return np.asarray(joined["key"].to_numpy(), np.uint64)


def _places_in_call(operators: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the position of each event within its operator, and the operator's event count."""
    import numpy as np

    order = np.argsort(operators, kind="stable")
    _, firsts, sizes = np.unique(operators[order], return_index=True, return_counts=True)
    nth = np.empty(len(operators), np.uint64)
    n_all = np.empty(len(operators), np.uint64)
    nth[order] = np.arange(len(operators)) - np.repeat(firsts, sizes)
    n_all[order] = np.repeat(sizes, sizes)
    return nth, n_all
