"""What reading lost of a file, and whether an answer can stand without it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.data import Data
from longpole.errors import WindowError
from longpole.recording import options_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Damage", "advised", "blaming", "damage_of", "has_offset", "record_hint"]

# Behind these, any number of events may be missing, or any value be wrong.
_WITHOUT_BOUND: Final = frozenset(
    {
        *("truncated", "missing_end", "limit_reached"),
        *("damaged_table", "damaged_page"),
        *("compression_corrupt", "compression_checksum"),
    }
)
# Every event is kept, with its times and its texts.
_WITHOUT_LOSS: Final = frozenset(
    {
        "trailing_comma",
        "extra_comma",
        "missing_comma",
        "repeated_trace_events",
        "compression_trailing_bytes",
        "invalid_escape",
        "lone_surrogate",
        "non_finite_number",
    }
)
# With more of the bytes or events lost, those that are left do not stand for all.
_MUCH_LOST: Final = 0.01
# Whole events, of which the bytes are not counted.
_SKIPPED: Final = frozenset(
    {
        *("not_an_event", "too_deep", "bad_timestamp", "missing_timestamp"),
        *("missing_rows", "value_too_long"),
    }
)
# Their records have no bytes of their own, but their pages have.
_DATABASES: Final = frozenset({"nsight-sqlite", "rocpd"})
_HEADER: Final = frozenset({"malformed_header", "header_too_large"})


class _Read(Protocol):
    """What is asked of a trace."""

    @property
    def core(self) -> Any: ...
    @property
    def damage(self) -> Damage | None: ...


@dataclass(frozen=True, slots=True)
class Damage(Data):
    """What reading lost of a file."""

    is_grave: bool
    """Whether it may have taken what an answer needs."""
    sentence: str
    """What was found, what that means for an answer, and what to do."""


def damage_of(
    findings: Iterable[dict[str, Any]], n_bytes: int, n_events: int, format_name: str = ""
) -> Damage | None:
    """Judge what reading found; None where no event, text or value is lost.

    Examples
    --------
    >>> comma = {"code": "trailing_comma", "severity": "altered"}
    >>> damage_of([comma], 1_000, 10) is None
    True
    """
    severe = ("data_loss", "altered")
    lost = [row for row in findings if row["severity"] in severe]
    lost = [row for row in lost if row["code"] not in _WITHOUT_LOSS]
    if not lost:
        return None
    grave = [
        row for row in lost if row["code"] in _WITHOUT_BOUND or _is_much(row, n_bytes, n_events)
    ]
    row = (grave or lost)[0]
    has_place = has_offset(row["code"], format_name)
    place = f", at byte {row['first_offset']:,}" if has_place else ""
    return Damage(bool(grave), _sentence(row, place, len(lost), is_grave=bool(grave)))


def has_offset(code: str, format_name: str) -> bool:
    """Tell whether the place of a finding is a byte of the file."""
    return format_name not in _DATABASES or code == "damaged_page"


def advised(damage: Damage | None, hint: str) -> str:
    """Give advice on what to record; of a damaged trace the damage, which may have taken that."""
    return hint if damage is None else damage.sentence


def record_hint(trace: _Read, missing: str, option: str, otherwise: str = "") -> str:
    """Say what a trace lacks, and which option of its profiler records that."""
    record: str = getattr(options_for(trace.core), option)
    advice = f": record with {record}{otherwise}" if record else ", and its profiler records none"
    return advised(trace.damage, f"{missing}{advice}.")


@contextmanager
def blaming(damage: Damage | None) -> Iterator[None]:
    """Add the damage to the message of a `WindowError`: it may have taken the window."""
    try:
        yield
    except WindowError as error:
        if damage is None:
            raise
        lost = f"{damage.sentence[:1].lower()}{damage.sentence[1:]}"
        message = f"{error}\nhint: {lost}"
        raise WindowError(message) from None


def _is_much(row: dict[str, Any], n_bytes: int, n_events: int) -> bool:
    """Tell whether much is lost of the events: by bytes, and by number where these are read."""
    if row["code"] in _HEADER:
        return False
    behind = n_bytes - row["first_offset"] if row["code"] == "text_after_end" else 0
    n_lost = max(row["skipped_bytes"], behind)
    n_skipped = row["count"] if row["code"] in _SKIPPED and not n_lost else 0
    return n_lost > _MUCH_LOST * n_bytes or n_skipped > _MUCH_LOST * (n_events + n_skipped)


def _sentence(row: dict[str, Any], place: str, n_kinds: int, *, is_grave: bool) -> str:
    state = "incomplete" if row["code"] == "limit_reached" else "damaged"
    more = f", and {n_kinds - 1} more: see `longpole check`" if n_kinds > 1 else ""
    found = f"{row['sentence']}{place}{more}"
    effect = f"{row['effect'][:1].upper()}{row['effect'][1:]}"
    if is_grave:
        means = f"{effect}. What is missing may decide the answer: use the whole file"
    elif row["severity"] == "altered":
        means = "A name or a value there may be wrong; the answer rests on the others"
    else:
        means = f"{effect}, and the answer rests on the rest"
    return f"The trace is {state} ({found}). {means}."
