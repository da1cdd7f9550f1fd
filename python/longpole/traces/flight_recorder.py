"""Reads dumps of PyTorch's flight recorder: which collectives a rank called, and how far they got.

A dump is JSON. The default form is a pickle, which runs code when it is read; it is refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Final

from longpole._core import is_own_frame, rank_of_calls
from longpole.errors import RanksError
from longpole.packed import content, first_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from longpole._core import ReducedRank
    from longpole.traces.sources import RankSource

__all__ = ["Dump", "Entry", "is_dump", "is_pickle", "read_dump"]

_HEAD_BYTES: Final = 1 << 16
_PICKLE_PROTOCOLS: Final = range(2, 8)
_KEYS: Final = re.compile(rb'"(?:collective_seq_id|profiling_name|pg_status|comm_lib_version)"')
_TRACE: Final = re.compile(rb'"(?:traceEvents|deviceProperties|schemaVersion)"')
_PEER: Final = re.compile(r"\b(?P<own>\d+)(?P<way>->|<-)(?P<peer>\d+)")
_PICKLE_HINT: Final = (
    "hint: write torch._C._distributed_c10d._dump_nccl_trace_json() to a file on each rank, or ask "
    "torch.distributed's debug server for dump_nccl_trace_json"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One call of one rank, as the recorder saw it when the dump was written."""

    record: int
    group: str
    sequence: int
    """The number within the group, or within the pair of a message."""
    operation: str
    state: str
    """`scheduled` (called), `started` (its kernel runs) or `completed`."""
    peer: int | None
    elements: int | None
    data_type: str | None
    created_ns: int | None
    place: str | None
    """Where the program called it, if the dump has stacks."""


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    description: str | None
    ranks: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Dump:
    """What the flight recorder of one rank holds."""

    source: RankSource
    groups: tuple[_Group, ...]
    entries: tuple[Entry, ...]
    is_full: bool
    """Whether older calls were written over."""
    _places: dict[str, int] = field(default_factory=dict)

    def reduced(self, rank: int | None, firsts: Mapping[tuple[str, bool], int]) -> ReducedRank:
        """Give the calls as those of a trace, from the first number that all ranks still hold."""
        numbers = {group.name: place for place, group in enumerate(self.groups)}
        groups = [
            (group.name, group.description, None, list(group.ranks) if group.ranks else None)
            for group in self.groups
        ]
        calls = [
            (it.operation, numbers[it.group], it.sequence, it.peer, it.elements, it.data_type, None)
            for it in self.shown(firsts)
        ]
        return rank_of_calls(rank, world_size=None, groups=groups, calls=calls)

    def shown(self, firsts: Mapping[tuple[str, bool], int]) -> list[Entry]:
        """Leave out calls whose partners another rank may have written over."""
        return [
            it
            for it in self.entries
            if it.sequence >= firsts.get((it.group, it.peer is not None), 0)
        ]


def is_pickle(path: str | Path) -> bool:
    """Whether a file is a pickle, by its first bytes."""
    head = first_bytes(path, _HEAD_BYTES)
    return len(head) > 1 and head[0] == 0x80 and head[1] in _PICKLE_PROTOCOLS  # noqa: PLR2004


def is_dump(path: str | Path) -> bool:
    """Whether a file is a dump of the flight recorder, in JSON or as a pickle."""
    head = first_bytes(path, _HEAD_BYTES)
    if is_pickle(path):
        return True
    is_empty = b'"entries"' in head and b'"pg_config"' in head
    return (is_empty or bool(_KEYS.search(head))) and not _TRACE.search(head)


def read_dump(source: RankSource) -> Dump:
    """Read one dump.

    Raises
    ------
    RanksError
        The file is a pickle, or no dump.
    """
    if is_pickle(source.path):
        message = f"{source.path} is a pickle, which can run code when it is read\n{_PICKLE_HINT}"
        raise RanksError(message)
    try:
        document = json.loads(content(source.path))
        entries = document["entries"]
        groups = _groups(document.get("pg_config") or {})
        found = tuple(_entry(row, groups) for row in sorted(entries, key=_record))
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        message = f"{source.path} is no dump of a flight recorder: {error!r}"
        raise RanksError(message) from error
    named = {group.name: group for group in groups.values()}
    for entry in found:
        named.setdefault(entry.group, _Group(entry.group, None, None))
    is_full = bool(found) and found[0].record > 0
    return Dump(source, tuple(named[name] for name in sorted(named)), found, is_full)


def _record(row: Mapping[str, Any]) -> int:
    return int(row["record_id"])


def _groups(config: Mapping[str, Any]) -> dict[str, _Group]:
    """Give the groups by the number or name under which they stand, and by their own name."""
    found = {}
    for key, row in config.items():
        name = str(row.get("name", key))
        group = _Group(name, row.get("desc"), _ranks(row.get("ranks")))
        found[str(key)] = group
        found[name] = group
    return found


def _ranks(given: object) -> tuple[int, ...] | None:
    """Read a list of ranks, which may be text; one that is cut short is none."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return None
    if not isinstance(given, list) or not all(isinstance(rank, int) for rank in given):
        return None
    return tuple(given)


def _entry(row: Mapping[str, Any], groups: Mapping[str, _Group]) -> Entry:
    named = row.get("process_group") or [str(row.get("pg_name", row.get("pg_id", "")))]
    group = str(named[0])
    name = str(row["profiling_name"]).removeprefix("nccl:")
    peer = _peer(name, groups.get(group)) if row.get("is_p2p") else None
    number = row["p2p_seq_id"] if peer is not None else row["collective_seq_id"]
    sizes = row.get("input_sizes") or []
    types = row.get("input_dtypes") or [None]
    return Entry(
        record=int(row["record_id"]),
        group=group,
        sequence=int(number),
        operation=name.split(" ")[0],
        state=str(row["state"]),
        peer=peer,
        elements=sum(prod(dims) for dims in sizes) if sizes else None,
        data_type=types[0],
        created_ns=row.get("time_created_ns"),
        place=_place(row.get("frames") or ()),
    )


def _peer(name: str, group: _Group | None) -> int | None:
    """Give the rank that a message goes to or comes from; dumps number ranks within the group."""
    found = _PEER.search(name)
    if found is None:
        return None
    peer = int(found["peer"])
    if group is None or group.ranks is None or peer >= len(group.ranks):
        return peer
    return group.ranks[peer]


def _place(frames: Sequence[Mapping[str, Any]]) -> str | None:
    """Name the innermost frame of the program itself, else the innermost."""
    known = [frame for frame in frames if isinstance(frame, dict) and frame.get("filename")]
    own = [frame for frame in known if is_own_frame(f"{frame['filename']}(1): {frame.get('name')}")]
    for frame in own or known:
        return f"{frame.get('name', '?')} ({frame['filename']}:{frame.get('line', '?')})"
    return None
