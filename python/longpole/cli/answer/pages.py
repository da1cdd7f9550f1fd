"""What pages about traces begin and end with: facts about the traces, and the known limits."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from longpole.cli.answer.inputs import name_of
from longpole.report.blocks import Notes
from longpole.report.sections import Section
from longpole.words.wording import count, short_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.trace.trace import Trace

    Named = tuple[str, Trace]

_LIMITS: Final = (
    "Gains are upper bounds: they assume that a change causes no new work.",
    "Gains overlap, so they must not be added up.",
    "What the profiler added to the host is an estimate; of several ranks, it is not taken off.",
    "Without `cuda_sync` records, waits between calls and streams are inferred if possible.",
    "One rank cannot tell whether others were late: time in communication may be waiting for them.",
)
_WIDEST: Final = 48
_MOST_DEVICES: Final = 3


def known_limits() -> Section:
    """List what a page does not support."""
    return Section("limits", "Known limits", [Notes(_LIMITS)], is_folded=True)


def names_of(traces: Sequence[Named]) -> list[str]:
    """Return short names of traces: their files, with as many folders as needed to differ."""
    paths = [PurePath(path) for path, _ in traces]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        folder = _folder(traces)
        names = [str(path.relative_to(folder)) if folder else str(path) for path in paths]
    return short_names([name_of(name) for name in names], _WIDEST)


def facts_of(traces: Sequence[Named]) -> list[str]:
    """Return the facts about the traces that were read."""
    (path, first), several = traces[0], len(traces) > 1
    n_events = count(sum(trace.n_events for _, trace in traces), "event")
    formats = sorted({trace.format for _, trace in traces})
    folder = _folder(traces)
    inside = f" in {name_of(folder)}" if folder not in ("", ".") else ""
    where = f"{count(len(traces), 'trace')}{inside}"
    facts = [where if several else name_of(path), n_events, *formats]
    if several:
        facts += _ranks(traces)
    elif first.rank is not None:
        facts.append(f"rank {first.rank}" + (f" of {first.world_size}" if first.world_size else ""))
    damaged = [
        name
        for name, (_, trace) in zip(names_of(traces), traces, strict=True)
        if trace.status == "recovered"
    ]
    return [", ".join([*facts, *_devices(traces)]), *map(_damaged, damaged)]


def _folder(traces: Sequence[Named]) -> str:
    """Return the folder that all traces are in; empty if they have none in common."""
    folders = [str(PurePath(path).parent) for path, _ in traces]
    try:
        return os.path.commonpath(folders)
    except ValueError:
        return ""


def _ranks(traces: Sequence[Named]) -> list[str]:
    ranks = {trace.rank for _, trace in traces if trace.rank is not None}
    sizes = {trace.world_size for _, trace in traces if trace.world_size}
    of = f" of {sizes.pop()}" if len(sizes) == 1 else ""
    return [f"{count(len(ranks), 'rank')}{of}"] if ranks else []


def _devices(traces: Sequence[Named]) -> list[str]:
    names = {str(name) for _, trace in traces for name in trace.devices["name"].drop_nulls()}
    return sorted(names - {""})[:_MOST_DEVICES]


def _damaged(name: str) -> str:
    return f"{name} is damaged; the answers use the intact part. See the diagnostics."
