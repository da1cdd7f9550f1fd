"""Chooses the files of one recording: a folder can have those of several runs or cycles.

Of two files with the same rank, the one that was recorded together with the other ranks is used.
Clocks of hosts may differ, so recordings of different ranks that do not overlap are separated only
if they are more than a minute apart and no call joins them, or if their numbers of ranks differ.
"""

from __future__ import annotations

import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Final

from longpole.errors import RanksError
from longpole.jobs.findings import RankFinding, listed
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.jobs.reading import ReadRank

_FAR_NS: Final = 60_000_000_000
_MOST_NAMED: Final = 3
_ASK_EACH: Final = "ask each with `longpole summary`, and compare two with `longpole diff`"

_Parts = list[list["ReadRank"]]


def of_one_run(read: Sequence[ReadRank]) -> tuple[list[ReadRank], list[RankFinding]]:
    """Choose the files of one run if the files are from several; report the others.

    Raises
    ------
    RanksError
        It is ambiguous which files belong together.
    """
    known = [it for it in read if it.rank is not None]
    if len({it.rank for it in known}) < len(known):
        return _largest(read, _parts(known, far_ns=0))
    if len({it.world_size for it in known} - {None}) > 1:
        return _largest(read, _parts(known))
    return list(read), []


def parts_of_time(read: Sequence[ReadRank]) -> list[int]:
    """Return the number of the recording that each file belongs to, judged by time."""
    places = {id(it): at for at, part in enumerate(_parts(read)) for it in part}
    return [places[id(it)] for it in read]


def unrelated(read: Sequence[ReadRank]) -> tuple[list[ReadRank], list[RankFinding]]:
    """Choose the largest group of files; no call connects it to the others. See `of_one_run`."""
    return _largest(read, _parts(read))


def _parts(read: Sequence[ReadRank], far_ns: int = _FAR_NS) -> _Parts:
    """Divide files by the number of ranks and the time of the recording."""
    parts: _Parts = []
    for _, same in groupby(sorted(read, key=_order), lambda it: it.world_size):
        end_ns = None
        for it in same:
            if end_ns is None or it.span_ns[0] - end_ns > far_ns:
                parts.append([])
                end_ns = it.span_ns[1]
            parts[-1].append(it)
            end_ns = max(end_ns, it.span_ns[1])
    return parts


def _order(it: ReadRank) -> tuple[int, tuple[int, int], str]:
    return it.world_size or 0, it.span_ns, it.source.path


def _largest(read: Sequence[ReadRank], parts: _Parts) -> tuple[list[ReadRank], list[RankFinding]]:
    """Choose the group of files with the most ranks."""
    sizes = [len({it.rank for it in part}) for part in parts]
    most = max(sizes)
    if len(parts) == 1:
        return list(read), []
    if most == 1:
        raise no_ranks([it for part in parts for it in part])
    if sizes.count(most) > 1:
        raise _ambiguous([part for part, size in zip(parts, sizes, strict=True) if size == most])
    chosen = parts[sizes.index(most)]
    others = [it for part in parts if part is not chosen for it in part]
    left = {id(it) for it in others}
    return [it for it in read if id(it) not in left], [_ignored(others)]


def no_ranks(read: Sequence[ReadRank]) -> RanksError:
    """Return the error for files of which no two are from the same run."""
    files = f"{count(len(read), 'trace')} ({_named(read)})"
    return RanksError(f"no two of {files} are ranks of one run\nhint: {_ASK_EACH}")


def _ambiguous(parts: _Parts) -> RanksError:
    by_rank = [sorted(part, key=lambda it: (it.rank or 0, it.source.path)) for part in parts]
    told = "; ".join(f"{_named(it)} ({listed([each.rank or 0 for each in it])})" for it in by_rank)
    paths = " ".join(shlex.quote(it.source.path) for it in by_rank[0])
    return RanksError(
        f"traces of {len(parts)} recordings: {told}\nhint: give those of one, such as {paths}"
    )


def _ignored(others: Sequence[ReadRank]) -> RankFinding:
    ranks = tuple(sorted({it.rank for it in others if it.rank is not None}))
    is_or_are = "is" if len(others) == 1 else "are"
    message = f"{_named(others)} {is_or_are} of another recording and ignored"
    return RankFinding("other recording", message, ranks, count=len(others))


def _named(files: Sequence[ReadRank]) -> str:
    names = [it.source.path for it in files]
    more = len(names) - _MOST_NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_MOST_NAMED])} and {more} more"
