"""The events around an event (its stack) and inside it (its subtree)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

ADDRESS: Final = r" at 0x[0-9a-f]+"
"""The address in names of built-in methods, which differs in each run."""

_SHOWN: Final = ("kind", "name", "start_ns", "duration_ns")
_TOLERANCE_NS: Final = 1_000


class Nested(Protocol):
    """The parts of a trace used here."""

    @property
    def events(self) -> pl.DataFrame:
        """All events of the trace."""
        ...

    @property
    def launches(self) -> pl.DataFrame:
        """The launch of each GPU activity."""
        ...

    @property
    def backward_links(self) -> pl.DataFrame:
        """The forward operator of each operator of a backward pass."""
        ...


def stack_of(trace: Nested, event: int) -> pl.DataFrame:
    """List the events around an event; see `Trace.stack_of`."""
    import polars as pl

    _check(trace, event)
    launched = trace.launches.filter(pl.col("event") == event)
    call, operator = launched.select("call", "operator").row(0) if launched.height else (None, None)
    innermost = event if not launched.height else call if call is not None else operator
    own = [] if innermost is None else _chain(trace, innermost)
    forward = dict(trace.backward_links.select("backward", "forward").iter_rows())
    node = next((forward[row] for row in own if row in forward), None)
    chain = [("forward", row) for row in reversed([] if node is None else _chain(trace, node))]
    chain += [("enclosing", row) for row in reversed(own)]
    chain += [("launched", event)] if launched.height else []
    rows = pl.DataFrame(chain, schema={"relation": pl.String, "event": pl.UInt32}, orient="row")
    return _described(trace, rows).select("event", "relation", *_SHOWN)


def subtree(trace: Nested, event: int) -> pl.DataFrame:
    """List an event, everything nested in it and their launches; see `Trace.subtree`."""
    import polars as pl

    _check(trace, event)
    children = _children(trace, event)
    rows: list[tuple[int, int | None, int]] = []
    waiting: list[tuple[int, int | None, int]] = [(event, None, 0)]
    while waiting:
        row = waiting.pop()
        rows.append(row)
        waiting += [(child, row[0], row[2] + 1) for child in reversed(children.get(row[0], ()))]
    schema = {"event": pl.UInt32, "parent": pl.UInt32, "level": pl.Int64}
    return _described(trace, pl.DataFrame(rows, schema=schema, orient="row"))


def _check(trace: Nested, event: int) -> None:
    if not 0 <= event < trace.events.height:
        message = f"the trace has no event {event}; events are 0 to {trace.events.height - 1}"
        raise ValueError(message)


def _chain(trace: Nested, event: int | None) -> list[int]:
    """Return an event and those around it, innermost first."""
    parents = trace.events["parent"]
    chain = []
    while event is not None:
        chain.append(event)
        event = parents[event]
    return chain


def _children(trace: Nested, event: int) -> Mapping[int, list[int]]:
    """List the events that may be nested in an event by parent, in time order."""
    import polars as pl

    columns = ("event", "parent", "lane", "start_ns", "duration_ns")
    lane, start_ns, duration_ns = trace.events.select(columns[2:]).row(event)
    end_ns = start_ns + (duration_ns or 0) + _TOLERANCE_NS
    events = trace.events.select(columns)
    inside = events.filter(
        (pl.col("lane") == lane) & pl.col("start_ns").is_between(start_ns, end_ns)
    )
    launched = trace.launches.select("event", parent=pl.coalesce("call", "operator"))
    works = launched.join(events.select("event", "start_ns"), on="event")
    nested = pl.concat([inside.select("event", "parent", "start_ns"), works])
    nested = nested.filter(pl.col("parent").is_not_null()).sort("start_ns", "event")
    grouped = nested.group_by("parent", maintain_order=True).agg("event")
    return dict(grouped.iter_rows())


def _described(trace: Nested, rows: pl.DataFrame) -> pl.DataFrame:
    described = trace.events.select("event", *_SHOWN)
    return rows.join(described, on="event", how="left", maintain_order="left")


class Operators:
    """Looks up the operators around each event."""

    def __init__(self, events: pl.DataFrame) -> None:
        import polars as pl

        self._parent = dict(zip(events["event"], events["parent"], strict=True))
        operators = events.filter(events["kind"].cast(pl.String) == "operator")
        names = operators["name"].cast(pl.String)
        self._name = dict(zip(operators["event"], names, strict=True))

    def around(self, event: int | None) -> tuple[str, ...]:
        """Return the names of the operators around an event, outermost first, then the event."""
        return tuple(self._name[operator] for operator in self.events_around(event))

    def events_around(self, event: int | None) -> tuple[int, ...]:
        """Return the operators around an event, outermost first, then the event."""
        events = []
        while event is not None:
            if event in self._name:
                events.append(event)
            event = self._parent[event]
        return tuple(reversed(events))
