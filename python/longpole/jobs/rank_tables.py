"""Formats ranks, collective calls and the critical path for `ranks`."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from longpole.report.blocks import Bar, Column, Value, color_of
from longpole.words.path_kinds import MEANINGS
from longpole.words.wording import count, duration, escape, short_name

_MOST_KINDS: Final = 6
_REMEDIES: Final = {
    "transfer": "send fewer bytes, or overlap it",
    "late arrival": "see the path of rank {last}",
    "mixed": "speed up rank {last}, then send fewer bytes",
    "start skew": "nothing: recordings started apart",
    "inconclusive": "record all ranks of the group",
}


def path_bars(path: pl.DataFrame) -> list[Bar]:
    """Divide a path by rank and kind, longest parts first; the short ones are combined."""
    length_ns = int(path["duration_ns"].sum())
    has_several = path["rank"].n_unique() > 1
    sums = path.group_by("rank", "kind").agg(pl.col("duration_ns").sum())
    order = ("duration_ns", "rank", "kind")
    rows = [
        (
            f"{f'rank {rank}: ' if has_several else ''}{MEANINGS.get(kind, kind)}",
            color_of(kind),
            duration_ns,
        )
        for rank, kind, duration_ns in sums.sort(*order, descending=[True, False, False])
        .head(_MOST_KINDS)
        .iter_rows()
    ]
    rest_ns = length_ns - sum(duration_ns for *_, duration_ns in rows)
    rows += [("other", "wait", rest_ns)] if rest_ns else []
    return [
        Bar(duration_ns / length_ns, duration(duration_ns), label, color)
        for label, color, duration_ns in rows
    ]


def call_number(call: dict[str, Any]) -> int:
    """Return the sequence number of a call in its group, or else its index among all calls."""
    number: int = call["call"] if call["sequence"] is None else call["sequence"]
    return number


def call_words(call: dict[str, Any]) -> str:
    """Describe a call."""
    operation = f" ({call['operation']})" if call["operation"] else ""
    group = f" of group {short_name(call['group'])}" if call["group"] else ""
    step = "" if call["step"] is None else f" in step {call['step']}"
    return escape(f"call {call_number(call)}{operation}{group}{step}")


def groups_in_words(calls: pl.DataFrame) -> str:
    """Return in how many groups calls were made; the group of some may not be recorded."""
    groups = calls["group"].drop_nulls()
    n_unknown = calls.height - len(groups)
    known = f"in {count(groups.n_unique(), 'group')}"
    if not n_unknown:
        return known
    if not len(groups):
        return "whose group is not recorded"
    return f"{known}, except {n_unknown:,} whose group is not recorded"


def what_to_do(call: dict[str, Any], *, is_joinable: bool) -> str:
    """Return what to do about a call; `is_joinable` if it is one of many small ones in a row."""
    if call["last"] is None and call["awaited"] is not None and call["cause"] != "transfer":
        return f"add the trace of rank {call['awaited']} of the group"
    if is_joinable and call["cause"] == "transfer":
        return "send small messages together"
    return _REMEDIES[call["cause"]].format(last=call["last"])


CLOCK_SHIFT: Final = Column("clock shift", "duration")
RANKS: Final[dict[Column, Value]] = {
    Column("rank", "number"): "rank",
    Column("began", "duration"): "began_ns",
    Column("last at"): lambda row: (
        f"{row['last_at']} of {row['decided_calls']}" if row["decided_calls"] else None
    ),
    Column("waited", "duration"): "wait_ns",
    Column("waited at least", "duration"): lambda row: (
        row["wait_at_least_ns"] or None if row["wait_ns"] is None else None
    ),
    Column("transfer", "duration"): "transfer_ns",
    Column("on path", "duration"): "path_ns",
    Column("gain", "duration"): lambda row: row["gain_ns"] or None,
    CLOCK_SHIFT: "clock_offset_ns",
}
OPERATION: Final[dict[Column, Value]] = {
    Column("operation"): lambda row: row["operation"] or "unknown",
}
ARRIVALS: Final[dict[Column, Value]] = {
    Column("last", "number"): "last",
    Column("late by", "duration"): lambda row: None if row["last"] is None else row["late_ns"],
    Column("waiting", "share"): "wait_share",
    Column("last of the traces", "number"): "latest",
    Column("waited at least", "duration"): "wait_at_least_ns",
}
TRANSFERS: Final[dict[Column, Value]] = {
    Column("bytes", "count"): "bytes",
    Column("transfer", "duration"): "transfer_ns",
    Column("bus GB/s", "number"): "bus_gb_per_s",
}
