"""What a damaged file has lost, and whether an answer is still valid."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.errors import WindowError
from longpole.words.data import Data
from longpole.words.recording import options_for
from longpole.words.wording import memory_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# With these losses, any number of events may be missing, and any value may be wrong.
_WITHOUT_BOUND: Final = frozenset(
    {
        *("truncated", "missing_end", "limit_reached"),
        *("damaged_table", "damaged_page"),
        *("compression_corrupt", "compression_checksum"),
    }
)
# If a larger fraction of the bytes or events is lost, the rest is not representative.
_MUCH_LOST: Final = 0.01
# Losses of whole events, whose bytes are not counted.
_SKIPPED: Final = frozenset(
    {
        *("not_an_event", "too_deep", "bad_timestamp", "missing_timestamp", "far_timestamp"),
        *("missing_rows", "value_too_long"),
    }
)
# Records in these formats have no byte positions, but their pages do.
_DATABASES: Final = frozenset({"nsight-sqlite", "rocpd", "rpd"})
# Losses found only once the whole file is read.
_WITHOUT_PLACE: Final = frozenset({"far_timestamp", "long_duration"})
_HEADER: Final = frozenset({"malformed_header", "header_too_large"})


class _Read(Protocol):
    """The parts of a trace used here."""

    @property
    def core(self) -> Any: ...
    @property
    def damage(self) -> Damage | None: ...


@dataclass(frozen=True, slots=True)
class Damage(Data):
    """Damage found while reading a file."""

    is_grave: bool
    """Whether the data needed for an answer may be lost."""
    sentence: str
    """What was found, what it means for an answer, and what to do."""


@dataclass(frozen=True, slots=True)
class SourceLosses:
    """Losses of the original file, as recorded in a converted file."""

    n_bytes: int
    """Size of the original file."""
    n_events: int
    counts: dict[str, int]
    """Number of occurrences of each code."""


def source_losses(metadata: Mapping[str, Any]) -> SourceLosses | None:
    """Return the losses of the original file; None if the file is not converted or complete.

    Examples
    --------
    >>> field = {"bytes": 900, "events": 8, "codes": [["truncated", 1, 900, 0]]}
    >>> source_losses({"longpole.losses": field}).counts
    {'truncated': 1}
    """
    field: Any = metadata.get("longpole.losses")
    try:
        counts = {code: count for code, count, *_ in field["codes"]}
        return SourceLosses(int(field["bytes"]), int(field["events"]), counts)
    except (KeyError, TypeError, ValueError):
        return None


def damage_of(
    lost: Sequence[dict[str, Any]],
    size: tuple[int, int],
    *,
    format_name: str = "",
    is_of_source: bool = False,
) -> Damage | None:
    """Assess the losses relative to bytes and events; None if nothing was lost.

    Examples
    --------
    >>> damage_of([], (1_000, 10)) is None
    True
    """
    if not lost:
        return None
    n_bytes, n_events = size
    grave = [
        row for row in lost if row["code"] in _WITHOUT_BOUND or _is_much(row, n_bytes, n_events)
    ]
    row = (grave or lost)[0]
    has_place = row["first_offset"] if is_of_source else has_offset(row["code"], format_name)
    place = f", at byte {row['first_offset']:,}" if has_place else ""
    state = "incomplete" if row["code"] == "limit_reached" else "damaged"
    state = f"was converted from a file that is {state}" if is_of_source else f"is {state}"
    shown = _sentence(row, f"The trace {state}", place, len(lost), is_grave=bool(grave))
    return Damage(bool(grave), shown)


def missing_bytes(row: Mapping[str, Any]) -> str:
    """Return how much of a file that ends too early is missing at least, if a length says it.

    Examples
    --------
    >>> missing_bytes({"code": "truncated", "skipped_bytes": 1 << 20})
    ', at least 1 MiB of it missing'
    """
    if row["code"] != "truncated" or not row["skipped_bytes"]:
        return ""
    return f", at least {memory_size(row['skipped_bytes'])} of it missing"


def has_offset(code: str, format_name: str) -> bool:
    """Whether the place of a finding is a byte of the file."""
    if code in _WITHOUT_PLACE:
        return False
    return format_name not in _DATABASES or code == "damaged_page"


def advised(damage: Damage | None, hint: str) -> str:
    """Return a hint on what to record; if the trace is damaged, the damage instead."""
    return hint if damage is None else damage.sentence


_AFTER_RECORD: Final = ("launches", "operators")
"""Options whose phrase only makes sense after the word "record"."""


_XPROF: Final = "xprof"
_TIMELINE: Final = "xprof-json"
_OF_TIMELINE: Final = "; the xplane.pb that XProf writes with a timeline may have them"


def record_hint(trace: _Read, missing: str, option: str, otherwise: str = "") -> str:
    """Return a sentence on what a trace lacks, and which profiler option records it."""
    record: str = getattr(options_for(trace.core), option)
    how = record if option in _AFTER_RECORD else f"with {record}"
    nothing = ", and its profiler records none"
    if trace.core.profiler == _XPROF:
        nothing = _OF_TIMELINE if trace.core.format == _TIMELINE else ""
    advice = f": record {how}{otherwise}" if record else nothing
    return advised(trace.damage, f"{missing}{advice}.")


@contextmanager
def blaming(damage: Damage | None) -> Iterator[None]:
    """Add the damage to the message of a `WindowError`, as the window may be lost."""
    try:
        yield
    except WindowError as error:
        if damage is None:
            raise
        lost = f"{damage.sentence[:1].lower()}{damage.sentence[1:]}"
        message = f"{error}\nhint: {lost}"
        raise WindowError(message) from None


def _is_much(row: dict[str, Any], n_bytes: int, n_events: int) -> bool:
    """Whether many events are lost, by bytes, and by number if events were read."""
    if row["code"] in _HEADER:
        return False
    behind = n_bytes - row["first_offset"] if row["code"] == "text_after_end" else 0
    n_lost = max(row["skipped_bytes"], behind)
    n_skipped = row["count"] if row["code"] in _SKIPPED and not n_lost else 0
    return n_lost > _MUCH_LOST * n_bytes or n_skipped > _MUCH_LOST * (n_events + n_skipped)


def _sentence(row: dict[str, Any], state: str, place: str, n_kinds: int, *, is_grave: bool) -> str:
    more = f", and {n_kinds - 1} more: see `longpole check`" if n_kinds > 1 else ""
    found = f"{row['sentence']}{place}{missing_bytes(row)}{more}"
    effect = f"{row['effect'][:1].upper()}{row['effect'][1:]}"
    if is_grave:
        means = f"{effect}. What is missing may decide the answer: use the whole file"
    elif row["severity"] == "altered":
        means = "A name or a value there may be wrong; the answer rests on the others"
    else:
        means = f"{effect}, and the answer rests on the rest"
    return f"{state} ({found}). {means}."
