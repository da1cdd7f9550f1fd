"""Reads dumps of PyTorch's flight recorder: the collectives a rank called, and their states.

A dump is JSON. The default form, a pickle, is refused because reading it runs code.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from longpole._core import is_own_frame, rank_of_calls
from longpole.errors import RanksError
from longpole.files.json_elements import JsonLimitError, json_elements
from longpole.files.opening import first_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from longpole._core import ReducedRank
    from longpole.jobs.sources import RankSource

_HEAD_BYTES: Final = 1 << 16
_PICKLE_PROTOCOLS: Final = range(2, 8)
_KEYS: Final = re.compile(rb'"(?:collective_seq_id|profiling_name|pg_status|comm_lib_version)"')
_TRACE: Final = re.compile(rb'"(?:traceEvents|deviceProperties|schemaVersion)"')
_PEER: Final = re.compile(r"\b(?P<own>\d{1,9})(?P<way>->|<-)(?P<peer>\d{1,9})\b")
MAX_CALLS: Final = 100_000
"""Maximum number of calls in a dump; a recorder holds 2,000 by default."""
_LONGEST_TEXT: Final = 1_000
_MOST_DIMENSIONS: Final = 64
_TOO_LARGE: Final = 1 << 63
_PICKLE_HINT: Final = (
    "hint: write torch._C._distributed_c10d._dump_nccl_trace_json() to a file on each rank, or ask "
    "torch.distributed's debug server for dump_nccl_trace_json"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One call of one rank, as recorded when the dump was written."""

    record: int
    group: str
    sequence: int
    """Sequence number within the group, or within the pair of a point-to-point message."""
    operation: str
    state: str
    """`scheduled` (called), `started` (its kernel runs) or `completed`."""
    peer: int | None
    elements: int | None
    data_type: str | None
    created_ns: int | None
    place: str | None
    """Place of the call in the program, if the dump has stacks."""


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    description: str | None
    ranks: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Dump:
    """The flight recorder dump of one rank."""

    source: RankSource
    groups: tuple[_Group, ...]
    entries: tuple[Entry, ...]
    is_full: bool
    """Whether older calls were overwritten."""
    n_damaged: int = 0
    """Number of calls with values of the wrong type, including those left out for them."""
    _places: dict[str, int] = field(default_factory=dict)

    def reduced(self, rank: int | None, firsts: Mapping[tuple[str, bool], int]) -> ReducedRank:
        """Return the calls in the form of a trace, from the first number that all ranks have."""
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
        """Return the calls except those whose counterparts another rank may have overwritten."""
        return [
            it
            for it in self.entries
            if it.sequence >= firsts.get((it.group, it.peer is not None), 0)
        ]


def is_pickle(path: str | Path) -> bool:
    """Whether a file is a pickle, judged by its first bytes."""
    head = first_bytes(path, _HEAD_BYTES)
    return len(head) > 1 and head[0] == 0x80 and head[1] in _PICKLE_PROTOCOLS  # noqa: PLR2004


def is_dump(path: str | Path) -> bool:
    """Whether a file is a flight recorder dump, in JSON or as a pickle."""
    head = first_bytes(path, _HEAD_BYTES)
    if is_pickle(path):
        return True
    is_empty = b'"entries"' in head and b'"pg_config"' in head
    return (is_empty or bool(_KEYS.search(head))) and not _TRACE.search(head)


def read_dump(source: RankSource) -> Dump:
    """Read one dump.

    Calls without a number, name or state are left out, and values of the wrong type become None;
    `n_damaged` counts the calls with either.

    Raises
    ------
    RanksError
        The file is a pickle, is not a dump, or holds more calls than a recorder can.
    """
    if is_pickle(source.path):
        message = f"{source.path} is a pickle, which can run code when it is read\n{_PICKLE_HINT}"
        raise RanksError(message)
    parts = _Parts()
    try:
        for place, value in json_elements(source.path, {"entries": 1, "pg_config": 1}):
            parts.add(place, value)
    except JsonLimitError as error:
        message = f"{source.path} is not read: {error}"
        raise RanksError(message) from error
    except (ValueError, OSError) as error:
        message = f"{source.path} is not a flight recorder dump: {error!r}"
        raise RanksError(message) from error
    if not parts.has_entries:
        message = f"{source.path} is not a flight recorder dump: it has no list of entries"
        raise RanksError(message)
    return parts.dump(source)


