"""Tensors that the GPU converts to a smaller type right after they are copied to it.

`batch.to("cuda").bfloat16()` copies twice the bytes that the program needs, and a data set in
float64 four times those of `half`. How the host gets the smaller type is up to the program.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Scale
from longpole.flops.dtypes import python_name
from longpole.remedies.model import Found, Remedy
from longpole.remedies.pinned_copies import CALL_NS
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from longpole.engine.critical_path.changes import Change
    from longpole.flops import Tensor
    from longpole.remedies.facts import Activity, Facts, OnThread

__all__ = ["REMEDY"]

_COPY: Final = "aten::copy_"

# Smaller copies take as long as their call.
_LEAST_BYTES: Final = 1 << 20

# Operators that leave the type of a tensor and all dimensions but the first as they are.
_VIEWS: Final = {
    "aten::as_strided",
    "aten::detach",
    "aten::narrow",
    "aten::slice",
    "aten::to",
    "aten::_to_copy",
}

_Key = tuple[str, tuple[int, ...]]
"""Tensors that may be parts of one: their type, and all dimensions but the first."""


class _Sent(NamedTuple):
    """A tensor that is copied to the GPU, and when the operator runs that copies it."""

    start_ns: int
    end_ns: int
    copy: Activity
    tensor: Tensor


class _Reader(NamedTuple):
    """An operator with a tensor, and the smaller tensor if it converts it to that."""

    row: OnThread
    target: Tensor | None


class _Narrowed(NamedTuple):
    copy: Activity
    casts: list[OnThread]
    source: str
    target: str
    """Element types before and after the conversion."""
    share: float
    """The bytes of the smaller type, as a share of those copied."""


def _find(facts: Facts) -> Iterator[Found]:
    sent: dict[_Key, list[_Sent]] = defaultdict(list)
    for copy in facts.uploads:
        n_bytes = facts.number(copy.event, "bytes") or 0
        call = facts.called(copy.operator) if n_bytes >= _LEAST_BYTES else None
        tensor = None if call is None or call.name != _COPY else call.tensor(1)
        if tensor is not None and tensor.numel * (tensor.item_bytes or 0) == n_bytes:
            place = facts.place(copy.operator or 0)
            sent[_key(tensor)].append(_Sent(place.start_ns, place.end_ns, copy, tensor))
    readers = _readers(facts, sent) if sent else {}
    of_types: dict[tuple[str, str], list[_Narrowed]] = defaultdict(list)
    for key, copies in sent.items():
        for narrowed in _narrowed(facts, sorted(copies), readers.get(key, [])):
            of_types[narrowed.source, narrowed.target].append(narrowed)
    for _, rows in sorted(of_types.items()):
        if facts.is_worth(sum((1 - row.share) * row.copy.duration_ns for row in rows)):
            yield _found(facts, rows)


def _key(tensor: Tensor) -> _Key:
    return tensor.dtype, tuple(tensor.shape[1:])


def _readers(facts: Facts, sent: Mapping[_Key, object]) -> Mapping[_Key, list[_Reader]]:
    """List the operators with tensors that may be those sent, in order of time."""
    found: dict[_Key, list[_Reader]] = defaultdict(list)
    for row in sorted(facts.operators("aten::"), key=lambda row: (row.start_ns, row.event)):
        call = facts.called(row.event)
        if call is not None:
            target = call.tensor(0) if call.name == _COPY else None
            for key in sent.keys() & map(_key, call.all_tensors()):
                found[key].append(_Reader(row, target))
    return found


def _narrowed(
    facts: Facts, sent: Sequence[_Sent], readers: Sequence[_Reader]
) -> Iterator[_Narrowed]:
    """Yield the copies of which nothing but conversions to one smaller type reads the result."""
    starts = [reader.row.start_ns for reader in readers]
    for copy, following in zip_longest(sent, sent[1:]):
        end = len(readers) if following is None else bisect_left(starts, following.start_ns)
        read = readers[bisect_left(starts, copy.end_ns) : end]
        casts = {it.row: it.target for it in read if _is_cast(facts, it, copy.tensor)}
        others = [it.row for it in read if facts.name(it.row.event) not in _VIEWS]
        of_lanes = _by_lane(casts)
        is_read = any(
            row not in casts and not _encloses(row, of_lanes.get(row.lane, [])) for row in others
        )
        types = {(target.dtype, target.item_bytes) for target in casts.values() if target}
        if len(types) == 1 and not is_read:
            [(target, item_bytes)] = types
            share = (item_bytes or 0) / (copy.tensor.item_bytes or 1)
            yield _Narrowed(copy.copy, [*casts], copy.tensor.dtype, target, share)


def _is_cast(facts: Facts, reader: _Reader, tensor: Tensor) -> bool:
    """Whether an operator converts a tensor to a smaller type on the GPU."""
    target = reader.target
    small = None if target is None else target.item_bytes
    is_smaller = small is not None and small < (tensor.item_bytes or 0)
    return is_smaller and bool(facts.launched_in([reader.row.time_range]))


def _by_lane(casts: Iterable[OnThread]) -> dict[int, list[OnThread]]:
    """Return the conversions of each thread, in order of time."""
    of_lanes: dict[int, list[OnThread]] = defaultdict(list)
    for cast in sorted(casts, key=lambda cast: cast.start_ns):
        of_lanes[cast.lane].append(cast)
    return of_lanes


def _encloses(outer: OnThread, casts: Sequence[OnThread]) -> bool:
    """Whether an operator contains one of the conversions on its thread, as under autocast."""
    first = bisect_left(casts, outer.start_ns, key=lambda cast: cast.start_ns)
    return any(cast.end_ns <= outer.end_ns for cast in casts[first : first + 1])


def _found(facts: Facts, rows: list[_Narrowed]) -> Found:
    source, target = (python_name(name) or name for name in (rows[0].source, rows[0].target))
    smaller = [change for row in rows for change in _smaller(facts, row)]
    casts = [cast for row in rows for cast in row.casts]
    kernels = [work.event for work in facts.launched_in([cast.time_range for cast in casts])]
    n_copies = max(round(facts.per_window(len(rows))), 1)
    n_bytes = sum(facts.number(row.copy.event, "bytes") or 0 for row in rows) / len(rows)
    converts = "which the GPU then converts" if n_copies == 1 else "each of which the GPU converts"
    return Found(
        careful=smaller,
        hopeful=[*smaller, Drop(events=[cast.event for cast in casts]), Drop(events=kernels)],
        advice=f"Load the data as {target}, or convert it in workers, before it is copied",
        evidence=(
            f"{count(n_copies, 'copy', 'copies')} of {n_bytes / 1e6:,.1f} MB {facts.each} in "
            f"{source}, {converts}"
        ),
        name=facts.name(rows[0].copy.event),
        events=facts.longest(row.copy for row in rows),
    )


def _smaller(facts: Facts, row: _Narrowed) -> Iterator[Change]:
    """Yield the changes after which a copy has the bytes of the smaller type."""
    yield Scale(by=row.share, kind="copy", events=[row.copy.event])
    call = row.copy.call
    if call is not None and any(facts.core.pageable_ends(row.copy.event)):
        # The call copies the bytes to a staging buffer.
        length_ns = max(facts.place(call).duration_ns or 0, CALL_NS)
        yield Scale(by=max(row.share, CALL_NS / length_ns), events=[call])


REMEDY: Final = Remedy(
    id="narrowed_copies",
    side="copies",
    effort="code",
    needs="recorded shapes, and memcpys with their bytes",
    seen_by="a copy to the GPU of 1 MB or more, which only `copy_` to a smaller type reads",
    change="a copy with the bytes of the smaller type; at most, no conversion",
    not_when="anything else reads the copy, or the host lacks that type",
    is_upper_bound=True,
    find=_find,
)
