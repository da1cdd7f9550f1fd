"""Copies to the GPU of more bytes than the program needs.

Three kinds of them are found. The CPU converts a tensor to a larger type before its copy: as bytes,
an image has a quarter of its size as float32, and `images.to("cuda", torch.float32)` converts on
the CPU, too, unless it is called with `non_blocking=True`. The GPU converts a tensor to a smaller
type right after its copy: `batch.to("cuda").bfloat16()` copies twice the bytes that the program
needs. Or copies of one size are repeated within a step, with work in between: the data of a batch
is copied together, before the work, so these are often one tensor that should stay on the GPU, such
as a mask, positions or a table.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import pairwise, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Insert, RemoveWait, Scale
from longpole.flops.dtypes import python_name
from longpole.remedies.model import Found, Remedy
from longpole.remedies.pinned_copies import CALL_NS
from longpole.remedies.rooflines import in_words
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from longpole.engine.critical_path.changes import Change
    from longpole.flops import Tensor
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, OnThread

_COPY: Final = "aten::copy_"

# Conversions of smaller tensors cost a launch, on either side; smaller copies take as long as their
# call.
_LEAST_CONVERTED_BYTES: Final = 1 << 20

# Minimum numbers per step of copies, of their bytes, and of launches in between.
_LEAST_COPIES: Final = 3
_LEAST_REPEATED_BYTES: Final = 1 << 18
_LEAST_BETWEEN: Final = 3

# Operators that only copy: without the copy, the host does none of their work.
_COPYING: Final = ("aten::to", "aten::_to_copy", "aten::copy_")

# Operators that only make or view the tensor between its conversion and its copy.
_BETWEEN: Final = {
    "aten::to",
    "aten::_to_copy",
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::as_strided",
    "aten::contiguous",
    "aten::detach",
    "aten::expand",
    "aten::expand_as",
    "aten::unsqueeze",
    "aten::view",
    "detach",
    _COPY,
}

# Cost of the conversion on the GPU: a launch, and a pass over memory at a part of its bandwidth.
# For an unknown device, a low bandwidth is assumed, in bytes per ns.
_LAUNCH_NS: Final = 20_000
_OF_BANDWIDTH: Final = 0.6
_LEAST_BANDWIDTH: Final = 300.0

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


def _find(facts: Facts) -> Iterator[Found]:
    yield from _find_repeated(facts)
    yield from _find_converted(facts)
    yield from _find_narrowed(facts)


# Copies of one size that are repeated within a step.


def _find_repeated(facts: Facts) -> Iterator[Found]:
    of_kind: dict[tuple[int, str], list[Activity]] = defaultdict(list)
    for copy in facts.uploads:
        n_bytes = facts.number(copy.event, "bytes") or 0
        if n_bytes >= _LEAST_REPEATED_BYTES and copy.call is not None:
            what = in_words(facts, copy.operator) if copy.operator is not None else ""
            of_kind[n_bytes, what].append(copy)
    for (n_bytes, what), copies in sorted(of_kind.items()):
        n_each = len(copies) / facts.n_windows
        if n_each < _LEAST_COPIES or not _is_in_every_window(facts, copies):
            continue
        if facts.is_worth(sum(copy.duration_ns for copy in copies)) and _is_between_work(
            facts, copies
        ):
            yield _found_repeated(facts, n_bytes, what, copies)


def _is_in_every_window(facts: Facts, copies: list[Activity]) -> bool:
    numbers: dict[int, int] = defaultdict(int)
    for copy in copies:
        numbers[copy.window] += 1
    return len(numbers) == facts.n_windows and len(set(numbers.values())) == 1


def _is_between_work(facts: Facts, copies: list[Activity]) -> bool:
    """Whether kernels are launched between all copies of each window."""
    launched = sorted(
        facts.place(work.call).start_ns for work in facts.kernels if work.call is not None
    )
    return all(
        _number_between(launched, first, second) >= _LEAST_BETWEEN
        for first, second in _in_turn(facts, copies)
    )


def _in_turn(facts: Facts, copies: list[Activity]) -> Iterator[tuple[int, int]]:
    """Yield the times of each two consecutive copies of a window."""
    of_window: dict[int, list[int]] = defaultdict(list)
    for copy in copies:
        of_window[copy.window].append(facts.place(copy.call or 0).start_ns)
    for times in of_window.values():
        times.sort()
        yield from pairwise(times)


def _number_between(launched: list[int], first_ns: int, second_ns: int) -> int:
    return bisect_left(launched, second_ns) - bisect_left(launched, first_ns)


def _found_repeated(facts: Facts, n_bytes: int, what: str, copies: list[Activity]) -> Found:
    events = [copy.event for copy in copies]
    calls = [copy.call for copy in copies if copy.call is not None]
    works = set(events)
    waits = [wait.call.event for wait in facts.waits if wait.work in works]
    time_ranges = [
        facts.place(copy.outermost).time_range
        for copy in copies
        if copy.outermost is not None and facts.name(copy.outermost) in _COPYING
    ]
    n_each = round(facts.per_window(len(copies)))
    of_what = f" in {what}" if what else ""
    return Found(
        careful=[
            Drop(kind="copy", events=events),
            Drop(kind="runtime", events=calls),
            RemoveWait(events=[*calls, *waits]),
            *([Drop(time_ranges=time_ranges)] if time_ranges else []),
        ],
        advice="Keep this tensor on the GPU, if it is the same each time (`register_buffer`)",
        evidence=(
            f"{count(n_each, 'copy', 'copies')} of {n_bytes / 1e6:,.1f} MB "
            f"{facts.each}, with work between them{of_what}"
        ),
        name=what or None,
        events=facts.longest(copies),
    )


# Tensors that the CPU converts to a larger type before their copy.


class _Converted(NamedTuple):
    """A conversion on the CPU and the copy of its result to the GPU."""

    cast: OnThread
    copy: Activity
    source: str
    target: str
    """Element types before and after the conversion."""
    sizes: tuple[int, int]
    """Bytes before and after the conversion."""

    @property
    def share(self) -> float:
        """The bytes to copy without the conversion, as a share of those copied."""
        return self.sizes[0] / self.sizes[1]


def _find_converted(facts: Facts) -> Iterator[Found]:
    large = [
        row
        for row in facts.uploads
        if (facts.number(row.event, "bytes") or 0) >= _LEAST_CONVERTED_BYTES
        and row.operator is not None
        and facts.name(row.operator) == _COPY
    ]
    if not large:
        return
    ended: dict[int, list[OnThread]] = defaultdict(list)
    for row in sorted(facts.operators(_COPY), key=lambda row: (row.end_ns, row.event)):
        ended[row.lane].append(row)
    of_types: dict[tuple[str, str], list[_Converted]] = defaultdict(list)
    for copy in large:
        converted = _converted(facts, copy, ended)
        if converted is not None:
            of_types[converted.source, converted.target].append(converted)
    for _, rows in sorted(of_types.items()):
        gone_ns = sum(row.cast.duration_ns + row.copy.duration_ns for row in rows)
        if facts.is_worth(gone_ns):
            yield _found_converted(facts, rows)


def _converted(
    facts: Facts, copy: Activity, ended: Mapping[int, list[OnThread]]
) -> _Converted | None:
    """Return the conversion whose result is copied, if the CPU ran it just before."""
    begin, sent = facts.place(copy.operator or 0), facts.called(copy.operator)
    rows = ended.get(begin.lane, [])
    place = bisect_right(rows, begin.start_ns, key=lambda row: row.end_ns)
    if place == 0 or sent is None:
        return None
    cast = rows[place - 1]
    call = facts.called(cast.event)
    sizes = None if call is None else _sizes(call.tensor(1), call.tensor(0), sent.tensor(1))
    if call is None or sizes is None or facts.number(copy.event, "bytes") != sizes[1]:
        return None
    between = facts.names_in([(begin.lane, cast.end_ns, begin.start_ns)])
    computed = {row.name for row in between if row.kind == "operator"} - _BETWEEN
    # A cast that launches GPU activities runs on the GPU.
    if computed or facts.launched_in([cast.time_range]):
        return None
    types = [tensor.dtype for tensor in call.all_tensors()]
    return _Converted(cast, copy, types[1], types[0], sizes)


def _sizes(
    source: Tensor | None, target: Tensor | None, sent: Tensor | None
) -> tuple[int, int] | None:
    """Return the bytes before and after a conversion to a larger type; None if it is not one."""
    if source is None or target is None or sent is None:
        return None
    is_sent = target.dtype == sent.dtype and source.numel == target.numel == sent.numel
    small, large = source.item_bytes, target.item_bytes
    if not is_sent or small is None or large is None or small >= large:
        return None
    return small * source.numel, large * target.numel


def _found_converted(facts: Facts, rows: list[_Converted]) -> Found:
    source, target = (python_name(name) or name for name in (rows[0].source, rows[0].target))
    gone = [change for row in rows for change in _gone(facts, row)]
    host_ns = sum(row.cast.duration_ns for row in rows)
    n_copies = max(round(facts.per_window(len(rows))), 1)
    n_bytes = sum(row.sizes[1] for row in rows) / len(rows)
    return Found(
        is_upper_bound=False,
        careful=[*gone, *(_conversion(facts, row) for row in rows)],
        hopeful=gone,
        advice=f"Copy the {source} as it is, and convert it to {target} on the GPU",
        evidence=(
            f"{count(n_copies, 'copy', 'copies')} of {n_bytes / 1e6:,.1f} MB "
            f"{facts.each}, which the CPU converts in "
            f"{duration(round(host_ns / len(rows)))} {'' if n_copies == 1 else 'each '}before"
        ),
        name=facts.name(rows[0].copy.event),
        events=facts.longest(row.cast for row in rows),
    )


def _gone(facts: Facts, row: _Converted) -> Iterator[Change]:
    """Yield the changes that remove the conversion on the CPU, except for a launch."""
    launch = min(_LAUNCH_NS / max(row.cast.duration_ns, 1), 1.0)
    yield Scale(by=launch, time_ranges=[row.cast.time_range])
    yield from _smaller(facts, row.copy, row.share)


def _conversion(facts: Facts, row: _Converted) -> Change:
    """Return the cost of a conversion on the GPU, which follows the copy."""
    known = None if facts.peaks is None else facts.peaks.bandwidth
    rate = _LEAST_BANDWIDTH if known is None else known
    return Insert(time_ns=round(sum(row.sizes) / (_OF_BANDWIDTH * rate)), events=[row.copy.event])


# Tensors that the GPU converts to a smaller type after their copy.


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


def _find_narrowed(facts: Facts) -> Iterator[Found]:
    sent: dict[_Key, list[_Sent]] = defaultdict(list)
    for copy in facts.uploads:
        n_bytes = facts.number(copy.event, "bytes") or 0
        call = facts.called(copy.operator) if n_bytes >= _LEAST_CONVERTED_BYTES else None
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
            yield _found_narrowed(facts, rows)


def _key(tensor: Tensor) -> _Key:
    return tensor.dtype, tuple(tensor.shape[1:])


def _readers(facts: Facts, sent: Mapping[_Key, object]) -> Mapping[_Key, list[_Reader]]:
    """List the operators with tensors that may be those sent, in order of time."""
    found: dict[_Key, list[_Reader]] = defaultdict(list)
    rows = sorted(facts.operators("aten::"), key=attrgetter("start_ns", "event"))
    calls = facts.called_each([row.event for row in rows])
    keys_of: dict[int, set[_Key]] = {}  # by identity, since operators that are alike share a call
    for row, call in zip(rows, calls, strict=True):
        if call is None:
            continue
        if id(call) not in keys_of:
            keys_of[id(call)] = sent.keys() & map(_key, call.all_tensors())
        target = call.tensor(0) if call.name == _COPY else None
        for key in keys_of[id(call)]:
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


def _found_narrowed(facts: Facts, rows: list[_Narrowed]) -> Found:
    source, target = (python_name(name) or name for name in (rows[0].source, rows[0].target))
    smaller = [change for row in rows for change in _smaller(facts, row.copy, row.share)]
    casts = [cast for row in rows for cast in row.casts]
    kernels = [work.event for work in facts.launched_in([cast.time_range for cast in casts])]
    n_copies = max(round(facts.per_window(len(rows))), 1)
    n_bytes = sum(facts.number(row.copy.event, "bytes") or 0 for row in rows) / len(rows)
    converts = "which the GPU then converts" if n_copies == 1 else "each of which the GPU converts"
    return Found(
        effort="code",
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


def _smaller(facts: Facts, copy: Activity, share: float) -> Iterator[Change]:
    """Yield the changes after which a copy has a share of its bytes."""
    yield Scale(by=share, kind="copy", events=[copy.event])
    if copy.call is not None and any(facts.core.pageable_ends(copy.event)):
        # The call copies the bytes to a staging buffer.
        length_ns = max(facts.place(copy.call).duration_ns or 0, CALL_NS)
        yield Scale(by=max(share, CALL_NS / length_ns), events=[copy.call])


REMEDY: Final = Remedy(
    id="redundant_copies",
    side="copies",
    effort="one_line",
    needs="memcpys with their bytes, and recorded shapes for conversions",
    seen_by=(
        "copies to the GPU of one size, 3 or more in every step and of 256 KB or more, with 3 "
        "launches or more between each two; or of 1 MB or more, of a tensor that `copy_` converted "
        "to a larger type on the CPU just before, or that only `copy_` to a smaller type reads"
    ),
    change=(
        "the repeated copies, the operators that only copy, their calls and waits; or the copy has "
        "the bytes of the smaller type, and the conversion on the CPU becomes a kernel (at most "
        "together with the next one), that on the GPU goes at most"
    ),
    not_when=(
        "the copies follow each other, as those of a batch do, or their number changes; anything "
        "else reads the converted tensor, or a worker converts, which is not recorded. That "
        "repeated copies have the same bytes, or that the host has the smaller type, is not known"
    ),
    is_upper_bound=True,
    find=_find,
)