class _Parts:
    """Collects the parts of a dump while it is parsed."""

    def __init__(self) -> None:
        self.has_entries = False
        self._groups: dict[str, _Group] = {}
        self._entries: list[Entry] = []
        self._n_calls = self._n_damaged = 0

    def add(self, place: tuple[str | int, ...], value: object) -> None:
        """Add an element of the document."""
        match place:
            case ("entries", *rest):
                self.has_entries |= bool(rest) or isinstance(value, list)
                if rest:
                    self._add_entry(value)
            case ("pg_config", str(key)):
                self._add_group(key, value)
            case _:
                pass

    def _add_entry(self, row: object) -> None:
        self._n_calls += 1
        if self._n_calls > MAX_CALLS:
            message = f"it holds more than {MAX_CALLS:,} calls"
            raise JsonLimitError(message)
        fields = _Fields(row if isinstance(row, dict) else {})
        entry = _entry(fields)
        self._n_damaged += entry is None or fields.n_damaged > 0
        if entry is not None:
            self._entries.append(entry)

    def _add_group(self, key: str, row: object) -> None:
        """Store a group under its number or name in the dump, and under its own name."""
        if len(self._groups) >= MAX_CALLS:
            message = f"it holds more than {MAX_CALLS // 2:,} groups"
            raise JsonLimitError(message)
        fields = _Fields(row if isinstance(row, dict) else {})
        name = fields.text("name") or key
        group = _Group(name, fields.text("desc"), _ranks(fields.value("ranks")))
        self._groups[key] = self._groups[name] = group

    def dump(self, source: RankSource) -> Dump:
        """Return the dump. Peers are numbered within their group."""
        found = sorted((self._with_peer(entry) for entry in self._entries), key=_record)
        named = {group.name: group for group in self._groups.values()}
        for entry in found:
            named.setdefault(entry.group, _Group(entry.group, None, None))
        is_full = bool(found) and found[0].record > 0
        groups = tuple(named[name] for name in sorted(named))
        return Dump(source, groups, tuple(found), is_full, self._n_damaged)

    def _with_peer(self, entry: Entry) -> Entry:
        group = self._groups.get(entry.group)
        peer = entry.peer
        if peer is None or group is None or group.ranks is None or peer >= len(group.ranks):
            return entry
        return replace(entry, peer=group.ranks[peer])


class _Fields:
    """The fields of one call; counts those of the wrong type."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row
        self.n_damaged = 0

    def value(self, name: str) -> Any:
        """Return a field unchanged."""
        return self._row.get(name)

    def text(self, name: str) -> str | None:
        """Return a string field, or None if it is implausibly long."""
        found: str | None = self.checked(self._row.get(name), _is_text)
        return found

    def integer(self, name: str) -> int | None:
        """Return a non-negative integer that fits 64 bits."""
        found: int | None = self.checked(self._row.get(name), _is_integer)
        return found

    def checked(self, value: Any, is_sound: Callable[[Any], bool]) -> Any:
        """Return a value, or None if it has the wrong type."""
        if value is None or is_sound(value):
            return value
        self.n_damaged += 1
        return None


def _record(entry: Entry) -> int:
    return entry.record


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _is_integer(value: object) -> bool:
    return type(value) is int and 0 <= value < _TOO_LARGE


def _ranks(given: object) -> tuple[int, ...] | None:
    """Return a list of ranks, which may be given as text; None for a truncated list."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    if not isinstance(given, list) or not all(_is_integer(rank) for rank in given):
        return None
    return tuple(given)


def _entry(fields: _Fields) -> Entry | None:
    """Return the call of a row, its peer numbered as in the dump; None without a number or name."""
    record, name = fields.integer("record_id"), fields.text("profiling_name")
    name = None if name is None else name.removeprefix("nccl:")
    state = fields.text("state")
    found = _PEER.search(name) if name and fields.value("is_p2p") is True else None
    number = fields.integer("collective_seq_id" if found is None else "p2p_seq_id")
    if record is None or name is None or state is None or number is None:
        return None
    types = fields.checked(fields.value("input_dtypes"), _is_list) or [None]
    return Entry(
        record=record,
        group=_group(fields),
        sequence=number,
        operation=name.split(" ")[0],
        state=state,
        peer=None if found is None else int(found["peer"]),
        elements=_elements(fields),
        data_type=fields.checked(types[0], _is_text),
        created_ns=fields.integer("time_created_ns"),
        place=_place(fields.checked(fields.value("frames"), _is_list) or ()),
    )


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _group(fields: _Fields) -> str:
    """Return the name of the group, or the number that stands for it."""
    named = fields.checked(fields.value("process_group"), _is_list)
    if named:
        return fields.checked(named[0], _is_text) or ""
    for key in ("pg_name", "pg_id"):
        value = fields.value(key)
        if _is_text(value) or _is_integer(value):
            return str(value)
    return ""


def _elements(fields: _Fields) -> int | None:
    """Return the total number of elements of the inputs."""
    sizes = fields.checked(fields.value("input_sizes"), _are_sizes)
    return fields.checked(sum(map(prod, sizes)), _is_integer) if sizes else None


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(dims, list) and len(dims) <= _MOST_DIMENSIONS and all(map(_is_integer, dims))
        for dims in value
    )


def _place(frames: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the innermost frame of the user's program, or else the innermost frame."""
    known = [
        (str(frame.get("name", "?")), frame["filename"], frame.get("line", "?"))
        for frame in frames
        if isinstance(frame, dict) and _is_text(frame.get("filename"))
    ]
    own = [it for it in known if is_own_frame(f"{it[1]}(1): {it[0]}")]
    for name, file, line in own or known:
        return f"{name} ({file}:{line})"[:_LONGEST_TEXT]
    return None
